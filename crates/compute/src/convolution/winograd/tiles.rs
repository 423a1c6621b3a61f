//! The tiles of images in kernels: an invocation has one tile of one channel.
//!
//! Tiles of 2x2 pixels cover the result, in all images. The transformed numbers of one point of the
//! tile are a matrix of channels and tiles, in the memory order of the images: `[channel, tile]`,
//! or `[tile, channel]` in channels-last order. So neighbouring invocations access adjacent
//! elements of the matrix, and nearby pixels of the image.

use crate::convolution::order::is_last;
use crate::convolution::winograd::transforms::RESULTS;
use crate::matmul::divisor::{Divisor, DivisorParams};
use crate::matmul::operand::{Memory, Source, VECTOR};
use crate::view::View;
use dml_engine::interface::{I32, U32};
use dml_engine::{AddressRange, ArgumentBlock, Parameter};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, Pointer, ScalarType, Value};

/// The tiles of a range of images of a tensor in either memory order.
#[derive(Clone, Debug)]
pub struct Tiles<'t> {
    /// The tensor that is read or written.
    pub tensor: &'t View,
    /// The first image, and the number of images.
    pub images: [i64; 2],
    /// Tiles of an image, vertically and horizontally.
    pub count: [i64; 2],
}

impl<'t> Tiles<'t> {
    /// Tiles of results of this size, vertically and horizontally.
    pub fn of(size: &[i64]) -> [i64; 2] {
        [0, 1].map(|d| (size[d] + RESULTS - 1) / RESULTS)
    }

    /// The same tiles over another tensor.
    pub fn over(&self, tensor: &'t View) -> Tiles<'t> {
        Tiles { tensor, ..*self }
    }

    /// Whether channels are the innermost dimension in memory.
    pub fn last(&self) -> bool {
        is_last(self.tensor)
    }

    /// Number of channels.
    pub fn channels(&self) -> i64 {
        self.tensor.sizes[1]
    }

    /// Number of tiles of all images.
    fn total(&self) -> i64 {
        self.images[1] * self.count[0] * self.count[1]
    }

    /// Number of tiles, rounded up with tiles of zeros to a multiple of the vector width.
    pub fn padded(&self) -> i64 {
        padded(self.total())
    }

    /// Elements of a matrix of transformed numbers, which is also the number of invocations.
    pub fn elements(&self) -> i64 {
        self.padded() * self.channels()
    }

    /// The matrix's strides by channel and by tile.
    pub fn strides(&self) -> [i64; 2] {
        if self.last() { [1, self.channels()] } else { [self.padded(), 1] }
    }

    /// The matrices in `memory` as an operand of a product, whose outer index is the channel or the
    /// tile.
    pub fn operand(&self, memory: &View, outer: Outer) -> Source {
        let ([channel, tile], [channels, tiles]) = (self.strides(), [self.channels(), self.padded()]);
        let (size, stride) = match outer {
            Outer::Channels => ([channels, tiles], [channel, tile]),
            Outer::Tiles => ([tiles, channels], [tile, channel]),
        };
        Source::strided(memory, size, stride, self.elements())
    }

    /// The address range of the tensor from the first image on.
    pub fn range(&self) -> AddressRange {
        Memory::from(self.tensor).skip(self.images[0] * self.tensor.strides[0]).range()
    }
}

/// The outer index of an operand, which is the product's row or column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Outer {
    /// Channels; k runs over tiles.
    Channels,
    /// Tiles; k runs over channels.
    Tiles,
}

/// A number of tiles, rounded up to a multiple of the vector width.
pub fn padded(tiles: i64) -> i64 {
    (tiles as u64).next_multiple_of(VECTOR.into()) as i64
}

/// Kernel parameter: [`Tiles`] without its tensor's address. The parameter's type is whether
/// channels are the innermost dimension.
pub struct Grid;

/// [`Tiles`] in a kernel.
pub struct GridParams<'b> {
    last: bool,
    /// Number of invocations.
    threads: Value<'b>,
    /// Number of values of the fastest digit of an invocation's index: tiles with padding, or
    /// channels.
    fastest: DivisorParams<'b>,
    /// Number of tiles without padding.
    total: Value<'b>,
    count: [DivisorParams<'b>; 2],
    /// Height and width of an image.
    size: [Value<'b>; 2],
    /// Strides by image, channel, row and column.
    strides: [Value<'b>; 4],
}

impl Parameter for Grid {
    type Type = bool;
    type Argument<'a> = &'a Tiles<'a>;
    type Declared<'b> = GridParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, last: &bool) -> GridParams<'b> {
        GridParams {
            last: *last,
            threads: U32::declare(b, "threads", &()),
            fastest: Divisor::declare(b, "fastest", &()),
            total: U32::declare(b, "tiles", &()),
            count: <[Divisor; 2]>::declare(b, "count", &()),
            size: <[I32; 2]>::declare(b, "size", &()),
            strides: <[U32; 4]>::declare(b, "stride", &()),
        }
    }

    fn pass(tiles: &&Tiles<'_>, last: &bool, block: &mut ArgumentBlock) {
        if tiles.last() != *last {
            return block.mismatch("images are not laid out as the kernel expects it");
        }
        let Tiles { tensor, count, .. } = tiles;
        U32::pass(&(tiles.elements() as u32), &(), block);
        Divisor::pass(&if *last { tiles.channels() } else { tiles.padded() }, &(), block);
        U32::pass(&(tiles.total() as u32), &(), block);
        <[Divisor; 2]>::pass(count, &(), block);
        <[I32; 2]>::pass(&[tensor.sizes[2] as i32, tensor.sizes[3] as i32], &(), block);
        <[U32; 4]>::pass(&[0, 1, 2, 3].map(|d| tensor.strides[d] as u32), &(), block);
    }
}

/// One tile of one channel.
pub struct TileSite<'b> {
    /// Its index in a matrix of transformed numbers.
    pub index: Value<'b>,
    /// The channel.
    pub channel: Value<'b>,
    /// Whether the tile is not padding.
    pub in_range: Value<'b>,
    /// Offset (u64) of the image's channel; for padding the offset of an existing tile.
    start: Value<'b>,
    /// Row and column (i32) of the tile's first result.
    first: [Value<'b>; 2],
    size: [Value<'b>; 2],
    /// Strides by row and column.
    strides: [Value<'b>; 2],
}

impl<'b> GridParams<'b> {
    /// Distance between two matrices of transformed numbers.
    pub fn matrix(&self) -> Value<'b> {
        self.threads
    }

    /// Runs `body` for this invocation's tile, if it has one.
    pub fn run(&self, b: &'b Builder, body: impl FnOnce(TileSite<'b>)) {
        let index = linear_id(b, ScalarType::U32);
        b.if_(index.lt(self.threads), || body(self.site(index)));
    }

    fn site(&self, index: Value<'b>) -> TileSite<'b> {
        let (slow, fast) = self.fastest.divide(index);
        let (tile, channel) = if self.last { (slow, fast) } else { (fast, slow) };
        let in_range = tile.lt(self.total);
        let (rest, column) = self.count[1].divide(in_range.select(tile, 0));
        let (image, row) = self.count[0].divide(rest);
        let wide = |x: Value<'b>| x.cast(ScalarType::U64);
        let [of_image, of_channel, of_row, of_column] = self.strides;
        let start = wide(image) * wide(of_image) + wide(channel) * wide(of_channel);
        let first = [row, column].map(|x| (x * RESULTS as u32).cast(ScalarType::I32));
        TileSite { index, channel, in_range, start, first, size: self.size, strides: [of_row, of_column] }
    }
}

impl<'b> TileSite<'b> {
    /// The plane of the image's channel, in memory that begins with the first image.
    pub fn plane(&self, memory: Pointer<'b>) -> Pointer<'b> {
        memory.offset(self.start)
    }

    /// Offset in the plane of the `i`th coordinate along dimension `d`, counted from `offset` (i32)
    /// behind the tile's first result; and whether the coordinate is in range. The offset is 0 if
    /// it is not.
    pub fn along(&self, d: usize, i: usize, offset: Option<Value<'b>>) -> (Value<'b>, Value<'b>) {
        let mut at = self.first[d] + i as i32;
        if let Some(offset) = offset {
            at = at + offset;
        }
        let unsigned = |x: Value<'b>| x.bitcast(ScalarType::U32);
        // A negative coordinate is a huge u32.
        let inside = unsigned(at).lt(unsigned(self.size[d]));
        (inside.select(unsigned(at) * self.strides[d], 0), inside)
    }
}
