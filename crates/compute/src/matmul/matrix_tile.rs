//! How a product on matrix units is cut into workgroups, subgroups and the adapter's matrices.

use crate::matmul::scales;
use dml_kernel::{DType, MatrixType, matrix};

/// The matrix units that products of a dtype use.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// m, n and k of one of their products.
    pub shape: [u32; 3],
    /// Invocations of a subgroup.
    pub lanes: u32,
    /// There are none: every invocation computes all of a matrix, for tests.
    pub emulated: bool,
    /// Subgroups compute as little as they can: their compiler takes long.
    pub small: bool,
    /// Bytes of an operand's element: 1 or 2.
    pub bytes: u32,
}

/// The shape of the work of one workgroup. Every number is a power of two.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatrixTile {
    /// Rows of the result that a workgroup computes.
    pub m: u32,
    /// Columns.
    pub n: u32,
    /// Length of the inner dimension that is staged in shared memory at a time.
    pub k: u32,
    /// Rows of one subgroup.
    pub subgroup_m: u32,
    /// Columns of one subgroup.
    pub subgroup_n: u32,
    /// The adapter's product: m, n, k.
    pub shape: [u32; 3],
    /// Invocations of a subgroup.
    pub lanes: u32,
    /// The matrices are emulated, for tests.
    pub emulated: bool,
    /// Bytes of an operand's element: 1 or 2.
    pub bytes: u32,
}

/// Sums behind each row of matrices in shared memory: 32 bytes, the part of a row that NVIDIA's and
/// AMD's units write at a time.
const SUM_GAP: u32 = 8;

impl MatrixTile {
    /// Reads `128x256x32/64x64`: the workgroup's m, n and k, and the subgroup's m and n.
    pub fn parse(text: &str, units: Units) -> Option<MatrixTile> {
        let (size, subgroup) = text.split_once('/')?;
        let numbers = |part: &str| part.split('x').map(|n| n.parse().ok()).collect::<Option<Vec<u32>>>();
        let (size, subgroup) = (numbers(size)?, numbers(subgroup)?);
        let (&[m, n, k], &[subgroup_m, subgroup_n]) = (&size[..], &subgroup[..]) else { return None };
        let Units { shape, lanes, emulated, small: _, bytes } = units;
        let tile = MatrixTile { m, n, k, subgroup_m, subgroup_n, shape, lanes, emulated, bytes };
        tile.is_valid().then_some(tile)
    }

    /// Subgroups of a workgroup along m and n.
    pub const fn subgroups(&self) -> [u32; 2] {
        [self.m / self.subgroup_m, self.n / self.subgroup_n]
    }

    /// Invocations of a workgroup.
    pub const fn threads(&self) -> u32 {
        let [m, n] = self.subgroups();
        m * n * self.lanes
    }

    /// Matrices of a subgroup's result along m and n, and steps along k of a staged tile.
    pub const fn fragments(&self) -> [u32; 3] {
        [self.subgroup_m / self.shape[0], self.subgroup_n / self.shape[1], self.k / self.shape[2]]
    }

    /// Sums of one invocation.
    pub const fn sums(&self) -> u32 {
        self.subgroup_m * self.subgroup_n / self.lanes
    }

    /// At most so many turns of loops take one step along k.
    pub fn turns(&self) -> u32 {
        let ([rows, columns, steps], [m, n, k]) = (self.fragments(), self.shape);
        if self.emulated { steps * (rows * columns * m * n + rows * m.max(k) + columns * n.max(k)) } else { 1 }
    }

    /// At most so many turns of loops take a product of terms of `k` elements.
    pub fn turns_of_terms(&self, k: u64) -> u64 {
        let ([rows, columns, _], [m, n, _]) = (self.fragments(), self.shape);
        let gathering = if self.emulated { rows * columns * (2 * m * n + m) } else { 0 };
        3 * (k.div_ceil(self.k.into()) + 1) * u64::from(self.turns() + 1)
            + (k / u64::from(scales::run(k as i64)) + 2) * u64::from(gathering)
    }

    /// Types of the left and the right operand and of the sum.
    pub fn types(&self, operands: DType) -> [MatrixType; 3] {
        matrix::product_types(self.shape, operands, sums(operands))
    }

    /// Elements of a unit of shared memory, at which matrices begin: 16 bytes, or 8 where matrices
    /// of bytes are smaller.
    pub fn unit(&self) -> u32 {
        if self.bytes == 1 && self.shape.iter().all(|&size| size >= 16) { 16 } else { 8 }
    }

    /// Words of such a unit.
    pub fn words(&self) -> u32 {
        self.unit() * self.bytes / 4
    }

    /// Units of an operand's tile of `rows` rows, each of `length` contiguous elements. A row is a
    /// unit longer than its elements, so that neighbouring rows begin in different banks.
    pub fn units(&self, rows: u32, length: u32) -> u32 {
        rows * (length / self.unit() + 1)
    }

    /// Units of shared memory: both operands' tiles, and later matrices of sums.
    pub fn shared_units(&self) -> u32 {
        self.operand_units().max(self.exchange_units([1, 1]))
    }

    /// Units of both operands' tiles, either way round that an operand is contiguous.
    pub fn operand_units(&self) -> u32 {
        let operand = |outer: u32| self.units(outer, self.k).max(self.units(self.k, outer));
        operand(self.m) + operand(self.n)
    }

    /// Units of one row of so many matrices of sums side by side, and the space behind it: rows
    /// begin in different banks, as a matrix's invocations write some of them at a time.
    pub fn sum_row(&self, together: u32) -> u32 {
        (self.shape[1] * together + SUM_GAP) / self.words()
    }

    /// Units in which every subgroup stores so many matrices of sums one below the other and side
    /// by side.
    pub fn exchange_units(&self, [down, across]: [u32; 2]) -> u32 {
        let [m, n] = self.subgroups();
        m * n * down * self.shape[0] * self.sum_row(across)
    }

    /// Matrices of sums, one below the other and side by side, that a subgroup stores together: as
    /// many as the operands' memory has room for.
    pub fn stored_together(&self) -> [u32; 2] {
        let [rows, columns, _] = self.fragments();
        let most = |of: u32, fits: &dyn Fn(u32) -> bool| {
            (0..=of.ilog2()).map(|log| 1 << log).take_while(|&count| fits(count)).last().unwrap_or(1)
        };
        let fits = |together: [u32; 2]| self.exchange_units(together) <= self.operand_units();
        let across = most(columns, &|across| fits([1, across]));
        [most(rows, &|down| fits([down, across])), across]
    }

    /// Matrices of sums of terms that a subgroup stores together, beside the operands' memory.
    pub fn terms_stored_together(&self) -> [u32; 2] {
        [1, self.fragments()[1].min(2)]
    }

    /// Units of shared memory for operands in terms, whose sums are stored while tiles of operands
    /// stay.
    pub fn units_of_terms(&self) -> u32 {
        self.operand_units() + self.exchange_units(self.terms_stored_together())
    }

    /// Bytes of shared memory.
    pub fn shared_bytes(&self) -> u32 {
        4 * self.words() * self.shared_units()
    }

    /// Whether the numbers fit together.
    pub fn is_valid(&self) -> bool {
        let [m, n, k] = self.shape;
        let all = [self.m, self.n, self.k, self.subgroup_m, self.subgroup_n, m, n, k, self.lanes];
        all.iter().all(|x| x.is_power_of_two())
            && self.subgroup_m <= self.m
            && self.subgroup_n <= self.n
            && m <= self.subgroup_m
            && n <= self.subgroup_n
            && k <= self.k
            // Matrices begin at units of shared memory.
            && [m, n, k].iter().all(|x| x.is_multiple_of(self.unit()))
    }
}

/// The dtype of sums of products of a dtype on matrix units.
pub fn sums(operands: DType) -> DType {
    if operands == DType::I8 { DType::I32 } else { DType::F32 }
}

impl std::fmt::Display for MatrixTile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [m, n, k] = self.shape;
        write!(
            f,
            "{}x{}x{}/{}x{}/{m}x{n}x{k}{}",
            self.m,
            self.n,
            self.k,
            self.subgroup_m,
            self.subgroup_n,
            if self.emulated { "/emulated" } else { "" }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_numbers() {
        let units = Units { shape: [16, 16, 16], lanes: 32, emulated: false, small: false, bytes: 2 };
        let tile = MatrixTile::parse("128x256x32/64x64", units).expect("it is well formed");
        assert_eq!((tile.threads(), tile.fragments()), (256, [4, 4, 2]));
        assert_eq!(tile.to_string(), "128x256x32/64x64/16x16x16");
        // Both tiles with a unit more in each row: what two workgroups of 48 KiB of shared memory
        // allow.
        assert_eq!(tile.shared_bytes(), 16 * (128 * 5 + 256 * 5));
        for bad in ["", "128x256x32", "128x256x32/8x64", "100x256x32/64x64", "128x256x8/64x64", "32x32x32/64x64"] {
            assert_eq!(MatrixTile::parse(bad, units), None, "{bad}");
        }
    }
}
