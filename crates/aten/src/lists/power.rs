//! Powers of lists of tensors.

use crate::lists::arithmetic::{with_list, with_numbers};
use crate::lists::checks;
use crate::lists::foreach::{TensorList, computed};
use crate::operator::argument::{Numbers, Tensors};
use crate::operator::call::{Call, Ret};
use crate::operator::error::Result;
use crate::operators;
use crate::pointwise::power::check_not_bool;
use crate::tensor::promote::{Promoted, result_type};
use dml_compute::lists::multi_tensor;
use dml_compute::lists::multi_tensor::batch::Row;
use dml_compute::pointwise::kernel::Operand;
use dml_compute::pointwise::power;
use dml_compute::pointwise::power::{is_odd_beyond_float32, to_exponent};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use smallvec::{SmallVec, smallvec};

operators! {
    with_list(self, exponent, in_place; &power::POW, checks::power)
        .complex(complex::each(crate::pointwise::power::OPERATORS, "pow"))
    {
        "aten::_foreach_pow.List(Tensor[] self, Tensor[] exponent) -> Tensor[]",
        "aten::_foreach_pow_.List(Tensor(a!)[] self, Tensor[] exponent) -> ()",
    }
    powers_of_each(self, exponent, in_place).complex(complex::each(crate::pointwise::power::OPERATORS, "pow")) {
        "aten::_foreach_pow.ScalarList(Tensor[] self, Scalar[] exponent) -> Tensor[]",
        "aten::_foreach_pow_.ScalarList(Tensor(a!)[] self, Scalar[] exponent) -> ()",
    }
    powers(self, exponent, in_place).complex(complex::each(crate::pointwise::power::OPERATORS, "pow")) {
        "aten::_foreach_pow.Scalar(Tensor[] self, Scalar exponent) -> Tensor[]",
        "aten::_foreach_pow_.Scalar(Tensor(a!)[] self, Scalar exponent) -> ()",
    }
    number_powers(self, exponent) {
        "aten::_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]",
    }
}

/// Each tensor to a separate exponent.
fn powers_of_each(call: &mut Call, list: Tensors, exponents: Numbers, in_place: bool) -> Result<()> {
    let alone =
        |numbers: &[Number]| numbers.len() == list.len() && numbers.iter().any(|n| is_odd_beyond_float32(n.to_f64()));
    match exponents {
        // One launch would have its numbers in float32.
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
        numbers => with_numbers(call, list, numbers, in_place, &power::FOREACH_POW_EACH, checks::power),
    }
}

/// All tensors to one exponent.
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
    let operands = TensorList { lists: smallvec![list], numbers, promoting: true, ..TensorList::default() };
    let function = to_exponent(exponent.to_f64(), floats);
    computed(call, operands, in_place, function, &checks::power)
}

/// Powers of one number, contiguous as the powers of single tensors are.
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
