//! A small square tile of a matrix in shared memory, through which invocations that have a row or a
//! column each access memory in contiguous runs.

use crate::linear_algebra::element::{Element, SharedElements};
use crate::linear_algebra::matrices::StrideParams;
use dml_kernel::{Builder, DType, Value};

/// Loads of an invocation that are issued before their results are used, unless registers are few.
pub const LOADS_IN_FLIGHT: u32 = 8;

/// `side` x `side` elements for each matrix of a workgroup, copied by `side` invocations. Columns
/// are permuted by an exclusive or with the row, so that neither the elements of a row nor those of
/// a column share a bank.
#[derive(Copy, Clone)]
pub struct Tile<'b> {
    b: &'b Builder,
    elements: SharedElements<'b>,
    side: u32,
    /// Beginning of this invocation's matrix.
    base: Value<'b>,
    /// Index of the invocation among the invocations of its matrix.
    own: Value<'b>,
    /// See [`LOADS_IN_FLIGHT`].
    loads_in_flight: u32,
    /// The rows and columns that are copied, if not all are.
    copied: Option<Value<'b>>,
}

/// The position of a tile in memory: `rows` x `columns` elements from a first element on.
#[derive(Copy, Clone)]
pub struct TilePosition<'b> {
    /// Strides of the matrices.
    pub strides: StrideParams<'b>,
    /// Index of the matrix.
    pub matrix: Value<'b>,
    /// Row and column of the tile's first element.
    pub from: [Value<'b>; 2],
    /// Rows and columns of the tile that are in range, at least one of each.
    pub size: [Value<'b>; 2],
}

impl<'b> TilePosition<'b> {
    /// The offset of an element of the tile.
    pub fn at(&self, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        self.strides.at(self.matrix, self.from[0] + row, self.from[1] + column)
    }

    fn holds(&self, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        row.lt(self.size[0]) & column.lt(self.size[1])
    }
}

impl<'b> Tile<'b> {
    /// Tiles of `side` rows, a power of two, for `matrices` matrices, each with `side` consecutive
    /// invocations.
    pub fn new(b: &'b Builder, dtype: DType, side: u32, matrices: u32) -> Tile<'b> {
        let local = b.local_id(0);
        let own = local & (side - 1);
        Tile {
            b,
            elements: SharedElements::shared(b, dtype, matrices * side * side),
            side,
            base: (local - own) * side,
            own,
            loads_in_flight: LOADS_IN_FLIGHT,
            copied: None,
        }
    }

    /// The tile, with another number of loads in flight: a power of two.
    pub fn with_loads_in_flight(self, loads_in_flight: u32) -> Tile<'b> {
        Tile { loads_in_flight, ..self }
    }

    /// The tile, of which only the first `copied` rows and columns are copied: compilers unroll
    /// loops over a number that they know, and issue the loads of all turns at once.
    pub fn with_copied(self, copied: Value<'b>) -> Tile<'b> {
        Tile { copied: Some(copied), ..self }
    }

    fn offset(&self, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        self.base + row * self.side + (row ^ column)
    }

    /// Loads an element of the tile.
    pub fn load(&self, row: Value<'b>, column: Value<'b>) -> Element<'b> {
        self.elements.load(self.offset(row, column))
    }

    /// Stores an element of the tile.
    pub fn store(&self, row: Value<'b>, column: Value<'b>, element: Element<'b>) {
        self.elements.store(self.offset(row, column), element);
    }

    /// Calls `take` with rows and columns: with all of the tile's elements, each once, a few in
    /// each call. Neighbouring invocations access adjacent memory. For one order of strides, an
    /// element always belongs to the same invocation.
    pub fn each(&self, strides: &StrideParams<'b>, take: impl Fn(&[[Value<'b>; 2]])) {
        let (b, down) = (self.b, strides.rows_are_closer());
        let turns = self.copied.unwrap_or_else(|| b.u32(self.side));
        b.for_(0, turns, self.loads_in_flight, |first| {
            let positions: Vec<[Value; 2]> = (0..self.loads_in_flight)
                .map(|e| {
                    let other = first + e;
                    [down.select(self.own, other), down.select(other, self.own)]
                })
                .collect();
            take(&positions);
        });
    }

    /// Loads elements from memory, and passes each to `keep` with its row and column; elements out
    /// of range are 0.
    pub fn read(
        &self,
        from: &TilePosition<'b>,
        load: impl Fn(Value<'b>) -> Element<'b>,
        keep: impl Fn(Value<'b>, Value<'b>, Element<'b>),
    ) {
        self.each(&from.strides, |positions| {
            let values: Vec<Element> = positions
                .iter()
                .map(|&[row, column]| {
                    // The load is unconditional, since branches would keep loads from being issued
                    // together.
                    let loaded = load(from.at(row.min(from.size[0] - 1), column.min(from.size[1] - 1)));
                    Element::select(from.holds(row, column), loaded, loaded.like(0.0))
                })
                .collect();
            for (&[row, column], value) in positions.iter().zip(values) {
                keep(row, column, value);
            }
        });
    }

    /// Loads the tile from memory.
    pub fn fill(&self, from: &TilePosition<'b>, load: impl Fn(Value<'b>) -> Element<'b>) {
        self.read(from, load, |row, column, value| self.store(row, column, value));
    }

    /// Stores `value` of every row and column to memory, if `own`.
    pub fn write(
        &self,
        to: &TilePosition<'b>,
        own: Value<'b>,
        value: impl Fn(Value<'b>, Value<'b>) -> Element<'b>,
        store: impl Fn(Value<'b>, Element<'b>),
    ) {
        self.each(&to.strides, |positions| {
            for &[row, column] in positions {
                self.b.if_(own & to.holds(row, column), || store(to.at(row, column), value(row, column)));
            }
        });
    }
}
