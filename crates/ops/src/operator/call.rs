//! One call of an operator: its arguments by position, its results, and what it may ask of the caller.

use crate::check;
use crate::operator::argument::{Arguments, elsewhere};
use crate::operator::error::{Error, Result};
pub use crate::operator::value::{Arg, Ret, Scalar};
use crate::tensor::casting::can_cast;
use crate::tensor::{DeviceKind, Dims, Tensor, overlap};
use dml_engine::Device;
use dml_kernel::DType;
use smallvec::SmallVec;
use std::sync::Arc;

/// How products of float32 matrices are computed: `torch.set_float32_matmul_precision`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MatmulPrecision {
    /// In float32.
    Highest,
    /// In float32, or on matrix units as near to it in each sum: factors in two terms of 11 bits.
    High,
    /// Factors rounded to bfloat16, where that is faster.
    Medium,
}

/// What an operator asks of its caller: tensors live there.
pub trait Host {
    /// A new uninitialised tensor on `dml:device`.
    fn empty(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> Result<Tensor>;
    /// Gives an `out=` tensor new sizes, with PyTorch's rules and warning.
    fn resize(&self, tensor: &mut Tensor, sizes: &[i64], strides: &[i64]) -> Result<()>;
    /// A tensor object that shares `base`'s storage with `view`'s sizes, strides and address, fit to be returned.
    fn view(&self, base: &Tensor, view: &Tensor) -> Result<Tensor>;
    /// A warning for the user, once a call site.
    fn warn(&self, message: &str);
    /// `torch.get_default_dtype()`
    fn default_dtype(&self) -> DType;
    /// `torch.are_deterministic_algorithms_enabled()`
    fn deterministic(&self) -> bool;
    /// `torch.get_float32_matmul_precision()`, where it is in force. Asked by products alone: it is a call of its own.
    fn matmul_precision(&self) -> MatmulPrecision;
    /// The dtype of 16 bits that products round operands of float32 to, while autocast asks for it.
    fn product_dtype(&self) -> Option<DType>;
}

/// One call of an operator.
pub struct Call<'a> {
    /// Overload name, as in `aten::add.Tensor`.
    pub name: &'static str,
    /// The arguments in schema order, defaults filled in.
    pub args: &'a [Arg<'a>],
    /// The device the call runs on.
    pub device: &'a Arc<Device>,
    /// Where tensors are made.
    pub host: &'a dyn Host,
    /// Results, in schema order.
    pub returns: SmallVec<[Ret; 3]>,
}

impl<'a> Call<'a> {
    /// The arguments, to be taken as Rust values.
    #[inline]
    pub fn arguments(&self) -> Arguments<'a> {
        Arguments { args: self.args, name: self.name, device: self.device.index() as u8 }
    }

    /// The tensor for a result of this dtype and shape: a new one, or the `out=` argument, resized. An `out=` of
    /// another dtype is accepted only if the value can be cast.
    pub fn result(&self, given: Option<&Tensor>, dtype: DType, sizes: &[i64]) -> Result<Tensor> {
        self.result_strided(given, dtype, sizes, || Tensor::contiguous_strides(sizes))
    }

    /// As [`result`](Self::result), with the strides that a new tensor gets, and an `out=` argument that is resized.
    pub fn result_strided(
        &self,
        given: Option<&Tensor>,
        dtype: DType,
        sizes: &[i64],
        strides: impl FnOnce() -> Dims,
    ) -> Result<Tensor> {
        let Some(given) = given else { return self.empty_strided(dtype, sizes, &strides()) };
        if given.dtype.is_complex() && !dtype.is_complex() {
            return Err(Error::Fallback(format!("{}: reals into complex numbers", self.name)));
        }
        self.given_strided(given, dtype, sizes, strides)
    }

    /// An `out=` argument for a result of this dtype, which may be of reals where it is complex itself: the caller writes both parts.
    pub fn given_strided(
        &self,
        given: &Tensor,
        dtype: DType,
        sizes: &[i64],
        strides: impl FnOnce() -> Dims,
    ) -> Result<Tensor> {
        let mut out = given.clone();
        check!(
            can_cast(dtype, out.dtype),
            Runtime,
            "result type {dtype} can't be cast to the desired output type {}",
            out.dtype
        );
        if out.sizes.as_slice() != sizes {
            self.host.resize(&mut out, sizes, &strides())?;
        }
        overlap::check_internal(&out)?;
        Ok(out)
    }

    /// Checks that a tensor is on this call's device.
    pub fn check_place(&self, t: &Tensor) -> Result<()> {
        let here = self.device.index() as u8;
        if t.place == DeviceKind::Dml(here) { Ok(()) } else { Err(elsewhere(self.name, here, t)) }
    }

    /// A dimension argument, wrapped into `0..dim` (a 0-dim tensor counts as 1-dim).
    pub fn wrap_dim(&self, d: i64, dim: usize) -> Result<usize> {
        let n = dim.max(1) as i64;
        check!(
            (-n..n).contains(&d),
            Index,
            "Dimension out of range (expected to be in range of [{}, {}], but got {d})",
            -n,
            n - 1
        );
        Ok((if d < 0 { d + n } else { d }) as usize)
    }

    /// The size of dimension `d`, of a tensor that may not have as many.
    pub fn size_of(&self, t: &Tensor, d: usize) -> Result<i64> {
        check!(t.dim() > 0, Index, "Dimension specified as {d} but tensor has no dimensions");
        self.wrap_dim(d as i64, t.dim()).map(|d| t.sizes[d])
    }

    /// A new contiguous tensor on this call's device.
    pub fn empty(&self, dtype: DType, sizes: &[i64]) -> Result<Tensor> {
        self.empty_strided(dtype, sizes, &Tensor::contiguous_strides(sizes))
    }

    /// A new tensor on this call's device.
    pub fn empty_strided(&self, dtype: DType, sizes: &[i64], strides: &[i64]) -> Result<Tensor> {
        self.host.empty(self.device.index() as u8, dtype, sizes, strides)
    }

    /// Adds a tensor result.
    pub fn ret(&mut self, t: Tensor) {
        self.returns.push(Ret::Tensor(t));
    }

    /// Adds a tensor result that not every call asks for.
    pub fn ret_optional(&mut self, t: Option<Tensor>) {
        self.returns.push(t.map_or(Ret::None, Ret::Tensor));
    }

    /// Adds any result.
    pub fn ret_value(&mut self, r: Ret) {
        self.returns.push(r);
    }

    /// Sizes of two shapes broadcast together.
    pub fn broadcast(&self, a: &[i64], b: &[i64]) -> Result<Dims> {
        let rank = a.len().max(b.len());
        let at = |s: &[i64], d: usize| if d + s.len() < rank { 1 } else { s[d + s.len() - rank] };
        let mut sizes = Dims::from_elem(0, rank);
        // From the last dimension, whose mismatch CPU names first.
        for d in (0..rank).rev() {
            let (x, y) = (at(a, d), at(b, d));
            check!(
                x == y || x == 1 || y == 1,
                Runtime,
                "The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {d}"
            );
            sizes[d] = if x == 1 { y } else { x };
        }
        Ok(sizes)
    }
}
