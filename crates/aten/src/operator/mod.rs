//! Operators: their schemas, the calls they get, and the errors they may return.

pub mod argument;
pub mod call;
pub mod conversion;
pub mod device_type;
pub mod error;
pub mod expression;
pub mod group;
pub mod on_bits;
pub mod route;
pub mod schema;
pub mod structured;
pub mod torch_version;
pub mod value;

use crate::operator::call::{Arg, Call, Host};
use crate::operator::error::Result;
use crate::operator::route::{Complex, Route};
use dml_engine::{Device, FaultKind};
use std::sync::Arc;

/// One overload: its schema, the function that runs it, and its properties.
#[derive(Copy, Clone)]
pub struct Operator {
    /// The schema as PyTorch prints it: `aten::relu(Tensor self) -> Tensor`. It is compared with
    /// PyTorch's own schema at load.
    pub schema: &'static str,
    /// The name, as in `aten::add.Tensor`.
    pub name: &'static str,
    /// Checks the arguments, enqueues kernels, and sets the results.
    pub run: fn(&mut Call) -> Result<()>,
    /// Properties that all overloads of a function share.
    pub fields: Fields,
    /// Called so often by models that the plugin has a wrapper for it which does not use the
    /// dispatcher's stack (`plugin/operators/hot_operators.h`).
    pub hot: bool,
}

/// The properties of an operator other than its schema and its function.
#[derive(Copy, Clone)]
pub struct Fields {
    /// How it runs with complex arguments.
    pub complex: Complex,
    /// How it runs with 8-bit floats; `None` falls back to the CPU.
    pub float8: Option<Route>,
    /// The kind of error for an index out of range.
    pub index_fault: FaultKind,
    /// Whether the plugin composes it of other operators if the driver refuses its kernels. The
    /// call then has no results.
    pub declines: bool,
}

impl Fields {
    /// Complex arguments and 8-bit floats fall back to the CPU.
    pub const fn new() -> Self {
        Fields { complex: Complex::None, float8: None, index_fault: FaultKind::Index, declines: false }
    }

    /// See [`complex`](Self::complex).
    pub const fn complex(self, complex: Complex) -> Self {
        Fields { complex, ..self }
    }

    /// See [`float8`](Self::float8).
    pub const fn float8(self, route: Route) -> Self {
        Fields { float8: Some(route), ..self }
    }

    /// See [`declines`](Self::declines).
    pub const fn declines(self) -> Self {
        Fields { declines: true, ..self }
    }

    /// For an operator for whose invalid indices the CPU raises RuntimeError.
    pub const fn runtime_index(self) -> Self {
        Fields { index_fault: FaultKind::RuntimeIndex, ..self }
    }
}

impl Default for Fields {
    fn default() -> Self {
        Self::new()
    }
}

impl Operator {
    /// An overload with this schema.
    pub const fn new(schema: &'static str, run: fn(&mut Call) -> Result<()>) -> Operator {
        Operator { schema, name: schema::name(schema), run, fields: Fields::new(), hot: false }
    }

    /// See [`fields`](Self::fields).
    pub const fn with(self, fields: Fields) -> Operator {
        Operator { fields, ..self }
    }

    /// See [`hot`](Self::hot).
    pub const fn hot(self) -> Operator {
        Operator { hot: true, ..self }
    }

    /// A call of it on a device, which has not run yet.
    #[inline]
    pub fn call<'a>(&self, args: &'a [Arg<'a>], device: &'a Arc<Device>, host: &'a dyn Host) -> Call<'a> {
        Call::named(self.name, self.fields.index_fault, args, device, host)
    }
}

/// An [`Operator`] from its schema and its function with the names of the arguments that it takes,
/// in the function's order:
///
/// `op!("aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor" => softmax(self, dim,
/// half_to_float, out; Mode::Log))`
///
/// calls `softmax(call, self, dim, half_to_float, out, Mode::Log)`, each argument as what that
/// function takes (see [`FromArgument`](argument::FromArgument)); a name that the schema lacks does
/// not compile. `out` stands for where the overload puts its only result ([`Out`](argument::Out)),
/// `outs` for several ([`Outs`](argument::Outs)), by what the schema marks as written; `in_place`
/// says whether it is the first argument. `[out]` is an argument that is called `out` and is not
/// written. `name = value` is an argument that other overloads of the function have, and its value
/// in those that lack it. `{Window}` is a struct of arguments ([`group!`](crate::group)). After `;`
/// stand constants, or `of` and an entry of the catalogue of elementwise functions, which says what
/// the function is of complex arguments.
#[macro_export]
macro_rules! op {
    (@take $a:ident $schema:expr, out) => {{
        const WRITTEN: $crate::operator::schema::Written = $crate::operator::schema::written($schema);
        $a.out(WRITTEN)?
    }};
    (@take $a:ident $schema:expr, outs) => {{
        const WRITTEN: $crate::operator::schema::Written = $crate::operator::schema::written($schema);
        $a.outs(WRITTEN)?
    }};
    (@take $a:ident $schema:expr, in_place) => {{
        const WRITTEN: $crate::operator::schema::Written = $crate::operator::schema::written($schema);
        WRITTEN.in_place
    }};
    (@take $a:ident $schema:expr, {$group:ident}) => {{
        const FIELDS: &[$crate::operator::group::Field] = <$group as $crate::operator::group::Group>::FIELDS;
        const POSITIONS: [Option<usize>; FIELDS.len()] = $crate::operator::group::positions($schema, FIELDS);
        <$group as $crate::operator::group::Group>::take($a, &POSITIONS)?
    }};
    (@take $a:ident $schema:expr, [$name:ident]) => {{
        const POSITION: usize = $crate::operator::schema::position($schema, stringify!($name));
        $a.get(POSITION)?
    }};
    (@take $a:ident $schema:expr, $name:tt) => {{
        const POSITION: usize = $crate::operator::schema::position($schema, stringify!($name));
        $a.get(POSITION)?
    }};
    (@take $a:ident $schema:expr, $name:tt = $absent:expr) => {{
        const POSITION: Option<usize> = $crate::operator::schema::find($schema, stringify!($name));
        match POSITION {
            Some(i) => $a.get(i)?,
            None => $absent,
        }
    }};
    ($schema:expr => $run:ident ($($name:tt $(= $absent:expr)?),*; of $function:path)) => {
        $crate::op!($schema => $run ($($name $(= $absent)?),*; &$function))
    };
    ($schema:expr => $run:ident ($($name:tt $(= $absent:expr)?),* $(; $($constant:expr),*)?)) => {
        $crate::operator::Operator::new($schema, |call| {
            let _arguments = call.arguments();
            $run(call $(, $crate::op!(@take _arguments $schema, $name $(= $absent)?))* $($(, $constant)*)?)
        })
    };
}

/// A family's overloads: `pub const OPERATORS`. Each function is listed once, with its schemas:
///
/// ```ignore
/// operators! {
///     softmax(self, dim, half_to_float, out; Mode::Log) {
///         "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
///         "aten::_log_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)",
///     }
/// }
/// ```
///
/// The text between the parentheses is as in [`op!`](crate::op). Methods of [`Fields`] may follow,
/// for which the modules `complex` and `float8` and the type [`Complex`] are in scope: `flip(self,
/// dims).complex(Complex::Run(complex::run_as_bits)).float8(float8::run_as_bits)`. `hot` before a
/// schema is [`Operator::hot`].
#[macro_export]
macro_rules! operators {
    ($($run:ident $arguments:tt $(.$field:ident($($value:expr)?))* {
        $($($hot:ident)? $schema:literal),+ $(,)?
    })*) => {
        /// This family's overloads.
        pub const OPERATORS: &[$crate::operator::Operator] = {
            const FUNCTIONS: &[&[$crate::operator::Operator]] = &[$({
                const FIELDS: $crate::operator::Fields = {
                    #[allow(unused_imports)]
                    use $crate::{complex, float8, operator::route::Complex};
                    $crate::fields!($arguments)$(.$field($($value)?))*
                };
                &[$($crate::op!($schema => $run $arguments).with(FIELDS)$(.$hot())?),+]
            }),*];
            &$crate::operator::joined::<{ $crate::operator::count(FUNCTIONS) }>(FUNCTIONS)
        };
    };
}

/// The [`Fields`] that follow from the arguments in a function's table.
#[doc(hidden)]
#[macro_export]
macro_rules! fields {
    (($($name:tt $(= $absent:expr)?),*; of $function:path)) => {
        $crate::operator::Fields::new().complex($crate::operator::route::Complex::of(&$function))
    };
    ($arguments:tt) => {
        $crate::operator::Fields::new()
    };
}

/// The total number of overloads of functions.
pub const fn count(functions: &[&[Operator]]) -> usize {
    let (mut count, mut i) = (0, 0);
    while i < functions.len() {
        count += functions[i].len();
        i += 1;
    }
    count
}

/// The overloads of functions, `N` in total, as one list.
pub const fn joined<const N: usize>(functions: &[&[Operator]]) -> [Operator; N] {
    let mut all = [functions[0][0]; N];
    let (mut n, mut i) = (0, 0);
    while i < functions.len() {
        let mut j = 0;
        while j < functions[i].len() {
            all[n] = functions[i][j];
            n += 1;
            j += 1;
        }
        i += 1;
    }
    all
}
