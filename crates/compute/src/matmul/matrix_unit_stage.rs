//! Operands' tiles of a product on matrix units, staged in shared memory in the order in which they
//! are in memory, or along k ([`MatrixTile::transposes`]).
//!
//! An operand that is rounded on load is fetched unrounded, and rounded when it is stored to shared
//! memory, so that the fetch does not wait for memory.

use crate::matmul::matrix_unit_tile::MatrixTile;
use crate::matmul::operand::Axis;
use crate::matmul::reader::{Lane, Reader};
use dml_kernel::{Builder, DType, Matrix, MatrixLayout, MatrixUse, ScalarType, Shared, Value, Var, encode_pair};

/// The tile of one operand in shared memory, and this invocation's part in copying it there.
pub struct Stage<'r, 'b> {
    reader: &'r Reader<'b>,
    memory: Shared<'b>,
    /// Offset of the tile in shared memory.
    begin: Value<'b>,
    /// Rows, and contiguous elements of a row.
    pub rows: u32,
    pub length: u32,
    /// Elements of a load: a 16-byte vector, or what the operand allows. If loads are of single
    /// elements, the elements of a word are fetched together.
    width: u32,
    /// Elements of a 16-byte vector of shared memory, and of a word.
    vector_width: u32,
    packed: u32,
    /// Whether rows of shared memory are along k, and whether rows of memory are not.
    along_k: bool,
    transposed: bool,
    loads: Vec<Load<'b>>,
    /// Whether this invocation copies anything; `None` if every invocation does.
    is_active: Option<Value<'b>>,
}

struct Load<'b> {
    /// One load, or the loads of a word's single elements; if they are transposed, of the elements
    /// of a word for each element of a load.
    lanes: Vec<Lane<'b>>,
    /// Destination: vector, and lane in the vector. If loads are transposed, that of the first
    /// word; the others are in the next rows.
    vector: Value<'b>,
    lane: Value<'b>,
    /// The fetched words of memory.
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
        let (axis, packed) = (reader.access.axis, 4 / tile.bytes);
        let transposed = tile.transposes && axis == Axis::Outer;
        let along_k = transposed || axis == Axis::Inner;
        let (rows, length) = if along_k { (outer, tile.k) } else { (tile.k, outer) };
        let vector_width = tile.vector_width();
        let width = if units { vector_width } else { reader.access.width() };
        let order = Order { rows, length, width, packed, transposed };
        let (lane, threads) = (b.local_id(0), tile.threads());
        let total = rows * length / order.elements();
        let is_active = (total < threads).then(|| lane.lt(total));
        let loads = (0..(total / threads).max(1))
            .map(|i| {
                let load = if total < threads { lane & (total - 1) } else { lane + i * threads };
                let (row, first) = order.begin(load, tile.bytes);
                let lanes = (0..order.elements() / width).map(|j| {
                    let (o, k) = if along_k { (row, first + j) } else { (first + j, row) };
                    // Past the edge, the last row is read again; its sums are not stored.
                    let wide = if axis == Axis::Inner { 1 } else { width };
                    let local = size.map_or(o, |size| o.min(size - wide - origin));
                    reader.lane(b, origin, local, k)
                });
                // A float32 element is a word.
                let elements_of_word = if reader.access.rounds_to.is_some() { 1 } else { packed };
                Load {
                    lanes: lanes.collect(),
                    vector: begin + row * (length / vector_width + 1) + (first >> vector_width.ilog2()),
                    lane: first & (vector_width - 1),
                    words: (0..order.elements() / elements_of_word).map(|_| b.var(b.u32(0))).collect(),
                }
            })
            .collect();
        Stage {
            reader,
            memory,
            begin,
            rows,
            length,
            width,
            vector_width,
            packed,
            along_k,
            transposed,
            loads,
            is_active,
        }
    }

    /// Fetches this invocation's part of the k-tile at `k0`.
    pub fn fetch(&self, b: &'b Builder, k0: Value<'b>, k_end: Option<Value<'b>>) {
        if self.reader.access.rounds_to.is_some() {
            let tile = self.reader.tile(k0);
            for load in &self.loads {
                let fetch = |lane| self.reader.load_unrounded(b, tile, self.width, k0, lane, k_end);
                let elements = load.lanes.iter().flat_map(fetch);
                load.words.iter().zip(elements).for_each(|(to, x)| to.set(x.bitcast(ScalarType::U32)));
            }
            return;
        }
        let words = self.width == self.vector_width;
        let packed = self.packed as usize;
        let single = if packed == 2 { DType::U16 } else { DType::U8 };
        let tile = self.reader.tile(k0).retyped(if words { DType::U32 } else { single });
        for load in &self.loads {
            if words {
                let fetch = |lane| self.reader.fetch_unit(b, tile, [self.vector_width, self.packed], k0, lane, k_end);
                let fetched = load.lanes.iter().flat_map(fetch);
                load.words.iter().zip(fetched).for_each(|(to, word)| to.set(word));
            } else {
                let fetch = |lane| self.reader.fetch(b, tile, k0, lane, k_end);
                let bits = load.lanes.iter().flat_map(fetch).map(|bits| bits.bitcast(ScalarType::U32));
                let words = self.in_words(&bits.collect::<Vec<_>>());
                load.words.iter().zip(words).for_each(|(to, parts)| to.set(packed_word(&parts)));
            }
        }
    }

    /// Groups fetched elements into the words of shared memory.
    fn in_words(&self, elements: &[Value<'b>]) -> Vec<Vec<Value<'b>>> {
        if !self.transposed {
            return elements.chunks_exact(self.packed as usize).map(<[_]>::to_vec).collect();
        }
        let width = self.width as usize;
        (0..width).map(|i| elements.iter().skip(i).step_by(width).copied().collect()).collect()
    }

    /// The fetched elements in the format of shared memory.
    fn fetched(&self, load: &Load<'b>) -> Vec<Value<'b>> {
        let words: Vec<_> = load.words.iter().map(|word| word.get()).collect();
        if let Some(dtype) = self.reader.access.rounds_to {
            let elements: Vec<_> = words.iter().map(|word| word.bitcast(ScalarType::F32)).collect();
            return self.in_words(&elements).iter().map(|pair| encode_pair([pair[0], pair[1]], dtype)).collect();
        }
        if !self.transposed || self.width != self.vector_width {
            return words;
        }
        let bits = 32 / self.packed;
        let parts = |word: Value<'b>| (0..self.packed).map(move |i| (word >> (i * bits)) & ((1 << bits) - 1));
        let elements: Vec<_> = words.into_iter().flat_map(parts).collect();
        self.in_words(&elements).iter().map(|parts| packed_word(parts)).collect()
    }

    pub fn store(&self, b: &'b Builder) {
        let stride = self.length / self.vector_width + 1;
        let store = || {
            for load in &self.loads {
                let words = self.fetched(load);
                if self.width == self.vector_width && !self.transposed {
                    self.memory.store(load.vector, b.vector(&words));
                    continue;
                }
                for (i, word) in (0u32..).zip(words) {
                    let first = load.lane >> self.packed.ilog2();
                    let (vector, lane) =
                        if self.transposed { (load.vector + i * stride, first) } else { (load.vector, first + i) };
                    self.memory.store_lane(vector, lane, word);
                }
            }
        };
        match self.is_active {
            Some(is_active) => b.if_(is_active, store),
            None => store(),
        }
    }

    /// Loads the matrix that begins at `outer` and `k`.
    pub fn load(&self, to: Matrix<'b>, outer: Value<'b>, k: u32) {
        let vector_width = self.vector_width;
        let stride = self.length / vector_width + 1;
        let along_k = self.along_k;
        let index =
            if along_k { outer * stride + k / vector_width } else { (outer >> vector_width.ilog2()) + k * stride };
        // Rows of the left operand's matrices are its outer index; of the right operand's, columns
        // are.
        let left = to.ty().part == MatrixUse::Left;
        let layout = if along_k == left { MatrixLayout::RowMajor } else { MatrixLayout::ColumnMajor };
        to.load(self.memory, self.begin + index, stride, layout);
    }
}

/// Bytes of a row of memory that adjacent invocations load together: a line of a cache, or half of
/// one.
const TOGETHER: u32 = 64;

/// How the elements of a tile are divided into loads.
struct Order {
    /// Rows of shared memory, and elements of a row.
    rows: u32,
    length: u32,
    /// Elements of a load, and of a word.
    width: u32,
    packed: u32,
    /// Whether a load's elements are in one column of shared memory.
    transposed: bool,
}

impl Order {
    /// Elements whose words are stored together.
    fn elements(&self) -> u32 {
        if self.transposed { self.width * self.packed } else { self.width.max(self.packed) }
    }

    /// Row and column in shared memory of the first element of load `index`, where an element has
    /// `bytes` bytes.
    fn begin<'b>(&self, index: Value<'b>, bytes: u32) -> (Value<'b>, Value<'b>) {
        let divide = |x: Value<'b>, by: u32| (x >> by.ilog2(), x & (by - 1));
        if !self.transposed {
            let (row, step) = divide(index, self.length / self.elements());
            return (row, step * self.elements());
        }
        let loads = (TOGETHER / (self.width * bytes)).clamp(1, self.rows / self.width);
        let (rest, load) = divide(index, loads);
        let (group, step) = divide(rest, self.length / self.packed);
        ((group * loads + load) * self.width, step * self.packed)
    }
}

/// Packs elements into a word, the first one in the lowest bits.
fn packed_word<'b>(parts: &[Value<'b>]) -> Value<'b> {
    let bits = 32 / parts.len() as u32;
    parts[1..].iter().zip(1u32..).fold(parts[0], |word, (&part, i)| word | (part << (i * bits)))
}
