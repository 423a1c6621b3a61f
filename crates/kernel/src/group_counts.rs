//! A kernel's dependence on the number of workgroups of a launch.

use crate::ir::{Binary, Block, Builtin, Inst, Kernel, MatrixStmt, PointerBase, Stmt, ValueId};

/// The dimensions along which a launch of a kernel may be split into launches of a part of its
/// workgroups each.
///
/// A workgroup has the same index in a part as in the whole launch, but the kernel reads the part's
/// number of workgroups. So a launch may be split along a dimension whose number of workgroups the
/// kernel does not use, or only multiplies by an index that is 0: `index(0) + index(1) * number(0)`
/// may be split along dimension 1, and along dimension 0 if there is one workgroup along dimension
/// 1.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupCounts {
    /// For each dimension a bitmask of the dimensions that must have one workgroup if a launch is
    /// split along it. Its own bit is set where the kernel uses the number itself.
    alone: [u8; 3],
}

impl GroupCounts {
    /// Finds a kernel's uses of the numbers of workgroups.
    pub(crate) fn of(kernel: &Kernel) -> Self {
        let mut found = Search { kernel, numbers: Vec::new(), zeros: Vec::new(), alone: [0; 3] };
        found.values();
        found.block(&kernel.body);
        Self { alone: found.alone }
    }

    /// Whether a launch of `groups` workgroups may be split along dimension `d`.
    pub fn may_split(self, groups: [u32; 3], d: usize) -> bool {
        groups[d] > 1 && (0..3).all(|other| self.alone[d] & (1 << other) == 0 || groups[other] == 1)
    }
}

struct Search<'k> {
    kernel: &'k Kernel,
    /// For each value, the dimension whose number of workgroups it is, as an integer of any width.
    numbers: Vec<Option<u8>>,
    /// For each value, a bitmask of dimensions: the value is 0 if there is one workgroup along
    /// each.
    zeros: Vec<Option<u8>>,
    alone: [u8; 3],
}

impl Search<'_> {
    /// Classifies the values in order: operands precede the values computed from them.
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

    /// `value` is multiplied by `by`: allowed for a number of workgroups if `by` is 0.
    fn multiplied(&mut self, value: ValueId, by: ValueId) {
        if let Some(d) = self.number(value) {
            self.alone[usize::from(d)] |= self.zero(by).unwrap_or(1 << d);
        }
    }

    /// The values are used in another way.
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

    /// The dimensions along which launches of a kernel that stores to `index` may be split.
    fn splits(groups: [u32; 3], index: Index) -> Vec<usize> {
        let b = Builder::new("test", [1, 1, 1]);
        let out = b.pointer("out", DType::U32);
        out.store(index(&b), b.u32(1));
        let counts = GroupCounts::of(&b.finish());
        (0..3).filter(|&d| counts.may_split(groups, d)).collect()
    }

    #[test]
    fn kernels_without_group_counts_are_split_anywhere() {
        let index: Index = |b| b.global_id(0) + b.global_id(1) * 100 + b.global_id(2) * 700;
        assert_eq!(splits(DEEP, index), [0, 1, 2]);
        assert_eq!(splits([1, 1, 3], index), [2], "one workgroup is not split");
    }

    #[test]
    fn folded_launches_are_split_between_rows() {
        let narrow: Index = |b| b.group_id(0) + b.group_id(1) * b.group_count(0);
        let wide: Index = |b| crate::dense::linear_id(b, ScalarType::U64);
        assert_eq!((splits(LONG, narrow), splits(FOLDED, narrow)), (vec![0], vec![1]));
        assert_eq!((splits(LONG, wide), splits(FOLDED, wide)), (vec![0], vec![1]));
        assert_eq!(splits(DEEP, narrow), [1, 2]);
    }

    #[test]
    fn a_number_in_three_dimensions() {
        let index: Index = |b| b.group_id(0) + b.group_count(0) * (b.group_id(1) + b.group_count(1) * b.group_id(2));
        assert_eq!((splits(LONG, index), splits(FOLDED, index)), (vec![0], vec![1]));
        assert_eq!(splits(DEEP, index), [2]);
    }

    #[test]
    fn kernels_that_use_a_group_count_are_not_split() {
        assert_eq!(splits(LONG, |b| b.group_id(0) + b.group_count(0)), []);
        assert_eq!(splits(DEEP, |b| b.group_count(0) * 4), [1, 2]);
        let both: Index = |b| b.group_id(1) * b.group_count(0) + (b.group_count(0) >> 1);
        assert_eq!(splits(LONG, both), []);
        let stride: Index = |b| {
            let last = b.var(b.u32(0));
            b.for_(b.group_id(0), b.u32(1000), b.group_count(0), |i| last.set(i));
            last.get()
        };
        assert_eq!((splits(LONG, stride), splits(DEEP, stride)), (vec![], vec![1, 2]));
        // 0 times a NaN is not 0.
        let float: Index = |b| {
            let count = b.group_count(0).cast(ScalarType::F32) * b.group_id(1).cast(ScalarType::F32);
            count.cast(ScalarType::U32)
        };
        assert_eq!(splits(LONG, float), []);
    }
}
