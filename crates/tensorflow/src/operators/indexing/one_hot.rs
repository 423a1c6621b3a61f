//! `OneHot`: rows that are `on_value` at an index and `off_value` elsewhere.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{ALL_AND_I32, ONE_HOT_INDICES};
use crate::operators::common::index_access::write;
use crate::operators::common::regions::{copy, spliced};
use crate::require;
use dml_compute::Dims;
use dml_compute::movement::copy::cast;
use dml_compute::primitives::indexed_access::Selector;
use dml_kernel::DType;

fn one_hot(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let axis = attributes.int("axis")?;
    Ok(move |call: &Call| {
        let (indices, depth) = (call.input(0)?, call.host_number(1)?.to_i64());
        let [on, off] = [call.input(2)?, call.input(3)?];
        let rank = indices.dim();
        let dim = if axis == -1 { rank as i64 } else { axis };
        require!(
            (0..=rank as i64).contains(&dim),
            "Expected axis to be -1 or between [0, {}).  But received: {axis}",
            rank + 1
        );
        require!(depth >= 0, "depth must be non-negative, got: {depth}");
        for (name, value) in [("on", &on), ("off", &off)] {
            require!(value.dim() == 0, "{name}_value must be a scalar, but got: {:?}", value.sizes.as_slice());
        }
        let dim = dim as usize;
        let out = call.output(0, &spliced(&indices.sizes, dim, dim, &[depth]))?;
        copy(call, &off, &out)?;
        if out.numel() == 0 {
            return Ok(());
        }
        // Kernels read indices of 32 or 64 bits.
        let narrow = matches!(indices.dtype, DType::U8 | DType::I8);
        let indices = if narrow { cast(&call.cx(), &indices, DType::I32)? } else { indices };
        let strides: Dims = spliced(&out.strides, dim, dim + 1, &[]);
        let selector = Selector { index: indices.clone(), size: depth, stride: out.strides[dim], dim };
        write(call, &out, &strides, &[selector], &on.expand(&indices.sizes))
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![Operator::new("OneHot", one_hot).of("T", ALL_AND_I32).of("TI", ONE_HOT_INDICES).on_host(&["depth"])]
}
