//! Operators on lists of tensors, as optimizers call them. One launch does all tensors where [`multi_tensor`] can.

use crate::check;
use crate::lists::multi_tensor::{self, Row};
use crate::movement::copy;
use crate::operator::call::{Call, Ret, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::host;
use crate::operator::{Operator, op};
use crate::pointwise::arithmetic::{product, sum};
use crate::pointwise::comparison::{maximum, minimum};
use crate::pointwise::elementwise::{self, Out};
use crate::pointwise::kernel::{Body, Input, Operand, Operands};
use crate::pointwise::power::{power, special};
use crate::pointwise::ternary::{addcdiv_body, addcmul_body, lerp_body};
use crate::tensor::promote::{Promoted, result_type};
use crate::tensor::{Place, Tensor};
use dml_kernel::{DType, Value, math};
use smallvec::SmallVec;

/// The numbers of a call: the same for every tensor, or one for each.
#[derive(Clone)]
enum Numbers {
    None,
    Same(Number),
    Each(SmallVec<[Number; 8]>),
}

impl Numbers {
    fn at(&self, i: usize) -> Option<Number> {
        match self {
            Numbers::None => None,
            Numbers::Same(n) => Some(*n),
            Numbers::Each(all) => all.get(i).copied(),
        }
    }
}

/// Where the number stands in the argument list, and how.
#[derive(Copy, Clone)]
enum NumberArg {
    None,
    /// `Scalar`
    Scalar(usize),
    /// `Scalar[]`
    List(usize),
    /// A 0-dim tensor, on the CPU or on the device.
    Tensor(usize),
    /// A 0-dim tensor, and the position of a factor for it.
    TensorAlpha(usize, usize),
    /// A 1-dim tensor on the CPU that holds a number for each tensor.
    Elements(usize),
}

/// Whether the results go to new tensors or to the first list.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Mode {
    New,
    InPlace,
}

/// What a foreach operator computes, and where its operands stand.
struct Shape {
    /// Positions of the lists of tensors.
    lists: &'static [usize],
    number: NumberArg,
    /// Integers become floats.
    float: bool,
}

/// Runs `body` on the i-th tensors of all lists and the i-th number, for every i. `family` names the kernel, and may
/// be that of the single operator where the body is the same.
fn foreach(call: &mut Call, mode: Mode, family: &'static str, shape: &Shape, body: Body<'_>) -> Result<()> {
    let lists = shape
        .lists
        .iter()
        .map(|&i| if i == 0 { call.tensors(i) } else { with_host_numbers(call, i) })
        .collect::<Result<SmallVec<[_; 3]>>>()?;
    let count = lists[0].len();
    for list in &lists {
        check!(
            list.len() == count,
            Runtime,
            "Tensor lists must have the same number of tensors, got {count} and {}",
            list.len()
        );
    }
    let mut device_number = None;
    let numbers = match shape.number {
        NumberArg::None => Numbers::None,
        NumberArg::Scalar(i) => Numbers::Same(call.scalar(i)?),
        NumberArg::List(i) => Numbers::Each(call.scalars(i)?),
        NumberArg::Tensor(i) => {
            device_number = Some(number_tensor(call, i)?);
            Numbers::None
        }
        NumberArg::TensorAlpha(i, alpha) => {
            device_number = Some(number_tensor(call, i)?);
            Numbers::Same(call.scalar(alpha)?)
        }
        NumberArg::Elements(i) => Numbers::Each(host_elements(call, i)?),
    };
    if let Numbers::Each(all) = &numbers {
        check!(
            all.len() == count,
            Runtime,
            "Tensor list must have same number of elements as scalar list, got {count} and {}",
            all.len()
        );
    }
    let number_tensor = match shape.number {
        NumberArg::Tensor(i) | NumberArg::TensorAlpha(i, _) => Some(call.any_tensor(i)?),
        _ => None,
    };
    let mut commons: SmallVec<[DType; 8]> = SmallVec::with_capacity(count);
    let mut results = Vec::with_capacity(if mode == Mode::New { count } else { 0 });
    let mut row: SmallVec<[&Tensor; 3]> = SmallVec::new();
    for i in 0..count {
        let same_numbers = || !matches!(numbers, Numbers::Each(_)) || same_kind(numbers.at(i - 1), numbers.at(i));
        let common = if i > 0 && lists.iter().all(|l| promote_alike(l[i - 1], l[i])) && same_numbers() {
            commons[i - 1]
        } else {
            let mut promoted: SmallVec<[Promoted; 4]> = lists.iter().map(|l| Promoted::Tensor(l[i])).collect();
            match number_tensor {
                Some(t) => promoted.push(Promoted::Tensor(t)),
                None => promoted.extend(numbers.at(i).map(Promoted::Scalar)),
            }
            let common = result_type(&promoted, call.host.default_dtype());
            if shape.float && !common.is_float() { call.host.default_dtype() } else { common }
        };
        commons.push(common);
        row.clear();
        for list in &lists {
            row.push(list[i]);
        }
        if !plain(&row, mode, common) {
            let mut inputs =
                row.iter().map(|t| elementwise::input_of(call, t)).collect::<Result<SmallVec<[_; 4]>>>()?;
            inputs.extend(device_number.clone());
            match mode {
                Mode::New => results.push(elementwise::result_tensor(call, Out::New, common, &inputs)?),
                Mode::InPlace => drop(elementwise::in_place(call, row[0], common, &inputs)?),
            }
        } else if mode == Mode::New {
            results.push(call.empty(common, &row[0].sizes)?);
        }
    }
    let mut rows = Vec::with_capacity(count);
    for (i, &common) in commons.iter().enumerate() {
        let mut inputs = Operands::new();
        for list in &lists {
            let t = list[i];
            inputs.push(if t.place == Place::Cpu {
                Operand::Number(host::read_number(t)?)
            } else {
                Operand::Tensor(t)
            });
        }
        if let Numbers::Each(all) = &numbers {
            inputs.push(Operand::Number(all[i]));
        }
        let out = if mode == Mode::New { &results[i] } else { lists[0][i] };
        let mut outs = SmallVec::new();
        outs.push(out);
        rows.push(Row { outs, inputs, common });
    }
    let mut shared: SmallVec<[Input; 2]> = device_number.into_iter().collect();
    if let (Numbers::Same(n), Some(&common)) = (&numbers, commons.first()) {
        shared.push(Input::Number(*n, common));
    }
    multi_tensor::run(call, family, 0, &rows, &shared, &|b, v| vec![body(b, v)])?;
    drop(rows);
    if mode == Mode::New {
        call.ret_value(Ret::Tensors(results));
    }
    Ok(())
}

/// Whether one tensor counts in type promotion as the other one does.
fn promote_alike(a: &Tensor, b: &Tensor) -> bool {
    a.dtype == b.dtype && (a.dim() == 0) == (b.dim() == 0) && a.wrapped_number == b.wrapped_number
}

fn same_kind(a: Option<Number>, b: Option<Number>) -> bool {
    a.map(|n| std::mem::discriminant(&n)) == b.map(|n| std::mem::discriminant(&n))
}

/// The usual row: contiguous tensors of one shape, with results that need no further check.
fn plain(row: &[&Tensor], mode: Mode, common: DType) -> bool {
    let first = row[0];
    let alike = row.iter().all(|t| t.place == first.place && t.sizes == first.sizes && t.is_contiguous());
    let apart = |a: &Tensor, b: &Tensor| a.range().end <= b.data || b.range().end <= a.data;
    let placed = || {
        common.can_cast_to(first.dtype)
            && row[1..].iter().all(|t| t.data == first.data && t.dtype == first.dtype || apart(first, t))
    };
    alike && (mode == Mode::New || placed())
}

/// The list of tensors at `i`. 0-dim ones may be on the CPU: an optimizer's counts of steps are.
fn with_host_numbers<'a>(call: &Call<'a>, i: usize) -> Result<SmallVec<[&'a Tensor; 8]>> {
    let list = call.opt_tensors(i)?.into_iter().flatten();
    list.map(|t| if t.place == Place::Cpu && t.dim() == 0 { Ok(t) } else { call.check_place(t).map(|()| t) }).collect()
}

/// The 0-dim tensor argument `i`.
fn number_tensor(call: &Call, i: usize) -> Result<Input> {
    let t = call.any_tensor(i)?;
    check!(
        t.dim() == 0 && t.numel() == 1,
        Runtime,
        "scalar tensor expected to be 0 dim but it has {} dimensions and {} elements.",
        t.dim(),
        t.numel()
    );
    elementwise::input(call, i)
}

/// The numbers in the 1-dim CPU tensor argument `i`.
fn host_elements(call: &Call, i: usize) -> Result<SmallVec<[Number; 8]>> {
    let t = call.any_tensor(i)?;
    check!(
        t.place == Place::Cpu && t.dim() == 1,
        Runtime,
        "Expected packed scalar Tensor to be of dimension 1 on the CPU. Got {} instead.",
        t.describe()
    );
    (0..t.sizes[0]).map(|e| host::read_number(&t.as_strided(&[], &[], e * t.strides[0]))).collect()
}

/// `name "family" shape |v| body;` for each operator: functional and in-place.
macro_rules! foreach_operators {
    ($($new:literal $inplace:literal $family:literal $lists:expr, $number:expr, $float:literal |$v:ident| $body:expr;)*) => {
        const LISTS: &[&[Operator]] = &[$(&[
            op($new, |c| {
                let shape = Shape { lists: &$lists, number: $number, float: $float };
                foreach(c, Mode::New, $family, &shape, &|_, $v| $body)
            }),
            op($inplace, |c| {
                let shape = Shape { lists: &$lists, number: $number, float: $float };
                foreach(c, Mode::InPlace, $family, &shape, &|_, $v| $body)
            }),
        ]),*];
    };
}

/// `"name" float |x| body;`: functions of one list.
macro_rules! foreach_unary {
    ($($name:literal $float:literal |$x:ident| $body:expr;)*) => {
        const UNARY: &[&[Operator]] = &[$(&[
            op(concat!("aten::_foreach_", $name), |c| {
                let shape = Shape { lists: &[0], number: NumberArg::None, float: $float };
                foreach(c, Mode::New, $name, &shape, &|_, v| { let $x = v[0]; $body })
            }),
            op(concat!("aten::_foreach_", $name, "_"), |c| {
                let shape = Shape { lists: &[0], number: NumberArg::None, float: $float };
                foreach(c, Mode::InPlace, $name, &shape, &|_, v| { let $x = v[0]; $body })
            }),
        ]),*];
    };
}

foreach_operators! {
    "aten::_foreach_add.Scalar" "aten::_foreach_add_.Scalar" "add" [0], NumberArg::Scalar(1), false |v| sum(v[0], v[1]);
    "aten::_foreach_add.ScalarList" "aten::_foreach_add_.ScalarList" "add" [0], NumberArg::List(1), false |v| sum(v[0], v[1]);
    "aten::_foreach_add.List" "aten::_foreach_add_.List" "add_alpha" [0, 1], NumberArg::Scalar(2), false |v| sum(v[0], product(v[1], v[2]));
    "aten::_foreach_sub.Scalar" "aten::_foreach_sub_.Scalar" "sub" [0], NumberArg::Scalar(1), false |v| v[0] - v[1];
    "aten::_foreach_sub.ScalarList" "aten::_foreach_sub_.ScalarList" "sub" [0], NumberArg::List(1), false |v| v[0] - v[1];
    "aten::_foreach_sub.List" "aten::_foreach_sub_.List" "sub_alpha" [0, 1], NumberArg::Scalar(2), false |v| v[0] - v[1] * v[2];
    "aten::_foreach_mul.Scalar" "aten::_foreach_mul_.Scalar" "mul" [0], NumberArg::Scalar(1), false |v| product(v[0], v[1]);
    "aten::_foreach_mul.ScalarList" "aten::_foreach_mul_.ScalarList" "mul" [0], NumberArg::List(1), false |v| product(v[0], v[1]);
    "aten::_foreach_mul.List" "aten::_foreach_mul_.List" "mul" [0, 1], NumberArg::None, false |v| product(v[0], v[1]);
    "aten::_foreach_mul.Tensor" "aten::_foreach_mul_.Tensor" "mul" [0], NumberArg::Tensor(1), false |v| product(v[0], v[1]);
    "aten::_foreach_div.Scalar" "aten::_foreach_div_.Scalar" "div" [0], NumberArg::Scalar(1), true |v| v[0] / v[1];
    "aten::_foreach_div.ScalarList" "aten::_foreach_div_.ScalarList" "div" [0], NumberArg::List(1), true |v| v[0] / v[1];
    "aten::_foreach_div.List" "aten::_foreach_div_.List" "div" [0, 1], NumberArg::None, true |v| v[0] / v[1];
    "aten::_foreach_div.Tensor" "aten::_foreach_div_.Tensor" "div" [0], NumberArg::Tensor(1), true |v| v[0] / v[1];
    "aten::_foreach_maximum.Scalar" "aten::_foreach_maximum_.Scalar" "maximum" [0], NumberArg::Scalar(1), false |v| maximum(v[0], v[1]);
    "aten::_foreach_maximum.ScalarList" "aten::_foreach_maximum_.ScalarList" "maximum" [0], NumberArg::List(1), false |v| maximum(v[0], v[1]);
    "aten::_foreach_maximum.List" "aten::_foreach_maximum_.List" "maximum" [0, 1], NumberArg::None, false |v| maximum(v[0], v[1]);
    "aten::_foreach_minimum.Scalar" "aten::_foreach_minimum_.Scalar" "minimum" [0], NumberArg::Scalar(1), false |v| minimum(v[0], v[1]);
    "aten::_foreach_minimum.ScalarList" "aten::_foreach_minimum_.ScalarList" "minimum" [0], NumberArg::List(1), false |v| minimum(v[0], v[1]);
    "aten::_foreach_minimum.List" "aten::_foreach_minimum_.List" "minimum" [0, 1], NumberArg::None, false |v| minimum(v[0], v[1]);
    "aten::_foreach_add.Tensor" "aten::_foreach_add_.Tensor" "foreach_add_tensor" [0], NumberArg::TensorAlpha(1, 2), false |v| sum(v[0], product(v[1], v[2]));
    "aten::_foreach_clamp_min.Scalar" "aten::_foreach_clamp_min_.Scalar" "maximum" [0], NumberArg::Scalar(1), false |v| maximum(v[0], v[1]);
    "aten::_foreach_clamp_max.Scalar" "aten::_foreach_clamp_max_.Scalar" "minimum" [0], NumberArg::Scalar(1), false |v| minimum(v[0], v[1]);
    "aten::_foreach_clamp_min.ScalarList" "aten::_foreach_clamp_min_.ScalarList" "maximum" [0], NumberArg::List(1), false |v| maximum(v[0], v[1]);
    "aten::_foreach_clamp_min.List" "aten::_foreach_clamp_min_.List" "maximum" [0, 1], NumberArg::None, false |v| maximum(v[0], v[1]);
    "aten::_foreach_clamp_max.ScalarList" "aten::_foreach_clamp_max_.ScalarList" "minimum" [0], NumberArg::List(1), false |v| minimum(v[0], v[1]);
    "aten::_foreach_clamp_max.List" "aten::_foreach_clamp_max_.List" "minimum" [0, 1], NumberArg::None, false |v| minimum(v[0], v[1]);
    "aten::_foreach_pow.List" "aten::_foreach_pow_.List" "pow" [0, 1], NumberArg::None, false |v| power(v[0], v[1]);
    "aten::_foreach_pow.ScalarList" "aten::_foreach_pow_.ScalarList" "pow" [0], NumberArg::List(1), false |v| power(v[0], v[1]);
    "aten::_foreach_addcmul.Scalar" "aten::_foreach_addcmul_.Scalar" "addcmul" [0, 1, 2], NumberArg::Scalar(3), false |v| addcmul_body(v);
    "aten::_foreach_addcmul.Tensor" "aten::_foreach_addcmul_.Tensor" "addcmul" [0, 1, 2], NumberArg::Elements(3), false |v| addcmul_body(v);
    "aten::_foreach_addcmul.ScalarList" "aten::_foreach_addcmul_.ScalarList" "addcmul" [0, 1, 2], NumberArg::List(3), false |v| addcmul_body(v);
    "aten::_foreach_addcdiv.Scalar" "aten::_foreach_addcdiv_.Scalar" "addcdiv" [0, 1, 2], NumberArg::Scalar(3), true |v| addcdiv_body(v);
    "aten::_foreach_addcdiv.Tensor" "aten::_foreach_addcdiv_.Tensor" "addcdiv" [0, 1, 2], NumberArg::Elements(3), true |v| addcdiv_body(v);
    "aten::_foreach_addcdiv.ScalarList" "aten::_foreach_addcdiv_.ScalarList" "addcdiv" [0, 1, 2], NumberArg::List(3), true |v| addcdiv_body(v);
    "aten::_foreach_lerp.Scalar" "aten::_foreach_lerp_.Scalar" "lerp" [0, 1], NumberArg::Scalar(2), true |v| lerp_body(v);
    "aten::_foreach_lerp.ScalarList" "aten::_foreach_lerp_.ScalarList" "lerp" [0, 1], NumberArg::List(2), true |v| lerp_body(v);
    "aten::_foreach_lerp.List" "aten::_foreach_lerp_.List" "lerp" [0, 1, 2], NumberArg::None, true |v| lerp_body(v);
}

foreach_unary! {
    "sqrt" true |x| math::sqrt(x);
    "rsqrt" true |x| math::rsqrt(x);
    "reciprocal" true |x| math::reciprocal(x);
    "exp" true |x| math::exp(x);
    "log" true |x| math::log(x);
    "expm1" true |x| math::expm1(x);
    "log10" true |x| math::log10(x);
    "log1p" true |x| math::log1p(x);
    "log2" true |x| math::log2(x);
    "sin" true |x| math::sin(x);
    "cos" true |x| math::cos(x);
    "tan" true |x| math::tan(x);
    "asin" true |x| math::asin(x);
    "acos" true |x| math::acos(x);
    "atan" true |x| math::atan(x);
    "sinh" true |x| math::sinh(x);
    "cosh" true |x| math::cosh(x);
    "erf" true |x| math::erf(x);
    "erfc" true |x| math::erfc(x);
    "floor" false |x| crate::pointwise::unary::rounded(x, Value::floor);
    "ceil" false |x| crate::pointwise::unary::rounded(x, Value::ceil);
    "trunc" false |x| crate::pointwise::unary::rounded(x, Value::trunc);
    "round" false |x| crate::pointwise::unary::rounded(x, Value::round);
    "frac" false |x| x - x.trunc();
    "tanh" true |x| math::tanh(x);
    "sigmoid" true |x| math::sigmoid(x);
    "neg" false |x| -x;
    "abs" false |x| crate::pointwise::unary::abs(x);
    "sign" false |x| crate::pointwise::unary::sign(x);
}

/// This family's overloads.
pub const OPERATORS: &[&[&[Operator]]] = &[
    LISTS,
    UNARY,
    &[&[
        op("aten::_foreach_zero_", zero),
        op("aten::_foreach_copy_", copy_lists),
        op("aten::_foreach_pow.Scalar", |c| powers(c, Mode::New)),
        op("aten::_foreach_pow_.Scalar", |c| powers(c, Mode::InPlace)),
        op("aten::_foreach_pow.ScalarAndTensor", number_powers),
    ]],
];

/// `_foreach_zero_(self)`
fn zero(call: &mut Call) -> Result<()> {
    let list = call.tensors(0)?;
    let mut rows = Vec::with_capacity(list.len());
    for t in list {
        elementwise::check_no_self_overlap(t)?;
        rows.push(Row { outs: SmallVec::from_slice(&[t]), inputs: SmallVec::new(), common: t.dtype });
    }
    let shared = [Input::Number(Number::Int(0), DType::I32)];
    multi_tensor::run(call, "fill", 0, &rows, &shared, &|_, v| vec![v[0]])
}

/// `_foreach_copy_(self, src, non_blocking)`; the sources may be on the CPU.
fn copy_lists(call: &mut Call) -> Result<()> {
    let (to, from) = (call.tensors(0)?, call.opt_tensors(1)?);
    let wait = !call.flag(2)?;
    check!(
        to.len() == from.len(),
        Runtime,
        "Tensor lists must have the same number of tensors, got {} and {}",
        to.len(),
        from.len()
    );
    let pairs = || to.iter().copied().zip(from.iter().copied().flatten());
    if pairs().any(|(_, from)| from.place == Place::Cpu) {
        for (to, from) in pairs() {
            if from.place == Place::Cpu {
                copy::upload(call, from, to, wait)?;
            } else {
                call.check_place(from)?;
                copy::device_copy(call, from, to)?;
            }
        }
        return Ok(());
    }
    let mut copies = Vec::with_capacity(to.len());
    for (to, from) in pairs() {
        call.check_place(from)?;
        call.broadcast(&from.sizes, &to.sizes)?;
        elementwise::check_no_self_overlap(to)?;
        copies.push(copy::as_bits(from, to));
    }
    let rows: Vec<Row> = copies
        .iter()
        .map(|(from, to)| Row {
            outs: SmallVec::from_slice(&[to]),
            inputs: SmallVec::from_slice(&[Operand::Tensor(from)]),
            common: to.dtype,
        })
        .collect();
    multi_tensor::run(call, "copy", 0, &rows, &[], &|_, v| vec![v[0]])
}

/// `_foreach_pow.Scalar(self, exponent)`
fn powers(call: &mut Call, mode: Mode) -> Result<()> {
    let shape = Shape { lists: &[0], number: NumberArg::Scalar(1), float: false };
    let exponent = call.scalar(1)?;
    let floats = matches!(exponent, Number::Double(_)) || call.tensors(0)?.iter().all(|t| t.dtype.is_float());
    let whole = |t: &&Tensor| !t.dtype.is_float();
    check!(
        floats || exponent.to_i64() >= 0 || !call.tensors(0)?.iter().any(whole),
        Runtime,
        "Integers to negative integer powers are not allowed."
    );
    match special(exponent.to_f64(), floats) {
        Some((family, body)) => foreach(call, mode, family, &shape, &|_, v| body(v[0])),
        None => foreach(call, mode, "pow", &shape, &|_, v| power(v[0], v[1])),
    }
}

/// `_foreach_pow.ScalarAndTensor(self, exponent)`: powers of one number
fn number_powers(call: &mut Call) -> Result<()> {
    let base = call.scalar(0)?;
    let exponents = call.tensors(1)?;
    let mut results = Vec::with_capacity(exponents.len());
    for t in &exponents {
        let common = result_type(&[Promoted::Scalar(base), Promoted::Tensor(t)], call.host.default_dtype());
        results.push(elementwise::result_tensor(call, Out::New, common, &[Input::Tensor((*t).clone())])?);
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
    multi_tensor::run(call, "pow", 0, &rows, &[], &|_, v| vec![power(v[0], v[1])])?;
    drop(rows);
    call.ret_value(Ret::Tensors(results));
    Ok(())
}
