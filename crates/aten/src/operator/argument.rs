//! Arguments of a call as Rust values.

use crate::operator::device_type::DeviceName;
use crate::operator::error::{Error, Result};
use crate::operator::schema::Written;
use crate::operator::value::Arg;
use dml_compute::scalar::Scalar;
use dml_compute::view::{Location, View};

use dml_kernel::DType;
use smallvec::SmallVec;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

/// The arguments of one call, in schema order.
#[derive(Copy, Clone)]
pub struct Arguments<'a> {
    pub(super) args: &'a [Arg<'a>],
    /// The operator, for messages.
    pub(super) name: &'static str,
    /// The index of the device that the call runs on.
    pub(super) device: u8,
}

/// A type of argument.
pub trait FromArgument<'a>: Sized {
    /// Takes argument `i`.
    ///
    /// # Errors
    /// [`Error::Type`] if it is of another kind, [`Error::Runtime`] if it is on another device.
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self>;
}

/// A tensor on any device: pointwise operators accept 0-dim CPU tensors as numbers.
#[derive(Copy, Clone, Debug)]
pub struct AnyTensor<'a>(pub &'a View);

impl Deref for AnyTensor<'_> {
    type Target = View;
    fn deref(&self) -> &View {
        self.0
    }
}

/// An operand that is a tensor in some overloads of a function, and a number in others.
#[derive(Copy, Clone, Debug)]
pub enum TensorOrScalar<'a> {
    /// A tensor on any device.
    Tensor(AnyTensor<'a>),
    /// A number.
    Scalar(Scalar),
}

/// Integers that are a tensor in some overloads of a function, and a list in others.
#[derive(Copy, Clone, Debug)]
pub enum TensorOrInts<'a> {
    /// A tensor on any device.
    Tensor(AnyTensor<'a>),
    /// A list.
    Ints(&'a [i64]),
}

/// One number for all tensors of a list, or one for each.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// One for all.
    Same(Scalar),
    /// One for each.
    Each(SmallVec<[Scalar; 8]>),
}

/// A list of tensors on the call's device.
pub type Tensors<'a> = SmallVec<[&'a View; 8]>;

/// A list of tensors or `None`s on any device.
pub type OptTensors<'a> = SmallVec<[Option<&'a View>; 8]>;

/// A generator other than the default one.
pub type Generator = Arc<Mutex<dml_engine::Generator>>;

/// The destination of an overload's only result.
#[derive(Copy, Clone, Debug)]
pub enum Out<'a> {
    /// A new tensor.
    New,
    /// Its first argument.
    InPlace(&'a View),
    /// The `out=` argument, which may be resized.
    Into(&'a View),
}

/// The destinations of an overload's results: the `out=` arguments, or `None` for new tensors.
pub type Outs<'a> = Option<Tensors<'a>>;

impl<'a> Out<'a> {
    /// The given tensor for the result, if any.
    pub fn given(self) -> Option<&'a View> {
        match self {
            Out::New => None,
            Out::InPlace(t) | Out::Into(t) => Some(t),
        }
    }

    /// The given tensor, for operators all of whose overloads have one.
    ///
    /// # Errors
    /// [`Error::Runtime`] for [`Out::New`].
    pub fn tensor(self) -> Result<&'a View> {
        self.given().ok_or_else(|| Error::Runtime("the overload takes no tensor for its result".to_owned()))
    }
}

impl<'a> Arguments<'a> {
    /// Argument `i`.
    ///
    /// # Errors
    /// [`Error::Type`] if it is of another kind, [`Error::Runtime`] if it is on another device.
    #[inline]
    pub fn get<T: FromArgument<'a>>(self, i: usize) -> Result<T> {
        T::take(self, i)
    }

    /// The destination of the overload's only result.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    pub fn out(self, written: Written) -> Result<Out<'a>> {
        if written.count == 0 {
            return Ok(Out::New);
        }
        let t = self.get(written.first)?;
        Ok(if written.in_place { Out::InPlace(t) } else { Out::Into(t) })
    }

    /// The destinations of the overload's results.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn outs(self, written: Written) -> Result<Outs<'a>> {
        if written.count == 0 {
            return Ok(None);
        }
        (written.first..written.first + written.count).map(|i| self.get(i)).collect::<Result<_>>().map(Some)
    }

    fn raw(self, i: usize) -> Result<&'a Arg<'a>> {
        self.args.get(i).ok_or_else(|| Error::Runtime(format!("{}: argument {i} is missing", self.name)))
    }

    #[cold]
    fn wrong<T>(self, i: usize, wanted: &str) -> Result<T> {
        Err(Error::Type(format!("{}: argument {i} must be {wanted}, not {:?}", self.name, self.raw(i)?)))
    }

    fn check_device(self, t: &View) -> Result<()> {
        check_device(self.name, self.device, t)
    }
}

/// Checks that a tensor is on `dml:device`. The error names the operator `name`.
#[inline]
pub(crate) fn check_device(name: &str, device: u8, t: &View) -> Result<()> {
    if t.location == Location::Device(device) { Ok(()) } else { Err(wrong_device_error(name, device, t)) }
}

/// The error for a tensor that is not on `dml:device`.
#[cold]
fn wrong_device_error(name: &str, device: u8, t: &View) -> Error {
    let there = match t.location {
        Location::Host => "cpu".to_string(),
        Location::Device(i) => DeviceName(i.into()).to_string(),
        Location::OtherDevice => "another backend's device".to_string(),
    };
    Error::Runtime(format!(
        "Expected all tensors to be on the same device, but found at least two devices, {} and {there}! (in {name})",
        DeviceName(device.into())
    ))
}

impl<'a> FromArgument<'a> for AnyTensor<'a> {
    #[inline]
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::Tensor(t) => Ok(AnyTensor(t)),
            _ => arguments.wrong(i, "a tensor"),
        }
    }
}

impl<'a> FromArgument<'a> for TensorOrScalar<'a> {
    #[inline]
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::Tensor(t) => Ok(TensorOrScalar::Tensor(AnyTensor(t))),
            Arg::Scalar(s) => Ok(TensorOrScalar::Scalar(*s)),
            _ => arguments.wrong(i, "a tensor or a number"),
        }
    }
}

impl<'a> FromArgument<'a> for TensorOrInts<'a> {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::Tensor(t) => Ok(TensorOrInts::Tensor(AnyTensor(t))),
            Arg::Ints(list) => Ok(TensorOrInts::Ints(list)),
            _ => arguments.wrong(i, "a tensor or a list of integers"),
        }
    }
}

impl<'a> FromArgument<'a> for &'a View {
    #[inline]
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        let AnyTensor(t) = arguments.get(i)?;
        arguments.check_device(t)?;
        Ok(t)
    }
}

impl<'a> FromArgument<'a> for OptTensors<'a> {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::Tensors(list) => Ok(list.iter().map(Option::as_ref).collect()),
            _ => arguments.wrong(i, "a list of tensors"),
        }
    }
}

impl<'a> FromArgument<'a> for Tensors<'a> {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        let mut all = Tensors::new();
        for t in arguments.get::<OptTensors>(i)? {
            let Some(t) = t else { return arguments.wrong(i, "a list of defined tensors") };
            arguments.check_device(t)?;
            all.push(t);
        }
        Ok(all)
    }
}

impl<'a> FromArgument<'a> for Scalar {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::Scalar(s) => Ok(*s),
            _ => arguments.wrong(i, "a number"),
        }
    }
}

impl<'a> FromArgument<'a> for SmallVec<[Scalar; 8]> {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::Scalars(list) => Ok(list.iter().copied().collect()),
            Arg::Doubles(list) => Ok(list.iter().map(|&d| Scalar::Double(d)).collect()),
            Arg::Ints(list) => Ok(list.iter().map(|&d| Scalar::Int(d)).collect()),
            _ => arguments.wrong(i, "a list of numbers"),
        }
    }
}

impl<'a> FromArgument<'a> for Numbers {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::Scalar(s) => Ok(Numbers::Same(*s)),
            _ => arguments.get(i).map(Numbers::Each),
        }
    }
}

/// Numbers, and numbers or `None`.
macro_rules! from_scalar {
    ($($type:ty: |$s:ident| $value:expr;)*) => {$(
        impl<'a> FromArgument<'a> for $type {
            fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
                let $s: Scalar = arguments.get(i)?;
                Ok($value)
            }
        }
    )*};
}

from_scalar! {
    i64: |s| s.to_i64();
    f64: |s| s.to_f64();
    bool: |s| s.to_i64() != 0;
}

/// A value, or `None`.
macro_rules! optional {
    ($($type:ty),*) => {$(
        impl<'a> FromArgument<'a> for Option<$type> {
            fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
                if matches!(arguments.raw(i)?, Arg::None) { Ok(None) } else { arguments.get(i).map(Some) }
            }
        }
    )*};
}

optional!(&'a View, AnyTensor<'a>, TensorOrScalar<'a>, Scalar, i64, f64, bool, &'a [i64], &'a [f64]);

impl<'a> FromArgument<'a> for Option<DType> {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.get::<Option<i64>>(i)? {
            None => Ok(None),
            Some(code) => DType::from_code(code as u8)
                .filter(|dtype| dtype.is_common())
                .map(Some)
                .ok_or_else(|| Error::Fallback(format!("{}: this dtype has no kernels", arguments.name))),
        }
    }
}

impl<'a> FromArgument<'a> for DType {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.get(i)? {
            Some(dtype) => Ok(dtype),
            None => arguments.wrong(i, "a dtype"),
        }
    }
}

impl<'a> FromArgument<'a> for &'a [i64] {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::Ints(list) => Ok(list),
            _ => arguments.wrong(i, "a list of integers"),
        }
    }
}

impl<'a> FromArgument<'a> for &'a [f64] {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::Doubles(list) => Ok(list),
            _ => arguments.wrong(i, "a list of floats"),
        }
    }
}

/// Bools, one byte each.
impl<'a> FromArgument<'a> for &'a [u8] {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::Bools(list) => Ok(list),
            _ => arguments.wrong(i, "a list of flags"),
        }
    }
}

impl<'a> FromArgument<'a> for Option<&'a str> {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::None => Ok(None),
            Arg::Str(s) => Ok(Some(s)),
            _ => arguments.wrong(i, "a string"),
        }
    }
}

impl<'a> FromArgument<'a> for Option<Generator> {
    fn take(arguments: Arguments<'a>, i: usize) -> Result<Self> {
        match arguments.raw(i)? {
            Arg::None => Ok(None),
            Arg::Generator(generator) => Ok(Some(Arc::clone(generator))),
            _ => arguments.wrong(i, "a generator"),
        }
    }
}
