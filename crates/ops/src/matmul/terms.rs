//! Operands of float32 as terms of 16 bits, on their way to the device.

use super::guard::Blocks;
use super::operand::{Access, Axis, Memory, Pattern, PatternStrides, Source};
use super::scales::Largest;
use super::split::{Arguments, EDGE, Form, LargestArguments, LargestSpec, PART, Spec};
use crate::movement::copy::fill_with;
use crate::operator::call::{Call, Scalar};
use crate::operator::error::Result;
use crate::tensor::layout::index_type;
use dml_engine::AddressRange;
use dml_kernel::DType;
use dml_kernel::dense::MAX_GROUPS;

/// The order of a number's terms in memory, along k.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// All low ones, then all high ones; or single terms.
    LowFirst,
    /// All high ones, then all low ones.
    HighFirst,
}

/// An operand in terms. Zeros follow its k, copies of the last row (column) the others, up to whole tiles.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The terms as an operand, whose k is `k` for each.
    pub source: Source,
    /// The padded length.
    pub k: i64,
    /// Of two terms: what they were scaled by, and what they do not hold.
    pub marks: Option<(Largest, Blocks)>,
}

/// Whether a launch can have so many workgroups.
pub fn fits([batch, m, n, k]: [i64; 4]) -> bool {
    let most = MAX_GROUPS as i64;
    batch <= most && [m, n, k].into_iter().all(|size| size <= (most - i64::from(EDGE)) * i64::from(EDGE))
}

impl Terms {
    /// Enqueues the split of `source`, `batch` matrices of `outer x k` elements, padded to multiples of `block` rows
    /// (columns), a power of two and a multiple of [`EDGE`].
    pub fn of(
        call: &Call,
        form: Form,
        (source, order): (&Source, Order),
        batch: i64,
        [outer, k]: [i64; 2],
        block: u32,
    ) -> Result<Terms> {
        let up = |size: i64, to: u32| (size as u64).next_multiple_of(to.into()) as i64;
        let (padded, length) = (up(outer, block), up(k, EDGE));
        let count = if source.batch == 0 { 1 } else { batch };
        let terms = form.terms();
        let along_k = source.access.axis == Axis::Inner;
        let (line, apart) = if along_k { (terms * length, length) } else { (padded, length * padded) };
        let matrix = terms * length * padded;
        let written = call.empty(form.dtype(), &[count, matrix])?;
        let (high, low) = if terms == 2 && order == Order::LowFirst { (apart, 0) } else { (0, apart) };

        let access = source.access_in_steps(EDGE);
        let index = index_type(source.reach(outer, k).max(source.batch));
        let squares = [length, padded].map(|size| (size / i64::from(EDGE)) as u32);
        let marks = match form {
            Form::Rounded => None,
            Form::Halves => {
                let blocks = padded / i64::from(block);
                let words = call.empty(DType::I32, &[count * (padded + blocks)])?;
                fill_with(call, &words, Scalar::Int(0))?;
                let end = words.data + (count * padded) as u64 * DType::I32.bytes();
                let largest = Largest { bits: AddressRange { start: words.data, end }, batch: padded as u32 };
                let found = AddressRange { start: end, end: words.range().end };
                let arguments = LargestArguments {
                    operand: source.memory.range(),
                    elements: source,
                    outer: outer as u32,
                    k: k as u32,
                    largest: largest.bits,
                    apart: largest.batch,
                };
                let parts = (k as u64).div_ceil(PART.into()) as u32;
                call.run(&LargestSpec { access, index }, &arguments, [parts, squares[1], count as u32])?;
                Some((largest, Blocks { found, batch: blocks as u32, size: block }))
            }
        };
        let arguments = Arguments {
            operand: source.memory.range(),
            elements: source,
            outer: outer as u32,
            k: k as u32,
            largest: marks.map(|(largest, _)| largest.bits),
            apart: marks.map(|(largest, _)| largest.batch),
            found: marks.map(|(_, blocks)| blocks.found),
            blocks: marks.map(|(_, blocks)| blocks.batch),
            shift: marks.map(|(_, blocks)| blocks.size.ilog2()),
            terms: written.range(),
            matrix: matrix as u64,
            line: line as u64,
            high: high as u64,
            low: low as u64,
        };
        call.run(&Spec { form, access, index }, &arguments, [squares[0], squares[1], count as u32])?;

        // A broadcast matrix is split once, and read by every one of the batch.
        let of_one = |batch: i64, marks: (Largest, Blocks)| match batch {
            0 => (Largest { batch: 0, ..marks.0 }, Blocks { batch: 0, ..marks.1 }),
            _ => marks,
        };
        let strides = if along_k {
            PatternStrides::Strided { outer: line, inner: 1 }
        } else {
            PatternStrides::Strided { outer: 1, inner: line }
        };
        let access =
            Access { dtype: form.dtype(), wide: true, pattern: Pattern::Strided, whole_steps: false, ..source.access };
        let batch = if source.batch == 0 { 0 } else { matrix };
        let source = Source { memory: Memory::from(&written), batch, access, strides };
        Ok(Terms { source, k: length, marks: marks.map(|marks| of_one(batch, marks)) })
    }
}
