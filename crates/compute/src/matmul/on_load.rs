//! Operands that lie in memory as float32 and are multiplied in 16 bits, as autocast has them:
//! rounded as they are read.
//!
//! That saves the pass that would write them in 16 bits, and its memory. But each tile rounds what
//! it reads, so an element is rounded as often as there are tiles side by side: [`choice`] asks
//! [`rounding`](super::rounding) what that takes.

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
    /// Its strides and that of the batch, were it written in the order in which it lies and without
    /// gaps.
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
        Ok(Source::laid((&halves).into(), size, stride, apart))
    }
}

impl Problem {
    /// Writes operands in 16 bits that are not to be rounded as they are read.
    pub fn write_operands(&mut self, cx: &Context, limits: Limits) -> Result<()> {
        let [_, m, n, k] = self.size;
        // What is read otherwise may be added up in another order.
        let written = [(&self.a, m), (&self.b, n)].map(|(source, outer)| !source.is_read_as_written([outer, k]));
        self.write_some(cx, written)?;
        // Of few rows every element is read once.
        if m <= gemv::MAX_ROWS || self.rounds_to() == [None; 2] {
            return Ok(());
        }
        let question = self.question(cx, limits, MatmulPrecision::Highest)?;
        let rounded = choice::rounded_on_load(question);
        self.write_some(cx, [0, 1].map(|i| rounded[i] != question.rounding.operands[i]))
    }

    /// What its operands are rounded to as they are read.
    pub fn rounds_to(&self) -> [Option<DType>; 2] {
        [&self.a, &self.b].map(|source| source.access.rounded)
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
