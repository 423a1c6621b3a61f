//! Slices with strides, as Python's, and assignments to them.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::ALL;
use crate::operators::common::regions::{Region, copy, copy_regions, fill, reshaped};
use crate::require;
use dml_compute::{Dims, Scalar, View};

/// The attributes of a slice: bits for the entries of `begin`, `end` and `strides`.
#[derive(Copy, Clone)]
struct Masks {
    begin: i64,
    end: i64,
    ellipsis: i64,
    new_axis: i64,
    shrink_axis: i64,
}

impl Masks {
    fn new(attributes: &Attributes) -> Result<Self> {
        Ok(Self {
            begin: attributes.int("begin_mask")?,
            end: attributes.int("end_mask")?,
            ellipsis: attributes.int("ellipsis_mask")?,
            new_axis: attributes.int("new_axis_mask")?,
            shrink_axis: attributes.int("shrink_axis_mask")?,
        })
    }
}

fn is_set(mask: i64, i: usize) -> bool {
    mask >> i & 1 == 1
}

/// One dimension of a slice.
struct Range {
    first: i64,
    step: i64,
    length: i64,
}

/// A slice of a tensor.
struct Slice {
    /// One for each dimension of the tensor.
    ranges: Vec<Range>,
    /// The slice's sizes.
    sizes: Dims,
}

impl Slice {
    /// The slice of a tensor of these sizes that three inputs of a call from `first` on describe.
    fn new(call: &Call, shape: &[i64], first: usize, masks: Masks) -> Result<Self> {
        let [begin, end, strides] = [call.host_ints(first)?, call.host_ints(first + 1)?, call.host_ints(first + 2)?];
        let entries = strides.len();
        require!(
            begin.len() == entries && end.len() == entries && entries < 32,
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes [{}], [{}], and [{entries}] \
             instead.",
            begin.len(),
            end.len()
        );
        require!(masks.ellipsis.count_ones() <= 1, "Multiple ellipses in slice spec not allowed");
        let own = |i: &usize| !is_set(masks.ellipsis, *i) && !is_set(masks.new_axis, *i);
        let taken = (0..entries).filter(own).count();
        require!(
            taken <= shape.len(),
            "Index out of range using input dim {}; input has only {} dims",
            shape.len(),
            shape.len()
        );
        let has_ellipsis = (0..entries).any(|i| is_set(masks.ellipsis, i));
        let mut slice = Self { ranges: Vec::with_capacity(shape.len()), sizes: Dims::new() };
        let whole = |slice: &mut Self, count: usize| {
            for _ in 0..count {
                let length = shape[slice.ranges.len()];
                slice.ranges.push(Range { first: 0, step: 1, length });
                slice.sizes.push(length);
            }
        };
        for i in 0..entries {
            if is_set(masks.ellipsis, i) {
                whole(&mut slice, shape.len() - taken);
            } else if is_set(masks.new_axis, i) {
                slice.sizes.push(1);
            } else {
                let d = slice.ranges.len();
                let bound = |mask: i64, of: i64| (!is_set(mask, i)).then_some(of);
                if is_set(masks.shrink_axis, i) {
                    slice.ranges.push(Range::of_index(shape[d], begin[i], strides[i], i)?);
                } else {
                    let range =
                        Range::new(shape[d], bound(masks.begin, begin[i]), bound(masks.end, end[i]), strides[i], i)?;
                    slice.sizes.push(range.length);
                    slice.ranges.push(range);
                }
            }
        }
        if !has_ellipsis {
            whole(&mut slice, shape.len() - taken);
        }
        Ok(slice)
    }

    /// Whether it is the tensor's elements in their order.
    fn is_whole(&self, shape: &[i64]) -> bool {
        self.ranges.iter().zip(shape).all(|(range, &n)| range.length == n && (range.step == 1 || n == 1))
    }

    /// The slice's sizes in the tensor's dimensions.
    fn lengths(&self) -> Dims {
        self.ranges.iter().map(|range| range.length).collect()
    }

    /// Reads the slice of a tensor into `out`.
    fn read(&self, call: &Call, t: &View, out: &View) -> Result<()> {
        if out.numel() == 0 {
            return Ok(());
        }
        let strides = self.ranges.iter().zip(&t.strides).map(|(range, stride)| range.step * stride).collect();
        let start = self.ranges.iter().zip(&t.strides).map(|(range, stride)| range.first * stride).sum();
        copy_regions(call, vec![Region { dst: reshaped(out, &self.lengths()), src: t.clone(), strides, start }])
    }

    /// Writes `value`, which broadcasts to the slice, to the slice of `t`.
    fn write(&self, call: &Call, value: &View, t: &View) -> Result<()> {
        let fits = value.dim() <= self.sizes.len()
            && value.sizes.iter().rev().zip(self.sizes.iter().rev()).all(|(&n, &m)| n == m || n == 1);
        require!(
            fits,
            "Cannot assign a value of shape {:?} to a slice of shape {:?} in {}",
            value.sizes.as_slice(),
            self.sizes.as_slice(),
            call.operator()
        );
        let lengths = self.lengths();
        if lengths.contains(&0) {
            return Ok(());
        }
        let value = value.expand(&self.sizes);
        // A dimension that was dropped has one element, and one that was added too: the others
        // correspond in order.
        let mut long = value.sizes.iter().zip(&value.strides).filter(|&(&n, _)| n != 1);
        let mut strides: Dims =
            lengths.iter().map(|&n| if n == 1 { 0 } else { long.next().map_or(0, |(_, &stride)| stride) }).collect();
        // The destination's strides are positive: where the slice goes backwards, the value does.
        let (mut place, mut start) = (t.clone(), 0);
        let mut at = 0;
        for (d, range) in self.ranges.iter().enumerate() {
            let last = range.first + (range.length - 1) * range.step;
            at += range.first.min(last) * t.strides[d];
            place.strides[d] = range.step.abs() * t.strides[d];
            if range.step < 0 {
                start += (range.length - 1) * strides[d];
                strides[d] = -strides[d];
            }
        }
        let dst = place.as_strided(&lengths, &place.strides, at);
        copy_regions(call, vec![Region { dst, src: value, strides, start }])
    }
}

impl Range {
    /// The elements from `begin` to before `end`, each the natural limit if it is not given.
    fn new(n: i64, begin: Option<i64>, end: Option<i64>, step: i64, i: usize) -> Result<Self> {
        require!(step != 0, "strides[{i}] must be non-zero");
        // Positions from which steps are taken, and at which they end at the latest.
        let limits = if step > 0 { [0, n] } else { [-1, n - 1] };
        let position = |x: i64| (if x < 0 { x.saturating_add(n) } else { x }).clamp(limits[0], limits[1]);
        let first = begin.map_or(if step > 0 { 0 } else { n - 1 }, position);
        let end = end.map_or(if step > 0 { n } else { -1 }, position);
        let length = if (end - first).signum() == step.signum() {
            let (distance, step) = ((end - first).unsigned_abs(), step.unsigned_abs());
            distance.div_ceil(step) as i64
        } else {
            0
        };
        // A single step of any length is none.
        Ok(Self { first, step: if length == 1 { step.signum() } else { step }, length })
    }

    /// One element, whose dimension is dropped.
    fn of_index(n: i64, index: i64, step: i64, i: usize) -> Result<Self> {
        require!(step > 0, "only stride 1 allowed on non-range indexing.");
        let first = if index < 0 { index + n } else { index };
        require!((0..n).contains(&first), "slice index {index} of dimension {i} out of bounds.");
        Ok(Self { first, step: 1, length: 1 })
    }
}

/// `StridedSlice`.
fn read(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let masks = Masks::new(attributes)?;
    Ok(move |call: &Call| {
        let input = call.input(0)?;
        let slice = Slice::new(call, &input.sizes, 1, masks)?;
        if slice.is_whole(&input.sizes) {
            return call.pass_on(0, 0, &slice.sizes);
        }
        slice.read(call, &input, &call.output(0, &slice.sizes)?)
    })
}

/// `StridedSliceGrad`.
fn gradient(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let masks = Masks::new(attributes)?;
    Ok(move |call: &Call| {
        let (shape, gradient) = (call.host_ints(0)?, call.input(4)?);
        let slice = Slice::new(call, &shape, 1, masks)?;
        require!(
            slice.sizes == gradient.sizes,
            "shape of dy was {:?} instead of {:?}",
            gradient.sizes.as_slice(),
            slice.sizes.as_slice()
        );
        if slice.is_whole(&shape) {
            return call.pass_on(4, 0, &shape);
        }
        let out = call.output(0, &shape)?;
        fill(call, &out, Scalar::Int(0))?;
        slice.write(call, &gradient, &out)
    })
}

/// `TensorStridedSliceUpdate`.
fn update(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let masks = Masks::new(attributes)?;
    Ok(move |call: &Call| {
        let (input, value) = (call.input(0)?, call.input(4)?);
        let slice = Slice::new(call, &input.sizes, 1, masks)?;
        let out = call.output_over(&[0], 0, &input.sizes)?;
        if out.data != input.data {
            copy(call, &input, &out)?;
        }
        slice.write(call, &value, &out)
    })
}

/// Assigns to the slice of a variable, which is a resource or a reference.
fn assign(call: &Call, masks: Masks) -> Result<()> {
    let variables = call.lock(&[0], true, true)?;
    let (variable, value) = (variables.tensor(0, true)?, call.input(4)?);
    Slice::new(call, &variable.sizes, 1, masks)?.write(call, &value, &variable)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::new("StridedSlice", read)
            .of("T", ALL)
            .on_host(&["begin", "end", "strides"])
            .int32_on_host(&["input", "begin", "end", "strides", "output"]),
        Operator::new("StridedSliceGrad", gradient)
            .of("T", ALL)
            .on_host(&["shape", "begin", "end", "strides"])
            .int32_on_host(&["shape", "begin", "end", "strides", "dy", "output"]),
        Operator::new("TensorStridedSliceUpdate", update)
            .of("T", ALL)
            .on_host(&["begin", "end", "strides"])
            .int32_on_host(&["input", "begin", "end", "strides", "value", "output"]),
        Operator::new("ResourceStridedSliceAssign", |attributes: &Attributes| {
            let masks = Masks::new(attributes)?;
            Ok(move |call: &Call| assign(call, masks))
        })
        .of("T", ALL)
        .on_host(&["ref", "begin", "end", "strides"]),
        Operator::new("StridedSliceAssign", |attributes: &Attributes| {
            let masks = Masks::new(attributes)?;
            Ok(move |call: &Call| {
                assign(call, masks)?;
                call.pass_reference_on(0, 0)
            })
        })
        .of("T", ALL)
        .on_host(&["begin", "end", "strides"]),
    ]
}
