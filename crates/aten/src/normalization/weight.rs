//! Weight normalisation: `w = v * g / |v|` (T. Salimans and D. Kingma, "Weight normalization",
//! NeurIPS 2016). The norm is over every dimension except one.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::dtype::accumulator;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::normalization::sums::Products;
use dml_compute::normalization::weight::{gradient_of_g, gradient_of_v, scaled};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::norm::norms;
use dml_compute::view::{Dims, View};

operators! {
    weight_norm(v, g, dim) {
        "aten::_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
    }
    backward(grad_w, saved_v, saved_g, saved_norms, dim) {
        "aten::_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> (Tensor, Tensor)",
    }
}

/// The arguments `v` and `g`, checked.
struct Problem<'t> {
    v: &'t View,
    /// Of the shape of `v` with size 1 in all dimensions except one, contiguous.
    g: View,
    /// All dimensions except that one.
    axes: Axes,
}

fn checked<'t>(call: &Call, v: &'t View, g: &View, dim: i64) -> Result<Problem<'t>> {
    let kept = call.wrap_dim(dim, v.dim())?;
    check!(v.dtype.is_float(), NotImplemented, "\"weight_norm_kernel\" not implemented for '{}'", v.dtype);
    check!(g.dtype == v.dtype, Runtime, "expected scalar type {} but found {}", v.dtype, g.dtype);
    let others: Dims = (0..v.dim() as i64).filter(|&d| d != kept as i64).collect();
    let axes = crate::reduction::axes::axes_listed(call, &others, v.dim(), true)?;
    let sizes = axes.sizes(&v.sizes);
    check!(
        g.numel() == sizes.iter().product::<i64>(),
        Runtime,
        "_weight_norm: g of shape {:?} does not have one element for each of dimension {kept} of v, of shape {:?}",
        g.sizes.as_slice(),
        v.sizes.as_slice()
    );
    let g = as_contiguous(call, g)?.as_strided(&sizes, &View::contiguous_strides(&sizes), 0);
    Ok(Problem { v, g, axes })
}

/// Also returns the norms, which are float32 for half-precision weights.
fn weight_norm(call: &mut Call, v: &View, g: &View, dim: i64) -> Result<()> {
    let p = checked(call, v, g, dim)?;
    let dtype = accumulator(p.v.dtype);
    let (w, norm) = (call.empty(p.v.dtype, &p.v.sizes)?, call.empty(dtype, &p.g.sizes)?);
    norms(call, 2.0, p.v, &norm, p.axes)?;
    scaled(call, p.v, &p.g, &norm, &w)?;
    call.ret(w);
    call.ret(norm);
    Ok(())
}

/// The gradients of `v` and `g`.
fn backward(call: &mut Call, grad: &View, v: &View, g: &View, norm: &View, dim: i64) -> Result<()> {
    let p = checked(call, v, g, dim)?;
    check!(
        grad.sizes == p.v.sizes && norm.numel() == p.g.numel(),
        Runtime,
        "_weight_norm_interface_backward: gradient {} and norms {} do not belong to v, {}",
        grad.describe(),
        norm.describe(),
        p.v.describe()
    );
    let norm = as_contiguous(call, norm)?.as_strided(&p.g.sizes, &p.g.strides, 0);
    let dtype = accumulator(p.v.dtype);
    let product = call.empty(dtype, &p.g.sizes)?;
    Products { grad, x: p.v, mean: None, scale: None, weight: None }.sum(call, p.axes, &[&product])?;
    let (of_v, of_g) = (call.empty(p.v.dtype, &p.v.sizes)?, call.empty(p.g.dtype, &p.g.sizes)?);
    gradient_of_g(call, &product, &norm, &of_g)?;
    gradient_of_v(call, grad, p.v, &p.g, &norm, &product, &of_v)?;
    call.ret(of_v);
    call.ret(of_g);
    Ok(())
}
