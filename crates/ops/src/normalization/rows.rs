//! Layer and RMS normalisation of rows that fit into the registers of a workgroup: each is read once.

use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::primitives::launch::GROUP;
use crate::primitives::rows::{Rows, Share, pairwise};
use crate::tensor::Tensor;
use crate::tensor::promote::accumulator;
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value, math};

/// What a row is normalised by.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Norm {
    /// Its mean and deviation.
    Layer,
    /// The root of its mean square.
    Rms,
}

/// Rows of contiguous tensors.
pub struct Problem<'t> {
    pub norm: Norm,
    /// Elements of a row.
    pub n: i64,
    pub input: &'t Tensor,
    pub weight: Option<&'t Tensor>,
    pub bias: Option<&'t Tensor>,
}

/// Whether rows of this many elements fit.
pub fn fit(n: i64) -> bool {
    n > 0 && Rows::of_neighbours(Scalar::U32, n).1 > 0
}

struct Shape {
    norm: Norm,
    backward: bool,
    rows: Rows,
    held: u32,
    input: DType,
    /// Dtypes of weight and bias.
    parameters: [Option<DType>; 2],
    /// Of mean and scale.
    statistics: DType,
}

impl Shape {
    fn new(p: &Problem, backward: bool, statistics: DType) -> Shape {
        let index = crate::tensor::layout::index_type(p.input.numel());
        let (rows, held) = Rows::of_neighbours(index, p.n);
        let parameters = [p.weight, p.bias].map(|t| t.map(|t| t.dtype));
        Shape { norm: p.norm, backward, rows, held, input: p.input.dtype, parameters, statistics }
    }

    fn key(&self) -> [u32; 6] {
        let [weight, bias] = self.parameters.map(|d| d.map_or(0, |d| d as u32 + 1));
        let dtypes = self.input as u32 | weight << 8 | bias << 16 | (self.statistics as u32) << 24;
        [self.norm as u32, u32::from(self.backward), self.rows.code(), self.held, dtypes, 0]
    }
}

impl Problem<'_> {
    fn rows(&self) -> i64 {
        self.input.numel() / self.n
    }

    /// Writes the normalised rows and, one number a row, their means (not for [`Norm::Rms`]) and scales.
    pub fn forward(&self, call: &Call, eps: f64, out: &Tensor, mean: Option<&Tensor>, scale: &Tensor) -> Result<()> {
        if self.input.numel() == 0 {
            return Ok(());
        }
        let shape = Shape::new(self, false, scale.dtype);
        let kernel = call.kernel("normalize_rows", shape.key(), || build(&shape))?;
        let mut launcher = call.launch(kernel).write(out).write(scale);
        if let Some(mean) = mean {
            launcher = launcher.write(mean);
        }
        for t in [Some(self.input), self.weight, self.bias].into_iter().flatten() {
            launcher = launcher.read(t);
        }
        let launcher = launcher.number(accumulator(self.input.dtype), Number::Double(eps));
        shape.rows.run(launcher, self.rows(), self.n, 1)
    }

    /// Writes the input's gradient.
    pub fn backward(
        &self,
        call: &Call,
        grad: &Tensor,
        mean: Option<&Tensor>,
        scale: &Tensor,
        out: &Tensor,
    ) -> Result<()> {
        if self.input.numel() == 0 {
            return Ok(());
        }
        let shape = Shape::new(self, true, scale.dtype);
        let kernel = call.kernel("normalize_rows", shape.key(), || build(&shape))?;
        let mut launcher = call.launch(kernel).write(out).read(scale);
        if let Some(mean) = mean {
            launcher = launcher.read(mean);
        }
        for t in [Some(self.input), self.weight, Some(grad)].into_iter().flatten() {
            launcher = launcher.read(t);
        }
        shape.rows.run(launcher, self.rows(), self.n, 1)
    }
}

fn build(shape: &Shape) -> Kernel {
    let b = Builder::new("normalize_rows", [GROUP, 1, 1]);
    write(&b, shape);
    b.finish()
}

fn write(b: &Builder, shape: &Shape) {
    let (out, scale) = (b.pointer("out", shape.input), b.pointer("scale", shape.statistics));
    let mean = (shape.norm == Norm::Layer).then(|| b.pointer("mean", shape.statistics));
    let input = b.pointer("input", shape.input);
    let weight = shape.parameters[0].map(|d| b.pointer("weight", d));
    let scalar = accumulator(shape.input).compute();
    if shape.backward {
        let grad = b.pointer("grad", shape.input);
        let share = Share::new(b, &shape.rows, shape.input, 2);
        let held = Held::new(&share, shape, scalar);
        let (scale, mean) =
            (scale.load(share.place.row).cast(scalar), mean.map(|m| m.load(share.place.row).cast(scalar)));
        backward(&held, input, grad, weight, mean, scale, out);
    } else {
        let bias = shape.parameters[1].map(|d| b.pointer("bias", d));
        let eps = b.param("eps", scalar);
        let share = Share::new(b, &shape.rows, shape.input, 2);
        let held = Held::new(&share, shape, scalar);
        let x = share.load(input, &held.at, 0.0);
        let centred = mean.map_or(Centred { mean: None, values: x.clone() }, |_| held.centred(&x));
        let factor = math::rsqrt(held.mean_square(&centred) + eps);
        b.if_(share.place.valid & share.place.lane.eq(0), || {
            scale.store(share.place.row, factor);
            if let (Some(pointer), Some(value)) = (mean, centred.mean) {
                pointer.store(share.place.row, value);
            }
        });
        for (&k, &x) in held.at.iter().zip(&centred.values) {
            let column = k.min(share.n - 1);
            let mut y = x * factor;
            if let Some(weight) = weight {
                y = y * weight.load(column).cast(scalar);
            }
            if let Some(bias) = bias {
                y = y + bias.load(column).cast(scalar);
            }
            share.store(out, k, y);
        }
    }
}

/// The elements that an invocation holds of its row.
struct Held<'s, 'b> {
    share: &'s Share<'b>,
    at: Vec<Value<'b>>,
    /// Elements of the row.
    count: Value<'b>,
}

/// Elements less their mean, where it is subtracted; 0 beyond the row.
struct Centred<'b> {
    mean: Option<Value<'b>>,
    values: Vec<Value<'b>>,
}

impl<'b> Held<'_, 'b> {
    fn new<'s>(share: &'s Share<'b>, shape: &Shape, scalar: Scalar) -> Held<'s, 'b> {
        Held { share, at: share.elements(shape.held), count: share.n.cast(scalar) }
    }

    fn total(&self, values: &[Value<'b>]) -> Value<'b> {
        pairwise(values.to_vec(), |x, y| x + y)
    }

    /// Subtracts the mean twice: what rounding left in the first difference is a mean too.
    fn centred(&self, x: &[Value<'b>]) -> Centred<'b> {
        let within = |values: Vec<Value<'b>>| -> Vec<Value<'b>> {
            self.at.iter().zip(values).map(|(k, v)| k.lt(self.share.n).select(v, 0.0)).collect()
        };
        let first = self.share.sum(self.total(x)) / self.count;
        let near = within(x.iter().map(|&x| x - first).collect());
        let rest = self.share.sum(self.total(&near)) / self.count;
        let values = within(near.iter().map(|&d| d - rest).collect());
        Centred { mean: Some(first + rest), values }
    }

    fn mean_square(&self, centred: &Centred<'b>) -> Value<'b> {
        let squares: Vec<Value> = centred.values.iter().map(|&d| d * d).collect();
        self.share.sum(self.total(&squares)) / self.count
    }
}

/// `(g * weight - mean(g * weight) - y * mean(g * weight * y)) * scale`, without the first mean if none is subtracted.
fn backward<'b>(
    held: &Held<'_, 'b>,
    input: Pointer<'b>,
    grad: Pointer<'b>,
    weight: Option<Pointer<'b>>,
    mean: Option<Value<'b>>,
    scale: Value<'b>,
    out: Pointer<'b>,
) {
    let share = held.share;
    let x = share.load(input, &held.at, 0.0);
    let mut g = share.load(grad, &held.at, 0.0);
    if let Some(weight) = weight {
        let scalar = scale.scalar();
        let columns = held.at.iter().map(|&k| weight.load(k.min(share.n - 1)).cast(scalar));
        g = g.iter().zip(columns).map(|(&g, w)| g * w).collect();
    }
    let y: Vec<Value> = x.iter().map(|&x| mean.map_or(x, |m| x - m) * scale).collect();
    let products: Vec<Value> = g.iter().zip(&y).map(|(&g, &y)| g * y).collect();
    let mut parts = vec![held.total(&products)];
    if mean.is_some() {
        parts.push(held.total(&g));
    }
    let means: Vec<Value> = share.all(&parts, |x, y| x + y).into_iter().map(|s| s / held.count).collect();
    for ((&k, &g), &y) in held.at.iter().zip(&g).zip(&y) {
        let centred = means[1..].iter().fold(g, |g, &m| g - m);
        share.store(out, k, (centred - y * means[0]) * scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for norm in [Norm::Layer, Norm::Rms] {
            for backward in [false, true] {
                for (input, other, n) in [(DType::F16, DType::F32, 3), (DType::F64, DType::F64, 4000)] {
                    for parameters in [[None, None], [Some(other), Some(other)]] {
                        let (rows, held) = Rows::of_neighbours(Scalar::U64, n);
                        let shape = Shape { norm, backward, rows, held, input, parameters, statistics: other };
                        accepted(&build(&shape));
                    }
                }
            }
        }
    }
}
