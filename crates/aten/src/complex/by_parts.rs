//! Operators that are linear with real coefficients, on the real and the imaginary parts.

use crate::complex::copy::checked_copy;
use crate::complex::pointwise::{quietly, scale};
use crate::operator::argument::Out;
use crate::operator::call::{Arg, Call, Ret};
use crate::operator::error::{Error, Result};
use crate::operator::on_bits::only_dtype;
use crate::operator::{Operator, schema};
use dml_compute::complex::by_parts::is_element;
use dml_compute::complex::parts::{join, parts};
use dml_compute::complex::pointwise::parts_of;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

/// Runs the operator of reals twice, on the parts. In place it writes the parts themselves; other
/// results are joined.
pub fn by_parts(call: &mut Call, operator: &Operator) -> Result<()> {
    by_parts_of(call, operator, call.args)
}

/// Adds a multiple of slices. A complex one mixes the parts, and is made first.
pub fn index_add(call: &mut Call, operator: &Operator) -> Result<()> {
    let source: &View = operator.argument(call, "source")?;
    let alpha @ Scalar::Complex(..) = operator.argument(call, "alpha")? else { return by_parts(call, operator) };
    if !source.dtype.is_complex() {
        return by_parts(call, operator);
    }
    let multiple = call.empty(source.dtype, &source.sizes)?;
    quietly(call, |call| scale(call, source, alpha, &multiple))?;
    let args: SmallVec<[Arg; 8]> = operator
        .named(call)
        .map(|(name, argument)| match name {
            "source" => Arg::Tensor(multiple.clone()),
            "alpha" => Arg::Scalar(Scalar::Int(1)),
            _ => argument.clone(),
        })
        .collect();
    by_parts_of(call, operator, &args)
}

/// As [`by_parts`], on these arguments.
fn by_parts_of(call: &mut Call, operator: &Operator, given: &[Arg]) -> Result<()> {
    let complex = only_dtype(call, operator, DType::is_complex)?;
    let written = schema::written(operator.schema);
    if written.count > 1 {
        return Err(Error::Fallback(format!("{} has several results", operator.name)));
    }
    let out = operator.out(call)?;
    let mut results: SmallVec<[View; 2]> = SmallVec::new();
    for part in 0..2 {
        let mut args: SmallVec<[Arg; 8]> = SmallVec::new();
        for (i, (name, argument)) in schema::names(operator.schema).zip(given).enumerate() {
            let place = written.count == 1 && i == written.first && !written.in_place;
            args.push(match argument {
                Arg::Tensor(t) if place => {
                    let dtype = if t.dtype.is_complex() { t.dtype } else { complex };
                    Arg::Tensor(call.empty(dtype.real(), &[0])?)
                }
                other => part_of(other, name, part)?,
            });
        }
        let mut inner = call.with_arguments(&args);
        (operator.run)(&mut inner)?;
        match inner.returns.pop() {
            Some(Ret::Tensor(t)) if inner.returns.is_empty() => results.push(t),
            _ => return Err(Error::Fallback(format!("{} does not return one tensor", operator.name))),
        }
    }
    let result = match out {
        Out::InPlace(t) => t.clone(),
        Out::New | Out::Into(_) => joined(call, out, results[0].dtype.complex(), &results[0], &results[1])?,
    };
    call.ret(result);
    Ok(())
}

/// A complex tensor of two real ones, or `out=` that takes it.
pub fn joined(call: &Call, out: Out, complex: DType, re: &View, im: &View) -> Result<View> {
    let strides = || if re.is_contiguous() { View::contiguous_strides(&re.sizes) } else { re.strides.clone() };
    let target = call.result_strided(out.given(), complex, &re.sizes, strides)?;
    if target.dtype == complex {
        join(call, re, im, &target)?;
    } else {
        let whole = call.empty(complex, &re.sizes)?;
        join(call, re, im, &whole)?;
        checked_copy(call, &whole, &target)?;
    }
    Ok(target)
}

/// An argument for the real (0) or the imaginary (1) parts.
fn part_of<'a>(argument: &Arg<'a>, name: &str, part: usize) -> Result<Arg<'a>> {
    let of = |t: &View| {
        if t.dtype.is_complex() {
            let [re, im] = parts(t);
            // Kernels may ask who it is; both parts are the tensor's.
            View { handle: t.handle, ..if part == 0 { re } else { im } }
        } else {
            t.clone()
        }
    };
    Ok(match argument {
        Arg::Tensor(t) => Arg::Tensor(of(t)),
        Arg::Tensors(list) => Arg::Tensors(list.iter().map(|t| t.as_ref().map(of)).collect()),
        Arg::Scalar(n) if is_element(name) => {
            let (re, im) = parts_of(*n);
            Arg::Scalar(Scalar::Double(if part == 0 { re } else { im }))
        }
        // Products of complex numbers mix their parts.
        Arg::Str(mode) if name == "reduce" && *mode != "add" => {
            return Err(Error::Fallback(format!("the reduction {mode} of complex numbers")));
        }
        Arg::Scalar(Scalar::Complex(..)) => {
            return Err(Error::Fallback(format!("a complex {name}")));
        }
        Arg::Scalar(Scalar::Int(code)) if name == "dtype" => {
            let dtype = DType::from_code(*code as u8).filter(|dtype| dtype.is_complex());
            let dtype = dtype.ok_or_else(|| Error::Fallback("a real dtype of complex numbers".into()))?;
            Arg::Scalar(Scalar::Int(dtype.real() as i64))
        }
        other => other.clone(),
    })
}
