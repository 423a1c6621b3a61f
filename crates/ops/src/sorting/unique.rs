//! Elements, or slices, that occur: each once, how often, and which one each element is.
//!
//! What is sorted, or consecutive as it is, is compared with its predecessor; the places where something new begins
//! give the rest. The number of results is read back: it is a size. No NaN equals another.

use crate::check;
use crate::indexing::index_select::Slices;
use crate::indexing::nonzero;
use crate::movement::copy::as_contiguous;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::primitives::indexed_access::Action;
use crate::primitives::launch::{GROUP, linear_id};
use crate::sorting::{key, sort};
use crate::tensor::Tensor;
use crate::tensor::layout;
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::_unique", |c| {
        let inverse = c.flag(2)?;
        of_elements(c, true, inverse, None)
    }),
    op("aten::_unique2", |c| {
        let (inverse, counts) = (c.flag(2)?, c.flag(3)?);
        of_elements(c, true, inverse, Some(counts))
    }),
    op("aten::unique_dim", |c| {
        let (dim, inverse, counts) = (c.int(1)?, c.flag(3)?, c.flag(4)?);
        of_slices(c, dim, true, inverse, counts)
    }),
    op("aten::unique_consecutive", |c| {
        let (inverse, counts) = (c.flag(1)?, c.flag(2)?);
        match c.opt_scalar(3)? {
            Some(dim) => of_slices(c, dim.to_i64(), false, inverse, counts),
            None => of_elements(c, false, inverse, Some(counts)),
        }
    }),
    op("aten::unique_dim_consecutive", |c| {
        let (dim, inverse, counts) = (c.int(1)?, c.flag(2)?, c.flag(3)?);
        of_slices(c, dim, false, inverse, counts)
    }),
];

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

/// `_unique2(self, sorted, return_inverse, return_counts)` and its kin on elements. Without `counts` the operator has
/// two results.
fn of_elements(call: &mut Call, sorted: bool, inverse: bool, counts: Option<bool>) -> Result<()> {
    let input = call.tensor(0)?;
    let row = as_contiguous(call, input)?.as_strided(&[input.numel()], &[1], 0);
    // The elements in order, and where each was.
    let (elements, places) = match sorted {
        true => sort::by_rows(call, &row, 0).map(|(elements, places)| (elements, Some(places)))?,
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

/// `unique_dim(self, dim, sorted, return_inverse, return_counts)` and its kin: slices along a dimension.
fn of_slices(call: &mut Call, dim: i64, sorted: bool, inverse: bool, counts: bool) -> Result<()> {
    let input = call.tensor(0)?;
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
    let inverse = slices.inverse(call, &starts, inverse, &[if inverse { n } else { 0 }])?;
    let counts = slices.counts(call, &starts, counts)?;
    call.ret(values);
    call.ret(inverse);
    call.ret(counts);
    Ok(())
}

/// The slices of `t` along `dim` that a row of indices names.
fn select(call: &Call, t: &Tensor, dim: usize, index: &Tensor) -> Result<Tensor> {
    let mut sizes = t.sizes.clone();
    sizes[dim] = index.numel();
    let out = call.empty(t.dtype, &sizes)?;
    Slices { dim, index, negative: false }.run(call, t, &sizes, &Action::Read(&out))?;
    Ok(out)
}

impl Ordered {
    fn index(&self) -> Scalar {
        layout::index_type(self.elements.numel())
    }

    fn key(&self) -> [u32; 6] {
        [self.elements.dtype as u32, self.index().bytes(), u32::from(self.places.is_some()), 0, 0, 0]
    }

    /// The ranks (a row of int64) at which something new begins. Waits for their number.
    fn starts(&self, call: &Call) -> Result<Tensor> {
        let mask = call.empty(DType::Bool, &[self.n])?;
        if self.n > 0 {
            let (dtype, index, placed) = (self.elements.dtype, self.index(), self.places.is_some());
            let kernel = call.kernel("unique_mask", self.key(), || build_mask(dtype, index, placed))?;
            let mut launcher = call.launch(kernel).read(&self.elements).write(&mask);
            if let Some(places) = &self.places {
                launcher = launcher.read(places);
            }
            launcher.u32(self.n as u32).index(index, self.width).threads(self.n as u64)?;
        }
        let found = nonzero::coordinates(call, &mask)?;
        Ok(found.as_strided(&[found.numel()], &[1], 0))
    }

    /// Which result each one is, if `wanted`; of `sizes`.
    fn inverse(&self, call: &Call, starts: &Tensor, wanted: bool, sizes: &[i64]) -> Result<Tensor> {
        if !wanted || self.n == 0 {
            return call.empty(DType::I64, sizes);
        }
        let (out, placed) = (call.empty(DType::I64, sizes)?, self.places.is_some());
        let kernel = call.kernel("unique_inverse", [u32::from(placed), 0, 0, 0, 0, 0], || build_inverse(placed))?;
        let mut launcher = call.launch(kernel).read(starts).write(&out);
        if let Some(places) = &self.places {
            launcher = launcher.read(places);
        }
        launcher.u32(self.n as u32).u32(starts.numel() as u32).threads(self.n as u64)?;
        Ok(out)
    }

    /// How often each result occurs, if `wanted`.
    fn counts(&self, call: &Call, starts: &Tensor, wanted: bool) -> Result<Tensor> {
        let out = call.empty(DType::I64, &[if wanted { starts.numel() } else { 0 }])?;
        if out.numel() > 0 {
            let kernel = call.kernel("unique_counts", [0; 6], build_counts)?;
            let launcher = call.launch(kernel).read(starts).write(&out);
            launcher.u32(self.n as u32).u32(starts.numel() as u32).threads(out.numel() as u64)?;
        }
        Ok(out)
    }

    /// Puts slices into lexicographic order, by merging ordered runs: each slice finds its place by binary search in
    /// the other run.
    fn sort(&mut self, call: &Call) -> Result<()> {
        check!(self.n < i64::from(i32::MAX), NotImplemented, "{}: {} slices are too many for dml", call.name, self.n);
        let (dtype, index) = (self.elements.dtype, self.index());
        let mut run = 1;
        while run < self.n {
            let next = call.empty(DType::I64, &[self.n])?;
            let placed = self.places.is_some();
            let kernel = call.kernel("unique_merge", self.key(), || build_merge(dtype, index, placed))?;
            let mut launcher = call.launch(kernel).read(&self.elements).write(&next);
            if let Some(places) = &self.places {
                launcher = launcher.read(places);
            }
            let launcher = launcher.u32(self.n as u32).index(index, self.width).u32(run as u32);
            launcher.threads(self.n as u64)?;
            self.places = Some(next);
            run *= 2;
        }
        Ok(())
    }
}

/// Slices of elements in a kernel.
struct View<'b> {
    elements: Pointer<'b>,
    dtype: DType,
    places: Option<Pointer<'b>>,
    width: Value<'b>,
}

impl<'b> View<'b> {
    /// The slice of a rank.
    fn at(&self, rank: Value<'b>) -> Value<'b> {
        let index = self.width.scalar();
        self.places.map_or(rank.cast(index), |p| p.load(rank.cast(Scalar::U64)).cast(index))
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

fn build_mask(dtype: DType, index: Scalar, placed: bool) -> Kernel {
    let b = Builder::new("unique_mask", [GROUP, 1, 1]);
    let (elements, mask) = (b.pointer("elements", dtype.bits()), b.pointer("mask", DType::Bool));
    let places = if placed { Some(b.pointer("places", DType::I64)) } else { None };
    let (n, width) = (b.param("n", Scalar::U32), b.param("width", index));
    let view = View { elements, dtype, places, width };
    let rank = linear_id(&b, Scalar::U32);
    b.if_(rank.lt(n), || {
        let new = b.var(rank.eq(0));
        b.if_(rank.gt(0), || {
            let (x, y) = (view.at(rank), view.at(rank - 1));
            new.set(view.differ(&b, x, y).lt(width));
            if dtype.is_float() {
                b.for_(0, width, 1, |column| {
                    b.if_(view.key(x, column).eq(key::largest(dtype)), || new.set(true));
                });
            }
        });
        mask.store(rank.cast(Scalar::U64), new.get());
    });
    b.finish()
}

fn build_merge(dtype: DType, index: Scalar, placed: bool) -> Kernel {
    let b = Builder::new("unique_merge", [GROUP, 1, 1]);
    let (elements, next) = (b.pointer("elements", dtype.bits()), b.pointer("next", DType::I64));
    let places = if placed { Some(b.pointer("places", DType::I64)) } else { None };
    let (n, width, run) = (b.param("n", Scalar::U32), b.param("width", index), b.param("run", Scalar::U32));
    let view = View { elements, dtype, places, width };
    let rank = linear_id(&b, Scalar::U32);
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
                    || go_on.set(view.before(&b, theirs, mine)),
                    || go_on.set(!view.before(&b, mine, theirs)),
                );
                b.if_else(go_on.get(), || low.set(middle + 1), || high.set(middle));
            },
        );
        let base = first.select(rank, rank - run);
        next.store((base + low.get()).cast(Scalar::U64), mine);
    });
    b.finish()
}

fn build_inverse(placed: bool) -> Kernel {
    let b = Builder::new("unique_inverse", [GROUP, 1, 1]);
    let (starts, out) = (b.pointer("starts", DType::I64), b.pointer("out", DType::I64));
    let places = if placed { Some(b.pointer("places", DType::I64)) } else { None };
    let (n, results) = (b.param("n", Scalar::U32), b.param("results", Scalar::U32));
    let rank = linear_id(&b, Scalar::U32);
    b.if_(rank.lt(n), || {
        let result = key::partition_point(results, |r| starts.load(r.cast(Scalar::U64)).le(rank.cast(Scalar::I64))) - 1;
        out.store(places.map_or(rank.cast(Scalar::I64), |p| p.load(rank.cast(Scalar::U64))), result);
    });
    b.finish()
}

fn build_counts() -> Kernel {
    let b = Builder::new("unique_counts", [GROUP, 1, 1]);
    let (starts, out) = (b.pointer("starts", DType::I64), b.pointer("out", DType::I64));
    let (n, results) = (b.param("n", Scalar::U32), b.param("results", Scalar::U32));
    let result = linear_id(&b, Scalar::U64);
    let results = results.cast(Scalar::U64);
    b.if_(result.lt(results), || {
        let end = b.var(n.cast(Scalar::I64));
        b.if_((result + 1).lt(results), || end.set(starts.load(result + 1)));
        out.store(result, end.get() - starts.load(result));
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::Bool, Scalar::U32), (DType::F16, Scalar::U64), (DType::F64, Scalar::U32)] {
            for placed in [false, true] {
                accepted(&build_mask(dtype, index, placed));
                accepted(&build_merge(dtype, index, placed));
                accepted(&build_inverse(placed));
            }
        }
        accepted(&build_counts());
    }
}
