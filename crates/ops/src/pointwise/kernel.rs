//! The pointwise kernel: computes each element of its results from the same element of its inputs.

use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::primitives::launch::{GROUP, linear_id};
use crate::tensor::layout::{self, Layout};
use crate::tensor::{Dims, Tensor};
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
pub fn tensors<'o, 't>(operands: &'o [Operand<'t>]) -> impl Iterator<Item = &'t Tensor> + use<'o, 't> {
    operands.iter().filter_map(|operand| match operand {
        Operand::Tensor(t) => Some(*t),
        Operand::Number(_) => None,
    })
}

/// What a pointwise kernel computes of one element of each input.
pub type Body<'f> = &'f dyn for<'b> Fn(&'b Builder, &[Value<'b>]) -> Value<'b>;

/// [`Body`] with several results.
pub type Bodies<'f> = &'f dyn for<'b> Fn(&'b Builder, &[Value<'b>]) -> Vec<Value<'b>>;

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
pub const DIVIDES: u32 = 1 << 17;

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
        launcher = launcher.fault().u32(crate::operator::fault::value("ZeroDivisionError"));
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
            b.if_(values[1].eq(0), || crate::operator::fault::report(&b, fault, refusal, zero, zero, 0));
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
