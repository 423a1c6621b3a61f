//! One kernel for every operator that finds elements through index tensors.
//!
//! It walks a shape. Each element `w` of the walk has a place in the *base*: the sum of the walk's own strides in the
//! base and of `index[w] * stride` over the selectors. The element there is read, written or numbered. An index out of
//! range is reported, and nothing happens for its element.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::fault;
use crate::primitives::launch::{GROUP, linear_id};
use crate::primitives::wide_access::Unit;
use crate::tensor::layout::{self, Layout};
use crate::tensor::{Dims, Tensor};
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value};
use smallvec::SmallVec;

/// An index tensor (int32 or int64) and the dimension in which it selects.
#[derive(Clone, Debug)]
pub struct Selector {
    /// Of the walk's sizes.
    pub index: Tensor,
    /// Elements of the dimension.
    pub size: i64,
    /// The dimension's stride in the base.
    pub stride: i64,
    /// The dimension's number, for the error message.
    pub dim: usize,
}

/// What happens at each place.
pub enum Action<'t> {
    /// Its element goes to this tensor of the walk's sizes.
    Read(&'t Tensor),
    /// It gets the element of this tensor of the walk's sizes.
    Write(&'t Tensor),
    /// It gets an element of these bits.
    Fill(u64),
    /// Its number goes to this u32 row, at the walk's row-major index; `none` stands for an index out of range.
    Number {
        /// The row.
        row: &'t Tensor,
        /// Above every number.
        none: u32,
    },
}

/// A walk through index tensors.
pub struct Walk<'t> {
    /// Sizes of the walk.
    pub sizes: &'t [i64],
    /// The memory of the base; not used for [`Action::Number`].
    pub base: &'t Tensor,
    /// The walk's own strides in the base.
    pub strides: &'t [i64],
    /// The index tensors.
    pub selectors: &'t [Selector],
    /// Whether an index below 0 counts from the end.
    pub negative: bool,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Fill,
    Number,
}

struct Shape {
    kind: Kind,
    unit: Unit,
    rank: usize,
    index: Scalar,
    negative: bool,
    dtypes: SmallVec<[DType; 4]>,
}

/// Enqueues a walk.
pub fn run(call: &Call, walk: &Walk, action: &Action) -> Result<()> {
    let numel: i64 = walk.sizes.iter().product();
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
    strides.push(walk.strides);
    if kind == Kind::Write {
        strides.extend(other.map(|t| t.strides.as_slice()));
    }
    let base = usize::from(kind == Kind::Read);
    let moved = if other.is_some() { 2 } else { 1 };
    strides.extend(walk.selectors.iter().map(|s| s.index.strides.as_slice()));
    let mut layout = if kind == Kind::Number {
        Layout::row_major(walk.sizes, &strides)
    } else {
        Layout::walk(walk.sizes, &strides, &layout::order(walk.sizes, &strides))
    };
    let reach = |size: i64, stride: i64| (size - 1) * stride;
    let far: i64 = walk.sizes.iter().zip(walk.strides).map(|(&n, &s)| reach(n, s)).sum::<i64>()
        + walk.selectors.iter().map(|s| reach(s.size, s.stride)).sum::<i64>();
    if far >= layout::SHORT {
        layout.index = Scalar::U64;
    }
    let dtype = walk.base.dtype;
    let mut unit = Unit::one(dtype);
    if let Some(other) = other {
        let steps: Dims = walk.selectors.iter().map(|s| s.stride).collect();
        unit = Unit::widest(dtype, &layout, &[0, 1], &[walk.base.data, other.data], &steps);
        unit.scale(&mut layout, &[0, 1]);
    }
    let units: i64 = layout.sizes.iter().product();
    let shape = Shape {
        kind,
        unit,
        rank: layout.rank(),
        index: layout.index,
        negative: walk.negative,
        dtypes: walk.selectors.iter().map(|s| s.index.dtype).collect(),
    };
    // A bit for each index tensor: whether it is int64.
    let wide = shape.dtypes.iter().enumerate().fold(0u64, |w, (i, &d)| w | u64::from(d == DType::I64) << i);
    let key = [
        kind as u32 | u32::from(walk.negative) << 8 | layout.index.bytes() << 16,
        unit.code(),
        shape.rank as u32,
        shape.dtypes.len() as u32,
        wide as u32,
        (wide >> 32) as u32,
    ];
    let kernel = call.kernel("indirect", key, || build(&shape, base, moved))?;
    let mut launcher = call.launch(kernel);
    match action {
        Action::Read(out) => launcher = launcher.write(out).read(walk.base),
        Action::Write(src) => launcher = launcher.write(walk.base).read(src),
        Action::Fill(bits) => {
            launcher = launcher.write(walk.base);
            launcher = if unit.dtype == DType::U64 { launcher.u64(*bits) } else { launcher.u32(*bits as u32) };
        }
        Action::Number { row, none } => launcher = launcher.write(row).u32(*none),
    }
    for s in walk.selectors {
        launcher = launcher.read(&s.index);
    }
    launcher = launcher.fault().u32(fault::operator(call.name)).index(layout.index, units);
    for s in walk.selectors {
        launcher = launcher.i64(s.size).index(layout.index, s.stride / unit.elements).u32(s.dim as u32);
    }
    layout.pass(launcher).threads(units as u64)
}

fn build(shape: &Shape, base: usize, moved: usize) -> Kernel {
    let b = Builder::new("indirect", [GROUP, 1, 1]);
    let (unit, index) = (shape.unit, shape.index);
    let mut value = None;
    let mut pointers: Vec<Pointer> = Vec::new();
    match shape.kind {
        Kind::Read | Kind::Write => {
            pointers.push(b.pointer("to", unit.dtype));
            pointers.push(b.pointer("from", unit.dtype));
        }
        Kind::Fill => {
            pointers.push(b.pointer("to", unit.dtype));
            value = Some(b.param("value", if unit.dtype == DType::U64 { Scalar::U64 } else { Scalar::U32 }));
        }
        Kind::Number => {
            pointers.push(b.pointer("row", DType::U32));
            value = Some(b.param("none", Scalar::U32));
        }
    }
    let indices: Vec<Pointer> = shape.dtypes.iter().map(|&d| b.pointer("index", d)).collect();
    let fault = b.pointer("fault", DType::U32);
    let operator = b.param("operator", Scalar::U32);
    let n = b.param("units", index);
    let selectors: Vec<(Pointer, [Value; 3])> = indices
        .into_iter()
        .map(|p| (p, [b.param("size", Scalar::I64), b.param("stride", index), b.param("dim", Scalar::U32)]))
        .collect();
    let params = layout::declare(&b, shape.rank, moved + selectors.len(), index);
    let w = linear_id(&b, index);
    b.if_(w.lt(n), || {
        let offsets = params.offsets(&b, w);
        let place = b.var(offsets[base]);
        let good = b.var(b.bool(true));
        for (&(pointer, [size, stride, dim]), &at) in selectors.iter().zip(&offsets[moved..]) {
            let given = pointer.load(at).cast(Scalar::I64);
            // Without a select: lavapipe of Mesa 22.3 takes the wrong side of one on an index that was int32.
            let wrapped = if shape.negative { given + ((given >> 63) & size) } else { given };
            b.if_else(
                wrapped.ge(0) & wrapped.lt(size),
                || place.set(place.get() + wrapped.cast(index) * stride),
                || {
                    good.set(false);
                    fault::report(&b, fault, operator, given, size, dim);
                },
            );
        }
        let place = place.get();
        match (shape.kind, value) {
            (Kind::Number, Some(none)) => pointers[0].store(w, good.get().select(place.cast(Scalar::U32), none)),
            (_, Some(value)) => b.if_(good.get(), || pointers[0].store(place, value)),
            (Kind::Read, None) => {
                b.if_(good.get(), || unit.store(pointers[0], offsets[0], &unit.load(pointers[1], place)));
            }
            _ => b.if_(good.get(), || unit.store(pointers[0], place, &unit.load(pointers[1], offsets[1]))),
        }
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        let units = [
            Unit::one(DType::Bool),
            Unit::one(DType::F16),
            Unit::one(DType::F64),
            Unit { dtype: DType::U32, lanes: 4, elements: 8 },
        ];
        for kind in [Kind::Read, Kind::Write, Kind::Fill, Kind::Number] {
            for (unit, index) in units.into_iter().zip([Scalar::U32, Scalar::U64, Scalar::U32, Scalar::U64]) {
                for dtypes in [[DType::I64].as_slice(), &[DType::I32, DType::I64]] {
                    let unit = if matches!(kind, Kind::Read | Kind::Write) { unit } else { Unit::one(DType::F32) };
                    let dtypes = dtypes.iter().copied().collect();
                    let shape = Shape { kind, unit, rank: 2, index, negative: index == Scalar::U32, dtypes };
                    let moved = if matches!(kind, Kind::Read | Kind::Write) { 2 } else { 1 };
                    accepted(&build(&shape, usize::from(kind == Kind::Read), moved));
                }
            }
        }
    }
}
