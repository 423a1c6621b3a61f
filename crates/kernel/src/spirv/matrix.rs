//! Matrix registers as `SPV_KHR_cooperative_matrix`: each is a variable of the function.

use super::emitter::{Emitter, Id, TypeKey, aligned};
use crate::dtype::DType;
use crate::ir::{MatrixId, MatrixMemory, MatrixStmt, ValueId};
use crate::matrix_type::{MatrixLayout, MatrixType, MatrixUse};
use crate::types::{ScalarType, Type};
use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{self, Op, StorageClass};

impl Emitter<'_> {
    /// Makes a variable for each register, at the function's beginning.
    pub(super) fn declare_matrices(&mut self) {
        for &ty in &self.k.matrices {
            self.needs.matrix = true;
            self.needs.bf16_matrix |= ty.dtype == DType::BF16;
            let matrix = self.ty(TypeKey::Matrix(ty));
            let pointer = self.ty(TypeKey::Pointer(StorageClass::Function, matrix));
            let class = Operand::StorageClass(StorageClass::Function);
            let id = self.op_into(Op::Variable, pointer, vec![class]);
            self.matrices.push(id);
        }
    }

    /// The type of a matrix's elements.
    fn number(&mut self, dtype: DType) -> Id {
        match dtype {
            DType::F16 => self.b.type_float(16, None),
            DType::BF16 => self.b.type_float(16, Some(spirv::FPEncoding::BFloat16KHR)),
            DType::F32 => self.scalar(ScalarType::F32),
            DType::I8 => self.b.type_int(8, 1),
            DType::U8 => self.ty(TypeKey::U8),
            dtype => self.scalar(dtype.compute()),
        }
    }

    /// Where a component of this invocation's part of a matrix is, and its type.
    fn component_address(&mut self, matrix: MatrixId, component: u32) -> (Id, Id) {
        let number = self.number(self.k.matrices[matrix as usize].dtype);
        let pointer = self.ty(TypeKey::Pointer(StorageClass::Function, number));
        let index = self.constant(ScalarType::U32, component.into());
        (self.op(Op::AccessChain, pointer, &[self.matrices[matrix as usize], index]), number)
    }

    pub(super) fn component(&mut self, matrix: MatrixId, component: u32) -> Id {
        let (address, number) = self.component_address(matrix, component);
        let value = self.op(Op::Load, number, &[address]);
        if self.k.matrices[matrix as usize].dtype == DType::F32 {
            return value;
        }
        let f32 = self.scalar(ScalarType::F32);
        self.op(Op::FConvert, f32, &[value])
    }

    /// Two f32 as halves of a word.
    pub(super) fn packed_halves(&mut self, pair: [Id; 2], dtype: DType) -> Id {
        let singles = self.ty(TypeKey::Plain(Type { scalar: ScalarType::F32, lanes: 2 }));
        let pair = self.op(Op::CompositeConstruct, singles, &pair);
        let number = self.number(dtype);
        let halves = self.b.type_vector(number, 2);
        let converted = self.op(Op::FConvert, halves, &[pair]);
        let word = self.scalar(ScalarType::U32);
        self.op(Op::Bitcast, word, &[converted])
    }

    pub(super) fn matrix_type(&mut self, ty: MatrixType) -> Id {
        let component = self.number(ty.dtype);
        let part = match ty.part {
            MatrixUse::Left => spirv::CooperativeMatrixUse::MatrixAKHR,
            MatrixUse::Right => spirv::CooperativeMatrixUse::MatrixBKHR,
            MatrixUse::Accumulator => spirv::CooperativeMatrixUse::MatrixAccumulatorKHR,
        };
        let numbers = [spirv::Scope::Subgroup as u32, ty.rows, ty.columns, part as u32];
        let numbers = numbers.map(|n| self.constant(ScalarType::U32, n.into()));
        let id = self.b.id();
        let operands = [component].into_iter().chain(numbers).map(Operand::IdRef).collect();
        let declared = Instruction::new(Op::TypeCooperativeMatrixKHR, None, Some(id), operands);
        self.b.module_mut().types_global_values.push(declared);
        id
    }

    pub(super) fn subgroup_barrier(&mut self) {
        let subgroup = self.constant(ScalarType::U32, spirv::Scope::Subgroup as u64);
        self.barrier(subgroup);
    }

    fn get(&mut self, matrix: MatrixId) -> Id {
        let ty = self.ty(TypeKey::Matrix(self.k.matrices[matrix as usize]));
        self.op(Op::Load, ty, &[self.matrices[matrix as usize]])
    }

    fn set(&mut self, matrix: MatrixId, value: Id) {
        let variable = self.matrices[matrix as usize];
        self.effect(Op::Store, vec![Operand::IdRef(variable), Operand::IdRef(value)]);
    }

    /// The address of an element, and how it is accessed.
    fn matrix_address(&mut self, ty: MatrixType, memory: MatrixMemory, index: ValueId) -> (Id, Vec<Operand>) {
        match memory {
            MatrixMemory::Shared(shared) => {
                (self.shared_address(shared, index), self.workgroup_access().into_iter().collect())
            }
            MatrixMemory::Pointer(pointer) => {
                let word = ty.dtype.word();
                let (address, alignment, _) = self.element(pointer, index, Type::scalar(word.value()));
                (address, aligned(alignment).to_vec())
            }
        }
    }

    pub(super) fn matrix(&mut self, stmt: &MatrixStmt) {
        let types = &self.k.matrices;
        match *stmt {
            MatrixStmt::Fill { matrix, value } => {
                let ty = types[matrix as usize];
                let mut value = self.values[value as usize];
                if ty.dtype == DType::F16 {
                    let half = self.b.type_float(16, None);
                    value = self.op(Op::FConvert, half, &[value]);
                }
                let ty = self.ty(TypeKey::Matrix(ty));
                let filled = self.op(Op::CompositeConstruct, ty, &[value]);
                self.set(matrix, filled);
            }
            MatrixStmt::Load { matrix, from, index, stride, layout } => {
                let ty = types[matrix as usize];
                let (address, access) = self.matrix_address(ty, from, index);
                let (layout, stride) = (self.layout(layout), self.values[stride as usize]);
                let ty = self.ty(TypeKey::Matrix(ty));
                let operands = [address, layout, stride].map(Operand::IdRef).into_iter().chain(access).collect();
                let loaded = self.op_into(Op::CooperativeMatrixLoadKHR, ty, operands);
                self.set(matrix, loaded);
            }
            MatrixStmt::Store { matrix, to, index, stride, layout } => {
                let (address, access) = self.matrix_address(types[matrix as usize], to, index);
                let (layout, stride, stored) = (self.layout(layout), self.values[stride as usize], self.get(matrix));
                let operands = [address, stored, layout, stride].map(Operand::IdRef);
                self.effect(Op::CooperativeMatrixStoreKHR, operands.into_iter().chain(access).collect());
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
                let ty = self.ty(TypeKey::Matrix(ty));
                let operands = operands.into_iter().chain(flags).collect();
                let result = self.op_into(Op::CooperativeMatrixMulAddKHR, ty, operands);
                self.set(sum, result);
            }
            MatrixStmt::Add { to, from } => {
                let ty = types[to as usize];
                let code = if ty.dtype.is_float() { Op::FAdd } else { Op::IAdd };
                let operands = [self.get(to), self.get(from)];
                let ty = self.ty(TypeKey::Matrix(ty));
                let result = self.op(code, ty, &operands);
                self.set(to, result);
            }
            MatrixStmt::Scale { matrix, by } => {
                let ty = types[matrix as usize];
                let mut by = self.values[by as usize];
                if ty.dtype == DType::F16 {
                    let half = self.b.type_float(16, None);
                    by = self.op(Op::FConvert, half, &[by]);
                }
                let operands = [self.get(matrix), by];
                let ty = self.ty(TypeKey::Matrix(ty));
                let result = self.op(Op::MatrixTimesScalar, ty, &operands);
                self.set(matrix, result);
            }
            MatrixStmt::Convert { to, from } => {
                let value = self.get(from);
                let ty = self.ty(TypeKey::Matrix(types[to as usize]));
                let converted = self.op(Op::FConvert, ty, &[value]);
                self.set(to, converted);
            }
            MatrixStmt::SetComponent { matrix, component, value } => {
                let dtype = types[matrix as usize].dtype;
                let (address, number) = self.component_address(matrix, component);
                let mut value = self.values[value as usize];
                if dtype != DType::F32 {
                    value = self.op(Op::FConvert, number, &[value]);
                }
                self.effect(Op::Store, vec![Operand::IdRef(address), Operand::IdRef(value)]);
            }
        }
    }

    fn layout(&mut self, layout: MatrixLayout) -> Id {
        let layout = match layout {
            MatrixLayout::RowMajor => spirv::CooperativeMatrixLayout::RowMajorKHR,
            MatrixLayout::ColumnMajor => spirv::CooperativeMatrixLayout::ColumnMajorKHR,
        };
        self.constant(ScalarType::U32, layout as u64)
    }
}
