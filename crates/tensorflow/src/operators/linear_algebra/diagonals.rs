//! Diagonals of matrices.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{ALL, ALL_AND_I32};
use crate::operators::common::regions::{Region, copy, copy_regions, fill, reshaped};
use crate::require;
use dml_compute::creation::triangle::{Half, copy_half};
use dml_compute::{Dims, Scalar, View};

/// Whether diagonals that are shorter than the longest one are stored at the beginning of their
/// rows, instead of at the end.
#[derive(Copy, Clone)]
struct Alignment {
    above_left: bool,
    below_left: bool,
}

impl Alignment {
    /// That of the second versions of the operators.
    const LEFT: Self = Self { above_left: true, below_left: true };

    /// That of the attribute.
    fn new(attributes: &Attributes) -> Result<Self> {
        let text = attributes.string("align")?;
        match text.split_once('_') {
            Some((above @ ("LEFT" | "RIGHT"), below @ ("LEFT" | "RIGHT"))) => {
                Ok(Self { above_left: above == "LEFT", below_left: below == "LEFT" })
            }
            _ => Err(Error::InvalidArgument(format!("align is {text}"))),
        }
    }
}

/// Consecutive diagonals of matrices.
#[derive(Copy, Clone)]
struct Band {
    /// The lowest diagonal: 0 is the main one, those above are positive.
    low: i64,
    high: i64,
    rows: i64,
    columns: i64,
    /// Elements of the longest diagonal.
    longest: i64,
    alignment: Alignment,
}

/// The first and the last diagonal that a host input names.
fn limits(call: &Call, input: usize) -> Result<[i64; 2]> {
    let given = call.host_ints(input)?;
    let limits = match given[..] {
        [only] => [only, only],
        [low, high] => [low, high],
        _ => {
            return Err(Error::InvalidArgument(format!(
                "diag_index must have only one or two elements, received {} elements.",
                given.len()
            )));
        }
    };
    require!(
        limits[0] <= limits[1],
        "lower_diag_index must not be larger than upper_diag_index: {} > {}",
        limits[0],
        limits[1]
    );
    Ok(limits)
}

impl Band {
    fn new([low, high]: [i64; 2], rows: i64, columns: i64, alignment: Alignment) -> Result<Self> {
        for d in [low, high] {
            require!(
                -rows < d && d < columns || d == 0,
                "lower_diag_index or upper_diag_index is out of bound: {d} It must be between {} and {columns}",
                -rows
            );
        }
        let longest = (rows + high.min(0)).min(columns - low.max(0));
        Ok(Self { low, high, rows, columns, longest, alignment })
    }

    fn count(&self) -> i64 {
        self.high - self.low + 1
    }

    /// The sizes of the diagonals of matrices with these sizes: a row for each diagonal, unless
    /// there is only one.
    fn sizes(&self, matrices: &[i64]) -> Dims {
        let mut sizes = Dims::from_slice(&matrices[..matrices.len() - 2]);
        if self.count() > 1 {
            sizes.push(self.count());
        }
        sizes.push(self.longest);
        sizes
    }

    /// Pairs of a diagonal of the matrices and of its place in a tensor of diagonals, both
    /// `[batch, length]`.
    fn pairs(&self, matrices: &View, diagonals: &View) -> Vec<(View, View)> {
        let batch: i64 = matrices.sizes[..matrices.dim() - 2].iter().product();
        let place = |d: i64| {
            let length = (self.rows + d.min(0)).min(self.columns - d.max(0));
            let first = if d >= 0 { d } else { -d * self.columns };
            let diagonal = matrices.as_strided(&[batch, length], &[self.rows * self.columns, self.columns + 1], first);
            let is_left = d >= 0 && self.alignment.above_left || d <= 0 && self.alignment.below_left;
            let skipped = if is_left { 0 } else { self.longest - length };
            let row = (self.high - d) * self.longest + skipped;
            (diagonal, diagonals.as_strided(&[batch, length], &[self.count() * self.longest, 1], row))
        };
        (self.low..=self.high).map(place).filter(|(diagonal, _)| diagonal.numel() > 0).collect()
    }

    /// Reads the diagonals of matrices.
    fn read(&self, call: &Call, matrices: &View, diagonals: &View) -> Result<()> {
        let pairs = self.pairs(matrices, diagonals).into_iter();
        copy_regions(call, pairs.map(|(from, to)| Region::whole(to, from)).collect())
    }

    /// Writes the diagonals of matrices.
    fn write(&self, call: &Call, diagonals: &View, matrices: &View) -> Result<()> {
        let pairs = self.pairs(matrices, diagonals).into_iter();
        copy_regions(call, pairs.map(|(to, from)| Region::whole(to, from)).collect())
    }
}

fn check_matrices(t: &[i64]) -> Result<()> {
    require!(t.len() >= 2, "input must be at least 2-dim, received shape: {t:?}");
    Ok(())
}

/// `MatrixDiag` and its later versions: matrices of diagonals.
fn matrix_diag(call: &Call, versioned: Option<Alignment>) -> Result<()> {
    let diagonals = call.input(0)?;
    require!(diagonals.dim() >= 1, "diagonal must be at least 1-dim, received shape: {:?}", diagonals.sizes.as_slice());
    let ([low, high], [mut rows, mut columns], padding) = match versioned {
        None => ([0, 0], [-1, -1], Scalar::Int(0)),
        Some(_) => {
            let sizes = [call.host_number(2)?.to_i64(), call.host_number(3)?.to_i64()];
            (limits(call, 1)?, sizes, call.host_number(4)?)
        }
    };
    let count = high - low + 1;
    let lead = diagonals.dim() - if count > 1 { 2 } else { 1 }.min(diagonals.dim());
    require!(
        count == 1 || diagonals.dim() >= 2 && diagonals.sizes[lead] == count,
        "The number of diagonals provided in the input does not match the lower_diag_index and upper_diag_index range."
    );
    let longest = diagonals.sizes[diagonals.dim() - 1];
    let [least_rows, least_columns] = [longest - high.min(0), longest + low.max(0)];
    require!(rows == -1 || rows >= least_rows, "The number of rows is too small.");
    require!(columns == -1 || columns >= least_columns, "The number of columns is too small.");
    if rows == -1 && columns == -1 {
        rows = least_rows.max(least_columns);
        columns = rows;
    }
    rows = if rows == -1 { least_rows } else { rows };
    columns = if columns == -1 { least_columns } else { columns };
    require!(
        rows == least_rows || columns == least_columns,
        "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal."
    );
    let band = Band::new([low, high], rows, columns, versioned.unwrap_or(Alignment::LEFT))?;
    let mut sizes = Dims::from_slice(&diagonals.sizes[..lead]);
    sizes.extend([rows, columns]);
    let out = call.output(0, &sizes)?;
    fill(call, &out, padding)?;
    band.write(call, &diagonals, &out)
}

/// `MatrixDiagPart` and its later versions: diagonals of matrices.
fn matrix_diag_part(call: &Call, versioned: Option<Alignment>) -> Result<()> {
    let matrices = call.input(0)?;
    check_matrices(&matrices.sizes)?;
    let (limits, padding) = match versioned {
        None => ([0, 0], Scalar::Int(0)),
        Some(_) => (limits(call, 1)?, call.host_number(2)?),
    };
    let rank = matrices.dim();
    let (rows, columns) = (matrices.sizes[rank - 2], matrices.sizes[rank - 1]);
    let band = Band::new(limits, rows, columns, versioned.unwrap_or(Alignment::LEFT))?;
    let out = call.output(0, &band.sizes(&matrices.sizes))?;
    if band.count() > 1 {
        fill(call, &out, padding)?;
    }
    band.read(call, &matrices, &out)
}

/// `MatrixSetDiag` and its later versions: matrices with other diagonals.
fn matrix_set_diag(call: &Call, versioned: Option<Alignment>) -> Result<()> {
    let (matrices, diagonals) = (call.input(0)?, call.input(1)?);
    check_matrices(&matrices.sizes)?;
    let limits = if versioned.is_some() { limits(call, 2)? } else { [0, 0] };
    let rank = matrices.dim();
    let (rows, columns) = (matrices.sizes[rank - 2], matrices.sizes[rank - 1]);
    let band = Band::new(limits, rows, columns, versioned.unwrap_or(Alignment::LEFT))?;
    let expected = band.sizes(&matrices.sizes);
    require!(
        diagonals.sizes == expected,
        "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not equal to the \
         longests diagonal in range [lower_diag_index:upper_diag_index].\nInput shape: {:?}\nDiagonal shape: {:?}\n\
         Expected diagonal shape: {:?}",
        matrices.sizes.as_slice(),
        diagonals.sizes.as_slice(),
        expected.as_slice()
    );
    let out = call.output_over(&[0], 0, &matrices.sizes)?;
    if out.data != matrices.data {
        copy(call, &matrices, &out)?;
    }
    band.write(call, &diagonals, &out)
}

/// `MatrixBandPart`: matrices with zeros outside of a band.
fn matrix_band_part(call: &Call) -> Result<()> {
    let matrices = call.input(0)?;
    let [below, above] = [call.host_number(1)?.to_i64(), call.host_number(2)?.to_i64()];
    check_matrices(&matrices.sizes)?;
    let rank = matrices.dim();
    let (rows, columns) = (matrices.sizes[rank - 2], matrices.sizes[rank - 1]);
    require!(below <= rows, "num_lower must be negative or less or equal to number of rows ({rows}) got: {below}");
    require!(
        above <= columns,
        "num_upper must be negative or less or equal to number of columns ({columns}) got: {above}"
    );
    let cuts: Vec<(i64, Half)> = [(-below, Half::Upper, below >= 0), (above, Half::Lower, above >= 0)]
        .into_iter()
        .filter_map(|(diagonal, half, is_cut)| is_cut.then_some((diagonal, half)))
        .collect();
    if cuts.is_empty() || matrices.numel() == 0 {
        return call.pass_on(0, 0, &matrices.sizes);
    }
    let out = call.output(0, &matrices.sizes)?;
    let mut from = &matrices;
    for (diagonal, half) in cuts {
        copy_half(&call.cx(), from, &out, diagonal, half)?;
        from = &out;
    }
    Ok(())
}

/// `Diag`: a tensor of twice the rank with the input as its diagonal.
fn diag(call: &Call) -> Result<()> {
    let input = call.input(0)?;
    require!(input.dim() >= 1, "Input must be at least rank 1, got {}", input.dim());
    let sizes: Dims = input.sizes.iter().chain(&input.sizes).copied().collect();
    let (out, n) = (call.output(0, &sizes)?, input.numel());
    fill(call, &out, Scalar::Int(0))?;
    copy(call, &reshaped(&input, &[n]), &out.as_strided(&[n], &[n + 1], 0))
}

/// `DiagPart`.
fn diag_part(call: &Call) -> Result<()> {
    let input = call.input(0)?;
    let half = input.dim() / 2;
    let fits = input.dim() >= 2 && input.dim() % 2 == 0 && input.sizes[..half] == input.sizes[half..];
    require!(
        fits,
        "The rank of the tensor should be even and positive, and its halves the same: got shape {:?}",
        input.sizes.as_slice()
    );
    let out = call.output(0, &input.sizes[..half])?;
    let n = out.numel();
    copy(call, &input.as_strided(&[n], &[n + 1], 0), &reshaped(&out, &[n]))
}

/// What an operator does with its [`Alignment`], if it has a band.
type Kernel = fn(&Call, Option<Alignment>) -> Result<()>;

/// The versions of an operator: of the main diagonal, of a band, of a band with an alignment; and
/// the old name of the first.
fn versions(names: [&'static str; 4], kernel: Kernel, host: &'static [&'static str]) -> [Operator; 4] {
    let aligned = Operator::new(names[2], move |attributes: &Attributes| {
        let alignment = Alignment::new(attributes)?;
        Ok(move |call: &Call| kernel(call, Some(alignment)))
    });
    [
        Operator::plain(names[0], move |call: &Call| kernel(call, None)).of("T", ALL),
        Operator::plain(names[1], move |call: &Call| kernel(call, Some(Alignment::LEFT))).of("T", ALL).on_host(host),
        aligned.of("T", ALL).on_host(host),
        Operator::plain(names[3], move |call: &Call| kernel(call, None)).of("T", ALL),
    ]
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let band_part = |name| Operator::plain(name, matrix_band_part).of("T", ALL).on_host(&["num_lower", "num_upper"]);
    let mut all = vec![
        band_part("MatrixBandPart"),
        band_part("BatchMatrixBandPart"),
        Operator::plain("Diag", diag).of("T", ALL_AND_I32),
        Operator::plain("DiagPart", diag_part).of("T", ALL_AND_I32),
    ];
    all.extend(versions(
        ["MatrixDiag", "MatrixDiagV2", "MatrixDiagV3", "BatchMatrixDiag"],
        matrix_diag,
        &["k", "num_rows", "num_cols", "padding_value"],
    ));
    all.extend(versions(
        ["MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "BatchMatrixDiagPart"],
        matrix_diag_part,
        &["k", "padding_value"],
    ));
    all.extend(versions(
        ["MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", "BatchMatrixSetDiag"],
        matrix_set_diag,
        &["k"],
    ));
    all
}
