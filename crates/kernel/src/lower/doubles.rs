//! Replaces 64-bit floats by 64-bit integers with the same bits, and [`Double`]'s software
//! arithmetic.

use super::control;
use super::double::Double;
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::ir::*;
use crate::types::{ScalarType, Type, Word};

/// Whether [`lower`] can rewrite the kernel: not if it has subgroup reductions of 64-bit floats.
pub(super) fn can_lower(kernel: &Kernel) -> bool {
    let by_subgroup =
        |value: &ValueInfo| is_double(value.ty) && matches!(value.inst, Inst::Subgroup(op, _) if op != Subgroup::First);
    kernel.matrices.is_empty() && !kernel.values.iter().any(by_subgroup)
}

/// Whether the kernel has 64-bit floats.
pub(super) fn uses_doubles(kernel: &Kernel) -> bool {
    kernel.values.iter().any(|value| is_double(value.ty))
        || kernel.pointers.iter().any(|pointer| pointer.word == Word::Full(ScalarType::F64))
        || kernel.params.iter().any(|param| param.kind == ParamKind::Scalar(ScalarType::F64))
}

/// The kernel without 64-bit floats.
pub(super) fn lower(kernel: &Kernel) -> Kernel {
    let b = Builder::new(kernel.name.clone(), kernel.workgroup_size);
    {
        let mut lowering = Lowering {
            b: &b,
            k: kernel,
            values: vec![None; kernel.values.len()],
            params: Vec::new(),
            first_var: 0,
            pointers: vec![0; kernel.pointers.len()],
        };
        lowering.declare();
        lowering.block(&kernel.body);
    }
    b.finish()
}

fn is_double(ty: Type) -> bool {
    ty.scalar == ScalarType::F64
}

/// The type of the values that replace values of a type.
fn lowered_type(ty: Type) -> Type {
    if is_double(ty) { Type { scalar: ScalarType::U64, ..ty } } else { ty }
}

fn lowered_word(word: Word) -> Word {
    if word == Word::Full(ScalarType::F64) { Word::Full(ScalarType::U64) } else { word }
}

struct Lowering<'b, 'k> {
    b: &'b Builder,
    k: &'k Kernel,
    values: Vec<Option<Value<'b>>>,
    /// The values of the number parameters.
    params: Vec<Option<Value<'b>>>,
    first_var: VarId,
    pointers: Vec<PointerId>,
}

impl<'b> Lowering<'b, '_> {
    fn declare(&mut self) {
        let (b, k) = (self.b, self.k);
        for param in &k.params {
            let value = match param.kind {
                ParamKind::Pointer { pointer, dtype, writable } => {
                    let dtype = if dtype == DType::F64 { DType::U64 } else { dtype };
                    self.pointers[pointer as usize] = b.param_pointer(&param.name, dtype, writable);
                    None
                }
                ParamKind::Scalar(scalar) => Some(b.param(&param.name, lowered_type(Type::scalar(scalar)).scalar)),
                ParamKind::Words => Some(b.param_words(&param.name)),
            };
            self.params.push(value);
        }
        let vars: Vec<VarInfo> = k.vars.iter().map(|&var| VarInfo { ty: lowered_type(var.ty), ..var }).collect();
        self.first_var = b.declare_vars(&vars);
        for &shared in &k.shared {
            // The ids stay, as everything is declared in the same order.
            b.declare_shared(SharedInfo { ty: lowered_type(shared.ty), ..shared });
        }
    }

    // ---- values

    fn value(&mut self, id: ValueId) -> Value<'b> {
        if let Some(value) = self.values[id as usize] {
            return value;
        }
        // Entry values have no definition among the statements.
        let ValueInfo { ty, ref inst } = self.k.values[id as usize];
        let value = match *inst {
            Inst::ConstFloat(bits) if is_double(ty) => self.b.int(ScalarType::U64, bits),
            Inst::ConstBool(x) => self.b.bool(x),
            Inst::ConstInt(bits) => self.b.int(ty.scalar, bits),
            Inst::ConstFloat(bits) => self.b.float_bits(ty.scalar, bits),
            Inst::Builtin(builtin) => self.b.builtin(builtin),
            Inst::Param(p) => self.params[p as usize].expect("a parameter that is used as a number is one"),
            _ => unreachable!("%{id} of kernel {} is used before its definition", self.k.name),
        };
        self.values[id as usize] = Some(value);
        value
    }

    fn ty(&self, id: ValueId) -> Type {
        self.k.values[id as usize].ty
    }

    /// The value of a 64-bit float.
    fn double(&mut self, id: ValueId) -> Double<'b> {
        Double::new(self.value(id))
    }

    fn define(&mut self, id: ValueId) {
        let ValueInfo { ty, ref inst } = self.k.values[id as usize];
        let value = match *inst {
            Inst::Compare(op, x, y) if is_double(self.ty(x)) => {
                let (x, y) = (self.double(x), self.double(y));
                match op {
                    Compare::Eq => x.equal(y),
                    Compare::Ne => !x.equal(y),
                    Compare::Lt => x.less(y),
                    Compare::Le => x.less_or_equal(y),
                    Compare::Gt => y.less(x),
                    Compare::Ge => y.less_or_equal(x),
                }
            }
            Inst::Cast(x) if is_double(self.ty(x)) => {
                let x = self.double(x);
                if ty.scalar == ScalarType::F32 { x.to_f32() } else { x.to_integer(ty.scalar) }
            }
            Inst::Cast(x) if is_double(ty) => {
                let x = self.value(x);
                if x.scalar() == ScalarType::F32 { Double::of_f32(x).bits } else { Double::of_integer(x).bits }
            }
            Inst::Bitcast(x) if is_double(ty) || is_double(self.ty(x)) => {
                self.value(x).bitcast(lowered_type(ty).scalar)
            }
            Inst::Unary(..) | Inst::Binary(..) | Inst::Fma(..) if is_double(ty) => self.computed(ty, inst),
            _ => {
                let mut inst = inst.map(|id| self.value(id).id);
                match &mut inst {
                    Inst::GetVar { var, .. } => *var += self.first_var,
                    Inst::Load { pointer, .. }
                    | Inst::Address(pointer)
                    | Inst::Atomic { pointer, .. }
                    | Inst::CompareExchange { pointer, .. } => *pointer = self.pointers[*pointer as usize],
                    _ => {}
                }
                self.b.def(lowered_type(ty), inst)
            }
        };
        self.values[id as usize] = Some(value);
    }

    /// Arithmetic, lane by lane.
    fn computed(&mut self, ty: Type, inst: &Inst) -> Value<'b> {
        let mut operands: Vec<Value<'b>> = Vec::new();
        inst.map(|id| {
            operands.push(self.value(id));
            id
        });
        if ty.lanes == 1 {
            return self.scalar(inst, &operands);
        }
        let lanes: Vec<Value<'b>> = (0..ty.lanes)
            .map(|lane| self.scalar(inst, &operands.iter().map(|x| x.lane(lane)).collect::<Vec<_>>()))
            .collect();
        self.b.vector(&lanes)
    }

    fn scalar(&self, inst: &Inst, operands: &[Value<'b>]) -> Value<'b> {
        let x = Double::new(operands[0]);
        let result = match *inst {
            Inst::Unary(op, _) => match op {
                Unary::Neg => x.neg(),
                Unary::Abs => x.abs(),
                Unary::Floor => x.floor(),
                Unary::Ceil => x.ceil(),
                Unary::Trunc => x.trunc(),
                Unary::Round => x.round(),
                Unary::Not | Unary::CountOneBits | Unary::HighestBit | Unary::FastExp2 => {
                    unreachable!("{op:?} of floats in kernel {}", self.k.name)
                }
            },
            Inst::Fma(..) => x.mul(Double::new(operands[1])).add(Double::new(operands[2])),
            Inst::Binary(op, ..) => {
                let y = Double::new(operands[1]);
                match op {
                    Binary::Add => x.add(y),
                    Binary::Sub => x.sub(y),
                    Binary::Mul => x.mul(y),
                    other => unreachable!("{other:?} of floats in kernel {}", self.k.name),
                }
            }
            ref other => unreachable!("{other:?} of floats in kernel {}", self.k.name),
        };
        result.bits
    }

    // ---- statements

    fn block(&mut self, block: &Block) {
        for stmt in &block.0 {
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        let b = self.b;
        match *stmt {
            Stmt::Def(id) => self.define(id),
            Stmt::DefPointer(id) => {
                let PointerInfo { word, base } = self.k.pointers[id as usize];
                let word = lowered_word(word);
                let base = match base {
                    PointerBase::Offset(base, elements) => {
                        PointerBase::Offset(self.pointers[base as usize], self.value(elements).id)
                    }
                    PointerBase::Address(words) => PointerBase::Address(self.value(words).id),
                    PointerBase::Param(_) => return,
                };
                let pointer = b.declare_pointer(PointerInfo { word, base });
                b.stmt(Stmt::DefPointer(pointer));
                self.pointers[id as usize] = pointer;
            }
            Stmt::SetVar { var, index, value } => {
                let (index, value) = (index.map(|index| self.value(index).id), self.value(value).id);
                b.stmt(Stmt::SetVar { var: self.first_var + var, index, value });
            }
            Stmt::Store { pointer, index, value } => {
                let (pointer, index, value) =
                    (self.pointers[pointer as usize], self.value(index).id, self.value(value).id);
                b.stmt(Stmt::Store { pointer, index, value });
            }
            Stmt::StoreShared { shared, index, lane, value } => {
                let (index, lane) = (self.value(index).id, lane.map(|lane| self.value(lane).id));
                b.stmt(Stmt::StoreShared { shared, index, lane, value: self.value(value).id });
            }
            _ => control::rewrite(self, b, stmt, Self::value, Self::block),
        }
    }
}
