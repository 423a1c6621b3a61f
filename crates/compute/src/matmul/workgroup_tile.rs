//! The part of a tiled product that a workgroup computes: its tile of the result, its range of k,
//! and its operands from there on.

use crate::matmul::epilogue::EpilogueCode;
use crate::matmul::interface::ProductParams;
use crate::matmul::reader::Reader;
use crate::matmul::split_k;
use dml_kernel::{Builder, Value};

/// Tile rows of a band: workgroups are ordered in such bands, which keeps both operands in cache.
const BAND: u32 = 8;

/// A workgroup's part of a product.
pub struct WorkgroupTile<'b> {
    /// The first operand, from the tile's first row on.
    pub left: Reader<'b>,
    /// The second operand, from the tile's first column on.
    pub right: Reader<'b>,
    /// The result, from the tile's first row and column on.
    pub out: EpilogueCode<'b>,
    /// First row of the tile.
    pub m0: Value<'b>,
    /// First column of the tile.
    pub n0: Value<'b>,
    /// Beginning of the range of k.
    pub k_begin: Value<'b>,
    /// End of the range of k.
    pub k_end: Value<'b>,
}

impl<'b> WorkgroupTile<'b> {
    /// The part of this workgroup, for tiles of these rows and columns. Excess workgroups return,
    /// and so do those whose tile another launch computes.
    pub fn of_workgroup(b: &'b Builder, tile: [u32; 2], p: ProductParams<'b>) -> WorkgroupTile<'b> {
        let (mut left, mut right) = (p.a_elements.reader(p.a), p.b_elements.reader(p.b));
        let mut out = p.epilogue.at(b, p.out, p.bias, p.tensors);
        let [m0, n0] = origin(b, tile, [p.m, p.n]);
        let z = b.group_id(2);
        let (batch, k_begin, k_end) = split_k::part(b, z, p.k, p.split_k);
        if let Some(guard) = p.guard {
            b.if_(guard.leaves(batch, [m0, n0]), || b.return_());
        }
        left.begin(batch, m0);
        right.begin(batch, n0);
        out.begin(z, m0, n0);
        WorkgroupTile { left, right, out, m0, n0, k_begin, k_end }
    }
}

/// The first row and column of the workgroup's tile in a result of `[m, n]` elements.
fn origin<'b>(b: &'b Builder, tile: [u32; 2], [m, n]: [Value<'b>; 2]) -> [Value<'b>; 2] {
    let rows = (m + (tile[0] - 1)) >> tile[0].ilog2();
    let columns = (n + (tile[1] - 1)) >> tile[1].ilog2();
    let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
    b.if_(group.ge(rows * columns), || b.return_());
    let band = group / (columns * BAND);
    let in_band = group - band * (columns * BAND);
    let height = (rows - band * BAND).min(BAND);
    let column = in_band / height;
    let row = band * BAND + (in_band - column * height);
    [row << tile[0].ilog2(), column << tile[1].ilog2()]
}
