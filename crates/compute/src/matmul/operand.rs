//! How elements of an operand are fetched. An operand is a matrix of an outer index (m or n) and
//! the inner index k; where element `(outer, k)` lies in memory is one of two patterns, so that a
//! convolution is a product whose matrix is never written out.

use crate::view::View;
use dml_engine::AddressRange;
use dml_kernel::{DType, ScalarType};
use smallvec::SmallVec;

/// Elements of a wide load.
pub const WIDE: u32 = 4;

/// Elements of 16 bits in a unit of 16 bytes, the widest access.
pub const UNIT: u32 = 8;

/// Elements that matrix units take in 16 bytes of an operand: of a byte each, or else, converted or
/// not, of 16 bits.
pub fn unit(dtype: DType) -> u32 {
    if dtype.bytes() == 1 { 2 * UNIT } else { UNIT }
}

/// The index along which neighbouring invocations read neighbouring memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// m of the first operand, n of the second.
    Outer,
    /// k
    Inner,
}

/// How one index falls apart into digits, slowest first: plain ones, which step through memory, and
/// one for every window dimension.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Digits {
    /// Plain digits, at most 2.
    pub plain: u8,
    /// The plain digits are the slowest; otherwise the fastest.
    pub plain_first: bool,
}

/// Where elements lie.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// `outer * stride + k * stride`
    Strided,
    /// Plain digits of both indices, and windows: a window dimension's coordinate is
    /// `(outer digit * step + k digit * step + offset) / divisor`; the element is 0 where the
    /// division leaves a remainder or the coordinate is outside.
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
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Element type in memory.
    pub dtype: DType,
    /// The dtype of 16 bits that elements are rounded to as they are read, of an operand that lies
    /// in memory as float32.
    pub rounded: Option<DType>,
    /// Direction of the loads.
    pub axis: Axis,
    /// Loads take [`WIDE`] elements at once: memory is contiguous along the axis, and everything is
    /// a multiple.
    pub wide: bool,
    /// Where elements lie.
    pub pattern: Pattern,
    /// The fastest digit of k is a multiple of the kernel's step along k: all of a step's elements
    /// have the same slower digits. What a kernel is launched with decides; a [`Source`] does not
    /// know.
    pub whole_steps: bool,
}

impl Access {
    /// Elements of one load.
    pub fn width(&self) -> u32 {
        if self.wide { WIDE } else { 1 }
    }

    /// The dtype of what is multiplied.
    pub fn factors(&self) -> DType {
        self.rounded.unwrap_or(self.dtype)
    }

    /// Elements that matrix units take in 16 bytes, the widest access; where they are rounded, of
    /// two loads.
    pub fn unit(&self) -> u32 {
        unit(self.factors())
    }

    /// The dtype in which products of its elements are added up, and in which split-K keeps its
    /// sums.
    pub fn sums(&self) -> DType {
        match self.dtype.compute() {
            ScalarType::F64 => DType::F64,
            ScalarType::I64 | ScalarType::U64 => DType::I64,
            ScalarType::F32 => DType::F32,
            _ => DType::I32,
        }
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

/// The strides of a [`Pattern`].
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one lives at a time, on the stack")]
pub enum PatternStrides {
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

impl From<&View> for Memory {
    fn from(t: &View) -> Memory {
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

    /// Its bytes.
    pub fn range(&self) -> AddressRange {
        AddressRange { start: self.address, end: self.end }
    }

    /// Whether it may be accessed so many elements at a time, as far as its address goes.
    pub fn is_aligned(&self, width: u32) -> bool {
        self.address.is_multiple_of((self.dtype.bytes() * u64::from(width)).min(16))
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
    pub strides: PatternStrides,
    /// Behind every row are zeros, up to a multiple of a [unit](Access::unit).
    padded: bool,
}

impl Source {
    /// An operand read in this way.
    pub fn new(memory: Memory, batch: i64, access: Access, strides: PatternStrides) -> Source {
        Source { memory, batch, access, strides, padded: false }
    }

    /// Contiguous matrices of `outer x inner` elements, the latter a multiple of a
    /// [unit](Access::unit), that end with what `k` does not reach and is 0.
    pub fn padded(t: &View, size: [i64; 2], batch: i64) -> Source {
        Source { padded: true, ..Source::strided(t, size, [size[1], 1], batch) }
    }

    /// A strided matrix of `outer x inner` elements, with a wide access where memory allows it.
    pub fn strided(t: &View, size: [i64; 2], stride: [i64; 2], batch: i64) -> Source {
        Source::laid(Memory::from(t), size, stride, batch)
    }

    /// [`strided`](Self::strided), of elements that lie there.
    pub fn laid(memory: Memory, size: [i64; 2], stride: [i64; 2], batch: i64) -> Source {
        let multiple = |x: i64| x % i64::from(WIDE) == 0;
        let wide = |along: usize| {
            stride[along] == 1
                && multiple(size[along])
                && (size[1 - along] == 1 || multiple(stride[1 - along]))
                && multiple(batch)
                && memory.is_aligned(WIDE)
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
        let pattern = Pattern::Strided;
        let access = Access { dtype: memory.dtype, rounded: None, axis, wide, pattern, whole_steps: false };
        Source::new(memory, batch, access, PatternStrides::Strided { outer: stride[0], inner: stride[1] })
    }

    /// The same, whose float32 elements are rounded to a dtype of 16 bits as they are read; of
    /// another dtype they are left alone.
    #[must_use]
    pub fn rounded(self, to: DType) -> Source {
        let rounded = (self.access.dtype == DType::F32 && to.bytes() == 2).then_some(to);
        Source { access: Access { rounded, ..self.access }, ..self }
    }

    /// Whether every [unit](Access::unit) of elements that are multiplied in at most 16 bits, along
    /// the axis, of a matrix of `outer x inner` elements, begins at a multiple of 16 bytes.
    pub fn is_in_units(&self, size: [i64; 2]) -> bool {
        let multiple = |x: i64| x % i64::from(self.access.unit()) == 0;
        let aligned = multiple(self.batch) && self.memory.address.is_multiple_of(16);
        let along_k = self.access.axis == Axis::Inner;
        aligned
            && match &self.strides {
                PatternStrides::Strided { outer, inner } => {
                    let (along, across) = if along_k { (1, 0) } else { (0, 1) };
                    let stride = [*outer, *inner];
                    let whole = multiple(size[along]) || self.padded;
                    stride[along] == 1 && whole && (size[across] == 1 || multiple(stride[across]))
                }
                // Of a wide access one digit's stride is 1, that along which it runs.
                PatternStrides::Digits { outer, inner, windows } => {
                    self.access.wide
                        && outer.iter().chain(inner).all(|s| multiple(if s.stride == 1 { s.size } else { s.stride }))
                        && windows.iter().all(|w| multiple(w.stride))
                }
            }
    }

    /// How a kernel reads it that takes `step` elements of k at a time.
    pub fn access_in_steps(&self, step: u32) -> Access {
        let whole_steps = match (&self.strides, self.access.pattern) {
            (PatternStrides::Digits { inner, windows, .. }, Pattern::Digits { inner: digits, .. }) => {
                let plain = inner.last().map(|s| s.size);
                let fastest = if digits.plain_first { windows.last().map(|w| w.inner).or(plain) } else { plain };
                fastest.is_some_and(|size| size % i64::from(step) == 0)
            }
            _ => false,
        };
        Access { whole_steps, ..self.access }
    }

    /// The largest offset, in elements, that a tile of `outer x inner` elements meets beside its
    /// own origin.
    pub fn reach(&self, outer: i64, inner: i64) -> i64 {
        match &self.strides {
            PatternStrides::Strided { outer: o, inner: i } => o * outer + i * inner,
            PatternStrides::Digits { .. } => self.memory.reach(),
        }
    }
}
