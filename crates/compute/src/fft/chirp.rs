//! Transforms of any length as convolutions (Bluestein, "A linear filtering approach to the
//! computation of discrete Fourier transform", 1970): with `c[k] = exp(-pi i k^2 / n)`, result `k`
//! is `c[k]` times the sum of `x[j] c[j]` times the conjugate of `c[k - j]`.

use crate::context::Context;
use crate::error::Result;
use crate::fft::lines::{Lines, Load, Store};
use crate::fft::pass::{half, number, root};
use crate::fft::twiddles::{self, Roots};
use crate::primitives::kernel::{InDType, KernelSpec};
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::{Layout, LayoutSpec, Walked, index_type};
use dml_engine::interface::{Index, ReadRange, U32, WriteRange};
use dml_engine::{AddressRange, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::math::complex::{Complex, mul};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// The most bytes of lines that are transformed at a time, one line excepted.
const AT_A_TIME: i64 = 256 << 20;

/// The longest convolution whose filter the host transforms.
const BY_HOST: i64 = 4096;

/// Transforms lines by convolutions of `length` numbers.
pub fn transform(cx: &Context, lines: &Lines, length: i64) -> Result<()> {
    let part = lines.part;
    let (chirp, filter) = factors(cx, part, lines.length, length)?;
    let once = (AT_A_TIME / (length * part.complex().bytes() as i64)).clamp(1, lines.count());
    let padded = cx.empty(part.complex(), &[once, length])?;
    let mut first = 0;
    while first < lines.count() {
        let some = padded.narrow(0, 0, once.min(lines.count() - first));
        let walk = Walk::of(lines, first, &some, chirp);
        walk.load(cx)?;
        let along = Lines::along(1, length, (&some, Load::Complex), (&some, Store::Complex));
        along.transform(cx)?;
        filtered(cx, &some, filter)?;
        Lines { inverse: true, scale: 1.0 / length as f64, ..along }.transform(cx)?;
        walk.store(cx)?;
        first += once;
    }
    Ok(())
}

/// The chirp, and the spectrum of the filter that it is: the host's, in double precision, for short
/// convolutions.
fn factors(cx: &Context, part: DType, n: i64, length: i64) -> Result<(AddressRange, AddressRange)> {
    if length <= BY_HOST {
        let both = twiddles::of_convolution(cx, part, n as u64, length as u64)?;
        let middle = both.start + n as u64 * part.complex().bytes();
        return Ok((AddressRange { end: middle, ..both }, AddressRange { start: middle, ..both }));
    }
    let chirp = cx.empty(part.complex(), &[n])?;
    let filter = cx.empty(part.complex(), &[1, length])?;
    let Roots { table, bits } = twiddles::of_order(cx, part, 2 * n as u64)?;
    let arguments = ChirpArguments {
        chirp: chirp.range(),
        filter: filter.range(),
        roots: table,
        bits,
        n: n as u32,
        length: length as u32,
    };
    cx.run_threads(&Chirp { part }, &arguments, length as u64)?;
    Lines::along(1, length, (&filter, Load::Complex), (&filter, Store::Complex)).transform(cx)?;
    Ok((chirp.range(), filter.range()))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Chirp {
    part: DType,
}

parameters! {
    Chirp as s => ChirpArguments, ChirpParameters {
        chirp: WriteRange = s.part,
        filter: WriteRange = s.part,
        roots: ReadRange = s.part,
        bits: U32,
        n: U32,
        length: U32,
    }
}

impl KernelSpec for Chirp {
    fn name(&self) -> &'static str {
        "fft_chirp"
    }

    fn write<'b>(&self, b: &'b Builder, p: ChirpParameters<'b>) {
        let i = linear_id(b, ScalarType::U32);
        b.if_(i.lt(p.length), || {
            let distance = i.min(p.length - i);
            let inside = distance.lt(p.n);
            let wide = inside.select(distance, 0).cast(ScalarType::U64);
            let turns = (wide * wide) % (p.n.cast(ScalarType::U64) * 2);
            let c = root(b, p.roots, p.bits, turns.cast(ScalarType::U32));
            b.if_(i.lt(p.n), || p.chirp.store_chunk(i, &c.parts()));
            let zero = c.re.like(0.0);
            p.filter.store_chunk(i, &[inside.select(c.re, zero), inside.select(-c.im, zero)]);
        });
    }
}

/// Lines on their way to the convolution and back.
struct Walk<'l> {
    lines: &'l Lines,
    layout: Layout,
    first: i64,
    padded: &'l View,
    chirp: AddressRange,
}

impl<'l> Walk<'l> {
    fn of(lines: &'l Lines, first: i64, padded: &'l View, chirp: AddressRange) -> Walk<'l> {
        let operands = [&lines.input.strides[..], &lines.output.strides[..]];
        let mut layout = Layout::walk(&lines.sizes, &operands, &lines.order());
        let reals = |range: AddressRange| ((range.end - range.start) / lines.part.bytes()) as i64;
        let most = reals(lines.input.range).max(reals(lines.output.range)).max(reals(padded.range()));
        layout.index = index_type(most.max(lines.count()));
        Walk { lines, layout, first, padded, chirp }
    }

    /// Numbers times the chirp, and zeros behind them.
    fn load(&self, cx: &Context) -> Result<()> {
        let Lines { part, load, inverse, .. } = *self.lines;
        let spec = Padding { part, load, inverse, layout: self.layout.spec() };
        let arguments = PaddingArguments {
            input: self.lines.input.range,
            padded: self.padded.range(),
            chirp: self.chirp,
            count: self.padded.numel(),
            first: self.first,
            step: self.lines.input.step,
            n: self.lines.length as u32,
            length: self.padded.sizes[1] as u32,
            layout: &self.layout,
        };
        cx.run_threads(&spec, &arguments, self.padded.numel() as u64)
    }

    /// What is kept of the convolution, times the chirp.
    fn store(&self, cx: &Context) -> Result<()> {
        let Lines { part, store, inverse, kept, .. } = *self.lines;
        let count = self.padded.sizes[0] * kept;
        let spec = Kept { part, real: store == Store::Real, inverse, layout: self.layout.spec() };
        let arguments = KeptArguments {
            out: self.lines.output.range,
            padded: self.padded.range(),
            chirp: self.chirp,
            scale: Number::Double(self.lines.scale),
            count,
            first: self.first,
            step: self.lines.output.step,
            kept: kept as u32,
            length: self.padded.sizes[1] as u32,
            layout: &self.layout,
        };
        cx.run_threads(&spec, &arguments, count as u64)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Padding {
    part: DType,
    load: Load,
    inverse: bool,
    layout: LayoutSpec,
}

parameters! {
    Padding as s => PaddingArguments, PaddingParameters {
        input: ReadRange = s.part,
        padded: WriteRange = s.part,
        chirp: ReadRange = s.part,
        /// Numbers of all padded lines.
        count: Index = s.layout.index,
        /// The first line.
        first: Index = s.layout.index,
        /// From one number of a line to the next.
        step: Index = s.layout.index,
        n: U32,
        length: U32,
        layout: Walked = s.layout,
    }
}

impl KernelSpec for Padding {
    fn name(&self) -> &'static str {
        "fft_padding"
    }

    fn write<'b>(&self, b: &'b Builder, p: PaddingParameters<'b>) {
        let index = self.layout.index;
        let at = linear_id(b, index);
        b.if_(at.lt(p.count), || {
            let line = at / p.length.cast(index);
            let i = (at - line * p.length.cast(index)).cast(ScalarType::U32);
            let [re, im] = [0, 1].map(|_| b.var(b.float(self.part.compute(), 0.0)));
            b.if_(i.lt(p.n), || {
                let start = p.layout.offsets(b, p.first + line)[0];
                let place = |i: Value<'b>| start + i.cast(index) * p.step;
                let z = match self.load {
                    Load::Complex => number(p.input, place(i)),
                    Load::Real => Complex::real(p.input.load(place(i))),
                    Load::Half => half(p.input, i, p.n, place),
                };
                let z = if self.inverse { Complex::new(z.im, z.re) } else { z };
                let z = mul(z, number(p.chirp, i));
                re.set(z.re);
                im.set(z.im);
            });
            p.padded.store_chunk(at, &[re.get(), im.get()]);
        });
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kept {
    part: DType,
    /// Only the real parts.
    real: bool,
    inverse: bool,
    layout: LayoutSpec,
}

parameters! {
    Kept as s => KeptArguments, KeptParameters {
        out: WriteRange = s.part,
        padded: ReadRange = s.part,
        chirp: ReadRange = s.part,
        scale: InDType = s.part,
        /// Numbers that are kept of all lines.
        count: Index = s.layout.index,
        /// The first line.
        first: Index = s.layout.index,
        /// From one number of a line to the next.
        step: Index = s.layout.index,
        kept: U32,
        length: U32,
        layout: Walked = s.layout,
    }
}

impl KernelSpec for Kept {
    fn name(&self) -> &'static str {
        "fft_kept"
    }

    fn write<'b>(&self, b: &'b Builder, p: KeptParameters<'b>) {
        let index = self.layout.index;
        let at = linear_id(b, index);
        b.if_(at.lt(p.count), || {
            let line = at / p.kept.cast(index);
            let k = at - line * p.kept.cast(index);
            let z = mul(number(p.padded, line * p.length.cast(index) + k), number(p.chirp, k)).times(p.scale);
            let z = if self.inverse { Complex::new(z.im, z.re) } else { z };
            let place = p.layout.offsets(b, p.first + line)[1] + k * p.step;
            if self.real {
                p.out.store(place, z.re);
            } else {
                p.out.store_chunk(place, &z.parts());
            }
        });
    }
}

/// Multiplies the spectrum of every line by the filter's.
fn filtered(cx: &Context, lines: &View, filter: AddressRange) -> Result<()> {
    let count = lines.numel();
    let spec = Filtered { part: lines.dtype.real(), index: index_type(2 * count) };
    let arguments = FilteredArguments { lines: lines.range(), filter, count, length: lines.sizes[1] };
    cx.run_threads(&spec, &arguments, count as u64)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Filtered {
    part: DType,
    index: ScalarType,
}

parameters! {
    Filtered as s => FilteredArguments, FilteredParameters {
        lines: WriteRange = s.part,
        filter: ReadRange = s.part,
        count: Index = s.index,
        length: Index = s.index,
    }
}

impl KernelSpec for Filtered {
    fn name(&self) -> &'static str {
        "fft_filtered"
    }

    fn write<'b>(&self, b: &'b Builder, p: FilteredParameters<'b>) {
        let at = linear_id(b, self.index);
        b.if_(at.lt(p.count), || {
            let z = mul(number(p.lines, at), number(p.filter, at % p.length));
            p.lines.store_chunk(at, &z.parts());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (part, index) in [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64)] {
            let layout = LayoutSpec { rank: 2, operands: 2, index };
            accepted(&Chirp { part }.build());
            accepted(&Filtered { part, index }.build());
            for (load, real, inverse) in
                [(Load::Complex, false, false), (Load::Real, false, false), (Load::Half, true, true)]
            {
                accepted(&Padding { part, load, inverse, layout }.build());
                accepted(&Kept { part, real, inverse, layout }.build());
            }
        }
    }
}
