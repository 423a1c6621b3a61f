//! im2col and col2im (`torch.nn.Unfold`, `torch.nn.Fold`): windows of images as columns, and the sum of columns back into
//! images. The latter gathers: a pixel visits the windows that show it, in a fixed order.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_turns;
use crate::spatial::geometry::{
    Coordinates, ImageStrides, PerAxis, batched, check_dimension, for_each, index_type, result,
};
use crate::tensor::Tensor;
use crate::tensor::memory_format::is_channels_last;
use crate::{check, operators};
use dml_engine::interface::{Index, ReadRange, WriteRange};
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

operators! {
    im2col(self, kernel_size, dilation, padding, stride, out) {
        "aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
        "aten::im2col.out(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride, *, Tensor(a!) out) -> Tensor(a!)",
    }
    col2im(self, output_size, kernel_size, dilation, padding, stride, out) {
        "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
        "aten::col2im.out(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Windows of images, along height and width.
struct Windows<'a> {
    kernel: &'a [i64],
    dilation: &'a [i64],
    padding: &'a [i64],
    stride: &'a [i64],
}

impl<'a> Windows<'a> {
    fn new(kernel: &'a [i64], dilation: &'a [i64], padding: &'a [i64], stride: &'a [i64]) -> Result<Windows<'a>> {
        for (what, list) in [("kernel_size", kernel), ("dilation", dilation), ("padding", padding), ("stride", stride)]
        {
            check!(list.len() == 2, Runtime, "It is expected {what} equals to 2, but got size {}", list.len());
        }
        let windows = Windows { kernel, dilation, padding, stride };
        let at_least = |least: i64, what: &str, rule: &str, short: &str, list: &[i64]| {
            check!(
                list.iter().all(|&n| n >= least),
                Runtime,
                "{what} should be {rule}, but got {short}_height: {} {short}_width: {}",
                list[0],
                list[1]
            );
            Ok(())
        };
        at_least(1, "kernel size", "greater than zero", "kernel", windows.kernel)?;
        at_least(1, "dilation", "greater than zero", "dilation", windows.dilation)?;
        at_least(0, "padding", "non-negative", "pad", windows.padding)?;
        at_least(1, "stride", "greater than zero", "stride", windows.stride)?;
        Ok(windows)
    }

    /// Rows and columns of windows on an image of this size.
    fn blocks(&self, image: &[i64]) -> [i64; 2] {
        std::array::from_fn(|d| {
            let reach = image[d] + 2 * self.padding[d] - self.dilation[d] * (self.kernel[d] - 1) - 1;
            reach.div_euclid(self.stride[d]) + 1
        })
    }

    /// Elements of a window.
    fn area(&self) -> i64 {
        self.kernel.iter().product()
    }

    /// `kernel_size=(2, 2), dilation=(1, 1), padding=(0, 0)`
    fn describe(&self) -> String {
        let pair = |list: &[i64]| format!("({}, {})", list[0], list[1]);
        format!("kernel_size={}, dilation={}, padding={}", pair(self.kernel), pair(self.dilation), pair(self.padding))
    }
}

/// Windows on an image of a size, as a kernel's parameter.
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

fn check_dtype(t: &Tensor, name: &str) -> Result<()> {
    check!(
        t.dtype.is_float() || t.dtype == DType::Bool,
        NotImplemented,
        "\"{name}\" not implemented for '{}'",
        t.dtype
    );
    Ok(())
}

fn im2col(
    call: &mut Call,
    input: &Tensor,
    kernel: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    out: Out,
) -> Result<()> {
    let windows = Windows::new(kernel, dilation, padding, stride)?;
    let rank = input.dim();
    check_dimension(input, 1)?;
    check_dimension(input, 2)?;
    check!(
        matches!(rank, 3 | 4) && input.sizes[rank - 3..].iter().all(|&n| n > 0),
        Runtime,
        "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but \
         got: {:?}",
        input.sizes.as_slice()
    );
    let image = &input.sizes[rank - 2..];
    let [rows, columns] = windows.blocks(image);
    check!(
        rows >= 1 && columns >= 1,
        Runtime,
        "Given input with spatial size ({}, {}), {}, calculated shape of the array of sliding blocks as ({rows}, \
         {columns}), but its components must be at least one.",
        image[0],
        image[1],
        windows.describe()
    );
    check_dtype(input, "im2col_out_cpu")?;
    let mut sizes = input.sizes.clone();
    sizes.truncate(rank - 3);
    sizes.extend([input.sizes[rank - 3] * windows.area(), rows * columns]);
    let result = result(call, out.given(), input.dtype, &sizes, false)?;
    let (from, to) = (batched(input, 2), batched(&result, 1));
    if to.numel() > 0 {
        let spec = Im2col { dtype: from.dtype.bits(), index: index_type(&[&from, &to]) };
        let arguments = Im2colArguments {
            columns: to.range(),
            image: from.range(),
            numel: to.numel(),
            height: to.sizes[1],
            windows: WindowsArgument { windows: &windows, image },
            image_strides: &from,
            column_strides: &to,
        };
        call.run_threads(&spec, &arguments, to.numel() as u64)?;
    }
    call.ret(result);
    Ok(())
}

/// Everything that changes the code of the kernel that lists windows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Im2col {
    /// Elements as bits: they are only moved.
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Im2col as s => Im2colArguments, Im2colParameters {
        columns: WriteRange = s.dtype,
        image: ReadRange = s.dtype,
        numel: Index = s.index,
        /// Elements of a window in all channels.
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
            // The window's place in the image, and the element's in the window.
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
            let place = Coordinates { batch: column.batch, channel: above / kernel[0].cast(index), at };
            let value = b.var(b.constant_of(compute, 0.0));
            b.if_(inside, || value.set(p.image.load(p.image_strides.element(&place))));
            p.columns.store(p.column_strides.element(&column), value.get());
        });
    }
}

fn col2im(
    call: &mut Call,
    input: &Tensor,
    image: &[i64],
    kernel: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    out: Out,
) -> Result<()> {
    check!(image.len() == 2, Runtime, "It is expected output_size equals to 2, but got size {}", image.len());
    let windows = Windows::new(kernel, dilation, padding, stride)?;
    let rank = input.dim();
    check!(
        matches!(rank, 2 | 3) && input.sizes[rank - 2..].iter().all(|&n| n > 0),
        Runtime,
        "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, \
         but got: {:?}",
        input.sizes.as_slice()
    );
    let (height, length) = (input.sizes[rank - 2], input.sizes[rank - 1]);
    check!(
        height % windows.area() == 0,
        Runtime,
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got \
         input.size(1)={height} and kernel_size=({}, {}).",
        windows.kernel[0],
        windows.kernel[1]
    );
    let [rows, columns] = windows.blocks(image);
    check!(
        length == rows * columns,
        Runtime,
        "Given output_size=({}, {}), {}, stride=({}, {}), expected size of input's dimension 2 to match the calculated \
         number of sliding blocks {rows} * {columns} = {}, but got input.size(2)={length}.",
        image[0],
        image[1],
        windows.describe(),
        windows.stride[0],
        windows.stride[1],
        rows * columns
    );
    check!(
        rows >= 1 && image.iter().all(|&n| n >= 1),
        Runtime,
        "Expected output spatial size to be positive, but got: output_size=({}, {}).",
        image[0],
        image[1]
    );
    check_dtype(input, "col2im_out_cpu")?;
    let mut sizes = input.sizes.clone();
    sizes.truncate(rank - 2);
    sizes.extend([height / windows.area(), image[0], image[1]]);
    check_turns(call, windows.area())?;
    let result = result(call, out.given(), input.dtype, &sizes, false)?;
    let (from, to) = (batched(input, 1), batched(&result, 2));
    if to.numel() > 0 {
        let spec = Col2im { dtype: from.dtype, index: index_type(&[&from, &to]), channels_last: is_channels_last(&to) };
        let arguments = Col2imArguments {
            image: &to,
            columns: &from,
            numel: to.numel(),
            channels: to.sizes[1],
            windows: WindowsArgument { windows: &windows, image },
            column_strides: &from,
            image_strides: &to,
        };
        call.run_threads(&spec, &arguments, to.numel() as u64)?;
    }
    call.ret(result);
    Ok(())
}

/// Everything that changes the code of the kernel that adds windows up.
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
        // Of bools, whether any is true.
        let compute = if dtype == DType::Bool { ScalarType::I32 } else { dtype.compute() };
        b.if_(i.lt(p.numel), || {
            let at = Coordinates::new(i, p.channels, &size, self.channels_last);
            let sum = b.var(b.constant_of(compute, 0.0));
            let one = b.i32(1);
            for_each(b, &[[b.i32(0), kernel[0], one], [b.i32(0), kernel[1], one]], |k| {
                // How far the window's corner is from the first one's.
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
