//! The pointwise kernel: computes each element of its results from the same element of its inputs.

use crate::context::Context;
use crate::error::Result;
use crate::fault::{Fault, Reporter};
use crate::pointwise::expr::Expr;
use crate::pointwise::function::{Domain, Guard, Variant};
use crate::primitives::kernel::number_word;
use crate::scalar::Scalar as Number;
use crate::view::layout::{self, Layout, LayoutParameter, LayoutSpec};
use crate::view::{Dims, View};
use dml_engine::{Parameter, Pointwise, PointwiseInput, PointwiseParameters};
use dml_kernel::dense::{self, GROUP, linear_id};
use dml_kernel::{Builder, DType, Element, Kernel, ScalarType, Value};
use smallvec::SmallVec;

/// An input: a tensor, or one number for all elements.
#[derive(Clone, Debug)]
pub enum Input {
    /// A tensor on the call's device.
    Tensor(View),
    /// A number, passed as a parameter of the given dtype.
    Number(Number, DType),
}

/// An [`Input`] by reference.
#[derive(Copy, Clone, Debug)]
pub enum Operand<'t> {
    /// A tensor on the call's device.
    Tensor(&'t View),
    /// A number, in the common dtype.
    Number(Number),
}

/// The inputs of one kernel.
pub type Operands<'t> = SmallVec<[Operand<'t>; 8]>;

/// The inputs by reference.
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
pub fn tensors<'o, 't>(operands: &'o [Operand<'t>]) -> impl Iterator<Item = &'t View> + use<'o, 't> {
    operands.iter().filter_map(|operand| match operand {
        Operand::Tensor(t) => Some(*t),
        Operand::Number(_) => None,
    })
}

/// The iteration over elements.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Iteration {
    /// All operands are dense or constant: `lanes` adjacent elements per invocation, in vector
    /// accesses.
    Dense { lanes: u32 },
    /// Any strides.
    Strided { rank: u32 },
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    /// The computation.
    expr: Expr,
    /// The dtype that inputs are converted to.
    common: DType,
    outs: SmallVec<[DType; 2]>,
    inputs: SmallVec<[PointwiseInput; 4]>,
    iteration: Iteration,
    index: ScalarType,
}

/// The iteration over the operands of one launch.
struct Plan {
    iteration: Iteration,
    /// Integer type of indices.
    index: ScalarType,
    /// Bitmask, with the last operand's bit lowest: the operand is one element for all. For a dense
    /// iteration.
    constants: u32,
    /// The dimensions of a strided iteration.
    layout: Option<Layout>,
}

impl Plan {
    /// For tensors that broadcast to the first one's shape, which has `numel` elements.
    fn new(tensors: &[&View], numel: i64, heavy: bool) -> Plan {
        let first = tensors[0];
        // The common case needs no layout: all have the same contiguous shape.
        let alike = |t: &&View| t.strides == first.strides && t.sizes == first.sizes;
        if numel > 1 && first.is_contiguous() && tensors[1..].iter().all(alike) {
            let lanes = lanes(tensors, 0, heavy);
            return Plan {
                iteration: Iteration::Dense { lanes },
                index: layout::index_type(numel),
                constants: 0,
                layout: None,
            };
        }
        Self::of_layout(tensors, heavy)
    }

    fn of_layout(tensors: &[&View], heavy: bool) -> Plan {
        let sizes = &tensors[0].sizes;
        let expanded: SmallVec<[Dims; 6]> = tensors.iter().map(|t| t.expanded_strides(sizes)).collect();
        let strides: SmallVec<[&[i64]; 6]> = expanded.iter().map(Dims::as_slice).collect();
        let layout = Layout::in_order(sizes, &strides, &layout::order(sizes, &strides));
        let (index, rank) = (layout.index, layout.rank() as u32);
        let operands = 0..tensors.len();
        if !layout.is_dense(0) || !operands.clone().all(|i| layout.is_dense(i) || layout.is_constant(i)) {
            return Plan { iteration: Iteration::Strided { rank }, index, constants: 0, layout: Some(layout) };
        }
        let constants = operands.fold(0, |bits, i| bits << 1 | u32::from(layout.is_constant(i)));
        Plan { iteration: Iteration::Dense { lanes: lanes(tensors, constants, heavy) }, index, constants, layout: None }
    }
}

/// Whether operand `i` of `count` is one element for all.
fn is_constant(constants: u32, count: usize, i: usize) -> bool {
    constants >> (count - 1 - i) & 1 == 1
}

/// Adjacent elements that an invocation of a dense iteration computes: 16 bytes of the widest
/// operand, if all are aligned.
fn lanes(tensors: &[&View], constants: u32, heavy: bool) -> u32 {
    if heavy {
        return 1;
    }
    let widest = tensors.iter().map(|t| t.element_size()).max().unwrap_or(4);
    let lanes = 16 / widest;
    let aligned = |(i, t): (usize, &&View)| {
        is_constant(constants, tensors.len(), i) || t.data.is_multiple_of(t.element_size() * lanes)
    };
    if tensors.iter().enumerate().all(aligned) { lanes as u32 } else { 1 }
}

/// Whether an invocation computes one element at a time for the sake of its registers: of f64 in
/// software, and where registers are few, since a number takes two of 32 bits.
pub fn takes_many_registers(cx: &Context, compute: ScalarType) -> bool {
    let can = &cx.device.info().capabilities;
    compute == ScalarType::F64 && (!can.f64 || can.has_few_registers())
}

/// Whether divisions take so many registers that an invocation computes one element at a time: of
/// integers of 64 bits, which no GPU divides in one instruction, where registers are few.
fn is_long_to_divide(cx: &Context, compute: ScalarType) -> bool {
    matches!(compute, ScalarType::I64 | ScalarType::U64) && cx.device.info().capabilities.has_few_registers()
}

/// Enqueues the kernel that computes `outs` from `inputs`, which broadcast to the outputs' common
/// shape. The function gets their values in the compute type of `common`, wrapped to its width.
pub fn run(cx: &Context, function: impl Into<Variant>, outs: &[&View], inputs: &[Input], common: DType) -> Result<()> {
    run_operands(cx, function.into(), outs, &operands(inputs), common)
}

/// [`run`] for operands by reference.
pub fn run_operands(cx: &Context, variant: Variant, outs: &[&View], inputs: &[Operand], common: DType) -> Result<()> {
    run_expr(cx, Expr::of(variant, inputs.len()), outs, inputs, common)
}

/// Replaces elements of `out` by an expression of them and of tensors of its shape.
pub fn run_over(cx: &Context, expr: Expr, out: &View, tensors: &[View]) -> Result<()> {
    let operands: Operands = std::iter::once(out).chain(tensors).map(Operand::Tensor).collect();
    run_expr(cx, expr, &[out], &operands, out.dtype)
}

/// [`run_operands`] for an expression of the inputs.
pub fn run_expr(cx: &Context, expr: Expr, outs: &[&View], inputs: &[Operand], common: DType) -> Result<()> {
    let numel = outs[0].numel();
    if numel == 0 || cx.needs_no_kernel() {
        return Ok(());
    }
    let mut all: SmallVec<[&View; 8]> = SmallVec::from_slice(outs);
    for t in tensors(inputs) {
        all.push(t);
    }
    let compute = common.compute();
    let heavy =
        expr.is_heavy() || takes_many_registers(cx, compute) || expr.divides() && is_long_to_divide(cx, compute);
    let Plan { iteration, index, constants, layout } = Plan::new(&all, numel, heavy);
    let mut spec = Spec { expr, common, outs: SmallVec::new(), inputs: SmallVec::new(), iteration, index };
    for t in outs {
        spec.outs.push(t.dtype);
    }
    let mut tensor = outs.len();
    for input in inputs {
        spec.inputs.push(match input {
            Operand::Tensor(t) => {
                let constant = is_constant(constants, all.len(), tensor);
                tensor += 1;
                PointwiseInput::Tensor { dtype: t.dtype, constant }
            }
            Operand::Number(_) => PointwiseInput::Number(compute),
        });
    }
    let kernel = cx.device.pointwise_kernel(&spec, || (spec.build(), spec.describe()))?;
    let lanes = if let Iteration::Dense { lanes } = iteration { lanes } else { 1 };
    let groups = dense::groups((numel as u64).div_ceil(u64::from(lanes)));
    cx.enqueue_with(kernel, groups, |block| {
        for t in outs {
            block.writes(t.range());
        }
        for t in &all[outs.len()..] {
            block.reads(t.range());
        }
        let numbers = inputs.iter().filter_map(|input| match input {
            Operand::Number(x) => Some((compute, number_word(common, *x))),
            Operand::Tensor(_) => None,
        });
        let (outs, tensors) = all.split_at(outs.len());
        let address = |t: &&View| t.data;
        let (outs, tensors) = (outs.iter().map(address), tensors.iter().map(address));
        PointwiseParameters::pass(block, outs, tensors, numbers, index, numel as u64);
        for guard in spec.guards() {
            Fault::pass(&cx.fault_of(guard.refusal), &(), block);
        }
        if let Some(layout) = &layout {
            LayoutParameter::pass(&layout, &layout.spec(), block);
        }
    })
}

impl Spec {
    /// The guards whose violations are reported.
    fn guards(&self) -> impl Iterator<Item = Guard> + use<> {
        let integers = self.common.is_integer();
        let all = self.expr.guards().iter().copied();
        all.filter(move |guard| integers || guard.domain != Domain::Divisor)
    }

    /// Its input tensors: their dtypes, and whether each is one element for all.
    fn tensors(&self) -> impl Iterator<Item = (DType, bool)> {
        self.inputs.iter().filter_map(|input| match *input {
            PointwiseInput::Tensor { dtype, constant } => Some((dtype, constant)),
            PointwiseInput::Number(_) => None,
        })
    }

    fn build(&self) -> Kernel {
        let b = Builder::new(self.expr.name(), [GROUP, 1, 1]);
        let p = PointwiseParameters::declare(&b, self.outs.iter().copied(), self.inputs.iter().copied(), self.index);
        let guards: Vec<(Guard, Reporter)> =
            self.guards().map(|guard| (guard, Fault::declare(&b, "fault", &()))).collect();
        let mut numbers = p.numbers.iter();
        let numbers: Vec<Option<Value>> = self
            .inputs
            .iter()
            .map(|input| if matches!(input, PointwiseInput::Number(_)) { numbers.next().copied() } else { None })
            .collect();
        let dtypes: Vec<DType> = self.tensors().map(|(dtype, _)| dtype).collect();
        let compute = |loaded: &[_]| {
            let values = assemble(&numbers, loaded, &dtypes, self.common);
            for (guard, fault) in &guards {
                b.if_(guard.domain.lacks(values[guard.operand]), || fault.report_value());
            }
            self.expr.results(&values, self.outs.len())
        };
        match self.iteration {
            Iteration::Dense { lanes } => {
                let read: Vec<_> =
                    p.tensors.iter().zip(self.tensors()).map(|(&t, (_, constant))| (t, constant)).collect();
                dense::write(&b, p.numel, lanes, &p.outs, &read, &compute);
            }
            Iteration::Strided { rank } => {
                let operands = (p.outs.len() + p.tensors.len()) as u32;
                let layout = LayoutParameter::declare(&b, "layout", &LayoutSpec { rank, operands, index: self.index });
                let i = linear_id(&b, self.index);
                b.if_(i.lt(p.numel), || {
                    let offsets = layout.offsets(&b, i);
                    let (outs, tensors) = offsets.split_at(p.outs.len());
                    let loaded: Vec<Value> = p.tensors.iter().zip(tensors).map(|(t, &at)| t.load(at)).collect();
                    for ((out, &at), value) in p.outs.iter().zip(outs).zip(compute(&loaded)) {
                        out.store(at, value);
                    }
                });
            }
        }
        b.finish()
    }

    /// The kernel's description for fusion by the queue: for a dense iteration with 32-bit indices
    /// that reports nothing.
    fn describe(&self) -> Option<Pointwise> {
        if !matches!(self.iteration, Iteration::Dense { .. })
            || self.index != ScalarType::U32
            || self.guards().next().is_some()
        {
            return None;
        }
        let types: SmallVec<[ScalarType; 4]> = self
            .inputs
            .iter()
            .map(|input| match *input {
                PointwiseInput::Number(scalar) => scalar,
                PointwiseInput::Tensor { dtype, .. } => dtype.compute(),
            })
            .collect();
        let element = Element::record(&types, |_, values| {
            let common_values: Vec<Value> = self
                .inputs
                .iter()
                .zip(values)
                .map(|(input, &x)| match *input {
                    PointwiseInput::Tensor { dtype, .. } if dtype != self.common => dml_kernel::convert(x, self.common),
                    _ => x,
                })
                .collect();
            self.expr.results(&common_values, self.outs.len())
        })?;
        Some(Pointwise { element, outs: self.outs.clone(), inputs: self.inputs.clone() })
    }
}

/// The values of all inputs for one element in the common dtype's compute type, given the numbers,
/// and the values and dtypes of the tensors between them.
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
