//! Statements on matrix registers.

use super::verifier::{Check, Verifier, check};
use crate::ir::{MatrixId, MatrixMemory, MatrixStmt, ValueId};
use crate::matrix_type::{MatrixType, MatrixUse};
use crate::types::{ScalarType, Type};

impl Verifier<'_> {
    pub(super) fn matrix(&self, id: MatrixId) -> Result<MatrixType, String> {
        self.k.matrices.get(id as usize).copied().ok_or_else(|| format!("there is no matrix {id}"))
    }

    fn accumulator(&self, id: MatrixId) -> Result<MatrixType, String> {
        let ty = self.matrix(id)?;
        check(ty.part == MatrixUse::Accumulator, || format!("a matrix {ty} is used as an accumulator"))?;
        Ok(ty)
    }

    /// Checks the memory operands of a matrix: memory, index and stride.
    fn matrix_memory(&self, ty: MatrixType, memory: MatrixMemory, operands: [ValueId; 2]) -> Check {
        for operand in operands {
            let index = self.used(operand)?;
            let fits = index == Type::scalar(ScalarType::U32);
            check(fits, || format!("a matrix's place and stride are of type u32, not {index}"))?;
        }
        match memory {
            MatrixMemory::Shared(id) => {
                let array = self.k.shared.get(id as usize).ok_or_else(|| format!("there is no shared array {id}"))?;
                let fits = array.ty.scalar.bytes() == 4;
                check(fits, || format!("a matrix {ty} in an array of {}", array.ty))
            }
            MatrixMemory::Pointer(id) => {
                let word = self.pointer(id)?;
                check(word == ty.dtype.word(), || format!("a matrix {ty} in memory of {}", word.name()))
            }
        }
    }

    pub(super) fn matrix_statement(&self, stmt: &MatrixStmt) -> Check {
        let float = |ty: MatrixType| ty.dtype.is_float();
        match *stmt {
            MatrixStmt::Fill { matrix, value } => {
                let (ty, value) = (self.accumulator(matrix)?, self.used(value)?);
                check(value == Type::scalar(ty.dtype.compute()), || format!("a matrix {ty} is filled with {value}"))
            }
            MatrixStmt::Load { matrix, from: memory, index, stride, layout: _ } => {
                self.matrix_memory(self.matrix(matrix)?, memory, [index, stride])
            }
            MatrixStmt::Store { matrix, to: memory, index, stride, layout: _ } => {
                if let MatrixMemory::Pointer(pointer) = memory {
                    self.writable(pointer)?;
                }
                self.matrix_memory(self.matrix(matrix)?, memory, [index, stride])
            }
            MatrixStmt::MultiplyAdd { sum, left, right } => {
                let (sum, left, right) = (self.accumulator(sum)?, self.matrix(left)?, self.matrix(right)?);
                let parts = (left.part, right.part) == (MatrixUse::Left, MatrixUse::Right);
                let sizes = (left.rows, right.columns, left.columns) == (sum.rows, sum.columns, right.rows);
                let fits = parts && sizes && float(sum) == float(left) && float(sum) == float(right);
                check(fits, || format!("a product of {left} and {right} is added to {sum}"))
            }
            MatrixStmt::Add { to, from } => {
                let (to, from) = (self.accumulator(to)?, self.accumulator(from)?);
                check(to == from, || format!("{from} is added to {to}"))
            }
            MatrixStmt::Scale { matrix, by } => {
                let (ty, by) = (self.accumulator(matrix)?, self.used(by)?);
                check(float(ty) && by == Type::scalar(ScalarType::F32), || format!("{ty} is multiplied by {by}"))
            }
            MatrixStmt::Convert { to, from } => {
                let (to, from) = (self.accumulator(to)?, self.accumulator(from)?);
                let sizes = (to.rows, to.columns) == (from.rows, from.columns);
                let fits = sizes && float(to) && float(from) && to.dtype != from.dtype;
                check(fits, || format!("{from} is converted to {to}"))
            }
            MatrixStmt::SetComponent { matrix, component, value } => {
                let (ty, value) = (self.matrix(matrix)?, self.used(value)?);
                let fits = float(ty) && component < ty.len() && value == Type::scalar(ScalarType::F32);
                check(fits, || format!("component {component} of {ty} becomes {value}"))
            }
        }
    }
}
