//! Copies of up to a thousand regions in one launch, for regions of contiguous rows with a constant
//! row stride.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::KernelSpec;
use crate::primitives::list_table::{Grid, ListArgument, ListTable, MAX_TENSORS};
use crate::primitives::multi_copy::Region;
use crate::primitives::vector_access::VectorWidth;
use crate::view::layout::Layout;
use dml_engine::{AddressRange, parameters};
use dml_kernel::dense::{GROUP, folded};
use dml_kernel::{Builder, DType, ScalarType};

/// Words of a region in the table: number of units, destination, source, units of a row, and the
/// row strides on both sides.
const WORDS: usize = 6;

/// Copies the regions that consist of contiguous rows, and returns the other regions.
pub fn copy<'r>(cx: &Context, dtype: DType, regions: &[&'r Region]) -> Result<Vec<&'r Region>> {
    let mut rest = Vec::new();
    let mut rows: Vec<(&Region, Layout)> = Vec::with_capacity(regions.len());
    for &region in regions {
        let layout = region.layout();
        if is_rows(&layout) { rows.push((region, layout)) } else { rest.push(region) }
    }
    for batch in rows.chunks_mut(MAX_TENSORS) {
        launch(cx, dtype, batch)?;
    }
    Ok(rest)
}

fn is_rows(layout: &Layout) -> bool {
    let neighbours = layout.strides.iter().all(|strides| strides.first().is_none_or(|&stride| stride == 1));
    neighbours && layout.rank() <= 2 && layout.index == ScalarType::U32
}

fn launch(cx: &Context, dtype: DType, regions: &mut [(&Region, Layout)]) -> Result<()> {
    let widths = regions.iter().map(|(region, layout)| {
        VectorWidth::widest(dtype, layout, &[0, 1], &[region.dst.data, region.src.data], &[region.start])
    });
    let unit = widths.reduce(VectorWidth::min).unwrap_or(VectorWidth::one(dtype));
    let mut entries: Vec<u64> = Vec::with_capacity(WORDS * regions.len());
    let mut reads: Vec<AddressRange> = Vec::with_capacity(regions.len());
    let mut written = regions[0].0.dst.range();
    for (region, layout) in regions {
        unit.scale(layout, &[0, 1]);
        let word = |address: u64| address / unit.dtype.bytes();
        let row = layout.sizes.first().copied().unwrap_or(1);
        let apart = |i: usize| layout.strides[i].get(1).copied().unwrap_or(0) as u64;
        let first = region.src.data + region.start as u64 * dtype.bytes();
        let count: i64 = layout.sizes.iter().product();
        entries.extend([count as u64, word(region.dst.data), word(first), row as u64, apart(0), apart(1)]);
        reads.push(region.src.range());
        let range = region.dst.range();
        written = AddressRange { start: written.start.min(range.start), end: written.end.max(range.end) };
    }
    let Grid { first_workgroups, groups, rounds } = Grid::new(entries.iter().step_by(WORDS).copied(), 1);
    let writes = [written];
    let lists = ListArgument {
        first_workgroups: &first_workgroups,
        entries: &entries,
        rounds: rounds as u32,
        reads: &reads,
        writes: &writes,
    };
    cx.run(&Spec { unit }, &Arguments { lists }, folded(groups))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    unit: VectorWidth,
}

parameters! {
    Spec as _s => Arguments, Parameters {
        lists: ListTable,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "rows of pieces"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let lists = p.lists;
        lists.part(1, WORDS as u32, |part| {
            let (dst, src) = (lists.tensor(&part, 0, self.unit.dtype), lists.tensor(&part, 1, self.unit.dtype));
            let [row, dst_apart, src_apart] = [2, 3, 4].map(|i| lists.word(&part, i).cast(ScalarType::U32));
            let start = part.start.cast(ScalarType::U32);
            b.for_(b.local_id(0), part.n, GROUP, |i| {
                let (line, at) = ((start + i) / row, (start + i) % row);
                self.unit.store(dst, line * dst_apart + at, &self.unit.load(src, line * src_apart + at));
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for unit in [
            VectorWidth::one(DType::Bool),
            VectorWidth::one(DType::F64),
            VectorWidth { dtype: DType::U32, lanes: 4, elements: 4 },
            VectorWidth { dtype: DType::U32, lanes: 1, elements: 2 },
        ] {
            accepted(&Spec { unit }.build());
        }
    }
}
