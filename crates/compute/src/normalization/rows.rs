//! Layer and RMS normalisation of rows that fit into the registers of a workgroup: each element is
//! read once.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::rows::{Extent, RowDistribution, RowExtent, RowPart, pairwise};
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, math};
use smallvec::SmallVec;

/// The normalisation of a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Norm {
    /// By its mean and deviation.
    Layer,
    /// By the root of its mean square.
    Rms,
}

/// Rows of contiguous tensors.
pub struct Problem<'t> {
    /// The normalisation.
    pub norm: Norm,
    /// Number of elements of a row.
    pub n: i64,
    /// `[rows, n]`.
    pub input: &'t View,
    /// `[n]`: multiplies each normalised row.
    pub weight: Option<&'t View>,
    /// `[n]`: added to each weighted row.
    pub bias: Option<&'t View>,
}

/// Whether rows of `n` elements fit.
pub fn fits_in_registers(n: i64) -> bool {
    n > 0 && RowDistribution::contiguous(ScalarType::U32, n, DType::F32, &[]).register_elements > 0
}

/// Specialisation common to both kernels: everything that changes their code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    norm: Norm,
    /// The distribution of rows, whose elements are held in registers.
    rows: RowDistribution,
    input: DType,
    weight: Option<DType>,
    /// The dtype of mean and scale.
    statistics: DType,
}

impl Spec {
    /// The dtype of means, if there are any.
    fn mean(&self) -> Option<DType> {
        (self.norm == Norm::Layer).then_some(self.statistics)
    }
}

impl Problem<'_> {
    /// The specialisation of a kernel that also accesses `others` row by row.
    fn spec(&self, statistics: DType, others: &[&View]) -> Spec {
        let tensors = others.iter().copied().chain([self.input]).chain(self.weight).chain(self.bias);
        let accessed: SmallVec<[(u64, u64); 4]> = tensors.map(|t| (t.data, t.dtype.bytes())).collect();
        let rows = RowDistribution::contiguous(index_type(self.input.numel()), self.n, self.input.dtype, &accessed);
        let weight = self.weight.map(|t| t.dtype);
        Spec { norm: self.norm, rows, input: self.input.dtype, weight, statistics }
    }

    fn extent(&self) -> Extent {
        Extent { rows: self.input.numel() / self.n, n: self.n, inner: 1 }
    }

    /// Writes the normalised rows and, one number per row, their means (not for [`Norm::Rms`]) and
    /// scales.
    pub fn forward(&self, cx: &Context, eps: f64, out: &View, mean: Option<&View>, scale: &View) -> Result<()> {
        if self.input.numel() == 0 {
            return Ok(());
        }
        let (of, extent) = (self.spec(scale.dtype, &[out]), self.extent());
        let groups = of.rows.rows.groups(&extent);
        let arguments = ForwardArguments {
            out,
            scale,
            mean,
            input: self.input,
            weight: self.weight,
            bias: self.bias,
            eps: Number::Double(eps),
            extent,
        };
        cx.run(&ForwardSpec { of, bias: self.bias.map(|t| t.dtype) }, &arguments, groups)
    }

    /// Writes the input's gradient.
    pub fn backward(&self, cx: &Context, grad: &View, mean: Option<&View>, scale: &View, out: &View) -> Result<()> {
        if self.input.numel() == 0 {
            return Ok(());
        }
        let (spec, extent) = (self.spec(scale.dtype, &[out, grad]), self.extent());
        let groups = spec.rows.rows.groups(&extent);
        let arguments = BackwardArguments { out, scale, mean, input: self.input, weight: self.weight, grad, extent };
        cx.run(&BackwardSpec(spec), &arguments, groups)
    }
}

/// Normalised rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ForwardSpec {
    of: Spec,
    bias: Option<DType>,
}

parameters! {
    ForwardSpec as s => ForwardArguments, ForwardParameters {
        out: Output = s.of.input,
        scale: Output = s.of.statistics,
        mean: Option<Output> = s.of.mean(),
        input: Input = s.of.input,
        weight: Option<Input> = s.of.weight,
        bias: Option<Input> = s.bias,
        eps: InDType = accumulator(s.of.input),
        extent: RowExtent = s.of.rows.rows.index,
    }
}

impl KernelSpec for ForwardSpec {
    fn name(&self) -> &'static str {
        "normalize_rows"
    }

    fn write<'b>(&self, b: &'b Builder, p: ForwardParameters<'b>) {
        let ForwardParameters { out, scale, mean, input, weight, bias, eps, extent } = p;
        let scalar = accumulator(self.of.input).compute();
        let share = RowPart::part_of_row(b, &self.of.rows, extent, self.of.input, 2);
        let elements = RowElements::new(&share, self.of.rows.register_elements, scalar);
        let x = share.load(input, &elements.at, 0.0);
        let centred = mean.map_or(CentredElements { mean: None, values: x.clone() }, |_| elements.centred(&x));
        let factor = math::rsqrt(elements.mean_square(&centred) + eps);
        b.if_(share.position.valid & share.position.lane.eq(0), || {
            scale.store(share.position.row, factor);
            if let (Some(pointer), Some(value)) = (mean, centred.mean) {
                pointer.store(share.position.row, value);
            }
        });
        let mut y: Vec<Value> = centred.values.iter().map(|&x| x * factor).collect();
        if let Some(weight) = weight {
            y = y.into_iter().zip(share.load_shared(weight, &elements.at, scalar)).map(|(y, w)| y * w).collect();
        }
        if let Some(bias) = bias {
            y = y.into_iter().zip(share.load_shared(bias, &elements.at, scalar)).map(|(y, b)| y + b).collect();
        }
        share.store_all(out, &elements.at, &y);
    }
}

/// The input's gradient: `(g * weight - mean(g * weight) - y * mean(g * weight * y)) * scale`,
/// without the first mean if none is subtracted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BackwardSpec(Spec);

parameters! {
    BackwardSpec as s => BackwardArguments, BackwardParameters {
        out: Output = s.0.input,
        scale: Input = s.0.statistics,
        mean: Option<Input> = s.0.mean(),
        input: Input = s.0.input,
        weight: Option<Input> = s.0.weight,
        grad: Input = s.0.input,
        extent: RowExtent = s.0.rows.rows.index,
    }
}

impl KernelSpec for BackwardSpec {
    fn name(&self) -> &'static str {
        "normalize_rows"
    }

    fn write<'b>(&self, b: &'b Builder, p: BackwardParameters<'b>) {
        let BackwardParameters { out, scale, mean, input, weight, grad, extent } = p;
        let scalar = accumulator(self.0.input).compute();
        let share = RowPart::part_of_row(b, &self.0.rows, extent, self.0.input, 2);
        let elements = RowElements::new(&share, self.0.rows.register_elements, scalar);
        let of_row = |t: Pointer<'b>| t.load(share.position.row).cast(scalar);
        backward(&elements, input, grad, weight, mean.map(of_row), of_row(scale), out);
    }
}

/// The elements of its row that an invocation holds.
struct RowElements<'s, 'b> {
    share: &'s RowPart<'b>,
    at: Vec<Value<'b>>,
    /// Number of elements of the row.
    count: Value<'b>,
}

/// Elements minus their mean, if it is subtracted; 0 beyond the row.
struct CentredElements<'b> {
    mean: Option<Value<'b>>,
    values: Vec<Value<'b>>,
}

impl<'b> RowElements<'_, 'b> {
    fn new<'s>(share: &'s RowPart<'b>, register_elements: u32, scalar: ScalarType) -> RowElements<'s, 'b> {
        RowElements { share, at: share.elements(register_elements), count: share.n.cast(scalar) }
    }

    fn total(&self, values: &[Value<'b>]) -> Value<'b> {
        pairwise(values.to_vec(), |x, y| x + y)
    }

    /// Subtracts the mean twice: the second mean is the rounding error of the first difference.
    fn centred(&self, x: &[Value<'b>]) -> CentredElements<'b> {
        let within = |values: Vec<Value<'b>>| -> Vec<Value<'b>> {
            self.at.iter().zip(values).map(|(&k, v)| self.share.has(k).select(v, 0.0)).collect()
        };
        let first = self.share.sum(self.total(x)) / self.count;
        let near = within(x.iter().map(|&x| x - first).collect());
        let rest = self.share.sum(self.total(&near)) / self.count;
        let values = within(near.iter().map(|&d| d - rest).collect());
        CentredElements { mean: Some(first + rest), values }
    }

    fn mean_square(&self, centred: &CentredElements<'b>) -> Value<'b> {
        let squares: Vec<Value> = centred.values.iter().map(|&d| d * d).collect();
        self.share.sum(self.total(&squares)) / self.count
    }
}

fn backward<'b>(
    elements: &RowElements<'_, 'b>,
    input: Pointer<'b>,
    grad: Pointer<'b>,
    weight: Option<Pointer<'b>>,
    mean: Option<Value<'b>>,
    scale: Value<'b>,
    out: Pointer<'b>,
) {
    let share = elements.share;
    let x = share.load(input, &elements.at, 0.0);
    let mut g = share.load(grad, &elements.at, 0.0);
    if let Some(weight) = weight {
        let columns = share.load_shared(weight, &elements.at, scale.scalar());
        g = g.iter().zip(columns).map(|(&g, w)| g * w).collect();
    }
    let y: Vec<Value> = x.iter().map(|&x| mean.map_or(x, |m| x - m) * scale).collect();
    let products: Vec<Value> = g.iter().zip(&y).map(|(&g, &y)| g * y).collect();
    let mut parts = vec![elements.total(&products)];
    if mean.is_some() {
        parts.push(elements.total(&g));
    }
    let means: Vec<Value> = share.all(&parts, |x, y| x + y).into_iter().map(|s| s / elements.count).collect();
    let gradient = |(&g, &y): (&Value<'b>, &Value<'b>)| {
        let centred = means[1..].iter().fold(g, |g, &m| g - m);
        (centred - y * means[0]) * scale
    };
    share.store_all(out, &elements.at, &g.iter().zip(&y).map(gradient).collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for norm in [Norm::Layer, Norm::Rms] {
            for (input, other, n) in [(DType::F16, DType::F32, 3), (DType::F64, DType::F64, 4000)] {
                for parameter in [None, Some(other)] {
                    let rows = RowDistribution::contiguous(ScalarType::U64, n, input, &[]);
                    let spec = Spec { norm, rows, input, weight: parameter, statistics: other };
                    accepted(&BackwardSpec(spec.clone()).build());
                    accepted(&ForwardSpec { of: spec, bias: parameter }.build());
                }
            }
        }
    }
}
