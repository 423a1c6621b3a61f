//! One product on its way to the device: operands, shape, epilogue, and its launches.

use super::epilogue::{Epilogue, Finish, Output};
use super::kernel::{self, Spec};
use super::operand::{Axis, Source};
use super::reduce;
use super::select::{self, Choice, Limits};
use super::thin;
use super::tile::Tile;
use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use dml_engine::KernelRef;
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
    pub fn run(&mut self, call: &Call) -> Result<()> {
        check!(
            self.size.iter().all(|&n| n < i64::from(i32::MAX)),
            Runtime,
            "{}: a product of {:?} (batch, rows, columns, inner) elements is too large",
            call.name,
            self.size
        );
        let limits = Limits::of(call.device.info());
        self.orient();
        if self.size[1] <= thin::MOST_ROWS {
            return self.run_thin(call, &limits);
        }
        let bytes = self.a.access.dtype.compute().bytes();
        let b_along_k = self.b.access.axis == Axis::Inner;
        self.run_as(call, select::choose(&limits, self.size, bytes, b_along_k))
    }

    /// Exchanges the roles of m and n where that makes the product thin, or else where the result is contiguous along m.
    fn orient(&mut self) {
        let s = self.finish.out.strides;
        let [batch, m, n, k] = self.size;
        let thin = |rows: i64| rows <= thin::MOST_ROWS;
        let turned = if thin(m) || thin(n) { n < m } else { s[2] != 1 && s[1] == 1 };
        if self.finish.out.split.is_some() || !turned {
            return;
        }
        self.size = [batch, n, m, k];
        std::mem::swap(&mut self.a, &mut self.b);
        self.finish.out.strides.swap(1, 2);
        if let Some(bias) = &mut self.finish.bias {
            bias.strides.swap(1, 2);
        }
    }

    /// Enqueues it, cut into tiles as told.
    pub fn run_as(&self, call: &Call, choice: Choice) -> Result<()> {
        let tile = choice.tile;
        self.in_parts(call, choice.parts, tile.k, |parts, part, finish| {
            let spec = self.spec(tile, parts > 1, finish);
            let kernel = call.kernel("gemm", spec.key(), || kernel::build(&spec))?;
            let [_, m, n, _] = self.size;
            let tiles = (m as u64).div_ceil(tile.m.into()) * (n as u64).div_ceil(tile.n.into());
            self.launch(call, kernel, spec.index, tiles, parts, part, finish)
        })
    }

    /// Enqueues a product with few rows.
    fn run_thin(&self, call: &Call, limits: &Limits) -> Result<()> {
        let [_, m, n, k] = self.size;
        let (threads, along_k, parts) = thin::shape(limits.software, limits.units, self.size, &self.b.access);
        let mut a = self.a.access;
        a.wide = a.wide && a.axis == Axis::Inner && self.b.access.wide && self.b.access.axis == Axis::Inner;
        let spec = |parts: i64, finish: &Finish| {
            let mut spec = thin::Spec {
                threads,
                along_k,
                rows: m as u32,
                a,
                b: self.b.access,
                epilogue: self.epilogue(parts > 1, finish),
                index: Scalar::U32,
                ragged_k: true,
                split: parts > 1,
            };
            spec.ragged_k = k % i64::from(spec.step()) != 0;
            spec.index = self.index(finish, [m, spec.width().into(), spec.step().into()]);
            spec
        };
        self.in_parts(call, parts, spec(1, &self.finish).step(), |parts, part, finish| {
            let spec = spec(parts, finish);
            let kernel = call.kernel("gemm", spec.key(), || thin::build(&spec))?;
            let groups = (n as u64).div_ceil(spec.width().into());
            self.launch(call, kernel, spec.index, groups, parts, part, finish)
        })
    }

    /// Runs `launch` with the number of parts of k, a part's length, and an epilogue: once, or for parts of k and with
    /// a second pass. A part is a multiple of `step`.
    fn in_parts(
        &self,
        call: &Call,
        parts: u32,
        step: u32,
        launch: impl FnOnce(i64, i64, &Finish) -> Result<()>,
    ) -> Result<()> {
        let [batch, m, n, k] = self.size;
        let part = (k as u64).div_ceil(parts.into()).next_multiple_of(step.into()) as i64;
        let parts = (k as u64).div_ceil(part as u64) as i64;
        if parts == 1 {
            return launch(1, k, &self.finish);
        }
        let workspace = call.empty(self.sums(), &[batch, parts, m, n])?;
        let partial = Finish {
            out: Output { memory: (&workspace).into(), strides: [m * n, n, 1], split: None },
            alpha: Number::Int(1),
            bias: None,
        };
        launch(parts, part, &partial)?;
        reduce::run(call, &workspace, [batch, m, n], parts, &self.finish)
    }

    #[allow(clippy::too_many_arguments)]
    fn launch(
        &self,
        call: &Call,
        kernel: &KernelRef,
        index: Scalar,
        groups: u64,
        parts: i64,
        part: i64,
        finish: &Finish,
    ) -> Result<()> {
        let [batch, m, n, k] = self.size;
        let rows = groups.div_ceil(MAX_GROUPS as u64);
        let groups = [groups.div_ceil(rows) as u32, rows as u32];
        // A batch too long for one launch is several, each from a place of its own.
        let most = MAX_GROUPS / parts;
        for first in (0..batch).step_by(most as usize) {
            let count = most.min(batch - first);
            let mut launcher = call.launch(kernel);
            for source in [&self.a, &self.b] {
                let memory = source.memory.skip(first * source.batch);
                launcher = launcher.read_bytes(memory.address, memory.bytes());
            }
            launcher = finish.pass_pointers(launcher, first * parts);
            for x in [m, n, k] {
                launcher = launcher.u32(x as u32);
            }
            launcher = self.a.pass(index, launcher);
            launcher = self.b.pass(index, launcher);
            launcher = finish.pass(self.sums(), index, launcher);
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

    fn epilogue(&self, split: bool, finish: &Finish) -> Epilogue {
        let epilogue = finish.epilogue(self.size[2]);
        if split { Epilogue::partial(epilogue.dtype, epilogue.wide) } else { epilogue }
    }

    /// The type of offsets in a tile of `[m, n, k]`.
    fn index(&self, finish: &Finish, [m, n, k]: [i64; 3]) -> Scalar {
        let reach = self.a.reach(m, k).max(self.b.reach(n, k)).max(finish.reach(m, n));
        let batches = self.a.batch.max(self.b.batch).max(finish.out.strides[0]);
        crate::tensor::layout::index_type(reach.max(batches))
    }

    fn spec(&self, tile: Tile, split: bool, finish: &Finish) -> Spec {
        let [_, m, n, k] = self.size;
        let ragged = |size: i64, step: u32| size % i64::from(step) != 0;
        Spec {
            tile,
            a: self.a.access,
            b: self.b.access,
            epilogue: self.epilogue(split, finish),
            index: self.index(finish, [tile.m, tile.n, tile.k].map(i64::from)),
            ragged_edge: ragged(m, tile.m) || ragged(n, tile.n),
            ragged_k: ragged(k, tile.k),
            split,
        }
    }
}
