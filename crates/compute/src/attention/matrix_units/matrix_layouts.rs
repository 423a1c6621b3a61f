//! The shapes of an adapter's cooperative matrices, and which invocation holds which of their
//! elements. The layout is found by a trial, once for each device.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::matmul::matrix_unit_tile::Units;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::view::View;
use dml_engine::{Error as DeviceError, parameters};
use dml_environment::DRY_RUN;
use dml_kernel::{
    Builder, ComponentMap, DType, Matrix, MatrixLayout, MatrixType, ScalarType, Value, decode, encode, matrix,
};
use half::{bf16, f16};
use std::sync::OnceLock;

/// The cooperative matrices of a product, as attention uses them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatrixLayouts {
    /// m, n and k.
    pub shape: [u32; 3],
    /// Invocations of a subgroup.
    pub lanes: u32,
    /// Emulation for tests: there are no matrix units, and every invocation computes the whole
    /// matrix.
    pub emulated: bool,
    /// See [`MatrixTile::transposes`](crate::matmul::matrix_unit_tile::MatrixTile::transposes).
    pub transposes: bool,
    /// Layout of the accumulator's components.
    pub sums: ComponentMap,
    /// Layout of the left operand's components. `None` if it is unknown, or if a value from
    /// [`component_value`] is not rounded to nearest when it is stored as one.
    pub left: Option<ComponentMap>,
}

/// Number of devices whose layouts are cached; devices with a higher index do not use matrix units.
const DEVICES: usize = 64;

/// Cached layouts by device, for f16 and bf16.
static LAYOUT_CACHE: [[OnceLock<Option<MatrixLayouts>>; 2]; DEVICES] =
    [const { [const { OnceLock::new() }; 2] }; DEVICES];

impl MatrixLayouts {
    /// The layout of emulated matrices.
    pub fn emulated(units: Units) -> MatrixLayouts {
        let Units { shape: [m, n, k], lanes, transposes, .. } = units;
        let [sums, left] = [n, k].map(|columns| ComponentMap::quads(m, columns, lanes));
        MatrixLayouts { shape: units.shape, lanes, emulated: true, transposes, sums, left: Some(left) }
    }

    /// The layout of a device's matrix units for operands of a dtype, verified by a product. `None`
    /// if the layout cannot be determined, and while a graph is captured unless it is known
    /// already.
    ///
    /// # Errors
    /// Errors of the device, except a kernel that its driver refuses.
    pub fn of(cx: &Context, units: Units, dtype: DType) -> Result<Option<MatrixLayouts>> {
        let Units { shape: [m, n, k], lanes, emulated, .. } = units;
        // Each invocation needs at least two components, and subgroups of 4 to 4 m lanes.
        if !lanes.is_power_of_two() || !(4..=4 * m).contains(&lanes) || m * n.min(k) < 2 * lanes {
            return Ok(None);
        }
        if emulated {
            return Ok(Some(MatrixLayouts::emulated(units)));
        }
        if DRY_RUN.get() == Some(true) {
            // A trial would find nothing.
            return Ok(MatrixLayouts::of_vendor(units, &cx.device.info().vendor));
        }
        let Some(found) = LAYOUT_CACHE.get(cx.device.index()) else { return Ok(None) };
        let found = &found[usize::from(dtype == DType::BF16)];
        if let Some(&found) = found.get() {
            return Ok(found);
        }
        if !cx.may_wait() {
            return Ok(None);
        }
        let layouts = match find(cx, units, dtype) {
            Err(Error::Engine(DeviceError::Compile { .. } | DeviceError::Unsupported { .. })) => None,
            tried => tried?,
        };
        if layouts.is_none() {
            tracing::warn!("{}: who holds what of a matrix of {dtype} is not known", cx.device.info().name);
        }
        Ok(*found.get_or_init(|| layouts))
    }

    /// The layout that a trial finds on the vendor's adapters, as far as it matters to compilers:
    /// AMD's (RDNA4's rows in another order) and Intel's have a line of a matrix across the lanes,
    /// and no left operand that an accumulator can become. (Seen in Mesa's lowerings.)
    fn of_vendor(units: Units, vendor: &str) -> Option<MatrixLayouts> {
        let quads = MatrixLayouts { emulated: false, ..MatrixLayouts::emulated(units) };
        if vendor == "NVIDIA" {
            return Some(quads);
        }
        let Units { shape: [m, n, _], lanes, .. } = units;
        let sums = ComponentMap::found([m, n], lanes, |lane, i| [lane / n + lanes / n * i, lane % n])?;
        Some(MatrixLayouts { sums, left: None, ..quads })
    }

    /// Whether an accumulator can become a left operand in registers.
    pub fn accumulator_is_operand(&self) -> bool {
        let [_, n, k] = self.shape;
        n == k && self.left.is_some_and(|left| self.sums.order_of(&left).is_some())
    }

    /// Types of the left operand, the right operand and the accumulator.
    pub fn types(&self, dtype: DType) -> [MatrixType; 3] {
        matrix::product_types(self.shape, dtype, DType::F32)
    }

    /// Declares a matrix.
    pub fn matrix<'b>(&self, b: &'b Builder, ty: MatrixType) -> Matrix<'b> {
        if self.emulated { b.emulated_matrix(ty) } else { b.matrix(ty) }
    }
}

fn find(cx: &Context, units: Units, dtype: DType) -> Result<Option<MatrixLayouts>> {
    let Units { shape, lanes, transposes, .. } = units;
    let [left, _, sum] = matrix::product_types(shape, dtype, DType::F32);
    let probe = |ty: MatrixType| -> Result<Option<ComponentMap>> {
        let probe = LayoutProbe { ty, lanes };
        let len = ty.len() as usize;
        let out = cx.empty(DType::F32, &[3, i64::from(ty.len())])?;
        cx.run(&probe, &LayoutProbeArguments { out: &out }, [1, 1, 1])?;
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
                let [row, column] = map.position(i / each, i % each);
                rounded[(row * ty.columns + column) as usize] == nearest(ty.dtype, between_neighbours(i))
            })
        };
        Ok(ComponentMap::found([ty.rows, ty.columns], lanes, at).filter(rounds))
    };
    let (sums, left) = (probe(sum)?, probe(left)?);
    Ok(sums.map(|sums| MatrixLayouts { shape, lanes, emulated: false, transposes, sums, left }))
}

fn read(cx: &Context, t: &View) -> Result<Vec<f32>> {
    let mut bytes = vec![0; t.numel() as usize * 4];
    cx.download(t.data, &mut bytes)?;
    Ok(bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

/// The value to set as a matrix component of this dtype so that the stored number is the one
/// nearest to `x`: some adapters (NVIDIA's) truncate when they convert to bfloat16. Ties round away
/// from 0. NaN becomes an arbitrary number, unless `nan`.
pub fn component_value<'b>(x: Value<'b>, dtype: DType, nan: bool) -> Value<'b> {
    if dtype != DType::BF16 {
        return x;
    }
    let nearest = ((x.bitcast(ScalarType::U32) + 0x8000) & 0xffff_0000u32).bitcast(ScalarType::F32);
    // NVIDIA's NaN has all bits set: adding to it wraps around to 0.
    if nan { x.is_nan().select(x, nearest) } else { nearest }
}

/// f32 numbers between two neighbours of the dtype, so that they have to be rounded; none is a tie.
fn between_neighbours(i: u32) -> f32 {
    1.0 + (i * 68 + 1) as f32 / 65536.0
}

fn nearest(dtype: DType, x: f32) -> f32 {
    match dtype {
        DType::F16 => f16::from_f32(x).to_f32(),
        DType::BF16 => bf16::from_f32(x).to_f32(),
        _ => x,
    }
}

/// Kernel that writes the row of every component of a matrix, lane after lane, then the columns;
/// and the elements that [`between_neighbours`] numbers became, as the matrix stores them.
/// (Components that are read back may not have been rounded at all.)
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct LayoutProbe {
    ty: MatrixType,
    lanes: u32,
}

parameters! {
    LayoutProbe as _s => LayoutProbeArguments, LayoutProbeParameters {
        out: Output = DType::F32,
    }
}

impl KernelSpec for LayoutProbe {
    fn name(&self) -> &'static str {
        "matrix_components"
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.lanes, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: LayoutProbeParameters<'b>) {
        let MatrixType { dtype, columns, .. } = self.ty;
        let (len, per_word) = (self.ty.len(), 4 / dtype.bytes() as u32);
        // A map with the right number of components: the actual layout is not yet known.
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
                    let coordinate = if part == 0 { element / columns } else { element % columns };
                    let bits = encode(coordinate.cast(ScalarType::F32), dtype).bitcast(ScalarType::U32);
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
            .map(|x| component_value(x, dtype, true))
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
        out.store(b.group_id(0), component_value(x.load(b.group_id(0)), dtype, true));
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let mut results = vec![0; bytes.len()];
        let groups = [numbers.len() as u32, 1, 1];
        run(&b.finish(), groups, 8, &mut [Argument::Memory(&mut bytes), Argument::Memory(&mut results)]);
        results.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }

    #[test]
    fn vendors_have_layouts_without_a_trial() {
        let units = |shape, lanes| Units { shape, lanes, emulated: false, small: false, bytes: 2, transposes: true };
        let of = |units, vendor| MatrixLayouts::of_vendor(units, vendor).expect("a layout");
        let nvidia = of(units([16; 3], 32), "NVIDIA");
        assert_eq!(nvidia, MatrixLayouts { emulated: false, ..MatrixLayouts::emulated(units([16; 3], 32)) });
        // An invocation has a column of all rows, or of every fourth.
        for (shape, lanes, vendor, rows) in [([8, 16, 16], 16, "Intel", 8), ([16; 3], 64, "AMD", 4)] {
            let layouts = of(units(shape, lanes), vendor);
            assert_eq!([0, 1].map(|axis| layouts.sums.lines_of_lane(axis)), [rows, 1]);
            assert_eq!(layouts.sums.lane_of_neighbour(1), 1);
            assert!(!layouts.accumulator_is_operand());
        }
    }

    #[test]
    fn components_are_the_nearest_numbers() {
        let mut numbers: Vec<f32> = (0..256).map(between_neighbours).collect();
        numbers.extend([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1.7e-3, 3.3895e38]);
        for dtype in [DType::F16, DType::BF16] {
            for (&x, found) in numbers.iter().zip(components(dtype, &numbers)) {
                assert_eq!(nearest(dtype, found).to_bits(), nearest(dtype, x).to_bits(), "{x} as {dtype}");
                assert!(dtype == DType::F16 || found.to_bits() & 0xffff == 0, "{found} is not rounded");
            }
            // NVIDIA's NaN has all bits set.
            let nan = components(dtype, &[f32::NAN, f32::from_bits(0x7fff_ffff), f32::from_bits(0xffff_ffff)]);
            assert!(nan.iter().all(|x| x.is_nan()));
        }
    }
}
