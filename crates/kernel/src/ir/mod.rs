//! The kernel as data: declarations, values in SSA form, and structured control flow.

mod declarations;
mod instructions;
mod kernel;
mod operations;
mod statements;

pub use declarations::{Param, ParamKind, PointerBase, PointerInfo, SharedInfo, ValueInfo, VarInfo, param_offsets};
pub use instructions::Inst;
pub use kernel::{Kernel, MatrixId, PointerId, SharedId, ValueId, VarId};
pub use operations::{Atomic, Binary, Builtin, Compare, Subgroup, Unary};
pub use statements::{Block, Call, MatrixMemory, MatrixStmt, Stmt};
