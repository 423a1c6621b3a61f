//! Products of compressed rows (CSR) and a dense matrix in which the products of a row are averaged
//! or their extremum is chosen, not only added up, and the gradients.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::{Arg, Call};
use crate::operator::error::Result;
use crate::sparse::compressed_extremum::extrema;
use crate::sparse::compressed_mm::{Given, Rows, reshaped};
use crate::sparse::coo_to_csr::coo_to_csr;
use crate::sparse::coordinates::{chosen, computed};
use crate::sparse::dense::{self, integer, tensor};
use crate::sparse::sampled_mm::{rows_of_entries, sampled};
use crate::{check, operators};
use dml_compute::movement::copy::{as_contiguous, cast, device_copy, fill_with};
use dml_compute::movement::rearrange::like;
use dml_compute::pointwise::arithmetic::SUB;
use dml_compute::scalar::Scalar as Number;
use dml_compute::sorting::sort;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    // The reduction, and the entries chosen by an extremum: for a row without entries the number of
    // all.
    forward({Given}, other, reduce).complex(Complex::Own) {
        "torch_dml::sparse_mm_reduce(Tensor offsets, Tensor indices, Tensor values, int[] size, Tensor other, str reduce) -> (Tensor, Tensor)",
    }
    // The gradients by the values and by `other`, as far as they are wanted.
    backward({Given}, grad_out, other, reduce, arg_out, output_mask) {
        "torch_dml::sparse_mm_reduce_backward(Tensor offsets, Tensor indices, Tensor values, int[] size, Tensor grad_out, Tensor other, str reduce, Tensor arg_out, bool[2] output_mask) -> (Tensor, Tensor)",
    }
}

fn is_extremum(reduce: Option<&str>) -> bool {
    matches!(reduce, Some("amax" | "amin"))
}

fn forward(call: &mut Call, sparse: Given, other: AnyTensor, reduce: Option<&str>) -> Result<()> {
    let Given { offsets, values, size, .. } = sparse;
    let dims = size.len();
    check!(dims == 2, Runtime, "sparse_mm_reduce: expected self to be a 2-D tensor, got {dims}D tensor");
    check!(
        other.dim() == 2 && other.sizes[0] == size[1],
        Runtime,
        "Expected a tensor of dimension 2 and tensor.size[0] == {} but got: dimension {} and tensor.size[0] = {}",
        size[1],
        other.dim(),
        call.size_of(&other, 0)?
    );
    let dtype = values.dtype;
    check!(
        other.dtype == dtype,
        Runtime,
        "Expected tensor for argument #1 'other' to have scalar type {dtype}; but got torch.{}Tensor instead (while \
         checking arguments for sparse_mm_reduce)",
        other.dtype
    );
    check!(dtype.is_float(), NotImplemented, "\"spmm_reduce_kernel\" not implemented for '{dtype}'");
    check!(reduce != Some("prod"), Runtime, "sparse_mm_reduce: reduce type of prod has not been enabled.");
    check!(
        matches!(reduce, Some("sum" | "mean")) || is_extremum(reduce),
        Runtime,
        "reduce argument must be either sum, prod, mean, amax or amin, got {}",
        reduce.unwrap_or_default()
    );
    let other = dense::here(call, other, "aten::_sparse_mm_reduce_impl")?;
    if is_extremum(reduce) {
        for t in extrema(call, sparse, other, reduce == Some("amax"))? {
            call.ret(t);
        }
        return Ok(());
    }
    let sum = Rows::from(sparse).multiply(call, other, None, [0, 1].map(Number::Int))?;
    let result = if reduce == Some("mean") { averaged(call, offsets, &sum)? } else { sum };
    let none = call.empty(offsets.dtype, &[0])?;
    call.ret(result);
    call.ret(none);
    Ok(())
}

/// Divides each row by its number of entries, if it has any.
fn averaged(call: &Call, offsets: &View, sums: &View) -> Result<View> {
    let rows = offsets.numel() - 1;
    let lengths = computed(call, &SUB, &[&offsets.narrow(0, 1, rows), &offsets.narrow(0, 0, rows)], &[])?;
    let lengths = dense::run(call, dense::CLAMP_MIN, &[Arg::Tensor(lengths), integer(1)])?;
    let lengths = cast(call, &lengths, sums.dtype)?.as_strided(&[rows, 1], &[1, 1], 0);
    dense::run(call, dense::DIVIDE, &[tensor(sums), Arg::Tensor(lengths)])
}

fn backward(
    call: &mut Call,
    sparse: Given,
    grad: &View,
    other: &View,
    reduce: Option<&str>,
    places: &View,
    wanted: &[u8],
) -> Result<()> {
    let wants = |i: usize| wanted.get(i).is_some_and(|&w| w != 0);
    let results = if is_extremum(reduce) {
        let chosen = Chosen::of(call, sparse, places)?;
        [
            wants(0).then(|| chosen.grad_of_values(call, sparse.values, grad, other)).transpose()?,
            wants(1).then(|| chosen.grad_of_other(call, grad, other)).transpose()?,
        ]
    } else {
        let mean = reduce == Some("mean");
        let grad = if mean { &averaged(call, sparse.offsets, grad)? } else { grad };
        let rows = rows_of_entries(call, sparse.offsets, sparse.indices)?;
        [
            wants(0).then(|| sampled(call, &rows, sparse.indices, grad, other)).transpose()?,
            wants(1).then(|| transposed_times(call, sparse, &rows, grad)).transpose()?,
        ]
    };
    for result in results {
        call.ret_optional(result);
    }
    Ok(())
}

/// The product of the transpose of compressed rows, of which `rows` are the entries' rows, and a
/// dense matrix.
fn transposed_times(call: &Call, sparse: Given, rows: &View, dense: &View) -> Result<View> {
    let Given { indices, values, size, .. } = sparse;
    let (columns, order) = sort::by_rows(call, &as_contiguous(call, indices)?, 0, false)?;
    let narrow = indices.dtype == DType::I32;
    let offsets = call.result_of(|call| coo_to_csr(call, &columns, size[1], narrow, Out::New))?;
    let [rows, values] = [rows, values].map(|t| chosen(call, t, &order));
    let (rows, values) = (rows?, values?);
    let transposed = Rows { offsets: &offsets, indices: &rows, values: Some(&values) };
    transposed.multiply(call, dense, None, [0, 1].map(Number::Int))
}

/// The entries that an extremum chose. Rows without entries chose an additional one.
struct Chosen {
    /// `[rows * n]`
    places: View,
    /// The entries' columns and values, `[rows, n]`.
    columns: View,
    values: View,
}

impl Chosen {
    fn of(call: &Call, sparse: Given, places: &View) -> Result<Chosen> {
        let flat = reshaped(&as_contiguous(call, places)?, &[places.numel()]);
        let columns = cast(call, sparse.indices, DType::I64)?;
        let of_places =
            |t: &View| -> Result<View> { Ok(reshaped(&chosen(call, &one_more(call, t)?, &flat)?, &places.sizes)) };
        Ok(Chosen { columns: of_places(&columns)?, values: of_places(sparse.values)?, places: flat })
    }

    fn grad_of_values(&self, call: &Call, values: &View, grad: &View, other: &View) -> Result<View> {
        let gather = [tensor(other), integer(0), tensor(&self.columns), Arg::Scalar(Number::Bool(false))];
        let factors = dense::run(call, dense::GATHER, &gather)?;
        let products = dense::run(call, dense::MULTIPLY, &[tensor(grad), Arg::Tensor(factors)])?;
        let products = reshaped(&as_contiguous(call, &products)?, &[self.places.numel()]);
        let entries = values.numel();
        let sums = call.empty(values.dtype, &[entries + 1])?;
        fill_with(call, &sums, Number::Int(0))?;
        let add = [tensor(&sums), integer(0), tensor(&self.places), Arg::Tensor(products), integer(1)];
        dense::run(call, dense::INDEX_ADD, &add)?;
        call.host.view(&sums, &sums.narrow(0, 0, entries))
    }

    fn grad_of_other(&self, call: &Call, grad: &View, other: &View) -> Result<View> {
        let products = dense::run(call, dense::MULTIPLY, &[tensor(grad), tensor(&self.values)])?;
        let sums = like(call, other)?;
        fill_with(call, &sums, Number::Int(0))?;
        dense::run(call, dense::SCATTER_ADD, &[tensor(&sums), integer(0), tensor(&self.columns), Arg::Tensor(products)])
    }
}

/// A vector, followed by a 0.
fn one_more(call: &Call, t: &View) -> Result<View> {
    let out = call.empty(t.dtype, &[t.numel() + 1])?;
    fill_with(call, &out, Number::Int(0))?;
    device_copy(call, t, &out.narrow(0, 0, t.numel()))?;
    Ok(out)
}
