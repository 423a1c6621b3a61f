//! im2col and col2im: windows of images as columns, and the sum of columns back into images. The
//! latter gathers: a pixel iterates over the windows that contain it, in a fixed order.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::spatial::geometry::{Coordinates, ImageStrides, PerAxis, batched, for_each, index_type};
use crate::view::View;
use crate::view::memory_format::is_channels_last;
use dml_engine::interface::{Index, ReadRange, WriteRange};
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Windows of images. Each field has a number for the height and one for the width, in pixels.
pub struct Windows<'a> {
    /// Size of a window.
    pub kernel: &'a [i64],
    /// Distance between elements of a window.
    pub dilation: &'a [i64],
    /// Zeros on each side of an image.
    pub padding: &'a [i64],
    /// Distance between windows.
    pub stride: &'a [i64],
}

/// Writes the windows of `image` (`[batch, channels, height, width]`, or without a batch) as
/// columns to `columns` (`[batch, channels * window, windows]`). Both are of one dtype and any
/// strides.
pub fn unfold(cx: &Context, windows: &Windows, image: &View, columns: &View) -> Result<()> {
    let (from, to) = (batched(image, 2), batched(columns, 1));
    if to.numel() == 0 {
        return Ok(());
    }
    let spec = Im2col { dtype: from.dtype.bits(), index: index_type(&[&from, &to]) };
    let arguments = Im2colArguments {
        columns: to.range(),
        image: from.range(),
        numel: to.numel(),
        height: to.sizes[1],
        windows: WindowsArgument { windows, image: &from.sizes[2..] },
        image_strides: &from,
        column_strides: &to,
    };
    cx.run_threads(&spec, &arguments, to.numel() as u64)
}

/// Sums the columns of [`unfold`] into `image`.
pub fn fold(cx: &Context, windows: &Windows, columns: &View, image: &View) -> Result<()> {
    let (from, to) = (batched(columns, 1), batched(image, 2));
    if to.numel() == 0 {
        return Ok(());
    }
    let spec = Col2im { dtype: from.dtype, index: index_type(&[&from, &to]), channels_last: is_channels_last(&to) };
    let arguments = Col2imArguments {
        image: &to,
        columns: &from,
        numel: to.numel(),
        channels: to.sizes[1],
        windows: WindowsArgument { windows, image: &to.sizes[2..] },
        column_strides: &from,
        image_strides: &to,
    };
    cx.run_threads(&spec, &arguments, to.numel() as u64)
}

impl<'a> Windows<'a> {
    /// Rows and columns of windows on an image of this size.
    pub fn blocks(&self, image: &[i64]) -> [i64; 2] {
        std::array::from_fn(|d| {
            let reach = image[d] + 2 * self.padding[d] - self.dilation[d] * (self.kernel[d] - 1) - 1;
            reach.div_euclid(self.stride[d]) + 1
        })
    }

    /// Number of elements of a window.
    pub fn area(&self) -> i64 {
        self.kernel.iter().product()
    }

    /// `kernel_size=(2, 2), dilation=(1, 1), padding=(0, 0)`
    pub fn describe(&self) -> String {
        let pair = |list: &[i64]| format!("({}, {})", list[0], list[1]);
        format!("kernel_size={}, dilation={}, padding={}", pair(self.kernel), pair(self.dilation), pair(self.padding))
    }
}

/// Kernel parameter: the windows on an image of a size.
struct ImageWindows;

/// Windows on an image of a size.
struct WindowsArgument<'a> {
    windows: &'a Windows<'a>,
    image: &'a [i64],
}

/// Windows on an image in a kernel.
struct WindowsParams<'b> {
    kernel: Vec<Value<'b>>,
    dilation: Vec<Value<'b>>,
    padding: Vec<Value<'b>>,
    stride: Vec<Value<'b>>,
    /// Height and width of the image.
    size: Vec<Value<'b>>,
    /// Rows and columns of windows.
    blocks: Vec<Value<'b>>,
}

impl Parameter for ImageWindows {
    type Type = ();
    type Argument<'a> = WindowsArgument<'a>;
    type Declared<'b> = WindowsParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, (): &()) -> WindowsParams<'b> {
        let [kernel, dilation, padding, stride, size, blocks] =
            ["kernel", "dilation", "padding", "stride", "size", "blocks"].map(|name| PerAxis::declare(b, name, &2));
        WindowsParams { kernel, dilation, padding, stride, size, blocks }
    }

    fn pass(argument: &WindowsArgument, (): &(), block: &mut ArgumentBlock) {
        let WindowsArgument { windows, image } = *argument;
        let blocks = windows.blocks(image);
        for list in [windows.kernel, windows.dilation, windows.padding, windows.stride, image, &blocks] {
            PerAxis::pass(&list, &2, block);
        }
    }
}

/// Specialisation of the kernel that lists windows: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Im2col {
    /// Elements as bits: they are only copied.
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Im2col as s => Im2colArguments, Im2colParameters {
        columns: WriteRange = s.dtype,
        image: ReadRange = s.dtype,
        numel: Index = s.index,
        /// Number of elements of a window in all channels.
        height: Index = s.index,
        windows: ImageWindows,
        image_strides: ImageStrides = (s.index, 2),
        column_strides: ImageStrides = (s.index, 1),
    }
}

impl KernelSpec for Im2col {
    fn name(&self) -> &'static str {
        "im2col"
    }

    fn write<'b>(&self, b: &'b Builder, p: Im2colParameters<'b>) {
        let WindowsParams { kernel, dilation, padding, stride, size, blocks } = p.windows;
        let (index, compute) = (self.index, self.dtype.compute());
        let i = linear_id(b, index);
        b.if_(i.lt(p.numel), || {
            let column = Coordinates::new(i, p.height, &[blocks[0] * blocks[1]], false);
            // The window's position in the image, and the element's position in the window.
            let (block, row) = (column.at[0], column.channel);
            let corner = [block / blocks[1], block % blocks[1]];
            let width = kernel[1].cast(index);
            let above = row / width;
            let [ky, kx] = [above % kernel[0].cast(index), row % width].map(|k| k.cast(ScalarType::I32));
            let at: Vec<Value> = [ky, kx]
                .iter()
                .enumerate()
                .map(|(d, &k)| corner[d] * stride[d] - padding[d] + k * dilation[d])
                .collect();
            let inside = (0..2).fold(b.bool(true), |ok, d| ok & at[d].ge(0) & at[d].lt(size[d]));
            let coordinates = Coordinates { batch: column.batch, channel: above / kernel[0].cast(index), at };
            let value = b.var(b.constant_of(compute, 0.0));
            b.if_(inside, || value.set(p.image.load(p.image_strides.element(&coordinates))));
            p.columns.store(p.column_strides.element(&column), value.get());
        });
    }
}

/// Specialisation of the kernel that sums windows: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Col2im {
    dtype: DType,
    index: ScalarType,
    channels_last: bool,
}

parameters! {
    Col2im as s => Col2imArguments, Col2imParameters {
        image: Output = s.dtype,
        columns: Input = s.dtype,
        numel: Index = s.index,
        channels: Index = s.index,
        windows: ImageWindows,
        column_strides: ImageStrides = (s.index, 1),
        image_strides: ImageStrides = (s.index, 2),
    }
}

impl KernelSpec for Col2im {
    fn name(&self) -> &'static str {
        "col2im"
    }

    fn write<'b>(&self, b: &'b Builder, p: Col2imParameters<'b>) {
        let WindowsParams { kernel, dilation, padding, stride, size, blocks } = p.windows;
        let (dtype, index) = (self.dtype, self.index);
        let i = linear_id(b, index);
        // For bools, whether any is true.
        let compute = if dtype == DType::Bool { ScalarType::I32 } else { dtype.compute() };
        b.if_(i.lt(p.numel), || {
            let at = Coordinates::new(i, p.channels, &size, self.channels_last);
            let sum = b.var(b.constant_of(compute, 0.0));
            let one = b.i32(1);
            for_each(b, &[[b.i32(0), kernel[0], one], [b.i32(0), kernel[1], one]], |k| {
                // Distance between the window's corner and the first window's.
                let distance: Vec<Value> = (0..2).map(|d| at.at[d] + padding[d] - k[d] * dilation[d]).collect();
                let block: Vec<Value> = (0..2).map(|d| distance[d].max(0) / stride[d]).collect();
                let shows = (0..2).fold(b.bool(true), |ok, d| {
                    ok & distance[d].ge(0) & (block[d] * stride[d]).eq(distance[d]) & block[d].lt(blocks[d])
                });
                b.if_(shows, || {
                    let [ky, kx, height, width] = [k[0], k[1], kernel[0], kernel[1]].map(|x| x.cast(index));
                    let row = (at.channel * height + ky) * width + kx;
                    let column =
                        Coordinates { batch: at.batch, channel: row, at: vec![block[0] * blocks[1] + block[1]] };
                    sum.set(sum.get() + p.columns.load(p.column_strides.element(&column)).cast(compute));
                });
            });
            p.image.store(p.image_strides.element(&at), sum.get());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::U16, ScalarType::U32), (DType::U64, ScalarType::U64)] {
            accepted(&Im2col { dtype, index }.build());
        }
        for (dtype, index) in
            [(DType::Bool, ScalarType::U32), (DType::BF16, ScalarType::U64), (DType::F64, ScalarType::U32)]
        {
            accepted(&Col2im { dtype, index, channels_last: index == ScalarType::U32 }.build());
        }
    }
}
