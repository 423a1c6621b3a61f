//! An operand in a kernel: its sizes and strides as a parameter, and the loads of its elements.

use crate::matmul::divisor::{Divisor, DivisorParams};
use crate::matmul::operand::{Access, Digits, Pattern, PatternStrides, Source};
use dml_engine::interface::{I32, Index, U32};
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, Pointer, ScalarType, Value, convert};
use smallvec::SmallVec;

/// Kernel parameter: the sizes and strides of a [`Source`]. Its address is a separate parameter.
pub struct Operand;

/// The sizes and strides of an operand in a kernel.
pub struct OperandParams<'b> {
    access: Access,
    index: ScalarType,
    batch: Value<'b>,
    numbers: Numbers<'b>,
}

struct SideParams<'b> {
    /// Divisors by the sizes of all digits but the slowest, slowest first.
    divisors: Vec<DivisorParams<'b>>,
    strides: Vec<Value<'b>>,
    digits: Digits,
}

struct WindowParams<'b> {
    size: Value<'b>,
    stride: Value<'b>,
    outer_step: Value<'b>,
    inner_step: Value<'b>,
    offset: Value<'b>,
    divisor: Option<DivisorParams<'b>>,
}

enum Numbers<'b> {
    Strided { outer: Value<'b>, inner: Value<'b> },
    Digits { outer: SideParams<'b>, inner: SideParams<'b>, windows: Vec<WindowParams<'b>> },
}

impl Parameter for Operand {
    /// The access, and the integer type of offsets.
    type Type = (Access, ScalarType);
    type Argument<'a> = &'a Source;
    type Declared<'b> = OperandParams<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, (access, index): &(Access, ScalarType)) -> OperandParams<'b> {
        let (access, index) = (*access, *index);
        let batch = b.param(&format!("{name}_batch"), index);
        let numbers = match access.pattern {
            Pattern::Strided => Numbers::Strided {
                outer: b.param(&format!("{name}_outer"), index),
                inner: b.param(&format!("{name}_inner"), index),
            },
            Pattern::Digits { outer, inner, windows, divided } => {
                let side = |digits: Digits, side: &str| SideParams {
                    divisors: (1..digits.plain + windows)
                        .map(|i| Divisor::declare(b, &format!("{name}_{side}_size{i}"), &()))
                        .collect(),
                    strides: (0..digits.plain).map(|i| b.param(&format!("{name}_{side}_step{i}"), index)).collect(),
                    digits,
                };
                let (outer, inner) = (side(outer, "outer"), side(inner, "inner"));
                let windows = (0..windows)
                    .map(|i| WindowParams {
                        size: b.param(&format!("{name}_size{i}"), ScalarType::U32),
                        stride: b.param(&format!("{name}_stride{i}"), index),
                        outer_step: b.param(&format!("{name}_outer_step{i}"), ScalarType::I32),
                        inner_step: b.param(&format!("{name}_inner_step{i}"), ScalarType::I32),
                        offset: b.param(&format!("{name}_offset{i}"), ScalarType::I32),
                        divisor: divided.then(|| Divisor::declare(b, &format!("{name}_divisor{i}"), &())),
                    })
                    .collect();
                Numbers::Digits { outer, inner, windows }
            }
        };
        OperandParams { access, index, batch, numbers }
    }

    fn pass(source: &&Source, (access, index): &(Access, ScalarType), block: &mut ArgumentBlock) {
        if source.access.pattern != access.pattern || source.access.dtype != access.dtype {
            return block.mismatch("an operand is not laid out as the kernel expects it");
        }
        Index::pass(&source.batch, index, block);
        match (&source.strides, access.pattern) {
            (PatternStrides::Strided { outer, inner }, Pattern::Strided) => {
                Index::pass(outer, index, block);
                Index::pass(inner, index, block);
            }
            (PatternStrides::Digits { outer, inner, windows }, Pattern::Digits { outer: o, inner: i, divided, .. }) => {
                for (digits, steps, side) in [(o, outer, 0), (i, inner, 1)] {
                    let plain = steps.iter().map(|s| s.size);
                    let inside = windows.iter().map(|w| if side == 0 { w.outer } else { w.inner });
                    let sizes: SmallVec<[i64; 5]> = if digits.plain_is_slowest {
                        plain.chain(inside).collect()
                    } else {
                        inside.chain(plain).collect()
                    };
                    for size in &sizes[1..] {
                        Divisor::pass(size.max(&1), &(), block);
                    }
                    for s in steps {
                        Index::pass(&s.stride, index, block);
                    }
                }
                for w in windows {
                    U32::pass(&(w.size as u32), &(), block);
                    Index::pass(&w.stride, index, block);
                    for number in [w.outer_step, w.inner_step, w.offset] {
                        I32::pass(&(number as i32), &(), block);
                    }
                    if divided {
                        Divisor::pass(&w.divisor, &(), block);
                    }
                }
            }
            _ => block.mismatch("an operand's numbers are not those of its pattern"),
        }
    }
}

impl<'b> OperandParams<'b> {
    /// The operand whose first element is at `pointer`.
    pub fn reader(self, pointer: Pointer<'b>) -> Reader<'b> {
        let OperandParams { access, index, batch, numbers } = self;
        Reader { access, pointer, index, batch, numbers }
    }
}

/// An operand in a kernel.
pub struct Reader<'b> {
    /// How elements are loaded.
    pub access: Access,
    pointer: Pointer<'b>,
    index: ScalarType,
    batch: Value<'b>,
    numbers: Numbers<'b>,
}

/// The part of one load's address that is the same for every k-tile.
pub struct Lane<'b> {
    /// k relative to the k-tile.
    k: Value<'b>,
    offset: Value<'b>,
    coordinates: Vec<Value<'b>>,
}

impl<'b> Reader<'b> {
    /// Advances to one matrix of the batch, and to the row or column `origin` where the workgroup's
    /// tile begins.
    pub fn begin(&mut self, batch: Value<'b>, origin: Value<'b>) {
        let mut elements = batch.cast(ScalarType::U64) * self.batch.cast(ScalarType::U64);
        if let Numbers::Strided { outer, .. } = self.numbers {
            elements = elements + origin.cast(ScalarType::U64) * outer.cast(ScalarType::U64);
        }
        self.pointer = self.pointer.offset(elements);
    }

    /// A load at the outer index `origin + local` (which is in range), and at index `k` of every
    /// k-tile.
    pub fn lane(&self, b: &'b Builder, origin: Value<'b>, local: Value<'b>, k: Value<'b>) -> Lane<'b> {
        match &self.numbers {
            Numbers::Strided { outer, inner } => Lane {
                k,
                offset: local.cast(self.index) * *outer + k.cast(self.index) * *inner,
                coordinates: Vec::new(),
            },
            Numbers::Digits { outer, windows, .. } => {
                let (offset, digits) = self.split(b, outer, windows.len(), origin + local, None);
                let coordinates = digits
                    .iter()
                    .zip(windows)
                    .map(|(d, w)| d.cast(ScalarType::I32) * w.outer_step + w.offset)
                    .collect();
                Lane { k, offset, coordinates }
            }
        }
    }

    /// Splits an index into its digits: returns the memory offset of the plain digits, and the
    /// window digits. `more` is added to the fastest digit.
    fn split(
        &self,
        b: &'b Builder,
        side: &SideParams<'b>,
        windows: usize,
        index: Value<'b>,
        more: Option<Value<'b>>,
    ) -> (Value<'b>, Vec<Value<'b>>) {
        let mut digits = Vec::new();
        let mut rest = index;
        for divisor in side.divisors.iter().rev() {
            let (quotient, remainder) = divisor.divide(rest);
            digits.push(remainder);
            rest = quotient;
        }
        digits.push(rest);
        if let Some(more) = more {
            digits[0] = digits[0] + more;
        }
        digits.reverse();
        let plain = if side.digits.plain_is_slowest { 0..side.strides.len() } else { windows..digits.len() };
        let mut offset = b.int(self.index, 0);
        for (digit, &stride) in digits.drain(plain).zip(&side.strides) {
            offset = offset + digit.cast(self.index) * stride;
        }
        (offset, digits)
    }

    /// The pointer to the k-tile that begins at `k0`.
    pub fn tile(&self, k0: Value<'b>) -> Pointer<'b> {
        match self.numbers {
            Numbers::Strided { inner, .. } => {
                self.pointer.offset(k0.cast(ScalarType::U64) * inner.cast(ScalarType::U64))
            }
            Numbers::Digits { .. } => self.pointer,
        }
    }

    /// The stride of k of a strided operand.
    pub fn stride(&self) -> Option<Value<'b>> {
        match self.numbers {
            Numbers::Strided { inner, .. } => Some(inner),
            Numbers::Digits { .. } => None,
        }
    }

    /// The pointer to the k-tile that begins `elements` (u64) after the operand.
    pub fn tile_from(&self, elements: Value<'b>) -> Pointer<'b> {
        self.pointer.offset(elements)
    }

    /// Loads elements in the dtype in which they are multiplied; zeros from `k_end` on, if it is
    /// given.
    pub fn fetch(
        &self,
        b: &'b Builder,
        tile: Pointer<'b>,
        k0: Value<'b>,
        lane: &Lane<'b>,
        k_end: Option<Value<'b>>,
    ) -> Vec<Value<'b>> {
        let elements = self.load_unrounded(b, tile, self.access.width(), k0, lane, k_end);
        match self.access.rounds_to {
            Some(dtype) => elements.into_iter().map(|x| convert(x, dtype)).collect(),
            None => elements,
        }
    }

    /// Like [`fetch`](Self::fetch), for `width` contiguous elements, without rounding.
    pub fn load_unrounded(
        &self,
        b: &'b Builder,
        tile: Pointer<'b>,
        width: u32,
        k0: Value<'b>,
        lane: &Lane<'b>,
        k_end: Option<Value<'b>>,
    ) -> Vec<Value<'b>> {
        self.guarded(b, k0, lane, k_end, |offset| {
            if width > 1 { tile.load_chunk(offset >> width.ilog2(), width) } else { vec![tile.load(offset)] }
        })
    }

    /// Like [`fetch`](Self::fetch), for `unit` contiguous elements, as words of `packed` elements;
    /// `tile` is a pointer to words.
    pub fn fetch_unit(
        &self,
        b: &'b Builder,
        tile: Pointer<'b>,
        [unit, packed]: [u32; 2],
        k0: Value<'b>,
        lane: &Lane<'b>,
        k_end: Option<Value<'b>>,
    ) -> Vec<Value<'b>> {
        self.guarded(b, k0, lane, k_end, |offset| tile.load_chunk(offset >> unit.ilog2(), unit / packed))
    }

    /// Calls `load` with the offset of a load's first element; zeros if the element is out of
    /// range.
    fn guarded(
        &self,
        b: &'b Builder,
        k0: Value<'b>,
        lane: &Lane<'b>,
        k_end: Option<Value<'b>>,
        load: impl FnOnce(Value<'b>) -> Vec<Value<'b>>,
    ) -> Vec<Value<'b>> {
        let mut valid = k_end.map(|end| (k0 + lane.k).lt(end));
        let mut offset = lane.offset;
        if let Numbers::Digits { inner, windows, .. } = &self.numbers {
            // If the slower digits are the same for all elements of a step, they are uniform in the
            // workgroup.
            let (apart, together) =
                if self.access.is_multiple_of_step { (k0, Some(lane.k)) } else { (k0 + lane.k, None) };
            let (inside, digits) = self.split(b, inner, windows.len(), apart, together);
            offset = offset + inside;
            for ((digit, w), &base) in digits.iter().zip(windows).zip(&lane.coordinates) {
                let mut at = (base + digit.cast(ScalarType::I32) * w.inner_step).bitcast(ScalarType::U32);
                // A negative coordinate is a huge u32: one comparison is enough.
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
        let Some(valid) = valid else { return load(offset) };
        load(valid.select(offset, 0)).into_iter().map(|v| valid.select(v, 0)).collect()
    }
}
