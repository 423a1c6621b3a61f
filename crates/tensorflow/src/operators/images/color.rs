//! Colours of images: hue, saturation and value; contrast. Colours are the last dimension.
//!
//! Hue, saturation and value are those of A. R. Smith, "Color gamut transform pairs", 1978.

use crate::error::{Error, Result, code};
use crate::kernel::{Call, Operator};
use crate::require;
use dml_compute::View;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::{Kind, fold_sum};
use dml_kernel::{DType, Value};

/// The smaller of two numbers, the first one if the comparison is false.
fn smaller<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    y.lt(x).select(y, x)
}

/// The larger of two numbers, the first one if the comparison is false.
fn larger<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    x.lt(y).select(y, x)
}

/// Hue, saturation and value of red, green and blue.
fn hsv<'b>(r: Value<'b>, g: Value<'b>, b: Value<'b>) -> [Value<'b>; 3] {
    let value = larger(r, larger(g, b));
    let range = value - smaller(r, smaller(g, b));
    let zero = r.like(0.0);
    let saturation = value.gt(0.0).select(range / value, zero);
    let norm = 1.0 / (6.0 * range);
    let of_green = norm * (b - r) + 2.0 / 6.0;
    let of_blue = norm * (r - g) + 4.0 / 6.0;
    let hue = r.eq(value).select(norm * (g - b), g.eq(value).select(of_green, of_blue));
    let hue = range.gt(0.0).select(hue, zero);
    [hue.lt(0.0).select(hue + 1.0, hue), saturation, value]
}

/// Red, green and blue of hue, saturation and value.
fn rgb<'b>(h: Value<'b>, s: Value<'b>, v: Value<'b>) -> [Value<'b>; 3] {
    let clamped = |x: Value<'b>| smaller(larger(x, x.like(0.0)), x.like(1.0));
    let dh = h * 6.0;
    let red = clamped((dh - 3.0).abs() - 1.0);
    let green = clamped(2.0 - (dh - 2.0).abs());
    let blue = clamped(2.0 - (dh - 4.0).abs());
    [red, green, blue].map(|x| (1.0 - s + s * x) * v)
}

dml_compute::functions! {
    /// Hue, saturation and value of a colour.
    RGB_TO_HSV = "rgb_to_hsv"(r, g, b) => hsv(r, g, b);
    /// The colour of a hue, saturation and value.
    HSV_TO_RGB = "hsv_to_rgb"(h, s, v) => rgb(h, s, v);
    /// A colour whose hue is turned, in turns.
    ADJUST_HUE = "adjust_hue"(r, g, b, delta) => {
        let [h, s, v] = hsv(r, g, b);
        let turned = h + delta;
        rgb(turned - turned.floor(), s, v)
    };
    /// A colour whose saturation is scaled, up to 1.
    ADJUST_SATURATION = "adjust_saturation"(r, g, b, scale) => {
        let [h, s, v] = hsv(r, g, b);
        let scaled = s * scale;
        rgb(h, smaller(larger(scaled, scaled.like(0.0)), scaled.like(1.0)), v)
    };
    /// `(x - mean) * factor + mean`
    ADJUST_CONTRAST = "adjust_contrast"(x, mean, factor) => (x - mean) * factor + mean;
}

/// A function of three colours and perhaps a number, input 1.
fn of_colours(call: &Call, function: &'static Function, least_rank: usize) -> Result<()> {
    let input = call.input(0)?;
    require!(input.dim() >= least_rank, "input must be at least {least_rank}-D, got shape {:?}", input.sizes);
    let last = input.dim() - 1;
    if input.sizes[last] != 3 {
        let message = format!("input must have 3 channels but instead has {} channels.", input.sizes[last]);
        return Err(Error::TensorFlow { code: code::FAILED_PRECONDITION, message });
    }
    let out = call.output(0, &input.sizes)?;
    let planes = |t: &View| [0, 1, 2].map(|colour| t.narrow(last, colour, 1));
    let mut operands: Vec<Input> = planes(&input).map(Input::Tensor).into();
    let mut common = input.dtype;
    if call.inputs() > 1 {
        let number = call.input(1)?;
        require!(number.dim() == 0, "{}: the factor must be scalar: {:?}", call.operator(), number.sizes);
        operands.push(Input::Tensor(number));
        common = DType::F32;
    }
    let [r, g, b] = planes(&out);
    Ok(kernel::run(&call.cx(), function, &[&r, &g, &b], &operands, common)?)
}

/// `AdjustContrastv2`: away from the mean of each channel of each image.
fn adjust_contrast(call: &Call) -> Result<()> {
    let (cx, input, factor) = (call.cx(), call.input(0)?, call.input(1)?);
    let rank = input.dim();
    require!(rank >= 3, "input must be at least 3-D, got shape {:?}", input.sizes);
    require!(factor.dim() == 0, "contrast_factor must be scalar: {:?}", factor.sizes);
    let out = call.output(0, &input.sizes)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let axes = Axes::of_dims(&[-3, -2], rank, true);
    let means = cx.empty(DType::F32, &axes.sizes(&input.sizes))?;
    fold_sum(&cx, Kind::Mean, &input, &means, axes, DType::F32)?;
    let operands = [input, means, factor].map(Input::Tensor);
    Ok(kernel::run(&cx, &ADJUST_CONTRAST, &[&out], &operands, DType::F32)?)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let of = |name, function: &'static Function, least_rank| {
        Operator::plain(name, move |call: &Call| of_colours(call, function, least_rank))
    };
    vec![
        of("RGBToHSV", &RGB_TO_HSV, 1).of("T", &[DType::F32, DType::F64]),
        of("HSVToRGB", &HSV_TO_RGB, 1).of("T", &[DType::F32, DType::F64]),
        of("AdjustHue", &ADJUST_HUE, 3).of("T", &[DType::F32, DType::F16]),
        of("AdjustSaturation", &ADJUST_SATURATION, 3).of("T", &[DType::F32, DType::F16]),
        Operator::plain("AdjustContrastv2", adjust_contrast).of("T", &[DType::F32, DType::F16]),
    ]
}
