//! Stable sorting of rows by a digit in one workgroup: an invocation holds consecutive elements in
//! registers, counts their digits in its own counters, and a scan of the counters gives each
//! element's new index (Merrill and Grimshaw, "High performance and scalable radix sorting",
//! Parallel Processing Letters 21, 2011). Elements are exchanged through shared memory.

use crate::primitives::prefix_sum;
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, ScalarType, Shared, Value};

/// Bits of a digit.
pub const BITS: u32 = 4;

/// Counters of an invocation. Each counts two digits, in its halves.
const CELLS: u32 = 8;

/// The order in which invocations hold elements.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each invocation holds consecutive elements.
    Blocked,
    /// Neighbouring invocations hold consecutive elements.
    Striped,
}

/// The rows of a workgroup, of `threads * elements_per_invocation` elements.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Elements of an invocation, a power of two.
    pub elements_per_invocation: u32,
    /// Invocations that share a row, a power of two.
    pub threads: u32,
    /// Words of an element that have separate shared memory, so that they are exchanged at once.
    pub separate_words: u32,
}

impl Shape {
    /// Number of elements of a workgroup.
    pub fn tile(self) -> u32 {
        GROUP * self.elements_per_invocation
    }

    /// Words of shared memory for one word of every element, and for the counters.
    fn words(self) -> u32 {
        padded(self.tile().max(CELLS * GROUP))
    }

    /// Bytes of shared memory.
    pub fn bytes(self) -> u32 {
        4 * (self.separate_words * self.words() + 2 * GROUP)
    }
}

/// Length of an array that is padded with an unused word after every 32 words, so that accesses
/// with a stride of a power of two have no bank conflicts.
const fn padded(words: u32) -> u32 {
    words + words / 32
}

/// Index of a word in such an array.
pub fn bank<'b>(at: Value<'b>) -> Value<'b> {
    at + (at >> 5)
}

/// The words of a key, the low one first.
pub fn key_words(key: Value<'_>) -> Vec<Value<'_>> {
    match key.scalar() {
        ScalarType::U64 => vec![key.cast(ScalarType::U32), (key >> 32).cast(ScalarType::U32)],
        _ => vec![key],
    }
}

/// A key of two words.
pub fn key_from_words<'b>(low: Value<'b>, high: Value<'b>) -> Value<'b> {
    low.cast(ScalarType::U64) | (high.cast(ScalarType::U64) << 32)
}

/// The digit at bit `shift` (u32, a multiple of [`BITS`]) of element `k`. The key, of dtype `keys`,
/// is in the first words.
pub fn digit<'b>(words: &[Vec<Value<'b>>], k: usize, keys: DType, shift: Value<'b>) -> Value<'b> {
    let word = if keys == DType::U64 { shift.ge(32).select(words[1][k], words[0][k]) } else { words[0][k] };
    (word >> (shift & 31)) & ((1 << BITS) - 1)
}

/// Shared memory in which a workgroup sorts.
pub struct BlockSort<'b> {
    b: &'b Builder,
    /// Numbers of elements and invocations.
    pub shape: Shape,
    memory: Vec<Shared<'b>>,
    sums: Shared<'b>,
    /// Index of the invocation in the workgroup, and in its row.
    me: Value<'b>,
    lane: Value<'b>,
}

impl<'b> BlockSort<'b> {
    /// Declares the shared memory.
    pub fn new(b: &'b Builder, shape: Shape) -> BlockSort<'b> {
        let memory = (0..shape.separate_words).map(|_| b.shared(ScalarType::U32, 1, shape.words())).collect();
        let sums = prefix_sum::scratch(b, ScalarType::U32);
        let me = b.local_id(0);
        BlockSort { b, shape, memory, sums, me, lane: me & (shape.threads - 1) }
    }

    /// Indices in the workgroup of the elements that this invocation holds.
    pub fn element_indices(&self, order: Order) -> Vec<Value<'b>> {
        let each = self.shape.elements_per_invocation;
        (0..each)
            .map(|k| match order {
                Order::Blocked => self.me * each + k,
                Order::Striped => self.me + k * GROUP,
            })
            .collect()
    }

    /// Indices in the row of the elements that this invocation holds.
    pub fn columns(&self) -> Vec<Value<'b>> {
        (0..self.shape.elements_per_invocation).map(|k| self.lane * self.shape.elements_per_invocation + k).collect()
    }

    /// Loads word `at` of the elements exchanged last; with several words, of the first.
    pub fn load(&self, at: Value<'b>) -> Value<'b> {
        self.memory[0].load(bank(at))
    }

    /// Exchanges elements: stores each element's words (u32, by word and element) at its new index
    /// in the workgroup, and loads the elements that the invocation holds in `order`.
    pub fn exchange(&self, words: &[Vec<Value<'b>>], slots: &[Value<'b>], order: Order) -> Vec<Vec<Value<'b>>> {
        let from: Vec<Value> = slots.iter().map(|&at| bank(at)).collect();
        let to: Vec<Value> = self.element_indices(order).into_iter().map(bank).collect();
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

    /// New index in the workgroup of each of the invocation's elements: sorted within its row by
    /// digit (u32 below 16), and for equal digits by the present index. The elements are in blocked
    /// order.
    pub fn ranks(&self, digits: &[Value<'b>]) -> Vec<Value<'b>> {
        let (b, cells, Shape { elements_per_invocation: each, threads, .. }) = (self.b, self.memory[0], self.shape);
        // Counters are in the order of row, then the digit's low bits, then invocation, so that an
        // invocation scans consecutive counters of its row.
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
        let (inclusive, all) = prefix_sum::scan_groups(b, self.sums, total, threads);
        // Digits in the upper halves come after all digits in the lower halves.
        let mut prefix = inclusive - total + (all << 16);
        for (k, count) in (0..).zip(counts) {
            cells.store(own + k as u32, prefix);
            prefix = prefix + count;
        }
        b.barrier();
        let row = (self.me - self.lane) * each;
        let placed = digits.iter().zip(before);
        placed.map(|(&digit, before)| row + before + ((cells.load(cell(digit)) >> half(digit)) & 0xffff)).collect()
    }
}
