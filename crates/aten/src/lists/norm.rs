//! Norms of all tensors of a list, as gradients are clipped by: two launches for the whole list.
//!
//! Every workgroup folds its part of a tensor; then one workgroup a tensor joins what its parts
//! gave.

use crate::operator::argument::Tensors;
use crate::operator::call::{Call, Ret};
use crate::operator::error::Result;
use crate::reduction::norm::check_norm;
use crate::{check, operators};
use dml_compute::lists::norm::list_norms;
use dml_compute::reduction::axes::Axes;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    norm(self, ord, dtype).complex(complex::each(crate::reduction::norm::OPERATORS, "linalg_vector_norm")) {
        hot "aten::_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    }
}

/// The results are views of one tensor for each dtype, as on CUDA.
fn norm(call: &mut Call, list: Tensors, order: Number, dtype: Option<DType>) -> Result<()> {
    check!(
        matches!(order, Number::Int(_) | Number::Double(_)),
        Runtime,
        "foreach_tensor_norm_slow expects ord to be integer or float"
    );
    let p = order.to_f64();
    for t in &list {
        check!(
            p != f64::INFINITY || t.numel() > 0,
            Runtime,
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an identity"
        );
        check_norm(t, p, dtype, Axes::all(false))?;
    }
    let mut results: Vec<Option<View>> = vec![None; list.len()];
    let mut left: Vec<usize> = (0..list.len()).collect();
    while let Some(&first) = left.first() {
        let of = list[first].dtype;
        let (alike, others): (Vec<usize>, Vec<usize>) = left.into_iter().partition(|&i| list[i].dtype == of);
        left = others;
        let all = call.empty(dtype.unwrap_or(of), &[alike.len() as i64])?;
        let tensors: Vec<&View> = alike.iter().map(|&i| list[i]).collect();
        list_norms(call, p, &tensors, &all)?;
        for (&i, place) in alike.iter().zip(0..) {
            results[i] = Some(call.host.view(&all, &all.as_strided(&[], &[], place))?);
        }
    }
    call.ret_value(Ret::Tensors(results.into_iter().flatten().collect()));
    Ok(())
}
