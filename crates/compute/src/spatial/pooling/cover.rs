//! Which elements a window covers, and which windows may cover an element.

use crate::spatial::geometry::{PerAxis, Spatial};
use crate::spatial::pooling::window::Windows;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, convert};

/// The three kinds of windows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Windows of one size at one distance.
    Fixed,
    /// As many windows as the result has elements, overlapping where sizes do not divide.
    Adaptive,
    /// Windows of one size at pseudo-random distances (Graham, "Fractional max-pooling", 2014). The
    /// dtype is that of the random samples, in which CPU computes the distances.
    Fractional(DType),
}

/// Windows on the host.
pub enum Cover<'w> {
    /// See [`Kind::Fixed`].
    Fixed(&'w Windows),
    /// See [`Kind::Adaptive`].
    Adaptive,
    /// Size of the windows, dtype of the samples.
    Fractional(&'w [i64], DType),
}

impl Cover<'_> {
    /// What changes the code.
    pub fn kind(&self) -> Kind {
        match *self {
            Cover::Fixed(_) => Kind::Fixed,
            Cover::Adaptive => Kind::Adaptive,
            Cover::Fractional(_, dtype) => Kind::Fractional(dtype),
        }
    }
}

/// The sizes of an input and of the result, and the windows between them, as a kernel's parameter.
pub struct CoveredImage;

/// The argument for [`CoveredImage`].
pub struct CoverArgument<'a> {
    /// The windows.
    pub cover: &'a Cover<'a>,
    /// The spatial sizes of the input.
    pub input: &'a [i64],
    /// The spatial sizes of the result.
    pub output: &'a [i64],
}

impl Parameter for CoveredImage {
    /// The kind of windows, and the number of spatial dimensions.
    type Type = (Kind, usize);
    type Argument<'a> = CoverArgument<'a>;
    type Declared<'b> = Covering<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, &(kind, rank): &(Kind, usize)) -> Covering<'b> {
        let [input, output] = ["input", "output"].map(|name| PerAxis::declare(b, name, &rank));
        let names: &[&str] = match kind {
            Kind::Fixed => &["kernel", "stride", "padding", "dilation"],
            Kind::Adaptive => &[],
            Kind::Fractional(_) => &["kernel", "slack"],
        };
        let numbers = names.iter().map(|name| PerAxis::declare(b, name, &rank)).collect();
        Covering { b, kind, input, output, numbers }
    }

    fn pass(argument: &CoverArgument, &(kind, rank): &(Kind, usize), block: &mut ArgumentBlock) {
        let CoverArgument { cover, input, output } = *argument;
        if cover.kind() != kind {
            block.mismatch("windows are not of the kind that the kernel is made for");
        }
        let mut pass = |numbers: &[i64]| PerAxis::pass(&numbers, &rank, block);
        pass(input);
        pass(output);
        match *cover {
            Cover::Fixed(w) => [&w.kernel, &w.stride, &w.padding, &w.dilation].into_iter().for_each(|axes| pass(axes)),
            Cover::Adaptive => {}
            Cover::Fractional(kernel, dtype) => {
                // Rounded distances may be off by so much.
                let slack = |size: &i64| match dtype {
                    DType::BF16 => size / 64 + 2,
                    DType::F16 => size / 512 + 2,
                    _ => 1,
                };
                pass(kernel);
                pass(&input.iter().map(slack).collect::<Spatial>());
            }
        }
    }
}

/// Windows in a kernel.
pub struct Covering<'b> {
    b: &'b Builder,
    kind: Kind,
    /// Sizes of the input.
    pub input: Vec<Value<'b>>,
    /// Sizes of the result.
    pub output: Vec<Value<'b>>,
    /// Numbers of each axis: kernel, stride, padding, dilation; or kernel, slack.
    numbers: Vec<Vec<Value<'b>>>,
}

/// The samples of an image, for fractional windows: a pointer and the offset of the sample of each
/// axis.
pub type Samples<'b> = (Pointer<'b>, Vec<Value<'b>>);

impl<'b> Covering<'b> {
    /// First, end and step of the elements that window `at` covers along axis `d`.
    pub fn elements(&self, d: usize, at: Value<'b>, samples: Option<&Samples<'b>>) -> [Value<'b>; 3] {
        let one = self.b.i32(1);
        match self.kind {
            Kind::Fixed => {
                let [kernel, stride, padding, dilation] = [0, 1, 2, 3].map(|i| self.numbers[i][d]);
                let start = at * stride - padding;
                let end = (start + (kernel - 1) * dilation + 1).min(self.input[d]);
                let skipped = (dilation - 1 - start.min(0)) / dilation * dilation;
                [start + skipped, end, dilation]
            }
            Kind::Adaptive => {
                let [start, end] = share(at, self.input[d], self.output[d]);
                [start, end, one]
            }
            Kind::Fractional(dtype) => {
                let kernel = self.numbers[0][d];
                let last = self.input[d] - kernel;
                let start = self.b.var(last);
                if let Some((samples, offsets)) = samples {
                    self.b.if_(at.lt(self.output[d] - 1), || {
                        let compute = dtype.compute();
                        let round = |x: Value<'b>| convert(x, dtype);
                        let number = |x: Value<'b>| round(x.cast(compute));
                        let sample = samples.load(offsets[d]);
                        let distance = round(number(last) / number(self.output[d] - 1));
                        let moved = round(round(number(at) + sample) * distance).cast(ScalarType::I32);
                        let origin = round(sample * distance).cast(ScalarType::I32);
                        start.set((moved - origin).max(0).min(last));
                    });
                }
                [start.get(), start.get() + kernel, one]
            }
        }
    }

    /// Elements of fixed window `at` along axis `d`, those in the padding counted too.
    pub fn padded_length(&self, d: usize, at: Value<'b>) -> Value<'b> {
        let [kernel, stride, padding] = [0, 1, 2].map(|i| self.numbers[i][d]);
        let start = at * stride - padding;
        (start + kernel).min(self.input[d] + padding) - start
    }

    /// First, end and step of the windows that may cover element `at` along axis `d`: all that do,
    /// and perhaps others.
    pub fn windows(&self, d: usize, at: Value<'b>) -> [Value<'b>; 3] {
        let one = self.b.i32(1);
        match self.kind {
            Kind::Fixed => {
                let [kernel, stride, padding, dilation] = [0, 1, 2, 3].map(|i| self.numbers[i][d]);
                let at = at + padding;
                let behind = at - (kernel - 1) * dilation;
                // Rounded up; where the quotient would be negative, the first window.
                let first = behind.gt(0).select((behind + stride - 1) / stride, 0);
                [first, (at / stride + 1).min(self.output[d]), one]
            }
            Kind::Adaptive => {
                // Coverage is symmetric.
                let [start, end] = share(at, self.output[d], self.input[d]);
                [start, end, one]
            }
            Kind::Fractional(_) => {
                let (kernel, slack) = (self.numbers[0][d], self.numbers[1][d]);
                let wide = |x: Value<'b>| x.cast(ScalarType::I64);
                let span = wide(self.input[d] - kernel).max(1);
                let steps = wide(self.output[d] - 1);
                let before = wide(at - kernel - slack).max(0) * steps / span;
                let after = wide(at + slack) * steps / span + 2;
                [before.cast(ScalarType::I32), after.min(wide(self.output[d])).cast(ScalarType::I32), one]
            }
        }
    }
}

/// Elements of `size` that share `at` of `shares` covers: floor(at * size / shares) up to
/// ceil((at + 1) * size / shares).
pub fn share<'b>(at: Value<'b>, size: Value<'b>, shares: Value<'b>) -> [Value<'b>; 2] {
    let (at, size, shares) = (at.cast(ScalarType::I64), size.cast(ScalarType::I64), shares.cast(ScalarType::I64));
    let start = at * size / shares;
    let end = ((at + 1) * size + shares - 1) / shares;
    [start.cast(ScalarType::I32), end.cast(ScalarType::I32)]
}
