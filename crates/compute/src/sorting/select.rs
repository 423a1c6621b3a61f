//! The elements of lowest rank in long rows, by radix selection: digit by digit from the highest,
//! the keys that can still be the one wanted are counted, which tells its next digit (T. Alabi et
//! al., "Fast k-selection algorithms for graphics processing units", ACM JEA 17, 2012). Then what
//! lies below it is collected in the order of positions.

use crate::context::Context;
use crate::error::Result;
use crate::movement::copy::fill_with;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::prefix_sum;
use crate::primitives::radix_pass::{BITS, Block, DIGITS, Kind, Pass, PassNumbers, Place};
use crate::primitives::row_operands::RowOperands;
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::{self, GROUP};
use dml_kernel::{Atomic, Builder, DType, ScalarType, Value};

/// Elements that an invocation looks at together.
const EACH: u32 = 16;

/// What is collected from each row.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Collect {
    /// So many of lowest rank. Of equal ones the first.
    Lowest(i64),
    /// The one of the wanted rank.
    One,
}

/// A selection in `rows` rows of `n` keys.
pub struct Selection<'t> {
    /// Where the keys are.
    pub from: Place<'t>,
    /// Their dtype, u32 or u64, and bits.
    pub dtype: DType,
    /// See `dtype`.
    pub bits: u32,
    /// Number of rows.
    pub rows: i64,
    /// Elements of a row.
    pub n: i64,
    /// The rank wanted in each row, from 0 (u32, `[rows]`). Is overwritten.
    pub ranks: View,
}

/// What all kernels are specialised by.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct Keys {
    dtype: DType,
    index: ScalarType,
    from: Kind,
}

impl Keys {
    /// The dtype of keys in memory, if it is keys that are read.
    fn in_memory(self) -> Option<DType> {
        self.from.has_keys().then_some(self.dtype)
    }
}

impl Selection<'_> {
    /// Ranks that are the same in all rows.
    pub fn same_rank(cx: &Context, rows: i64, rank: i64) -> Result<View> {
        let ranks = cx.empty(DType::U32, &[rows])?;
        fill_with(cx, &ranks, Number::Int(rank))?;
        Ok(ranks)
    }

    /// Keys and positions (u32) of what is collected, `[rows, count]`.
    pub fn run(&self, cx: &Context, collect: Collect) -> Result<(View, View)> {
        let &Selection { dtype, rows, n, .. } = self;
        check!(n < i64::from(i32::MAX), TooLarge, "{}: {n} elements in a row are more than dml can sort", cx.name);
        let spec = Keys { dtype, index: index_type(rows * n), from: self.from.kind() };
        let (found, digits) = (&cx.empty(dtype, &[rows])?, &cx.empty(DType::U32, &[rows, i64::from(DIGITS)])?);
        fill_with(cx, found, Number::Int(0))?;
        fill_with(cx, digits, Number::Int(0))?;
        let pass = Pass::new(n, rows, GROUP * EACH);
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

/// Adds the digits of the keys that agree with what was found above to the counts of their row.
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
        let block = Block::new(b, p.pass, self.0.index, GROUP * EACH);
        let found = p.found.load(block.row);
        let key = block.keys(self.0.from, p.keys, p.operands.as_ref());
        let counts = block.count(EACH, key, |key| ((key ^ found) & p.above).eq(0));
        let digit = b.local_id(0);
        let total = counts.load(digit);
        b.if_(total.ne(0), || {
            p.digits.atomic(Atomic::Add, block.row * DIGITS + digit, total);
        });
    }
}

/// Finds the next digit of each row's key, and how far behind the keys of that digit the rank
/// begins.
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
        // Of one digit only.
        b.if_(rank.ge(before) & rank.lt(inclusive), || {
            let scalar = self.dtype.compute();
            found.store(row, found.load(row) | (digit.cast(scalar) << shift.cast(scalar)));
            ranks.store(row, rank - before);
        });
    }
}

/// Of keys in order how many are below the found one (the lower 16 bits), and equal to it.
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

/// Counts what lies below the found key, and its equals, in each block.
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
        let block = Block::new(b, p.pass, self.0.index, GROUP * EACH);
        let (found, me) = (p.found.load(block.row), b.local_id(0));
        let key = block.keys(self.0.from, p.keys, p.operands.as_ref());
        // Two counts in one word: a block has fewer than 2^16 keys.
        let mine = b.var(b.u32(0));
        b.for_(block.begin, block.end, GROUP * EACH, |start| {
            let places: Vec<Value> = (0..EACH).map(|k| start + me + k * GROUP).collect();
            let keys: Vec<Value> = places.iter().map(|&at| key(at.min(block.end - 1))).collect();
            mine.set(mine.get() + count_of(b, &keys, |k| places[k].lt(block.end), found));
        });
        let (_, all) = prefix_sum::workgroup(b, prefix_sum::scratch(b, ScalarType::U32), mine.get());
        let [place, _, blocks] = block.numbers();
        b.if_(me.eq(0), || {
            p.before.store(place, all & 0xffff);
            p.before.store(blocks + place, all >> 16);
        });
    }
}

/// Writes what is collected where the sums of the counts say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CollectSpec {
    /// Only the key of the wanted rank.
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
        let block = Block::new(b, p.pass, index, GROUP * EACH);
        let (found, rank) = (p.found.load(block.row), p.ranks.load(block.row));
        let [place, first, blocks] = block.numbers();
        let below = b.var(before.load(place) - before.load(first));
        let equal = b.var(before.load(blocks + place) - before.load(blocks + first));
        // Most blocks of long rows have nothing that is wanted.
        let lower = before.load(place + 1).ne(before.load(place));
        let equals = before.load(blocks + place + 1).ne(before.load(blocks + place)) & equal.get().le(rank);
        let any = if self.one { equals } else { lower | equals };
        let key = block.keys(self.keys.from, p.keys, p.operands.as_ref());
        let scratch = prefix_sum::scratch(b, ScalarType::U32);
        b.for_(any.select(block.begin, block.end), block.end, GROUP * EACH, |start| {
            // An invocation's are neighbours, so that slots follow positions.
            let own = start + b.local_id(0) * EACH;
            let places: Vec<Value> = (0..EACH).map(|k| own + k).collect();
            let keys: Vec<Value> = places.iter().map(|&at| key(at.min(block.end - 1))).collect();
            let mine = count_of(b, &keys, |k| places[k].lt(block.end), found);
            let (inclusive, all) = prefix_sum::workgroup(b, scratch, mine);
            let (mut lowers, mut equals) =
                (below.get() + ((inclusive - mine) & 0xffff), equal.get() + ((inclusive - mine) >> 16));
            for (&at, &key) in places.iter().zip(&keys) {
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
                let keys = Keys { dtype, index, from };
                accepted(&CountDigits(keys).build());
                accepted(&CountLowest(keys).build());
                for one in [false, true] {
                    accepted(&CollectSpec { one, keys }.build());
                }
            }
        }
    }
}
