//! What an operator is: its schema, the call it gets, and the errors it may return.

pub mod argument;
pub mod call;
pub mod conversion;
pub mod device_type;
pub mod error;
pub mod on_bits;
pub mod schema;
pub mod structured;
pub mod torch_version;
pub mod value;

use crate::operator::call::{Arg, Call, Host};
use crate::operator::error::Result;
use dml_engine::{Device, FaultKind};
use std::sync::Arc;

/// One overload: its schema and the function that runs it.
pub struct Operator {
    /// As PyTorch prints it: `aten::relu(Tensor self) -> Tensor`. PyTorch's own schema is compared
    /// with it at load.
    pub schema: &'static str,
    /// As in `aten::add.Tensor`.
    pub name: &'static str,
    /// The kind of error that an index out of range is.
    pub index_fault: FaultKind,
    /// Checks the arguments, enqueues kernels, and sets the results.
    pub run: fn(&mut Call) -> Result<()>,
}

/// Operators for whose bad indices the CPU raises RuntimeError, by the first part of their names.
const RUNTIME_INDEX: &[&str] = &["aten::gather", "aten::scatter", "aten::searchsorted"];

impl Operator {
    /// An overload of this schema.
    pub const fn new(schema: &'static str, run: fn(&mut Call) -> Result<()>) -> Operator {
        let mut index_fault = FaultKind::Index;
        let mut i = 0;
        while i < RUNTIME_INDEX.len() {
            if schema::begins_with(schema, RUNTIME_INDEX[i]) {
                index_fault = FaultKind::RuntimeIndex;
            }
            i += 1;
        }
        Operator { schema, name: schema::name(schema), index_fault, run }
    }

    /// A call of it on a device, not run yet.
    #[inline]
    pub fn call<'a>(&self, args: &'a [Arg<'a>], device: &'a Arc<Device>, host: &'a dyn Host) -> Call<'a> {
        Call::named(self.name, self.index_fault, args, device, host)
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
/// in those that lack it. After `;` stand constants.
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
    ($schema:expr => $run:ident ($($name:tt $(= $absent:expr)?),* $(; $($constant:expr),*)?)) => {
        $crate::operator::Operator::new($schema, |call| {
            let _arguments = call.arguments();
            $run(call $(, $crate::op!(@take _arguments $schema, $name $(= $absent)?))* $($(, $constant)*)?)
        })
    };
}

/// A family's overloads: `pub const OPERATORS`. Each function stands once, with the schemas that it
/// serves:
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
/// What stands between the parentheses is as [`op!`](crate::op) has it.
#[macro_export]
macro_rules! operators {
    ($($run:ident $arguments:tt { $($schema:expr),+ $(,)? })*) => {
        /// This family's overloads.
        pub const OPERATORS: &[$crate::operator::Operator] =
            &[$($($crate::op!($schema => $run $arguments),)+)*];
    };
}
