//! The tiles of images as kernels see them: an invocation has one tile of one channel.
//!
//! Tiles of two by two places cover the result's side, in all images; the transformed numbers of
//! one point of the tile are a matrix of channels and tiles, whose order is that of the images:
//! `[channel, tile]`, or `[tile, channel]` where channels are the fastest in memory. So
//! neighbouring invocations are neighbours in the matrix, and near each other in the image.

use crate::convolution::order::is_last;
use crate::convolution::winograd::transforms::RESULTS;
use crate::matmul::divisor::{Divisor, DivisorParams};
use crate::matmul::operand::{Memory, Source, WIDE};
use crate::view::View;
use dml_engine::interface::{I32, U32};
use dml_engine::{AddressRange, ArgumentBlock, Parameter};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, Pointer, ScalarType, Value};

/// The tiles of some images, over a tensor that has channels and pixels in either order.
#[derive(Clone, Debug)]
pub struct Tiles<'t> {
    /// What is read or written.
    pub tensor: &'t View,
    /// The first image, and how many there are.
    pub images: [i64; 2],
    /// Tiles of an image, down and across.
    pub count: [i64; 2],
}

impl<'t> Tiles<'t> {
    /// Tiles down and across of results of this size.
    pub fn of(size: &[i64]) -> [i64; 2] {
        [0, 1].map(|d| (size[d] + RESULTS - 1) / RESULTS)
    }

    /// Tiles over `tensor` instead.
    pub fn over(&self, tensor: &'t View) -> Tiles<'t> {
        Tiles { tensor, ..*self }
    }

    /// Whether channels are the fastest.
    pub fn last(&self) -> bool {
        is_last(self.tensor)
    }

    /// Channels.
    pub fn channels(&self) -> i64 {
        self.tensor.sizes[1]
    }

    /// Tiles of all images.
    fn total(&self) -> i64 {
        self.images[1] * self.count[0] * self.count[1]
    }

    /// `total`, filled up with tiles of zeros so that loads of several fit.
    pub fn padded(&self) -> i64 {
        padded(self.total())
    }

    /// Elements of a matrix of transformed numbers, and invocations.
    pub fn elements(&self) -> i64 {
        self.padded() * self.channels()
    }

    /// Elements from one channel of the matrix to the next, and from one tile to the next.
    pub fn strides(&self) -> [i64; 2] {
        if self.last() { [1, self.channels()] } else { [self.padded(), 1] }
    }

    /// The matrices in `memory` as an operand of a product whose outer index is the channel, or the
    /// tile.
    pub fn operand(&self, memory: &View, outer: Outer) -> Source {
        let ([channel, tile], [channels, tiles]) = (self.strides(), [self.channels(), self.padded()]);
        let (size, stride) = match outer {
            Outer::Channels => ([channels, tiles], [channel, tile]),
            Outer::Tiles => ([tiles, channels], [tile, channel]),
        };
        Source::strided(memory, size, stride, self.elements())
    }

    /// The tensor's bytes from the first image on.
    pub fn range(&self) -> AddressRange {
        Memory::from(self.tensor).skip(self.images[0] * self.tensor.strides[0]).range()
    }
}

/// What a product's rows (columns) are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Outer {
    /// Channels; k counts tiles.
    Channels,
    /// Tiles; k counts channels.
    Tiles,
}

/// A number of tiles, filled up to whole loads.
pub fn padded(tiles: i64) -> i64 {
    (tiles as u64).next_multiple_of(WIDE.into()) as i64
}

/// [`Tiles`] as a kernel's parameter; whether channels are the fastest is its type. Addresses are
/// parameters of their own.
pub struct Grid;

/// [`Tiles`] in a kernel.
pub struct GridParams<'b> {
    last: bool,
    /// Invocations.
    threads: Value<'b>,
    /// Of an invocation's index: tiles with padding, or channels.
    fastest: DivisorParams<'b>,
    /// Tiles without padding.
    total: Value<'b>,
    count: [DivisorParams<'b>; 2],
    /// Pixels down and across.
    size: [Value<'b>; 2],
    /// Elements from one image, channel, row, column to the next.
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
pub struct Site<'b> {
    /// Its place in a matrix of transformed numbers.
    pub index: Value<'b>,
    /// The channel.
    pub channel: Value<'b>,
    /// The tile is no padding.
    pub exists: Value<'b>,
    /// Elements (u64) to the image's channel; those of padding are an existing one's.
    start: Value<'b>,
    /// Row and column (i32) of its first result.
    first: [Value<'b>; 2],
    size: [Value<'b>; 2],
    /// Elements from one row, column to the next.
    strides: [Value<'b>; 2],
}

impl<'b> GridParams<'b> {
    /// Elements from one matrix of transformed numbers to the next.
    pub fn matrix(&self) -> Value<'b> {
        self.threads
    }

    /// Runs `body` for this invocation's tile, if it has one.
    pub fn run(&self, b: &'b Builder, body: impl FnOnce(Site<'b>)) {
        let index = linear_id(b, ScalarType::U32);
        b.if_(index.lt(self.threads), || body(self.site(index)));
    }

    fn site(&self, index: Value<'b>) -> Site<'b> {
        let (slow, fast) = self.fastest.divide(index);
        let (tile, channel) = if self.last { (slow, fast) } else { (fast, slow) };
        let exists = tile.lt(self.total);
        let (rest, column) = self.count[1].divide(exists.select(tile, 0));
        let (image, row) = self.count[0].divide(rest);
        let wide = |x: Value<'b>| x.cast(ScalarType::U64);
        let [of_image, of_channel, of_row, of_column] = self.strides;
        let start = wide(image) * wide(of_image) + wide(channel) * wide(of_channel);
        let first = [row, column].map(|x| (x * RESULTS as u32).cast(ScalarType::I32));
        Site { index, channel, exists, start, first, size: self.size, strides: [of_row, of_column] }
    }
}

impl<'b> Site<'b> {
    /// The image's channel in memory that begins with the first image.
    pub fn plane(&self, memory: Pointer<'b>) -> Pointer<'b> {
        memory.offset(self.start)
    }

    /// Offset from the plane's beginning of the `i`th coordinate along dimension `d`, which begins
    /// at `offset` (i32) from the tile's first result; and whether it is inside. What is not has
    /// the offset 0.
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
