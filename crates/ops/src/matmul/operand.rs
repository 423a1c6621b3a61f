//! How elements of an operand are fetched. An operand is a matrix of an outer index (m or n) and the inner index k;
//! where element `(outer, k)` lies in memory is one of two patterns, so that a convolution is a product whose matrix
//! is never written out.

use super::divisor::{self, Divisor};
use crate::primitives::launch::Launcher;
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Pointer, Scalar, Value};
use smallvec::SmallVec;

/// Elements of a wide load.
pub const WIDE: u32 = 4;

/// The index along which neighbouring invocations read neighbouring memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Axis {
    /// m of the first operand, n of the second.
    Outer,
    /// k
    Inner,
}

/// How one index falls apart into digits, slowest first: plain ones, which step through memory, and one for every
/// window dimension.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Digits {
    /// Plain digits, at most 2.
    pub plain: u8,
    /// The plain digits are the slowest; otherwise the fastest.
    pub plain_first: bool,
}

/// Where elements lie.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// `outer * stride + k * stride`
    Strided,
    /// Plain digits of both indices, and windows: a window dimension's coordinate is
    /// `(outer digit * step + k digit * step + offset) / divisor`; the element is 0 where the division leaves a
    /// remainder or the coordinate is outside.
    Digits {
        /// Digits of the outer index.
        outer: Digits,
        /// Digits of k.
        inner: Digits,
        /// Window dimensions.
        windows: u8,
        /// Whether coordinates are divided.
        divided: bool,
    },
}

/// The part of an operand that changes code.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Element type.
    pub dtype: DType,
    /// Direction of the loads.
    pub axis: Axis,
    /// Loads take [`WIDE`] elements at once: memory is contiguous along the axis, and everything is a multiple.
    pub wide: bool,
    /// Where elements lie.
    pub pattern: Pattern,
}

impl Access {
    /// Elements of one load.
    pub fn width(&self) -> u32 {
        if self.wide { WIDE } else { 1 }
    }

    /// The access as part of a kernel's key, below 2^16.
    pub fn code(&self) -> u32 {
        let digits = |d: Digits| u32::from(d.plain) << 1 | u32::from(d.plain_first);
        let pattern = match self.pattern {
            Pattern::Strided => 0,
            Pattern::Digits { outer, inner, windows, divided } => {
                1 | u32::from(divided) << 1 | u32::from(windows) << 2 | digits(outer) << 4 | digits(inner) << 7
            }
        };
        pattern << 6 | u32::from(self.wide) << 5 | u32::from(self.axis == Axis::Inner) << 4 | self.dtype as u32
    }
}

/// A plain digit's size and its step in memory, in elements.
#[derive(Copy, Clone, Debug)]
pub struct Step {
    /// Values of the digit.
    pub size: i64,
    /// Elements from one value to the next.
    pub stride: i64,
}

/// A window dimension.
#[derive(Copy, Clone, Debug)]
pub struct Window {
    /// Values of the outer index's digit.
    pub outer: i64,
    /// Values of k's digit.
    pub inner: i64,
    /// Coordinates that exist in memory.
    pub size: i64,
    /// Elements from one coordinate to the next.
    pub stride: i64,
    /// Step of the outer digit.
    pub outer_step: i64,
    /// Step of k's digit.
    pub inner_step: i64,
    /// Added before the division.
    pub offset: i64,
    /// Divides the sum; 1 unless the pattern is divided.
    pub divisor: i64,
}

/// The numbers of a pattern.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one lives at a time, on the stack")]
pub enum Place {
    /// Of [`Pattern::Strided`], in elements.
    Strided {
        /// From one outer index to the next.
        outer: i64,
        /// From one k to the next.
        inner: i64,
    },
    /// Of [`Pattern::Digits`], slowest first.
    Digits {
        /// Plain digits of the outer index.
        outer: SmallVec<[Step; 2]>,
        /// Plain digits of k.
        inner: SmallVec<[Step; 2]>,
        /// Window dimensions.
        windows: SmallVec<[Window; 3]>,
    },
}

/// What a launch must know of a tensor beside how it is walked.
#[derive(Copy, Clone, Debug)]
pub struct Memory {
    /// Address of the first element.
    pub address: u64,
    /// One past the last byte.
    pub end: u64,
    /// Element type.
    pub dtype: DType,
}

impl From<&Tensor> for Memory {
    fn from(t: &Tensor) -> Memory {
        Memory { address: t.data, end: t.range().end, dtype: t.dtype }
    }
}

impl Memory {
    /// Elements from the first to one past the last.
    pub fn reach(&self) -> i64 {
        ((self.end - self.address) / self.dtype.bytes()) as i64
    }

    /// What lies `elements` behind the beginning.
    pub fn skip(&self, elements: i64) -> Memory {
        Memory { address: self.address + elements as u64 * self.dtype.bytes(), ..*self }
    }

    /// Bytes from the first to the last.
    pub fn bytes(&self) -> u64 {
        self.end - self.address
    }

    /// Whether it may be accessed four elements at a time, as far as its address goes.
    pub fn is_aligned(&self) -> bool {
        self.address.is_multiple_of((self.dtype.bytes() * u64::from(WIDE)).min(16))
    }
}

/// An operand of one launch.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it lies.
    pub memory: Memory,
    /// Elements from one matrix of the batch to the next.
    pub batch: i64,
    /// How it is read.
    pub access: Access,
    /// The numbers of that.
    pub place: Place,
}

impl Source {
    /// A strided matrix of `outer x inner` elements, with a wide access where memory allows it.
    pub fn strided(t: &Tensor, size: [i64; 2], stride: [i64; 2], batch: i64) -> Source {
        let memory = Memory::from(t);
        let multiple = |x: i64| x % i64::from(WIDE) == 0;
        let wide = |along: usize| {
            stride[along] == 1
                && multiple(size[along])
                && (size[1 - along] == 1 || multiple(stride[1 - along]))
                && multiple(batch)
                && memory.is_aligned()
        };
        let (axis, wide) = if wide(1) {
            (Axis::Inner, true)
        } else if wide(0) {
            (Axis::Outer, true)
        } else if size[0] == 1 || (stride[1] < stride[0] && size[1] > 1) {
            (Axis::Inner, false)
        } else {
            (Axis::Outer, false)
        };
        let access = Access { dtype: t.dtype, axis, wide, pattern: Pattern::Strided };
        Source { memory, batch, access, place: Place::Strided { outer: stride[0], inner: stride[1] } }
    }

    /// The largest offset, in elements, that a tile of `outer x inner` elements meets beside its own origin.
    pub fn reach(&self, outer: i64, inner: i64) -> i64 {
        match &self.place {
            Place::Strided { outer: o, inner: i } => o * outer + i * inner,
            Place::Digits { .. } => self.memory.reach(),
        }
    }

    /// Passes what [`Reader::declare`] declares after the pointer.
    pub fn pass<'c, 'a>(&self, index: Scalar, mut launcher: Launcher<'c, 'a>) -> Launcher<'c, 'a> {
        launcher = launcher.index(index, self.batch);
        match &self.place {
            Place::Strided { outer, inner } => launcher.index(index, *outer).index(index, *inner),
            Place::Digits { outer, inner, windows } => {
                let Pattern::Digits { outer: o, inner: i, divided, .. } = self.access.pattern else { return launcher };
                for (digits, steps, side) in [(o, outer, 0), (i, inner, 1)] {
                    let plain = steps.iter().map(|s| s.size);
                    let inside = windows.iter().map(|w| if side == 0 { w.outer } else { w.inner });
                    let sizes: SmallVec<[i64; 5]> =
                        if digits.plain_first { plain.chain(inside).collect() } else { inside.chain(plain).collect() };
                    for &size in &sizes[1..] {
                        launcher = divisor::pass(launcher, size.max(1));
                    }
                    for s in steps {
                        launcher = launcher.index(index, s.stride);
                    }
                }
                for w in windows {
                    launcher = launcher.u32(w.size as u32).index(index, w.stride);
                    launcher = launcher.i32(w.outer_step as i32).i32(w.inner_step as i32).i32(w.offset as i32);
                    if divided {
                        launcher = divisor::pass(launcher, w.divisor);
                    }
                }
                launcher
            }
        }
    }
}

struct SideParams<'b> {
    /// Of every digit but the slowest, slowest first.
    divisors: Vec<Divisor<'b>>,
    strides: Vec<Value<'b>>,
    digits: Digits,
}

struct WindowParams<'b> {
    size: Value<'b>,
    stride: Value<'b>,
    outer_step: Value<'b>,
    inner_step: Value<'b>,
    offset: Value<'b>,
    divisor: Option<Divisor<'b>>,
}

enum Params<'b> {
    Strided { outer: Value<'b>, inner: Value<'b> },
    Digits { outer: SideParams<'b>, inner: SideParams<'b>, windows: Vec<WindowParams<'b>> },
}

/// An operand inside a kernel.
pub struct Reader<'b> {
    /// How it is read.
    pub access: Access,
    pointer: Pointer<'b>,
    index: Scalar,
    batch: Value<'b>,
    params: Params<'b>,
}

/// What does not change from k-tile to k-tile of one load.
pub struct Lane<'b> {
    /// k in the tile.
    k: Value<'b>,
    offset: Value<'b>,
    coordinates: Vec<Value<'b>>,
}

impl<'b> Reader<'b> {
    /// Declares the numbers of an operand; the pointer is declared before.
    pub fn declare(b: &'b Builder, name: &str, pointer: Pointer<'b>, access: Access, index: Scalar) -> Reader<'b> {
        let batch = b.param(&format!("{name}_batch"), index);
        let params = match access.pattern {
            Pattern::Strided => Params::Strided {
                outer: b.param(&format!("{name}_outer"), index),
                inner: b.param(&format!("{name}_inner"), index),
            },
            Pattern::Digits { outer, inner, windows, divided } => {
                let side = |digits: Digits, side: &str| SideParams {
                    divisors: (1..digits.plain + windows)
                        .map(|i| Divisor::declare(b, &format!("{name}_{side}_size{i}")))
                        .collect(),
                    strides: (0..digits.plain).map(|i| b.param(&format!("{name}_{side}_step{i}"), index)).collect(),
                    digits,
                };
                let (outer, inner) = (side(outer, "outer"), side(inner, "inner"));
                let windows = (0..windows)
                    .map(|i| WindowParams {
                        size: b.param(&format!("{name}_size{i}"), Scalar::U32),
                        stride: b.param(&format!("{name}_stride{i}"), index),
                        outer_step: b.param(&format!("{name}_outer_step{i}"), Scalar::I32),
                        inner_step: b.param(&format!("{name}_inner_step{i}"), Scalar::I32),
                        offset: b.param(&format!("{name}_offset{i}"), Scalar::I32),
                        divisor: divided.then(|| Divisor::declare(b, &format!("{name}_divisor{i}"))),
                    })
                    .collect();
                Params::Digits { outer, inner, windows }
            }
        };
        Reader { access, pointer, index, batch, params }
    }

    /// Moves to one matrix of the batch, and to the row or column `origin` where a workgroup's tile begins.
    pub fn begin(&mut self, batch: Value<'b>, origin: Value<'b>) {
        let mut elements = batch.cast(Scalar::U64) * self.batch.cast(Scalar::U64);
        if let Params::Strided { outer, .. } = self.params {
            elements = elements + origin.cast(Scalar::U64) * outer.cast(Scalar::U64);
        }
        self.pointer = self.pointer.offset(elements);
    }

    /// A load at the outer index `origin + local` (which exists), and at `k` of every k-tile.
    pub fn lane(&self, b: &'b Builder, origin: Value<'b>, local: Value<'b>, k: Value<'b>) -> Lane<'b> {
        match &self.params {
            Params::Strided { outer, inner } => Lane {
                k,
                offset: local.cast(self.index) * *outer + k.cast(self.index) * *inner,
                coordinates: Vec::new(),
            },
            Params::Digits { outer, windows, .. } => {
                let (offset, digits) = self.split(b, outer, windows.len(), origin + local);
                let coordinates =
                    digits.iter().zip(windows).map(|(d, w)| d.cast(Scalar::I32) * w.outer_step + w.offset).collect();
                Lane { k, offset, coordinates }
            }
        }
    }

    /// Memory offset of an index's plain digits, and its window digits.
    fn split(
        &self,
        b: &'b Builder,
        side: &SideParams<'b>,
        windows: usize,
        index: Value<'b>,
    ) -> (Value<'b>, Vec<Value<'b>>) {
        let mut digits = Vec::new();
        let mut rest = index;
        for divisor in side.divisors.iter().rev() {
            let (quotient, remainder) = divisor.divide(rest);
            digits.push(remainder);
            rest = quotient;
        }
        digits.push(rest);
        digits.reverse();
        let plain = if side.digits.plain_first { 0..side.strides.len() } else { windows..digits.len() };
        let mut offset = b.int(self.index, 0);
        for (digit, &stride) in digits.drain(plain).zip(&side.strides) {
            offset = offset + digit.cast(self.index) * stride;
        }
        (offset, digits)
    }

    /// The pointer of the k-tile that begins at `k0`.
    pub fn tile(&self, k0: Value<'b>) -> Pointer<'b> {
        match self.params {
            Params::Strided { inner, .. } => self.pointer.offset(k0.cast(Scalar::U64) * inner.cast(Scalar::U64)),
            Params::Digits { .. } => self.pointer,
        }
    }

    /// The elements of a load; zeros from `k_end` on, where it is given.
    pub fn fetch(
        &self,
        b: &'b Builder,
        tile: Pointer<'b>,
        k0: Value<'b>,
        lane: &Lane<'b>,
        k_end: Option<Value<'b>>,
    ) -> Vec<Value<'b>> {
        let mut valid = k_end.map(|end| (k0 + lane.k).lt(end));
        let mut offset = lane.offset;
        if let Params::Digits { inner, windows, .. } = &self.params {
            let (inside, digits) = self.split(b, inner, windows.len(), k0 + lane.k);
            offset = offset + inside;
            for ((digit, w), &base) in digits.iter().zip(windows).zip(&lane.coordinates) {
                let mut at = (base + digit.cast(Scalar::I32) * w.inner_step).bitcast(Scalar::U32);
                // A negative coordinate is a huge u32: one comparison tells.
                let mut ok = b.bool(true);
                if let Some(divisor) = w.divisor {
                    let (quotient, remainder) = divisor.divide(at & 0x7fff_ffffu32);
                    ok = remainder.eq(0) & at.lt(0x8000_0000u32);
                    at = quotient;
                }
                ok = at.lt(w.size) & ok;
                valid = Some(valid.map_or(ok, |v| v & ok));
                offset = offset + at.cast(self.index) * w.stride;
            }
        }
        let Some(valid) = valid else { return self.load(tile, offset) };
        let values = self.load(tile, valid.select(offset, 0));
        values.into_iter().map(|v| valid.select(v, 0)).collect()
    }

    fn load(&self, tile: Pointer<'b>, offset: Value<'b>) -> Vec<Value<'b>> {
        if self.access.wide { tile.load_chunk(offset >> WIDE.ilog2(), WIDE) } else { vec![tile.load(offset)] }
    }
}
