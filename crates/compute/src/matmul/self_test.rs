//! Tests an adapter's matrix units at their first use: there are drivers whose products are wrong.
//!
//! The shapes of matrices that the adapter offers for a dtype are tested in order, best first, in
//! tiles of one matrix a subgroup and of several, with each operand in either memory order.
//! Products of integers are exact, so they are compared with the host's bit for bit. The verdict on
//! a shape is recorded on disk (`Device::adapter_record`): the next process of the same version, on
//! the same adapter and driver, does not test again.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matmul::epilogue::{EpilogueOperands, Output};
use crate::matmul::matrix_unit_select::{self, MatrixChoice};
use crate::matmul::matrix_unit_tile::{MatrixTile, Units, sums};
use crate::matmul::operand::Source;
use crate::matmul::problem::Problem;
use crate::matmul::select::Limits;
use crate::scalar::Scalar;
use crate::view::View;
use dml_engine::Error as DeviceError;
use dml_environment::DRY_RUN;
use dml_kernel::DType;
use half::{bf16, f16};
use smallvec::SmallVec;
use std::sync::OnceLock;

/// Number of devices whose units are cached; devices with a higher index do not use matrix units.
const DEVICES: usize = 64;

/// Cached units of each device, for f16, bf16 and i8.
static UNITS_CACHE: [[OnceLock<Option<Units>>; 3]; DEVICES] = [const { [const { OnceLock::new() }; 3] }; DEVICES];

/// The matrix units of the context's device for products of a dtype: the best shape that multiplies
/// correctly, of those that the device offers and the settings allow. The first time on an adapter
/// and driver they are tested, and this waits for the result. While a graph is captured tests are
/// not possible, and the answer is `None` unless there is a record.
///
/// # Errors
/// Errors of the device, except a kernel that its driver refuses.
pub fn usable_units(cx: &Context, dtype: DType) -> Result<Option<Units>> {
    let of = match dtype {
        DType::F16 => 0,
        DType::BF16 => 1,
        DType::I8 => 2,
        _ => return Ok(None),
    };
    let Some(found) = UNITS_CACHE.get(cx.device.index()).map(|found| &found[of]) else { return Ok(None) };
    if let Some(&units) = found.get() {
        return Ok(units);
    }
    let may_wait = cx.may_wait();
    let candidates = matrix_unit_select::candidates(cx.device.info(), dtype);
    let tried = first_correct(candidates, |units| verdict(cx, units, dtype, may_wait))?;
    Ok(tried.and_then(|units| *found.get_or_init(|| units)))
}

/// The first candidate that is correct, or that no candidate is. `None` if a verdict is missing
/// before a correct one is found.
fn first_correct(
    candidates: impl Iterator<Item = Units>,
    mut is_right: impl FnMut(Units) -> Result<Option<bool>>,
) -> Result<Option<Option<Units>>> {
    for units in candidates {
        match is_right(units)? {
            Some(true) => return Ok(Some(Some(units))),
            Some(false) => {}
            None => return Ok(None),
        }
    }
    Ok(Some(None))
}

/// Has to change whenever earlier verdicts are no longer valid.
const REVISION: u32 = 1;

fn name(units: Units, dtype: DType) -> String {
    let Units { shape: [m, n, k], lanes, emulated, small, bytes: _, transposes: _ } = units;
    let kind = if emulated { " emulated" } else { "" };
    let size = if small { " small" } else { "" };
    format!("matrix units {REVISION}: {dtype} {m}x{n}x{k} of {lanes}{kind}{size}")
}

/// The recorded verdict on a shape, or if `may_wait` that of a test, which is then recorded. `None`
/// if there is neither. Where nothing is computed (`TORCH_DML_DRY_RUN`), every shape is correct.
fn verdict(cx: &Context, units: Units, dtype: DType, may_wait: bool) -> Result<Option<bool>> {
    if DRY_RUN.get() == Some(true) {
        return Ok(Some(true));
    }
    let (device, name) = (cx.device, name(units, dtype));
    let noted = device.adapter_record(&name);
    let right = match noted.as_deref() {
        Some("right") => return Ok(Some(true)),
        Some("wrong") => false,
        _ if !may_wait => return Ok(None),
        _ => {
            let tried = products_are_right(cx, units, dtype);
            let right = match &tried {
                Err(Error::Engine(DeviceError::Compile { .. } | DeviceError::Unsupported { .. })) => false,
                // A lost device counts as a failure, so that the next process does not test it
                // again.
                Err(Error::Engine(DeviceError::DeviceLost { .. })) => false,
                Err(_) => return tried.map(Some),
                Ok(right) => *right,
            };
            device.put_adapter_record(&name, if right { "right" } else { "wrong" });
            device.save_adapter_records();
            if let Err(lost @ Error::Engine(DeviceError::DeviceLost { .. })) = tried {
                return Err(lost);
            }
            right
        }
    };
    if !right {
        let [m, n, k] = units.shape;
        tracing::warn!(
            "{}: no right products of {dtype} on matrix units of {m}x{n}x{k}, which are not used",
            device.info().name
        );
    }
    Ok(Some(right))
}

/// The tiles to test: one with as few matrices a subgroup as possible, and one with several in both
/// directions.
fn tiles(limits: &Limits, units: Units) -> SmallVec<[MatrixTile; 2]> {
    let fits = |tile: &MatrixTile| tile.shared_bytes() <= limits.shared_memory;
    let all = || matrix_unit_select::fitting_tiles(limits, units).map(|(tile, _)| tile).filter(fits);
    let several = |tile: &MatrixTile| tile.fragments().iter().all(|&matrices| matrices > 1);
    let mut tiles: SmallVec<_> = all().filter(several).last().into_iter().collect();
    tiles.extend(all().last().filter(|tile| !tiles.contains(tile)));
    tiles
}

/// m, n and k, for which tiles are partial at every edge.
const SIZE: [i64; 3] = [72, 56, 104];

fn products_are_right(cx: &Context, units: Units, dtype: DType) -> Result<bool> {
    let [m, n, k] = SIZE;
    // Integers that all dtypes represent: all sums are exact, and have more than the 11 bits of a
    // half.
    let [left, right] = [(m * k, 37, 127), (k * n, 53, 113)]
        .map(|(len, by, of)| -> Vec<i64> { (0..len).map(|i| (i * by + i / 13) % of - of / 2).collect() });
    let [a, b] = [(&left, [m, k]), (&right, [k, n])].map(|(numbers, sizes)| tensor_of(cx, dtype, numbers, sizes));
    let (a, b) = (a?, b?);
    let mut products = Vec::new();
    // All launches before the first wait, so that their kernels are compiled in parallel.
    for tile in tiles(&Limits::of(cx.device.info()), units) {
        for transposed in [false, true] {
            // The same bytes read as transposed matrices give another product.
            let at = |rows: i64, columns: i64| if transposed { [1, rows] } else { [columns, 1] };
            let strides @ ([am, ak], [bk, bn]) = (at(m, k), at(k, n));
            let out = cx.empty(sums(dtype), &[m, n])?;
            let problem = Problem {
                size: [1, m, n, k],
                a: Source::strided(&a, [m, k], [am, ak], 0),
                b: Source::strided(&b, [n, k], [bn, bk], 0),
                finish: EpilogueOperands {
                    out: Output { memory: (&out).into(), strides: [0, n, 1], split: None },
                    alpha: Scalar::Int(1),
                    bias: None,
                    then: None,
                },
            };
            problem.run_on_matrix_units(cx, MatrixChoice { tile, split_k: 1 })?;
            products.push((out, strides));
        }
    }
    let mut all_right = !products.is_empty();
    for (out, ([am, ak], [bk, bn])) in products {
        let mut bytes = vec![0; (m * n) as usize * 4];
        cx.device.download(out.data, &mut bytes)?;
        let sum = |row: i64, column: i64| -> i64 {
            (0..k).map(|i| left[(row * am + i * ak) as usize] * right[(i * bk + column * bn) as usize]).sum()
        };
        all_right &= bytes.chunks_exact(4).enumerate().all(|(i, word)| {
            let (row, column) = (i as i64 / n, i as i64 % n);
            let (word, sum) = ([word[0], word[1], word[2], word[3]], sum(row, column));
            if dtype == DType::I8 {
                i64::from(i32::from_le_bytes(word)) == sum
            } else {
                f32::from_le_bytes(word) == sum as f32
            }
        });
    }
    Ok(all_right)
}

fn tensor_of(cx: &Context, dtype: DType, numbers: &[i64], sizes: [i64; 2]) -> Result<View> {
    let bytes: Vec<u8> = match dtype {
        DType::I8 => numbers.iter().flat_map(|&x| (x as i8).to_le_bytes()).collect(),
        DType::BF16 => numbers.iter().flat_map(|&x| bf16::from_f64(x as f64).to_le_bytes()).collect(),
        _ => numbers.iter().flat_map(|&x| f16::from_f64(x as f64).to_le_bytes()).collect(),
    };
    let tensor = cx.empty(dtype, &sizes)?;
    cx.device.upload(tensor.data, &bytes)?;
    Ok(tensor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(shape: [u32; 3]) -> Units {
        Units { shape, lanes: 32, emulated: false, small: false, bytes: 2, transposes: false }
    }

    const SHAPES: [[u32; 3]; 3] = [[16; 3], [8, 16, 16], [16, 16, 8]];

    #[test]
    fn the_first_shape_that_is_right_is_used() {
        let found = |right: [Option<bool>; 3]| {
            let mut asked = 0;
            let found = first_correct(SHAPES.into_iter().map(units), |units| {
                asked += 1;
                Ok(SHAPES.iter().position(|&shape| shape == units.shape).and_then(|i| right[i]))
            });
            (found.expect("nothing fails").map(|found| found.map(|units| units.shape)), asked)
        };
        assert_eq!(found([Some(true), None, None]), (Some(Some(SHAPES[0])), 1));
        assert_eq!(found([Some(false), Some(true), None]), (Some(Some(SHAPES[1])), 2));
        assert_eq!(found([Some(false); 3]), (Some(None), 3));
        // While a graph is captured nothing is tested: the next call tries again.
        assert_eq!(found([Some(false), None, Some(true)]), (None, 2));
    }

    #[test]
    fn tiles_of_one_matrix_and_of_several_are_tried() {
        for (shared_memory, invocations) in [(48 << 10, 1024), (32 << 10, 256), (16 << 10, 128)] {
            let limits = Limits { shared_memory, invocations, compute_units: 1.0, ..Limits::LARGE_GPU };
            for shape in SHAPES {
                let tiles = tiles(&limits, units(shape));
                assert!(tiles.iter().all(|tile| tile.shape == shape && tile.is_valid()));
                assert_eq!(tiles.len(), 2, "{shape:?}: {tiles:?}");
            }
        }
        let small = Units { small: true, ..units([16; 3]) };
        let limits = Limits { software: true, shared_memory: 32 << 10, compute_units: 4.0, ..Limits::LARGE_GPU };
        assert_eq!(tiles(&limits, small).len(), 1);
    }

    #[test]
    fn verdicts_on_different_units_have_different_names() {
        let all = SHAPES
            .map(units)
            .into_iter()
            .flat_map(|of| [of, Units { lanes: 64, ..of }, Units { emulated: true, ..of }]);
        let names: Vec<String> = all.flat_map(|of| [DType::F16, DType::BF16].map(|dtype| name(of, dtype))).collect();
        let different: std::collections::HashSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        assert!(names.iter().all(|name| name.len() <= 120));
    }
}
