//! Statements and instructions, a line each.

use super::{Printer, matrix_name, shared_name};
use crate::ir::*;
use crate::math::functions::find;
use crate::text::names::*;
use crate::types::{ScalarType, Type};

impl Printer<'_> {
    pub(super) fn block(&mut self, block: &Block) {
        block.0.iter().for_each(|stmt| self.statement(stmt));
    }

    fn inside(&mut self, block: &Block) {
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    fn statement(&mut self, stmt: &Stmt) {
        let k = self.k;
        let text = match *stmt {
            Stmt::Def(id) => {
                let Some(ValueInfo { ty, inst }) = k.values.get(id as usize) else {
                    return self.line(&format!("%{id}"));
                };
                let text = format!("%{id}: {ty} = {}", self.inst(*ty, inst));
                self.prepare(Some(id));
                self.next = self.next.max(id + 1);
                return self.line(&text);
            }
            Stmt::DefPointer(id) => {
                let Some(&PointerInfo { word, base }) = k.pointers.get(id as usize) else {
                    return self.line(&format!("@{id}"));
                };
                let made = match base {
                    PointerBase::Param(p) => format!("param {p}"),
                    PointerBase::Offset(base, by) => {
                        format!("offset {}, {}", self.pointer(base), self.value(by, Some(ScalarType::U64)))
                    }
                    PointerBase::Address(address) => format!("at {}", self.value(address, None)),
                };
                let before = self
                    .k
                    .params
                    .iter()
                    .rposition(|param| matches!(param.kind, ParamKind::Pointer { pointer, .. } if pointer < id));
                self.used_params = self.used_params.max(before.map_or(0, |p| p + 1));
                self.prepare(None);
                self.pointers = self.pointers.max(id + 1);
                format!("@{id}: {} = {made}", word.name())
            }
            Stmt::SetVar { var, index, value } => {
                let like = self.k.vars.get(var as usize).map(|var| var.ty.scalar);
                format!("store {}, {}", self.var(var, index), self.value(value, like))
            }
            Stmt::Store { pointer, index, value } => {
                let like = self.k.pointers.get(pointer as usize).map(|pointer| pointer.word.value());
                format!("store {}{}, {}", self.pointer(pointer), self.index(index), self.value(value, like))
            }
            Stmt::StoreShared { shared, index, lane, value } => {
                let like = self.k.shared.get(shared as usize).map(|shared| shared.ty.scalar);
                let index = self.index(index);
                let lane = lane.map(|lane| format!(".{}", self.value(lane, Some(ScalarType::U32)))).unwrap_or_default();
                format!("store {}{index}{lane}, {}", shared_name(shared), self.value(value, like))
            }
            Stmt::If { cond, ref then, ref otherwise } => {
                let text = format!("if {} {{", self.value(cond, None));
                self.prepare(None);
                self.line(&text);
                self.inside(then);
                if !otherwise.0.is_empty() {
                    self.line("} else {");
                    self.inside(otherwise);
                }
                return self.line("}");
            }
            Stmt::While { ref test, cond, ref body, unroll } => {
                self.line(if unroll { "loop unroll {" } else { "loop {" });
                self.inside(test);
                self.depth += 1;
                let text = format!("while {}", self.value(cond, None));
                self.prepare(None);
                self.line(&text);
                self.block(body);
                self.depth -= 1;
                return self.line("}");
            }
            Stmt::Call(ref call) => return self.call(call),
            Stmt::Barrier => "barrier".to_owned(),
            Stmt::SubgroupBarrier => "subgroup_barrier".to_owned(),
            Stmt::Matrix(ref stmt) => self.matrix(stmt),
            Stmt::Return => "return".to_owned(),
        };
        self.prepare(None);
        self.line(&text);
    }

    /// A call by name: parsing it creates the same values and variables.
    fn call(&mut self, call: &Call) {
        let Call { function, ref arguments, result, ref values, ref vars, body: _ } = *call;
        let k = self.k;
        let Some(ValueInfo { ty, .. }) = k.values.get(result as usize) else {
            return self.line(&format!("%{result} = {function}"));
        };
        let first = arguments.first().and_then(|&first| self.scalar_of(first));
        let like = |i| find(function).and_then(|(_, f)| f.like(first.filter(|_| i > 0), ty.scalar));
        let operands: Vec<String> = (0..).zip(arguments).map(|(i, &id)| self.value(id, like(i))).collect();
        self.prepare(Some(values.start));
        self.vars_below(vars.start);
        self.line(&format!("%{result}: {ty} = {function} {}", operands.join(", ")));
        (values.start..values.end).for_each(|id| self.made[id as usize] = true);
        self.next = self.next.max(values.end);
        self.vars = self.vars.max(vars.end);
    }

    fn matrix(&mut self, stmt: &MatrixStmt) -> String {
        let name = matrix_name;
        match *stmt {
            MatrixStmt::Fill { matrix, value } => {
                let like = self.k.matrices.get(matrix as usize).map(|ty| ty.dtype.compute());
                format!("matrix_fill {}, {}", name(matrix), self.value(value, like))
            }
            MatrixStmt::Load { matrix, from: memory, index, stride, layout } => {
                let place = self.matrix_place(memory, index, stride);
                format!("matrix_load {}, {place}, {}", name(matrix), word(LAYOUTS, layout))
            }
            MatrixStmt::Store { matrix, to: memory, index, stride, layout } => {
                let place = self.matrix_place(memory, index, stride);
                format!("matrix_store {}, {place}, {}", name(matrix), word(LAYOUTS, layout))
            }
            MatrixStmt::MultiplyAdd { sum, left, right } => {
                format!("matrix_multiply_add {}, {}, {}", name(sum), name(left), name(right))
            }
            MatrixStmt::Add { to, from } => format!("matrix_add {}, {}", name(to), name(from)),
            MatrixStmt::Scale { matrix, by } => {
                format!("matrix_scale {}, {}", name(matrix), self.value(by, Some(ScalarType::F32)))
            }
            MatrixStmt::Convert { to, from } => format!("matrix_convert {}, {}", name(to), name(from)),
            MatrixStmt::SetComponent { matrix, component, value } => {
                format!("matrix_set {}, {component}, {}", name(matrix), self.value(value, Some(ScalarType::F32)))
            }
        }
    }

    /// `@x[index], stride`
    fn matrix_place(&mut self, memory: MatrixMemory, index: ValueId, stride: ValueId) -> String {
        let memory = match memory {
            MatrixMemory::Shared(id) => shared_name(id),
            MatrixMemory::Pointer(id) => self.pointer(id),
        };
        format!("{memory}{}, {}", self.index(index), self.value(stride, Some(ScalarType::U32)))
    }

    // ---- instructions

    fn inst(&mut self, ty: Type, inst: &Inst) -> String {
        let (name, like) = (mnemonic(inst), Some(ty.scalar));
        match *inst {
            Inst::Unary(_, a) | Inst::Subgroup(_, a) => format!("{name} {}", self.value(a, like)),
            Inst::Cast(a) | Inst::Bitcast(a) => format!("{name} {}", self.value(a, None)),
            Inst::Binary(_, a, b) | Inst::Larger(a, b) => {
                format!("{name} {}, {}", self.value(a, like), self.value(b, like))
            }
            Inst::Compare(_, a, b) => {
                let like = self.scalar_of(a);
                format!("{name} {}, {}", self.value(a, None), self.value(b, like))
            }
            Inst::Select(c, a, b) => {
                let (c, a, b) = (self.value(c, None), self.value(a, like), self.value(b, like));
                format!("{name} {c}, {a}, {b}")
            }
            Inst::Fma(a, b, c) => {
                format!("{name} {}, {}, {}", self.value(a, like), self.value(b, like), self.value(c, like))
            }
            Inst::GetVar { var, index } => format!("{name} {}", self.var(var, index)),
            Inst::Load { pointer, index } => format!("{name} {}{}", self.pointer(pointer), self.index(index)),
            Inst::LoadShared { shared, index } => format!("{name} {}{}", shared_name(shared), self.index(index)),
            Inst::Extract(a, lane) => format!("{name} {}, {lane}", self.value(a, None)),
            Inst::Vector(ref lanes) => {
                let lanes: Vec<String> = lanes.iter().map(|&lane| self.value(lane, like)).collect();
                format!("{name} {}", lanes.join(", "))
            }
            Inst::Atomic { op: _, pointer, index, value } => {
                format!("{name} {}{}, {}", self.pointer(pointer), self.index(index), self.value(value, like))
            }
            Inst::AtomicShared { op: _, shared, index, value } => {
                format!("{name} {}{}, {}", shared_name(shared), self.index(index), self.value(value, like))
            }
            Inst::CompareExchange { pointer, index, expected, value } => {
                let place = format!("{}{}", self.pointer(pointer), self.index(index));
                format!("{name} {place}, {}, {}", self.value(expected, like), self.value(value, like))
            }
            Inst::Address(pointer) => format!("{name} {}", self.pointer(pointer)),
            Inst::ShuffleXor(a, mask) => format!("{name} {}, {mask}", self.value(a, like)),
            Inst::Component { matrix, component } => format!("{name} {}, {component}", matrix_name(matrix)),
            Inst::Halves(low, high) => {
                let like = Some(ScalarType::F32);
                format!("{name} {}, {}", self.value(low, like), self.value(high, like))
            }
            Inst::Half(word, half) => format!("{name} {}, {half}", self.value(word, Some(ScalarType::U32))),
            Inst::ConstBool(_)
            | Inst::ConstInt(_)
            | Inst::ConstFloat(_)
            | Inst::Builtin(_)
            | Inst::Param(_)
            | Inst::Placeholder(_) => name.to_owned(),
        }
    }
}
