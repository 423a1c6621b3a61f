//! Scaled dot-product attention, as PyTorch calls a fused one, and its gradients.

use crate::attention::spec::{QUAD, Role};
use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::reduction::fold::{Fold, Scope, Values};
use crate::view::{View, layout};
use dml_kernel::{DType, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// What belongs to queries and what belongs to keys, as a role has them: that of rows, that of
/// columns.
pub fn rows_and_columns<'t>(role: Role, queries: &'t View, keys: &'t View) -> [&'t View; 2] {
    if role.transposed() { [keys, queries] } else { [queries, keys] }
}

pub fn sizes(t: &View) -> [i64; 4] {
    std::array::from_fn(|d| t.sizes[d])
}

/// How many parts of `each` hold `n`.
pub fn parts(n: i64, each: u32) -> i64 {
    (n + i64::from(each) - 1) / i64::from(each)
}

/// Invocations of a workgroup: as many as rows need, and registers allow.
pub fn threads(dtype: DType, rows: i64) -> u32 {
    let most = if dtype == DType::F64 { 64 } else { 128 };
    match rows {
        ..=16 => 32,
        17..=32 => 64,
        _ => most,
    }
}

/// Whether every row of a tensor's matrices is made of quads in one piece, at multiples of their
/// size.
pub fn has_quads(t: &View) -> bool {
    let quad = i64::from(QUAD);
    let whole = |strides: &[i64]| strides.iter().all(|stride| stride % quad == 0);
    t.sizes[3] % quad == 0
        && t.strides[3] == 1
        && whole(&t.strides[..3])
        && t.data.is_multiple_of(u64::from(QUAD) * t.dtype.bytes())
}

/// Columns of x that a workgroup takes: what registers hold.
pub fn slice(dtype: DType, width: i64) -> u32 {
    let most = if dtype == DType::F64 { 64 } else { 128 };
    (width as u32).next_power_of_two().clamp(32, most)
}

/// A new tensor of these sizes, whose dimensions lie in memory as those of `like`.
pub fn in_order_of(cx: &Context, like: &View, sizes: &[i64]) -> Result<View> {
    let order = layout::order(&like.sizes, &[&like.strides]);
    cx.empty_strided(like.dtype, sizes, &layout::dense_strides(sizes, &order))
}

/// `sum(x * y)`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InnerProducts {
    pub dtype: DType,
}

impl Fold for InnerProducts {
    fn name(&self) -> &'static str {
        "inner_products"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![accumulator(self.dtype).compute()]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.constant_of(accumulator(self.dtype).compute(), 0.0)]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0] * elements[1]]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn project<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}
