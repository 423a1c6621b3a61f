//! Replaces returns by a variable: whether the invocation is still running.

use crate::ir::*;
use crate::types::{ScalarType, Type};

const BOOL: Type = Type::scalar(ScalarType::Bool);

/// The kernel without [`Stmt::Return`]: the statements after a return are in an `If` on a variable.
/// If a return is uniform in a workgroup, so is the `If`.
pub(super) fn eliminate(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    if !returns(&kernel.body) {
        return kernel;
    }
    kernel.vars.push(VarInfo { ty: BOOL, len: 1 });
    let mut new = New { alive: kernel.vars.len() as VarId - 1, values: &mut kernel.values };
    let (yes, no) = (new.value(Inst::ConstBool(true)), new.value(Inst::ConstBool(false)));
    let mut body = vec![Stmt::SetVar { var: new.alive, index: None, value: yes }];
    body.extend(new.block(&kernel.body.0, no).0);
    kernel.body = Block(body);
    kernel
}

fn returns(block: &Block) -> bool {
    block.0.iter().any(|stmt| match stmt {
        Stmt::Return => true,
        Stmt::If { then, otherwise, .. } => returns(then) || returns(otherwise),
        Stmt::While { test, body, .. } => returns(test) || returns(body),
        _ => false,
    })
}

struct New<'k> {
    alive: VarId,
    values: &'k mut Vec<ValueInfo>,
}

impl New<'_> {
    fn value(&mut self, inst: Inst) -> ValueId {
        self.values.push(ValueInfo { ty: BOOL, inst });
        self.values.len() as ValueId - 1
    }

    fn alive(&mut self) -> ValueId {
        self.value(Inst::GetVar { var: self.alive, index: None })
    }

    /// The statements of a block; the statements after one that may return are in an `If`.
    fn block(&mut self, stmts: &[Stmt], no: ValueId) -> Block {
        let mut out = Vec::new();
        for (at, stmt) in stmts.iter().enumerate() {
            let may_return = match stmt {
                Stmt::Return => {
                    out.push(Stmt::SetVar { var: self.alive, index: None, value: no });
                    return Block(out);
                }
                Stmt::If { cond, then, otherwise } => {
                    let (then, otherwise) = (self.block(&then.0, no), self.block(&otherwise.0, no));
                    out.push(Stmt::If { cond: *cond, then, otherwise });
                    matches!(stmt, Stmt::If { then, otherwise, .. } if returns(then) || returns(otherwise))
                }
                Stmt::While { test, cond, body, unroll } if returns(body) => {
                    let mut test = test.clone();
                    let alive = self.alive();
                    let both = self.value(Inst::Binary(Binary::And, *cond, alive));
                    test.0.extend([Stmt::Def(alive), Stmt::Def(both)]);
                    let body = self.block(&body.0, no);
                    out.push(Stmt::While { test, cond: both, body, unroll: *unroll });
                    true
                }
                other => {
                    out.push(other.clone());
                    false
                }
            };
            if may_return && at + 1 < stmts.len() {
                let alive = self.alive();
                let then = self.block(&stmts[at + 1..], no);
                out.push(Stmt::Def(alive));
                out.push(Stmt::If { cond: alive, then, otherwise: Block::default() });
                return Block(out);
            }
        }
        Block(out)
    }
}
