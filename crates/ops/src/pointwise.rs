//! The pointwise kernel: every operator that computes each element of its results from the same element of its inputs.

use crate::call::{Call, Scalar as Number};
use crate::check;
use crate::error::Result;
use crate::launch::{GROUP, linear_id};
use crate::layout::{self, Layout};
use crate::promote::{Promoted, result_type};
use crate::tensor::{Dims, Place, Tensor};
use dml_engine::{Pointwise, PointwiseInput};
use dml_kernel::{Builder, DType, Element, Kernel, Scalar, Value, dense};
use smallvec::SmallVec;

/// An input: a tensor, or one number for all elements.
#[derive(Clone, Debug)]
pub enum Input {
    /// A tensor on the call's device.
    Tensor(Tensor),
    /// A number, passed as a parameter of the given dtype.
    Number(Number, DType),
}

/// Where an overload puts its result.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Out {
    /// A new tensor.
    New,
    /// Argument 0.
    InPlace,
    /// The `out=` argument at this position.
    Arg(usize),
}

/// The dtype of the result.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The promoted dtype of the inputs.
    Promote,
    /// Promoted, integers and bool become the default float dtype.
    Float,
    /// Computed in the promoted dtype, the result is bool.
    Bool,
}

/// The three overloads of a pointwise operator: functional, in-place, `out=` at argument `$at`.
/// `overloads!(add, "aten::add.Tensor", "aten::add_.Tensor", "aten::add.out" @ 3)`
#[macro_export]
macro_rules! overloads {
    ($run:expr, $new:literal, $inplace:literal, $out:literal @ $at:literal) => {
        [
            $crate::table::op($new, |c| $run(c, $crate::pointwise::Out::New)),
            $crate::table::op($inplace, |c| $run(c, $crate::pointwise::Out::InPlace)),
            $crate::table::op($out, |c| $run(c, $crate::pointwise::Out::Arg($at))),
        ]
    };
}

/// Tensor argument `i` as an input: 0-dim CPU tensors become numbers.
pub fn input(call: &Call, i: usize) -> Result<Input> {
    input_of(call, call.any_tensor(i)?)
}

/// A tensor as an input, as [`input`] does it.
pub fn input_of(call: &Call, t: &Tensor) -> Result<Input> {
    if t.place == Place::Cpu && t.dim() == 0 {
        return Ok(Input::Number(crate::host::read_number(t)?, t.dtype));
    }
    call.check_place(t)?;
    Ok(Input::Tensor(t.clone()))
}

/// Checks that tensor argument `i` is of floats, for operators that do not promote integers.
pub fn check_float(call: &Call, i: usize, name: &str) -> Result<()> {
    let dtype = call.any_tensor(i)?.dtype;
    check!(dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{dtype}'");
    Ok(())
}

/// [`operator`] of float tensors that keeps their dtype; other dtypes are refused as CPU does.
pub fn float_operator(
    call: &mut Call,
    out: Out,
    family: &'static str,
    tensors: &[usize],
    numbers: &[Number],
    body: impl for<'b> Fn(&'b Builder, &[Value<'b>]) -> Value<'b>,
) -> Result<()> {
    for &i in tensors {
        check_float(call, i, family)?;
    }
    operator(call, out, Rule::Promote, family, tensors, numbers, body)
}

/// The dtype in which the tensor arguments at these positions meet.
pub fn common_dtype(call: &Call, tensors: &[usize]) -> Result<DType> {
    let promoted = tensors.iter().map(|&i| Ok(Promoted::Tensor(call.any_tensor(i)?)));
    Ok(result_type(&promoted.collect::<Result<SmallVec<[Promoted; 4]>>>()?, call.host.default_dtype()))
}

/// Checks that the tensor arguments do not meet in a 16-bit float, for operators that CPU has for wider ones only.
pub fn check_not_half(call: &Call, tensors: &[usize], name: &str) -> Result<()> {
    let dtype = common_dtype(call, tensors)?;
    let name = name.strip_prefix("special_").unwrap_or(name);
    let half = matches!(dtype, DType::F16 | DType::BF16);
    check!(!half, NotImplemented, "\"{name}_cpu\" not implemented for '{dtype}'");
    Ok(())
}

/// Checks that tensor argument `i` is not of bools.
pub fn check_not_bool(call: &Call, i: usize, name: &str) -> Result<()> {
    let dtype = call.any_tensor(i)?.dtype;
    check!(dtype != DType::Bool, NotImplemented, "\"{name}\" not implemented for '{dtype}'");
    Ok(())
}

/// Checks that tensor argument `i` is of integers or bools.
pub fn check_integral(call: &Call, i: usize, name: &str) -> Result<()> {
    let dtype = call.any_tensor(i)?.dtype;
    check!(!dtype.is_float(), NotImplemented, "\"{name}\" not implemented for '{dtype}'");
    Ok(())
}

/// What a pointwise kernel computes of one element of each input.
pub type Body<'f> = &'f dyn for<'b> Fn(&'b Builder, &[Value<'b>]) -> Value<'b>;

/// [`Body`] with several results.
pub type Bodies<'f> = &'f dyn for<'b> Fn(&'b Builder, &[Value<'b>]) -> Vec<Value<'b>>;

/// An argument of a pointwise operator.
#[derive(Copy, Clone, Debug)]
pub enum Slot {
    /// The tensor argument at this position.
    Tensor(usize),
    /// A number that takes part in type promotion, as a Python scalar operand does.
    Scalar(Number),
    /// A number that does not: it is converted to the common dtype.
    Number(Number),
}

/// Runs a pointwise operator of tensor arguments `tensors` (positions) with scalar arguments `numbers`.
/// `body` gets the inputs, then the numbers, all in the common dtype's compute type.
pub fn operator(
    call: &mut Call,
    out: Out,
    rule: Rule,
    family: &'static str,
    tensors: &[usize],
    numbers: &[Number],
    body: impl for<'b> Fn(&'b Builder, &[Value<'b>]) -> Value<'b>,
) -> Result<()> {
    let slots: SmallVec<[Slot; 4]> =
        tensors.iter().map(|&i| Slot::Tensor(i)).chain(numbers.iter().map(|&n| Slot::Number(n))).collect();
    operator_of(call, out, rule, family, &slots, body)
}

/// Runs a pointwise operator of any mix of arguments; `body` gets them in order, in the common dtype's compute type.
pub fn operator_of(
    call: &mut Call,
    out: Out,
    rule: Rule,
    family: &'static str,
    slots: &[Slot],
    body: impl for<'b> Fn(&'b Builder, &[Value<'b>]) -> Value<'b>,
) -> Result<()> {
    operator_with(call, out, rule, family, 0, slots, &body)
}

/// [`operator_of`] for a body of hundreds of instructions (see [`HEAVY`]).
pub fn heavy_operator(
    call: &mut Call,
    out: Out,
    rule: Rule,
    family: &'static str,
    slots: &[Slot],
    body: impl for<'b> Fn(&'b Builder, &[Value<'b>]) -> Value<'b>,
) -> Result<()> {
    operator_with(call, out, rule, family, HEAVY, slots, &body)
}

/// [`operator_of`] of operands that divide: where `body`'s second operand is an integer zero, the device raises CPU's
/// error at the next synchronisation or launch.
pub fn dividing_operator(
    call: &mut Call,
    out: Out,
    family: &'static str,
    slots: &[Slot],
    body: impl for<'b> Fn(&'b Builder, &[Value<'b>]) -> Value<'b>,
) -> Result<()> {
    operator_with(call, out, Rule::Promote, family, DIVIDES, slots, &body)
}

/// [`operator_of`] without a type of its own for every body: the machine code exists once.
fn operator_with(
    call: &mut Call,
    out: Out,
    rule: Rule,
    family: &'static str,
    variant: u32,
    slots: &[Slot],
    body: Body<'_>,
) -> Result<()> {
    let mut promoted: SmallVec<[Promoted; 4]> = SmallVec::new();
    for slot in slots {
        match *slot {
            Slot::Tensor(i) => promoted.push(Promoted::Tensor(call.any_tensor(i)?)),
            Slot::Scalar(n) => promoted.push(Promoted::Scalar(n)),
            Slot::Number(_) => {}
        }
    }
    let mut common = result_type(&promoted, call.host.default_dtype());
    if rule == Rule::Float && !common.is_float() {
        common = call.host.default_dtype();
    }
    let mut inputs: SmallVec<[Input; 4]> = SmallVec::new();
    for slot in slots {
        inputs.push(match *slot {
            Slot::Tensor(i) => input(call, i)?,
            Slot::Scalar(n) | Slot::Number(n) => Input::Number(n, common),
        });
    }
    let result = if rule == Rule::Bool { DType::Bool } else { common };
    let out = result_tensor(call, out, result, &inputs)?;
    run(call, family, variant, &[&out], &inputs, common, |b, v| vec![body(b, v)])?;
    call.ret(out);
    Ok(())
}

/// The tensor that holds the result of a pointwise operator on `inputs`, by PyTorch's rules for shapes, strides,
/// in-place and `out=` arguments.
pub fn result_tensor(call: &Call, out: Out, dtype: DType, inputs: &[Input]) -> Result<Tensor> {
    match out {
        Out::New => {
            let sizes = broadcast_sizes(call, inputs)?;
            let expanded: SmallVec<[Tensor; 4]> = inputs
                .iter()
                .filter_map(|i| match i {
                    Input::Tensor(t) => Some(t.expand(&sizes)),
                    Input::Number(..) => None,
                })
                .collect();
            let all: SmallVec<[&Tensor; 4]> = expanded.iter().collect();
            call.empty_strided(dtype, &sizes, &layout::result_strides(&sizes, &all))
        }
        Out::InPlace => in_place(call, call.tensor(0)?, dtype, inputs),
        Out::Arg(i) => {
            let sizes = broadcast_sizes(call, inputs)?;
            let t = call.out(Some(i), dtype, &sizes)?;
            check_no_self_overlap(&t)?;
            check_no_partial_overlap(&t, inputs)?;
            Ok(t)
        }
    }
}

/// `t` as the place of the result of a pointwise operator on `inputs`: its shape and dtype must take the result.
pub fn in_place(call: &Call, t: &Tensor, dtype: DType, inputs: &[Input]) -> Result<Tensor> {
    let sizes = broadcast_sizes(call, inputs)?;
    check!(
        t.sizes == sizes,
        Runtime,
        "output with shape {:?} doesn't match the broadcast shape {:?}",
        t.sizes.as_slice(),
        sizes.as_slice()
    );
    check!(
        dtype.can_cast_to(t.dtype),
        Runtime,
        "result type {dtype} can't be cast to the desired output type {}",
        t.dtype
    );
    check_no_self_overlap(t)?;
    check_no_partial_overlap(t, inputs)?;
    Ok(t.clone())
}

/// The common shape of the tensors among the inputs.
fn broadcast_sizes(call: &Call, inputs: &[Input]) -> Result<Dims> {
    let mut sizes: Option<Dims> = None;
    for input in inputs {
        let Input::Tensor(t) = input else { continue };
        sizes = Some(match sizes {
            Some(sizes) if sizes != t.sizes => call.broadcast(&sizes, &t.sizes)?,
            Some(sizes) => sizes,
            None => t.sizes.clone(),
        });
    }
    Ok(sizes.unwrap_or_default())
}

/// An expanded tensor cannot be written: several elements are one place in memory.
pub fn check_no_self_overlap(t: &Tensor) -> Result<()> {
    check!(
        !t.sizes.iter().zip(&t.strides).any(|(&n, &s)| n > 1 && s == 0),
        Runtime,
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. \
         Please clone() the tensor before performing the operation."
    );
    Ok(())
}

fn check_no_partial_overlap(out: &Tensor, inputs: &[Input]) -> Result<()> {
    for input in inputs {
        let Input::Tensor(t) = input else { continue };
        let (a, b) = (out.range(), t.range());
        let same = t.data == out.data && t.strides == out.strides && t.dtype == out.dtype;
        let apart = a.end <= b.start || b.end <= a.start;
        // Like PyTorch, only dense tensors are judged: strided ones may interleave without touching.
        let dense = |t: &Tensor, r: dml_engine::Range| r.end - r.start == t.numel() as u64 * t.element_size();
        check!(
            same || apart || !(dense(out, a) && dense(t, b)) || t.numel() <= 1 && t.data == out.data,
            Runtime,
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single \
             memory location. Please clone() the tensor before performing the operation."
        );
    }
    Ok(())
}

/// How the elements are walked; part of the kernel's key.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Walk {
    /// All dense or constant: `lanes` neighbours an invocation, in wide accesses.
    Dense { lanes: u32 },
    /// Any strides.
    Strided { rank: u32 },
}

/// Added to the variant of a kernel with a long body: an invocation computes one element instead of several, so that the
/// body is compiled once.
pub const HEAVY: u32 = 1 << 16;
/// Added to the variant of a kernel whose second operand divides the first one, see [`dividing_operator`].
const DIVIDES: u32 = 1 << 17;

/// Enqueues the kernel that computes `outs` from `inputs`, which broadcast to the outputs' common shape.
/// Values reach `body` in `common`'s compute type and wrapped to its width. `variant` tells apart kernels of one
/// family whose bodies differ by more than dtypes.
pub fn run(
    call: &Call,
    family: &'static str,
    variant: u32,
    outs: &[&Tensor],
    inputs: &[Input],
    common: DType,
    body: impl for<'b> Fn(&'b Builder, &[Value<'b>]) -> Vec<Value<'b>>,
) -> Result<()> {
    run_with(call, family, variant, outs, inputs, common, &body)
}

/// [`run`] without a type of its own for every body: the machine code exists once.
fn run_with(
    call: &Call,
    family: &'static str,
    variant: u32,
    outs: &[&Tensor],
    inputs: &[Input],
    common: DType,
    body: Bodies<'_>,
) -> Result<()> {
    let sizes = &outs[0].sizes;
    let numel = outs[0].numel();
    if numel == 0 {
        return Ok(());
    }
    let expanded: SmallVec<[Tensor; 4]> = inputs
        .iter()
        .filter_map(|i| match i {
            Input::Tensor(t) => Some(t.expand(sizes)),
            Input::Number(..) => None,
        })
        .collect();
    let mut operands: SmallVec<[&Tensor; 6]> = outs.iter().copied().collect();
    operands.extend(expanded.iter());
    let layout = Layout::new(&operands);
    let walk = choose_walk(&layout, &operands, variant & HEAVY != 0);
    let guarded = variant & DIVIDES != 0 && common.is_integer();

    // 5 bits an operand: its dtype; numbers before the last tensor are 31, those after it are only counted.
    let trailing = inputs.iter().rev().take_while(|i| matches!(i, Input::Number(..))).count();
    debug_assert!(outs.len() + inputs.len() - trailing <= 12, "more operands than the kernel's key holds");
    let mut code = 0u64;
    let mut tensors = 0;
    let slots = (0..outs.len()).map(|i| Some(operands[i].dtype)).chain(inputs[..inputs.len() - trailing].iter().map(
        |i| match i {
            Input::Tensor(t) => Some(t.dtype),
            Input::Number(..) => None,
        },
    ));
    let mut constants = 0u32;
    for slot in slots {
        code = code << 5
            | match slot {
                Some(dtype) => {
                    constants = constants << 1 | u32::from(layout.is_constant(tensors));
                    tensors += 1;
                    dtype as u64
                }
                None => 31,
            };
    }
    let (kind, extent) = match walk {
        Walk::Dense { lanes } => (0, lanes),
        Walk::Strided { rank } => (1, rank),
    };
    let wide = u32::from(layout.index == Scalar::U64);
    let constants = if kind == 0 { constants } else { 0 };
    let key = [
        code as u32,
        (code >> 32) as u32,
        (common as u32) | variant << 8,
        extent | kind << 16 | wide << 17,
        constants,
        inputs.len() as u32 | (trailing as u32) << 8 | (outs.len() as u32) << 16,
    ];
    let kernel = call.pointwise_kernel(family, key, || {
        let kernel = build(family, walk, layout.index, constants, &operands, outs.len(), inputs, common, guarded, body);
        let joins = kind == 0 && layout.index == Scalar::U32 && !guarded;
        (kernel, if joins { describe(&operands, &layout, outs.len(), inputs, common, body) } else { None })
    })?;
    let mut launcher = call.launch(kernel);
    for t in outs {
        launcher = launcher.write(t);
    }
    for t in &expanded {
        launcher = launcher.read(t);
    }
    for input in inputs {
        if let Input::Number(x, _) = input {
            launcher = launcher.number(common, *x);
        }
    }
    if guarded {
        launcher = launcher.fault().u32(crate::fault::value("ZeroDivisionError"));
    }
    match walk {
        Walk::Dense { lanes } => launcher.index(layout.index, numel).threads((numel as u64).div_ceil(u64::from(lanes))),
        Walk::Strided { .. } => layout.pass(launcher.index(layout.index, numel)).threads(numel as u64),
    }
}

fn choose_walk(layout: &Layout, operands: &[&Tensor], heavy: bool) -> Walk {
    let dense = (0..operands.len()).all(|i| layout.is_dense(i) || layout.is_constant(i));
    if !dense || !layout.is_dense(0) {
        return Walk::Strided { rank: layout.rank() as u32 };
    }
    if heavy {
        return Walk::Dense { lanes: 1 };
    }
    let widest = operands.iter().map(|t| t.element_size()).max().unwrap_or(4);
    let lanes = (16 / widest) as u32;
    let aligned = operands
        .iter()
        .enumerate()
        .all(|(i, t)| layout.is_constant(i) || t.data % (t.element_size() * u64::from(lanes)) == 0);
    Walk::Dense { lanes: if aligned { lanes } else { 1 } }
}

#[allow(clippy::too_many_arguments)]
fn build(
    family: &str,
    walk: Walk,
    index: Scalar,
    constants: u32,
    operands: &[&Tensor],
    outs: usize,
    inputs: &[Input],
    common: DType,
    guarded: bool,
    body: Bodies<'_>,
) -> Kernel {
    let b = Builder::new(family, [GROUP, 1, 1]);
    let pointers: Vec<_> = operands.iter().enumerate().map(|(i, t)| b.pointer(&format!("t{i}"), t.dtype)).collect();
    let compute = common.compute();
    let numbers: Vec<Option<Value>> = inputs
        .iter()
        .map(|i| match i {
            Input::Number(..) if compute == Scalar::Bool => Some(b.param("number", Scalar::U32).cast(compute)),
            Input::Number(..) => Some(b.param("number", compute)),
            Input::Tensor(_) => None,
        })
        .collect();
    let fault = guarded.then(|| (b.pointer("fault", DType::U32), b.param("refusal", Scalar::U32)));
    let n = b.param("numel", index);
    let dtypes: Vec<DType> = operands[outs..].iter().map(|t| t.dtype).collect();
    let compute = |loaded: &[_]| {
        let values = assemble(&numbers, loaded, &dtypes, common);
        if let Some((fault, refusal)) = fault {
            let zero = b.u32(0);
            b.if_(values[1].eq(0), || crate::fault::report(&b, fault, refusal, zero, zero, 0));
        }
        body(&b, &values)
    };
    match walk {
        Walk::Dense { lanes } => {
            let constant = |i: usize| constants >> (operands.len() - 1 - i) & 1 == 1;
            let tensors: Vec<_> = (outs..operands.len()).map(|i| (pointers[i], constant(i))).collect();
            dense::write(&b, n, lanes, &pointers[..outs], &tensors, &compute);
        }
        Walk::Strided { rank } => {
            let params = layout::declare(&b, rank as usize, operands.len(), index);
            let i = linear_id(&b, index);
            b.if_(i.lt(n), || {
                let offsets = params.offsets(&b, i);
                let loaded: Vec<Value> = (outs..operands.len()).map(|t| pointers[t].load(offsets[t])).collect();
                for (t, value) in compute(&loaded).into_iter().enumerate() {
                    pointers[t].store(offsets[t], value);
                }
            });
        }
    }
    b.finish()
}

/// What the queue must know of the dense kernel to join it with others.
fn describe(
    operands: &[&Tensor],
    layout: &Layout,
    outs: usize,
    inputs: &[Input],
    common: DType,
    body: Bodies<'_>,
) -> Option<Pointwise> {
    let compute = common.compute();
    let mut tensors = outs..operands.len();
    let slots: SmallVec<[PointwiseInput; 4]> = inputs
        .iter()
        .map(|input| match input {
            Input::Number(..) => Some(PointwiseInput::Number(compute)),
            Input::Tensor(t) => {
                tensors.next().map(|i| PointwiseInput::Tensor { dtype: t.dtype, constant: layout.is_constant(i) })
            }
        })
        .collect::<Option<_>>()?;
    let types: SmallVec<[Scalar; 4]> = inputs
        .iter()
        .map(|input| match input {
            Input::Number(..) => compute,
            Input::Tensor(t) => t.dtype.compute(),
        })
        .collect();
    let element = Element::record(&types, |b, values| {
        let common_values: Vec<Value> = inputs
            .iter()
            .zip(values)
            .map(|(input, &x)| match input {
                Input::Tensor(t) if t.dtype != common => dml_kernel::convert(x, common),
                _ => x,
            })
            .collect();
        body(b, &common_values)
    })?;
    Some(Pointwise { element, outs: operands[..outs].iter().map(|t| t.dtype).collect(), inputs: slots })
}

/// The values of all inputs for one element, given those of the tensors among them.
fn assemble<'b>(
    numbers: &[Option<Value<'b>>],
    tensors: &[Value<'b>],
    dtypes: &[DType],
    common: DType,
) -> Vec<Value<'b>> {
    let mut tensors = tensors.iter().zip(dtypes);
    numbers
        .iter()
        .filter_map(|number| {
            number.or_else(|| {
                let (&x, &dtype) = tensors.next()?;
                Some(if dtype == common { x } else { dml_kernel::convert(x, common) })
            })
        })
        .collect()
}
