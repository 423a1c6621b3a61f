//! Prints a kernel readably, one statement a line.

use crate::ir::*;
use std::fmt::{self, Display, Formatter};

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {} {:?} (", self.name, self.workgroup_size)?;
        for (i, p) in self.params.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            match p.kind {
                ParamKind::Pointer(id) => {
                    write!(f, "{separator}{}: *{:?} = p{id}", p.name, self.pointers[id as usize].word)?;
                }
                ParamKind::Scalar(s) => write!(f, "{separator}{}: {s:?}", p.name)?,
                ParamKind::Words => write!(f, "{separator}{}: words", p.name)?,
            }
        }
        writeln!(f, ")")?;
        for (i, s) in self.shared.iter().enumerate() {
            writeln!(f, "  shared s{i}: {:?}x{}[{}]", s.ty.scalar, s.ty.lanes, s.len)?;
        }
        for (i, m) in self.matrices.iter().enumerate() {
            writeln!(f, "  matrix m{i}: {:?} {}x{} {:?}", m.dtype, m.rows, m.columns, m.part)?;
        }
        self.block(f, &self.body, 1)
    }
}

impl Kernel {
    fn block(&self, f: &mut Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
        let pad = "  ".repeat(depth);
        for stmt in &block.0 {
            match stmt {
                Stmt::Def(id) => {
                    let v = &self.values[*id as usize];
                    writeln!(f, "{pad}v{id}: {:?} = {}", v.ty.scalar, self.inst(&v.inst))?;
                }
                Stmt::DefPointer(id) => match self.pointers[*id as usize].base {
                    PointerBase::Param(_) => {}
                    PointerBase::Offset(base, by) => writeln!(f, "{pad}p{id} = p{base} + {}", self.name_of(by))?,
                    PointerBase::Address(address) => writeln!(f, "{pad}p{id} = at {}", self.name_of(address))?,
                },
                Stmt::SetVar { var, index: None, value } => {
                    writeln!(f, "{pad}var{var} = {}", self.name_of(*value))?;
                }
                Stmt::SetVar { var, index: Some(i), value } => {
                    writeln!(f, "{pad}var{var}[{}] = {}", self.name_of(*i), self.name_of(*value))?;
                }
                Stmt::Store { pointer, index, value } => {
                    writeln!(f, "{pad}p{pointer}[{}] = {}", self.name_of(*index), self.name_of(*value))?;
                }
                Stmt::StoreShared { shared, index, lane, value } => {
                    let lane = lane.map(|l| format!(".{}", self.name_of(l))).unwrap_or_default();
                    writeln!(f, "{pad}s{shared}[{}]{lane} = {}", self.name_of(*index), self.name_of(*value))?;
                }
                Stmt::If { cond, then, otherwise } => {
                    writeln!(f, "{pad}if {} {{", self.name_of(*cond))?;
                    self.block(f, then, depth + 1)?;
                    if !otherwise.0.is_empty() {
                        writeln!(f, "{pad}}} else {{")?;
                        self.block(f, otherwise, depth + 1)?;
                    }
                    writeln!(f, "{pad}}}")?;
                }
                Stmt::While { test, cond, body, .. } => {
                    writeln!(f, "{pad}loop {{")?;
                    self.block(f, test, depth + 1)?;
                    writeln!(f, "{pad}  while {}", self.name_of(*cond))?;
                    self.block(f, body, depth + 1)?;
                    writeln!(f, "{pad}}}")?;
                }
                Stmt::Barrier => writeln!(f, "{pad}barrier")?,
                Stmt::SubgroupBarrier => writeln!(f, "{pad}subgroup barrier")?,
                Stmt::Matrix(stmt) => writeln!(f, "{pad}{}", self.matrix(stmt))?,
                Stmt::Return => writeln!(f, "{pad}return")?,
            }
        }
        Ok(())
    }

    fn matrix(&self, stmt: &MatrixStmt) -> String {
        let n = |id: &ValueId| self.name_of(*id);
        let memory = |memory: &MatrixMemory| match memory {
            MatrixMemory::Shared(id) => format!("s{id}"),
            MatrixMemory::Pointer(id) => format!("p{id}"),
        };
        match stmt {
            MatrixStmt::Fill { matrix, value } => format!("m{matrix} = fill {}", n(value)),
            MatrixStmt::Load { matrix, from, index, stride, layout } => {
                format!("m{matrix} = {}[{}] by {} {layout:?}", memory(from), n(index), n(stride))
            }
            MatrixStmt::Store { matrix, to, index, stride, layout } => {
                format!("{}[{}] by {} {layout:?} = m{matrix}", memory(to), n(index), n(stride))
            }
            MatrixStmt::MultiplyAdd { sum, left, right } => format!("m{sum} += m{left} * m{right}"),
            MatrixStmt::Add { to, from } => format!("m{to} += m{from}"),
            MatrixStmt::Scale { matrix, by } => format!("m{matrix} *= {}", n(by)),
            MatrixStmt::Convert { to, from } => format!("m{to} = convert m{from}"),
            MatrixStmt::SetComponent { matrix, component, value } => format!("m{matrix}.{component} = {}", n(value)),
        }
    }

    /// A constant as its number, a parameter by its name, anything else as `v12`.
    fn name_of(&self, id: ValueId) -> String {
        match &self.values[id as usize].inst {
            Inst::ConstBool(x) => x.to_string(),
            Inst::ConstInt(x) if self.values[id as usize].ty.scalar.is_signed() => match self.values[id as usize].ty {
                ty if ty.scalar.bytes() == 4 => (*x as u32 as i32).to_string(),
                _ => (*x as i64).to_string(),
            },
            Inst::ConstInt(x) => x.to_string(),
            Inst::ConstFloat(x) => format!("{x:?}"),
            Inst::Param(p) => self.params[*p as usize].name.clone(),
            Inst::Hole(i) => format!("hole{i}"),
            Inst::Builtin(b) => format!("{b:?}"),
            _ => format!("v{id}"),
        }
    }

    fn inst(&self, inst: &Inst) -> String {
        let n = |id: &ValueId| self.name_of(*id);
        match inst {
            Inst::Unary(op, a) => format!("{op:?} {}", n(a)),
            Inst::Binary(op, a, b) => format!("{op:?} {}, {}", n(a), n(b)),
            Inst::Compare(op, a, b) => format!("{op:?} {}, {}", n(a), n(b)),
            Inst::Select(c, a, b) => format!("select {} ? {} : {}", n(c), n(a), n(b)),
            Inst::Cast(a) => format!("cast {}", n(a)),
            Inst::Bitcast(a) => format!("bits {}", n(a)),
            Inst::Fma(a, b, c) => format!("fma {}, {}, {}", n(a), n(b), n(c)),
            Inst::GetVar { var, index: None } => format!("var{var}"),
            Inst::GetVar { var, index: Some(i) } => format!("var{var}[{}]", n(i)),
            Inst::Load { pointer, index } => format!("p{pointer}[{}]", n(index)),
            Inst::LoadShared { shared, index } => format!("s{shared}[{}]", n(index)),
            Inst::Extract(a, lane) => format!("{}.{lane}", n(a)),
            Inst::Vector(lanes) => format!("({})", lanes.iter().map(n).collect::<Vec<_>>().join(", ")),
            Inst::Atomic { op, pointer, index, value } => {
                format!("atomic {op:?} p{pointer}[{}], {}", n(index), n(value))
            }
            Inst::AtomicShared { op, shared, index, value } => {
                format!("atomic {op:?} s{shared}[{}], {}", n(index), n(value))
            }
            Inst::CompareExchange { pointer, index, expected, value } => {
                format!("exchange p{pointer}[{}] if {}, {}", n(index), n(expected), n(value))
            }
            Inst::Address(pointer) => format!("address of p{pointer}"),
            Inst::Subgroup(op, a) => format!("subgroup {op:?} {}", n(a)),
            Inst::ShuffleXor(a, mask) => format!("shuffle {}, {mask}", n(a)),
            Inst::Component { matrix, component } => format!("m{matrix}.{component}"),
            Inst::Larger(a, b) => format!("larger {}, {}", n(a), n(b)),
            Inst::PackHalves(a, b, dtype) => format!("pack halves {dtype} {}, {}", n(a), n(b)),
            Inst::Halves(low, high) => format!("halves {}, {}", n(low), n(high)),
            Inst::Half(word, half) => format!("half {half} of {}", n(word)),
            Inst::ConstBool(_)
            | Inst::ConstInt(_)
            | Inst::ConstFloat(_)
            | Inst::Builtin(_)
            | Inst::Param(_)
            | Inst::Hole(_) => String::new(),
        }
    }
}
