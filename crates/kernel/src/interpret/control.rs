//! Statements and control flow, by masks of invocations.

use super::machine::Machine;
use crate::ir::*;

impl Machine<'_, '_, '_> {
    pub(super) fn block(&mut self, block: &Block, mask: &[bool]) {
        for stmt in &block.0 {
            self.statement(stmt, mask);
        }
    }

    fn statement(&mut self, stmt: &Stmt, mask: &[bool]) {
        match *stmt {
            Stmt::Def(id) => self.define(id, mask),
            Stmt::DefPointer(id) => self.define_pointer(id, mask),
            Stmt::SetVar { var, index, value } => {
                for l in self.running(mask) {
                    let element = index.map_or(0, |i| self.registers.lane(i, 0)[l] as usize);
                    let at = element * self.registers.width + l;
                    self.vars[var as usize][at] = self.registers.lane(value, 0)[l];
                }
            }
            Stmt::Store { pointer, index, value } => {
                let ty = self.k.values[value as usize].ty;
                for l in self.running(mask) {
                    let location = self.location(pointer, index, ty, l);
                    for lane in 0..ty.lanes as usize {
                        self.memory.write(location.lane(lane), self.registers.lane(value, lane)[l]);
                    }
                }
            }
            Stmt::StoreShared { shared, index, lane: Some(lane), value } => {
                let lanes = self.k.shared[shared as usize].ty.lanes as usize;
                for l in self.running(mask) {
                    let at =
                        self.registers.lane(index, 0)[l] as usize * lanes + self.registers.lane(lane, 0)[l] as usize;
                    self.shared[shared as usize][at] = self.registers.lane(value, 0)[l];
                }
            }
            Stmt::StoreShared { shared, index, lane: None, value } => {
                let lanes = self.registers.lanes(value);
                for l in self.running(mask) {
                    let at = self.registers.lane(index, 0)[l] as usize * lanes;
                    for lane in 0..lanes {
                        self.shared[shared as usize][at + lane] = self.registers.lane(value, lane)[l];
                    }
                }
            }
            Stmt::If { cond, ref then, ref otherwise } => {
                for (block, wanted) in [(then, true), (otherwise, false)] {
                    let inner = self.masked(mask, cond, wanted);
                    if !block.0.is_empty() && self.is_active(&inner) {
                        self.block(block, &inner);
                    }
                }
            }
            Stmt::While { ref test, cond, ref body, .. } => {
                let mut inner = mask.to_vec();
                loop {
                    self.block(test, &inner);
                    inner = self.masked(&inner, cond, true);
                    if !self.is_active(&inner) {
                        break;
                    }
                    self.block(body, &inner);
                }
            }
            Stmt::Call(ref call) => self.block(&call.body, mask),
            Stmt::Barrier | Stmt::SubgroupBarrier => {}
            Stmt::Matrix(ref stmt) => self.matrix(stmt, mask),
            Stmt::Return => {
                for (live, m) in self.live.iter_mut().zip(mask) {
                    *live &= !m;
                }
            }
        }
    }

    /// The invocations of a mask whose condition has the wanted value.
    fn masked(&self, mask: &[bool], cond: ValueId, wanted: bool) -> Vec<bool> {
        mask.iter().zip(self.registers.lane(cond, 0)).map(|(m, c)| *m && (*c != 0) == wanted).collect()
    }

    /// Whether any invocation of a mask has not returned.
    fn is_active(&self, mask: &[bool]) -> bool {
        mask.iter().zip(&self.live).any(|(m, l)| *m && *l)
    }

    /// Indices of the invocations of a mask that have not returned.
    pub(super) fn running(&self, mask: &[bool]) -> Vec<usize> {
        (0..self.registers.width).filter(|&l| mask[l] && self.live[l]).collect()
    }
}
