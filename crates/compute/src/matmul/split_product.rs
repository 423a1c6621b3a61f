//! float32 products on matrix units, from operands in terms of 16 bits.
//!
//! In two terms each, `a * b` is `low * high + high * low + high * high`: a kernel walks along k
//! three times, and what was left out is 2^-22 of it. Operands' rows and columns are scaled each by
//! its own largest element; tiles of the result to which an element belongs that no term holds are
//! plain products ([`guard`](super::guard)).

use crate::context::Context;
use crate::error::Result;
use crate::matmul::guard::Tiles;
use crate::matmul::matrix_gemm::{self, Padding};
use crate::matmul::matrix_select::{MatrixChoice, SplitChoice};
use crate::matmul::matrix_tile::MatrixTile;
use crate::matmul::operand::Source;
use crate::matmul::problem::{Cut, Guarded, Problem};
use crate::matmul::scales::{self, Sums};
use crate::matmul::select::Choice;
use crate::matmul::terms::{self, Floats};
use crate::primitives::work::multiply_adds_on_units;
use dml_kernel::DType;
use dml_kernel::dense::folded;

/// Products of terms that make one of floats.
const PRODUCTS: u64 = 3;

impl Problem {
    /// Enqueues a product of float32 in two terms of float16 each, whose results are as near as
    /// those of plain tiles.
    pub fn run_split(&self, cx: &Context, choice: SplitChoice) -> Result<()> {
        let SplitChoice { tile, plain } = choice;
        let [(a, marks_a), (b, marks_b)] = terms::halves(cx, self.floats(&tile), self.size[0])?;
        let blocks = [marks_a.blocks, marks_b.blocks];
        let terms = self.of_terms([a, b]);

        let held = Some(Guarded { tiles: Tiles::Held, blocks });
        let Cut { product, ragged_edge, tiles } =
            terms.cut([tile.m, tile.n, tile.k], None, &self.finish, held.as_ref());
        let [x, y, _] = folded(tiles);
        let [batch, _, _, k] = terms.size;
        let size = [batch, i64::from(x) * i64::from(y), i64::from(tile.m * tile.n)];
        let run = scales::run(k);
        let gathered = if k > i64::from(run) { Some(cx.empty(DType::F32, &size)?) } else { None };
        let spec = matrix_gemm::Spec {
            tile,
            ragged_edge,
            units: [true; 2],
            padding: Padding::Terms { gathered: gathered.is_some() },
            product,
        };
        let sums =
            Sums { largest: [marks_a.largest, marks_b.largest], run, gathered: gathered.as_ref().map(|t| t.range()) };
        terms.launch(tiles, None, &self.finish, held.as_ref(), |product, groups, count| {
            let arguments = matrix_gemm::Arguments { product, terms: Some(sums) };
            cx.run_heavy(&spec, &arguments, groups, multiply_adds_on_units(PRODUCTS * count))
        })?;
        let others = Guarded { tiles: Tiles::Others, blocks };
        self.run_tiles(cx, Choice { tile: plain, split_k: 1 }, Some(&others))
    }

    /// Enqueues a product of float32 operands that are rounded to bfloat16.
    pub fn run_rounded(&self, cx: &Context, choice: MatrixChoice) -> Result<()> {
        let terms = terms::rounded(cx, self.floats(&choice.tile), self.size[0])?;
        self.of_terms(terms).run_in_units(cx, choice, [true; 2], Padding::Whole)
    }

    /// Its operands, to be padded for a tile.
    fn floats(&self, tile: &MatrixTile) -> [Floats<'_>; 2] {
        let ([_, m, n, k], [rows, columns]) = (self.size, SplitChoice::blocks(tile));
        [
            Floats { source: &self.a, size: [m, k], block: rows },
            Floats { source: &self.b, size: [n, k], block: columns },
        ]
    }

    /// The product of its operands' terms.
    fn of_terms(&self, [a, b]: [Source; 2]) -> Problem {
        let [batch, m, n, k] = self.size;
        Problem { size: [batch, m, n, terms::padded(k)], a, b, finish: self.finish }
    }
}
