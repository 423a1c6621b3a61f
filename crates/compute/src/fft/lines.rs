//! Transforms of all lines along one dimension.

use crate::context::Context;
use crate::error::Result;
use crate::fft::lengths::{Limits, Plan, Stages};
use crate::fft::{chirp, radix_kernel};
use crate::view::layout::{dense_strides, order};
use crate::view::{Dims, View};
use dml_engine::AddressRange;
use dml_kernel::DType;
use smallvec::SmallVec;

/// The kind of numbers in a line's input.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Load {
    /// Complex numbers.
    Complex,
    /// Real numbers.
    Real,
    /// The first half of a Hermitian spectrum: complex numbers up to the middle. The others are
    /// their conjugates.
    HalfSpectrum,
}

/// The results of a line that are stored.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Store {
    /// All results.
    Complex,
    /// The real parts.
    Real,
    /// For real input, the first half of the spectrum, up to the middle.
    HalfSpectrum,
    /// For real input, the whole spectrum.
    FullSpectrum,
}

/// Input or output of lines.
#[derive(Clone, Debug)]
pub struct LineTensor {
    /// Its memory.
    pub range: AddressRange,
    /// Strides between lines in each dimension, in elements.
    pub strides: Dims,
    /// Stride within a line.
    pub step: i64,
}

/// The position of a pass's lines in the whole transform: number `i` of a line is at
/// `line + i * step`.
#[derive(Clone, Debug)]
pub struct Position {
    /// The stride of `line` in each dimension of lines.
    pub strides: Dims,
    /// The stride within a line.
    pub step: i64,
    /// Length of the whole transform.
    pub total: i64,
    /// For real input, the length of the first pass, of whose results half was stored.
    pub rows: i64,
}

impl Position {
    /// The position of lines that are whole transforms of `length` numbers, in `dimensions`
    /// dimensions.
    fn whole(dimensions: usize, length: i64) -> Position {
        Position { strides: Dims::from_elem(0, dimensions), step: 1, total: length, rows: 1 }
    }
}

/// Lines to transform.
#[derive(Clone, Debug)]
pub struct Lines {
    /// The dtype of the numbers' real and imaginary parts.
    pub real_dtype: DType,
    /// Length of a line.
    pub length: i64,
    /// Number of results of a line that are stored, from the first on.
    pub stored: i64,
    /// Number of lines in each dimension.
    pub sizes: Dims,
    /// The input.
    pub input: LineTensor,
    /// The kind of numbers in the input.
    pub load: Load,
    /// The output. It is the input itself with the same strides, or does not overlap it.
    pub output: LineTensor,
    /// The results that are stored.
    pub store: Store,
    /// Positions in the whole transform, for halves of spectra and for passes of a longer
    /// transform.
    pub position: Position,
    /// Inverse transform: the exponent has the other sign.
    pub inverse: bool,
    /// Factor of the results.
    pub scale: f64,
}

/// A tensor as lines along dimension `dim`.
fn line_tensor(t: &View, dim: usize) -> LineTensor {
    let strides = (0..t.dim()).filter(|&d| d != dim).map(|d| t.strides[d]).collect();
    LineTensor { range: t.range(), strides, step: t.strides[dim] }
}

impl Lines {
    /// Lines of `length` numbers along `dim` of `input`. The sizes in the other dimensions are
    /// those of `output`.
    pub fn along(dim: usize, length: i64, (input, load): (&View, Load), (output, store): (&View, Store)) -> Lines {
        let sizes: Dims = (0..output.dim()).filter(|&d| d != dim).map(|d| output.sizes[d]).collect();
        let position = Position::whole(sizes.len(), length);
        Lines {
            real_dtype: input.dtype.real(),
            length,
            stored: output.sizes[dim],
            sizes,
            input: line_tensor(input, dim),
            load,
            output: line_tensor(output, dim),
            store,
            position,
            inverse: false,
            scale: 1.0,
        }
    }

    /// The number of lines.
    pub fn count(&self) -> i64 {
        self.sizes.iter().product()
    }

    /// The order of lines, fastest dimension first: neighbouring lines are adjacent in memory if a
    /// line's own numbers are not.
    pub fn order(&self) -> SmallVec<[usize; 6]> {
        let line_strides = |side: &LineTensor| -> Dims {
            let virtual_stride = |(&stride, &position): (&i64, &i64)| {
                if stride == 0 { position * side.step } else { stride }
            };
            side.strides.iter().zip(&self.position.strides).map(virtual_stride).collect()
        };
        let (input, output) = (line_strides(&self.input), line_strides(&self.output));
        let both = if self.input.step == 1 { [&output[..], &input[..]] } else { [&input[..], &output[..]] };
        order(&self.sizes, &both)
    }

    /// Transforms the lines.
    ///
    /// # Errors
    /// [`Error::NotImplemented`](crate::Error) for lines of 2^30 numbers and more, depending on the
    /// length.
    pub fn transform(&self, cx: &Context) -> Result<()> {
        if self.count() == 0 {
            return Ok(());
        }
        let limits = Limits::of(cx.device.info(), self.real_dtype);
        let run = |cx: &Context, limits: Limits| self.within(cx, &limits);
        let smaller = |limits: Limits| limits.smaller().filter(|smaller| smaller.plan(self.length).is_some());
        cx.run_accepted(limits, smaller, run)
    }

    /// Transforms the lines by kernels within these limits.
    fn within(&self, cx: &Context, limits: &Limits) -> Result<()> {
        let plan = limits.plan(self.length);
        check!(plan.is_some(), TooLarge, "{}: {} numbers are too many for dml", cx.name, self.length);
        match plan.as_deref() {
            Some(Plan::Passes(passes)) => self.in_passes(cx, limits, passes),
            Some(Plan::Chirp(length)) => chirp::transform(cx, self, *length),
            None => Ok(()),
        }
    }

    /// A transform of length `n m` is a transform of length `n` over every `m`-th number, times
    /// twiddle factors, and then one of length `m` over each row of results. The symmetry of real
    /// transforms is used in between: with real input, the second half of the rows are conjugates
    /// of the first; with half a spectrum as input, the rows are half spectra.
    fn in_passes(&self, cx: &Context, limits: &Limits, passes: &[Stages]) -> Result<()> {
        let [first, others @ ..] = passes else { return Ok(()) };
        if others.is_empty() {
            return radix_kernel::run(cx, limits, &self.simplified(), first, None);
        }
        let (n, m) = (first.length, self.length / first.length);
        let real = self.load == Load::Real;
        let rows = if real { n / 2 + 1 } else { n };
        let columns = if self.load == Load::HalfSpectrum { m / 2 + 1 } else { m };
        let with = |dims: &Dims, last: &[i64]| -> Dims { dims.iter().chain(last).copied().collect() };

        // The intermediate results are in the memory order of the input.
        let sizes = with(&self.sizes, &[rows, columns]);
        let input_strides = with(&self.input.strides, &[self.input.step * m, self.input.step]);
        let strides = dense_strides(&sizes, &order(&sizes, &[&input_strides]));
        let between = cx.empty_strided(self.real_dtype.complex(), &sizes, &strides)?;
        let lines = self.sizes.len();
        let between_strides = |last: usize| with(&Dims::from_slice(&strides[..lines]), &[strides[last]]);

        let of_columns = if self.load == Load::HalfSpectrum { 0 } else { self.input.step };
        let of_input = Lines {
            length: n,
            stored: rows,
            sizes: with(&self.sizes, &[columns]),
            input: LineTensor {
                range: self.input.range,
                strides: with(&self.input.strides, &[of_columns]),
                step: if self.load == Load::HalfSpectrum { self.input.step } else { self.input.step * m },
            },
            output: LineTensor { range: between.range(), strides: between_strides(lines + 1), step: strides[lines] },
            store: Store::Complex,
            position: Position {
                strides: with(&Dims::from_elem(0, lines), &[1]),
                step: m,
                total: self.length,
                rows: 1,
            },
            scale: 1.0,
            ..self.clone()
        };
        radix_kernel::run(cx, limits, &of_input, first, Some(self.length))?;

        let spectrum = matches!(self.store, Store::HalfSpectrum | Store::FullSpectrum);
        let row_step = if spectrum { 0 } else { self.output.step };
        let of_results = Position {
            strides: with(&self.position.strides, &[self.position.step]),
            step: self.position.step * n,
            total: self.position.total,
            rows: if real { n } else { self.position.rows },
        };
        let of_rows = Lines {
            length: m,
            stored: m,
            sizes: with(&self.sizes, &[rows]),
            input: LineTensor { range: between.range(), strides: between_strides(lines), step: strides[lines + 1] },
            load: if real { Load::Complex } else { self.load },
            output: LineTensor {
                range: self.output.range,
                strides: with(&self.output.strides, &[row_step]),
                step: if spectrum { self.output.step } else { self.output.step * n },
            },
            position: if self.load == Load::HalfSpectrum { Position::whole(lines + 1, m) } else { of_results },
            ..self.clone()
        };
        of_rows.in_passes(cx, limits, others)
    }

    /// Without positions if whole lines of real input are transformed in one pass.
    fn simplified(&self) -> Lines {
        let whole = self.position.step == 1 && matches!(self.store, Store::HalfSpectrum | Store::FullSpectrum);
        Lines { store: if whole { Store::Complex } else { self.store }, ..self.clone() }
    }
}
