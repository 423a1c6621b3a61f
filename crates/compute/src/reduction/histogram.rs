//! The number of elements in each bin: bincount and histc.
//!
//! Bin numbers are sorted, and each bin finds the beginning and the end of its own: no atomics, on
//! which many elements of one bin would contend.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::host;
use crate::pointwise::kernel::{Operand, run_operands};
use crate::primitives::combine::Combine;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::keyed_reduction::{self, KeyedContributions};
use crate::primitives::radix_sort;
use crate::reduction::axes::Axes;
use crate::reduction::extremum;
use crate::reduction::functions::HISTC;
use crate::scalar::Scalar as Number;
use crate::sorting::key;
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// The smallest and the largest element. Waits for the result.
pub fn extremes(cx: &Context, t: &View) -> Result<[Number; 2]> {
    let both = cx.empty(t.dtype, &[2])?;
    let [least, most] = [0, 1].map(|i| both.as_strided(&[], &[], i));
    extremum::both(cx, t, [&least, &most], Axes::all(false))?;
    let (mut bytes, size) = ([0u8; 16], t.element_size() as usize);
    cx.download(both.data, &mut bytes[..2 * size])?;
    Ok([0, 1].map(|i| host::element(t.dtype, &bytes[i * size..][..size])))
}

/// Writes to the row `out` how many elements lie in each of as many equal bins between two limits,
/// the last of which counts too. Integers are divided as 64-bit integers.
pub fn count_between(cx: &Context, t: &View, limits: [Number; 2], out: &View) -> Result<()> {
    let dtype = if t.dtype.is_float() { accumulator(t.dtype) } else { DType::I64 };
    let keys = cx.empty(DType::U32, &t.sizes)?;
    let [low, high] = limits.map(Operand::Number);
    let inputs = [Operand::Tensor(t), low, high, Operand::Number(Number::Int(out.numel()))];
    run_operands(cx, HISTC.of(t.dtype), &[&keys], &inputs, dtype)?;
    count(cx, &keys.as_strided(&[keys.numel()], &[1], 0), out)
}

/// Everything that changes the code of the kernel that counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    out: DType,
}

parameters! {
    Spec as s => Arguments, Parameters {
        /// The sorted bin numbers.
        keys: Input = DType::U32,
        out: Output = s.out,
        n: U32,
        bins: U32,
        /// Stride of `out`.
        stride: Index = ScalarType::U64,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "histogram"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let bin = linear_id(b, ScalarType::U32);
        b.if_(bin.lt(p.bins), || {
            let begin = key::partition_point(p.n, |i| p.keys.load(i.cast(ScalarType::U64)).lt(bin));
            let end = key::partition_point(p.n, |i| p.keys.load(i.cast(ScalarType::U64)).le(bin));
            p.out.store(bin.cast(ScalarType::U64) * p.stride, (end - begin).cast(ScalarType::I64));
        });
    }
}

/// Writes to the 1-dim `out` how often each bin number occurs in `keys` (u32, 1-dim, contiguous).
/// Elements without a bin have to have the number of bins as their key.
pub fn count(cx: &Context, keys: &View, out: &View) -> Result<()> {
    let bins = out.numel();
    let (sorted, _) = radix_sort::sort(cx, keys, bins as u32)?;
    let arguments = Arguments { keys: &sorted, out, n: keys.numel() as u32, bins: bins as u32, stride: out.strides[0] };
    cx.run_threads(&Spec { out: out.dtype }, &arguments, bins as u64)
}

/// Adds each element of `src` to the element of `dst` whose index is its key; both 1-dim.
pub fn add(cx: &Context, keys: &View, src: &View, dst: &View) -> Result<()> {
    let accumulation = KeyedContributions {
        dst,
        key_sizes: &dst.sizes,
        key_strides: &dst.strides,
        keys,
        src,
        part_sizes: &src.sizes,
        part_strides: &src.strides,
        slice_sizes: &[],
        dst_strides: &[],
        src_strides: &[],
        combine: Combine::Add,
        include_self: true,
        skip: None,
    };
    keyed_reduction::run(cx, &accumulation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::I64, DType::F16, DType::F64] {
            crate::primitives::validate::accepted(&Spec { out: dtype }.build());
        }
    }
}
