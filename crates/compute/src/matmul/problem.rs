//! One product on its way to the device: operands, shape, epilogue, and its launches.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::choice::Way;
use crate::matmul::epilogue::{Finish, Output};
use crate::matmul::guard::{Blocks, Tiles};
use crate::matmul::interface::{ProductArguments, ProductSpec};
use crate::matmul::matrix_gemm::{self, Padding};
use crate::matmul::matrix_select::MatrixChoice;
use crate::matmul::operand::{Axis, PatternStrides, Source};
use crate::matmul::select::{Choice, Limits};
use crate::matmul::split_k::{self, Division};
use crate::matmul::waves::Waves;
use crate::matmul::{gemm, gemv};
use crate::primitives::kernel::KernelSpec;
use crate::primitives::work::{multiply_adds, multiply_adds_on_units};
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::KernelRef;
use dml_kernel::ScalarType;
use dml_kernel::dense::{MAX_GROUPS, folded};

/// `out[batch, m, n] = finish(sum over k of a[batch, m, k] * b[batch, k, n])`; no dimension is
/// empty.
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

/// A product in tiles.
pub struct Cut {
    pub product: ProductSpec,
    /// m or n is no multiple of the tile's.
    pub ragged_edge: bool,
    /// Tiles of one matrix of the batch.
    pub tiles: u64,
}

/// The part of a product's tiles that a launch computes.
#[derive(Copy, Clone, Debug)]
pub struct Guarded {
    /// Which.
    pub tiles: Tiles,
    /// What says so, of both operands.
    pub blocks: [Blocks; 2],
}

impl Problem {
    /// Enqueues it as told.
    pub fn run_in(&self, cx: &Context, way: Way) -> Result<()> {
        match way {
            Way::Plain(choice) => self.run_as(cx, choice),
            Way::Waves(waves) => self.run_in_waves(waves, |some, choice| some.run_as(cx, choice)),
            Way::Matrix(choice) => self.run_on_matrix_units(cx, choice),
            Way::MatrixWaves(waves) => self.run_in_waves(waves, |some, choice| some.run_on_matrix_units(cx, choice)),
            Way::Split(choice) => self.run_split(cx, choice),
            Way::Rounded(choice) => self.run_rounded(cx, choice),
        }
    }

    /// Its first rows, and the others.
    fn run_in_waves<T>(
        &self,
        Waves { first, rows, rest }: Waves<T>,
        run: impl Fn(Problem, Choice<T>) -> Result<()>,
    ) -> Result<()> {
        run(self.some_rows(0, rows), Choice { tile: first, split_k: 1 })?;
        run(self.some_rows(rows, self.size[1] - rows), rest)
    }

    /// Whether `some_rows` exist by themselves.
    pub fn is_by_rows(&self) -> bool {
        matches!(self.a.strides, PatternStrides::Strided { .. }) && self.finish.out.split.is_none()
    }

    /// The product of so many rows, of a problem that [is by rows](Self::is_by_rows).
    fn some_rows(&self, from: i64, rows: i64) -> Problem {
        let mut some = self.clone();
        some.size[1] = rows;
        if let PatternStrides::Strided { outer, .. } = some.a.strides {
            some.a.memory = some.a.memory.skip(from * outer);
        }
        let finish = &mut some.finish;
        let [_, row, column] = finish.out.strides;
        finish.out.memory = finish.out.memory.skip(from * row);
        // Where no row reaches into the next one's bytes, those of other rows may be written at the
        // same time.
        if row > (self.size[2] - 1) * column {
            finish.out.memory.end = finish.out.memory.end.min(finish.out.memory.skip(rows * row).address);
        }
        if let Some(bias) = &mut finish.bias {
            bias.memory = bias.memory.skip(from * bias.strides[1]);
        }
        some
    }

    /// Enqueues it, cut into tiles as told.
    pub fn run_as(&self, cx: &Context, choice: Choice) -> Result<()> {
        self.run_tiles(cx, choice, None)
    }

    /// Enqueues some of its tiles, cut as told.
    pub fn run_tiles(&self, cx: &Context, choice: Choice, guard: Option<&Guarded>) -> Result<()> {
        let Choice { tile, split_k } = choice;
        self.divide_k(cx, split_k, tile.k, |division, finish| {
            let Cut { product, ragged_edge, tiles } = self.cut([tile.m, tile.n, tile.k], division, finish, guard);
            let spec = gemm::Spec { tile, ragged_edge, product };
            self.launch(tiles, division, finish, guard, |product, groups, count| {
                cx.run_heavy(&spec, &gemm::Arguments { product }, groups, self.multiply_adds(count))
            })
        })
    }

    /// Enqueues it on matrix units, cut into tiles as told.
    pub fn run_on_matrix_units(&self, cx: &Context, choice: MatrixChoice) -> Result<()> {
        self.run_in_units(cx, choice, self.units_of_loads(), Padding::None)
    }

    /// Enqueues it on matrix units, where both operands' loads take whole units of 16 bytes or not.
    pub fn run_in_units(&self, cx: &Context, choice: MatrixChoice, units: [bool; 2], padding: Padding) -> Result<()> {
        let MatrixChoice { tile, split_k } = choice;
        self.divide_k(cx, split_k, tile.k, |division, finish| {
            let Cut { product, ragged_edge, tiles } = self.cut([tile.m, tile.n, tile.k], division, finish, None);
            let spec = matrix_gemm::Spec { tile, ragged_edge, units, padding, product };
            self.launch(tiles, division, finish, None, |product, groups, count| {
                let arguments = matrix_gemm::Arguments { product, terms: None };
                cx.run_heavy(&spec, &arguments, groups, multiply_adds_on_units(count))
            })
        })
    }

    /// The kernel of one of its ways, which begins to be compiled; `None` for ways of more than
    /// one.
    pub fn kernel<'d>(&self, cx: &Context<'d>, way: Way) -> Result<Option<&'d KernelRef>> {
        let (size, split_k) = match way {
            Way::Plain(Choice { tile, split_k }) => ([tile.m, tile.n, tile.k], split_k),
            Way::Matrix(MatrixChoice { tile, split_k }) => ([tile.m, tile.n, tile.k], split_k),
            Way::Waves(_) | Way::MatrixWaves(_) | Way::Split(_) | Way::Rounded(_) => return Ok(None),
        };
        let divided = self.divided(cx, split_k, size[2])?;
        let (division, finish) = match &divided {
            Some((division, _, partial)) => (Some(*division), partial),
            None => (None, &self.finish),
        };
        let Cut { product, ragged_edge, .. } = self.cut(size, division, finish, None);
        Ok(Some(match way {
            Way::Matrix(MatrixChoice { tile, .. }) => {
                let (units, padding) = (self.units_of_loads(), Padding::None);
                let spec = matrix_gemm::Spec { tile, ragged_edge, units, padding, product };
                cx.device.kernel(&spec, || spec.build())?
            }
            Way::Plain(Choice { tile, .. }) => {
                let spec = gemm::Spec { tile, ragged_edge, product };
                cx.device.kernel(&spec, || spec.build())?
            }
            Way::Waves(_) | Way::MatrixWaves(_) | Way::Split(_) | Way::Rounded(_) => return Ok(None),
        }))
    }

    /// Whether loads of both operands take whole units of 16 bytes.
    fn units_of_loads(&self) -> [bool; 2] {
        let [_, m, n, k] = self.size;
        [self.a.is_in_units([m, k]), self.b.is_in_units([n, k])]
    }

    /// What tiles of `[m, n, k]` elements make of it.
    pub fn cut(&self, tile: [u32; 3], division: Option<Division>, finish: &Finish, guard: Option<&Guarded>) -> Cut {
        let [_, m, n, k] = self.size;
        let [ragged_m, ragged_n, ragged_k] =
            [(m, tile[0]), (n, tile[1]), (k, tile[2])].map(|(size, step)| size % i64::from(step) != 0);
        let product = ProductSpec {
            a: self.a.access_in_steps(tile[2]),
            b: self.b.access_in_steps(tile[2]),
            epilogue: finish.epilogue(n),
            index: self.index(finish, tile.map(i64::from)),
            ragged_k,
            split_k: division.is_some(),
            guard: guard.map(|guard| guard.tiles),
        };
        let tiles = (m as u64).div_ceil(tile[0].into()) * (n as u64).div_ceil(tile[1].into());
        Cut { product, ragged_edge: ragged_m || ragged_n, tiles }
    }

    /// Enqueues a product with few rows.
    pub fn run_gemv(&self, cx: &Context, limits: &Limits) -> Result<()> {
        let [_, m, n, k] = self.size;
        let (threads, along_k, parts) = gemv::choose(limits, self.size, &self.b.access);
        let mut a = self.a.access;
        a.wide = a.wide && a.axis == Axis::Inner && self.b.access.wide && self.b.access.axis == Axis::Inner;
        let spec = |split_k: bool, finish: &Finish| {
            let (b, epilogue) = (self.b.access, finish.epilogue(n));
            let product = ProductSpec { a, b, epilogue, index: ScalarType::U32, ragged_k: true, split_k, guard: None };
            let mut spec = gemv::Spec { threads, along_k, rows: m as u32, product };
            spec.product.ragged_k = k % i64::from(spec.step()) != 0;
            spec.product.index = self.index(finish, [m, spec.width().into(), spec.step().into()]);
            spec
        };
        self.divide_k(cx, parts, spec(false, &self.finish).step(), |division, finish| {
            let spec = spec(division.is_some(), finish);
            let groups = (n as u64).div_ceil(spec.width().into());
            self.launch(groups, division, finish, None, |product, groups, count| {
                cx.run_heavy(&spec, &gemv::Arguments { product }, groups, self.multiply_adds(count))
            })
        })
    }

    /// Runs `launch` once; or for parts of k, whose sums go to a workspace, and then the second
    /// pass. A part is a multiple of `step`.
    fn divide_k(
        &self,
        cx: &Context,
        parts: u32,
        step: u32,
        launch: impl FnOnce(Option<Division>, &Finish) -> Result<()>,
    ) -> Result<()> {
        let Some((division, workspace, partial)) = self.divided(cx, parts, step)? else {
            return launch(None, &self.finish);
        };
        launch(Some(division), &partial)?;
        let [batch, m, n, _] = self.size;
        split_k::reduce(cx, &workspace, [batch, m, n], division.parts, &self.finish)
    }

    /// How k is divided into at most so many parts, each a multiple of `step`; where their sums go,
    /// and what happens to them. `None` for one part.
    fn divided(&self, cx: &Context, parts: u32, step: u32) -> Result<Option<(Division, View, Finish)>> {
        let [batch, m, n, k] = self.size;
        let length = (k as u64).div_ceil(parts.into()).next_multiple_of(step.into()) as i64;
        let parts = (k as u64).div_ceil(length as u64) as i64;
        if parts == 1 {
            return Ok(None);
        }
        let workspace = cx.empty(self.a.access.sums(), &[batch, parts, m, n])?;
        let partial = Finish {
            out: Output { memory: (&workspace).into(), strides: [m * n, n, 1], split: None },
            alpha: Number::Int(1),
            bias: None,
            activation: None,
        };
        Ok(Some((Division { parts, length }, workspace, partial)))
    }

    /// What so many multiplications of its elements, and additions, count as.
    fn multiply_adds(&self, count: u64) -> u64 {
        multiply_adds(self.a.access.sums(), count)
    }

    /// Runs a kernel on `groups` workgroups for every matrix of the batch and every part of k.
    /// `run` is also told how many multiplications it does.
    pub fn launch(
        &self,
        groups: u64,
        division: Option<Division>,
        finish: &Finish,
        guard: Option<&Guarded>,
        run: impl Fn(ProductArguments<'_>, [u32; 3], u64) -> Result<()>,
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
                guard: guard.map(|guard| guard.blocks),
            };
            run(product, [x, y, (count * parts) as u32], [count, m, n, k].map(|n| n as u64).iter().product())?;
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
