//! Which parameters only one of a kernel's branches uses.

use crate::ir::*;

/// The parameters that one branch uses alone, for each statement of the kernel's body: none unless
/// there are several such branches.
pub(super) fn of_branches(k: &Kernel) -> Vec<Vec<u32>> {
    let statements = &k.body.0;
    let mut none = vec![Vec::new(); statements.len()];
    // Statements on matrices are not looked into.
    if !k.matrices.is_empty() {
        return none;
    }
    let mut owners = vec![Owner::None; k.params.len()];
    for (at, stmt) in statements.iter().enumerate() {
        match stmt {
            Stmt::If { cond, then, otherwise } if otherwise.0.is_empty() => {
                let mut outside = Uses { k, owners: &mut owners, owner: Owner::Several };
                outside.value(*cond);
                Uses { k, owners: &mut owners, owner: Owner::Branch(at) }.block(then);
            }
            _ => Uses { k, owners: &mut owners, owner: Owner::Several }.stmt(stmt),
        }
    }
    let mut all = none.clone();
    for (param, owner) in (0..).zip(owners) {
        if let Owner::Branch(at) = owner {
            all[at].push(param);
        }
    }
    if all.iter().filter(|params| !params.is_empty()).count() > 1 {
        none = all;
    }
    none
}

/// What uses a parameter.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Owner {
    None,
    /// The branch of this statement of the kernel's body.
    Branch(usize),
    Several,
}

/// Notes the uses of parameters.
struct Uses<'k, 'o> {
    k: &'k Kernel,
    owners: &'o mut [Owner],
    /// What uses them.
    owner: Owner,
}

impl Uses<'_, '_> {
    fn param(&mut self, param: u32) {
        let owner = &mut self.owners[param as usize];
        *owner = if *owner == Owner::None || *owner == self.owner { self.owner } else { Owner::Several };
    }

    fn value(&mut self, id: ValueId) {
        if let Inst::Param(param) = self.k.values[id as usize].inst {
            self.param(param);
        }
    }

    fn pointer(&mut self, id: PointerId) {
        match self.k.pointers[id as usize].base {
            PointerBase::Param(param) => self.param(param),
            PointerBase::Offset(base, by) => {
                self.pointer(base);
                self.value(by);
            }
            PointerBase::Address(address) => self.value(address),
        }
    }

    fn block(&mut self, block: &Block) {
        block.0.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Def(id) => {
                let inst = &self.k.values[*id as usize].inst;
                match *inst {
                    Inst::Load { pointer, .. }
                    | Inst::Atomic { pointer, .. }
                    | Inst::CompareExchange { pointer, .. }
                    | Inst::Address(pointer) => self.pointer(pointer),
                    _ => {}
                }
                inst.map(|operand| {
                    self.value(operand);
                    operand
                });
            }
            Stmt::DefPointer(id) => self.pointer(*id),
            Stmt::SetVar { index, value, .. } => {
                index.iter().for_each(|&index| self.value(index));
                self.value(*value);
            }
            Stmt::Store { pointer, index, value } => {
                self.pointer(*pointer);
                [*index, *value].into_iter().for_each(|id| self.value(id));
            }
            Stmt::StoreShared { index, lane, value, .. } => {
                [*index, *value].into_iter().chain(*lane).for_each(|id| self.value(id));
            }
            Stmt::If { cond, then, otherwise } => {
                self.value(*cond);
                [then, otherwise].into_iter().for_each(|block| self.block(block));
            }
            Stmt::While { test, cond, body, .. } => {
                self.value(*cond);
                [test, body].into_iter().for_each(|block| self.block(block));
            }
            Stmt::Call(call) => self.block(&call.body),
            Stmt::Barrier | Stmt::SubgroupBarrier | Stmt::Matrix(_) | Stmt::Return => {}
        }
    }
}
