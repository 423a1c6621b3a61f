//! Writing with an index for each element: scatter and the like.

use crate::context::Context;
use crate::error::Result;
use crate::host;
use crate::indexing::arguments::without;
use crate::primitives::combine::Combine;
use crate::primitives::indexed_access::{self, Action, IndexIteration, Selector};
use crate::primitives::keyed_reduction::{self, KeyedContributions};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::DType;

/// How values are combined with existing elements and with each other.
pub struct Combined {
    /// The reduction, applied in the order of the values; `None` if one of several values for an
    /// element is chosen arbitrarily.
    pub combine: Option<Combine>,
    /// Whether existing elements take part in the reduction.
    pub include_self: bool,
}

/// Writes `src`, or `number` if there is no `src`.
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
        let iteration = IndexIteration { sizes, base: dst, strides: &strides, selectors: &selectors, negative: false };
        return match &src {
            Some(src) => indexed_access::run(cx, &iteration, &Action::Write(&src.as_strided(sizes, &src.strides, 0))),
            None => indexed_access::run(cx, &iteration, &Action::Fill(host::bits(dst.dtype, number))),
        };
    };
    let numbering = View::contiguous_strides(&dst.sizes);
    let selectors = [Selector { size: dst.sizes[dim], stride: numbering[dim], dim, index: index.clone() }];
    let strides = without(&numbering, dim);
    let row = cx.empty(DType::U32, &[index.numel()])?;
    let none = keyed_reduction::invalid_key(cx.name, &dst.sizes)?;
    let iteration = IndexIteration { sizes, base: dst, strides: &strides, selectors: &selectors, negative: false };
    indexed_access::run(cx, &iteration, &Action::Number { row: &row, none })?;
    keyed_reduction::run(
        cx,
        &KeyedContributions {
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
