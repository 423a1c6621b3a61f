//! A matrix element in a kernel, real or complex, so that the same code builds kernels for both.
//!
//! For reals every operation is the kernel language's own. A complex tensor in memory is pairs of
//! reals: the real part of an element is at twice its offset, followed by the imaginary part.

use crate::primitives::kernel::{Input, Output};
use crate::view::View;
use Element::{Complex as C, Real as R};
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::math::complex::{self, Complex};
use dml_kernel::{Builder, DType, LocalArray, Operand, Pointer, Shared, Value, Var};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An element. Those of one kernel are all real or all complex.
#[derive(Copy, Clone)]
pub enum Element<'b> {
    /// A real number.
    Real(Value<'b>),
    /// A complex number.
    Complex(Complex<'b>),
}

impl<'b> Element<'b> {
    /// A constant of this dtype.
    pub fn constant(b: &'b Builder, dtype: DType, x: f64) -> Self {
        Self::of_real(dtype, b.float(dtype.compute(), x))
    }

    /// A real number as one of this dtype.
    pub fn of_real(dtype: DType, x: Value<'b>) -> Self {
        if dtype.is_complex() { C(Complex::real(x)) } else { R(x) }
    }

    /// A real number as an element of the same kind as `self`.
    pub fn of_same_kind(self, x: Value<'b>) -> Self {
        match self {
            R(_) => R(x),
            C(_) => C(Complex::real(x)),
        }
    }

    /// A constant of the same kind as `self`.
    pub fn like(self, x: f64) -> Self {
        self.of_same_kind(self.real().like(x))
    }

    /// The real part.
    pub fn real(self) -> Value<'b> {
        match self {
            R(x) => x,
            C(z) => z.re,
        }
    }

    /// The imaginary part; `None` for a real number.
    pub fn imaginary(self) -> Option<Value<'b>> {
        match self {
            R(_) => None,
            C(z) => Some(z.im),
        }
    }

    /// The conjugate; for a real number the number itself.
    pub fn conjugate(self) -> Self {
        match self {
            R(x) => R(x),
            C(z) => C(z.conjugate()),
        }
    }

    /// Times a real number.
    pub fn times(self, factor: Value<'b>) -> Self {
        self.map(|x| factor * x)
    }

    /// Divided by a real number.
    pub fn over(self, divisor: Value<'b>) -> Self {
        self.map(|x| x / divisor)
    }

    /// `self + a * b`; whether it is fused is up to the driver. Not for results that have to be
    /// exactly zero.
    pub fn add_product(self, a: Self, b: Self) -> Self {
        match (self, a, b) {
            (R(sum), R(a), R(b)) => R(a.fma(b, sum)),
            (C(sum), C(a), C(b)) => {
                let re = a.re.fma(b.re, (-a.im).fma(b.im, sum.re));
                C(Complex::new(re, a.re.fma(b.im, a.im.fma(b.re, sum.im))))
            }
            _ => unreachable!("elements of one kernel are all real or all complex"),
        }
    }

    /// `self - a * b`, like [`add_product`](Self::add_product).
    pub fn minus_product(self, a: Self, b: Self) -> Self {
        self.add_product(-a, b)
    }

    fn map(self, f: impl Fn(Value<'b>) -> Value<'b>) -> Self {
        match self {
            R(x) => R(f(x)),
            C(z) => C(z.map(f)),
        }
    }

    /// The magnitude by which LAPACK compares pivots: `|re| + |im|`.
    pub fn size(self) -> Value<'b> {
        match self {
            R(x) => x.abs(),
            C(z) => z.re.abs() + z.im.abs(),
        }
    }

    /// The absolute value.
    pub fn abs(self) -> Value<'b> {
        match self {
            R(x) => x.abs(),
            C(z) => complex::abs(z),
        }
    }

    /// The square of the absolute value.
    pub fn square(self) -> Value<'b> {
        match self {
            R(x) => x * x,
            C(z) => z.re * z.re + z.im * z.im,
        }
    }

    /// The number divided by its absolute value; 0 for 0.
    pub fn sign(self) -> Self {
        match self {
            R(x) => {
                let (one, zero) = (x.like(1.0), x.like(0.0));
                let sign = x.is_below_zero().select(-one, x.is_above_zero().select(one, zero));
                R(x.is_nan().select(x, sign))
            }
            C(z) => C(complex::sgn(z)),
        }
    }

    /// Whether it is 0.
    pub fn is_zero(self) -> Value<'b> {
        match self {
            R(x) => x.is_zero(),
            C(z) => z.is_zero(),
        }
    }

    /// `a` if `condition`, else `b`.
    pub fn select(condition: Value<'b>, a: Self, b: Self) -> Self {
        a.with(b, |x, y| condition.select(x, y), |x, y| Complex::select(condition, x, y))
    }

    fn with(
        self,
        other: Self,
        real: impl Fn(Value<'b>, Value<'b>) -> Value<'b>,
        complex: impl Fn(Complex<'b>, Complex<'b>) -> Complex<'b>,
    ) -> Self {
        match (self, other) {
            (R(x), R(y)) => R(real(x, y)),
            (C(x), C(y)) => C(complex(x, y)),
            _ => unreachable!("elements of one kernel are all real or all complex"),
        }
    }
}

macro_rules! operations {
    ($($trait:ident $method:ident $complex:ident;)*) => {$(
        impl<'b> $trait for Element<'b> {
            type Output = Element<'b>;

            fn $method(self, other: Self) -> Self {
                self.with(other, |x, y| x.$method(y), complex::$complex)
            }
        }
    )*};
}

operations! {
    Add add add;
    Sub sub sub;
    Mul mul mul;
    Div div div;
}

impl<'b> Neg for Element<'b> {
    type Output = Element<'b>;

    fn neg(self) -> Self {
        self.map(|x| -x)
    }
}

/// Storage of elements in a kernel: one object for reals, one for each part of complex numbers.
#[derive(Copy, Clone)]
pub struct ElementStorage<S> {
    re: S,
    im: Option<S>,
}

impl<S: Copy> ElementStorage<S> {
    fn new(dtype: DType, make: impl Fn() -> S) -> Self {
        ElementStorage { re: make(), im: dtype.is_complex().then(make) }
    }

    fn read<'b>(self, read: impl Fn(S) -> Value<'b>) -> Element<'b> {
        let re = read(self.re);
        self.im.map_or(R(re), |im| C(Complex::new(re, read(im))))
    }

    fn write<'b>(self, element: Element<'b>, write: impl Fn(S, Value<'b>)) {
        match (element, self.im) {
            (R(x), None) => write(self.re, x),
            (C(z), Some(im)) => {
                write(self.re, z.re);
                write(im, z.im);
            }
            _ => unreachable!("elements of one kernel are all real or all complex"),
        }
    }
}

/// A variable.
pub type ElementVar<'b> = ElementStorage<Var<'b>>;

/// An array in a workgroup's shared memory.
pub type SharedElements<'b> = ElementStorage<Shared<'b>>;

/// An invocation's private array.
pub type LocalElements<'b> = ElementStorage<LocalArray<'b>>;

impl<'b> ElementVar<'b> {
    /// A variable that is initialised with `init`.
    pub fn var(b: &'b Builder, init: Element<'b>) -> Self {
        match init {
            R(x) => ElementStorage { re: b.var(x), im: None },
            C(z) => ElementStorage { re: b.var(z.re), im: Some(b.var(z.im)) },
        }
    }

    /// Its value.
    pub fn get(self) -> Element<'b> {
        self.read(Var::get)
    }

    /// The underlying variables of several elements: first all real parts, then all imaginary
    /// parts.
    pub fn parts(all: &[Self]) -> Vec<Var<'b>> {
        all.iter().map(|var| var.re).chain(all.iter().filter_map(|var| var.im)).collect()
    }

    /// Assigns a value.
    pub fn set(self, element: Element<'b>) {
        self.write(element, |var, x| var.set(x));
    }
}

impl<'b> SharedElements<'b> {
    /// An array of `len` elements.
    pub fn shared(b: &'b Builder, dtype: DType, len: u32) -> Self {
        Self::new(dtype, || b.shared(dtype.compute(), 1, len))
    }

    /// The element at `index`.
    pub fn load(self, index: impl Operand<'b> + Copy) -> Element<'b> {
        self.read(|array| array.load(index))
    }

    /// Stores the element at `index`.
    pub fn store(self, index: impl Operand<'b> + Copy, element: Element<'b>) {
        self.write(element, |array, x| array.store(index, x));
    }
}

impl<'b> LocalElements<'b> {
    /// An array of `len` elements, uninitialised.
    pub fn local(b: &'b Builder, dtype: DType, len: u32) -> Self {
        Self::new(dtype, || b.local_array(dtype.compute(), len))
    }

    /// The element at `index`.
    pub fn get(self, index: impl Operand<'b> + Copy) -> Element<'b> {
        self.read(|array| array.get(index))
    }

    /// Stores the element at `index`.
    pub fn set(self, index: impl Operand<'b> + Copy, element: Element<'b>) {
        self.write(element, |array, x| array.set(index, x));
    }
}

/// A tensor's elements in a kernel.
#[derive(Copy, Clone)]
pub struct Elements<'b> {
    pointer: Pointer<'b>,
    complex: bool,
}

impl<'b> Elements<'b> {
    /// Loads the element at an offset.
    pub fn load(self, offset: Value<'b>) -> Element<'b> {
        if !self.complex {
            return R(self.pointer.load(offset));
        }
        let at = offset * 2;
        C(Complex::new(self.pointer.load(at), self.pointer.load(at + 1)))
    }

    /// Stores the element at an offset.
    pub fn store(self, offset: Value<'b>, element: Element<'b>) {
        match element {
            R(x) => self.pointer.store(offset, x),
            C(z) => {
                let at = offset * 2;
                self.pointer.store(at, z.re);
                self.pointer.store(at + 1, z.im);
            }
        }
    }
}

/// Kernel parameter: a real or complex tensor that is read. Its dtype comes from the
/// specialisation.
pub struct InputElements;

impl Parameter for InputElements {
    type Type = DType;
    type Argument<'a> = &'a View;
    type Declared<'b> = Elements<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> Elements<'b> {
        Elements { pointer: Input::declare(b, name, &dtype.real()), complex: dtype.is_complex() }
    }

    #[inline]
    fn pass(t: &&View, dtype: &DType, block: &mut ArgumentBlock) {
        Input::pass(t, dtype, block);
    }
}

/// Kernel parameter: a real or complex tensor that is written, and may be read. Its dtype comes
/// from the specialisation.
pub struct OutputElements;

impl Parameter for OutputElements {
    type Type = DType;
    type Argument<'a> = &'a View;
    type Declared<'b> = Elements<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> Elements<'b> {
        Elements { pointer: Output::declare(b, name, &dtype.real()), complex: dtype.is_complex() }
    }

    #[inline]
    fn pass(t: &&View, dtype: &DType, block: &mut ArgumentBlock) {
        Output::pass(t, dtype, block);
    }
}
