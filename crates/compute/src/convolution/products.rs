//! The three passes of a convolution as products of matrices whose operands are windows over
//! tensors, and the gradient of its bias.
//!
//! Dense tensors of either memory order only: `[image, channel, pixel]` (channels first) or
//! `[image, pixel, channel]` (channels last), where a pixel is all spatial dimensions together.
//! Groups are the batch of the product. No dimension is empty.

use crate::convolution::geometry::Geometry;
use crate::convolution::order::is_last;
use crate::matmul::epilogue::{Bias, Finish, Output};
use crate::matmul::operand::{Access, Axis, Digits, Memory, Pattern, PatternStrides, Source, Step, WIDE, Window};
use crate::matmul::problem::Problem;
use crate::scalar::Scalar;
use crate::view::View;
use smallvec::{SmallVec, smallvec};

/// Elements from one image, channel, pixel to the next. A weight's images are its first dimension.
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
    Digits { plain: count, plain_first: first }
}

/// An operand without windows: pairs of digits, slowest first.
fn pairs(t: &View, batch: i64, outer: &[Step], inner: &[Step]) -> Source {
    // Two digits that follow each other in memory are one.
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
    let multiple = |x: i64| x % i64::from(WIDE) == 0;
    // Every step but the fast one, and the fast digit's size, are multiples: a load does not cross
    // a digit.
    let others = outer.iter().chain(&inner).filter(|s| s.stride != fast(along).stride);
    let wide = fast(along).stride == 1
        && multiple(fast(along).size)
        && others.clone().count() + 1 == outer.len() + inner.len()
        && others.into_iter().all(|s| multiple(s.stride))
        && multiple(batch)
        && memory.is_aligned(WIDE);
    let digits = |steps: &[Step]| plain(steps.len() as u8, true);
    let pattern = Pattern::Digits { outer: digits(&outer), inner: digits(&inner), windows: 0, divided: false };
    let access = Access { dtype: t.dtype, rounded: None, axis, wide, pattern, whole_steps: false };
    Source::new(memory, batch, access, PatternStrides::Digits { outer, inner, windows: smallvec![] })
}

/// An operand whose elements are seen through windows. `outer` and `inner` are its plain digits,
/// and whether they are slower than the windows' digits; `pixels` is the index along which
/// neighbours are neighbouring pixels.
fn windowed(
    t: &View,
    batch: i64,
    outer: (Step, bool),
    inner: (Step, bool),
    windows: SmallVec<[Window; 3]>,
    pixels: Axis,
) -> Source {
    let memory = Memory::from(t);
    let multiple = |x: i64| x % i64::from(WIDE) == 0;
    // Loads run along channels where they are the fastest in memory and in the index.
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
        && memory.is_aligned(WIDE);
    let divided = windows.iter().any(|w| w.divisor != 1);
    let digits = |(_, first): (Step, bool)| plain(1, first);
    let pattern = Pattern::Digits { outer: digits(outer), inner: digits(inner), windows: windows.len() as u8, divided };
    let access = Access { dtype: t.dtype, rounded: None, axis, wide, pattern, whole_steps: false };
    let strides = PatternStrides::Digits { outer: smallvec![outer.0], inner: smallvec![inner.0], windows };
    Source::new(memory, batch, access, strides)
}

/// An operand whose elements are seen through the windows of `g`, which are left out where each is
/// one pixel. The arguments are those of [`windowed`].
fn seen(
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

/// A product of channels with the pixels of all images.
struct Side<'t> {
    out: &'t View,
    bias: Option<&'t View>,
    /// Channels of a group, pixels of an image.
    channels: i64,
    pixels: i64,
    k: i64,
}

/// The product of a weight and windows over images: which is m and which is n depends on the
/// result's memory.
fn product(g: &Geometry, side: Side, weight: Source, image: Source) -> Problem {
    let Side { out, bias, channels, pixels, k } = side;
    let (o, places) = (steps(out), g.batch * pixels);
    let group = if g.groups == 1 { 0 } else { channels };
    let last = is_last(out);
    let bias = bias.map(|tensor| {
        let step = tensor.strides[0];
        let strides = if last { [group * step, 0, step] } else { [group * step, step, 0] };
        Bias { memory: tensor.into(), strides, beta: Scalar::Int(1) }
    });
    let (size, a, b, strides, split) = if last {
        // Pixels of all images follow each other.
        ([g.groups, places, channels, k], image, weight, [group, o.pixel, 1], None)
    } else {
        let split = (g.batch > 1).then_some((pixels, o.image));
        ([g.groups, channels, places, k], weight, image, [group * o.channel, o.channel, o.pixel], split)
    };
    let finish =
        Finish { out: Output { memory: out.into(), strides, split }, alpha: Scalar::Int(1), bias, activation: None };
    Problem { size, a, b, finish }
}

/// The outer side from the inner: a convolution.
pub fn forward(g: &Geometry, inner: &View, weight: &View, out: &View, bias: Option<&View>) -> Problem {
    let ((ci, size), (co, places)) = (&g.inner, &g.outer);
    let (x, w) = (steps(inner), steps(weight));
    let taps = pixels(&g.kernel);
    // k is (channel, tap), or (tap, channel) where channels are the fastest in memory.
    let last = is_last(inner);
    let (channel, tap) = (Step { size: *ci, stride: w.channel }, Step { size: taps, stride: w.pixel });
    let order = if last { [tap, channel] } else { [channel, tap] };
    let matrix = pairs(weight, co * w.image, &[Step { size: *co, stride: w.image }], &order);
    let windows = (0..g.kernel.len())
        .map(|d| Window {
            outer: places[d],
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
    let image = seen(g, inner, ci * x.channel, digits, windows, Axis::Outer);
    let side = Side { out, bias, channels: *co, pixels: pixels(places), k: ci * taps };
    product(g, side, matrix, image)
}

/// The inner side from the outer: a convolution's gradient of its input, and a transposed
/// convolution.
pub fn backward_data(g: &Geometry, outer: &View, weight: &View, out: &View, bias: Option<&View>) -> Problem {
    let ((ci, places), (co, size)) = (&g.inner, &g.outer);
    let (x, w) = (steps(outer), steps(weight));
    let taps = pixels(&g.kernel);
    let last = is_last(outer);
    let (channel, tap) = (Step { size: *co, stride: w.image }, Step { size: taps, stride: w.pixel });
    let order = if last { [tap, channel] } else { [channel, tap] };
    let matrix = pairs(weight, co * w.image, &[Step { size: *ci, stride: w.channel }], &order);
    let windows = (0..g.kernel.len())
        .map(|d| Window {
            outer: places[d],
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
    let image = seen(g, outer, co * x.channel, digits, windows, Axis::Outer);
    let side = Side { out, bias, channels: *ci, pixels: pixels(places), k: co * taps };
    product(g, side, matrix, image)
}

/// The weight's gradient: k runs over images and pixels of the outer side.
pub fn backward_weight(g: &Geometry, inner: &View, outer: &View, out: &View) -> Problem {
    let ((ci, size), (co, places)) = (&g.inner, &g.outer);
    let (x, y, w) = (steps(inner), steps(outer), steps(out));
    let (taps, pixels) = (pixels(&g.kernel), pixels(places));
    let rows = pairs(
        outer,
        co * y.channel,
        &[Step { size: *co, stride: y.channel }],
        &[Step { size: g.batch, stride: y.image }, Step { size: pixels, stride: y.pixel }],
    );
    let windows = (0..g.kernel.len())
        .map(|d| Window {
            outer: g.kernel[d],
            inner: places[d],
            size: size[d],
            stride: inner.strides[2 + d],
            outer_step: g.dilation[d],
            inner_step: g.stride[d],
            offset: -g.padding[d],
            divisor: 1,
        })
        .collect();
    // Columns are (channel, tap), or (tap, channel) where either memory has channels fastest.
    let last = *ci > 1 && (is_last(out) || is_last(inner));
    let images = Step { size: g.batch, stride: x.image };
    let channels = Step { size: *ci, stride: x.channel };
    let digits = ((channels, !last), (images, true));
    let columns = seen(g, inner, ci * x.channel, digits, windows, Axis::Inner);
    let (fastest, split) = match (taps, last) {
        (1, _) => (w.channel, None),
        (_, false) => (w.pixel, None),
        (_, true) => (w.channel, (!is_last(out)).then_some((*ci, w.pixel))),
    };
    let output = Output { memory: out.into(), strides: [co * w.image, w.image, fastest], split };
    let finish = Finish { out: output, alpha: Scalar::Int(1), bias: None, activation: None };
    Problem { size: [g.groups, *co, ci * taps, g.batch * pixels], a: rows, b: columns, finish }
}

/// The bias's gradient: sums over images and pixels, as a product with a row of `ones`, a tensor of
/// one.
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
    let finish = Finish { out: output, alpha: Scalar::Int(1), bias: None, activation: None };
    let a = Source::strided(ones, [1, 1], [0, 0], 0);
    Problem { size: [1, 1, channels, k], a, b: columns, finish }
}
