//! Copies, of which every operator that moves elements is made: on the device, or on the host for
//! the int32 of [`Call::on_host`].

use crate::error::Result;
use crate::kernel::Call;
use dml_compute::complex::parts::as_bits;
use dml_compute::movement::copy;
use dml_compute::primitives::multi_copy;
use dml_compute::{Dims, Scalar, View, complex, host};
use dml_kernel::DType;

pub use dml_compute::primitives::multi_copy::Region;

/// A copy of `src`, which has the sizes of `dst`, with these dimensions reversed.
pub fn reversed(src: &View, dst: View, is_reversed: impl Fn(usize) -> bool) -> Region {
    let (mut strides, mut start) = (src.strides.clone(), 0);
    for d in (0..src.dim()).filter(|&d| is_reversed(d)) {
        start += (src.sizes[d] - 1).max(0) * strides[d];
        strides[d] = -strides[d];
    }
    Region { dst, src: src.clone(), strides, start }
}

/// Copies regions whose destinations do not overlap.
pub fn copy_regions(call: &Call, regions: Vec<Region>) -> Result<()> {
    if call.on_host() {
        return regions.iter().try_for_each(copy_on_host);
    }
    let regions: Vec<Region> = regions.into_iter().map(region_of_bits).collect();
    let Some(first) = regions.first() else { return Ok(()) };
    Ok(multi_copy::copy(&call.cx(), first.dst.dtype, &regions)?)
}

/// A region with elements as unsigned integers.
fn region_of_bits(region: Region) -> Region {
    let Region { dst, src, mut strides, mut start } = region;
    if dst.dtype == DType::C128 {
        strides = strides.iter().map(|s| 2 * s).chain([1]).collect();
        start *= 2;
    }
    Region { dst: as_bits(&dst), src: as_bits(&src), strides, start }
}

/// Copies; `src` broadcasts to `dst`.
pub fn copy(call: &Call, src: &View, dst: &View) -> Result<()> {
    if call.on_host() {
        let strides = src.expanded_strides(&dst.sizes);
        return copy_on_host(&Region { dst: dst.clone(), src: src.clone(), strides, start: 0 });
    }
    if src.dtype.is_complex() {
        return Ok(complex::device_copy(&call.cx(), src, dst)?);
    }
    Ok(copy::device_copy(&call.cx(), src, dst)?)
}

/// Sets every element.
pub fn fill(call: &Call, out: &View, value: Scalar) -> Result<()> {
    if call.on_host() {
        let element = host::bits(out.dtype, value).to_le_bytes();
        let size = out.element_size() as usize;
        let mut row = row(out);
        for to in host::bytes_mut(&mut row)?.chunks_exact_mut(size) {
            to.copy_from_slice(&element[..size]);
        }
        return Ok(());
    }
    if out.dtype.is_complex() {
        return Ok(complex::fill_with(&call.cx(), out, value)?);
    }
    Ok(copy::fill_with(&call.cx(), out, value)?)
}

/// All memory that a view can access, as a row.
fn row(t: &View) -> View {
    t.as_strided(&[if t.numel() == 0 { 0 } else { t.reach() }], &[1], 0)
}

fn copy_on_host(region: &Region) -> Result<()> {
    let size = region.dst.element_size() as usize;
    let (from, mut to) = (row(&region.src), row(&region.dst));
    let (from, to) = (host::bytes(&from)?, host::bytes_mut(&mut to)?);
    let places = offsets(&region.dst.sizes, &region.dst.strides, 0);
    for (to_offset, from_offset) in places.zip(offsets(&region.dst.sizes, &region.strides, region.start)) {
        let at = |offset: i64| offset as usize * size..(offset as usize + 1) * size;
        to[at(to_offset)].copy_from_slice(&from[at(from_offset)]);
    }
    Ok(())
}

/// The offsets of elements in row-major order.
fn offsets(sizes: &[i64], strides: &[i64], start: i64) -> impl Iterator<Item = i64> {
    let mut offsets = vec![start];
    for (&n, &stride) in sizes.iter().zip(strides) {
        offsets = offsets.iter().flat_map(|&o| (0..n).map(move |i| o + i * stride)).collect();
    }
    offsets.into_iter()
}

/// A contiguous view of other sizes of the same memory; both have as many elements.
pub fn reshaped(t: &View, sizes: &[i64]) -> View {
    t.as_strided(sizes, &View::contiguous_strides(sizes), 0)
}

/// Part of sizes with other sizes in place of the dimensions from `at` to `end`.
pub fn spliced(sizes: &[i64], at: usize, end: usize, with: &[i64]) -> Dims {
    sizes[..at].iter().chain(with).chain(&sizes[end..]).copied().collect()
}
