//! The gradient of cross-entropy: `(softmax - one hot) * scale`, with a scale for each row.

use crate::context::Context;
use crate::error::Result;
use crate::loss::cross_entropy::problem::{Problem, Spec, Unknown};
use crate::loss::reduce::Reduce;
use crate::normalization::exponentials::LOADS_IN_FLIGHT;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::rows::{RowDistribution, RowExtent, RowPart};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::I64;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, math};

/// Writes the gradient of the logits: `out` has their shape, strides and dtype. `grad` is the
/// gradient of the loss: one number, or one per target if losses are not reduced. `statistics`
/// (`[2, rows]`) are those of [`losses`](super::forward::losses), and `total` the divisor of a
/// mean; both are in the accumulator's dtype. All are contiguous except `out`.
pub fn gradient(
    cx: &Context,
    p: &Problem,
    grad: &View,
    statistics: &View,
    total: Option<&View>,
    out: &View,
) -> Result<()> {
    let of = p.spec(&[out]);
    let groups = of.rows.rows.groups(&p.extent);
    let arguments = BackwardArguments {
        out,
        grad,
        input: &p.input,
        target: &p.target,
        weight: p.weight.as_ref(),
        statistics,
        total,
        ignore: p.ignore,
        smoothing: Number::Double(p.smoothing),
        extent: p.extent,
    };
    let chunk = unaligned(&of.rows, p.extent.inner, of.input, &[p.input.data, out.data]);
    cx.run(&BackwardSpec { of, grad: grad.dtype, reduction: p.reduction, chunk }, &arguments, groups)
}

/// Number of adjacent elements of one access for rows at any address; 0 if they are accessed as
/// distributed.
fn unaligned(rows: &RowDistribution, inner: i64, dtype: DType, accessed: &[u64]) -> u32 {
    let all = 16 / dtype.bytes() as u32;
    let aligned = accessed.iter().all(|address| address.is_multiple_of(16));
    if inner == 1 && aligned && rows.chunk < all { all } else { 0 }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BackwardSpec {
    of: Spec,
    grad: DType,
    reduction: Reduce,
    /// See [`unaligned`].
    chunk: u32,
}

parameters! {
    BackwardSpec as s => BackwardArguments, BackwardParameters {
        out: Output = s.of.input,
        grad: Input = s.grad,
        input: Input = s.of.input,
        target: Input = s.of.target,
        weight: Option<Input> = s.of.weight,
        statistics: Input = s.of.computed(),
        total: Option<Input> = (s.reduction == Reduce::Mean).then(|| s.of.computed()),
        ignore: I64,
        smoothing: InDType = s.of.computed(),
        extent: RowExtent = s.of.index(),
    }
}

/// Values that the elements of a row share.
struct RowGradient<'b> {
    /// Index of the target's class, in the index type; the number of classes if the target is
    /// ignored.
    class: Value<'b>,
    scale: Value<'b>,
    largest: Value<'b>,
    log: Value<'b>,
    /// Gradient factors: of the target's class, and of every class.
    target_gradient: Value<'b>,
    class_gradient: Option<Value<'b>>,
}

impl<'b> RowGradient<'b> {
    fn element(&self, k: Value<'b>, x: Value<'b>) -> Value<'b> {
        let probability = math::exp(x - self.largest - self.log);
        let mut difference = probability - k.eq(self.class).select(self.target_gradient, 0.0);
        if let Some(share) = self.class_gradient {
            difference = difference - share;
        }
        difference * self.scale
    }
}

impl KernelSpec for BackwardSpec {
    fn name(&self) -> &'static str {
        "cross_entropy_backward"
    }

    fn write<'b>(&self, b: &'b Builder, p: BackwardParameters<'b>) {
        let BackwardParameters { out, grad, input, target, weight, statistics, total, ignore, smoothing, extent } = p;
        let (scalar, index) = (self.of.computed().compute(), self.of.index());
        let row = RowPart::part_of_row(b, &self.of.rows, extent, self.of.input, 0);
        let at = row.position.row;
        let class = target.load(at).cast(ScalarType::I64);
        let exists = class.ge(0) & class.lt(extent.n.cast(ScalarType::I64));
        let is_nan = self.of.unknown == Unknown::IsNan;
        let counts = if is_nan { exists } else { class.ne(ignore) & exists };
        let chosen = counts.select(class, 0).cast(index);
        let mut scale = grad.load(if self.reduction == Reduce::None { at } else { at.like(0.0) }).cast(scalar);
        if let Some(total) = total {
            scale = scale / total.load(0);
        }
        if let Some(weight) = weight {
            scale = scale * weight.load(chosen).cast(scalar);
        }
        let one = scale.like(1.0);
        let of_row = RowGradient {
            class: counts.select(chosen, extent.n),
            scale: counts.select(scale, if is_nan { f64::NAN } else { 0.0 }),
            largest: statistics.load(at),
            log: statistics.load(extent.rows + at),
            target_gradient: if self.of.smooth { one - smoothing } else { one },
            class_gradient: self.of.smooth.then(|| smoothing / extent.n.cast(scalar)),
        };
        if self.chunk > 0 {
            b.if_(row.position.valid, || in_chunks(b, &row, self.chunk, input, out, &of_row));
        } else {
            row.for_each_chunk(LOADS_IN_FLIGHT, |row, at| {
                let x = row.load(input, at, 0.0);
                let values: Vec<Value> = at.iter().zip(x).map(|(&k, x)| of_row.element(k, x)).collect();
                row.store_all(out, at, &values);
            });
        }
    }
}

/// Iterates over a row in aligned chunks of memory. The row's first and last chunk may be shared
/// with other rows, and are stored element by element.
fn in_chunks<'b>(
    b: &'b Builder,
    row: &RowPart<'b>,
    chunk: u32,
    input: Pointer<'b>,
    out: Pointer<'b>,
    of_row: &RowGradient<'b>,
) {
    let first = row.position.first;
    let head = first & (chunk - 1);
    let (start, end) = (first - head, head + row.n);
    b.for_(row.lane * chunk, end, row.lanes * chunk, |from| {
        let whole = from.ge(head) & (from + chunk).le(end);
        b.if_else(
            whole,
            || {
                let offset = (start + from) >> chunk.ilog2();
                let x = input.load_chunk(offset, chunk);
                let values: Vec<Value> = (0..chunk).zip(x).map(|(e, x)| of_row.element(from + e - head, x)).collect();
                out.store_chunk(offset, &values);
            },
            || {
                b.for_(from.max(head), (from + chunk).min(end), 1, |at| {
                    let offset = start + at;
                    out.store(offset, of_row.element(at - head, input.load(offset)));
                });
            },
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        let index = ScalarType::U32;
        for (smooth, weight) in [(false, None), (true, None), (false, Some(DType::F32))] {
            for (rows, chunk) in [
                (RowDistribution::contiguous(index, 10, DType::BF16, &[]), 8),
                (RowDistribution::contiguous(index, 4096, DType::BF16, &[]), 0),
                (RowDistribution::contiguous(ScalarType::U64, 50_257, DType::BF16, &[]), 8),
                (RowDistribution::columns(index, 5, 9), 0),
            ] {
                for reduction in [Reduce::None, Reduce::Mean, Reduce::Sum] {
                    let of =
                        Spec { input: DType::BF16, target: DType::U8, weight, smooth, unknown: Unknown::IsNan, rows };
                    accepted(&BackwardSpec { of, grad: DType::F32, reduction, chunk }.build());
                }
            }
        }
    }
}
