//! The common implementation of operators on lists of tensors. One launch processes all tensors
//! where [`multi_tensor`] can.

use crate::check;
use crate::operator::argument::{AnyTensor, Numbers, OptTensors, Out, Tensors};
use crate::operator::call::{Call, Ret};
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use crate::pointwise::operator;
use crate::tensor::casting::can_cast;
use crate::tensor::promote::{self, Promoted, result_type};
use dml_compute::host;
use dml_compute::lists::multi_tensor;
use dml_compute::lists::multi_tensor::batch::Row;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::kernel::{self, Input, Operand, Operands};
use dml_compute::pointwise::operator::Rule;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Location, View};
use dml_kernel::DType;
use smallvec::SmallVec;

/// The i-th tensors of all lists and the i-th number, to be checked like the operands of a single
/// operator.
pub struct Operation<'a> {
    /// The tensors.
    pub tensors: &'a [&'a View],
    /// The number.
    pub number: Option<Number>,
    /// The common dtype.
    pub common: DType,
}

/// The check of operands by the operator for single tensors.
pub type Check = fn(&Operation) -> Result<()>;

pub fn same_kind(a: Option<Number>, b: Option<Number>) -> bool {
    a.map(|n| std::mem::discriminant(&n)) == b.map(|n| std::mem::discriminant(&n))
}

/// Whether a row is plain: contiguous tensors of one shape, with results that need no further
/// check.
pub fn is_plain_row(row: &[&View], in_place: bool, common: DType) -> bool {
    let first = row[0];
    let alike = row.iter().all(|t| t.location == first.location && t.sizes == first.sizes && t.is_contiguous());
    let apart = |a: &View, b: &View| a.range().end <= b.data || b.range().end <= a.data;
    let placed = || {
        can_cast(common, first.dtype)
            && row[1..].iter().all(|t| t.data == first.data && t.dtype == first.dtype || apart(first, t))
    };
    alike && (!in_place || placed())
}

/// The tensors of a foreach operator and its other operands. The function gets an element of each
/// list, then the others, in this order.
#[derive(Default)]
pub struct TensorList<'a> {
    /// The lists. Results go to the first one if the operator works in place.
    pub lists: SmallVec<[Tensors<'a>; 3]>,
    /// A 0-dim tensor, on the CPU or on the device.
    pub tensor: Option<AnyTensor<'a>>,
    /// Numbers.
    pub numbers: Option<Numbers>,
    /// Whether the numbers take part in type promotion; factors and weights do not.
    pub promoting: bool,
    /// Whether tensors other than the first list are factors: see [`promote::unrounded`].
    pub factors: bool,
}

/// Runs a function on the i-th tensors of all lists and the i-th number, for every i. `check` is
/// the one of the operator for single tensors.
pub fn foreach(
    call: &mut Call,
    operands: TensorList,
    in_place: bool,
    function: &'static Function,
    check: &dyn Fn(&Operation) -> Result<()>,
) -> Result<()> {
    let results = computed(call, operands, in_place, function, check)?;
    if !in_place {
        call.ret_value(Ret::Tensors(results));
    }
    Ok(())
}

/// The same, without returning the results; not in place.
pub fn computed(
    call: &Call,
    operands: TensorList,
    in_place: bool,
    function: &'static Function,
    check: &dyn Fn(&Operation) -> Result<()>,
) -> Result<Vec<View>> {
    let TensorList { lists, tensor, numbers, promoting, factors } = operands;
    let count = lists[0].len();
    check_counts(count, lists.iter().map(|list| list.len()))?;
    let shared_tensor = tensor.map(|t| number_tensor(call, &t)).transpose()?;
    if let Some(Numbers::Each(all)) = &numbers {
        check_numbers(count, all.len())?;
    }
    let number = |i: usize| match &numbers {
        None => None,
        Some(Numbers::Same(n)) => Some(*n),
        Some(Numbers::Each(all)) => all.get(i).copied(),
    };
    let mut commons: SmallVec<[DType; 8]> = SmallVec::with_capacity(count);
    let mut results = Vec::with_capacity(if in_place { 0 } else { count });
    let mut row: SmallVec<[&View; 3]> = SmallVec::new();
    for i in 0..count {
        let same_numbers = || !matches!(numbers, Some(Numbers::Each(_))) || same_kind(number(i - 1), number(i));
        let common = if i > 0 && lists.iter().all(|l| promote_alike(l[i - 1], l[i])) && same_numbers() {
            commons[i - 1]
        } else {
            let mut promoted: SmallVec<[Promoted; 4]> = lists.iter().map(|l| Promoted::Tensor(l[i])).collect();
            promoted.extend(tensor.as_ref().map(|t| Promoted::Tensor(t)));
            if promoting {
                promoted.extend(number(i).map(Promoted::Scalar));
            }
            let common = result_type(&promoted, call.host.default_dtype());
            if function.rule == Rule::Float && !common.is_float() { call.host.default_dtype() } else { common }
        };
        commons.push(common);
        row.clear();
        for list in &lists {
            row.push(list[i]);
        }
        check(&Operation { tensors: &row, number: number(i), common })?;
        if let (Some(number), false) = (number(i), promoting || common.is_float()) {
            check_fits(number, common)?;
        }
        if !is_plain_row(&row, in_place, common) {
            let mut inputs = row.iter().map(|t| operator::input(call, t)).collect::<Result<SmallVec<[_; 4]>>>()?;
            inputs.extend(shared_tensor.clone());
            if in_place {
                operator::in_place(call, row[0], common, &inputs)?;
            } else {
                results.push(operator::result_tensor(call, Out::New, common, &inputs)?);
            }
        } else if !in_place {
            results.push(call.empty(common, &row[0].sizes)?);
        }
    }
    let shared_number =
        shared_tensor.iter().filter_map(|t| if let Input::Tensor(t) = t { Some(t) } else { None }).next();
    let mut rows = Vec::with_capacity(count);
    for (i, &common) in commons.iter().enumerate() {
        let mut inputs = Operands::new();
        for list in &lists {
            let t = list[i];
            inputs.push(if t.location == Location::Host {
                Operand::Number(host::read_number(t)?)
            } else {
                Operand::Tensor(t)
            });
        }
        if let Some(Numbers::Each(all)) = &numbers {
            inputs.push(Operand::Number(all[i]));
        }
        let others = kernel::tensors(&inputs).skip(1).chain(shared_number).filter(|_| factors);
        let common = promote::unrounded(common, others);
        let mut outs = SmallVec::new();
        outs.push(if in_place { lists[0][i] } else { &results[i] });
        rows.push(Row { outs, inputs, common });
    }
    let mut shared: SmallVec<[Input; 2]> = shared_tensor.into_iter().collect();
    if let (Some(Numbers::Same(n)), Some(&common)) = (&numbers, commons.first()) {
        shared.push(Input::Number(*n, common));
    }
    multi_tensor::run(call, function.into(), &rows, &shared)?;
    drop(rows);
    Ok(results)
}

/// Whether two tensors have the same effect on type promotion.
fn promote_alike(a: &View, b: &View) -> bool {
    a.dtype == b.dtype && (a.dim() == 0) == (b.dim() == 0) && a.weak == b.weak
}

/// A list whose 0-dim tensors may be on the CPU, as an optimizer's step counts.
pub fn with_host_numbers<'a>(call: &Call, list: OptTensors<'a>) -> Result<Tensors<'a>> {
    let list = list.into_iter().flatten();
    list.map(|t| if t.location == Location::Host && t.dim() == 0 { Ok(t) } else { call.check_place(t).map(|()| t) })
        .collect()
}

/// Fails if there are no tensors, or if a list has another length.
pub fn check_counts(count: usize, lists: impl IntoIterator<Item = usize>) -> Result<()> {
    check!(count > 0, Runtime, "Tensor list must have at least one tensor.");
    for other in lists {
        check!(other == count, Runtime, "Tensor lists must have the same number of tensors, got {count} and {other}");
    }
    Ok(())
}

/// Fails if the number of numbers differs from the number of tensors.
pub fn check_numbers(count: usize, numbers: usize) -> Result<()> {
    check!(
        numbers == count,
        Runtime,
        "Tensor list must have same number of elements as scalar list, got {count} and {numbers}"
    );
    Ok(())
}

/// Fails unless this is a 0-dim tensor.
pub fn check_number_tensor(t: &View) -> Result<()> {
    check!(
        t.dim() == 0 && t.numel() == 1,
        Runtime,
        "scalar tensor expected to be 0 dim but it has {} dimensions and {} elements.",
        t.dim(),
        t.numel()
    );
    Ok(())
}

/// Fails unless this tensor can have a number for each tensor of a list.
pub fn check_packed(t: &View) -> Result<()> {
    check!(t.dim() == 1, Runtime, "Expected packed scalar Tensor to be of dimension 1. Got {} instead.", t.dim());
    check!(t.is_contiguous(), Runtime, "Expected scalars to be contiguous.");
    Ok(())
}

/// A 0-dim tensor as an input.
fn number_tensor(call: &Call, t: &View) -> Result<Input> {
    check_number_tensor(t)?;
    operator::input(call, t)
}
