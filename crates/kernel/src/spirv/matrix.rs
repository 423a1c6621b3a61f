//! Matrix registers as `SPV_KHR_cooperative_matrix`: each is a variable of the function.

use super::code::{Id, aligned};
use super::emitter::Emitter;
use super::memory::Element;
use super::type_key::TypeKey;
use crate::dtype::DType;
use crate::ir::{MatrixId, MatrixMemory, MatrixStmt, ValueId};
use crate::matrix_type::{MatrixLayout, MatrixType};
use crate::types::{ScalarType, Type};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Op, StorageClass};

impl Emitter<'_> {
    /// Declares a variable for each register, at the function's beginning.
    pub(super) fn declare_matrices(&mut self) {
        for &ty in &self.k.matrices {
            self.code.needs.matrix = true;
            self.code.needs.bf16_matrix |= ty.dtype == DType::BF16;
            let matrix = self.code.ty(TypeKey::Matrix(ty));
            self.matrices.push(self.code.variable(matrix));
        }
    }

    /// The address of a component of this invocation, and its type.
    fn component_address(&mut self, matrix: MatrixId, component: u32) -> (Id, Id) {
        let number = self.code.matrix_element(self.k.matrices[matrix as usize].dtype);
        let pointer = self.code.ty(TypeKey::Pointer(StorageClass::Function, number));
        let index = self.code.u32(component);
        (self.code.op(Op::AccessChain, pointer, &[self.matrices[matrix as usize], index]), number)
    }

    pub(super) fn component(&mut self, matrix: MatrixId, component: u32) -> Id {
        let (address, number) = self.component_address(matrix, component);
        let value = self.code.op(Op::Load, number, &[address]);
        if self.k.matrices[matrix as usize].dtype == DType::F32 {
            return value;
        }
        let f32 = self.code.scalar(ScalarType::F32);
        self.code.op(Op::FConvert, f32, &[value])
    }

    fn get(&mut self, matrix: MatrixId) -> Id {
        let ty = self.code.ty(TypeKey::Matrix(self.k.matrices[matrix as usize]));
        self.code.op(Op::Load, ty, &[self.matrices[matrix as usize]])
    }

    fn set(&mut self, matrix: MatrixId, value: Id) {
        let variable = self.matrices[matrix as usize];
        self.code.effect(Op::Store, vec![Operand::IdRef(variable), Operand::IdRef(value)]);
    }

    /// The address of an element, and the memory operands of accesses to it.
    fn matrix_address(&mut self, ty: MatrixType, memory: MatrixMemory, index: ValueId) -> (Id, Vec<Operand>) {
        match memory {
            MatrixMemory::Shared(shared) => {
                (self.shared_address(shared, index), self.code.workgroup_access().into_iter().collect())
            }
            MatrixMemory::Pointer(pointer) => {
                let word = ty.dtype.word();
                let Element { address, alignment, .. } = self.element(pointer, index, Type::scalar(word.value()));
                (address, aligned(alignment).to_vec())
            }
        }
    }

    pub(super) fn matrix(&mut self, stmt: &MatrixStmt) {
        let types = &self.k.matrices;
        match *stmt {
            MatrixStmt::Fill { matrix, value } => {
                let ty = types[matrix as usize];
                let mut value = self.v(value);
                if ty.dtype == DType::F16 {
                    let half = self.code.b.type_float(16, None);
                    value = self.code.op(Op::FConvert, half, &[value]);
                }
                let ty = self.code.ty(TypeKey::Matrix(ty));
                let filled = self.code.op(Op::CompositeConstruct, ty, &[value]);
                self.set(matrix, filled);
            }
            MatrixStmt::Load { matrix, from, index, stride, layout } => {
                let ty = types[matrix as usize];
                let (address, access) = self.matrix_address(ty, from, index);
                let (layout, stride) = (self.layout(layout), self.v(stride));
                let ty = self.code.ty(TypeKey::Matrix(ty));
                let operands = [address, layout, stride].map(Operand::IdRef).into_iter().chain(access).collect();
                let loaded = self.code.op_into(Op::CooperativeMatrixLoadKHR, ty, operands);
                self.set(matrix, loaded);
            }
            MatrixStmt::Store { matrix, to, index, stride, layout } => {
                let (address, access) = self.matrix_address(types[matrix as usize], to, index);
                let (layout, stride, stored) = (self.layout(layout), self.v(stride), self.get(matrix));
                let operands = [address, stored, layout, stride].map(Operand::IdRef);
                self.code.effect(Op::CooperativeMatrixStoreKHR, operands.into_iter().chain(access).collect());
            }
            MatrixStmt::MultiplyAdd { sum, left, right } => {
                use spirv::CooperativeMatrixOperands as Signed;
                let signed = |id: MatrixId, flag: Signed| {
                    let signed = matches!(types[id as usize].dtype, DType::I8 | DType::I32);
                    if signed { flag } else { Signed::NONE_KHR }
                };
                let flags = signed(left, Signed::MATRIX_A_SIGNED_COMPONENTS_KHR)
                    | signed(right, Signed::MATRIX_B_SIGNED_COMPONENTS_KHR)
                    | signed(sum, Signed::MATRIX_C_SIGNED_COMPONENTS_KHR)
                    | signed(sum, Signed::MATRIX_RESULT_SIGNED_COMPONENTS_KHR);
                let product = [left, right, sum].map(|id| types[id as usize]);
                if !self.products.contains(&product) {
                    self.products.push(product);
                }
                let ty = types[sum as usize];
                let operands = [left, right, sum].map(|id| Operand::IdRef(self.get(id)));
                let flags = (!flags.is_empty()).then_some(Operand::CooperativeMatrixOperands(flags));
                let ty = self.code.ty(TypeKey::Matrix(ty));
                let operands = operands.into_iter().chain(flags).collect();
                let result = self.code.op_into(Op::CooperativeMatrixMulAddKHR, ty, operands);
                self.set(sum, result);
            }
            MatrixStmt::Add { to, from } => {
                let ty = types[to as usize];
                let code = if ty.dtype.is_float() { Op::FAdd } else { Op::IAdd };
                let operands = [self.get(to), self.get(from)];
                let ty = self.code.ty(TypeKey::Matrix(ty));
                let result = self.code.op(code, ty, &operands);
                self.set(to, result);
            }
            MatrixStmt::Scale { matrix, by } => {
                let ty = types[matrix as usize];
                let mut by = self.v(by);
                if ty.dtype == DType::F16 {
                    let half = self.code.b.type_float(16, None);
                    by = self.code.op(Op::FConvert, half, &[by]);
                }
                let operands = [self.get(matrix), by];
                let ty = self.code.ty(TypeKey::Matrix(ty));
                let result = self.code.op(Op::MatrixTimesScalar, ty, &operands);
                self.set(matrix, result);
            }
            MatrixStmt::Convert { to, from } => {
                let value = self.get(from);
                let ty = self.code.ty(TypeKey::Matrix(types[to as usize]));
                let converted = self.code.op(Op::FConvert, ty, &[value]);
                self.set(to, converted);
            }
            MatrixStmt::SetComponent { matrix, component, value } => {
                let dtype = types[matrix as usize].dtype;
                let (address, number) = self.component_address(matrix, component);
                let mut value = self.v(value);
                if dtype != DType::F32 {
                    value = self.code.op(Op::FConvert, number, &[value]);
                }
                self.code.effect(Op::Store, vec![Operand::IdRef(address), Operand::IdRef(value)]);
            }
        }
    }

    fn layout(&mut self, layout: MatrixLayout) -> Id {
        let layout = match layout {
            MatrixLayout::RowMajor => spirv::CooperativeMatrixLayout::RowMajorKHR,
            MatrixLayout::ColumnMajor => spirv::CooperativeMatrixLayout::ColumnMajorKHR,
        };
        self.code.u32(layout as u32)
    }
}
