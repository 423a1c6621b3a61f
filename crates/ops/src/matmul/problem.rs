//! One product on its way to the device: operands, shape, epilogue, and its launches.

use super::epilogue::{Finish, Output};
use super::interface::{ProductArguments, ProductSpec};
use super::operand::{Axis, Source};
use super::select::{self, Choice, Limits};
use super::split_k::{self, Division};
use super::{gemm, gemv};
use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::tensor::layout::index_type;
use dml_kernel::ScalarType;
use dml_kernel::dense::{MAX_GROUPS, folded};

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
        if self.size[1] <= gemv::MAX_ROWS {
            return self.run_gemv(call, &limits);
        }
        let bytes = self.a.access.dtype.compute().bytes();
        let b_along_k = self.b.access.axis == Axis::Inner;
        self.run_as(call, select::choose(&limits, self.size, bytes, b_along_k))
    }

    /// Exchanges the roles of m and n where that leaves few rows, or else where the result is contiguous along m.
    fn orient(&mut self) {
        let s = self.finish.out.strides;
        let [batch, m, n, k] = self.size;
        let few = |rows: i64| rows <= gemv::MAX_ROWS;
        let turned = if few(m) || few(n) { n < m } else { s[2] != 1 && s[1] == 1 };
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
        let Choice { tile, split_k } = choice;
        let [_, m, n, k] = self.size;
        let ragged = |size: i64, step: u32| size % i64::from(step) != 0;
        self.divide_k(call, split_k, tile.k, |division, finish| {
            let product = ProductSpec {
                a: self.a.access,
                b: self.b.access,
                epilogue: finish.epilogue(n),
                index: self.index(finish, [tile.m, tile.n, tile.k].map(i64::from)),
                ragged_k: ragged(k, tile.k),
                split_k: division.is_some(),
            };
            let spec = gemm::Spec { tile, ragged_edge: ragged(m, tile.m) || ragged(n, tile.n), product };
            let tiles = (m as u64).div_ceil(tile.m.into()) * (n as u64).div_ceil(tile.n.into());
            self.launch(tiles, division, finish, |product, groups| {
                call.run(&spec, &gemm::Arguments { product }, groups)
            })
        })
    }

    /// Enqueues a product with few rows.
    fn run_gemv(&self, call: &Call, limits: &Limits) -> Result<()> {
        let [_, m, n, k] = self.size;
        let (threads, along_k, parts) = gemv::choose(limits, self.size, &self.b.access);
        let mut a = self.a.access;
        a.wide = a.wide && a.axis == Axis::Inner && self.b.access.wide && self.b.access.axis == Axis::Inner;
        let spec = |split_k: bool, finish: &Finish| {
            let (b, epilogue) = (self.b.access, finish.epilogue(n));
            let product = ProductSpec { a, b, epilogue, index: ScalarType::U32, ragged_k: true, split_k };
            let mut spec = gemv::Spec { threads, along_k, rows: m as u32, product };
            spec.product.ragged_k = k % i64::from(spec.step()) != 0;
            spec.product.index = self.index(finish, [m, spec.width().into(), spec.step().into()]);
            spec
        };
        self.divide_k(call, parts, spec(false, &self.finish).step(), |division, finish| {
            let spec = spec(division.is_some(), finish);
            let groups = (n as u64).div_ceil(spec.width().into());
            self.launch(groups, division, finish, |product, groups| {
                call.run(&spec, &gemv::Arguments { product }, groups)
            })
        })
    }

    /// Runs `launch` once; or for parts of k, whose sums go to a workspace, and then the second pass. A part is a
    /// multiple of `step`.
    fn divide_k(
        &self,
        call: &Call,
        parts: u32,
        step: u32,
        launch: impl FnOnce(Option<Division>, &Finish) -> Result<()>,
    ) -> Result<()> {
        let [batch, m, n, k] = self.size;
        let length = (k as u64).div_ceil(parts.into()).next_multiple_of(step.into()) as i64;
        let parts = (k as u64).div_ceil(length as u64) as i64;
        if parts == 1 {
            return launch(None, &self.finish);
        }
        let workspace = call.empty(self.a.access.sums(), &[batch, parts, m, n])?;
        let partial = Finish {
            out: Output { memory: (&workspace).into(), strides: [m * n, n, 1], split: None },
            alpha: Number::Int(1),
            bias: None,
        };
        launch(Some(Division { parts, length }), &partial)?;
        split_k::reduce(call, &workspace, [batch, m, n], parts, &self.finish)
    }

    /// Runs a kernel on `groups` workgroups for every matrix of the batch and every part of k.
    fn launch(
        &self,
        groups: u64,
        division: Option<Division>,
        finish: &Finish,
        run: impl Fn(ProductArguments<'_>, [u32; 3]) -> Result<()>,
    ) -> Result<()> {
        let [batch, m, n, k] = self.size;
        let parts = division.map_or(1, |division| division.parts);
        let [x, y, _] = folded(groups);
        // A batch too long for one launch is several, each from a place of its own.
        let most = MAX_GROUPS as i64 / parts;
        for first in (0..batch).step_by(most as usize) {
            let count = most.min(batch - first);
            let range = |source: &Source| source.memory.skip(first * source.batch).range();
            let product = ProductArguments {
                a: range(&self.a),
                b: range(&self.b),
                out: finish.out_range(first * parts),
                bias: finish.bias_range(first * parts),
                m: m as u32,
                n: n as u32,
                k: k as u32,
                a_elements: &self.a,
                b_elements: &self.b,
                finish,
                split_k: division,
            };
            run(product, [x, y, (count * parts) as u32])?;
        }
        Ok(())
    }

    /// The type of offsets in a tile of `[m, n, k]`.
    fn index(&self, finish: &Finish, [m, n, k]: [i64; 3]) -> ScalarType {
        let reach = self.a.reach(m, k).max(self.b.reach(n, k)).max(finish.reach(m, n));
        let batches = self.a.batch.max(self.b.batch).max(finish.out.strides[0]);
        index_type(reach.max(batches))
    }
}
