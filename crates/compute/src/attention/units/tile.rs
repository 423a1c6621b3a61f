//! How attention on matrix units is cut into workgroups, subgroups and steps.

use crate::attention::units::parts::Parts;
use crate::attention::units::spec::{Role, Spec};
use crate::matmul::operand::UNIT;

/// The shape of the work of one workgroup. Every number is a power of two.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Subgroups of a workgroup: each has rows of its own, and all of the columns.
    pub subgroups: u32,
    /// Rows of one subgroup.
    pub rows: u32,
    /// Columns of a step.
    pub columns: u32,
    /// Matrices of the rows stay in registers; otherwise they stay in shared memory, and are loaded
    /// for every product.
    pub resident: bool,
    /// Forward, sums are brought to a row's new maximum only when that has grown much: a branch,
    /// against many products.
    pub lazy: bool,
}

impl Tile {
    /// Reads `4x16x64`: subgroups, rows of each, columns; with `l` behind it, it is lazy, and with
    /// `s` behind that, rows stay in shared memory.
    pub fn parse(text: &str) -> Option<Tile> {
        let (text, resident) = text.strip_suffix('s').map_or((text, true), |text| (text, false));
        let (numbers, lazy) = text.strip_suffix('l').map_or((text, false), |text| (text, true));
        let numbers = numbers.split('x').map(|n| n.parse().ok()).collect::<Option<Vec<u32>>>()?;
        let &[subgroups, rows, columns] = &numbers[..] else { return None };
        numbers.iter().all(|n| n.is_power_of_two()).then_some(Tile { subgroups, rows, columns, resident, lazy })
    }

    /// Whether it consists of matrices of an adapter's shape.
    pub fn fits(&self, shape: [u32; 3]) -> bool {
        let [m, n, k] = shape;
        self.rows >= m && self.columns >= n.max(k) && self.rows.min(self.columns) >= UNIT
    }
}

impl std::fmt::Display for Tile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tile { subgroups, rows, columns, resident, lazy } = self;
        let (lazy, staged) = (if *lazy { "l" } else { "" }, if *resident { "" } else { "s" });
        write!(f, "{subgroups}x{rows}x{columns}{lazy}{staged}")
    }
}

/// 16-byte units from one row of `length` elements to the next: one more than needed, so that
/// neighbouring rows begin in different banks.
pub const fn pitch(length: u32) -> u32 {
    length / UNIT + 1
}

/// Where a workgroup's parts of shared memory begin, in 16-byte units.
#[derive(Copy, Clone, Debug)]
pub struct SharedLayout {
    /// Of the rows' matrices: of queries or keys, and of gradients or values.
    pub left: [u32; 2],
    /// Of the columns' matrices: of keys or queries, and of values or gradients.
    pub right: [u32; 2],
    /// Of the subgroups' weights, and the units of each.
    pub weights: [u32; 2],
    /// All of it.
    pub total: u32,
}

impl SharedLayout {
    /// Of a kernel.
    pub fn of(spec: &Spec) -> SharedLayout {
        let Spec { tile, depth, width, .. } = *spec;
        let rows = tile.subgroups * tile.rows;
        let [left, left2] = [rows * pitch(depth), if spec.role.needs_slopes() { rows * pitch(width) } else { 0 }];
        let right = [tile.columns * pitch(depth), tile.columns * pitch(width)];
        let own = if spec.parts.goes_directly() {
            0
        } else {
            (tile.rows * pitch(tile.columns)).max(tile.columns * pitch(tile.rows))
        };
        // Rows that stay in registers only pass through, one after the other.
        let kept = if tile.resident { 0 } else { left + left2 };
        let steps = right[0] + right[1] + tile.subgroups * own;
        let total = if tile.resident { steps.max(left).max(left2) } else { kept + steps };
        SharedLayout {
            left: if tile.resident { [0, 0] } else { [0, left] },
            right: [kept, kept + right[0]],
            weights: [kept + right[0] + right[1], own],
            total,
        }
    }
}

/// Bytes of shared memory of a workgroup.
pub fn shared_bytes(spec: &Spec) -> u32 {
    let Parts { shape: [m, n, _], emulated, .. } = spec.parts;
    // Emulated matrices exchange components there.
    let exchanged = if emulated { spec.tile.subgroups * m * n * 4 } else { 0 };
    16 * SharedLayout::of(spec).total + exchanged
}

/// At most so many turns of loops take a step along the columns.
pub fn turns(spec: &Spec) -> i64 {
    let Parts { shape: [m, n, k], emulated, .. } = spec.parts;
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

/// The tiles of a role, the best first, of heads whose inner products have at most so many
/// elements. The order is an H100's (docs/notebook/2026-11.md).
pub fn tiles(role: Role, longest: u32, causal: bool, small: bool) -> &'static [Tile] {
    const fn tile(subgroups: u32, rows: u32, columns: u32) -> Tile {
        Tile { subgroups, rows, columns, resident: true, lazy: false }
    }
    // As little code as there may be: its compiler takes long.
    const SMALL: &[Tile] = &[tile(2, 8, 8), tile(2, 16, 16)];
    const FORWARD: [&[Tile]; 3] = [
        &[tile(4, 32, 64), tile(4, 16, 128), tile(4, 16, 32), tile(2, 16, 16)],
        &[tile(8, 16, 64), tile(4, 16, 64), tile(4, 16, 32), tile(2, 16, 16)],
        &[tile(4, 16, 32), tile(2, 16, 16), tile(1, 16, 16)],
    ];
    // Half of the scores of a tile on the diagonal are for nothing: fewer rows have fewer of these
    // tiles.
    const CAUSAL: &[Tile] = &[tile(4, 16, 128), tile(4, 16, 32), tile(2, 16, 16)];
    const QUERY: [&[Tile]; 3] = [
        &[tile(8, 16, 32), tile(4, 16, 32), tile(2, 16, 16)],
        &[tile(4, 16, 64), tile(4, 16, 32), tile(2, 16, 16), tile(1, 16, 16)],
        &[tile(2, 16, 16), tile(1, 16, 16)],
    ];
    const KEY: [&[Tile]; 3] = [
        &[tile(4, 16, 32), tile(2, 16, 16)],
        &[tile(4, 16, 64), tile(4, 16, 32), tile(2, 16, 16), tile(1, 16, 16)],
        &[tile(2, 16, 16), tile(1, 16, 16)],
    ];
    const VALUE: [&[Tile]; 3] =
        [&[tile(4, 16, 32), tile(2, 16, 16)], &[tile(4, 16, 32), tile(2, 16, 16)], &[tile(2, 16, 16), tile(1, 16, 16)]];
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
        let tile = Tile { subgroups: 4, rows: 16, columns: 64, resident: true, lazy: false };
        assert_eq!(Tile::parse("4x16x64"), Some(tile));
        assert_eq!(Tile::parse("4x16x64s"), Some(Tile { resident: false, ..tile }));
        for tile in [tile, Tile { resident: false, ..tile }, Tile { lazy: true, resident: false, ..tile }] {
            assert_eq!(Tile::parse(&tile.to_string()), Some(tile));
        }
        for bad in ["", "4x16", "4x16x48", "4x16x64x", "0x16x64"] {
            assert_eq!(Tile::parse(bad), None, "{bad}");
        }
        assert!(tile.fits([16, 16, 16]) && !tile.fits([32, 8, 16]));
    }
}
