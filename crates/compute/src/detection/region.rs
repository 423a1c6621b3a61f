//! Regions of images and their bins: `[regions, 5]`, each the number of an image and left, top,
//! right and bottom in units of `1 / scale` pixels. Along each axis a region is cut into equal
//! bins.

use dml_engine::interface::I32;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// What of an image makes up a bin.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bins {
    /// Bilinear samples at points that are evenly spaced.
    Samples {
        /// Pixels lie at halves, and regions have the size that they have; otherwise it is at least
        /// one pixel.
        aligned: bool,
    },
    /// The pixels that a bin touches. Regions begin and end at pixels, and their size is at least
    /// one.
    Pixels {
        /// A region's last pixel is its own.
        closed: bool,
    },
}

/// Sizes that all regions share.
#[derive(Copy, Clone, Debug)]
pub struct Grid {
    /// Pixels that one unit of a region's corners is.
    pub scale: f64,
    /// Height and width of an image.
    pub image: [i64; 2],
    /// Bins of a region, downwards and across.
    pub bins: [i64; 2],
    /// Samples of a bin along each axis; 0 or less: one a pixel.
    pub samples: i64,
}

impl Grid {
    /// Samples of a bin, or pixels, at most: as many as the image has, but for some at its edges.
    pub fn members(&self) -> i64 {
        let [height, width] = if self.samples > 0 { [self.samples; 2] } else { self.image.map(|n| n + 8) };
        height * (1 + width)
    }
}

/// A [`Grid`] as a kernel's parameter.
pub struct GridNumbers;

/// A [`Grid`] in a kernel.
pub struct GridParams<'b> {
    scale: Value<'b>,
    /// Height and width of an image (i32).
    pub image: [Value<'b>; 2],
    /// Bins of a region (i32).
    pub bins: [Value<'b>; 2],
    samples: Value<'b>,
}

impl Parameter for GridNumbers {
    /// The dtype in whose compute type regions are worked with.
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
    /// Where it begins.
    pub start: Value<'b>,
    /// Pixels.
    pub size: Value<'b>,
    /// Pixels of a bin.
    bin: Value<'b>,
    /// Samples of a bin (i32); of whole pixels 0.
    pub samples: Value<'b>,
    /// Pixels of the image (i32).
    image: Value<'b>,
}

impl<'b> GridParams<'b> {
    /// The region at `region` (elements from the first) along axis 0, downwards, or 1, across.
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
    /// What of bin `bin` (i32) may be in the pixels from `first` to `last` (i32): the first sample
    /// or pixel, and the end (i32).
    pub fn within(&self, bin: Value<'b>, first: Value<'b>, last: Value<'b>) -> (Value<'b>, Value<'b>) {
        let at = bin.cast(self.bin.scalar());
        match self.kind {
            Bins::Pixels { .. } => {
                let clip = |x: Value<'b>| integer(x + self.start).max(first).min(last + 1);
                (clip((at * self.bin).floor()), clip(((at + 1.0) * self.bin).ceil()))
            }
            // Samples follow each other at positive steps unless somebody asks for samples of a
            // region that is inside out: then all are looked at. Elsewhere those that are too far
            // away are left out, so that no region takes longer than the image.
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

    /// Where sample `i` (i32) of bin `bin` (i32) lies.
    pub fn sample(&self, bin: Value<'b>, i: Value<'b>) -> Value<'b> {
        let number = self.bin.scalar();
        let part = (i.cast(number) + 0.5) * self.bin / self.samples.cast(number);
        self.start + bin.cast(number) * self.bin + part
    }

    /// What of bin `bin` (i32) the image shows: samples from just outside of it to its end, or
    /// pixels.
    pub fn seen(&self, bin: Value<'b>) -> (Value<'b>, Value<'b>) {
        match self.kind {
            Bins::Samples { .. } => self.within(bin, self.image.like(-1.0), self.image),
            Bins::Pixels { closed: true } => self.within(bin, self.image.like(0.0), self.image - 1),
            // torchvision leaves out the last row and column, and does not in the gradient.
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
        // Beyond the middle of the last pixel there is only that.
        let fraction = low.ge(last).select(at.like(0.0), at - low.cast(at.scalar()));
        Taps { inside, low, high: (low + 1).min(last), weights: [1.0 - fraction, fraction] }
    }

    /// Whether the region may have to do with the pixels from `first` to `last` (i32).
    pub fn touches(&self, first: Value<'b>, last: Value<'b>) -> Value<'b> {
        let end = self.start + self.size;
        let number = end.scalar();
        let (low, high) = (self.start.min(end) - 2.0, self.start.max(end) + 2.0);
        high.ge(first.cast(number)) & low.le(last.cast(number))
    }
}

/// What a bilinear sample reads along one axis.
pub struct Taps<'b> {
    /// Whether it reads anything.
    pub inside: Value<'b>,
    /// The first pixel (i32).
    pub low: Value<'b>,
    /// The second one (i32); the first once more at the end.
    pub high: Value<'b>,
    /// Of both.
    pub weights: [Value<'b>; 2],
}

/// Which bin of which region an element of the result is, and the channel of the input that it is
/// made of.
pub struct Place<'b> {
    /// Of the index type.
    pub region: Value<'b>,
    /// Of the index type.
    pub channel: Value<'b>,
    /// i32, downwards and across.
    pub bin: [Value<'b>; 2],
}

impl<'b> Place<'b> {
    /// The place of element `i`, given the channels of the input. If `by_position`, every bin has
    /// channels of its own.
    pub fn new(i: Value<'b>, channels: Value<'b>, bins: &[Value<'b>; 2], by_position: bool) -> Place<'b> {
        let index = i.scalar();
        let [rows, columns] = bins.map(|n| n.cast(index));
        let split = |i: Value<'b>, n: Value<'b>| (i / n, i % n);
        let (rest, column) = split(i, columns);
        let (rest, row) = split(rest, rows);
        // The bins of one region are counted as its channels are: by position they are the same.
        let (region, channel) = if by_position { split(i, channels) } else { split(rest, channels) };
        Place { region, channel, bin: [row, column].map(|n| n.cast(ScalarType::I32)) }
    }
}

/// To the nearest integer, halves away from zero.
fn round(x: Value<'_>) -> Value<'_> {
    let whole = x.trunc();
    let away = (x - whole).abs().ge(0.5).select(x.like(1.0), x.like(0.0));
    x.lt(0.0).select(whole - away, whole + away)
}

/// As an i32, cut off far outside of any image; NaN too.
fn integer(x: Value<'_>) -> Value<'_> {
    x.max(-1e9).min(1e9).cast(ScalarType::I32)
}

/// The number of a region's image (i32), as it is given: there may be no such image.
pub fn image_number<'b>(regions: Pointer<'b>, region: Value<'b>) -> Value<'b> {
    integer(regions.load(region).trunc())
}
