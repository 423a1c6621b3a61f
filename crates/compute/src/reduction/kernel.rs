//! The kernel of a reduction's pass.

use crate::fault::Fault;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::reduction::fold::{Fold, FoldScope, Refusals, Values};
use crate::view::layout::{LayoutParameter, LayoutSpec};
use dml_engine::interface::{Each, Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, ScalarType, Shared, Value, Var};
use smallvec::SmallVec;

/// The dtypes of some operands.
pub type DTypes = SmallVec<[DType; 4]>;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec<F> {
    /// What is accumulated.
    pub fold: F,
    /// Whether the pass reads inputs, and not partial results.
    pub first: bool,
    /// Whether the pass writes results, and not partial results.
    pub last: bool,
    pub inputs: DTypes,
    pub outs: DTypes,
    /// Further tensors, which the fold accesses by itself; none in a pass that reads partial
    /// results.
    pub tables: DTypes,
    pub numbers: DTypes,
    pub kept_rank: u32,
    pub reduced_rank: u32,
    /// Integer type of positions and offsets.
    pub index: ScalarType,
    /// Invocations that share one output; a power of two.
    pub lanes: u32,
    /// Neighbouring invocations share an output; otherwise they have neighbouring outputs.
    pub lanes_first: bool,
    /// Elements in one access (vector width).
    pub width: u32,
    /// Bitmask: input i is read once for each output.
    pub constants: u32,
}

parameters! {
    pub impl<F: Fold> Spec<F> as s => Arguments, Parameters {
        inputs: Each<Input> = s.inputs,
        outs: Each<Output> = s.outs,
        tables: Each<Input> = s.tables,
        faults: Each<Fault> = s.refusals().iter().map(|_| ()).collect(),
        numbers: Each<InDType> = s.numbers,
        outputs: Index = s.index,
        /// Number of accesses for one output.
        extent: Index = s.index,
        /// Number of accesses in a part of the extent.
        part_length: Index = s.index,
        /// Distance between the partial results of two parts.
        part_stride: Index = s.index,
        /// Number of workgroups for each part.
        blocks: U32,
        parts: U32,
        /// Layout of the kept dimensions: strides of what is read, then of what is written.
        kept: LayoutParameter = s.kept(),
        /// Layout of the reduced dimensions: strides of what is read.
        reduced: LayoutParameter = s.reduced(),
    }
}

impl<F: Fold> Spec<F> {
    /// The errors that the pass reports.
    pub fn refusals(&self) -> Refusals {
        if self.first { self.fold.refusals() } else { Refusals::new() }
    }

    fn kept(&self) -> LayoutSpec {
        // Partial results all have the same strides, so one of them is enough.
        let output_layouts = if self.last { self.outs.len() } else { 1 };
        let operands = (self.inputs.len() + output_layouts) as u32;
        LayoutSpec { rank: self.kept_rank, operands, index: self.index }
    }

    fn reduced(&self) -> LayoutSpec {
        LayoutSpec { rank: self.reduced_rank, operands: self.inputs.len() as u32, index: self.index }
    }
}

/// The dtypes of a fold's partial results.
pub fn partial_dtypes(fold: &impl Fold, index: ScalarType) -> DTypes {
    fold.accumulators(index).iter().map(|&scalar| dtype_of(scalar)).collect()
}

/// The dtype with elements of this compute type.
fn dtype_of(scalar: ScalarType) -> DType {
    match scalar {
        ScalarType::Bool => DType::Bool,
        ScalarType::I32 => DType::I32,
        ScalarType::U32 => DType::U32,
        ScalarType::I64 => DType::I64,
        ScalarType::U64 => DType::U64,
        ScalarType::F32 => DType::F32,
        ScalarType::F64 => DType::F64,
    }
}

impl<F: Fold> KernelSpec for Spec<F> {
    fn name(&self) -> &'static str {
        self.fold.name()
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        write(b, self, p);
    }
}

fn write<'b, F: Fold>(b: &'b Builder, spec: &Spec<F>, p: Parameters<'b>) {
    let fold = &spec.fold;
    let Parameters { inputs, outs, outputs, extent, part_length, part_stride, blocks, parts, kept, reduced, .. } = p;
    let index = spec.index;
    let scope = FoldScope { b, numbers: p.numbers, tables: p.tables, faults: p.faults, index };

    let (lanes, columns) = (spec.lanes, GROUP / spec.lanes);
    let local = b.local_id(0);
    let (lane, column) = if spec.lanes_first {
        (local & (lanes - 1), local >> lanes.ilog2())
    } else {
        (local >> columns.ilog2(), local & (columns - 1))
    };
    let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
    let part = group / blocks;
    let output = (group - part * blocks).cast(index) * columns + column.cast(index);
    let valid = part.lt(parts) & output.lt(outputs);

    // Independent accumulator chains of an invocation: `ahead` accesses of `width` elements.
    let width = spec.width;
    let ahead = (4 / width).max(1);
    let chains: Vec<Vec<Var>> = (0..width * ahead).map(|_| variables(b, &fold.identity(&scope))).collect();
    b.if_(valid, || {
        let base = kept.offsets(b, output);
        let once: Vec<Option<Value>> =
            inputs.iter().enumerate().map(|(t, p)| (spec.constants >> t & 1 == 1).then(|| p.load(base[t]))).collect();
        let start = part.cast(index) * part_length;
        let end = (start + part_length).min(extent);
        let i = b.var(start + lane.cast(index));
        let fold_from = |from: Value<'b>, accesses: u32| {
            let positions: Vec<Value> = (0..accesses).map(|q| from + q * lanes).collect();
            let loaded: Vec<Vec<Vec<Value>>> = positions
                .iter()
                .map(|&at| {
                    let offsets = reduced.offsets(b, at);
                    let inputs = inputs.iter().enumerate();
                    inputs
                        .map(|(t, p)| match (once[t], width) {
                            (Some(value), _) => vec![value; width as usize],
                            (None, 1) => vec![p.load(base[t] + offsets[t])],
                            (None, _) => p.load_chunk((base[t] >> width.ilog2()) + at, width),
                        })
                        .collect()
                })
                .collect();
            for (q, (&at, elements)) in positions.iter().zip(&loaded).enumerate() {
                for w in 0..width {
                    let element: Vec<Value> = elements.iter().map(|lanes| lanes[w as usize]).collect();
                    let mapped = if spec.first {
                        let position = if width == 1 { at } else { at * width + w };
                        fold.map(&scope, &element, position)
                    } else {
                        Values::from_vec(element)
                    };
                    let chain = &chains[q * width as usize + w as usize];
                    set(chain, &fold.combine(&scope, &get(chain), &mapped));
                }
            }
        };
        if ahead > 1 {
            b.while_(
                || (i.get() + (ahead - 1) * lanes).lt(end),
                || {
                    let now = i.get();
                    fold_from(now, ahead);
                    i.set(now + ahead * lanes);
                },
            );
        }
        b.while_(
            || i.get().lt(end),
            || {
                let now = i.get();
                fold_from(now, 1);
                i.set(now + lanes);
            },
        );
    });

    let mut joined: Vec<Values> = chains.iter().map(|c| get(c)).collect();
    while joined.len() > 1 {
        joined = joined.chunks(2).map(|pair| fold.combine(&scope, &pair[0], &pair[1])).collect();
    }
    let total = variables(b, &joined[0]);
    if lanes > 1 {
        tree(b, fold, &scope, &total, local, lane, lanes, if spec.lanes_first { 1 } else { columns });
    }
    b.if_(valid & lane.eq(0), || {
        let offsets = kept.offsets(b, output);
        let total = get(&total);
        if spec.last {
            let results = fold.project(&scope, &total);
            for (i, (out, &value)) in outs.iter().zip(&results).enumerate() {
                out.store(offsets[inputs.len() + i], value);
            }
        } else {
            let at = offsets[inputs.len()] + part.cast(index) * part_stride;
            for (out, &value) in outs.iter().zip(&total) {
                out.store(at, value);
            }
        }
    });
}

/// Reduces the accumulators of `lanes` invocations, `step` apart, to the first of them.
fn tree<'b>(
    b: &'b Builder,
    fold: &impl Fold,
    scope: &FoldScope<'b>,
    total: &[Var<'b>],
    local: Value<'b>,
    lane: Value<'b>,
    lanes: u32,
    step: u32,
) {
    let shared: Vec<Shared> = fold.accumulators(scope.index).iter().map(|&a| b.shared(a, 1, GROUP)).collect();
    for (s, &value) in shared.iter().zip(&get(total)) {
        s.store(local, value);
    }
    let mut half = lanes / 2;
    while half > 0 {
        b.barrier();
        b.if_(lane.lt(half), || {
            let other: Values = shared.iter().map(|s| s.load(local + half * step)).collect();
            let sum = fold.combine(scope, &get(total), &other);
            set(total, &sum);
            if half > 1 {
                for (s, &value) in shared.iter().zip(&sum) {
                    s.store(local, value);
                }
            }
        });
        half /= 2;
    }
}

fn variables<'b>(b: &'b Builder, values: &[Value<'b>]) -> Vec<Var<'b>> {
    values.iter().map(|&v| b.var(v)).collect()
}

fn get<'b>(vars: &[Var<'b>]) -> Values<'b> {
    vars.iter().map(|v| v.get()).collect()
}

fn set<'b>(vars: &[Var<'b>], values: &[Value<'b>]) {
    for (var, &value) in vars.iter().zip(values) {
        var.set(value);
    }
}

/// For tests: runs the SPIR-V validator on every kind of pass of a fold.
#[cfg(test)]
pub fn validate(fold: &impl Fold, inputs: &[DType], outs: &[DType], numbers: &[DType]) {
    for index in [ScalarType::U32, ScalarType::U64] {
        let partials = partial_dtypes(fold, index);
        for (first, last) in [(true, true), (true, false), (false, false), (false, true)] {
            for (lanes, lanes_first, width) in [(256, true, 4), (8, false, 1), (1, false, 1), (4, true, 1)] {
                let spec = Spec {
                    fold: fold.clone(),
                    first,
                    last,
                    inputs: if first { inputs.into() } else { partials.clone() },
                    outs: if last { outs.into() } else { partials.clone() },
                    tables: DTypes::new(),
                    numbers: numbers.into(),
                    kept_rank: 2,
                    reduced_rank: if width > 1 { 1 } else { 3 },
                    index,
                    lanes,
                    lanes_first,
                    width: if first { width } else { 1 },
                    constants: if first && width > 1 { (1 << inputs.len()) - 2 } else { 0 },
                };
                crate::primitives::validate::accepted(&spec.build());
            }
        }
    }
}
