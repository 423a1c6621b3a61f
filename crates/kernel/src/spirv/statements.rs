//! Emission of statements and of control flow.

use super::code::Id;
use super::emitter::Emitter;
use crate::ir::*;
use rspirv::spirv::{LoopControl, Scope, SelectionControl};

impl Emitter<'_> {
    /// Emits the kernel's body.
    pub(super) fn body(&mut self) {
        let of_branches = std::mem::take(&mut self.of_branches);
        self.terminated = false;
        for (at, stmt) in self.k.body.0.iter().enumerate() {
            if self.terminated {
                return;
            }
            self.entering = of_branches.get(at).cloned().unwrap_or_default();
            self.statement(stmt);
        }
    }

    /// Emits a block's statements up to the first return.
    pub(super) fn block(&mut self, block: &Block) {
        self.terminated = false;
        for stmt in &block.0 {
            if self.terminated {
                return;
            }
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        let replaced = self.make_operands(stmt);
        match *stmt {
            Stmt::Def(id) => self.values[id as usize] = self.value(id),
            Stmt::DefPointer(id) => self.moved_pointer(id),
            Stmt::SetVar { var, index, value } => self.store_var(var, index, value),
            Stmt::Store { pointer, index, value } => self.store_element(pointer, index, value),
            Stmt::StoreShared { shared, index, lane, value } => self.store_shared(shared, index, lane, value),
            Stmt::If { cond, ref then, ref otherwise } => self.branch(cond, then, otherwise),
            Stmt::While { ref test, cond, ref body, unroll } => self.repeat(test, cond, body, unroll),
            Stmt::Call(ref call) => call.body.0.iter().for_each(|stmt| self.statement(stmt)),
            Stmt::Barrier => self.code.barrier(Scope::Workgroup),
            Stmt::SubgroupBarrier => self.code.barrier(Scope::Subgroup),
            Stmt::Matrix(ref stmt) => self.matrix(stmt),
            Stmt::Return => {
                self.code.b.ret().expect("a block is open");
                self.terminated = true;
            }
        }
        self.restore(replaced);
    }

    fn branch(&mut self, cond: ValueId, then: &Block, otherwise: &Block) {
        let (yes, merge) = (self.code.b.id(), self.code.b.id());
        let no = if otherwise.0.is_empty() { merge } else { self.code.b.id() };
        let cond = self.v(cond);
        self.code.b.selection_merge(merge, SelectionControl::NONE).expect("a block is open");
        self.code.b.branch_conditional(cond, yes, no, []).expect("a block is open");
        for (label, block) in [(yes, then), (no, otherwise)] {
            if label == merge {
                continue;
            }
            self.open(label);
            self.load_late_params();
            self.block(block);
            if !self.terminated {
                self.jump(merge);
            }
        }
        self.open(merge);
    }

    fn repeat(&mut self, test: &Block, cond: ValueId, body: &Block, unroll: bool) {
        let [header, first, inside, next, merge] = std::array::from_fn(|_| self.code.b.id());
        self.jump(header);
        self.open(header);
        let control = if unroll { LoopControl::UNROLL } else { LoopControl::NONE };
        self.code.b.loop_merge(merge, next, control, []).expect("a block is open");
        self.jump(first);
        self.open(first);
        let outer = self.code.late_zero;
        self.code.late_zero = if self.makes_constants { self.unknown_zero } else { None };
        self.block(test);
        let cond = self.v(cond);
        self.code.b.branch_conditional(cond, inside, merge, []).expect("a block is open");
        self.open(inside);
        let replaced = self.reload_params(body);
        self.block(body);
        self.restore(replaced);
        self.code.late_zero = outer;
        if !self.terminated {
            self.jump(next);
        }
        self.open(next);
        self.jump(header);
        self.open(merge);
    }

    /// Begins the block of a label.
    fn open(&mut self, label: Id) {
        self.code.b.begin_block(Some(label)).expect("the last block ended");
        self.terminated = false;
    }

    /// Ends the open block with a branch.
    fn jump(&mut self, label: Id) {
        self.code.b.branch(label).expect("a block is open");
    }
}
