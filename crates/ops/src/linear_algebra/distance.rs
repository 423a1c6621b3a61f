//! Distances between all pairs of rows: cdist and pdist with any norm, and their gradients.
//!
//! Each is a reduction over views in which the rows of one side, or the columns, are repeated. Differences are taken
//! before they are squared, so that rows that are close together lose no digits.

use crate::movement::copy::{as_contiguous, fill_with};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::reduction::{Axes, Fold, Reduction, Scope, Values, reduce};
use crate::tensor::layout::index_type;
use crate::tensor::promote::accumulator;
use crate::tensor::{Dims, Tensor};
use crate::{check, operators};
use dml_engine::{interface::Index, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

operators! {
    cdist(x1, x2, p, compute_mode) {
        "aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    }
    cdist_backward(grad, x1, x2, p, cdist) {
        "aten::_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
    }
    // The same from torch 2.15 at the latest: the gradient has another name.
    cdist_backward(grad_output, x1, x2, p, cdist) {
        "aten::_cdist_backward(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
    }
    pdist(self, p) {
        "aten::_pdist_forward(Tensor self, float p=2.) -> Tensor",
    }
    pdist_backward(grad, self, p, pdist) {
        "aten::_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
    }
    pdist_backward(grad_output, self, p, pdist) {
        "aten::_pdist_backward(Tensor grad_output, Tensor self, float p, Tensor pdist) -> Tensor",
    }
}

/// The order of the norm.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Order {
    Zero,
    One,
    Two,
    Infinity,
    General,
}

impl Order {
    fn of(p: f64) -> Order {
        match p {
            0.0 => Order::Zero,
            1.0 => Order::One,
            2.0 => Order::Two,
            f64::INFINITY => Order::Infinity,
            _ => Order::General,
        }
    }
}

/// Norm of the difference of two rows; `numbers[0]` is p.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Distance {
    order: Order,
    scalar: ScalarType,
}

impl Fold for Distance {
    fn name(&self) -> &'static str {
        "distance"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0)]
    }

    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let size = (elements[0].cast(self.scalar) - elements[1].cast(self.scalar)).abs();
        smallvec![match self.order {
            Order::Zero => (size.is_nan() | size.eq(0.0)).select(size, 1.0),
            Order::Two => size * size,
            Order::General => math::pow(size, s.numbers[0]),
            Order::One | Order::Infinity => size,
        }]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        let (x, y) = (x[0], y[0]);
        smallvec![if self.order == Order::Infinity { (x.gt(y) | x.is_nan()).select(x, y) } else { x + y }]
    }

    fn project<'b>(&self, s: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![match self.order {
            Order::Two => math::sqrt(x[0]),
            Order::General => math::pow(x[0], 1.0 / s.numbers[0]),
            _ => x[0],
        }]
    }
}

/// Sums the gradient over the rows of the other side: inputs are the gradient, both rows and the distance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Gradient {
    order: Order,
    scalar: ScalarType,
}

impl Fold for Gradient {
    fn name(&self) -> &'static str {
        "distance_backward"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0)]
    }

    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let [grad, x, y, distance] = [0, 1, 2, 3].map(|i| elements[i].cast(self.scalar));
        let difference = x - y;
        let size = difference.abs();
        let zero = grad.like(0.0);
        let signed = difference.gt(0.0).select(grad, difference.lt(0.0).select(-grad, zero));
        smallvec![match self.order {
            Order::Zero => zero,
            Order::One => signed,
            Order::Two => distance.eq(0.0).select(zero, grad * difference / distance),
            // An infinite difference is not told from an infinite distance: NaN, as on the CPU.
            Order::Infinity =>
                (size - distance).is_nan().select(size - distance, size.eq(distance).select(signed, zero)),
            Order::General => {
                let power: Value = s.numbers[0] - 1.0;
                let slope = signed * math::pow(size, power) / math::pow(distance, power);
                // Where rows are alike, and where a power below 1 has no slope.
                let flat = distance.eq(0.0) | size.eq(0.0) & power.lt(0.0);
                flat.select(zero, slope)
            }
        }]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn project<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

/// Two batches of rows, broadcast together.
struct Rows {
    /// `[batch.., rows of the first, 1, columns]` and `[batch.., 1, rows of the second, columns]`, both expanded.
    first: Tensor,
    second: Tensor,
    /// Number of dimensions of both.
    rank: usize,
}

impl Rows {
    fn new(call: &Call, x1: &Tensor, x2: &Tensor) -> Result<Rows> {
        let (n1, n2) = (x1.dim(), x2.dim());
        let (batch1, batch2) = (&x1.sizes[..n1 - 2], &x2.sizes[..n2 - 2]);
        let mut sizes: Dims = call.broadcast(batch1, batch2)?;
        sizes.extend([x1.size(-2), x2.size(-2), x1.size(-1)]);
        let between = |t: &Tensor, at: usize| {
            let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
            sizes.insert(at, 1);
            strides.insert(at, 0);
            t.as_strided(&sizes, &strides, 0)
        };
        let first = between(x1, n1 - 1).expand(&sizes);
        let second = between(x2, n2 - 2).expand(&sizes);
        Ok(Rows { first, second, rank: sizes.len() })
    }

    /// The sizes without dimension `d`, counted from the end.
    fn without(&self, d: usize) -> Dims {
        let mut sizes = self.first.sizes.clone();
        sizes.remove(self.rank - d);
        sizes
    }

    /// A tensor of a number for each pair, repeated for each column.
    fn of_pairs(&self, t: &Tensor) -> Tensor {
        let mut strides = t.strides.clone();
        strides.push(0);
        t.as_strided(&self.first.sizes, &strides, 0)
    }

    fn distances(&self, call: &Call, p: f64, out: &Tensor) -> Result<()> {
        let dtype = accumulator(self.first.dtype);
        let fold = Distance { order: Order::of(p), scalar: dtype.compute() };
        let axes = Axes::listed(call, &[-1], self.rank, false)?;
        let inputs = [&self.first, &self.second];
        reduce(call, &fold, &Reduction { inputs: &inputs, outs: &[out], axes, tables: &[], numbers: &power(dtype, p) })
    }

    /// The gradient of the first rows.
    fn gradient(&self, call: &Call, p: f64, grad: &Tensor, distance: &Tensor, out: &Tensor) -> Result<()> {
        let dtype = accumulator(self.first.dtype);
        let fold = Gradient { order: Order::of(p), scalar: dtype.compute() };
        let axes = Axes::listed(call, &[-2], self.rank, false)?;
        let (grad, distance) = (self.of_pairs(grad), self.of_pairs(distance));
        let inputs = [&grad, &self.first, &self.second, &distance];
        reduce(call, &fold, &Reduction { inputs: &inputs, outs: &[out], axes, tables: &[], numbers: &power(dtype, p) })
    }
}

fn power(dtype: DType, p: f64) -> SmallVec<[(DType, crate::operator::call::Scalar); 1]> {
    match Order::of(p) {
        Order::General => smallvec![(dtype, crate::operator::call::Scalar::Double(p))],
        _ => SmallVec::new(),
    }
}

/// Whatever the mode, no product of matrices is used: it would lose the digits of small distances.
fn cdist(call: &mut Call, x1: &Tensor, x2: &Tensor, p: f64, mode: Option<i64>) -> Result<()> {
    for (i, t) in [x1, x2].into_iter().enumerate() {
        let n = i + 1;
        check!(t.dim() >= 2, Runtime, "cdist only supports at least 2D tensors, X{n} got: {}D", t.dim());
    }
    for (i, t) in [x1, x2].into_iter().enumerate() {
        let n = i + 1;
        check!(t.dtype.is_float(), Runtime, "cdist only supports floating-point dtypes, X{n} got: {}", t.dtype);
    }
    check!(
        x1.size(-1) == x2.size(-1),
        Runtime,
        "X1 and X2 must have the same number of columns. X1: {} X2: {}",
        x1.size(-1),
        x2.size(-1)
    );
    check!(x1.dtype == x2.dtype, Runtime, "expected scalar type {} but found {}", x1.dtype, x2.dtype);
    check!(p >= 0.0, Runtime, "cdist only supports non-negative p values");
    let mode = mode.unwrap_or(0);
    check!((0..=2).contains(&mode), Runtime, "possible modes: 0, 1, 2, but was: {mode}");
    let rows = Rows::new(call, x1, x2)?;
    let out = call.empty(x1.dtype, &rows.without(1))?;
    rows.distances(call, p, &out)?;
    call.ret(out);
    Ok(())
}

/// The gradient of `x1`, of the shape to which its batch was broadcast.
fn cdist_backward(call: &mut Call, grad: &Tensor, x1: &Tensor, x2: &Tensor, p: f64, distance: &Tensor) -> Result<()> {
    check!(
        x1.dim() >= 2 && x2.dim() >= 2 && x1.size(-1) == x2.size(-1) && x1.dtype.is_float() && x1.dtype == x2.dtype,
        Runtime,
        "_cdist_backward: {} and {} are not rows with the same number of columns",
        x1.describe(),
        x2.describe()
    );
    let rows = Rows::new(call, x1, x2)?;
    let pairs = rows.without(1);
    check!(
        grad.sizes == pairs && distance.sizes == pairs,
        Runtime,
        "_cdist_backward: gradient {} and distances {} must be of shape {:?}",
        grad.describe(),
        distance.describe(),
        pairs.as_slice()
    );
    let out = call.empty(x1.dtype, &rows.without(2))?;
    rows.gradient(call, p, grad, distance, &out)?;
    call.ret(out);
    Ok(())
}

/// Distances of all pairs of different rows, `(0, 1), (0, 2), .., (1, 2), ..`
fn pdist(call: &mut Call, x: &Tensor, p: f64) -> Result<()> {
    check!(x.dim() == 2, Runtime, "pdist only supports 2D tensors, got: {}D", x.dim());
    check!(x.dtype.is_float(), Runtime, "pdist only supports floating-point dtypes");
    check!(p >= 0.0, Runtime, "pdist only supports non-negative p values");
    let n = x.sizes[0];
    let out = call.empty(x.dtype, &[n * (n - 1).max(0) / 2])?;
    if out.numel() > 0 {
        let square = call.empty(x.dtype, &[n, n])?;
        Rows::new(call, x, x)?.distances(call, p, &square)?;
        pairs(call, &square, &out, n, true)?;
    }
    call.ret(out);
    Ok(())
}

fn pdist_backward(call: &mut Call, grad: &Tensor, x: &Tensor, p: f64, distance: &Tensor) -> Result<()> {
    check!(x.dim() == 2 && x.dtype.is_float(), Runtime, "_pdist_backward: {} are not rows", x.describe());
    let n = x.sizes[0];
    let count = n * (n - 1).max(0) / 2;
    check!(
        grad.numel() == count && distance.numel() == count,
        Runtime,
        "_pdist_backward: {n} rows have {count} pairs, but gradient is {} and distances {}",
        grad.describe(),
        distance.describe()
    );
    let out = call.empty(x.dtype, &x.sizes)?;
    if count == 0 {
        fill_with(call, &out, crate::operator::call::Scalar::Int(0))?;
    } else {
        let mut squares: SmallVec<[Tensor; 2]> = SmallVec::new();
        for t in [grad, distance] {
            let square = call.empty(t.dtype, &[n, n])?;
            pairs(call, &square, &as_contiguous(call, t)?, n, false)?;
            squares.push(square);
        }
        Rows::new(call, x, x)?.gradient(call, p, &squares[0], &squares[1], &out)?;
    }
    call.ret(out);
    Ok(())
}

/// Copies between a symmetric square (whose diagonal is 0) and a row of its elements above the diagonal.
fn pairs(call: &Call, square: &Tensor, row: &Tensor, n: i64, to_row: bool) -> Result<()> {
    let spec = Pairs { dtype: square.dtype, to_row, index: index_type(n * n) };
    let (read, written) = if to_row { (square, row) } else { (row, square) };
    call.run_threads(&spec, &PairArguments { read, written, n }, (n * n) as u64)
}

/// Everything that changes the code of [`pairs`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pairs {
    dtype: DType,
    to_row: bool,
    index: ScalarType,
}

parameters! {
    Pairs as s => PairArguments, PairParameters {
        written: Output = s.dtype,
        read: Input = s.dtype,
        n: Index = s.index,
    }
}

impl KernelSpec for Pairs {
    fn name(&self) -> &'static str {
        "pairs"
    }

    fn write<'b>(&self, b: &'b Builder, PairParameters { written, read, n }: PairParameters<'b>) {
        let at = linear_id(b, self.index);
        let i = at / n;
        let j = at - i * n;
        b.if_(i.lt(n), || {
            let (low, high) = (i.min(j), i.max(j));
            // Rows before `low` have n - 1, n - 2, .. pairs.
            let pair = low * (2 * n - low - 1) / 2 + high - low - 1;
            if self.to_row {
                b.if_(i.lt(j), || written.store(pair, read.load(at)));
            } else {
                let value = b.var(b.float(self.dtype.compute(), 0.0));
                b.if_(i.ne(j), || value.set(read.load(pair)));
                written.store(at, value.get());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use crate::reduction::validate;

    #[test]
    fn kernels_are_valid() {
        for p in [0.0, 1.0, 2.0, 3.5, f64::INFINITY] {
            for dtype in [DType::F32, DType::F64] {
                let (order, scalar) = (Order::of(p), dtype.compute());
                let numbers: Vec<DType> = power(dtype, p).iter().map(|n| n.0).collect();
                validate(&Distance { order, scalar }, &[dtype; 2], &[dtype], &numbers);
                validate(&Gradient { order, scalar }, &[dtype; 4], &[dtype], &numbers);
            }
        }
        for (to_row, index) in [(true, ScalarType::U32), (false, ScalarType::U64)] {
            accepted(&Pairs { dtype: DType::F16, to_row, index }.build());
        }
    }
}
