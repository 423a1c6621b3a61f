//! The kernel that transforms lines which fit into a workgroup's memory: the algorithm of Stockham,
//! with the numbers of a butterfly in registers and an exchange through shared memory between the
//! stages. (Govindaraju et al., "High performance discrete Fourier transforms on graphics
//! processors", 2008.)
//!
//! A longer transform is several passes (Gentleman and Sande, "Fast Fourier transforms: for fun and
//! profit", 1966): each turns its results by the roots of the whole length. Inverse transforms are
//! those of numbers whose parts are exchanged.

use crate::context::Context;
use crate::error::Result;
use crate::fft::butterfly::transform;
use crate::fft::lengths::{Limits, MAX_RADIX, Radices, Stages, padded};
use crate::fft::lines::{Lines, Load, Store};
use crate::fft::twiddles::{self, Roots};
use crate::primitives::kernel::{InDType, KernelSpec};
use crate::scalar::Scalar as Number;
use crate::view::layout::{Layout, LayoutSpec, Walked, index_type};
use dml_engine::interface::{Index, ReadRange, U32, WriteRange};
use dml_engine::{AddressRange, parameters};
use dml_kernel::dense::folded;
use dml_kernel::math::complex::{Complex, mul};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Shared, Value};

/// Invocations of a workgroup, where lines leave a choice.
const INVOCATIONS: u32 = 256;

/// Transforms lines in one pass. Results are turned by roots of order `turn`, if there is one:
/// number `k` of a line by root `k` times the line's position.
pub fn run(cx: &Context, lines: &Lines, stages: &Stages, turn: Option<i64>) -> Result<()> {
    let part = lines.part;
    let limits = Limits::of(cx.device.info(), part);
    let positioned = turn.is_some() || lines.load == Load::Half || matches!(lines.store, Store::Half | Store::Whole);
    let mut operands = vec![&lines.input.strides[..], &lines.output.strides[..]];
    if positioned {
        operands.push(&lines.position.strides);
    }
    let mut layout = Layout::walk(&lines.sizes, &operands, &lines.order());
    let reals = |side: &AddressRange| ((side.end - side.start) / part.bytes()) as i64;
    layout.index = index_type(reals(&lines.input.range).max(reals(&lines.output.range)).max(lines.count()));
    let spec = Pass {
        part,
        radices: stages.radices.clone(),
        shape: Shape::of(&limits, stages, part, lines.input.step != 1 || lines.output.step != 1),
        layout: layout.spec(),
        load: lines.load,
        store: lines.store,
        inverse: lines.inverse,
        turned: turn.is_some(),
        partial: lines.kept < stages.length,
    };
    let table = if spec.radices.len() > 1 { Some(twiddles::of_stages(cx, part, &spec.radices)?) } else { None };
    let roots = turn.map(|order| twiddles::of_order(cx, part, order as u64)).transpose()?;
    let bits = roots.as_ref().map(|&Roots { bits, .. }| bits);
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
        kept: lines.kept as u32,
        total: lines.position.total as u32,
        position_step: lines.position.step as u32,
        rows: lines.position.rows as u32,
        layout: &layout,
    };
    cx.run(&spec, &arguments, folded((count as u64).div_ceil(u64::from(spec.shape.lines))))
}

/// How a workgroup shares lines.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct Shape {
    /// Invocations that share a line.
    lanes: u32,
    /// Lines of a workgroup.
    lines: u32,
    /// Neighbouring invocations have neighbouring lines; otherwise they share a line, if more than
    /// one does.
    across: bool,
    /// Both parts of a number are exchanged at once.
    together: bool,
}

impl Shape {
    fn of(limits: &Limits, stages: &Stages, part: DType, across: bool) -> Shape {
        let length = stages.length as u32;
        let most = stages.radices.iter().copied().max().unwrap_or(1);
        // Sixteen numbers an invocation, or as many as the largest radix leaves of them.
        let lanes = (length / most).div_ceil((MAX_RADIX / most).max(1)).min(limits.invocations);
        let invocations = INVOCATIONS.min(limits.invocations);
        let mut lines = (invocations / lanes).max(if across { limits.neighbours } else { 1 }).max(1);
        let fits =
            |lines: u32| lines * lanes <= limits.invocations && i64::from(lines) * stages.length <= limits.points;
        while lines > 1 && !fits(lines) {
            lines -= 1;
        }
        if across {
            lines = 1 << lines.ilog2();
        }
        let bytes = 2 * padded(lines * length) * part.bytes() as u32;
        Shape { lanes, lines, across, together: bytes <= limits.shared / 4 * 3 }
    }
}

/// What the kernel is specialised by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pass {
    /// Of the numbers' parts.
    part: DType,
    radices: Radices,
    shape: Shape,
    /// Input, output and, if it counts, position of a line's first number.
    layout: LayoutSpec,
    load: Load,
    store: Store,
    inverse: bool,
    turned: bool,
    /// Some results of a line are not stored.
    partial: bool,
}

parameters! {
    Pass as s => PassArguments, PassParameters {
        input: ReadRange = s.part,
        out: WriteRange = s.part,
        /// [`twiddles::of_stages`]
        table: Option<ReadRange> = (s.radices.len() > 1).then_some(s.part),
        /// [`twiddles::of_order`]
        roots: Option<ReadRange> = s.turned.then_some(s.part),
        bits: Option<U32> = s.turned.then_some(()),
        /// Factor of the results.
        scale: InDType = s.part,
        lines: Index = s.layout.index,
        /// From one number of a line to the next.
        in_step: Index = s.layout.index,
        out_step: Index = s.layout.index,
        /// Numbers of a line that are stored.
        kept: U32,
        /// See [`Position`](super::lines::Position).
        total: U32,
        position_step: U32,
        rows: U32,
        layout: Walked = s.layout,
    }
}

/// A kernel as it is written.
struct Writer<'p, 'b> {
    b: &'b Builder,
    spec: &'p Pass,
    p: &'p PassParameters<'b>,
    length: u32,
    /// Of the invocation among those of its line, and of the line in its workgroup.
    lane: Value<'b>,
    line: Value<'b>,
    /// There is such a line. A superfluous invocation reads the last one.
    valid: Value<'b>,
    /// Offsets of the line's first number.
    input: Value<'b>,
    out: Value<'b>,
    /// Its position (u32).
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
        let Shape { lanes, lines, across, together } = self.shape;
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
            length,
            lane,
            line,
            valid: wanted.lt(p.lines),
            input: offsets[0],
            out: offsets[1],
            position: offsets.get(2).map_or_else(|| b.u32(0), |&x| x.cast(ScalarType::U32)),
        };
        let scalar = self.part.compute();
        let shared: Vec<Shared> = if self.radices.len() > 1 {
            (0..1 + u32::from(together)).map(|_| b.shared(scalar, 1, padded(lines * length))).collect()
        } else {
            Vec::new()
        };
        let mut numbers = writer.load();
        let (mut done, mut begun) = (1, 0);
        for (i, &radix) in self.radices.iter().enumerate() {
            if i > 0 {
                writer.exchange(&shared, &mut numbers, [self.radices[i - 1], radix], done, i == 1);
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
    /// Butterflies of a stage of this radix in a line.
    fn count(&self, radix: u32) -> u32 {
        self.length / radix
    }

    /// The invocation's butterflies of a stage, and which of them may be beyond the last.
    fn butterflies(&self, radix: u32) -> Vec<(Value<'b>, bool)> {
        let (count, lanes) = (self.count(radix), self.spec.shape.lanes);
        (0..count.div_ceil(lanes)).map(|turn| (self.lane + turn * lanes, (turn + 1) * lanes > count)).collect()
    }

    /// Calls `then` where a butterfly exists.
    fn where_real(&self, radix: u32, (butterfly, ragged): (Value<'b>, bool), then: impl FnOnce()) {
        if ragged { self.b.if_(butterfly.lt(self.count(radix)), then) } else { then() }
    }

    /// The numbers of the first stage's butterflies.
    fn load(&self) -> Vec<Vec<Complex<'b>>> {
        let radix = self.spec.radices[0];
        let count = self.count(radix);
        self.butterflies(radix)
            .into_iter()
            .map(|(butterfly, ragged)| {
                let first = if ragged { butterfly.min(count - 1) } else { butterfly };
                (0..radix).map(|k| self.exchanged(self.read(first + k * count))).collect()
            })
            .collect()
    }

    /// Number `i` of the line.
    fn read(&self, i: Value<'b>) -> Complex<'b> {
        let PassParameters { input, in_step, total, position_step, .. } = *self.p;
        let at = |i: Value<'b>| self.input + i.cast(self.spec.layout.index) * in_step;
        match self.spec.load {
            Load::Complex => number(input, at(i)),
            Load::Real => Complex::real(input.load(at(i))),
            Load::Half => half(input, self.position + i * position_step, total, at),
        }
    }

    /// Parts exchanged for an inverse transform.
    fn exchanged(&self, z: Complex<'b>) -> Complex<'b> {
        if self.spec.inverse { Complex::new(z.im, z.re) } else { z }
    }

    /// Turns the inputs of a stage, of which each of `done` neighbouring butterflies has its own
    /// factors.
    fn twiddle(&self, numbers: &mut [Vec<Complex<'b>>], radix: u32, done: u32, begun: u32) {
        let Some(table) = self.p.table else { return };
        for ((butterfly, _), numbers) in self.butterflies(radix).into_iter().zip(numbers) {
            let p = butterfly % done + begun;
            for (k, z) in (0..radix).zip(numbers).skip(1) {
                *z = mul(*z, number(table, p + (k - 1) * done));
            }
        }
    }

    /// Where `count` numbers of the line, from number `start` on and `step` apart, lie in shared
    /// memory.
    fn slots(&self, start: Value<'b>, step: u32, count: u32) -> Vec<Value<'b>> {
        let Shape { lines, across, .. } = self.spec.shape;
        let (first, step) =
            if across { (start * lines + self.line, step * lines) } else { (self.line * self.length + start, step) };
        let padded = |plain: Value<'b>| plain + (plain >> 5);
        if step.is_multiple_of(32) {
            let first = padded(first);
            return (0..count).map(|k| first + k * (step + step / 32)).collect();
        }
        (0..count).map(|k| padded(first + k * step)).collect()
    }

    /// Hands the results of a stage, in front of which the radices multiply to `done`, to the
    /// butterflies of the next.
    fn exchange(
        &self,
        shared: &[Shared<'b>],
        numbers: &mut Vec<Vec<Complex<'b>>>,
        [radix, next]: [u32; 2],
        done: u32,
        first: bool,
    ) {
        let b = self.b;
        let from: Vec<Vec<Value>> = self
            .butterflies(radix)
            .iter()
            .map(|&(butterfly, _)| {
                let inner = butterfly % done;
                let start = (butterfly - inner) * radix + inner;
                self.slots(start, done, radix)
            })
            .collect();
        let count = self.count(next);
        let to: Vec<Vec<Value>> = self
            .butterflies(next)
            .iter()
            .map(|&(butterfly, ragged)| {
                let start = if ragged { butterfly.min(count - 1) } else { butterfly };
                self.slots(start, count, next)
            })
            .collect();
        let parts = |z: &Complex<'b>| [z.re, z.im];
        let write = |part: usize, shared: Shared<'b>| {
            for ((&butterfly, slots), numbers) in self.butterflies(radix).iter().zip(&from).zip(numbers.iter()) {
                self.where_real(radix, butterfly, || {
                    for (&slot, z) in slots.iter().zip(numbers) {
                        shared.store(slot, parts(z)[part]);
                    }
                });
            }
        };
        let read = |shared: Shared<'b>| -> Vec<Vec<Value<'b>>> {
            to.iter().map(|slots| slots.iter().map(|&slot| shared.load(slot)).collect()).collect()
        };
        if !first {
            b.barrier();
        }
        let [re, im] = if let &[re, im] = shared {
            write(0, re);
            write(1, im);
            b.barrier();
            [read(re), read(im)]
        } else {
            write(0, shared[0]);
            b.barrier();
            let re = read(shared[0]);
            b.barrier();
            write(1, shared[0]);
            b.barrier();
            [re, read(shared[0])]
        };
        let pairs = |(re, im): (Vec<Value<'b>>, Vec<Value<'b>>)| {
            re.into_iter().zip(im).map(|(re, im)| Complex::new(re, im)).collect()
        };
        *numbers = re.into_iter().zip(im).map(pairs).collect();
    }

    /// Writes the last stage's results.
    fn store(&self, numbers: &[Vec<Complex<'b>>]) {
        let radix = self.spec.radices.last().copied().unwrap_or(1);
        let count = self.count(radix);
        for (&butterfly, numbers) in self.butterflies(radix).iter().zip(numbers) {
            self.where_real(radix, butterfly, || {
                self.b.if_(self.valid, || {
                    let turns = self.turns(butterfly.0, radix);
                    for (k, &z) in (0..radix).zip(numbers) {
                        let i = butterfly.0 + k * count;
                        let z = turns.as_ref().map_or(z, |turns| mul(z, turns[k as usize]));
                        let write = || self.write(i, self.exchanged(z.times(self.p.scale)));
                        if self.spec.partial { self.b.if_(i.lt(self.p.kept), write) } else { write() }
                    }
                });
            });
        }
    }

    /// What turns the results of a butterfly for the passes that follow, if there are any. Root
    /// `position (butterfly + k count)` is made of three, those of the butterfly, of the fours in
    /// `k` and of its rest: the table is read at scattered places, which costs more than products.
    fn turns(&self, butterfly: Value<'b>, radix: u32) -> Option<Vec<Complex<'b>>> {
        let (roots, bits) = (self.p.roots?, self.p.bits?);
        let step = self.position * self.count(radix);
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
            Store::Half | Store::Whole => {
                let position = self.position + i * position_step;
                // The conjugates of a row are those of the row as far from the end, which may be
                // the same.
                let row = self.position % rows;
                let mirrored = row.ne(0) & (row * 2).ne(rows);
                let (first, second) = if self.spec.store == Store::Half {
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

/// The complex number at an offset, in complex numbers.
pub fn number<'b>(pointer: Pointer<'b>, at: Value<'b>) -> Complex<'b> {
    let parts = pointer.load_chunk(at, 2);
    Complex::new(parts[0], parts[1])
}

/// The number at a position of `total`, of which memory has those up to the middle: the others are
/// their conjugates, and the first and the middle one are taken for real. `at` says where a
/// position lies.
pub fn half<'b>(
    input: Pointer<'b>,
    position: Value<'b>,
    total: Value<'b>,
    at: impl Fn(Value<'b>) -> Value<'b>,
) -> Complex<'b> {
    let low = (position * 2).le(total);
    let z = number(input, at(low.select(position, total - position)));
    let real = position.eq(0) | (position * 2).eq(total);
    Complex::new(z.re, real.select(z.im.like(0.0), low.select(z.im, -z.im)))
}

/// Root `e` (u32) from the table of [`twiddles::of_order`].
pub fn root<'b>(b: &'b Builder, roots: Pointer<'b>, bits: Value<'b>, e: Value<'b>) -> Complex<'b> {
    let entries = b.u32(1) << bits;
    let (low, high) = (number(roots, e & (entries - 1)), number(roots, entries + (e >> bits)));
    mul(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use smallvec::smallvec;

    #[test]
    fn kernels_are_valid() {
        let shape = |lanes, lines, across, together| Shape { lanes, lines, across, together };
        let layout = |operands, index| LayoutSpec { rank: 2, operands, index };
        let plain = Pass {
            part: DType::F32,
            radices: smallvec![10, 6],
            shape: shape(6, 42, false, true),
            layout: layout(2, ScalarType::U32),
            load: Load::Complex,
            store: Store::Complex,
            inverse: false,
            turned: false,
            partial: false,
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
            Pass { shape: shape(6, 32, true, false), layout: three, turned: true, load: Load::Half, ..plain.clone() },
            Pass { part: DType::F64, layout: three, store: Store::Half, ..plain.clone() },
            Pass { part: DType::F64, layout: three, store: Store::Whole, ..plain.clone() },
            Pass { load: Load::Half, store: Store::Real, inverse: true, ..plain },
        ] {
            accepted(&pass.build());
        }
    }

    #[test]
    fn shapes_fit() {
        for (shared, invocations) in [(16 << 10, 128), (32 << 10, 256), (48 << 10, 1024)] {
            for part in [DType::F32, DType::F64] {
                let mut points = 8192;
                while padded(points) * part.bytes() as u32 > shared || points / MAX_RADIX > invocations {
                    points /= 2;
                }
                let limits =
                    Limits { points: points.into(), shared, invocations, neighbours: 32 / part.bytes() as u32 };
                for n in 1..=i64::from(points) {
                    let Some(plan) = limits.plan(n) else { panic!("{n} has no plan") };
                    let crate::fft::lengths::Plan::Passes(passes) = &*plan else { continue };
                    for across in [false, true] {
                        let shape = Shape::of(&limits, &passes[0], part, across);
                        let arrays = if shape.together { 2 } else { 1 };
                        let exchanged = if passes[0].radices.len() > 1 { shape.lines * n as u32 } else { 0 };
                        assert!(shape.lanes * shape.lines <= invocations, "{n} {shape:?}");
                        assert!(arrays * padded(exchanged) * part.bytes() as u32 <= shared, "{n} {shape:?}");
                    }
                }
            }
        }
    }
}
