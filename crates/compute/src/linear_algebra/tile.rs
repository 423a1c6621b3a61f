//! A small square of a matrix in shared memory, on its way between memory and invocations that take
//! a row or a column each.

use crate::linear_algebra::element::{Element, SharedElements};
use crate::linear_algebra::matrices::StrideParams;
use dml_kernel::{Builder, DType, Value};

/// Elements that an invocation has on their way at once.
const TOGETHER: u32 = 8;

/// `side` x `side` elements for each of a workgroup's matrices, which as many invocations move.
/// Rows are rotated against one another (by an exclusive or), so that neither those of a row nor
/// those of a column share a bank.
#[derive(Copy, Clone)]
pub struct Tile<'b> {
    b: &'b Builder,
    elements: SharedElements<'b>,
    side: u32,
    /// Where the own matrix begins.
    base: Value<'b>,
    /// The invocation's place among those of its matrix.
    own: Value<'b>,
}

/// Where a tile's elements are in memory: those of `rows` x `columns` from a place on.
#[derive(Copy, Clone)]
pub struct Place<'b> {
    /// Strides of the matrices.
    pub strides: StrideParams<'b>,
    /// Which matrix.
    pub matrix: Value<'b>,
    /// Its row and column where the tile begins.
    pub from: [Value<'b>; 2],
    /// The tile's rows and columns in use, at least one of each.
    pub size: [Value<'b>; 2],
}

impl<'b> Place<'b> {
    /// The offset of an element of the tile.
    pub fn at(&self, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        self.strides.at(self.matrix, self.from[0] + row, self.from[1] + column)
    }

    fn holds(&self, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        row.lt(self.size[0]) & column.lt(self.size[1])
    }
}

impl<'b> Tile<'b> {
    /// Tiles of `side` rows, a power of two, for `matrices` matrices, each with `side` invocations
    /// that stand together.
    pub fn new(b: &'b Builder, dtype: DType, side: u32, matrices: u32) -> Tile<'b> {
        let local = b.local_id(0);
        let own = local & (side - 1);
        Tile {
            b,
            elements: SharedElements::shared(b, dtype, matrices * side * side),
            side,
            base: (local - own) * side,
            own,
        }
    }

    fn place(&self, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        self.base + row * self.side + (row ^ column)
    }

    /// The element of a row and a column.
    pub fn load(&self, row: Value<'b>, column: Value<'b>) -> Element<'b> {
        self.elements.load(self.place(row, column))
    }

    /// Writes the element of a row and a column.
    pub fn store(&self, row: Value<'b>, column: Value<'b>, element: Element<'b>) {
        self.elements.store(self.place(row, column), element);
    }

    /// Calls `take` with rows and columns: all of the tile's elements once, in steps of a few.
    /// Neighbouring invocations take neighbours in memory; those of one order of strides are always
    /// taken by the same invocation.
    pub fn each(&self, strides: &StrideParams<'b>, take: impl Fn(&[[Value<'b>; 2]])) {
        let (b, down) = (self.b, strides.rows_are_closer());
        b.for_(0, b.u32(self.side), TOGETHER, |first| {
            let places: Vec<[Value; 2]> = (0..TOGETHER)
                .map(|e| {
                    let other = first + e;
                    [down.select(self.own, other), down.select(other, self.own)]
                })
                .collect();
            take(&places);
        });
    }

    /// Reads elements from memory, and gives each to `keep` with its row and column; what is beyond
    /// the place in use is 0.
    pub fn read(
        &self,
        from: &Place<'b>,
        load: impl Fn(Value<'b>) -> Element<'b>,
        keep: impl Fn(Value<'b>, Value<'b>, Element<'b>),
    ) {
        self.each(&from.strides, |places| {
            let values: Vec<Element> = places
                .iter()
                .map(|&[row, column]| {
                    // Always an element: no branch keeps one load from the next.
                    let loaded = load(from.at(row.min(from.size[0] - 1), column.min(from.size[1] - 1)));
                    Element::select(from.holds(row, column), loaded, loaded.like(0.0))
                })
                .collect();
            for (&[row, column], value) in places.iter().zip(values) {
                keep(row, column, value);
            }
        });
    }

    /// Reads the tile from memory.
    pub fn fill(&self, from: &Place<'b>, load: impl Fn(Value<'b>) -> Element<'b>) {
        self.read(from, load, |row, column, value| self.store(row, column, value));
    }

    /// Writes to memory what `value` finds for a row and a column, where `own`.
    pub fn write(
        &self,
        to: &Place<'b>,
        own: Value<'b>,
        value: impl Fn(Value<'b>, Value<'b>) -> Element<'b>,
        store: impl Fn(Value<'b>, Element<'b>),
    ) {
        self.each(&to.strides, |places| {
            for &[row, column] in places {
                self.b.if_(own & to.holds(row, column), || store(to.at(row, column), value(row, column)));
            }
        });
    }
}
