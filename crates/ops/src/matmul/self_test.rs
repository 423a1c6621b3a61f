//! Checks an adapter's matrix units at their first use: there are drivers whose products are wrong.

use super::epilogue::{Finish, Output};
use super::matrix_select::{self, MatrixChoice};
use super::matrix_tile::Units;
use super::operand::Source;
use super::problem::Problem;
use crate::operator::call::{Call, Scalar};
use crate::operator::error::{Error, Result};
use crate::tensor::Tensor;
use dml_engine::Error as DeviceError;
use dml_kernel::DType;
use half::{bf16, f16};
use std::sync::atomic::{AtomicU8, Ordering};

/// Devices whose verdicts are kept; those beyond do without matrix units.
const DEVICES: usize = 64;
const UNTESTED: u8 = 0;
const WRONG: u8 = 1;
const RIGHT: u8 = 2;

/// Of each device, for f16 and bf16.
static VERDICTS: [[AtomicU8; 2]; DEVICES] = [const { [const { AtomicU8::new(UNTESTED) }; 2] }; DEVICES];

/// Whether the device's matrix units multiply rightly. The first time, for which this waits, they are tried; while a graph is
/// captured that cannot be, and they count as wrong.
///
/// # Errors
/// What the device says, but for a kernel that its driver refuses.
pub fn passed(call: &Call, units: Units, dtype: DType) -> Result<bool> {
    let Some(verdicts) = VERDICTS.get(call.device.index()) else { return Ok(false) };
    let verdict = &verdicts[usize::from(dtype == DType::BF16)];
    match verdict.load(Ordering::Relaxed) {
        UNTESTED if call.device.is_capturing() => Ok(false),
        UNTESTED => {
            let right = match products_are_right(call, units, dtype) {
                Err(Error::Engine(DeviceError::Compile { .. } | DeviceError::Unsupported { .. })) => false,
                tried => tried?,
            };
            if !right {
                tracing::warn!(
                    "{}: no right products of {dtype} on matrix units, which are not used",
                    call.device.info().name
                );
            }
            verdict.store(if right { RIGHT } else { WRONG }, Ordering::Relaxed);
            Ok(right)
        }
        verdict => Ok(verdict == RIGHT),
    }
}

/// m, n and k, in which every edge of a tile is ragged.
const SIZE: [i64; 3] = [72, 56, 104];

fn products_are_right(call: &Call, units: Units, dtype: DType) -> Result<bool> {
    let Some((tile, _)) = matrix_select::tiles(units).last() else { return Ok(false) };
    let [m, n, k] = SIZE;
    // Small whole numbers: all sums are exact.
    let [left, right] = [(m * k, 7, 5), (k * n, 11, 7)]
        .map(|(len, by, of)| -> Vec<i64> { (0..len).map(|i| (i * by + i / 13) % of - of / 2).collect() });
    let [a, b] = [(&left, [m, k]), (&right, [k, n])].map(|(numbers, sizes)| put(call, dtype, numbers, sizes));
    let (a, b) = (a?, b?);
    for transposed in [false, true] {
        // The same bytes as the operands' transposes: another product.
        let at = |rows: i64, columns: i64| if transposed { [1, rows] } else { [columns, 1] };
        let ([am, ak], [bk, bn]) = (at(m, k), at(k, n));
        let out = call.empty(DType::F32, &[m, n])?;
        let problem = Problem {
            size: [1, m, n, k],
            a: Source::strided(&a, [m, k], [am, ak], 0),
            b: Source::strided(&b, [n, k], [bn, bk], 0),
            finish: Finish {
                out: Output { memory: (&out).into(), strides: [0, n, 1], split: None },
                alpha: Scalar::Int(1),
                bias: None,
            },
        };
        problem.run_on_matrix_units(call, MatrixChoice { tile, split_k: 1 })?;
        let mut bytes = vec![0; (m * n) as usize * 4];
        call.device.download(out.data, &mut bytes)?;
        let sum = |row: i64, column: i64| -> i64 {
            (0..k).map(|i| left[(row * am + i * ak) as usize] * right[(i * bk + column * bn) as usize]).sum()
        };
        let right = bytes.chunks_exact(4).enumerate().all(|(i, word)| {
            let (row, column) = (i as i64 / n, i as i64 % n);
            f32::from_le_bytes([word[0], word[1], word[2], word[3]]) == sum(row, column) as f32
        });
        if !right {
            return Ok(false);
        }
    }
    Ok(true)
}

fn put(call: &Call, dtype: DType, numbers: &[i64], sizes: [i64; 2]) -> Result<Tensor> {
    let bits = |&x: &i64| match dtype {
        DType::BF16 => bf16::from_f64(x as f64).to_bits(),
        _ => f16::from_f64(x as f64).to_bits(),
    };
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| bits(x).to_le_bytes()).collect();
    let tensor = call.empty(dtype, &sizes)?;
    call.device.upload(tensor.data, &bytes)?;
    Ok(tensor)
}
