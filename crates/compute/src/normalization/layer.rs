//! Layer normalisation: over the last dimensions.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::normalization::rows::{Norm, Problem, fits_in_registers};
use crate::normalization::sums::Products;
use crate::normalization::terms::{NormalizationTerms, Sums};
use crate::reduction::axes::Axes;
use crate::view::{Dims, View};

/// An input as rows, one for each position in the dimensions before the normalised ones.
pub struct Rows {
    /// `[rows, n]`, contiguous.
    pub input: View,
    /// Multiplies each normalised row: `[n]`, contiguous.
    pub weight: Option<View>,
    /// Added to each weighted row: `[n]`, contiguous.
    pub bias: Option<View>,
    /// The statistics' shape: 1 in place of each normalised dimension.
    pub statistics: Dims,
    /// Number of elements of a row.
    pub n: i64,
}

impl Rows {
    /// A tensor with one number per row, expanded over the row.
    pub fn of_rows(&self, t: &View) -> View {
        t.as_strided(&self.input.sizes, &[1, 0], 0)
    }

    /// A tensor with one number per column, expanded over rows.
    pub fn of_columns(&self, t: &View) -> View {
        t.as_strided(&self.input.sizes, &[0, 1], 0)
    }

    /// A contiguous tensor in the shape of the rows.
    pub fn like_input(&self, t: &View) -> View {
        t.as_strided(&self.input.sizes, &self.input.strides, 0)
    }

    /// A contiguous tensor with one number per row, as a vector.
    pub fn flat(&self, t: &View) -> View {
        t.as_strided(&self.input.sizes[..1], &[1], 0)
    }

    /// The problem for normalisation in registers, if rows fit.
    pub fn in_registers(&self, norm: Norm) -> Option<Problem<'_>> {
        let (weight, bias) = (self.weight.as_ref(), self.bias.as_ref());
        fits_in_registers(self.n).then_some(Problem { norm, n: self.n, input: &self.input, weight, bias })
    }

    /// Writes the gradient of a weight, and of a bias if there are two results: sums over all rows.
    pub fn of_parameters(
        &self,
        cx: &Context,
        grad: &View,
        mean: Option<&View>,
        scale: &View,
        outs: &[&View],
    ) -> Result<()> {
        let (mean, scale) = (mean.map(|t| self.of_rows(t)), self.of_rows(scale));
        let products = Products { grad, x: &self.input, mean: mean.as_ref(), scale: Some(&scale), weight: None };
        products.sum(cx, Axes::of_dims(&[0], 2, false), outs)
    }

    /// Writes the input's gradient for rows that do not fit into registers.
    pub fn of_streamed_input(
        &self,
        cx: &Context,
        grad: &View,
        mean: Option<&View>,
        scale: &View,
        out: &View,
    ) -> Result<()> {
        let dtype = accumulator(self.input.dtype);
        let rows = &self.input.sizes[..1];
        let (product, total) = (cx.empty(dtype, rows)?, cx.empty(dtype, rows)?);
        let terms = NormalizationTerms {
            mean: mean.map(|t| self.of_rows(t)),
            scale: Some(self.of_rows(scale)),
            weight: self.weight.as_ref().map(|t| self.of_columns(t)),
            bias: None,
        };
        let products = Products {
            grad,
            x: &self.input,
            mean: terms.mean.as_ref(),
            scale: terms.scale.as_ref(),
            weight: terms.weight.as_ref(),
        };
        products.sum(cx, Axes::of_dims(&[1], 2, false), &[&product, &total])?;
        let sums = Sums {
            total: mean.map(|_| self.of_rows(&total)),
            product: Some(self.of_rows(&product)),
            count: self.n,
            weighted_after: false,
        };
        terms.gradient(cx, grad, &self.input, &sums, out)
    }
}
