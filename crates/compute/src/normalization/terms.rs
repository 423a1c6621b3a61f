//! The operands of a normalisation, and of its gradient.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::normalization::functions::{NORMALIZE, NORMALIZE_BACKWARD};
use crate::pointwise::kernel::{self, Operand, Operands};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::Value;

/// The operands of a normalisation: views of the input's shape, most of them expanded.
#[derive(Default)]
pub struct NormalizationTerms {
    /// Subtracted from the input.
    pub mean: Option<View>,
    /// The inverse of the deviation.
    pub scale: Option<View>,
    /// Multiplies the normalised input.
    pub weight: Option<View>,
    /// Added to the weighted input.
    pub bias: Option<View>,
}

impl NormalizationTerms {
    /// `out = (x - mean) * scale * weight + bias`, without absent operands.
    pub fn normalize(&self, cx: &Context, x: &View, out: &View) -> Result<()> {
        let terms = [Some(x), self.mean.as_ref(), self.scale.as_ref(), self.weight.as_ref(), self.bias.as_ref()];
        let (present, inputs) = (presence(&terms), inputs(&terms));
        kernel::run_operands(cx, NORMALIZE.with(present), &[out], &inputs, accumulator(x.dtype))
    }

    /// The input's gradient: `(g * weight - (total + y * product) / n) * scale` with
    /// `y = (x - mean) * scale`.
    pub fn gradient(&self, cx: &Context, grad: &View, x: &View, sums: &Sums, out: &View) -> Result<()> {
        let (total, product) = (sums.total.as_ref(), sums.product.as_ref());
        let weight = self.weight.as_ref();
        let terms = [Some(grad), Some(x), self.mean.as_ref(), self.scale.as_ref(), weight, total, product];
        let (present, mut inputs) = (presence(&terms), inputs(&terms));
        let dtype = accumulator(x.dtype);
        inputs.push(Operand::Number(Number::Double(1.0 / sums.count as f64)));
        let mut flags = present;
        flags[terms.len()] = sums.weighted_after;
        kernel::run_operands(cx, NORMALIZE_BACKWARD.with(flags), &[out], &inputs, dtype)
    }
}

/// Sums over elements that are normalised together, as views of the input's shape.
pub struct Sums {
    /// Sum of the weighted gradient.
    pub total: Option<View>,
    /// Sum of the weighted gradient times the normalised input.
    pub product: Option<View>,
    /// Number of elements that are normalised together.
    pub count: i64,
    /// The weight is one number for all of them, and the sums do not include it.
    pub weighted_after: bool,
}

/// Which of the operands are present.
pub fn presence(terms: &[Option<&View>]) -> [bool; 8] {
    std::array::from_fn(|i| terms.get(i).is_some_and(Option::is_some))
}

/// The operands that are present.
fn inputs<'t>(terms: &[Option<&'t View>]) -> Operands<'t> {
    terms.iter().flatten().map(|&t| Operand::Tensor(t)).collect()
}

/// Operand `i`, given the values of the present operands and their [`presence`].
pub fn pick<'b>(values: &[Value<'b>], presence: &[bool; 8], i: usize) -> Option<Value<'b>> {
    let before = presence[..i].iter().filter(|&&present| present).count();
    presence[i].then(|| values[before])
}

/// `x - y`, or `x` if there is no `y`.
pub fn minus<'b>(x: Value<'b>, y: Option<Value<'b>>) -> Value<'b> {
    y.map_or(x, |y| x - y)
}

/// `x + y`, or `x` if there is no `y`.
pub fn plus<'b>(x: Value<'b>, y: Option<Value<'b>>) -> Value<'b> {
    y.map_or(x, |y| x + y)
}

/// `x * y`, or `x` if there is no `y`.
pub fn times<'b>(x: Value<'b>, y: Option<Value<'b>>) -> Value<'b> {
    y.map_or(x, |y| x * y)
}
