//! Products of sparse matrices, given as coordinates and values, and dense ones.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FIELDS, INDICES};
use crate::operators::common::elementwise::compute;
use crate::operators::common::index_access::{Places, Update, read};
use crate::operators::common::regions::fill;
use crate::require;
use dml_compute::pointwise::{arithmetic, complex};
use dml_compute::primitives::indexed_access::Selector;
use dml_compute::{Context, Scalar, View};

/// The conjugates of complex numbers; real numbers as they are.
fn conjugated(cx: &Context, t: &View) -> Result<View> {
    if !t.dtype.is_complex() {
        return Ok(t.clone());
    }
    let out = cx.empty(t.dtype, &t.sizes)?;
    compute(cx, &complex::CONJ, &out, std::slice::from_ref(t), &[])?;
    Ok(out)
}

/// `SparseTensorDenseMatMul`: each value times a row of the dense matrix is added to a row of the
/// result. As on CUDA, coordinates outside of the matrices give no error.
fn sparse_by_dense(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let [adjoint_a, adjoint_b] = [attributes.bool("adjoint_a")?, attributes.bool("adjoint_b")?];
    Ok(move |call: &Call| {
        let cx = call.cx();
        let (indices, values, shape, b) = (call.input(0)?, call.input(1)?, call.host_ints(2)?, call.input(3)?);
        require!(b.dim() == 2, "Tensor 'b' is not a matrix");
        require!(shape.len() == 2, "Tensor 'a_shape' must have 2 elements");
        require!(values.dim() == 1, "Tensor 'a_values' is not a vector");
        require!(indices.dim() == 2, "Tensor 'a_indices' is not a matrix");
        let count = values.sizes[0];
        require!(
            indices.sizes[..] == [count, 2],
            "Number of rows of a_indices does not match number of entries in a_values: {:?}, {count}",
            indices.sizes
        );
        let [rows, inner] = if adjoint_a { [shape[1], shape[0]] } else { [shape[0], shape[1]] };
        let b = if adjoint_b { conjugated(&cx, &b)?.transpose(0, 1) } else { b };
        require!(
            b.sizes[0] == inner,
            "Cannot multiply A and B because inner dimension does not match: {inner} vs. {}. Did you forget a \
             transpose? Dimensions of A: {:?}",
            b.sizes[0],
            shape.as_slice()
        );
        require!(rows >= 0, "a_shape must be nonnegative: {:?}", shape.as_slice());
        let out = call.output(0, &[rows, b.sizes[1]])?;
        fill(call, &out, Scalar::Int(0))?;
        if out.numel() == 0 || count == 0 {
            return Ok(());
        }
        let coordinate = |d: i64| indices.as_strided(&[count], &[2], d);
        let [row, column] = [coordinate(i64::from(adjoint_a)), coordinate(i64::from(!adjoint_a))];
        let terms = cx.empty(b.dtype, &[count, b.sizes[1]])?;
        let index = column.as_strided(&terms.sizes, &[2, 0], 0);
        let selector = Selector { index, size: b.sizes[0], stride: b.strides[0], dim: 0 };
        read(call, &b, &[0, b.strides[1]], &[selector], &terms)?;
        let values = if adjoint_a { conjugated(&cx, &values)? } else { values };
        let factors = values.as_strided(&terms.sizes, &[1, 0], 0);
        compute(&cx, &arithmetic::MUL, &terms, &[terms.clone(), factors], &[])?;
        Places::of_first(&row).update(call, &out, &terms, Update::Add)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::new("SparseTensorDenseMatMul", sparse_by_dense)
            .of("T", FIELDS)
            .of("Tindices", INDICES)
            .on_host(&["a_shape"]),
    ]
}
