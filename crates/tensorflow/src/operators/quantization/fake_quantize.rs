//! Floats that are rounded to those which integers of few bits represent, and gradients.
//!
//! The range of numbers is moved a little, so that 0 is one of those that are represented.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::constants::vector;
use crate::require;
use dml_compute::movement::copy;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::sum_into;
use dml_compute::{Scalar, View};
use dml_kernel::DType;

dml_compute::functions! {
    /// The nearest of the numbers from `low` to `high` at distances of `scale`, halves upwards; 0
    /// if they are at no distance.
    FAKE_QUANTIZE_RANGE = "fake_quantize_range"(x, low, high, scale) => {
        let clamped = x.gt(high).select(high, x);
        let clamped = clamped.lt(low).select(low, clamped);
        let near = ((clamped - low) / scale + 0.5).floor() * scale + low;
        scale.eq(0.0).select(x.like(0.0), near)
    };
    /// Of the gradient: what passes to a number in range, and what goes to the bound that a number
    /// is below or above. All passes if the numbers are at no distance.
    FAKE_QUANTIZE_RANGE_BACKWARD = "fake_quantize_range_backward"(grad, x, low, high, scale) => {
        let zero = grad.like(0.0);
        let all = scale.eq(0.0);
        let inside = x.ge(low) & x.le(high);
        let [below, above] = [x.lt(low), x.gt(high)].map(|outside| (outside & !all).select(grad, zero));
        [(inside | all).select(grad, zero), below, above]
    };
}

/// What an operator's attributes say of the integers.
#[derive(Copy, Clone)]
struct Levels {
    least: f32,
    most: f32,
}

impl Levels {
    fn new(attributes: &Attributes) -> Result<Self> {
        let bits = attributes.int("num_bits")?;
        require!((2..=16).contains(&bits), "num_bits must be between 2 and 16 inclusive, is: {bits}");
        let least = if attributes.bool("narrow_range")? { 1.0 } else { 0.0 };
        Ok(Self { least, most: ((1 << bits) - 1) as f32 })
    }

    /// The moved bounds, and the distance of numbers; no distance for an empty range at 0.
    fn range(self, min: f32, max: f32) -> [f32; 3] {
        if min == 0.0 && max == 0.0 {
            return [0.0; 3];
        }
        let scale = (max - min) / (self.most - self.least);
        let zero = self.least - min / scale;
        let zero = if zero < self.least {
            self.least
        } else if zero > self.most {
            self.most
        } else {
            zero.round()
        };
        [(self.least - zero) * scale, (self.most - zero) * scale, scale]
    }
}

/// The bounds of all numbers, or of each channel, as operands.
type Bounds = [Input; 3];

/// Bounds that are one for all numbers.
fn common(levels: Levels, min: f32, max: f32) -> Bounds {
    levels.range(min, max).map(|x| Input::Number(Scalar::Double(f64::from(x)), DType::F32))
}

/// Bounds of inputs on the host: numbers, or one for each channel of `x`, its last dimension.
fn of_inputs(call: &Call, levels: Levels, inputs: [usize; 2], x: &View, of_channels: bool) -> Result<Bounds> {
    let lists = [call.host_numbers(inputs[0])?, call.host_numbers(inputs[1])?];
    let lists = lists.map(|list| list.into_iter().map(|x| x.to_f64() as f32).collect::<Vec<f32>>());
    let shapes = [call.sizes(inputs[0])?, call.sizes(inputs[1])?];
    if !of_channels {
        require!(shapes.iter().all(|shape| shape.is_empty()), "`min` and `max` must be rank 0: {shapes:?}");
        return Ok(common(levels, lists[0][0], lists[1][0]));
    }
    require!(x.dim() > 0, "input must be at least 1-dimensional: {:?}", x.sizes);
    let channels = x.sizes[x.dim() - 1];
    for (shape, name) in shapes.iter().zip(["min", "max"]) {
        require!(shape.as_slice() == [channels], "{name} has incorrect size, expected {channels} was {shape:?}");
    }
    let ranges: Vec<[f32; 3]> = lists[0].iter().zip(&lists[1]).map(|(&min, &max)| levels.range(min, max)).collect();
    let row = |i: usize| -> Result<Input> {
        let numbers: Vec<Scalar> = ranges.iter().map(|range| Scalar::Double(f64::from(range[i]))).collect();
        Ok(Input::Tensor(vector(call, DType::F32, &numbers)?))
    };
    Ok([row(0)?, row(1)?, row(2)?])
}

fn quantize(call: &Call, x: View, [low, high, scale]: Bounds) -> Result<()> {
    let out = call.output_over(&[0], 0, &x.sizes)?;
    let operands = [Input::Tensor(x), low, high, scale];
    Ok(kernel::run(&call.cx(), &FAKE_QUANTIZE_RANGE, &[&out], &operands, DType::F32)?)
}

/// The gradients of the numbers 1 and, if they are results, of the bounds, given the gradient 0.
fn gradient(call: &Call, [low, high, scale]: Bounds, of_channels: bool) -> Result<()> {
    let (cx, grad, x) = (call.cx(), call.input(0)?, call.input(1)?);
    require!(grad.sizes == x.sizes, "gradient and input must be the same size: {:?}, {:?}", grad.sizes, x.sizes);
    let out = call.output(0, &x.sizes)?;
    let operands = [Input::Tensor(grad), Input::Tensor(x.clone()), low, high, scale];
    let function = &FAKE_QUANTIZE_RANGE_BACKWARD;
    if call.outputs() == 1 {
        return Ok(kernel::run(&cx, function, &[&out], &operands, DType::F32)?);
    }
    let bounds = [cx.empty(DType::F32, &x.sizes)?, cx.empty(DType::F32, &x.sizes)?];
    kernel::run(&cx, function, &[&out, &bounds[0], &bounds[1]], &operands, DType::F32)?;
    let last = x.dim().max(1) - 1;
    let axes = if of_channels { Axes { mask: !(1 << last), keep: false } } else { Axes::all(false) };
    for (i, terms) in bounds.iter().enumerate() {
        let sums = call.output(i + 1, &axes.sizes(&x.sizes))?;
        if x.numel() == 0 {
            copy::fill_with(&cx, &sums, Scalar::Int(0))?;
        } else {
            sum_into(&cx, terms, &sums, axes)?;
        }
    }
    Ok(())
}

/// The attributes `min` and `max`.
fn of_attributes(attributes: &Attributes) -> Result<Bounds> {
    let [min, max] = [attributes.float("min")?, attributes.float("max")?];
    require!(min < max, "min has to be smaller than max, was: {min} >= {max}");
    Ok(common(Levels::new(attributes)?, min, max))
}

/// `FakeQuantWithMinMaxArgs`.
fn args(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let bounds = of_attributes(attributes)?;
    Ok(move |call: &Call| quantize(call, call.input(0)?, bounds.clone()))
}

/// `FakeQuantWithMinMaxArgsGradient`.
fn args_gradient(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let bounds = of_attributes(attributes)?;
    Ok(move |call: &Call| gradient(call, bounds.clone(), false))
}

/// An operator whose bounds are inputs, and its gradient.
fn vars(names: [&'static str; 2], of_channels: bool) -> [Operator; 2] {
    let [name, of_gradient] = names;
    let forward = move |attributes: &Attributes| {
        let levels = Levels::new(attributes)?;
        Ok(move |call: &Call| {
            let x = call.input(0)?;
            let bounds = of_inputs(call, levels, [1, 2], &x, of_channels)?;
            quantize(call, x, bounds)
        })
    };
    let backward = move |attributes: &Attributes| {
        let levels = Levels::new(attributes)?;
        Ok(move |call: &Call| {
            let bounds = of_inputs(call, levels, [2, 3], &call.input(1)?, of_channels)?;
            gradient(call, bounds, of_channels)
        })
    };
    [Operator::new(name, forward), Operator::new(of_gradient, backward)].map(|o| o.on_host(&["min", "max"]))
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let common = vars(["FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsGradient"], false);
    let names = ["FakeQuantWithMinMaxVarsPerChannel", "FakeQuantWithMinMaxVarsPerChannelGradient"];
    let mut all = vec![
        Operator::new("FakeQuantWithMinMaxArgs", args),
        Operator::new("FakeQuantWithMinMaxArgsGradient", args_gradient),
    ];
    all.extend(common);
    all.extend(vars(names, true));
    all
}
