//! Combining many contributions into places that are found through keys, in the order of the
//! contributions: the same bits each time and on every adapter, with no float atomics.
//!
//! One invocation combines all contributions to one element, one after the other. Which
//! contributions have a key in common is found by comparing all pairs when there are few, else by
//! sorting the keys ([`crate::primitives::radix_sort`]). A key that many contributions share would
//! make a long chain: tiles of the sorted contributions that have one key are combined before, and
//! the chain takes each in one step.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec};
use crate::primitives::radix_sort;
use crate::view::View;
use crate::view::layout::{self, Layout, LayoutSpec, Walked};
use dml_engine::interface::{Index, ReadRange, U32, WriteRange};
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, Var};

/// Up to this many contributions, and this many comparisons, pairs are compared.
const MAX_COMPARED: i64 = 1024;

const MAX_COMPARISONS: i64 = 1 << 22;

/// Sorted contributions of a tile.
const TILE: i64 = 64;

/// How contributions are combined.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// The last one stays.
    Last,
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// Largest; NaN wins.
    Max,
    /// Smallest; NaN wins.
    Min,
    /// Sum divided by the number of contributions (integers round down).
    Mean,
}

/// Contributions and where they go. Each key and each contribution is a slice of elements; both
/// have the same sizes.
pub struct Accumulation<'t> {
    /// What is written; of the contributions' dtype.
    pub dst: &'t View,
    /// Sizes of the dimensions of `dst` that a key numbers in row-major order.
    pub key_sizes: &'t [i64],
    /// Strides of those.
    pub key_strides: &'t [i64],
    /// A u32 key for each contribution, a contiguous row.
    pub keys: &'t View,
    /// The contributions.
    pub src: &'t View,
    /// Sizes of the dimensions of `src` that number the contributions in row-major order.
    pub part_sizes: &'t [i64],
    /// Strides of those.
    pub part_strides: &'t [i64],
    /// Sizes of a slice.
    pub slice_sizes: &'t [i64],
    /// Strides of a slice in `dst`.
    pub dst_strides: &'t [i64],
    /// Strides of a slice in `src`.
    pub src_strides: &'t [i64],
    /// How they are combined.
    pub combine: Combine,
    /// Whether what `dst` holds is the first contribution.
    pub include_self: bool,
    /// A key whose contributions are left out.
    pub skip: Option<u32>,
}

/// The number of keys, as a key that no place has.
pub fn no_key(name: &str, key_sizes: &[i64]) -> Result<u32> {
    let keys: i64 = key_sizes.iter().product();
    check!(keys < layout::SHORT, TooLarge, "{name}: {keys} places are more than dml can number");
    Ok(keys as u32)
}

/// What both kernels are specialised by.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct Fold {
    dtype: DType,
    combine: Combine,
    slices: LayoutSpec,
    parts: LayoutSpec,
}

/// Combines the contributions of each key, and writes the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    fold: Fold,
    sorted: bool,
    include_self: bool,
    places: LayoutSpec,
}

/// Combines each whole tile of sorted contributions that have one key. Other tiles' results are not
/// defined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TileSpec(Fold);

parameters! {
    Spec as s => Arguments, Parameters {
        dst: WriteRange = s.fold.moved(),
        src: ReadRange = s.fold.moved(),
        keys: Input = DType::U32,
        positions: Option<Input> = s.sorted.then_some(DType::U32),
        partials: Option<Input> = s.sorted.then(|| s.fold.partial()),
        /// Contributions.
        n: U32,
        /// Elements of a slice.
        slice: Index = s.fold.slices.index,
        left_out: LeftOut,
        slices: Walked = s.fold.slices,
        places: Walked = s.places,
        parts: Walked = s.fold.parts,
    }
}

parameters! {
    TileSpec as s => TileArguments, TileParameters {
        partials: WriteRange = s.0.partial(),
        src: ReadRange = s.0.moved(),
        keys: Input = DType::U32,
        positions: Input = DType::U32,
        tiles: U32,
        /// Elements of a slice.
        slice: Index = s.0.slices.index,
        left_out: LeftOut,
        slices: Walked = s.0.slices,
        parts: Walked = s.0.parts,
    }
}

/// The keys whose contributions are left out, as a kernel's parameter: those from `none` on, and
/// one more.
struct LeftOut;

/// The argument for [`LeftOut`].
#[derive(Copy, Clone)]
struct LeftOutKeys {
    none: u32,
    skip: Option<u32>,
}

/// [`LeftOut`] in a kernel.
#[derive(Copy, Clone)]
struct LeftOutParams<'b> {
    none: Value<'b>,
    skip: Value<'b>,
}

impl Parameter for LeftOut {
    type Type = ();
    type Argument<'a> = LeftOutKeys;
    type Declared<'b> = LeftOutParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, (): &()) -> LeftOutParams<'b> {
        LeftOutParams { none: b.param("none", ScalarType::U32), skip: b.param("skip", ScalarType::U32) }
    }

    fn pass(&LeftOutKeys { none, skip }: &LeftOutKeys, (): &(), block: &mut ArgumentBlock) {
        for key in [none, skip.unwrap_or(none)] {
            U32::pass(&key, &(), block);
        }
    }
}

impl<'b> LeftOutParams<'b> {
    /// Whether the contributions of a key count.
    fn wanted(&self, key: Value<'b>) -> Value<'b> {
        key.lt(self.none) & key.ne(self.skip)
    }
}

/// Enqueues an accumulation. Keys at or above the number of places are left out.
pub fn run(cx: &Context, a: &Accumulation) -> Result<()> {
    let n: i64 = a.part_sizes.iter().product();
    let slice: i64 = a.slice_sizes.iter().product();
    let none = no_key(cx.name, a.key_sizes)?;
    if n == 0 || slice == 0 || none == 0 {
        return Ok(());
    }
    check!(n < layout::SHORT, TooLarge, "{}: {n} contributions are more than dml can sort", cx.name);
    let slices = [a.dst_strides, a.src_strides];
    let mut slices = Layout::walk(a.slice_sizes, &slices, &layout::order(a.slice_sizes, &slices));
    let mut places = Layout::row_major(a.key_sizes, &[a.key_strides]);
    let mut parts = Layout::row_major(a.part_sizes, &[a.part_strides]);
    let longest = n.saturating_mul(slice).max(a.dst.reach()).max(a.src.reach());
    let index = layout::index_type(longest);
    for layout in [&mut slices, &mut places, &mut parts] {
        layout.index = index;
    }
    let fold = Fold { dtype: a.dst.dtype, combine: a.combine, slices: slices.spec(), parts: parts.spec() };
    let sorted = n > MAX_COMPARED || n * n * slice > MAX_COMPARISONS;
    let spec = Spec { fold, sorted, include_self: a.include_self, places: places.spec() };
    let left_out = LeftOutKeys { none, skip: a.skip };
    let run = |keys: &View, positions: Option<&View>, partials: Option<&View>| {
        let arguments = Arguments {
            dst: a.dst.range(),
            src: a.src.range(),
            keys,
            positions,
            partials,
            n: n as u32,
            slice,
            left_out,
            slices: &slices,
            places: &places,
            parts: &parts,
        };
        cx.run_threads(&spec, &arguments, (n * slice) as u64)
    };
    if !sorted {
        return run(a.keys, None, None);
    }
    let (keys, positions) = radix_sort::sort(cx, a.keys, none)?;
    let tiles = n / TILE;
    let partials = cx.empty(fold.partial(), &[tiles, slice])?;
    if tiles > 0 {
        let arguments = TileArguments {
            partials: partials.range(),
            src: a.src.range(),
            keys: &keys,
            positions: &positions,
            tiles: tiles as u32,
            slice,
            left_out,
            slices: &slices,
            parts: &parts,
        };
        cx.run_threads(&TileSpec(fold), &arguments, (tiles * slice) as u64)?;
    }
    run(&keys, Some(&positions), Some(&partials))
}

impl Fold {
    /// The dtype of the operands; what is only moved is moved as bits.
    fn moved(&self) -> DType {
        if self.combine == Combine::Last { self.dtype.bits() } else { self.dtype }
    }

    /// The dtype that holds a combination of contributions.
    fn partial(&self) -> DType {
        match self.scalar() {
            ScalarType::F32 => DType::F32,
            ScalarType::F64 => DType::F64,
            ScalarType::U32 => DType::U32,
            ScalarType::U64 => DType::U64,
            ScalarType::I64 => DType::I64,
            _ => DType::I32,
        }
    }

    /// The type in which contributions are combined.
    fn scalar(&self) -> ScalarType {
        if self.moved() == DType::Bool { ScalarType::I32 } else { self.moved().compute() }
    }
}

impl Combine {
    /// What changes nothing.
    fn identity(self, b: &Builder, scalar: ScalarType) -> Value<'_> {
        let max = self == Combine::Max;
        match self {
            Combine::Mul => b.constant_of(scalar, 1.0),
            Combine::Max | Combine::Min => match scalar {
                s if s.is_float() => b.float(s, if max { f64::NEG_INFINITY } else { f64::INFINITY }),
                ScalarType::I32 => b.i32(if max { i32::MIN } else { i32::MAX }),
                ScalarType::I64 => b.int(scalar, if max { i64::MIN } else { i64::MAX } as u64),
                s => b.int(s, if max { 0 } else { u64::MAX }),
            },
            _ => b.constant_of(scalar, 0.0),
        }
    }

    fn apply<'b>(self, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        match self {
            Combine::Last => y,
            Combine::Add | Combine::Mean => x + y,
            Combine::Mul => x * y,
            Combine::Max => (x.is_nan() | x.gt(y)).select(x, y),
            Combine::Min => (x.is_nan() | x.lt(y)).select(x, y),
        }
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "accumulate"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (index, scalar) = (self.fold.slices.index, self.fold.scalar());
        let thread = linear_id(b, index);
        let part = thread / p.slice;
        let within = thread - part * p.slice;
        b.if_(part.lt(p.n.cast(index)), || {
            let i = part.cast(ScalarType::U32);
            let key = p.keys.load(i);
            // The first contribution of a key does the work for all of them.
            let first = b.var(p.left_out.wanted(key));
            if self.sorted {
                b.if_(i.gt(0), || first.set(first.get() & p.keys.load(i - 1).ne(key)));
            } else {
                let q = b.var(b.u32(0));
                b.while_(
                    || q.get().lt(i) & first.get(),
                    || {
                        first.set(p.keys.load(q.get()).ne(key));
                        q.set(q.get() + 1);
                    },
                );
            }
            b.if_(first.get(), || {
                let at = p.slices.offsets(b, within);
                let place = at[0] + p.places.offsets(b, key.cast(index))[0];
                let sum = b.var(self.fold.combine.identity(b, scalar));
                let count = b.var(b.u32(u32::from(self.include_self)));
                if self.include_self && self.fold.combine != Combine::Last {
                    sum.set(p.dst.load(place).cast(scalar));
                }
                let add = |position: Value<'_>| {
                    let from = at[1] + p.parts.offsets(b, position.cast(index))[0];
                    sum.set(self.fold.combine.apply(sum.get(), p.src.load(from).cast(scalar)));
                    count.set(count.get() + 1);
                };
                let q = b.var(i);
                if let (Some(positions), Some(partials)) = (p.positions, p.partials) {
                    let more = b.var(b.bool(true));
                    b.while_(
                        || more.get(),
                        || {
                            let now = q.get();
                            let last = now + (TILE - 1) as u32;
                            // A whole tile of this key was combined before.
                            let whole = b.var((now % TILE as u32).eq(0) & last.lt(p.n));
                            b.if_(whole.get(), || whole.set(p.keys.load(last).eq(key)));
                            b.if_else(
                                whole.get(),
                                || {
                                    let tile = (now / TILE as u32).cast(index);
                                    let partial = partials.load(tile * p.slice + within);
                                    sum.set(self.fold.combine.apply(sum.get(), partial));
                                    count.set(count.get() + TILE as u32);
                                    q.set(now + TILE as u32);
                                },
                                || {
                                    add(positions.load(now));
                                    q.set(now + 1);
                                },
                            );
                            let next = q.get();
                            more.set(false);
                            b.if_(next.lt(p.n), || more.set(p.keys.load(next).eq(key)));
                        },
                    );
                } else {
                    b.while_(
                        || q.get().lt(p.n),
                        || {
                            b.if_(p.keys.load(q.get()).eq(key), || add(q.get()));
                            q.set(q.get() + 1);
                        },
                    );
                }
                p.dst.store(place, result(self.fold.combine, sum, count));
            });
        });
    }
}

impl KernelSpec for TileSpec {
    fn name(&self) -> &'static str {
        "accumulate_tiles"
    }

    fn write<'b>(&self, b: &'b Builder, p: TileParameters<'b>) {
        let (index, scalar) = (self.0.slices.index, self.0.scalar());
        let thread = linear_id(b, index);
        let tile = thread / p.slice;
        let within = thread - tile * p.slice;
        b.if_(tile.lt(p.tiles.cast(index)), || {
            let first = tile.cast(ScalarType::U32) * TILE as u32;
            let key = p.keys.load(first);
            let wanted = p.left_out.wanted(key) & p.keys.load(first + (TILE - 1) as u32).eq(key);
            b.if_(wanted, || {
                let at = p.slices.offsets(b, within)[1];
                let sum = b.var(self.0.combine.identity(b, scalar));
                b.for_(first, first + TILE as u32, 1, |q| {
                    let from = at + p.parts.offsets(b, p.positions.load(q).cast(index))[0];
                    sum.set(self.0.combine.apply(sum.get(), p.src.load(from).cast(scalar)));
                });
                p.partials.store(thread, sum.get());
            });
        });
    }
}

/// What is stored of the combination of so many contributions.
fn result<'b>(combine: Combine, sum: Var<'b>, count: Var<'b>) -> Value<'b> {
    let sum = sum.get();
    if combine != Combine::Mean {
        return sum;
    }
    let count = count.get().cast(sum.scalar());
    let quotient = sum / count;
    if sum.scalar().is_float() {
        return quotient;
    }
    let down = sum.lt(0) & (quotient * count).ne(sum);
    down.select(quotient - 1, quotient)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        let all = [Combine::Last, Combine::Add, Combine::Mul, Combine::Max, Combine::Min, Combine::Mean];
        for (i, combine) in all.into_iter().enumerate() {
            for dtype in [DType::Bool, DType::I16, DType::I64, DType::BF16, DType::F32, DType::F64] {
                let sorted = i % 2 == 0;
                let index = if sorted { ScalarType::U32 } else { ScalarType::U64 };
                let layout = |rank: usize, operands| LayoutSpec { rank: rank as u32, operands, index };
                let fold = Fold { dtype, combine, slices: layout(1, 2), parts: layout(i % 3, 1) };
                accepted(&TileSpec(fold).build());
                accepted(&Spec { fold, sorted, include_self: i < 3, places: layout(2, 1) }.build());
            }
        }
    }
}
