//! Combining many contributions into places that are found through keys, in the order of the contributions: the same
//! bits each time and on every adapter, with no float atomics.
//!
//! One invocation combines all contributions to one element, one after the other. Which contributions have a key in
//! common is found by comparing all pairs when there are few, else by sorting the keys ([`crate::primitives::radix_sort`]). A key that
//! many contributions share would make a long chain: tiles of the sorted contributions that have one key are combined
//! before, and the chain takes each in one step.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::launch::{GROUP, Launcher, linear_id};
use crate::primitives::radix_sort;
use crate::tensor::Tensor;
use crate::tensor::layout::{self, Layout};
use dml_kernel::{Builder, DType, Kernel, Scalar, Value, Var};

/// Up to this many contributions, and this many comparisons, pairs are compared.
const FEW: i64 = 1024;
const FEW_COMPARISONS: i64 = 1 << 22;
/// Sorted contributions of a tile.
const TILE: i64 = 64;

/// How contributions are combined.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
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

/// Contributions and where they go. Each key and each contribution is a slice of elements; both have the same sizes.
pub struct Accumulation<'t> {
    /// What is written; of the contributions' dtype.
    pub dst: &'t Tensor,
    /// Sizes of the dimensions of `dst` that a key numbers in row-major order.
    pub key_sizes: &'t [i64],
    /// Strides of those.
    pub key_strides: &'t [i64],
    /// A u32 key for each contribution, a contiguous row.
    pub keys: &'t Tensor,
    /// The contributions.
    pub src: &'t Tensor,
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
    check!(keys < layout::SHORT, NotImplemented, "{name}: {keys} places are more than dml can number");
    Ok(keys as u32)
}

struct Shape {
    sorted: bool,
    dtype: DType,
    combine: Combine,
    include_self: bool,
    index: Scalar,
    ranks: [usize; 3],
}

/// Enqueues an accumulation. Keys at or above the number of places are left out.
pub fn run(call: &Call, a: &Accumulation) -> Result<()> {
    let n: i64 = a.part_sizes.iter().product();
    let slice: i64 = a.slice_sizes.iter().product();
    let none = no_key(call.name, a.key_sizes)?;
    if n == 0 || slice == 0 || none == 0 {
        return Ok(());
    }
    check!(n < layout::SHORT, NotImplemented, "{}: {n} contributions are more than dml can sort", call.name);
    let slices = [a.dst_strides, a.src_strides];
    let mut slices = Layout::walk(a.slice_sizes, &slices, &layout::order(a.slice_sizes, &slices));
    let mut places = Layout::row_major(a.key_sizes, &[a.key_strides]);
    let mut parts = Layout::row_major(a.part_sizes, &[a.part_strides]);
    let longest = n.saturating_mul(slice).max(a.dst.reach()).max(a.src.reach());
    let index = layout::index_type(longest);
    for layout in [&mut slices, &mut places, &mut parts] {
        layout.index = index;
    }
    let sorted = n > FEW || n * n * slice > FEW_COMPARISONS;
    let shape = Shape {
        sorted,
        dtype: a.dst.dtype,
        combine: a.combine,
        include_self: a.include_self,
        index,
        ranks: [slices.rank(), places.rank(), parts.rank()],
    };
    let key = [
        shape.dtype as u32,
        a.combine as u32 | u32::from(a.include_self) << 8 | u32::from(sorted) << 9 | index.bytes() << 16,
        shape.ranks[0] as u32,
        shape.ranks[1] as u32,
        shape.ranks[2] as u32,
        0,
    ];
    let pass = |launcher: Launcher<'_, '_>| {
        let launcher = launcher.u32(n as u32).index(index, slice).u32(none).u32(a.skip.unwrap_or(none));
        parts.pass(places.pass(slices.pass(launcher))).threads((n * slice) as u64)
    };
    if !sorted {
        let kernel = call.kernel("accumulate", key, || build(&shape))?;
        return pass(call.launch(kernel).write(a.dst).read(a.src).read(a.keys));
    }
    let (keys, positions) = radix_sort::sort(call, a.keys, none)?;
    let tiles = n / TILE;
    let partials = call.empty(shape.partial(), &[tiles, slice])?;
    if tiles > 0 {
        let kernel = call.kernel("accumulate_tiles", key, || build_tiles(&shape))?;
        let launcher = call.launch(kernel).write(&partials).read(a.src).read(&keys).read(&positions);
        let launcher = launcher.u32(tiles as u32).index(index, slice).u32(none).u32(a.skip.unwrap_or(none));
        parts.pass(slices.pass(launcher)).threads((tiles * slice) as u64)?;
    }
    let kernel = call.kernel("accumulate", key, || build(&shape))?;
    pass(call.launch(kernel).write(a.dst).read(a.src).read(&keys).read(&positions).read(&partials))
}

impl Shape {
    /// The dtype of the operands; what is only moved is moved as bits.
    fn moved(&self) -> DType {
        if self.combine == Combine::Last { self.dtype.bits() } else { self.dtype }
    }

    /// The dtype that holds a combination of contributions.
    fn partial(&self) -> DType {
        match compute(self.moved()) {
            Scalar::F32 => DType::F32,
            Scalar::F64 => DType::F64,
            Scalar::U32 => DType::U32,
            Scalar::U64 => DType::U64,
            Scalar::I64 => DType::I64,
            _ => DType::I32,
        }
    }
}

/// The type in which contributions are combined.
fn compute(dtype: DType) -> Scalar {
    if dtype == DType::Bool { Scalar::I32 } else { dtype.compute() }
}

impl Combine {
    /// What changes nothing.
    fn identity(self, b: &Builder, scalar: Scalar) -> Value<'_> {
        let max = self == Combine::Max;
        match self {
            Combine::Mul => b.constant_of(scalar, 1.0),
            Combine::Max | Combine::Min => match scalar {
                s if s.is_float() => b.float(s, if max { f64::NEG_INFINITY } else { f64::INFINITY }),
                Scalar::I32 => b.i32(if max { i32::MIN } else { i32::MAX }),
                Scalar::I64 => b.int(scalar, if max { i64::MIN } else { i64::MAX } as u64),
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

fn build(shape: &Shape) -> Kernel {
    let b = Builder::new("accumulate", [GROUP, 1, 1]);
    let dtype = shape.moved();
    let scalar = compute(dtype);
    let (dst, src) = (b.pointer("dst", dtype), b.pointer("src", dtype));
    let keys = b.pointer("keys", DType::U32);
    let sorted = if shape.sorted {
        Some((b.pointer("positions", DType::U32), b.pointer("partials", shape.partial())))
    } else {
        None
    };
    let index = shape.index;
    let n = b.param("n", Scalar::U32);
    let slice = b.param("slice", index);
    let (none, skip) = (b.param("none", Scalar::U32), b.param("skip", Scalar::U32));
    let slices = layout::declare(&b, shape.ranks[0], 2, index);
    let places = layout::declare(&b, shape.ranks[1], 1, index);
    let parts = layout::declare(&b, shape.ranks[2], 1, index);
    let thread = linear_id(&b, index);
    let part = thread / slice;
    let within = thread - part * slice;
    b.if_(part.lt(n.cast(index)), || {
        let i = part.cast(Scalar::U32);
        let key = keys.load(i);
        // The first contribution of a key does the work for all of them.
        let first = b.var(key.lt(none) & key.ne(skip));
        if shape.sorted {
            b.if_(i.gt(0), || first.set(first.get() & keys.load(i - 1).ne(key)));
        } else {
            let q = b.var(b.u32(0));
            b.while_(
                || q.get().lt(i) & first.get(),
                || {
                    first.set(keys.load(q.get()).ne(key));
                    q.set(q.get() + 1);
                },
            );
        }
        b.if_(first.get(), || {
            let at = slices.offsets(&b, within);
            let place = at[0] + places.offsets(&b, key.cast(index))[0];
            let sum = b.var(shape.combine.identity(&b, scalar));
            let count = b.var(b.u32(u32::from(shape.include_self)));
            if shape.include_self && shape.combine != Combine::Last {
                sum.set(dst.load(place).cast(scalar));
            }
            let add = |position: Value<'_>| {
                let from = at[1] + parts.offsets(&b, position.cast(index))[0];
                sum.set(shape.combine.apply(sum.get(), src.load(from).cast(scalar)));
                count.set(count.get() + 1);
            };
            let q = b.var(i);
            if let Some((positions, partials)) = sorted {
                let more = b.var(b.bool(true));
                b.while_(
                    || more.get(),
                    || {
                        let now = q.get();
                        let last = now + (TILE - 1) as u32;
                        // A whole tile of this key was combined before.
                        let whole = b.var((now % TILE as u32).eq(0) & last.lt(n));
                        b.if_(whole.get(), || whole.set(keys.load(last).eq(key)));
                        b.if_else(
                            whole.get(),
                            || {
                                let tile = (now / TILE as u32).cast(index);
                                let partial = partials.load(tile * slice + within);
                                sum.set(shape.combine.apply(sum.get(), partial));
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
                        b.if_(next.lt(n), || more.set(keys.load(next).eq(key)));
                    },
                );
            } else {
                b.while_(
                    || q.get().lt(n),
                    || {
                        b.if_(keys.load(q.get()).eq(key), || add(q.get()));
                        q.set(q.get() + 1);
                    },
                );
            }
            dst.store(place, finish(shape.combine, sum, count));
        });
    });
    b.finish()
}

/// Combines each whole tile of sorted contributions that have one key. Other tiles' results are not defined.
fn build_tiles(shape: &Shape) -> Kernel {
    let b = Builder::new("accumulate_tiles", [GROUP, 1, 1]);
    let (dtype, index) = (shape.moved(), shape.index);
    let scalar = compute(dtype);
    let (partials, src) = (b.pointer("partials", shape.partial()), b.pointer("src", dtype));
    let (keys, positions) = (b.pointer("keys", DType::U32), b.pointer("positions", DType::U32));
    let tiles = b.param("tiles", Scalar::U32);
    let slice = b.param("slice", index);
    let (none, skip) = (b.param("none", Scalar::U32), b.param("skip", Scalar::U32));
    let slices = layout::declare(&b, shape.ranks[0], 2, index);
    let parts = layout::declare(&b, shape.ranks[2], 1, index);
    let thread = linear_id(&b, index);
    let tile = thread / slice;
    let within = thread - tile * slice;
    b.if_(tile.lt(tiles.cast(index)), || {
        let first = tile.cast(Scalar::U32) * TILE as u32;
        let key = keys.load(first);
        let wanted = key.lt(none) & key.ne(skip) & keys.load(first + (TILE - 1) as u32).eq(key);
        b.if_(wanted, || {
            let at = slices.offsets(&b, within)[1];
            let sum = b.var(shape.combine.identity(&b, scalar));
            b.for_(first, first + TILE as u32, 1, |q| {
                let from = at + parts.offsets(&b, positions.load(q).cast(index))[0];
                sum.set(shape.combine.apply(sum.get(), src.load(from).cast(scalar)));
            });
            partials.store(thread, sum.get());
        });
    });
    b.finish()
}

fn finish<'b>(combine: Combine, sum: Var<'b>, count: Var<'b>) -> Value<'b> {
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
                let index = if sorted { Scalar::U32 } else { Scalar::U64 };
                let shape = Shape { sorted, dtype, combine, include_self: i < 3, index, ranks: [1, 2, i % 3] };
                accepted(&build(&shape));
                accepted(&build_tiles(&shape));
            }
        }
    }
}
