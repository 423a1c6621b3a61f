//! The functions that a kernel's text calls by name, and that a kernel remembers the names of.

use super::{Binary, Ternary, Unary, comparison, special};
use crate::builder::Value;
use crate::dtype::DType;
use crate::storage::{self, DTYPES, ENCODE_PAIR, conversions};
use crate::types::{ScalarType, Type};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// A function, and which types it takes and gives.
#[derive(Copy, Clone, Debug)]
pub enum Function {
    /// Of a float; gives one of its type.
    Unary(Unary),
    /// Of two floats of a type.
    Binary(Binary),
    /// Of three floats of a type.
    Ternary(Ternary),
    /// Of a float; gives a bool.
    Test(Unary),
    /// Of an integer; gives one of its type.
    Integer(Unary),
    /// Of two values of a type; gives a bool.
    Relation(Binary),
    /// Of two values of a type; gives one of them.
    Choice(Binary),
    /// Of two floats of a type; gives one of them.
    FloatChoice(Binary),
    /// Of any value; gives any other type.
    Convert,
    /// Of an element in memory, a `u32` where it is narrow; gives the type that the dtype is
    /// computed with.
    Decode(DType),
    /// Of any value; gives the element to store.
    Encode(DType),
    /// Of two f32; gives a word of two elements, the first one in its low half.
    EncodePair(DType),
    /// Of any value; gives what a store and a load would.
    Round(DType),
}

/// The name in a text of a function of the library. `mul` is the language's own product there.
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

/// The function of a name.
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
    /// How many values it takes.
    pub const fn arguments(self) -> usize {
        match self {
            Function::Binary(_) | Function::Relation(_) | Function::Choice(_) => 2,
            Function::FloatChoice(_) | Function::EncodePair(_) => 2,
            Function::Ternary(_) => 3,
            _ => 1,
        }
    }

    /// Whether it takes arguments of these types, of which there are as many as it takes, and gives
    /// a result of this one.
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

    /// The type that a literal has among its arguments, of which the first one has the type
    /// `first`, if that is known.
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

    /// Writes it, of arguments that it [takes](Self::takes).
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

    /// What a kernel remembers of a function that is called with any types that it takes.
    #[test]
    fn every_function_is_remembered_by_its_name() {
        let scalars = [ScalarType::Bool, ScalarType::I32, ScalarType::U32, ScalarType::I64, ScalarType::U64];
        let scalars = [&scalars[..], &[ScalarType::F32, ScalarType::F64]].concat();
        for (name, function) in all() {
            let mut remembered = 0;
            for (&first, &result) in scalars.iter().flat_map(|a| scalars.iter().map(move |b| (a, b))) {
                let types = vec![Type::scalar(first); function.arguments()];
                if !function.takes(&types, Type::scalar(result)) {
                    continue;
                }
                let b = Builder::new("test", [1, 1, 1]);
                let arguments: Vec<Value> = types.iter().map(|ty| b.local_array(ty.scalar, 2).get(0)).collect();
                let written = function.write(&arguments, result);
                assert_eq!(written.ty(), Type::scalar(result), "{name} of {first}");
                let kernel = b.finish();
                assert_eq!(kernel.verify(), Ok(()), "{name} of {first}");
                for stmt in &kernel.body.0 {
                    if let Stmt::Call(call) = stmt {
                        assert_eq!(call.function, name);
                        remembered += 1;
                    }
                }
            }
            let instructions = ["encode_", "decode_", "round_"].iter().any(|kind| name.starts_with(kind));
            assert!(remembered > 0 || instructions, "{name} is never remembered");
        }
    }
}
