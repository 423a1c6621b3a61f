//! Transforms of any length as convolutions (Bluestein, "A linear filtering approach to the
//! computation of discrete Fourier transform", 1970): with `c[k] = exp(-pi i k^2 / n)`, result `k`
//! is `c[k]` times the sum of `x[j] c[j]` times the conjugate of `c[k - j]`.

use crate::context::Context;
use crate::error::Result;
use crate::fft::lines::{Lines, Load, Store};
use crate::fft::numbers::{half, number, root};
use crate::fft::twiddles::{self, RootsOfUnity};
use crate::primitives::kernel::{InDType, KernelSpec};
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::{Layout, LayoutParameter, LayoutSpec, index_type};
use dml_engine::interface::{Index, ReadRange, U32, WriteRange};
use dml_engine::{AddressRange, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::math::complex::{Complex, mul};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Maximum bytes of padded lines that are transformed at a time; a single line may be longer.
const MAX_BATCH_BYTES: i64 = 256 << 20;

/// Maximum length of a convolution whose filter is transformed on the host.
const MAX_HOST_LENGTH: i64 = 4096;

/// Transforms lines by convolutions of length `length`.
pub fn transform(cx: &Context, lines: &Lines, length: i64) -> Result<()> {
    let real_dtype = lines.real_dtype;
    let (chirp, filter) = factors(cx, real_dtype, lines.length, length)?;
    let once = (MAX_BATCH_BYTES / (length * real_dtype.complex().bytes() as i64)).clamp(1, lines.count());
    let padded = cx.empty(real_dtype.complex(), &[once, length])?;
    let mut first = 0;
    while first < lines.count() {
        let some = padded.narrow(0, 0, once.min(lines.count() - first));
        let walk = LineCopy::of(lines, first, &some, chirp);
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

/// The chirp, and the spectrum of the filter made from it. For short convolutions the host computes
/// them, in double precision.
fn factors(cx: &Context, real_dtype: DType, n: i64, length: i64) -> Result<(AddressRange, AddressRange)> {
    if length <= MAX_HOST_LENGTH {
        let both = twiddles::of_convolution(cx, real_dtype, n as u64, length as u64)?;
        let middle = both.start + n as u64 * real_dtype.complex().bytes();
        return Ok((AddressRange { end: middle, ..both }, AddressRange { start: middle, ..both }));
    }
    let chirp = cx.empty(real_dtype.complex(), &[n])?;
    let filter = cx.empty(real_dtype.complex(), &[1, length])?;
    let RootsOfUnity { table, bits } = twiddles::of_order(cx, real_dtype, 2 * n as u64)?;
    let arguments = ChirpArguments {
        chirp: chirp.range(),
        filter: filter.range(),
        roots: table,
        bits,
        n: n as u32,
        length: length as u32,
    };
    cx.run_threads(&Chirp { real_dtype }, &arguments, length as u64)?;
    Lines::along(1, length, (&filter, Load::Complex), (&filter, Store::Complex)).transform(cx)?;
    Ok((chirp.range(), filter.range()))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Chirp {
    real_dtype: DType,
}

parameters! {
    Chirp as s => ChirpArguments, ChirpParameters {
        chirp: WriteRange = s.real_dtype,
        filter: WriteRange = s.real_dtype,
        roots: ReadRange = s.real_dtype,
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

/// The copies of lines to the padded buffer of the convolution and back.
struct LineCopy<'l> {
    lines: &'l Lines,
    layout: Layout,
    first: i64,
    padded: &'l View,
    chirp: AddressRange,
}

impl<'l> LineCopy<'l> {
    fn of(lines: &'l Lines, first: i64, padded: &'l View, chirp: AddressRange) -> LineCopy<'l> {
        let operands = [&lines.input.strides[..], &lines.output.strides[..]];
        let mut layout = Layout::in_order(&lines.sizes, &operands, &lines.order());
        let reals = |range: AddressRange| ((range.end - range.start) / lines.real_dtype.bytes()) as i64;
        let most = reals(lines.input.range).max(reals(lines.output.range)).max(reals(padded.range()));
        layout.index = index_type(most.max(lines.count()));
        LineCopy { lines, layout, first, padded, chirp }
    }

    /// Copies numbers times the chirp to the padded lines, with zeros behind them.
    fn load(&self, cx: &Context) -> Result<()> {
        let Lines { real_dtype, load, inverse, .. } = *self.lines;
        let spec = Padding { real_dtype, load, inverse, layout: self.layout.spec() };
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

    /// Copies the first results of the convolution, times the chirp, to the output.
    fn store(&self, cx: &Context) -> Result<()> {
        let Lines { real_dtype, store, inverse, stored, .. } = *self.lines;
        let count = self.padded.sizes[0] * stored;
        let spec = ExtractKernel { real_dtype, real: store == Store::Real, inverse, layout: self.layout.spec() };
        let arguments = KeptArguments {
            out: self.lines.output.range,
            padded: self.padded.range(),
            chirp: self.chirp,
            scale: Number::Double(self.lines.scale),
            count,
            first: self.first,
            step: self.lines.output.step,
            stored: stored as u32,
            length: self.padded.sizes[1] as u32,
            layout: &self.layout,
        };
        cx.run_threads(&spec, &arguments, count as u64)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Padding {
    real_dtype: DType,
    load: Load,
    inverse: bool,
    layout: LayoutSpec,
}

parameters! {
    Padding as s => PaddingArguments, PaddingParameters {
        input: ReadRange = s.real_dtype,
        padded: WriteRange = s.real_dtype,
        chirp: ReadRange = s.real_dtype,
        /// Number of elements of all padded lines.
        count: Index = s.layout.index,
        /// The first line.
        first: Index = s.layout.index,
        /// Stride within a line.
        step: Index = s.layout.index,
        n: U32,
        length: U32,
        layout: LayoutParameter = s.layout,
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
            let [re, im] = [0, 1].map(|_| b.var(b.float(self.real_dtype.compute(), 0.0)));
            b.if_(i.lt(p.n), || {
                let start = p.layout.offsets(b, p.first + line)[0];
                let offset = |i: Value<'b>| start + i.cast(index) * p.step;
                let z = match self.load {
                    Load::Complex => number(p.input, offset(i)),
                    Load::Real => Complex::real(p.input.load(offset(i))),
                    Load::HalfSpectrum => half(p.input, i, p.n, offset),
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
struct ExtractKernel {
    real_dtype: DType,
    /// Only the real parts are stored.
    real: bool,
    inverse: bool,
    layout: LayoutSpec,
}

parameters! {
    ExtractKernel as s => KeptArguments, KeptParameters {
        out: WriteRange = s.real_dtype,
        padded: ReadRange = s.real_dtype,
        chirp: ReadRange = s.real_dtype,
        scale: InDType = s.real_dtype,
        /// Number of results that are stored, of all lines.
        count: Index = s.layout.index,
        /// The first line.
        first: Index = s.layout.index,
        /// Stride within a line.
        step: Index = s.layout.index,
        stored: U32,
        length: U32,
        layout: LayoutParameter = s.layout,
    }
}

impl KernelSpec for ExtractKernel {
    fn name(&self) -> &'static str {
        "fft_kept"
    }

    fn write<'b>(&self, b: &'b Builder, p: KeptParameters<'b>) {
        let index = self.layout.index;
        let at = linear_id(b, index);
        b.if_(at.lt(p.count), || {
            let line = at / p.stored.cast(index);
            let k = at - line * p.stored.cast(index);
            let z = mul(number(p.padded, line * p.length.cast(index) + k), number(p.chirp, k)).times(p.scale);
            let z = if self.inverse { Complex::new(z.im, z.re) } else { z };
            let offset = p.layout.offsets(b, p.first + line)[1] + k * p.step;
            if self.real {
                p.out.store(offset, z.re);
            } else {
                p.out.store_chunk(offset, &z.parts());
            }
        });
    }
}

/// Multiplies the spectrum of every line by the filter's.
fn filtered(cx: &Context, lines: &View, filter: AddressRange) -> Result<()> {
    let count = lines.numel();
    let spec = MultiplyFilterKernel { real_dtype: lines.dtype.real(), index: index_type(2 * count) };
    let arguments = FilteredArguments { lines: lines.range(), filter, count, length: lines.sizes[1] };
    cx.run_threads(&spec, &arguments, count as u64)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MultiplyFilterKernel {
    real_dtype: DType,
    index: ScalarType,
}

parameters! {
    MultiplyFilterKernel as s => FilteredArguments, FilteredParameters {
        lines: WriteRange = s.real_dtype,
        filter: ReadRange = s.real_dtype,
        count: Index = s.index,
        length: Index = s.index,
    }
}

impl KernelSpec for MultiplyFilterKernel {
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
        for (real_dtype, index) in [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64)] {
            let layout = LayoutSpec { rank: 2, operands: 2, index };
            accepted(&Chirp { real_dtype }.build());
            accepted(&MultiplyFilterKernel { real_dtype, index }.build());
            for (load, real, inverse) in
                [(Load::Complex, false, false), (Load::Real, false, false), (Load::HalfSpectrum, true, true)]
            {
                accepted(&Padding { real_dtype, load, inverse, layout }.build());
                accepted(&ExtractKernel { real_dtype, real, inverse, layout }.build());
            }
        }
    }
}
