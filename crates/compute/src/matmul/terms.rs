//! Operands of float32 as terms of 16 bits, on their way to the device.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::guard::Blocks;
use crate::matmul::operand::{Access, Axis, Memory, Pattern, PatternStrides, Source};
use crate::matmul::scales::Largest;
use crate::matmul::split::{Arguments, EDGE, Form, LargestArguments, LargestSpec, PART, Spec};
use crate::movement::copy::fill_with;
use crate::scalar::Scalar;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::AddressRange;
use dml_kernel::dense::MAX_GROUPS;
use dml_kernel::{DType, ScalarType};

/// An operand that becomes terms.
#[derive(Copy, Clone)]
pub struct Floats<'s> {
    /// Where it lies.
    pub source: &'s Source,
    /// Its rows (columns) and its length.
    pub size: [i64; 2],
    /// Rows (columns) to whole multiples of which it is padded: a power of two and a multiple of
    /// [`EDGE`].
    pub block: u32,
}

/// What is known of an operand in two terms.
#[derive(Copy, Clone, Debug)]
pub struct Marks {
    /// What they were scaled by.
    pub largest: Largest,
    /// What they do not hold.
    pub blocks: Blocks,
}

/// Whether launches can have so many workgroups.
pub fn fits([batch, m, n, k]: [i64; 4]) -> bool {
    let most = MAX_GROUPS as i64;
    batch <= most && [m, n, k].into_iter().all(|size| size <= (most - i64::from(EDGE)) * i64::from(EDGE))
}

/// The length that k is padded to.
pub fn padded(k: i64) -> i64 {
    multiple(k, EDGE)
}

fn multiple(size: i64, of: u32) -> i64 {
    (size as u64).next_multiple_of(of.into()) as i64
}

/// Enqueues what makes two float16 of every number of both operands of a product of `batch`
/// matrices. Along k there are all low terms of the first operand and then its high ones, and the
/// other way round of the second; each part is as long as the padded k, filled up with zeros.
/// Behind the last row (column) are copies of it.
pub fn halves(cx: &Context, operands: [Floats; 2], batch: i64) -> Result<[(Source, Marks); 2]> {
    let [a, b] = operands.map(|of| Layout::new(Form::Halves, of, batch));
    let words = cx.empty(DType::I32, &[a.words() + b.words()])?;
    fill_with(cx, &words, Scalar::Int(0))?;
    let marks = [a.marks(words.data), b.marks(words.data + a.words() as u64 * DType::I32.bytes())];
    a.find_largest(cx, marks[0].largest)?;
    b.find_largest(cx, marks[1].largest)?;
    let (low_first, high_first) = (a.split(cx, true, Some(marks[0]))?, b.split(cx, false, Some(marks[1]))?);
    Ok([(low_first, a.of_batch(marks[0])), (high_first, b.of_batch(marks[1]))])
}

/// Enqueues what rounds every number of both operands to one bfloat16, padded as [`halves`] does.
pub fn rounded(cx: &Context, operands: [Floats; 2], batch: i64) -> Result<[Source; 2]> {
    let [a, b] = operands.map(|of| Layout::new(Form::Rounded, of, batch));
    Ok([a.split(cx, false, None)?, b.split(cx, false, None)?])
}

/// How an operand's terms lie.
struct Layout<'s> {
    form: Form,
    of: Floats<'s>,
    /// Matrices: of a broadcast one it is one, which all of the batch read.
    count: i64,
    /// Rows (columns) and length with padding.
    rows: i64,
    length: i64,
    /// Elements from one line of neighbours to the next, from one part of k to the next, and of a
    /// matrix.
    line: i64,
    apart: i64,
    matrix: i64,
}

impl<'s> Layout<'s> {
    fn new(form: Form, of: Floats<'s>, batch: i64) -> Layout<'s> {
        let [outer, k] = of.size;
        let (rows, length, terms) = (multiple(outer, of.block), padded(k), form.terms());
        let (line, apart) = match of.source.access.axis {
            Axis::Inner => (terms * length, length),
            Axis::Outer => (rows, length * rows),
        };
        let count = if of.source.batch == 0 { 1 } else { batch };
        Layout { form, of, count, rows, length, line, apart, matrix: terms * length * rows }
    }

    fn blocks(&self) -> i64 {
        self.rows / i64::from(self.of.block)
    }

    /// Words of its marks, a multiple of four.
    fn words(&self) -> i64 {
        multiple(self.count * (self.rows + self.blocks()), 4)
    }

    /// The marks in memory that begins at `address`.
    fn marks(&self, address: u64) -> Marks {
        let bytes = |words: i64| self.count as u64 * words as u64 * DType::I32.bytes();
        let (largest, found) = (
            AddressRange::new(address, bytes(self.rows)),
            AddressRange::new(address + bytes(self.rows), bytes(self.blocks())),
        );
        Marks {
            largest: Largest { bits: largest, batch: self.rows as u32 },
            blocks: Blocks { found, batch: self.blocks() as u32, size: self.of.block },
        }
    }

    fn access(&self) -> (Access, ScalarType) {
        let Floats { source, size: [outer, k], .. } = self.of;
        (source.access_in_steps(EDGE), index_type(source.reach(outer, k).max(source.batch)))
    }

    /// Workgroups, of which each takes `k` elements along k.
    fn groups(&self, k: u32) -> [u32; 3] {
        let edge = i64::from(EDGE);
        [(self.length as u64).div_ceil(k.into()) as u32, (self.rows / edge) as u32, self.count as u32]
    }

    fn find_largest(&self, cx: &Context, largest: Largest) -> Result<()> {
        let Floats { source, size: [outer, k], .. } = self.of;
        let (access, index) = self.access();
        let arguments = LargestArguments {
            operand: source.memory.range(),
            elements: source,
            outer: outer as u32,
            k: k as u32,
            largest: largest.bits,
            apart: largest.batch,
        };
        cx.run(&LargestSpec { access, index }, &arguments, self.groups(PART))
    }

    fn split(&self, cx: &Context, low_first: bool, marks: Option<Marks>) -> Result<Source> {
        let Floats { source, size: [outer, k], .. } = self.of;
        let (access, index) = self.access();
        let terms = cx.empty(self.form.dtype(), &[self.count, self.matrix])?;
        let (high, low) = if low_first { (self.apart, 0) } else { (0, self.apart) };
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
        cx.run(&Spec { form: self.form, access, index }, &arguments, self.groups(EDGE))?;
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
        let access = Access { dtype, wide: true, pattern: Pattern::Strided, whole_steps: false, ..access };
        let batch = if self.of.source.batch == 0 { 0 } else { self.matrix };
        Source::new(Memory::from(terms), batch, access, strides)
    }

    /// Marks for every matrix of the batch.
    fn of_batch(&self, marks: Marks) -> Marks {
        if self.of.source.batch != 0 {
            return marks;
        }
        let Marks { largest, blocks } = marks;
        Marks { largest: Largest { batch: 0, ..largest }, blocks: Blocks { batch: 0, ..blocks } }
    }
}
