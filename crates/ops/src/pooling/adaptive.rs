//! adaptive_avg_pool2d: as many windows as the result has elements, overlapping where sizes do not divide.

use super::{
    Place, Strides, batched, channels_last, index_type, pair_params, pass_pair, pass_strides, result, sizes_with,
};
use crate::call::Call;
use crate::check;
use crate::error::Result;
use crate::launch::{GROUP, linear_id};
use crate::table::{Operator, op};
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::_adaptive_avg_pool2d", |c| forward(c, None)),
    op("aten::_adaptive_avg_pool2d.out", |c| forward(c, Some(2))),
    op("aten::adaptive_avg_pool2d.out", |c| forward(c, Some(2))),
    op("aten::_adaptive_avg_pool2d_backward", backward),
];

/// `_adaptive_avg_pool2d(self, output_size[, out])`
fn forward(call: &mut Call, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let wanted = call.ints(1)?;
    check!(wanted.len() == 2, Runtime, "adaptive_avg_pool2d: output_size must be 2");
    check!(
        matches!(input.dim(), 3 | 4),
        Runtime,
        "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got {:?}",
        input.sizes.as_slice()
    );
    for d in input.dim() - 2..input.dim() {
        check!(
            input.sizes[d] > 0,
            Runtime,
            "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes \
             {:?} with dimension {d} being empty",
            input.sizes.as_slice()
        );
    }
    check!(
        wanted.iter().all(|&n| n >= 0),
        Runtime,
        "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received {wanted:?}"
    );
    check_dtype(input)?;
    let sizes = sizes_with(input, [wanted[0], wanted[1]]);
    let result = result(call, out, input.dtype, &sizes, input)?;
    run(call, false, input, &result, channels_last(input))?;
    call.ret(result);
    Ok(())
}

/// `_adaptive_avg_pool2d_backward(grad_output, self)`
fn backward(call: &mut Call) -> Result<()> {
    let (grad, input) = (call.tensor(0)?, call.tensor(1)?);
    check!(
        grad.dim() == input.dim() && matches!(input.dim(), 3 | 4),
        Runtime,
        "adaptive_avg_pool2d_backward(): Expected 3D or 4D tensors of one rank, but got {} and {}",
        input.describe(),
        grad.describe()
    );
    check!(
        grad.dtype == input.dtype,
        Runtime,
        "expected dtype {} for `grad_output` but got dtype {}",
        input.dtype,
        grad.dtype
    );
    check_dtype(input)?;
    let result = result(call, None, input.dtype, &input.sizes, input)?;
    run(call, true, grad, &result, channels_last(input))?;
    call.ret(result);
    Ok(())
}

fn check_dtype(t: &Tensor) -> Result<()> {
    check!(t.dtype.is_float(), NotImplemented, "\"adaptive_avg_pool2d\" not implemented for '{}'", t.dtype);
    Ok(())
}

fn run(call: &Call, backward: bool, from: &Tensor, to: &Tensor, last: bool) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    let (from, to) = (batched(from), batched(to));
    let index = index_type(&[&from, &to]);
    let flags = u32::from(backward) | u32::from(last) << 1 | u32::from(index == Scalar::U64) << 2;
    let kernel = call.kernel("adaptive_avg_pool2d", [from.dtype as u32, flags, 0, 0, 0, 0], || {
        build(backward, from.dtype, index, last)
    })?;
    let mut launcher = call.launch(kernel).write(&to).read(&from);
    launcher = launcher.index(index, to.numel()).index(index, to.sizes[1]);
    for t in [&from, &to] {
        launcher = pass_pair(launcher, [t.sizes[2], t.sizes[3]]);
    }
    for t in [&from, &to] {
        launcher = pass_strides(launcher, index, t);
    }
    launcher.threads(to.numel() as u64)
}

fn build(backward: bool, dtype: DType, index: Scalar, channels_last: bool) -> Kernel {
    let name = if backward { "adaptive_avg_pool2d_backward" } else { "adaptive_avg_pool2d" };
    let b = Builder::new(name, [GROUP, 1, 1]);
    write(&b, backward, dtype, index, channels_last);
    b.finish()
}

fn write<'b>(b: &'b Builder, backward: bool, dtype: DType, index: Scalar, channels_last: bool) {
    let to = b.pointer("to", dtype);
    let from = b.pointer("from", dtype);
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let [here, there] = ["from", "to"].map(|name| pair_params(b, name));
    let [from_strides, to_strides] = [(); 2].map(|()| Strides::declare(b, index));
    let compute = dtype.compute();
    // Elements of `size` that window `at` of `windows` covers: floor(at * size / windows) up to
    // ceil((at + 1) * size / windows). Coverage is symmetric: the same formula gives the windows over an element.
    let range = |at: Value<'b>, size: Value<'b>, windows: Value<'b>| -> [Value<'b>; 2] {
        let (at, size, windows) = (at.cast(Scalar::I64), size.cast(Scalar::I64), windows.cast(Scalar::I64));
        let start = at * size / windows;
        let end = ((at + 1) * size + windows - 1) / windows;
        [start.cast(Scalar::I32), end.cast(Scalar::I32)]
    };
    let i = linear_id(b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, there, channels_last);
        let image = from_strides.image(&at);
        let sum = b.var(b.constant_of(compute, 0.0));
        let (rows, columns) = (range(at.y, here[0], there[0]), range(at.x, here[1], there[1]));
        b.for_(rows[0], rows[1], 1, |y| {
            b.for_(columns[0], columns[1], 1, |x| {
                let value = from.load(image + from_strides.pixel(y, x));
                let term = if backward {
                    let (r, c) = (range(y, there[0], here[0]), range(x, there[1], here[1]));
                    value / ((r[1] - r[0]) * (c[1] - c[0])).cast(compute)
                } else {
                    value
                };
                sum.set(sum.get() + term);
            });
        });
        let total = if backward {
            sum.get()
        } else {
            sum.get() / ((rows[1] - rows[0]) * (columns[1] - columns[0])).cast(compute)
        };
        to.store(to_strides.image(&at) + to_strides.pixel(at.y, at.x), total);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::F16, DType::F64] {
            for (backward, index, last) in [(false, Scalar::U32, true), (true, Scalar::U64, false)] {
                crate::validate::accepted(&build(backward, dtype, index, last));
            }
        }
    }
}
