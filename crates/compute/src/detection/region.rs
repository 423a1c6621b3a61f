//! Regions of images and their bins. `[regions, 5]`: each has the index of an image, and left, top,
//! right and bottom in units of `1 / scale` pixels. Along each axis a region is divided into equal
//! bins.

use dml_engine::interface::I32;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// The elements of an image that a bin combines.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bins {
    /// Bilinear samples at evenly spaced points.
    Samples {
        /// Pixels' centres are at halves, and regions keep their size; otherwise the size is at
        /// least one pixel.
        aligned: bool,
    },
    /// The pixels that a bin may touch. Regions begin and end at pixels, and their size is at least
    /// one pixel.
    Pixels {
        /// A region includes its last pixel.
        closed: bool,
    },
}

/// Sizes that all regions share.
#[derive(Copy, Clone, Debug)]
pub struct Grid {
    /// Pixels per unit of a region's corners.
    pub scale: f64,
    /// Height and width of an image.
    pub image: [i64; 2],
    /// Number of bins of a region, vertically and horizontally.
    pub bins: [i64; 2],
    /// Samples of a bin along each axis; 0 or less: one per pixel.
    pub samples: i64,
}

impl Grid {
    /// Upper bound of the samples or pixels of a bin: the size of the image, apart from samples
    /// just outside of it.
    pub fn max_samples(&self) -> i64 {
        let [height, width] = if self.samples > 0 { [self.samples; 2] } else { self.image.map(|n| n + 8) };
        height * (1 + width)
    }
}

/// Kernel parameter: a [`Grid`].
pub struct GridNumbers;

/// A [`Grid`] in a kernel.
pub struct GridParams<'b> {
    scale: Value<'b>,
    /// Height and width of an image (i32).
    pub image: [Value<'b>; 2],
    /// Number of bins of a region (i32).
    pub bins: [Value<'b>; 2],
    samples: Value<'b>,
}

impl Parameter for GridNumbers {
    /// The dtype in whose compute type regions are computed.
    type Type = DType;
    type Argument<'a> = Grid;
    type Declared<'b> = GridParams<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, dtype: &DType) -> GridParams<'b> {
        let number = |what: &str| b.param(&format!("{name}_{what}"), ScalarType::I32);
        let scale = b.param(&format!("{name}_scale"), dtype.compute());
        GridParams {
            scale,
            image: [number("height"), number("width")],
            bins: [number("rows"), number("columns")],
            samples: number("samples"),
        }
    }

    fn pass(grid: &Grid, dtype: &DType, block: &mut ArgumentBlock) {
        if dtype.compute() == ScalarType::F64 {
            block.scalar(grid.scale.to_ne_bytes());
        } else {
            block.scalar((grid.scale as f32).to_ne_bytes());
        }
        for n in grid.image.into_iter().chain(grid.bins) {
            I32::pass(&(n as i32), &(), block);
        }
        I32::pass(&(grid.samples.clamp(0, i64::from(i32::MAX)) as i32), &(), block);
    }
}

/// A region along one axis in a kernel.
pub struct Extent<'b> {
    kind: Bins,
    /// Its start.
    pub start: Value<'b>,
    /// Its size in pixels.
    pub size: Value<'b>,
    /// Size of a bin in pixels.
    bin: Value<'b>,
    /// Samples of a bin (i32); 0 for whole pixels.
    pub samples: Value<'b>,
    /// Pixels of the image (i32).
    image: Value<'b>,
}

impl<'b> GridParams<'b> {
    /// The region at `region` (offset in elements) along axis 0 (vertical) or 1 (horizontal).
    pub fn extent(&self, kind: Bins, regions: Pointer<'b>, region: Value<'b>, axis: usize) -> Extent<'b> {
        let b = regions.builder();
        let [low, high] = [2 - axis as u32, 4 - axis as u32].map(|side| regions.load(region + side) * self.scale);
        let bins = self.bins[axis].cast(low.scalar());
        let (start, size) = match kind {
            Bins::Samples { aligned: true } => (low - 0.5, (high - 0.5) - (low - 0.5)),
            Bins::Samples { aligned: false } => (low, (high - low).max(1.0)),
            Bins::Pixels { closed } => {
                let (low, high) = (round(low), round(high));
                (low, (if closed { high - low + 1.0 } else { high - low }).max(1.0))
            }
        };
        let bin = size / bins;
        let samples = match kind {
            Bins::Samples { .. } => self.samples.gt(0).select(self.samples, integer(bin.ceil())),
            Bins::Pixels { .. } => b.i32(0),
        };
        Extent { kind, start, size, bin, samples, image: self.image[axis] }
    }
}

impl<'b> Extent<'b> {
    /// The range of bin `bin` (i32) that may be in the pixels from `first` to `last` (i32): the
    /// first sample or pixel, and the end (i32).
    pub fn within(&self, bin: Value<'b>, first: Value<'b>, last: Value<'b>) -> (Value<'b>, Value<'b>) {
        let at = bin.cast(self.bin.scalar());
        match self.kind {
            Bins::Pixels { .. } => {
                let clip = |x: Value<'b>| integer(x + self.start).max(first).min(last + 1);
                (clip((at * self.bin).floor()), clip(((at + 1.0) * self.bin).ceil()))
            }
            // Samples follow each other at positive steps, unless samples are requested of a region
            // with negative size: then the range is all samples. Otherwise samples that are too far
            // away are skipped, so that no region takes longer than the image.
            Bins::Samples { .. } => {
                let number = self.bin.scalar();
                let step = self.bin / self.samples.cast(number);
                let begin = self.start + at * self.bin;
                let index = |x: Value<'b>| integer(x).max(0).min(self.samples);
                let forward = step.gt(0.0);
                let from = index(((first.cast(number) - begin) / step).floor() - 3.0);
                let to = index(((last.cast(number) - begin) / step).ceil() + 3.0);
                (forward.select(from, from.like(0.0)), forward.select(to, self.samples))
            }
        }
    }

    /// The coordinate of sample `i` (i32) of bin `bin` (i32).
    pub fn sample(&self, bin: Value<'b>, i: Value<'b>) -> Value<'b> {
        let number = self.bin.scalar();
        let part = (i.cast(number) + 0.5) * self.bin / self.samples.cast(number);
        self.start + bin.cast(number) * self.bin + part
    }

    /// The range of bin `bin` (i32) that is in the image: samples, including those just outside of
    /// it, or pixels.
    pub fn visible_range(&self, bin: Value<'b>) -> (Value<'b>, Value<'b>) {
        match self.kind {
            Bins::Samples { .. } => self.within(bin, self.image.like(-1.0), self.image),
            Bins::Pixels { closed: true } => self.within(bin, self.image.like(0.0), self.image - 1),
            // The last row and column are skipped, but not in the gradient.
            Bins::Pixels { closed: false } => self.within(bin, self.image.like(0.0), self.image - 2),
        }
    }

    /// The pixel that a coordinate reads and the next one, with their weights.
    pub fn taps(&self, at: Value<'b>) -> Taps<'b> {
        let end = self.image.cast(at.scalar());
        let inside = at.ge(-1.0) & at.le(end);
        let at = at.max(0.0).min(end);
        let last = self.image - 1;
        let low = at.cast(ScalarType::I32).min(last);
        // Beyond the centre of the last pixel only that pixel is read.
        let fraction = low.ge(last).select(at.like(0.0), at - low.cast(at.scalar()));
        Taps { inside, low, high: (low + 1).min(last), weights: [1.0 - fraction, fraction] }
    }

    /// Whether the region may read or write the pixels from `first` to `last` (i32).
    pub fn may_touch(&self, first: Value<'b>, last: Value<'b>) -> Value<'b> {
        let end = self.start + self.size;
        let number = end.scalar();
        let (low, high) = (self.start.min(end) - 2.0, self.start.max(end) + 2.0);
        high.ge(first.cast(number)) & low.le(last.cast(number))
    }
}

/// The pixels that a bilinear sample reads along one axis.
pub struct Taps<'b> {
    /// Whether the sample is inside the image.
    pub inside: Value<'b>,
    /// The first pixel (i32).
    pub low: Value<'b>,
    /// The second pixel (i32); at the end of the image, the first one again.
    pub high: Value<'b>,
    /// The weights of both.
    pub weights: [Value<'b>; 2],
}

/// The bin and region of an element of the result, and its channel in the input.
pub struct BinPosition<'b> {
    /// Index of the region, of the index type.
    pub region: Value<'b>,
    /// Index of the channel, of the index type.
    pub channel: Value<'b>,
    /// Row and column of the bin (i32).
    pub bin: [Value<'b>; 2],
}

impl<'b> BinPosition<'b> {
    /// The position of element `i`, given the number of the input's channels. If `by_position`,
    /// every bin has separate channels.
    pub fn new(i: Value<'b>, channels: Value<'b>, bins: &[Value<'b>; 2], by_position: bool) -> BinPosition<'b> {
        let index = i.scalar();
        let [rows, columns] = bins.map(|n| n.cast(index));
        let split = |i: Value<'b>, n: Value<'b>| (i / n, i % n);
        let (rest, column) = split(i, columns);
        let (rest, row) = split(rest, rows);
        // For position-sensitive operators the input has as many channels as a region has elements.
        let (region, channel) = if by_position { split(i, channels) } else { split(rest, channels) };
        BinPosition { region, channel, bin: [row, column].map(|n| n.cast(ScalarType::I32)) }
    }
}

/// Rounds to the nearest integer, halves away from zero.
fn round(x: Value<'_>) -> Value<'_> {
    let whole = x.trunc();
    let away = (x - whole).abs().ge(0.5).select(x.like(1.0), x.like(0.0));
    x.lt(0.0).select(whole - away, whole + away)
}

/// Converts to i32, clamped far outside of any image; NaN too.
fn integer(x: Value<'_>) -> Value<'_> {
    x.max(-1e9).min(1e9).cast(ScalarType::I32)
}

/// The index of a region's image (i32), unchecked.
pub fn image_number<'b>(regions: Pointer<'b>, region: Value<'b>) -> Value<'b> {
    integer(regions.load(region).trunc())
}
