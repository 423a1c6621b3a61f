//! Combines many contributions at positions given by keys, in the order of the contributions:
//! bit-identical in every run and on every adapter, without float atomics.
//!
//! One invocation combines all contributions to one element, one after the other. Contributions
//! with the same key are found by comparing all pairs if there are few, otherwise by sorting the
//! keys (`crate::primitives::radix_sort`). A key that many contributions share would make a long
//! chain: tiles of the sorted contributions with one key are combined before, and the chain takes
//! each in one step.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::combine::Combine;
use crate::primitives::kernel::{Input, KernelSpec};
use crate::primitives::radix_sort;
use crate::view::View;
use crate::view::layout::{self, Layout, LayoutParameter, LayoutSpec};
use dml_engine::interface::{Index, ReadRange, U32, WriteRange};
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Maximum number of contributions, and of comparisons, for which pairs are compared.
const MAX_COMPARED: i64 = 1024;

const MAX_COMPARISONS: i64 = 1 << 22;

/// Sorted contributions of a tile.
const TILE: i64 = 64;

/// Contributions and their keys. Each key and each contribution is a slice of elements; both have
/// the same sizes.
pub struct KeyedContributions<'t> {
    /// The destination; of the contributions' dtype.
    pub dst: &'t View,
    /// Sizes of the dimensions of `dst` that a key indexes in row-major order.
    pub key_sizes: &'t [i64],
    /// Strides of these dimensions.
    pub key_strides: &'t [i64],
    /// A u32 key for each contribution, contiguous.
    pub keys: &'t View,
    /// The contributions.
    pub src: &'t View,
    /// Sizes of the dimensions of `src` that index the contributions in row-major order.
    pub part_sizes: &'t [i64],
    /// Strides of these dimensions.
    pub part_strides: &'t [i64],
    /// Sizes of a slice.
    pub slice_sizes: &'t [i64],
    /// Strides of a slice in `dst`.
    pub dst_strides: &'t [i64],
    /// Strides of a slice in `src`.
    pub src_strides: &'t [i64],
    /// The operation.
    pub combine: Combine,
    /// Whether the elements of `dst` are the first contributions.
    pub include_self: bool,
    /// A key whose contributions are skipped.
    pub skip: Option<u32>,
}

/// The number of keys, which is an invalid key.
pub fn invalid_key(name: &str, key_sizes: &[i64]) -> Result<u32> {
    let keys: i64 = key_sizes.iter().product();
    check!(keys < layout::MAX_INDEX_32, TooLarge, "{name}: {keys} places are more than dml can number");
    Ok(keys as u32)
}

/// Specialisation common to both kernels.
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
    key_layout: LayoutSpec,
}

/// Combines each whole tile of sorted contributions with one key. Other tiles' results are
/// undefined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TileSpec(Fold);

parameters! {
    Spec as s => Arguments, Parameters {
        dst: WriteRange = s.fold.access_dtype(),
        src: ReadRange = s.fold.access_dtype(),
        keys: Input = DType::U32,
        positions: Option<Input> = s.sorted.then_some(DType::U32),
        partials: Option<Input> = s.sorted.then(|| s.fold.partial()),
        /// Number of contributions.
        n: U32,
        /// Number of elements of a slice.
        slice: Index = s.fold.slices.index,
        left_out: SkippedKeys,
        slices: LayoutParameter = s.fold.slices,
        key_layout: LayoutParameter = s.key_layout,
        parts: LayoutParameter = s.fold.parts,
    }
}

parameters! {
    TileSpec as s => TileArguments, TileParameters {
        partials: WriteRange = s.0.partial(),
        src: ReadRange = s.0.access_dtype(),
        keys: Input = DType::U32,
        positions: Input = DType::U32,
        tiles: U32,
        /// Number of elements of a slice.
        slice: Index = s.0.slices.index,
        left_out: SkippedKeys,
        slices: LayoutParameter = s.0.slices,
        parts: LayoutParameter = s.0.parts,
    }
}

/// Kernel parameter: the keys whose contributions are skipped: all from `none` on, and one more.
struct SkippedKeys;

/// The argument for [`SkippedKeys`].
#[derive(Copy, Clone)]
struct SkippedKeysArgument {
    none: u32,
    skip: Option<u32>,
}

/// [`SkippedKeys`] in a kernel.
#[derive(Copy, Clone)]
struct SkippedKeysParams<'b> {
    none: Value<'b>,
    skip: Value<'b>,
}

impl Parameter for SkippedKeys {
    type Type = ();
    type Argument<'a> = SkippedKeysArgument;
    type Declared<'b> = SkippedKeysParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, (): &()) -> SkippedKeysParams<'b> {
        SkippedKeysParams { none: b.param("none", ScalarType::U32), skip: b.param("skip", ScalarType::U32) }
    }

    fn pass(&SkippedKeysArgument { none, skip }: &SkippedKeysArgument, (): &(), block: &mut ArgumentBlock) {
        for key in [none, skip.unwrap_or(none)] {
            U32::pass(&key, &(), block);
        }
    }
}

impl<'b> SkippedKeysParams<'b> {
    /// Whether the contributions of a key are combined.
    fn wanted(&self, key: Value<'b>) -> Value<'b> {
        key.lt(self.none) & key.ne(self.skip)
    }
}

/// Enqueues a reduction. Keys that are not less than the number of keys are skipped.
pub fn run(cx: &Context, a: &KeyedContributions) -> Result<()> {
    let n: i64 = a.part_sizes.iter().product();
    let slice: i64 = a.slice_sizes.iter().product();
    let none = invalid_key(cx.name, a.key_sizes)?;
    if n == 0 || slice == 0 || none == 0 {
        return Ok(());
    }
    check!(n < layout::MAX_INDEX_32, TooLarge, "{}: {n} contributions are more than dml can sort", cx.name);
    let slices = [a.dst_strides, a.src_strides];
    let mut slices = Layout::in_order(a.slice_sizes, &slices, &layout::order(a.slice_sizes, &slices));
    let mut key_layout = Layout::row_major(a.key_sizes, &[a.key_strides]);
    let mut parts = Layout::row_major(a.part_sizes, &[a.part_strides]);
    let longest = n.saturating_mul(slice).max(a.dst.reach()).max(a.src.reach());
    let index = layout::index_type(longest);
    for layout in [&mut slices, &mut key_layout, &mut parts] {
        layout.index = index;
    }
    let fold = Fold { dtype: a.dst.dtype, combine: a.combine, slices: slices.spec(), parts: parts.spec() };
    let sorted = n > MAX_COMPARED || n * n * slice > MAX_COMPARISONS;
    let spec = Spec { fold, sorted, include_self: a.include_self, key_layout: key_layout.spec() };
    let left_out = SkippedKeysArgument { none, skip: a.skip };
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
            key_layout: &key_layout,
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
    /// The dtype of the operands; elements that are only copied are copied as bits.
    fn access_dtype(&self) -> DType {
        if self.combine == Combine::Last { self.dtype.bits() } else { self.dtype }
    }

    /// The dtype of a combination of contributions.
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
        if self.access_dtype() == DType::Bool { ScalarType::I32 } else { self.access_dtype().compute() }
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
            // The invocation of a key's first contribution combines all of them.
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
                let offset = at[0] + p.key_layout.offsets(b, key.cast(index))[0];
                let sum = b.var(self.fold.combine.identity(b, scalar));
                let count = b.var(b.u32(u32::from(self.include_self)));
                if self.include_self && self.fold.combine != Combine::Last {
                    sum.set(p.dst.load(offset).cast(scalar));
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
                p.dst.store(offset, self.fold.combine.result(sum, count));
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
                accepted(&Spec { fold, sorted, include_self: i < 3, key_layout: layout(2, 1) }.build());
            }
        }
    }
}
