//! Writes a kernel as Rust expressions.
//!
//! A [`Value`] is a copyable handle on its [`Builder`]. Operators and methods on it append
//! instructions where they are called, so a value is usable only where its definition has run.
//!
//! `state` is the kernel so far; the other files are the handles, and the methods by which they
//! append to it.

mod arithmetic;
mod classification;
mod comparison;
mod constants;
mod control;
mod conversion;
mod declarations;
mod operand;
mod parameters;
mod pointer;
mod shared;
mod state;
mod value;
mod variable;

pub use operand::Operand;
pub use pointer::Pointer;
pub use shared::Shared;
pub use value::Value;
pub use variable::{LocalArray, Var};

use crate::ir::{Block, Call, Inst, Kernel, Stmt, ValueInfo};
use crate::types::Type;
use state::State;
use std::cell::RefCell;

/// Collects one kernel.
pub struct Builder {
    state: RefCell<State>,
}

impl Builder {
    /// A builder of a kernel with `workgroup_size` invocations in a workgroup, per dimension.
    pub fn new(name: impl Into<String>, workgroup_size: [u32; 3]) -> Builder {
        Builder { state: RefCell::new(State::new(name.into(), workgroup_size)) }
    }

    /// The finished kernel.
    pub fn finish(self) -> Kernel {
        self.state.into_inner().finish()
    }

    /// Appends a value that is evaluated at this point of the kernel.
    pub(crate) fn def(&self, ty: Type, inst: Inst) -> Value<'_> {
        let mut state = self.state.borrow_mut();
        let id = state.value(ValueInfo { ty, inst });
        state.blocks.push(Stmt::Def(id));
        Value { b: self, id, ty }
    }

    /// A value that is evaluated once, before the kernel's statements: a constant, a parameter or a
    /// builtin.
    fn entry(&self, ty: Type, inst: Inst) -> Value<'_> {
        let id = self.state.borrow_mut().entry_value(ValueInfo { ty, inst });
        Value { b: self, id, ty }
    }

    /// Appends a statement.
    pub(crate) fn stmt(&self, stmt: Stmt) {
        self.state.borrow_mut().blocks.push(stmt);
    }

    /// The statements that `body` appends, as a block of their own.
    pub(crate) fn block(&self, body: impl FnOnce()) -> Block {
        self.state.borrow_mut().blocks.open();
        body();
        self.state.borrow_mut().blocks.close()
    }

    /// Appends the body of a library function, which `write` computes from the arguments. The
    /// kernel records the call by its name in [`math::functions`](crate::math::functions), unless
    /// the call is inside another function's body, or the body is a single statement.
    pub(crate) fn function<'b>(
        &'b self,
        name: &'static str,
        arguments: &[Value<'b>],
        write: impl FnOnce() -> Value<'b>,
    ) -> Value<'b> {
        let Some(start) = self.state.borrow_mut().begin_function() else { return write() };
        let result = write();
        let mut state = self.state.borrow_mut();
        let (values, vars, body) = state.end_function(start);
        if body.0.len() > 1 && values.contains(&result.id) {
            let arguments = arguments.iter().map(|argument| argument.id).collect();
            let call = Call { function: name, arguments, result: result.id, values, vars, body };
            state.blocks.push(Stmt::Call(Box::new(call)));
        } else {
            body.0.into_iter().for_each(|stmt| state.blocks.push(stmt));
        }
        result
    }

    /// The result of `check` on the kernel so far, which has no body yet.
    pub(crate) fn checked<R>(&self, check: impl FnOnce(&Kernel) -> R) -> R {
        check(&self.state.borrow().kernel)
    }

    /// Invocations of a workgroup.
    pub(crate) fn invocations(&self) -> u32 {
        self.state.borrow().kernel.workgroup_size.iter().product()
    }
}
