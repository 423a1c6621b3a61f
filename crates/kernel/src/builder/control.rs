//! Control flow and barriers.

use super::{Builder, Operand, Value};
use crate::ir::Stmt;
use crate::types::{ScalarType, Type};

impl Builder {
    /// Runs `then` where `cond` is true.
    pub fn if_(&self, cond: Value<'_>, then: impl FnOnce()) {
        self.if_else(cond, then, || {});
    }

    /// Runs `then` where `cond` is true and `otherwise` elsewhere.
    pub fn if_else(&self, cond: Value<'_>, then: impl FnOnce(), otherwise: impl FnOnce()) {
        assert_eq!(cond.ty, Type::scalar(ScalarType::Bool));
        let then = self.block(then);
        let otherwise = self.block(otherwise);
        self.stmt(Stmt::If { cond: cond.id, then, otherwise });
    }

    /// Runs `body` while `test` yields true.
    pub fn while_<'b>(&'b self, test: impl FnOnce() -> Value<'b>, body: impl FnOnce()) {
        let mut cond = None;
        let test = self.block(|| cond = Some(test().id));
        let body = self.block(body);
        if let Some(cond) = cond {
            self.stmt(Stmt::While { test, cond, body, unroll: false });
        }
    }

    /// Runs `body` for `i = start, start + step, ..` while `i < end`. All three are integers of
    /// `end`'s type.
    pub fn for_<'b>(
        &'b self,
        start: impl Operand<'b>,
        end: Value<'b>,
        step: impl Operand<'b>,
        body: impl FnOnce(Value<'b>),
    ) {
        let scalar = end.ty.scalar;
        let step = step.value(self, scalar);
        let i = self.var(start.value(self, scalar));
        self.while_(
            || i.get().lt(end),
            || {
                let now = i.get();
                body(now);
                i.set(now + step);
            },
        );
    }

    /// Ends this invocation. Not allowed where another invocation of the workgroup may still reach
    /// a barrier.
    pub fn return_(&self) {
        self.stmt(Stmt::Return);
    }

    /// Waits for the workgroup; its earlier writes to shared memory are visible afterwards.
    pub fn barrier(&self) {
        self.stmt(Stmt::Barrier);
    }

    /// Waits for the subgroup; its earlier writes to shared memory are visible to it afterwards.
    pub fn subgroup_barrier(&self) {
        self.stmt(Stmt::SubgroupBarrier);
    }
}
