//! A model of an adapter's registers.

/// The registers of an adapter: how many an invocation has depends on its workgroup.
///
/// Figures: Intel's documentation of Gen9 to Xe2 (128 registers of 32 bytes a thread, of 64 bytes
/// from Xe2 on), Arm's of Valhall (64 registers an invocation, or half the threads), and what AMD's
/// drivers report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterFile {
    /// 32-bit registers of a subgroup.
    pub subgroup_words: u32,
    /// 32-bit registers of a workgroup.
    pub workgroup_words: u32,
    /// The smallest subgroup size, which compilers choose for kernels that need many registers.
    pub smallest_subgroup: u32,
    /// The most subgroups of a workgroup: with more invocations, subgroups are larger.
    pub max_subgroups: u32,
    /// 32-bit registers that compilers use beside a kernel's own values: addresses, sizes, copies.
    /// Seen in the kernels of `make gpus`.
    pub others: u32,
    /// 32-bit registers of the position that an element is loaded from and stored to.
    pub position: u32,
    /// An invocation holds a whole row or column of each operand of a matrix unit (AMD's), and not
    /// an equal part of the matrix.
    pub whole_rows: bool,
    /// Values that all invocations share, such as parameters, are in registers of their own kind.
    pub shared_values_apart: bool,
    /// Sums of 64-bit integers take constants. Otherwise a constant takes registers like any other
    /// value.
    pub sums_take_wide_constants: bool,
}

impl RegisterFile {
    /// The most 32-bit registers of an invocation, in workgroups of this many invocations.
    pub fn per_invocation(&self, workgroup: u32) -> u32 {
        let lanes = workgroup.div_ceil(self.max_subgroups.max(1)).next_power_of_two();
        let of_subgroup = self.subgroup_words / lanes.max(self.smallest_subgroup).max(1);
        of_subgroup.min(self.workgroup_words / workgroup.max(1))
    }

    /// Whether an invocation has about half of what it has on most GPUs, or less.
    pub fn are_few(&self) -> bool {
        self.per_invocation(256) < 192
    }

    /// Whether they are few, and a usual workgroup has them all: compilers cannot give an
    /// invocation more instead of running fewer subgroups at a time.
    pub fn are_few_and_all(&self) -> bool {
        self.are_few() && self.workgroup_words / 256 <= self.per_invocation(256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_workgroups_have_fewer_registers_for_each_invocation() {
        let file = |subgroup_words, workgroup_words, smallest_subgroup, max_subgroups| RegisterFile {
            subgroup_words,
            workgroup_words,
            smallest_subgroup,
            max_subgroups,
            others: 0,
            position: 0,
            whole_rows: false,
            shared_values_apart: false,
            sums_take_wide_constants: true,
        };
        // An HD 530: 56 threads a workgroup.
        let gen9 = file(1024, u32::MAX, 8, 56);
        assert_eq!([64, 256, 448, 512, 1024].map(|n| gen9.per_invocation(n)), [128, 128, 128, 64, 32]);
        let xe2 = file(2048, u32::MAX, 16, 64);
        assert_eq!([64, 1024].map(|n| xe2.per_invocation(n)), [128, 128]);
        // An RX 7900 XTX, in subgroups of 64.
        let rdna3 = file(256 * 64, 2 * 768 * 64, 64, 16);
        assert_eq!([64, 256, 512, 1024].map(|n| rdna3.per_invocation(n)), [256, 256, 192, 96]);
        assert!(gen9.are_few() && xe2.are_few() && !rdna3.are_few());
        // An Adreno 630 and a 660.
        let (adreno, smaller) = (file(128 * 64, 384 * 128, 64, 16), file(128 * 64, 256 * 128, 64, 16));
        assert!(smaller.are_few_and_all());
        assert!([adreno, gen9, xe2, rdna3].iter().all(|file| !file.are_few_and_all()));
    }
}
