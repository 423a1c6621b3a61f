//! The table of a launch over lists, and how a workgroup finds its tensor in it.
//!
//! The table holds 64-bit words: for each tensor the number of the first workgroup that works on
//! it, then the number of workgroups of all, then an entry a tensor. An entry is the number of
//! elements, and what else the kernel wants to know: addresses, in elements, and numbers.

use dml_engine::interface::{Table, U32, Unordered};
use dml_engine::{AddressRange, ArgumentBlock, Parameter};
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::SmallVec;

/// The most tensors of one launch: every workgroup looks through all of them.
pub const MAX_TENSORS: usize = 1024;

/// Workgroups that keep a large adapter busy; with more, a workgroup takes more elements.
const MIN_GROUPS: u64 = 2048;

/// The most accesses of an invocation.
const MAX_ROUNDS: u64 = 16;

/// The tensors of one launch, as a kernel's parameter: its first one.
pub struct ListTable;

/// The argument for [`ListTable`].
pub struct Listed<'a> {
    /// The first workgroup of each tensor, and the number of all.
    pub firsts: &'a [u64],
    /// The tensors' entries.
    pub entries: &'a [u64],
    /// Accesses of an invocation.
    pub rounds: u32,
    /// The memory of the tensors that are read only.
    pub reads: &'a [AddressRange],
    /// That of those that are written.
    pub writes: &'a [AddressRange],
}

/// The tensors of one launch in a kernel.
pub struct Lists<'b> {
    b: &'b Builder,
    table: Pointer<'b>,
    /// All memory: the addresses of the table count from its start.
    memory: Pointer<'b>,
    tensors: Value<'b>,
    groups: Value<'b>,
    /// Accesses of an invocation.
    pub rounds: Value<'b>,
}

/// What a workgroup works on.
pub struct Part<'b> {
    /// Where the tensor's entry is in the table.
    entry: Value<'b>,
    /// The first element (u64).
    pub start: Value<'b>,
    /// Elements (u32).
    pub n: Value<'b>,
}

impl Parameter for ListTable {
    type Type = ();
    type Argument<'a> = Listed<'a>;
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

    fn pass(listed: &Listed, (): &(), block: &mut ArgumentBlock) {
        Table::pass(&listed.firsts, &DType::U64, block);
        for &word in listed.entries {
            block.table(word);
        }
        block.address(0);
        let tensors = listed.firsts.len() - 1;
        for number in [tensors as u32, listed.firsts[tensors] as u32, listed.rounds] {
            U32::pass(&number, &(), block);
        }
        for &range in listed.reads {
            block.reads(range);
        }
        for &range in listed.writes {
            block.writes(range);
        }
    }
}

impl<'b> Lists<'b> {
    /// Runs `body` in every workgroup that has work. An invocation works on `lanes` elements at a
    /// time, in [`rounds`](Self::rounds) turns with the others of its workgroup. `words` is the
    /// length of an entry.
    pub fn part(&self, lanes: u32, words: u32, body: impl FnOnce(Part<'b>)) {
        let (b, table) = (self.b, self.table);
        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        // The whole workgroup searches: one look each, where a binary search would take several in
        // a row.
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

    /// The first workgroup of a tensor, and that of the next one.
    pub fn groups_of(&self, tensor: Value<'b>) -> [Value<'b>; 2] {
        [tensor, tensor + 1].map(|i| self.table.load(i).cast(ScalarType::U32))
    }

    /// Word `i` of a tensor's entry of `words`, after the number of elements.
    pub fn word_of(&self, tensor: Value<'b>, words: u32, i: u32) -> Value<'b> {
        self.table.load(self.tensors + 1 + tensor * words + (1 + i))
    }

    /// Elements of a tensor (u64), whose entry is of `words`.
    pub fn numel_of(&self, tensor: Value<'b>, words: u32) -> Value<'b> {
        self.table.load(self.tensors + 1 + tensor * words)
    }

    /// Elements of the tensor that a part belongs to (u64).
    pub fn numel(&self, part: &Part<'b>) -> Value<'b> {
        self.table.load(part.entry)
    }

    /// Word `i` of a part's entry, after the number of elements.
    pub fn word(&self, part: &Part<'b>, i: u32) -> Value<'b> {
        self.table.load(part.entry + (1 + i))
    }

    /// The tensor whose address is word `i`.
    pub fn tensor(&self, part: &Part<'b>, i: u32, dtype: DType) -> Pointer<'b> {
        self.memory.retyped(dtype).offset(self.word(part, i))
    }

    /// The part of a tensor whose address is word `i`.
    pub fn part_of(&self, part: &Part<'b>, i: u32, dtype: DType) -> Pointer<'b> {
        self.memory.retyped(dtype).offset(self.word(part, i) + part.start)
    }
}

/// How many workgroups work on each tensor.
pub struct Grid {
    /// The first workgroup of each tensor, and the number of all.
    pub firsts: SmallVec<[u64; 64]>,
    /// Workgroups of all.
    pub groups: u64,
    /// Accesses of an invocation.
    pub rounds: u64,
}

impl Grid {
    /// For tensors of so many elements, of which an access takes `lanes`.
    pub fn new(counts: impl Iterator<Item = u64> + Clone, lanes: u32) -> Grid {
        let access = u64::from(GROUP * lanes);
        let all: u64 = counts.clone().map(|n| n.div_ceil(access)).sum();
        let rounds = (all / MIN_GROUPS).clamp(1, MAX_ROUNDS);
        let mut firsts = SmallVec::from_slice(&[0]);
        let mut groups = 0;
        for n in counts {
            groups += n.div_ceil(access * rounds);
            firsts.push(groups);
        }
        Grid { firsts, groups, rounds }
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

    /// Positions beyond 32 bits: the workgroups of tensors of more than 2^33 elements start where
    /// they should.
    #[test]
    fn workgroups_find_their_parts() {
        let (rounds, lanes) = (1u64 << 20, 4);
        let chunk = rounds * u64::from(GROUP) * lanes;
        let counts: Vec<u64> = (0..300).map(|i| if i % 100 == 7 { 9 * chunk + i } else { i + 1 }).collect();
        let mut firsts = vec![0];
        for count in &counts {
            firsts.push(firsts[firsts.len() - 1] + count.div_ceil(chunk));
        }
        let groups = firsts[counts.len()];
        let table = [firsts.as_slice(), &counts].concat();
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
        // Small tensors: a workgroup each, one access an invocation.
        let small = Grid::new([1, 4096, 1024, 1025].into_iter(), 4);
        assert_eq!((small.firsts.as_slice(), small.groups, small.rounds), (&[0, 1, 5, 6, 8][..], 8, 1));
        // More than 2^31 elements.
        let large = Grid::new([3 << 33, 5].into_iter(), 4);
        assert_eq!(large.rounds, MAX_ROUNDS);
        assert_eq!(large.firsts.as_slice(), [0, (3 << 33) / (16 * 1024), (3 << 33) / (16 * 1024) + 1]);
    }
}
