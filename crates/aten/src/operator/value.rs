//! The arguments and results of a call.

use dml_compute::{Scalar, View};
use std::sync::Arc;

/// One argument, in the operator's schema order.
#[derive(Clone, Debug)]
pub enum Arg<'a> {
    /// `None`, or an undefined tensor.
    None,
    /// A `bool`, `int`, `float` or `complex`; also a dtype (as `DType as i64`), a layout or a
    /// memory format.
    Scalar(Scalar),
    /// A tensor.
    Tensor(View),
    /// `int[]`
    Ints(&'a [i64]),
    /// `float[]`
    Doubles(&'a [f64]),
    /// `bool[]`
    Bools(&'a [u8]),
    /// `Tensor[]` or `Tensor?[]`
    Tensors(Vec<Option<View>>),
    /// `Scalar[]`
    Scalars(Vec<Scalar>),
    /// `str`
    Str(&'a str),
    /// A generator other than the default one.
    Generator(Arc<std::sync::Mutex<dml_engine::Generator>>),
}

impl Arg<'_> {
    /// Whether it is, or contains, a tensor for which `is_one` is true.
    #[inline]
    pub fn has_tensor(&self, mut is_one: impl FnMut(&View) -> bool) -> bool {
        match self {
            Arg::Tensor(t) => is_one(t),
            Arg::Tensors(list) => list.iter().flatten().any(is_one),
            _ => false,
        }
    }

    /// Whether it is, or contains, a complex number, or a tensor of a dtype that not every operator
    /// supports.
    #[inline]
    pub fn is_special(&self) -> bool {
        let tensor = |t: &View| !t.dtype.is_common();
        let scalar = |s: &Scalar| matches!(s, Scalar::Complex(..));
        match self {
            Arg::Tensor(t) => tensor(t),
            Arg::Scalar(s) => scalar(s),
            Arg::Tensors(list) => list.iter().flatten().any(tensor),
            Arg::Scalars(list) => list.iter().any(scalar),
            _ => false,
        }
    }
}

/// One result.
#[derive(Clone, Debug)]
pub enum Ret {
    /// An undefined tensor.
    None,
    /// A tensor: a new one, or one of the arguments.
    Tensor(View),
    /// `Tensor[]`
    Tensors(Vec<View>),
    /// A number.
    Scalar(Scalar),
    /// A uint64 number, whose bits [`Scalar::Int`] can hold.
    Unsigned(u64),
}
