//! One product on its way to the device: operands, shape, epilogue, and its launches.

use super::epilogue::{Epilogue, Finish, Output};
use super::kernel::{self, Spec};
use super::operand::{Source, from};
use super::reduce;
use super::select::{self, Choice, Limits};
use crate::call::{Call, Scalar as Number};
use crate::error::Result;
use dml_kernel::{DType, Scalar};

/// `out[batch, m, n] = finish(sum over k of a[batch, m, k] * b[batch, k, n])`; no dimension is empty.
#[derive(Clone, Debug)]
pub struct Problem {
    /// `[batch, m, n, k]`
    pub size: [i64; 4],
    /// The first operand: outer index m.
    pub a: Source,
    /// The second operand: outer index n.
    pub b: Source,
    /// What happens to sums.
    pub finish: Finish,
}

/// Workgroups along dimension 2 of one launch, and along 0: what Vulkan promises.
const MAX_GROUPS: i64 = 65_535;

impl Problem {
    /// Enqueues it, cut up as the table says.
    pub fn run(self, call: &Call) -> Result<()> {
        let limits = Limits::of(call.device.info());
        let problem = self.oriented();
        let choice = select::choose(&limits, problem.size, problem.a.access.dtype.compute().bytes());
        problem.run_as(call, choice)
    }

    /// The same product with the roles of m and n exchanged, where the result is contiguous along m.
    pub fn oriented(self) -> Problem {
        let s = self.finish.out.strides;
        if self.finish.out.split.is_some() || s[2] == 1 || s[1] != 1 || self.size[1] == 1 {
            return self;
        }
        let [batch, m, n, k] = self.size;
        let turn = |s: [i64; 3]| [s[0], s[2], s[1]];
        let mut finish = self.finish;
        finish.out.strides = turn(finish.out.strides);
        if let Some(bias) = &mut finish.bias {
            bias.strides = turn(bias.strides);
        }
        Problem { size: [batch, n, m, k], a: self.b, b: self.a, finish }
    }

    /// Enqueues it, cut up as told.
    pub fn run_as(&self, call: &Call, choice: Choice) -> Result<()> {
        let [batch, m, n, k] = self.size;
        let part = (k as u64).div_ceil(u64::from(choice.parts)).next_multiple_of(u64::from(choice.tile.k)) as i64;
        let parts = (k as u64).div_ceil(part as u64) as i64;
        if parts == 1 {
            return self.launch(call, choice, 1, k, &self.finish);
        }
        let workspace = call.empty(self.sums(), &[batch, parts, m, n])?;
        let partial = Finish {
            out: Output { tensor: workspace.clone(), strides: [m * n, n, 1], split: None },
            alpha: Number::Int(1),
            bias: None,
        };
        self.launch(call, choice, parts, part, &partial)?;
        reduce::run(call, &workspace, [batch, m, n], parts, &self.finish)
    }

    fn launch(&self, call: &Call, choice: Choice, parts: i64, part: i64, finish: &Finish) -> Result<()> {
        let spec = self.spec(choice, parts > 1, finish);
        let [batch, m, n, k] = self.size;
        let kernel = call.kernel("gemm", spec.key(), || kernel::build(&spec))?;
        let tile = spec.tile;
        let tiles = (m as u64).div_ceil(tile.m.into()) * (n as u64).div_ceil(tile.n.into());
        let rows = tiles.div_ceil(MAX_GROUPS as u64);
        let groups = [tiles.div_ceil(rows) as u32, rows as u32];
        // A batch too long for one launch is several, each from a place of its own.
        let most = MAX_GROUPS / parts;
        for first in (0..batch).step_by(most as usize) {
            let count = most.min(batch - first);
            let launcher = call.launch(kernel.clone()).read(&from(&self.a.tensor, first * self.a.batch));
            let launcher = launcher.read(&from(&self.b.tensor, first * self.b.batch));
            let mut launcher = finish.pass_pointers(launcher, first * parts);
            for x in [m, n, k] {
                launcher = launcher.u32(x as u32);
            }
            launcher = self.a.pass(spec.index, launcher);
            launcher = self.b.pass(spec.index, launcher);
            launcher = finish.pass(self.sums(), spec.index, launcher);
            if parts > 1 {
                launcher = launcher.u32(parts as u32).u32(part as u32);
            }
            launcher.groups([groups[0], groups[1], (count * parts) as u32])?;
        }
        Ok(())
    }

    /// The dtype of sums.
    fn sums(&self) -> DType {
        reduce::workspace_dtype(self.a.access.dtype)
    }

    fn spec(&self, choice: Choice, split: bool, finish: &Finish) -> Spec {
        let tile = choice.tile;
        let [_, m, n, k] = self.size;
        let ragged = |size: i64, step: u32| size % i64::from(step) != 0;
        let [tm, tn, tk] = [tile.m, tile.n, tile.k].map(i64::from);
        let reach = self.a.reach(tm, tk).max(self.b.reach(tn, tk)).max(finish.reach(tm, tn));
        let batches = [self.a.batch, self.b.batch, finish.out.strides[0]].into_iter().max().unwrap_or(0);
        let narrow = reach.max(batches) < i64::from(i32::MAX);
        let epilogue = if split {
            Epilogue::partial(finish.out.tensor.dtype, finish.epilogue(n).wide)
        } else {
            finish.epilogue(n)
        };
        Spec {
            tile,
            a: self.a.access,
            b: self.b.access,
            epilogue,
            index: if narrow { Scalar::U32 } else { Scalar::U64 },
            ragged_edge: ragged(m, tile.m) || ragged(n, tile.n),
            ragged_k: ragged(k, tile.k),
            split,
        }
    }
}
