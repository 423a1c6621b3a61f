//! Runs several invocations of a workgroup one after another in one invocation, for adapters with
//! smaller workgroups.
//!
//! Between two barriers the invocations of a workgroup run in any order, so one invocation may run
//! the statements of several in turn. Control flow around barriers is uniform in a workgroup.

use super::{control, returns};
use crate::builder::{Builder, Value};
use crate::ir::*;

/// The kernel with workgroups of at most `most` invocations; `None` if they are small enough
/// already, or if the kernel uses subgroups, which cannot be emulated in fewer invocations.
pub(super) fn fold(kernel: &Kernel, most: u32) -> Option<Kernel> {
    let subgroups = |value: &ValueInfo| {
        use Builtin::{SubgroupIndex, SubgroupLane, SubgroupSize};
        matches!(
            value.inst,
            Inst::Builtin(SubgroupLane | SubgroupSize | SubgroupIndex) | Inst::Subgroup(..) | Inst::ShuffleXor(..)
        )
    };
    let apart = kernel.matrices.is_empty() && !kernel.values.iter().any(subgroups);
    if kernel.workgroup_size.iter().product::<u32>() <= most || !apart {
        return None;
    }
    let (size, runs) = divided(kernel.workgroup_size, most)?;
    let kernel = returns::eliminate(kernel);
    let b = Builder::new(kernel.name.clone(), size);
    {
        let mut folding = Folding {
            b: &b,
            k: &kernel,
            size,
            runs: (0..runs.iter().product())
                .map(|run| Run {
                    position: [run % runs[0], run / runs[0] % runs[1], run / (runs[0] * runs[1])],
                    values: vec![None; kernel.values.len()],
                    pointers: vec![0; kernel.pointers.len()],
                    first_var: b.declare_vars(&kernel.vars),
                })
                .collect(),
            params: Vec::new(),
        };
        folding.declare();
        folding.block(&kernel.body);
    }
    Some(b.finish())
}

/// The size of the smaller workgroup, and the number of original invocations per new one, along
/// each dimension. The longest dimension is divided first.
fn divided(mut size: [u32; 3], most: u32) -> Option<([u32; 3], [u32; 3])> {
    let mut runs = [1; 3];
    while size.iter().product::<u32>() > most {
        let d = (0..3).max_by_key(|&d| size[d])?;
        let by = (2..=size[d]).find(|&by| size[d].is_multiple_of(by))?;
        size[d] /= by;
        runs[d] *= by;
    }
    Some((size, runs))
}

struct Folding<'b, 'k> {
    b: &'b Builder,
    k: &'k Kernel,
    /// The size of the new workgroup.
    size: [u32; 3],
    runs: Vec<Run<'b>>,
    params: Vec<Option<Value<'b>>>,
}

/// The state of the original invocation that is being written.
struct Run<'b> {
    /// Its index among the invocations of the new one, along each dimension.
    position: [u32; 3],
    values: Vec<Option<Value<'b>>>,
    pointers: Vec<PointerId>,
    first_var: VarId,
}

impl<'b> Folding<'b, '_> {
    fn declare(&mut self) {
        let (b, k) = (self.b, self.k);
        for param in &k.params {
            let value = match param.kind {
                ParamKind::Pointer { pointer: id, dtype, writable } => {
                    let pointer = b.param_pointer(&param.name, dtype, writable);
                    self.runs.iter_mut().for_each(|run| run.pointers[id as usize] = pointer);
                    None
                }
                ParamKind::Scalar(scalar) => Some(b.param(&param.name, scalar)),
                ParamKind::Words => Some(b.param_words(&param.name)),
            };
            self.params.push(value);
        }
        for &shared in &k.shared {
            b.declare_shared(shared);
        }
    }

    fn value(&mut self, run: usize, id: ValueId) -> Value<'b> {
        if let Some(value) = self.runs[run].values[id as usize] {
            return value;
        }
        // Entry values have no definition among the statements.
        let ValueInfo { ty, ref inst } = self.k.values[id as usize];
        let b = self.b;
        let value = match *inst {
            Inst::ConstBool(x) => b.bool(x),
            Inst::ConstInt(bits) => b.int(ty.scalar, bits),
            Inst::ConstFloat(bits) => b.float_bits(ty.scalar, bits),
            Inst::Param(p) => self.params[p as usize].expect("a parameter that is used as a number is one"),
            Inst::Builtin(Builtin::Local(d)) if self.runs[run].position[usize::from(d)] > 0 => {
                let before = self.runs[run].position[usize::from(d)] * self.size[usize::from(d)];
                // Defined anew at each use: the first use may be in a block whose definitions are
                // not visible at the others.
                return b.local_id(d) + before;
            }
            Inst::Builtin(builtin) => b.builtin(builtin),
            _ => unreachable!("%{id} of kernel {} is used before its definition", self.k.name),
        };
        self.runs[run].values[id as usize] = Some(value);
        value
    }

    /// Statements without barriers between them: all statements of one invocation, then all of the
    /// next.
    fn apart(&mut self, stmts: &[Stmt]) {
        for run in 0..self.runs.len() {
            stmts.iter().for_each(|stmt| self.statement(run, stmt));
        }
    }

    /// A block that may contain barriers.
    fn block(&mut self, block: &Block) {
        let b = self.b;
        let mut from = 0;
        for (at, stmt) in block.0.iter().enumerate().filter(|(_, stmt)| has_barrier(stmt)) {
            self.apart(&block.0[from..at]);
            from = at + 1;
            control::rewrite(self, b, stmt, |folding, id| folding.value(0, id), Self::block);
        }
        self.apart(&block.0[from..]);
    }

    fn statement(&mut self, run: usize, stmt: &Stmt) {
        let b = self.b;
        let first_var = self.runs[run].first_var;
        match *stmt {
            Stmt::Def(id) => {
                let ValueInfo { ty, ref inst } = self.k.values[id as usize];
                let mut inst = inst.map(|id| self.value(run, id).id);
                match &mut inst {
                    Inst::GetVar { var, .. } => *var += first_var,
                    Inst::Load { pointer, .. }
                    | Inst::Atomic { pointer, .. }
                    | Inst::CompareExchange { pointer, .. } => *pointer = self.runs[run].pointers[*pointer as usize],
                    _ => {}
                }
                self.runs[run].values[id as usize] = Some(b.def(ty, inst));
            }
            Stmt::DefPointer(id) => {
                let PointerInfo { word, base } = self.k.pointers[id as usize];
                let base = match base {
                    PointerBase::Offset(base, elements) => {
                        PointerBase::Offset(self.runs[run].pointers[base as usize], self.value(run, elements).id)
                    }
                    PointerBase::Address(address) => PointerBase::Address(self.value(run, address).id),
                    PointerBase::Param(_) => return,
                };
                let pointer = b.declare_pointer(PointerInfo { word, base });
                b.stmt(Stmt::DefPointer(pointer));
                self.runs[run].pointers[id as usize] = pointer;
            }
            Stmt::SetVar { var, index, value } => {
                let index = index.map(|index| self.value(run, index).id);
                let value = self.value(run, value).id;
                b.stmt(Stmt::SetVar { var: first_var + var, index, value });
            }
            Stmt::Store { pointer, index, value } => {
                let pointer = self.runs[run].pointers[pointer as usize];
                let (index, value) = (self.value(run, index).id, self.value(run, value).id);
                b.stmt(Stmt::Store { pointer, index, value });
            }
            Stmt::StoreShared { shared, index, lane, value } => {
                let lane = lane.map(|lane| self.value(run, lane).id);
                let (index, value) = (self.value(run, index).id, self.value(run, value).id);
                b.stmt(Stmt::StoreShared { shared, index, lane, value });
            }
            _ => control::rewrite(
                self,
                b,
                stmt,
                |folding, id| folding.value(run, id),
                |folding, block| block.0.iter().for_each(|stmt| folding.statement(run, stmt)),
            ),
        }
    }
}

fn has_barrier(stmt: &Stmt) -> bool {
    let any = |block: &Block| block.0.iter().any(has_barrier);
    match stmt {
        Stmt::Barrier => true,
        Stmt::If { then, otherwise, .. } => any(then) || any(otherwise),
        Stmt::While { test, body, .. } => any(test) || any(body),
        _ => false,
    }
}
