//! Tiles of matrices in shared memory, as rows or transposed, and the transfers from global memory
//! to them.

use crate::attention::matrix::Plane;
use crate::attention::matrix_units::tile::pitch;
use crate::matmul::operand::VECTOR_16_BIT;
use dml_kernel::{Builder, DType, Matrix, MatrixLayout, Pointer, ScalarType, Shared, Value, Var};

/// Rows of 16-bit elements in shared memory.
#[derive(Copy, Clone)]
pub struct SharedRows<'b> {
    /// The shared memory.
    pub memory: Shared<'b>,
    /// Offset of the first row, in 16-byte vectors.
    pub begin: Value<'b>,
    /// Distance from row to row (pitch), in 16-byte vectors.
    pub pitch: u32,
}

impl<'b> SharedRows<'b> {
    /// Loads a cooperative matrix from element `along` of a row on.
    pub fn load(&self, to: Matrix<'b>, row: Value<'b>, along: u32, layout: MatrixLayout) {
        to.load(self.memory, self.begin + row * self.pitch + along / VECTOR_16_BIT, self.pitch, layout);
    }
}

/// Where a tile is in shared memory, in 16-byte vectors: as rows, transposed, or both.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Offset of the rows.
    pub rows: Option<u32>,
    /// Offset of the transposed tile.
    pub transposed: Option<u32>,
}

/// This invocation's part in copying rows of a matrix to shared memory: a fetch to registers, and
/// later a store.
pub struct Stage<'b> {
    b: &'b Builder,
    memory: Shared<'b>,
    /// The tile as rows, if it is stored so.
    rows: Option<SharedRows<'b>>,
    /// The transposed tile, if it is stored so.
    transposed: Option<SharedRows<'b>>,
    aligned: bool,
    /// Elements of a row in global memory, if there are fewer than in the tile.
    length: Option<Value<'b>>,
    loads: Vec<Load<'b>>,
}

/// One 16-byte vector of a row, or two below each other that are transposed together.
struct Load<'b> {
    row: Value<'b>,
    /// Row of the first vector, relative to `row`.
    below: u32,
    first: Value<'b>,
    /// Destination of the first vector, in 16-byte vectors, if the tile is stored as rows.
    unit: Option<Value<'b>>,
    /// Destination of the first word in the transposed tile, if it is stored so: vector and lane.
    /// The others are in the next rows.
    transposed: Option<[Value<'b>; 2]>,
    /// Whether this invocation has the load; `None` if every invocation does.
    is_active: Option<Value<'b>>,
    /// Fetched words by row, two elements each.
    words: Vec<Vec<Var<'b>>>,
}

impl<'b> Stage<'b> {
    /// A stage of `rows` by `elements` elements, for a workgroup of `threads` invocations.
    pub fn new(
        b: &'b Builder,
        (memory, places): (Shared<'b>, Places),
        [rows, elements]: [u32; 2],
        threads: u32,
        aligned: bool,
        length: Option<Value<'b>>,
    ) -> Stage<'b> {
        let (across, lane) = (elements / VECTOR_16_BIT, b.local_id(0));
        let together = if places.transposed.is_some() { 2 } else { 1 };
        let total = rows / together * across;
        let words = || {
            let of_row = |_| (0..VECTOR_16_BIT / 2).map(|_| b.var(b.u32(0))).collect();
            (0..together).map(of_row).collect()
        };
        let location = |load: Value<'b>| {
            let row = load / across;
            let unit = load - row * across;
            let row = if together == 1 { row } else { row * together };
            let first = unit * VECTOR_16_BIT;
            (row, first, places.rows.map(|begin| row * pitch(elements) + unit + begin))
        };
        let transposed = |row: Value<'b>, below: u32, first: Value<'b>| {
            places.transposed.map(|begin| {
                let row = if below == 0 { row } else { row + below };
                let unit = first * pitch(rows) + (row >> VECTOR_16_BIT.ilog2()) + begin;
                [unit, (row & (VECTOR_16_BIT - 1)) >> 1]
            })
        };
        let loads: Vec<Load> = if threads.is_multiple_of(across) && total.is_multiple_of(threads) {
            // All loads of an invocation are in one column, a fixed number of rows apart: one
            // address is enough.
            let (row, first, unit) = location(lane);
            let step = threads / across * together;
            let load = |below: u32| {
                let unit = unit.map(|unit| unit + below * pitch(elements));
                let transposed = transposed(row, below, first);
                Load { row, below, first, unit, transposed, is_active: None, words: words() }
            };
            (0..total / threads).map(|i| load(i * step)).collect()
        } else {
            let load = |i: u32| {
                let number = lane + i * threads;
                let (row, first, unit) = location(number.min(total - 1));
                let transposed = transposed(row, 0, first);
                Load { row, below: 0, first, unit, transposed, is_active: Some(number.lt(total)), words: words() }
            };
            (0..total.div_ceil(threads)).map(load).collect()
        };
        let shared = |begin: u32, length: u32| SharedRows { memory, begin: b.u32(begin), pitch: pitch(length) };
        Stage {
            b,
            memory,
            rows: places.rows.map(|begin| shared(begin, elements)),
            transposed: places.transposed.map(|begin| shared(begin, rows)),
            aligned,
            length,
            loads,
        }
    }

    /// The tile as rows.
    ///
    /// # Panics
    /// If it is not stored as rows.
    pub fn rows(&self) -> SharedRows<'b> {
        self.rows.expect("the tile has rows")
    }

    /// Loads the right operand of a product along the tile's rows, from `row` and element `along`
    /// of it on.
    pub fn load_along_rows(&self, to: Matrix<'b>, row: u32, along: u32) {
        match &self.transposed {
            Some(transposed) => transposed.load(to, self.b.u32(along), row, MatrixLayout::ColumnMajor),
            None => self.rows().load(to, self.b.u32(row), along, MatrixLayout::RowMajor),
        }
    }

    /// Fetches this invocation's part of the rows from `row0` on, which is a valid row. Rows from
    /// `end` on, if it is given, are zeros.
    pub fn fetch(&self, plane: &Plane<'b>, row0: Value<'b>, end: Option<Value<'b>>) {
        let tile = plane.rows_from(row0);
        let elements = tile.pointer().retyped(if self.aligned { DType::U32 } else { DType::U16 });
        for load in &self.loads {
            for (below, words) in (load.below..).zip(&load.words) {
                let row = end.map(|end| (row0 + (load.row + below)).lt(end));
                let fetched = self.fetch_vector((&tile, elements), load, below, row);
                words.iter().zip(fetched).for_each(|(to, word)| to.set(word));
            }
        }
    }

    /// The words of the vector `below` rows below the first row of a load. They are zeros unless
    /// `row` is true.
    fn fetch_vector(
        &self,
        (tile, elements): (&Plane<'b>, Pointer<'b>),
        load: &Load<'b>,
        below: u32,
        row: Option<Value<'b>>,
    ) -> Vec<Value<'b>> {
        let element = |i: u32| {
            let at = load.first + i;
            let exists = match (row, self.length.map(|length| at.lt(length))) {
                (Some(row), Some(element)) => Some(row & element),
                (one, other) => one.or(other),
            };
            let offset = tile.at(load.row, at);
            let offset = if below == 0 { offset } else { offset + tile.row_stride() * below };
            (exists, exists.map_or(offset, |exists| exists.select(offset, 0)))
        };
        let or_zero = |exists: Option<Value<'b>>, x: Value<'b>| exists.map_or(x, |exists| exists.select(x, 0));
        if self.aligned {
            let (exists, offset) = element(0);
            let words = elements.load_chunk(offset >> VECTOR_16_BIT.ilog2(), 4);
            return words.into_iter().map(|x| or_zero(exists, x)).collect();
        }
        let halves: Vec<Value> = (0..VECTOR_16_BIT)
            .map(|i| {
                let (exists, offset) = element(i);
                or_zero(exists, elements.load(offset).bitcast(ScalarType::U32))
            })
            .collect();
        halves.chunks_exact(2).map(|pair| pair[0] | (pair[1] << 16)).collect()
    }

    /// Stores the words of the last fetch.
    pub fn store(&self) {
        for load in &self.loads {
            let words: Vec<Vec<Value>> =
                load.words.iter().map(|row| row.iter().map(|word| word.get()).collect()).collect();
            let store = || {
                if let Some(unit) = load.unit {
                    for (i, row) in (0u32..).zip(&words) {
                        let unit = if i == 0 { unit } else { unit + i * self.rows().pitch };
                        self.memory.store(unit, self.b.vector(row));
                    }
                }
                if let (Some([unit, lane]), [above, below], Some(to)) = (load.transposed, &words[..], &self.transposed)
                {
                    for (i, (&above, &below)) in (0u32..).zip(above.iter().zip(below)) {
                        let left = (above & 0xffff) | (below << 16);
                        let right = (above >> 16) | (below & 0xffff_0000u32);
                        self.memory.store_lane(unit + 2 * i * to.pitch, lane, left);
                        self.memory.store_lane(unit + (2 * i + 1) * to.pitch, lane, right);
                    }
                }
            };
            match load.is_active {
                Some(is_active) => self.b.if_(is_active, store),
                None => store(),
            }
        }
    }
}
