//! The gradients of grid sampling.
//!
//! Of the grid: one invocation a point sums over the channels. Of the input: every point lists the pixels that it reads
//! and their weights, the list is sorted by pixel, and each element of the input sums over its part of the list: no float
//! atomics, the same order each time.

use super::forward::{masked, pass_grid};
use super::location::{Grid, Interpolation, Location, Mode};
use crate::check;
use crate::movement::copy::fill_with;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::primitives::launch::{GROUP, linear_id};
use crate::primitives::radix_sort;
use crate::spatial::geometry::{Place, Strides, axis_params, index_type, pass_axes, pass_strides, pixel_number};
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value};

/// Writes the gradient of the input to `out`.
pub fn of_input(call: &Call, mode: Mode, grad: &Tensor, grid: &Tensor, out: &Tensor) -> Result<()> {
    let rank = out.dim() - 2;
    let pixels: i64 = out.sizes[0] * out.sizes[2..].iter().product::<i64>();
    let points: i64 = grid.sizes[..=rank].iter().product();
    let reads = points * mode.taps().pow(rank as u32);
    if out.numel() == 0 {
        return Ok(());
    }
    if reads == 0 || grad.numel() == 0 {
        return fill_with(call, out, Number::Int(0));
    }
    check!(
        pixels < i64::from(u32::MAX) && reads < i64::from(i32::MAX),
        NotImplemented,
        "{}: {points} points and {pixels} pixels are more than dml can sort",
        call.name
    );
    let (dtype, float) = (out.dtype, if out.dtype == DType::F64 { DType::F64 } else { DType::F32 });
    let (keys, weights) = (call.empty(DType::U32, &[reads])?, call.empty(float, &[reads])?);
    let index = index_type(&[grid]);
    let key = [dtype as u32, mode.code(), index.bytes(), rank as u32, 0, 0];
    let kernel = call.kernel("grid_sampler_reads", key, || build_reads(mode, dtype, index, rank))?;
    let mut launcher = call.launch(kernel).write(&keys).write(&weights).read(grid);
    launcher = launcher.u32(points as u32).u32(pixels as u32);
    launcher = pass_axes(pass_axes(launcher, &out.sizes[2..]), &grid.sizes[1..=rank]);
    pass_grid(launcher, index, grid).threads(points as u64)?;

    let (keys, positions) = radix_sort::sort(call, &keys, pixels as u32)?;
    let index = index_type(&[grad, out]);
    let key = [dtype as u32, index.bytes(), rank as u32, 0, 0, 0];
    let kernel = call.kernel("grid_sampler_sum", key, || build_sum(dtype, index, rank))?;
    let mut launcher = call.launch(kernel).write(out).read(grad).read(&weights).read(&keys).read(&positions);
    launcher = launcher.index(index, out.numel()).index(index, out.sizes[1]);
    launcher = launcher.u32(points as u32).u32(reads as u32);
    launcher = pass_axes(pass_axes(launcher, &out.sizes[2..]), &grid.sizes[1..=rank]);
    pass_strides(pass_strides(launcher, index, grad), index, out).threads(out.numel() as u64)
}

/// Lists what every point reads: for each combination of taps in turn, the pixel of each point, and the weight.
fn build_reads(mode: Mode, dtype: DType, index: Scalar, rank: usize) -> Kernel {
    let b = Builder::new("grid_sampler_reads", [GROUP, 1, 1]);
    write_reads(&b, mode, dtype, index, rank);
    b.finish()
}

fn write_reads(b: &Builder, mode: Mode, dtype: DType, index: Scalar, rank: usize) {
    let keys = b.pointer("keys", DType::U32);
    let weights = b.pointer("weights", if dtype == DType::F64 { DType::F64 } else { DType::F32 });
    let pointer = b.pointer("grid", dtype);
    let (n, none) = (b.param("points", Scalar::U32), b.param("pixels", Scalar::U32));
    let [size, points] = ["input", "output"].map(|name| axis_params(b, name, rank));
    let grid = Grid { pointer, strides: Strides::declare(b, index, rank) };
    let i = linear_id(b, Scalar::U32);
    b.if_(i.lt(n), || {
        let at = Place::new(i.cast(index), b.int(index, 1), &points, false);
        let locations = grid.locate(b, mode, &at, &size);
        let image = size.iter().fold(b.u32(1), |product, &n| product * n.cast(Scalar::U32));
        let first = at.batch.cast(Scalar::U32) * image;
        let mut place = i;
        combinations(&locations, &mut Vec::new(), &mut |choice| {
            let taps = || locations.iter().zip(choice).map(|(l, &k)| &l.taps[k]);
            let pixel: Vec<Value> = taps().map(|t| t.index).collect();
            let inside = taps().fold(b.bool(true), |all, t| all & t.inside);
            let weight = taps().map(|t| t.weight).reduce(|a, b| a * b);
            let number = pixel_number(&pixel, &size, Scalar::U32).bitcast(Scalar::U32);
            keys.store(place, inside.select(first + number, none));
            if let Some(weight) = weight {
                weights.store(place, weight);
            }
            place = place + n;
        });
    });
}

/// Runs `body` for every choice of one tap on each axis.
fn combinations(locations: &[Location], chosen: &mut Vec<usize>, body: &mut dyn FnMut(&[usize])) {
    let Some(here) = locations.get(chosen.len()) else { return body(chosen) };
    for k in 0..here.taps.len() {
        chosen.push(k);
        combinations(locations, chosen, body);
        chosen.pop();
    }
}

/// Sums what points have read of each element.
fn build_sum(dtype: DType, index: Scalar, rank: usize) -> Kernel {
    let b = Builder::new("grid_sampler_sum", [GROUP, 1, 1]);
    write_sum(&b, dtype, index, rank);
    b.finish()
}

fn write_sum(b: &Builder, dtype: DType, index: Scalar, rank: usize) {
    let (out, grad) = (b.pointer("grad_input", dtype), b.pointer("grad_output", dtype));
    let weights = b.pointer("weights", if dtype == DType::F64 { DType::F64 } else { DType::F32 });
    let [keys, positions] = ["keys", "positions"].map(|name| b.pointer(name, DType::U32));
    let (n, channels) = (b.param("n", index), b.param("channels", index));
    let (count, reads) = (b.param("points", Scalar::U32), b.param("reads", Scalar::U32));
    let [size, points] = ["input", "output"].map(|name| axis_params(b, name, rank));
    let [grad_strides, out_strides] = [(); 2].map(|()| Strides::declare(b, index, rank));
    let i = linear_id(b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, channels, &size, false);
        let image = size.iter().fold(b.u32(1), |product, &n| product * n.cast(Scalar::U32));
        let key = at.batch.cast(Scalar::U32) * image + pixel_number(&at.at, &size, Scalar::U32).bitcast(Scalar::U32);
        let q = lower_bound(b, keys, reads, key);
        let sum = b.var(b.constant_of(dtype.compute(), 0.0));
        let more = b.var(b.bool(false));
        let look = || {
            let now = q.get();
            more.set(false);
            b.if_(now.lt(reads), || more.set(keys.load(now).eq(key)));
        };
        look();
        b.while_(
            || more.get(),
            || {
                let read = positions.load(q.get());
                let point = Place::new((read % count).cast(index), b.int(index, 1), &points, false);
                let place = Place { channel: at.channel, ..point };
                sum.set(sum.get() + weights.load(read) * grad.load(grad_strides.element(&place)));
                q.set(q.get() + 1);
                look();
            },
        );
        out.store(out_strides.element(&at), sum.get());
    });
}

/// The first of `n` sorted keys that is not below `key`.
fn lower_bound<'b>(b: &'b Builder, keys: Pointer<'b>, n: Value<'b>, key: Value<'b>) -> dml_kernel::Var<'b> {
    let (low, high) = (b.var(b.u32(0)), b.var(n));
    b.while_(
        || low.get().lt(high.get()),
        || {
            let middle = (low.get() + high.get()) >> 1;
            let below = keys.load(middle).lt(key);
            low.set(below.select(middle + 1, low.get()));
            high.set(below.select(high.get(), middle));
        },
    );
    low
}

/// Writes the gradient of the grid to `out`.
pub fn of_grid(call: &Call, mode: Mode, grad: &Tensor, input: &Tensor, grid: &Tensor, out: &Tensor) -> Result<()> {
    let rank = input.dim() - 2;
    let points: i64 = grid.sizes[..=rank].iter().product();
    if points == 0 {
        return Ok(());
    }
    if mode.interpolation == Interpolation::Nearest || input.numel() == 0 {
        return fill_with(call, out, Number::Int(0));
    }
    let (dtype, index) = (input.dtype, index_type(&[grad, input, grid, out]));
    let key = [dtype as u32, mode.code(), index.bytes(), rank as u32, 0, 0];
    let kernel = call.kernel("grid_sampler_grid", key, || build_grid(mode, dtype, index, rank))?;
    let mut launcher = call.launch(kernel).write(out).read(grad).read(input).read(grid);
    launcher = launcher.index(index, points).index(index, input.sizes[1]);
    launcher = pass_axes(pass_axes(launcher, &input.sizes[2..]), &grid.sizes[1..=rank]);
    launcher = pass_strides(pass_strides(launcher, index, grad), index, input);
    pass_grid(pass_grid(launcher, index, grid), index, out).threads(points as u64)
}

fn build_grid(mode: Mode, dtype: DType, index: Scalar, rank: usize) -> Kernel {
    let b = Builder::new("grid_sampler_grid", [GROUP, 1, 1]);
    write_grid(&b, mode, dtype, index, rank);
    b.finish()
}

fn write_grid(b: &Builder, mode: Mode, dtype: DType, index: Scalar, rank: usize) {
    let [out, grad, input, pointer] = ["grad_grid", "grad_output", "input", "grid"].map(|name| b.pointer(name, dtype));
    let (n, channels) = (b.param("points", index), b.param("channels", index));
    let [size, points] = ["input", "output"].map(|name| axis_params(b, name, rank));
    let [grad_strides, in_strides, strides, out_strides] = [(); 4].map(|()| Strides::declare(b, index, rank));
    let grid = Grid { pointer, strides };
    let i = linear_id(b, index);
    b.if_(i.lt(n), || {
        let at = Place::new(i, b.int(index, 1), &points, false);
        let locations = grid.locate(b, mode, &at, &size);
        let sums: Vec<_> = (0..rank).map(|_| b.var(b.constant_of(dtype.compute(), 0.0))).collect();
        b.for_(b.int(index, 0), channels, 1, |channel| {
            let place = Place { batch: at.batch, channel, at: at.at.clone() };
            let g = grad.load(grad_strides.element(&place));
            let (_, slopes) = differentiate(b, &locations, input, &in_strides, in_strides.image(&place), b.bool(true));
            for (sum, slope) in sums.iter().zip(slopes) {
                sum.set(sum.get() + g * slope);
            }
        });
        for (d, (sum, location)) in sums.iter().zip(&locations).enumerate() {
            // The last axis comes first.
            let axis = b.int(index, (rank - 1 - d) as u64);
            let place = Place { batch: at.batch, channel: axis, at: at.at.clone() };
            out.store(out_strides.element(&place), sum.get() * location.factor);
        }
    });
}

/// The sample at a point, and how it grows along each axis of `locations`, which are the last ones.
fn differentiate<'b>(
    b: &'b Builder,
    locations: &[Location<'b>],
    input: Pointer<'b>,
    strides: &Strides<'b>,
    offset: Value<'b>,
    inside: Value<'b>,
) -> (Value<'b>, Vec<Value<'b>>) {
    let Some((here, inner)) = locations.split_first() else { return (masked(b, input, offset, inside), Vec::new()) };
    let d = strides.rank() - locations.len();
    let zero = b.constant_of(input.dtype().compute(), 0.0);
    let (mut value, mut slopes) = (zero, vec![zero; locations.len()]);
    for tap in &here.taps {
        let offset = offset + strides.step(d, tap.index);
        let (below, along) = differentiate(b, inner, input, strides, offset, inside & tap.inside);
        value = value + tap.weight * below;
        slopes[0] = slopes[0] + tap.slope * below;
        for (slope, part) in slopes[1..].iter_mut().zip(along) {
            *slope = *slope + tap.weight * part;
        }
    }
    (value, slopes)
}

#[cfg(test)]
mod tests {
    use super::super::location::Padding;
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for interpolation in [Interpolation::Linear, Interpolation::Nearest, Interpolation::Cubic] {
            for (dtype, index, rank, padding) in [
                (DType::F16, Scalar::U32, 2, Padding::Zeros),
                (DType::F64, Scalar::U64, 2, Padding::Reflection),
                (DType::F32, Scalar::U32, 3, Padding::Border),
            ] {
                let mode = Mode { interpolation, padding, align_corners: true };
                accepted(&build_reads(mode, dtype, index, rank));
                accepted(&build_grid(mode, dtype, index, rank));
                accepted(&build_sum(dtype, index, rank));
            }
        }
    }
}
