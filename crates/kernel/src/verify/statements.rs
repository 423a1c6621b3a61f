//! Statements and blocks.

use super::scope::Scope;
use super::verifier::{BOOL, Check, Verifier, WORDS, at, check, moves};
use crate::ir::*;
use crate::types::Type;

impl Verifier<'_> {
    /// Checks the statements of a block, whose definitions stay visible after it: the caller closes
    /// the scope.
    fn open(&mut self, block: &Block) -> Check {
        block.0.iter().try_for_each(|stmt| self.statement(stmt))
    }

    /// Checks a block whose definitions end with it.
    pub(super) fn block(&mut self, block: &Block) -> Check {
        let mark = self.scope.as_ref().map(Scope::mark);
        self.open(block)?;
        if let (Some(scope), Some(mark)) = (&mut self.scope, mark) {
            scope.close(mark);
        }
        Ok(())
    }

    pub(super) fn statement(&mut self, stmt: &Stmt) -> Check {
        match *stmt {
            Stmt::Def(id) => {
                check((id as usize) < self.k.values.len(), || format!("there is no value %{id}"))?;
                let twice = self.scope.as_ref().is_some_and(|scope| scope.has_value(id));
                check(!twice, || format!("%{id} is defined twice"))?;
                self.value(id).map_err(|what| at(id, &what))?;
                if let Some(scope) = &mut self.scope {
                    scope.define_value(id);
                }
                Ok(())
            }
            Stmt::DefPointer(id) => {
                let info = self.k.pointers.get(id as usize).ok_or_else(|| format!("there is no pointer {id}"))?;
                match info.base {
                    PointerBase::Param(_) => {
                        return Err(format!("pointer {id} is a parameter and is moved by nothing"));
                    }
                    PointerBase::Offset(base, elements) => {
                        self.pointer(base)?;
                        let by = self.used(elements)?;
                        let fits = by.lanes == 1 && by.scalar.is_integer() && by.scalar.bytes() == 8;
                        check(fits, || format!("a pointer is moved by a u64 or an i64, not by {by}"))?;
                    }
                    PointerBase::Address(address) => {
                        let ty = self.used(address)?;
                        check(ty == WORDS, || format!("an address is two u32, not {ty}"))?;
                    }
                }
                if let Some(scope) = &mut self.scope {
                    scope.define_pointer(id);
                }
                Ok(())
            }
            Stmt::SetVar { var, index, value } => {
                let (to, from) = (self.variable(var, index)?, self.used(value)?);
                check(to == from, || format!("a variable of type {to} takes no {from}"))
            }
            Stmt::Store { pointer, index, value } => {
                let (word, ty) = (self.writable(pointer)?, self.used(value)?);
                self.index(index)?;
                check(moves(word, ty), || format!("memory of {} takes no {ty}", word.name()))
            }
            Stmt::StoreShared { shared, index, lane, value } => {
                let (to, from) = (self.shared(shared, index)?, self.used(value)?);
                let to = match lane {
                    Some(lane) => {
                        self.index(lane)?;
                        check(to.lanes > 1, || format!("an element of type {to} has no lanes"))?;
                        Type::scalar(to.scalar)
                    }
                    None => to,
                };
                check(to == from, || format!("an array of {to} takes no {from}"))
            }
            Stmt::If { cond, ref then, ref otherwise } => {
                let ty = self.used(cond)?;
                check(ty == BOOL, || format!("if takes a bool, not {ty}"))?;
                self.block(then)?;
                self.block(otherwise)
            }
            Stmt::While { ref test, cond, ref body, unroll: _ } => {
                let ends = test.0.iter().any(|stmt| matches!(stmt, Stmt::Return));
                check(!ends, || "a loop returns before its while".to_owned())?;
                // The test runs at least once, and before the body: its definitions are visible in
                // the body and after the loop.
                self.open(test)?;
                let ty = self.used(cond)?;
                check(ty == BOOL, || format!("while takes a bool, not {ty}"))?;
                self.block(body)
            }
            Stmt::Call(ref call) => self.open(&call.body),
            Stmt::Matrix(ref stmt) => self.matrix_statement(stmt),
            Stmt::Barrier | Stmt::SubgroupBarrier | Stmt::Return => Ok(()),
        }
    }
}
