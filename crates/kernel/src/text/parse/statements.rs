//! Parses statements: stores, control flow, and operations on matrices.

use super::{Parser, Place, Read};
use crate::ir::*;
use crate::text::Wrong;
use crate::text::lex::Kind;
use crate::text::names::*;
use crate::types::ScalarType;

impl Parser<'_, '_> {
    pub(super) fn store(&mut self, at: usize) -> Read<()> {
        match self.place()? {
            Place::Pointer(pointer, word, index) => {
                let value = self.next_value(Some(word.value()))?.id;
                self.stmt(at, Stmt::Store { pointer, index: index.id, value })
            }
            Place::Var(var, ty, index) => {
                let value = self.next_value(Some(ty.scalar))?.id;
                self.stmt(at, Stmt::SetVar { var, index: index.map(|index| index.id), value })
            }
            Place::Shared(shared, ty, index) => {
                let lane = match self.tokens.take_if(Kind::Sign, ".") {
                    true => Some(self.value(Some(ScalarType::U32))?.id),
                    false => None,
                };
                let value = self.next_value(Some(ty.scalar))?.id;
                self.stmt(at, Stmt::StoreShared { shared, index: index.id, lane, value })
            }
        }
    }

    pub(super) fn branch(&mut self) -> Read<()> {
        let cond = self.condition("if")?.id;
        let then = self.collected(Self::block)?;
        let otherwise = match self.tokens.take_if(Kind::Word, "else") {
            true => self.collected(Self::block)?,
            false => Block::default(),
        };
        self.b.stmt(Stmt::If { cond, then, otherwise });
        Ok(())
    }

    pub(super) fn repeat(&mut self) -> Read<()> {
        let unroll = self.tokens.take_if(Kind::Word, "unroll");
        let test = self.collected(Self::open)?;
        self.tokens.word("while")?;
        let cond = self.condition("while")?.id;
        // The definitions of the test are visible after the loop.
        let before = self.opened.len();
        let body = self.collected(|parser| {
            parser.statements()?;
            parser.close(before)
        })?;
        self.b.stmt(Stmt::While { test, cond, body, unroll });
        Ok(())
    }

    pub(super) fn matrix_statement(&mut self) -> Read<()> {
        let token = self.tokens.peek();
        self.tokens.next += 1;
        let stmt = match token.text {
            "matrix_fill" => {
                let (matrix, ty) = self.matrix()?;
                MatrixStmt::Fill { matrix, value: self.next_value(Some(ty.dtype.compute()))?.id }
            }
            "matrix_load" | "matrix_store" => {
                let (matrix, _) = self.matrix()?;
                self.tokens.comma()?;
                let place = self.tokens.at();
                let (memory, index) = match self.place()? {
                    Place::Pointer(pointer, _, index) => (MatrixMemory::Pointer(pointer), index.id),
                    Place::Shared(shared, _, index) => (MatrixMemory::Shared(shared), index.id),
                    Place::Var(..) => {
                        return Err(Wrong::new(place, "a matrix is in a tensor or in a workgroup's array"));
                    }
                };
                let stride = self.next_value(Some(ScalarType::U32))?.id;
                self.tokens.comma()?;
                let layout = self.tokens.word_of("row_major or column_major", |word| thing(LAYOUTS, word))?;
                match token.text {
                    "matrix_load" => MatrixStmt::Load { matrix, from: memory, index, stride, layout },
                    _ => MatrixStmt::Store { matrix, to: memory, index, stride, layout },
                }
            }
            "matrix_multiply_add" => {
                let sum = self.matrix()?.0;
                self.tokens.comma()?;
                let left = self.matrix()?.0;
                self.tokens.comma()?;
                MatrixStmt::MultiplyAdd { sum, left, right: self.matrix()?.0 }
            }
            "matrix_add" | "matrix_convert" => {
                let to = self.matrix()?.0;
                self.tokens.comma()?;
                let from = self.matrix()?.0;
                if token.text == "matrix_add" { MatrixStmt::Add { to, from } } else { MatrixStmt::Convert { to, from } }
            }
            "matrix_scale" => {
                let matrix = self.matrix()?.0;
                MatrixStmt::Scale { matrix, by: self.next_value(Some(ScalarType::F32))?.id }
            }
            "matrix_set" => {
                let matrix = self.matrix()?.0;
                self.tokens.comma()?;
                let component = self.tokens.count()?;
                let value = self.next_value(Some(ScalarType::F32))?.id;
                MatrixStmt::SetComponent { matrix, component, value }
            }
            _ => {
                self.tokens.next -= 1;
                return self.tokens.wanted("a statement");
            }
        };
        self.stmt(token.at, Stmt::Matrix(stmt))
    }
}
