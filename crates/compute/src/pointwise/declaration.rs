//! The macros that declare the entries of the catalogue.

use dml_kernel::Value;
use dml_kernel::math::complex::Complex;

/// The results of a function's body.
pub trait Results<'b> {
    /// One value for each output: for a complex number its parts.
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

/// Declares functions of numbers, and their list `FUNCTIONS`:
///
/// ```
/// dml_compute::functions! {
///     /// `x / (1 + e^-x)`
///     SILU = "silu"(x) => x / (1.0 + dml_kernel::math::exp(-x));
/// }
/// ```
///
/// The arguments are one element of each operand, in the compute type of the operands' common
/// dtype. `(..v)` names them all together. `| o` after them names the
/// [`Options`](crate::pointwise::function::Options). Modifiers such as `.heavy()` follow the
/// arguments. The body is an expression of one value or of several.
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

/// [`functions!`](crate::functions) for complex numbers, with their list `COMPLEX_FUNCTIONS`. Their
/// bodies return complex numbers or single values, and have no options.
#[macro_export]
macro_rules! complex_functions {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal $arguments:tt
        $(.$modifier:ident($($value:expr),*))* => $body:expr;)*) => {
        $(
            $(#[doc = $doc])*
            pub static $name: $crate::pointwise::function::Function =
                $crate::pointwise::function::Function::complex(
                    $text,
                    $crate::function_parts!(names $arguments),
                    concat!($($doc, "\n"),*),
                    $crate::function_parts!(complex $arguments $body),
                )$(.$modifier($($value),*))*;
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
        |$v, _| $crate::pointwise::declaration::Results::list($body)
    };
    (body (..$v:ident | $options:ident) $body:expr) => {
        |$v, $options| $crate::pointwise::declaration::Results::list($body)
    };
    (body ($($x:ident),*) $body:expr) => {
        |operands, _| {
            let [$($x),*] = $crate::pointwise::declaration::take(operands);
            $crate::pointwise::declaration::Results::list($body)
        }
    };
    (body ($($x:ident),* | $options:ident) $body:expr) => {
        |operands, $options| {
            let [$($x),*] = $crate::pointwise::declaration::take(operands);
            $crate::pointwise::declaration::Results::list($body)
        }
    };
    (complex ($($x:ident),*) $body:expr) => {
        |operands| {
            let [$($x),*] = $crate::pointwise::declaration::take(operands);
            $crate::pointwise::declaration::Results::list($body)
        }
    };
}
