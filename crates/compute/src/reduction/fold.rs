//! Folds: the accumulators of a reduction, and its operands.

use crate::fault::{Refusal, Reporter};
use crate::reduction::axes::Axes;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::KernelKey;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::SmallVec;

/// Values of one invocation: the accumulators of a fold, or its results.
pub type Values<'b> = SmallVec<[Value<'b>; 3]>;

/// The errors that a fold reports.
pub type Refusals = SmallVec<[Refusal; 2]>;

/// What a kernel of a fold can use besides the elements.
pub struct FoldScope<'b> {
    /// The kernel's builder.
    pub b: &'b Builder,
    /// [`Reduction::numbers`], in order.
    pub numbers: Vec<Value<'b>>,
    /// [`Reduction::tables`], in order. Empty in a pass that combines partial results.
    pub tables: Vec<Pointer<'b>>,
    /// Reporters of [`Fold::refusals`], in order. Empty in a pass that combines partial results.
    pub faults: Vec<Reporter<'b>>,
    /// The integer type of positions.
    pub index: ScalarType,
}

/// An associative and commutative accumulation. The value is part of the kernel's key, so it
/// contains what changes the code, and nothing else: numbers are passed as [`Reduction::numbers`].
pub trait Fold: KernelKey {
    /// The kernel's name.
    fn name(&self) -> &'static str;
    /// Types of the accumulators (a flag is a u32), given the integer type of positions.
    fn accumulators(&self, index: ScalarType) -> SmallVec<[ScalarType; 3]>;
    /// The identity: accumulators that `combine` leaves unchanged.
    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b>;
    /// Accumulators of one element, from its value in every input and its position among the
    /// reduced elements (in row-major order if [`Fold::ordered`]).
    fn map<'b>(&self, s: &FoldScope<'b>, elements: &[Value<'b>], at: Value<'b>) -> Values<'b>;
    /// Combines two sets of accumulators.
    fn combine<'b>(&self, s: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b>;
    /// The results from the final accumulators, one for each output tensor, in any type: the store
    /// converts.
    fn project<'b>(&self, s: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b>;
    /// Whether positions matter.
    fn ordered(&self) -> bool {
        false
    }
    /// The errors that it reports, through [`FoldScope::faults`].
    fn refusals(&self) -> Refusals {
        Refusals::new()
    }
}

/// The operands of a reduction.
pub struct Reduction<'t> {
    /// Tensors of one shape. A tensor that is expanded over the reduced dimensions is read once for
    /// each output.
    pub inputs: &'t [&'t View],
    /// Results, with the shape that `axes` gives.
    pub outs: &'t [&'t View],
    /// The reduced dimensions.
    pub axes: Axes,
    /// Further tensors, which the fold accesses by itself.
    pub tables: &'t [&'t View],
    /// Numbers for the fold, as the compute types of these dtypes (not bool).
    pub numbers: &'t [(DType, Number)],
}
