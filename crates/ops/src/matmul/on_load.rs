//! Operands that lie in memory as float32 and are multiplied in 16 bits, as autocast has them: rounded as they are read.
//!
//! That saves the pass that would write them in 16 bits, and its memory. But each tile rounds what it reads, so an element is rounded as
//! often as there are tiles side by side: [`choice`] knows what that takes from here.

use super::matrix_tile::MatrixTile;
use super::operand::{Axis, Memory, PatternStrides, Source};
use super::problem::Problem;
use super::select::Limits;
use super::{choice, gemv};
use crate::movement::copy;
use crate::operator::call::{Call, MatmulPrecision};
use crate::operator::error::Result;
use crate::tensor::{Dims, Tensor};
use dml_kernel::DType;

/// How operands are rounded as they are read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rounding {
    /// What either is rounded to, if it is.
    pub operands: [Option<DType>; 2],
    /// The adapter itself converts to f16 (`Capabilities::converts_halves`).
    pub own: bool,
}

impl Rounding {
    /// Nothing is rounded.
    pub const NONE: Rounding = Rounding { operands: [None; 2], own: false };

    /// Whether nothing is.
    pub fn is_none(&self) -> bool {
        self.operands == [None; 2]
    }

    /// What reading an element as float32 and rounding it to a dtype takes, in multiplications of float32. On an H100 twice the bytes and the
    /// registers cost more than the conversion, which is half an instruction (docs/performance.md); by integers it is 16 operations or 6,
    /// of which a unit does half as many.
    fn cost(&self, dtype: DType) -> f64 {
        match dtype {
            DType::BF16 => 18.0,
            _ if self.own => 8.0,
            _ => 38.0,
        }
    }
}

/// Words of operands that an invocation may have on their way from memory while it multiplies others: as many as in the largest tile of
/// halves, which leaves no register. An element that is rounded when it has arrived is a word.
const MOST_ON_THE_WAY: u32 = 64;

/// Whether what a tile has on its way fits into registers.
pub fn fits(tile: &MatrixTile, rounding: Rounding) -> bool {
    if rounding.is_none() {
        return true;
    }
    let [a, b] = rounding.operands.map(|dtype| if dtype.is_some() { 4 } else { tile.bytes });
    (tile.m * a + tile.n * b) * tile.k / 4 <= MOST_ON_THE_WAY * tile.threads()
}

/// The rate of a tile of so many rows and columns that rounds what it reads.
pub fn rate(limits: &Limits, rate: f64, [m, n]: [u32; 2], rounding: Rounding) -> f64 {
    // There a launch takes longer than rounding.
    if limits.software || rounding.is_none() {
        return rate;
    }
    // Of m * n multiplications at each step along k.
    let [a, b] = rounding.operands.map(|dtype| dtype.map_or(0.0, |dtype| rounding.cost(dtype)));
    1.0 / (1.0 / rate + a / f64::from(n) + b / f64::from(m))
}

impl Source {
    /// Its strides and that of the batch, were it written in the order in which it lies and without gaps.
    fn without_gaps(&self, size: [i64; 2]) -> ([i64; 2], i64) {
        let stride = if self.access.axis == Axis::Inner { [size[1], 1] } else { [1, size[0]] };
        (stride, if self.batch == 0 { 0 } else { size[0] * size[1] })
    }

    /// Whether its elements would be read in the same way were they written in 16 bits.
    fn is_read_as_written(&self, size: [i64; 2]) -> bool {
        let Some(dtype) = self.access.rounded else { return true };
        let (stride, batch) = self.without_gaps(size);
        let memory = Memory { address: 0, end: (size[0] * size[1]) as u64 * dtype.bytes(), dtype };
        let written = Source::laid(memory, size, stride, batch);
        self.access.wide == written.access.wide && self.is_in_units(size) == written.is_in_units(size)
    }

    /// Writes it in 16 bits, as one of `batch` matrices of `size`.
    fn write(&self, call: &Call, batch: i64, size: [i64; 2]) -> Result<Source> {
        let PatternStrides::Strided { outer, inner } = self.strides else { return Ok(self.clone()) };
        let (stride, apart) = self.without_gaps(size);
        let sizes = [if self.batch == 0 { 1 } else { batch }, size[0], size[1]];
        let halves = call.empty(self.access.factors(), &[sizes.iter().product()])?;
        let to = halves.as_strided(&sizes, &[apart, stride[0], stride[1]], 0);
        let from = Tensor {
            data: self.memory.address,
            dtype: self.memory.dtype,
            strides: Dims::from_slice(&[self.batch, outer, inner]),
            storage: self.memory.range(),
            ..to.clone()
        };
        copy::device_copy(call, &from, &to)?;
        Ok(Source::laid((&halves).into(), size, stride, apart))
    }
}

impl Problem {
    /// Writes operands in 16 bits that are not to be rounded as they are read.
    pub(super) fn write_operands(&mut self, call: &Call, limits: Limits) -> Result<()> {
        let [_, m, n, k] = self.size;
        // What is read otherwise may be added up in another order.
        let written = [(&self.a, m), (&self.b, n)].map(|(source, outer)| !source.is_read_as_written([outer, k]));
        self.write_some(call, written)?;
        // Of few rows every element is read once.
        if m <= gemv::MAX_ROWS || self.rounds_to() == [None; 2] {
            return Ok(());
        }
        let question = self.question(call, limits, MatmulPrecision::Highest)?;
        let rounded = choice::rounded_on_load(question);
        self.write_some(call, [0, 1].map(|i| rounded[i] != question.rounding.operands[i]))
    }

    /// What its operands are rounded to as they are read.
    pub(super) fn rounds_to(&self) -> [Option<DType>; 2] {
        [&self.a, &self.b].map(|source| source.access.rounded)
    }

    fn write_some(&mut self, call: &Call, which: [bool; 2]) -> Result<()> {
        let [batch, m, n, k] = self.size;
        for (source, outer, which) in [(&mut self.a, m, which[0]), (&mut self.b, n, which[1])] {
            if which {
                *source = source.write(call, batch, [outer, k])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::matrix_select;
    use crate::matmul::matrix_tile::Units;

    const F16: Option<DType> = Some(DType::F16);
    const BF16: Option<DType> = Some(DType::BF16);

    #[test]
    fn short_steps_fit_and_long_ones_of_a_large_tile_do_not() {
        let of = |operands| Rounding { operands, own: true };
        let units = Units { shape: [16; 3], lanes: 32, emulated: false, small: false, bytes: 2 };
        for (tile, _) in matrix_select::tiles(units) {
            assert!(tile.k > 32 || fits(&tile, of([F16, F16])), "{tile}");
        }
        let large = MatrixTile::parse("128x128x64/64x64", units).expect("a tile");
        assert!(!fits(&large, of([F16, None])) && !fits(&large, of([None, F16])));
    }

    #[test]
    fn the_rate_falls_with_what_is_rounded() {
        let of = |operands, own| rate(&Limits::LARGE, 5.7, [128, 256], Rounding { operands, own });
        assert_eq!(of([None; 2], false), 5.7);
        assert!(of([BF16, None], false) < 5.7 && of([F16, None], false) < of([BF16, None], false));
        assert!(of([F16, None], true) > of([BF16, None], false));
        // The right operand is rounded for fewer columns than the left one is for rows.
        assert!(of([None, F16], false) < of([F16, None], false) && of([F16, F16], false) < of([None, F16], false));
    }
}
