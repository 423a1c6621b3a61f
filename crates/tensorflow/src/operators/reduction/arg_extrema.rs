//! Positions of extrema: the first of equal ones. NaN is passed over.

use crate::kernel::{Call, Operator};
use crate::operators::common::axes::dimension;
use crate::operators::common::dtypes::{FLOATS_AND_BOOL, INDICES};
use crate::require;
use dml_compute::reduction::Axes;
use dml_compute::reduction::extremum::{self, ElementAndIndex, Extreme, ExtremumOutput};

fn position(name: &'static str, extreme: Extreme) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let (input, axis) = (call.input(0)?, call.host_number(1)?.to_i64());
        let rank = input.dim();
        let Some(dim) = dimension(axis, rank) else {
            require!(false, "Expected dimension in the range [{}, {rank}), but got {axis}", -(rank as i64));
            return Ok(());
        };
        require!(input.sizes[dim] > 0, "Reduction axis {dim} is empty in shape {:?}", input.sizes.as_slice());
        let axes = Axes::of_dims(&[dim as i64], rank, false);
        let out = call.output(0, &axes.sizes(&input.sizes))?;
        let fold = ElementAndIndex { extreme, dtype: input.dtype, yields: ExtremumOutput::Index, nan_is_worst: true };
        Ok(extremum::run(&call.cx(), &fold, &input, &[&out], axes)?)
    })
    .of("T", FLOATS_AND_BOOL)
    .of("output_type", INDICES)
    .on_host(&["dimension"])
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![position("ArgMax", Extreme::Max), position("ArgMin", Extreme::Min)]
}
