//! Operators on lists of complex tensors: the operator for single tensors runs on one after the
//! other.

use crate::complex::copy::checked_copy;
use crate::complex::dispatch::run_complex;
use crate::lists::foreach::{check_counts, check_number_tensor, check_numbers, check_packed};
use crate::operator::Operator;
use crate::operator::call::{Arg, Call, Ret};
use crate::operator::error::{Error, Result};
use crate::operator::schema::{self, is_of, written};
use dml_compute::complex::parts::as_real;
use dml_compute::host;
use dml_compute::movement::copy::read_numbers;
use dml_compute::scalar::Scalar;
use dml_compute::view::{Location, View};
use smallvec::SmallVec;

fn none(name: &str) -> Error {
    Error::Fallback(format!("{name} of lists of complex tensors"))
}

/// The first list of a call, which must have complex tensors, after checking the lengths of all
/// lists.
fn first_list<'a>(call: &Call<'a>, list: &Operator) -> Result<&'a [Option<View>]> {
    let Some(Arg::Tensors(tensors)) = call.args.first() else { return Err(none(list.name)) };
    let complex = |t: &Option<View>| t.as_ref().is_some_and(|t| t.dtype.is_complex() && !t.conjugate && !t.negative);
    if !tensors.iter().all(complex) {
        return Err(none(list.name));
    }
    check_counts(tensors.len(), [])?;
    for argument in call.args {
        match argument {
            Arg::Tensors(other) => check_counts(tensors.len(), [other.len()])?,
            Arg::Scalars(numbers) => check_numbers(tensors.len(), numbers.len())?,
            _ => {}
        }
    }
    Ok(tensors)
}

/// Runs an operator on lists by the operator with this name in a table.
pub fn run_for_each_tensor(call: &mut Call, list: &Operator, table: &[Operator], name: &str) -> Result<()> {
    let tensors = first_list(call, list)?;
    let packed = packed_numbers(call, list, tensors.len())?;
    let in_place = written(list.schema).in_place;
    let single = table.iter().find(|single| {
        let written = written(single.schema);
        is_of(single.schema, name) && written.in_place == in_place && written.count == usize::from(in_place)
    });
    let single = single.ok_or_else(|| none(list.name))?;
    // All calls are checked before the first one runs, so that a fallback finds none half done.
    let calls =
        (0..tensors.len()).map(|i| element(call, list, single, packed.as_deref(), i)).collect::<Result<Vec<_>>>()?;
    let mut results = Vec::new();
    for args in &calls {
        let mut inner = call.with_arguments(args);
        run_complex(&mut inner, single)?;
        if let Some(Ret::Tensor(t)) = inner.returns.pop() {
            results.push(t);
        }
    }
    if !in_place {
        call.ret_value(Ret::Tensors(results));
    }
    Ok(())
}

/// The numbers of an overload with numbers packed into a tensor; `None` for the others, whose
/// tensor is one number.
fn packed_numbers(call: &Call, list: &Operator, count: usize) -> Result<Option<Vec<Scalar>>> {
    let tensors = list.named(call).filter_map(|(name, argument)| match argument {
        Arg::Tensor(t) => Some((name, t)),
        _ => None,
    });
    for (name, t) in tensors {
        if name != "scalars" {
            check_number_tensor(t)?;
            continue;
        }
        check_packed(t)?;
        check_numbers(count, t.numel() as usize)?;
        if t.location == Location::Host {
            let element = |e: i64| host::read_number(&t.as_strided(&[], &[], e));
            return Ok(Some((0..t.numel()).map(element).collect::<Result<_, dml_compute::Error>>()?));
        }
        call.check_place(t)?;
        if !t.dtype.is_complex() {
            return Ok(read_numbers(call, t).map(Some)?);
        }
        let parts: Vec<Scalar> = read_numbers(call, &as_real(t))?;
        let sign = if t.conjugate { -1.0 } else { 1.0 };
        let (pairs, _) = parts.as_chunks::<2>();
        let number = |[re, im]: &[Scalar; 2]| Scalar::Complex(re.to_f64(), sign * im.to_f64());
        return Ok(Some(pairs.iter().map(number).collect()));
    }
    Ok(None)
}

/// The arguments of the operator for single tensors, for the tensors at `i`.
fn element<'a>(
    call: &Call<'a>,
    list: &Operator,
    single: &Operator,
    packed: Option<&[Scalar]>,
    i: usize,
) -> Result<SmallVec<[Arg<'a>; 8]>> {
    let given = |wanted: &str| list.named(call).find(|(name, _)| *name == wanted).map(|(_, argument)| argument);
    schema::names(single.schema)
        .map(|name| match (name, names_in_lists(name).iter().find_map(|name| given(name))) {
            ("alpha" | "value", None) => Ok(Arg::Scalar(Scalar::Int(1))),
            ("rounding_mode" | "dim", None) => Ok(Arg::None),
            ("keepdim", None) => Ok(Arg::Scalar(Scalar::Bool(false))),
            (_, Some(argument)) => match argument {
                Arg::Tensors(list) => {
                    list.get(i).and_then(|t| t.clone()).map(Arg::Tensor).ok_or_else(|| none(single.name))
                }
                Arg::Scalars(list) => list.get(i).copied().map(Arg::Scalar).ok_or_else(|| none(single.name)),
                Arg::Scalar(n) => Ok(Arg::Scalar(*n)),
                Arg::None => Ok(Arg::None),
                Arg::Tensor(t) if name == "other" => Ok(Arg::Tensor(t.clone())),
                Arg::Tensor(_) => {
                    packed.and_then(|numbers| numbers.get(i)).map(|n| Arg::Scalar(*n)).ok_or_else(|| none(single.name))
                }
                _ => Err(none(single.name)),
            },
            _ => Err(none(single.name)),
        })
        .collect()
}

/// Copies one list to another.
pub fn copies(call: &mut Call, list: &Operator) -> Result<()> {
    let targets = first_list(call, list)?;
    let sources: SmallVec<[&View; 8]> = list.argument(call, "src")?;
    for (target, source) in targets.iter().flatten().zip(sources) {
        checked_copy(call, source, target)?;
    }
    Ok(())
}

/// The names of an operand in operators on lists, given its name in those for single tensors.
fn names_in_lists(name: &str) -> &[&str] {
    match name {
        "other" => &["other", "scalar", "scalars"],
        "end" => &["tensors1"],
        "weight" => &["weight", "weights", "scalars"],
        "value" => &["value", "scalars"],
        "exponent" => &["exponent"],
        "self" => &["self"],
        "ord" => &["ord"],
        "dtype" => &["dtype"],
        "tensor1" => &["tensor1"],
        "tensor2" => &["tensor2"],
        "alpha" => &["alpha"],
        _ => &[],
    }
}
