//! Functions of the language on slices of floats.

use super::subnormals::Subnormals;
use super::{Argument, run_with};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::ir::{Inst, Kernel, ValueInfo};
use crate::types::ScalarType;

/// A function of one or two floats, ready to be evaluated many times.
#[derive(Debug)]
pub struct Function {
    kernel: Kernel,
    inputs: usize,
    scalar: ScalarType,
    subnormals: Subnormals,
}

impl Function {
    /// Invocations in a workgroup of [`Function::kernel`].
    pub const WORKGROUP: u32 = 64;

    /// `f(x)`
    pub fn unary(scalar: ScalarType, f: impl for<'b> FnOnce(Value<'b>) -> Value<'b>) -> Function {
        Function::of(scalar, 1, |v| f(v[0]))
    }

    /// `f(x, y)`
    pub fn binary(scalar: ScalarType, f: impl for<'b> FnOnce(Value<'b>, Value<'b>) -> Value<'b>) -> Function {
        Function::of(scalar, 2, |v| f(v[0], v[1]))
    }

    fn of(scalar: ScalarType, inputs: usize, f: impl for<'b> FnOnce(&[Value<'b>]) -> Value<'b>) -> Function {
        let dtype = if scalar == ScalarType::F64 { DType::F64 } else { DType::F32 };
        assert!(scalar.is_float());
        let b = Builder::new("function", [Function::WORKGROUP, 1, 1]);
        {
            let pointers: Vec<_> = (0..inputs).map(|i| b.pointer(["x", "y"][i], dtype)).collect();
            let result = b.pointer("result", dtype);
            let i = b.global_id(0);
            let values: Vec<_> = pointers.iter().map(|p| p.load(i)).collect();
            result.store(i, f(&values));
        }
        Function { kernel: b.finish(), inputs, scalar, subnormals: Subnormals::Keep }
    }

    /// The same function with another treatment of subnormal numbers.
    pub fn with(self, subnormals: Subnormals) -> Function {
        Function { subnormals, ..self }
    }

    /// The kernel: pointer parameters x, (y,) result; one element per invocation, without a bounds
    /// check.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Number of float inputs: 1 or 2.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of instructions, without constants, loads and stores; every branch counts.
    pub fn instructions(&self) -> usize {
        let counted = |v: &&ValueInfo| {
            matches!(
                v.inst,
                Inst::Unary(..)
                    | Inst::Binary(..)
                    | Inst::Compare(..)
                    | Inst::Select(..)
                    | Inst::Cast(..)
                    | Inst::Fma(..)
            )
        };
        // Two instructions compute the element's index.
        self.kernel.values.iter().filter(counted).count() - 2
    }

    /// The function of every element of an f32 slice, or of two.
    pub fn f32(&self, inputs: &[&[f32]]) -> Vec<f32> {
        assert_eq!(self.scalar, ScalarType::F32);
        let bytes: Vec<Vec<u8>> = inputs.iter().map(|x| x.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
        let out = self.bytes(bytes, inputs[0].len(), 4);
        out.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
    }

    /// The function of every element of an f64 slice, or of two.
    pub fn f64(&self, inputs: &[&[f64]]) -> Vec<f64> {
        assert_eq!(self.scalar, ScalarType::F64);
        let bytes: Vec<Vec<u8>> = inputs.iter().map(|x| x.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
        let out = self.bytes(bytes, inputs[0].len(), 8);
        out.chunks_exact(8).map(|c| f64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]])).collect()
    }

    fn bytes(&self, mut inputs: Vec<Vec<u8>>, len: usize, size: usize) -> Vec<u8> {
        assert_eq!(inputs.len(), self.inputs);
        let groups = len.div_ceil(Function::WORKGROUP as usize);
        let padded = groups * Function::WORKGROUP as usize * size;
        inputs.iter_mut().for_each(|x| x.resize(padded, 0));
        let mut result = vec![0; padded];
        let mut arguments: Vec<_> = inputs.iter_mut().map(|x| Argument::Memory(x)).collect();
        arguments.push(Argument::Memory(&mut result));
        run_with(&self.kernel, [groups as u32, 1, 1], 32, self.subnormals, &mut arguments);
        result.truncate(len * size);
        result
    }
}
