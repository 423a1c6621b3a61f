//! The elements of lowest rank in long rows, by radix selection: digit by digit from the highest, the keys that can
//! still be the one wanted are counted, which tells its next digit (T. Alabi et al., "Fast k-selection algorithms for
//! graphics processing units", ACM JEA 17, 2012). Then what lies below it is collected in the order of positions.

use crate::check;
use crate::movement::copy::fill_with;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::prefix_sum;
use crate::primitives::radix_sort::{BITS, Block, DIGITS, EACH, Pass, PassNumbers, Tables};
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::{GROUP, linear_id};
use dml_kernel::{Atomic, Builder, DType, ScalarType, Value};

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
        let index = index_type(self.keys.numel());
        let (found, digits) = (&call.empty(dtype, &[rows])?, &call.empty(DType::U32, &[rows, i64::from(DIGITS)])?);
        fill_with(call, found, Number::Int(0))?;
        fill_with(call, digits, Number::Int(0))?;
        let pass = Pass { n: n as u32, rows: rows as u32, shift: 0 };
        let (threads, tables) = (pass.threads(), Tables::of(call));
        for shift in (0..self.bits).step_by(BITS as usize).rev() {
            let above = if shift + BITS < self.bits { u64::MAX << (shift + BITS) } else { 0 } as i64;
            let pass = Pass { shift, ..pass };
            let arguments = DigitsArguments { keys: self.keys, found, digits, pass, above };
            call.run_threads(&CountDigits { dtype, index, tables }, &arguments, threads)?;
            let arguments = NextArguments { digits, found, ranks: &self.ranks, rows: rows as u32, shift };
            call.run_threads(&NextDigit { dtype }, &arguments, rows as u64)?;
        }
        let count = if let Collect::Lowest(count) = collect { count } else { 1 };
        let cells = pass.blocks() as i64;
        let before = &call.empty(DType::U32, &[2 * cells + 1])?;
        let arguments = LowestArguments { keys: self.keys, found, before, pass };
        call.run_threads(&CountLowest { dtype, index, tables }, &arguments, threads)?;
        prefix_sum::exclusive(call, before, 2 * cells)?;
        let (keys, positions) = (call.empty(dtype, &[rows, count])?, call.empty(DType::U32, &[rows, count])?);
        let arguments = CollectArguments {
            keys: self.keys,
            found,
            before,
            ranks: &self.ranks,
            to: &keys,
            positions: &positions,
            pass,
            count: count as u32,
        };
        call.run_threads(&CollectSpec { one: collect == Collect::One, dtype, index, tables }, &arguments, threads)?;
        Ok((keys, positions))
    }
}

/// Adds the digits of the keys that agree with what was found above to the counts of their row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CountDigits {
    dtype: DType,
    index: ScalarType,
    tables: Tables,
}

parameters! {
    CountDigits as s => DigitsArguments, DigitsParameters {
        keys: Input = s.dtype,
        found: Input = s.dtype,
        digits: Output = DType::U32,
        pass: PassNumbers,
        /// The bits above the digit.
        above: Index = s.dtype.compute(),
    }
}

impl KernelSpec for CountDigits {
    fn name(&self) -> &'static str {
        "select_count"
    }

    fn write<'b>(&self, b: &'b Builder, p: DigitsParameters<'b>) {
        let block = Block::new(b, p.keys, p.pass, self.index, Some(self.tables));
        let found = p.found.load(block.row);
        block.count(|key| ((key ^ found) & p.above).eq(0));
        let digit = b.local_id(0);
        b.if_(digit.lt(DIGITS), || {
            let total = block.total(digit);
            b.if_(total.ne(0), || {
                p.digits.atomic(Atomic::Add, block.row * DIGITS + digit, total);
            });
        });
    }
}

/// Finds the next digit of each row's key, and how far behind the keys of that digit the rank begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NextDigit {
    dtype: DType,
}

parameters! {
    NextDigit as s => NextArguments, NextParameters {
        digits: Output = DType::U32,
        found: Output = s.dtype,
        ranks: Output = DType::U32,
        rows: U32,
        shift: U32,
    }
}

impl KernelSpec for NextDigit {
    fn name(&self) -> &'static str {
        "select_step"
    }

    fn write<'b>(&self, b: &'b Builder, p: NextParameters<'b>) {
        let NextParameters { digits, found, ranks, rows, shift } = p;
        let row = linear_id(b, ScalarType::U32);
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
            let scalar = self.dtype.compute();
            let digit = digit.cast(scalar) << shift.cast(scalar);
            found.store(row, found.load(row) | digit);
            ranks.store(row, rest);
        });
    }
}

/// An invocation's keys below the found one (the lower 16 bits), and equal to it: how many they are.
fn count_of<'b>(b: &'b Builder, block: &Block<'b>, found: Value<'b>) -> Value<'b> {
    // Two counts in one word: a block has fewer than 2^16 keys.
    const { assert!(GROUP * EACH < 1 << 16) };
    let mine = b.var(b.u32(0));
    block.each(|_, _, key, _| {
        mine.set(mine.get() + key.lt(found).cast(ScalarType::U32) + (key.eq(found).cast(ScalarType::U32) << 16));
    });
    mine.get()
}

/// Counts what lies below the found key, and its equals, in each block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CountLowest {
    dtype: DType,
    index: ScalarType,
    tables: Tables,
}

parameters! {
    CountLowest as s => LowestArguments, LowestParameters {
        keys: Input = s.dtype,
        found: Input = s.dtype,
        before: Output = DType::U32,
        pass: PassNumbers,
    }
}

impl KernelSpec for CountLowest {
    fn name(&self) -> &'static str {
        "select_part"
    }

    fn write<'b>(&self, b: &'b Builder, p: LowestParameters<'b>) {
        let block = Block::new(b, p.keys, p.pass, self.index, self.tables.unused());
        let mine = count_of(b, &block, p.found.load(block.row));
        let (_, all) = prefix_sum::workgroup(b, prefix_sum::scratch(b, ScalarType::U32), mine);
        let place = block.row * block.blocks + block.index;
        b.if_(b.local_id(0).eq(0), || {
            p.before.store(place, all & 0xffff);
            p.before.store(block.rows * block.blocks + place, all >> 16);
        });
    }
}

/// Writes what is collected where the sums of the counts say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CollectSpec {
    /// Only the key of the wanted rank.
    one: bool,
    dtype: DType,
    index: ScalarType,
    tables: Tables,
}

parameters! {
    CollectSpec as s => CollectArguments, CollectParameters {
        keys: Input = s.dtype,
        found: Input = s.dtype,
        before: Input = DType::U32,
        ranks: Input = DType::U32,
        to: Output = s.dtype,
        positions: Output = DType::U32,
        pass: PassNumbers,
        count: U32,
    }
}

impl KernelSpec for CollectSpec {
    fn name(&self) -> &'static str {
        "select_part"
    }

    fn write<'b>(&self, b: &'b Builder, p: CollectParameters<'b>) {
        let CollectParameters { before, count, .. } = p;
        let block = Block::new(b, p.keys, p.pass, self.index, self.tables.unused());
        let found = p.found.load(block.row);
        let mine = count_of(b, &block, found);
        let (inclusive, _) = prefix_sum::workgroup(b, prefix_sum::scratch(b, ScalarType::U32), mine);
        let (first, cells) = (block.row * block.blocks, block.rows * block.blocks);
        let place = first + block.index;
        let earlier = inclusive - mine;
        let below = b.var(before.load(place) - before.load(first) + (earlier & 0xffff));
        let equal = b.var(before.load(cells + place) - before.load(cells + first) + (earlier >> 16));
        let rank = p.ranks.load(block.row);
        block.each(|_, position, key, _| {
            let is_equal = key.eq(found);
            let (slot, wanted) = if self.one {
                (b.u32(0), is_equal & equal.get().eq(rank))
            } else {
                let slot = is_equal.select(count - 1 - rank + equal.get(), below.get());
                (slot, key.lt(found) | (is_equal & equal.get().le(rank)))
            };
            b.if_(wanted, || {
                let at = block.row.cast(self.index) * count.cast(self.index) + slot.cast(self.index);
                p.to.store(at, key);
                p.positions.store(at, position);
            });
            below.set(below.get() + key.lt(found).cast(ScalarType::U32));
            equal.set(equal.get() + is_equal.cast(ScalarType::U32));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::U32, ScalarType::U32), (DType::U64, ScalarType::U64)] {
            accepted(&NextDigit { dtype }.build());
            for tables in [Tables::Apart, Tables::Joined] {
                accepted(&CountDigits { dtype, index, tables }.build());
                accepted(&CountLowest { dtype, index, tables }.build());
                for one in [false, true] {
                    accepted(&CollectSpec { one, dtype, index, tables }.build());
                }
            }
        }
    }
}
