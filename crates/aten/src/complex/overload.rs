//! The arguments of a call by their names in the overload's schema, looked up at run time.

use crate::operator::argument::{FromArgument, Out, Outs};
use crate::operator::call::{Call, Ret};
use crate::operator::error::{Error, Result};
use crate::operator::value::Arg;
use crate::operator::{Operator, schema};
use dml_kernel::DType;
use smallvec::SmallVec;

impl Operator {
    /// The name common to all overloads of an operator: `add` for `aten::add_.Tensor`.
    pub fn base_name(&self) -> &'static str {
        let name = self.name.split_once("::").map_or(self.name, |(_, name)| name);
        let name = name.split_once('.').map_or(name, |(name, _)| name);
        if name.starts_with("__") { name } else { name.trim_end_matches('_') }
    }

    /// The argument with this name.
    ///
    /// # Errors
    /// [`Error::Fallback`] if the overload has none, and the errors of [`FromArgument::take`].
    pub fn argument<'a, T: FromArgument<'a>>(&self, call: &Call<'a>, name: &str) -> Result<T> {
        match schema::find(self.schema, name) {
            Some(i) => call.arguments().get(i),
            None => Err(Error::Fallback(format!("{} has no argument {name}", self.name))),
        }
    }

    /// The argument with this name, or `absent` for overloads without it.
    ///
    /// # Errors
    /// As [`FromArgument::take`].
    pub fn argument_or<'a, T: FromArgument<'a>>(&self, call: &Call<'a>, name: &str, absent: T) -> Result<T> {
        schema::find(self.schema, name).map_or(Ok(absent), |i| call.arguments().get(i))
    }

    /// The dtype in a dtype argument, complex or not; `None` if it is not given.
    ///
    /// # Errors
    /// As [`FromArgument::take`].
    pub fn dtype_argument(&self, call: &Call<'_>, name: &str) -> Result<Option<DType>> {
        let code: Option<i64> = self.argument_or(call, name, None)?;
        Ok(code.and_then(|code| DType::from_code(code as u8)))
    }

    /// The destination of the only result.
    ///
    /// # Errors
    /// As [`FromArgument::take`].
    pub fn out<'a>(&self, call: &Call<'a>) -> Result<Out<'a>> {
        call.arguments().out(schema::written(self.schema))
    }

    /// The destinations of the results.
    ///
    /// # Errors
    /// As [`FromArgument::take`].
    pub fn outs<'a>(&self, call: &Call<'a>) -> Result<Outs<'a>> {
        call.arguments().outs(schema::written(self.schema))
    }

    /// The arguments with their names.
    pub fn named<'a>(&self, call: &Call<'a>) -> impl Iterator<Item = (&'static str, &'a Arg<'a>)> + use<'a> {
        schema::names(self.schema).zip(call.args)
    }
}

/// Runs the operator's function with other arguments, and returns its results.
///
/// # Errors
/// The operator's.
pub fn run_on(call: &mut Call, operator: &Operator, args: &[Arg]) -> Result<()> {
    let returns: SmallVec<[Ret; 3]> = {
        let mut inner = call.with_arguments(args);
        (operator.run)(&mut inner)?;
        inner.returns
    };
    call.returns.extend(returns);
    Ok(())
}
