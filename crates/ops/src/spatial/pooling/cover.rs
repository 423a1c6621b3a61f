//! Which elements a window covers, and which windows may cover an element.

use super::Windows;
use crate::primitives::launch::Launcher;
use crate::spatial::geometry::{axis_params, pass_axes};
use dml_kernel::{Builder, DType, Pointer, Scalar, Value, convert};

/// The three kinds of windows.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Windows of one size at one distance.
    Fixed,
    /// As many windows as the result has elements, overlapping where sizes do not divide.
    Adaptive,
    /// Windows of one size at pseudo-random distances (Graham, "Fractional max-pooling", 2014). The dtype is that of
    /// the random samples, in which CPU computes the distances.
    Fractional(DType),
}

impl Kind {
    /// For a kernel's key.
    pub fn code(self) -> u32 {
        match self {
            Kind::Fixed => 0,
            Kind::Adaptive => 1,
            Kind::Fractional(dtype) => 2 + dtype as u32,
        }
    }
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

    /// Passes what [`Covering::declare`] declares; `input` are the sizes of the input.
    pub fn pass<'c, 'a>(&self, launcher: Launcher<'c, 'a>, input: &[i64]) -> Launcher<'c, 'a> {
        match *self {
            Cover::Fixed(w) => {
                [&w.kernel, &w.stride, &w.padding, &w.dilation].into_iter().fold(launcher, |l, axes| pass_axes(l, axes))
            }
            Cover::Adaptive => launcher,
            Cover::Fractional(kernel, dtype) => {
                // Rounded distances may be off by so much.
                let slack = |size: &i64| match dtype {
                    DType::BF16 => size / 64 + 2,
                    DType::F16 => size / 512 + 2,
                    _ => 1,
                };
                let slack: Vec<i64> = input.iter().map(slack).collect();
                pass_axes(pass_axes(launcher, kernel), &slack)
            }
        }
    }
}

/// Windows in a kernel.
pub struct Covering<'b> {
    b: &'b Builder,
    kind: Kind,
    /// Sizes of the input and of the result.
    input: Vec<Value<'b>>,
    output: Vec<Value<'b>>,
    /// Numbers of each axis: kernel, stride, padding, dilation; or kernel, slack.
    numbers: Vec<Vec<Value<'b>>>,
}

/// The samples of an image, for fractional windows: a pointer and the offset of the sample of each axis.
pub type Samples<'b> = (Pointer<'b>, Vec<Value<'b>>);

impl<'b> Covering<'b> {
    /// Declares the windows from images of size `input` to results of size `output`.
    pub fn declare(b: &'b Builder, kind: Kind, input: &[Value<'b>], output: &[Value<'b>]) -> Covering<'b> {
        let names: &[&str] = match kind {
            Kind::Fixed => &["kernel", "stride", "padding", "dilation"],
            Kind::Adaptive => &[],
            Kind::Fractional(_) => &["kernel", "slack"],
        };
        let numbers = names.iter().map(|name| axis_params(b, name, input.len())).collect();
        Covering { b, kind, input: input.to_vec(), output: output.to_vec(), numbers }
    }

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
                        let moved = round(round(number(at) + sample) * distance).cast(Scalar::I32);
                        let origin = round(sample * distance).cast(Scalar::I32);
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

    /// First, end and step of the windows that may cover element `at` along axis `d`: all that do, and perhaps others.
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
                let wide = |x: Value<'b>| x.cast(Scalar::I64);
                let span = wide(self.input[d] - kernel).max(1);
                let steps = wide(self.output[d] - 1);
                let before = wide(at - kernel - slack).max(0) * steps / span;
                let after = wide(at + slack) * steps / span + 2;
                [before.cast(Scalar::I32), after.min(wide(self.output[d])).cast(Scalar::I32), one]
            }
        }
    }
}

/// Elements of `size` that share `at` of `shares` covers: floor(at * size / shares) up to
/// ceil((at + 1) * size / shares).
pub fn share<'b>(at: Value<'b>, size: Value<'b>, shares: Value<'b>) -> [Value<'b>; 2] {
    let (at, size, shares) = (at.cast(Scalar::I64), size.cast(Scalar::I64), shares.cast(Scalar::I64));
    let start = at * size / shares;
    let end = ((at + 1) * size + shares - 1) / shares;
    [start.cast(Scalar::I32), end.cast(Scalar::I32)]
}
