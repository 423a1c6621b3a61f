//! The order of dimensions: vectors and indices of one format for another.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::constants::vector;
use crate::operators::common::dtypes::INDICES;
use crate::require;
use dml_compute::Scalar;
use dml_compute::indexing::gather::take;
use dml_compute::movement::copy;

/// The names of dimensions before and after.
fn formats(attributes: &Attributes) -> Result<[String; 2]> {
    let formats = [attributes.string("src_format")?, attributes.string("dst_format")?];
    let [from, to] = &formats;
    require!(
        matches!(from.len(), 4 | 5) && from.len() == to.len(),
        "Source and destination format must be of length 4 or 5, received {from} and {to}"
    );
    let (mut a, mut b) = (from.clone().into_bytes(), to.clone().into_bytes());
    a.sort_unstable();
    b.sort_unstable();
    require!(a == b, "Destination and source format must determine a permutation, got {from} and {to}");
    Ok(formats)
}

/// For each name of `to`, its place in `from`.
fn places(from: &str, to: &str) -> Vec<i64> {
    to.chars().map(|name| from.find(name).map_or(0, |place| place as i64)).collect()
}

/// `DataFormatVecPermute`: of all dimensions, or of the spatial ones.
fn permute(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let [from, to] = formats(attributes)?;
    let all = places(&from, &to);
    let spatial = |format: &str| format.chars().filter(|name| !matches!(name, 'N' | 'C')).collect::<String>();
    let inner = places(&spatial(&from), &spatial(&to));
    Ok(move |call: &Call| {
        let input = call.input(0)?;
        require!(matches!(input.dim(), 1 | 2), "input must be a vector or 2D tensor, but got shape {:?}", input.sizes);
        let rows = input.sizes[0];
        require!(
            input.dim() == 1 || input.sizes[1] == 2,
            "Second dimension of 2D input must be of size 2, but got shape {:?}",
            input.sizes
        );
        let order = [&all, &inner].into_iter().find(|order| order.len() as i64 == rows);
        require!(
            order.is_some(),
            "input must be of size {} or {}, but got shape {:?}",
            inner.len(),
            all.len(),
            input.sizes
        );
        let out = call.output(0, &input.sizes)?;
        for (to, &from) in order.into_iter().flatten().enumerate() {
            copy::device_copy(&call.cx(), &input.narrow(0, from, 1), &out.narrow(0, to as i64, 1))?;
        }
        Ok(())
    })
}

/// `DataFormatDimMap`: of indices of dimensions, which count from the end if negative.
fn map(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let [from, to] = formats(attributes)?;
    let places = places(&to, &from);
    Ok(move |call: &Call| {
        let input = call.input(0)?;
        let out = call.output(0, &input.sizes)?;
        let table: Vec<Scalar> = places.iter().map(|&place| Scalar::Int(place)).collect();
        Ok(take(&call.cx(), &vector(call, out.dtype, &table)?, &input, &out)?)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::new("DataFormatVecPermute", permute).of("T", INDICES),
        Operator::new("DataFormatDimMap", map).of("T", INDICES),
    ]
}
