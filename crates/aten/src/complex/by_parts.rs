//! Operators that are linear with real coefficients, computed for the real and the imaginary parts.

use crate::complex::copy::checked_copy;
use crate::complex::pointwise::{run_without_results, scale};
use crate::operator::argument::Out;
use crate::operator::call::{Arg, Call, Ret};
use crate::operator::error::{Error, Result};
use crate::operator::on_bits::only_dtype;
use crate::operator::{Operator, schema};
use dml_compute::complex::parts::{from_parts, parts};
use dml_compute::complex::pointwise::parts_of_number;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

/// Runs the operator on the real and then on the imaginary parts. In place it writes the parts
/// themselves; other results are combined into a complex tensor.
pub fn by_parts(call: &mut Call, operator: &Operator) -> Result<()> {
    let complex = only_dtype(call, operator, DType::is_complex)?;
    run_on_parts_of(call, operator, call.args, complex)
}

/// Runs an operator that creates a tensor of `out=`'s dtype, for its real and its imaginary part.
pub fn created_by_parts(call: &mut Call, operator: &Operator) -> Result<()> {
    let complex = operator.out(call)?.tensor()?.dtype;
    if !complex.is_complex() {
        return Err(Error::Fallback(format!("{} of complex numbers as reals", operator.name)));
    }
    run_on_parts_of(call, operator, call.args, complex)
}

/// Adds a multiple of slices. A complex factor mixes the parts, so the product is computed first.
pub fn index_add(call: &mut Call, operator: &Operator) -> Result<()> {
    let source: &View = operator.argument(call, "source")?;
    let alpha @ Scalar::Complex(..) = operator.argument(call, "alpha")? else { return by_parts(call, operator) };
    if !source.dtype.is_complex() {
        return by_parts(call, operator);
    }
    let multiple = call.empty(source.dtype, &source.sizes)?;
    run_without_results(call, |call| scale(call, source, alpha, &multiple))?;
    let args: SmallVec<[Arg; 8]> = operator
        .named(call)
        .map(|(name, argument)| match name {
            "source" => Arg::Tensor(multiple.clone()),
            "alpha" => Arg::Scalar(Scalar::Int(1)),
            _ => argument.clone(),
        })
        .collect();
    let complex = only_dtype(call, operator, DType::is_complex)?;
    run_on_parts_of(call, operator, &args, complex)
}

/// Like [`by_parts`], for these arguments; special ones are of dtype `complex`.
fn run_on_parts_of(call: &mut Call, operator: &Operator, given: &[Arg], complex: DType) -> Result<()> {
    let written = schema::written(operator.schema);
    if written.count > 1 {
        return Err(Error::Fallback(format!("{} has several results", operator.name)));
    }
    let out = operator.out(call)?;
    let mut results: SmallVec<[View; 2]> = SmallVec::new();
    for part in 0..2 {
        let mut args: SmallVec<[Arg; 8]> = SmallVec::new();
        for (i, (name, argument)) in schema::names(operator.schema).zip(given).enumerate() {
            let is_output = written.count == 1 && i == written.first && !written.in_place;
            args.push(match argument {
                Arg::Tensor(t) if is_output => {
                    let dtype = if t.dtype.is_complex() { t.dtype } else { complex };
                    Arg::Tensor(call.empty(dtype.real(), &[0])?)
                }
                other => argument_part(other, name, part)?,
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
        Out::New | Out::Into(_) => complex_from_parts(call, out, results[0].dtype.complex(), &results[0], &results[1])?,
    };
    call.ret(result);
    Ok(())
}

/// A complex tensor from two real ones, or written to `out=`.
pub fn complex_from_parts(call: &Call, out: Out, complex: DType, re: &View, im: &View) -> Result<View> {
    let strides = || if re.is_contiguous() { View::contiguous_strides(&re.sizes) } else { re.strides.clone() };
    let target = call.result_strided(out.given(), complex, &re.sizes, strides)?;
    if target.dtype == complex {
        from_parts(call, re, im, &target)?;
    } else {
        let whole = call.empty(complex, &re.sizes)?;
        from_parts(call, re, im, &whole)?;
        checked_copy(call, &whole, &target)?;
    }
    Ok(target)
}

/// An argument for the real (0) or the imaginary (1) parts.
fn argument_part<'a>(argument: &Arg<'a>, name: &str, part: usize) -> Result<Arg<'a>> {
    let of = |t: &View| {
        if t.dtype.is_complex() {
            let [re, im] = parts(t);
            // Kernels may compare handles: both parts have the tensor's handle.
            View { handle: t.handle, ..if part == 0 { re } else { im } }
        } else {
            t.clone()
        }
    };
    Ok(match argument {
        Arg::Tensor(t) => Arg::Tensor(of(t)),
        Arg::Tensors(list) => Arg::Tensors(list.iter().map(|t| t.as_ref().map(of)).collect()),
        Arg::Scalar(n) if is_element(name) => {
            let (re, im) = parts_of_number(*n);
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

/// Scalars of which each part takes its own part: those that become elements. Others are real
/// factors of both parts.
fn is_element(name: &str) -> bool {
    matches!(name, "value" | "start" | "end")
}
