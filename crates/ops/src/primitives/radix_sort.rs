//! Sorting of unsigned keys together with their positions, row by row: stable, so that what follows can work in the
//! order of positions.
//!
//! Least significant digit first, four bits a pass. In a pass each workgroup counts the digits of a block of a row's
//! keys, the counts of all blocks are summed up digit by digit, and each workgroup puts its keys where the sums say
//! (Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs", IPDPS 2009).

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::launch::GROUP;
use crate::primitives::prefix_sum;
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Shared, Value};

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
    let blocks = blocks(n);
    let cells = (rows as u64 * blocks * u64::from(DIGITS)) as i64;
    let counts = call.empty(DType::U32, &[cells + 1])?;
    let threads = rows as u64 * blocks * u64::from(GROUP);
    let index = crate::tensor::layout::index_type(keys.numel());
    let (dtype, mut from, mut positions) = (keys.dtype, keys.clone(), positions.cloned());
    for pass in 0..bits.div_ceil(BITS).max(1) {
        let (to, moved) = (call.empty(dtype, &keys.sizes)?, call.empty(DType::U32, &keys.sizes)?);
        let first = positions.is_none();
        let key = [dtype as u32, index.bytes(), u32::from(first), 0, 0, 0];
        let numbers = [n as u32, blocks as u32, rows as u32, pass * BITS];
        let kernel = call.kernel("radix_count", key, || build_count(dtype, index))?;
        let launcher = call.launch(kernel).read(&from).write(&counts);
        numbers.iter().fold(launcher, |l, &x| l.u32(x)).threads(threads)?;
        prefix_sum::exclusive(call, &counts, cells)?;
        let kernel = call.kernel("radix_move", key, || build_move(dtype, index, first))?;
        let mut launcher = call.launch(kernel).read(&from).read(&counts).write(&to).write(&moved);
        if let Some(positions) = &positions {
            launcher = launcher.read(positions);
        }
        numbers.iter().fold(launcher, |l, &x| l.u32(x)).threads(threads)?;
        (from, positions) = (to, Some(moved));
    }
    // There is at least one pass.
    let positions = positions.unwrap_or_else(|| from.clone());
    Ok((from, positions))
}

/// Blocks of a row of `n` keys.
pub fn blocks(n: i64) -> u64 {
    (n as u64).div_ceil(u64::from(GROUP * EACH))
}

/// What both kernels of a pass share: every invocation's keys, and how many it has of each digit.
pub struct Block<'b> {
    b: &'b Builder,
    keys: Pointer<'b>,
    n: Value<'b>,
    pub blocks: Value<'b>,
    pub rows: Value<'b>,
    shift: Value<'b>,
    /// The workgroup's row, and its block in the row.
    pub row: Value<'b>,
    pub index: Value<'b>,
    /// Index of the row's first key.
    base: Value<'b>,
    /// `[digit][invocation]`
    cells: Shared<'b>,
    /// `[digit][sixteenth of the workgroup]`
    parts: Shared<'b>,
}

impl<'b> Block<'b> {
    /// Declares its numbers: `n`, `blocks` of a row, `rows` and `shift`.
    pub fn new(b: &'b Builder, keys: Pointer<'b>, index: Scalar) -> Block<'b> {
        let [n, blocks, rows, shift] = ["n", "blocks", "rows", "shift"].map(|name| b.param(name, Scalar::U32));
        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        b.if_(group.ge(blocks * rows), || b.return_());
        let row = group / blocks;
        let cells = b.shared(Scalar::U32, 1, DIGITS * GROUP);
        let parts = b.shared(Scalar::U32, 1, GROUP);
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
                let digit = (key >> self.shift.cast(key.scalar())).cast(Scalar::U32) & (DIGITS - 1);
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

fn build_count(dtype: DType, index: Scalar) -> Kernel {
    let b = Builder::new("radix_count", [GROUP, 1, 1]);
    let (keys, counts) = (b.pointer("keys", dtype), b.pointer("counts", DType::U32));
    let block = Block::new(&b, keys, index);
    block.count(|_| b.bool(true));
    let digit = b.local_id(0);
    b.if_(digit.lt(DIGITS), || counts.store(block.count_at(digit), block.total(digit)));
    b.finish()
}

fn build_move(dtype: DType, index: Scalar, first: bool) -> Kernel {
    let b = Builder::new("radix_move", [GROUP, 1, 1]);
    let (keys, counts) = (b.pointer("keys", dtype), b.pointer("counts", DType::U32));
    let (to, moved) = (b.pointer("to", dtype), b.pointer("moved", DType::U32));
    let positions = if first { None } else { Some(b.pointer("positions", DType::U32)) };
    let block = Block::new(&b, keys, index);
    block.count(|_| b.bool(true));
    let me = b.local_id(0);
    // From counts to places in the row (the sums wrap with its base): of every sixteenth, then of every invocation.
    b.if_(me.lt(DIGITS), || {
        let mut place = counts.load(block.count_at(me)) - block.row * block.n;
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
        let place = block.base + place.cast(index);
        to.store(place, key);
        moved.store(place, positions.map_or(position, |p| p.load(at)));
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::U32, Scalar::U32), (DType::U64, Scalar::U32), (DType::U64, Scalar::U64)] {
            accepted(&build_count(dtype, index));
            accepted(&build_move(dtype, index, true));
            accepted(&build_move(dtype, index, false));
        }
    }
}
