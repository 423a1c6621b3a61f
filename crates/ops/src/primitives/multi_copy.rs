//! Copies of many parts in few kernels: what concatenation, rolling and flipping come down to.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::launch::GROUP;
use crate::primitives::wide_access::Unit;
use crate::tensor::layout::{self, Layout};
use crate::tensor::{Dims, Tensor};
use dml_kernel::{Builder, DType, Kernel, Scalar};

/// The most parts of one kernel.
const BATCH: usize = 16;
/// The most workgroups along a dimension that every adapter allows.
const MOST_GROUPS: i64 = 65_535;

/// `dst[i] = src[start + i · strides]`, for `i` over `dst`'s sizes; one dtype.
pub struct Piece {
    /// What is written.
    pub dst: Tensor,
    /// What is read.
    pub src: Tensor,
    /// Steps in `src`, in elements; may be negative.
    pub strides: Dims,
    /// Where `src` is read first, in elements.
    pub start: i64,
}

impl Piece {
    /// A copy of the whole of `src`, which has `dst`'s sizes.
    pub fn whole(dst: Tensor, src: Tensor) -> Piece {
        Piece { strides: src.strides.clone(), start: 0, dst, src }
    }

    fn layout(&self) -> Layout {
        let strides = [self.dst.strides.as_slice(), self.strides.as_slice()];
        let mut layout = Layout::walk(&self.dst.sizes, &strides, &layout::order(&self.dst.sizes, &strides));
        if self.src.reach() >= layout::SHORT {
            layout.index = Scalar::U64;
        }
        layout
    }
}

/// Enqueues copies that do not depend on each other.
pub fn copy(call: &Call, dtype: DType, pieces: &[Piece]) -> Result<()> {
    let pieces: Vec<&Piece> = pieces.iter().filter(|p| p.dst.numel() > 0).collect();
    for batch in pieces.chunks(BATCH) {
        let mut layouts: Vec<Layout> = batch.iter().map(|p| p.layout()).collect();
        let units = batch
            .iter()
            .zip(&layouts)
            .map(|(p, layout)| Unit::widest(dtype, layout, &[0, 1], &[p.dst.data, p.src.data], &[p.start]));
        let unit = units.reduce(Unit::min).unwrap_or(Unit::one(dtype));
        let rank = layouts.iter().map(Layout::rank).max().unwrap_or(0);
        let index = if layouts.iter().any(|l| l.index == Scalar::U64) { Scalar::U64 } else { Scalar::U32 };
        for layout in &mut layouts {
            unit.scale(layout, &[0, 1]);
            layout.index = index;
            layout.sizes.resize(rank, 1);
            layout.strides.iter_mut().for_each(|s| s.resize(rank, 0));
        }
        let key = [unit.code(), batch.len() as u32, rank as u32, index.bytes(), 0, 0];
        let kernel = call.kernel("pieces", key, || build(unit, batch.len(), rank, index))?;
        let mut launcher = call.launch(kernel);
        let mut longest = 0;
        for (piece, layout) in batch.iter().zip(&layouts) {
            let n = layout.sizes.iter().product();
            longest = longest.max(n);
            launcher = launcher.write(&piece.dst).read(&piece.src);
            launcher = layout.pass(launcher.index(index, n).index(index, piece.start / unit.elements));
        }
        let groups = (longest as u64).div_ceil(u64::from(GROUP)).min(MOST_GROUPS as u64);
        launcher.groups([groups as u32, batch.len() as u32, 1])?;
    }
    Ok(())
}

fn build(unit: Unit, count: usize, rank: usize, index: Scalar) -> Kernel {
    let b = Builder::new("pieces", [GROUP, 1, 1]);
    let stride = (b.group_count(0) * GROUP).cast(index);
    for piece in 0..count {
        let (dst, src) = (b.pointer("dst", unit.dtype), b.pointer("src", unit.dtype));
        let (n, start) = (b.param("n", index), b.param("start", index));
        let params = layout::declare(&b, rank, 2, index);
        b.if_(b.group_id(1).eq(piece as u32), || {
            b.for_(b.global_id(0).cast(index), n, stride, |i| {
                let at = params.offsets(&b, i);
                unit.store(dst, at[0], &unit.load(src, start + at[1]));
            });
        });
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (unit, index) in [
            (Unit::one(DType::Bool), Scalar::U32),
            (Unit::one(DType::F64), Scalar::U64),
            (Unit { dtype: DType::U32, lanes: 4, elements: 4 }, Scalar::U32),
            (Unit { dtype: DType::U32, lanes: 1, elements: 2 }, Scalar::U64),
        ] {
            accepted(&build(unit, 1, 0, index));
            accepted(&build(unit, BATCH, 3, index));
        }
    }
}
