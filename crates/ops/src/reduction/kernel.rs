//! The kernel of a reduction's pass.

use super::{Fold, Scope, Values};
use crate::primitives::launch::GROUP;
use crate::tensor::layout;
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Shared, Value, Var};

/// Everything that changes the code.
pub(super) struct Shape<'s> {
    /// Reads inputs; otherwise partial results.
    pub first: bool,
    /// Writes results; otherwise partial results.
    pub last: bool,
    pub inputs: &'s [DType],
    pub outs: &'s [DType],
    pub tables: &'s [DType],
    pub numbers: &'s [DType],
    pub kept_rank: u32,
    pub reduced_rank: u32,
    pub index: Scalar,
    pub lanes: u32,
    pub lanes_first: bool,
    pub width: u32,
    /// A bit for each input that is read once an output.
    pub constants: u32,
}

impl Shape<'_> {
    pub fn key(&self, variant: u32) -> [u32; 6] {
        let dtypes = |list: &[DType]| list.iter().fold(1u32, |code, &d| code << 4 | d as u32);
        let flags = u32::from(self.first)
            | u32::from(self.last) << 1
            | u32::from(self.lanes_first) << 2
            | u32::from(self.index == Scalar::U64) << 3
            | self.lanes.ilog2() << 4
            | self.width.ilog2() << 8
            | self.kept_rank << 12
            | self.reduced_rank << 20;
        // At most seven dtypes fit in a word, three of tables in half of one.
        let tables = dtypes(self.tables) | self.constants << 16;
        [flags, dtypes(self.inputs), dtypes(self.outs), tables, dtypes(self.numbers), variant]
    }
}

pub(super) fn build(fold: &impl Fold, shape: &Shape) -> Kernel {
    let b = Builder::new(fold.name(), [GROUP, 1, 1]);
    write(&b, fold, shape);
    b.finish()
}

fn write<'b>(b: &'b Builder, fold: &impl Fold, shape: &Shape) {
    let inputs: Vec<Pointer> = shape.inputs.iter().map(|&d| b.pointer("input", d)).collect();
    let outs: Vec<Pointer> = shape.outs.iter().map(|&d| b.pointer("out", d)).collect();
    let tables = shape.tables.iter().map(|&d| b.pointer("table", d)).collect();
    let fault = (shape.first && fold.faults()).then(|| b.pointer("fault", DType::U32));
    let numbers = shape.numbers.iter().map(|d| b.param("number", d.compute())).collect();
    let index = shape.index;
    let scope = Scope { b, numbers, tables, fault, index };
    let outputs = b.param("outputs", index);
    let extent = b.param("extent", index);
    let part_length = b.param("part_length", index);
    let part_stride = b.param("part_stride", index);
    let blocks = b.param("blocks", Scalar::U32);
    let parts = b.param("parts", Scalar::U32);
    let written = if shape.last { outs.len() } else { 1 };
    let kept = layout::declare(b, shape.kept_rank as usize, inputs.len() + written, index);
    let reduced = layout::declare(b, shape.reduced_rank as usize, inputs.len(), index);

    let (lanes, columns) = (shape.lanes, GROUP / shape.lanes);
    let local = b.local_id(0);
    let (lane, column) = if shape.lanes_first {
        (local & (lanes - 1), local >> lanes.ilog2())
    } else {
        (local >> columns.ilog2(), local & (columns - 1))
    };
    let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
    let part = group / blocks;
    let output = (group - part * blocks).cast(index) * columns + column.cast(index);
    let valid = part.lt(parts) & output.lt(outputs);

    // Independent chains of an invocation: `ahead` accesses of `width` elements.
    let width = shape.width;
    let ahead = (4 / width).max(1);
    let chains: Vec<Vec<Var>> = (0..width * ahead).map(|_| variables(b, &fold.identity(&scope))).collect();
    b.if_(valid, || {
        let base = kept.offsets(b, output);
        let once: Vec<Option<Value>> =
            inputs.iter().enumerate().map(|(t, p)| (shape.constants >> t & 1 == 1).then(|| p.load(base[t]))).collect();
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
                    let mapped = if shape.first {
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
        tree(b, fold, &scope, &total, local, lane, lanes, if shape.lanes_first { 1 } else { columns });
    }
    b.if_(valid & lane.eq(0), || {
        let offsets = kept.offsets(b, output);
        let total = get(&total);
        if shape.last {
            let results = fold.finish(&scope, &total);
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

/// Joins the accumulators of `lanes` invocations, `step` apart, into those of the first.
#[allow(clippy::too_many_arguments)]
fn tree<'b>(
    b: &'b Builder,
    fold: &impl Fold,
    scope: &Scope<'b>,
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

/// For tests: every kind of pass of a fold passes the validator.
#[cfg(test)]
pub fn validate(fold: &impl Fold, inputs: &[DType], outs: &[DType], numbers: &[DType]) {
    for index in [Scalar::U32, Scalar::U64] {
        let partials: Vec<DType> = fold.accumulators(index).iter().map(|&a| super::dtype_of(a)).collect();
        for (first, last) in [(true, true), (true, false), (false, false), (false, true)] {
            for (lanes, lanes_first, width) in [(256, true, 4), (8, false, 1), (1, false, 1), (4, true, 1)] {
                let shape = Shape {
                    first,
                    last,
                    inputs: if first { inputs } else { &partials },
                    outs: if last { outs } else { &partials },
                    tables: &[],
                    numbers,
                    kept_rank: 2,
                    reduced_rank: if width > 1 { 1 } else { 3 },
                    index,
                    lanes,
                    lanes_first,
                    width: if first { width } else { 1 },
                    constants: if first && width > 1 { (1 << inputs.len()) - 2 } else { 0 },
                };
                crate::primitives::validate::accepted(&build(fold, &shape));
            }
        }
    }
}
