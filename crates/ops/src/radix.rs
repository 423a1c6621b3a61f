//! Sorting of u32 keys together with their positions: stable, so that what follows can work in the order of positions.
//!
//! Least significant digit first, four bits a pass. In a pass each workgroup counts the digits of a block of keys, the
//! counts of all blocks are summed up digit by digit, and each workgroup puts its keys where the sums say (Satish,
//! Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs", IPDPS 2009).

use crate::call::Call;
use crate::error::Result;
use crate::launch::GROUP;
use crate::prefix;
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Shared, Value};

/// Neighbouring keys of one invocation.
const EACH: u32 = 8;
/// Bits of a digit.
const BITS: u32 = 4;
const DIGITS: u32 = 1 << BITS;

/// Sorts `keys` (u32, one contiguous row), none above `largest`. Returns the keys in order and the position that each
/// had.
pub fn sort(call: &Call, keys: &Tensor, largest: u32) -> Result<(Tensor, Tensor)> {
    let n = keys.numel();
    let blocks = (n as u64).div_ceil(u64::from(GROUP * EACH));
    let counts = call.empty(DType::U32, &[(blocks * u64::from(DIGITS)) as i64 + 1])?;
    let passes = (u32::BITS - largest.leading_zeros()).div_ceil(BITS).max(1);
    let (mut from, mut positions) = (keys.clone(), None::<Tensor>);
    for pass in 0..passes {
        let (to, moved) = (call.empty(DType::U32, &[n])?, call.empty(DType::U32, &[n])?);
        let kernel = call.kernel("radix_count", [0; 6], build_count)?;
        call.launch(kernel)
            .read(&from)
            .write(&counts)
            .u32(n as u32)
            .u32(blocks as u32)
            .u32(pass * BITS)
            .threads(blocks * u64::from(GROUP))?;
        prefix::exclusive(call, &counts, (blocks * u64::from(DIGITS)) as i64)?;
        let first = positions.is_none();
        let kernel = call.kernel("radix_move", [u32::from(first), 0, 0, 0, 0, 0], || build_move(first))?;
        let mut launcher = call.launch(kernel).read(&from).read(&counts).write(&to).write(&moved);
        if let Some(positions) = &positions {
            launcher = launcher.read(positions);
        }
        launcher.u32(n as u32).u32(blocks as u32).u32(pass * BITS).threads(blocks * u64::from(GROUP))?;
        (from, positions) = (to, Some(moved));
    }
    // `passes` is at least one.
    let positions = positions.unwrap_or_else(|| from.clone());
    Ok((from, positions))
}

/// What both kernels of a pass share: every invocation's keys, and how many it has of each digit.
struct Block<'b> {
    b: &'b Builder,
    keys: Pointer<'b>,
    n: Value<'b>,
    blocks: Value<'b>,
    shift: Value<'b>,
    index: Value<'b>,
    /// `[digit][invocation]`
    cells: Shared<'b>,
    /// `[digit][sixteenth of the workgroup]`
    parts: Shared<'b>,
}

impl<'b> Block<'b> {
    fn new(b: &'b Builder, keys: Pointer<'b>) -> Block<'b> {
        let n = b.param("n", Scalar::U32);
        let blocks = b.param("blocks", Scalar::U32);
        let shift = b.param("shift", Scalar::U32);
        let index = b.group_id(0) + b.group_id(1) * b.group_count(0);
        b.if_(index.ge(blocks), || b.return_());
        let cells = b.shared(Scalar::U32, 1, DIGITS * GROUP);
        let parts = b.shared(Scalar::U32, 1, GROUP);
        Block { b, keys, n, blocks, shift, index, cells, parts }
    }

    /// Runs `body` for this invocation's keys, given a key's position, the key and the cell of its digit.
    fn each(&self, body: impl Fn(Value<'b>, Value<'b>, Value<'b>)) {
        let me = self.b.local_id(0);
        for k in 0..EACH {
            let i = (self.index * GROUP + me) * EACH + k;
            self.b.if_(i.lt(self.n), || {
                let key = self.keys.load(i);
                body(i, key, ((key >> self.shift) & (DIGITS - 1)) * GROUP + me);
            });
        }
    }

    /// Fills `cells`, and `parts` with the sums of every 16 neighbours.
    fn count(&self) {
        let me = self.b.local_id(0);
        for digit in 0..DIGITS {
            self.cells.store(me + digit * GROUP, self.b.u32(0));
        }
        self.each(|_, _, cell| self.cells.store(cell, self.cells.load(cell) + 1));
        self.b.barrier();
        let mut sum = self.b.u32(0);
        for k in 0..GROUP / DIGITS {
            sum = sum + self.cells.load(me * (GROUP / DIGITS) + k);
        }
        self.parts.store(me, sum);
        self.b.barrier();
    }
}

fn build_count() -> Kernel {
    let b = Builder::new("radix_count", [GROUP, 1, 1]);
    let (keys, counts) = (b.pointer("keys", DType::U32), b.pointer("counts", DType::U32));
    let block = Block::new(&b, keys);
    block.count();
    let digit = b.local_id(0);
    b.if_(digit.lt(DIGITS), || {
        let mut sum = b.u32(0);
        for k in 0..GROUP / DIGITS {
            sum = sum + block.parts.load(digit * (GROUP / DIGITS) + k);
        }
        counts.store(digit * block.blocks + block.index, sum);
    });
    b.finish()
}

fn build_move(first: bool) -> Kernel {
    let b = Builder::new("radix_move", [GROUP, 1, 1]);
    let (keys, counts) = (b.pointer("keys", DType::U32), b.pointer("counts", DType::U32));
    let (to, moved) = (b.pointer("to", DType::U32), b.pointer("moved", DType::U32));
    let positions = if first { None } else { Some(b.pointer("positions", DType::U32)) };
    let block = Block::new(&b, keys);
    block.count();
    let me = b.local_id(0);
    // From counts to places: of every sixteenth, then of every invocation.
    b.if_(me.lt(DIGITS), || {
        let mut place = counts.load(me * block.blocks + block.index);
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
    block.each(|i, key, cell| {
        let place = block.cells.load(cell);
        block.cells.store(cell, place + 1);
        to.store(place, key);
        moved.store(place, positions.map_or(i, |p| p.load(i)));
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        accepted(&build_count());
        accepted(&build_move(true));
        accepted(&build_move(false));
    }
}
