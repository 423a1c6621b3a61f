//! reflection_pad and replication_pad over one to three spatial dimensions. (constant and circular padding are
//! composites of copies.)

use crate::movement::copy::fill_with;
use crate::operator::argument::Out;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::torch_version;
use crate::primitives::kernel::KernelSpec;
use crate::primitives::loops::check_turns;
use crate::spatial::geometry::{
    Coordinates, ImageStrides, PerAxis, Spatial, batched, for_each, index_type, result, sizes_with,
};
use crate::tensor::Tensor;
use crate::tensor::memory_format::is_channels_last;
use crate::{check, operators};
use dml_engine::interface::{Index, ReadRange, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

operators! {
    forward(self, padding, out; Mode::Reflect, 1) {
        "aten::reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
        "aten::reflection_pad1d.out(Tensor self, SymInt[2] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Reflect, 1) {
        "aten::reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
        "aten::reflection_pad1d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[2] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, padding, out; Mode::Reflect, 2) {
        "aten::reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
        "aten::reflection_pad2d.out(Tensor self, SymInt[4] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Reflect, 2) {
        "aten::reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
        "aten::reflection_pad2d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[4] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, padding, out; Mode::Reflect, 3) {
        "aten::reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
        "aten::reflection_pad3d.out(Tensor self, SymInt[6] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Reflect, 3) {
        "aten::reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
        "aten::reflection_pad3d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[6] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, padding, out; Mode::Replicate, 1) {
        "aten::replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
        "aten::replication_pad1d.out(Tensor self, SymInt[2] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Replicate, 1) {
        "aten::replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
        "aten::replication_pad1d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[2] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, padding, out; Mode::Replicate, 2) {
        "aten::replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
        "aten::replication_pad2d.out(Tensor self, SymInt[4] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Replicate, 2) {
        "aten::replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
        "aten::replication_pad2d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[4] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
    forward(self, padding, out; Mode::Replicate, 3) {
        "aten::replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
        "aten::replication_pad3d.out(Tensor self, SymInt[6] padding, *, Tensor(a!) out) -> Tensor(a!)",
    }
    backward(grad_output, self, padding, out; Mode::Replicate, 3) {
        "aten::replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
        "aten::replication_pad3d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[6] padding, *, Tensor(a!) grad_input) -> Tensor(a!)",
    }
}

/// What the padding shows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Mode {
    /// The input mirrored at its first and last element.
    Reflect,
    /// The first or last element.
    Replicate,
}

impl Mode {
    fn name(self, rank: usize) -> String {
        format!("{}_pad{rank}d", if self == Mode::Reflect { "reflection" } else { "replication" })
    }
}

/// The spatial sizes of the result, and the padding before the first element of each dimension. `padding` names the last
/// dimension first.
fn output(call: &Call, mode: Mode, rank: usize, input: &Tensor, padding: &[i64]) -> Result<(Spatial, Spatial)> {
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
    // Before that an image may be left without rows, and without columns, but not without both.
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

fn forward(call: &mut Call, input: &Tensor, padding: &[i64], out: Out, mode: Mode, rank: usize) -> Result<()> {
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
    grad: &Tensor,
    input: &Tensor,
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
    // Replicated, the element of a corner was read by all that lies beyond it.
    check_turns(call, input.sizes.iter().zip(&expected).map(|(&from, &to)| (to - from).max(0) + 1).product())?;
    let result = result(call, out.given(), input.dtype, &input.sizes, is_channels_last(input))?;
    run(call, mode, true, &before, grad, &result)?;
    call.ret(result);
    Ok(())
}

fn run(call: &Call, mode: Mode, backward: bool, before: &[i64], from: &Tensor, to: &Tensor) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    if from.numel() == 0 {
        return fill_with(call, to, Number::Int(0)); // The gradient of an empty image.
    }
    let rank = before.len();
    let (from, to) = (batched(from, rank), batched(to, rank));
    let spec = Spec {
        mode,
        backward,
        // What is only moved is moved as bits.
        dtype: if backward { from.dtype } else { from.dtype.bits() },
        index: index_type(&[&from, &to]),
        channels_last: is_channels_last(&to),
        rank,
    };
    let arguments = Arguments {
        to: to.range(),
        from: from.range(),
        numel: to.numel(),
        channels: to.sizes[1],
        from_size: &from.sizes[2..],
        to_size: &to.sizes[2..],
        before,
        from_strides: &from,
        to_strides: &to,
    };
    call.run_threads(&spec, &arguments, to.numel() as u64)
}

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    mode: Mode,
    backward: bool,
    dtype: DType,
    index: ScalarType,
    channels_last: bool,
    rank: usize,
}

parameters! {
    Spec as s => Arguments, Parameters {
        to: WriteRange = s.dtype,
        from: ReadRange = s.dtype,
        numel: Index = s.index,
        channels: Index = s.index,
        from_size: PerAxis = s.rank,
        to_size: PerAxis = s.rank,
        /// Padding before the first element.
        before: PerAxis = s.rank,
        from_strides: ImageStrides = (s.index, s.rank),
        to_strides: ImageStrides = (s.index, s.rank),
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        if self.backward { "padding_backward" } else { "padding" }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        write(b, self, p);
    }
}

fn write<'b>(b: &'b Builder, spec: &Spec, p: Parameters<'b>) {
    let Spec { mode, index, rank, dtype, .. } = *spec;
    let Parameters { to, from, from_size, to_size, before, from_strides, to_strides, .. } = p;
    let i = linear_id(b, index);
    b.if_(i.lt(p.numel), || {
        let at = Coordinates::new(i, p.channels, &to_size, spec.channels_last);
        let image = from_strides.image(&at);
        let place = to_strides.element(&at);
        if !spec.backward {
            let shown: Vec<Value> = (0..rank).map(|d| shown(mode, at.at[d] - before[d], from_size[d])).collect();
            to.store(place, from.load(image + from_strides.pixel(&shown)));
            return;
        }
        let axis = |d: usize| Axis { at: at.at[d], size: to_size[d], padded: from_size[d], before: before[d] };
        let sum = b.var(b.constant_of(dtype.compute(), 0.0));
        let ranges: Vec<_> = (0..rank).map(|d| axis(d).candidates(b, mode)).collect();
        for_each(b, &ranges, |candidate| {
            let mut valid = b.bool(true);
            let mut places = Vec::new();
            for (d, &k) in candidate.iter().enumerate() {
                let (o, here) = axis(d).showing(mode, k);
                valid = valid & here;
                places.push(o);
            }
            b.if_(valid, || sum.set(sum.get() + from.load(image + from_strides.pixel(&places))));
        });
        to.store(place, sum.get());
    });
}

/// The element that the place `x` shows, counted from the first element, of a row of `size`.
fn shown<'b>(mode: Mode, x: Value<'b>, size: Value<'b>) -> Value<'b> {
    let last = size - 1;
    match mode {
        Mode::Replicate => x.max(0).min(last),
        Mode::Reflect => {
            let x = x.abs();
            // Mirrored at the last element where it is beyond.
            last - (last - x).abs()
        }
    }
}

/// An element of the input on one axis, and the sizes there.
struct Axis<'b> {
    at: Value<'b>,
    size: Value<'b>,
    padded: Value<'b>,
    before: Value<'b>,
}

impl<'b> Axis<'b> {
    /// First, end and step of the numbers from which [`Axis::showing`] makes the places that may show this element.
    fn candidates(&self, b: &'b Builder, mode: Mode) -> [Value<'b>; 3] {
        let (one, here) = (b.i32(1), self.at + self.before);
        match mode {
            // The element itself and its images in the two mirrors.
            Mode::Reflect => [b.i32(0), b.i32(3), one],
            Mode::Replicate => {
                let first = self.at.eq(0).select(here.min(0), here);
                let end = self.at.eq(self.size - 1).select((here + 1).max(self.padded), here + 1);
                [first.max(0), end.min(self.padded), one]
            }
        }
    }

    /// The place of a candidate, and whether it shows this element.
    fn showing(&self, mode: Mode, k: Value<'b>) -> (Value<'b>, Value<'b>) {
        if mode == Mode::Replicate {
            return (k, k.eq(k));
        }
        let last = self.size - 1;
        let here = self.at + self.before;
        let (left, right) = (self.before - self.at, 2 * last + self.before - self.at);
        let place = k.eq(0).select(here, k.eq(1).select(left, right));
        // What lies on a mirror is its own image.
        let apart = k.eq(0) | (k.eq(1) & self.at.gt(0)) | (k.eq(2) & self.at.lt(last));
        (place, apart & place.ge(0) & place.lt(self.padded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for mode in [Mode::Reflect, Mode::Replicate] {
            for (dtype, backward, index, channels_last, rank) in [
                (DType::U8, false, ScalarType::U32, true, 2),
                (DType::U64, false, ScalarType::U64, false, 3),
                (DType::BF16, true, ScalarType::U32, true, 3),
                (DType::F64, true, ScalarType::U64, false, 1),
            ] {
                let spec = Spec { mode, backward, dtype, index, channels_last, rank };
                crate::primitives::validate::accepted(&spec.build());
            }
        }
    }
}
