//! im2col and col2im (`torch.nn.Unfold`, `torch.nn.Fold`): windows of images as columns, and the
//! sum of columns back into images. The latter gathers: a pixel iterates over the windows that
//! contain it, in a fixed order.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::spatial::geometry::{check_dimension, result};
use crate::{check, operators};
use dml_compute::primitives::loops::check_loop_iterations;
use dml_compute::spatial::unfold::{Windows, fold, unfold};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    im2col(self, kernel_size, dilation, padding, stride, out).complex(Complex::Run(complex::by_parts)) {
        "aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
        "aten::im2col.out(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride, *, Tensor(a!) out) -> Tensor(a!)",
    }
    col2im(self, output_size, kernel_size, dilation, padding, stride, out).complex(Complex::Run(complex::by_parts)) {
        "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
        "aten::col2im.out(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn checked<'a>(kernel: &'a [i64], dilation: &'a [i64], padding: &'a [i64], stride: &'a [i64]) -> Result<Windows<'a>> {
    for (what, list) in [("kernel_size", kernel), ("dilation", dilation), ("padding", padding), ("stride", stride)] {
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

fn check_dtype(t: &View, name: &str) -> Result<()> {
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
    input: &View,
    kernel: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    out: Out,
) -> Result<()> {
    let windows = checked(kernel, dilation, padding, stride)?;
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
    unfold(call, &windows, input, &result)?;
    call.ret(result);
    Ok(())
}

fn col2im(
    call: &mut Call,
    input: &View,
    image: &[i64],
    kernel: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    out: Out,
) -> Result<()> {
    check!(image.len() == 2, Runtime, "It is expected output_size equals to 2, but got size {}", image.len());
    let windows = checked(kernel, dilation, padding, stride)?;
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
    check_loop_iterations(call, windows.area())?;
    let result = result(call, out.given(), input.dtype, &sizes, false)?;
    fold(call, &windows, input, &result)?;
    call.ret(result);
    Ok(())
}
