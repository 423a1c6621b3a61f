//! Passes over the digits of long rows, which sorting ([`radix_sort`](super::radix_sort)) and
//! selection share: the sources of keys, the division of rows into blocks, and a block's histogram.

use crate::primitives::registers::{Kept, Loads, loads_in_flight};
use crate::primitives::row_operands::{OperandParams, Operands};
use crate::primitives::sort_key;
use crate::view::View;
use crate::view::layout::LayoutSpec;
use dml_engine::interface::U32;
use dml_engine::{ArgumentBlock, Parameter, RegisterFile};
use dml_kernel::dense::{self, GROUP};
use dml_kernel::{Atomic, Builder, DType, Pointer, ScalarType, Shared, Value};

/// Bits of a digit.
pub const BITS: u32 = 8;

/// Number of values of a digit, and of invocations: one for each value.
pub const DIGITS: u32 = 1 << BITS;

const _: () = assert!(DIGITS == GROUP);

/// Number of workgroups that keeps an adapter busy; with more elements, blocks have several tiles.
const BLOCKS: u64 = 2048;

/// Maximum number of tiles of a block.
const TILES: u64 = 8;

/// The keys that an invocation holds at the same time, at most `most`: each with its position, and
/// with what is found of it.
pub fn keys_at_a_time(registers: Option<RegisterFile>, key: DType, most: u32) -> u32 {
    let kept = |keys| Kept { bytes: key.bytes() as u32, elements: 2 * keys, loaded: (keys, Loads::Vectors) };
    loads_in_flight(registers, GROUP, most, kept)
}

/// What a pass reads or writes.
#[derive(Copy, Clone)]
pub enum KeySource<'t> {
    /// Keys and positions; without positions, an element's position is its index.
    Keys(&'t View, Option<&'t View>),
    /// Elements of a tensor, and their positions.
    Elements(&'t Operands, bool),
}

/// The kind of a [`KeySource`], which kernels are specialised by.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Keys { positions: bool },
    Elements { dtype: DType, descending: bool, layout: LayoutSpec },
}

impl<'t> KeySource<'t> {
    pub fn kind(self) -> Kind {
        match self {
            KeySource::Keys(_, positions) => Kind::Keys { positions: positions.is_some() },
            KeySource::Elements(operands, descending) => {
                Kind::Elements { dtype: operands.tensors[0].dtype, descending, layout: operands.layout.spec() }
            }
        }
    }

    pub fn keys(self) -> Option<&'t View> {
        if let KeySource::Keys(keys, _) = self { Some(keys) } else { None }
    }

    pub fn positions(self) -> Option<&'t View> {
        if let KeySource::Keys(_, positions) = self { positions } else { None }
    }

    pub fn operands(self) -> Option<&'t Operands> {
        if let KeySource::Elements(operands, _) = self { Some(operands) } else { None }
    }
}

impl Kind {
    pub fn has_keys(self) -> bool {
        matches!(self, Kind::Keys { .. })
    }

    pub fn has_positions(self) -> bool {
        matches!(self, Kind::Keys { positions: true })
    }

    /// The specialisation of its operands.
    pub fn operands(self) -> Option<(DType, LayoutSpec)> {
        if let Kind::Elements { dtype, layout, .. } = self { Some((dtype, layout)) } else { None }
    }
}

/// One pass over a digit of rows. Each workgroup has a block of a row.
#[derive(Copy, Clone, Debug)]
pub struct Pass {
    /// Elements of a row.
    n: u32,
    rows: u32,
    /// Number of tiles of a block.
    tiles: u32,
    /// Number of blocks of a row.
    blocks: u32,
    /// The digit's lowest bit.
    shift: u32,
}

impl Pass {
    /// For `rows` rows of `n` elements, in tiles of `tile` elements.
    pub fn new(n: i64, rows: i64, tile: u32) -> Pass {
        let tiles = (n as u64).div_ceil(u64::from(tile)).max(1);
        let each = (tiles * rows as u64).div_ceil(BLOCKS).clamp(1, TILES).min(tiles);
        Pass { n: n as u32, rows: rows as u32, tiles: each as u32, blocks: tiles.div_ceil(each) as u32, shift: 0 }
    }

    /// The pass for the digit with this lowest bit.
    pub fn at(self, shift: u32) -> Pass {
        Pass { shift, ..self }
    }

    /// Number of blocks of all rows.
    pub fn blocks(self) -> u64 {
        u64::from(self.rows) * u64::from(self.blocks)
    }

    /// Workgroups for all blocks.
    pub fn groups(self) -> [u32; 3] {
        dense::folded(self.blocks())
    }
}

/// Kernel parameter: a [`Pass`].
pub struct PassNumbers;

/// A [`Pass`] in a kernel (u32).
#[derive(Copy, Clone)]
pub struct PassParams<'b> {
    /// Elements of a row.
    pub n: Value<'b>,
    rows: Value<'b>,
    tiles: Value<'b>,
    blocks: Value<'b>,
    /// The digit's lowest bit.
    pub shift: Value<'b>,
}

impl Parameter for PassNumbers {
    type Type = ();
    type Argument<'a> = Pass;
    type Declared<'b> = PassParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, (): &()) -> PassParams<'b> {
        let [n, rows, tiles, blocks, shift] =
            ["n", "rows", "tiles", "blocks", "shift"].map(|name| b.param(name, ScalarType::U32));
        PassParams { n, rows, tiles, blocks, shift }
    }

    fn pass(pass: &Pass, (): &(), block: &mut ArgumentBlock) {
        for number in [pass.n, pass.rows, pass.tiles, pass.blocks, pass.shift] {
            U32::pass(&number, &(), block);
        }
    }
}

/// A workgroup's block of a row.
pub struct Block<'b> {
    pub b: &'b Builder,
    pub pass: PassParams<'b>,
    /// Index of the row (u32).
    pub row: Value<'b>,
    /// Index of the block in the row, and its range of elements (u32).
    number: Value<'b>,
    pub begin: Value<'b>,
    pub end: Value<'b>,
    /// Index of the row's first key.
    pub base: Value<'b>,
}

impl<'b> Block<'b> {
    /// The block of this workgroup. Excess workgroups return.
    pub fn new(b: &'b Builder, pass: PassParams<'b>, index: ScalarType, tile: u32) -> Block<'b> {
        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        b.if_(group.ge(pass.rows * pass.blocks), || b.return_());
        let row = group / pass.blocks;
        let number = group - row * pass.blocks;
        let begin = number * pass.tiles * tile;
        let end = begin + (pass.n - begin).min(pass.tiles * tile);
        Block { b, pass, row, number, begin, end, base: row.cast(index) * pass.n.cast(index) }
    }

    /// Index of a digit's count.
    pub fn count_at(&self, digit: Value<'b>) -> Value<'b> {
        (self.row * DIGITS + digit) * self.pass.blocks + self.number
    }

    /// Index of the block among all rows' blocks, that of the row's first block, and the total
    /// number of blocks.
    pub fn numbers(&self) -> [Value<'b>; 3] {
        let first = self.row * self.pass.blocks;
        [first + self.number, first, self.pass.rows * self.pass.blocks]
    }

    /// The digit of a key.
    pub fn digit(&self, key: Value<'b>) -> Value<'b> {
        (key >> self.pass.shift.cast(key.scalar())).cast(ScalarType::U32) & (DIGITS - 1)
    }

    /// Loads keys: returns a function of the index in the row.
    pub fn keys<'a>(
        &'a self,
        from: Kind,
        keys: Option<Pointer<'b>>,
        o: Option<&'a OperandParams<'b>>,
    ) -> impl Fn(Value<'b>) -> Value<'b> + 'a {
        let offset = o.filter(|_| !from.has_keys()).map(|o| o.offsets(self.b, self.row.cast(o.rows.scalar()))[0]);
        move |at: Value<'b>| match (from, keys, o, offset) {
            (Kind::Elements { dtype, descending, .. }, _, Some(o), Some(offset)) => {
                sort_key::of_bits(o.input.load(o.at(0, offset, at)), dtype, descending)
            }
            (_, Some(keys), ..) => keys.load(self.base + at.cast(self.base.scalar())),
            _ => unreachable!("a pass reads keys or elements"),
        }
    }

    /// The histogram in shared memory of the digits of the block's keys that are `wanted`; `each`
    /// keys are loaded at a time.
    pub fn count(
        &self,
        each: u32,
        key: impl Fn(Value<'b>) -> Value<'b>,
        wanted: impl Fn(Value<'b>) -> Value<'b>,
    ) -> Shared<'b> {
        let (b, me) = (self.b, self.b.local_id(0));
        let counts = b.shared(ScalarType::U32, 1, DIGITS);
        counts.store(me, b.u32(0));
        b.barrier();
        b.for_(self.begin, self.end, GROUP * each, |start| {
            let positions: Vec<Value> = (0..each).map(|k| start + me + k * GROUP).collect();
            // All loads are issued before the first use.
            let keys: Vec<Value> = positions.iter().map(|&at| key(at.min(self.end - 1))).collect();
            for (at, key) in positions.into_iter().zip(keys) {
                b.if_(at.lt(self.end) & wanted(key), || {
                    counts.atomic(Atomic::Add, self.digit(key), b.u32(1));
                });
            }
        });
        b.barrier();
        counts
    }
}
