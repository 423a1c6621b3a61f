//! reflection_pad and replication_pad over one to three spatial dimensions. (constant and circular
//! padding are composites of copies.)

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::torch_version;
use crate::spatial::geometry::result;
use crate::{check, operators};
use dml_compute::primitives::loops::check_loop_iterations;
use dml_compute::spatial::geometry::{Spatial, sizes_with};
use dml_compute::spatial::padding::{Mode, run};
use dml_compute::view::View;
use dml_compute::view::memory_format::is_channels_last;
use dml_kernel::DType;

operators! {
    forward(self, padding, out; Mode::Reflect, 1).complex(Complex::Run(complex::run_as_bits)) {
        "aten::reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
        "aten::reflection_pad1d.out(Tensor self, SymInt[2] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Reflect, 1).complex(Complex::Run(complex::by_parts)) {
        "aten::reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
        "aten::reflection_pad1d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[2] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, padding, out; Mode::Reflect, 2).complex(Complex::Run(complex::run_as_bits)) {
        "aten::reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
        "aten::reflection_pad2d.out(Tensor self, SymInt[4] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Reflect, 2).complex(Complex::Run(complex::by_parts)) {
        "aten::reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
        "aten::reflection_pad2d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[4] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, padding, out; Mode::Reflect, 3).complex(Complex::Run(complex::run_as_bits)) {
        "aten::reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
        "aten::reflection_pad3d.out(Tensor self, SymInt[6] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Reflect, 3).complex(Complex::Run(complex::by_parts)) {
        "aten::reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
        "aten::reflection_pad3d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[6] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, padding, out; Mode::Replicate, 1).complex(Complex::Run(complex::run_as_bits)) {
        "aten::replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
        "aten::replication_pad1d.out(Tensor self, SymInt[2] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Replicate, 1).complex(Complex::Run(complex::by_parts)) {
        "aten::replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
        "aten::replication_pad1d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[2] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, padding, out; Mode::Replicate, 2).complex(Complex::Run(complex::run_as_bits)) {
        "aten::replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
        "aten::replication_pad2d.out(Tensor self, SymInt[4] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Replicate, 2).complex(Complex::Run(complex::by_parts)) {
        "aten::replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
        "aten::replication_pad2d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[4] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, padding, out; Mode::Replicate, 3).complex(Complex::Run(complex::run_as_bits)) {
        "aten::replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
        "aten::replication_pad3d.out(Tensor self, SymInt[6] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Replicate, 3).complex(Complex::Run(complex::by_parts)) {
        "aten::replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
        "aten::replication_pad3d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[6] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

/// The spatial sizes of the result, and the padding before the first element of each dimension.
/// `padding` begins with the last dimension.
fn output(call: &Call, mode: Mode, rank: usize, input: &View, padding: &[i64]) -> Result<(Spatial, Spatial)> {
    check!(
        padding.len() == 2 * rank,
        Runtime,
        "padding size is expected to be {}, but got: {}",
        2 * rank,
        padding.len()
    );
    let (least, most) = (rank + 1, rank + 2);
    check!(
        (input.dim() == least || input.dim() == most) && input.sizes[input.dim() - least..].iter().all(|&n| n > 0),
        Runtime,
        "Expected {least}D or {most}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for \
         input, but got: {:?}",
        input.sizes.as_slice()
    );
    let lead = input.dim() - rank;
    let (mut sizes, mut before) = (Spatial::new(), Spatial::new());
    for d in 0..rank {
        let pair = rank - 1 - d;
        let (left, right) = (padding[2 * pair], padding[2 * pair + 1]);
        sizes.push(input.sizes[lead + d] + left + right);
        before.push(left);
    }
    for d in (0..rank).rev().filter(|_| mode == Mode::Reflect) {
        let (pair, size) = (rank - 1 - d, input.sizes[lead + d]);
        let (left, right) = (padding[2 * pair], padding[2 * pair + 1]);
        check!(
            left < size && right < size,
            Runtime,
            "Argument #{}: Padding size should be less than the corresponding input dimension, but got: padding \
             ({left}, {right}) at dimension {} of input {:?}",
            4 + 2 * pair,
            lead + d,
            input.sizes.as_slice()
        );
    }
    let named = |sizes: &[i64], separator: &str| {
        let names = &["D", "H", "W"][3 - rank..];
        names.iter().zip(sizes).map(|(name, n)| format!("{name}: {n}")).collect::<Vec<_>>().join(separator)
    };
    let (shape, padded) = (named(&input.sizes[lead..], ", "), named(&sizes, " "));
    if rank > 1 && torch_version::at_least(15) {
        let left = sizes.iter().all(|&n| n >= 1);
        check!(left, Runtime, "Calculated output {padded} must be >= 1 in every dimension (input {shape})");
    }
    // Before torch 2.15 the result may be empty in some dimensions, but not in all.
    check!(sizes.iter().any(|&n| n >= 1), Runtime, "input ({shape}) is too small. Calculated output {padded}");
    if let Some(negative) = sizes.iter().find(|&&n| n < 0) {
        let whole: Vec<i64> = input.sizes[..lead].iter().chain(&sizes).copied().collect();
        check!(false, Runtime, "Trying to create tensor with negative dimension {negative}: {whole:?}");
    }
    check!(
        sizes.iter().all(|&n| n < i64::from(i32::MAX / 2)),
        NotImplemented,
        "{}: results of {:?} are more than dml can pad",
        call.name,
        sizes.as_slice()
    );
    Ok((sizes, before))
}

fn forward(call: &mut Call, input: &View, padding: &[i64], out: Out, mode: Mode, rank: usize) -> Result<()> {
    let (sizes, before) = output(call, mode, rank, input, padding)?;
    check!(
        input.dtype.is_float() || input.dtype.is_signed_integer() || input.dtype == DType::U8,
        NotImplemented,
        "\"{}\" not implemented for '{}'",
        mode.name(rank),
        input.dtype
    );
    let result = result(call, out.given(), input.dtype, &sizes_with(input, &sizes), is_channels_last(input))?;
    run(call, mode, false, &before, input, &result)?;
    call.ret(result);
    Ok(())
}

fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    padding: &[i64],
    out: Out,
    mode: Mode,
    rank: usize,
) -> Result<()> {
    let (sizes, before) = output(call, mode, rank, input, padding)?;
    let expected = sizes_with(input, &sizes);
    check!(
        grad.dim() == input.dim(),
        Runtime,
        "{}: expected a gradient of shape {:?}, got {:?}",
        call.name,
        expected.as_slice(),
        grad.sizes.as_slice()
    );
    let names = ["width", "height", "depth", "channel", "batch"];
    for (d, axis) in (0..input.dim()).rev().zip(names[..rank].iter().chain(&names[3..])) {
        check!(
            grad.sizes[d] == expected[d],
            Runtime,
            "grad_output {axis} unexpected. Expected: {}, Got: {}",
            expected[d],
            grad.sizes[d]
        );
    }
    check!(grad.dtype == input.dtype, Runtime, "expected scalar type {} but found {}", grad.dtype, input.dtype);
    check!(
        grad.dtype.is_float(),
        NotImplemented,
        "\"{}_backward\" not implemented for '{}'",
        mode.name(rank),
        grad.dtype
    );
    // With replication, all padding beyond a corner reads the corner's element.
    check_loop_iterations(
        call,
        input.sizes.iter().zip(&expected).map(|(&from, &to)| (to - from).max(0) + 1).product(),
    )?;
    let result = result(call, out.given(), input.dtype, &input.sizes, is_channels_last(input))?;
    run(call, mode, true, &before, grad, &result)?;
    call.ret(result);
    Ok(())
}
