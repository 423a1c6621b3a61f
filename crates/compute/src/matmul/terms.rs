//! Enqueues the conversion of float32 operands to terms of 16 bits.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::guard::Blocks;
use crate::matmul::operand::{Access, Axis, Memory, Pattern, PatternStrides, Source};
use crate::matmul::scales::MaxMagnitudes;
use crate::matmul::split::{Arguments, Form, K_PER_WORKGROUP, LargestArguments, LargestSpec, Spec, TILE_SIZE};
use crate::movement::copy::fill_with;
use crate::scalar::Scalar;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::AddressRange;
use dml_kernel::dense::MAX_GROUPS;
use dml_kernel::{DType, ScalarType};

/// An operand to convert.
#[derive(Copy, Clone)]
pub struct FloatOperand<'s> {
    /// The operand.
    pub source: &'s Source,
    /// Number of its rows (columns), and its length along k.
    pub size: [i64; 2],
    /// Rows (columns) are padded to a multiple of this: a power of two and a multiple of
    /// [`TILE_SIZE`].
    pub block: u32,
}

/// The scales and flags of an operand in two terms.
#[derive(Copy, Clone, Debug)]
pub struct ScalesAndFlags {
    /// The largest magnitudes, by which terms are scaled.
    pub largest: MaxMagnitudes,
    /// Flags of elements that terms do not represent.
    pub blocks: Blocks,
}

/// Whether the launches' workgroups are in range.
pub fn fits([batch, m, n, k]: [i64; 4]) -> bool {
    let most = MAX_GROUPS as i64;
    batch <= most && [m, n, k].into_iter().all(|size| size <= (most - i64::from(TILE_SIZE)) * i64::from(TILE_SIZE))
}

/// The padded length of k.
pub fn padded(k: i64) -> i64 {
    multiple(k, TILE_SIZE)
}

fn multiple(size: i64, of: u32) -> i64 {
    (size as u64).next_multiple_of(of.into()) as i64
}

/// Enqueues the conversion of both operands of a product of `batch` matrices to two float16 for
/// every number. Along k there are first all low terms and then all high terms of the first
/// operand, and the other way round of the second; each part has the padded length of k, and ends
/// with zeros. Padding rows (columns) are copies of the last one.
pub fn to_float16_terms(
    cx: &Context,
    operands: [FloatOperand; 2],
    batch: i64,
) -> Result<[(Source, ScalesAndFlags); 2]> {
    let [a, b] = operands.map(|of| Layout::new(Form::Halves, of, batch));
    let words = cx.empty(DType::I32, &[a.words() + b.words()])?;
    fill_with(cx, &words, Scalar::Int(0))?;
    let marks = [a.marks(words.data), b.marks(words.data + a.words() as u64 * DType::I32.bytes())];
    a.find_max_magnitudes(cx, marks[0].largest)?;
    b.find_max_magnitudes(cx, marks[1].largest)?;
    let (low_first, high_first) = (a.split(cx, true, Some(marks[0]))?, b.split(cx, false, Some(marks[1]))?);
    Ok([(low_first, a.of_batch(marks[0])), (high_first, b.of_batch(marks[1]))])
}

/// Enqueues the conversion of every number of both operands to one bfloat16, padded as in
/// [`to_float16_terms`].
pub fn to_bfloat16(cx: &Context, operands: [FloatOperand; 2], batch: i64) -> Result<[Source; 2]> {
    let [a, b] = operands.map(|of| Layout::new(Form::Rounded, of, batch));
    Ok([a.split(cx, false, None)?, b.split(cx, false, None)?])
}

/// The memory layout of an operand's terms.
struct Layout<'s> {
    form: Form,
    of: FloatOperand<'s>,
    /// Number of matrices; 1 for a broadcast operand.
    count: i64,
    /// Number of rows (columns) and length along k, with padding.
    rows: i64,
    length: i64,
    /// Strides between rows (or columns) across the contiguous index, between the low and the high
    /// terms, and between matrices.
    line: i64,
    term_stride: i64,
    matrix: i64,
}

impl<'s> Layout<'s> {
    fn new(form: Form, of: FloatOperand<'s>, batch: i64) -> Layout<'s> {
        let [outer, k] = of.size;
        let (rows, length, terms) = (multiple(outer, of.block), padded(k), form.terms());
        let (line, term_stride) = match of.source.access.axis {
            Axis::Inner => (terms * length, length),
            Axis::Outer => (rows, length * rows),
        };
        let count = if of.source.batch == 0 { 1 } else { batch };
        Layout { form, of, count, rows, length, line, term_stride, matrix: terms * length * rows }
    }

    fn blocks(&self) -> i64 {
        self.rows / i64::from(self.of.block)
    }

    /// Words of the scales and flags, a multiple of four.
    fn words(&self) -> i64 {
        multiple(self.count * (self.rows + self.blocks()), 4)
    }

    /// The scales and flags in memory that begins at `address`.
    fn marks(&self, address: u64) -> ScalesAndFlags {
        let bytes = |words: i64| self.count as u64 * words as u64 * DType::I32.bytes();
        let (largest, found) = (
            AddressRange::new(address, bytes(self.rows)),
            AddressRange::new(address + bytes(self.rows), bytes(self.blocks())),
        );
        ScalesAndFlags {
            largest: MaxMagnitudes { bits: largest, batch: self.rows as u32 },
            blocks: Blocks { found, batch: self.blocks() as u32, size: self.of.block },
        }
    }

    fn access(&self) -> (Access, ScalarType) {
        let FloatOperand { source, size: [outer, k], .. } = self.of;
        (source.access_for_step(TILE_SIZE), index_type(source.reach(outer, k).max(source.batch)))
    }

    /// Workgroups, each of which processes `k` elements along k.
    fn groups(&self, k: u32) -> [u32; 3] {
        let edge = i64::from(TILE_SIZE);
        [(self.length as u64).div_ceil(k.into()) as u32, (self.rows / edge) as u32, self.count as u32]
    }

    fn find_max_magnitudes(&self, cx: &Context, largest: MaxMagnitudes) -> Result<()> {
        let FloatOperand { source, size: [outer, k], .. } = self.of;
        let (access, index) = self.access();
        let arguments = LargestArguments {
            operand: source.memory.range(),
            elements: source,
            outer: outer as u32,
            k: k as u32,
            largest: largest.bits,
            apart: largest.batch,
        };
        cx.run(&LargestSpec { access, index }, &arguments, self.groups(K_PER_WORKGROUP))
    }

    fn split(&self, cx: &Context, low_first: bool, marks: Option<ScalesAndFlags>) -> Result<Source> {
        let FloatOperand { source, size: [outer, k], .. } = self.of;
        let (access, index) = self.access();
        let terms = cx.empty(self.form.dtype(), &[self.count, self.matrix])?;
        let (high, low) = if low_first { (self.term_stride, 0) } else { (0, self.term_stride) };
        let arguments = Arguments {
            operand: source.memory.range(),
            elements: source,
            outer: outer as u32,
            k: k as u32,
            largest: marks.map(|marks| marks.largest.bits),
            apart: marks.map(|marks| marks.largest.batch),
            found: marks.map(|marks| marks.blocks.found),
            blocks: marks.map(|marks| marks.blocks.batch),
            shift: marks.map(|marks| marks.blocks.size.ilog2()),
            terms: terms.range(),
            matrix: self.matrix as u64,
            line: self.line as u64,
            high: high as u64,
            low: low as u64,
        };
        cx.run(&Spec { form: self.form, access, index }, &arguments, self.groups(TILE_SIZE))?;
        Ok(self.source(&terms))
    }

    /// The terms as an operand.
    fn source(&self, terms: &View) -> Source {
        let access = self.of.source.access;
        let strides = match access.axis {
            Axis::Inner => PatternStrides::Strided { outer: self.line, inner: 1 },
            Axis::Outer => PatternStrides::Strided { outer: 1, inner: self.line },
        };
        let dtype = self.form.dtype();
        let access = Access { dtype, wide: true, pattern: Pattern::Strided, is_multiple_of_step: false, ..access };
        let batch = if self.of.source.batch == 0 { 0 } else { self.matrix };
        Source::new(Memory::from(terms), batch, access, strides)
    }

    /// The scales and flags as the product reads them: with batch strides of 0 for a broadcast
    /// operand.
    fn of_batch(&self, marks: ScalesAndFlags) -> ScalesAndFlags {
        if self.of.source.batch != 0 {
            return marks;
        }
        let ScalesAndFlags { largest, blocks } = marks;
        ScalesAndFlags { largest: MaxMagnitudes { batch: 0, ..largest }, blocks: Blocks { batch: 0, ..blocks } }
    }
}
