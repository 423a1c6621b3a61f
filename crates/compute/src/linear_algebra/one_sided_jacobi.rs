//! Jacobi's one-sided method: rotations that make the columns of matrices orthogonal.
//!
//! Hestenes, "Inversion of matrices by biorthogonalization and related results", 1958. Columns are
//! processed in blocks, as in Bečka, Okša, Vajteršic, "Dynamic ordering for a parallel block-Jacobi
//! SVD algorithm", 2002, but in a fixed order: a round makes the columns of disjoint pairs of
//! blocks orthogonal, and a sweep is rounds in which every pair meets. Small matrices are one pair,
//! and every launch processes the whole batch.
//!
//! Each of the many rotations rounds. So when the columns are nearly orthogonal, the product of the
//! rotations is orthogonalised by a [step of Newton's method](super::orthogonal), and the columns
//! are recomputed from it; the few small rotations that follow add little rounding.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::linear_algebra::block_pair::{self, BlockPair, BlockPairArguments};
use crate::linear_algebra::jacobi;
use crate::linear_algebra::matrices::{self, Update, device_copy, fill_with, part};
use crate::linear_algebra::orthogonal::polish;
use crate::linear_algebra::rotate_columns::{RotateColumns, RotateColumnsArguments};
use crate::movement::copy::read_numbers;
use crate::primitives::loops::check_loop_iterations;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::DType;

/// Sweeps after which the method has failed; about ten are needed for the largest matrices.
const MAX_SWEEPS: usize = 60;

/// Sweeps over the columns of one pair of blocks.
const INNER_SWEEPS: u32 = 4;

/// Maximum sweeps after the columns were recomputed; one is enough unless singular values are close
/// to each other.
const LAST_SWEEPS: usize = 4;

/// The thresholds of a sweep.
#[derive(Copy, Clone)]
struct Thresholds {
    /// The cosine of two columns above which they are rotated, and that above which another sweep
    /// is needed.
    least: f64,
    counted: f64,
    /// Sweeps over the columns of one pair of blocks.
    inner: u32,
    /// Longer columns come first.
    ordered: bool,
}

/// Matrices whose columns are being made orthogonal.
pub struct Columns<'a, 'c> {
    cx: &'a Context<'c>,
    /// The original matrices, `[batch, n, n]`.
    x: &'a View,
    /// The columns, and below them the product of all rotations.
    all: View,
    with_rotations: bool,
    /// Columns of a block, and number of blocks.
    width: i64,
    blocks: i64,
    /// The rotations of a round's pairs of blocks.
    block_rotations: View,
    permutation: View,
    rotated_flags: View,
    /// Two flags: whether another sweep is needed; and the caller's, for numbers that are not
    /// finite.
    flags: View,
}

impl<'a, 'c> Columns<'a, 'c> {
    /// For `x`, `[batch, n, n]` with at least one element, each matrix of a norm of about one.
    /// `flags` are two numbers (int32): the method fails if the second is not 0. Both are read back
    /// after each sweep.
    pub fn new(cx: &'a Context<'c>, x: &'a View, flags: &View, with_rotations: bool) -> Result<Self> {
        let (batch, n) = (x.sizes[0], x.sizes[1]);
        check_loop_iterations(cx, n + n / 16 + 4_000)?;
        let width = (n as u64).div_ceil(2).min(u64::from(block_pair::columns(x.dtype) / 2)) as i64;
        let blocks = (n as u64).div_ceil(width as u64) as i64;
        let slots = batch * jacobi::pairs(blocks);
        let size = 2 * width;
        let rows = if with_rotations { 2 * n } else { n };
        let all = matrices::empty(cx, x.dtype, &[batch, rows, n])?;
        device_copy(cx, x, &part(&all, (0, n), (0, n)))?;
        let columns = Columns {
            cx,
            x,
            all,
            with_rotations,
            width,
            blocks,
            block_rotations: cx.empty(x.dtype, &[slots, size * size])?,
            permutation: cx.empty(DType::I32, &[slots, size])?,
            rotated_flags: cx.empty(DType::I32, &[slots])?,
            flags: flags.clone(),
        };
        if with_rotations {
            device_copy(cx, &matrices::identity(cx, x.dtype, &[batch, n, n])?, &columns.rotations())?;
        }
        Ok(columns)
    }

    /// The columns, `[batch, n, n]`.
    pub fn columns(&self) -> View {
        part(&self.all, (0, self.x.sizes[1]), (0, self.x.sizes[2]))
    }

    /// The product of the rotations, `[batch, n, n]`: the columns are `x` times this.
    pub fn rotations(&self) -> View {
        let n = self.x.sizes[1];
        part(&self.all, (n, 2 * n), (0, n))
    }

    /// Sets the first rotation to `v`, `[batch, n, n]`, before any other.
    pub fn rotate(&self, v: &View) -> Result<()> {
        if self.with_rotations {
            device_copy(self.cx, v, &self.rotations())?;
        }
        matrices::multiply(self.cx, [self.x, v], &self.columns(), Update::Overwrite)
    }

    /// Makes the columns orthogonal.
    pub fn orthogonalise(&self) -> Result<()> {
        let n = self.x.sizes[1] as f64;
        let epsilon = epsilon(self.x.dtype);
        // Approximate rounding error of inner products of columns.
        let noise = epsilon / 2.0 * n.sqrt();
        let coarse = Thresholds { least: 30.0 * noise, counted: 30.0 * noise, inner: INNER_SWEEPS, ordered: true };
        let mut sweeps = 0;
        while self.sweep(coarse)? {
            sweeps += 1;
            if sweeps == MAX_SWEEPS {
                return Err(Error::NoKernel(format!("{}: no convergence", self.cx.name)));
            }
        }
        if self.with_rotations {
            self.renew()?;
        }
        let fine = Thresholds { least: epsilon / 32.0, counted: noise, inner: 1, ordered: false };
        for _ in 0..LAST_SWEEPS {
            if !self.sweep(fine)? {
                break;
            }
        }
        if self.with_rotations { self.renew() } else { Ok(()) }
    }

    /// Rotates every pair of blocks once. Returns whether another sweep is needed.
    fn sweep(&self, aim: Thresholds) -> Result<bool> {
        let (cx, x) = (self.cx, self.columns());
        let [batch, rows, n] = [x.sizes[0], self.all.sizes[1], x.sizes[2]];
        let left = self.flags.narrow(0, 0, 1);
        fill_with(cx, &left, Number::Int(0))?;
        let pairs = jacobi::pairs(self.blocks);
        let index = matrices::index_of(&[&self.all, &self.block_rotations]);
        let rotate_columns = RotateColumns::here(cx, x.dtype, index);
        let tiles = (rows as u64).div_ceil(u64::from(rotate_columns.rows())) as i64;
        let (width, blocks) = (self.width as u32, self.blocks as u32);
        for round in 0..jacobi::rounds(self.blocks) {
            let arguments = BlockPairArguments {
                x: &x,
                strides: &x,
                rotations: &self.block_rotations,
                permutation: &self.permutation,
                rotated: &self.rotated_flags,
                left: &left,
                batch: batch as u32,
                rows: n as u32,
                n: n as u32,
                width,
                blocks,
                round: round as u32,
                least: Number::Double(aim.least),
                counted: Number::Double(aim.counted),
                negligible: Number::Double(epsilon(x.dtype) / 64.0),
                sweeps: aim.inner,
                ordered: aim.ordered.into(),
            };
            let spec = BlockPair { dtype: x.dtype, index };
            cx.run(&spec, &arguments, matrices::workgroups(batch, pairs))?;
            let arguments = RotateColumnsArguments {
                x: &self.all,
                strides: &self.all,
                rotations: &self.block_rotations,
                permutation: &self.permutation,
                rotated: &self.rotated_flags,
                batch: batch as u32,
                rows: rows as u32,
                n: n as u32,
                width,
                blocks,
                round: round as u32,
                tiles: tiles as u32,
            };
            cx.run(&rotate_columns, &arguments, matrices::workgroups(batch, pairs * tiles))?;
        }
        check_finite(cx, &self.flags)
    }

    /// Orthogonalises the product of the rotations to the precision, and recomputes the columns
    /// from it.
    fn renew(&self) -> Result<()> {
        let v = self.rotations();
        polish(self.cx, &v)?;
        matrices::multiply(self.cx, [self.x, &v], &self.columns(), Update::Overwrite)
    }
}

/// Reads back two flags: returns the first one, and fails if the second one is set.
pub fn check_finite(cx: &Context, flags: &View) -> Result<bool> {
    let flags: Vec<Number> = read_numbers(cx, flags)?;
    if flags[1].to_i64() != 0 {
        // Infinities or NaN: the CPU raises the error for these.
        return Err(Error::NoKernel(format!("{}: numbers that are not finite", cx.name)));
    }
    Ok(flags[0].to_i64() != 0)
}

/// The machine epsilon of a dtype.
fn epsilon(dtype: DType) -> f64 {
    if dtype.real() == DType::F32 { f32::EPSILON.into() } else { f64::EPSILON }
}
