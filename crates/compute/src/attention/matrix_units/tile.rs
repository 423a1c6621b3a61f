//! How attention on matrix units is divided into workgroups, subgroups and steps.

use crate::attention::matrix_units::matrix_layouts::MatrixLayouts;
use crate::attention::matrix_units::spec::{Role, Spec};
use crate::attention::matrix_units::stage::Places;
use crate::matmul::operand::VECTOR_16_BIT;

/// The tile of one workgroup. Every number is a power of two.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Subgroups of a workgroup. Each has rows of its own, and processes all columns.
    pub subgroups: u32,
    /// Rows of one subgroup.
    pub rows: u32,
    /// Columns of a step.
    pub columns: u32,
    /// The rows' matrices stay in registers; otherwise they stay in shared memory, and are loaded
    /// for every product.
    pub rows_in_registers: bool,
    /// Forward: accumulators are rescaled to a row's new maximum only when it has grown much. This
    /// costs a branch, and saves many multiplications.
    pub lazy: bool,
}

impl Tile {
    /// Parses `4x16x64`: subgroups, rows of each, columns. A suffix `l` means lazy, and a further
    /// `s` that rows stay in shared memory.
    pub fn parse(text: &str) -> Option<Tile> {
        let (text, rows_in_registers) = text.strip_suffix('s').map_or((text, true), |text| (text, false));
        let (numbers, lazy) = text.strip_suffix('l').map_or((text, false), |text| (text, true));
        let numbers = numbers.split('x').map(|n| n.parse().ok()).collect::<Option<Vec<u32>>>()?;
        let &[subgroups, rows, columns] = &numbers[..] else { return None };
        numbers.iter().all(|n| n.is_power_of_two()).then_some(Tile {
            subgroups,
            rows,
            columns,
            rows_in_registers,
            lazy,
        })
    }

    /// Whether the tile consists of whole matrices of this shape.
    pub fn fits(&self, shape: [u32; 3]) -> bool {
        let [m, n, k] = shape;
        self.rows >= m && self.columns >= n.max(k) && self.rows.min(self.columns) >= VECTOR_16_BIT
    }
}

impl std::fmt::Display for Tile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tile { subgroups, rows, columns, rows_in_registers, lazy } = self;
        let (lazy, staged) = (if *lazy { "l" } else { "" }, if *rows_in_registers { "" } else { "s" });
        write!(f, "{subgroups}x{rows}x{columns}{lazy}{staged}")
    }
}

/// Distance between rows of `length` elements in shared memory, in 16-byte vectors: one more than
/// needed, so that neighbouring rows begin in different banks.
pub const fn pitch(length: u32) -> u32 {
    length / VECTOR_16_BIT + 1
}

/// Offsets of a workgroup's buffers in shared memory, in 16-byte vectors.
#[derive(Copy, Clone, Debug)]
pub struct SharedLayout {
    /// The rows' matrices: queries or keys, and output gradients or values.
    pub left: [u32; 2],
    /// The columns' matrices: keys or queries, and values or output gradients.
    pub right: [Places; 2],
    /// The subgroups' weights, and the size for each subgroup.
    pub weights: [u32; 2],
    /// Total size.
    pub total: u32,
}

impl SharedLayout {
    /// The layout for a kernel.
    pub fn of(spec: &Spec) -> SharedLayout {
        let Spec { tile, depth, width, .. } = *spec;
        let rows = tile.subgroups * tile.rows;
        let [left, left2] =
            [rows * pitch(depth), if spec.role.needs_score_gradients() { rows * pitch(width) } else { 0 }];
        let own = if spec.layouts.accumulator_is_operand() {
            0
        } else {
            (tile.rows * pitch(tile.columns)).max(tile.columns * pitch(tile.rows))
        };
        // Rows that stay in registers only pass through shared memory, one matrix after the other.
        let mut end = if tile.rows_in_registers { 0 } else { left + left2 };
        let mut next = |exists: bool, size: u32| {
            let begin = end;
            end += if exists { size } else { 0 };
            exists.then_some(begin)
        };
        let [along_elements, along_rows] = spec.products_of_columns();
        let right = [0, 1].map(|which| {
            let (length, transposed) = ([depth, width][which], spec.layouts.transposes && along_rows[which]);
            Places {
                rows: next(along_elements[which] || !transposed, tile.columns * pitch(length)),
                transposed: next(transposed, length * pitch(tile.columns)),
            }
        });
        let weights = end;
        let steps = weights + tile.subgroups * own;
        SharedLayout {
            left: if tile.rows_in_registers { [0, 0] } else { [0, left] },
            right,
            weights: [weights, own],
            total: if tile.rows_in_registers { steps.max(left).max(left2) } else { steps },
        }
    }
}

/// Bytes of shared memory of a workgroup.
pub fn shared_bytes(spec: &Spec) -> u32 {
    let MatrixLayouts { shape: [m, n, _], emulated, .. } = spec.layouts;
    // Emulated matrices exchange components through shared memory.
    let exchanged = if emulated { spec.tile.subgroups * m * n * 4 } else { 0 };
    16 * SharedLayout::of(spec).total + exchanged
}

/// Upper bound of the loop iterations of one step along the columns.
pub fn loop_iterations(spec: &Spec) -> i64 {
    let MatrixLayouts { shape: [m, n, k], emulated, .. } = spec.layouts;
    if !emulated {
        return 1;
    }
    let (rows, columns, depth, width) = (spec.tile.rows / m, spec.tile.columns, spec.depth, spec.width);
    let product = |columns: u32, depth: u32| rows * (columns / n) * (depth / k) * (m * n + m.max(k) + n.max(k));
    let exchanged = |columns: u32| rows * (columns / n) * m * n / 4;
    let gradients = product(columns, width) + product(depth, columns) + exchanged(columns) + exchanged(depth);
    let values = product(width, columns) + exchanged(columns) + exchanged(width);
    let scores = 1 + product(columns, depth);
    i64::from(match spec.role {
        Role::Forward | Role::Value => scores + values,
        Role::Query | Role::Key => scores + gradients,
        Role::KeyValue => scores + values + gradients,
    })
}

/// The tiles of a role, the best first, for heads whose inner products have at most `longest`
/// elements. The order was measured on an H100 (docs/notebook/2026-11.md).
pub fn tiles(role: Role, longest: u32, causal: bool, small: bool) -> &'static [Tile] {
    const fn tile(subgroups: u32, rows: u32, columns: u32) -> Tile {
        Tile { subgroups, rows, columns, rows_in_registers: true, lazy: false }
    }
    // As little code as possible: the compiler of such an adapter is slow.
    const SMALL: &[Tile] = &[tile(2, 8, 8), tile(2, 16, 16)];
    const FORWARD: [&[Tile]; 3] = [
        &[tile(4, 32, 64), tile(4, 16, 128), tile(4, 16, 32), tile(2, 16, 16), tile(4, 8, 16)],
        &[tile(8, 16, 64), tile(4, 16, 64), tile(4, 16, 32), tile(2, 16, 16), tile(4, 8, 16)],
        &[tile(4, 16, 32), tile(2, 16, 16), tile(1, 16, 16)],
    ];
    // Half of the scores of a tile on the diagonal are masked: tiles of fewer rows waste less.
    const CAUSAL: &[Tile] = &[tile(4, 16, 128), tile(4, 16, 32), tile(2, 16, 16), tile(4, 8, 16)];
    const QUERY: [&[Tile]; 3] = [
        &[tile(8, 16, 32), tile(4, 16, 32), tile(2, 16, 16), tile(4, 8, 16)],
        &[tile(4, 16, 64), tile(4, 16, 32), tile(2, 16, 16), tile(1, 16, 16)],
        &[tile(2, 16, 16), tile(1, 16, 16)],
    ];
    const KEY: [&[Tile]; 3] = [
        &[tile(4, 16, 32), tile(2, 16, 16), tile(4, 8, 16)],
        &[tile(4, 16, 64), tile(4, 16, 32), tile(2, 16, 16), tile(1, 16, 16)],
        &[tile(2, 16, 16), tile(1, 16, 16)],
    ];
    const VALUE: [&[Tile]; 3] = [
        &[tile(4, 16, 32), tile(2, 16, 16), tile(4, 8, 16)],
        &[tile(4, 16, 32), tile(2, 16, 16), tile(4, 8, 16)],
        &[tile(2, 16, 16), tile(1, 16, 16)],
    ];
    const BOTH: [&[Tile]; 3] = [&[tile(4, 16, 64), tile(4, 16, 32), tile(2, 16, 16)], &[tile(8, 16, 32)], &[]];
    let class = if longest <= 64 { 0 } else { 1 + usize::from(longest > 128) };
    match role {
        _ if small => SMALL,
        Role::Forward if causal && class == 0 => CAUSAL,
        Role::Forward => FORWARD[class],
        Role::Value => VALUE[class],
        Role::Query => QUERY[class],
        Role::Key => KEY[class],
        Role::KeyValue => BOTH[class],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_numbers() {
        let tile = Tile { subgroups: 4, rows: 16, columns: 64, rows_in_registers: true, lazy: false };
        assert_eq!(Tile::parse("4x16x64"), Some(tile));
        assert_eq!(Tile::parse("4x16x64s"), Some(Tile { rows_in_registers: false, ..tile }));
        for tile in
            [tile, Tile { rows_in_registers: false, ..tile }, Tile { lazy: true, rows_in_registers: false, ..tile }]
        {
            assert_eq!(Tile::parse(&tile.to_string()), Some(tile));
        }
        for bad in ["", "4x16", "4x16x48", "4x16x64x", "0x16x64"] {
            assert_eq!(Tile::parse(bad), None, "{bad}");
        }
        assert!(tile.fits([16, 16, 16]) && !tile.fits([32, 8, 16]));
    }
}
