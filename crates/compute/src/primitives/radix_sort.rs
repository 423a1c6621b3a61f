//! Stable sorting of rows that are longer than what a workgroup holds.
//!
//! A radix sort from the least significant digit, eight bits a pass. In a pass each workgroup
//! computes the histogram of a block of a row, the histograms of all blocks are scanned, digit by
//! digit, and each workgroup moves its elements to the indices from the scan (Satish, Harris and
//! Garland, "Designing efficient sorting algorithms for manycore GPUs", IPDPS 2009). It first sorts
//! one tile of its block at a time by the digit ([`block_sort`]), so that neighbouring invocations
//! write adjacent elements.
//!
//! The first pass reads elements or keys, the last one writes elements; the workspace is two keys
//! and two positions for each element.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::block_sort::{self, BlockSort, Order, Shape, key_from_words, key_words};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::radix_pass::{BITS, Block, DIGITS, KeySource, Kind, Pass, PassNumbers};
use crate::primitives::row_operands::{Operands, RowOperands};
use crate::primitives::{prefix_sum, sort_key};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::parameters;
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Sorts `keys` (u32, contiguous, 1-dim), none of which is above `largest`. Returns the sorted keys
/// and the original position of each.
pub fn sort(cx: &Context, keys: &View, largest: u32) -> Result<(View, View)> {
    sort_rows(cx, keys, None, 1, u32::BITS - largest.leading_zeros())
}

/// Sorts `keys` (u32 or u64, contiguous), `rows` rows of one length below 2^31, of which only the
/// lowest `bits` bits are set. Returns the sorted keys, and for each its original position in the
/// row, or the entry of `positions` (u32) there.
pub fn sort_rows(cx: &Context, keys: &View, positions: Option<&View>, rows: i64, bits: u32) -> Result<(View, View)> {
    let rows = Problem { keys: keys.dtype, rows, n: keys.numel() / rows, bits };
    let to = rows.pair(cx)?;
    rows.run(cx, KeySource::Keys(keys, positions), KeySource::Keys(&to.0, Some(&to.1)))?;
    Ok(to)
}

/// Sorts the rows of the operands' input, and writes elements and positions. Neither may overlap
/// the input. If the input's [keys](sort_key), contiguous, are given, they are read instead.
pub fn sort_elements(cx: &Context, operands: &Operands, keys: Option<&View>, descending: bool) -> Result<()> {
    let dtype = operands.tensors[0].dtype;
    let rows =
        Problem { keys: sort_key::dtype_of(dtype), rows: operands.rows, n: operands.n, bits: sort_key::bits(dtype) };
    let elements = KeySource::Elements(operands, descending);
    rows.run(cx, keys.map_or(elements, |keys| KeySource::Keys(keys, None)), elements)
}

/// Rows of keys to sort.
#[derive(Copy, Clone)]
struct Problem {
    keys: DType,
    rows: i64,
    n: i64,
    /// Number of low bits by which keys are sorted.
    bits: u32,
}

impl Problem {
    /// Allocates memory for keys and positions.
    fn pair(self, cx: &Context) -> Result<(View, View)> {
        let sizes = [self.rows, self.n];
        Ok((cx.empty(self.keys, &sizes)?, cx.empty(DType::U32, &sizes)?))
    }

    fn run(self, cx: &Context, from: KeySource, to: KeySource) -> Result<()> {
        let n = self.n;
        check!(n < i64::from(i32::MAX), TooLarge, "{}: {n} elements in a row are more than dml can sort", cx.name);
        let run = |cx: &Context, few| self.run_sized(cx, from, to, shape(cx, self.keys, few));
        let few = cx.device.info().capabilities.has_few_registers();
        cx.run_accepted(few, |few: bool| (!few).then_some(true), run)
    }

    fn run_sized(self, cx: &Context, from: KeySource, to: KeySource, shape: Shape) -> Result<()> {
        let n = self.n;
        let pass = Pass::new(n, self.rows, shape.tile());
        let (groups, cells) = (pass.groups(), pass.blocks() as i64 * i64::from(DIGITS));
        let counts = &cx.empty(DType::U32, &[cells + 1])?;
        let (keys, index) = (self.keys, index_type(self.rows * n));
        let passes = self.bits.div_ceil(BITS).max(1);
        // Passes alternate between two buffers. If keys are the result, the result's memory is one
        // of them.
        let own = passes > 2 && matches!(to, KeySource::Elements(..));
        let spare = [own.then(|| self.pair(cx)).transpose()?, (passes > 1).then(|| self.pair(cx)).transpose()?];
        let destination = |pass: u32| match &spare[((passes - 1 - pass) % 2) as usize] {
            Some((keys, positions)) if pass + 1 < passes => KeySource::Keys(keys, Some(positions)),
            _ => to,
        };
        for number in 0..passes {
            let (shift, pass) = (number * BITS, pass.at(number * BITS));
            let (source, target) = (if number == 0 { from } else { destination(number - 1) }, destination(number));
            let spec =
                Count { keys, index, from: source.kind(), elements_per_invocation: shape.elements_per_invocation };
            let arguments = CountArguments { from: source.keys(), operands: source.operands(), counts, pass };
            cx.run(&spec, &arguments, groups)?;
            prefix_sum::exclusive(cx, counts, cells)?;
            let sub_digits = if self.bits > shift + block_sort::BITS { 2 } else { 1 };
            let spec = Move { keys, index, from: source.kind(), to: target.kind(), shape, sub_digits };
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

/// The elements of a workgroup: as many as shared memory and registers hold. With `few`, registers
/// are few, or the driver refuses larger kernels.
fn shape(cx: &Context, keys: DType, few: bool) -> Shape {
    let room = cx.device.info().capabilities.max_shared_memory;
    let of =
        |elements_per_invocation, separate_words| Shape { elements_per_invocation, threads: GROUP, separate_words };
    let words = keys.bytes() as u32 / 4 + 1;
    let each = match keys {
        _ if few => 4,
        DType::U32 if move_bytes(of(16, 1)) <= room => 16,
        _ => 8,
    };
    // At least two workgroups have to fit.
    if move_bytes(of(each, words)) <= room / 2 { of(each, words) } else { of(each, 1) }
}

/// Bytes of shared memory of a [`Move`].
fn move_bytes(shape: Shape) -> u32 {
    shape.bytes() + 4 * 2 * DIGITS
}

/// Computes the histogram of each block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Count {
    keys: DType,
    index: ScalarType,
    from: Kind,
    /// Elements that an invocation loads at a time.
    elements_per_invocation: u32,
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
        let tile = GROUP * self.elements_per_invocation;
        let block = Block::new(b, p.pass, self.index, tile);
        let key = block.keys(self.from, p.from, p.operands.as_ref());
        let counts = block.count(self.elements_per_invocation, key, |_| b.bool(true));
        let me = b.local_id(0);
        p.counts.store(block.count_at(me), counts.load(me));
    }
}

/// Moves keys and positions, or elements, to the indices from the scanned histograms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Move {
    keys: DType,
    index: ScalarType,
    from: Kind,
    to: Kind,
    shape: Shape,
    /// Number of [`BlockSort`] digits in one digit of the pass.
    sub_digits: u32,
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
        // For each digit in the tile: index of its first element and the end; later the
        // destination.
        let (firsts, ends) = (b.shared(ScalarType::U32, 1, DIGITS), b.shared(ScalarType::U32, 1, DIGITS));
        let me = b.local_id(0);
        let key = block.keys(self.from, p.from, p.operands.as_ref());
        let write = self.writer(&block, &p);
        // Both the sums and the row's base may wrap around.
        let next = b.var(p.counts.load(block.count_at(me)) - block.row * block.pass.n);
        b.for_(block.begin, block.end, tile, |start| {
            let count = (block.end - start).min(tile);
            let slots = sort.element_indices(Order::Striped);
            let mut words: Vec<Vec<Value>> = vec![Vec::new(); self.keys.bytes() as usize / 4];
            let within: Vec<Value> = slots.iter().map(|&at| start + at.min(count - 1)).collect();
            for (&at, &position) in slots.iter().zip(&within) {
                for (words, word) in words.iter_mut().zip(key_words(key(position))) {
                    // Padding of the last tile is sorted to the end.
                    words.push(at.lt(count).select(word, u32::MAX));
                }
            }
            if let Some(positions) = p.positions {
                words.push(within.iter().map(|&at| positions.load(block.base + at.cast(self.index))).collect());
            }
            let mut own_words = sort.exchange(&words, &slots, Order::Blocked);
            if p.positions.is_none() {
                own_words.push(sort.element_indices(Order::Blocked).into_iter().map(|at| start + at).collect());
            }
            for sub_digit in 0..self.sub_digits {
                let digits = self.digits(&own_words, block.pass.shift + sub_digit * block_sort::BITS);
                let to = if sub_digit + 1 < self.sub_digits { Order::Blocked } else { Order::Striped };
                own_words = sort.exchange(&own_words, &sort.ranks(&digits), to);
            }

            firsts.store(me, b.u32(0));
            ends.store(me, b.u32(0));
            let keys: Vec<Value> = (0..slots.len()).map(|k| self.key(&own_words, k)).collect();
            let digits: Vec<Value> = keys.iter().map(|&key| block.digit(key)).collect();
            // Each element is compared with its predecessor's digit.
            sort.exchange(std::slice::from_ref(&digits), &slots, Order::Striped);
            for (&at, &digit) in slots.iter().zip(&digits) {
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
            let positions = own_words.last().cloned().unwrap_or_default();
            for (k, &at) in slots.iter().enumerate() {
                b.if_(at.lt(count), || write(firsts.load(digits[k]) + at, keys[k], positions[k]));
            }
        });
    }
}

impl Move {
    /// The digits of a [`BlockSort`] at a shift, for keys by word and element.
    fn digits<'b>(&self, words: &[Vec<Value<'b>>], shift: Value<'b>) -> Vec<Value<'b>> {
        (0..words[0].len()).map(|k| block_sort::digit(words, k, self.keys, shift)).collect()
    }

    fn key<'b>(&self, words: &[Vec<Value<'b>>], k: usize) -> Value<'b> {
        if self.keys == DType::U64 { key_from_words(words[0][k], words[1][k]) } else { words[0][k] }
    }

    /// Returns a function that writes a key and a position to an index of the row.
    fn writer<'a, 'b>(
        &'a self,
        block: &'a Block<'b>,
        p: &'a MoveParameters<'b>,
    ) -> impl Fn(Value<'b>, Value<'b>, Value<'b>) + use<'a, 'b> {
        let b = block.b;
        let offsets =
            p.operands.as_ref().filter(|_| !self.to.has_keys()).map(|o| o.offsets(b, block.row.cast(o.rows.scalar())));
        move |target, key, position| match (self.to, &p.operands, offsets, p.to, p.moved) {
            (Kind::Elements { dtype, descending, .. }, Some(o), Some([input, values, indices]), ..) => {
                let value = b.var(sort_key::to_bits(key, dtype, descending));
                if dtype.is_float() {
                    b.if_(sort_key::is_of_several(key, dtype, descending), || {
                        value.set(o.input.load(o.at(0, input, position)).cast(key.scalar()));
                    });
                }
                o.values.store(o.at(1, values, target), value.get());
                o.indices.store(o.at(2, indices, target), position);
            }
            (.., Some(to), Some(moved)) => {
                let at = block.base + target.cast(self.index);
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
            shape: Shape { elements_per_invocation: 8, threads: GROUP, separate_words: 1 },
            sub_digits: 2,
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
                let shape = Shape {
                    elements_per_invocation: 8,
                    threads: GROUP,
                    separate_words: if from == first { 3 } else { 1 },
                };
                accepted(&Count { keys, index, from, elements_per_invocation: 8 }.build());
                accepted(&Move { keys, index, from, to, shape, sub_digits: 1 + u32::from(to == next) }.build());
            }
        }
    }
}
