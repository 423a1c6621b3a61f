//! The keywords of the text: one table for each kind, which the printer and the parser share.

use crate::dtype::DType;
use crate::ir::{Atomic, Binary, Builtin, Compare, Inst, Subgroup, Unary};
use crate::matrix_type::{MatrixLayout, MatrixUse};
use crate::types::{ScalarType, Type};

/// Items and their keywords.
pub(super) type Table<T> = [(T, &'static str)];

pub(super) const SCALARS: &[ScalarType] = &[
    ScalarType::Bool,
    ScalarType::I32,
    ScalarType::U32,
    ScalarType::I64,
    ScalarType::U64,
    ScalarType::F32,
    ScalarType::F64,
];

pub(super) const UNARY: &Table<Unary> = &[
    (Unary::Neg, "neg"),
    (Unary::Not, "not"),
    (Unary::Abs, "abs"),
    (Unary::Floor, "floor"),
    (Unary::Ceil, "ceil"),
    (Unary::Trunc, "trunc"),
    (Unary::Round, "round"),
    (Unary::CountOneBits, "count_ones"),
    (Unary::HighestBit, "highest_bit"),
    (Unary::FastExp2, "fast_exp2"),
];

pub(super) const BINARY: &Table<Binary> = &[
    (Binary::Add, "add"),
    (Binary::Sub, "sub"),
    (Binary::Mul, "mul"),
    (Binary::Div, "div"),
    (Binary::Rem, "rem"),
    (Binary::And, "and"),
    (Binary::Or, "or"),
    (Binary::Xor, "xor"),
    (Binary::Shl, "shl"),
    (Binary::Shr, "shr"),
    (Binary::Min, "min"),
    (Binary::Max, "max"),
    (Binary::MulHigh, "mul_high"),
];

pub(super) const COMPARE: &Table<Compare> = &[
    (Compare::Eq, "eq"),
    (Compare::Ne, "ne"),
    (Compare::Lt, "lt"),
    (Compare::Le, "le"),
    (Compare::Gt, "gt"),
    (Compare::Ge, "ge"),
];

pub(super) const ATOMIC: &Table<Atomic> = &[
    (Atomic::Add, "atomic_add"),
    (Atomic::Min, "atomic_min"),
    (Atomic::Max, "atomic_max"),
    (Atomic::And, "atomic_and"),
    (Atomic::Or, "atomic_or"),
    (Atomic::Xor, "atomic_xor"),
    (Atomic::Exchange, "atomic_exchange"),
];

pub(super) const SUBGROUP: &Table<Subgroup> = &[
    (Subgroup::Add, "subgroup_add"),
    (Subgroup::Min, "subgroup_min"),
    (Subgroup::Max, "subgroup_max"),
    (Subgroup::First, "subgroup_first"),
];

pub(super) const BUILTIN: &Table<Builtin> = &[
    (Builtin::Group(0), "group.x"),
    (Builtin::Group(1), "group.y"),
    (Builtin::Group(2), "group.z"),
    (Builtin::Local(0), "local.x"),
    (Builtin::Local(1), "local.y"),
    (Builtin::Local(2), "local.z"),
    (Builtin::Groups(0), "groups.x"),
    (Builtin::Groups(1), "groups.y"),
    (Builtin::Groups(2), "groups.z"),
    (Builtin::SubgroupLane, "subgroup.lane"),
    (Builtin::SubgroupSize, "subgroup.size"),
    (Builtin::SubgroupIndex, "subgroup.index"),
];

pub(super) const PARTS: &[MatrixUse] = &[MatrixUse::Left, MatrixUse::Right, MatrixUse::Accumulator];

pub(super) const LAYOUTS: &Table<MatrixLayout> =
    &[(MatrixLayout::RowMajor, "row_major"), (MatrixLayout::ColumnMajor, "column_major")];

/// The keyword of an item; every item has one.
pub(super) fn word<T: PartialEq>(table: &Table<T>, thing: T) -> &'static str {
    table.iter().find(|(other, _)| *other == thing).map_or("?", |(_, word)| word)
}

/// The item of a keyword.
pub(super) fn thing<T: Copy>(table: &Table<T>, word: &str) -> Option<T> {
    table.iter().find(|(_, other)| *other == word).map(|(thing, _)| *thing)
}

/// The type that a word names: `f32`, `u32x4`.
pub(super) fn type_of(word: &str) -> Option<Type> {
    let (scalar, lanes) = match word.split_once('x') {
        Some((scalar, "2")) => (scalar, 2),
        Some((scalar, "4")) => (scalar, 4),
        Some(_) => return None,
        None => (word, 1),
    };
    let scalar = SCALARS.iter().copied().find(|s| s.name() == scalar)?;
    (lanes == 1 || scalar != ScalarType::Bool).then_some(Type { scalar, lanes })
}

/// The dtype that a word names, if a kernel's pointer may have it.
pub(super) fn dtype_of(word: &str) -> Option<DType> {
    DType::from_short_name(word).filter(|dtype| !dtype.is_complex())
}

/// The keyword of an instruction.
pub(crate) fn mnemonic(inst: &Inst) -> &'static str {
    match *inst {
        Inst::ConstBool(_) | Inst::ConstInt(_) | Inst::ConstFloat(_) => "a constant",
        Inst::Builtin(builtin) => word(BUILTIN, builtin),
        Inst::Param(_) => "a parameter",
        Inst::Placeholder(_) => "a placeholder",
        Inst::Address(_) => "address",
        Inst::Unary(op, _) => word(UNARY, op),
        Inst::Binary(op, ..) => word(BINARY, op),
        Inst::Compare(op, ..) => word(COMPARE, op),
        Inst::Select(..) => "select",
        Inst::Cast(_) => "cast",
        Inst::Bitcast(_) => "bitcast",
        Inst::Fma(..) => "fma",
        Inst::GetVar { .. } | Inst::Load { .. } | Inst::LoadShared { .. } => "load",
        Inst::Extract(..) => "lane",
        Inst::Vector(_) => "vector",
        Inst::Atomic { op, .. } | Inst::AtomicShared { op, .. } => word(ATOMIC, op),
        Inst::CompareExchange { .. } => "compare_exchange",
        Inst::Subgroup(op, _) => word(SUBGROUP, op),
        Inst::ShuffleXor(..) => "shuffle_xor",
        Inst::Component { .. } => "matrix_get",
        Inst::Larger(..) => "larger",
        Inst::Halves(..) => "halves",
        Inst::Half(..) => "half",
    }
}

/// Whether a name needs no quotes.
pub(super) fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
