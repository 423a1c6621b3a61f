//! Running sums, products, extrema and log-sum-exps along a dimension.
//!
//! A workgroup processes its rows in tiles. Within a tile every invocation folds a few adjacent
//! elements, the invocations of a row scan their totals in shared memory (Hillis and Steele, "Data
//! parallel algorithms", 1986), and the row's total is carried to the next tile. The order depends
//! only on shapes.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::movement::copy;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::rows::{Extent, ExtentParams, RowExtent, RowPosition, Rows};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::parameters;
use dml_kernel::dense::GROUP;
use dml_kernel::math::comparison::less_equal;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Shared, Value, convert, math};
use smallvec::{SmallVec, smallvec};

/// Elements of a tile that one invocation folds.
const ELEMENTS_PER_INVOCATION: u32 = 4;

/// Adjacent rows of a workgroup, if their elements are adjacent in memory.
const COLUMNS: u32 = 32;

type Values<'b> = SmallVec<[Value<'b>; 2]>;

/// The accumulated operation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Running sum.
    Sum,
    /// Running product.
    Product,
    /// Running log-sum-exp.
    LogSumExp,
    /// Running maximum and its position: the last of equal ones, and NaN from the first one on.
    Max,
    /// Running minimum and its position, as for `Max`.
    Min,
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    operation: Operation,
    input: DType,
    /// Elements are converted to this dtype first.
    dtype: DType,
    /// Dtype of the (first) result.
    out: DType,
    rows: Rows,
}

parameters! {
    Spec as s => Arguments, Parameters {
        input: Input = s.input,
        out: Output = s.out,
        indices: Option<Output> = s.positions().then_some(DType::I64),
        extent: RowExtent = s.rows.index,
    }
}

impl Spec {
    fn positions(&self) -> bool {
        matches!(self.operation, Operation::Max | Operation::Min)
    }

    fn scalar(&self) -> ScalarType {
        match self.operation {
            Operation::Sum | Operation::Product => accumulator(self.dtype).compute(),
            _ if self.dtype == DType::Bool => ScalarType::U32,
            _ => self.dtype.compute(),
        }
    }

    /// Accumulators of no elements.
    fn identity<'b>(&self, b: &'b Builder) -> Values<'b> {
        let s = self.scalar();
        match self.operation {
            Operation::Sum => smallvec![b.constant_of(s, 0.0)],
            Operation::Product => smallvec![b.constant_of(s, 1.0)],
            Operation::LogSumExp => smallvec![b.float(s, f64::NEG_INFINITY)],
            // The position with all bits set stands for no element.
            _ => smallvec![b.constant_of(s, 0.0), b.int(self.rows.index, u64::MAX)],
        }
    }

    fn map<'b>(&self, x: Value<'b>, at: Value<'b>) -> Values<'b> {
        let x = if self.dtype == self.input { x } else { convert(x, self.dtype) };
        let x = x.cast(self.scalar());
        if self.positions() { smallvec![x, at] } else { smallvec![x] }
    }

    /// Combines accumulators, `x` before `y`.
    fn combine<'b>(&self, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        let (a, c) = (x[0], y[0]);
        match self.operation {
            Operation::Sum => smallvec![a + c],
            Operation::Product => smallvec![a * c],
            Operation::LogSumExp => {
                let (low, high) = (a.min(c), a.max(c));
                let sum = high + math::log1p(math::exp(low - high));
                let nan = a.is_nan() | c.is_nan();
                let same_infinity = a.eq(c) & a.is_inf();
                smallvec![nan.select(a + c, same_infinity.select(a, sum))]
            }
            Operation::Max | Operation::Min => {
                let not_worse = if self.operation == Operation::Max { less_equal(a, c) } else { less_equal(c, a) };
                let later = c.is_nan() | (not_worse & !a.is_nan());
                let none = u64::MAX;
                let later = (later | x[1].eq(none)) & y[1].ne(none);
                smallvec![later.select(c, a), later.select(y[1], x[1])]
            }
        }
    }
}

/// Writes the running sums of a float tensor along a dimension.
pub fn sums(cx: &Context, input: &View, out: &View, dim: usize) -> Result<()> {
    run(cx, Operation::Sum, input, out.dtype, dim, &[out])
}

/// Accumulates along dimension `dim`, of elements converted to `dtype` first. `outs` are of the
/// input's shape: the result, and the positions (int64) of [`Operation::Max`] and
/// [`Operation::Min`].
pub fn run(cx: &Context, operation: Operation, input: &View, dtype: DType, dim: usize, outs: &[&View]) -> Result<()> {
    if input.numel() == 0 {
        return Ok(());
    }
    let input = copy::as_contiguous(cx, input)?;
    let dense: Result<SmallVec<[View; 2]>> =
        outs.iter().map(|t| if t.is_contiguous() { Ok((*t).clone()) } else { cx.empty(t.dtype, &t.sizes) }).collect();
    let dense = dense?;
    let extent = Extent::along(&input.sizes, dim);
    let lanes_first = extent.inner == 1;
    let columns = if lanes_first { 1 } else { (extent.rows.min(i64::from(COLUMNS)) as u32).next_power_of_two() };
    let rows = Rows {
        index: index_type(input.numel()),
        lanes: (extent.n.min(1 << 20) as u32)
            .div_ceil(ELEMENTS_PER_INVOCATION)
            .next_power_of_two()
            .min(GROUP / columns),
        lanes_first,
    };
    let spec = Spec { operation, input: input.dtype, dtype, out: outs[0].dtype, rows };
    let arguments = Arguments { input: &input, out: &dense[0], indices: dense.get(1), extent };
    cx.run(&spec, &arguments, rows.groups(&extent))?;
    for (from, &to) in dense.iter().zip(outs) {
        if from.data != to.data {
            copy::device_copy(cx, from, to)?;
        }
    }
    Ok(())
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        write(b, self, p);
    }
}

fn write<'b>(b: &'b Builder, spec: &Spec, p: Parameters<'b>) {
    let input = p.input;
    let outs: Vec<Pointer> = std::iter::once(p.out).chain(p.indices).collect();
    let Rows { index, lanes, .. } = spec.rows;
    let ExtentParams { rows, n, inner } = p.extent;
    let RowPosition { local, lane, leader, lane_stride, first, valid, .. } = spec.rows.row_position(b, rows, n, inner);

    let identity = spec.identity(b);
    let shared: Vec<[Shared; 2]> =
        identity.iter().map(|v| [b.shared(v.scalar(), 1, GROUP), b.shared(v.scalar(), 1, GROUP)]).collect();
    let carry: Vec<_> = identity.iter().map(|&v| b.var(v)).collect();
    b.for_(0, n, ELEMENTS_PER_INVOCATION * lanes, |tile| {
        let from = tile + (lane * ELEMENTS_PER_INVOCATION).cast(index);
        let mut prefixes: Vec<Values> = Vec::new();
        for e in 0..ELEMENTS_PER_INVOCATION {
            let at = from + e;
            let element = spec.map(input.load(first + at.min(n - 1) * inner), at);
            let inside = at.lt(n);
            let element: Values = element.iter().zip(&identity).map(|(&x, &none)| inside.select(x, none)).collect();
            let prefix = match prefixes.last() {
                Some(before) => spec.combine(before, &element),
                None => element,
            };
            prefixes.push(prefix);
        }
        let mut total = prefixes[ELEMENTS_PER_INVOCATION as usize - 1].clone();
        let mut side = 0;
        let publish = |side: usize, total: &Values<'b>| {
            for (s, &value) in shared.iter().zip(total) {
                s[side].store(local, value);
            }
            b.barrier();
        };
        let read = |side: usize, at: Value<'b>| -> Values<'b> { shared.iter().map(|s| s[side].load(at)).collect() };
        publish(side, &total);
        let mut step = 1;
        while step < lanes {
            let there = lane.ge(step);
            let before = read(side, there.select(local - step * lane_stride, local));
            let joined = spec.combine(&before, &total);
            total = joined.iter().zip(&total).map(|(&x, &own)| there.select(x, own)).collect();
            side = 1 - side;
            publish(side, &total);
            step *= 2;
        }
        let begun: Values = carry.iter().map(|v| v.get()).collect();
        let not_first = lane.gt(0);
        let before = read(side, not_first.select(local - lane_stride, local));
        let before: Values = before.iter().zip(&identity).map(|(&x, &none)| not_first.select(x, none)).collect();
        let before = spec.combine(&begun, &before);
        for (e, prefix) in prefixes.iter().enumerate() {
            let at = from + e as u32;
            b.if_(valid & at.lt(n), || {
                for (out, &value) in outs.iter().zip(&spec.combine(&before, prefix)) {
                    out.store(first + at * inner, value);
                }
            });
        }
        let last = read(side, leader + (lanes - 1) * lane_stride);
        for (var, &value) in carry.iter().zip(&spec.combine(&begun, &last)) {
            var.set(value);
        }
        b.barrier();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        use Operation::*;
        for operation in [Sum, Product, LogSumExp, Max, Min] {
            for (input, dtype) in [(DType::F32, DType::F32), (DType::F16, DType::F64), (DType::BF16, DType::BF16)] {
                for (lanes, lanes_first, index) in
                    [(1, true, ScalarType::U32), (8, false, ScalarType::U64), (256, true, ScalarType::U32)]
                {
                    let spec = Spec { operation, input, dtype, out: dtype, rows: Rows { index, lanes, lanes_first } };
                    crate::primitives::validate::accepted(&spec.build());
                }
            }
        }
        let (input, dtype) = (DType::Bool, DType::I64);
        let spec = Spec {
            operation: Sum,
            input,
            dtype,
            out: dtype,
            rows: Rows { index: ScalarType::U32, lanes: 4, lanes_first: false },
        };
        crate::primitives::validate::accepted(&spec.build());
    }
}
