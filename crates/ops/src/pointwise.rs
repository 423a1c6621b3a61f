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

/// An [`Input`] that is only looked at.
#[derive(Copy, Clone, Debug)]
pub enum Operand<'t> {
    /// A tensor on the call's device.
    Tensor(&'t Tensor),
    /// A number, in the common dtype.
    Number(Number),
}

/// The inputs of one kernel.
pub type Operands<'t> = SmallVec<[Operand<'t>; 8]>;

/// The inputs to be looked at.
pub fn operands(inputs: &[Input]) -> Operands<'_> {
    let mut all = Operands::new();
    for input in inputs {
        all.push(match input {
            Input::Tensor(t) => Operand::Tensor(t),
            Input::Number(n, _) => Operand::Number(*n),
        });
    }
    all
}

/// The tensors among operands.
fn tensors<'o, 't>(operands: &'o [Operand<'t>]) -> impl Iterator<Item = &'t Tensor> + use<'o, 't> {
    operands.iter().filter_map(|operand| match operand {
        Operand::Tensor(t) => Some(*t),
        Operand::Number(_) => None,
    })
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
    Ok(match operand_of(call, t)? {
        Operand::Tensor(t) => Input::Tensor(t.clone()),
        Operand::Number(n) => Input::Number(n, t.dtype),
    })
}

fn operand_of<'t>(call: &Call, t: &'t Tensor) -> Result<Operand<'t>> {
    if t.place == Place::Cpu && t.dim() == 0 {
        return Ok(Operand::Number(crate::host::read_number(t)?));
    }
    call.check_place(t)?;
    Ok(Operand::Tensor(t))
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
    let mut slots: SmallVec<[Slot; 4]> = SmallVec::new();
    for &i in tensors {
        slots.push(Slot::Tensor(i));
    }
    for &n in numbers {
        slots.push(Slot::Number(n));
    }
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
    let mut inputs = Operands::new();
    for slot in slots {
        inputs.push(match *slot {
            Slot::Tensor(i) => operand_of(call, call.any_tensor(i)?)?,
            Slot::Scalar(n) | Slot::Number(n) => Operand::Number(n),
        });
    }
    let result = if rule == Rule::Bool { DType::Bool } else { common };
    let out = result_of(call, out, result, &inputs)?;
    run_with(call, family, variant, &[&out], &inputs, common, &|b, v| vec![body(b, v)])?;
    call.ret(out);
    Ok(())
}

/// The tensor that holds the result of a pointwise operator on `inputs`, by PyTorch's rules for shapes, strides,
/// in-place and `out=` arguments.
pub fn result_tensor(call: &Call, out: Out, dtype: DType, inputs: &[Input]) -> Result<Tensor> {
    result_of(call, out, dtype, &operands(inputs))
}

fn result_of(call: &Call, out: Out, dtype: DType, inputs: &[Operand]) -> Result<Tensor> {
    match out {
        Out::New => {
            let sizes = broadcast_sizes(call, inputs)?;
            call.empty_strided(dtype, &sizes, &new_strides(&sizes, inputs))
        }
        Out::InPlace => written(call, call.tensor(0)?, dtype, inputs),
        Out::Arg(i) => {
            let sizes = broadcast_sizes(call, inputs)?;
            let t = call.out(Some(i), dtype, &sizes)?;
            check_no_self_overlap(&t)?;
            check_no_partial_overlap(&t, inputs)?;
            Ok(t)
        }
    }
}

/// The strides of a new result.
fn new_strides(sizes: &[i64], inputs: &[Operand]) -> Dims {
    if tensors(inputs).all(|t| t.sizes.as_slice() == sizes && t.is_contiguous()) {
        return Tensor::contiguous_strides(sizes);
    }
    let expanded: SmallVec<[Dims; 4]> = tensors(inputs).map(|t| t.expanded_strides(sizes)).collect();
    let all: SmallVec<[&[i64]; 4]> = expanded.iter().map(Dims::as_slice).collect();
    layout::joint_strides(sizes, &all)
}

/// `t` as the place of the result of a pointwise operator on `inputs`: its shape and dtype must take the result.
pub fn in_place(call: &Call, t: &Tensor, dtype: DType, inputs: &[Input]) -> Result<Tensor> {
    written(call, t, dtype, &operands(inputs))
}

fn written(call: &Call, t: &Tensor, dtype: DType, inputs: &[Operand]) -> Result<Tensor> {
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
fn broadcast_sizes(call: &Call, inputs: &[Operand]) -> Result<Dims> {
    let mut all = tensors(inputs);
    let Some(first) = all.next() else { return Ok(Dims::new()) };
    let mut sizes = Dims::from_slice(&first.sizes);
    for t in all {
        if sizes != t.sizes {
            sizes = call.broadcast(&sizes, &t.sizes)?;
        }
    }
    Ok(sizes)
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

fn check_no_partial_overlap(out: &Tensor, inputs: &[Operand]) -> Result<()> {
    let a = out.range();
    for t in tensors(inputs) {
        let b = t.range();
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

/// How the operands of one launch are walked.
struct Plan {
    walk: Walk,
    /// The type of an index.
    index: Scalar,
    /// A bit an operand, the last one's lowest: it is one element for all. Of a dense walk.
    constants: u32,
    /// The dimensions of a strided walk.
    layout: Option<Layout>,
}

impl Plan {
    /// For tensors that broadcast to the first one's shape, of which there are `numel` elements.
    fn new(tensors: &[&Tensor], numel: i64, heavy: bool) -> Plan {
        let first = tensors[0];
        // The common case needs no layout: the same contiguous shape everywhere.
        let alike = |t: &&Tensor| t.strides == first.strides && t.sizes == first.sizes;
        if numel > 1 && first.is_contiguous() && tensors[1..].iter().all(alike) {
            let lanes = lanes(tensors, 0, heavy);
            return Plan { walk: Walk::Dense { lanes }, index: layout::index_type(numel), constants: 0, layout: None };
        }
        Self::of_layout(tensors, heavy)
    }

    fn of_layout(tensors: &[&Tensor], heavy: bool) -> Plan {
        let sizes = &tensors[0].sizes;
        let expanded: SmallVec<[Dims; 6]> = tensors.iter().map(|t| t.expanded_strides(sizes)).collect();
        let strides: SmallVec<[&[i64]; 6]> = expanded.iter().map(Dims::as_slice).collect();
        let layout = Layout::walk(sizes, &strides, &layout::order(sizes, &strides));
        let (index, rank) = (layout.index, layout.rank() as u32);
        let operands = 0..tensors.len();
        if !layout.is_dense(0) || !operands.clone().all(|i| layout.is_dense(i) || layout.is_constant(i)) {
            return Plan { walk: Walk::Strided { rank }, index, constants: 0, layout: Some(layout) };
        }
        let constants = operands.fold(0, |bits, i| bits << 1 | u32::from(layout.is_constant(i)));
        Plan { walk: Walk::Dense { lanes: lanes(tensors, constants, heavy) }, index, constants, layout: None }
    }
}

/// Whether operand `i` of `count` is one element for all.
fn is_constant(constants: u32, count: usize, i: usize) -> bool {
    constants >> (count - 1 - i) & 1 == 1
}

/// Neighbours that an invocation of a dense walk computes: 16 bytes of the widest operand, where all are aligned.
fn lanes(tensors: &[&Tensor], constants: u32, heavy: bool) -> u32 {
    if heavy {
        return 1;
    }
    let widest = tensors.iter().map(|t| t.element_size()).max().unwrap_or(4);
    let lanes = 16 / widest;
    let aligned = |(i, t): (usize, &&Tensor)| {
        is_constant(constants, tensors.len(), i) || t.data.is_multiple_of(t.element_size() * lanes)
    };
    if tensors.iter().enumerate().all(aligned) { lanes as u32 } else { 1 }
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
    run_with(call, family, variant, outs, &operands(inputs), common, &body)
}

/// [`run`] without a type of its own for every body: the machine code exists once.
pub fn run_with(
    call: &Call,
    family: &'static str,
    variant: u32,
    outs: &[&Tensor],
    inputs: &[Operand],
    common: DType,
    body: Bodies<'_>,
) -> Result<()> {
    let numel = outs[0].numel();
    if numel == 0 {
        return Ok(());
    }
    let mut all: SmallVec<[&Tensor; 8]> = SmallVec::from_slice(outs);
    for t in tensors(inputs) {
        all.push(t);
    }
    let Plan { walk, index, constants, layout } = Plan::new(&all, numel, variant & HEAVY != 0);
    let guarded = variant & DIVIDES != 0 && common.is_integer();

    // 5 bits an operand: its dtype; numbers before the last tensor are 31, those after it are only counted.
    let trailing = inputs.iter().rev().take_while(|i| matches!(i, Operand::Number(_))).count();
    debug_assert!(outs.len() + inputs.len() - trailing <= 12, "more operands than the kernel's key holds");
    let mut code = 0u64;
    for t in outs {
        code = code << 5 | t.dtype as u64;
    }
    for input in &inputs[..inputs.len() - trailing] {
        code = code << 5
            | match input {
                Operand::Tensor(t) => t.dtype as u64,
                Operand::Number(_) => 31,
            };
    }
    let (kind, extent) = match walk {
        Walk::Dense { lanes } => (0, lanes),
        Walk::Strided { rank } => (1, rank),
    };
    let wide = u32::from(index == Scalar::U64);
    let key = [
        code as u32,
        (code >> 32) as u32,
        (common as u32) | variant << 8,
        extent | kind << 16 | wide << 17,
        constants,
        inputs.len() as u32 | (trailing as u32) << 8 | (outs.len() as u32) << 16,
    ];
    let kernel = call.pointwise_kernel(family, key, || {
        let kernel = build(family, walk, index, constants, &all, outs.len(), inputs, common, guarded, body);
        let joins = kind == 0 && index == Scalar::U32 && !guarded;
        (kernel, if joins { describe(&all, constants, outs.len(), inputs, common, body) } else { None })
    })?;
    let mut launcher = call.launch(kernel);
    for t in outs {
        launcher = launcher.write(t);
    }
    for t in &all[outs.len()..] {
        launcher = launcher.read(t);
    }
    for input in inputs {
        if let Operand::Number(x) = input {
            launcher = launcher.number(common, *x);
        }
    }
    if guarded {
        launcher = launcher.fault().u32(crate::fault::value("ZeroDivisionError"));
    }
    launcher = launcher.index(index, numel);
    if let Some(layout) = &layout {
        launcher = layout.pass(launcher);
    }
    let lanes = if let Walk::Dense { lanes } = walk { lanes } else { 1 };
    launcher.threads((numel as u64).div_ceil(u64::from(lanes)))
}

#[allow(clippy::too_many_arguments)]
fn build(
    family: &str,
    walk: Walk,
    index: Scalar,
    constants: u32,
    tensors: &[&Tensor],
    outs: usize,
    inputs: &[Operand],
    common: DType,
    guarded: bool,
    body: Bodies<'_>,
) -> Kernel {
    let b = Builder::new(family, [GROUP, 1, 1]);
    let pointers: Vec<_> = tensors.iter().enumerate().map(|(i, t)| b.pointer(&format!("t{i}"), t.dtype)).collect();
    let compute = common.compute();
    let numbers: Vec<Option<Value>> = inputs
        .iter()
        .map(|i| match i {
            Operand::Number(_) if compute == Scalar::Bool => Some(b.param("number", Scalar::U32).cast(compute)),
            Operand::Number(_) => Some(b.param("number", compute)),
            Operand::Tensor(_) => None,
        })
        .collect();
    let fault = guarded.then(|| (b.pointer("fault", DType::U32), b.param("refusal", Scalar::U32)));
    let n = b.param("numel", index);
    let dtypes: Vec<DType> = tensors[outs..].iter().map(|t| t.dtype).collect();
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
            let constant = |i: usize| is_constant(constants, tensors.len(), i);
            let read: Vec<_> = (outs..tensors.len()).map(|i| (pointers[i], constant(i))).collect();
            dense::write(&b, n, lanes, &pointers[..outs], &read, &compute);
        }
        Walk::Strided { rank } => {
            let params = layout::declare(&b, rank as usize, tensors.len(), index);
            let i = linear_id(&b, index);
            b.if_(i.lt(n), || {
                let offsets = params.offsets(&b, i);
                let loaded: Vec<Value> = (outs..tensors.len()).map(|t| pointers[t].load(offsets[t])).collect();
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
    tensors: &[&Tensor],
    constants: u32,
    outs: usize,
    inputs: &[Operand],
    common: DType,
    body: Bodies<'_>,
) -> Option<Pointwise> {
    let compute = common.compute();
    let mut read = outs..tensors.len();
    let slots: SmallVec<[PointwiseInput; 4]> = inputs
        .iter()
        .map(|input| match input {
            Operand::Number(_) => Some(PointwiseInput::Number(compute)),
            Operand::Tensor(t) => {
                let constant = |i| is_constant(constants, tensors.len(), i);
                read.next().map(|i| PointwiseInput::Tensor { dtype: t.dtype, constant: constant(i) })
            }
        })
        .collect::<Option<_>>()?;
    let types: SmallVec<[Scalar; 4]> = inputs
        .iter()
        .map(|input| match input {
            Operand::Number(_) => compute,
            Operand::Tensor(t) => t.dtype.compute(),
        })
        .collect();
    let element = Element::record(&types, |b, values| {
        let common_values: Vec<Value> = inputs
            .iter()
            .zip(values)
            .map(|(input, &x)| match input {
                Operand::Tensor(t) if t.dtype != common => dml_kernel::convert(x, common),
                _ => x,
            })
            .collect();
        body(b, &common_values)
    })?;
    Some(Pointwise { element, outs: tensors[..outs].iter().map(|t| t.dtype).collect(), inputs: slots })
}

/// The values of all inputs for one element in the common dtype's compute type, given the numbers, and the values and dtypes of
/// the tensors that stand between them.
pub fn assemble<'b>(
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
