//! Whether attention runs on matrix units, the choice of the tile, and the launches.

use crate::attention::dropout::DropoutArgument;
use crate::attention::matrix::index_of;
use crate::attention::matrix_units::kernel::Arguments;
use crate::attention::matrix_units::matrix_layouts::MatrixLayouts;
use crate::attention::matrix_units::spec::{BoundsChecks, Role, Spec};
use crate::attention::matrix_units::tile::{Tile, loop_iterations, shared_bytes, tiles};
use crate::context::Context;
use crate::error::Result;
use crate::matmul::operand::VECTOR_16_BIT;
use crate::matmul::self_test::usable_units;
use crate::primitives::cost::multiply_adds_on_units;
use crate::primitives::loops::max_loop_iterations;
use crate::view::View;
use dml_engine::Verdict;
use dml_kernel::dense;
use smallvec::SmallVec;

/// Maximum elements of a head, which registers have to hold.
const MAX_HEAD_DIMENSION: i64 = 256;

/// Scales that are positive f32 numbers, also when they are divided by ln 2.
const DEFERRABLE_SCALES: std::ops::RangeInclusive<f64> = 1e-30..=1e30;

/// Minimum rows on a GPU: with fewer, most of a matrix would be empty.
const MIN_ROWS: i64 = 16;

/// Attention of checked tensors `[batch, heads, length, elements]`.
#[derive(Copy, Clone)]
pub struct Problem<'a> {
    /// What is computed.
    pub role: Role,
    /// The result, given twice; with [`Role::KeyValue`], the gradients of keys and of values.
    pub outs: [&'a View; 2],
    /// Queries, keys and values.
    pub inputs: [&'a View; 3],
    /// The bias that is added to scores, `[batch, heads, queries, keys]`.
    pub bias: Option<&'a View>,
    /// Log-sum-exp of each query (f32); the forward pass writes it.
    pub logs: &'a View,
    /// For gradients: the output's gradient, and its inner products with the output (f32).
    pub gradient: Option<[&'a View; 2]>,
    /// Causal mask: a query attends to the keys up to its own position.
    pub causal: bool,
    /// Factor of scores.
    pub scale: f64,
    /// Dropout: seed and offset of the random numbers, and the probability that a weight is
    /// dropped.
    pub dropout: Option<(&'a [View; 2], f64)>,
}

impl<'a> Problem<'a> {
    /// The rows' and the columns' matrices: for scores, and for the gradients of weights.
    fn operands(&self) -> ([&'a View; 2], [&'a View; 2]) {
        let [query, key, value] = self.inputs;
        let other = self.gradient.map_or(query, |[gradient, _]| gradient);
        if self.role.transposed() { ([key, value], [query, other]) } else { ([query, other], [key, value]) }
    }

    /// Runs attention on matrix units if they can compute it, in the best tile. Returns whether it
    /// did.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn run(&self, cx: &Context) -> Result<bool> {
        let (left, right) = self.operands();
        let (rows, columns) = (left[0].sizes[2], right[0].sizes[2]);
        let [depth, width] = [0, 1].map(|i| right[i].sizes[3]);
        let longest = depth.max(width);
        let Some(units) = usable_units(cx, self.inputs[0].dtype)? else { return Ok(false) };
        let few = rows < MIN_ROWS && !units.small;
        if few || columns == 0 || depth == 0 || longest > MAX_HEAD_DIMENSION || self.outs[0].numel() == 0 {
            return Ok(false);
        }
        let Some(layouts) = MatrixLayouts::of(cx, units, self.inputs[0].dtype)? else { return Ok(false) };
        for &tile in tiles(self.role, longest as u32, self.causal, units.small) {
            if tile.fits(layouts.shape) && self.run_in(cx, layouts, tile)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs attention with a tile if the adapter can, and its driver compiles it. Returns whether
    /// it did.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn run_in(&self, cx: &Context, layouts: MatrixLayouts, tile: Tile) -> Result<bool> {
        let (left, right) = self.operands();
        let [_, heads, ..] = sizes(self.inputs[0]);
        let shared_by = heads / self.inputs[1].sizes[1];
        let [batch, row_heads, rows, _] = sizes(left[0]);
        let columns = right[0].sizes[2];
        let [depth, width] = [0, 1].map(|i| right[i].sizes[3]);
        let bias = self.bias.map(|t| if self.role.transposed() { t.transpose(2, 3) } else { t.clone() });
        let mut all: SmallVec<[&View; 8]> = left.into_iter().chain(right).chain(self.outs).collect();
        all.extend(&bias);
        let [_, n, k] = layouts.shape;
        let whole = |elements: i64| (elements as u32).next_multiple_of(n.max(k));
        let is_partial = |elements: i64| elements != i64::from(whole(elements));
        let spec = Spec {
            role: self.role,
            dtype: self.inputs[0].dtype,
            bias: bias.as_ref().map(|t| t.dtype),
            causal: self.causal,
            scale_in_exponential: bias.is_none() && DEFERRABLE_SCALES.contains(&self.scale),
            dropout: self.dropout.is_some(),
            index: index_of(&all),
            tile,
            layouts,
            depth: whole(depth),
            width: whole(width),
            bounds_checks: BoundsChecks {
                columns: columns % i64::from(tile.columns) != 0,
                depth: is_partial(depth),
                width: is_partial(width),
            },
            pairs: self.outs.into_iter().all(is_paired),
            aligned: [left, right].map(|pair| pair.map(is_aligned)),
        };
        let limits = &cx.device.info().capabilities;
        let tiles = (rows + i64::from(spec.rows()) - 1) / i64::from(spec.rows());
        let total = batch * row_heads * tiles;
        let steps = (columns + i64::from(tile.columns) - 1) / i64::from(tile.columns);
        let heads_per_workgroup = if self.role.transposed() { shared_by } else { 1 };
        let fits = shared_bytes(&spec) <= limits.max_shared_memory
            && spec.threads() <= limits.max_workgroup_invocations
            && spec.kept(limits.registers).fits(limits.registers, spec.threads())
            && max_loop_iterations(cx)
                .is_none_or(|allowed| loop_iterations(&spec) * steps * heads_per_workgroup <= allowed)
            && total < i64::from(i32::MAX)
            && rows.max(columns) < i64::from(i32::MAX);
        if !fits {
            return Ok(false);
        }
        let (backward, slopes) = (self.role != Role::Forward, self.role.needs_score_gradients());
        let arguments = Arguments {
            out: self.outs[0],
            values_out: (self.role == Role::KeyValue).then_some(self.outs[1]),
            left: left[0],
            left2: slopes.then_some(left[1]),
            right,
            bias: bias.as_ref(),
            logs_out: (!backward).then_some(self.logs),
            logs: backward.then_some(self.logs),
            deltas: self.gradient.map(|[_, deltas]| deltas).filter(|_| slopes),
            dropout: self.dropout.map(|(random, probability)| DropoutArgument { random, probability }),
            depth: depth as u32,
            width: width as u32,
            scale: self.scale as f32,
            rows: rows as u32,
            columns: columns as u32,
            heads: heads as u32,
            shared_by: shared_by as u32,
            tiles: tiles as u32,
            total: total as u32,
        };
        // A gradient recomputes the weights, and computes their gradients.
        let products = if backward { 2 * (depth + width) } else { depth + width };
        let count = [batch, row_heads, heads_per_workgroup, rows, columns, products].map(|n| n as u64).iter().product();
        let run = |cx: &Context| {
            cx.run_with_cost(&spec, &arguments, dense::folded(total as u64), multiply_adds_on_units(count))
        };
        cx.run_if_accepted(Verdict::Optimised, run)
    }
}

fn sizes(t: &View) -> [i64; 4] {
    std::array::from_fn(|d| t.sizes[d])
}

/// Whether rows consist of 16-byte chunks of eight elements that are aligned to 16 bytes.
fn is_aligned(t: &View) -> bool {
    in_runs(t, VECTOR_16_BIT)
}

/// Whether rows consist of pairs of elements that are aligned to 4 bytes.
fn is_paired(t: &View) -> bool {
    in_runs(t, 2)
}

/// Whether rows consist of aligned chunks of `elements` 16-bit elements.
fn in_runs(t: &View, elements: u32) -> bool {
    let multiple = |x: i64| x % i64::from(elements) == 0;
    t.strides[3] == 1
        && multiple(t.sizes[3])
        && (0..3).all(|d| t.sizes[d] == 1 || multiple(t.strides[d]))
        && t.data.is_multiple_of(2 * u64::from(elements))
}
