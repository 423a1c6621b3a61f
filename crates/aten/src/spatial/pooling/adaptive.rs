//! adaptive_avg_pool2d and adaptive_avg_pool3d: one window for each element of the result; windows
//! overlap if sizes do not divide.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::spatial::geometry::result;
use crate::spatial::pooling::window::check_not_empty;
use crate::{check, operators};
use dml_compute::spatial::geometry::sizes_with;
use dml_compute::spatial::pooling::adaptive::{keeps_channels_last, run};
use dml_compute::view::View;

operators! {
    forward(self, output_size, out; 2) {
        hot "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
        "aten::_adaptive_avg_pool2d.out(Tensor self, SymInt[2] output_size, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::adaptive_avg_pool2d.out(Tensor self, SymInt[2] output_size, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, out; 2) {
        "aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
    }
    forward(self, output_size, out; 3) {
        "aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
        "aten::_adaptive_avg_pool3d.out(Tensor self, SymInt[3] output_size, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::adaptive_avg_pool3d.out(Tensor self, SymInt[3] output_size, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, out; 3) {
        "aten::_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor",
        "aten::adaptive_avg_pool3d_backward.grad_input(Tensor grad_output, Tensor self, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

fn forward(call: &mut Call, input: &View, wanted: &[i64], out: Out, rank: usize) -> Result<()> {
    let name = format!("adaptive_avg_pool{rank}d");
    check!(wanted.len() == rank, Runtime, "{name}: output_size must be {rank}");
    check_rank(&format!("{name}()"), input, rank)?;
    // On the CPU the channels of a 2-dimensional image, or the first dimension of a 3-dimensional
    // one, may be empty.
    check_not_empty(&name, "input", input, if rank == 2 { input.dim() - 2 } else { 1 })?;
    check!(
        wanted.iter().all(|&n| n >= 0),
        Runtime,
        "{name}: elements of output_size must be greater than or equal to 0 but received {wanted:?}"
    );
    let empty = wanted.contains(&0) || input.sizes.contains(&0);
    // The CPU checks the dtype in two dimensions only if the result is not empty.
    if rank == 3 || !empty {
        check_dtype(input, if rank == 2 { "adaptive_avg_pool2d" } else { "adaptive_avg_pool3d_cpu" })?;
    }
    let result = result(call, out.given(), input.dtype, &sizes_with(input, wanted), keeps_channels_last(input, rank))?;
    run(call, false, rank, input, &result)?;
    call.ret(result);
    Ok(())
}

fn backward(call: &mut Call, grad: &View, input: &View, out: Out, rank: usize) -> Result<()> {
    let name = format!("adaptive_avg_pool{rank}d_backward");
    let (this, what) = (format!("{name}_out_cpu_template"), if rank == 2 { "grad_output" } else { "gradOutput_" });
    check_rank(&this, input, rank)?;
    check!(
        grad.dim() == input.dim(),
        Runtime,
        "{this}: Expected dimensions {} for `{what}` but got dimensions {}",
        input.dim(),
        grad.dim()
    );
    check_not_empty(&name, "grad_output", grad, grad.dim() - rank)?;
    check!(
        grad.dtype == input.dtype,
        Runtime,
        "{this}: Expected dtype {} for `{what}` but got dtype {}",
        type_name(input.dtype),
        type_name(grad.dtype)
    );
    let lead = input.dim() - rank;
    check!(
        grad.sizes[..lead] == input.sizes[..lead],
        Runtime,
        "{name}: expected a gradient of the batch and channels of {}, got {}",
        input.describe(),
        grad.describe()
    );
    check_dtype(input, if rank == 2 { &name } else { "adaptive_avg_pool3d_backward_cpu" })?;
    let result = result(call, out.given(), input.dtype, &input.sizes, keeps_channels_last(input, rank))?;
    run(call, true, rank, grad, &result)?;
    call.ret(result);
    Ok(())
}

fn check_rank(name: &str, t: &View, rank: usize) -> Result<()> {
    check!(
        t.dim() == rank + 1 || t.dim() == rank + 2,
        Runtime,
        "{name}: Expected {}D or {}D tensor, but got {:?}",
        rank + 1,
        rank + 2,
        t.sizes.as_slice()
    );
    Ok(())
}

fn check_dtype(t: &View, name: &str) -> Result<()> {
    check!(t.dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{}'", t.dtype);
    Ok(())
}
