//! The operators: argument checks, and the plan of each resampling.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::spatial::geometry::result;
use crate::{check, group, operators};
use dml_compute::spatial::geometry::sizes_with;
use dml_compute::spatial::upsample::axis::Filter;
use dml_compute::spatial::upsample::interpolate::{name, plan};
use dml_compute::spatial::upsample::kernel;
use dml_compute::view::View;
use dml_compute::view::memory_format::is_channels_last;
use dml_kernel::DType;

operators! {
    forward(self, output_size, {Resizing}, out; Filter::Nearest, 1) {
        "aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
        "aten::upsample_nearest1d.out(Tensor self, SymInt[1] output_size, float? scales=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::Nearest, 1) {
        "aten::upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor",
        "aten::upsample_nearest1d_backward.grad_input(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, output_size, {Resizing}, out; Filter::Nearest, 2) {
        "aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::upsample_nearest2d.out(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::Nearest, 2) {
        "aten::upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::upsample_nearest2d_backward.grad_input(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, output_size, {Resizing}, out; Filter::Nearest, 3) {
        "aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::upsample_nearest3d.out(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::Nearest, 3) {
        "aten::upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::upsample_nearest3d_backward.grad_input(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, output_size, {Resizing}, out; Filter::NearestExact, 1) {
        "aten::_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
        "aten::_upsample_nearest_exact1d.out(Tensor self, SymInt[1] output_size, float? scales=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::NearestExact, 1) {
        "aten::_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor",
        "aten::_upsample_nearest_exact1d_backward.grad_input(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, output_size, {Resizing}, out; Filter::NearestExact, 2) {
        "aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::_upsample_nearest_exact2d.out(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::NearestExact, 2) {
        "aten::_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::_upsample_nearest_exact2d_backward.grad_input(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, output_size, {Resizing}, out; Filter::NearestExact, 3) {
        "aten::_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::_upsample_nearest_exact3d.out(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::NearestExact, 3) {
        "aten::_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::_upsample_nearest_exact3d_backward.grad_input(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, output_size, {Resizing}, out; Filter::Linear, 1) {
        "aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
        "aten::upsample_linear1d.out(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::Linear, 1) {
        "aten::upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, float? scales=None) -> Tensor",
        "aten::upsample_linear1d_backward.grad_input(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, float? scales=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, output_size, {Resizing}, out; Filter::Linear, 2) {
        "aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::upsample_bilinear2d.out(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::Linear, 2) {
        "aten::upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::upsample_bilinear2d_backward.grad_input(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, output_size, {Resizing}, out; Filter::Linear, 3) {
        "aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::upsample_trilinear3d.out(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::Linear, 3) {
        "aten::upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::upsample_trilinear3d_backward.grad_input(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, output_size, {Resizing}, out; Filter::Cubic, 2) {
        "aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::upsample_bicubic2d.out(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::Cubic, 2) {
        "aten::upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::upsample_bicubic2d_backward.grad_input(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, output_size, {Resizing}, out; Filter::LinearAntialias, 2) {
        "aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::_upsample_bilinear2d_aa.out(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::LinearAntialias, 2) {
        "aten::_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::_upsample_bilinear2d_aa_backward.grad_input(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, output_size, {Resizing}, out; Filter::CubicAntialias, 2) {
        "aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::_upsample_bicubic2d_aa.out(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, output_size, input_size, {Resizing}, out; Filter::CubicAntialias, 2) {
        "aten::_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        "aten::_upsample_bicubic2d_aa_backward.grad_input(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

group! {
    /// How positions of the result are mapped to positions of the input.
    struct Resizing {
        align_corners: bool = false,
        scales_d: Option<f64> = None,
        scales_h: Option<f64> = None,
        scales_w: Option<f64> = None,
        /// In one dimension, `scales_w`.
        scales: Option<f64> = None,
    }
}

impl Resizing {
    /// The scales of depth, height and width.
    fn scales(&self) -> [Option<f64>; 3] {
        [self.scales_d, self.scales_h, self.scales_w.or(self.scales)]
    }
}

fn forward(
    call: &mut Call,
    input: &View,
    output: &[i64],
    resizing: Resizing,
    out: Out,
    filter: Filter,
    rank: usize,
) -> Result<()> {
    check_sizes(rank, &input.sizes, output)?;
    check!(
        input.sizes[1..].iter().all(|&n| n > 0),
        Runtime,
        "Non-empty {}D data tensor expected but got a tensor with sizes {:?}",
        rank + 2,
        input.sizes.as_slice()
    );
    let bytes = input.dtype == DType::U8 && (filter.nearest() || rank == 2);
    check!(
        input.dtype.is_float() || bytes,
        NotImplemented,
        "\"{}\" not implemented for '{}'",
        name(filter, rank),
        input.dtype
    );
    let plan = plan(filter, resizing.align_corners, &input.sizes[2..], output, resizing.scales(), input.dtype);
    let result = result(call, out.given(), input.dtype, &sizes_with(input, output), is_channels_last(input))?;
    kernel::run(call, &plan, false, input, &result)?;
    call.ret(result);
    Ok(())
}

fn backward(
    call: &mut Call,
    grad: &View,
    output: &[i64],
    sizes: &[i64],
    resizing: Resizing,
    out: Out,
    filter: Filter,
    rank: usize,
) -> Result<()> {
    check_sizes(rank, sizes, output)?;
    check_gradient(grad, rank, sizes, output)?;
    check!(
        grad.dtype.is_float(),
        NotImplemented,
        "\"{}\" not implemented for '{}'",
        call.name.trim_start_matches("aten::").trim_end_matches(".grad_input"),
        grad.dtype
    );
    let plan = plan(filter, resizing.align_corners, &sizes[2..], output, resizing.scales(), grad.dtype);
    // The CPU's gradients of some filters are contiguous, whatever their input's format.
    let keeps_format = match filter {
        Filter::Nearest | Filter::NearestExact => rank == 2,
        Filter::Linear | Filter::LinearAntialias => true,
        Filter::Cubic | Filter::CubicAntialias => false,
    };
    let result = result(call, out.given(), grad.dtype, sizes, keeps_format && is_channels_last(grad))?;
    kernel::run(call, &plan, true, grad, &result)?;
    call.ret(result);
    Ok(())
}

fn check_sizes(rank: usize, input: &[i64], output: &[i64]) -> Result<()> {
    check!(output.len() == rank, Runtime, "It is expected output_size equals to {rank}, but got size {}", output.len());
    let all = rank + 2;
    check!(input.len() == all, Runtime, "It is expected input_size equals to {all}, but got size {}", input.len());
    let named = |sizes: &[i64]| {
        let names = &["D", "H", "W"][3 - rank..];
        names.iter().zip(sizes).map(|(name, n)| format!("{name}: {n}")).collect::<Vec<_>>().join(", ")
    };
    check!(
        input[2..].iter().chain(output).all(|&n| n > 0),
        Runtime,
        "Input and output sizes should be greater than 0, but got input ({}){} output ({})",
        named(&input[2..]),
        if rank == 1 { " and" } else { "" },
        named(output)
    );
    Ok(())
}

fn check_gradient(grad: &View, rank: usize, sizes: &[i64], output: &[i64]) -> Result<()> {
    let all = rank + 2;
    let expected = sizes[..2].iter().chain(output);
    if rank == 1 {
        for (d, n) in expected.enumerate() {
            check!(
                grad.dim() == all && grad.sizes[d] == *n,
                Runtime,
                "Expected a tensor of dimension {all} and tensor.size[{d}] == {n} but got: dimension {} and \
                 tensor.size[{d}] = {}",
                grad.dim(),
                grad.sizes.get(d).unwrap_or(&0)
            );
        }
        return Ok(());
    }
    check!(
        grad.dim() == all,
        Runtime,
        "Expected grad_output to be a tensor of dimension {all} but got: dimension {}",
        grad.dim()
    );
    for (d, n) in expected.enumerate() {
        check!(
            grad.sizes[d] == *n,
            Runtime,
            "Expected grad_output to have the same shape as output; output.size({d}) = {n} but got \
             grad_output.size({d}) = {}",
            grad.sizes[d]
        );
    }
    Ok(())
}
