//! The values that a call takes and gives.

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
    /// A generator made beside the default one.
    Generator(Arc<std::sync::Mutex<dml_engine::Generator>>),
}

impl Arg<'_> {
    /// Whether it is, or holds, a complex number, or a tensor of a dtype that not every operator
    /// takes.
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
    /// A number of uint64, which [`Scalar::Int`] has room for the bits of.
    Unsigned(u64),
}
