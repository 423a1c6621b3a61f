//! The table of a launch over a list of tensors, and how a workgroup finds its tensor in it.
//!
//! The table is 64-bit words: for each tensor the index of the first workgroup that processes it,
//! then the total number of workgroups, then an entry for each tensor. An entry is the number of
//! elements, followed by further words of the kernel: addresses, in elements, and numbers.

use dml_engine::interface::{Table, U32, Unordered};
use dml_engine::{AddressRange, ArgumentBlock, Parameter};
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::SmallVec;

/// Maximum number of tensors of a launch: every workgroup searches all of them.
pub const MAX_TENSORS: usize = 1024;

/// Number of workgroups that keep a large adapter busy; with more, each workgroup gets more
/// elements.
const MIN_GROUPS: u64 = 2048;

/// Maximum number of accesses of an invocation.
const MAX_ROUNDS: u64 = 16;

/// Kernel parameter: the tensors of one launch. It has to be the first parameter.
pub struct ListTable;

/// The argument for [`ListTable`].
pub struct ListArgument<'a> {
    /// Index of the first workgroup of each tensor, and the total number of workgroups.
    pub first_workgroups: &'a [u64],
    /// The tensors' entries.
    pub entries: &'a [u64],
    /// Number of accesses of an invocation.
    pub rounds: u32,
    /// The memory of the tensors that are only read.
    pub reads: &'a [AddressRange],
    /// The memory of the tensors that are written.
    pub writes: &'a [AddressRange],
}

/// The tensors of one launch in a kernel.
pub struct Lists<'b> {
    b: &'b Builder,
    table: Pointer<'b>,
    /// A pointer to address 0: the table's addresses are offsets from it.
    memory: Pointer<'b>,
    tensors: Value<'b>,
    groups: Value<'b>,
    /// Number of accesses of an invocation.
    pub rounds: Value<'b>,
}

/// The part of a tensor that a workgroup processes.
pub struct Part<'b> {
    /// Index of the tensor's entry in the table.
    entry: Value<'b>,
    /// The first element (u64).
    pub start: Value<'b>,
    /// Number of elements (u32).
    pub n: Value<'b>,
}

impl Parameter for ListTable {
    type Type = ();
    type Argument<'a> = ListArgument<'a>;
    type Declared<'b> = Lists<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, (): &()) -> Lists<'b> {
        let number = |name: &str| U32::declare(b, name, &());
        Lists {
            b,
            table: Table::declare(b, "table", &DType::U64),
            memory: Unordered::declare(b, "memory", &DType::U8),
            tensors: number("tensors"),
            groups: number("groups"),
            rounds: number("rounds"),
        }
    }

    fn pass(lists: &ListArgument, (): &(), block: &mut ArgumentBlock) {
        Table::pass(&lists.first_workgroups, &DType::U64, block);
        for &word in lists.entries {
            block.table(word);
        }
        block.address(0);
        let tensors = lists.first_workgroups.len() - 1;
        for number in [tensors as u32, lists.first_workgroups[tensors] as u32, lists.rounds] {
            U32::pass(&number, &(), block);
        }
        for &range in lists.reads {
            block.reads(range);
        }
        for &range in lists.writes {
            block.writes(range);
        }
    }
}

impl<'b> Lists<'b> {
    /// Runs `body` in every workgroup that has a part. An invocation processes `lanes` elements at
    /// a time, in [`rounds`](Self::rounds) iterations with the others of its workgroup. `words` is
    /// the length of an entry.
    pub fn part(&self, lanes: u32, words: u32, body: impl FnOnce(Part<'b>)) {
        let (b, table) = (self.b, self.table);
        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        // The whole workgroup searches in parallel: one load for each invocation, where a binary
        // search would take several dependent loads.
        let found = b.shared(ScalarType::U32, 1, 2);
        b.for_(b.local_id(0), self.tensors, GROUP, |tensor| {
            let [first, next] = [tensor, tensor + 1].map(|i| table.load(i).cast(ScalarType::U32));
            b.if_(group.ge(first) & group.lt(next), || {
                found.store(0, tensor);
                found.store(1, first);
            });
        });
        b.barrier();
        b.if_(group.lt(self.groups), || {
            let (tensor, first) = (found.load(0), found.load(1));
            let entry = self.tensors + 1 + tensor * words;
            let most = (self.rounds * (GROUP * lanes)).cast(ScalarType::U64);
            let start = (group - first).cast(ScalarType::U64) * most;
            let left = table.load(entry) - start;
            let n = left.lt(most).select(left, most).cast(ScalarType::U32);
            body(Part { entry, start, n });
        });
    }

    /// Index of the first workgroup of a tensor, and of the next tensor.
    pub fn groups_of(&self, tensor: Value<'b>) -> [Value<'b>; 2] {
        [tensor, tensor + 1].map(|i| self.table.load(i).cast(ScalarType::U32))
    }

    /// Word `i` of a tensor's entry, after the number of elements. An entry has `words` words.
    pub fn word_of(&self, tensor: Value<'b>, words: u32, i: u32) -> Value<'b> {
        self.table.load(self.tensors + 1 + tensor * words + (1 + i))
    }

    /// Number of elements of a tensor (u64). An entry has `words` words.
    pub fn numel_of(&self, tensor: Value<'b>, words: u32) -> Value<'b> {
        self.table.load(self.tensors + 1 + tensor * words)
    }

    /// Number of elements of a part's tensor (u64).
    pub fn numel(&self, part: &Part<'b>) -> Value<'b> {
        self.table.load(part.entry)
    }

    /// Word `i` of a part's entry, after the number of elements.
    pub fn word(&self, part: &Part<'b>, i: u32) -> Value<'b> {
        self.table.load(part.entry + (1 + i))
    }

    /// The tensor whose address is word `i` of the entry.
    pub fn tensor(&self, part: &Part<'b>, i: u32, dtype: DType) -> Pointer<'b> {
        self.memory.retyped(dtype).offset(self.word(part, i))
    }

    /// The part of a tensor whose address is word `i` of the entry.
    pub fn part_of(&self, part: &Part<'b>, i: u32, dtype: DType) -> Pointer<'b> {
        self.memory.retyped(dtype).offset(self.word(part, i) + part.start)
    }
}

/// The number of workgroups for each tensor.
pub struct Grid {
    /// Index of the first workgroup of each tensor, and the total number of workgroups.
    pub first_workgroups: SmallVec<[u64; 64]>,
    /// Total number of workgroups.
    pub groups: u64,
    /// Number of accesses of an invocation.
    pub rounds: u64,
}

impl Grid {
    /// For tensors with `counts` elements, with `lanes` elements in each access.
    pub fn new(counts: impl Iterator<Item = u64> + Clone, lanes: u32) -> Grid {
        let access = u64::from(GROUP * lanes);
        let all: u64 = counts.clone().map(|n| n.div_ceil(access)).sum();
        let rounds = (all / MIN_GROUPS).clamp(1, MAX_ROUNDS);
        let mut first_workgroups = SmallVec::from_slice(&[0]);
        let mut groups = 0;
        for n in counts {
            groups += n.div_ceil(access * rounds);
            first_workgroups.push(groups);
        }
        Grid { first_workgroups, groups, rounds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use dml_kernel::interpret::{Argument, run};

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn words(bytes: &[u8]) -> Vec<u64> {
        bytes.chunks_exact(8).map(|b| b.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b))).collect()
    }

    /// Positions beyond 32 bits: the workgroups of tensors with more than 2^33 elements start at
    /// the right elements.
    #[test]
    fn workgroups_find_their_parts() {
        let (rounds, lanes) = (1u64 << 20, 4);
        let chunk = rounds * u64::from(GROUP) * lanes;
        let counts: Vec<u64> = (0..300).map(|i| if i % 100 == 7 { 9 * chunk + i } else { i + 1 }).collect();
        let mut first_workgroups = vec![0];
        for count in &counts {
            first_workgroups.push(first_workgroups[first_workgroups.len() - 1] + count.div_ceil(chunk));
        }
        let groups = first_workgroups[counts.len()];
        let table = [first_workgroups.as_slice(), &counts].concat();
        let b = Builder::new("parts", [GROUP, 1, 1]);
        let lists = ListTable::declare(&b, "lists", &());
        let out = b.pointer("out", DType::U64);
        lists.part(lanes as u32, 1, |part| {
            let at = (b.group_id(0) + b.group_id(1) * b.group_count(0)) * 3;
            out.store(at, part.entry.cast(ScalarType::U64));
            out.store(at + 1, part.start);
            out.store(at + 2, part.n.cast(ScalarType::U64));
        });
        let kernel = b.finish();
        accepted(&kernel);
        let (mut table, mut found) = (bytes(&table), vec![0; groups as usize * 24]);
        let grid = [groups as u32 / 2 + 1, 2, 1];
        run(
            &kernel,
            grid,
            8,
            &mut [
                Argument::Memory(&mut table),
                Argument::Memory(&mut []),
                Argument::Number(counts.len() as u64),
                Argument::Number(groups),
                Argument::Number(rounds),
                Argument::Memory(&mut found),
            ],
        );
        let mut expected = Vec::new();
        for (i, &count) in counts.iter().enumerate() {
            for part in 0..count.div_ceil(chunk) {
                let start = part * chunk;
                expected.extend([counts.len() as u64 + 1 + i as u64, start, (count - start).min(chunk)]);
            }
        }
        assert_eq!(words(&found), expected);
    }

    #[test]
    fn workgroups_are_shared_out() {
        // Small tensors: a workgroup each, and one access for each invocation.
        let small = Grid::new([1, 4096, 1024, 1025].into_iter(), 4);
        assert_eq!((small.first_workgroups.as_slice(), small.groups, small.rounds), (&[0, 1, 5, 6, 8][..], 8, 1));
        // More than 2^31 elements.
        let large = Grid::new([3 << 33, 5].into_iter(), 4);
        assert_eq!(large.rounds, MAX_ROUNDS);
        assert_eq!(large.first_workgroups.as_slice(), [0, (3 << 33) / (16 * 1024), (3 << 33) / (16 * 1024) + 1]);
    }
}
