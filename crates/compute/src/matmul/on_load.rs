//! Operands that are float32 in memory and are multiplied in 16 bits, as under autocast: rounded on
//! load.
//!
//! This saves the pass that would write them in 16 bits, and its memory. But each tile rounds what
//! it loads, so an element is rounded once for each tile along the other index: [`choice`] asks
//! [`rounding`](super::rounding) for the cost.

use crate::context::{Context, MatmulPrecision};
use crate::error::Result;
use crate::matmul::operand::{Axis, Memory, PatternStrides, Source};
use crate::matmul::problem::Problem;
use crate::matmul::select::Limits;
use crate::matmul::{choice, gemv};
use crate::movement::copy;
use crate::view::{Dims, View};
use dml_kernel::DType;

impl Source {
    /// The operand's strides and its batch stride after it is copied densely in its memory order.
    fn without_gaps(&self, size: [i64; 2]) -> ([i64; 2], i64) {
        let stride = if self.access.axis == Axis::Inner { [size[1], 1] } else { [1, size[0]] };
        (stride, if self.batch == 0 { 0 } else { size[0] * size[1] })
    }

    /// Whether the elements would be read in the same way if they were stored in 16 bits.
    fn has_same_access_in_16_bits(&self, size: [i64; 2]) -> bool {
        let Some(dtype) = self.access.rounds_to else { return true };
        let (stride, batch) = self.without_gaps(size);
        let memory = Memory { address: 0, end: (size[0] * size[1]) as u64 * dtype.bytes(), dtype };
        let written = Source::of_memory(memory, size, stride, batch);
        self.access.wide == written.access.wide && self.has_vector_loads(size) == written.has_vector_loads(size)
    }

    /// Writes the operand in 16 bits, as one of `batch` matrices of `size`.
    fn write(&self, cx: &Context, batch: i64, size: [i64; 2]) -> Result<Source> {
        let PatternStrides::Strided { outer, inner } = self.strides else { return Ok(self.clone()) };
        let (stride, apart) = self.without_gaps(size);
        let sizes = [if self.batch == 0 { 1 } else { batch }, size[0], size[1]];
        let halves = cx.empty(self.access.factors(), &[sizes.iter().product()])?;
        let to = halves.as_strided(&sizes, &[apart, stride[0], stride[1]], 0);
        let from = View {
            data: self.memory.address,
            dtype: self.memory.dtype,
            strides: Dims::from_slice(&[self.batch, outer, inner]),
            storage: self.memory.range(),
            ..to.clone()
        };
        copy::device_copy(cx, &from, &to)?;
        Ok(Source::of_memory((&halves).into(), size, stride, apart))
    }
}

impl Problem {
    /// Writes those operands in 16 bits that are not to be rounded on load.
    pub fn write_operands(&mut self, cx: &Context, limits: Limits) -> Result<()> {
        let [_, m, n, k] = self.size;
        // An operand that is read differently may be added up in another order.
        let written =
            [(&self.a, m), (&self.b, n)].map(|(source, outer)| !source.has_same_access_in_16_bits([outer, k]));
        self.write_some(cx, written)?;
        // With few rows every element is read only once.
        if m <= gemv::MAX_ROWS || self.rounds_to() == [None; 2] {
            return Ok(());
        }
        let choice_key = self.choice_key(cx, limits, MatmulPrecision::Highest)?;
        let rounded = choice::rounded_on_load(choice_key);
        self.write_some(cx, [0, 1].map(|i| rounded[i] != choice_key.rounding.operands[i]))
    }

    /// The dtypes to which the operands are rounded on load.
    pub fn rounds_to(&self) -> [Option<DType>; 2] {
        [&self.a, &self.b].map(|source| source.access.rounds_to)
    }

    fn write_some(&mut self, cx: &Context, which: [bool; 2]) -> Result<()> {
        let [batch, m, n, k] = self.size;
        for (source, outer, which) in [(&mut self.a, m, which[0]), (&mut self.b, n, which[1])] {
            if which {
                *source = source.write(cx, batch, [outer, k])?;
            }
        }
        Ok(())
    }
}
