//! Floats that are quantised to integers of few bits and back, with a scale that represents the
//! range of numbers, given or found.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::constants::vector;
use crate::require;
use dml_compute::movement::copy;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::extremum::both;
use dml_compute::{Dims, Scalar, View};
use dml_kernel::{DType, ScalarType};

dml_compute::functions! {
    /// From the range of numbers and that of integers: the scale, its inverse, and the range that
    /// is represented.
    QUANTIZATION_RANGE = "quantization_range"(min, max, least, most) => {
        let largest = if min.scalar() == ScalarType::F64 { f64::MAX } else { f64::from(f32::MAX) };
        let [of_min, of_max] = [(least, min), (most, max)]
            .map(|(level, bound)| (level * bound).gt(0.0).select(level / bound, min.like(largest)));
        let by_min = of_min.lt(of_max);
        let inverse = by_min.select(min / least, max / most);
        let low = by_min.select(min, least * inverse);
        let high = by_min.select(most * inverse, max);
        [by_min.select(of_min, of_max), inverse, low, high]
    };
    /// `round(x * scale) / scale`. Flags: `x` is first clamped to the range; halves are rounded
    /// upwards, not to even.
    QUANTIZE_DEQUANTIZE = "quantize_dequantize"(x, scale, inverse, low, high | o) => {
        let x = if o.flags[0] {
            let below = x.gt(high).select(high, x);
            below.lt(low).select(low, below)
        } else {
            x
        };
        let scaled = x * scale;
        (if o.flags[1] { (scaled + 0.5).floor() } else { scaled.round() }) * inverse
    };
    /// The gradient of numbers in range.
    QUANTIZE_DEQUANTIZE_BACKWARD = "quantize_dequantize_backward"(grad, x, low, high) => {
        (x.ge(low) & x.le(high)).select(grad, grad.like(0.0))
    };
}

/// What an operator's attributes say.
#[derive(Copy, Clone)]
struct Quantization {
    signed: bool,
    range_given: bool,
    halves_up: bool,
    narrow: bool,
    axis: i64,
    /// Of the attribute; else they are input 3.
    bits: Option<i64>,
}

impl Quantization {
    fn new(attributes: &Attributes) -> Result<Self> {
        let halves_up = attributes.has("round_mode")?
            && match attributes.string("round_mode")?.as_str() {
                "HALF_UP" => true,
                "HALF_TO_EVEN" => false,
                other => {
                    return Err(Error::InvalidArgument(format!(
                        "Round mode string must be 'HALF_TO_EVEN' or 'HALF_UP', is '{other}'"
                    )));
                }
            };
        let bits = if attributes.has("num_bits")? { Some(attributes.int("num_bits")?) } else { None };
        Ok(Self {
            signed: attributes.bool("signed_input")?,
            range_given: attributes.bool("range_given")?,
            halves_up,
            narrow: attributes.bool("narrow_range")?,
            axis: attributes.int("axis")?,
            bits,
        })
    }

    /// The least and the largest integer.
    fn levels(self, call: &Call) -> Result<[i64; 2]> {
        let bits = match self.bits {
            Some(bits) => bits,
            None => call.host_number(3)?.to_i64(),
        };
        let allowed = if self.signed { 2..=62 } else { 1..=62 };
        require!(allowed.contains(&bits), "num_bits is out of range: {bits} with signed_input {}", self.signed);
        if !self.signed {
            return Ok([0, (1 << bits) - 1]);
        }
        let least = -(1i64 << (bits - 1));
        Ok([if self.narrow { least + 1 } else { least }, (1 << (bits - 1)) - 1])
    }
}

/// The shape of a number for each slice along an axis, for a tensor of a rank; of one number for
/// all if the axis is -1.
fn slices(sizes: &[i64], axis: i64) -> Result<(Axes, Dims)> {
    if axis < 0 {
        require!(axis == -1, "Axis should be >= -1, given {axis}");
        return Ok((Axes::all(true), Dims::from_elem(1, sizes.len())));
    }
    require!(axis < sizes.len() as i64, "Axis should be less than the rank of {sizes:?}, given {axis}");
    let axes = Axes { mask: !(1 << axis), keep: true };
    Ok((axes, axes.sizes(sizes)))
}

/// Inputs 1 or 2 and the next on the host: the bounds, as tensors that broadcast to `x`.
fn given_bounds(call: &Call, first: usize, x: &View, axis: i64, shape: &[i64]) -> Result<[View; 2]> {
    let count: i64 = shape.iter().product();
    let lists = [call.host_numbers(first)?, call.host_numbers(first + 1)?];
    for (list, i) in lists.iter().zip(first..) {
        let rank = usize::from(axis >= 0);
        let sizes = call.sizes(i)?;
        require!(
            sizes.len() == rank && list.len() as i64 == count,
            "input_min and input_max must have {count} elements: {sizes:?}"
        );
    }
    for (min, max) in lists[0].iter().zip(&lists[1]) {
        let [min, max] = [min, max].map(|x| x.to_f64());
        require!(min <= max, "Invalid range: input_min {min} > input_max {max}");
    }
    let shaped = |list: &Vec<Scalar>| -> Result<View> {
        Ok(vector(call, x.dtype, list)?.as_strided(shape, &View::contiguous_strides(shape), 0))
    };
    Ok([shaped(&lists[0])?, shaped(&lists[1])?])
}

/// `QuantizeAndDequantizeV2` and the like.
fn forward(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let q = Quantization::new(attributes)?;
    Ok(move |call: &Call| {
        let (cx, x) = (call.cx(), call.input(0)?);
        let levels = q.levels(call)?;
        let (axes, shape) = slices(&x.sizes, q.axis)?;
        let out = call.output(0, &x.sizes)?;
        if x.numel() == 0 {
            return Ok(());
        }
        let bounds = if q.range_given {
            given_bounds(call, 1, &x, q.axis, &shape)?
        } else {
            let found = [cx.empty(x.dtype, &shape)?, cx.empty(x.dtype, &shape)?];
            both(&cx, &x, found.each_ref(), axes)?;
            found
        };
        let range = [(); 4].map(|()| cx.empty(x.dtype, &shape));
        let [scale, inverse, low, high] = range;
        let range = [scale?, inverse?, low?, high?];
        let levels = levels.map(|level| Input::Number(Scalar::Double(level as f64), x.dtype));
        let operands: Vec<Input> = bounds.into_iter().map(Input::Tensor).chain(levels).collect();
        kernel::run(&cx, &QUANTIZATION_RANGE, &range.each_ref(), &operands, x.dtype)?;
        let dtype = x.dtype;
        let operands: Vec<Input> = [x].into_iter().chain(range).map(Input::Tensor).collect();
        let function = QUANTIZE_DEQUANTIZE.with([q.range_given, q.halves_up]);
        Ok(kernel::run(&cx, function, &[&out], &operands, dtype)?)
    })
}

/// `QuantizeAndDequantizeV4Grad`: of the input 1, given the gradient 0 and the bounds 2 and 3.
fn gradient(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let axis = attributes.int("axis")?;
    Ok(move |call: &Call| {
        let (cx, grad, x) = (call.cx(), call.input(0)?, call.input(1)?);
        require!(grad.sizes == x.sizes, "gradient and input must be the same size: {:?}, {:?}", grad.sizes, x.sizes);
        let (_, shape) = slices(&x.sizes, axis)?;
        let bounds = given_bounds(call, 2, &x, axis, &shape)?;
        let out = call.output(0, &x.sizes)?;
        let dtype = x.dtype;
        for i in [1, 2] {
            copy::fill_with(&cx, &call.output(i, &call.sizes(i + 1)?)?, Scalar::Int(0))?;
        }
        let operands: Vec<Input> = [grad, x].into_iter().chain(bounds).map(Input::Tensor).collect();
        Ok(kernel::run(&cx, &QUANTIZE_DEQUANTIZE_BACKWARD, &[&out], &operands, dtype)?)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let floats: &[DType] = &[DType::F32, DType::F64];
    let of = |operator: Operator| operator.of("T", floats);
    let bounds = &["input_min", "input_max"];
    vec![
        of(Operator::new("QuantizeAndDequantizeV2", forward)).on_host(bounds),
        of(Operator::new("QuantizeAndDequantizeV3", forward)).on_host(&["input_min", "input_max", "num_bits"]),
        of(Operator::new("QuantizeAndDequantizeV4", forward)).on_host(bounds),
        of(Operator::new("QuantizeAndDequantizeV4Grad", gradient)).on_host(bounds),
    ]
}
