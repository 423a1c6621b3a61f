//! The matrices of an adapter's units, and who holds which of their elements: found by trying, once
//! for each device.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matmul::matrix_tile::Units;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::view::View;
use dml_engine::{Error as DeviceError, parameters};
use dml_kernel::{
    Builder, ComponentMap, DType, Matrix, MatrixLayout, MatrixType, ScalarType, Value, decode, encode, matrix,
};
use half::{bf16, f16};
use std::sync::OnceLock;

/// Matrices of a product, as attention uses them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parts {
    /// m, n and k.
    pub shape: [u32; 3],
    /// Invocations of a subgroup.
    pub lanes: u32,
    /// There are no units: every invocation computes all of a matrix, for tests.
    pub emulated: bool,
    /// Where the components of sums lie.
    pub sums: ComponentMap,
    /// Those of left operands; `None` where that is not known, or what `component` gives does not
    /// become the nearest number.
    pub left: Option<ComponentMap>,
}

/// Devices whose parts are kept; those beyond do without.
const DEVICES: usize = 64;

/// Of each device, for f16 and bf16.
static FOUND: [[OnceLock<Option<Parts>>; 2]; DEVICES] = [const { [const { OnceLock::new() }; 2] }; DEVICES];

impl Parts {
    /// Of emulated matrices.
    pub fn emulated(units: Units) -> Parts {
        let Units { shape: [m, n, k], lanes, .. } = units;
        let [sums, left] = [n, k].map(|columns| ComponentMap::quads(m, columns, lanes));
        Parts { shape: units.shape, lanes, emulated: true, sums, left: Some(left) }
    }

    /// Of a device's units for operands of a dtype, which multiply rightly; `None` where it cannot
    /// be told who holds what, and while a graph is captured, unless it is known already.
    ///
    /// # Errors
    /// What the device says, but for a kernel that its driver refuses.
    pub fn of(cx: &Context, units: Units, dtype: DType) -> Result<Option<Parts>> {
        let Units { shape: [m, n, k], lanes, emulated, .. } = units;
        // Subgroups so small or large that an invocation has no two components, or that quads are
        // none.
        if !lanes.is_power_of_two() || !(4..=4 * m).contains(&lanes) || m * n.min(k) < 2 * lanes {
            return Ok(None);
        }
        if emulated {
            return Ok(Some(Parts::emulated(units)));
        }
        let Some(found) = FOUND.get(cx.device.index()) else { return Ok(None) };
        let found = &found[usize::from(dtype == DType::BF16)];
        if let Some(&found) = found.get() {
            return Ok(found);
        }
        if !cx.may_wait() {
            return Ok(None);
        }
        let parts = match find(cx, units, dtype) {
            Err(Error::Engine(DeviceError::Compile { .. } | DeviceError::Unsupported { .. })) => None,
            tried => tried?,
        };
        if parts.is_none() {
            tracing::warn!("{}: who holds what of a matrix of {dtype} is not known", cx.device.info().name);
        }
        Ok(*found.get_or_init(|| parts))
    }

    /// Whether sums become left operands in registers.
    pub fn goes_directly(&self) -> bool {
        let [_, n, k] = self.shape;
        n == k && self.left.is_some_and(|left| self.sums.order_of(&left).is_some())
    }

    /// Types of left and right operands and sums.
    pub fn types(&self, dtype: DType) -> [MatrixType; 3] {
        matrix::product_types(self.shape, dtype, DType::F32)
    }

    /// A new matrix.
    pub fn matrix<'b>(&self, b: &'b Builder, ty: MatrixType) -> Matrix<'b> {
        if self.emulated { b.emulated_matrix(ty) } else { b.matrix(ty) }
    }
}

fn find(cx: &Context, units: Units, dtype: DType) -> Result<Option<Parts>> {
    let Units { shape, lanes, .. } = units;
    let [left, _, sum] = matrix::product_types(shape, dtype, DType::F32);
    let probe = |ty: MatrixType| -> Result<Option<ComponentMap>> {
        let probe = Probe { ty, lanes };
        let len = ty.len() as usize;
        let out = cx.empty(DType::F32, &[3, i64::from(ty.len())])?;
        cx.run(&probe, &ProbeArguments { out: &out }, [1, 1, 1])?;
        let numbers = read(cx, &out)?;
        let (rows, rest) = numbers.split_at(len);
        let (columns, rounded) = rest.split_at(len);
        let at = |lane: u32, component: u32| {
            let i = (lane * (ty.len() / lanes) + component) as usize;
            [rows[i] as u32, columns[i] as u32]
        };
        let each = ty.len() / lanes;
        let rounds = |map: &ComponentMap| {
            (0..ty.len()).all(|i| {
                let [row, column] = map.place(i / each, i % each);
                rounded[(row * ty.columns + column) as usize] == nearest(ty.dtype, awkward(i))
            })
        };
        Ok(ComponentMap::found([ty.rows, ty.columns], lanes, at).filter(rounds))
    };
    let (sums, left) = (probe(sum)?, probe(left)?);
    Ok(sums.map(|sums| Parts { shape, lanes, emulated: false, sums, left }))
}

fn read(cx: &Context, t: &View) -> Result<Vec<f32>> {
    let mut bytes = vec![0; t.numel() as usize * 4];
    cx.download(t.data, &mut bytes)?;
    Ok(bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// What is to be set as a component of a matrix of this dtype, so that it becomes the nearest
/// number to `x`. A conversion to bfloat16 truncates on some adapters (NVIDIA's). Halves go away
/// from 0. NaN becomes any number, unless `nan`.
pub fn component<'b>(x: Value<'b>, dtype: DType, nan: bool) -> Value<'b> {
    if dtype != DType::BF16 {
        return x;
    }
    let nearest = ((x.bitcast(ScalarType::U32) + 0x8000) & 0xffff_0000u32).bitcast(ScalarType::F32);
    // NVIDIA's NaN has all bits set, and adding to these begins again at 0.
    if nan { x.is_nan().select(x, nearest) } else { nearest }
}

/// Numbers between those of halves; none is halfway.
fn awkward(i: u32) -> f32 {
    1.0 + (i * 68 + 1) as f32 / 65536.0
}

fn nearest(dtype: DType, x: f32) -> f32 {
    match dtype {
        DType::F16 => f16::from_f32(x).to_f32(),
        DType::BF16 => bf16::from_f32(x).to_f32(),
        _ => x,
    }
}

/// Writes the rows of all components of a matrix, lane after lane, then their columns; and the
/// elements that became of [`awkward`] numbers, as the matrix stores them. (Read back as components
/// they may not have been rounded at all.)
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct Probe {
    ty: MatrixType,
    lanes: u32,
}

parameters! {
    Probe as _s => ProbeArguments, ProbeParameters {
        out: Output = DType::F32,
    }
}

impl KernelSpec for Probe {
    fn name(&self) -> &'static str {
        "matrix_components"
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.lanes, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: ProbeParameters<'b>) {
        let MatrixType { dtype, columns, .. } = self.ty;
        let (len, per_word) = (self.ty.len(), 4 / dtype.bytes() as u32);
        // Any map with so many components: it is not yet known which.
        let any = ComponentMap::quads(self.lanes / 4, 4 * len / self.lanes, self.lanes);
        let memory = b.shared(ScalarType::U32, 1, len / per_word);
        let (matrix, lane) = (b.matrix(self.ty), b.subgroup_lane());
        let store = |part: u32| {
            for (i, x) in (0..).zip(matrix.components(&any)) {
                p.out.store(lane * any.components() + (part * len + i), x);
            }
        };
        for part in 0..2 {
            b.for_(lane, b.u32(len / per_word), self.lanes, |word| {
                let halves = (0..per_word).map(|i| {
                    let element = word * per_word + i;
                    let place = if part == 0 { element / columns } else { element % columns };
                    let bits = encode(place.cast(ScalarType::F32), dtype).bitcast(ScalarType::U32);
                    if i == 0 { bits } else { bits << 16 }
                });
                memory.store(word, halves.reduce(|x, y| x | y).unwrap_or(word));
            });
            b.barrier();
            matrix.load(memory, 0u32, columns / per_word, MatrixLayout::RowMajor);
            store(part);
            b.barrier();
        }
        let numbers: Vec<_> = (0..any.components())
            .map(|i| ((lane * any.components() + i) * 68 + 1).cast(ScalarType::F32) * (1.0 / 65536.0) + 1.0)
            .map(|x| component(x, dtype, true))
            .collect();
        matrix.set_components(&any, &numbers);
        matrix.store(memory, 0u32, columns / per_word, MatrixLayout::RowMajor);
        b.barrier();
        b.for_(lane, b.u32(len), self.lanes, |element| {
            let word = memory.load(element / per_word);
            let bits = if per_word == 1 { word } else { (word >> ((element & 1) << 4)) & 0xffff };
            p.out.store(element + 2 * len, decode(bits, dtype).bitcast(ScalarType::F32));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_kernel::interpret::{Argument, run};

    fn components(dtype: DType, numbers: &[f32]) -> Vec<f32> {
        let b = Builder::new("component", [1, 1, 1]);
        let (x, out) = (b.input("x", DType::F32), b.pointer("out", DType::F32));
        out.store(b.group_id(0), component(x.load(b.group_id(0)), dtype, true));
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let mut results = vec![0; bytes.len()];
        let groups = [numbers.len() as u32, 1, 1];
        run(&b.finish(), groups, 8, &mut [Argument::Memory(&mut bytes), Argument::Memory(&mut results)]);
        results.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }

    #[test]
    fn components_are_the_nearest_numbers() {
        let mut numbers: Vec<f32> = (0..256).map(awkward).collect();
        numbers.extend([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1.7e-3, 3.3895e38]);
        for dtype in [DType::F16, DType::BF16] {
            for (&x, found) in numbers.iter().zip(components(dtype, &numbers)) {
                assert_eq!(nearest(dtype, found).to_bits(), nearest(dtype, x).to_bits(), "{x} as {dtype}");
                assert!(dtype == DType::F16 || found.to_bits() & 0xffff == 0, "{found} is not rounded");
            }
            // NVIDIA's, which has all bits set.
            let nan = components(dtype, &[f32::NAN, f32::from_bits(0x7fff_ffff), f32::from_bits(0xffff_ffff)]);
            assert!(nan.iter().all(|x| x.is_nan()));
        }
    }
}
