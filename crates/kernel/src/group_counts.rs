//! What a kernel makes of how many workgroups a launch has.

use crate::ir::{Binary, Block, Builtin, Inst, Kernel, MatrixStmt, PointerBase, Stmt, ValueId};

/// Along which dimensions a launch of a kernel may be cut into launches of some of its workgroups
/// each.
///
/// A workgroup's index is the same in a part as in the whole; what the kernel is told of the number
/// of workgroups is the part's. So a launch is cut along a dimension whose number the kernel does
/// not ask for, or only multiplies by an index that is 0: `index(0) + index(1) * number(0)` may be
/// cut along dimension 1, and along 0 where there is one workgroup along 1.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupCounts {
    /// Of each dimension, a bit for each of those that must have one workgroup for a cut along it:
    /// its own where the number itself counts.
    alone: [u8; 3],
}

impl GroupCounts {
    /// What a kernel makes of them.
    pub(crate) fn of(kernel: &Kernel) -> Self {
        let mut found = Search { kernel, numbers: Vec::new(), zeros: Vec::new(), alone: [0; 3] };
        found.values();
        found.block(&kernel.body);
        Self { alone: found.alone }
    }

    /// Whether a launch of so many workgroups may be cut along dimension `d`.
    pub fn may_cut(self, groups: [u32; 3], d: usize) -> bool {
        groups[d] > 1 && (0..3).all(|other| self.alone[d] & (1 << other) == 0 || groups[other] == 1)
    }
}

struct Search<'k> {
    kernel: &'k Kernel,
    /// Of each value: it is the number of workgroups along this dimension, as an integer of any
    /// width.
    numbers: Vec<Option<u8>>,
    /// Of each value: it is 0 where there is one workgroup along each of these dimensions (bits).
    zeros: Vec<Option<u8>>,
    alone: [u8; 3],
}

impl Search<'_> {
    /// Operands are made before what is made of them.
    fn values(&mut self) {
        let kernel = self.kernel;
        for value in &kernel.values {
            let integer = value.ty.scalar.is_integer();
            let (mut number, mut zero) = (None, None);
            match value.inst {
                Inst::Builtin(Builtin::Groups(d)) => number = Some(d),
                Inst::Builtin(Builtin::Group(d)) => zero = Some(1 << d),
                Inst::Cast(a) if integer => (number, zero) = (self.number(a), self.zero(a)),
                Inst::Binary(Binary::Mul, a, b) if integer => {
                    zero = self.zero(a).or(self.zero(b));
                    self.multiplied(a, b);
                    self.multiplied(b, a);
                }
                Inst::Binary(Binary::Add, a, b) if integer => {
                    zero = self.zero(a).zip(self.zero(b)).map(|(a, b)| a | b);
                    self.used([a, b]);
                }
                ref other => {
                    other.map(|operand| {
                        self.used([operand]);
                        operand
                    });
                }
            }
            self.numbers.push(number);
            self.zeros.push(zero);
        }
        for pointer in &kernel.pointers {
            match pointer.base {
                PointerBase::Param(_) => {}
                PointerBase::Offset(_, value) | PointerBase::Address(value) => self.used([value]),
            }
        }
    }

    fn number(&self, value: ValueId) -> Option<u8> {
        self.numbers[value as usize]
    }

    fn zero(&self, value: ValueId) -> Option<u8> {
        self.zeros[value as usize]
    }

    /// `value` is multiplied by `by`.
    fn multiplied(&mut self, value: ValueId, by: ValueId) {
        if let Some(d) = self.number(value) {
            self.alone[usize::from(d)] |= self.zero(by).unwrap_or(1 << d);
        }
    }

    /// Something else is made of the values.
    fn used(&mut self, values: impl IntoIterator<Item = ValueId>) {
        for value in values {
            if let Some(d) = self.number(value) {
                self.alone[usize::from(d)] |= 1 << d;
            }
        }
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.0 {
            match *stmt {
                Stmt::Def(_) | Stmt::DefPointer(_) | Stmt::Barrier | Stmt::SubgroupBarrier | Stmt::Return => {}
                Stmt::SetVar { index, value, .. } => self.used(index.into_iter().chain([value])),
                Stmt::Store { index, value, .. } => self.used([index, value]),
                Stmt::StoreShared { index, lane, value, .. } => self.used(lane.into_iter().chain([index, value])),
                Stmt::If { cond, ref then, ref otherwise } => {
                    self.used([cond]);
                    self.block(then);
                    self.block(otherwise);
                }
                Stmt::While { ref test, cond, ref body, .. } => {
                    self.block(test);
                    self.used([cond]);
                    self.block(body);
                }
                Stmt::Call(ref call) => self.block(&call.body),
                Stmt::Matrix(matrix) => match matrix {
                    MatrixStmt::Fill { value, .. }
                    | MatrixStmt::Scale { by: value, .. }
                    | MatrixStmt::SetComponent { value, .. } => self.used([value]),
                    MatrixStmt::Load { index, stride, .. } | MatrixStmt::Store { index, stride, .. } => {
                        self.used([index, stride]);
                    }
                    MatrixStmt::MultiplyAdd { .. } | MatrixStmt::Add { .. } | MatrixStmt::Convert { .. } => {}
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Value};
    use crate::dtype::DType;
    use crate::types::ScalarType;

    const LONG: [u32; 3] = [100, 1, 1];
    const FOLDED: [u32; 3] = [100, 7, 1];
    const DEEP: [u32; 3] = [100, 7, 3];

    type Index = fn(&Builder) -> Value<'_>;

    /// Dimensions along which launches of a kernel that stores to `index` may be cut.
    fn cuts(groups: [u32; 3], index: Index) -> Vec<usize> {
        let b = Builder::new("test", [1, 1, 1]);
        let out = b.pointer("out", DType::U32);
        out.store(index(&b), b.u32(1));
        let counts = GroupCounts::of(&b.finish());
        (0..3).filter(|&d| counts.may_cut(groups, d)).collect()
    }

    #[test]
    fn who_asks_for_no_number_is_cut_anywhere() {
        let index: Index = |b| b.global_id(0) + b.global_id(1) * 100 + b.global_id(2) * 700;
        assert_eq!(cuts(DEEP, index), [0, 1, 2]);
        assert_eq!(cuts([1, 1, 3], index), [2], "one workgroup is not cut");
    }

    #[test]
    fn folded_launches_are_cut_between_rows() {
        let narrow: Index = |b| b.group_id(0) + b.group_id(1) * b.group_count(0);
        let wide: Index = |b| crate::dense::linear_id(b, ScalarType::U64);
        assert_eq!((cuts(LONG, narrow), cuts(FOLDED, narrow)), (vec![0], vec![1]));
        assert_eq!((cuts(LONG, wide), cuts(FOLDED, wide)), (vec![0], vec![1]));
        assert_eq!(cuts(DEEP, narrow), [1, 2]);
    }

    #[test]
    fn a_number_in_three_dimensions() {
        let index: Index = |b| b.group_id(0) + b.group_count(0) * (b.group_id(1) + b.group_count(1) * b.group_id(2));
        assert_eq!((cuts(LONG, index), cuts(FOLDED, index)), (vec![0], vec![1]));
        assert_eq!(cuts(DEEP, index), [2]);
    }

    #[test]
    fn who_counts_the_workgroups_is_not_cut() {
        assert_eq!(cuts(LONG, |b| b.group_id(0) + b.group_count(0)), []);
        assert_eq!(cuts(DEEP, |b| b.group_count(0) * 4), [1, 2]);
        let both: Index = |b| b.group_id(1) * b.group_count(0) + (b.group_count(0) >> 1);
        assert_eq!(cuts(LONG, both), []);
        let stride: Index = |b| {
            let last = b.var(b.u32(0));
            b.for_(b.group_id(0), b.u32(1000), b.group_count(0), |i| last.set(i));
            last.get()
        };
        assert_eq!((cuts(LONG, stride), cuts(DEEP, stride)), (vec![], vec![1, 2]));
        // 0 times what is no number is no 0.
        let float: Index = |b| {
            let count = b.group_count(0).cast(ScalarType::F32) * b.group_id(1).cast(ScalarType::F32);
            count.cast(ScalarType::U32)
        };
        assert_eq!(cuts(LONG, float), []);
    }
}
