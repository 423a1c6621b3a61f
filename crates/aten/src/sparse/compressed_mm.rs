//! The products of a matrix of compressed rows (CSR) and a dense matrix: each row of the result is
//! a weighted sum of rows of the dense matrix, added up in the order of the row's entries, so that
//! the result is deterministic.
//!
//! Complex numbers are pairs of columns of reals. The real and the imaginary parts of the sparse
//! matrix multiply the columns of the dense matrix and of `i` times it.

use crate::creation::sequences::arange;
use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::sparse::dense::{self, tensor, times};
use crate::{check, operators};
use dml_compute::complex::parts::parts;
use dml_compute::complex::product::interleaved;
use dml_compute::complex::reduction::working_copy;
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::scalar::Scalar as Number;
use dml_compute::sparse::compressed_mm::multiply;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    // `beta * self + alpha * sparse @ dense`, where `sparse` is of compressed rows or of compressed
    // rows of blocks; unless `left`, `beta * self + alpha * dense @ sparse^T`.
    addmm(self, {Given}, dense, left, beta, alpha).declines().complex(Complex::Own).float8(float8::own) {
        "torch_dml::compressed_addmm(Tensor self, Tensor offsets, Tensor indices, Tensor values, int[] size, Tensor dense, bool left, Scalar beta, Scalar alpha) -> Tensor",
    }
}

crate::group! {
    /// A matrix of compressed rows.
    #[derive(Copy, Clone)]
    pub struct Given<'a> {
        /// Row `r` has the entries from `offsets[r]` to `offsets[r + 1]`: `[rows + 1]`.
        offsets: &'a View,
        /// The column of each entry, or of blocks, in the dtype of the offsets: `[entries]`.
        indices: &'a View,
        /// `[entries]`, or of blocks `[entries, height, width]`.
        values: &'a View,
        /// The matrix's sizes.
        size: &'a [i64],
    }
}

/// Compressed rows of a matrix, as in [`Given`]. Values that are missing are ones.
#[derive(Copy, Clone)]
pub struct Rows<'t> {
    /// The number of entries before each row, and of all.
    pub offsets: &'t View,
    /// The column of each entry.
    pub indices: &'t View,
    /// The value of each entry.
    pub values: Option<&'t View>,
}

impl<'t> From<Given<'t>> for Rows<'t> {
    fn from(Given { offsets, indices, values, .. }: Given<'t>) -> Self {
        Rows { offsets, indices, values: Some(values) }
    }
}

impl Rows<'_> {
    /// `alpha * self @ dense + beta * addend` for a dense matrix `[.., n]` and an addend `[rows,
    /// n]`, all of one dtype. Integers wrap around; halves are accumulated in float32 and rounded
    /// once. An index out of range of the rows of `dense` is reported.
    ///
    /// # Errors
    /// [`Error::NotImplemented`](crate::operator::error::Error::NotImplemented) for bools.
    pub fn multiply(
        &self,
        call: &Call,
        dense: &View,
        addend: Option<&View>,
        [beta, alpha]: [Number; 2],
    ) -> Result<View> {
        self.check(call, dense, addend)?;
        dense::check_factors(dense.dtype, [beta, alpha])?;
        let out = call.empty(dense.dtype, &[self.offsets.numel() - 1, dense.sizes[1]])?;
        if !dense.dtype.is_complex() {
            let added = addend.filter(|_| beta.to_f64() != 0.0);
            self.multiply_reals(call, dense, added, [beta, alpha], &out)?;
            return Ok(out);
        }
        let (sums, one) = (interleaved(&out, 2 * dense.sizes[1]), Number::Int(1));
        let columns = columns_of_parts(call, dense)?;
        match self.values {
            None => self.multiply_reals(call, &columns, None, [one, one], &sums)?,
            Some(values) => {
                let [re, im] = parts(values);
                let [re, im] = [&re, &im].map(|values| Rows { values: Some(values), ..*self });
                re.multiply_reals(call, &columns, None, [one, one], &sums)?;
                let turned = columns_of_parts(call, &times(call, dense, Number::Complex(0.0, 1.0))?)?;
                im.multiply_reals(call, &turned, Some(&sums), [one, one], &sums)?;
            }
        }
        dense::combined(call, out, alpha, addend, beta)
    }

    /// [`multiply`](Self::multiply) for reals, into `out`, which may be the addend.
    fn multiply_reals(
        &self,
        call: &Call,
        dense: &View,
        addend: Option<&View>,
        factors: [Number; 2],
        out: &View,
    ) -> Result<()> {
        let Rows { offsets, indices, values } = *self;
        if out.numel() > 0 {
            match addend {
                // There is no product.
                None if indices.numel() == 0 || dense.numel() == 0 => fill_with(call, out, Number::Int(0))?,
                _ => multiply(call, [offsets, indices], values, dense, addend, factors, out)?,
            }
        }
        Ok(())
    }

    fn check(&self, call: &Call, dense: &View, addend: Option<&View>) -> Result<()> {
        let Rows { offsets, indices, values } = *self;
        let dtype = dense.dtype;
        let sums = dtype != DType::Bool && !dtype.is_float8();
        check!(sums, NotImplemented, "\"addmm_sparse_dense\" not implemented for '{dtype}'");
        let (entries, rows) = (indices.numel(), offsets.numel() - 1);
        let index = matches!(offsets.dtype, DType::I32 | DType::I64) && indices.dtype == offsets.dtype;
        let shaped = offsets.dim() == 1 && indices.dim() == 1 && dense.dim() == 2 && rows >= 0;
        let alike = |t: &View, sizes: &[i64]| t.dtype == dtype && t.sizes[..] == *sizes;
        check!(
            index
                && shaped
                && values.is_none_or(|t| alike(t, &[entries]))
                && addend.is_none_or(|t| alike(t, &[rows, dense.sizes[1]])),
            Runtime,
            "{}: offsets {}, indices {} and dense {} do not fit each other or the others",
            call.name,
            offsets.describe(),
            indices.describe(),
            dense.describe()
        );
        Ok(())
    }
}

/// A complex matrix as a real one in which each column is two, its real and its imaginary part.
pub fn columns_of_parts(call: &Call, t: &View) -> Result<View> {
    Ok(interleaved(&copied(call, t)?, 2 * t.sizes[1]))
}

/// `self` is `[m, n]`, of the result's size, and `dense` a matrix. Blocks of bools and no blocks
/// are declined.
fn addmm(
    call: &mut Call,
    addend: AnyTensor,
    sparse: Given,
    dense: AnyTensor,
    left: bool,
    beta: Number,
    alpha: Number,
) -> Result<()> {
    let Given { values, size, .. } = sparse;
    let blocks = values.dim() == 3;
    if blocks && (values.dtype == DType::Bool || values.numel() == 0) {
        call.decline(1);
        return Ok(());
    }
    let [mut first, mut second] = [[size[0], size[1]], [dense.sizes[0], dense.sizes[1]]];
    if !left {
        [first, second] = [second, [first[1], first[0]]];
    }
    let ([m, k], [height, n]) = (first, second);
    check!(k == height, Runtime, "mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {height}x{n})");
    let [addend, dense] = [addend, dense].map(|t| {
        let t = dense::here(call, t, "aten::addmm")?;
        let [wanted, found] = [t.dtype, values.dtype];
        check!(wanted == found, Runtime, "expected scalar type {wanted} but found {found}");
        Ok(if left { t.clone() } else { t.transpose(0, 1) })
    });
    let (addend, dense, factors) = (addend?, dense?, [beta, alpha]);
    let product = if blocks {
        blocks_times(call, sparse, &dense, &addend, factors)?
    } else {
        Rows::from(sparse).multiply(call, &dense, Some(&addend), factors)?
    };
    let product = if left { product } else { call.host.view(&product, &product.transpose(0, 1))? };
    call.ret(product);
    Ok(())
}

/// Multiplies each block by the rows of `dense` at its columns, and adds up the products of each
/// row of blocks.
fn blocks_times(
    call: &Call,
    Given { offsets, indices, values, size }: Given,
    dense: &View,
    addend: &View,
    [beta, alpha]: [Number; 2],
) -> Result<View> {
    let ([entries, height, width], n) = ([values.sizes[0], values.sizes[1], values.sizes[2]], dense.sizes[1]);
    let slices = reshaped(&copied(call, dense)?, &[size[1] / width, width * n]);
    let met = reshaped(&dense::select(call, &slices, 0, indices)?, &[entries, width, n]);
    let products = dense::run(call, dense::BMM, &[tensor(values), tensor(&met)])?;
    let entry_numbers = call.empty(indices.dtype, &[entries])?;
    let count = [0, entries, 1].map(Number::Int);
    call.result_of(|call| arange(call, count[0], count[1], count[2], Out::Into(&entry_numbers)))?;
    let sums = Rows { offsets, indices: &entry_numbers, values: None };
    let sums = sums.multiply(call, &reshaped(&products, &[entries, height * n]), None, [Number::Int(0), alpha])?;
    let product = call.host.view(&sums, &reshaped(&sums, &[size[0], n]))?;
    dense::combined(call, product, Number::Int(1), Some(addend), beta)
}

/// The tensor, or a contiguous copy.
pub fn copied(call: &Call, t: &View) -> Result<View> {
    Ok(if t.dtype.is_complex() && !t.is_contiguous() { working_copy(call, t)? } else { as_contiguous(call, t)? })
}

/// A contiguous tensor with other sizes.
pub fn reshaped(t: &View, sizes: &[i64]) -> View {
    t.as_strided(sizes, &View::contiguous_strides(sizes), 0)
}
