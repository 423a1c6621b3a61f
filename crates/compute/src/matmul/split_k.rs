//! Split-K: products whose k is divided among workgroups. Which range of k is a workgroup's, and
//! the second pass, which adds the partial sums in order and applies the epilogue.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::epilogue::{Epilogue, EpilogueOperands};
use crate::primitives::kernel::{Input, KernelSpec};
use crate::primitives::registers::{Kept, Loads, loads_in_flight};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Each, ReadRange, U32, WriteRange};
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// How k is divided.
#[derive(Copy, Clone, Debug)]
pub struct Division {
    /// Number of ranges of k, each of which gives a partial sum for every result.
    pub parts: i64,
    /// Elements of a range; the last one may be shorter.
    pub length: i64,
}

/// Kernel parameter: a [`Division`].
pub struct SplitK;

/// A [`Division`] in a kernel.
#[derive(Copy, Clone)]
pub struct DivisionParams<'b> {
    parts: Value<'b>,
    length: Value<'b>,
}

impl Parameter for SplitK {
    type Type = ();
    type Argument<'a> = Division;
    type Declared<'b> = DivisionParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, (): &()) -> DivisionParams<'b> {
        DivisionParams { parts: b.param("parts", ScalarType::U32), length: b.param("length", ScalarType::U32) }
    }

    #[inline]
    fn pass(division: &Division, (): &(), block: &mut ArgumentBlock) {
        U32::pass(&(division.parts as u32), &(), block);
        U32::pass(&(division.length as u32), &(), block);
    }
}

/// The matrix of the batch that workgroup `z` computes, and the beginning and the end of its range
/// of k.
pub fn part<'b>(
    b: &'b Builder,
    z: Value<'b>,
    k: Value<'b>,
    division: Option<DivisionParams<'b>>,
) -> (Value<'b>, Value<'b>, Value<'b>) {
    match division {
        None => (z, b.u32(0), k),
        Some(DivisionParams { parts, length }) => {
            let batch = z / parts;
            let begin = (z - batch * parts) * length;
            (batch, begin, (begin + length).min(k))
        }
    }
}

/// Maximum partial sums whose loads are issued together.
const LOADS_IN_FLIGHT: u32 = 8;

/// Adds the partial sums, `parts` for each result, with layout `[batch][part][m][n]`, and applies
/// the epilogue.
pub fn reduce(cx: &Context, workspace: &View, size: [i64; 3], parts: i64, operands: &EpilogueOperands) -> Result<()> {
    let [batch, m, n] = size;
    let mut spec = Spec {
        sums: workspace.dtype,
        epilogue: operands.epilogue(n),
        index: index_type(operands.reach(m, n)),
        loads_in_flight: LOADS_IN_FLIGHT,
    };
    let (bytes, width) = (workspace.dtype.bytes() as u32, spec.width());
    let registers = cx.device.info().capabilities.registers;
    spec.loads_in_flight = loads_in_flight(registers, GROUP, LOADS_IN_FLIGHT, |loads| Kept {
        bytes,
        elements: (loads + 1) * width,
        loaded: (loads * width, if width > 1 { Loads::Vectors } else { Loads::Elements }),
    });
    let arguments = Arguments {
        workspace,
        out: operands.out_range(0),
        bias: operands.bias_range(0),
        tensors: operands.tensor_ranges(0),
        m: m as u32,
        n: n as u32,
        parts: parts as u32,
        epilogue: operands,
    };
    let groups = ((m * n) as u64 / u64::from(spec.width())).div_ceil(u64::from(GROUP));
    cx.run(&spec, &arguments, [groups as u32, 1, batch as u32])
}

/// Specialisation of the second pass: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The dtype of partial sums.
    pub sums: DType,
    /// The epilogue, which is applied to their totals.
    pub epilogue: Epilogue,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// Partial sums whose loads are issued together.
    pub loads_in_flight: u32,
}

impl Spec {
    /// Adjacent columns of an invocation.
    fn width(&self) -> u32 {
        if self.epilogue.wide { 4 } else { 1 }
    }
}

parameters! {
    /// The parameters of the second pass.
    pub Spec as s => Arguments, Parameters {
        /// The partial sums.
        workspace: Input = s.sums,
        /// The result.
        out: WriteRange = s.epilogue.dtype,
        /// The bias that is added.
        bias: Option<ReadRange> = s.epilogue.bias,
        /// The tensors that the epilogue reads.
        tensors: Each<ReadRange> = s.epilogue.tensor_dtypes(),
        /// Rows.
        m: U32,
        /// Columns.
        n: U32,
        /// Number of partial sums for each result.
        parts: U32,
        /// The epilogue.
        epilogue: Epilogue = (s.epilogue, s.sums, s.index),
    }
}

/// Workgroups: dimension 2 is the batch.
impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "gemm reduce"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { workspace, m, n, parts, .. } = p;
        let mut out = p.epilogue.at(b, p.out, p.bias, p.tensors);
        let width = self.width();
        let chunk = b.global_id(0);
        let size = m * n;
        let first = chunk * width;
        b.if_(first.lt(size), || {
            let batch = b.group_id(2);
            let size = size.cast(ScalarType::U64);
            let base = workspace.offset((batch * parts).cast(ScalarType::U64) * size);
            let zero = b.constant_of(self.sums.compute(), 0.0);
            let sums: Vec<_> = (0..width).map(|_| b.var(zero)).collect();
            b.for_(0u32, parts, self.loads_in_flight, |part| {
                let loaded: Vec<_> = (0..self.loads_in_flight)
                    .map(|ahead| {
                        let part = part + ahead;
                        let valid = part.lt(parts);
                        let at = valid.select(part, 0).cast(ScalarType::U64) * size;
                        let chunk = base.offset(at).load_chunk(chunk, width);
                        chunk.into_iter().map(|x| valid.select(x, 0)).collect::<Vec<_>>()
                    })
                    .collect();
                for (sum, value) in loaded.iter().flat_map(|part| sums.iter().zip(part)) {
                    sum.set(sum.get() + *value);
                }
            });
            out.begin(batch, b.u32(0), b.u32(0));
            let row = first / n;
            let sums: Vec<_> = sums.iter().map(|s| s.get()).collect();
            out.store(b, [row, first - row * n], &sums, None, None);
        });
    }
}
