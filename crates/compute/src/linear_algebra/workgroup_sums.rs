//! Sums and other reductions over a workgroup.

use crate::linear_algebra::element::{Element, ElementVar};
use dml_kernel::math::complex::Complex;
use dml_kernel::{Builder, DType, Operand, ScalarType, Shared, Value, Var};

/// Invocations of a workgroup.
pub const THREADS: u32 = 128;

/// The larger of two numbers; NaN if one is NaN.
pub fn larger<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    (y.gt(x) | y.is_nan()).select(y, x)
}

/// The search of a workgroup for the maximum and its index.
pub struct MaxSearch<'b> {
    b: &'b Builder,
    values: Shared<'b>,
    indices: Shared<'b>,
    threads: u32,
}

impl<'b> MaxSearch<'b> {
    /// For a workgroup of `threads` invocations, a power of two.
    pub fn new(b: &'b Builder, scalar: ScalarType, threads: u32) -> MaxSearch<'b> {
        MaxSearch { b, values: b.shared(scalar, 1, threads), indices: b.shared(ScalarType::U32, 1, threads), threads }
    }

    /// The maximum of the invocations' values and its index (u32); of equal values the one with the
    /// least index. All invocations get the result, which is valid until the next call. NaN is
    /// ignored.
    pub fn find(&self, value: Value<'b>, index: Value<'b>) -> (Value<'b>, Value<'b>) {
        let (b, local) = (self.b, self.b.local_id(0));
        b.barrier();
        self.values.store(local, value);
        self.indices.store(local, index);
        let mut half = self.threads / 2;
        while half > 0 {
            b.barrier();
            b.if_(local.lt(half), || {
                let (x, y) = (self.values.load(local), self.values.load(local + half));
                let (here, there) = (self.indices.load(local), self.indices.load(local + half));
                b.if_(y.gt(x) | (y.eq(x) & there.lt(here)), || {
                    self.values.store(local, y);
                    self.indices.store(local, there);
                });
            });
            half /= 2;
        }
        b.barrier();
        (self.values.load(0), self.indices.load(0))
    }
}

/// Reductions of several values over a workgroup of [`THREADS`].
pub struct WorkgroupReduction<'b> {
    b: &'b Builder,
    partial: Shared<'b>,
    results: Shared<'b>,
    /// Maximum number of values: a power of two, at most 32.
    width: u32,
}

impl<'b> WorkgroupReduction<'b> {
    /// For up to `width` values at once, a power of two of at most 32.
    pub fn new(b: &'b Builder, scalar: ScalarType, width: u32) -> WorkgroupReduction<'b> {
        WorkgroupReduction {
            b,
            partial: b.shared(scalar, 1, THREADS / 2 * width),
            results: b.shared(scalar, 1, width),
            width,
        }
    }

    /// The result for value `i` of the last [`join`](Self::join).
    pub fn result(&self, i: impl Operand<'b>) -> Value<'b> {
        self.results.load(i)
    }

    /// Reduces each of the values over the workgroup, in a fixed order. All invocations get the
    /// results, which are valid until the next call.
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
        // One invocation for each value and quarter, then one for each value.
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

/// Sums of real or complex elements over a workgroup of [`THREADS`].
pub struct ElementSum<'b> {
    joined: WorkgroupReduction<'b>,
    dtype: DType,
    /// Distance between the real and the imaginary parts.
    width: u32,
}

impl<'b> ElementSum<'b> {
    /// For up to `width` elements at once, a power of two of at most 16.
    pub fn new(b: &'b Builder, dtype: DType, width: u32) -> ElementSum<'b> {
        let values = if dtype.is_complex() { 2 * width } else { width };
        ElementSum { joined: WorkgroupReduction::new(b, dtype.compute(), values), dtype, width }
    }

    /// The sum for element `i` of the last [`add`](Self::add) of `width` elements.
    pub fn sum(&self, i: impl Operand<'b>) -> Element<'b> {
        let b = self.joined.b;
        if !self.dtype.is_complex() {
            return Element::Real(self.joined.result(i));
        }
        let i = i.value(b, ScalarType::U32);
        Element::Complex(Complex::new(self.joined.result(i), self.joined.result(i + self.width)))
    }

    /// Sums each of `width` elements over the workgroup, as [`WorkgroupReduction::join`] does.
    pub fn add(&self, elements: &[ElementVar<'b>]) {
        self.joined.join(&ElementVar::parts(elements), |x, y| x + y);
    }

    /// The maximum of real values over the workgroup. All invocations get it; valid until the next
    /// call.
    pub fn largest(&self, value: Var<'b>) -> Value<'b> {
        self.joined.join(&[value], larger);
        self.joined.result(0)
    }
}
