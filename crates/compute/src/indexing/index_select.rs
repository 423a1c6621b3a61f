//! Reading and writing through an index for each slice along a dimension: index_select and its kin.

use crate::context::Context;
use crate::error::Result;
use crate::indexing::arguments::without;
use crate::primitives::indexed_access::{self, Action, Selector, Walk};
use crate::primitives::keyed_reduction::{self, Accumulation, Combine};
use crate::view::{Dims, View};
use dml_kernel::DType;

/// An index for each slice along a dimension.
pub struct Slices<'t> {
    /// The dimension.
    pub dim: usize,
    /// A row.
    pub index: &'t View,
    /// Whether an index below 0 counts from the end.
    pub negative: bool,
}

impl Slices<'_> {
    /// Runs `action` on the slices of `t`; the other tensor has `sizes`.
    pub fn run(&self, cx: &Context, t: &View, sizes: &[i64], action: &Action) -> Result<()> {
        let mut strides = Dims::from_elem(0, sizes.len());
        strides[self.dim] = self.index.strides[0];
        let index = self.index.as_strided(sizes, &strides, 0);
        let selectors = [Selector { index, size: t.sizes[self.dim], stride: t.strides[self.dim], dim: self.dim }];
        let own = without(&t.strides, self.dim);
        let walk = Walk { sizes, base: t, strides: &own, selectors: &selectors, negative: self.negative };
        indexed_access::run(cx, &walk, action)
    }

    /// The index as a row of u32 numbers of the slices of `t`; an index out of range is reported.
    pub fn numbers(&self, cx: &Context, t: &View) -> Result<View> {
        let (n, size) = (self.index.numel(), t.sizes[self.dim]);
        let row = cx.empty(DType::U32, &[n])?;
        let none = keyed_reduction::no_key(cx.name, &[size])?;
        let selectors = [Selector { index: self.index.clone(), size, stride: 1, dim: self.dim }];
        let walk = Walk { sizes: &[n], base: t, strides: &[0], selectors: &selectors, negative: self.negative };
        indexed_access::run(cx, &walk, &Action::Number { row: &row, none })?;
        Ok(row)
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
            &Accumulation {
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
