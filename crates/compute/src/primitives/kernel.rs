//! Kernels of operators: a specialisation that builds its kernel, and launches with named
//! arguments.
//!
//! A kernel is a type, its [`KernelSpec`]: everything that changes the code, which is also the key
//! in the kernel cache. Its parameters are declared with [`parameters!`](dml_engine::parameters),
//! with the kinds of parameters that are here and in [`dml_engine::interface`].

use crate::context::{Context, Phase};
use crate::error::Result;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::{ArgumentBlock, Interface, KernelKey, KernelRef, Parameter};
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, Kernel, Pointer, ScalarType, Value};

/// A kernel's specialisation, which builds the kernel.
pub trait KernelSpec: Interface + KernelKey {
    /// The kernel's name, for profiles and messages.
    fn name(&self) -> &'static str;

    /// The name with the properties that distinguish this specialisation, for profiles that show
    /// them.
    fn full_name(&self) -> String {
        self.name().to_owned()
    }

    /// Invocations of a workgroup.
    fn workgroup(&self) -> [u32; 3] {
        [GROUP, 1, 1]
    }

    /// Writes the body of the kernel.
    fn write<'b>(&self, b: &'b Builder, p: Self::Parameters<'b>);

    /// Builds the kernel.
    fn build(&self) -> Kernel {
        let b = Builder::new(self.full_name(), self.workgroup());
        let p = self.declare(&b);
        self.write(&b, p);
        b.finish()
    }
}

impl Context<'_> {
    /// Enqueues a launch of the kernel of `spec` with `groups` workgroups. The kernel is built at
    /// the first launch.
    pub fn run<S: KernelSpec>(&self, spec: &S, arguments: &S::Arguments<'_>, groups: [u32; 3]) -> Result<()> {
        if self.needs_no_kernel() {
            return Ok(());
        }
        let kernel = self.device.kernel(spec, || spec.build())?;
        self.enqueue(kernel, spec, arguments, groups)
    }

    /// Like [`run`](Self::run), for a launch with this number of operations (see
    /// [`Launch::work`](dml_engine::Launch::work)): launches that take long on a slow GPU are
    /// split.
    pub fn run_with_cost<S: KernelSpec>(
        &self,
        spec: &S,
        arguments: &S::Arguments<'_>,
        groups: [u32; 3],
        operations: u64,
    ) -> Result<()> {
        if self.needs_no_kernel() {
            return Ok(());
        }
        let kernel = self.device.kernel(spec, || spec.build())?;
        self.enqueue_with(kernel, groups, |block| {
            spec.pass(arguments, block);
            block.operations(operations);
        })
    }

    /// Enqueues a launch of a kernel with the parameters that `interface` declares.
    pub fn enqueue<I: Interface>(
        &self,
        kernel: &KernelRef,
        interface: &I,
        arguments: &I::Arguments<'_>,
        groups: [u32; 3],
    ) -> Result<()> {
        self.enqueue_with(kernel, groups, |block| interface.pass(arguments, block))
    }

    /// Enqueues a launch of `kernel` with the arguments that `pass` packs.
    #[inline]
    pub fn enqueue_with(
        &self,
        kernel: &KernelRef,
        groups: [u32; 3],
        pass: impl FnOnce(&mut ArgumentBlock),
    ) -> Result<()> {
        if self.phase == Phase::Probe {
            return self.environment.probe(self.device, kernel, &[]);
        }
        ArgumentBlock::with_spare(|block| {
            block.begin(self.device.placeholder_address());
            pass(block);
            let launch = block.launch(kernel, groups, self.name)?;
            if self.phase == Phase::Checked {
                self.environment.probe(self.device, kernel, launch.writes)?;
            }
            Ok(self.device.launch(launch)?)
        })
    }

    /// Enqueues a launch with at least `threads` invocations in workgroups of [`GROUP`]; the kernel
    /// gets its index from [`linear_id`](dml_kernel::dense::linear_id).
    pub fn run_threads<S: KernelSpec>(&self, spec: &S, arguments: &S::Arguments<'_>, threads: u64) -> Result<()> {
        self.run(spec, arguments, dml_kernel::dense::groups(threads))
    }
}

/// Kernel parameter: a tensor that is read. Its dtype comes from the specialisation.
pub struct Input;

impl Parameter for Input {
    type Type = DType;
    type Argument<'a> = &'a View;
    type Declared<'b> = Pointer<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> Pointer<'b> {
        b.input(name, *dtype)
    }

    #[inline]
    fn pass(t: &&View, dtype: &DType, block: &mut ArgumentBlock) {
        if t.dtype != *dtype {
            block.mismatch("an input's dtype is not the one that the kernel is made for");
        }
        block.reads(t.range());
        block.memory(t.data);
    }
}

/// Kernel parameter: a tensor that is written, and may be read. Its dtype comes from the
/// specialisation.
pub struct Output;

impl Parameter for Output {
    type Type = DType;
    type Argument<'a> = &'a View;
    type Declared<'b> = Pointer<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> Pointer<'b> {
        b.pointer(name, *dtype)
    }

    #[inline]
    fn pass(t: &&View, dtype: &DType, block: &mut ArgumentBlock) {
        if t.dtype != *dtype {
            block.mismatch("a result's dtype is not the one that the kernel is made for");
        }
        block.writes(t.range());
        block.memory(t.data);
    }
}

/// Kernel parameter: a number in the compute type of a dtype; a bool is passed as u32.
pub struct InDType;

impl Parameter for InDType {
    type Type = DType;
    type Argument<'a> = Number;
    type Declared<'b> = Value<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> Value<'b> {
        match dtype.compute() {
            ScalarType::Bool => b.param(name, ScalarType::U32).cast(ScalarType::Bool),
            scalar => b.param(name, scalar),
        }
    }

    #[inline]
    fn pass(x: &Number, dtype: &DType, block: &mut ArgumentBlock) {
        let word = number_word(*dtype, *x);
        if dtype.compute().bytes() == 8 {
            block.scalar(word.to_ne_bytes());
        } else {
            block.scalar((word as u32).to_ne_bytes());
        }
    }
}

/// Encodes a number as the bits of `dtype.compute()`; a bool is a u32.
pub fn number_word(dtype: DType, x: Number) -> u64 {
    match dtype.compute() {
        ScalarType::Bool => u64::from(x.to_f64() != 0.0),
        // Narrow integers wrap around to their width here, since there is no store to do it when a
        // number is only compared.
        ScalarType::I32 => u64::from(match dtype {
            DType::U8 => i32::from(x.to_i64() as u8),
            DType::I8 => i32::from(x.to_i64() as i8),
            DType::I16 => i32::from(x.to_i64() as i16),
            DType::U16 => i32::from(x.to_i64() as u16),
            _ => x.to_i64() as i32,
        } as u32),
        ScalarType::U32 => u64::from(x.to_i64() as u32),
        ScalarType::I64 | ScalarType::U64 => x.to_i64() as u64,
        ScalarType::F32 => u64::from((x.to_f64() as f32).to_bits()),
        ScalarType::F64 => x.to_f64().to_bits(),
    }
}
