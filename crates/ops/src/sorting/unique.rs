//! Elements, or slices, that occur: each once, how often, and which one each element is.
//!
//! What is sorted, or consecutive as it is, is compared with its predecessor; the places where something new begins
//! give the rest. The number of results is read back: it is a size. No NaN equals another.

use super::{key, sort};
use crate::indexing::index_select::Slices;
use crate::indexing::nonzero;
use crate::movement::copy::as_contiguous;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::indexed_access::Action;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_turns;
use crate::tensor::Tensor;
use crate::tensor::layout;
use crate::{check, operators};
use dml_engine::interface::{Index, ReadRange, U32};
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

operators! {
    of_elements(self, return_inverse, return_counts = None) {
        "aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
        "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    }
    of_slices(self, dim; true) {
        "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    }
    of_slices(self, dim; false) {
        "aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    }
    consecutive(self, return_inverse, return_counts, dim) {
        "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
    }
}

/// `width` neighbouring elements each, in the order in which equal ones are neighbours.
struct Ordered {
    /// Contiguous.
    elements: Tensor,
    /// Elements of one.
    width: i64,
    /// How many there are.
    n: i64,
    /// Where the one of each rank is (int64); ranks themselves if there are none.
    places: Option<Tensor>,
}

fn of_elements(call: &mut Call, input: &Tensor, inverse: bool, counts: Option<bool>) -> Result<()> {
    elements(call, input, true, inverse, counts)
}

fn consecutive(call: &mut Call, input: &Tensor, inverse: bool, counts: bool, dim: Option<i64>) -> Result<()> {
    match dim {
        // As on the CPU, which asks for what it returns; not so for -1.
        Some(0) if input.dim() == 1 => elements(call, input, false, inverse, Some(counts)),
        Some(dim) => of_slices(call, input, dim, false),
        None => elements(call, input, false, inverse, Some(counts)),
    }
}

/// Without `counts` the operator has two results.
fn elements(call: &mut Call, input: &Tensor, sorted: bool, inverse: bool, counts: Option<bool>) -> Result<()> {
    let row = as_contiguous(call, input)?.as_strided(&[input.numel()], &[1], 0);
    // The elements in order, and where each was.
    let (elements, places) = match sorted {
        true => sort::by_rows(call, &row, 0, false).map(|(elements, places)| (elements, Some(places)))?,
        false => (row, None),
    };
    let ranked = Ordered { elements: elements.clone(), width: 1, n: input.numel(), places: None };
    let starts = ranked.starts(call)?;
    let values = select(call, &elements, 0, &starts)?;
    let whole = Ordered { places, ..ranked };
    let sizes = if inverse { input.sizes.as_slice() } else { &[0] };
    let inverse = whole.inverse(call, &starts, inverse, sizes)?;
    call.ret(values);
    call.ret(inverse);
    if let Some(counts) = counts {
        let counts = whole.counts(call, &starts, counts)?;
        call.ret(counts);
    }
    Ok(())
}

/// Slices along a dimension. As on the CPU all three results are always there, asked for or not.
fn of_slices(call: &mut Call, input: &Tensor, dim: i64, sorted: bool) -> Result<()> {
    check!(input.dim() > 0, Index, "Dimension specified as {dim} but tensor has no dimensions");
    let dim = call.wrap_dim(dim, input.dim())?;
    let empty = input.sizes.iter().filter(|&&n| n == 0).count();
    let n = input.sizes[dim];
    check!(empty <= 1, Runtime, "Number of zero sized dimensions is more than one, so unique cannot be applied ");
    check!(
        empty == 0 || n == 0,
        Runtime,
        "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
    );
    // A slice is compared with one after another of the other run.
    let comparisons = if sorted { i64::from(n.max(1).ilog2()) + 2 } else { 2 };
    check_turns(call, input.numel() / n.max(1) * comparisons)?;
    let mut slices = Ordered { elements: input.clone(), width: 0, n, places: None };
    if n > 0 {
        let order: Vec<usize> = [dim].into_iter().chain((0..input.dim()).filter(|&d| d != dim)).collect();
        slices.elements = as_contiguous(call, &input.permute(&order))?;
        slices.width = input.numel() / n;
        if sorted {
            slices.sort(call)?;
        }
    }
    let starts = slices.starts(call)?;
    let chosen = match &slices.places {
        Some(places) => select(call, places, 0, &starts)?,
        None => starts.clone(),
    };
    let values = select(call, input, dim, &chosen)?;
    let inverse = slices.inverse(call, &starts, true, &[n])?;
    let counts = slices.counts(call, &starts, true)?;
    call.ret(values);
    call.ret(inverse);
    call.ret(counts);
    Ok(())
}

/// The slices of `t` along `dim` that a row of indices names, one after the other in memory.
fn select(call: &Call, t: &Tensor, dim: usize, index: &Tensor) -> Result<Tensor> {
    let mut sizes = t.sizes.clone();
    sizes[dim] = index.numel();
    let order: Vec<usize> = (0..t.dim()).rev().filter(|&d| d != dim).chain([dim]).collect();
    let out = call.empty_strided(t.dtype, &sizes, &layout::dense_strides(&sizes, &order))?;
    Slices { dim, index, negative: false }.run(call, t, &sizes, &Action::Read(&out))?;
    Ok(out)
}

impl Ordered {
    fn index(&self) -> ScalarType {
        layout::index_type(self.elements.numel())
    }

    fn spec(&self) -> OrderedSpec {
        OrderedSpec { dtype: self.elements.dtype, index: self.index(), placed: self.places.is_some() }
    }

    /// The ranks (a row of int64) at which something new begins. Waits for their number.
    fn starts(&self, call: &Call) -> Result<Tensor> {
        let mask = call.empty(DType::Bool, &[self.n])?;
        if self.n > 0 {
            let arguments = MaskArguments { mask: &mask, ordered: self };
            call.run_threads(&Mask(self.spec()), &arguments, self.n as u64)?;
        }
        let found = nonzero::coordinates(call, &mask)?;
        Ok(found.as_strided(&[found.numel()], &[1], 0))
    }

    /// Which result each one is, if `wanted`; of `sizes`.
    fn inverse(&self, call: &Call, starts: &Tensor, wanted: bool, sizes: &[i64]) -> Result<Tensor> {
        if !wanted || self.n == 0 {
            return call.empty(DType::I64, sizes);
        }
        let out = call.empty(DType::I64, sizes)?;
        let arguments = InverseArguments {
            out: &out,
            starts,
            places: self.places.as_ref(),
            n: self.n as u32,
            results: starts.numel() as u32,
        };
        call.run_threads(&Inverse { placed: self.places.is_some() }, &arguments, self.n as u64)?;
        Ok(out)
    }

    /// How often each result occurs, if `wanted`.
    fn counts(&self, call: &Call, starts: &Tensor, wanted: bool) -> Result<Tensor> {
        let out = call.empty(DType::I64, &[if wanted { starts.numel() } else { 0 }])?;
        if out.numel() > 0 {
            let arguments = CountsArguments { out: &out, starts, n: self.n as u32, results: starts.numel() as u32 };
            call.run_threads(&Counts, &arguments, out.numel() as u64)?;
        }
        Ok(out)
    }

    /// Puts slices into lexicographic order, by merging ordered runs: each slice finds its place by binary search in
    /// the other run.
    fn sort(&mut self, call: &Call) -> Result<()> {
        check!(self.n < i64::from(i32::MAX), NotImplemented, "{}: {} slices are too many for dml", call.name, self.n);
        let mut run = 1;
        while run < self.n {
            let next = call.empty(DType::I64, &[self.n])?;
            let arguments = MergeArguments { next: &next, ordered: self, run: run as u32 };
            call.run_threads(&Merge(self.spec()), &arguments, self.n as u64)?;
            self.places = Some(next);
            run *= 2;
        }
        Ok(())
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct OrderedSpec {
    dtype: DType,
    index: ScalarType,
    /// Ranks are not places.
    placed: bool,
}

/// An [`Ordered`] as a kernel's parameter.
struct Slice;

/// An [`Ordered`] in a kernel.
struct View<'b> {
    elements: Pointer<'b>,
    dtype: DType,
    places: Option<Pointer<'b>>,
    n: Value<'b>,
    width: Value<'b>,
}

impl Parameter for Slice {
    type Type = OrderedSpec;
    type Argument<'a> = &'a Ordered;
    type Declared<'b> = View<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, of: &OrderedSpec) -> View<'b> {
        View {
            elements: ReadRange::declare(b, "elements", &of.dtype.bits()),
            dtype: of.dtype,
            places: Option::<Input>::declare(b, "places", &of.placed.then_some(DType::I64)),
            n: U32::declare(b, "n", &()),
            width: Index::declare(b, "width", &of.index),
        }
    }

    fn pass(ordered: &&Ordered, of: &OrderedSpec, block: &mut ArgumentBlock) {
        ReadRange::pass(&ordered.elements.range(), &of.dtype.bits(), block);
        Option::<Input>::pass(&ordered.places.as_ref(), &of.placed.then_some(DType::I64), block);
        U32::pass(&(ordered.n as u32), &(), block);
        Index::pass(&ordered.width, &of.index, block);
    }
}

impl<'b> View<'b> {
    /// The slice of a rank.
    fn at(&self, rank: Value<'b>) -> Value<'b> {
        let index = self.width.scalar();
        self.places.map_or(rank.cast(index), |p| p.load(rank.cast(ScalarType::U64)).cast(index))
    }

    /// Key of the element `column` of a slice.
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

/// Marks the ranks at which something new begins.
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

/// Merges ordered runs pair by pair.
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
            // The other run of the pair. Of equal slices those of the first run come first.
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

/// Which result each slice is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Inverse {
    placed: bool,
}

parameters! {
    Inverse as s => InverseArguments, InverseParameters {
        out: Output = DType::I64,
        starts: Input = DType::I64,
        places: Option<Input> = s.placed.then_some(DType::I64),
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
                p.places.map_or(rank.cast(ScalarType::I64), |places| places.load(rank.cast(ScalarType::U64))),
                result,
            );
        });
    }
}

/// How often each result occurs.
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
            for placed in [false, true] {
                let spec = OrderedSpec { dtype, index, placed };
                accepted(&Mask(spec).build());
                accepted(&Merge(spec).build());
                accepted(&Inverse { placed }.build());
            }
        }
        accepted(&Counts.build());
    }
}
