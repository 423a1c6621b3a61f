//! Splitting of long launches into parts of some of their workgroups. Each part knows its position
//! in the whole launch.

use crate::kernels::kernel::KernelRef;
use dml_kernel::GroupCounts;
use smallvec::{SmallVec, smallvec};

/// Some of a launch's workgroups.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The index of the first workgroup.
    pub(crate) base: [u32; 3],
    /// The number of workgroups.
    pub(crate) groups: [u32; 3],
    /// The number of operations.
    pub(crate) work: u64,
}

/// Repeated halves of a launch, in the order of its workgroups.
pub(crate) struct Parts<M> {
    counts: GroupCounts,
    /// The whole launch.
    groups: [u32; 3],
    /// The most operations of a part with a number of workgroups.
    most: M,
    /// The parts that may still be split, the first one last.
    rest: SmallVec<[Part; 8]>,
}

/// Splits a launch of `work` operations into parts of at most `most` operations, which may depend
/// on the number of workgroups: as far as the kernel allows, and down to one workgroup.
pub(crate) fn parts<M: Fn([u32; 3]) -> u64>(kernel: &KernelRef, groups: [u32; 3], work: u64, most: M) -> Parts<M> {
    Parts::new(kernel.group_counts(), groups, work, most)
}

impl<M: Fn([u32; 3]) -> u64> Parts<M> {
    fn new(counts: GroupCounts, groups: [u32; 3], work: u64, most: M) -> Self {
        Self { counts, groups, most, rest: smallvec![Part { base: [0; 3], groups, work }] }
    }

    /// The dimension to split: whole batches of matrices first, then rows of workgroups, then some
    /// workgroups of a row.
    fn dimension(&self, part: &Part) -> Option<usize> {
        (0..3).rev().find(|&d| part.groups[d] > 1 && self.counts.may_split(self.groups, d))
    }
}

impl<M: Fn([u32; 3]) -> u64> Iterator for Parts<M> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let mut part = self.rest.pop()?;
        while part.work > (self.most)(part.groups)
            && let Some(d) = self.dimension(&part)
        {
            let (all, half) = (part.groups[d], part.groups[d].div_ceil(2));
            let work = (u128::from(part.work) * u128::from(half) / u128::from(all)) as u64;
            let mut second = Part { work: part.work - work, ..part };
            second.base[d] += half;
            second.groups[d] -= half;
            self.rest.push(second);
            part.groups[d] = half;
            part.work = work;
        }
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the parts contain every workgroup once, in order along the split dimensions.
    fn is_whole(parts: &[Part], groups: [u32; 3]) -> bool {
        let mut bases: Vec<[u32; 3]> = Vec::new();
        for part in parts {
            let [x, y, z] = [0, 1, 2].map(|d| part.base[d]..part.base[d] + part.groups[d]);
            bases.extend(
                z.flat_map(|z| y.clone().map(move |y| (y, z))).flat_map(|(y, z)| x.clone().map(move |x| [x, y, z])),
            );
        }
        bases.sort_unstable();
        bases.dedup();
        let count = parts.iter().map(|part| part.groups.iter().product::<u32>()).sum::<u32>();
        bases.len() as u32 == count
            && count == groups.iter().product::<u32>()
            && bases.iter().all(|p| (0..3).all(|d| p[d] < groups[d]))
    }

    #[test]
    fn parts_are_the_whole_and_small_enough() {
        for groups in [[1000, 1, 1], [13, 7, 1], [5, 3, 11], [1, 1, 300], [2, 1, 1]] {
            for most in [1, 3, 10, 77, 1_000_000] {
                let work = u64::from(groups.iter().product::<u32>()) * 10;
                let parts: Vec<Part> = Parts::new(GroupCounts::default(), groups, work, |_| most).collect();
                assert!(is_whole(&parts, groups), "{groups:?} {most}: {parts:?}");
                assert_eq!(parts.iter().map(|part| part.work).sum::<u64>(), work);
                assert!(parts.iter().all(|part| part.work <= most.max(10)), "{groups:?} {most}: {parts:?}");
                assert!(parts.iter().all(|part| parts.len() == 1 || part.work > most / 4 || most < 40), "{parts:?}");
            }
        }
    }

    #[test]
    fn matrices_of_a_batch_are_kept_whole() {
        let parts: Vec<Part> = Parts::new(GroupCounts::default(), [9, 5, 8], 800, |_| 100).collect();
        assert_eq!(parts.len(), 8);
        assert!(parts.iter().enumerate().all(|(i, part)| part.base == [0, 0, i as u32] && part.groups == [9, 5, 1]));
    }
}
