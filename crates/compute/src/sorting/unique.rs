//! Unique elements or slices, their counts, and the index of the result for each element.
//!
//! Elements, which are sorted or consecutive as they are, are compared with their predecessors; all
//! results follow from the ranks at which a new value begins. The number of results is read back,
//! since it is a size. NaN does not equal NaN.

use crate::context::Context;
use crate::error::Result;
use crate::indexing::index_select::Slices;
use crate::indexing::nonzero;
use crate::primitives::indexed_access::Action;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::sorting::key;
use crate::view::{View, layout};
use dml_engine::interface::{Index, ReadRange, U32};
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// Slices of `width` adjacent elements, in an order in which equal slices are adjacent.
pub struct Ordered {
    /// The slices' elements, contiguous.
    pub elements: View,
    /// Elements of a slice.
    pub width: i64,
    /// Number of slices.
    pub n: i64,
    /// The index of the slice of each rank (int64); `None` if slices are in order of rank.
    pub order: Option<View>,
}

/// The slices of `t` along `dim` with these indices, consecutive in memory.
pub fn select(cx: &Context, t: &View, dim: usize, index: &View) -> Result<View> {
    let mut sizes = t.sizes.clone();
    sizes[dim] = index.numel();
    let order: Vec<usize> = (0..t.dim()).rev().filter(|&d| d != dim).chain([dim]).collect();
    let out = cx.empty_strided(t.dtype, &sizes, &layout::dense_strides(&sizes, &order))?;
    Slices { dim, index, negative: false }.run(cx, t, &sizes, &Action::Read(&out))?;
    Ok(out)
}

impl Ordered {
    fn index(&self) -> ScalarType {
        layout::index_type(self.elements.numel())
    }

    fn spec(&self) -> OrderedSpec {
        OrderedSpec { dtype: self.elements.dtype, index: self.index(), maps_ranks: self.order.is_some() }
    }

    /// The ranks (int64, 1-dim) at which a new value begins. Waits for their number.
    pub fn starts(&self, cx: &Context) -> Result<View> {
        let mask = cx.empty(DType::Bool, &[self.n])?;
        if self.n > 0 {
            let arguments = MaskArguments { mask: &mask, ordered: self };
            cx.run_threads(&Mask(self.spec()), &arguments, self.n as u64)?;
        }
        let found = nonzero::coordinates(cx, &mask)?;
        Ok(found.as_strided(&[found.numel()], &[1], 0))
    }

    /// For each slice the index of its result, if `wanted`; with shape `sizes`.
    pub fn inverse(&self, cx: &Context, starts: &View, wanted: bool, sizes: &[i64]) -> Result<View> {
        if !wanted || self.n == 0 {
            return cx.empty(DType::I64, sizes);
        }
        let out = cx.empty(DType::I64, sizes)?;
        let arguments = InverseArguments {
            out: &out,
            starts,
            order: self.order.as_ref(),
            n: self.n as u32,
            results: starts.numel() as u32,
        };
        cx.run_threads(&Inverse { maps_ranks: self.order.is_some() }, &arguments, self.n as u64)?;
        Ok(out)
    }

    /// The number of occurrences of each result, if `wanted`.
    pub fn counts(&self, cx: &Context, starts: &View, wanted: bool) -> Result<View> {
        let out = cx.empty(DType::I64, &[if wanted { starts.numel() } else { 0 }])?;
        if out.numel() > 0 {
            let arguments = CountsArguments { out: &out, starts, n: self.n as u32, results: starts.numel() as u32 };
            cx.run_threads(&Counts, &arguments, out.numel() as u64)?;
        }
        Ok(out)
    }

    /// Sorts slices lexicographically by merging sorted runs: each slice finds its index by binary
    /// search in the other run.
    pub fn sort(&mut self, cx: &Context) -> Result<()> {
        check!(self.n < i64::from(i32::MAX), TooLarge, "{}: {} slices are too many for dml", cx.name, self.n);
        let mut run = 1;
        while run < self.n {
            let next = cx.empty(DType::I64, &[self.n])?;
            let arguments = MergeArguments { next: &next, ordered: self, run: run as u32 };
            cx.run_threads(&Merge(self.spec()), &arguments, self.n as u64)?;
            self.order = Some(next);
            run *= 2;
        }
        Ok(())
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct OrderedSpec {
    dtype: DType,
    index: ScalarType,
    /// Whether ranks are mapped to indices.
    maps_ranks: bool,
}

/// Kernel parameter: an [`Ordered`].
struct Slice;

/// An [`Ordered`] in a kernel.
struct SliceOrder<'b> {
    elements: Pointer<'b>,
    dtype: DType,
    order: Option<Pointer<'b>>,
    n: Value<'b>,
    width: Value<'b>,
}

impl Parameter for Slice {
    type Type = OrderedSpec;
    type Argument<'a> = &'a Ordered;
    type Declared<'b> = SliceOrder<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, of: &OrderedSpec) -> SliceOrder<'b> {
        SliceOrder {
            elements: ReadRange::declare(b, "elements", &of.dtype.bits()),
            dtype: of.dtype,
            order: Option::<Input>::declare(b, "order", &of.maps_ranks.then_some(DType::I64)),
            n: U32::declare(b, "n", &()),
            width: Index::declare(b, "width", &of.index),
        }
    }

    fn pass(ordered: &&Ordered, of: &OrderedSpec, block: &mut ArgumentBlock) {
        ReadRange::pass(&ordered.elements.range(), &of.dtype.bits(), block);
        Option::<Input>::pass(&ordered.order.as_ref(), &of.maps_ranks.then_some(DType::I64), block);
        U32::pass(&(ordered.n as u32), &(), block);
        Index::pass(&ordered.width, &of.index, block);
    }
}

impl<'b> SliceOrder<'b> {
    /// The index of the slice with a rank.
    fn at(&self, rank: Value<'b>) -> Value<'b> {
        let index = self.width.scalar();
        self.order.map_or(rank.cast(index), |p| p.load(rank.cast(ScalarType::U64)).cast(index))
    }

    /// The sort key of element `column` of a slice.
    fn key(&self, slice: Value<'b>, column: Value<'b>) -> Value<'b> {
        key::load(self.elements, self.dtype, slice * self.width + column)
    }

    /// The first column in which two slices differ, or `width`.
    fn differ(&self, b: &'b Builder, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        let column = b.var(self.width.like(0.0));
        let go_on = b.var(b.bool(true));
        b.while_(
            || go_on.get() & column.get().lt(self.width),
            || {
                let c = column.get();
                b.if_else(self.key(x, c).eq(self.key(y, c)), || column.set(c + 1), || go_on.set(false));
            },
        );
        column.get()
    }

    /// Whether slice `x` comes before slice `y`.
    fn before(&self, b: &'b Builder, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        let column = self.differ(b, x, y);
        let result = b.var(b.bool(false));
        b.if_(column.lt(self.width), || result.set(self.key(x, column).lt(self.key(y, column))));
        result.get()
    }
}

/// Marks the ranks at which a new value begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Mask(OrderedSpec);

parameters! {
    Mask as s => MaskArguments, MaskParameters {
        mask: Output = DType::Bool,
        ordered: Slice = s.0,
    }
}

impl KernelSpec for Mask {
    fn name(&self) -> &'static str {
        "unique_mask"
    }

    fn write<'b>(&self, b: &'b Builder, p: MaskParameters<'b>) {
        let rank = linear_id(b, ScalarType::U32);
        b.if_(rank.lt(p.ordered.n), || {
            let new = b.var(rank.eq(0));
            b.if_(rank.gt(0), || {
                let (x, y) = (p.ordered.at(rank), p.ordered.at(rank - 1));
                new.set(p.ordered.differ(b, x, y).lt(p.ordered.width));
                if self.0.dtype.is_float() {
                    b.for_(0, p.ordered.width, 1, |column| {
                        b.if_(p.ordered.key(x, column).eq(key::largest(self.0.dtype)), || new.set(true));
                    });
                }
            });
            p.mask.store(rank.cast(ScalarType::U64), new.get());
        });
    }
}

/// Merges pairs of sorted runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Merge(OrderedSpec);

parameters! {
    Merge as s => MergeArguments, MergeParameters {
        next: Output = DType::I64,
        ordered: Slice = s.0,
        /// Slices of a run.
        run: U32,
    }
}

impl KernelSpec for Merge {
    fn name(&self) -> &'static str {
        "unique_merge"
    }

    fn write<'b>(&self, b: &'b Builder, p: MergeParameters<'b>) {
        let (view, n, run) = (&p.ordered, p.ordered.n, p.run);
        let rank = linear_id(b, ScalarType::U32);
        b.if_(rank.lt(n), || {
            let mine = view.at(rank);
            let block = rank / run;
            let first = (block & 1).eq(0);
            // The other run of the pair. Equal slices of the first run come first.
            let other = (first.select(block + 1, block - 1) * run).min(n);
            let length = (n - other).min(run);
            let (low, high) = (b.var(b.u32(0)), b.var(length));
            b.while_(
                || low.get().lt(high.get()),
                || {
                    let middle = (low.get() + high.get()) >> 1;
                    let theirs = view.at(other + middle);
                    let go_on = b.var(b.bool(true));
                    b.if_else(
                        first,
                        || go_on.set(view.before(b, theirs, mine)),
                        || go_on.set(!view.before(b, mine, theirs)),
                    );
                    b.if_else(go_on.get(), || low.set(middle + 1), || high.set(middle));
                },
            );
            let base = first.select(rank, rank - run);
            p.next.store((base + low.get()).cast(ScalarType::U64), mine);
        });
    }
}

/// Computes the index of the result for each slice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Inverse {
    maps_ranks: bool,
}

parameters! {
    Inverse as s => InverseArguments, InverseParameters {
        out: Output = DType::I64,
        starts: Input = DType::I64,
        order: Option<Input> = s.maps_ranks.then_some(DType::I64),
        n: U32,
        results: U32,
    }
}

impl KernelSpec for Inverse {
    fn name(&self) -> &'static str {
        "unique_inverse"
    }

    fn write<'b>(&self, b: &'b Builder, p: InverseParameters<'b>) {
        let rank = linear_id(b, ScalarType::U32);
        b.if_(rank.lt(p.n), || {
            let result = key::partition_point(p.results, |r| {
                p.starts.load(r.cast(ScalarType::U64)).le(rank.cast(ScalarType::I64))
            }) - 1;
            p.out.store(
                p.order.map_or(rank.cast(ScalarType::I64), |order| order.load(rank.cast(ScalarType::U64))),
                result,
            );
        });
    }
}

/// Computes the number of occurrences of each result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Counts;

parameters! {
    Counts as s => CountsArguments, CountsParameters {
        out: Output = DType::I64,
        starts: Input = DType::I64,
        n: U32,
        results: U32,
    }
}

impl KernelSpec for Counts {
    fn name(&self) -> &'static str {
        "unique_counts"
    }

    fn write<'b>(&self, b: &'b Builder, p: CountsParameters<'b>) {
        let result = linear_id(b, ScalarType::U64);
        let results = p.results.cast(ScalarType::U64);
        b.if_(result.lt(results), || {
            let end = b.var(p.n.cast(ScalarType::I64));
            b.if_((result + 1).lt(results), || end.set(p.starts.load(result + 1)));
            p.out.store(result, end.get() - p.starts.load(result));
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
            [(DType::Bool, ScalarType::U32), (DType::F16, ScalarType::U64), (DType::F64, ScalarType::U32)]
        {
            for maps_ranks in [false, true] {
                let spec = OrderedSpec { dtype, index, maps_ranks };
                accepted(&Mask(spec).build());
                accepted(&Merge(spec).build());
                accepted(&Inverse { maps_ranks }.build());
            }
        }
        accepted(&Counts.build());
    }
}
