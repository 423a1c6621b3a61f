//! What a reduction accumulates, and of what.

use crate::fault::{Refusal, Reporter};
use crate::reduction::axes::Axes;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::KernelKey;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::SmallVec;

/// Values of one invocation: the accumulators of a fold, or its results.
pub type Values<'b> = SmallVec<[Value<'b>; 3]>;

/// What a fold refuses.
pub type Refusals = SmallVec<[Refusal; 2]>;

/// What a kernel of a fold may use beside the elements.
pub struct Scope<'b> {
    /// Where it is written.
    pub b: &'b Builder,
    /// [`Reduction::numbers`], in order.
    pub numbers: Vec<Value<'b>>,
    /// [`Reduction::tables`], in order. Empty where the partial results of an earlier pass are
    /// joined.
    pub tables: Vec<Pointer<'b>>,
    /// What reports [`Fold::refusals`], in order. Empty where the partial results of an earlier
    /// pass are joined.
    pub faults: Vec<Reporter<'b>>,
    /// The type of positions.
    pub index: ScalarType,
}

/// An associative and commutative accumulation. The value is part of the kernel's key, so it holds
/// what changes the code, and nothing else: numbers travel in [`Reduction::numbers`].
pub trait Fold: KernelKey {
    /// The kernel's name.
    fn name(&self) -> &'static str;
    /// Types of the accumulators (numbers: a flag is a u32), given the type of positions.
    fn accumulators(&self, index: ScalarType) -> SmallVec<[ScalarType; 3]>;
    /// Accumulators of no elements: `combine` with them changes nothing.
    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b>;
    /// Accumulators of one element: its value in every input, and its position among the reduced
    /// elements (in row-major order if [`Fold::ordered`]).
    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], at: Value<'b>) -> Values<'b>;
    /// Accumulators of the elements of both.
    fn combine<'b>(&self, s: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b>;
    /// Results of the accumulators of all elements, one an output tensor, in any type: storing
    /// converts.
    fn project<'b>(&self, s: &Scope<'b>, x: &[Value<'b>]) -> Values<'b>;
    /// Whether positions matter.
    fn ordered(&self) -> bool {
        false
    }
    /// What of the elements it refuses, through [`Scope::faults`].
    fn refusals(&self) -> Refusals {
        Refusals::new()
    }
}

/// The operands of a reduction.
pub struct Reduction<'t> {
    /// Tensors of one shape, walked together. One that is expanded over the reduced dimensions is
    /// read once an output.
    pub inputs: &'t [&'t View],
    /// Results, of the shape that `axes` gives.
    pub outs: &'t [&'t View],
    /// What is reduced.
    pub axes: Axes,
    /// Tensors that the fold reads by itself.
    pub tables: &'t [&'t View],
    /// Numbers for the fold, as the compute types of these dtypes (not bool).
    pub numbers: &'t [(DType, Number)],
}
