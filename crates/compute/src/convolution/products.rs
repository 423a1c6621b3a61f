//! The three passes of a convolution as matrix products whose operands are windows over tensors
//! (implicit gemm), and the gradient of its bias.
//!
//! Tensors are dense, in either memory order: `[image, channel, pixel]` (channels first) or
//! `[image, pixel, channel]` (channels last), where a pixel is an index of all spatial dimensions
//! together. A weight is dense in any order in which its pixels follow each other at one distance,
//! for example `[pixel, inner channel, outer channel]`. Groups are the batch of the product. No
//! dimension is empty.

use crate::convolution::geometry::Geometry;
use crate::convolution::order::is_last;
use crate::matmul::epilogue::{Bias, EpilogueOperands, MOST_TENSORS, Output, ResultTensor, Then};
use crate::matmul::operand::{Access, Axis, Digits, Memory, Pattern, PatternStrides, Source, Step, VECTOR, Window};
use crate::matmul::problem::Problem;
use crate::pointwise::expr::Expr;
use crate::scalar::Scalar;
use crate::view::View;
use smallvec::{SmallVec, smallvec};

/// Strides by image, channel and pixel. The first dimension of a weight counts as images.
#[derive(Copy, Clone, Debug)]
struct Steps {
    image: i64,
    channel: i64,
    pixel: i64,
}

fn steps(t: &View) -> Steps {
    Steps { image: t.strides[0], channel: t.strides[1], pixel: t.strides[t.dim() - 1] }
}

fn pixels(spatial: &[i64]) -> i64 {
    spatial.iter().product()
}

fn plain(count: u8, first: bool) -> Digits {
    Digits { plain: count, plain_is_slowest: first }
}

/// An operand without windows: each of its two indices consists of up to two digits, slowest first.
fn pairs(t: &View, batch: i64, outer: &[Step], inner: &[Step]) -> Source {
    // Two digits that are contiguous in memory are merged into one.
    let merge = |steps: &[Step]| -> SmallVec<[Step; 2]> {
        match steps {
            [slow, fast] if slow.stride == fast.stride * fast.size || slow.size == 1 => {
                smallvec![Step { size: slow.size * fast.size, stride: fast.stride }]
            }
            [slow, fast] if fast.size == 1 => smallvec![Step { size: slow.size, stride: slow.stride }],
            steps => SmallVec::from_slice(steps),
        }
    };
    let (outer, inner) = (merge(outer), merge(inner));
    if let ([o], [i]) = (&outer[..], &inner[..]) {
        return Source::strided(t, [o.size, i.size], [o.stride, i.stride], batch);
    }
    let memory = Memory::from(t);
    let fast = |steps: &[Step]| steps[steps.len() - 1];
    let axis = if fast(&outer).stride == 1 { Axis::Outer } else { Axis::Inner };
    let along = if axis == Axis::Outer { &outer } else { &inner };
    let multiple = |x: i64| x % i64::from(VECTOR) == 0;
    // All strides but that of the fastest digit, and the fastest digit's size, are multiples of the
    // vector width: a vector load does not cross a digit.
    let others = outer.iter().chain(&inner).filter(|s| s.stride != fast(along).stride);
    let wide = fast(along).stride == 1
        && multiple(fast(along).size)
        && others.clone().count() + 1 == outer.len() + inner.len()
        && others.into_iter().all(|s| multiple(s.stride))
        && multiple(batch)
        && memory.is_aligned(VECTOR);
    let digits = |steps: &[Step]| plain(steps.len() as u8, true);
    let pattern = Pattern::Digits { outer: digits(&outer), inner: digits(&inner), windows: 0, divided: false };
    let access = Access { dtype: t.dtype, rounds_to: None, axis, wide, pattern, is_multiple_of_step: false };
    Source::new(memory, batch, access, PatternStrides::Digits { outer, inner, windows: smallvec![] })
}

/// An operand whose elements are read through windows. `outer` and `inner` are the plain digits of
/// the two indices, and whether they are slower than the windows' digits; `pixels` is the index
/// along which adjacent elements are adjacent pixels.
fn windowed(
    t: &View,
    batch: i64,
    outer: (Step, bool),
    inner: (Step, bool),
    windows: SmallVec<[Window; 3]>,
    pixels: Axis,
) -> Source {
    let memory = Memory::from(t);
    let multiple = |x: i64| x % i64::from(VECTOR) == 0;
    // Vector loads are along channels if those are the fastest digit in memory and in the index.
    let runs = |(step, first): (Step, bool)| step.stride == 1 && !first;
    let (axis, along, other) = match (runs(outer), runs(inner)) {
        (true, _) => (Axis::Outer, Some(outer.0), inner.0),
        (_, true) => (Axis::Inner, Some(inner.0), outer.0),
        _ => (pixels, None, outer.0),
    };
    let wide = along.is_some_and(|step| multiple(step.size))
        && multiple(other.stride)
        && windows.iter().all(|w| multiple(w.stride))
        && multiple(batch)
        && memory.is_aligned(VECTOR);
    let divided = windows.iter().any(|w| w.divisor != 1);
    let digits = |(_, first): (Step, bool)| plain(1, first);
    let pattern = Pattern::Digits { outer: digits(outer), inner: digits(inner), windows: windows.len() as u8, divided };
    let access = Access { dtype: t.dtype, rounds_to: None, axis, wide, pattern, is_multiple_of_step: false };
    let strides = PatternStrides::Digits { outer: smallvec![outer.0], inner: smallvec![inner.0], windows };
    Source::new(memory, batch, access, strides)
}

/// An operand whose elements are read through the windows of `g`; without windows if each is one
/// pixel. The arguments are those of [`windowed`].
fn windowed_operand(
    g: &Geometry,
    t: &View,
    batch: i64,
    (outer, inner): ((Step, bool), (Step, bool)),
    windows: SmallVec<[Window; 3]>,
    pixels: Axis,
) -> Source {
    if !g.is_pointwise() {
        return windowed(t, batch, outer, inner, windows, pixels);
    }
    let every = Step { size: t.sizes[2..].iter().product(), stride: t.strides[t.dim() - 1] };
    match pixels {
        Axis::Outer => pairs(t, batch, &[outer.0, every], &[inner.0]),
        Axis::Inner => pairs(t, batch, &[outer.0], &[inner.0, every]),
    }
}

/// One operand of a product: channels by the pixels of all images.
struct ProductOperand<'t> {
    out: &'t View,
    bias: Option<&'t View>,
    /// Channels of a group, and pixels of an image.
    channels: i64,
    pixels: i64,
    k: i64,
}

/// The product of a weight and windows over images. The result's memory order decides which is m
/// and which is n.
fn product(g: &Geometry, side: ProductOperand, weight: Source, image: Source) -> Problem {
    let ProductOperand { out, bias, channels, pixels, k } = side;
    let (o, all_pixels) = (steps(out), g.batch * pixels);
    let group = if g.groups == 1 { 0 } else { channels };
    let last = is_last(out);
    let bias = bias.map(|tensor| {
        let step = tensor.strides[0];
        let strides = if last { [group * step, 0, step] } else { [group * step, step, 0] };
        Bias { tensor: ResultTensor::new(tensor.into(), strides), beta: Scalar::Int(1) }
    });
    let (size, a, b, strides, split) = if last {
        // The pixels of all images are contiguous.
        ([g.groups, all_pixels, channels, k], image, weight, [group, o.pixel, 1], None)
    } else {
        let split = (g.batch > 1).then_some((pixels, o.image));
        ([g.groups, channels, all_pixels, k], weight, image, [group * o.channel, o.channel, o.pixel], split)
    };
    let finish = EpilogueOperands {
        out: Output { memory: out.into(), strides, split },
        alpha: Scalar::Int(1),
        bias,
        then: None,
    };
    Problem { size, a, b, finish }
}

/// The epilogue of an expression of a result and of tensors of its shape. `None` if a tensor's
/// pixels do not follow each other at one distance, or there are too many.
pub fn epilogue(g: &Geometry, out: &View, expr: Expr, tensors: &[View]) -> Option<Then> {
    let (group, last) = (if g.groups == 1 { 0 } else { g.outer.0 }, is_last(out));
    let tensor = |t: &View| -> Option<ResultTensor> {
        let spatial = &t.sizes[2..];
        let steps = |d: usize| spatial[d + 1..].iter().product::<i64>();
        let known = (0..spatial.len()).filter(|&d| spatial[d] > 1);
        let pixel = known.clone().next_back().map_or(0, |d| t.strides[2 + d] / steps(d));
        if !known.clone().all(|d| t.strides[2 + d] == pixel * steps(d)) {
            return None;
        }
        let [image, channel] = [t.strides[0], t.strides[1]];
        if !last {
            let strides = [group * channel, channel, pixel];
            return Some(ResultTensor { memory: t.into(), strides, slow: image });
        }
        let follows = t.sizes[0] == 1 || image == pixel * pixels(spatial);
        follows.then(|| ResultTensor::new(t.into(), [group * channel, pixel, channel]))
    };
    let mut found = [None; MOST_TENSORS];
    for (i, t) in tensors.iter().enumerate() {
        *found.get_mut(i)? = Some(tensor(t)?);
    }
    Some(Then { expr, tensors: found })
}

/// Computes the outer side from the inner side: a convolution.
pub fn forward(g: &Geometry, inner: &View, weight: &View, out: &View, bias: Option<&View>) -> Problem {
    let ((ci, size), (co, output_size)) = (&g.inner, &g.outer);
    let (x, w) = (steps(inner), steps(weight));
    let taps = pixels(&g.kernel);
    // k is (channel, tap), or (tap, channel) in channels-last order.
    let last = is_last(inner);
    let (channel, tap) = (Step { size: *ci, stride: w.channel }, Step { size: taps, stride: w.pixel });
    let order = if last { [tap, channel] } else { [channel, tap] };
    let matrix = pairs(weight, co * w.image, &[Step { size: *co, stride: w.image }], &order);
    let windows = (0..g.kernel.len())
        .map(|d| Window {
            outer: output_size[d],
            inner: g.kernel[d],
            size: size[d],
            stride: inner.strides[2 + d],
            outer_step: g.stride[d],
            inner_step: g.dilation[d],
            offset: -g.padding[d],
            divisor: 1,
        })
        .collect();
    let images = Step { size: g.batch, stride: x.image };
    let channels = Step { size: *ci, stride: x.channel };
    let digits = ((images, true), (channels, !last));
    let image = windowed_operand(g, inner, ci * x.channel, digits, windows, Axis::Outer);
    let side = ProductOperand { out, bias, channels: *co, pixels: pixels(output_size), k: ci * taps };
    product(g, side, matrix, image)
}

/// Computes the inner side from the outer side: the gradient of a convolution's input, and a
/// transposed convolution.
pub fn backward_data(g: &Geometry, outer: &View, weight: &View, out: &View, bias: Option<&View>) -> Problem {
    let ((ci, output_size), (co, size)) = (&g.inner, &g.outer);
    let (x, w) = (steps(outer), steps(weight));
    let taps = pixels(&g.kernel);
    let last = is_last(outer);
    let (channel, tap) = (Step { size: *co, stride: w.image }, Step { size: taps, stride: w.pixel });
    let order = if last { [tap, channel] } else { [channel, tap] };
    let matrix = pairs(weight, co * w.image, &[Step { size: *ci, stride: w.channel }], &order);
    let windows = (0..g.kernel.len())
        .map(|d| Window {
            outer: output_size[d],
            inner: g.kernel[d],
            size: size[d],
            stride: outer.strides[2 + d],
            outer_step: 1,
            inner_step: -g.dilation[d],
            offset: g.padding[d],
            divisor: g.stride[d],
        })
        .collect();
    let images = Step { size: g.batch, stride: x.image };
    let channels = Step { size: *co, stride: x.channel };
    let digits = ((images, true), (channels, !last));
    let image = windowed_operand(g, outer, co * x.channel, digits, windows, Axis::Outer);
    let side = ProductOperand { out, bias, channels: *ci, pixels: pixels(output_size), k: co * taps };
    product(g, side, matrix, image)
}

/// Computes the gradient of the weight: k runs over images and pixels of the outer side.
pub fn backward_weight(g: &Geometry, inner: &View, outer: &View, out: &View) -> Problem {
    let ((ci, size), (co, outer_size)) = (&g.inner, &g.outer);
    let (x, y, w) = (steps(inner), steps(outer), steps(out));
    let (taps, pixels) = (pixels(&g.kernel), pixels(outer_size));
    let rows = pairs(
        outer,
        co * y.channel,
        &[Step { size: *co, stride: y.channel }],
        &[Step { size: g.batch, stride: y.image }, Step { size: pixels, stride: y.pixel }],
    );
    let windows = (0..g.kernel.len())
        .map(|d| Window {
            outer: g.kernel[d],
            inner: outer_size[d],
            size: size[d],
            stride: inner.strides[2 + d],
            outer_step: g.dilation[d],
            inner_step: g.stride[d],
            offset: -g.padding[d],
            divisor: 1,
        })
        .collect();
    // Columns are (channel, tap), or (tap, channel) if one of the tensors is channels last.
    let last = *ci > 1 && (is_last(out) || is_last(inner));
    let images = Step { size: g.batch, stride: x.image };
    let channels = Step { size: *ci, stride: x.channel };
    let digits = ((channels, !last), (images, true));
    let columns = windowed_operand(g, inner, ci * x.channel, digits, windows, Axis::Inner);
    // The stride of the faster digit, and the slower digit if its stride does not follow from that.
    let (fastest, split) = match (taps, last) {
        (1, _) => (w.channel, None),
        (_, false) => (w.pixel, (*ci > 1 && w.channel != taps * w.pixel).then_some((taps, w.channel))),
        (_, true) => (w.channel, (w.pixel != ci * w.channel).then_some((*ci, w.pixel))),
    };
    let output = Output { memory: out.into(), strides: [co * w.image, w.image, fastest], split };
    let finish = EpilogueOperands { out: output, alpha: Scalar::Int(1), bias: None, then: None };
    Problem { size: [g.groups, *co, ci * taps, g.batch * pixels], a: rows, b: columns, finish }
}

/// Computes the gradient of the bias: sums over images and pixels, as a product with a row of
/// `ones`, a tensor with the single element 1.
pub fn backward_bias(grad: &View, ones: &View, out: &View) -> Problem {
    let (y, pixels) = (steps(grad), pixels(&grad.sizes[2..]));
    let (channels, k) = (grad.sizes[1], grad.sizes[0] * pixels);
    let columns = pairs(
        grad,
        0,
        &[Step { size: channels, stride: y.channel }],
        &[Step { size: grad.sizes[0], stride: y.image }, Step { size: pixels, stride: y.pixel }],
    );
    let output = Output { memory: out.into(), strides: [0, channels, 1], split: None };
    let finish = EpilogueOperands { out: output, alpha: Scalar::Int(1), bias: None, then: None };
    let a = Source::strided(ones, [1, 1], [0, 0], 0);
    Problem { size: [1, 1, channels, k], a, b: columns, finish }
}
