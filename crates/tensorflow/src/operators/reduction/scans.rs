//! Running sums, products and log-sum-exps.

use crate::c_api::Attributes;
use crate::kernel::{Call, Operator};
use crate::operators::common::axes::dimension;
use crate::operators::common::dtypes::{FIELDS_AND_INDICES, FLOATS, REALS_AND_I32};
use crate::operators::common::regions::{Region, copy_regions, fill, reversed};
use crate::require;
use dml_compute::complex::parts::parts;
use dml_compute::reduction::scan::{self, Operation};
use dml_compute::{Scalar, View};
use dml_kernel::DType;

/// The result of no elements.
fn identity(operation: Operation) -> Scalar {
    match operation {
        Operation::Product => Scalar::Int(1),
        Operation::LogSumExp => Scalar::Double(f64::NEG_INFINITY),
        _ => Scalar::Int(0),
    }
}

fn by_parts(t: &View) -> Vec<View> {
    if t.dtype.is_complex() { parts(t).to_vec() } else { vec![t.clone()] }
}

/// A scan of input 0 along the axis of input 1.
fn scan(name: &'static str, operation: Operation, dtypes: &'static [DType]) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let [exclusive, reverse] = [attributes.bool("exclusive")?, attributes.bool("reverse")?];
        Ok(move |call: &Call| {
            let (cx, input, axis) = (call.cx(), call.input(0)?, call.host_number(1)?.to_i64());
            let rank = input.dim();
            let found = dimension(axis, rank);
            require!(
                found.is_some(),
                "ScanOp: Expected scan axis in the range [{}, {rank}), but got {axis}",
                -(rank as i64)
            );
            let dim = found.unwrap_or(0);
            let out = call.output(0, &input.sizes)?;
            if out.numel() == 0 {
                return Ok(());
            }
            let turned = if reverse {
                let turned = cx.empty(input.dtype, &input.sizes)?;
                copy_regions(call, vec![reversed(&input, turned.clone(), |d| d == dim)])?;
                turned
            } else {
                input
            };
            let is_plain = !exclusive && !reverse;
            let sums = if is_plain { out.clone() } else { cx.empty(out.dtype, &out.sizes)? };
            for (from, to) in by_parts(&turned).iter().zip(&by_parts(&sums)) {
                scan::run(&cx, operation, from, from.dtype, dim, &[to])?;
            }
            if is_plain {
                return Ok(());
            }
            // The last sum is dropped if the element itself does not count.
            let n = out.sizes[dim];
            let (kept, place, free) = match (exclusive, reverse) {
                (false, _) => (n, 0, None),
                (true, false) => (n - 1, 1, Some(0)),
                (true, true) => (n - 1, 0, Some(n - 1)),
            };
            if let Some(at) = free {
                fill(call, &out.narrow(dim, at, 1), identity(operation))?;
            }
            let (from, to) = (sums.narrow(dim, 0, kept), out.narrow(dim, place, kept));
            copy_regions(call, vec![if reverse { reversed(&from, to, |d| d == dim) } else { Region::whole(to, from) }])
        })
    })
    .of("T", dtypes)
    .on_host(&["axis"])
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        scan("Cumsum", Operation::Sum, FIELDS_AND_INDICES),
        scan("Cumprod", Operation::Product, REALS_AND_I32),
        scan("CumulativeLogsumexp", Operation::LogSumExp, FLOATS),
    ]
}
