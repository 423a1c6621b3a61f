//! The elements of lowest rank in long rows, by radix selection: digit by digit from the highest, a
//! histogram of the keys that can still be the wanted one gives its next digit (T. Alabi et al.,
//! "Fast k-selection algorithms for graphics processing units", ACM JEA 17, 2012). Then the
//! elements below it are collected in the order of positions.

use crate::context::Context;
use crate::error::Result;
use crate::movement::copy::fill_with;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::prefix_sum;
use crate::primitives::radix_pass::{BITS, Block, DIGITS, KeySource, Kind, Pass, PassNumbers, keys_at_a_time};
use crate::primitives::row_operands::RowOperands;
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::{self, GROUP};
use dml_kernel::{Atomic, Builder, DType, ScalarType, Value};

/// Elements that an invocation processes together, if registers hold them.
const ELEMENTS_PER_INVOCATION: u32 = 16;

/// Which elements are collected from each row.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Collect {
    /// This number of elements of lowest rank. Of equal elements the first ones.
    Lowest(i64),
    /// The element of the given rank.
    One,
}

/// A selection in `rows` rows of `n` keys.
pub struct Selection<'t> {
    /// The source of keys.
    pub from: KeySource<'t>,
    /// The dtype of keys, u32 or u64.
    pub dtype: DType,
    /// Number of low bits in which keys differ.
    pub bits: u32,
    /// Number of rows.
    pub rows: i64,
    /// Elements of a row.
    pub n: i64,
    /// The rank to find in each row, from 0 (u32, `[rows]`). Overwritten.
    pub ranks: View,
}

/// The specialisation that all kernels share.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct Keys {
    dtype: DType,
    index: ScalarType,
    from: Kind,
    /// Elements that an invocation processes together.
    each: u32,
}

impl Keys {
    /// Elements that a workgroup processes together.
    fn tile(self) -> u32 {
        GROUP * self.each
    }

    /// The dtype of keys in memory; `None` if elements are read.
    fn in_memory(self) -> Option<DType> {
        self.from.has_keys().then_some(self.dtype)
    }
}

impl Selection<'_> {
    /// A tensor with the same rank for all rows.
    pub fn same_rank(cx: &Context, rows: i64, rank: i64) -> Result<View> {
        let ranks = cx.empty(DType::U32, &[rows])?;
        fill_with(cx, &ranks, Number::Int(rank))?;
        Ok(ranks)
    }

    /// Returns keys and positions (u32) of the collected elements, `[rows, count]`.
    pub fn run(&self, cx: &Context, collect: Collect) -> Result<(View, View)> {
        let &Selection { dtype, rows, n, .. } = self;
        check!(n < i64::from(i32::MAX), TooLarge, "{}: {n} elements in a row are more than dml can sort", cx.name);
        let each = keys_at_a_time(cx.device.info().capabilities.registers, dtype, ELEMENTS_PER_INVOCATION);
        let spec = Keys { dtype, index: index_type(rows * n), from: self.from.kind(), each };
        let (found, digits) = (&cx.empty(dtype, &[rows])?, &cx.empty(DType::U32, &[rows, i64::from(DIGITS)])?);
        fill_with(cx, found, Number::Int(0))?;
        fill_with(cx, digits, Number::Int(0))?;
        let pass = Pass::new(n, rows, spec.tile());
        let (keys, operands, groups) = (self.from.keys(), self.from.operands(), pass.groups());
        for shift in (0..self.bits).step_by(BITS as usize).rev() {
            let above = if shift + BITS < self.bits { u64::MAX << (shift + BITS) } else { 0 } as i64;
            let pass = pass.at(shift);
            let arguments = DigitsArguments { keys, operands, found, digits, pass, above };
            cx.run(&CountDigits(spec), &arguments, groups)?;
            let arguments = NextArguments { digits, found, ranks: &self.ranks, rows: rows as u32, shift };
            cx.run(&NextDigit { dtype }, &arguments, dense::folded(rows as u64))?;
        }
        let count = if let Collect::Lowest(count) = collect { count } else { 1 };
        let cells = pass.blocks() as i64;
        let before = &cx.empty(DType::U32, &[2 * cells + 1])?;
        let arguments = LowestArguments { keys, operands, found, before, pass };
        cx.run(&CountLowest(spec), &arguments, groups)?;
        prefix_sum::exclusive(cx, before, 2 * cells)?;
        let (to, positions) = (cx.empty(dtype, &[rows, count])?, cx.empty(DType::U32, &[rows, count])?);
        let arguments = CollectArguments {
            keys,
            operands,
            found,
            before,
            ranks: &self.ranks,
            to: &to,
            positions: &positions,
            pass,
            count: count as u32,
        };
        cx.run(&CollectSpec { one: collect == Collect::One, keys: spec }, &arguments, groups)?;
        Ok((to, positions))
    }
}

/// Adds the histogram of the digits of those keys that agree with the higher digits found so far to
/// their row's histogram.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CountDigits(Keys);

parameters! {
    CountDigits as s => DigitsArguments, DigitsParameters {
        keys: Option<Input> = s.0.in_memory(),
        operands: Option<RowOperands> = s.0.from.operands(),
        found: Input = s.0.dtype,
        digits: Output = DType::U32,
        pass: PassNumbers,
        /// The bits above the digit.
        above: Index = s.0.dtype.compute(),
    }
}

impl KernelSpec for CountDigits {
    fn name(&self) -> &'static str {
        "select_count"
    }

    fn write<'b>(&self, b: &'b Builder, p: DigitsParameters<'b>) {
        let block = Block::new(b, p.pass, self.0.index, self.0.tile());
        let found = p.found.load(block.row);
        let key = block.keys(self.0.from, p.keys, p.operands.as_ref());
        let counts = block.count(self.0.each, key, |key| ((key ^ found) & p.above).eq(0));
        let digit = b.local_id(0);
        let total = counts.load(digit);
        b.if_(total.ne(0), || {
            p.digits.atomic(Atomic::Add, block.row * DIGITS + digit, total);
        });
    }
}

/// Finds the next digit of each row's key, and subtracts the number of keys with lower digits from
/// the rank.
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
        let row = b.group_id(0) + b.group_id(1) * b.group_count(0);
        b.if_(row.ge(rows), || b.return_());
        let digit = b.local_id(0);
        let (rank, here) = (ranks.load(row), digits.load(row * DIGITS + digit));
        digits.store(row * DIGITS + digit, b.u32(0));
        let (inclusive, _) = prefix_sum::workgroup(b, prefix_sum::scratch(b, ScalarType::U32), here);
        let before = inclusive - here;
        // True for exactly one digit.
        b.if_(rank.ge(before) & rank.lt(inclusive), || {
            let scalar = self.dtype.compute();
            found.store(row, found.load(row) | (digit.cast(scalar) << shift.cast(scalar)));
            ranks.store(row, rank - before);
        });
    }
}

/// Counts the keys below the found one (in the lower 16 bits) and equal to it (in the upper 16).
fn count_of<'b>(
    b: &'b Builder,
    keys: &[Value<'b>],
    inside: impl Fn(usize) -> Value<'b>,
    found: Value<'b>,
) -> Value<'b> {
    keys.iter().enumerate().fold(b.u32(0), |sum, (k, key)| {
        let both = key.lt(found).select(b.u32(1), key.eq(found).select(b.u32(1 << 16), 0));
        sum + inside(k).select(both, 0)
    })
}

/// Counts the keys below the found key, and its equals, in each block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CountLowest(Keys);

parameters! {
    CountLowest as s => LowestArguments, LowestParameters {
        keys: Option<Input> = s.0.in_memory(),
        operands: Option<RowOperands> = s.0.from.operands(),
        found: Input = s.0.dtype,
        before: Output = DType::U32,
        pass: PassNumbers,
    }
}

impl KernelSpec for CountLowest {
    fn name(&self) -> &'static str {
        "select_part"
    }

    fn write<'b>(&self, b: &'b Builder, p: LowestParameters<'b>) {
        let block = Block::new(b, p.pass, self.0.index, self.0.tile());
        let (found, me) = (p.found.load(block.row), b.local_id(0));
        let key = block.keys(self.0.from, p.keys, p.operands.as_ref());
        // Two counts in one word: a block has fewer than 2^16 keys.
        let mine = b.var(b.u32(0));
        b.for_(block.begin, block.end, self.0.tile(), |start| {
            let positions: Vec<Value> = (0..self.0.each).map(|k| start + me + k * GROUP).collect();
            let keys: Vec<Value> = positions.iter().map(|&at| key(at.min(block.end - 1))).collect();
            mine.set(mine.get() + count_of(b, &keys, |k| positions[k].lt(block.end), found));
        });
        let (_, all) = prefix_sum::workgroup(b, prefix_sum::scratch(b, ScalarType::U32), mine.get());
        let [block_number, _, blocks] = block.numbers();
        b.if_(me.eq(0), || {
            p.before.store(block_number, all & 0xffff);
            p.before.store(blocks + block_number, all >> 16);
        });
    }
}

/// Writes the collected elements to the indices from the scanned counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CollectSpec {
    /// Collect the key of the given rank only.
    one: bool,
    keys: Keys,
}

parameters! {
    CollectSpec as s => CollectArguments, CollectParameters {
        keys: Option<Input> = s.keys.in_memory(),
        operands: Option<RowOperands> = s.keys.from.operands(),
        found: Input = s.keys.dtype,
        before: Input = DType::U32,
        ranks: Input = DType::U32,
        to: Output = s.keys.dtype,
        positions: Output = DType::U32,
        pass: PassNumbers,
        count: U32,
    }
}

impl KernelSpec for CollectSpec {
    fn name(&self) -> &'static str {
        "select_collect"
    }

    fn write<'b>(&self, b: &'b Builder, p: CollectParameters<'b>) {
        let (before, count, index) = (p.before, p.count, self.keys.index);
        let block = Block::new(b, p.pass, index, self.keys.tile());
        let (found, rank) = (p.found.load(block.row), p.ranks.load(block.row));
        let [block_number, first, blocks] = block.numbers();
        let below = b.var(before.load(block_number) - before.load(first));
        let equal = b.var(before.load(blocks + block_number) - before.load(blocks + first));
        // Most blocks of long rows have nothing to collect.
        let lower = before.load(block_number + 1).ne(before.load(block_number));
        let equals =
            before.load(blocks + block_number + 1).ne(before.load(blocks + block_number)) & equal.get().le(rank);
        let any = if self.one { equals } else { lower | equals };
        let key = block.keys(self.keys.from, p.keys, p.operands.as_ref());
        let scratch = prefix_sum::scratch(b, ScalarType::U32);
        b.for_(any.select(block.begin, block.end), block.end, self.keys.tile(), |start| {
            // An invocation's elements are adjacent, so that output indices follow positions.
            let own = start + b.local_id(0) * self.keys.each;
            let positions: Vec<Value> = (0..self.keys.each).map(|k| own + k).collect();
            let keys: Vec<Value> = positions.iter().map(|&at| key(at.min(block.end - 1))).collect();
            let mine = count_of(b, &keys, |k| positions[k].lt(block.end), found);
            let (inclusive, all) = prefix_sum::workgroup(b, scratch, mine);
            let (mut lowers, mut equals) =
                (below.get() + ((inclusive - mine) & 0xffff), equal.get() + ((inclusive - mine) >> 16));
            for (&at, &key) in positions.iter().zip(&keys) {
                let is_equal = key.eq(found);
                let (slot, wanted) = if self.one {
                    (b.u32(0), is_equal & equals.eq(rank))
                } else {
                    (is_equal.select(count - 1 - rank + equals, lowers), key.lt(found) | (is_equal & equals.le(rank)))
                };
                b.if_(at.lt(block.end) & wanted, || {
                    let to = block.row.cast(index) * count.cast(index) + slot.cast(index);
                    p.to.store(to, key);
                    p.positions.store(to, at);
                });
                lowers = lowers + key.lt(found).cast(ScalarType::U32);
                equals = equals + is_equal.cast(ScalarType::U32);
            }
            below.set(below.get() + (all & 0xffff));
            equal.set(equal.get() + (all >> 16));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use crate::view::layout::LayoutSpec;

    #[test]
    fn kernels_are_valid() {
        for (dtype, element, index) in
            [(DType::U32, DType::F16, ScalarType::U32), (DType::U64, DType::F64, ScalarType::U64)]
        {
            accepted(&NextDigit { dtype }.build());
            let layout = LayoutSpec { rank: 1, operands: 3, index };
            let elements = Kind::Elements { dtype: element, descending: true, layout };
            for from in [elements, Kind::Keys { positions: false }] {
                let keys = Keys { dtype, index, from, each: if index == ScalarType::U32 { 16 } else { 8 } };
                accepted(&CountDigits(keys).build());
                accepted(&CountLowest(keys).build());
                for one in [false, true] {
                    accepted(&CollectSpec { one, keys }.build());
                }
            }
        }
    }
}
