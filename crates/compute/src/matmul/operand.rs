//! How elements of an operand are loaded. An operand is a matrix of an outer index (m or n) and the
//! inner index k; the offset of element `(outer, k)` follows one of two patterns, so that a
//! convolution is a product whose im2col matrix is never written out.

use crate::primitives::registers::Loads;
use crate::view::View;
use dml_engine::AddressRange;
use dml_kernel::{DType, ScalarType};
use smallvec::SmallVec;

/// Elements of a vector load.
pub const VECTOR: u32 = 4;

/// 16-bit elements in 16 bytes, the widest access.
pub const VECTOR_16_BIT: u32 = 8;

/// Elements in a 16-byte vector of an operand for matrix units: bytes, or elements that are 16 bits
/// wide, possibly after conversion.
pub fn vector_width(dtype: DType) -> u32 {
    if dtype.bytes() == 1 { 2 * VECTOR_16_BIT } else { VECTOR_16_BIT }
}

/// The index along which neighbouring invocations read adjacent memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// m of the first operand, n of the second.
    Outer,
    /// k
    Inner,
}

/// How an index is divided into digits, slowest first: plain digits, which have a stride in memory,
/// and one digit for each window dimension.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Digits {
    /// Number of plain digits, at most 2.
    pub plain: u8,
    /// Whether the plain digits are the slowest; otherwise they are the fastest.
    pub plain_is_slowest: bool,
}

/// The pattern of offsets.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// `outer * stride + k * stride`
    Strided,
    /// Plain digits of both indices, and windows: a window dimension's coordinate is
    /// `(outer digit * step + k digit * step + offset) / divisor`; the element is 0 if the division
    /// leaves a remainder or the coordinate is out of range.
    Digits {
        /// Digits of the outer index.
        outer: Digits,
        /// Digits of k.
        inner: Digits,
        /// Number of window dimensions.
        windows: u8,
        /// Whether coordinates are divided.
        divided: bool,
    },
}

/// The part of an operand that changes the code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Element type in memory.
    pub dtype: DType,
    /// The 16-bit dtype to which elements are rounded on load, for an operand that is float32 in
    /// memory.
    pub rounds_to: Option<DType>,
    /// Direction of the loads.
    pub axis: Axis,
    /// Loads are vectors of [`VECTOR`] elements: memory is contiguous along the axis, and sizes,
    /// strides and the address are multiples of the vector.
    pub wide: bool,
    /// The pattern of offsets.
    pub pattern: Pattern,
    /// Whether the fastest digit of k is a multiple of the kernel's step along k: all elements of a
    /// step have the same slower digits. It depends on the kernel; a [`Source`] does not set it.
    pub is_multiple_of_step: bool,
}

impl Access {
    /// The kind of loads, for the model of registers.
    pub fn loads(&self) -> Loads {
        match (self.pattern, self.wide) {
            (Pattern::Strided, true) => Loads::Vectors,
            // A vector with coordinates takes as much as elements without.
            (Pattern::Strided, false) | (Pattern::Digits { .. }, true) => Loads::Elements,
            (Pattern::Digits { .. }, false) => Loads::Windows,
        }
    }

    /// Elements of one load.
    pub fn width(&self) -> u32 {
        if self.wide { VECTOR } else { 1 }
    }

    /// The dtype of elements when they are multiplied.
    pub fn factors(&self) -> DType {
        self.rounds_to.unwrap_or(self.dtype)
    }

    /// Elements in a 16-byte vector for matrix units; if they are rounded, the elements of two
    /// loads.
    pub fn vector_width(&self) -> u32 {
        vector_width(self.factors())
    }

    /// The dtype in which products are accumulated, and of split-K's partial sums.
    pub fn sums(&self) -> DType {
        match self.dtype.compute() {
            ScalarType::F64 => DType::F64,
            ScalarType::I64 | ScalarType::U64 => DType::I64,
            ScalarType::F32 => DType::F32,
            _ => DType::I32,
        }
    }
}

/// A plain digit: its size, and its stride in memory in elements.
#[derive(Copy, Clone, Debug)]
pub struct Step {
    /// Number of values of the digit.
    pub size: i64,
    /// Stride.
    pub stride: i64,
}

/// A window dimension.
#[derive(Copy, Clone, Debug)]
pub struct Window {
    /// Number of values of the outer index's digit.
    pub outer: i64,
    /// Number of values of k's digit.
    pub inner: i64,
    /// Number of coordinates in memory.
    pub size: i64,
    /// Stride between coordinates.
    pub stride: i64,
    /// Step of the coordinate for the outer digit.
    pub outer_step: i64,
    /// Step of the coordinate for k's digit.
    pub inner_step: i64,
    /// Added to the coordinate before the division.
    pub offset: i64,
    /// Divides the coordinate; 1 unless the pattern is divided.
    pub divisor: i64,
}

/// The strides of a [`Pattern`].
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one lives at a time, on the stack")]
pub enum PatternStrides {
    /// Strides of [`Pattern::Strided`], in elements.
    Strided {
        /// Stride of the outer index.
        outer: i64,
        /// Stride of k.
        inner: i64,
    },
    /// Digits of [`Pattern::Digits`], slowest first.
    Digits {
        /// Plain digits of the outer index.
        outer: SmallVec<[Step; 2]>,
        /// Plain digits of k.
        inner: SmallVec<[Step; 2]>,
        /// Window dimensions.
        windows: SmallVec<[Window; 3]>,
    },
}

/// The memory of a tensor, without its shape.
#[derive(Copy, Clone, Debug)]
pub struct Memory {
    /// Address of the first element.
    pub address: u64,
    /// Address one past the last byte.
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
    /// Number of elements between the first and the end.
    pub fn reach(&self) -> i64 {
        ((self.end - self.address) / self.dtype.bytes()) as i64
    }

    /// The memory without its first `elements` elements.
    pub fn skip(&self, elements: i64) -> Memory {
        Memory { address: self.address + elements as u64 * self.dtype.bytes(), ..*self }
    }

    /// The range of addresses.
    pub fn range(&self) -> AddressRange {
        AddressRange { start: self.address, end: self.end }
    }

    /// Whether the address is aligned to vectors of `width` elements.
    pub fn is_aligned(&self, width: u32) -> bool {
        self.address.is_multiple_of((self.dtype.bytes() * u64::from(width)).min(16))
    }
}

/// An operand of one launch.
#[derive(Clone, Debug)]
pub struct Source {
    /// The operand's memory.
    pub memory: Memory,
    /// Distance in elements between two matrices of the batch.
    pub batch: i64,
    /// How elements are loaded.
    pub access: Access,
    /// The strides of the pattern.
    pub strides: PatternStrides,
    /// Whether every row is padded with zeros to a multiple of a 16-byte vector.
    padded: bool,
}

impl Source {
    /// An operand with this access.
    pub fn new(memory: Memory, batch: i64, access: Access, strides: PatternStrides) -> Source {
        Source { memory, batch, access, strides, padded: false }
    }

    /// Contiguous matrices of `outer x inner` elements. `inner` is a multiple of a 16-byte
    /// vector, and its end, past `k`, is zeros.
    pub fn padded(t: &View, size: [i64; 2], batch: i64) -> Source {
        Source { padded: true, ..Source::strided(t, size, [size[1], 1], batch) }
    }

    /// A strided matrix of `outer x inner` elements, with vector loads if memory allows it.
    pub fn strided(t: &View, size: [i64; 2], stride: [i64; 2], batch: i64) -> Source {
        Source::of_memory(Memory::from(t), size, stride, batch)
    }

    /// [`strided`](Self::strided), for a range of memory.
    pub fn of_memory(memory: Memory, size: [i64; 2], stride: [i64; 2], batch: i64) -> Source {
        let multiple = |x: i64| x % i64::from(VECTOR) == 0;
        let wide = |along: usize| {
            stride[along] == 1
                && multiple(size[along])
                && (size[1 - along] == 1 || multiple(stride[1 - along]))
                && multiple(batch)
                && memory.is_aligned(VECTOR)
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
        let access = Access { dtype: memory.dtype, rounds_to: None, axis, wide, pattern, is_multiple_of_step: false };
        Source::new(memory, batch, access, PatternStrides::Strided { outer: stride[0], inner: stride[1] })
    }

    /// The same operand, with float32 elements rounded to a 16-bit dtype on load; an operand of
    /// another dtype is unchanged.
    #[must_use]
    pub fn with_rounding(self, to: DType) -> Source {
        let rounds_to = (self.access.dtype == DType::F32 && to.bytes() == 2).then_some(to);
        Source { access: Access { rounds_to, ..self.access }, ..self }
    }

    /// Whether a matrix of `outer x inner` elements, which are multiplied in at most 16 bits,
    /// consists along the axis of vectors that are aligned to 16 bytes in memory.
    pub fn has_vector_loads(&self, size: [i64; 2]) -> bool {
        let multiple = |x: i64| x % i64::from(self.access.vector_width()) == 0;
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
                // With vector loads, the digit along which they are has stride 1.
                PatternStrides::Digits { outer, inner, windows } => {
                    self.access.wide
                        && outer.iter().chain(inner).all(|s| multiple(if s.stride == 1 { s.size } else { s.stride }))
                        && windows.iter().all(|w| multiple(w.stride))
                }
            }
    }

    /// The access for a kernel that takes `step` elements of k at a time.
    pub fn access_for_step(&self, step: u32) -> Access {
        let is_multiple_of_step = match (&self.strides, self.access.pattern) {
            (PatternStrides::Digits { inner, windows, .. }, Pattern::Digits { inner: digits, .. }) => {
                let plain = inner.last().map(|s| s.size);
                let fastest = if digits.plain_is_slowest { windows.last().map(|w| w.inner).or(plain) } else { plain };
                fastest.is_some_and(|size| size % i64::from(step) == 0)
            }
            _ => false,
        };
        Access { is_multiple_of_step, ..self.access }
    }

    /// Upper bound of the offsets, in elements, of a tile of `outer x inner` elements, relative to
    /// the tile's first element.
    pub fn reach(&self, outer: i64, inner: i64) -> i64 {
        match &self.strides {
            PatternStrides::Strided { outer: o, inner: i } => o * outer + i * inner,
            PatternStrides::Digits { .. } => self.memory.reach(),
        }
    }
}
