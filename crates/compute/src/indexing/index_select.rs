//! Reading and writing slices along a dimension by index: index_select and the like.

use crate::context::Context;
use crate::error::Result;
use crate::indexing::arguments::without;
use crate::indexing::functions::INDEX_ADD;
use crate::pointwise::kernel::{self, Input};
use crate::primitives::combine::Combine;
use crate::primitives::indexed_access::{self, Action, IndexIteration, Selector};
use crate::primitives::keyed_reduction::{self, KeyedContributions};
use crate::scalar::Scalar as Number;
use crate::view::{Dims, View};
use dml_kernel::DType;

/// Slices along a dimension that are selected by index.
pub struct Slices<'t> {
    /// The dimension.
    pub dim: usize,
    /// The indices, 1-dim.
    pub index: &'t View,
    /// Whether negative indices count from the end.
    pub negative: bool,
}

impl Slices<'_> {
    /// Runs `action` on the selected slices of `t`. `sizes` are those of the other tensor.
    pub fn run(&self, cx: &Context, t: &View, sizes: &[i64], action: &Action) -> Result<()> {
        let mut strides = Dims::from_elem(0, sizes.len());
        strides[self.dim] = self.index.strides[0];
        let index = self.index.as_strided(sizes, &strides, 0);
        let selectors = [Selector { index, size: t.sizes[self.dim], stride: t.strides[self.dim], dim: self.dim }];
        let own = without(&t.strides, self.dim);
        let iteration =
            IndexIteration { sizes, base: t, strides: &own, selectors: &selectors, negative: self.negative };
        indexed_access::run(cx, &iteration, action)
    }

    /// The indices as u32 in the range of `t`'s slices. An index out of range is reported.
    pub fn numbers(&self, cx: &Context, t: &View) -> Result<View> {
        let (n, size) = (self.index.numel(), t.sizes[self.dim]);
        let row = cx.empty(DType::U32, &[n])?;
        let none = keyed_reduction::invalid_key(cx.name, &[size])?;
        let selectors = [Selector { index: self.index.clone(), size, stride: 1, dim: self.dim }];
        let iteration =
            IndexIteration { sizes: &[n], base: t, strides: &[0], selectors: &selectors, negative: self.negative };
        indexed_access::run(cx, &iteration, &Action::Number { row: &row, none })?;
        Ok(row)
    }

    /// Adds the slices of `src`, multiplied by `alpha`, to those of `dst`.
    pub fn add(&self, cx: &Context, dst: &View, src: &View, alpha: Number) -> Result<()> {
        if alpha.to_f64() == 1.0 || src.numel() == 0 {
            return self.combine(cx, dst, src, Combine::Add, true);
        }
        let scaled = cx.empty(src.dtype, &src.sizes)?;
        let inputs = [Input::Tensor(src.clone()), Input::Number(alpha, src.dtype)];
        kernel::run(cx, &INDEX_ADD, &[&scaled], &inputs, src.dtype)?;
        self.combine(cx, dst, &scaled, Combine::Add, true)
    }

    /// Combines the slices of `src` into those of `dst`.
    pub fn combine(&self, cx: &Context, dst: &View, src: &View, combine: Combine, include_self: bool) -> Result<()> {
        let (n, d) = (self.index.numel(), self.dim);
        if n == 0 {
            return Ok(());
        }
        let row = self.numbers(cx, dst)?;
        let rest = |of: &[i64]| -> Dims { of.iter().enumerate().filter(|&(i, _)| i != d).map(|(_, &x)| x).collect() };
        keyed_reduction::run(
            cx,
            &KeyedContributions {
                dst,
                key_sizes: &[dst.sizes[d]],
                key_strides: &[dst.strides[d]],
                keys: &row,
                src,
                part_sizes: &[n],
                part_strides: &[src.strides[d]],
                slice_sizes: &rest(&src.sizes),
                dst_strides: &rest(&dst.strides),
                src_strides: &rest(&src.strides),
                combine,
                include_self,
                skip: None,
            },
        )
    }
}
