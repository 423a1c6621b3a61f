//! adaptive_avg_pool2d and adaptive_avg_pool3d: as many windows as the result has elements, overlapping where sizes do
//! not divide.

use super::cover::{Cover, CoverArgument, CoveredImage, Kind};
use super::window::{adaptive_len, check_not_empty, spatial};
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured::type_name;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_turns;
use crate::spatial::geometry::{
    Coordinates, ImageStrides, batched, channels_last, for_each, index_type, result, sizes_with,
};
use crate::tensor::Tensor;
use crate::tensor::memory_format::is_channels_last;
use crate::{check, operators};
use dml_engine::{interface::Index, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

operators! {
    forward(self, output_size, out; 2) {
        "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
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

fn forward(call: &mut Call, input: &Tensor, wanted: &[i64], out: Out, rank: usize) -> Result<()> {
    let name = format!("adaptive_avg_pool{rank}d");
    check!(wanted.len() == rank, Runtime, "{name}: output_size must be {rank}");
    check_rank(&format!("{name}()"), input, rank)?;
    // The CPU lets channels be missing in two dimensions, or where they come first.
    check_not_empty(&name, "input", input, if rank == 2 { input.dim() - 2 } else { 1 })?;
    check!(
        wanted.iter().all(|&n| n >= 0),
        Runtime,
        "{name}: elements of output_size must be greater than or equal to 0 but received {wanted:?}"
    );
    let empty = wanted.contains(&0) || input.sizes.contains(&0);
    // The CPU asks for the dtype where it has something to compute.
    if rank == 3 || !empty {
        check_dtype(input, if rank == 2 { "adaptive_avg_pool2d" } else { "adaptive_avg_pool3d_cpu" })?;
    }
    let result = result(call, out.given(), input.dtype, &sizes_with(input, wanted), keeps_channels_last(input, rank))?;
    run(call, false, rank, input, &result)?;
    call.ret(result);
    Ok(())
}

fn backward(call: &mut Call, grad: &Tensor, input: &Tensor, out: Out, rank: usize) -> Result<()> {
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

fn check_rank(name: &str, t: &Tensor, rank: usize) -> Result<()> {
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

fn check_dtype(t: &Tensor, name: &str) -> Result<()> {
    check!(t.dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{}'", t.dtype);
    Ok(())
}

/// Whether the result has its channels closest in memory: CPU keeps that in two dimensions only.
fn keeps_channels_last(input: &Tensor, rank: usize) -> bool {
    rank == 2 && channels_last(input, rank)
}

fn run(call: &Call, backward: bool, rank: usize, from: &Tensor, to: &Tensor) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    // Of a gradient, an element's windows.
    check_turns(call, adaptive_len(spatial(from, rank), spatial(to, rank)))?;
    let (from, to) = (batched(from, rank), batched(to, rank));
    let spec = Spec {
        backward,
        dtype: from.dtype,
        index: index_type(&[&from, &to]),
        channels_last: is_channels_last(&to),
        rank,
    };
    let arguments = Arguments {
        to: &to,
        from: &from,
        numel: to.numel(),
        channels: to.sizes[1],
        windows: CoverArgument { cover: &Cover::Adaptive, input: &from.sizes[2..], output: &to.sizes[2..] },
        from_strides: &from,
        to_strides: &to,
    };
    call.run_threads(&spec, &arguments, to.numel() as u64)
}

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    backward: bool,
    dtype: DType,
    index: ScalarType,
    channels_last: bool,
    rank: usize,
}

parameters! {
    Spec as s => Arguments, Parameters {
        to: Output = s.dtype,
        from: Input = s.dtype,
        numel: Index = s.index,
        channels: Index = s.index,
        /// From `from` to `to`. Coverage is symmetric: backward, the windows over an element are what the element would
        /// cover as a window.
        windows: CoveredImage = (Kind::Adaptive, s.rank),
        from_strides: ImageStrides = (s.index, s.rank),
        to_strides: ImageStrides = (s.index, s.rank),
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        if self.backward { "adaptive_avg_pool_backward" } else { "adaptive_avg_pool" }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        write(b, self, p);
    }
}

fn write<'b>(b: &'b Builder, spec: &Spec, p: Parameters<'b>) {
    let Spec { backward, dtype, index, .. } = *spec;
    let Parameters { to, from, windows: covering, from_strides, to_strides, .. } = p;
    let compute = dtype.compute();
    let count = |ranges: &[[Value<'b>; 3]]| {
        ranges.iter().fold(b.i32(1), |product, [first, end, _]| product * (*end - *first)).cast(compute)
    };
    let i = linear_id(b, index);
    b.if_(i.lt(p.numel), || {
        let at = Coordinates::new(i, p.channels, &covering.output, spec.channels_last);
        let image = from_strides.image(&at);
        let sum = b.var(b.constant_of(compute, 0.0));
        let ranges: Vec<_> = at.at.iter().enumerate().map(|(d, &x)| covering.elements(d, x, None)).collect();
        for_each(b, &ranges, |pixel| {
            let value = from.load(image + from_strides.pixel(pixel));
            let term = if backward {
                let window: Vec<_> = pixel.iter().enumerate().map(|(d, &x)| covering.windows(d, x)).collect();
                value / count(&window)
            } else {
                value
            };
            sum.set(sum.get() + term);
        });
        let total = if backward { sum.get() } else { sum.get() / count(&ranges) };
        to.store(to_strides.element(&at), total);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::F16, DType::F64] {
            for (backward, index, channels_last, rank) in
                [(false, ScalarType::U32, true, 2), (true, ScalarType::U64, false, 3)]
            {
                let spec = Spec { backward, dtype, index, channels_last, rank };
                crate::primitives::validate::accepted(&spec.build());
            }
        }
    }
}
