//! How many elements fall into each bin: bincount and histc.
//!
//! Bin numbers are sorted and each bin finds where its own begin and end: no atomics, so that many
//! elements in one bin do not queue up.

use crate::context::Context;
use crate::error::Result;
use crate::host;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::keyed_reduction::{self, Accumulation, Combine};
use crate::primitives::radix_sort;
use crate::reduction::axes::Axes;
use crate::reduction::extremum;
use crate::scalar::Scalar as Number;
use crate::sorting::key;
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// The smallest and the largest element. Waits for them.
pub fn extremes(cx: &Context, t: &View) -> Result<[Number; 2]> {
    let both = cx.empty(t.dtype, &[2])?;
    let [least, most] = [0, 1].map(|i| both.as_strided(&[], &[], i));
    extremum::both(cx, t, [&least, &most], Axes::all(false))?;
    let (mut bytes, size) = ([0u8; 16], t.element_size() as usize);
    cx.download(both.data, &mut bytes[..2 * size])?;
    Ok([0, 1].map(|i| {
        let mut number = [0; 8];
        number[..size].copy_from_slice(&bytes[i * size..][..size]);
        host::decode(t.dtype, number)
    }))
}

/// Everything that changes the code of the kernel that counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    out: DType,
}

parameters! {
    Spec as s => Arguments, Parameters {
        /// Bin numbers, sorted.
        keys: Input = DType::U32,
        out: Output = s.out,
        n: U32,
        bins: U32,
        /// From one element of `out` to the next.
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

/// Writes to the row `out` how often each bin number occurs in `keys` (u32, a contiguous row).
/// Numbers that are no bin must be the number of bins.
pub fn count(cx: &Context, keys: &View, out: &View) -> Result<()> {
    let bins = out.numel();
    let (sorted, _) = radix_sort::sort(cx, keys, bins as u32)?;
    let arguments = Arguments { keys: &sorted, out, n: keys.numel() as u32, bins: bins as u32, stride: out.strides[0] };
    cx.run_threads(&Spec { out: out.dtype }, &arguments, bins as u64)
}

/// Adds each element of `src` to the element of the row `dst` that its key numbers.
pub fn add(cx: &Context, keys: &View, src: &View, dst: &View) -> Result<()> {
    let accumulation = Accumulation {
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
