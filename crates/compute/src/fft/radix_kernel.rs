//! The kernel that transforms lines that fit into a workgroup's shared memory: Stockham's
//! algorithm, with the numbers of a butterfly in registers and an exchange through shared memory
//! between stages. (Govindaraju et al., "High performance discrete Fourier transforms on graphics
//! processors", 2008.)
//!
//! A longer transform takes several passes (Gentleman and Sande, "Fast Fourier transforms: for fun
//! and profit", 1966): each pass multiplies its results by twiddle factors, roots of unity of the
//! whole length. Inverse transforms are forward transforms with real and imaginary parts exchanged.

use crate::context::Context;
use crate::error::Result;
use crate::fft::butterfly::transform;
use crate::fft::lengths::{Limits, Radices, Stages, padded};
use crate::fft::line::Line;
use crate::fft::lines::{Lines, Load, Store};
use crate::fft::numbers::{half, number, root};
use crate::fft::shape::Shape;
use crate::fft::twiddles::{self, RootsOfUnity};
use crate::primitives::kernel::{InDType, KernelSpec};
use crate::scalar::Scalar as Number;
use crate::view::layout::{Layout, LayoutParameter, LayoutSpec, index_type};
use dml_engine::interface::{Index, ReadRange, U32, WriteRange};
use dml_engine::{AddressRange, parameters};
use dml_kernel::dense::folded;
use dml_kernel::math::complex::{Complex, mul};
use dml_kernel::{Builder, DType, ScalarType, Shared, Value};
use std::cell::Cell;

/// Transforms lines in one pass. If `twiddle_order` is given, result `k` of a line is multiplied by
/// the root of unity of order `twiddle_order` with exponent `k` times the line's position.
pub fn run(cx: &Context, limits: &Limits, lines: &Lines, stages: &Stages, twiddle_order: Option<i64>) -> Result<()> {
    let real_dtype = lines.real_dtype;
    let positioned = twiddle_order.is_some()
        || lines.load == Load::HalfSpectrum
        || matches!(lines.store, Store::HalfSpectrum | Store::FullSpectrum);
    let mut operands = vec![&lines.input.strides[..], &lines.output.strides[..]];
    if positioned {
        operands.push(&lines.position.strides);
    }
    let mut layout = Layout::in_order(&lines.sizes, &operands, &lines.order());
    let reals = |side: &AddressRange| ((side.end - side.start) / real_dtype.bytes()) as i64;
    layout.index = index_type(reals(&lines.input.range).max(reals(&lines.output.range)).max(lines.count()));
    let spec = Pass {
        real_dtype,
        radices: stages.radices.clone(),
        shape: Shape::of(limits, stages, real_dtype, lines.input.step != 1 || lines.output.step != 1),
        layout: layout.spec(),
        load: lines.load,
        store: lines.store,
        inverse: lines.inverse,
        has_twiddles: twiddle_order.is_some(),
        partial: lines.stored < stages.length,
        recomputes: cx.device.info().capabilities.registers.is_some_and(|file| file.are_few_and_all()),
    };
    let table = if spec.radices.len() > 1 { Some(twiddles::of_stages(cx, real_dtype, &spec.radices)?) } else { None };
    let roots = twiddle_order.map(|order| twiddles::of_order(cx, real_dtype, order as u64)).transpose()?;
    let bits = roots.as_ref().map(|&RootsOfUnity { bits, .. }| bits);
    let count = lines.count();
    let arguments = PassArguments {
        input: lines.input.range,
        out: lines.output.range,
        table,
        roots: roots.map(|roots| roots.table),
        bits,
        scale: Number::Double(lines.scale),
        lines: count,
        in_step: lines.input.step,
        out_step: lines.output.step,
        stored: lines.stored as u32,
        total: lines.position.total as u32,
        position_step: lines.position.step as u32,
        rows: lines.position.rows as u32,
        layout: &layout,
    };
    cx.run(&spec, &arguments, folded((count as u64).div_ceil(u64::from(spec.shape.lines))))
}

/// The kernel's specialisation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pass {
    /// The dtype of real and imaginary parts.
    real_dtype: DType,
    radices: Radices,
    shape: Shape,
    /// Offsets of a line's first number in the input and the output, and if needed its position.
    layout: LayoutSpec,
    load: Load,
    store: Store,
    inverse: bool,
    has_twiddles: bool,
    /// Some results of a line are not stored.
    partial: bool,
    /// For adapters with few registers: positions are computed anew for each use.
    recomputes: bool,
}

parameters! {
    Pass as s => PassArguments, PassParameters {
        input: ReadRange = s.real_dtype,
        out: WriteRange = s.real_dtype,
        /// Twiddle factors between stages: [`twiddles::of_stages`].
        table: Option<ReadRange> = (s.radices.len() > 1).then_some(s.real_dtype),
        /// Twiddle factors between passes: [`twiddles::of_order`].
        roots: Option<ReadRange> = s.has_twiddles.then_some(s.real_dtype),
        bits: Option<U32> = s.has_twiddles.then_some(()),
        /// Factor of the results.
        scale: InDType = s.real_dtype,
        lines: Index = s.layout.index,
        /// Strides within a line.
        in_step: Index = s.layout.index,
        out_step: Index = s.layout.index,
        /// Number of results of a line that are stored.
        stored: U32,
        /// See [`Position`](super::lines::Position).
        total: U32,
        position_step: U32,
        rows: U32,
        layout: LayoutParameter = s.layout,
    }
}

/// State while the kernel is built.
struct Writer<'p, 'b> {
    b: &'b Builder,
    spec: &'p Pass,
    p: &'p PassParameters<'b>,
    line: Line<'b>,
    /// Whether the line exists. Excess invocations read the last line.
    valid: Value<'b>,
    /// Offsets of the line's first number in the input and the output.
    input: Value<'b>,
    out: Value<'b>,
    /// Position of the line (u32).
    position: Value<'b>,
}

impl KernelSpec for Pass {
    fn name(&self) -> &'static str {
        "fft"
    }

    fn full_name(&self) -> String {
        let radices: Vec<String> = self.radices.iter().map(u32::to_string).collect();
        format!("fft_{}", radices.join("x"))
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.shape.lanes * self.shape.lines, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: PassParameters<'b>) {
        let Shape { lanes, lines, across, exchanges_both_parts } = self.shape;
        let (local, index) = (b.local_id(0), self.layout.index);
        let (lane, line) = if across { (local / lines, local % lines) } else { (local % lanes, local / lanes) };
        let group = b.group_id(0).cast(index) + b.group_id(1).cast(index) * b.group_count(0).cast(index);
        let wanted = group * lines + line.cast(index);
        let offsets = p.layout.offsets(b, wanted.min(p.lines - 1));
        let length = self.radices.iter().product();
        let writer = Writer {
            b,
            spec: self,
            p: &p,
            line: Line { b, shape: self.shape, length, lane, line, recomputes: self.recomputes, uses: Cell::new(0) },
            valid: wanted.lt(p.lines),
            input: offsets[0],
            out: offsets[1],
            position: offsets.get(2).map_or_else(|| b.u32(0), |&x| x.cast(ScalarType::U32)),
        };
        let scalar = self.real_dtype.compute();
        let shared: Vec<Shared> = if self.radices.len() > 1 {
            (0..1 + u32::from(exchanges_both_parts)).map(|_| b.shared(scalar, 1, padded(lines * length))).collect()
        } else {
            Vec::new()
        };
        let mut numbers = writer.load();
        let (mut done, mut begun) = (1, 0);
        for (i, &radix) in self.radices.iter().enumerate() {
            if i > 0 {
                writer.line.exchange(&shared, &mut numbers, [self.radices[i - 1], radix], done, i == 1);
                done *= self.radices[i - 1];
                writer.twiddle(&mut numbers, radix, done, begun);
                begun += (radix - 1) * done;
            }
            for butterfly in &mut numbers {
                *butterfly = transform(butterfly);
            }
        }
        writer.store(&numbers);
    }
}

impl<'b> Writer<'_, 'b> {
    /// Loads the numbers of the first stage's butterflies.
    fn load(&self) -> Vec<Vec<Complex<'b>>> {
        let radix = self.spec.radices[0];
        let count = self.line.count(radix);
        self.line
            .butterflies(radix)
            .into_iter()
            .map(|(butterfly, ragged)| {
                let first = if ragged { butterfly.min(count - 1) } else { butterfly };
                (0..radix).map(|k| self.exchanged(self.read(first + k * count))).collect()
            })
            .collect()
    }

    /// Loads number `i` of the line.
    fn read(&self, i: Value<'b>) -> Complex<'b> {
        let PassParameters { input, in_step, total, position_step, .. } = *self.p;
        let at = |i: Value<'b>| self.input + i.cast(self.spec.layout.index) * in_step;
        match self.spec.load {
            Load::Complex => number(input, at(i)),
            Load::Real => Complex::real(input.load(at(i))),
            Load::HalfSpectrum => half(input, self.position + i * position_step, total, at),
        }
    }

    /// Exchanges real and imaginary parts for an inverse transform.
    fn exchanged(&self, z: Complex<'b>) -> Complex<'b> {
        if self.spec.inverse { Complex::new(z.im, z.re) } else { z }
    }

    /// Multiplies the inputs of a stage by twiddle factors, which repeat every `done` butterflies.
    fn twiddle(&self, numbers: &mut [Vec<Complex<'b>>], radix: u32, done: u32, begun: u32) {
        let Some(table) = self.p.table else { return };
        for ((butterfly, _), numbers) in self.line.butterflies(radix).into_iter().zip(numbers) {
            let p = butterfly % done + begun;
            for (k, z) in (0..radix).zip(numbers).skip(1) {
                *z = mul(*z, number(table, p + (k - 1) * done));
            }
        }
    }

    /// Stores the results of the last stage.
    fn store(&self, numbers: &[Vec<Complex<'b>>]) {
        let radix = self.spec.radices.last().copied().unwrap_or(1);
        let count = self.line.count(radix);
        for (&butterfly, numbers) in self.line.butterflies(radix).iter().zip(numbers) {
            self.line.where_real(radix, butterfly, || {
                self.b.if_(self.valid, || {
                    let factors = self.twiddles(butterfly.0, radix);
                    for (k, &z) in (0..radix).zip(numbers) {
                        let i = butterfly.0 + k * count;
                        let z = factors.as_ref().map_or(z, |factors| mul(z, factors[k as usize]));
                        let write = || self.write(i, self.exchanged(z.times(self.p.scale)));
                        if self.spec.partial { self.b.if_(i.lt(self.p.stored), write) } else { write() }
                    }
                });
            });
        }
    }

    /// Twiddle factors for the results of a butterfly if further passes follow. Exponent
    /// `position * (butterfly + k * count)` is a sum of three parts: of the butterfly, of `k`
    /// rounded down to a multiple of 4, and of `k` modulo 4. Products of the three roots are
    /// cheaper than scattered loads from the table.
    fn twiddles(&self, butterfly: Value<'b>, radix: u32) -> Option<Vec<Complex<'b>>> {
        let (roots, bits) = (self.p.roots?, self.p.bits?);
        let step = self.position * self.line.count(radix);
        let at = |e: Value<'b>| root(self.b, roots, bits, e);
        let first = at(self.position * butterfly);
        let rests: Vec<Complex> = (1..radix.min(4)).map(|k| at(step * k)).collect();
        let fours = (1..radix.div_ceil(4)).map(|k| mul(first, at(step * (4 * k))));
        let fours: Vec<Complex> = std::iter::once(first).chain(fours).collect();
        let product = |k: usize| if k.is_multiple_of(4) { fours[k / 4] } else { mul(fours[k / 4], rests[k % 4 - 1]) };
        Some((0..radix as usize).map(product).collect())
    }

    fn write(&self, i: Value<'b>, z: Complex<'b>) {
        let PassParameters { out, out_step, total, position_step, rows, .. } = *self.p;
        let at = |i: Value<'b>| self.out + i.cast(self.spec.layout.index) * out_step;
        match self.spec.store {
            Store::Complex => out.store_chunk(at(i), &z.parts()),
            Store::Real => out.store(at(i), z.re),
            Store::HalfSpectrum | Store::FullSpectrum => {
                let position = self.position + i * position_step;
                // The conjugates of a row belong to the row at the same distance from the end,
                // which may be the same row.
                let row = self.position % rows;
                let mirrored = row.ne(0) & (row * 2).ne(rows);
                let (first, second) = if self.spec.store == Store::HalfSpectrum {
                    let low = position.le(total / 2);
                    (low, !low & mirrored)
                } else {
                    (self.b.bool(true), mirrored)
                };
                self.b.if_(first, || out.store_chunk(at(position), &z.parts()));
                self.b.if_(second, || out.store_chunk(at(total - position), &[z.re, -z.im]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use smallvec::smallvec;

    #[test]
    fn kernels_are_valid() {
        let shape = |lanes, lines, across, exchanges_both_parts| Shape { lanes, lines, across, exchanges_both_parts };
        let layout = |operands, index| LayoutSpec { rank: 2, operands, index };
        let plain = Pass {
            real_dtype: DType::F32,
            radices: smallvec![10, 6],
            shape: shape(6, 42, false, true),
            layout: layout(2, ScalarType::U32),
            load: Load::Complex,
            store: Store::Complex,
            inverse: false,
            has_twiddles: false,
            partial: false,
            recomputes: false,
        };
        let three = layout(3, ScalarType::U64);
        for pass in [
            plain.clone(),
            Pass { radices: smallvec![1], shape: shape(1, 256, true, true), inverse: true, ..plain.clone() },
            Pass {
                radices: smallvec![31],
                shape: shape(1, 256, false, true),
                load: Load::Real,
                partial: true,
                ..plain.clone()
            },
            Pass {
                shape: shape(6, 32, true, false),
                layout: three,
                has_twiddles: true,
                load: Load::HalfSpectrum,
                ..plain.clone()
            },
            Pass { real_dtype: DType::F64, layout: three, store: Store::HalfSpectrum, ..plain.clone() },
            Pass { real_dtype: DType::F64, layout: three, store: Store::FullSpectrum, ..plain.clone() },
            Pass { load: Load::HalfSpectrum, store: Store::Real, inverse: true, ..plain.clone() },
            Pass { recomputes: true, ..plain },
        ] {
            accepted(&pass.build());
        }
    }
}
