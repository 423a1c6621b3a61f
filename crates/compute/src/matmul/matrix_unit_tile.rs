//! How a product on matrix units is divided into workgroups, subgroups and the adapter's matrices.

use crate::matmul::scales;
use crate::primitives::registers::{Kept, Loads};
use dml_engine::RegisterFile;
use dml_kernel::{DType, MatrixType, matrix};

/// The matrix units for products of a dtype.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// m, n and k of one matrix product.
    pub shape: [u32; 3],
    /// Invocations of a subgroup.
    pub lanes: u32,
    /// Emulation for tests: there are no matrix units, and every invocation computes the whole
    /// matrix.
    pub emulated: bool,
    /// Tiles of subgroups are as small as possible, because the adapter's compiler is slow.
    pub small: bool,
    /// Bytes of an operand's element: 1 or 2.
    pub bytes: u32,
    /// See [`MatrixTile::transposes`].
    pub transposes: bool,
}

/// The tile of one workgroup. Every number is a power of two.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatrixTile {
    /// Rows of the result that a workgroup computes.
    pub m: u32,
    /// Columns of the result that a workgroup computes.
    pub n: u32,
    /// Length along k that is staged in shared memory at a time.
    pub k: u32,
    /// Rows of one subgroup.
    pub subgroup_m: u32,
    /// Columns of one subgroup.
    pub subgroup_n: u32,
    /// The adapter's matrix product: m, n, k.
    pub shape: [u32; 3],
    /// Invocations of a subgroup.
    pub lanes: u32,
    /// The matrices are emulated, for tests.
    pub emulated: bool,
    /// Bytes of an operand's element: 1 or 2.
    pub bytes: u32,
    /// Whether operands that are not contiguous along k in memory are transposed on their way to
    /// shared memory. On AMD's and Intel's units an invocation holds adjacent elements along k: of
    /// other matrices, they load every element by itself. NVIDIA's loads transpose as they go.
    pub transposes: bool,
}

/// Padding after each row of accumulators in shared memory: 32 bytes, the part of a row that
/// NVIDIA's and AMD's units write at a time.
const SUM_GAP: u32 = 8;

impl MatrixTile {
    /// Parses `128x256x32/64x64`: the workgroup's m, n and k, and the subgroup's m and n.
    pub fn parse(text: &str, units: Units) -> Option<MatrixTile> {
        let (size, subgroup) = text.split_once('/')?;
        let numbers = |part: &str| part.split('x').map(|n| n.parse().ok()).collect::<Option<Vec<u32>>>();
        let (size, subgroup) = (numbers(size)?, numbers(subgroup)?);
        let (&[m, n, k], &[subgroup_m, subgroup_n]) = (&size[..], &subgroup[..]) else { return None };
        let Units { shape, lanes, emulated, small: _, bytes, transposes } = units;
        let tile = MatrixTile { m, n, k, subgroup_m, subgroup_n, shape, lanes, emulated, bytes, transposes };
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

    /// Accumulators of one invocation.
    pub const fn sums(&self) -> u32 {
        self.subgroup_m * self.subgroup_n / self.lanes
    }

    /// What an invocation keeps in registers: accumulators, the matrices that are multiplied, and
    /// the next k-tile.
    pub fn kept(&self, registers: Option<RegisterFile>, loads: Loads) -> Kept {
        let rows = (self.subgroup_m + self.subgroup_n) * self.bytes;
        // AMD's compilers load the matrices of all steps of a k-tile first.
        let operands = if registers.is_some_and(|file| file.whole_rows) {
            rows * self.k / 4 / self.shape[0].min(self.shape[1])
        } else {
            rows * self.shape[2] / 4 / self.lanes
        };
        let next = (self.m + self.n) * self.k * self.bytes / 4 / self.threads();
        // Matrix units' operands end with zeros.
        let loads = if loads == Loads::VectorsToEnd { Loads::Vectors } else { loads };
        let loaded = if loads == Loads::Vectors { next } else { next * 4 / self.bytes };
        Kept { bytes: 4, elements: self.sums() + operands + next, loaded: (loaded, loads) }
    }

    /// Upper bound of the loop iterations of one step along k.
    pub fn loop_iterations(&self) -> u32 {
        let ([rows, columns, steps], [m, n, k]) = (self.fragments(), self.shape);
        if self.emulated { steps * (rows * columns * m * n + rows * m.max(k) + columns * n.max(k)) } else { 1 }
    }

    /// Upper bound of the loop iterations of a product of terms with `k` elements.
    pub fn term_iterations(&self, k: u64) -> u64 {
        let ([rows, columns, _], [m, n, _]) = (self.fragments(), self.shape);
        let gathering = if self.emulated { rows * columns * (2 * m * n + m) } else { 0 };
        3 * (k.div_ceil(self.k.into()) + 1) * u64::from(self.loop_iterations() + 1)
            + (k / u64::from(scales::run(k as i64)) + 2) * u64::from(gathering)
    }

    /// Types of the left operand, the right operand and the accumulator.
    pub fn types(&self, operands: DType) -> [MatrixType; 3] {
        matrix::product_types(self.shape, operands, sums(operands))
    }

    /// Elements of a vector of shared memory, to which matrices are aligned: 16 bytes, or 8 if
    /// matrices of bytes are smaller.
    pub fn vector_width(&self) -> u32 {
        if self.bytes == 1 && self.shape.iter().all(|&size| size >= 16) { 16 } else { 8 }
    }

    /// Words of such a vector.
    pub fn words(&self) -> u32 {
        self.vector_width() * self.bytes / 4
    }

    /// Vectors of an operand's tile of `rows` rows, each of `length` contiguous elements. A row has
    /// one vector more than its elements need, so that adjacent rows begin in different banks.
    pub fn vectors(&self, rows: u32, length: u32) -> u32 {
        rows * (length / self.vector_width() + 1)
    }

    /// Vectors of shared memory: for both operands' tiles, or later for accumulators.
    pub fn shared_vectors(&self) -> u32 {
        self.operand_vectors().max(self.exchange_vectors([1, 1]))
    }

    /// Vectors of both operands' tiles, whichever index is contiguous.
    pub fn operand_vectors(&self) -> u32 {
        let operand = |outer: u32| self.vectors(outer, self.k).max(self.vectors(self.k, outer));
        operand(self.m) + operand(self.n)
    }

    /// Vectors of one row of `together` adjacent matrices of accumulators, with padding: rows begin
    /// in different banks, as the invocations of a matrix write several rows at a time.
    pub fn sum_row(&self, together: u32) -> u32 {
        (self.shape[1] * together + SUM_GAP) / self.words()
    }

    /// Vectors in which every subgroup stores `down` by `across` matrices of accumulators.
    pub fn exchange_vectors(&self, [down, across]: [u32; 2]) -> u32 {
        let [m, n] = self.subgroups();
        m * n * down * self.shape[0] * self.sum_row(across)
    }

    /// Matrices of accumulators, vertically and horizontally, that a subgroup stores together: as
    /// many as fit into the operands' memory.
    pub fn accumulators_per_store(&self) -> [u32; 2] {
        let [rows, columns, _] = self.fragments();
        let most = |of: u32, fits: &dyn Fn(u32) -> bool| {
            (0..=of.ilog2()).map(|log| 1 << log).take_while(|&count| fits(count)).last().unwrap_or(1)
        };
        let fits = |together: [u32; 2]| self.exchange_vectors(together) <= self.operand_vectors();
        let across = most(columns, &|across| fits([1, across]));
        [most(rows, &|down| fits([down, across])), across]
    }

    /// Matrices of accumulators of terms that a subgroup stores together, in addition to the
    /// operands' memory.
    pub fn term_accumulators_per_store(&self) -> [u32; 2] {
        [1, self.fragments()[1].min(2)]
    }

    /// Vectors of shared memory for operands in terms, whose accumulators are stored while the
    /// operands' tiles are still in use.
    pub fn vectors_of_terms(&self) -> u32 {
        self.operand_vectors() + self.exchange_vectors(self.term_accumulators_per_store())
    }

    /// Bytes of shared memory.
    pub fn shared_bytes(&self) -> u32 {
        4 * self.words() * self.shared_vectors()
    }

    /// Whether the sizes are consistent.
    pub fn is_valid(&self) -> bool {
        let [m, n, k] = self.shape;
        let all = [self.m, self.n, self.k, self.subgroup_m, self.subgroup_n, m, n, k, self.lanes];
        all.iter().all(|x| x.is_power_of_two())
            && self.subgroup_m <= self.m
            && self.subgroup_n <= self.n
            && m <= self.subgroup_m
            && n <= self.subgroup_n
            && k <= self.k
            // Matrices are aligned to vectors of shared memory.
            && [m, n, k].iter().all(|x| x.is_multiple_of(self.vector_width()))
    }
}

/// The dtype of accumulators for operands of a dtype on matrix units.
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
        let units =
            Units { shape: [16, 16, 16], lanes: 32, emulated: false, small: false, bytes: 2, transposes: false };
        let tile = MatrixTile::parse("128x256x32/64x64", units).expect("it is well formed");
        assert_eq!((tile.threads(), tile.fragments()), (256, [4, 4, 2]));
        assert_eq!(tile.to_string(), "128x256x32/64x64/16x16x16");
        // Both tiles with one vector more in each row: with 48 KiB of shared memory, two workgroups
        // fit.
        assert_eq!(tile.shared_bytes(), 16 * (128 * 5 + 256 * 5));
        for bad in ["", "128x256x32", "128x256x32/8x64", "100x256x32/64x64", "128x256x8/64x64", "32x32x32/64x64"] {
            assert_eq!(MatrixTile::parse(bad, units), None, "{bad}");
        }
    }
}
