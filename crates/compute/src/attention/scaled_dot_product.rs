//! Scaled dot-product attention and its gradients: division into launches, and the sums outside the
//! tiled kernels.

use crate::attention::dropout::DropoutArgument;
use crate::attention::kernel::Arguments;
use crate::attention::matrix::index_of;
use crate::attention::matrix_units;
use crate::attention::ranges::{join, ranges};
use crate::attention::shared_memory::shared_bytes;
use crate::attention::spec::{DEPTH, PATCH, Role, Spec};
use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::primitives::cost::multiply_adds;
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce;
use crate::scalar::Scalar as Number;
use crate::view::{View, layout};
use dml_engine::AdapterKind;
use dml_kernel::{DType, ScalarType, Value, dense};
use smallvec::{SmallVec, smallvec};

/// The operands of attention, of one floating dtype: `[batch, heads, length, width]` with any
/// strides.
pub struct Attention {
    /// `[batch, heads, queries, width]`
    pub query: View,
    /// `[batch, heads of keys, keys, width]`; the number of query heads is a multiple of the key
    /// heads.
    pub key: View,
    /// `[batch, heads of keys, keys, width of the result]`
    pub value: View,
    /// Added to scores, expanded to `[batch, heads, queries, keys]`; floats of any dtype.
    pub bias: Option<View>,
    /// Causal mask: a query attends to the keys up to its own position.
    pub causal: bool,
    /// Factor of scores.
    pub scale: f64,
    /// The probability with which a weight is dropped.
    pub dropout: f64,
    /// Seed and offset of the random numbers, int64 scalars on the device, if there is dropout.
    pub random: Option<[View; 2]>,
}

impl Attention {
    /// Number of blocks of random words that dropout uses: one for four adjacent keys.
    pub fn random_blocks(&self) -> u64 {
        let ([batch, heads, queries, _], keys) = (sizes(&self.query), self.key.sizes[2]);
        (batch * heads * queries * parts(keys, PATCH)) as u64
    }

    /// Writes the result, `[batch, heads, queries, width of the result]`, and the log-sum-exps,
    /// `[batch, heads, queries]` in the accumulator's dtype, contiguous.
    pub fn forward(&self, cx: &Context, out: &View, logs: &View) -> Result<()> {
        if self.run_on_units(cx, matrix_units::Role::Forward, [out, out], logs, None)? {
            return Ok(());
        }
        self.run(cx, Role::Forward, out, &self.value, logs, None)
    }

    /// Writes the requested gradients of query, key and value, given the result's gradient, the
    /// result `out` and the `logs` of [`forward`](Self::forward).
    pub fn gradients(
        &self,
        cx: &Context,
        grad: &View,
        out: &View,
        logs: &View,
        results: [Option<&View>; 3],
    ) -> Result<()> {
        let deltas = cx.empty(logs.dtype, &logs.sizes)?;
        if results[0].is_some() || results[1].is_some() {
            inner_products(cx, grad, out, &deltas)?;
        }
        let gradients = Some((grad, &deltas));
        let on_units = |role, outs| self.run_on_units(cx, role, outs, logs, Some([grad, &deltas]));
        let both = match results {
            [_, Some(of_key), Some(of_value)] => on_units(matrix_units::Role::KeyValue, [of_key, of_value])?,
            _ => false,
        };
        let roles = [
            (Role::Query, matrix_units::Role::Query, &self.key, gradients, false),
            (Role::Key, matrix_units::Role::Key, &self.query, gradients, both),
            (Role::Value, matrix_units::Role::Value, grad, None, both),
        ];
        for (result, (role, unit_role, x, grad, done)) in results.into_iter().zip(roles) {
            if let Some(result) = result
                && !done
                && !on_units(unit_role, [result, result])?
            {
                self.run(cx, role, result, x, logs, grad)?;
            }
        }
        Ok(())
    }

    /// Enqueues a kernel on matrix units where they can compute it, and says whether they can.
    /// `outs`, `saved` and `gradient` are those of [`matrix_units::Problem`].
    fn run_on_units(
        &self,
        cx: &Context,
        role: matrix_units::Role,
        outs: [&View; 2],
        saved: &View,
        gradient: Option<[&View; 2]>,
    ) -> Result<bool> {
        let problem = matrix_units::Problem {
            role,
            outs,
            inputs: [&self.query, &self.key, &self.value],
            bias: self.bias.as_ref(),
            logs: saved,
            gradient,
            causal: self.causal,
            scale: self.scale,
            dropout: self.random.as_ref().map(|random| (random, self.dropout)),
        };
        problem.run(cx)
    }

    /// Enqueues one role's kernel: `out` from `x`, and the scores of `query` and `key`. `saved`
    /// (`[batch, heads, queries]`, in the accumulator's dtype) are the log-sum-exps, which
    /// [`Role::Forward`] writes. `grad` is the result's gradient, and its [`inner_products`] with
    /// the result.
    fn run(
        &self,
        cx: &Context,
        role: Role,
        out: &View,
        x: &View,
        saved: &View,
        grad: Option<(&View, &View)>,
    ) -> Result<()> {
        if out.numel() == 0 {
            return Ok(());
        }
        let [left, right] = rows_and_columns(role, &self.query, &self.key);
        let gradients = grad.map(|(grad, _)| rows_and_columns(role, grad, &self.value));
        let bias = self.bias.as_ref().map(|t| if role.transposed() { t.transpose(2, 3) } else { t.clone() });
        let mut all: SmallVec<[&View; 8]> = smallvec![out, left, right, x];
        all.extend(gradients.into_iter().flatten());
        all.extend(&bias);
        let [batch, row_heads, rows, width] = sizes(out);
        let columns = right.sizes[2];
        let matrices = [left, right, x].into_iter().chain(gradients.into_iter().flatten());
        let (depth, depth2) = (self.query.sizes[3], self.value.sizes[3]);
        let mut spec = Spec {
            role,
            dtype: out.dtype,
            bias: bias.as_ref().map(|t| t.dtype),
            causal: self.causal,
            dropout: self.random.is_some(),
            index: index_of(&all),
            threads: threads(out.dtype, rows),
            width: slice(out.dtype, width),
            vector_loads: matrices.into_iter().all(has_vector_rows),
            // A software adapter has no memory latency to hide. Rows without elements have nothing
            // to prefetch.
            prefetch: cx.device.info().kind != AdapterKind::Software && depth.min(depth2) > 0,
            depth: DEPTH,
            few_registers: false,
            parks_sums: false,
        };
        let registers = cx.device.info().capabilities.registers;
        let fits = |spec: &Spec| spec.kept().fits(registers, spec.threads);
        spec.prefetch = spec.prefetch && fits(&spec);
        spec.few_registers = !fits(&spec);
        if !fits(&spec) {
            // With more invocations, each loads fewer elements.
            spec.threads = spec.threads.max(64);
        }
        if !fits(&spec) {
            (spec.threads, spec.depth) = (64, DEPTH / 2);
        }
        while !fits(&spec) && spec.width > 32 {
            spec.width /= 2;
        }
        spec.parks_sums = !fits(&spec);
        let shared_memory = cx.device.info().capabilities.max_shared_memory;
        while shared_bytes(&spec) > shared_memory && spec.threads > 32 {
            spec.threads /= 2;
        }
        let launch = |cx: &Context, spec: Spec| -> Result<()> {
            let (heads, tiles) = (self.query.sizes[1], parts(rows, spec.rows()));
            let slices = parts(width, spec.width);
            let total = batch * row_heads * tiles * slices;
            check!(
                total < i64::from(i32::MAX) && rows.max(columns) < i64::from(i32::MAX),
                Invalid,
                "{}: attention of {:?} queries and {:?} keys is too large",
                cx.name,
                self.query.sizes.as_slice(),
                self.key.sizes.as_slice()
            );
            let shared_by = heads / self.key.sizes[1];
            let depths = if role.needs_gradients() { &[depth, depth2][..] } else { &[depth] };
            let like = |t: &View| in_order_of(cx, t, &t.sizes);
            let column_ranges = ranges(cx, &spec, columns, depths, if role.transposed() { shared_by } else { 1 })?;
            for (i, column_range) in column_ranges.into_iter().enumerate() {
                // The first range's result becomes that of all.
                let target = if i == 0 { None } else { Some([like(out)?, like(saved)?]) };
                let [to, sums] = target
                    .as_ref()
                    .map_or([out, saved], |[to, sums]| [to, if role == Role::Forward { sums } else { saved }]);
                let arguments = Arguments {
                    out: to,
                    left,
                    right,
                    x,
                    gradients,
                    bias: bias.as_ref(),
                    saved: sums,
                    deltas: grad.map(|(_, deltas)| deltas),
                    dropout: self.random.as_ref().map(|random| DropoutArgument { random, probability: self.dropout }),
                    depth: depth as u32,
                    depth2: depth2 as u32,
                    scale: Number::Double(self.scale),
                    rows: rows as u32,
                    columns: columns as u32,
                    column_range: column_range.map(|column| column as u32),
                    width: width as u32,
                    heads: heads as u32,
                    shared_by: shared_by as u32,
                    tiles: tiles as u32,
                    slices: slices as u32,
                    total: total as u32,
                };
                let heads_per_workgroup = if role.transposed() { shared_by } else { 1 };
                let scores = slices * (depth + if role.needs_gradients() { depth2 } else { 0 });
                let count =
                    [batch, row_heads, heads_per_workgroup, rows, column_range[1] - column_range[0], scores + width];
                let operations = multiply_adds(accumulator(out.dtype), count.map(|n| n as u64).iter().product());
                cx.run_with_cost(&spec, &arguments, dense::folded(total as u64), operations)?;
                if i > 0 {
                    join(cx, role, [out, saved], [to, sums])?;
                }
            }
            Ok(())
        };
        launch(cx, cx.accepted(spec, Spec::smaller, launch)?)
    }
}

/// The operands of queries and of keys in a role's order: the operand of rows, the operand of
/// columns.
fn rows_and_columns<'t>(role: Role, queries: &'t View, keys: &'t View) -> [&'t View; 2] {
    if role.transposed() { [keys, queries] } else { [queries, keys] }
}

/// The sizes of a tensor of four dimensions: `[batch, heads, rows, columns]`.
pub fn sizes(t: &View) -> [i64; 4] {
    std::array::from_fn(|d| t.sizes[d])
}

/// Number of parts of `each` elements for `n` elements.
fn parts(n: i64, each: u32) -> i64 {
    (n + i64::from(each) - 1) / i64::from(each)
}

/// Invocations of a workgroup: as many as the rows need and registers allow.
fn threads(dtype: DType, rows: i64) -> u32 {
    let most = if dtype == DType::F64 { 64 } else { 128 };
    match rows {
        ..=16 => 32,
        17..=32 => 64,
        _ => most,
    }
}

/// Whether every row of a tensor's matrices consists of whole, aligned vectors of four elements.
fn has_vector_rows(t: &View) -> bool {
    let vector = i64::from(PATCH);
    let whole = |strides: &[i64]| strides.iter().all(|stride| stride % vector == 0);
    t.sizes[3] % vector == 0
        && t.strides[3] == 1
        && whole(&t.strides[..3])
        && t.data.is_multiple_of(u64::from(PATCH) * t.dtype.bytes())
}

/// Columns of x for one workgroup: as many as registers hold.
fn slice(dtype: DType, width: i64) -> u32 {
    let most = if dtype == DType::F64 { 64 } else { 128 };
    (width as u32).next_power_of_two().clamp(32, most)
}

/// Returns a new tensor of these sizes, with dimensions in the memory order of `like`.
pub fn in_order_of(cx: &Context, like: &View, sizes: &[i64]) -> Result<View> {
    let order = layout::order(&like.sizes, &[&like.strides]);
    cx.empty_strided(like.dtype, sizes, &layout::dense_strides(sizes, &order))
}

/// `sum(x * y)` over the last dimension, of `[batch, heads, rows, columns]` each. `out` is
/// `[batch, heads, rows]`, in the accumulator's dtype.
fn inner_products(cx: &Context, x: &View, y: &View, out: &View) -> Result<()> {
    let fold = InnerProducts { dtype: out.dtype };
    let axes = Axes::of_dims(&[-1], 4, false);
    reduce(cx, &fold, &Reduction { inputs: &[x, y], outs: &[out], axes, tables: &[], numbers: &[] })
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InnerProducts {
    dtype: DType,
}

impl Fold for InnerProducts {
    fn name(&self) -> &'static str {
        "inner_products"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![accumulator(self.dtype).compute()]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.constant_of(accumulator(self.dtype).compute(), 0.0)]
    }

    fn map<'b>(&self, _: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0] * elements[1]]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}
