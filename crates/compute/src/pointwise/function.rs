//! Functions of one element of each operand: the entries of the catalogue of elementwise functions.
//!
//! An entry is a `static` item, which has both its name and its body. A kernel's specialisation has
//! a reference to the entry and compares addresses, so two functions cannot share a specialisation,
//! whatever their names.

use crate::fault::Refusal;
use crate::pointwise::rule::{Dtypes, Rule};
use dml_kernel::math::complex::Complex;
use dml_kernel::{DType, Value};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr;

/// An entry of the catalogue, declared by [`functions!`](crate::functions) or
/// [`complex_functions!`](crate::complex_functions). Compared by address.
pub struct Function {
    /// The name of the function's kernels.
    pub name: &'static str,
    /// The names of its arguments; `None` if their number depends on the options.
    pub arguments: Option<&'static [&'static str]>,
    /// A description: the text of its documentation.
    pub summary: &'static str,
    /// The body has hundreds of instructions: an invocation computes one element instead of
    /// several, so that the body is compiled once.
    pub heavy: bool,
    /// It divides integers, which with 64 bits takes hundreds of instructions too.
    pub divides: bool,
    /// The function supports integers only.
    pub integers: bool,
    /// The rule for the dtype of the result; for a function of complex numbers, given their common
    /// dtype.
    pub rule: Rule,
    /// The dtypes of arguments.
    pub takes: Dtypes,
    /// The corresponding function of complex numbers.
    pub complex: Option<&'static Function>,
    /// Invalid values of operands: the device reports them, and the error is raised at the next
    /// synchronisation or launch.
    pub guards: &'static [Guard],
    body: Body,
}

/// The computation for one element of each operand, in the compute type of the common dtype.
enum Body {
    Real(RealBody),
    /// The options' flags mark the operands that are pairs of a real and an imaginary part.
    Complex(ComplexBody),
}

/// See [`functions!`](crate::functions).
pub type RealBody = for<'b> fn(&[Value<'b>], &Options) -> Vec<Value<'b>>;

/// See [`complex_functions!`](crate::complex_functions).
pub type ComplexBody = for<'b> fn(&[Complex<'b>]) -> Vec<Value<'b>>;

/// Options that change a function's computation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Each function defines their meaning.
    pub flags: [bool; 8],
    /// A dtype that does not follow from the operands, for functions that use it.
    pub dtype: DType,
}

impl Default for Options {
    fn default() -> Self {
        Options { flags: [false; 8], dtype: DType::F32 }
    }
}

/// A function with its options: everything that determines the computation.
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
    /// Sets these flags, at most eight; others are false.
    pub fn with<const N: usize>(mut self, flags: [bool; N]) -> Self {
        self.options.flags[..N].copy_from_slice(&flags);
        self
    }

    /// Sets the dtype option.
    pub fn of(mut self, dtype: DType) -> Self {
        self.options.dtype = dtype;
        self
    }

    /// The guards whose violations are reported.
    pub fn guards(&self) -> &'static [Guard] {
        if self.unguarded { &[] } else { self.function.guards }
    }

    /// `count` results for one element of each operand. Further results are dropped; a missing one
    /// is the imaginary part of a real result, which is 0.
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
        Function {
            name,
            arguments,
            summary,
            heavy: false,
            divides: false,
            integers: false,
            rule: Rule::Promote,
            takes: Dtypes::Any,
            complex: None,
            guards: &[],
            body,
        }
    }

    /// See [`heavy`](Self::heavy).
    pub const fn heavy(self) -> Self {
        Function { heavy: true, ..self }
    }

    /// See [`divides`](Self::divides).
    pub const fn divides(self) -> Self {
        Function { divides: true, ..self }
    }

    /// See [`integers`](Self::integers).
    pub const fn integers(self) -> Self {
        Function { integers: true, ..self }
    }

    /// See [`rule`](Self::rule).
    pub const fn rule(self, rule: Rule) -> Self {
        Function { rule, ..self }
    }

    /// See [`takes`](Self::takes).
    pub const fn takes(self, takes: Dtypes) -> Self {
        Function { takes, ..self }
    }

    /// See [`complex`](Self::complex).
    pub const fn of_complex(self, function: &'static Function) -> Self {
        Function { complex: Some(function), ..self }
    }

    /// See [`guards`](Self::guards).
    pub const fn guarded(self, guards: &'static [Guard]) -> Self {
        Function { guards, ..self }
    }

    /// The function with these flags set, at most eight.
    pub fn with<const N: usize>(&'static self, flags: [bool; N]) -> Variant {
        Variant::from(self).with(flags)
    }

    /// The function with this dtype as an option.
    pub fn of(&'static self, dtype: DType) -> Variant {
        Variant::from(self).of(dtype)
    }

    /// The results for one element of each operand.
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

    /// Whether it is a function of complex numbers.
    pub fn is_complex(&self) -> bool {
        matches!(self.body, Body::Complex(_))
    }
}

/// Operands as complex numbers: an operand whose flag is set has two parts, others are real.
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

/// The valid values of an operand.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// Index of the operand.
    pub operand: usize,
    /// The valid values.
    pub domain: Domain,
    /// The error for other values.
    pub refusal: Refusal,
}

/// A set of valid values.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// For integers all except 0, for floats all.
    Divisor,
    /// 0 to 1, not NaN.
    Probability,
    /// 0 or more, not NaN.
    Deviation,
}

impl Domain {
    /// Whether a value is not in this set.
    pub fn lacks(self, x: Value<'_>) -> Value<'_> {
        match self {
            Domain::Divisor => x.eq(0),
            Domain::Probability => !x.le(1) | x.is_below_zero(),
            Domain::Deviation => !x.ge(0) | x.is_below_zero(),
        }
    }
}
