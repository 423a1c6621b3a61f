//! Statements.

use super::{MatrixId, PointerId, SharedId, ValueId, VarId};
use crate::matrix_type::MatrixLayout;
use std::ops::Range;

/// Statements in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block(pub Vec<Stmt>);

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Stmt {
    /// Evaluates a value here.
    Def(ValueId),
    /// Evaluates a pointer that is not a parameter here.
    DefPointer(PointerId),
    SetVar {
        var: VarId,
        index: Option<ValueId>,
        value: ValueId,
    },
    /// Writes element `index` of a tensor. A vector value writes `lanes` elements from
    /// `index * lanes` on.
    Store {
        pointer: PointerId,
        index: ValueId,
        value: ValueId,
    },
    /// Writes element `index` of a shared array, or only lane `lane` (u32) of the vector there.
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
    /// A loop: runs `test`, ends if `cond` is false, runs `body`, repeats.
    While {
        test: Block,
        cond: ValueId,
        body: Block,
        unroll: bool,
    },
    /// Waits for the workgroup; earlier writes to shared memory are visible afterwards.
    Barrier,
    /// Waits for the subgroup; its earlier writes to shared memory are visible to it afterwards.
    SubgroupBarrier,
    /// A call of a library function. It is equivalent to the statements of its body.
    Call(Box<Call>),
    /// An operation of a subgroup on its matrix registers. Every invocation of the subgroup
    /// executes it, with the same operands.
    Matrix(MatrixStmt),
    /// Ends the invocation. Allowed at the outermost level, and inside an `If` without barriers.
    Return,
}

/// A call of a library function by its name, with the function's body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Its name in [`math::functions`](crate::math::functions).
    pub function: &'static str,
    /// The arguments.
    pub arguments: Vec<ValueId>,
    /// The result: one of `values`.
    pub result: ValueId,
    /// The values that the call defines. Later statements may use constants among them.
    pub values: Range<ValueId>,
    /// The variables that the call declares.
    pub vars: Range<VarId>,
    /// The body's statements, whose definitions stay visible after the call.
    pub body: Block,
}

/// A statement on matrix registers. Indices and strides (u32) count elements of the shared array as
/// declared, or elements of the tensor, whose dtype is the matrix's.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatrixStmt {
    /// Sets every element of an accumulator to a value.
    Fill {
        matrix: MatrixId,
        value: ValueId,
    },
    /// `stride` is the distance of neighbouring rows, or of neighbouring columns in a column-major
    /// layout.
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
    /// `sum += left * right`. The driver chooses the order and the precision of the additions.
    MultiplyAdd {
        sum: MatrixId,
        left: MatrixId,
        right: MatrixId,
    },
    /// `to += from`, element by element, for accumulators of one type.
    Add {
        to: MatrixId,
        from: MatrixId,
    },
    /// Multiplies every element of a float accumulator by a value.
    Scale {
        matrix: MatrixId,
        by: ValueId,
    },
    /// Converts the elements to another accumulator's dtype.
    Convert {
        to: MatrixId,
        from: MatrixId,
    },
    /// Each invocation sets one of its components to an f32 of its own, rounded to the matrix's
    /// dtype.
    SetComponent {
        matrix: MatrixId,
        component: u32,
        value: ValueId,
    },
}

/// The memory that a matrix is loaded from or stored to.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum MatrixMemory {
    /// A shared array of 4-byte numbers or of vectors of them; the matrix's elements are packed
    /// into its bytes.
    Shared(SharedId),
    /// A tensor.
    Pointer(PointerId),
}
