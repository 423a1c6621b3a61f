//! A function of one element of each operand: the entries of the catalogue of elementwise
//! functions.
//!
//! An entry is a `static` item: its name and its body are one thing. A kernel's specialisation
//! holds a reference to the entry and compares addresses, so two functions cannot share a
//! specialisation, whatever their names.

use crate::fault::Refusal;
use dml_kernel::math::complex::Complex;
use dml_kernel::{DType, Value};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr;

/// An entry of the catalogue, declared by [`functions!`](crate::functions) or
/// [`complex_functions!`](crate::complex_functions). Equal to itself alone.
pub struct Function {
    /// The name of its kernels.
    pub name: &'static str,
    /// The names of its arguments; `None` if their number depends on the options.
    pub arguments: Option<&'static [&'static str]>,
    /// What it computes, in the words of its documentation.
    pub summary: &'static str,
    /// A body of hundreds of instructions: an invocation computes one element instead of several,
    /// so that the body is compiled once.
    pub heavy: bool,
    /// It is of integers alone.
    pub integers: bool,
    /// Values of operands that are refused: the device reports them, and the error is raised at the
    /// next synchronisation or launch.
    pub guards: &'static [Guard],
    body: Body,
}

/// What is computed of one element of each operand, in the compute type of the common dtype.
enum Body {
    Real(RealBody),
    /// The options' flags say which operands are pairs of a real and an imaginary part.
    Complex(ComplexBody),
}

/// See [`functions!`](crate::functions).
pub type RealBody = for<'b> fn(&[Value<'b>], &Options) -> Vec<Value<'b>>;

/// See [`complex_functions!`](crate::complex_functions).
pub type ComplexBody = for<'b> fn(&[Complex<'b>]) -> Vec<Value<'b>>;

/// Choices that change what a function computes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Each function says what they mean.
    pub flags: [bool; 8],
    /// A dtype that the operands do not show, for functions that read it.
    pub dtype: DType,
}

impl Default for Options {
    fn default() -> Self {
        Options { flags: [false; 8], dtype: DType::F32 }
    }
}

/// A function with its options: everything that says what is computed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The function.
    pub function: &'static Function,
    /// Its options.
    pub options: Options,
    /// The dtype that results are rounded or wrapped to before they are converted to the outputs'.
    pub rounded: Option<DType>,
    /// The caller has checked the operands that the function guards.
    pub unguarded: bool,
}

impl From<&'static Function> for Variant {
    fn from(function: &'static Function) -> Self {
        Variant { function, options: Options::default(), rounded: None, unguarded: false }
    }
}

impl Variant {
    /// With these flags, at most eight; others are false.
    pub fn with<const N: usize>(mut self, flags: [bool; N]) -> Self {
        self.options.flags[..N].copy_from_slice(&flags);
        self
    }

    /// With this dtype as an option.
    pub fn of(mut self, dtype: DType) -> Self {
        self.options.dtype = dtype;
        self
    }

    /// The guards whose values are reported.
    pub fn guards(&self) -> &'static [Guard] {
        if self.unguarded { &[] } else { self.function.guards }
    }

    /// `count` results of one element of each operand. Results beyond them are dropped; a missing
    /// one is the imaginary part of a real result, which is 0.
    pub fn results<'b>(&self, operands: &[Value<'b>], count: usize) -> Vec<Value<'b>> {
        let mut results = self.function.results(operands, &self.options);
        if let Some(dtype) = self.rounded {
            results.iter_mut().for_each(|x| *x = dml_kernel::convert(*x, dtype));
        }
        if let [real] = results[..]
            && count == 2
        {
            results.push(real.like(0.0));
        }
        results.truncate(count);
        results
    }
}

impl Function {
    /// A function of numbers; see [`functions!`](crate::functions).
    pub const fn real(
        name: &'static str,
        arguments: Option<&'static [&'static str]>,
        summary: &'static str,
        body: RealBody,
    ) -> Self {
        Self::new(name, arguments, summary, Body::Real(body))
    }

    /// A function of complex numbers; see [`complex_functions!`](crate::complex_functions).
    pub const fn complex(
        name: &'static str,
        arguments: Option<&'static [&'static str]>,
        summary: &'static str,
        body: ComplexBody,
    ) -> Self {
        Self::new(name, arguments, summary, Body::Complex(body))
    }

    const fn new(
        name: &'static str,
        arguments: Option<&'static [&'static str]>,
        summary: &'static str,
        body: Body,
    ) -> Self {
        Function { name, arguments, summary, heavy: false, integers: false, guards: &[], body }
    }

    /// See [`heavy`](Self::heavy).
    pub const fn heavy(self) -> Self {
        Function { heavy: true, ..self }
    }

    /// See [`integers`](Self::integers).
    pub const fn integers(self) -> Self {
        Function { integers: true, ..self }
    }

    /// See [`guards`](Self::guards).
    pub const fn guarded(self, guards: &'static [Guard]) -> Self {
        Function { guards, ..self }
    }

    /// The function with these flags, at most eight.
    pub fn with<const N: usize>(&'static self, flags: [bool; N]) -> Variant {
        Variant::from(self).with(flags)
    }

    /// The function with this dtype as an option.
    pub fn of(&'static self, dtype: DType) -> Variant {
        Variant::from(self).of(dtype)
    }

    /// The results of one element of each operand.
    pub fn results<'b>(&self, operands: &[Value<'b>], options: &Options) -> Vec<Value<'b>> {
        match self.body {
            Body::Real(body) => body(operands, options),
            Body::Complex(body) => body(&pairs(operands, &options.flags)),
        }
    }

    /// The only result of a function of one argument without options.
    pub fn apply<'b>(&self, x: Value<'b>) -> Value<'b> {
        self.results(&[x], &Options::default())[0]
    }

    /// Whether it is of complex numbers.
    pub fn is_complex(&self) -> bool {
        matches!(self.body, Body::Complex(_))
    }
}

/// Operands as complex numbers: those whose flag is set have two parts, others are real.
fn pairs<'b>(mut operands: &[Value<'b>], flags: &[bool; 8]) -> Vec<Complex<'b>> {
    let mut numbers = Vec::new();
    let mut flags = flags.iter();
    loop {
        let pair = flags.next().is_some_and(|&pair| pair);
        operands = match *operands {
            [re, im, ref rest @ ..] if pair => {
                numbers.push(Complex::new(re, im));
                rest
            }
            [re, ref rest @ ..] => {
                numbers.push(Complex::real(re));
                rest
            }
            [] => return numbers,
        };
    }
}

impl PartialEq for Function {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for Function {}

impl Hash for Function {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::hash(self, state);
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Which values of an operand are refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The operand, among all of the function.
    pub operand: usize,
    /// The values that it may have.
    pub domain: Domain,
    /// What is said of others.
    pub refusal: Refusal,
}

/// The values that an operand may have.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// Of integers all but 0, of floats all.
    Divisor,
    /// 0 to 1, not NaN.
    Probability,
    /// 0 or more, not NaN.
    Deviation,
}

impl Domain {
    /// Whether a value is none of these.
    pub fn lacks(self, x: Value<'_>) -> Value<'_> {
        match self {
            Domain::Divisor => x.eq(0),
            Domain::Probability => !x.le(1) | x.is_below_zero(),
            Domain::Deviation => !x.ge(0) | x.is_below_zero(),
        }
    }
}

/// What the body of a function may return.
pub trait Results<'b> {
    /// One value for each output: of a complex number its parts.
    fn list(self) -> Vec<Value<'b>>;
}

impl<'b> Results<'b> for Value<'b> {
    fn list(self) -> Vec<Value<'b>> {
        vec![self]
    }
}

impl<'b> Results<'b> for Complex<'b> {
    fn list(self) -> Vec<Value<'b>> {
        self.parts()
    }
}

impl<'b, const N: usize> Results<'b> for [Value<'b>; N] {
    fn list(self) -> Vec<Value<'b>> {
        self.into()
    }
}

impl<'b> Results<'b> for Vec<Value<'b>> {
    fn list(self) -> Vec<Value<'b>> {
        self
    }
}

/// The arguments of a body by position.
pub fn take<T: Copy, const N: usize>(operands: &[T]) -> [T; N] {
    std::array::from_fn(|i| operands[i])
}

/// Declares functions of numbers, and the list `FUNCTIONS` of them:
///
/// ```
/// dml_compute::functions! {
///     /// `x / (1 + e^-x)`
///     SILU = "silu"(x) => x / (1.0 + dml_kernel::math::exp(-x));
/// }
/// ```
///
/// The arguments are one element of each operand, in the compute type of the dtype in which the
/// operands meet. `(..v)` names them all together. `| o` after them names the [`Options`].
/// Modifiers such as `.heavy()` follow the arguments. The body is an expression of one value or of
/// several.
#[macro_export]
macro_rules! functions {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal $arguments:tt
        $(.$modifier:ident($($value:expr),*))* => $body:expr;)*) => {
        $(
            $(#[doc = $doc])*
            pub static $name: $crate::pointwise::function::Function =
                $crate::pointwise::function::Function::real(
                    $text,
                    $crate::function_parts!(names $arguments),
                    concat!($($doc, "\n"),*),
                    $crate::function_parts!(body $arguments $body),
                )$(.$modifier($($value),*))*;
        )*
        /// The functions that this file declares.
        pub static FUNCTIONS: &[&$crate::pointwise::function::Function] = &[$(&$name),*];
    };
}

/// [`functions!`](crate::functions) of complex numbers, and the list `COMPLEX_FUNCTIONS` of them.
/// Their bodies yield complex numbers or single values, and have no options.
#[macro_export]
macro_rules! complex_functions {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal $arguments:tt => $body:expr;)*) => {
        $(
            $(#[doc = $doc])*
            pub static $name: $crate::pointwise::function::Function =
                $crate::pointwise::function::Function::complex(
                    $text,
                    $crate::function_parts!(names $arguments),
                    concat!($($doc, "\n"),*),
                    $crate::function_parts!(complex $arguments $body),
                );
        )*
        /// The functions of complex numbers that this file declares.
        pub static COMPLEX_FUNCTIONS: &[&$crate::pointwise::function::Function] = &[$(&$name),*];
    };
}

/// The names of a function's arguments, and its body as a function of a list.
#[doc(hidden)]
#[macro_export]
macro_rules! function_parts {
    (names (..$v:ident $(| $options:ident)?)) => { None };
    (names ($($x:ident),* $(| $options:ident)?)) => { Some(&[$(stringify!($x)),*]) };
    (body (..$v:ident) $body:expr) => {
        |$v, _| $crate::pointwise::function::Results::list($body)
    };
    (body (..$v:ident | $options:ident) $body:expr) => {
        |$v, $options| $crate::pointwise::function::Results::list($body)
    };
    (body ($($x:ident),*) $body:expr) => {
        |operands, _| {
            let [$($x),*] = $crate::pointwise::function::take(operands);
            $crate::pointwise::function::Results::list($body)
        }
    };
    (body ($($x:ident),* | $options:ident) $body:expr) => {
        |operands, $options| {
            let [$($x),*] = $crate::pointwise::function::take(operands);
            $crate::pointwise::function::Results::list($body)
        }
    };
    (complex ($($x:ident),*) $body:expr) => {
        |operands| {
            let [$($x),*] = $crate::pointwise::function::take(operands);
            $crate::pointwise::function::Results::list($body)
        }
    };
}
