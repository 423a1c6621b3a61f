//! One product: operands, shape, epilogue, and its launches.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::choice::Algorithm;
use crate::matmul::epilogue::{EpilogueOperands, Output};
use crate::matmul::guard::{Blocks, Tiles};
use crate::matmul::interface::{ProductArguments, ProductSpec};
use crate::matmul::matrix_unit_gemm::{self, Padding};
use crate::matmul::matrix_unit_select::MatrixChoice;
use crate::matmul::operand::{Axis, PatternStrides, Source};
use crate::matmul::select::{Choice, Limits};
use crate::matmul::split_k::{self, Division};
use crate::matmul::two_launches::Waves;
use crate::matmul::{gemm, gemv};
use crate::primitives::cost::{multiply_adds, multiply_adds_on_units};
use crate::primitives::kernel::KernelSpec;
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
    /// The epilogue.
    pub finish: EpilogueOperands,
}

/// A product divided into tiles.
pub struct TiledProduct {
    /// The specialisation of the product.
    pub product: ProductSpec,
    /// m or n is not a multiple of the tile's.
    pub has_edge_tiles: bool,
    /// Number of tiles of one matrix of the batch.
    pub tiles: u64,
}

/// The part of a product's tiles that a launch computes.
#[derive(Copy, Clone, Debug)]
pub struct TileSelection {
    /// The kind of tiles.
    pub tiles: Tiles,
    /// The flags of both operands' blocks.
    pub blocks: [Blocks; 2],
}

impl Problem {
    /// Enqueues the product with this algorithm.
    pub fn run_in(&self, cx: &Context, algorithm: Algorithm) -> Result<()> {
        match algorithm {
            Algorithm::Plain(choice) => self.run_as(cx, choice),
            Algorithm::TwoLaunches(waves) => self.run_in_two_launches(waves, |some, choice| some.run_as(cx, choice)),
            Algorithm::Matrix(choice) => self.run_on_matrix_units(cx, choice),
            Algorithm::MatrixTwoLaunches(waves) => {
                self.run_in_two_launches(waves, |some, choice| some.run_on_matrix_units(cx, choice))
            }
            Algorithm::SplitFloat(choice) => self.run_split(cx, choice),
            Algorithm::RoundedFloat(choice) => self.run_rounded(cx, choice),
        }
    }

    /// Enqueues the first rows, and then the others.
    fn run_in_two_launches<T>(
        &self,
        Waves { first, rows, rest }: Waves<T>,
        run: impl Fn(Problem, Choice<T>) -> Result<()>,
    ) -> Result<()> {
        run(self.some_rows(0, rows), Choice { tile: first, split_k: 1 })?;
        run(self.some_rows(rows, self.size[1] - rows), rest)
    }

    /// Whether rows can be computed separately by `some_rows`.
    pub fn is_by_rows(&self) -> bool {
        matches!(self.a.strides, PatternStrides::Strided { .. }) && self.finish.out.split.is_none()
    }

    /// The product of `rows` rows from `from` on, of a problem that [is by rows](Self::is_by_rows).
    fn some_rows(&self, from: i64, rows: i64) -> Problem {
        let mut some = self.clone();
        some.size[1] = rows;
        if let PatternStrides::Strided { outer, .. } = some.a.strides {
            some.a.memory = some.a.memory.skip(from * outer);
        }
        let finish = &mut some.finish;
        let [_, row, column] = finish.out.strides;
        finish.out.memory = finish.out.memory.skip(from * row);
        // If rows of the result do not overlap in memory, other rows may be written at the same
        // time.
        if row > (self.size[2] - 1) * column {
            finish.out.memory.end = finish.out.memory.end.min(finish.out.memory.skip(rows * row).address);
        }
        for tensor in finish.read_mut() {
            tensor.memory = tensor.memory.skip(from * tensor.strides[1]);
        }
        some
    }

    /// Enqueues the product with this tile.
    pub fn run_as(&self, cx: &Context, choice: Choice) -> Result<()> {
        self.run_tiles(cx, choice, None)
    }

    /// Enqueues the product, or some of its tiles.
    pub fn run_tiles(&self, cx: &Context, choice: Choice, guard: Option<&TileSelection>) -> Result<()> {
        let Choice { tile, split_k } = choice;
        self.divide_k(cx, split_k, tile.k, |division, finish| {
            let TiledProduct { product, has_edge_tiles, tiles } =
                self.cut([tile.m, tile.n, tile.k], division, finish, guard);
            let spec = gemm::Spec { tile, has_edge_tiles, product };
            self.launch(tiles, division, finish, guard, |product, groups, count| {
                cx.run_with_cost(&spec, &gemm::Arguments { product }, groups, self.multiply_adds(count))
            })
        })
    }

    /// Enqueues the product on matrix units with this tile.
    pub fn run_on_matrix_units(&self, cx: &Context, choice: MatrixChoice) -> Result<()> {
        self.run_vectorized(cx, choice, self.loads_are_vectors(), Padding::None)
    }

    /// Enqueues the product on matrix units; `vector_loads`: whether each operand's loads are
    /// 16-byte vectors.
    pub fn run_vectorized(
        &self,
        cx: &Context,
        choice: MatrixChoice,
        vector_loads: [bool; 2],
        padding: Padding,
    ) -> Result<()> {
        let MatrixChoice { tile, split_k } = choice;
        self.divide_k(cx, split_k, tile.k, |division, finish| {
            let TiledProduct { product, has_edge_tiles, tiles } =
                self.cut([tile.m, tile.n, tile.k], division, finish, None);
            let spec = matrix_unit_gemm::Spec { tile, has_edge_tiles, vector_loads, padding, product };
            self.launch(tiles, division, finish, None, |product, groups, count| {
                let arguments = matrix_unit_gemm::Arguments { product, terms: None };
                cx.run_with_cost(&spec, &arguments, groups, multiply_adds_on_units(count))
            })
        })
    }

    /// The kernel of an algorithm, whose compilation is started; `None` for algorithms with several
    /// kernels.
    pub fn kernel<'d>(&self, cx: &Context<'d>, algorithm: Algorithm) -> Result<Option<&'d KernelRef>> {
        let (size, split_k) = match algorithm {
            Algorithm::Plain(Choice { tile, split_k }) => ([tile.m, tile.n, tile.k], split_k),
            Algorithm::Matrix(MatrixChoice { tile, split_k }) => ([tile.m, tile.n, tile.k], split_k),
            Algorithm::TwoLaunches(_)
            | Algorithm::MatrixTwoLaunches(_)
            | Algorithm::SplitFloat(_)
            | Algorithm::RoundedFloat(_) => return Ok(None),
        };
        let divided = self.divided(cx, split_k, size[2])?;
        let (division, finish) = match &divided {
            Some((division, _, partial)) => (Some(*division), partial),
            None => (None, &self.finish),
        };
        let TiledProduct { product, has_edge_tiles, .. } = self.cut(size, division, finish, None);
        Ok(Some(match algorithm {
            Algorithm::Matrix(MatrixChoice { tile, .. }) => {
                let (vector_loads, padding) = (self.loads_are_vectors(), Padding::None);
                let spec = matrix_unit_gemm::Spec { tile, has_edge_tiles, vector_loads, padding, product };
                cx.device.kernel(&spec, || spec.build())?
            }
            Algorithm::Plain(Choice { tile, .. }) => {
                let spec = gemm::Spec { tile, has_edge_tiles, product };
                cx.device.kernel(&spec, || spec.build())?
            }
            Algorithm::TwoLaunches(_)
            | Algorithm::MatrixTwoLaunches(_)
            | Algorithm::SplitFloat(_)
            | Algorithm::RoundedFloat(_) => return Ok(None),
        }))
    }

    /// Whether each operand's loads are 16-byte vectors.
    fn loads_are_vectors(&self) -> [bool; 2] {
        let [_, m, n, k] = self.size;
        [self.a.has_vector_loads([m, k]), self.b.has_vector_loads([n, k])]
    }

    /// The product divided into tiles of `[m, n, k]` elements.
    pub fn cut(
        &self,
        tile: [u32; 3],
        division: Option<Division>,
        finish: &EpilogueOperands,
        guard: Option<&TileSelection>,
    ) -> TiledProduct {
        let [_, m, n, k] = self.size;
        let [ragged_m, ragged_n, has_k_remainder] =
            [(m, tile[0]), (n, tile[1]), (k, tile[2])].map(|(size, step)| size % i64::from(step) != 0);
        let product = ProductSpec {
            a: self.a.access_for_step(tile[2]),
            b: self.b.access_for_step(tile[2]),
            epilogue: finish.epilogue(n),
            index: self.index(finish, tile.map(i64::from)),
            has_k_remainder,
            split_k: division.is_some(),
            guard: guard.map(|guard| guard.tiles),
        };
        let tiles = (m as u64).div_ceil(tile[0].into()) * (n as u64).div_ceil(tile[1].into());
        TiledProduct { product, has_edge_tiles: ragged_m || ragged_n, tiles }
    }

    /// Enqueues a product with few rows.
    pub fn run_gemv(&self, cx: &Context, limits: &Limits) -> Result<()> {
        let [_, m, n, k] = self.size;
        let gemv::Division { threads, along_k, loads_in_flight, parts } =
            gemv::choose(limits, self.size, &self.b.access);
        let mut a = self.a.access;
        a.wide = a.wide && a.axis == Axis::Inner && self.b.access.wide && self.b.access.axis == Axis::Inner;
        let spec = |split_k: bool, finish: &EpilogueOperands| {
            let (b, epilogue) = (self.b.access, finish.epilogue(n));
            let product =
                ProductSpec { a, b, epilogue, index: ScalarType::U32, has_k_remainder: true, split_k, guard: None };
            let mut spec = gemv::Spec { threads, along_k, loads_in_flight, rows: m as u32, product };
            spec.product.has_k_remainder = k % i64::from(spec.step()) != 0;
            spec.product.index = self.index(finish, [m, spec.width().into(), spec.step().into()]);
            spec
        };
        self.divide_k(cx, parts, spec(false, &self.finish).step(), |division, finish| {
            let spec = spec(division.is_some(), finish);
            let groups = (n as u64).div_ceil(spec.width().into());
            self.launch(groups, division, finish, None, |product, groups, count| {
                cx.run_with_cost(&spec, &gemv::Arguments { product }, groups, self.multiply_adds(count))
            })
        })
    }

    /// Runs `launch` once; or for parts of k, whose sums are stored to a workspace, followed by a
    /// second pass. The length of a part is a multiple of `step`.
    fn divide_k(
        &self,
        cx: &Context,
        parts: u32,
        step: u32,
        launch: impl FnOnce(Option<Division>, &EpilogueOperands) -> Result<()>,
    ) -> Result<()> {
        let Some((division, workspace, partial)) = self.divided(cx, parts, step)? else {
            return launch(None, &self.finish);
        };
        launch(Some(division), &partial)?;
        let [batch, m, n, _] = self.size;
        split_k::reduce(cx, &workspace, [batch, m, n], division.parts, &self.finish)
    }

    /// The division of k into at most `parts` parts, each a multiple of `step`, with the workspace
    /// of their sums and their epilogue. `None` for one part.
    fn divided(&self, cx: &Context, parts: u32, step: u32) -> Result<Option<(Division, View, EpilogueOperands)>> {
        let [batch, m, n, k] = self.size;
        let length = (k as u64).div_ceil(parts.into()).next_multiple_of(step.into()) as i64;
        let parts = (k as u64).div_ceil(length as u64) as i64;
        if parts == 1 {
            return Ok(None);
        }
        let workspace = cx.empty(self.a.access.sums(), &[batch, parts, m, n])?;
        let partial = EpilogueOperands {
            out: Output { memory: (&workspace).into(), strides: [m * n, n, 1], split: None },
            alpha: Number::Int(1),
            bias: None,
            then: None,
        };
        Ok(Some((Division { parts, length }, workspace, partial)))
    }

    /// The cost of `count` multiplications of its elements, with additions.
    fn multiply_adds(&self, count: u64) -> u64 {
        multiply_adds(self.a.access.sums(), count)
    }

    /// Runs a kernel on `groups` workgroups for every matrix of the batch and every part of k.
    /// `run` also gets the number of multiplications.
    pub fn launch(
        &self,
        groups: u64,
        division: Option<Division>,
        finish: &EpilogueOperands,
        guard: Option<&TileSelection>,
        run: impl Fn(ProductArguments<'_>, [u32; 3], u64) -> Result<()>,
    ) -> Result<()> {
        let [batch, m, n, k] = self.size;
        let parts = division.map_or(1, |division| division.parts);
        let [x, y, _] = folded(groups);
        // A batch that is too large for one launch is divided, with an offset for each part.
        let most = MAX_GROUPS as i64 / parts;
        for first in (0..batch).step_by(most as usize) {
            let count = most.min(batch - first);
            let range = |source: &Source| source.memory.skip(first * source.batch).range();
            let product = ProductArguments {
                a: range(&self.a),
                b: range(&self.b),
                out: finish.out_range(first * parts),
                bias: finish.bias_range(first * parts),
                tensors: finish.tensor_ranges(first * parts),
                m: m as u32,
                n: n as u32,
                k: k as u32,
                a_elements: &self.a,
                b_elements: &self.b,
                epilogue: finish,
                split_k: division,
                guard: guard.map(|guard| guard.blocks),
            };
            run(product, [x, y, (count * parts) as u32], [count, m, n, k].map(|n| n as u64).iter().product())?;
        }
        Ok(())
    }

    /// Integer type of offsets in a tile of `[m, n, k]`.
    fn index(&self, finish: &EpilogueOperands, [m, n, k]: [i64; 3]) -> ScalarType {
        let reach = self.a.reach(m, k).max(self.b.reach(n, k)).max(finish.reach(m, n));
        let batches = self.a.batch.max(self.b.batch).max(finish.out.strides[0]);
        index_type(reach.max(batches))
    }
}
