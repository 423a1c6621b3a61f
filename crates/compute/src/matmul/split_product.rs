//! float32 products on matrix units, with operands split into terms of 16 bits.
//!
//! With two terms each, `a * b` is `low * high + high * low + high * high`: a kernel iterates over
//! k three times. The missing product is 2^-22 of the result. Each row and column of the operands
//! is scaled by its own largest element. Tiles of the result that depend on an element that terms
//! cannot represent are computed without matrix units ([`guard`](super::guard)).

use crate::context::Context;
use crate::error::Result;
use crate::matmul::guard::Tiles;
use crate::matmul::matrix_unit_gemm::{self, Padding};
use crate::matmul::matrix_unit_select::{MatrixChoice, SplitChoice};
use crate::matmul::matrix_unit_tile::MatrixTile;
use crate::matmul::operand::Source;
use crate::matmul::problem::{Problem, TileSelection, TiledProduct};
use crate::matmul::scales::{self, Sums};
use crate::matmul::select::Choice;
use crate::matmul::terms::{self, FloatOperand};
use crate::primitives::cost::multiply_adds_on_units;
use dml_kernel::DType;
use dml_kernel::dense::folded;

/// Products of terms for one product of floats.
const TERM_PRODUCTS: u64 = 3;

impl Problem {
    /// Enqueues a product of float32 in two terms of float16 each, whose results are as accurate as
    /// without matrix units.
    pub fn run_split(&self, cx: &Context, choice: SplitChoice) -> Result<()> {
        let SplitChoice { tile, fallback_tile } = choice;
        let [(a, marks_a), (b, marks_b)] = terms::to_float16_terms(cx, self.floats(&tile), self.size[0])?;
        let blocks = [marks_a.blocks, marks_b.blocks];
        let terms = self.of_terms([a, b]);

        let held = Some(TileSelection { tiles: Tiles::Representable, blocks });
        let TiledProduct { product, has_edge_tiles, tiles } =
            terms.cut([tile.m, tile.n, tile.k], None, &self.finish, held.as_ref());
        let [x, y, _] = folded(tiles);
        let [batch, _, _, k] = terms.size;
        let size = [batch, i64::from(x) * i64::from(y), i64::from(tile.m * tile.n)];
        let run = scales::run(k);
        let accumulator_buffer = if k > i64::from(run) { Some(cx.empty(DType::F32, &size)?) } else { None };
        let spec = matrix_unit_gemm::Spec {
            tile,
            has_edge_tiles,
            vector_loads: [true; 2],
            padding: Padding::Terms { uses_accumulator_buffer: accumulator_buffer.is_some() },
            product,
        };
        let sums = Sums {
            largest: [marks_a.largest, marks_b.largest],
            run,
            accumulator_buffer: accumulator_buffer.as_ref().map(|t| t.range()),
        };
        terms.launch(tiles, None, &self.finish, held.as_ref(), |product, groups, count| {
            let arguments = matrix_unit_gemm::Arguments { product, terms: Some(sums) };
            cx.run_with_cost(&spec, &arguments, groups, multiply_adds_on_units(TERM_PRODUCTS * count))
        })?;
        let others = TileSelection { tiles: Tiles::Unrepresentable, blocks };
        self.run_tiles(cx, Choice { tile: fallback_tile, split_k: 1 }, Some(&others))
    }

    /// Enqueues a product of float32 operands that are rounded to bfloat16.
    pub fn run_rounded(&self, cx: &Context, choice: MatrixChoice) -> Result<()> {
        let terms = terms::to_bfloat16(cx, self.floats(&choice.tile), self.size[0])?;
        self.of_terms(terms).run_vectorized(cx, choice, [true; 2], Padding::Whole)
    }

    /// The operands, with the padding for a tile.
    fn floats(&self, tile: &MatrixTile) -> [FloatOperand<'_>; 2] {
        let ([_, m, n, k], [rows, columns]) = (self.size, SplitChoice::blocks(tile));
        [
            FloatOperand { source: &self.a, size: [m, k], block: rows },
            FloatOperand { source: &self.b, size: [n, k], block: columns },
        ]
    }

    /// The product of the operands' terms.
    fn of_terms(&self, [a, b]: [Source; 2]) -> Problem {
        let [batch, m, n, k] = self.size;
        Problem { size: [batch, m, n, terms::padded(k)], a, b, finish: self.finish }
    }
}
