//! Whether attention runs on matrix units, in which tiles, and its launches.

use crate::attention::dropout::Dropping;
use crate::attention::matrix::index_of;
use crate::attention::units::kernel::Arguments;
use crate::attention::units::parts::Parts;
use crate::attention::units::spec::{Ragged, Role, Spec};
use crate::attention::units::tile::{Tile, shared_bytes, tiles, turns};
use crate::context::Context;
use crate::error::Result;
use crate::matmul::operand::UNIT;
use crate::matmul::self_test::usable;
use crate::primitives::loops::turns_allowed;
use crate::primitives::work::multiply_adds_on_units;
use crate::view::View;
use dml_kernel::dense;
use smallvec::SmallVec;

/// Most elements of a head: what registers hold.
const LONGEST: i64 = 256;

/// Scales that are numbers above 0 as f32, also in units of ln 2.
const DEFERRED: std::ops::RangeInclusive<f64> = 1e-30..=1e30;

/// Fewest rows on a GPU: fewer leave most of a matrix empty.
const FEWEST_ROWS: i64 = 16;

/// Attention of checked tensors `[batch, heads, length, elements]`.
#[derive(Copy, Clone)]
pub struct Problem<'a> {
    /// What is computed.
    pub role: Role,
    /// The result, twice; with [`Role::KeyValue`], the gradients of keys and of values.
    pub outs: [&'a View; 2],
    /// Queries, keys and values.
    pub inputs: [&'a View; 3],
    /// What is added to scores, `[batch, heads, queries, keys]`.
    pub bias: Option<&'a View>,
    /// Logarithms of sums (f32), one a query: forward writes them.
    pub logs: &'a View,
    /// Backward, the result's gradient, and its inner products with the result (f32).
    pub gradient: Option<[&'a View; 2]>,
    /// A query sees the keys up to its own position.
    pub causal: bool,
    /// Factor of scores.
    pub scale: f64,
    /// Seed and offset of the random numbers, and the share of weights that is dropped.
    pub dropout: Option<(&'a [View; 2], f64)>,
}

impl<'a> Problem<'a> {
    /// Rows' and columns' matrices: of scores, and of gradients of weights.
    fn operands(&self) -> ([&'a View; 2], [&'a View; 2]) {
        let [query, key, value] = self.inputs;
        let other = self.gradient.map_or(query, |[gradient, _]| gradient);
        if self.role.transposed() { ([key, value], [query, other]) } else { ([query, other], [key, value]) }
    }

    /// Runs it on matrix units if it can, in the best tile; says whether it did.
    ///
    /// # Errors
    /// What the device says.
    pub fn run(&self, cx: &Context) -> Result<bool> {
        let (left, right) = self.operands();
        let (rows, columns) = (left[0].sizes[2], right[0].sizes[2]);
        let [depth, width] = [0, 1].map(|i| right[i].sizes[3]);
        let longest = depth.max(width);
        let Some(units) = usable(cx, self.inputs[0].dtype)? else { return Ok(false) };
        let few = rows < FEWEST_ROWS && !units.small;
        if few || columns == 0 || depth == 0 || longest > LONGEST || self.outs[0].numel() == 0 {
            return Ok(false);
        }
        let Some(parts) = Parts::of(cx, units, self.inputs[0].dtype)? else { return Ok(false) };
        for &tile in tiles(self.role, longest as u32, self.causal, units.small) {
            if tile.fits(parts.shape) && self.run_in(cx, parts, tile)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs it in a tile, if that fits the adapter; says whether it did.
    ///
    /// # Errors
    /// What the device says.
    pub fn run_in(&self, cx: &Context, parts: Parts, tile: Tile) -> Result<bool> {
        let (left, right) = self.operands();
        let [_, heads, ..] = sizes(self.inputs[0]);
        let shared_by = heads / self.inputs[1].sizes[1];
        let [batch, row_heads, rows, _] = sizes(left[0]);
        let columns = right[0].sizes[2];
        let [depth, width] = [0, 1].map(|i| right[i].sizes[3]);
        let bias = self.bias.map(|t| if self.role.transposed() { t.transpose(2, 3) } else { t.clone() });
        let mut all: SmallVec<[&View; 8]> = left.into_iter().chain(right).chain(self.outs).collect();
        all.extend(&bias);
        let [_, n, k] = parts.shape;
        let whole = |elements: i64| (elements as u32).next_multiple_of(n.max(k));
        let is_ragged = |elements: i64| elements != i64::from(whole(elements));
        let spec = Spec {
            role: self.role,
            dtype: self.inputs[0].dtype,
            bias: bias.as_ref().map(|t| t.dtype),
            causal: self.causal,
            deferred: bias.is_none() && DEFERRED.contains(&self.scale),
            dropout: self.dropout.is_some(),
            index: index_of(&all),
            tile,
            parts,
            depth: whole(depth),
            width: whole(width),
            ragged: Ragged {
                columns: columns % i64::from(tile.columns) != 0,
                depth: is_ragged(depth),
                width: is_ragged(width),
            },
            pairs: self.outs.into_iter().all(is_paired),
            aligned: [left, right].map(|pair| pair.map(is_aligned)),
        };
        let limits = &cx.device.info().capabilities;
        let tiles = (rows + i64::from(spec.rows()) - 1) / i64::from(spec.rows());
        let total = batch * row_heads * tiles;
        let steps = (columns + i64::from(tile.columns) - 1) / i64::from(tile.columns);
        let heads_walked = if self.role.transposed() { shared_by } else { 1 };
        let fits = shared_bytes(&spec) <= limits.max_shared_memory
            && spec.threads() <= limits.max_workgroup_invocations
            && turns_allowed(cx).is_none_or(|allowed| turns(&spec) * steps * heads_walked <= allowed)
            && total < i64::from(i32::MAX)
            && rows.max(columns) < i64::from(i32::MAX);
        if !fits {
            return Ok(false);
        }
        let (backward, slopes) = (self.role != Role::Forward, self.role.needs_slopes());
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
            dropout: self.dropout.map(|(random, probability)| Dropping { random, probability }),
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
        // A gradient is made of the weights, and of theirs.
        let products = if backward { 2 * (depth + width) } else { depth + width };
        let count = [batch, row_heads, heads_walked, rows, columns, products].map(|n| n as u64).iter().product();
        cx.run_heavy(&spec, &arguments, dense::folded(total as u64), multiply_adds_on_units(count))?;
        Ok(true)
    }
}

fn sizes(t: &View) -> [i64; 4] {
    std::array::from_fn(|d| t.sizes[d])
}

/// Whether every run of eight elements of a row is 16 bytes at a multiple of 16.
fn is_aligned(t: &View) -> bool {
    in_runs(t, UNIT)
}

/// Whether every pair of neighbours in a row is 4 bytes at a multiple of 4.
fn is_paired(t: &View) -> bool {
    in_runs(t, 2)
}

/// Whether runs of so many elements of 16 bits of a row begin at multiples of their size.
fn in_runs(t: &View, elements: u32) -> bool {
    let multiple = |x: i64| x % i64::from(elements) == 0;
    t.strides[3] == 1
        && multiple(t.sizes[3])
        && (0..3).all(|d| t.sizes[d] == 1 || multiple(t.strides[d]))
        && t.data.is_multiple_of(2 * u64::from(elements))
}
