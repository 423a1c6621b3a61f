//! Stable sorting of rows by a digit in one workgroup: an invocation holds neighbouring elements in
//! registers, counts its digits in cells of its own, and the sums of the cells before tell each
//! element its place (Merrill and Grimshaw, "High performance and scalable radix sorting", Parallel
//! Processing Letters 21, 2011). Elements change places through shared memory.

use crate::primitives::prefix_sum;
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, ScalarType, Shared, Value};

/// Bits of a digit.
pub const BITS: u32 = 4;

/// Cells of an invocation. Each counts two digits, in its halves.
const CELLS: u32 = 8;

/// In which order elements are held.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// An invocation has neighbours.
    Blocked,
    /// Neighbouring invocations do.
    Striped,
}

/// A workgroup's elements: rows of `threads * each`, of which each invocation has `each`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Elements of an invocation, a power of two.
    pub each: u32,
    /// Invocations that share a row, a power of two.
    pub threads: u32,
    /// Words of an element that have memory of their own, so that they change places at once.
    pub together: u32,
}

impl Shape {
    /// Elements of a workgroup.
    pub fn tile(self) -> u32 {
        GROUP * self.each
    }

    /// Words of shared memory for one word of every element, and for the cells.
    fn words(self) -> u32 {
        padded(self.tile().max(CELLS * GROUP))
    }

    /// Bytes of shared memory.
    pub fn bytes(self) -> u32 {
        4 * (self.together * self.words() + 2 * GROUP)
    }
}

/// Length of an array in which every 32 words are followed by an unused one: invocations that
/// access words at a distance of a power of two then use different banks.
const fn padded(words: u32) -> u32 {
    words + words / 32
}

/// Place of a word in such an array.
pub fn bank<'b>(at: Value<'b>) -> Value<'b> {
    at + (at >> 5)
}

/// The words of a key, low first.
pub fn halves(key: Value<'_>) -> Vec<Value<'_>> {
    match key.scalar() {
        ScalarType::U64 => vec![key.cast(ScalarType::U32), (key >> 32).cast(ScalarType::U32)],
        _ => vec![key],
    }
}

/// A key of two words.
pub fn joined<'b>(low: Value<'b>, high: Value<'b>) -> Value<'b> {
    low.cast(ScalarType::U64) | (high.cast(ScalarType::U64) << 32)
}

/// The digit at a shift (u32, a multiple of [`BITS`]) of element `k`, whose key of dtype `keys`
/// lies in the first words.
pub fn digit<'b>(words: &[Vec<Value<'b>>], k: usize, keys: DType, shift: Value<'b>) -> Value<'b> {
    let word = if keys == DType::U64 { shift.ge(32).select(words[1][k], words[0][k]) } else { words[0][k] };
    (word >> (shift & 31)) & ((1 << BITS) - 1)
}

/// Shared memory in which a workgroup sorts.
pub struct BlockSort<'b> {
    b: &'b Builder,
    /// The elements' and cells' sizes.
    pub shape: Shape,
    memory: Vec<Shared<'b>>,
    sums: Shared<'b>,
    /// Index of the invocation, and among those of its row.
    me: Value<'b>,
    lane: Value<'b>,
}

impl<'b> BlockSort<'b> {
    /// Declares the memory.
    pub fn new(b: &'b Builder, shape: Shape) -> BlockSort<'b> {
        let memory = (0..shape.together).map(|_| b.shared(ScalarType::U32, 1, shape.words())).collect();
        let sums = prefix_sum::scratch(b, ScalarType::U32);
        let me = b.local_id(0);
        BlockSort { b, shape, memory, sums, me, lane: me & (shape.threads - 1) }
    }

    /// Places in the tile of the elements that this invocation holds.
    pub fn places(&self, order: Order) -> Vec<Value<'b>> {
        let each = self.shape.each;
        (0..each)
            .map(|k| match order {
                Order::Blocked => self.me * each + k,
                Order::Striped => self.me + k * GROUP,
            })
            .collect()
    }

    /// Places in their row of the elements that this invocation holds of its row.
    pub fn columns(&self) -> Vec<Value<'b>> {
        (0..self.shape.each).map(|k| self.lane * self.shape.each + k).collect()
    }

    /// Word `at` of the tile, of the first of those that changed places last.
    pub fn load(&self, at: Value<'b>) -> Value<'b> {
        self.memory[0].load(bank(at))
    }

    /// Puts each element's words (u32, by word and element) at its place in the tile, and takes
    /// those that the order says.
    pub fn exchange(&self, words: &[Vec<Value<'b>>], places: &[Value<'b>], order: Order) -> Vec<Vec<Value<'b>>> {
        let from: Vec<Value> = places.iter().map(|&at| bank(at)).collect();
        let to: Vec<Value> = self.places(order).into_iter().map(bank).collect();
        let mut moved = Vec::new();
        for together in words.chunks(self.memory.len()) {
            self.b.barrier();
            for (values, memory) in together.iter().zip(&self.memory) {
                from.iter().zip(values).for_each(|(&at, &value)| memory.store(at, value));
            }
            self.b.barrier();
            for (_, memory) in together.iter().zip(&self.memory) {
                moved.push(to.iter().map(|&at| memory.load(at)).collect());
            }
        }
        moved
    }

    /// The place in the tile that each of the invocation's elements has among those of its row, by
    /// its digit (u32 below 16) and of equal ones by where it is. The elements are held blocked.
    pub fn ranks(&self, digits: &[Value<'b>]) -> Vec<Value<'b>> {
        let (b, cells, Shape { each, threads, .. }) = (self.b, self.memory[0], self.shape);
        // Cells lie by row, then by the digit's low bits, then by invocation, so that an invocation
        // sums up neighbours of its row.
        let own = bank(self.me * CELLS);
        b.barrier();
        (0..CELLS).for_each(|k| cells.store(own + k, b.u32(0)));
        b.barrier();
        let first = (self.me - self.lane) * CELLS + self.lane;
        let padded_first = bank(first);
        let cell = |digit: Value<'b>| {
            let low = digit & (CELLS - 1);
            if threads >= 32 { padded_first + low * padded(threads) } else { bank(first + low * threads) }
        };
        let half = |digit: Value<'b>| (digit >> 3) << 4;
        let one = b.u32(1);
        let before: Vec<Value> = digits
            .iter()
            .map(|&digit| {
                let (cell, half) = (cell(digit), half(digit));
                let count = cells.load(cell);
                cells.store(cell, count + (one << half));
                (count >> half) & 0xffff
            })
            .collect();
        b.barrier();
        let counts: Vec<Value> = (0..CELLS).map(|k| cells.load(own + k)).collect();
        let total = counts.iter().fold(b.u32(0), |sum, &count| sum + count);
        let (inclusive, all) = prefix_sum::neighbours(b, self.sums, total, threads);
        // Digits in the upper halves come after all of those in the lower ones.
        let mut place = inclusive - total + (all << 16);
        for (k, count) in (0..).zip(counts) {
            cells.store(own + k as u32, place);
            place = place + count;
        }
        b.barrier();
        let row = (self.me - self.lane) * each;
        let placed = digits.iter().zip(before);
        placed.map(|(&digit, before)| row + before + ((cells.load(cell(digit)) >> half(digit)) & 0xffff)).collect()
    }
}
