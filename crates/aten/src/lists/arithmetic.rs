//! Arithmetic of lists of tensors with each other and with numbers.

use crate::lists::checks;
use crate::lists::foreach::{Check, Listed, check_packed, computed, foreach, with_host_numbers};
use crate::operator::argument::{AnyTensor, Numbers, OptTensors, Tensors};
use crate::operator::call::{Call, Ret};
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::power::check_not_bool;
use crate::tensor::promote::{Promoted, result_type};
use dml_compute::host;
use dml_compute::lists::multi_tensor;
use dml_compute::lists::multi_tensor::batch::Row;
use dml_compute::movement::copy;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::kernel::Operand;
use dml_compute::pointwise::operator::Rule;
use dml_compute::pointwise::power::{is_large_and_odd, to_exponent};
use dml_compute::pointwise::{arithmetic, comparison, division, power, ternary};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Location, View};
use smallvec::{SmallVec, smallvec};

operators! {
    with_numbers(self, scalar, in_place; Rule::Promote, &arithmetic::ADD, checks::nothing) {
        "aten::_foreach_add.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; Rule::Promote, &arithmetic::ADD, checks::nothing) {
        "aten::_foreach_add.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_add_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_list_alpha(self, other, alpha, in_place; Rule::Promote, &arithmetic::ADD_ALPHA, checks::sum) {
        "aten::_foreach_add.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]",
        "aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()",
    }
    with_numbers(self, scalar, in_place; Rule::Promote, &arithmetic::SUB, checks::difference) {
        "aten::_foreach_sub.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_sub_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; Rule::Promote, &arithmetic::SUB, checks::difference) {
        "aten::_foreach_sub.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_sub_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_list_alpha(self, other, alpha, in_place; Rule::Promote, &arithmetic::SUB_ALPHA, checks::difference_with_factor) {
        "aten::_foreach_sub.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]",
        "aten::_foreach_sub_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()",
    }
    with_tensor_alpha(self, other, alpha, in_place; Rule::Promote, &arithmetic::FOREACH_ADD_TENSOR, checks::sum) {
        "aten::_foreach_add.Tensor(Tensor[] self, Tensor other, *, Scalar alpha=1) -> Tensor[]",
        "aten::_foreach_add_.Tensor(Tensor(a!)[] self, Tensor other, *, Scalar alpha=1) -> ()",
    }
    with_numbers(self, scalar, in_place; Rule::Promote, &arithmetic::MUL, checks::nothing) {
        "aten::_foreach_mul.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_mul_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; Rule::Promote, &arithmetic::MUL, checks::nothing) {
        "aten::_foreach_mul.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_mul_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_factors(self, other, in_place; Rule::Promote, &arithmetic::MUL) {
        "aten::_foreach_mul.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        "aten::_foreach_mul_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
    }
    with_factor(self, other, in_place; Rule::Promote, &arithmetic::MUL) {
        "aten::_foreach_mul.Tensor(Tensor[] self, Tensor other) -> Tensor[]",
        "aten::_foreach_mul_.Tensor(Tensor(a!)[] self, Tensor other) -> ()",
    }
    with_numbers(self, scalar, in_place; Rule::Float, &division::DIV, checks::nothing) {
        "aten::_foreach_div.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_div_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; Rule::Float, &division::DIV, checks::nothing) {
        "aten::_foreach_div.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_div_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_factors(self, other, in_place; Rule::Float, &division::DIV) {
        "aten::_foreach_div.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        "aten::_foreach_div_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
    }
    with_factor(self, other, in_place; Rule::Float, &division::DIV) {
        "aten::_foreach_div.Tensor(Tensor[] self, Tensor other) -> Tensor[]",
        "aten::_foreach_div_.Tensor(Tensor(a!)[] self, Tensor other) -> ()",
    }
    with_numbers(self, scalar, in_place; Rule::Promote, &comparison::MAXIMUM, checks::limit) {
        "aten::_foreach_maximum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_maximum_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
        "aten::_foreach_clamp_min.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_clamp_min_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; Rule::Promote, &comparison::MAXIMUM, checks::limit) {
        "aten::_foreach_maximum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_maximum_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
        "aten::_foreach_clamp_min.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_clamp_min_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_list(self, other, in_place; Rule::Promote, &comparison::MAXIMUM, checks::limit) {
        "aten::_foreach_maximum.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        "aten::_foreach_maximum_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
        "aten::_foreach_clamp_min.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        "aten::_foreach_clamp_min_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
    }
    with_numbers(self, scalar, in_place; Rule::Promote, &comparison::MINIMUM, checks::limit) {
        "aten::_foreach_minimum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_minimum_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
        "aten::_foreach_clamp_max.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_clamp_max_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; Rule::Promote, &comparison::MINIMUM, checks::limit) {
        "aten::_foreach_minimum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_minimum_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
        "aten::_foreach_clamp_max.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_clamp_max_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_list(self, other, in_place; Rule::Promote, &comparison::MINIMUM, checks::limit) {
        "aten::_foreach_minimum.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        "aten::_foreach_minimum_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
        "aten::_foreach_clamp_max.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        "aten::_foreach_clamp_max_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
    }
    with_list(self, exponent, in_place; Rule::Promote, &power::POW, checks::power) {
        "aten::_foreach_pow.List(Tensor[] self, Tensor[] exponent) -> Tensor[]",
        "aten::_foreach_pow_.List(Tensor(a!)[] self, Tensor[] exponent) -> ()",
    }
    powers_of_each(self, exponent, in_place) {
        "aten::_foreach_pow.ScalarList(Tensor[] self, Scalar[] exponent) -> Tensor[]",
        "aten::_foreach_pow_.ScalarList(Tensor(a!)[] self, Scalar[] exponent) -> ()",
    }
    powers(self, exponent, in_place) {
        "aten::_foreach_pow.Scalar(Tensor[] self, Scalar exponent) -> Tensor[]",
        "aten::_foreach_pow_.Scalar(Tensor(a!)[] self, Scalar exponent) -> ()",
    }
    number_powers(self, exponent) {
        "aten::_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]",
    }
    ternary(self, tensor1, tensor2, value, in_place; Rule::Promote, &ternary::ADDCMUL, checks::product) {
        "aten::_foreach_addcmul.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]",
        "aten::_foreach_addcmul_.Scalar(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> ()",
    }
    ternary(self, tensor1, tensor2, scalars, in_place; Rule::Promote, &ternary::ADDCMUL, checks::product) {
        "aten::_foreach_addcmul.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_addcmul_.ScalarList(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> ()",
    }
    ternary_elements(self, tensor1, tensor2, scalars, in_place; Rule::Promote, &ternary::ADDCMUL, checks::product) {
        "aten::_foreach_addcmul.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]",
        "aten::_foreach_addcmul_.Tensor(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> ()",
    }
    ternary(self, tensor1, tensor2, value, in_place; Rule::Float, &ternary::ADDCDIV, checks::quotient) {
        "aten::_foreach_addcdiv.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]",
        "aten::_foreach_addcdiv_.Scalar(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> ()",
    }
    ternary(self, tensor1, tensor2, scalars, in_place; Rule::Float, &ternary::ADDCDIV, checks::quotient) {
        "aten::_foreach_addcdiv.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_addcdiv_.ScalarList(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> ()",
    }
    ternary_elements(self, tensor1, tensor2, scalars, in_place; Rule::Float, &ternary::ADDCDIV, checks::quotient) {
        "aten::_foreach_addcdiv.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]",
        "aten::_foreach_addcdiv_.Tensor(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> ()",
    }
    lerp(self, tensors1, weight, in_place) {
        "aten::_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> Tensor[]",
        "aten::_foreach_lerp_.Scalar(Tensor(a!)[] self, Tensor[] tensors1, Scalar weight) -> ()",
        "aten::_foreach_lerp.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight) -> Tensor[]",
        "aten::_foreach_lerp_.ScalarList(Tensor(a!)[] self, Tensor[] tensors1, Scalar[] weight) -> ()",
    }
    lerp_lists(self, tensors1, weights, in_place) {
        "aten::_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]",
        "aten::_foreach_lerp_.List(Tensor(a!)[] self, Tensor[] tensors1, Tensor[] weights) -> ()",
    }
}

fn with_numbers(
    call: &mut Call,
    list: Tensors,
    numbers: Numbers,
    in_place: bool,
    rule: Rule,
    function: &'static Function,
    check: Check,
) -> Result<()> {
    let listed = Listed { lists: smallvec![list], numbers: Some(numbers), promoting: true, ..Listed::default() };
    foreach(call, listed, in_place, rule, function, &check)
}

fn with_list<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    other: OptTensors<'a>,
    in_place: bool,
    rule: Rule,
    function: &'static Function,
    check: Check,
) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, other)?];
    foreach(call, Listed { lists, ..Listed::default() }, in_place, rule, function, &check)
}

#[allow(clippy::too_many_arguments)]
fn with_list_alpha<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    other: OptTensors<'a>,
    alpha: Number,
    in_place: bool,
    rule: Rule,
    function: &'static Function,
    check: Check,
) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, other)?];
    let listed = Listed { lists, numbers: Some(Numbers::Same(alpha)), ..Listed::default() };
    foreach(call, listed, in_place, rule, function, &check)
}

/// Products and quotients.
fn with_factors<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    other: OptTensors<'a>,
    in_place: bool,
    rule: Rule,
    function: &'static Function,
) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, other)?];
    foreach(call, Listed { lists, factors: true, ..Listed::default() }, in_place, rule, function, &checks::nothing)
}

fn with_factor<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    other: AnyTensor<'a>,
    in_place: bool,
    rule: Rule,
    function: &'static Function,
) -> Result<()> {
    let listed = Listed { lists: smallvec![list], tensor: Some(other), factors: true, ..Listed::default() };
    foreach(call, listed, in_place, rule, function, &checks::nothing)
}

#[allow(clippy::too_many_arguments)]
fn with_tensor_alpha<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    other: AnyTensor<'a>,
    alpha: Number,
    in_place: bool,
    rule: Rule,
    function: &'static Function,
    check: Check,
) -> Result<()> {
    let numbers = Some(Numbers::Same(alpha));
    let listed = Listed { lists: smallvec![list], tensor: Some(other), numbers, ..Listed::default() };
    foreach(call, listed, in_place, rule, function, &check)
}

#[allow(clippy::too_many_arguments)]
fn ternary<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    x: OptTensors<'a>,
    y: OptTensors<'a>,
    numbers: Numbers,
    in_place: bool,
    rule: Rule,
    function: &'static Function,
    check: Check,
) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, x)?, with_host_numbers(call, y)?];
    let listed = Listed { lists, numbers: Some(numbers), ..Listed::default() };
    foreach(call, listed, in_place, rule, function, &check)
}

/// With a 1-dim tensor of numbers; the CPU's are there, those of the device are waited for.
#[allow(clippy::too_many_arguments)]
fn ternary_elements<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    x: OptTensors<'a>,
    y: OptTensors<'a>,
    numbers: AnyTensor<'a>,
    in_place: bool,
    rule: Rule,
    function: &'static Function,
    check: Check,
) -> Result<()> {
    let t = numbers.0;
    check_packed(t)?;
    let numbers = if t.location == Location::Host {
        let element = |e: i64| host::read_number(&t.as_strided(&[], &[], e));
        (0..t.sizes[0]).map(element).collect::<Result<_, dml_compute::Error>>()?
    } else {
        call.check_place(t)?;
        copy::read_numbers(call, t)?
    };
    ternary(call, list, x, y, Numbers::Each(numbers), in_place, rule, function, check)
}

fn lerp<'a>(call: &mut Call, list: Tensors<'a>, end: OptTensors<'a>, weight: Numbers, in_place: bool) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, end)?];
    let listed = Listed { lists, numbers: Some(weight), ..Listed::default() };
    foreach(call, listed, in_place, Rule::Float, &ternary::LERP, &checks::lerp)
}

fn lerp_lists<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    end: OptTensors<'a>,
    weights: OptTensors<'a>,
    in_place: bool,
) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, end)?, with_host_numbers(call, weights)?];
    foreach(call, Listed { lists, ..Listed::default() }, in_place, Rule::Promote, &ternary::LERP, &checks::lerp)
}

/// Each to a number of its own.
fn powers_of_each(call: &mut Call, list: Tensors, exponents: Numbers, in_place: bool) -> Result<()> {
    let alone =
        |numbers: &[Number]| numbers.len() == list.len() && numbers.iter().any(|n| is_large_and_odd(n.to_f64()));
    match exponents {
        // One launch has its numbers in float32.
        Numbers::Each(numbers) if alone(&numbers) => {
            let mut results = Vec::new();
            for (&t, &number) in list.iter().zip(&numbers) {
                results.extend(powers_of(call, smallvec![t], number, in_place)?);
            }
            if !in_place {
                call.ret_value(Ret::Tensors(results));
            }
            Ok(())
        }
        numbers => with_numbers(call, list, numbers, in_place, Rule::Promote, &power::FOREACH_POW_EACH, checks::power),
    }
}

/// To one number.
fn powers(call: &mut Call, list: Tensors, exponent: Number, in_place: bool) -> Result<()> {
    let results = powers_of(call, list, exponent, in_place)?;
    if !in_place {
        call.ret_value(Ret::Tensors(results));
    }
    Ok(())
}

fn powers_of(call: &Call, list: Tensors, exponent: Number, in_place: bool) -> Result<Vec<View>> {
    let floats = matches!(exponent, Number::Double(_)) || list.iter().all(|t| t.dtype.is_float());
    let numbers = Some(Numbers::Same(exponent));
    let listed = Listed { lists: smallvec![list], numbers, promoting: true, ..Listed::default() };
    let function = to_exponent(exponent.to_f64(), floats);
    computed(call, listed, in_place, Rule::Promote, function, &checks::power)
}

/// Powers of one number, contiguous as those of a single tensor are.
fn number_powers(call: &mut Call, base: Number, exponents: Tensors) -> Result<()> {
    let mut results = Vec::with_capacity(exponents.len());
    for t in &exponents {
        let promoted = [Promoted::Scalar(base), Promoted::Tensor(t)];
        check_not_bool(&promoted)?;
        let common = result_type(&promoted, call.host.default_dtype());
        results.push(call.empty(common, &t.sizes)?);
    }
    let rows: Vec<Row> = results
        .iter()
        .zip(&exponents)
        .map(|(out, t)| Row {
            outs: SmallVec::from_slice(&[out]),
            inputs: SmallVec::from_slice(&[Operand::Number(base), Operand::Tensor(t)]),
            common: out.dtype,
        })
        .collect();
    multi_tensor::run(call, (&power::POW).into(), &rows, &[])?;
    drop(rows);
    call.ret_value(Ret::Tensors(results));
    Ok(())
}
