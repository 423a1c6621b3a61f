//! Padding by reflection and by replication, over one to three spatial dimensions. (Constant and
//! circular padding are composed of copies.)

use crate::context::Context;
use crate::error::Result;
use crate::movement::copy::fill_with;
use crate::primitives::kernel::KernelSpec;
use crate::scalar::Scalar as Number;
use crate::spatial::geometry::{Coordinates, ImageStrides, PerAxis, batched, for_each, index_type};
use crate::view::View;
use crate::view::memory_format::is_channels_last;
use dml_engine::interface::{Index, ReadRange, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// The contents of the padding.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The input reflected at its first and last element.
    Reflect,
    /// The nearest element.
    Replicate,
}

impl Mode {
    /// The name of this padding in messages.
    pub fn name(self, rank: usize) -> String {
        format!("{}_pad{rank}d", if self == Mode::Reflect { "reflection" } else { "replication" })
    }
}

/// Pads `from` to `to`, by `before` elements at the beginning of each spatial dimension; if
/// `backward`, writes the gradient of the input to `to` from the gradient of the result. Both are
/// images, `[batch, channels, ..]` or without a batch, of any strides and one dtype.
pub fn run(cx: &Context, mode: Mode, backward: bool, before: &[i64], from: &View, to: &View) -> Result<()> {
    if to.numel() == 0 {
        return Ok(());
    }
    if from.numel() == 0 {
        return fill_with(cx, to, Number::Int(0)); // The gradient of an empty image.
    }
    let rank = before.len();
    let (from, to) = (batched(from, rank), batched(to, rank));
    let spec = Spec {
        mode,
        backward,
        // Elements that are only copied are copied as bits.
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
    cx.run_threads(&spec, &arguments, to.numel() as u64)
}

/// Specialisation: everything that changes the code.
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
        let offset = to_strides.element(&at);
        if !spec.backward {
            let source_index: Vec<Value> =
                (0..rank).map(|d| source_index(mode, at.at[d] - before[d], from_size[d])).collect();
            to.store(offset, from.load(image + from_strides.pixel(&source_index)));
            return;
        }
        let axis = |d: usize| Axis { at: at.at[d], size: to_size[d], padded: from_size[d], before: before[d] };
        let sum = b.var(b.constant_of(dtype.compute(), 0.0));
        let ranges: Vec<_> = (0..rank).map(|d| axis(d).candidates(b, mode)).collect();
        for_each(b, &ranges, |candidate| {
            let mut valid = b.bool(true);
            let mut coordinates = Vec::new();
            for (d, &k) in candidate.iter().enumerate() {
                let (o, here) = axis(d).candidate_position(mode, k);
                valid = valid & here;
                coordinates.push(o);
            }
            b.if_(valid, || sum.set(sum.get() + from.load(image + from_strides.pixel(&coordinates))));
        });
        to.store(offset, sum.get());
    });
}

/// The element at the padded position `x`, relative to the first element, of a row of `size`.
fn source_index<'b>(mode: Mode, x: Value<'b>, size: Value<'b>) -> Value<'b> {
    let last = size - 1;
    match mode {
        Mode::Replicate => x.max(0).min(last),
        Mode::Reflect => {
            let x = x.abs();
            // Reflected at the last element if it is beyond.
            last - (last - x).abs()
        }
    }
}

/// An element of the input on one axis, and the sizes of the axis.
struct Axis<'b> {
    at: Value<'b>,
    size: Value<'b>,
    padded: Value<'b>,
    before: Value<'b>,
}

impl<'b> Axis<'b> {
    /// First, end and step of the numbers from which [`Axis::candidate_position`] makes the
    /// positions that may have this element.
    fn candidates(&self, b: &'b Builder, mode: Mode) -> [Value<'b>; 3] {
        let (one, here) = (b.i32(1), self.at + self.before);
        match mode {
            // The element itself and its two reflections.
            Mode::Reflect => [b.i32(0), b.i32(3), one],
            Mode::Replicate => {
                let first = self.at.eq(0).select(here.min(0), here);
                let end = self.at.eq(self.size - 1).select((here + 1).max(self.padded), here + 1);
                [first.max(0), end.min(self.padded), one]
            }
        }
    }

    /// The position of a candidate, and whether it has this element.
    fn candidate_position(&self, mode: Mode, k: Value<'b>) -> (Value<'b>, Value<'b>) {
        if mode == Mode::Replicate {
            return (k, k.eq(k));
        }
        let last = self.size - 1;
        let here = self.at + self.before;
        let (left, right) = (self.before - self.at, 2 * last + self.before - self.at);
        let position = k.eq(0).select(here, k.eq(1).select(left, right));
        // An element on the axis of reflection is its own reflection.
        let apart = k.eq(0) | (k.eq(1) & self.at.gt(0)) | (k.eq(2) & self.at.lt(last));
        (position, apart & position.ge(0) & position.lt(self.padded))
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
