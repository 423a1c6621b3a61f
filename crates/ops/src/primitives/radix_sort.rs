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
    let (dtype, mut from, mut positions) = (keys.dtype, keys.clone(), positions.cloned());
    for shift in (0..bits.max(1)).step_by(BITS as usize) {
        let (to, moved) = (call.empty(dtype, &keys.sizes)?, call.empty(DType::U32, &keys.sizes)?);
        let pass = Pass { shift, ..pass };
        call.run_threads(&Count { dtype, index }, &CountArguments { keys: &from, counts, pass }, threads)?;
        prefix_sum::exclusive(call, counts, cells)?;
        let spec = Move { dtype, index, positions: positions.is_some() };
        let arguments =
            MoveArguments { keys: &from, counts, to: &to, moved: &moved, positions: positions.as_ref(), pass };
        call.run_threads(&spec, &arguments, threads)?;
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
    /// `[digit][sixteenth of the workgroup]`
    parts: Shared<'b>,
}

impl<'b> Block<'b> {
    /// The workgroup's block of `keys`. A superfluous workgroup ends here.
    pub fn new(b: &'b Builder, keys: Pointer<'b>, pass: PassParams<'b>, index: ScalarType) -> Block<'b> {
        let PassParams { n, blocks, rows, shift } = pass;
        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        b.if_(group.ge(blocks * rows), || b.return_());
        let row = group / blocks;
        let cells = b.shared(ScalarType::U32, 1, DIGITS * GROUP);
        let parts = b.shared(ScalarType::U32, 1, GROUP);
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
        for k in 0..GROUP / DIGITS {
            sum = sum + self.cells.load(me * (GROUP / DIGITS) + k);
        }
        self.parts.store(me, sum);
        self.b.barrier();
    }

    /// How many keys of the block were counted for a digit.
    pub fn total(&self, digit: Value<'b>) -> Value<'b> {
        let parts = GROUP / DIGITS;
        (0..parts).fold(self.b.u32(0), |sum, k| sum + self.parts.load(digit * parts + k))
    }
}

/// Counts the digits of each block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Count {
    dtype: DType,
    index: ScalarType,
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
        let block = Block::new(b, p.keys, p.pass, self.index);
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
        let block = Block::new(b, p.keys, p.pass, self.index);
        block.count(|_| b.bool(true));
        let me = b.local_id(0);
        // From counts to places in the row (the sums wrap with its base): of every sixteenth, then of every invocation.
        b.if_(me.lt(DIGITS), || {
            let mut place = p.counts.load(block.count_at(me)) - block.row * block.n;
            for k in 0..GROUP / DIGITS {
                let at = me * (GROUP / DIGITS) + k;
                let here = block.parts.load(at);
                block.parts.store(at, place);
                place = place + here;
            }
        });
        b.barrier();
        let mut place = block.parts.load(me);
        for k in 0..GROUP / DIGITS {
            let at = me * (GROUP / DIGITS) + k;
            let here = block.cells.load(at);
            block.cells.store(at, place);
            place = place + here;
        }
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
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in
            [(DType::U32, ScalarType::U32), (DType::U64, ScalarType::U32), (DType::U64, ScalarType::U64)]
        {
            accepted(&Count { dtype, index }.build());
            accepted(&Move { dtype, index, positions: false }.build());
            accepted(&Move { dtype, index, positions: true }.build());
        }
    }
}
