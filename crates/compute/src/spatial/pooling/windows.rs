//! The elements that a window covers, and the windows that may cover an element.

use crate::context::Context;
use crate::spatial::geometry::{PerAxis, Spatial};
use crate::spatial::pooling::window::Windows;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, convert};

/// The kinds of windows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Windows of one size and one stride.
    Fixed,
    /// One window for each element of the result; they overlap if sizes do not divide. The field is
    /// the integer type in which their ends are computed.
    Adaptive(ScalarType),
    /// Windows of one size at pseudo-random distances (Graham, "Fractional max-pooling", 2014). The
    /// fields are the dtype of the random samples, in which the CPU computes the distances, and the
    /// integer type in which the windows that may cover an element are computed.
    Fractional(DType, ScalarType),
}

/// The windows, on the host.
pub enum Cover<'w> {
    /// See [`Kind::Fixed`].
    Fixed(&'w Windows),
    /// See [`Kind::Adaptive`].
    Adaptive(ScalarType),
    /// See [`Kind::Fractional`]: size of the windows, dtype of the samples, integer type.
    Fractional(&'w [i64], DType, ScalarType),
}

impl<'w> Cover<'w> {
    /// Adaptive windows between images of these spatial sizes.
    pub fn adaptive(cx: &Context, input: &[i64], output: &[i64]) -> Cover<'static> {
        Cover::Adaptive(type_of_ends(cx.device.info().capabilities.registers.is_some(), input, output))
    }

    /// Fractional windows of this size between images of these spatial sizes, with samples of a
    /// dtype.
    pub fn fractional(cx: &Context, kernel: &'w [i64], [input, output]: [&[i64]; 2], samples: DType) -> Cover<'w> {
        let limited = cx.device.info().capabilities.registers.is_some();
        let slack: Spatial = input.iter().map(|&size| size + slack(size, samples)).collect();
        Cover::Fractional(kernel, samples, type_of_ends(limited, &slack, output))
    }

    /// The kind of windows, which kernels are specialised by.
    pub fn kind(&self) -> Kind {
        match *self {
            Cover::Fixed(_) => Kind::Fixed,
            Cover::Adaptive(ends) => Kind::Adaptive(ends),
            Cover::Fractional(_, dtype, ends) => Kind::Fractional(dtype, ends),
        }
    }
}

/// Kernel parameter: the sizes of an input and of the result, and the windows between them.
pub struct PoolingParameter;

/// The argument for [`PoolingParameter`].
pub struct PoolingArgument<'a> {
    /// The windows.
    pub cover: &'a Cover<'a>,
    /// The spatial sizes of the input.
    pub input: &'a [i64],
    /// The spatial sizes of the result.
    pub output: &'a [i64],
}

impl Parameter for PoolingParameter {
    /// The kind of windows, and the number of spatial dimensions.
    type Type = (Kind, usize);
    type Argument<'a> = PoolingArgument<'a>;
    type Declared<'b> = PoolingWindows<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, &(kind, rank): &(Kind, usize)) -> PoolingWindows<'b> {
        let [input, output] = ["input", "output"].map(|name| PerAxis::declare(b, name, &rank));
        let names: &[&str] = match kind {
            Kind::Fixed => &["kernel", "stride", "padding", "dilation"],
            Kind::Adaptive(_) => &[],
            Kind::Fractional(..) => &["kernel", "slack"],
        };
        let numbers = names.iter().map(|name| PerAxis::declare(b, name, &rank)).collect();
        PoolingWindows { b, kind, input, output, numbers }
    }

    fn pass(argument: &PoolingArgument, &(kind, rank): &(Kind, usize), block: &mut ArgumentBlock) {
        let PoolingArgument { cover, input, output } = *argument;
        if cover.kind() != kind {
            block.mismatch("windows are not of the kind that the kernel is made for");
        }
        let mut pass = |numbers: &[i64]| PerAxis::pass(&numbers, &rank, block);
        pass(input);
        pass(output);
        match *cover {
            Cover::Fixed(w) => [&w.kernel, &w.stride, &w.padding, &w.dilation].into_iter().for_each(|axes| pass(axes)),
            Cover::Adaptive(_) => {}
            Cover::Fractional(kernel, dtype, _) => {
                pass(kernel);
                pass(&input.iter().map(|&size| slack(size, dtype)).collect::<Spatial>());
            }
        }
    }
}

/// Windows in a kernel.
pub struct PoolingWindows<'b> {
    b: &'b Builder,
    kind: Kind,
    /// Sizes of the input.
    pub input: Vec<Value<'b>>,
    /// Sizes of the result.
    pub output: Vec<Value<'b>>,
    /// Numbers for each axis: kernel, stride, padding, dilation; or kernel, slack.
    numbers: Vec<Vec<Value<'b>>>,
}

/// The samples of an image, for fractional windows: a pointer, and the offset of each axis's
/// sample.
pub type Samples<'b> = (Pointer<'b>, Vec<Value<'b>>);

impl<'b> PoolingWindows<'b> {
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
            Kind::Adaptive(ends) => {
                let [start, end] = adaptive_window(ends, at, self.input[d], self.output[d]);
                [start, end, one]
            }
            Kind::Fractional(dtype, _) => {
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

    /// Number of elements of fixed window `at` along axis `d`, including padding.
    pub fn padded_length(&self, d: usize, at: Value<'b>) -> Value<'b> {
        let [kernel, stride, padding] = [0, 1, 2].map(|i| self.numbers[i][d]);
        let start = at * stride - padding;
        (start + kernel).min(self.input[d] + padding) - start
    }

    /// First, end and step of a range of windows along axis `d` that includes all windows that
    /// cover element `at`, and possibly others.
    pub fn windows(&self, d: usize, at: Value<'b>) -> [Value<'b>; 3] {
        let one = self.b.i32(1);
        match self.kind {
            Kind::Fixed => {
                let [kernel, stride, padding, dilation] = [0, 1, 2, 3].map(|i| self.numbers[i][d]);
                let at = at + padding;
                let behind = at - (kernel - 1) * dilation;
                // Rounded up; the first window if the quotient would be negative.
                let first = behind.gt(0).select((behind + stride - 1) / stride, 0);
                [first, (at / stride + 1).min(self.output[d]), one]
            }
            Kind::Adaptive(ends) => {
                // Coverage is symmetric.
                let [start, end] = adaptive_window(ends, at, self.output[d], self.input[d]);
                [start, end, one]
            }
            Kind::Fractional(_, ends) => {
                let (kernel, slack) = (self.numbers[0][d], self.numbers[1][d]);
                let wide = |x: Value<'b>| x.max(0).cast(ends);
                let span = wide(self.input[d] - kernel).max(1);
                let steps = wide(self.output[d] - 1);
                let before = wide(at - kernel - slack) * steps / span;
                let after = wide(at + slack) * steps / span + 2;
                [before.cast(ScalarType::I32), after.min(wide(self.output[d])).cast(ScalarType::I32), one]
            }
        }
    }
}

/// The upper bound of the rounding error of fractional distances along an axis of this size.
fn slack(size: i64, samples: DType) -> i64 {
    match samples {
        DType::BF16 => size / 64 + 2,
        DType::F16 => size / 512 + 2,
        _ => 1,
    }
}

/// The integer type for the ends of adaptive and fractional windows. Where registers limit kernels
/// (`limited`) it has 32 bits if products of sizes have no more: compilers make long code of a
/// division of 64-bit numbers, and an element has several, which are computed at the same time.
fn type_of_ends(limited: bool, input: &[i64], output: &[i64]) -> ScalarType {
    let largest = input.iter().zip(output).map(|(&n, &m)| n.saturating_mul(m).saturating_add(n.max(m))).max();
    let is_small = largest.is_none_or(|n| n <= i64::from(u32::MAX));
    if limited && is_small { ScalarType::U32 } else { ScalarType::I64 }
}

/// The range of the `size` elements that window `at` of `shares` adaptive windows covers: from
/// floor(at * size / shares) to ceil((at + 1) * size / shares). Computed with numbers of type
/// `ends`.
fn adaptive_window<'b>(ends: ScalarType, at: Value<'b>, size: Value<'b>, shares: Value<'b>) -> [Value<'b>; 2] {
    let (at, size, shares) = (at.cast(ends), size.cast(ends), shares.cast(ends));
    let start = at * size / shares;
    let end = ((at + 1) * size + shares - 1) / shares;
    [start.cast(ScalarType::I32), end.cast(ScalarType::I32)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_ends_of_32_bits_if_registers_limit_and_products_fit() {
        assert_eq!(type_of_ends(true, &[65, 67], &[7, 7]), ScalarType::U32);
        assert_eq!(type_of_ends(false, &[65, 67], &[7, 7]), ScalarType::I64);
        assert_eq!(type_of_ends(true, &[2, 1 << 16], &[7, (1 << 16) - 2]), ScalarType::U32);
        assert_eq!(type_of_ends(true, &[2, 1 << 16], &[7, (1 << 16) - 1]), ScalarType::I64);
    }
}
