//! Control flow, which every rewriting copies.

use crate::builder::{Builder, Value};
use crate::ir::{Block, Stmt, ValueId};

/// Copies an `If`, a loop, a call, a barrier or a return; `value` and `block` translate its values
/// and blocks.
pub(super) fn rewrite<'b, L>(
    lowering: &mut L,
    b: &'b Builder,
    stmt: &Stmt,
    value: impl Fn(&mut L, ValueId) -> Value<'b>,
    block: impl Fn(&mut L, &Block),
) {
    match *stmt {
        Stmt::If { cond, ref then, ref otherwise } => {
            let cond = value(lowering, cond).id;
            let then = b.block(|| block(lowering, then));
            let otherwise = b.block(|| block(lowering, otherwise));
            b.stmt(Stmt::If { cond, then, otherwise });
        }
        Stmt::While { ref test, cond, ref body, unroll } => {
            let test = b.block(|| block(lowering, test));
            let cond = value(lowering, cond).id;
            let body = b.block(|| block(lowering, body));
            b.stmt(Stmt::While { test, cond, body, unroll });
        }
        // The rewritten body is no longer the library function, so the call is not recorded.
        Stmt::Call(ref call) => block(lowering, &call.body),
        Stmt::Barrier => b.barrier(),
        Stmt::SubgroupBarrier => b.subgroup_barrier(),
        Stmt::Return => b.return_(),
        Stmt::Matrix(_) => unreachable!("a kernel with matrix registers is not rewritten"),
        Stmt::Def(_) | Stmt::DefPointer(_) | Stmt::SetVar { .. } | Stmt::Store { .. } | Stmt::StoreShared { .. } => {
            unreachable!("{stmt:?} is no control flow")
        }
    }
}
