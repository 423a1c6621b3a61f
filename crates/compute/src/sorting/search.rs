//! Searching for numbers in sorted rows.

use crate::context::Context;
use crate::error::Result;
use crate::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::sorting::key;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Index, ReadRange, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::math::comparison::{less, less_equal};
use dml_kernel::{Builder, DType, ScalarType};

/// Writes, for each value, the number of boundaries of its row that are below it, or that are not
/// above it if `right`. `boundaries` are `[.., n]` of the same rows as `values`, or one row for all
/// values; `0 < n < 2^31`. They are sorted, or `sorter` (int64, of their shape) has the indices
/// that sort each row. All are contiguous; boundaries and values have one dtype; `out` is int32 or
/// int64, of the shape of `values`, not empty.
pub fn search(
    cx: &Context,
    boundaries: &View,
    values: &View,
    sorter: Option<&View>,
    right: bool,
    out: &View,
) -> Result<()> {
    let count = out.numel();
    let n = boundaries.sizes.last().copied().unwrap_or(1);
    // Values per row of boundaries: all of them if there is only one row.
    let row = if boundaries.dim() == 1 { count } else { values.sizes.last().copied().unwrap_or(1) };
    let index = index_type(count.max(boundaries.numel()));
    let spec = Search { dtype: boundaries.dtype, out: out.dtype, index, right, sorted: sorter.is_none() };
    let arguments = SearchArguments {
        boundaries,
        values,
        out,
        sorter,
        fault: sorter.map(|_| cx.fault_of_index()),
        count,
        row,
        n: n as u32,
    };
    cx.run_threads(&spec, &arguments, count as u64)
}

/// Writes whether each element is in `tests`, or is not if `invert`. `tests` is one sorted row, not
/// empty, of the dtype of `elements`; `out` is bool, of their shape. All are contiguous.
pub fn is_in(cx: &Context, elements: &View, tests: &View, invert: bool, out: &View) -> Result<()> {
    let (dtype, count, n) = (elements.dtype, out.numel(), tests.numel());
    let spec = IsIn { dtype, index: index_type(count.max(n)), invert };
    let arguments = IsInArguments { elements: elements.range(), tests: tests.range(), out, count, n: n as u32 };
    cx.run_threads(&spec, &arguments, count as u64)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Search {
    dtype: DType,
    out: DType,
    index: ScalarType,
    right: bool,
    /// Boundaries are sorted; otherwise a sorter gives their order.
    sorted: bool,
}

parameters! {
    Search as s => SearchArguments, SearchParameters {
        boundaries: Input = s.dtype,
        values: Input = s.dtype,
        out: Output = s.out,
        sorter: Option<Input> = (!s.sorted).then_some(DType::I64),
        fault: Option<Fault> = (!s.sorted).then_some(()),
        count: Index = s.index,
        /// Number of values per row of boundaries.
        row: Index = s.index,
        /// Number of boundaries of a row.
        n: U32,
    }
}

impl KernelSpec for Search {
    fn name(&self) -> &'static str {
        "searchsorted"
    }

    fn write<'b>(&self, b: &'b Builder, p: SearchParameters<'b>) {
        let index = self.index;
        let i = linear_id(b, index);
        b.if_(i.lt(p.count), || {
            let first = i / p.row * p.n.cast(index);
            let value = p.values.load(i);
            let position = key::partition_point(p.n, |at| {
                let at = b.var(at.cast(index));
                if let (Some(sorter), Some(fault)) = (p.sorter, p.fault) {
                    let given = sorter.load(first + at.get());
                    let size = p.n.cast(ScalarType::I64);
                    b.if_else(
                        given.ge(0) & given.lt(size),
                        || at.set(given.cast(index)),
                        || fault.report(given, size, 0),
                    );
                }
                let boundary = p.boundaries.load(first + at.get());
                // A boundary is counted if the comparison is false, so also if either side is NaN.
                !if self.right { less(value, boundary) } else { less_equal(value, boundary) }
            });
            p.out.store(i, position);
        });
    }
}

/// Whether each element is in a sorted row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct IsIn {
    dtype: DType,
    index: ScalarType,
    invert: bool,
}

parameters! {
    IsIn as s => IsInArguments, IsInParameters {
        elements: ReadRange = s.dtype.bits(),
        tests: ReadRange = s.dtype.bits(),
        out: Output = DType::Bool,
        count: Index = s.index,
        n: U32,
    }
}

impl KernelSpec for IsIn {
    fn name(&self) -> &'static str {
        "isin"
    }

    fn write<'b>(&self, b: &'b Builder, p: IsInParameters<'b>) {
        let &IsIn { dtype, index, .. } = self;
        let i = linear_id(b, index);
        b.if_(i.lt(p.count), || {
            let wanted = key::load(p.elements, dtype, i);
            let position = key::partition_point(p.n, |at| key::load(p.tests, dtype, at.cast(index)).lt(wanted));
            let mut found = position.lt(p.n) & key::load(p.tests, dtype, position.min(p.n - 1).cast(index)).eq(wanted);
            if dtype.is_float() {
                found = found & wanted.ne(key::largest(dtype));
            }
            p.out.store(i, if self.invert { !found } else { found });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in
            [(DType::U8, ScalarType::U32), (DType::F16, ScalarType::U64), (DType::F64, ScalarType::U32)]
        {
            for flag in [false, true] {
                for (out, sorted) in [(DType::I64, flag), (DType::I32, !flag)] {
                    accepted(&Search { dtype, out, index, right: flag, sorted }.build());
                }
                accepted(&IsIn { dtype, index, invert: flag }.build());
            }
        }
    }
}
