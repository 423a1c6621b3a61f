//! Arithmetic of lists of tensors with each other and with numbers.

use crate::lists::checks;
use crate::lists::foreach::{Check, TensorList, check_packed, foreach, with_host_numbers};
use crate::operator::argument::{AnyTensor, Numbers, OptTensors, Tensors};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use dml_compute::host;
use dml_compute::movement::copy;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::{arithmetic, comparison, division, ternary};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::Location;
use smallvec::smallvec;

operators! {
    with_numbers(self, scalar, in_place; &arithmetic::ADD, checks::no_check)
        .complex(complex::each(crate::pointwise::arithmetic::OPERATORS, "add"))
    {
        hot "aten::_foreach_add.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        hot "aten::_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; &arithmetic::ADD, checks::no_check)
        .complex(complex::each(crate::pointwise::arithmetic::OPERATORS, "add"))
    {
        "aten::_foreach_add.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        hot "aten::_foreach_add_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_list_alpha(self, other, alpha, in_place; &arithmetic::ADD_ALPHA, checks::sum)
        .complex(complex::each(crate::pointwise::arithmetic::OPERATORS, "add"))
    {
        hot "aten::_foreach_add.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]",
        hot "aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()",
    }
    with_numbers(self, scalar, in_place; &arithmetic::SUB, checks::difference)
        .complex(complex::each(crate::pointwise::arithmetic::OPERATORS, "sub"))
    {
        hot "aten::_foreach_sub.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        hot "aten::_foreach_sub_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; &arithmetic::SUB, checks::difference)
        .complex(complex::each(crate::pointwise::arithmetic::OPERATORS, "sub"))
    {
        "aten::_foreach_sub.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_sub_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_list_alpha(self, other, alpha, in_place; &arithmetic::SUB_ALPHA, checks::check_difference_with_factor)
        .complex(complex::each(crate::pointwise::arithmetic::OPERATORS, "sub"))
    {
        "aten::_foreach_sub.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]",
        hot "aten::_foreach_sub_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()",
    }
    with_tensor_alpha(self, other, alpha, in_place; &arithmetic::FOREACH_ADD_TENSOR, checks::sum)
        .complex(complex::each(crate::pointwise::arithmetic::OPERATORS, "add"))
    {
        "aten::_foreach_add.Tensor(Tensor[] self, Tensor other, *, Scalar alpha=1) -> Tensor[]",
        "aten::_foreach_add_.Tensor(Tensor(a!)[] self, Tensor other, *, Scalar alpha=1) -> ()",
    }
    with_numbers(self, scalar, in_place; &arithmetic::MUL, checks::no_check)
        .complex(complex::each(crate::pointwise::arithmetic::OPERATORS, "mul"))
    {
        hot "aten::_foreach_mul.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        hot "aten::_foreach_mul_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; &arithmetic::MUL, checks::no_check)
        .complex(complex::each(crate::pointwise::arithmetic::OPERATORS, "mul"))
    {
        "aten::_foreach_mul.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        hot "aten::_foreach_mul_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_factors(self, other, in_place; &arithmetic::MUL)
        .complex(complex::each(crate::pointwise::arithmetic::OPERATORS, "mul"))
    {
        "aten::_foreach_mul.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        hot "aten::_foreach_mul_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
    }
    with_factor(self, other, in_place; &arithmetic::MUL)
        .complex(complex::each(crate::pointwise::arithmetic::OPERATORS, "mul"))
    {
        "aten::_foreach_mul.Tensor(Tensor[] self, Tensor other) -> Tensor[]",
        hot "aten::_foreach_mul_.Tensor(Tensor(a!)[] self, Tensor other) -> ()",
    }
    with_numbers(self, scalar, in_place; &division::DIV, checks::no_check)
        .complex(complex::each(crate::pointwise::division::OPERATORS, "div"))
    {
        "aten::_foreach_div.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        hot "aten::_foreach_div_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; &division::DIV, checks::no_check)
        .complex(complex::each(crate::pointwise::division::OPERATORS, "div"))
    {
        "aten::_foreach_div.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        hot "aten::_foreach_div_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_factors(self, other, in_place; &division::DIV)
        .complex(complex::each(crate::pointwise::division::OPERATORS, "div"))
    {
        "aten::_foreach_div.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        hot "aten::_foreach_div_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
    }
    with_factor(self, other, in_place; &division::DIV)
        .complex(complex::each(crate::pointwise::division::OPERATORS, "div"))
    {
        "aten::_foreach_div.Tensor(Tensor[] self, Tensor other) -> Tensor[]",
        "aten::_foreach_div_.Tensor(Tensor(a!)[] self, Tensor other) -> ()",
    }
    with_numbers(self, scalar, in_place; &comparison::MAXIMUM, checks::limit) {
        "aten::_foreach_maximum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_maximum_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
        "aten::_foreach_clamp_min.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_clamp_min_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; &comparison::MAXIMUM, checks::limit) {
        "aten::_foreach_maximum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_maximum_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
        "aten::_foreach_clamp_min.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_clamp_min_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_list(self, other, in_place; &comparison::MAXIMUM, checks::limit) {
        "aten::_foreach_maximum.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        hot "aten::_foreach_maximum_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
        "aten::_foreach_clamp_min.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        "aten::_foreach_clamp_min_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
    }
    with_numbers(self, scalar, in_place; &comparison::MINIMUM, checks::limit) {
        "aten::_foreach_minimum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_minimum_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
        "aten::_foreach_clamp_max.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
        "aten::_foreach_clamp_max_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    }
    with_numbers(self, scalars, in_place; &comparison::MINIMUM, checks::limit) {
        "aten::_foreach_minimum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_minimum_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
        "aten::_foreach_clamp_max.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_clamp_max_.ScalarList(Tensor(a!)[] self, Scalar[] scalars) -> ()",
    }
    with_list(self, other, in_place; &comparison::MINIMUM, checks::limit) {
        "aten::_foreach_minimum.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        "aten::_foreach_minimum_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
        "aten::_foreach_clamp_max.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        "aten::_foreach_clamp_max_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
    }
    ternary(self, tensor1, tensor2, value, in_place; &ternary::ADDCMUL, checks::product)
        .complex(complex::each(crate::pointwise::ternary::OPERATORS, "addcmul"))
    {
        "aten::_foreach_addcmul.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]",
        hot "aten::_foreach_addcmul_.Scalar(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> ()",
    }
    ternary(self, tensor1, tensor2, scalars, in_place; &ternary::ADDCMUL, checks::product)
        .complex(complex::each(crate::pointwise::ternary::OPERATORS, "addcmul"))
    {
        "aten::_foreach_addcmul.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> Tensor[]",
        "aten::_foreach_addcmul_.ScalarList(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> ()",
    }
    ternary_elements(self, tensor1, tensor2, scalars, in_place; &ternary::ADDCMUL, checks::product)
        .complex(complex::each(crate::pointwise::ternary::OPERATORS, "addcmul"))
    {
        "aten::_foreach_addcmul.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]",
        "aten::_foreach_addcmul_.Tensor(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> ()",
    }
    ternary(self, tensor1, tensor2, value, in_place; &ternary::ADDCDIV, checks::quotient)
        .complex(complex::each(crate::pointwise::ternary::OPERATORS, "addcdiv"))
    {
        "aten::_foreach_addcdiv.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]",
        hot "aten::_foreach_addcdiv_.Scalar(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> ()",
    }
    ternary(self, tensor1, tensor2, scalars, in_place; &ternary::ADDCDIV, checks::quotient)
        .complex(complex::each(crate::pointwise::ternary::OPERATORS, "addcdiv"))
    {
        "aten::_foreach_addcdiv.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> Tensor[]",
        hot "aten::_foreach_addcdiv_.ScalarList(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> ()",
    }
    ternary_elements(self, tensor1, tensor2, scalars, in_place; &ternary::ADDCDIV, checks::quotient)
        .complex(complex::each(crate::pointwise::ternary::OPERATORS, "addcdiv"))
    {
        "aten::_foreach_addcdiv.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]",
        "aten::_foreach_addcdiv_.Tensor(Tensor(a!)[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> ()",
    }
    lerp(self, tensors1, weight, in_place).complex(complex::each(crate::pointwise::ternary::OPERATORS, "lerp")) {
        "aten::_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> Tensor[]",
        hot "aten::_foreach_lerp_.Scalar(Tensor(a!)[] self, Tensor[] tensors1, Scalar weight) -> ()",
        "aten::_foreach_lerp.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight) -> Tensor[]",
        "aten::_foreach_lerp_.ScalarList(Tensor(a!)[] self, Tensor[] tensors1, Scalar[] weight) -> ()",
    }
    lerp_lists(self, tensors1, weights, in_place).complex(complex::each(crate::pointwise::ternary::OPERATORS, "lerp")) {
        "aten::_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]",
        "aten::_foreach_lerp_.List(Tensor(a!)[] self, Tensor[] tensors1, Tensor[] weights) -> ()",
    }
}

pub fn with_numbers(
    call: &mut Call,
    list: Tensors,
    numbers: Numbers,
    in_place: bool,
    function: &'static Function,
    check: Check,
) -> Result<()> {
    let operands =
        TensorList { lists: smallvec![list], numbers: Some(numbers), promoting: true, ..TensorList::default() };
    foreach(call, operands, in_place, function, &check)
}

pub fn with_list<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    other: OptTensors<'a>,
    in_place: bool,
    function: &'static Function,
    check: Check,
) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, other)?];
    foreach(call, TensorList { lists, ..TensorList::default() }, in_place, function, &check)
}

fn with_list_alpha<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    other: OptTensors<'a>,
    alpha: Number,
    in_place: bool,
    function: &'static Function,
    check: Check,
) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, other)?];
    let operands = TensorList { lists, numbers: Some(Numbers::Same(alpha)), ..TensorList::default() };
    foreach(call, operands, in_place, function, &check)
}

/// Products and quotients.
fn with_factors<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    other: OptTensors<'a>,
    in_place: bool,
    function: &'static Function,
) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, other)?];
    foreach(call, TensorList { lists, factors: true, ..TensorList::default() }, in_place, function, &checks::no_check)
}

fn with_factor<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    other: AnyTensor<'a>,
    in_place: bool,
    function: &'static Function,
) -> Result<()> {
    let operands = TensorList { lists: smallvec![list], tensor: Some(other), factors: true, ..TensorList::default() };
    foreach(call, operands, in_place, function, &checks::no_check)
}

fn with_tensor_alpha<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    other: AnyTensor<'a>,
    alpha: Number,
    in_place: bool,
    function: &'static Function,
    check: Check,
) -> Result<()> {
    let numbers = Some(Numbers::Same(alpha));
    let operands = TensorList { lists: smallvec![list], tensor: Some(other), numbers, ..TensorList::default() };
    foreach(call, operands, in_place, function, &check)
}

fn ternary<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    x: OptTensors<'a>,
    y: OptTensors<'a>,
    numbers: Numbers,
    in_place: bool,
    function: &'static Function,
    check: Check,
) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, x)?, with_host_numbers(call, y)?];
    let operands = TensorList { lists, numbers: Some(numbers), ..TensorList::default() };
    foreach(call, operands, in_place, function, &check)
}

/// With a 1-dim tensor of numbers; one on the device is read back, which waits.
fn ternary_elements<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    x: OptTensors<'a>,
    y: OptTensors<'a>,
    numbers: AnyTensor<'a>,
    in_place: bool,
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
    ternary(call, list, x, y, Numbers::Each(numbers), in_place, function, check)
}

fn lerp<'a>(call: &mut Call, list: Tensors<'a>, end: OptTensors<'a>, weight: Numbers, in_place: bool) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, end)?];
    let operands = TensorList { lists, numbers: Some(weight), ..TensorList::default() };
    foreach(call, operands, in_place, &ternary::LERP, &checks::lerp)
}

fn lerp_lists<'a>(
    call: &mut Call,
    list: Tensors<'a>,
    end: OptTensors<'a>,
    weights: OptTensors<'a>,
    in_place: bool,
) -> Result<()> {
    let lists = smallvec![list, with_host_numbers(call, end)?, with_host_numbers(call, weights)?];
    foreach(call, TensorList { lists, ..TensorList::default() }, in_place, &ternary::LERP, &checks::lerp)
}
