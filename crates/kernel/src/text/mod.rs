//! The text form of a kernel: [`Kernel`] prints it, and [`Kernel::from_str`] parses it.
//! `parse(print(k)) == k`.
//!
//! ```
//! use dml_kernel::Kernel;
//!
//! let text = "
//! // Doubles n numbers.
//! kernel double [4, 1, 1] {
//!   output @x: f32
//!   param %n: u32
//!   %first: u32 = mul group.x, 4
//!   %i: u32 = add %first, local.x
//!   %inside: bool = lt %i, %n
//!   if %inside {
//!     %number: f32 = load @x[%i]
//!     %twice: f32 = mul %number, 2.0
//!     store @x[%i], %twice
//!   }
//! }";
//! let kernel: Kernel = text.parse()?;
//! assert_eq!(kernel.to_string().parse(), Ok(kernel));
//!
//! let error = text.replace("%twice\n", "%inside\n").parse::<Kernel>().unwrap_err();
//! assert_eq!(error.to_string(), "12:5: memory of f32 takes no bool");
//! # Ok::<(), dml_kernel::ParseError>(())
//! ```
//!
//! # The language
//!
//! A text is one kernel: `kernel NAME [X, Y, Z] { .. }`, with the number of invocations of a
//! workgroup in each dimension. Names are words, or any text in quotes. `//` begins a comment; line
//! breaks are white space. `%name` is a value, which is defined once, before its uses, and is
//! visible up to the end of the block that defines it. `@name` is memory: a tensor, a variable, an
//! array of the workgroup, a matrix. A name may consist of digits; a printed kernel names values by
//! their index in [`Kernel::values`].
//!
//! Types of values are `bool`, `i32`, `u32`, `i64`, `u64`, `f32`, `f64`, and vectors of 2 or 4
//! numbers, `f32x4`. A literal is `true`, `-7`, `0x1f`, `0.5`, `1e-3`, `inf` or `nan`; a float in
//! hexadecimal digits is given by its bits. A literal has the type that the instruction requires,
//! or the type that it states, `7:u64`.
//!
//! Operands that need no definition: `group.x` (index of the workgroup), `local.x` (index of the
//! invocation in it), `groups.x` (number of workgroups), each also with `y` and `z`;
//! `subgroup.lane`, `subgroup.size`, `subgroup.index`. All are `u32`.
//!
//! ## Declarations
//!
//! A declaration is visible from its position to the end of the kernel, in any block.
//!
//! - `input @x: bf16`: the next parameter is the address of a tensor that the kernel only reads.
//! - `output @x: bf16`: the next parameter is the address of a tensor that the kernel writes, and
//!   may read.
//! - `param %n: u32`: the next parameter is a number.
//! - `var @sum: f32`, `var @list: f32[8]`: a variable or an array of each invocation.
//! - `shared @tile: f32[256]`, `shared @tile: f32x4[64]`: an array of the workgroup.
//! - `matrix @a: left f16[16, 16]`: a matrix of the subgroup, with rows and columns: `left`,
//!   `right` or `accumulator`.
//! - `const 256:u32`, `const group.x`: creates the value here. It only determines the order of the
//!   values.
//!
//! The name of a parameter that is not a word follows in quotes: `param %7 "n 1": u32`. Elements of
//! tensors of 8 and 16 bits are loaded and stored as `u32`.
//!
//! ## Statements
//!
//! - `%y: f32 = ..` defines a value by an instruction or a function, with its type.
//! - `@p: f32 = offset @x, %n` defines a pointer: another pointer advanced by `%n` (`u64` or `i64`)
//!   elements.
//! - `store @x[%i], %y` writes an element of a tensor, an array or a workgroup's array; a vector
//!   writes as many consecutive elements of a tensor. `store @sum, %y` writes a variable.
//! - `store @tile[%i].%lane, %y` writes one lane (`u32`) of an element of a workgroup's array of
//!   vectors.
//! - `if %c { .. } else { .. }`
//! - `loop { .. while %c .. }` runs the statements before `while`, ends if `%c` is false, runs the
//!   statements after it, and repeats. Values that are defined before `while` are visible after it
//!   and after the loop. `loop unroll { .. }` asks the driver to unroll the loop.
//! - `barrier` and `subgroup_barrier` wait for the workgroup or the subgroup, and make its writes
//!   to the workgroup's arrays visible.
//! - `return` ends the invocation.
//! - `matrix_fill @c, %y`, `matrix_multiply_add @c, @a, @b`, `matrix_add @c, @d`,
//!   `matrix_scale @c, %y`, `matrix_convert @c, @d`: see [`MatrixStmt`](crate::ir::MatrixStmt).
//! - `matrix_load @a, @x[%i], %stride, row_major` and `matrix_store`, from and to a tensor or a
//!   workgroup's array; the layout is `row_major` or `column_major`.
//! - `matrix_set @c, 3, %y` sets a component of this invocation.
//!
//! ## Instructions
//!
//! [`ir::Inst`](crate::ir::Inst) documents each instruction.
//!
//! - With one operand: `neg not abs floor ceil trunc round count_ones highest_bit fast_exp2`.
//! - With two: `add sub mul div rem and or xor shl shr min max mul_high larger`.
//! - Comparisons: `eq ne lt le gt ge`.
//! - `select %c, %a, %b`, `fma %a, %b, %c`.
//! - `cast %a` converts a number to the type of the result, `bitcast %a` keeps the bits.
//! - `load @x[%i]`, `load @sum`; a result of a vector type loads as many consecutive elements.
//! - `vector %a, %b`, `lane %v, 0`.
//! - `atomic_add @x[%i], %a`, and `_min _max _and _or _xor _exchange`, yield the old value; so does
//!   `compare_exchange @x[%i], %expected, %a`.
//! - `subgroup_add %a`, and `_min _max _first`; `shuffle_xor %a, 16`.
//! - `halves %low, %high`: two f32 as f16 in a word; `half %word, 0`: one of them as f32.
//! - `matrix_get @c, 3`: a component of this invocation.
//!
//! ## Functions
//!
//! Functions of the [library](crate::math) are called like instructions, `%y: f32 = exp %x`. They
//! are expanded to instructions that have the same results on every adapter, bit for bit.
//! [`math::functions`](crate::math::functions) lists them.
//!
//! On floats, with a result of the same type:
//!
//! - `reciprocal sqrt rsqrt exp exp2 expm1 log log1p log2 log10 sigmoid erf erfc`
//! - `sin cos tan asin acos atan sinh cosh tanh`, `atan2 %y, %x`
//! - `div pow fmod`, with two arguments
//! - `multiply %a, %b`, `fused %a, %b, %c`, `magnitude %a`: `mul`, `fma` and `abs` that keep
//!   subnormal numbers on every adapter; the result of `fused` is rounded once, or nearly
//! - `min max`, with two arguments; the second one is the result if the first one is NaN
//! - `lgamma digamma erfinv erfcx ndtri i0 i0e i1 i1e j0 j1 y0 y1 k0 k0e k1 k1e
//!   airy_ai`; with two arguments `zeta igamma igammac
//!   gamma_sample_gradient`; with three `beta_sample_gradient`
//!
//! On other types:
//!
//! - `maximum minimum`, with two arguments of any type; NaN if one of them is NaN
//! - `equal less less_equal`, with two arguments of any type: comparisons that distinguish
//!   subnormal numbers from 0 on every adapter
//! - `is_nan is_inf is_finite is_zero is_above_zero is_below_zero`, on a float
//! - `abs`, on an integer
//! - `convert`, from any type to any other; a number is true if it is not 0
//! - `decode_bf16`: from a loaded element to the compute type of the dtype, `f32` here and `i32`
//!   for narrow integers; `encode_bf16`: from any value to an element to store; `round_bf16`: both
//!   in sequence. Each dtype has the three.
//! - `encode_pair_bf16 %low, %high`: two f32 in a word (for f16, `halves`)
//!
//! ## Calls
//!
//! `%y: f32 = call gelu [flag 0, of bf16, result 1] %x, 0.5` calls a function of the program that
//! has the text parsed ([`Kernel::from_text`]); it is expanded like those of the library. Options
//! in brackets are words, each with a word or a number. A literal has the type of the result, and
//! behind the first argument that argument's.
//!
//! ## Lowered kernels
//!
//! Only kernels that were [rewritten for an adapter](crate::Target) have parameters of type
//! `words` and the instructions `address @x` and `@p: f32 = at %words`.
//!
//! # Order
//!
//! The values of a kernel are numbered, and emitted in this order. A text has the order of the
//! calls of a [`Builder`](crate::Builder): a value is created by its definition, a literal by its
//! first use. All kernels are written by a builder, so parsing a printed text yields an equal
//! kernel.

mod lex;
mod literal;
pub(crate) mod names;
mod parse;
mod print;

use crate::builder::Value;
use crate::ir::Kernel;
use std::fmt;
use std::str::FromStr;

/// The reason why a text is not a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1 on.
    pub line: usize,
    /// The character in the line, from 1 on.
    pub column: usize,
    /// The mistake.
    pub what: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for ParseError {}

/// A mistake, and its position in bytes.
struct Wrong {
    at: usize,
    what: String,
}

impl Wrong {
    fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }

    fn in_text(self, text: &str) -> ParseError {
        let before = &text[..self.at];
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line..].chars().count() + 1,
            what: self.what,
        }
    }
}

/// The functions that a text may `call`, beyond those of the language's library.
pub trait Functions {
    /// Appends the instructions of the function called `name`, and returns its result. Options are
    /// pairs of a word and what follows it. An error is what is wrong with the call.
    fn call<'b>(&self, name: &str, options: &[(&str, &str)], arguments: &[Value<'b>]) -> Result<Value<'b>, String>;
}

/// No functions.
struct NoFunctions;

impl Functions for NoFunctions {
    fn call<'b>(&self, name: &str, _: &[(&str, &str)], _: &[Value<'b>]) -> Result<Value<'b>, String> {
        Err(format!("no function is called {name}"))
    }
}

impl Kernel {
    /// The [valid](Kernel::verify) kernel of a text that may call these functions.
    pub fn from_text(text: &str, functions: &dyn Functions) -> Result<Kernel, ParseError> {
        parse::kernel(text, functions).map_err(|wrong| wrong.in_text(text))
    }
}

impl FromStr for Kernel {
    type Err = ParseError;

    /// A [valid](Kernel::verify) kernel, without calls.
    fn from_str(text: &str) -> Result<Kernel, ParseError> {
        Kernel::from_text(text, &NoFunctions)
    }
}
