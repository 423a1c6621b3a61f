//! The gradient of cross-entropy: `(softmax - one hot) * scale`, with a scale for each row.

use crate::loss::cross_entropy::problem::Spec;
use crate::loss::reduce::Reduce;
use crate::normalization::exponentials::AHEAD;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::rows::{Dealt, RowExtent, Share};
use dml_engine::interface::I64;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, math};

/// How many neighbours are moved in one access where rows begin anywhere, 0 where they are moved as
/// they are dealt.
pub fn unaligned(rows: &Dealt, inner: i64, dtype: DType, accessed: &[u64]) -> u32 {
    let all = 16 / dtype.bytes() as u32;
    let aligned = accessed.iter().all(|address| address.is_multiple_of(16));
    if inner == 1 && aligned && rows.chunk < all { all } else { 0 }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BackwardSpec {
    pub of: Spec,
    pub grad: DType,
    pub reduction: Reduce,
    /// See [`unaligned`].
    pub chunk: u32,
}

parameters! {
    pub BackwardSpec as s => BackwardArguments, BackwardParameters {
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

/// What the elements of a row have in common.
struct RowGradient<'b> {
    /// Its index in the type of indices; the number of classes if it does not count.
    class: Value<'b>,
    scale: Value<'b>,
    largest: Value<'b>,
    log: Value<'b>,
    /// What the target's class has, and what each class has besides.
    own: Value<'b>,
    share: Option<Value<'b>>,
}

impl<'b> RowGradient<'b> {
    fn element(&self, k: Value<'b>, x: Value<'b>) -> Value<'b> {
        let probability = math::exp(x - self.largest - self.log);
        let mut difference = probability - k.eq(self.class).select(self.own, 0.0);
        if let Some(share) = self.share {
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
        let row = Share::dealt(b, &self.of.rows, extent, self.of.input, 0);
        let at = row.place.row;
        let class = target.load(at).cast(ScalarType::I64);
        let counts = class.ne(ignore) & class.ge(0) & class.lt(extent.n.cast(ScalarType::I64));
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
            scale: counts.select(scale, 0.0),
            largest: statistics.load(at),
            log: statistics.load(extent.rows + at),
            own: if self.of.smooth { one - smoothing } else { one },
            share: self.of.smooth.then(|| smoothing / extent.n.cast(scalar)),
        };
        if self.chunk > 0 {
            b.if_(row.place.valid, || in_chunks(b, &row, self.chunk, input, out, &of_row));
        } else {
            row.walk(AHEAD, |row, at| {
                let x = row.load(input, at, 0.0);
                let values: Vec<Value> = at.iter().zip(x).map(|(&k, x)| of_row.element(k, x)).collect();
                row.store_all(out, at, &values);
            });
        }
    }
}

/// Goes through a row in chunks as they lie in memory. Its first and last chunk may belong to other
/// rows too, and go element by element.
fn in_chunks<'b>(
    b: &'b Builder,
    row: &Share<'b>,
    chunk: u32,
    input: Pointer<'b>,
    out: Pointer<'b>,
    of_row: &RowGradient<'b>,
) {
    let first = row.place.first;
    let head = first & (chunk - 1);
    let (start, end) = (first - head, head + row.n);
    b.for_(row.lane * chunk, end, row.lanes * chunk, |from| {
        let whole = from.ge(head) & (from + chunk).le(end);
        b.if_else(
            whole,
            || {
                let place = (start + from) >> chunk.ilog2();
                let x = input.load_chunk(place, chunk);
                let values: Vec<Value> = (0..chunk).zip(x).map(|(e, x)| of_row.element(from + e - head, x)).collect();
                out.store_chunk(place, &values);
            },
            || {
                b.for_(from.max(head), (from + chunk).min(end), 1, |at| {
                    let place = start + at;
                    out.store(place, of_row.element(at - head, input.load(place)));
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
                (Dealt::neighbours(index, 10, DType::BF16, &[]), 8),
                (Dealt::neighbours(index, 4096, DType::BF16, &[]), 0),
                (Dealt::neighbours(ScalarType::U64, 50_257, DType::BF16, &[]), 8),
                (Dealt::columns(index, 5, 9), 0),
            ] {
                for reduction in [Reduce::None, Reduce::Mean, Reduce::Sum] {
                    let of = Spec { input: DType::BF16, target: DType::U8, weight, smooth, rows };
                    accepted(&BackwardSpec { of, grad: DType::F32, reduction, chunk }.build());
                }
            }
        }
    }
}
