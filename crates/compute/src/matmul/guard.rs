//! Which tiles of a float32 product are computed from terms of 16 bits, and which plainly: two
//! launches go over the same result, and each leaves the other's tiles alone. Only the device knows
//! which, so the host waits for nothing.

use dml_engine::interface::{ReadRange, U32};
use dml_engine::{AddressRange, ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, Value};

/// A block of rows (columns) has an element of which the high term holds nothing. The product of
/// two such is in no term, so two such blocks do not go together.
pub const SMALL: u32 = 1;

/// A block of rows (columns) has an element that no term holds.
pub const LOST: u32 = 2;

/// Which tiles a launch computes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tiles {
    /// Those whose products the terms hold.
    Held,
    /// The others.
    Others,
}

/// What was found in the blocks of an operand's rows (columns).
#[derive(Copy, Clone, Debug)]
pub struct Blocks {
    /// A word a block: [`SMALL`] and [`LOST`].
    pub found: AddressRange,
    /// Words from one matrix of the batch to the next.
    pub batch: u32,
    /// Rows (columns) of a block: a power of two.
    pub size: u32,
}

/// A guard as a kernel's parameter: the blocks of both operands.
pub struct Guard;

/// A guard in a kernel.
#[derive(Copy, Clone)]
pub struct GuardParams<'b> {
    tiles: Tiles,
    sides: [SideParams<'b>; 2],
}

#[derive(Copy, Clone)]
struct SideParams<'b> {
    found: Pointer<'b>,
    batch: Value<'b>,
    shift: Value<'b>,
}

impl Parameter for Guard {
    type Type = Tiles;
    type Argument<'a> = [Blocks; 2];
    type Declared<'b> = GuardParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, tiles: &Tiles) -> GuardParams<'b> {
        let side = |name: &str| SideParams {
            found: ReadRange::declare(b, &format!("{name}_found"), &DType::U32),
            batch: U32::declare(b, &format!("{name}_blocks"), &()),
            shift: U32::declare(b, &format!("{name}_shift"), &()),
        };
        GuardParams { tiles: *tiles, sides: [side("a"), side("b")] }
    }

    fn pass(blocks: &[Blocks; 2], _: &Tiles, block: &mut ArgumentBlock) {
        for Blocks { found, batch, size } in blocks {
            ReadRange::pass(found, &DType::U32, block);
            U32::pass(batch, &(), block);
            U32::pass(&size.ilog2(), &(), block);
        }
    }
}

impl<'b> GuardParams<'b> {
    /// Whether the tile that begins at `origin`, a row and a column, is the other launch's. It lies
    /// in one block of each side.
    pub fn leaves(self, batch: Value<'b>, origin: [Value<'b>; 2]) -> Value<'b> {
        let [x, y] = [0, 1].map(|i| {
            let SideParams { found, batch: blocks, shift } = self.sides[i];
            found.load(batch * blocks + (origin[i] >> shift))
        });
        let others = ((x | y) & LOST) | (x & y & SMALL);
        match self.tiles {
            Tiles::Held => others.ne(0),
            Tiles::Others => others.eq(0),
        }
    }
}
