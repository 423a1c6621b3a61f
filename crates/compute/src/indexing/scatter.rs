//! Writing through an index for each element: scatter and its kin.

use crate::context::Context;
use crate::error::Result;
use crate::host;
use crate::indexing::arguments::without;
use crate::primitives::indexed_access::{self, Action, Selector, Walk};
use crate::primitives::keyed_reduction::{self, Accumulation, Combine};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::DType;

/// How values meet what is there, and each other.
pub struct Combined {
    /// In the order of the values; `None` if any may stay.
    pub combine: Option<Combine>,
    /// What is there counts.
    pub include_self: bool,
}

/// Writes `src`, or the number where there is none.
pub fn write(
    cx: &Context,
    dst: &View,
    dim: usize,
    index: &View,
    src: Option<View>,
    number: Number,
    how: Combined,
) -> Result<()> {
    let sizes = index.sizes.as_slice();
    let (Some(combine), Some(src)) = (how.combine, &src) else {
        let selectors = [Selector { size: dst.sizes[dim], stride: dst.strides[dim], dim, index: index.clone() }];
        let strides = without(&dst.strides, dim);
        let walk = Walk { sizes, base: dst, strides: &strides, selectors: &selectors, negative: false };
        return match &src {
            Some(src) => indexed_access::run(cx, &walk, &Action::Write(&src.as_strided(sizes, &src.strides, 0))),
            None => indexed_access::run(cx, &walk, &Action::Fill(host::bits(dst.dtype, number))),
        };
    };
    let numbering = View::contiguous_strides(&dst.sizes);
    let selectors = [Selector { size: dst.sizes[dim], stride: numbering[dim], dim, index: index.clone() }];
    let strides = without(&numbering, dim);
    let row = cx.empty(DType::U32, &[index.numel()])?;
    let none = keyed_reduction::no_key(cx.name, &dst.sizes)?;
    let walk = Walk { sizes, base: dst, strides: &strides, selectors: &selectors, negative: false };
    indexed_access::run(cx, &walk, &Action::Number { row: &row, none })?;
    keyed_reduction::run(
        cx,
        &Accumulation {
            dst,
            key_sizes: &dst.sizes,
            key_strides: &dst.strides,
            keys: &row,
            src,
            part_sizes: sizes,
            part_strides: &src.strides,
            slice_sizes: &[],
            dst_strides: &[],
            src_strides: &[],
            combine,
            include_self: how.include_self,
            skip: None,
        },
    )
}
