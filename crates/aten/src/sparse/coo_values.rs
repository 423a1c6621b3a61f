//! The values of COO tensors, of any dtype: those of entries at one position are added up, and
//! entries of one tensor are found at the positions of another's.
//!
//! Indices are as in [`coordinates`](super::coordinates), values `[entries, dense dimensions..]`,
//! and `sizes` the sizes of the sparse dimensions.

use crate::operator::call::{Arg, Call};
use crate::operator::error::Result;
use crate::sparse::coordinates::{chosen, count, distinct, find, intersect, numbers, row, select, wrap};
use crate::sparse::dense::{self, integer, tensor};
use crate::{check, operators};
use dml_compute::movement::copy::device_copy;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Dims, View};

operators! {
    // Returns the distinct positions in order, and the sums of the values at each.
    coalesce(indices, values, sizes).complex(Complex::Own).float8(float8::own) {
        "torch_dml::coo_coalesce(Tensor indices, Tensor values, int[] sizes) -> (Tensor, Tensor)",
    }
    // Adds `alpha` times the values to rows of `self` (`[positions, dense dimensions..]`).
    add(self, indices, values, sizes, alpha).complex(Complex::Own).float8(float8::own) {
        "torch_dml::coo_add_(Tensor(a!) self, Tensor indices, Tensor values, int[] sizes, Scalar alpha) -> Tensor(a!)",
    }
    // Returns the positions that both tensors (with sorted positions) have, and the products of
    // their values there.
    multiply(indices, values, other_indices, other_values, sizes).complex(Complex::Own).float8(float8::own) {
        "torch_dml::coo_mul(Tensor indices, Tensor values, Tensor other_indices, Tensor other_values, int[] sizes) -> (Tensor, Tensor)",
    }
    // Returns the elements of a dense tensor at the positions of the entries.
    elements(indices, dense).complex(Complex::Own).float8(float8::own) {
        "torch_dml::coo_elements(Tensor indices, Tensor dense) -> Tensor",
    }
    // Returns the values of entries (with sorted positions) at the wanted positions, zeros where
    // there are none.
    at_positions(indices, values, wanted, sizes).complex(Complex::Own).float8(float8::own) {
        "torch_dml::coo_at(Tensor indices, Tensor values, Tensor wanted, int[] sizes) -> Tensor",
    }
    // Returns the values, with zeros where `mask` has no entry; if `accumulate`, multiplied by the
    // number of entries that it has there.
    project(indices, values, mask, sizes, accumulate).complex(Complex::Own).float8(float8::own) {
        "torch_dml::coo_project(Tensor indices, Tensor values, Tensor mask, int[] sizes, bool accumulate) -> Tensor",
    }
    // Returns the entries of the slices along a dimension that `index` names. `size` is of all
    // dimensions.
    index_select(indices, values, size, dim, index).complex(Complex::Own).float8(float8::own) {
        "torch_dml::coo_index_select(Tensor indices, Tensor values, int[] size, int dim, Tensor index) -> (Tensor, Tensor)",
    }
}

/// The sizes of the values of so many entries.
fn sizes_of(values: &View, entries: i64) -> Dims {
    let mut sizes = values.sizes.clone();
    sizes[0] = entries;
    sizes
}

/// A vector as a factor of values.
fn factor(t: &View, values: &View) -> View {
    let mut sizes = Dims::from_elem(1, values.dim());
    sizes[0] = t.numel();
    t.as_strided(&sizes, &View::contiguous_strides(&sizes), 0)
}

/// The values where `there`, zeros elsewhere.
fn kept(call: &Call, values: &View, there: &View) -> Result<View> {
    let zero = dense::zeros(call, values.dtype, &[])?;
    dense::run(call, dense::WHERE, &[Arg::Tensor(factor(there, values)), tensor(values), Arg::Tensor(zero)])
}

/// Checks that there are sums of the values' dtype.
fn check_sums(values: &View, name: &str) -> Result<()> {
    let dtype = values.dtype;
    check!(!dtype.is_float8(), NotImplemented, "\"{name}\" not implemented for '{dtype}'");
    Ok(())
}

fn coalesce(call: &mut Call, indices: &View, values: &View, sizes: &[i64]) -> Result<()> {
    check_sums(values, "coalesce")?;
    let [positions, inverse] = distinct(call, indices, sizes)?;
    let sums = dense::zeros(call, values.dtype, &sizes_of(values, positions.sizes[1]))?;
    let sources = [tensor(&sums), integer(0), Arg::Tensor(inverse), tensor(values), integer(1)];
    dense::run(call, dense::INDEX_ADD, &sources)?;
    call.ret(positions);
    call.ret(sums);
    Ok(())
}

fn add(call: &mut Call, rows: &View, indices: &View, values: &View, sizes: &[i64], alpha: Number) -> Result<()> {
    check_sums(values, "add_dense_sparse_worker_non_coalesced")?;
    let flat = numbers(call, indices, sizes)?;
    let sources = [tensor(rows), integer(0), Arg::Tensor(flat), tensor(values), Arg::Scalar(alpha)];
    dense::run(call, dense::INDEX_ADD, &sources)?;
    call.ret(rows.clone());
    Ok(())
}

fn multiply(
    call: &mut Call,
    indices: &View,
    values: &View,
    other_indices: &View,
    other_values: &View,
    sizes: &[i64],
) -> Result<()> {
    let (positions, left, right) = if indices.sizes[1] == 0 || other_indices.sizes[1] == 0 {
        let none = call.empty(indices.dtype, &[indices.sizes[0], 0])?;
        (none, values.narrow(0, 0, 0), other_values.narrow(0, 0, 0))
    } else {
        let [positions, of_other, own] = intersect(call, indices, other_indices, sizes)?;
        (positions, dense::select(call, values, 0, &own)?, dense::select(call, other_values, 0, &of_other)?)
    };
    let products = dense::run(call, dense::MULTIPLY, &[Arg::Tensor(left), Arg::Tensor(right)])?;
    call.ret(positions);
    call.ret(products);
    Ok(())
}

/// `dense` has the sparse tensor's sizes.
fn elements(call: &mut Call, indices: &View, dense: &View) -> Result<()> {
    let found = dense::elements(call, dense, (0..indices.sizes[0] as usize).map(|dim| row(indices, dim)).collect())?;
    call.ret(found);
    Ok(())
}

fn at_positions(call: &mut Call, indices: &View, values: &View, wanted: &View, sizes: &[i64]) -> Result<()> {
    let found = if indices.sizes[1] == 0 || wanted.sizes[1] == 0 {
        dense::zeros(call, values.dtype, &sizes_of(values, wanted.sizes[1]))?
    } else {
        let [positions, there] = find(call, indices, wanted, sizes)?;
        kept(call, &dense::select(call, values, 0, &positions)?, &there)?
    };
    call.ret(found);
    Ok(())
}

fn project(call: &mut Call, indices: &View, values: &View, mask: &View, sizes: &[i64], accumulate: bool) -> Result<()> {
    let found = if indices.sizes[1] == 0 || mask.sizes[1] == 0 {
        dense::zeros(call, values.dtype, &values.sizes)?
    } else {
        let [counts, there] = count(call, mask, indices, sizes)?;
        let kept = kept(call, values, &there)?;
        if accumulate {
            let factors = dense::cast(call, &counts, values.dtype)?;
            dense::run(call, dense::MULTIPLY, &[Arg::Tensor(kept), Arg::Tensor(factor(&factors, values))])?
        } else {
            kept
        }
    };
    call.ret(found);
    Ok(())
}

/// `index` is a vector of int64.
fn index_select(call: &mut Call, indices: &View, values: &View, size: &[i64], dim: i64, index: &View) -> Result<()> {
    let dim = call.wrap_dim(dim, size.len())?;
    let sparse_dims = indices.sizes[0] as usize;
    let wanted = if index.numel() == 0 { index.clone() } else { wrap(call, index, dim, size)? };
    let (positions, found) = if dim >= sparse_dims {
        let found = dense::select(call, values, (dim - sparse_dims + 1) as i64, &wanted)?;
        (copied(call, indices)?, found)
    } else if index.numel() == 0 {
        let none = call.empty(indices.dtype, &[indices.sizes[0], 0])?;
        (none, call.empty(values.dtype, &sizes_of(values, 0))?)
    } else {
        let [coordinates, entries] = select(call, indices, dim, &wanted, size[dim])?;
        let positions = chosen(call, indices, &entries)?;
        device_copy(call, &coordinates, &row(&positions, dim))?;
        (positions, dense::select(call, values, 0, &entries)?)
    };
    call.ret(positions);
    call.ret(found);
    Ok(())
}

fn copied(call: &Call, t: &View) -> Result<View> {
    let out = call.empty(t.dtype, &t.sizes)?;
    device_copy(call, t, &out)?;
    Ok(out)
}
