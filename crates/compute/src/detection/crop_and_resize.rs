//! Crops of images at boxes, resampled to one size, and gradients of images and boxes.
//!
//! A box is two corners, in fractions of the distance from the first pixel to the last; corners of
//! a crop lie on corners of its box. Images and crops are `[number, height, width, channels]`,
//! contiguous; crops and their gradients are float32.

use crate::context::Context;
use crate::error::Result;
use crate::fault::Fault;
use crate::indexing::scatter::{self, Combined};
use crate::movement::copy;
use crate::primitives::combine::Combine;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::reduction::axes::Axes;
use crate::reduction::sum::sum_into;
use crate::scalar::Scalar as Number;
use crate::spatial::geometry::{PerAxis, index_type};
use crate::view::View;
use dml_engine::interface::{F32, I32, Index};
use dml_engine::{ArgumentBlock, Interface, Parameter, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// How a crop's pixel is computed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// From four pixels.
    Bilinear,
    /// The nearest pixel.
    Nearest,
}

/// Boxes: `[boxes, 4]` (float32: top, left, bottom, right), and for each the index of its image
/// (int32). Contiguous.
#[derive(Copy, Clone)]
pub struct Boxes<'t> {
    /// The corners.
    pub corners: &'t View,
    /// The images.
    pub images: &'t View,
}

/// Writes the crops of `image` to `out`; `outside` is the value of pixels outside of an image. An
/// index of an image out of range is reported.
pub fn crop(cx: &Context, method: Method, image: &View, boxes: Boxes, outside: f32, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let spec = Crop { method, dtype: image.dtype, index: index_type(&[image, out]) };
    let arguments = CropArguments { out, image, scene: scene(cx, boxes, image, out), numel: out.numel(), outside };
    cx.run_threads(&spec, &arguments, out.numel() as u64)
}

/// Writes the gradient of an image to `out`, given the gradient of the crops.
pub fn image_gradient(cx: &Context, method: Method, grad: &View, boxes: Boxes, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let sum = if out.dtype == DType::F32 { out.clone() } else { cx.empty(DType::F32, &out.sizes)? };
    copy::fill_with(cx, &sum, Number::Int(0))?;
    let numel = grad.numel();
    if numel > 0 {
        let parts = if method == Method::Bilinear { 4 } else { 1 };
        let [positions, values] = [DType::I64, DType::F32].map(|dtype| cx.empty(dtype, &[parts * numel]));
        let (positions, values) = (positions?, values?);
        let spec = Spread { method, index: index_type(&[out, &values]) };
        let arguments =
            SpreadArguments { positions: &positions, values: &values, grad, scene: scene(cx, boxes, out, grad), numel };
        cx.run_threads(&spec, &arguments, numel as u64)?;
        let row = sum.as_strided(&[sum.numel()], &[1], 0);
        let how = Combined { combine: Some(Combine::Add), include_self: true };
        scatter::write(cx, &row, 0, &positions, Some(values), Number::Int(0), how)?;
    }
    if out.dtype == DType::F32 { Ok(()) } else { copy::device_copy(cx, &sum, out) }
}

/// Writes the gradient of bilinear crops' boxes to `out` (`[boxes, 4]`), given that of the crops.
pub fn box_gradient(cx: &Context, grad: &View, image: &View, boxes: Boxes, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let pixels = grad.sizes[1] * grad.sizes[2];
    if pixels * grad.sizes[3] == 0 {
        return copy::fill_with(cx, out, Number::Int(0));
    }
    let terms = cx.empty(DType::F32, &[grad.sizes[0], pixels, 4])?;
    let spec = OfBoxes { dtype: image.dtype, index: index_type(&[image, grad, &terms]) };
    let arguments = OfBoxesArguments {
        terms: &terms,
        grad,
        image,
        scene: scene(cx, boxes, image, grad),
        numel: grad.sizes[0] * pixels,
    };
    cx.run_threads(&spec, &arguments, (grad.sizes[0] * pixels) as u64)?;
    sum_into(cx, &terms, out, Axes::of_dims(&[1], 3, false))
}

/// Where a crop's pixel lies along one axis of an image.
struct Place<'b> {
    /// Whether it is in the image.
    inside: Value<'b>,
    /// The pixels before and after it (i32), valid if it is inside.
    around: [Value<'b>; 2],
    /// The nearest pixel (i32), valid if it is inside.
    nearest: Value<'b>,
    /// The distance from the pixel before.
    share: Value<'b>,
    /// How it moves with the first and the last corner of the box.
    slopes: [Value<'b>; 2],
}

impl<'b> Place<'b> {
    /// The place of pixel `at` of `crop` pixels between two ends of a box, of `size` pixels.
    fn new(ends: [Value<'b>; 2], at: Value<'b>, crop: Value<'b>, size: Value<'b>) -> Place<'b> {
        let [first, last] = ends;
        let f32 = |x: Value<'b>| x.cast(ScalarType::F32);
        let (span, several) = (f32(size - 1), crop.gt(1));
        let steps = f32((crop - 1).max(1));
        let along = first * span + f32(at) * ((last - first) * span / steps);
        let position = several.select(along, 0.5 * (first + last) * span);
        let inside = position.ge(0.0) & position.le(span);
        let position = inside.select(position, 0.0);
        let pixel = |x: Value<'b>| x.cast(ScalarType::I32).min(size - 1);
        let before = position.floor();
        let moved = f32(at) * (span / steps);
        let half = 0.5 * span;
        Place {
            inside,
            around: [pixel(before), pixel(position.ceil())],
            nearest: pixel((position + 0.5).floor()),
            share: position - before,
            slopes: [several.select(span - moved, half), several.select(moved, half)],
        }
    }
}

/// A crop's pixel: its box, and its places along the two axes of the image.
struct Pixel<'b> {
    /// The offset of its image, if that is in range.
    image: Value<'b>,
    /// Whether it is in an image.
    inside: Value<'b>,
    y: Place<'b>,
    x: Place<'b>,
}

/// Specialisation of [`Scenes`].
struct SceneSpec {
    index: ScalarType,
}

parameters! {
    SceneSpec as s => SceneArguments, SceneParameters {
        corners: Input = DType::F32,
        images: Input = DType::I32,
        fault: Fault,
        /// Number of channels.
        depth: Index = s.index,
        /// Height and width of a crop.
        crop: PerAxis = 2,
        /// Height and width of an image.
        size: PerAxis = 2,
        /// Number of images.
        count: I32,
    }
}

/// Kernel parameter: boxes, and the sizes of images and crops, which are `[number, height, width,
/// channels]`.
struct Scenes;

impl Parameter for Scenes {
    /// The type of offsets.
    type Type = ScalarType;
    type Argument<'a> = SceneArguments<'a>;
    type Declared<'b> = SceneParameters<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, &index: &ScalarType) -> SceneParameters<'b> {
        SceneSpec { index }.declare(b)
    }

    fn pass(scene: &SceneArguments<'_>, &index: &ScalarType, block: &mut ArgumentBlock) {
        SceneSpec { index }.pass(scene, block);
    }
}

/// The argument of [`Scenes`].
fn scene<'a>(cx: &Context, boxes: Boxes<'a>, images: &'a View, crops: &'a View) -> SceneArguments<'a> {
    SceneArguments {
        corners: boxes.corners,
        images: boxes.images,
        fault: cx.fault_of_index(),
        depth: crops.sizes[3],
        crop: &crops.sizes[1..3],
        size: &images.sizes[1..3],
        count: images.sizes[0] as i32,
    }
}

/// What a kernel knows of boxes and sizes.
struct Scene<'s, 'b> {
    b: &'b Builder,
    of: &'s SceneParameters<'b>,
}

impl<'b> Scene<'_, 'b> {
    /// The pixel with this number, of all crops.
    fn pixel(&self, number: Value<'b>) -> Pixel<'b> {
        let index = number.scalar();
        let [height, width] = [0, 1].map(|d| self.of.crop[d].cast(index));
        let (column, above) = (number % width, number / width);
        let (row, region) = (above % height, above / height);
        let image = self.of.images.load(region);
        let good = image.ge(0) & image.lt(self.of.count);
        self.b.if_(!good, || self.of.fault.report(image, self.of.count, 0u32));
        let end = |i: u32| self.of.corners.load(region * 4 + i);
        let at = |x: Value<'b>| x.cast(ScalarType::I32);
        let y = Place::new([end(0), end(2)], at(row), self.of.crop[0], self.of.size[0]);
        let x = Place::new([end(1), end(3)], at(column), self.of.crop[1], self.of.size[1]);
        let image = good.select(image, 0).cast(index) * self.of.size[0].cast(index);
        Pixel { image: image * self.of.size[1].cast(index) * self.of.depth, inside: good & y.inside & x.inside, y, x }
    }

    /// The offset of a pixel (i32) of an image with this offset.
    fn offset(&self, image: Value<'b>, y: Value<'b>, x: Value<'b>) -> Value<'b> {
        let index = image.scalar();
        image + (y.cast(index) * self.of.size[1].cast(index) + x.cast(index)) * self.of.depth
    }

    /// The offsets of the pixels around a place: by row, then by column.
    fn around(&self, at: &Pixel<'b>) -> [[Value<'b>; 2]; 2] {
        at.y.around.map(|y| at.x.around.map(|x| self.offset(at.image, y, x)))
    }
}

/// Specialisation of the kernel of crops: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Crop {
    method: Method,
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Crop as s => CropArguments, CropParameters {
        out: Output = DType::F32,
        image: Input = s.dtype,
        scene: Scenes = s.index,
        numel: Index = s.index,
        /// The value of pixels outside of an image.
        outside: F32,
    }
}

impl KernelSpec for Crop {
    fn name(&self) -> &'static str {
        "crop_and_resize"
    }

    fn write<'b>(&self, b: &'b Builder, p: CropParameters<'b>) {
        let CropParameters { out, image, scene, numel, outside } = p;
        let (scene, depth) = (Scene { b, of: &scene }, scene.depth);
        let i = linear_id(b, self.index);
        b.if_(i.lt(numel), || {
            let (pixel, channel) = (scene.pixel(i / depth), i % depth);
            let load = |offset: Value<'b>| image.load(offset + channel).cast(ScalarType::F32);
            let value = b.var(outside);
            b.if_(pixel.inside, || {
                value.set(match self.method {
                    Method::Nearest => load(scene.offset(pixel.image, pixel.y.nearest, pixel.x.nearest)),
                    Method::Bilinear => {
                        let between = |[x, y]: [Value<'b>; 2], share: Value<'b>| x + (y - x) * share;
                        let rows = scene.around(&pixel).map(|row| between(row.map(load), pixel.x.share));
                        between(rows, pixel.y.share)
                    }
                });
            });
            out.store(i, value.get());
        });
    }
}

/// Specialisation of the kernel that lists what each element of a gradient adds to an image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spread {
    method: Method,
    index: ScalarType,
}

parameters! {
    Spread as s => SpreadArguments, SpreadParameters {
        /// The positions of elements of images, `[parts, elements of the gradient]`.
        positions: Output = DType::I64,
        /// What is added there.
        values: Output = DType::F32,
        grad: Input = DType::F32,
        scene: Scenes = s.index,
        numel: Index = s.index,
    }
}

impl KernelSpec for Spread {
    fn name(&self) -> &'static str {
        "crop_and_resize_image_gradient"
    }

    fn write<'b>(&self, b: &'b Builder, p: SpreadParameters<'b>) {
        let SpreadParameters { positions, values, grad, scene, numel } = p;
        let (scene, depth) = (Scene { b, of: &scene }, scene.depth);
        let i = linear_id(b, self.index);
        b.if_(i.lt(numel), || {
            let (pixel, channel) = (scene.pixel(i / depth), i % depth);
            let g = grad.load(i);
            let parts: Vec<(Value<'b>, Value<'b>)> = match self.method {
                Method::Nearest => vec![(scene.offset(pixel.image, pixel.y.nearest, pixel.x.nearest), g)],
                Method::Bilinear => {
                    let shares = |place: &Place<'b>| [1.0 - place.share, place.share];
                    let (rows, columns) = (shares(&pixel.y), shares(&pixel.x));
                    let around = scene.around(&pixel);
                    let part = |k: usize| (around[k / 2][k % 2], g * rows[k / 2] * columns[k % 2]);
                    (0..4).map(part).collect()
                }
            };
            for (k, (offset, value)) in parts.into_iter().enumerate() {
                let at = numel * k as u32 + i;
                let zero = offset.like(0.0);
                positions.store(at, pixel.inside.select(offset + channel, zero).cast(ScalarType::I64));
                values.store(at, pixel.inside.select(value, 0.0));
            }
        });
    }
}

/// Specialisation of the kernel of what each pixel of crops adds to the gradient of its box.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OfBoxes {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    OfBoxes as s => OfBoxesArguments, OfBoxesParameters {
        /// Four numbers for each pixel of the crops.
        terms: Output = DType::F32,
        grad: Input = DType::F32,
        image: Input = s.dtype,
        scene: Scenes = s.index,
        numel: Index = s.index,
    }
}

impl KernelSpec for OfBoxes {
    fn name(&self) -> &'static str {
        "crop_and_resize_box_gradient"
    }

    fn write<'b>(&self, b: &'b Builder, p: OfBoxesParameters<'b>) {
        let OfBoxesParameters { terms, grad, image, scene, numel } = p;
        let (scene, depth) = (Scene { b, of: &scene }, scene.depth);
        let i = linear_id(b, self.index);
        b.if_(i.lt(numel), || {
            let pixel = scene.pixel(i);
            let zero = b.float(ScalarType::F32, 0.0);
            let sums = [b.var(zero), b.var(zero)];
            b.if_(pixel.inside, || {
                let around = scene.around(&pixel);
                b.for_(depth.like(0.0), depth, 1, |channel| {
                    let load = |offset: Value<'b>| image.load(offset + channel).cast(ScalarType::F32);
                    let [[top_left, top_right], [bottom_left, bottom_right]] = around.map(|row| row.map(load));
                    let (y, x) = (pixel.y.share, pixel.x.share);
                    let down = (1.0 - x) * (bottom_left - top_left) + x * (bottom_right - top_right);
                    let right = (1.0 - y) * (top_right - top_left) + y * (bottom_right - bottom_left);
                    let g = grad.load(i * depth + channel);
                    for (sum, slope) in sums.iter().zip([down, right]) {
                        sum.set(sum.get() + g * slope);
                    }
                });
            });
            for (k, place) in [&pixel.y, &pixel.x].into_iter().enumerate() {
                for (end, slope) in place.slopes.into_iter().enumerate() {
                    let term = pixel.inside.select(sums[k].get() * slope, 0.0);
                    terms.store(i * 4 + (2 * end + k) as u32, term);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in
            [(DType::F16, ScalarType::U32), (DType::F32, ScalarType::U64), (DType::F64, ScalarType::U32)]
        {
            for method in [Method::Bilinear, Method::Nearest] {
                accepted(&Crop { method, dtype, index }.build());
                accepted(&Spread { method, index }.build());
            }
            accepted(&OfBoxes { dtype, index }.build());
        }
    }
}
