//! Operands' tiles of a product on matrix units: staged in shared memory in the order in which they
//! lie in memory.
//!
//! What is rounded on its way is fetched as it lies, and rounded when it is stored: only then must
//! it have arrived.

use crate::matmul::matrix_tile::MatrixTile;
use crate::matmul::operand::Axis;
use crate::matmul::reader::{Lane, Reader};
use dml_kernel::{Builder, DType, Matrix, MatrixLayout, MatrixUse, ScalarType, Shared, Value, Var, encode_pair};

/// One operand's tile in shared memory, and this invocation's part in filling it.
pub struct Stage<'r, 'b> {
    reader: &'r Reader<'b>,
    memory: Shared<'b>,
    /// Where it begins there.
    begin: Value<'b>,
    /// Rows, and contiguous elements of a row.
    pub rows: u32,
    pub length: u32,
    /// Elements of a load: a unit, or as the operand is read otherwise; of single ones those of a
    /// word are fetched together.
    width: u32,
    /// Elements of a unit of shared memory, and of a word.
    unit: u32,
    packed: u32,
    loads: Vec<Load<'b>>,
    /// Whether this invocation has a part at all.
    busy: Option<Value<'b>>,
}

struct Load<'b> {
    /// One, or of single elements those of a word.
    lanes: Vec<Lane<'b>>,
    /// Where it goes: unit and place in that.
    unit: Value<'b>,
    place: Value<'b>,
    /// What was fetched, in words of memory.
    words: Vec<Var<'b>>,
}

impl<'r, 'b> Stage<'r, 'b> {
    pub fn new(
        b: &'b Builder,
        reader: &'r Reader<'b>,
        tile: &MatrixTile,
        memory: Shared<'b>,
        begin: Value<'b>,
        (outer, units): (u32, bool),
        (origin, size): (Value<'b>, Option<Value<'b>>),
    ) -> Stage<'r, 'b> {
        let along_k = reader.access.axis == Axis::Inner;
        let (rows, length) = if along_k { (outer, tile.k) } else { (tile.k, outer) };
        let unit = tile.unit();
        let width = if units { unit } else { reader.access.width() };
        let packed = 4 / tile.bytes;
        let step = width.max(packed);
        let (lane, threads) = (b.local_id(0), tile.threads());
        let (across, total) = (length / step, rows * length / step);
        let busy = (total < threads).then(|| lane.lt(total));
        let loads = (0..(total / threads).max(1))
            .map(|i| {
                let load = if total < threads { lane & (total - 1) } else { lane + i * threads };
                let (row, first) = (load >> across.ilog2(), (load & (across - 1)) * step);
                let lanes = (0..step / width).map(|j| {
                    let along = first + j;
                    let (o, k) = if along_k { (row, along) } else { (along, row) };
                    // Beyond the edge, the last row is read again: its sums are not stored.
                    let wide = if along_k { 1 } else { width };
                    let local = size.map_or(o, |size| o.min(size - wide - origin));
                    reader.lane(b, origin, local, k)
                });
                // Of float32 a word is an element.
                let words = if reader.access.rounded.is_some() { step } else { step / packed };
                Load {
                    lanes: lanes.collect(),
                    unit: begin + row * (length / unit + 1) + (first >> unit.ilog2()),
                    place: first & (unit - 1),
                    words: (0..words).map(|_| b.var(b.u32(0))).collect(),
                }
            })
            .collect();
        Stage { reader, memory, begin, rows, length, width, unit, packed, loads, busy }
    }

    /// Fetches this invocation's part of the k-tile at `k0`.
    pub fn fetch(&self, b: &'b Builder, k0: Value<'b>, k_end: Option<Value<'b>>) {
        if self.reader.access.rounded.is_some() {
            let tile = self.reader.tile(k0);
            for load in &self.loads {
                let fetch = |lane| self.reader.fetch_as_they_lie(b, tile, self.width, k0, lane, k_end);
                let elements = load.lanes.iter().flat_map(fetch);
                load.words.iter().zip(elements).for_each(|(to, x)| to.set(x.bitcast(ScalarType::U32)));
            }
            return;
        }
        let words = self.width == self.unit;
        let packed = self.packed as usize;
        let single = if packed == 2 { DType::U16 } else { DType::U8 };
        let tile = self.reader.tile(k0).retyped(if words { DType::U32 } else { single });
        for load in &self.loads {
            let mut elements = Vec::new();
            for lane in &load.lanes {
                if words {
                    let words = self.reader.fetch_unit(b, tile, [self.unit, self.packed], k0, lane, k_end);
                    load.words.iter().zip(words).for_each(|(to, word)| to.set(word));
                } else {
                    let bits = self.reader.fetch(b, tile, k0, lane, k_end);
                    elements.extend(bits.into_iter().map(|bits| bits.bitcast(ScalarType::U32)));
                }
            }
            for (to, parts) in load.words.iter().zip(elements.chunks_exact(packed)) {
                to.set(packed_word(parts));
            }
        }
    }

    /// What was fetched, as shared memory has it.
    fn fetched(&self, load: &Load<'b>) -> Vec<Value<'b>> {
        let words = load.words.iter().map(|word| word.get());
        let Some(dtype) = self.reader.access.rounded else { return words.collect() };
        let elements: Vec<_> = words.map(|word| word.bitcast(ScalarType::F32)).collect();
        elements.chunks_exact(2).map(|pair| encode_pair([pair[0], pair[1]], dtype)).collect()
    }

    pub fn store(&self, b: &'b Builder) {
        let store = || {
            for load in &self.loads {
                let words = self.fetched(load);
                if self.width == self.unit {
                    self.memory.store(load.unit, b.vector(&words));
                    continue;
                }
                for (i, word) in words.into_iter().enumerate() {
                    self.memory.store_lane(load.unit, (load.place >> self.packed.ilog2()) + i as u32, word);
                }
            }
        };
        match self.busy {
            Some(busy) => b.if_(busy, store),
            None => store(),
        }
    }

    /// Loads the matrix that begins at `outer` and `k`.
    pub fn load(&self, to: Matrix<'b>, outer: Value<'b>, k: u32) {
        let unit = self.unit;
        let stride = self.length / unit + 1;
        let along_k = self.reader.access.axis == Axis::Inner;
        let index = if along_k { outer * stride + k / unit } else { (outer >> unit.ilog2()) + k * stride };
        // The left operand's rows are its outer index, the right one's columns.
        let left = to.ty().part == MatrixUse::Left;
        let layout = if along_k == left { MatrixLayout::RowMajor } else { MatrixLayout::ColumnMajor };
        to.load(self.memory, self.begin + index, stride, layout);
    }
}

/// Elements side by side in a word, the first one in its lowest bits.
fn packed_word<'b>(parts: &[Value<'b>]) -> Value<'b> {
    let bits = 32 / parts.len() as u32;
    parts[1..].iter().zip(1u32..).fold(parts[0], |word, (&part, i)| word | (part << (i * bits)))
}
