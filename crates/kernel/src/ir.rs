//! The kernel as data: parameters, values in SSA form, and structured control flow.

use crate::dtype::DType;
use crate::matrix_type::{MatrixLayout, MatrixType};
use crate::types::{ScalarType, Type, Word};
use std::ops::Range;

/// Index of a value in [`Kernel::values`].
pub type ValueId = u32;
/// Index of a variable in [`Kernel::vars`].
pub type VarId = u32;
/// Index of a pointer in [`Kernel::pointers`].
pub type PointerId = u32;
/// Index of a shared array in [`Kernel::shared`].
pub type SharedId = u32;
/// Index of a matrix register in [`Kernel::matrices`].
pub type MatrixId = u32;

/// One compute kernel. Its [text](crate::text) loses nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// For error messages and profiles.
    pub name: String,
    /// Invocations in a workgroup, per dimension.
    pub workgroup_size: [u32; 3],
    /// The parameter block, in order.
    pub params: Vec<Param>,
    /// Every value, in the order of creation.
    pub values: Vec<ValueInfo>,
    /// Mutable variables and private arrays.
    pub vars: Vec<VarInfo>,
    /// Pointers: parameters, and parameters moved by an offset.
    pub pointers: Vec<PointerInfo>,
    /// Arrays shared by a workgroup.
    pub shared: Vec<SharedInfo>,
    /// Matrix registers of each subgroup.
    pub matrices: Vec<MatrixType>,
    /// What runs.
    pub body: Block,
}

/// A parameter. The block is laid out in order, each member aligned to its size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// For printing.
    pub name: String,
    /// What it is.
    pub kind: ParamKind,
}

/// The kind of a parameter.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// A tensor, by its 8-byte address.
    #[allow(missing_docs)]
    Pointer {
        pointer: PointerId,
        /// Of its elements. A kernel loads words ([`PointerInfo::word`]) and converts them.
        dtype: DType,
        /// The kernel may write to it. Launches order no writes to others.
        writable: bool,
    },
    /// A number (never a bool).
    Scalar(ScalarType),
    /// A 64-bit integer as its two 32-bit words, low first.
    Words,
}

impl ParamKind {
    /// Bytes in the block; also its alignment.
    pub const fn bytes(self) -> u32 {
        match self {
            ParamKind::Pointer { .. } | ParamKind::Words => 8,
            ParamKind::Scalar(s) => s.bytes(),
        }
    }
}

/// Offsets of the members of a parameter block, and its size.
pub fn param_offsets(params: &[Param]) -> (Vec<u32>, u32) {
    let mut offset = 0u32;
    let offsets = params
        .iter()
        .map(|p| {
            let bytes = p.kind.bytes();
            offset = offset.next_multiple_of(bytes);
            let at = offset;
            offset += bytes;
            at
        })
        .collect();
    (offsets, offset.next_multiple_of(4))
}

/// A value's type and how it is made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValueInfo {
    /// Its type.
    pub ty: Type,
    /// Its definition.
    pub inst: Inst,
}

/// A mutable variable of one invocation; `len` above 1 makes it an array.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct VarInfo {
    /// Element type.
    pub ty: Type,
    /// Elements.
    pub len: u32,
}

/// A pointer into a tensor.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct PointerInfo {
    /// How its elements lie in memory.
    pub word: Word,
    /// Where it points.
    pub base: PointerBase,
}

/// Where a pointer comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum PointerBase {
    /// Member of the parameter block.
    Param(u32),
    /// Another pointer, moved by a value in elements (u64 or i64).
    Offset(PointerId, ValueId),
    /// The address in a value: two u32, low first. Only kernels that were [lowered](crate::Target)
    /// have such.
    Address(ValueId),
}

/// An array shared by a workgroup.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedInfo {
    /// Element type.
    pub ty: Type,
    /// Elements.
    pub len: u32,
}

/// Statements in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block(pub Vec<Stmt>);

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Stmt {
    /// Evaluates a value here.
    Def(ValueId),
    /// Makes a moved pointer here.
    DefPointer(PointerId),
    SetVar {
        var: VarId,
        index: Option<ValueId>,
        value: ValueId,
    },
    /// Element `index` of a pointer. A vector value writes `lanes` elements from `index * lanes`.
    Store {
        pointer: PointerId,
        index: ValueId,
        value: ValueId,
    },
    /// Element `index` of a shared array, or only lane `lane` (u32) of that vector.
    StoreShared {
        shared: SharedId,
        index: ValueId,
        lane: Option<ValueId>,
        value: ValueId,
    },
    If {
        cond: ValueId,
        then: Block,
        otherwise: Block,
    },
    /// Runs `test`, leaves if `cond` is false, runs `body`, repeats.
    While {
        test: Block,
        cond: ValueId,
        body: Block,
        unroll: bool,
    },
    /// Waits for the workgroup; shared memory written before is visible after.
    Barrier,
    /// Waits for the subgroup; shared memory that it wrote before is visible to it after.
    SubgroupBarrier,
    /// A function of the library. For whom its name says nothing, it is the statements of its body.
    Call(Box<Call>),
    /// What a whole subgroup does with its matrix registers. Every invocation of it gets there,
    /// with the same values.
    Matrix(MatrixStmt),
    /// Ends the invocation. Only at the outermost level or inside an `If` that holds no barrier.
    Return,
}

/// A function that somebody called by its name, and what that made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Its name in [`math::functions`](crate::math::functions).
    pub function: &'static str,
    /// What it is of.
    pub arguments: Vec<ValueId>,
    /// What it gives: one of its values.
    pub result: ValueId,
    /// The values that are its own. Constants among them may be used by others later.
    pub values: Range<ValueId>,
    /// The variables that are its own.
    pub vars: Range<VarId>,
    /// The statements, whose definitions go on to be visible behind them.
    pub body: Block,
}

/// A statement on matrix registers. Indices and strides (u32) count elements of the shared array as
/// it is declared, or elements of the pointer, whose dtype is the matrix's.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatrixStmt {
    /// Every element of an accumulator becomes a value.
    Fill {
        matrix: MatrixId,
        value: ValueId,
    },
    /// `stride` lies between neighbouring rows, or columns where those are contiguous.
    Load {
        matrix: MatrixId,
        from: MatrixMemory,
        index: ValueId,
        stride: ValueId,
        layout: MatrixLayout,
    },
    Store {
        matrix: MatrixId,
        to: MatrixMemory,
        index: ValueId,
        stride: ValueId,
        layout: MatrixLayout,
    },
    /// `sum += left * right`. In which order and how exactly products are added up is the driver's
    /// choice.
    MultiplyAdd {
        sum: MatrixId,
        left: MatrixId,
        right: MatrixId,
    },
    /// `to += from`, element by element, of accumulators of one type.
    Add {
        to: MatrixId,
        from: MatrixId,
    },
    /// Every element of an accumulator of floats times a value.
    Scale {
        matrix: MatrixId,
        by: ValueId,
    },
    /// Elements converted to another accumulator's dtype.
    Convert {
        to: MatrixId,
        from: MatrixId,
    },
    /// Each invocation gives one of its own components an f32 of its own, rounded to the matrix's
    /// dtype.
    SetComponent {
        matrix: MatrixId,
        component: u32,
        value: ValueId,
    },
}

/// Where a matrix is loaded from or stored to.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum MatrixMemory {
    /// A shared array of numbers of 4 bytes or vectors of them, in whose bytes the elements lie
    /// packed.
    Shared(SharedId),
    /// A tensor.
    Pointer(PointerId),
}

/// How a value is made.
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
    /// An input of an [`Element`](crate::Element), in no other kernel.
    Hole(u32),
    /// Where a pointer points: two u32, low first.
    Address(PointerId),
    Unary(Unary, ValueId),
    Binary(Binary, ValueId, ValueId),
    Compare(Compare, ValueId, ValueId),
    Select(ValueId, ValueId, ValueId),
    /// Conversion of a number to the value's type. Floats to integers truncate; out of range is
    /// undefined.
    Cast(ValueId),
    /// The same bits as another type of the same width.
    Bitcast(ValueId),
    /// `a * b + c`, fused or not as the driver likes.
    Fma(ValueId, ValueId, ValueId),
    GetVar {
        var: VarId,
        index: Option<ValueId>,
    },
    /// Element `index`, or with lanes above 1 the elements from `index * lanes`, aligned to the
    /// whole vector.
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
    /// Old value of element `index`; relaxed, device scope.
    Atomic {
        op: Atomic,
        pointer: PointerId,
        index: ValueId,
        value: ValueId,
    },
    /// Old value of an element of a shared array of scalars of 32 bits; relaxed, workgroup scope.
    AtomicShared {
        op: Atomic,
        shared: SharedId,
        index: ValueId,
        value: ValueId,
    },
    /// Old value; stores `value` where it equals `expected`.
    CompareExchange {
        pointer: PointerId,
        index: ValueId,
        expected: ValueId,
        value: ValueId,
    },
    Subgroup(Subgroup, ValueId),
    /// The value of the lane whose index is this one's exclusive-or `mask`.
    ShuffleXor(ValueId, u32),
    /// A component of this invocation's part of a matrix of floats, as an f32. Which elements an
    /// invocation has, and in which order, is the driver's choice.
    Component {
        matrix: MatrixId,
        component: u32,
    },
    /// The larger one of two f32; of a NaN and a number, either.
    Larger(ValueId, ValueId),
    /// Two f32 as f16 in a word, the first one in its low half: rounded to nearest even, infinite
    /// beyond f16's range, a NaN for a NaN.
    Halves(ValueId, ValueId),
    /// The f16 in the low (0) or the high (1) half of a word, as an f32.
    Half(ValueId, u8),
}

impl Inst {
    /// Whether the value is the same wherever it is used, and has no [`Stmt::Def`]: constants,
    /// parameters, builtins.
    pub fn is_entry(&self) -> bool {
        matches!(self, Inst::ConstBool(_) | Inst::ConstInt(_) | Inst::ConstFloat(_) | Inst::Builtin(_) | Inst::Param(_))
    }

    /// The instruction with every value that it takes replaced by what `f` makes of it. Variables,
    /// pointers and shared arrays keep their numbers.
    pub(crate) fn map(&self, mut f: impl FnMut(ValueId) -> ValueId) -> Inst {
        match *self {
            Inst::ConstBool(_)
            | Inst::ConstInt(_)
            | Inst::ConstFloat(_)
            | Inst::Builtin(_)
            | Inst::Param(_)
            | Inst::Hole(_)
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

/// What an invocation knows of its place.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Builtin {
    /// Workgroup index along dimension 0, 1 or 2.
    Group(u8),
    /// Invocation index inside the workgroup along a dimension.
    Local(u8),
    /// Number of workgroups along a dimension.
    Groups(u8),
    SubgroupLane,
    SubgroupSize,
    SubgroupIndex,
}

/// Operations on one value. All are exact on every driver.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    Not,
    Abs,
    Floor,
    Ceil,
    Trunc,
    /// To the nearest integer, halves to even.
    Round,
    CountOneBits,
    /// Index of the highest set bit of an unsigned 32-bit integer, all ones for 0.
    HighestBit,
    /// A power of two (f32) by the adapter's own instruction: Vulkan promises 3 + 2|x| units in the
    /// last place, results below 2^-126 may be 0, and adapters differ. For what is rounded to 16
    /// bits afterwards; [`crate::math::exp2`] is exact elsewhere.
    FastExp2,
}

/// Operations on two values of one type. Float operations are correctly rounded and never
/// contracted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    /// Integers only, toward zero; undefined for a zero divisor. Floats: [`crate::math::div`].
    Div,
    /// Integers only; the sign of the dividend.
    Rem,
    And,
    Or,
    Xor,
    Shl,
    /// Arithmetic for signed types.
    Shr,
    Min,
    Max,
    /// High 32 bits of the product of two u32.
    MulHigh,
}

/// Comparisons; float ones are ordered (false for NaN), except `Ne`, which is true for NaN.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Atomic read-modify-write operations on 32 and 64-bit integers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Atomic {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
}

/// Reductions over a subgroup.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Subgroup {
    Add,
    Min,
    Max,
    /// The value of the lowest active lane.
    First,
}
