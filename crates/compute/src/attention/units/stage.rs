//! Tiles of matrices in shared memory, and the way there.

use crate::attention::matrix::Plane;
use crate::attention::units::tile::pitch;
use crate::matmul::operand::UNIT;
use dml_kernel::{Builder, DType, Matrix, MatrixLayout, ScalarType, Shared, Value, Var};

/// Lines of elements of 16 bits in shared memory.
#[derive(Copy, Clone)]
pub struct Lines<'b> {
    /// Where.
    pub memory: Shared<'b>,
    /// First 16-byte unit.
    pub begin: Value<'b>,
    /// Units from line to line.
    pub pitch: u32,
}

impl<'b> Lines<'b> {
    /// Loads the matrix that begins at element `along` of a line.
    pub fn load(&self, to: Matrix<'b>, line: Value<'b>, along: u32, layout: MatrixLayout) {
        to.load(self.memory, self.begin + line * self.pitch + along / UNIT, self.pitch, layout);
    }
}

/// This invocation's part in bringing rows of a matrix to shared memory: a fetch to registers, and
/// later a store.
pub struct Stage<'b> {
    b: &'b Builder,
    /// Where they go.
    pub lines: Lines<'b>,
    aligned: bool,
    /// Elements of a row that exist, where those are fewer.
    length: Option<Value<'b>>,
    loads: Vec<Load<'b>>,
}

/// A unit of a row.
struct Load<'b> {
    row: Value<'b>,
    /// Rows further on.
    below: u32,
    first: Value<'b>,
    /// Where it goes.
    unit: Value<'b>,
    /// Whether this invocation has it.
    busy: Option<Value<'b>>,
    /// What was fetched, two elements each.
    words: Vec<Var<'b>>,
}

impl<'b> Stage<'b> {
    /// Of so many rows and elements, to 16-byte unit `begin` on, by `threads` invocations.
    pub fn new(
        b: &'b Builder,
        (memory, begin): (Shared<'b>, u32),
        [rows, elements]: [u32; 2],
        threads: u32,
        aligned: bool,
        length: Option<Value<'b>>,
    ) -> Stage<'b> {
        let (across, lane) = (elements / UNIT, b.local_id(0));
        let total = rows * across;
        let words = || (0..UNIT / 2).map(|_| b.var(b.u32(0))).collect();
        let place = |load: Value<'b>| {
            let row = load / across;
            let unit = load - row * across;
            (row, unit * UNIT, row * pitch(elements) + unit + begin)
        };
        let loads: Vec<Load> = if threads.is_multiple_of(across) && total.is_multiple_of(threads) {
            // All loads are at one place of rows so far apart: one address is enough.
            let (row, first, unit) = place(lane);
            let step = threads / across;
            let load = |below: u32| {
                let unit = unit + below * pitch(elements);
                Load { row, below, first, unit, busy: None, words: words() }
            };
            (0..total / threads).map(|i| load(i * step)).collect()
        } else {
            let load = |i: u32| {
                let number = lane + i * threads;
                let (row, first, unit) = place(number.min(total - 1));
                Load { row, below: 0, first, unit, busy: Some(number.lt(total)), words: words() }
            };
            (0..total.div_ceil(threads)).map(load).collect()
        };
        let lines = Lines { memory, begin: b.u32(begin), pitch: pitch(elements) };
        Stage { b, lines, aligned, length, loads }
    }

    /// Fetches this invocation's part of the rows from `row0` on, which exists; zeros from row
    /// `end` on, where it is given.
    pub fn fetch(&self, plane: &Plane<'b>, row0: Value<'b>, end: Option<Value<'b>>) {
        let tile = plane.below(row0);
        let elements = tile.pointer().retyped(if self.aligned { DType::U32 } else { DType::U16 });
        for load in &self.loads {
            let row = end.map(|end| (row0 + (load.row + load.below)).lt(end));
            let element = |i: u32| {
                let at = load.first + i;
                let exists = match (row, self.length.map(|length| at.lt(length))) {
                    (Some(row), Some(element)) => Some(row & element),
                    (one, other) => one.or(other),
                };
                let offset = tile.at(load.row, at);
                let offset = if load.below == 0 { offset } else { offset + tile.row_stride() * load.below };
                (exists, exists.map_or(offset, |exists| exists.select(offset, 0)))
            };
            let or_zero = |exists: Option<Value<'b>>, x: Value<'b>| exists.map_or(x, |exists| exists.select(x, 0));
            let words: Vec<Value> = if self.aligned {
                let (exists, offset) = element(0);
                elements.load_chunk(offset >> UNIT.ilog2(), 4).into_iter().map(|x| or_zero(exists, x)).collect()
            } else {
                let halves: Vec<Value> = (0..UNIT)
                    .map(|i| {
                        let (exists, offset) = element(i);
                        or_zero(exists, elements.load(offset).bitcast(ScalarType::U32))
                    })
                    .collect();
                halves.chunks_exact(2).map(|pair| pair[0] | (pair[1] << 16)).collect()
            };
            load.words.iter().zip(words).for_each(|(to, word)| to.set(word));
        }
    }

    /// Stores what was fetched last.
    pub fn store(&self) {
        for load in &self.loads {
            let words: Vec<Value> = load.words.iter().map(|word| word.get()).collect();
            let store = || self.lines.memory.store(load.unit, self.b.vector(&words));
            match load.busy {
                Some(busy) => self.b.if_(busy, store),
                None => store(),
            }
        }
    }
}
