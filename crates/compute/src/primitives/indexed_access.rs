//! One kernel for all operators that access elements through index tensors.
//!
//! It iterates over a shape. Each element `w` of the iteration has an offset in the *base* tensor:
//! `w` times the iteration's strides in the base, plus `index[w] * stride` for each of the
//! selectors. The element there is read, written or numbered. What happens to an index out of range
//! is a choice: see [`Outside`].

use crate::context::Context;
use crate::error::Result;
use crate::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec};
use crate::primitives::vector_access::VectorWidth;
use crate::view::layout::{self, Layout, LayoutParameter, LayoutSpec};
use crate::view::{Dims, View};
use dml_engine::interface::{Each, I64, Index, ReadRange, U32, WriteRange};
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::SmallVec;

/// An index tensor (int32 or int64) and the dimension that it indexes.
#[derive(Clone, Debug)]
pub struct Selector {
    /// The index tensor, with the iteration's sizes.
    pub index: View,
    /// Size of the dimension.
    pub size: i64,
    /// The dimension's stride in the base.
    pub stride: i64,
    /// Number of the dimension, for the error message.
    pub dim: usize,
}

/// What happens to each indexed element.
pub enum Action<'t> {
    /// It is copied to this tensor, which has the iteration's sizes.
    Read(&'t View),
    /// It is replaced by the element of this tensor, which has the iteration's sizes.
    Write(&'t View),
    /// It is replaced by these bits.
    Fill(u64),
    /// Its offset is stored in a u32 vector, at the iteration's row-major index; `none` is stored
    /// for an index out of range.
    Number {
        /// The vector.
        row: &'t View,
        /// A number above every offset.
        none: u32,
    },
}

/// What happens to an index out of range.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outside {
    /// It is reported, and its element is skipped.
    Report,
    /// Nothing is written at its place, and zeros are read from there.
    Nothing,
}

/// An iteration through index tensors.
pub struct IndexIteration<'t> {
    /// Sizes of the iteration.
    pub sizes: &'t [i64],
    /// The base tensor; not used for [`Action::Number`].
    pub base: &'t View,
    /// The iteration's strides in the base, besides those of the selectors.
    pub strides: &'t [i64],
    /// The index tensors.
    pub selectors: &'t [Selector],
    /// Whether negative indices count from the end.
    pub negative: bool,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Read,
    Write,
    Fill,
    Number,
}

impl Kind {
    /// Whether elements are copied from or to another tensor.
    fn moves(self) -> bool {
        matches!(self, Kind::Read | Kind::Write)
    }
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    kind: Kind,
    unit: VectorWidth,
    negative: bool,
    outside: Outside,
    /// The dtypes of the index tensors.
    indices: SmallVec<[DType; 4]>,
    /// Strides of the destination, the base, the source and the index tensors.
    layout: LayoutSpec,
}

parameters! {
    Spec as s => Arguments, Parameters {
        to: WriteRange = if s.kind == Kind::Number { DType::U32 } else { s.unit.dtype },
        from: Option<ReadRange> = s.kind.moves().then_some(s.unit.dtype),
        /// The number that is stored: the fill value, or `none`.
        value: Option<Index> = s.value(),
        fault: Option<Fault> = (s.outside == Outside::Report).then_some(()),
        vectors: Index = s.layout.index,
        selectors: Each<SelectorInput> = s.indices.iter().map(|&dtype| (dtype, s.layout.index)).collect(),
        layout: LayoutParameter = s.layout,
    }
}

/// Kernel parameter: a [`Selector`].
struct SelectorInput;

/// A [`Selector`] in a kernel.
#[derive(Copy, Clone)]
struct SelectorParams<'b> {
    index: Pointer<'b>,
    size: Value<'b>,
    stride: Value<'b>,
    dim: Value<'b>,
}

impl Parameter for SelectorInput {
    /// The dtype of the index tensor, and the integer type of strides.
    type Type = (DType, ScalarType);
    /// The selector, and the dimension's stride in access units.
    type Argument<'a> = (&'a Selector, i64);
    type Declared<'b> = SelectorParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, (dtype, index): &(DType, ScalarType)) -> SelectorParams<'b> {
        SelectorParams {
            index: Input::declare(b, "index", dtype),
            size: I64::declare(b, "size", &()),
            stride: Index::declare(b, "stride", index),
            dim: U32::declare(b, "dim", &()),
        }
    }

    fn pass((selector, stride): &(&Selector, i64), (dtype, index): &(DType, ScalarType), block: &mut ArgumentBlock) {
        Input::pass(&&selector.index, dtype, block);
        I64::pass(&selector.size, &(), block);
        Index::pass(stride, index, block);
        U32::pass(&(selector.dim as u32), &(), block);
    }
}

/// Enqueues an iteration. An index out of range is reported, and its element is skipped.
pub fn run(cx: &Context, iteration: &IndexIteration, action: &Action) -> Result<()> {
    run_within(cx, iteration, action, Outside::Report)
}

/// As [`run`], with a choice of what happens to an index out of range.
pub fn run_within(cx: &Context, iteration: &IndexIteration, action: &Action, outside: Outside) -> Result<()> {
    let numel: i64 = iteration.sizes.iter().product();
    if numel == 0 {
        return Ok(());
    }
    let (kind, other) = match action {
        Action::Read(t) => (Kind::Read, Some(*t)),
        Action::Write(t) => (Kind::Write, Some(*t)),
        Action::Fill(_) => (Kind::Fill, None),
        Action::Number { .. } => (Kind::Number, None),
    };
    let mut strides: SmallVec<[&[i64]; 6]> = SmallVec::new();
    if kind == Kind::Read {
        strides.extend(other.map(|t| t.strides.as_slice()));
    }
    strides.push(iteration.strides);
    if kind == Kind::Write {
        strides.extend(other.map(|t| t.strides.as_slice()));
    }
    strides.extend(iteration.selectors.iter().map(|s| s.index.strides.as_slice()));
    let mut layout = if kind == Kind::Number {
        Layout::row_major(iteration.sizes, &strides)
    } else {
        Layout::in_order(iteration.sizes, &strides, &layout::order(iteration.sizes, &strides))
    };
    let reach = |size: i64, stride: i64| (size - 1) * stride;
    let far: i64 = iteration.sizes.iter().zip(iteration.strides).map(|(&n, &s)| reach(n, s)).sum::<i64>()
        + iteration.selectors.iter().map(|s| reach(s.size, s.stride)).sum::<i64>();
    if far >= layout::MAX_INDEX_32 {
        layout.index = ScalarType::U64;
    }
    let dtype = iteration.base.dtype;
    let mut unit = VectorWidth::one(dtype);
    if let Some(other) = other {
        let steps: Dims = iteration.selectors.iter().map(|s| s.stride).collect();
        unit = VectorWidth::widest(dtype, &layout, &[0, 1], &[iteration.base.data, other.data], &steps);
        unit.scale(&mut layout, &[0, 1]);
    }
    let vectors: i64 = layout.sizes.iter().product();
    let spec = Spec {
        kind,
        unit,
        negative: iteration.negative,
        outside,
        indices: iteration.selectors.iter().map(|s| s.index.dtype).collect(),
        layout: layout.spec(),
    };
    let base = iteration.base.range();
    let (to, from, value) = match *action {
        Action::Read(out) => (out.range(), Some(base), None),
        Action::Write(src) => (base, Some(src.range()), None),
        Action::Fill(bits) => (base, None, Some(bits as i64)),
        Action::Number { row, none } => (row.range(), None, Some(i64::from(none))),
    };
    let arguments = Arguments {
        to,
        from,
        value,
        fault: (outside == Outside::Report).then(|| cx.fault_of_index()),
        vectors,
        selectors: iteration.selectors.iter().map(|s| (s, s.stride / unit.elements)).collect(),
        layout: &layout,
    };
    cx.run_threads(&spec, &arguments, vectors as u64)
}

impl Spec {
    /// The type of the number that is stored instead of an element of another tensor.
    fn value(&self) -> Option<ScalarType> {
        match self.kind {
            Kind::Read | Kind::Write => None,
            Kind::Fill if self.unit.dtype == DType::U64 => Some(ScalarType::U64),
            Kind::Fill | Kind::Number => Some(ScalarType::U32),
        }
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "indirect"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (unit, index) = (self.unit, self.layout.index);
        let w = linear_id(b, index);
        b.if_(w.lt(p.vectors), || {
            let offsets = p.layout.offsets(b, w);
            let (base, other) =
                if self.kind == Kind::Read { (offsets[1], offsets[0]) } else { (offsets[0], offsets[1]) };
            let own = if self.kind.moves() { 2 } else { 1 };
            let offset = b.var(base);
            let good = b.var(b.bool(true));
            for (selector, &at) in p.selectors.iter().zip(&offsets[own..]) {
                let &SelectorParams { index: pointer, size, stride, dim } = selector;
                let given = pointer.load(at).cast(ScalarType::I64);
                let wrapped = if self.negative { given + ((given >> 63) & size) } else { given };
                b.if_else(
                    wrapped.ge(0) & wrapped.lt(size),
                    || offset.set(offset.get() + wrapped.cast(index) * stride),
                    || {
                        good.set(false);
                        if let Some(fault) = p.fault {
                            fault.report(given, size, dim);
                        }
                    },
                );
            }
            let offset = offset.get();
            match (p.from, p.value) {
                (Some(from), _) if self.kind == Kind::Read => {
                    let read = || unit.store(p.to, other, &unit.load(from, offset));
                    match self.outside {
                        Outside::Report => b.if_(good.get(), read),
                        Outside::Nothing => b.if_else(good.get(), read, || unit.store(p.to, other, &unit.zero(b))),
                    }
                }
                (Some(from), _) => b.if_(good.get(), || unit.store(p.to, offset, &unit.load(from, other))),
                (None, Some(none)) if self.kind == Kind::Number => {
                    p.to.store(w, good.get().select(offset.cast(ScalarType::U32), none));
                }
                (None, Some(value)) => b.if_(good.get(), || p.to.store(offset, value)),
                (None, None) => {}
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        let widths = [
            VectorWidth::one(DType::Bool),
            VectorWidth::one(DType::F16),
            VectorWidth::one(DType::F64),
            VectorWidth { dtype: DType::U32, lanes: 4, elements: 8 },
        ];
        for kind in [Kind::Read, Kind::Write, Kind::Fill, Kind::Number] {
            for (unit, index) in
                widths.into_iter().zip([ScalarType::U32, ScalarType::U64, ScalarType::U32, ScalarType::U64])
            {
                for dtypes in [[DType::I64].as_slice(), &[DType::I32, DType::I64]] {
                    let unit = if kind.moves() { unit } else { VectorWidth::one(DType::F32) };
                    let operands = (dtypes.len() + if kind.moves() { 2 } else { 1 }) as u32;
                    let layout = LayoutSpec { rank: 2, operands, index };
                    let (negative, indices) = (index == ScalarType::U32, SmallVec::from_slice(dtypes));
                    let outside = if negative { Outside::Report } else { Outside::Nothing };
                    accepted(&Spec { kind, unit, negative, outside, indices, layout }.build());
                }
            }
        }
    }
}
