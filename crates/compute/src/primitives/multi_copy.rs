//! Copies of many regions in few launches, to which concatenation, rolling and flipping are
//! reduced.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::KernelSpec;
use crate::primitives::row_copy;
use crate::primitives::vector_access::VectorWidth;
use crate::view::layout::{self, Layout, LayoutParameter, LayoutParams, LayoutSpec};
use crate::view::{Dims, View};
use dml_engine::interface::{Each, Index, ReadRange, WriteRange};
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::dense::{GROUP, MAX_GROUPS};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// Maximum number of regions of one launch.
const MAX_REGIONS: usize = 16;

/// `dst[i] = src[start + i · strides]`, for `i` over `dst`'s sizes; one dtype.
pub struct Region {
    /// The destination.
    pub dst: View,
    /// The source.
    pub src: View,
    /// Strides in `src`, in elements; may be negative.
    pub strides: Dims,
    /// Offset in `src` of the first element that is read.
    pub start: i64,
}

impl Region {
    /// A copy of the whole of `src`, which has `dst`'s sizes.
    pub fn whole(dst: View, src: View) -> Region {
        Region { strides: src.strides.clone(), start: 0, dst, src }
    }

    /// The layout for iterating over both sides.
    pub fn layout(&self) -> Layout {
        let strides = [self.dst.strides.as_slice(), self.strides.as_slice()];
        let mut layout = Layout::in_order(&self.dst.sizes, &strides, &layout::order(&self.dst.sizes, &strides));
        if self.src.reach() >= layout::MAX_INDEX_32 {
            layout.index = ScalarType::U64;
        }
        layout
    }
}

/// Enqueues independent copies. Many copies that consist of contiguous rows are one launch.
pub fn copy(cx: &Context, dtype: DType, regions: &[Region]) -> Result<()> {
    let mut regions: Vec<&Region> = regions.iter().filter(|r| r.dst.numel() > 0).collect();
    if regions.len() > MAX_REGIONS {
        regions = row_copy::copy(cx, dtype, &regions)?;
    }
    for batch in regions.chunks(MAX_REGIONS) {
        let mut layouts: Vec<Layout> = batch.iter().map(|r| r.layout()).collect();
        let widths = batch
            .iter()
            .zip(&layouts)
            .map(|(r, layout)| VectorWidth::widest(dtype, layout, &[0, 1], &[r.dst.data, r.src.data], &[r.start]));
        let unit = widths.reduce(VectorWidth::min).unwrap_or(VectorWidth::one(dtype));
        let rank = layouts.iter().map(Layout::rank).max().unwrap_or(0);
        let index = if layouts.iter().any(|l| l.index == ScalarType::U64) { ScalarType::U64 } else { ScalarType::U32 };
        for layout in &mut layouts {
            unit.scale(layout, &[0, 1]);
            layout.index = index;
            layout.sizes.resize(rank, 1);
            layout.strides.iter_mut().for_each(|s| s.resize(rank, 0));
        }
        let spec = Spec { unit, regions: batch.len(), rank: rank as u32, index };
        let regions: SmallVec<[VectorCopyArgument; 4]> =
            batch.iter().zip(&layouts).map(|(region, layout)| VectorCopyArgument { region, layout, unit }).collect();
        let longest = regions.iter().map(VectorCopyArgument::vectors).max().unwrap_or(0);
        let groups = (longest as u64).div_ceil(u64::from(GROUP)).min(MAX_GROUPS);
        cx.run(&spec, &Arguments { regions }, [groups as u32, batch.len() as u32, 1])?;
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    unit: VectorWidth,
    regions: usize,
    /// The number of dimensions of every region's layout.
    rank: u32,
    index: ScalarType,
}

parameters! {
    Spec as s => Arguments, Parameters {
        regions: Each<VectorCopyParameter> = smallvec![(s.unit.dtype, s.layout()); s.regions],
    }
}

/// Kernel parameter: a [`Region`] that is copied in units of several elements.
struct VectorCopyParameter;

/// The argument for [`VectorCopyParameter`].
struct VectorCopyArgument<'a> {
    region: &'a Region,
    /// The region's layout in units.
    layout: &'a Layout,
    unit: VectorWidth,
}

impl VectorCopyArgument<'_> {
    fn vectors(&self) -> i64 {
        self.layout.sizes.iter().product()
    }
}

/// A region in a kernel.
struct RegionParams<'b> {
    dst: Pointer<'b>,
    src: Pointer<'b>,
    n: Value<'b>,
    start: Value<'b>,
    layout: LayoutParams<'b>,
}

impl Spec {
    fn layout(&self) -> LayoutSpec {
        LayoutSpec { rank: self.rank, operands: 2, index: self.index }
    }
}

impl Parameter for VectorCopyParameter {
    /// The dtype of a unit's words.
    type Type = (DType, LayoutSpec);
    type Argument<'a> = VectorCopyArgument<'a>;
    type Declared<'b> = RegionParams<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, (word, layout): &(DType, LayoutSpec)) -> RegionParams<'b> {
        RegionParams {
            dst: WriteRange::declare(b, "dst", word),
            src: ReadRange::declare(b, "src", word),
            n: b.param("n", layout.index),
            start: b.param("start", layout.index),
            layout: LayoutParameter::declare(b, name, layout),
        }
    }

    fn pass(argument: &VectorCopyArgument, (word, layout): &(DType, LayoutSpec), block: &mut ArgumentBlock) {
        let VectorCopyArgument { region, unit, .. } = argument;
        WriteRange::pass(&region.dst.range(), word, block);
        ReadRange::pass(&region.src.range(), word, block);
        for number in [argument.vectors(), region.start / unit.elements] {
            Index::pass(&number, &layout.index, block);
        }
        LayoutParameter::pass(&argument.layout, layout, block);
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "pieces"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let stride = (b.group_count(0) * GROUP).cast(self.index);
        for (i, region) in p.regions.into_iter().enumerate() {
            b.if_(b.group_id(1).eq(i as u32), || {
                b.for_(b.global_id(0).cast(self.index), region.n, stride, |unit| {
                    let at = region.layout.offsets(b, unit);
                    self.unit.store(region.dst, at[0], &self.unit.load(region.src, region.start + at[1]));
                });
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (unit, index) in [
            (VectorWidth::one(DType::Bool), ScalarType::U32),
            (VectorWidth::one(DType::F64), ScalarType::U64),
            (VectorWidth { dtype: DType::U32, lanes: 4, elements: 4 }, ScalarType::U32),
            (VectorWidth { dtype: DType::U32, lanes: 1, elements: 2 }, ScalarType::U64),
        ] {
            accepted(&Spec { unit, regions: 1, rank: 0, index }.build());
            accepted(&Spec { unit, regions: MAX_REGIONS, rank: 3, index }.build());
        }
    }
}
