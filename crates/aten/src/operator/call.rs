//! One call of an operator: its arguments by position, its results, and its requests to the caller.

pub use crate::operator::value::Arg;

pub use crate::operator::value::Ret;

pub use dml_compute::MatmulPrecision;

use crate::check;
use crate::operator::argument::{Arguments, check_device};
use crate::operator::error::{Error, Result};
use crate::tensor::casting::can_cast;
use crate::tensor::overlap;
use dml_compute::context::Phase;
use dml_compute::{Context, Dims, Environment, View};
use dml_engine::{Device, FaultKind};
use dml_kernel::DType;
use smallvec::SmallVec;
use std::ops::Deref;
use std::sync::Arc;

/// The services of the caller in addition to memory and the settings of a computation: it owns the
/// tensors.
pub trait Host: Environment {
    /// Resizes an `out=` tensor, with PyTorch's rules and warning.
    fn resize(&self, tensor: &mut View, sizes: &[i64], strides: &[i64]) -> Result<()>;
    /// Creates a tensor object that shares `base`'s storage, with `view`'s sizes, strides and
    /// address, which can be returned.
    fn view(&self, base: &View, view: &View) -> Result<View>;
    /// Warns the user, once for each call site.
    fn warn(&self, message: &str);
    /// `torch.get_default_dtype()`
    fn default_dtype(&self) -> DType;
}

/// One call of an operator.
pub struct Call<'a> {
    /// The context of the computation: the device, workspaces, the policy.
    pub context: Context<'a>,
    /// The arguments in schema order, defaults filled in.
    pub args: &'a [Arg<'a>],
    /// The owner of tensors.
    pub host: &'a dyn Host,
    /// Results, in schema order.
    pub returns: SmallVec<[Ret; 3]>,
}

impl<'a> Deref for Call<'a> {
    type Target = Context<'a>;

    #[inline]
    fn deref(&self) -> &Context<'a> {
        &self.context
    }
}

impl<'a> Call<'a> {
    /// A call with this name, as in `aten::add.Tensor`.
    #[inline]
    pub fn named(
        name: &'static str,
        index_fault: FaultKind,
        args: &'a [Arg<'a>],
        device: &'a Arc<Device>,
        host: &'a dyn Host,
    ) -> Self {
        let context = Context { device, environment: host, name, index_fault, phase: Phase::Run };
        Call { context, args, host, returns: SmallVec::new() }
    }

    /// A nested call with other arguments.
    pub fn with_arguments<'b>(&'b self, args: &'b [Arg<'b>]) -> Call<'b> {
        self.with_host(args, self.host)
    }

    /// A nested call with other arguments and another host.
    pub fn with_host<'b>(&'b self, args: &'b [Arg<'b>], host: &'b dyn Host) -> Call<'b> {
        let mut call = Call::named(self.name, self.index_fault, args, self.device, host);
        call.context.phase = self.phase;
        call
    }

    /// Runs another operator's function in a nested call, and returns its first result.
    ///
    /// # Errors
    /// The function's; [`Error::Runtime`] if its first result is not a tensor.
    pub fn result_of(&self, run: impl FnOnce(&mut Call) -> Result<()>) -> Result<View> {
        let mut inner = self.with_arguments(&[]);
        run(&mut inner)?;
        inner.first_result()
    }

    /// The first result of a call that has run.
    ///
    /// # Errors
    /// [`Error::Runtime`] if it is not a tensor.
    pub fn first_result(self) -> Result<View> {
        match self.returns.into_iter().next() {
            Some(Ret::Tensor(t)) => Ok(t),
            other => Err(Error::Runtime(format!("{}: expected a tensor, but got {other:?}", self.context.name))),
        }
    }

    /// The arguments, for access as Rust values.
    #[inline]
    pub fn arguments(&self) -> Arguments<'a> {
        Arguments { args: self.args, name: self.name, device: self.device.index() as u8 }
    }

    /// The tensor for a result of this dtype and shape: a new one, or the `out=` argument, resized.
    /// An `out=` of another dtype is accepted only if the value can be cast.
    pub fn result(&self, given: Option<&View>, dtype: DType, sizes: &[i64]) -> Result<View> {
        self.result_strided(given, dtype, sizes, || View::contiguous_strides(sizes))
    }

    /// As [`result`](Self::result), with the strides of a new or resized tensor.
    pub fn result_strided(
        &self,
        given: Option<&View>,
        dtype: DType,
        sizes: &[i64],
        strides: impl FnOnce() -> Dims,
    ) -> Result<View> {
        let Some(given) = given else { return Ok(self.empty_strided(dtype, sizes, &strides())?) };
        if given.dtype.is_complex() && !dtype.is_complex() {
            return Err(Error::Fallback(format!("{}: reals into complex numbers", self.name)));
        }
        self.given_strided(given, dtype, sizes, strides)
    }

    /// The `out=` argument for a result of this dtype. It may be complex for a real result: the
    /// caller then writes both parts.
    pub fn given_strided(
        &self,
        given: &View,
        dtype: DType,
        sizes: &[i64],
        strides: impl FnOnce() -> Dims,
    ) -> Result<View> {
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
    pub fn check_place(&self, t: &View) -> Result<()> {
        check_device(self.name, self.device.index() as u8, t)
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

    /// The size of dimension `d`, which the tensor may not have.
    pub fn size_of(&self, t: &View, d: usize) -> Result<i64> {
        check!(t.dim() > 0, Index, "Dimension specified as {d} but tensor has no dimensions");
        self.wrap_dim(d as i64, t.dim()).map(|d| t.sizes[d])
    }

    /// Adds a tensor result.
    pub fn ret(&mut self, t: View) {
        self.returns.push(Ret::Tensor(t));
    }

    /// Adds a tensor result that only some calls request.
    pub fn ret_optional(&mut self, t: Option<View>) {
        self.returns.push(t.map_or(Ret::None, Ret::Tensor));
    }

    /// Declines the call: all of the operator's `count` results are missing. Some of the engine's
    /// own operators do so for unsupported arguments, and the plugin then calls PyTorch's
    /// composite.
    pub fn decline(&mut self, count: usize) {
        self.returns.extend((0..count).map(|_| Ret::None));
    }

    /// Adds any result.
    pub fn ret_value(&mut self, r: Ret) {
        self.returns.push(r);
    }

    /// The broadcast of two shapes.
    pub fn broadcast(&self, a: &[i64], b: &[i64]) -> Result<Dims> {
        let rank = a.len().max(b.len());
        let at = |s: &[i64], d: usize| if d + s.len() < rank { 1 } else { s[d + s.len() - rank] };
        let mut sizes = Dims::from_elem(0, rank);
        // From the last dimension, whose mismatch the CPU reports first.
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
