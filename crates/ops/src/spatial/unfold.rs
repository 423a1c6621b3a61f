//! im2col and col2im (`torch.nn.Unfold`, `torch.nn.Fold`): windows of images as columns, and the sum of columns back into
//! images. The latter gathers: a pixel visits the windows that show it, in a fixed order.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, Launcher, linear_id};
use crate::spatial::geometry::{
    Place, Strides, axis_params, batched, for_each, index_type, pass_axes, pass_strides, result,
};
use crate::tensor::Tensor;
use crate::tensor::memory_format::is_channels_last;
use dml_kernel::{Builder, DType, Kernel, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::im2col", |c| im2col(c, None)),
    op("aten::im2col.out", |c| im2col(c, Some(5))),
    op("aten::col2im", |c| col2im(c, None)),
    op("aten::col2im.out", |c| col2im(c, Some(6))),
];

/// Windows of images, along height and width.
struct Windows<'a> {
    kernel: &'a [i64],
    dilation: &'a [i64],
    padding: &'a [i64],
    stride: &'a [i64],
}

impl<'a> Windows<'a> {
    /// Four arguments from position `first`: kernel_size, dilation, padding, stride.
    fn new(call: &Call<'a>, first: usize) -> Result<Windows<'a>> {
        let list = |i: usize, what: &str| -> Result<&'a [i64]> {
            let list = call.ints(first + i)?;
            check!(list.len() == 2, Runtime, "It is expected {what} equals to 2, but got size {}", list.len());
            Ok(list)
        };
        let windows = Windows {
            kernel: list(0, "kernel_size")?,
            dilation: list(1, "dilation")?,
            padding: list(2, "padding")?,
            stride: list(3, "stride")?,
        };
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

    /// Passes what [`declare`] declares.
    fn pass<'c, 'l>(&self, launcher: Launcher<'c, 'l>, image: &[i64]) -> Launcher<'c, 'l> {
        let lists = [self.kernel, self.dilation, self.padding, self.stride, image, &self.blocks(image)];
        lists.into_iter().fold(launcher, pass_axes)
    }
}

/// Kernel, dilation, padding, stride, sizes of the image, and blocks, as parameters.
fn declare(b: &Builder) -> [Vec<Value<'_>>; 6] {
    ["kernel", "dilation", "padding", "stride", "size", "blocks"].map(|name| axis_params(b, name, 2))
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

/// `im2col(self, kernel_size, dilation, padding, stride[, out])`
fn im2col(call: &mut Call, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let windows = Windows::new(call, 1)?;
    let rank = input.dim();
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
    let result = result(call, out, input.dtype, &sizes, false)?;
    let (from, to) = (batched(input, 2), batched(&result, 1));
    if to.numel() > 0 {
        let (dtype, index) = (from.dtype.bits(), index_type(&[&from, &to]));
        let kernel = call.kernel("im2col", [dtype as u32, index.bytes(), 0, 0, 0, 0], || build_im2col(dtype, index))?;
        let mut launcher = call.launch(kernel).write(&to).read(&from);
        launcher = windows.pass(launcher.index(index, to.numel()).index(index, to.sizes[1]), image);
        for t in [&from, &to] {
            launcher = pass_strides(launcher, index, t);
        }
        launcher.threads(to.numel() as u64)?;
    }
    call.ret(result);
    Ok(())
}

fn build_im2col(dtype: DType, index: Scalar) -> Kernel {
    let b = Builder::new("im2col", [GROUP, 1, 1]);
    let (to, from) = (b.pointer("columns", dtype), b.pointer("image", dtype));
    let (n, height) = (b.param("n", index), b.param("height", index));
    let [kernel, dilation, padding, stride, size, blocks] = declare(&b);
    let (from_strides, to_strides) = (Strides::declare(&b, index, 2), Strides::declare(&b, index, 1));
    let i = linear_id(&b, index);
    b.if_(i.lt(n), || {
        let column = Place::new(i, height, &[blocks[0] * blocks[1]], false);
        // The window's place in the image, and the element's in the window.
        let (block, row) = (column.at[0], column.channel);
        let corner = [block / blocks[1], block % blocks[1]];
        let width = kernel[1].cast(index);
        let above = row / width;
        let [ky, kx] = [above % kernel[0].cast(index), row % width].map(|k| k.cast(Scalar::I32));
        let at: Vec<Value> =
            [ky, kx].iter().enumerate().map(|(d, &k)| corner[d] * stride[d] - padding[d] + k * dilation[d]).collect();
        let inside = (0..2).fold(b.bool(true), |ok, d| ok & at[d].ge(0) & at[d].lt(size[d]));
        let place = Place { batch: column.batch, channel: above / kernel[0].cast(index), at };
        let value = b.var(b.constant_of(dtype.compute(), 0.0));
        b.if_(inside, || value.set(from.load(from_strides.element(&place))));
        to.store(to_strides.element(&column), value.get());
    });
    b.finish()
}

/// `col2im(self, output_size, kernel_size, dilation, padding, stride[, out])`
fn col2im(call: &mut Call, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let image = call.ints(1)?;
    check!(image.len() == 2, Runtime, "It is expected output_size equals to 2, but got size {}", image.len());
    let windows = Windows::new(call, 2)?;
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
    let result = result(call, out, input.dtype, &sizes, false)?;
    let (from, to) = (batched(input, 1), batched(&result, 2));
    if to.numel() > 0 {
        let (dtype, index, last) = (from.dtype, index_type(&[&from, &to]), is_channels_last(&to));
        let key = [dtype as u32, index.bytes(), u32::from(last), 0, 0, 0];
        let kernel = call.kernel("col2im", key, || build_col2im(dtype, index, last))?;
        let mut launcher = call.launch(kernel).write(&to).read(&from);
        launcher = windows.pass(launcher.index(index, to.numel()).index(index, to.sizes[1]), image);
        for t in [&from, &to] {
            launcher = pass_strides(launcher, index, t);
        }
        launcher.threads(to.numel() as u64)?;
    }
    call.ret(result);
    Ok(())
}

fn build_col2im(dtype: DType, index: Scalar, channels_last: bool) -> Kernel {
    let b = Builder::new("col2im", [GROUP, 1, 1]);
    let (to, from) = (b.pointer("image", dtype), b.pointer("columns", dtype));
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let [kernel, dilation, padding, stride, size, blocks] = declare(&b);
    let (from_strides, to_strides) = (Strides::declare(&b, index, 1), Strides::declare(&b, index, 2));
    let i = linear_id(&b, index);
    // Of bools, whether any is true.
    let compute = if dtype == DType::Bool { Scalar::I32 } else { dtype.compute() };
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, &size, channels_last);
        let sum = b.var(b.constant_of(compute, 0.0));
        let one = b.i32(1);
        for_each(&b, &[[b.i32(0), kernel[0], one], [b.i32(0), kernel[1], one]], |k| {
            // How far the window's corner is from the first one's.
            let distance: Vec<Value> = (0..2).map(|d| at.at[d] + padding[d] - k[d] * dilation[d]).collect();
            let block: Vec<Value> = (0..2).map(|d| distance[d].max(0) / stride[d]).collect();
            let shows = (0..2).fold(b.bool(true), |ok, d| {
                ok & distance[d].ge(0) & (block[d] * stride[d]).eq(distance[d]) & block[d].lt(blocks[d])
            });
            b.if_(shows, || {
                let [ky, kx, height, width] = [k[0], k[1], kernel[0], kernel[1]].map(|x| x.cast(index));
                let row = (at.channel * height + ky) * width + kx;
                let column = Place { batch: at.batch, channel: row, at: vec![block[0] * blocks[1] + block[1]] };
                sum.set(sum.get() + from.load(from_strides.element(&column)).cast(compute));
            });
        });
        to.store(to_strides.element(&at), sum.get());
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::U16, Scalar::U32), (DType::U64, Scalar::U64)] {
            accepted(&build_im2col(dtype, index));
        }
        for (dtype, index) in [(DType::Bool, Scalar::U32), (DType::BF16, Scalar::U64), (DType::F64, Scalar::U32)] {
            accepted(&build_col2im(dtype, index, index == Scalar::U32));
        }
    }
}
