//! Sorting of rows that are longer than what a workgroup holds: stable, so that what follows can
//! work in the order of positions.
//!
//! Least significant digit first, eight bits a pass. In a pass each workgroup counts the digits of
//! a block of a row, the counts of all blocks are summed up digit by digit, and each workgroup puts
//! its elements where the sums say (Satish, Harris and Garland, "Designing efficient sorting
//! algorithms for manycore GPUs", IPDPS 2009). It sorts a tile of its block at a time by the digit
//! first ([`block_sort`]), so that neighbours are written together.
//!
//! The first pass reads elements or keys, the last one writes elements, and no other memory is
//! needed than two keys and two positions an element.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::block_sort::{self, BlockSort, Order, Shape, halves, joined};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::radix_pass::{BITS, Block, DIGITS, Kind, Pass, PassNumbers, Place};
use crate::primitives::row_operands::{Operands, RowOperands};
use crate::primitives::{prefix_sum, sort_key};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::parameters;
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Sorts `keys` (u32, one contiguous row), none above `largest`. Returns the keys in order and the
/// position that each had.
pub fn sort(cx: &Context, keys: &View, largest: u32) -> Result<(View, View)> {
    sort_rows(cx, keys, None, 1, u32::BITS - largest.leading_zeros())
}

/// Sorts `keys` (u32 or u64, contiguous), `rows` of one length below 2^31, which have no more than
/// their lowest `bits`. Returns the keys in order and the position in its row that each had, or
/// what `positions` (u32) holds there.
pub fn sort_rows(cx: &Context, keys: &View, positions: Option<&View>, rows: i64, bits: u32) -> Result<(View, View)> {
    let rows = Problem { keys: keys.dtype, rows, n: keys.numel() / rows, bits };
    let to = rows.pair(cx)?;
    rows.run(cx, Place::Keys(keys, positions), Place::Keys(&to.0, Some(&to.1)))?;
    Ok(to)
}

/// Sorts the rows of the operands' input, and writes elements and positions. Neither may share the
/// input's memory. The input's [keys](sort_key), contiguous, are read in its place if they are
/// given.
pub fn sort_elements(cx: &Context, operands: &Operands, keys: Option<&View>, descending: bool) -> Result<()> {
    let dtype = operands.tensors[0].dtype;
    let rows =
        Problem { keys: sort_key::dtype_of(dtype), rows: operands.rows, n: operands.n, bits: sort_key::bits(dtype) };
    let elements = Place::Elements(operands, descending);
    rows.run(cx, keys.map_or(elements, |keys| Place::Keys(keys, None)), elements)
}

/// Rows of keys.
#[derive(Copy, Clone)]
struct Problem {
    keys: DType,
    rows: i64,
    n: i64,
    /// The lowest bits, by which they are sorted.
    bits: u32,
}

impl Problem {
    /// Memory for keys and positions.
    fn pair(self, cx: &Context) -> Result<(View, View)> {
        let sizes = [self.rows, self.n];
        Ok((cx.empty(self.keys, &sizes)?, cx.empty(DType::U32, &sizes)?))
    }

    fn run(self, cx: &Context, from: Place, to: Place) -> Result<()> {
        let n = self.n;
        check!(n < i64::from(i32::MAX), TooLarge, "{}: {n} elements in a row are more than dml can sort", cx.name);
        let shape = shape(cx, self.keys);
        let pass = Pass::new(n, self.rows, shape.tile());
        let (groups, cells) = (pass.groups(), pass.blocks() as i64 * i64::from(DIGITS));
        let counts = &cx.empty(DType::U32, &[cells + 1])?;
        let (keys, index) = (self.keys, index_type(self.rows * n));
        let passes = self.bits.div_ceil(BITS).max(1);
        // Passes write by turns; keys that are wanted go to where they are wanted every other time.
        let own = passes > 2 && matches!(to, Place::Elements(..));
        let spare = [own.then(|| self.pair(cx)).transpose()?, (passes > 1).then(|| self.pair(cx)).transpose()?];
        let written = |pass: u32| match &spare[((passes - 1 - pass) % 2) as usize] {
            Some((keys, positions)) if pass + 1 < passes => Place::Keys(keys, Some(positions)),
            _ => to,
        };
        for number in 0..passes {
            let (shift, pass) = (number * BITS, pass.at(number * BITS));
            let (source, target) = (if number == 0 { from } else { written(number - 1) }, written(number));
            let spec = Count { keys, index, from: source.kind(), each: shape.each };
            let arguments = CountArguments { from: source.keys(), operands: source.operands(), counts, pass };
            cx.run(&spec, &arguments, groups)?;
            prefix_sum::exclusive(cx, counts, cells)?;
            let halves = if self.bits > shift + block_sort::BITS { 2 } else { 1 };
            let spec = Move { keys, index, from: source.kind(), to: target.kind(), shape, halves };
            let arguments = MoveArguments {
                from: source.keys(),
                positions: source.positions(),
                operands: source.operands().or(target.operands()),
                counts,
                to: target.keys(),
                moved: target.positions(),
                pass,
            };
            cx.run(&spec, &arguments, groups)?;
        }
        Ok(())
    }
}

/// A workgroup's tile: what its memory and registers hold.
fn shape(cx: &Context, keys: DType) -> Shape {
    let room = cx.device.info().capabilities.max_shared_memory;
    let of = |each, together| Shape { each, threads: GROUP, together };
    let words = keys.bytes() as u32 / 4 + 1;
    let each = if keys == DType::U32 && move_bytes(of(16, 1)) <= room { 16 } else { 8 };
    // More than one workgroup is to fit.
    if move_bytes(of(each, words)) <= room / 2 { of(each, words) } else { of(each, 1) }
}

/// Shared memory of a [`Move`].
fn move_bytes(shape: Shape) -> u32 {
    shape.bytes() + 4 * 2 * DIGITS
}

/// Counts the digits of each block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Count {
    keys: DType,
    index: ScalarType,
    from: Kind,
    /// Elements that an invocation loads at a time.
    each: u32,
}

parameters! {
    Count as s => CountArguments, CountParameters {
        from: Option<Input> = s.from.has_keys().then_some(s.keys),
        operands: Option<RowOperands> = s.from.operands(),
        counts: Output = DType::U32,
        pass: PassNumbers,
    }
}

impl KernelSpec for Count {
    fn name(&self) -> &'static str {
        "radix_count"
    }

    fn write<'b>(&self, b: &'b Builder, p: CountParameters<'b>) {
        let tile = GROUP * self.each;
        let block = Block::new(b, p.pass, self.index, tile);
        let key = block.keys(self.from, p.from, p.operands.as_ref());
        let counts = block.count(self.each, key, |_| b.bool(true));
        let me = b.local_id(0);
        p.counts.store(block.count_at(me), counts.load(me));
    }
}

/// Puts keys and positions, or elements, where the sums of the counts say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Move {
    keys: DType,
    index: ScalarType,
    from: Kind,
    to: Kind,
    shape: Shape,
    /// Digits of a [`BlockSort`] that make up one.
    halves: u32,
}

parameters! {
    Move as s => MoveArguments, MoveParameters {
        from: Option<Input> = s.from.has_keys().then_some(s.keys),
        positions: Option<Input> = s.from.has_positions().then_some(DType::U32),
        operands: Option<RowOperands> = s.from.operands().or(s.to.operands()),
        counts: Input = DType::U32,
        to: Option<Output> = s.to.has_keys().then_some(s.keys),
        moved: Option<Output> = s.to.has_positions().then_some(DType::U32),
        pass: PassNumbers,
    }
}

impl KernelSpec for Move {
    fn name(&self) -> &'static str {
        "radix_move"
    }

    fn write<'b>(&self, b: &'b Builder, p: MoveParameters<'b>) {
        let tile = self.shape.tile();
        let block = Block::new(b, p.pass, self.index, tile);
        let sort = BlockSort::new(b, self.shape);
        // Of each digit in the tile: its first element, and behind its last one; then where its
        // elements go.
        let (firsts, ends) = (b.shared(ScalarType::U32, 1, DIGITS), b.shared(ScalarType::U32, 1, DIGITS));
        let me = b.local_id(0);
        let key = block.keys(self.from, p.from, p.operands.as_ref());
        let write = self.writer(&block, &p);
        // The sums wrap with the row's base.
        let next = b.var(p.counts.load(block.count_at(me)) - block.row * block.pass.n);
        b.for_(block.begin, block.end, tile, |start| {
            let count = (block.end - start).min(tile);
            let places = sort.places(Order::Striped);
            let mut words: Vec<Vec<Value>> = vec![Vec::new(); self.keys.bytes() as usize / 4];
            let within: Vec<Value> = places.iter().map(|&at| start + at.min(count - 1)).collect();
            for (&at, &place) in places.iter().zip(&within) {
                for (words, word) in words.iter_mut().zip(halves(key(place))) {
                    // What only fills the tile up comes last.
                    words.push(at.lt(count).select(word, u32::MAX));
                }
            }
            if let Some(positions) = p.positions {
                words.push(within.iter().map(|&at| positions.load(block.base + at.cast(self.index))).collect());
            }
            let mut held = sort.exchange(&words, &places, Order::Blocked);
            if p.positions.is_none() {
                held.push(sort.places(Order::Blocked).into_iter().map(|at| start + at).collect());
            }
            for half in 0..self.halves {
                let digits = self.digits(&held, block.pass.shift + half * block_sort::BITS);
                let to = if half + 1 < self.halves { Order::Blocked } else { Order::Striped };
                held = sort.exchange(&held, &sort.ranks(&digits), to);
            }

            firsts.store(me, b.u32(0));
            ends.store(me, b.u32(0));
            let keys: Vec<Value> = (0..places.len()).map(|k| self.key(&held, k)).collect();
            let digits: Vec<Value> = keys.iter().map(|&key| block.digit(key)).collect();
            // Neighbours look at each other's digits.
            sort.exchange(std::slice::from_ref(&digits), &places, Order::Striped);
            for (&at, &digit) in places.iter().zip(&digits) {
                b.if_(at.lt(count), || {
                    let before = sort.load(at.max(1) - 1);
                    b.if_(at.gt(0) & before.ne(digit), || {
                        firsts.store(digit, at);
                        ends.store(before, at);
                    });
                    b.if_((at + 1).eq(count), || ends.store(digit, count));
                });
            }
            b.barrier();
            let (first, here) = (firsts.load(me), next.get());
            next.set(here + ends.load(me) - first);
            firsts.store(me, here - first);
            b.barrier();
            let positions = held.last().cloned().unwrap_or_default();
            for (k, &at) in places.iter().enumerate() {
                b.if_(at.lt(count), || write(firsts.load(digits[k]) + at, keys[k], positions[k]));
            }
        });
    }
}

impl Move {
    /// The digits of a [`BlockSort`] at a shift, of keys by word and element.
    fn digits<'b>(&self, words: &[Vec<Value<'b>>], shift: Value<'b>) -> Vec<Value<'b>> {
        (0..words[0].len()).map(|k| block_sort::digit(words, k, self.keys, shift)).collect()
    }

    fn key<'b>(&self, words: &[Vec<Value<'b>>], k: usize) -> Value<'b> {
        if self.keys == DType::U64 { joined(words[0][k], words[1][k]) } else { words[0][k] }
    }

    /// What writes a key and a position at a place of the row.
    fn writer<'a, 'b>(
        &'a self,
        block: &'a Block<'b>,
        p: &'a MoveParameters<'b>,
    ) -> impl Fn(Value<'b>, Value<'b>, Value<'b>) + use<'a, 'b> {
        let b = block.b;
        let offsets =
            p.operands.as_ref().filter(|_| !self.to.has_keys()).map(|o| o.offsets(b, block.row.cast(o.rows.scalar())));
        move |place, key, position| match (self.to, &p.operands, offsets, p.to, p.moved) {
            (Kind::Elements { dtype, descending, .. }, Some(o), Some([input, values, indices]), ..) => {
                let value = b.var(sort_key::to_bits(key, dtype, descending));
                if dtype.is_float() {
                    b.if_(sort_key::is_of_several(key, dtype, descending), || {
                        value.set(o.input.load(o.at(0, input, position)).cast(key.scalar()));
                    });
                }
                o.values.store(o.at(1, values, place), value.get());
                o.indices.store(o.at(2, indices, place), position);
            }
            (.., Some(to), Some(moved)) => {
                let at = block.base + place.cast(self.index);
                to.store(at, key);
                moved.store(at, position);
            }
            _ => unreachable!("a pass writes keys with positions, or elements"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use crate::view::layout::LayoutSpec;

    #[test]
    fn tiles_fit_where_there_is_least_room() {
        let spec = Move {
            keys: DType::U64,
            index: ScalarType::U64,
            from: Kind::Keys { positions: true },
            to: Kind::Keys { positions: true },
            shape: Shape { each: 8, threads: GROUP, together: 1 },
            halves: 2,
        };
        let bytes = spec.build().emit().expect("a valid kernel").needs.shared_bytes;
        assert_eq!(bytes, move_bytes(spec.shape));
        assert!(bytes <= 16 << 10);
    }

    #[test]
    fn kernels_are_valid() {
        for (keys, dtype, index) in [
            (DType::U32, DType::F16, ScalarType::U32),
            (DType::U64, DType::F64, ScalarType::U32),
            (DType::U64, DType::I64, ScalarType::U64),
        ] {
            let elements = Kind::Elements {
                dtype,
                descending: dtype == DType::F16,
                layout: LayoutSpec { rank: 1, operands: 3, index },
            };
            let (first, next) = (Kind::Keys { positions: false }, Kind::Keys { positions: true });
            for (from, to) in [(first, next), (next, next), (next, elements), (elements, next), (elements, elements)] {
                let shape = Shape { each: 8, threads: GROUP, together: if from == first { 3 } else { 1 } };
                accepted(&Count { keys, index, from, each: 8 }.build());
                accepted(&Move { keys, index, from, to, shape, halves: 1 + u32::from(to == next) }.build());
            }
        }
    }
}
