//! One call of an operator: its arguments by position, its results, and what it may ask of the caller.

use crate::check;
use crate::operator::argument::{Arguments, elsewhere};
use crate::operator::error::{Error, Result};
pub use crate::operator::value::{Arg, Ret, Scalar};
use crate::tensor::{Dims, Place, Tensor};
use dml_engine::Device;
use dml_kernel::DType;
use smallvec::SmallVec;
use std::sync::Arc;

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
        let mut out = given.clone();
        check!(
            dtype.can_cast_to(out.dtype),
            Runtime,
            "result type {dtype} can't be cast to the desired output type {}",
            out.dtype
        );
        if out.sizes.as_slice() != sizes {
            self.host.resize(&mut out, sizes, &strides())?;
        }
        Ok(out)
    }

    fn arg(&self, i: usize) -> Result<&'a Arg<'a>> {
        self.args.get(i).ok_or_else(|| Error::Runtime(format!("{}: argument {i} is missing", self.name)))
    }

    fn wrong<T>(&self, i: usize, wanted: &str) -> Result<T> {
        Err(Error::Type(format!("{}: argument {i} must be {wanted}, not {:?}", self.name, self.arg(i)?)))
    }

    /// Argument `i`, a tensor on any device.
    pub fn any_tensor(&self, i: usize) -> Result<&'a Tensor> {
        match self.arg(i)? {
            Arg::Tensor(t) => Ok(t),
            _ => self.wrong(i, "a tensor"),
        }
    }

    /// Argument `i`, a tensor on this call's device; otherwise an error that names both devices.
    pub fn tensor(&self, i: usize) -> Result<&'a Tensor> {
        let t = self.any_tensor(i)?;
        self.check_place(t)?;
        Ok(t)
    }

    /// Argument `i`, a tensor on this call's device or `None`.
    pub fn opt_tensor(&self, i: usize) -> Result<Option<&'a Tensor>> {
        match self.arg(i)? {
            Arg::None => Ok(None),
            _ => self.tensor(i).map(Some),
        }
    }

    /// Argument `i`, a list of tensors on this call's device.
    pub fn tensors(&self, i: usize) -> Result<SmallVec<[&'a Tensor; 8]>> {
        let mut all = SmallVec::new();
        for t in self.opt_tensors(i)? {
            match t {
                Some(t) => {
                    self.check_place(t)?;
                    all.push(t);
                }
                None => return self.wrong(i, "a list of defined tensors"),
            }
        }
        Ok(all)
    }

    /// Argument `i`, a list of tensors or `None`s on any device.
    pub fn opt_tensors(&self, i: usize) -> Result<SmallVec<[Option<&'a Tensor>; 8]>> {
        match self.arg(i)? {
            Arg::Tensors(list) => Ok(list.iter().map(Option::as_ref).collect()),
            _ => self.wrong(i, "a list of tensors"),
        }
    }

    /// Checks that a tensor is on this call's device.
    pub fn check_place(&self, t: &Tensor) -> Result<()> {
        let here = self.device.index() as u8;
        if t.place == Place::Dml(here) { Ok(()) } else { Err(elsewhere(self.name, here, t)) }
    }

    /// Argument `i`, a number.
    pub fn scalar(&self, i: usize) -> Result<Scalar> {
        match self.arg(i)? {
            Arg::Scalar(s) => Ok(*s),
            _ => self.wrong(i, "a number"),
        }
    }

    /// Argument `i`, a number or `None`.
    pub fn opt_scalar(&self, i: usize) -> Result<Option<Scalar>> {
        match self.arg(i)? {
            Arg::None => Ok(None),
            _ => self.scalar(i).map(Some),
        }
    }

    /// Argument `i`, an integer.
    pub fn int(&self, i: usize) -> Result<i64> {
        Ok(self.scalar(i)?.to_i64())
    }

    /// Argument `i`, a float.
    pub fn double(&self, i: usize) -> Result<f64> {
        Ok(self.scalar(i)?.to_f64())
    }

    /// Argument `i`, a flag.
    pub fn flag(&self, i: usize) -> Result<bool> {
        Ok(self.scalar(i)?.to_i64() != 0)
    }

    /// Argument `i`, a dtype or `None`.
    pub fn opt_dtype(&self, i: usize) -> Result<Option<DType>> {
        match self.opt_scalar(i)? {
            None => Ok(None),
            Some(s) => DType::from_code(s.to_i64() as u8)
                .map(Some)
                .ok_or_else(|| Error::Fallback(format!("{}: this dtype has no kernels", self.name))),
        }
    }

    /// Argument `i`, a list of integers.
    pub fn ints(&self, i: usize) -> Result<&'a [i64]> {
        match self.arg(i)? {
            Arg::Ints(list) => Ok(list),
            _ => self.wrong(i, "a list of integers"),
        }
    }

    /// Argument `i`, a list of integers or `None`.
    pub fn opt_ints(&self, i: usize) -> Result<Option<&'a [i64]>> {
        match self.arg(i)? {
            Arg::None => Ok(None),
            _ => self.ints(i).map(Some),
        }
    }

    /// Argument `i`, a list of flags.
    pub fn flags(&self, i: usize) -> Result<&'a [u8]> {
        match self.arg(i)? {
            Arg::Bools(list) => Ok(list),
            _ => self.wrong(i, "a list of flags"),
        }
    }

    /// Argument `i`, a list of numbers.
    pub fn scalars(&self, i: usize) -> Result<SmallVec<[Scalar; 8]>> {
        match self.arg(i)? {
            Arg::Scalars(list) => Ok(list.iter().copied().collect()),
            Arg::Doubles(list) => Ok(list.iter().map(|&d| Scalar::Double(d)).collect()),
            Arg::Ints(list) => Ok(list.iter().map(|&d| Scalar::Int(d)).collect()),
            _ => self.wrong(i, "a list of numbers"),
        }
    }

    /// Argument `i`, a string, or `None`.
    pub fn opt_str(&self, i: usize) -> Result<Option<&'a str>> {
        match self.arg(i)? {
            Arg::None => Ok(None),
            Arg::Str(s) => Ok(Some(s)),
            _ => self.wrong(i, "a string"),
        }
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

    /// A new contiguous tensor on this call's device.
    pub fn empty(&self, dtype: DType, sizes: &[i64]) -> Result<Tensor> {
        self.empty_strided(dtype, sizes, &Tensor::contiguous_strides(sizes))
    }

    /// A new tensor on this call's device.
    pub fn empty_strided(&self, dtype: DType, sizes: &[i64], strides: &[i64]) -> Result<Tensor> {
        self.host.empty(self.device.index() as u8, dtype, sizes, strides)
    }

    /// The tensor to write a result to: a new one, or the `out=` argument `i` of that overload, resized.
    /// `dtype` is what the operator computes; an `out=` of another dtype is accepted only if the value can be cast.
    pub fn out(&self, i: Option<usize>, dtype: DType, sizes: &[i64]) -> Result<Tensor> {
        let given = i.map(|i| self.tensor(i)).transpose()?;
        self.result(given, dtype, sizes)
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
