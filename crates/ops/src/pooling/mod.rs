//! Pooling over windows of images.
//!
//! Tensors are seen as `[batch, channels, height, width]` with their own strides; results keep the input's memory
//! format. Backward passes gather: an element of the gradient visits the windows that cover it, in a fixed order.

mod adaptive;
mod average;
mod max;

use crate::call::Call;
use crate::check;
use crate::error::Result;
use crate::launch::Launcher;
use crate::layout::dense_strides;
use crate::structured;
use crate::table::Operator;
use crate::tensor::{Dims, Tensor};
use dml_kernel::{Builder, DType, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[adaptive::OPERATORS, average::OPERATORS, max::OPERATORS];

/// Windows along height and width, in elements.
#[derive(Copy, Clone, Debug)]
struct Windows {
    kernel: [i64; 2],
    stride: [i64; 2],
    padding: [i64; 2],
    dilation: [i64; 2],
    ceil: bool,
}

impl Windows {
    /// Checks the arguments of `name`; an empty stride is the kernel's size.
    fn new(
        name: &str,
        kernel: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        ceil: bool,
    ) -> Result<Windows> {
        let pair = |what: &str, list: &[i64]| -> Result<[i64; 2]> {
            match *list {
                [both] => Ok([both; 2]),
                [h, w] => Ok([h, w]),
                [] if what == "stride" => pair_of(name, "kernel_size", kernel),
                _ => pair_of(name, what, list),
            }
        };
        let windows = Windows {
            kernel: pair("kernel_size", kernel)?,
            stride: pair("stride", stride)?,
            padding: pair("padding", padding)?,
            dilation: pair("dilation", dilation)?,
            ceil,
        };
        let Windows { kernel: [kh, kw], stride: [sh, sw], dilation: [dh, dw], .. } = windows;
        check!(sh != 0 && sw != 0, Runtime, "stride should not be zero");
        check!(
            kh > 0 && kw > 0,
            Runtime,
            "kernel size should be greater than zero, but got kernelH: {kh} kernelW: {kw}"
        );
        check!(sh > 0 && sw > 0, Runtime, "stride should be greater than zero, but got strideH: {sh} strideW: {sw}");
        check!(
            dh > 0 && dw > 0,
            Runtime,
            "dilation should be greater than zero, but got dilationH: {dh} dilationW: {dw}"
        );
        for d in 0..2 {
            let (pad, size, dilation) = (windows.padding[d], windows.kernel[d], windows.dilation[d]);
            check!(pad >= 0, Runtime, "pad must be non-negative, but got pad: {pad}");
            check!(
                pad <= ((size - 1) * dilation + 1) / 2,
                Runtime,
                "pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={size} and \
                 dilation={dilation}"
            );
        }
        Ok(windows)
    }

    /// Sizes of the result of an image of `[height, width]`.
    fn output(&self, input: [i64; 2]) -> [i64; 2] {
        std::array::from_fn(|d| {
            let (stride, pad) = (self.stride[d], self.padding[d]);
            let reach = input[d] + 2 * pad - self.dilation[d] * (self.kernel[d] - 1) - 1;
            let rounded = reach + if self.ceil { stride - 1 } else { 0 };
            let n = rounded.div_euclid(stride) + 1;
            // The last window starts inside the input or its left padding.
            if self.ceil && (n - 1) * stride >= input[d] + pad { n - 1 } else { n }
        })
    }
}

fn pair_of(name: &str, what: &str, list: &[i64]) -> Result<[i64; 2]> {
    let omitted = if what == "stride" { "be omitted, " } else { "" };
    check!(
        list.len() == 1 || list.len() == 2,
        Runtime,
        "{name}: {what} must either {omitted}be a single int, or a tuple of two ints"
    );
    Ok([list[0], list[list.len() - 1]])
}

/// Checks that an input is `[C, H, W]` or `[N, C, H, W]`, where only the batch may be empty.
fn check_image(input: &Tensor) -> Result<()> {
    let ok = matches!(input.dim(), 3 | 4) && input.sizes[input.dim() - 3..].iter().all(|&n| n > 0);
    check!(
        ok && (input.dim() == 4 || input.numel() > 0),
        Runtime,
        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{:?}",
        input.sizes.as_slice()
    );
    Ok(())
}

/// The shape of the result of fixed windows, checked.
fn output_sizes(input: &Tensor, windows: &Windows) -> Result<Dims> {
    let [h, w] = [input.size(-2), input.size(-1)];
    let [oh, ow] = windows.output([h, w]);
    let c = input.size(-3);
    check!(
        oh > 0 && ow > 0,
        Runtime,
        "Given input size: ({c}x{h}x{w}). Calculated output size: ({c}x{oh}x{ow}). Output size is too small"
    );
    Ok(sizes_with(input, [oh, ow]))
}

/// The input's shape with another height and width.
fn sizes_with(input: &Tensor, image: [i64; 2]) -> Dims {
    let mut sizes = input.sizes.clone();
    let n = sizes.len();
    sizes[n - 2..].copy_from_slice(&image);
    sizes
}

/// Whether channels are what lies closest in memory (PyTorch's `suggest_memory_format`).
fn channels_last(t: &Tensor) -> bool {
    if t.dim() != 4 || t.strides[1] == 0 {
        return false;
    }
    let mut least = 0;
    for d in [1, 3, 2, 0] {
        let ambiguous = d == 0 && least == t.strides[1];
        if t.sizes[d] == 0 || t.strides[d] < least || ambiguous {
            return false;
        }
        least = t.strides[d] * t.sizes[d].max(1);
    }
    true
}

/// A result in the memory format of `like`: new, or the `out=` argument at `out`.
fn result(call: &Call, out: Option<usize>, dtype: DType, sizes: &[i64], like: &Tensor) -> Result<Tensor> {
    let strides = format_strides(sizes, channels_last(like));
    let Some(i) = out else { return call.empty_strided(dtype, sizes, &strides) };
    let mut given = call.tensor(i)?.clone();
    structured::check_dtype(call, out, dtype)?;
    if given.sizes.as_slice() != sizes {
        call.host.resize(&mut given, sizes, &strides)?;
    }
    Ok(given)
}

fn format_strides(sizes: &[i64], channels_last: bool) -> Dims {
    if channels_last { dense_strides(sizes, &[1, 3, 2, 0]) } else { Tensor::contiguous_strides(sizes) }
}

/// An image as `[N, C, H, W]`.
fn batched(t: &Tensor) -> Tensor {
    if t.dim() == 4 {
        return t.clone();
    }
    let mut sizes = Dims::from_slice(&[1]);
    let mut strides = Dims::from_slice(&[0]);
    sizes.extend(t.sizes.iter().copied());
    strides.extend(t.strides.iter().copied());
    t.as_strided(&sizes, &strides, 0)
}

/// The type of offsets into these tensors.
fn index_type(tensors: &[&Tensor]) -> Scalar {
    let reach = |t: &&Tensor| ((t.range().end - t.range().start) / t.element_size()).max(t.numel() as u64);
    crate::layout::index_type(tensors.iter().map(reach).max().unwrap_or(0) as i64)
}

/// Strides of an operand as kernel parameters: batch, channel, row, column.
struct Strides<'b>([Value<'b>; 4]);

impl<'b> Strides<'b> {
    fn declare(b: &'b Builder, index: Scalar) -> Strides<'b> {
        Strides(["n", "c", "h", "w"].map(|d| b.param(&format!("stride_{d}"), index)))
    }

    /// Offset of the image of this batch and channel.
    fn image(&self, at: &Place<'b>) -> Value<'b> {
        at.batch * self.0[0] + at.channel * self.0[1]
    }

    /// Offset of a pixel (i32 coordinates) in its image.
    fn pixel(&self, y: Value<'b>, x: Value<'b>) -> Value<'b> {
        let index = self.0[2].scalar();
        y.cast(index) * self.0[2] + x.cast(index) * self.0[3]
    }
}

fn pass_strides<'c, 'a>(launcher: Launcher<'c, 'a>, index: Scalar, t: &Tensor) -> Launcher<'c, 'a> {
    t.strides.iter().fold(launcher, |l, &s| l.index(index, s))
}

/// Where an invocation's element is.
struct Place<'b> {
    batch: Value<'b>,
    channel: Value<'b>,
    /// Row and column, i32.
    y: Value<'b>,
    x: Value<'b>,
}

impl<'b> Place<'b> {
    /// The place of element `i` when elements are counted with columns, or with channels, fastest.
    fn new(i: Value<'b>, channels: Value<'b>, size: [Value<'b>; 2], channels_last: bool) -> Place<'b> {
        let index = i.scalar();
        let [height, width] = size.map(|n| n.cast(index));
        let split = |i: Value<'b>, n: Value<'b>| {
            let quotient = i / n;
            (quotient, i - quotient * n)
        };
        let (batch, channel, y, x);
        if channels_last {
            let (rest, c) = split(i, channels);
            let (rest, column) = split(rest, width);
            let (rest, row) = split(rest, height);
            (batch, channel, y, x) = (rest, c, row, column);
        } else {
            let (rest, column) = split(i, width);
            let (rest, row) = split(rest, height);
            let (rest, c) = split(rest, channels);
            (batch, channel, y, x) = (rest, c, row, column);
        }
        Place { batch, channel, y: y.cast(Scalar::I32), x: x.cast(Scalar::I32) }
    }
}

/// Declares i32 parameters for height and width.
fn pair_params<'b>(b: &'b Builder, name: &str) -> [Value<'b>; 2] {
    ["h", "w"].map(|d| b.param(&format!("{name}_{d}"), Scalar::I32))
}

fn pass_pair<'c, 'a>(launcher: Launcher<'c, 'a>, pair: [i64; 2]) -> Launcher<'c, 'a> {
    launcher.i32(pair[0] as i32).i32(pair[1] as i32)
}
