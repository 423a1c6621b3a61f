//! Distances between all pairs of rows: cdist and pdist with any norm, and their gradients.
//!
//! Each is a reduction over views in which the rows of one side, or the columns, are repeated.
//! Differences are computed before squaring, so that rows that are close together lose no digits.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::linear_algebra::distance::{Pair, pairs};
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::view::{Dims, View};
use smallvec::SmallVec;

operators! {
    cdist(x1, x2, p, compute_mode) {
        "aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    }
    cdist_backward(grad, x1, x2, p, cdist) {
        "aten::_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
    }
    // The same operator as named from torch 2.15 at the latest.
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

/// Two batches of rows, broadcast together.
struct Rows {
    /// `[batch.., rows of the first, 1, columns]` and `[batch.., 1, rows of the second, columns]`,
    /// both expanded.
    first: View,
    second: View,
    /// Number of dimensions of both.
    rank: usize,
}

impl Rows {
    fn new(call: &Call, x1: &View, x2: &View) -> Result<Rows> {
        let (n1, n2) = (x1.dim(), x2.dim());
        let (batch1, batch2) = (&x1.sizes[..n1 - 2], &x2.sizes[..n2 - 2]);
        let mut sizes: Dims = call.broadcast(batch1, batch2)?;
        sizes.extend([x1.size(-2), x2.size(-2), x1.size(-1)]);
        let between = |t: &View, at: usize| {
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

    /// A tensor with one number per pair, repeated for each column.
    fn of_pairs(&self, t: &View) -> View {
        let mut strides = t.strides.clone();
        strides.push(0);
        t.as_strided(&self.first.sizes, &strides, 0)
    }

    fn pair(&self) -> Pair<'_> {
        Pair { first: &self.first, second: &self.second }
    }

    fn distances(&self, call: &Call, p: f64, out: &View) -> Result<()> {
        Ok(self.pair().distances(call, p, out)?)
    }

    /// The gradient of the first rows.
    fn gradient(&self, call: &Call, p: f64, grad: &View, distance: &View, out: &View) -> Result<()> {
        let (grad, distance) = (self.of_pairs(grad), self.of_pairs(distance));
        Ok(self.pair().gradient(call, p, &grad, &distance, out)?)
    }
}

/// No matrix product is used, whatever the mode: it would lose the digits of small distances.
fn cdist(call: &mut Call, x1: &View, x2: &View, p: f64, mode: Option<i64>) -> Result<()> {
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
fn cdist_backward(call: &mut Call, grad: &View, x1: &View, x2: &View, p: f64, distance: &View) -> Result<()> {
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
fn pdist(call: &mut Call, x: &View, p: f64) -> Result<()> {
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

fn pdist_backward(call: &mut Call, grad: &View, x: &View, p: f64, distance: &View) -> Result<()> {
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
        fill_with(call, &out, dml_compute::scalar::Scalar::Int(0))?;
    } else {
        let mut squares: SmallVec<[View; 2]> = SmallVec::new();
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
