//! Which tiles of a float32 product are computed from terms of 16 bits, and which in float32: two
//! launches cover the same result, and each skips the other's tiles. The flags that decide are on
//! the device, so the host does not wait.

use dml_engine::interface::{ReadRange, U32};
use dml_engine::{AddressRange, ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, Value};

/// Flag: a block of rows (columns) has an element so small that its high term is 0. The product of
/// two such elements is in no product of terms, so two such blocks must not be multiplied in terms.
pub const FLAG_SMALL: u32 = 1;

/// Flag: a block of rows (columns) has an element that terms cannot represent.
pub const FLAG_LOST: u32 = 2;

/// The tiles that a launch computes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tiles {
    /// Tiles whose products can be computed from terms.
    Representable,
    /// The other tiles.
    Unrepresentable,
}

/// The flags of the blocks of an operand's rows (columns).
#[derive(Copy, Clone, Debug)]
pub struct Blocks {
    /// A word for each block: [`FLAG_SMALL`] and [`FLAG_LOST`].
    pub found: AddressRange,
    /// Distance in words between two matrices of the batch.
    pub batch: u32,
    /// Rows (columns) of a block: a power of two.
    pub size: u32,
}

/// Kernel parameter: the flags of both operands' blocks.
pub struct Guard;

/// A [`Guard`] in a kernel.
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
    /// Whether this launch skips the tile that begins at `origin`, a row and a column. The tile is
    /// inside of one block of each operand.
    pub fn leaves(self, batch: Value<'b>, origin: [Value<'b>; 2]) -> Value<'b> {
        let [x, y] = [0, 1].map(|i| {
            let SideParams { found, batch: blocks, shift } = self.sides[i];
            found.load(batch * blocks + (origin[i] >> shift))
        });
        let unrepresentable = ((x | y) & FLAG_LOST) | (x & y & FLAG_SMALL);
        match self.tiles {
            Tiles::Representable => unrepresentable.ne(0),
            Tiles::Unrepresentable => unrepresentable.eq(0),
        }
    }
}
