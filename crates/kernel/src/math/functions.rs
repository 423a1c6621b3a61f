//! The functions that a kernel's text calls by name, and whose calls a kernel records by name.

use super::{Binary, Ternary, Unary, comparison, special};
use crate::builder::Value;
use crate::dtype::DType;
use crate::storage::{self, DTYPES, ENCODE_PAIR, conversions};
use crate::types::{ScalarType, Type};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// A function, with the types of its arguments and of its result.
#[derive(Copy, Clone, Debug)]
pub enum Function {
    /// Takes a float; the result has its type.
    Unary(Unary),
    /// Takes two floats of a type; the result has the same type.
    Binary(Binary),
    /// Takes three floats of a type; the result has the same type.
    Ternary(Ternary),
    /// Takes a float; the result is a bool.
    Test(Unary),
    /// Takes an integer; the result has its type.
    Integer(Unary),
    /// Takes two values of a type; the result is a bool.
    Relation(Binary),
    /// Takes two values of a type; the result has the same type.
    Choice(Binary),
    /// Takes two floats of a type; the result has the same type.
    FloatChoice(Binary),
    /// Takes any value; the result has any other type.
    Convert,
    /// Takes an element as loaded, a `u32` for a narrow dtype; the result has the dtype's compute
    /// type.
    Decode(DType),
    /// Takes any value; the result is the element to store.
    Encode(DType),
    /// Takes two f32; the result is a word of two elements, the first one in the low half.
    EncodePair(DType),
    /// Takes any value; the result is that of a store and a load.
    Round(DType),
}

/// The name of a library function in a text, where `mul` is the instruction.
pub(crate) fn text_name(name: &'static str) -> &'static str {
    if name == "mul" { "multiply" } else { name }
}

static FUNCTIONS: LazyLock<FxHashMap<&'static str, Function>> = LazyLock::new(|| {
    let unary = super::UNARY.iter().chain(special::UNARY).map(|&(name, f)| (name, Function::Unary(f)));
    let binary = super::BINARY.iter().chain(special::BINARY).map(|&(name, f)| (text_name(name), Function::Binary(f)));
    let others: [(_, Function); 20] = [
        ("is_nan", Function::Test(|x| x.is_nan())),
        ("is_inf", Function::Test(|x| x.is_inf())),
        ("is_finite", Function::Test(|x| x.is_finite())),
        ("is_zero", Function::Test(|x| x.is_zero())),
        ("is_above_zero", Function::Test(|x| x.is_above_zero())),
        ("is_below_zero", Function::Test(|x| x.is_below_zero())),
        ("equal", Function::Relation(comparison::equal)),
        ("less", Function::Relation(comparison::less)),
        ("less_equal", Function::Relation(comparison::less_equal)),
        ("maximum", Function::Choice(comparison::maximum)),
        ("minimum", Function::Choice(comparison::minimum)),
        ("max", Function::FloatChoice(|x, y| x.max(y))),
        ("min", Function::FloatChoice(|x, y| x.min(y))),
        ("abs", Function::Integer(|x| x.abs())),
        ("magnitude", Function::Unary(special::magnitude)),
        ("gamma_sample_gradient", Function::Binary(special::gamma_sample_gradient)),
        ("beta_sample_gradient", Function::Ternary(special::beta_sample_gradient)),
        ("fused", Function::Ternary(special::fused)),
        ("convert", Function::Convert),
        (ENCODE_PAIR, Function::EncodePair(DType::BF16)),
    ];
    let conversions = DTYPES.iter().flat_map(|&dtype| {
        let kinds = [Function::Decode(dtype), Function::Encode(dtype), Function::Round(dtype)];
        conversions(dtype).into_iter().flatten().zip(kinds)
    });
    unary.chain(binary).chain(others).chain(conversions).collect()
});

/// The function with a name.
pub fn find(name: &str) -> Option<(&'static str, Function)> {
    FUNCTIONS.get_key_value(name).map(|(&name, &function)| (name, function))
}

/// All functions, by name.
pub fn all() -> Vec<(&'static str, Function)> {
    let mut all: Vec<_> = FUNCTIONS.iter().map(|(&name, &function)| (name, function)).collect();
    all.sort_unstable_by_key(|(name, _)| *name);
    all
}

impl Function {
    /// The number of arguments.
    pub const fn arguments(self) -> usize {
        match self {
            Function::Binary(_) | Function::Relation(_) | Function::Choice(_) => 2,
            Function::FloatChoice(_) | Function::EncodePair(_) => 2,
            Function::Ternary(_) => 3,
            _ => 1,
        }
    }

    /// Whether it takes arguments of these types, which must be the right number, and has a result
    /// of this type.
    pub fn takes(self, arguments: &[Type], result: Type) -> bool {
        let first = arguments[0].scalar;
        let alike = arguments.iter().all(|&argument| argument == Type::scalar(first));
        let result = if result.lanes == 1 { result.scalar } else { return false };
        alike
            && match self {
                Function::Unary(_) | Function::Binary(_) | Function::Ternary(_) | Function::FloatChoice(_) => {
                    first.is_float() && result == first
                }
                Function::Integer(_) => first.is_integer() && result == first,
                Function::Test(_) => first.is_float() && result == ScalarType::Bool,
                Function::Relation(_) => result == ScalarType::Bool,
                Function::Choice(_) => result == first,
                Function::Convert => result != first,
                Function::Decode(dtype) => first == dtype.word().value() && result == dtype.compute(),
                Function::Encode(dtype) => result == dtype.word().value(),
                Function::EncodePair(_) => first == ScalarType::F32 && result == ScalarType::U32,
                Function::Round(dtype) => result == dtype.compute(),
            }
    }

    /// The type of a literal among the arguments, given the type of the first argument, if that is
    /// not a literal, and of the result; `None` if they do not determine it.
    pub fn like(self, first: Option<ScalarType>, result: ScalarType) -> Option<ScalarType> {
        match self {
            Function::Unary(_) | Function::Binary(_) | Function::Ternary(_) | Function::Integer(_) => Some(result),
            Function::Choice(_) | Function::FloatChoice(_) => Some(result),
            Function::EncodePair(_) => Some(ScalarType::F32),
            Function::Decode(dtype) => Some(dtype.word().value()),
            Function::Relation(_) => first,
            Function::Test(_) | Function::Convert | Function::Encode(_) | Function::Round(_) => None,
        }
    }

    /// Appends the function's body for arguments that it [takes](Self::takes).
    pub fn write<'b>(self, arguments: &[Value<'b>], result: ScalarType) -> Value<'b> {
        let x = arguments[0];
        match self {
            Function::Unary(f) | Function::Test(f) | Function::Integer(f) => f(x),
            Function::Binary(f) | Function::Relation(f) | Function::Choice(f) | Function::FloatChoice(f) => {
                f(x, arguments[1])
            }
            Function::Ternary(f) => f(x, arguments[1], arguments[2]),
            Function::Convert => x.cast(result),
            Function::Decode(dtype) => storage::decode(x, dtype),
            Function::Encode(dtype) => storage::encode(x, dtype),
            Function::EncodePair(dtype) => storage::encode_pair([x, arguments[1]], dtype),
            Function::Round(dtype) => storage::convert(x, dtype),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;
    use crate::ir::Stmt;

    /// The calls that a kernel records, for every function and every type of argument.
    #[test]
    fn every_function_is_recorded_by_its_name() {
        let scalars = [ScalarType::Bool, ScalarType::I32, ScalarType::U32, ScalarType::I64, ScalarType::U64];
        let scalars = [&scalars[..], &[ScalarType::F32, ScalarType::F64]].concat();
        for (name, function) in all() {
            let mut recorded = 0;
            for (&first, &result) in scalars.iter().flat_map(|a| scalars.iter().map(move |b| (a, b))) {
                let types = vec![Type::scalar(first); function.arguments()];
                if !function.takes(&types, Type::scalar(result)) {
                    continue;
                }
                let b = Builder::new("test", [1, 1, 1]);
                let arguments: Vec<Value> = types.iter().map(|ty| b.local_array(ty.scalar, 2).get(0)).collect();
                let value = function.write(&arguments, result);
                assert_eq!(value.ty(), Type::scalar(result), "{name} of {first}");
                let kernel = b.finish();
                assert_eq!(kernel.verify(), Ok(()), "{name} of {first}");
                for stmt in &kernel.body.0 {
                    if let Stmt::Call(call) = stmt {
                        assert_eq!(call.function, name);
                        recorded += 1;
                    }
                }
            }
            let instructions = ["encode_", "decode_", "round_"].iter().any(|kind| name.starts_with(kind));
            assert!(recorded > 0 || instructions, "{name} is never recorded");
        }
    }
}
