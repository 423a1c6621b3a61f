//! Sums and other folds over a workgroup of values that each of its invocations has.

use crate::linear_algebra::element::{Element, ElementVar};
use dml_kernel::math::complex::Complex;
use dml_kernel::{Builder, DType, Operand, ScalarType, Shared, Value, Var};

/// Invocations of a workgroup.
pub const THREADS: u32 = 128;

/// The larger one of two; a NaN stays.
pub fn larger<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    (y.gt(x) | y.is_nan()).select(y, x)
}

/// The search of a workgroup for the largest of some values.
pub struct Largest<'b> {
    b: &'b Builder,
    values: Shared<'b>,
    places: Shared<'b>,
    threads: u32,
}

impl<'b> Largest<'b> {
    /// Of a workgroup of so many invocations, a power of two.
    pub fn new(b: &'b Builder, scalar: ScalarType, threads: u32) -> Largest<'b> {
        Largest { b, values: b.shared(scalar, 1, threads), places: b.shared(ScalarType::U32, 1, threads), threads }
    }

    /// The largest of the values that each invocation has, and its place (u32); of equal ones that
    /// of the least place. Known to all until the next call.
    pub fn find(&self, value: Value<'b>, place: Value<'b>) -> (Value<'b>, Value<'b>) {
        let (b, local) = (self.b, self.b.local_id(0));
        b.barrier();
        self.values.store(local, value);
        self.places.store(local, place);
        let mut half = self.threads / 2;
        while half > 0 {
            b.barrier();
            b.if_(local.lt(half), || {
                let (x, y) = (self.values.load(local), self.values.load(local + half));
                let (here, there) = (self.places.load(local), self.places.load(local + half));
                b.if_(y.gt(x) | (y.eq(x) & there.lt(here)), || {
                    self.values.store(local, y);
                    self.places.store(local, there);
                });
            });
            half /= 2;
        }
        b.barrier();
        (self.values.load(0), self.places.load(0))
    }
}

/// Values that a workgroup of [`THREADS`] joins.
pub struct Joined<'b> {
    b: &'b Builder,
    partial: Shared<'b>,
    results: Shared<'b>,
    /// Room for so many values: a power of two, at most 32.
    width: u32,
}

impl<'b> Joined<'b> {
    /// For up to `width` values, a power of two of at most 32, at once.
    pub fn new(b: &'b Builder, scalar: ScalarType, width: u32) -> Joined<'b> {
        Joined { b, partial: b.shared(scalar, 1, THREADS / 2 * width), results: b.shared(scalar, 1, width), width }
    }

    /// What the values at `i` of the last [`join`](Self::join) came to.
    pub fn result(&self, i: impl Operand<'b>) -> Value<'b> {
        self.results.load(i)
    }

    /// Each value joined with its likes over the workgroup, in an order that is always the same.
    /// Their results are known to all until the next call.
    pub fn join(&self, values: &[Var<'b>], join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) {
        let (b, local) = (self.b, self.b.local_id(0));
        let (half, parts, count, width) = (THREADS / 2, 4, values.len() as u32, self.width);
        let at = |thread: Value<'b>, value: u32| thread * width + value;
        b.barrier();
        b.if_(local.ge(half), || {
            (0..count).for_each(|i| self.partial.store(at(local - half, i), values[i as usize].get()));
        });
        b.barrier();
        b.if_(local.lt(half), || {
            for i in 0..count {
                let other = self.partial.load(at(local, i));
                self.partial.store(at(local, i), join(values[i as usize].get(), other));
            }
        });
        b.barrier();
        // An invocation for each value and quarter, then one for each value.
        let (value, part) = (local & (width - 1), local >> width.ilog2());
        let each = half / parts;
        b.if_(part.lt(parts) & value.lt(count), || {
            let first = part * each;
            let total = b.var(self.partial.load(first * width + value));
            b.for_(1, b.u32(each), 1, |i| total.set(join(total.get(), self.partial.load((first + i) * width + value))));
            self.partial.store(first * width + value, total.get());
        });
        b.barrier();
        b.if_(local.lt(count), || {
            let loaded: Vec<Value> = (0..parts).map(|p| self.partial.load(local + p * each * width)).collect();
            self.results.store(local, join(join(loaded[0], loaded[1]), join(loaded[2], loaded[3])));
        });
        b.barrier();
    }
}

/// Real or complex elements that a workgroup of [`THREADS`] adds up.
pub struct JoinedElements<'b> {
    joined: Joined<'b>,
    dtype: DType,
    /// Imaginary parts stand so far behind real ones.
    width: u32,
}

impl<'b> JoinedElements<'b> {
    /// For up to `width` elements, a power of two of at most 16, at once.
    pub fn new(b: &'b Builder, dtype: DType, width: u32) -> JoinedElements<'b> {
        let values = if dtype.is_complex() { 2 * width } else { width };
        JoinedElements { joined: Joined::new(b, dtype.compute(), values), dtype, width }
    }

    /// What the elements at `i` of the last [`add`](Self::add) of `width` came to.
    pub fn sum(&self, i: impl Operand<'b>) -> Element<'b> {
        let b = self.joined.b;
        if !self.dtype.is_complex() {
            return Element::Real(self.joined.result(i));
        }
        let i = i.value(b, ScalarType::U32);
        Element::Complex(Complex::new(self.joined.result(i), self.joined.result(i + self.width)))
    }

    /// Each of `width` elements added to its likes over the workgroup, as [`Joined::join`] does.
    pub fn add(&self, elements: &[ElementVar<'b>]) {
        self.joined.join(&ElementVar::parts(elements), |x, y| x + y);
    }

    /// The largest of real values over the workgroup. Known to all until the next call.
    pub fn largest(&self, value: Var<'b>) -> Value<'b> {
        self.joined.join(&[value], larger);
        self.joined.result(0)
    }
}
