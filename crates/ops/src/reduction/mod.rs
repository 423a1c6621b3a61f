//! Reductions: an operator that folds elements of its input along some dimensions.
//!
//! A [`Fold`] says what is accumulated; [`reduce`] runs it over any dims of strided tensors. The order of additions is
//! a tree that depends on shapes, strides and alignment only, so that every adapter gives the same bits: each
//! invocation adds a few dozen elements in several independent chains, a workgroup joins its chains in shared memory,
//! and long reductions leave partial results for a next pass. Rounding errors grow like those of pairwise summation
//! (Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14, 1993).

mod axes;
mod kernel;
mod plan;

pub mod extremum;
pub mod hash;
pub mod histogram;
pub mod logical;
pub mod norm;
pub mod scan;
pub mod sum;
pub mod variance;

pub use axes::Axes;
#[cfg(test)]
pub use kernel::validate;

use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::primitives::launch::Launcher;
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Pointer, Scalar, Value};
use plan::{Pass, Plan};
use smallvec::SmallVec;

/// Values of one invocation: the accumulators of a fold, or its results.
pub type Values<'b> = SmallVec<[Value<'b>; 3]>;

/// What a kernel of a fold may use beside the elements.
pub struct Scope<'b> {
    /// Where it is written.
    pub b: &'b Builder,
    /// [`Reduction::numbers`], in order.
    pub numbers: Vec<Value<'b>>,
    /// [`Reduction::tables`], in order. Empty where the partial results of an earlier pass are joined.
    pub tables: Vec<Pointer<'b>>,
    /// The device's fault block, where the fold asked for it.
    pub fault: Option<Pointer<'b>>,
    /// The type of positions.
    pub index: Scalar,
}

/// An associative and commutative accumulation.
pub trait Fold {
    /// Kernel family.
    fn name(&self) -> &'static str;
    /// Tells apart folds of one name whose code differs by more than the dtypes of inputs and results.
    fn variant(&self) -> u32 {
        0
    }
    /// Types of the accumulators (numbers: a flag is a u32), given the type of positions.
    fn accumulators(&self, index: Scalar) -> SmallVec<[Scalar; 3]>;
    /// Accumulators of no elements: `combine` with them changes nothing.
    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b>;
    /// Accumulators of one element: its value in every input, and its position among the reduced elements (in row-major
    /// order if [`Fold::ordered`]).
    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], at: Value<'b>) -> Values<'b>;
    /// Accumulators of the elements of both.
    fn combine<'b>(&self, s: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b>;
    /// Results, one an output tensor, in any type: storing converts.
    fn finish<'b>(&self, s: &Scope<'b>, x: &[Value<'b>]) -> Values<'b>;
    /// Whether positions matter.
    fn ordered(&self) -> bool {
        false
    }
    /// Whether it uses [`Scope::fault`].
    fn faults(&self) -> bool {
        false
    }
}

/// The operands of a reduction.
pub struct Reduction<'t> {
    /// Tensors of one shape, walked together. One that is expanded over the reduced dimensions is read once an output.
    pub inputs: &'t [&'t Tensor],
    /// Results, of the shape that `axes` gives.
    pub outs: &'t [&'t Tensor],
    /// What is reduced.
    pub axes: Axes,
    /// Tensors that the fold reads by itself.
    pub tables: &'t [&'t Tensor],
    /// Numbers for the fold, as the compute types of these dtypes (not bool).
    pub numbers: &'t [(DType, Number)],
}

/// Enqueues a fold.
pub fn reduce(call: &Call, fold: &impl Fold, r: &Reduction) -> Result<()> {
    let (plan, mut pass) = Plan::new(r, fold.ordered());
    if plan.outputs == 0 {
        return Ok(());
    }
    let accumulators = fold.accumulators(plan.index);
    let input_dtypes = dtypes(r.inputs, |t| t.dtype);
    let out_dtypes = dtypes(r.outs, |t| t.dtype);
    let table_dtypes = dtypes(r.tables, |t| t.dtype);
    let number_dtypes = dtypes(r.numbers, |n| n.0);
    let partial_dtypes = dtypes(&accumulators, |&a| dtype_of(a));

    let mut partials: SmallVec<[Tensor; 3]> = SmallVec::new();
    loop {
        let shape = kernel::Shape {
            first: pass.first,
            last: pass.parts == 1,
            inputs: if pass.first { &input_dtypes } else { &partial_dtypes },
            outs: if pass.parts == 1 { &out_dtypes } else { &partial_dtypes },
            tables: if pass.first { &table_dtypes } else { &[] },
            numbers: &number_dtypes,
            kept_rank: plan.kept.rank() as u32,
            reduced_rank: pass.reduced.rank() as u32,
            index: plan.index,
            lanes: pass.lanes,
            lanes_first: pass.lanes_first,
            width: pass.width,
            constants: pass.constants,
        };
        let kernel = call.kernel(fold.name(), shape.key(fold.variant()), || kernel::build(fold, &shape))?;
        let next: SmallVec<[Tensor; 3]> = if shape.last {
            SmallVec::new()
        } else {
            let made: Result<SmallVec<[Tensor; 3]>> =
                partial_dtypes.iter().map(|&d| call.empty(d, &[plan.outputs * pass.parts])).collect();
            made?
        };
        let mut launcher = call.launch(kernel);
        launcher = if shape.first {
            r.inputs.iter().fold(launcher, |l, t| l.read(t))
        } else {
            partials.iter().fold(launcher, |l, t| l.read(t))
        };
        launcher = if shape.last {
            r.outs.iter().fold(launcher, |l, t| l.write(t))
        } else {
            next.iter().fold(launcher, |l, t| l.write(t))
        };
        if shape.first {
            for t in r.tables {
                launcher = launcher.read(t);
            }
            if fold.faults() {
                launcher = launcher.fault();
            }
        }
        for &(dtype, number) in r.numbers {
            launcher = launcher.number(dtype, number);
        }
        pass_numbers(launcher, &plan, &pass).groups(pass.groups())?;
        if shape.last {
            return Ok(());
        }
        partials = next;
        pass = plan.next(&pass, accumulators.len());
    }
}

/// The numbers that [`kernel::build`] declares, in its order.
fn pass_numbers<'c, 'a>(launcher: Launcher<'c, 'a>, plan: &Plan, pass: &Pass) -> Launcher<'c, 'a> {
    let launcher = launcher
        .index(plan.index, plan.outputs)
        .index(plan.index, pass.extent)
        .index(plan.index, pass.part_length)
        .index(plan.index, pass.part_stride)
        .u32(pass.blocks)
        .u32(pass.parts as u32);
    pass.reduced.pass(plan.pass_kept(pass, launcher))
}

fn dtypes<T>(operands: &[T], dtype: impl Fn(&T) -> DType) -> SmallVec<[DType; 4]> {
    let mut all = SmallVec::new();
    for operand in operands {
        all.push(dtype(operand));
    }
    all
}

/// The dtype whose elements are this compute type.
fn dtype_of(scalar: Scalar) -> DType {
    match scalar {
        Scalar::Bool => DType::Bool,
        Scalar::I32 => DType::I32,
        Scalar::U32 => DType::U32,
        Scalar::I64 => DType::I64,
        Scalar::U64 => DType::U64,
        Scalar::F32 => DType::F32,
        Scalar::F64 => DType::F64,
    }
}

/// The type in which sums over elements of a dtype are accumulated.
pub fn sum_type(dtype: DType) -> Scalar {
    match dtype {
        DType::F64 => Scalar::F64,
        d if d.is_float() => Scalar::F32,
        _ => Scalar::I64,
    }
}
