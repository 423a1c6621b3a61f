//! Sorting of unsigned keys together with their positions, row by row: stable, so that what follows can work in the
//! order of positions.
//!
//! Least significant digit first, four bits a pass. In a pass each workgroup counts the digits of a block of a row's
//! keys, the counts of all blocks are summed up digit by digit, and each workgroup puts its keys where the sums say
//! (Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs", IPDPS 2009).

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::prefix_sum;
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use dml_engine::{ArgumentBlock, Parameter, interface::U32, parameters};
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Shared, Value};

/// Neighbouring keys of one invocation.
pub const EACH: u32 = 8;
/// Bits of a digit.
pub const BITS: u32 = 4;
/// Values of a digit.
pub const DIGITS: u32 = 1 << BITS;

/// Sorts `keys` (u32, one contiguous row), none above `largest`. Returns the keys in order and the position that each
/// had.
pub fn sort(call: &Call, keys: &Tensor, largest: u32) -> Result<(Tensor, Tensor)> {
    sort_rows(call, keys, None, 1, u32::BITS - largest.leading_zeros())
}

/// Sorts `keys` (u32 or u64, contiguous), `rows` of one length below 2^31, by their lowest `bits`. Returns the keys in
/// order and the position in its row that each had, or what `positions` (u32) holds there.
pub fn sort_rows(
    call: &Call,
    keys: &Tensor,
    positions: Option<&Tensor>,
    rows: i64,
    bits: u32,
) -> Result<(Tensor, Tensor)> {
    let n = keys.numel() / rows;
    check!(n < i64::from(i32::MAX), NotImplemented, "{}: {n} elements in a row are more than dml can sort", call.name);
    let pass = Pass { n: n as u32, rows: rows as u32, shift: 0 };
    let cells = (pass.blocks() * u64::from(DIGITS)) as i64;
    let counts = &call.empty(DType::U32, &[cells + 1])?;
    let threads = pass.threads();
    let index = index_type(keys.numel());
    let tables = Tables::of(call);
    let (dtype, mut from, mut positions) = (keys.dtype, keys.clone(), positions.cloned());
    // What a pass has read, the one after the next writes: all of them take the memory of two.
    let mut spare: Option<(Tensor, Tensor)> = None;
    for shift in (0..bits.max(1)).step_by(BITS as usize) {
        let (to, moved) = match spare.take() {
            Some(read) => read,
            None => (call.empty(dtype, &keys.sizes)?, call.empty(DType::U32, &keys.sizes)?),
        };
        let pass = Pass { shift, ..pass };
        call.run_threads(&Count { dtype, index, tables }, &CountArguments { keys: &from, counts, pass }, threads)?;
        prefix_sum::exclusive(call, counts, cells)?;
        let spec = Move { dtype, index, tables, positions: positions.is_some() };
        let arguments =
            MoveArguments { keys: &from, counts, to: &to, moved: &moved, positions: positions.as_ref(), pass };
        call.run_threads(&spec, &arguments, threads)?;
        // The caller's own stay as they are.
        spare = (shift > 0).then(|| positions.map(|positions| (from, positions))).flatten();
        (from, positions) = (to, Some(moved));
    }
    // There is at least one pass.
    let positions = positions.unwrap_or_else(|| from.clone());
    Ok((from, positions))
}

/// One pass over the digits of rows of keys, a block of a row a workgroup.
#[derive(Copy, Clone, Debug)]
pub struct Pass {
    /// Keys of a row.
    pub n: u32,
    /// Rows.
    pub rows: u32,
    /// The digit's lowest bit.
    pub shift: u32,
}

impl Pass {
    /// Blocks of a row.
    fn blocks_of_row(self) -> u32 {
        self.n.div_ceil(GROUP * EACH)
    }

    /// Blocks of all rows.
    pub fn blocks(self) -> u64 {
        u64::from(self.rows) * u64::from(self.blocks_of_row())
    }

    /// Invocations that the blocks take.
    pub fn threads(self) -> u64 {
        self.blocks() * u64::from(GROUP)
    }
}

/// How a workgroup's counts lie in shared memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tables {
    /// The counts of every sixteenth of the workgroup beside those of the invocations.
    Apart,
    /// In the last of its invocations', for adapters whose shared memory does not hold both.
    Joined,
}

impl Tables {
    /// What the adapter has room for.
    pub fn of(call: &Call) -> Tables {
        let apart = 4 * GROUP * (DIGITS + 1);
        if call.device.info().capabilities.max_shared_memory >= apart { Tables::Apart } else { Tables::Joined }
    }

    /// For a kernel that counts nothing: `None` where its tables would take the room of something else.
    pub fn unused(self) -> Option<Tables> {
        (self == Tables::Apart).then_some(self)
    }
}

/// Invocations of a sixteenth of the workgroup.
const SIXTEENTH: u32 = GROUP / DIGITS;

/// A [`Pass`] as a kernel's parameter.
pub struct PassNumbers;

/// A [`Pass`] in a kernel (u32).
#[derive(Copy, Clone)]
pub struct PassParams<'b> {
    n: Value<'b>,
    /// Blocks of a row.
    blocks: Value<'b>,
    rows: Value<'b>,
    shift: Value<'b>,
}

impl Parameter for PassNumbers {
    type Type = ();
    type Argument<'a> = Pass;
    type Declared<'b> = PassParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, (): &()) -> PassParams<'b> {
        let [n, blocks, rows, shift] = ["n", "blocks", "rows", "shift"].map(|name| b.param(name, ScalarType::U32));
        PassParams { n, blocks, rows, shift }
    }

    fn pass(pass: &Pass, (): &(), block: &mut ArgumentBlock) {
        for number in [pass.n, pass.blocks_of_row(), pass.rows, pass.shift] {
            U32::pass(&number, &(), block);
        }
    }
}

/// A workgroup's keys in a pass: every invocation's, and how many it has of each digit.
pub struct Block<'b> {
    b: &'b Builder,
    keys: Pointer<'b>,
    n: Value<'b>,
    /// Blocks of a row.
    pub blocks: Value<'b>,
    /// Rows.
    pub rows: Value<'b>,
    shift: Value<'b>,
    /// The workgroup's row.
    pub row: Value<'b>,
    /// Its block in the row.
    pub index: Value<'b>,
    /// Index of the row's first key.
    base: Value<'b>,
    /// `[digit][invocation]`
    cells: Shared<'b>,
    /// `[digit][sixteenth of the workgroup]`; without it the last cell of each sixteenth stands for it, and the cells hold
    /// running sums inside a sixteenth.
    parts: Option<Shared<'b>>,
}

impl<'b> Block<'b> {
    /// The workgroup's block of `keys`, with shared memory for counts if there are `tables`. A superfluous workgroup ends
    /// here.
    pub fn new(
        b: &'b Builder,
        keys: Pointer<'b>,
        pass: PassParams<'b>,
        index: ScalarType,
        tables: Option<Tables>,
    ) -> Block<'b> {
        let PassParams { n, blocks, rows, shift } = pass;
        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        b.if_(group.ge(blocks * rows), || b.return_());
        let row = group / blocks;
        let cells = b.shared(ScalarType::U32, 1, if tables.is_some() { DIGITS * GROUP } else { 1 });
        let parts = (tables == Some(Tables::Apart)).then(|| b.shared(ScalarType::U32, 1, GROUP));
        let base = row.cast(index) * n.cast(index);
        Block { b, keys, n, blocks, rows, shift, row, index: group - row * blocks, base, cells, parts }
    }

    /// Where the block's count of a digit is.
    fn count_at(&self, digit: Value<'b>) -> Value<'b> {
        (self.row * DIGITS + digit) * self.blocks + self.index
    }

    /// Runs `body` for this invocation's keys, given a key's index, its position in the row, the key and the cell of
    /// its digit.
    pub fn each(&self, body: impl Fn(Value<'b>, Value<'b>, Value<'b>, Value<'b>)) {
        let me = self.b.local_id(0);
        for k in 0..EACH {
            let position = (self.index * GROUP + me) * EACH + k;
            self.b.if_(position.lt(self.n), || {
                let at = self.base + position.cast(self.base.scalar());
                let key = self.keys.load(at);
                let digit = (key >> self.shift.cast(key.scalar())).cast(ScalarType::U32) & (DIGITS - 1);
                body(at, position, key, digit * GROUP + me);
            });
        }
    }

    /// Fills `cells` with the digits of the keys that are wanted, and `parts` with the sums of every 16 neighbours.
    pub fn count(&self, wanted: impl Fn(Value<'b>) -> Value<'b>) {
        let me = self.b.local_id(0);
        for digit in 0..DIGITS {
            self.cells.store(me + digit * GROUP, self.b.u32(0));
        }
        self.each(|_, _, key, cell| {
            self.b.if_(wanted(key), || self.cells.store(cell, self.cells.load(cell) + 1));
        });
        self.b.barrier();
        let mut sum = self.b.u32(0);
        for k in 0..SIXTEENTH {
            sum = sum + self.cells.load(me * SIXTEENTH + k);
            if self.parts.is_none() {
                self.cells.store(me * SIXTEENTH + k, sum);
            }
        }
        if let Some(parts) = self.parts {
            parts.store(me, sum);
        }
        self.b.barrier();
    }

    /// What stands for a sixteenth: its count, or where its keys begin.
    fn part(&self, at: Value<'b>) -> Value<'b> {
        self.parts.map_or_else(|| self.cells.load(at * SIXTEENTH + (SIXTEENTH - 1)), |parts| parts.load(at))
    }

    fn set_part(&self, at: Value<'b>, value: Value<'b>) {
        match self.parts {
            Some(parts) => parts.store(at, value),
            None => self.cells.store(at * SIXTEENTH + (SIXTEENTH - 1), value),
        }
    }

    /// Makes the invocation's sixteenth of the cells hold where their keys begin; its part says where the first ones do.
    fn begin_cells(&self) {
        let me = self.b.local_id(0);
        let mut place = self.part(me);
        if self.parts.is_none() {
            let first = me * SIXTEENTH;
            for k in (1..SIXTEENTH).rev() {
                self.cells.store(first + k, place + self.cells.load(first + (k - 1)));
            }
            return self.cells.store(first, place);
        }
        for k in 0..SIXTEENTH {
            let at = me * SIXTEENTH + k;
            let here = self.cells.load(at);
            self.cells.store(at, place);
            place = place + here;
        }
    }

    /// How many keys of the block were counted for a digit.
    pub fn total(&self, digit: Value<'b>) -> Value<'b> {
        (0..SIXTEENTH).fold(self.b.u32(0), |sum, k| sum + self.part(digit * SIXTEENTH + k))
    }
}

/// Counts the digits of each block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Count {
    dtype: DType,
    index: ScalarType,
    tables: Tables,
}

parameters! {
    Count as s => CountArguments, CountParameters {
        keys: Input = s.dtype,
        counts: Output = DType::U32,
        pass: PassNumbers,
    }
}

impl KernelSpec for Count {
    fn name(&self) -> &'static str {
        "radix_count"
    }

    fn write<'b>(&self, b: &'b Builder, p: CountParameters<'b>) {
        let block = Block::new(b, p.keys, p.pass, self.index, Some(self.tables));
        block.count(|_| b.bool(true));
        let digit = b.local_id(0);
        b.if_(digit.lt(DIGITS), || p.counts.store(block.count_at(digit), block.total(digit)));
    }
}

/// Puts keys and positions where the sums of the counts say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Move {
    dtype: DType,
    index: ScalarType,
    tables: Tables,
    /// Keys have positions; otherwise a key's place is its position.
    positions: bool,
}

parameters! {
    Move as s => MoveArguments, MoveParameters {
        keys: Input = s.dtype,
        counts: Input = DType::U32,
        to: Output = s.dtype,
        moved: Output = DType::U32,
        positions: Option<Input> = s.positions.then_some(DType::U32),
        pass: PassNumbers,
    }
}

impl KernelSpec for Move {
    fn name(&self) -> &'static str {
        "radix_move"
    }

    fn write<'b>(&self, b: &'b Builder, p: MoveParameters<'b>) {
        let block = Block::new(b, p.keys, p.pass, self.index, Some(self.tables));
        block.count(|_| b.bool(true));
        let me = b.local_id(0);
        // From counts to places in the row (the sums wrap with its base): of every sixteenth, then of every invocation.
        b.if_(me.lt(DIGITS), || {
            let mut place = p.counts.load(block.count_at(me)) - block.row * block.n;
            for k in 0..SIXTEENTH {
                let at = me * SIXTEENTH + k;
                let here = block.part(at);
                block.set_part(at, place);
                place = place + here;
            }
        });
        b.barrier();
        block.begin_cells();
        b.barrier();
        block.each(|at, position, key, cell| {
            let place = block.cells.load(cell);
            block.cells.store(cell, place + 1);
            let place = block.base + place.cast(self.index);
            p.to.store(place, key);
            p.moved.store(place, p.positions.map_or(position, |positions| positions.load(at)));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_tables_fit_where_there_is_least_room() {
        let shared = |tables| {
            let spec = Move { dtype: DType::U64, index: ScalarType::U64, tables, positions: true };
            spec.build().emit().expect("a valid kernel").needs.shared_bytes
        };
        assert_eq!((shared(Tables::Apart), shared(Tables::Joined)), (17 << 10, 16 << 10));
    }

    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in
            [(DType::U32, ScalarType::U32), (DType::U64, ScalarType::U32), (DType::U64, ScalarType::U64)]
        {
            for tables in [Tables::Apart, Tables::Joined] {
                accepted(&Count { dtype, index, tables }.build());
                accepted(&Move { dtype, index, tables, positions: false }.build());
                accepted(&Move { dtype, index, tables, positions: true }.build());
            }
        }
    }
}
