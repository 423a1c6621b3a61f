//! The elements of lowest rank in long rows, by radix selection: digit by digit from the highest, the keys that can
//! still be the one wanted are counted, which tells its next digit (T. Alabi et al., "Fast k-selection algorithms for
//! graphics processing units", ACM JEA 17, 2012). Then what lies below it is collected in the order of positions.

use crate::check;
use crate::movement::copy::fill_with;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::primitives::launch::{GROUP, linear_id};
use crate::primitives::prefix_sum;
use crate::primitives::radix_sort::{self, BITS, Block, DIGITS, EACH};
use crate::tensor::Tensor;
use dml_kernel::{Atomic, Builder, DType, Kernel, Scalar};

/// What is collected from each row.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Collect {
    /// So many of lowest rank. Of equal ones the first.
    Lowest(i64),
    /// The one of the wanted rank.
    One,
}

/// A selection in `rows` rows of contiguous keys, which differ in their lowest `bits`.
pub struct Selection<'t> {
    /// `[rows, n]`, u32 or u64.
    pub keys: &'t Tensor,
    /// Number of rows.
    pub rows: i64,
    /// Width of a key.
    pub bits: u32,
    /// The rank wanted in each row, from 0 (u32, `[rows]`). Is overwritten.
    pub ranks: Tensor,
}

impl Selection<'_> {
    /// Ranks that are the same in all rows.
    pub fn same_rank(call: &Call, rows: i64, rank: i64) -> Result<Tensor> {
        let ranks = call.empty(DType::U32, &[rows])?;
        fill_with(call, &ranks, Number::Int(rank))?;
        Ok(ranks)
    }

    /// Keys and positions (u32) of what is collected, `[rows, count]`.
    pub fn run(&self, call: &Call, collect: Collect) -> Result<(Tensor, Tensor)> {
        let (rows, n) = (self.rows, self.keys.numel() / self.rows);
        check!(
            n < i64::from(i32::MAX),
            NotImplemented,
            "{}: {n} elements in a row are more than dml can sort",
            call.name
        );
        let dtype = self.keys.dtype;
        let index = crate::tensor::layout::index_type(self.keys.numel());
        let (found, digits) = (call.empty(dtype, &[rows])?, call.empty(DType::U32, &[rows, i64::from(DIGITS)])?);
        fill_with(call, &found, Number::Int(0))?;
        fill_with(call, &digits, Number::Int(0))?;
        let blocks = radix_sort::blocks(n);
        let threads = rows as u64 * blocks * u64::from(GROUP);
        let passes = self.bits.div_ceil(BITS);
        let key = |part: u32| [dtype as u32, index.bytes(), part, 0, 0, 0];
        for pass in (0..passes).rev() {
            let shift = pass * BITS;
            let above = if pass + 1 == passes { 0 } else { u64::MAX << (shift + BITS) };
            let kernel = call.kernel("select_count", key(0), || build_count(dtype, index))?;
            let launcher = call.launch(kernel).read(self.keys).read(&found).write(&digits);
            let launcher = [n as u32, blocks as u32, rows as u32, shift].iter().fold(launcher, |l, &x| l.u32(x));
            launcher.number(dtype, Number::Int(above as i64)).threads(threads)?;
            let kernel = call.kernel("select_step", key(0), || build_step(dtype))?;
            let launcher = call.launch(kernel).write(&digits).write(&found).write(&self.ranks);
            launcher.u32(rows as u32).u32(shift).threads(rows as u64)?;
        }
        let count = if let Collect::Lowest(count) = collect { count } else { 1 };
        let cells = rows * blocks as i64;
        let before = call.empty(DType::U32, &[2 * cells + 1])?;
        let (keys, positions) = (call.empty(dtype, &[rows, count])?, call.empty(DType::U32, &[rows, count])?);
        for part in [Part::Count, Part::Collect { one: collect == Collect::One }] {
            let kernel = call.kernel("select_part", key(part.code()), || build_part(part, dtype, index))?;
            let launcher = call.launch(kernel).read(self.keys).read(&found).write(&before);
            let launcher = match part {
                Part::Count => launcher,
                Part::Collect { .. } => launcher.read(&self.ranks).write(&keys).write(&positions),
            };
            let numbers = [n as u32, blocks as u32, rows as u32, 0, count as u32];
            numbers.iter().fold(launcher, |l, &x| l.u32(x)).threads(threads)?;
            if part == Part::Count {
                prefix_sum::exclusive(call, &before, 2 * cells)?;
            }
        }
        Ok((keys, positions))
    }
}

/// Adds the digits of the keys that agree with what was found above to the counts of their row.
fn build_count(dtype: DType, index: Scalar) -> Kernel {
    let b = Builder::new("select_count", [GROUP, 1, 1]);
    let (keys, found) = (b.pointer("keys", dtype), b.pointer("found", dtype));
    let digits = b.pointer("digits", DType::U32);
    let block = Block::new(&b, keys, index);
    let above = b.param("above", dtype.compute());
    let found = found.load(block.row);
    block.count(|key| ((key ^ found) & above).eq(0));
    let digit = b.local_id(0);
    b.if_(digit.lt(DIGITS), || {
        let total = block.total(digit);
        b.if_(total.ne(0), || {
            digits.atomic(Atomic::Add, block.row * DIGITS + digit, total);
        });
    });
    b.finish()
}

/// Finds the next digit of each row's key, and how far behind the keys of that digit the rank begins.
fn build_step(dtype: DType) -> Kernel {
    let b = Builder::new("select_step", [GROUP, 1, 1]);
    let digits = b.pointer("digits", DType::U32);
    let (found, ranks) = (b.pointer("found", dtype), b.pointer("ranks", DType::U32));
    let (rows, shift) = (b.param("rows", Scalar::U32), b.param("shift", Scalar::U32));
    let row = linear_id(&b, Scalar::U32);
    b.if_(row.lt(rows), || {
        let rank = ranks.load(row);
        let (mut below, mut digit, mut rest) = (b.u32(0), b.u32(0), rank);
        for d in 0..DIGITS {
            let here = digits.load(row * DIGITS + d);
            digits.store(row * DIGITS + d, b.u32(0));
            let inside = rank.ge(below);
            digit = inside.select(b.u32(d), digit);
            rest = inside.select(rank - below, rest);
            below = below + here;
        }
        let digit = digit.cast(dtype.compute()) << shift.cast(dtype.compute());
        found.store(row, found.load(row) | digit);
        ranks.store(row, rest);
    });
    b.finish()
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Part {
    /// Counts what lies below the found key, and its equals, in each block.
    Count,
    /// Writes them where the sums of the counts say.
    Collect { one: bool },
}

impl Part {
    fn code(self) -> u32 {
        match self {
            Part::Count => 0,
            Part::Collect { one } => 1 + u32::from(one),
        }
    }
}

fn build_part(part: Part, dtype: DType, index: Scalar) -> Kernel {
    let b = Builder::new("select_part", [GROUP, 1, 1]);
    let (keys, found) = (b.pointer("keys", dtype), b.pointer("found", dtype));
    let before = b.pointer("before", DType::U32);
    let outs = match part {
        Part::Count => None,
        Part::Collect { .. } => {
            Some((b.pointer("ranks", DType::U32), b.pointer("to", dtype), b.pointer("positions", DType::U32)))
        }
    };
    let block = Block::new(&b, keys, index);
    let count = b.param("count", Scalar::U32);
    let found = found.load(block.row);
    // Two counts in one word: a block has fewer than 2^16 keys.
    const { assert!(GROUP * EACH < 1 << 16) };
    let mine = b.var(b.u32(0));
    block.each(|_, _, key, _| {
        mine.set(mine.get() + key.lt(found).cast(Scalar::U32) + (key.eq(found).cast(Scalar::U32) << 16));
    });
    let (inclusive, all) = prefix_sum::workgroup(&b, prefix_sum::scratch(&b, Scalar::U32), mine.get());
    let (first, cells) = (block.row * block.blocks, block.rows * block.blocks);
    let place = first + block.index;
    match outs {
        None => b.if_(b.local_id(0).eq(0), || {
            before.store(place, all & 0xffff);
            before.store(cells + place, all >> 16);
        }),
        Some((ranks, to, positions)) => {
            let earlier = inclusive - mine.get();
            let below = b.var(before.load(place) - before.load(first) + (earlier & 0xffff));
            let equal = b.var(before.load(cells + place) - before.load(cells + first) + (earlier >> 16));
            let rank = ranks.load(block.row);
            block.each(|_, position, key, _| {
                let is_equal = key.eq(found);
                let (slot, wanted) = if let Part::Collect { one: true } = part {
                    (b.u32(0), is_equal & equal.get().eq(rank))
                } else {
                    let slot = is_equal.select(count - 1 - rank + equal.get(), below.get());
                    (slot, key.lt(found) | (is_equal & equal.get().le(rank)))
                };
                b.if_(wanted, || {
                    let at = block.row.cast(index) * count.cast(index) + slot.cast(index);
                    to.store(at, key);
                    positions.store(at, position);
                });
                below.set(below.get() + key.lt(found).cast(Scalar::U32));
                equal.set(equal.get() + is_equal.cast(Scalar::U32));
            });
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::U32, Scalar::U32), (DType::U64, Scalar::U64)] {
            accepted(&build_count(dtype, index));
            accepted(&build_step(dtype));
            for part in [Part::Count, Part::Collect { one: false }, Part::Collect { one: true }] {
                accepted(&build_part(part, dtype, index));
            }
        }
    }
}
