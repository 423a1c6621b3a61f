//! Types and constants of a module, each declared once.

use super::code::{Code, Id};
use super::type_key::TypeKey;
use crate::dtype::DType;
use crate::matrix_type::{MatrixType, MatrixUse};
use crate::types::{ScalarType, Type, Word};
use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{self, Decoration, Op, StorageClass};

impl Code {
    /// The id of a type.
    pub(super) fn ty(&mut self, key: TypeKey) -> Id {
        if let Some(&id) = self.types.get(&key) {
            return id;
        }
        let id = match key {
            TypeKey::Void => self.b.type_void(),
            TypeKey::U8 => {
                self.needs.i8_storage = true;
                self.b.type_int(8, 0)
            }
            TypeKey::U16 => {
                self.needs.f16_storage = true;
                self.b.type_int(16, 0)
            }
            TypeKey::Plain(Type { scalar, lanes: 1 }) => match scalar {
                ScalarType::Bool => self.b.type_bool(),
                ScalarType::I32 => self.b.type_int(32, 1),
                ScalarType::U32 => self.b.type_int(32, 0),
                ScalarType::I64 | ScalarType::U64 => {
                    self.needs.i64 = true;
                    self.b.type_int(64, u32::from(scalar == ScalarType::I64))
                }
                ScalarType::F32 => self.b.type_float(32, None),
                ScalarType::F64 => {
                    self.needs.f64 = true;
                    self.b.type_float(64, None)
                }
            },
            TypeKey::Plain(Type { scalar, lanes }) => {
                let element = self.scalar(scalar);
                self.b.type_vector(element, u32::from(lanes))
            }
            TypeKey::Buffer(word, lanes) => {
                let element = self.word(word, lanes);
                let array = self.b.id();
                let stride = word.bytes() * u32::from(lanes);
                let operands = vec![Operand::IdRef(element)];
                self.declare(Instruction::new(Op::TypeRuntimeArray, None, Some(array), operands));
                self.b.decorate(array, Decoration::ArrayStride, [Operand::LiteralBit32(stride)]);
                let block = self.block_struct(&[array], &[0]);
                self.ty(TypeKey::Pointer(StorageClass::PhysicalStorageBuffer, block))
            }
            TypeKey::Element(word, lanes) => {
                let element = self.word(word, lanes);
                self.ty(TypeKey::Pointer(StorageClass::PhysicalStorageBuffer, element))
            }
            TypeKey::Pointer(class, to) => self.b.type_pointer(None, class, to),
            TypeKey::Matrix(ty) => self.matrix_type(ty),
        };
        self.types.insert(key, id);
        id
    }

    pub(super) fn scalar(&mut self, scalar: ScalarType) -> Id {
        self.ty(TypeKey::Plain(Type::scalar(scalar)))
    }

    /// The type of a word in memory, or of `lanes` full words.
    pub(super) fn word(&mut self, word: Word, lanes: u8) -> Id {
        match word {
            Word::W8 => self.ty(TypeKey::U8),
            Word::W16 => self.ty(TypeKey::U16),
            Word::Full(scalar) => self.ty(TypeKey::Plain(Type { scalar, lanes })),
        }
    }

    pub(super) fn array(&mut self, element: Id, len: u32) -> Id {
        let len = self.u32(len);
        self.b.type_array(element, len)
    }

    fn matrix_type(&mut self, ty: MatrixType) -> Id {
        let component = self.matrix_element(ty.dtype);
        let part = match ty.part {
            MatrixUse::Left => spirv::CooperativeMatrixUse::MatrixAKHR,
            MatrixUse::Right => spirv::CooperativeMatrixUse::MatrixBKHR,
            MatrixUse::Accumulator => spirv::CooperativeMatrixUse::MatrixAccumulatorKHR,
        };
        let numbers = [spirv::Scope::Subgroup as u32, ty.rows, ty.columns, part as u32];
        let numbers = numbers.map(|n| self.u32(n));
        let id = self.b.id();
        let operands = [component].into_iter().chain(numbers).map(Operand::IdRef).collect();
        self.declare(Instruction::new(Op::TypeCooperativeMatrixKHR, None, Some(id), operands));
        id
    }

    /// The type of a matrix's elements.
    pub(super) fn matrix_element(&mut self, dtype: DType) -> Id {
        match dtype {
            DType::F16 => self.b.type_float(16, None),
            DType::BF16 => self.b.type_float(16, Some(spirv::FPEncoding::BFloat16KHR)),
            DType::F32 => self.scalar(ScalarType::F32),
            DType::I8 => self.b.type_int(8, 1),
            DType::U8 => self.ty(TypeKey::U8),
            dtype => self.scalar(dtype.compute()),
        }
    }

    /// A constant by its bits.
    pub(super) fn constant(&mut self, scalar: ScalarType, bits: u64) -> Id {
        let ty = self.scalar(scalar);
        match scalar {
            ScalarType::Bool if bits != 0 => self.b.constant_true(ty),
            ScalarType::Bool => self.b.constant_false(ty),
            s if s.bytes() == 8 => self.b.constant_bit64(ty, bits),
            _ => self.b.constant_bit32(ty, bits as u32),
        }
    }

    pub(super) fn u32(&mut self, value: u32) -> Id {
        self.constant(ScalarType::U32, value.into())
    }
}
