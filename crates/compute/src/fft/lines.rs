//! Transforms of all lines along one dimension.

use crate::context::Context;
use crate::error::Result;
use crate::fft::lengths::{Limits, Plan, Stages};
use crate::fft::{chirp, pass};
use crate::view::layout::{dense_strides, order};
use crate::view::{Dims, View};
use dml_engine::AddressRange;
use dml_kernel::DType;
use smallvec::SmallVec;

/// What a line's numbers are in memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Load {
    /// Complex numbers.
    Complex,
    /// Real ones.
    Real,
    /// Complex ones up to the middle; the others are their conjugates.
    Half,
}

/// What of a line's results goes to memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Store {
    /// All.
    Complex,
    /// The real parts.
    Real,
    /// Of real input, those up to the middle.
    Half,
    /// Of real input, all.
    Whole,
}

/// Input or output of lines.
#[derive(Clone, Debug)]
pub struct Side {
    /// The bytes.
    pub range: AddressRange,
    /// From one line to the next in each dimension, in elements.
    pub strides: Dims,
    /// From one number of a line to the next.
    pub step: i64,
}

/// Where the numbers of a pass's lines are in the whole transform: number `i` of a line is at
/// `line + i step`.
#[derive(Clone, Debug)]
pub struct Position {
    /// What each dimension of lines adds.
    pub strides: Dims,
    /// See above.
    pub step: i64,
    /// Numbers of the whole transform.
    pub total: i64,
    /// Of real input, the length of the first pass, which kept half of its results.
    pub rows: i64,
}

impl Position {
    /// Of lines that are whole transforms of `length` numbers, in so many dimensions.
    fn whole(dimensions: usize, length: i64) -> Position {
        Position { strides: Dims::from_elem(0, dimensions), step: 1, total: length, rows: 1 }
    }
}

/// Lines to be transformed.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Of the numbers' parts.
    pub part: DType,
    /// Numbers of a line.
    pub length: i64,
    /// Results of a line that are stored, from the first.
    pub kept: i64,
    /// How many lines there are in each dimension.
    pub sizes: Dims,
    /// Where they come from.
    pub input: Side,
    /// What they are there.
    pub load: Load,
    /// Where they go; the input itself, lying alike, or apart from it.
    pub output: Side,
    /// What they are there.
    pub store: Store,
    /// For halves of spectra, and passes of a longer transform.
    pub position: Position,
    /// With the other sign of the exponent.
    pub inverse: bool,
    /// Factor of the results.
    pub scale: f64,
}

/// The dimensions of a tensor but `dim`, as a side of lines along that.
fn side(t: &View, dim: usize) -> Side {
    let strides = (0..t.dim()).filter(|&d| d != dim).map(|d| t.strides[d]).collect();
    Side { range: t.range(), strides, step: t.strides[dim] }
}

impl Lines {
    /// Lines of `length` numbers along `dim` of `input`, whose sizes are `output`'s in the other
    /// dimensions.
    pub fn along(dim: usize, length: i64, (input, load): (&View, Load), (output, store): (&View, Store)) -> Lines {
        let sizes: Dims = (0..output.dim()).filter(|&d| d != dim).map(|d| output.sizes[d]).collect();
        let position = Position::whole(sizes.len(), length);
        Lines {
            part: input.dtype.real(),
            length,
            kept: output.sizes[dim],
            sizes,
            input: side(input, dim),
            load,
            output: side(output, dim),
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

    /// The order in which lines are walked, fastest dimension first: neighbours in memory where a
    /// line's own numbers are none.
    pub fn order(&self) -> SmallVec<[usize; 6]> {
        let places = |side: &Side| -> Dims {
            let virtual_stride = |(&stride, &position): (&i64, &i64)| {
                if stride == 0 { position * side.step } else { stride }
            };
            side.strides.iter().zip(&self.position.strides).map(virtual_stride).collect()
        };
        let (input, output) = (places(&self.input), places(&self.output));
        let both = if self.input.step == 1 { [&output[..], &input[..]] } else { [&input[..], &output[..]] };
        order(&self.sizes, &both)
    }

    /// Transforms them.
    ///
    /// # Errors
    /// [`Error::NotImplemented`](crate::Error) of lines of 2^30 numbers and more, depending on the
    /// length.
    pub fn transform(&self, cx: &Context) -> Result<()> {
        if self.count() == 0 {
            return Ok(());
        }
        let plan = Limits::of(cx.device.info(), self.part).plan(self.length);
        check!(plan.is_some(), TooLarge, "{}: {} numbers are too many for dml", cx.name, self.length);
        match plan.as_deref() {
            Some(Plan::Passes(passes)) => self.in_passes(cx, passes),
            Some(Plan::Chirp(length)) => chirp::transform(cx, self, *length),
            None => Ok(()),
        }
    }

    /// A transform of length `n m` is one of length `n` over every `m`-th number, results turned,
    /// and one of length `m` of each row of results. What is known of spectra of real numbers holds
    /// in between: of a real input's rows the latter half are conjugates of the former, and the
    /// rows of half a spectrum are halves.
    fn in_passes(&self, cx: &Context, passes: &[Stages]) -> Result<()> {
        let [first, others @ ..] = passes else { return Ok(()) };
        if others.is_empty() {
            return pass::run(cx, &self.simplified(), first, None);
        }
        let (n, m) = (first.length, self.length / first.length);
        let real = self.load == Load::Real;
        let rows = if real { n / 2 + 1 } else { n };
        let columns = if self.load == Load::Half { m / 2 + 1 } else { m };
        let with = |dims: &Dims, last: &[i64]| -> Dims { dims.iter().chain(last).copied().collect() };

        // Between the passes numbers lie in the order of the input.
        let sizes = with(&self.sizes, &[rows, columns]);
        let places = with(&self.input.strides, &[self.input.step * m, self.input.step]);
        let strides = dense_strides(&sizes, &order(&sizes, &[&places]));
        let between = cx.empty_strided(self.part.complex(), &sizes, &strides)?;
        let lines = self.sizes.len();
        let between_strides = |last: usize| with(&Dims::from_slice(&strides[..lines]), &[strides[last]]);

        let of_columns = if self.load == Load::Half { 0 } else { self.input.step };
        let of_input = Lines {
            length: n,
            kept: rows,
            sizes: with(&self.sizes, &[columns]),
            input: Side {
                range: self.input.range,
                strides: with(&self.input.strides, &[of_columns]),
                step: if self.load == Load::Half { self.input.step } else { self.input.step * m },
            },
            output: Side { range: between.range(), strides: between_strides(lines + 1), step: strides[lines] },
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
        pass::run(cx, &of_input, first, Some(self.length))?;

        let spectrum = matches!(self.store, Store::Half | Store::Whole);
        let row_step = if spectrum { 0 } else { self.output.step };
        let of_results = Position {
            strides: with(&self.position.strides, &[self.position.step]),
            step: self.position.step * n,
            total: self.position.total,
            rows: if real { n } else { self.position.rows },
        };
        let of_rows = Lines {
            length: m,
            kept: m,
            sizes: with(&self.sizes, &[rows]),
            input: Side { range: between.range(), strides: between_strides(lines), step: strides[lines + 1] },
            load: if real { Load::Complex } else { self.load },
            output: Side {
                range: self.output.range,
                strides: with(&self.output.strides, &[row_step]),
                step: if spectrum { self.output.step } else { self.output.step * n },
            },
            position: if self.load == Load::Half { Position::whole(lines + 1, m) } else { of_results },
            ..self.clone()
        };
        of_rows.in_passes(cx, others)
    }

    /// A whole line in one pass needs no positions for the results of real input.
    fn simplified(&self) -> Lines {
        let whole = self.position.step == 1 && matches!(self.store, Store::Half | Store::Whole);
        Lines { store: if whole { Store::Complex } else { self.store }, ..self.clone() }
    }
}
