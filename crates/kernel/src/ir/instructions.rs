//! Instructions: the definitions of values.

use super::{Atomic, Binary, Builtin, Compare, MatrixId, PointerId, SharedId, Subgroup, Unary, ValueId, VarId};

/// The definition of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Inst {
    ConstBool(bool),
    /// Bits of an integer constant, truncated to the type's width.
    ConstInt(u64),
    /// Bits of an f32 or f64 constant.
    ConstFloat(u64),
    Builtin(Builtin),
    Param(u32),
    /// The placeholder for an input of an [`Element`](crate::Element). No other kernel has it.
    Placeholder(u32),
    /// A pointer's address: two u32, low first.
    Address(PointerId),
    Unary(Unary, ValueId),
    Binary(Binary, ValueId, ValueId),
    Compare(Compare, ValueId, ValueId),
    Select(ValueId, ValueId, ValueId),
    /// Conversion of a number to the value's type. Floats are truncated to integers; the result is
    /// undefined for a float out of range.
    Cast(ValueId),
    /// The same bits as another type of the same width.
    Bitcast(ValueId),
    /// `a * b + c`; the driver chooses whether it is fused.
    Fma(ValueId, ValueId, ValueId),
    GetVar {
        var: VarId,
        index: Option<ValueId>,
    },
    /// Element `index`; for a vector, the elements from `index * lanes` on, aligned to the size of
    /// the vector.
    Load {
        pointer: PointerId,
        index: ValueId,
    },
    LoadShared {
        shared: SharedId,
        index: ValueId,
    },
    Extract(ValueId, u8),
    Vector(Vec<ValueId>),
    /// Atomic operation on element `index`, relaxed, in device scope; yields the old value.
    Atomic {
        op: Atomic,
        pointer: PointerId,
        index: ValueId,
        value: ValueId,
    },
    /// Atomic operation on an element of a shared array of 32-bit scalars, relaxed, in workgroup
    /// scope; yields the old value.
    AtomicShared {
        op: Atomic,
        shared: SharedId,
        index: ValueId,
        value: ValueId,
    },
    /// Stores `value` if the element equals `expected`; yields the old value.
    CompareExchange {
        pointer: PointerId,
        index: ValueId,
        expected: ValueId,
        value: ValueId,
    },
    Subgroup(Subgroup, ValueId),
    /// The value of the lane whose index is this lane's index exclusive-or `mask`.
    ShuffleXor(ValueId, u32),
    /// A component of this invocation's part of a float matrix, as an f32. The driver chooses which
    /// elements an invocation has, and their order.
    Component {
        matrix: MatrixId,
        component: u32,
    },
    /// The larger of two f32; either operand if one of them is NaN.
    Larger(ValueId, ValueId),
    /// Two f32 converted to f16 and packed into a word, the first one in the low half: rounded to
    /// nearest even, infinite beyond f16's range, NaN for NaN.
    Halves(ValueId, ValueId),
    /// The f16 in the low (0) or the high (1) half of a word, as an f32.
    Half(ValueId, u8),
}

impl Inst {
    /// Whether the value is evaluated at the kernel's entry, and has no
    /// [`Stmt::Def`](super::Stmt::Def): constants, parameters, builtins.
    pub fn is_entry(&self) -> bool {
        matches!(self, Inst::ConstBool(_) | Inst::ConstInt(_) | Inst::ConstFloat(_) | Inst::Builtin(_) | Inst::Param(_))
    }

    /// The instruction with `f` applied to the id of each operand. The ids of variables, pointers
    /// and shared arrays stay.
    pub(crate) fn map(&self, mut f: impl FnMut(ValueId) -> ValueId) -> Inst {
        match *self {
            Inst::ConstBool(_)
            | Inst::ConstInt(_)
            | Inst::ConstFloat(_)
            | Inst::Builtin(_)
            | Inst::Param(_)
            | Inst::Placeholder(_)
            | Inst::Address(_) => self.clone(),
            Inst::Unary(op, a) => Inst::Unary(op, f(a)),
            Inst::Binary(op, a, b) => Inst::Binary(op, f(a), f(b)),
            Inst::Compare(op, a, b) => Inst::Compare(op, f(a), f(b)),
            Inst::Select(c, a, b) => Inst::Select(f(c), f(a), f(b)),
            Inst::Cast(a) => Inst::Cast(f(a)),
            Inst::Bitcast(a) => Inst::Bitcast(f(a)),
            Inst::Fma(a, b, c) => Inst::Fma(f(a), f(b), f(c)),
            Inst::GetVar { var, index } => Inst::GetVar { var, index: index.map(f) },
            Inst::Load { pointer, index } => Inst::Load { pointer, index: f(index) },
            Inst::LoadShared { shared, index } => Inst::LoadShared { shared, index: f(index) },
            Inst::Extract(a, lane) => Inst::Extract(f(a), lane),
            Inst::Vector(ref lanes) => Inst::Vector(lanes.iter().map(|&lane| f(lane)).collect()),
            Inst::Atomic { op, pointer, index, value } => {
                Inst::Atomic { op, pointer, index: f(index), value: f(value) }
            }
            Inst::AtomicShared { op, shared, index, value } => {
                Inst::AtomicShared { op, shared, index: f(index), value: f(value) }
            }
            Inst::CompareExchange { pointer, index, expected, value } => {
                Inst::CompareExchange { pointer, index: f(index), expected: f(expected), value: f(value) }
            }
            Inst::Subgroup(op, a) => Inst::Subgroup(op, f(a)),
            Inst::ShuffleXor(a, mask) => Inst::ShuffleXor(f(a), mask),
            Inst::Component { .. } => self.clone(),
            Inst::Larger(a, b) => Inst::Larger(f(a), f(b)),
            Inst::Halves(low, high) => Inst::Halves(f(low), f(high)),
            Inst::Half(word, half) => Inst::Half(f(word), half),
        }
    }
}
