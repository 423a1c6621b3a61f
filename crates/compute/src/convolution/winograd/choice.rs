//! Which convolutions go through the transforms.

use crate::context::Context;
use crate::convolution::geometry::Geometry;
use crate::convolution::winograd::range::MOST_TERMS;
use crate::convolution::winograd::tiles::{Tiles, padded};
use crate::convolution::winograd::transforms::{PRODUCTS, TAPS};
use crate::matmul::conditional::is_conditional;
use crate::matmul::select::{self, Limits};
use crate::view::layout::SHORT;
use dml_environment::{WINOGRAD, Winograd};
use dml_kernel::DType;
use std::cell::Cell;

/// What a convolution computes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// The outer side.
    Forward,
    /// The inner side, from the outer.
    Data,
    /// The weight's gradient.
    Weight,
}

/// Bytes of all transformed numbers at most; where it takes more, images go one part after the
/// other.
const WORKSPACE: i64 = 256 << 20;

/// Multiplications from which it may be faster: below, launches take longer than the products.
const LARGE: i64 = 1 << 27;

/// Channels of a side at most, which are sums' terms and workgroups.
const MOST_CHANNELS: i64 = 1 << 18;

/// What the choice depends on.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Question {
    limits: Limits,
    pass: Pass,
    batch: i64,
    /// Channels of the inner side and of the outer.
    channels: [i64; 2],
    /// Pixels of both sides, down and across.
    inner: [i64; 2],
    outer: [i64; 2],
}

/// Whether a pass of a convolution of this dtype goes through the transforms. It depends on the
/// adapter and the sizes alone.
pub fn applies(cx: &Context, g: &Geometry, dtype: DType, pass: Pass) -> bool {
    let all = |values: &[i64], x: i64| values.iter().all(|&n| n == x);
    let window = all(&g.kernel, TAPS as i64) && all(&g.stride, 1) && all(&g.dilation, 1);
    if !window || g.kernel.len() != 2 || g.groups != 1 || dtype != DType::F32 {
        return false;
    }
    let question = Question {
        limits: Limits::of(cx.device.info()),
        pass,
        batch: g.batch,
        channels: [g.inner.0, g.outer.0],
        inner: [g.inner.1[0], g.inner.1[1]],
        outer: [g.outer.1[0], g.outer.1[1]],
    };
    let large = || !question.limits.software && question.multiplications() >= LARGE;
    g.padding.iter().all(|&n| n < SHORT)
        && match WINOGRAD.get() {
            Some(Winograd::Off) => false,
            Some(Winograd::Always) => question.is_possible(),
            Some(Winograd::On) | None => large() && is_faster(question),
        }
}

/// How many images are transformed at a time, of `batch`, if those of one take so many bytes, and
/// there are `fixed` bytes beside them: as many as the workspace holds, in parts of one size.
/// `None` if it does not hold one.
pub fn images_at_once(batch: i64, bytes: i64, fixed: i64) -> Option<i64> {
    let most = (WORKSPACE - fixed) / bytes.max(1);
    (most > 0).then(|| ceil(batch, ceil(batch, most)))
}

fn ceil(n: i64, by: i64) -> i64 {
    (n + by - 1) / by
}

thread_local! {
    /// The last choices, each at a place that its sizes tell: the estimates take microseconds.
    static CHOSEN: [Cell<Option<(Question, bool)>>; 64] = const { [const { Cell::new(None) }; 64] };
}

/// Whether it is possible, and faster than the direct product.
fn is_faster(question: Question) -> bool {
    let Question { pass, batch, channels: [c, k], inner, .. } = question;
    let mixed = [pass as i64, batch, c, k, inner[0], inner[1]]
        .into_iter()
        .fold(0u64, |mixed, n| (mixed ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    CHOSEN.with(|chosen| {
        let place = &chosen[(mixed >> 58) as usize];
        match place.get() {
            Some((asked, faster)) if asked == question => faster,
            _ => {
                // Without a margin: the estimate does not know what windows cost a direct product,
                // a third of its speed.
                let faster = question.is_possible() && question.transformed() < question.direct();
                place.set(Some((question, faster)));
                faster
            }
        }
    })
}

impl Question {
    fn multiplications(&self) -> i64 {
        self.direct_size().into_iter().fold(1, i64::saturating_mul)
    }

    /// The direct product's `[batch, m, n, k]`.
    fn direct_size(&self) -> [i64; 4] {
        let [inner, outer] = [self.inner, self.outer].map(|[h, w]| self.batch.saturating_mul(h).saturating_mul(w));
        let ([c, k], taps) = (self.channels, (TAPS * TAPS) as i64);
        match self.pass {
            Pass::Forward => [1, k, outer, taps * c],
            Pass::Data => [1, c, inner, taps * k],
            Pass::Weight => [1, k, taps * c, outer],
        }
    }

    /// Tiles of an image: over the side that is written, or whose gradient is read.
    fn tiles(&self) -> i64 {
        let [down, across] = Tiles::of(if self.pass == Pass::Data { &self.inner } else { &self.outer });
        down.saturating_mul(across)
    }

    /// Bytes of transformed numbers: of an image, and others.
    fn bytes(&self) -> [i64; 2] {
        let ([c, k], number) = (self.channels, PRODUCTS * DType::F32.bytes() as i64);
        [number.saturating_mul(c + k).saturating_mul(self.tiles()), number.saturating_mul(c).saturating_mul(k)]
    }

    /// Whether offsets and sums are in range, and the numbers of an image fit into the workspace.
    fn is_possible(&self) -> bool {
        let ([c, k], [h, w], [y, x]) = (self.channels, self.inner, self.outer);
        let reach = [(c, h.saturating_mul(w)), (k, y.saturating_mul(x)), (k, c.saturating_mul(9))];
        let tiles = self.batch.saturating_mul(self.tiles());
        let [image, fixed] = self.bytes();
        [self.batch, c, k, h, w, y, x].into_iter().all(|n| n > 0)
            && reach.into_iter().all(|(channels, each)| channels.saturating_mul(each) < SHORT)
            && c.max(k) <= MOST_CHANNELS
            && tiles < if self.pass == Pass::Weight { MOST_TERMS } else { SHORT }
            && images_at_once(self.batch, image, fixed).is_some()
            && is_conditional(&self.limits, self.direct_size())
    }

    /// The estimate of the direct product, in the unit of [`select`].
    fn direct(&self) -> f64 {
        select::choose(&self.limits, self.direct_size(), 4, false).0
    }

    /// The estimate of the way through the transforms: products, memory, and launches.
    fn transformed(&self) -> f64 {
        let Question { limits, pass, batch, channels: [c, k], inner, outer } = *self;
        let [image, fixed] = self.bytes();
        let Some(images) = images_at_once(batch, image, fixed) else { return f64::INFINITY };
        let tiles = padded(images * self.tiles());
        let parts = ceil(batch, images);
        let (m, n, inside, along_k) = match pass {
            Pass::Forward => (k, tiles, c, false),
            Pass::Data => (c, tiles, k, false),
            Pass::Weight => (k, c, tiles, true),
        };
        let (products, _) = select::choose(&limits, [PRODUCTS, m, n, inside], 4, along_k);
        // The products read and write what the transforms write and read.
        let numbers = (image * images + fixed) as f64;
        let products = products.max(limits.passes(0, numbers));
        let pixels = c * inner[0] * inner[1] + k * outer[0] * outer[1];
        let read_or_written = (4 * batch * pixels) as f64 / parts as f64;
        // Of the first part also what clears the words, and the direct product that finds nothing
        // to do.
        limits.passes(2, 0.0) + parts as f64 * (products + limits.passes(2, numbers + read_or_written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: Limits = Limits::LARGE;

    fn same(pass: Pass, batch: i64, channels: i64, size: i64) -> Question {
        let (inner, outer) = ([size; 2], [size; 2]);
        Question { limits: H100, pass, batch, channels: [channels; 2], inner, outer }
    }

    #[test]
    fn many_channels_of_small_images_are_faster() {
        for pass in [Pass::Forward, Pass::Data, Pass::Weight] {
            for (channels, size) in [(128, 28), (256, 14), (512, 7)] {
                let question = same(pass, 32, channels, size);
                let (direct, transformed) = (question.direct(), question.transformed());
                assert!(question.is_possible() && is_faster(question), "{question:?} {direct} {transformed}");
            }
            for (channels, size) in [(3, 224), (16, 112), (64, 56), (32, 14)] {
                assert!(!is_faster(same(pass, 32, channels, size)), "{pass:?} {channels} {size}");
            }
            assert!(!is_faster(same(pass, 1, 128, 28)), "{pass:?}");
        }
    }

    #[test]
    fn the_workspace_is_bounded() {
        for (batch, bytes, fixed) in [(1, 1 << 20, 1 << 20), (33, 30 << 20, 1 << 20), (7, 200 << 20, 50 << 20)] {
            let images = images_at_once(batch, bytes, fixed).expect("one fits");
            assert!(images * bytes + fixed <= WORKSPACE && (1..=batch).contains(&images), "{batch} {bytes}");
        }
        assert_eq!(images_at_once(2, 300 << 20, 0), None);
        assert_eq!(images_at_once(2, 1 << 20, 300 << 20), None);
        assert!(!same(Pass::Forward, 1, 2048, 7).is_possible());
        assert!(same(Pass::Forward, 1000, 512, 7).is_possible());
        assert!(!same(Pass::Weight, 1 << 20, 1, 32).is_possible());
        // Sizes without memory, of expanded tensors.
        assert!(!same(Pass::Forward, 1 << 40, 1 << 20, 1 << 31).is_possible());
        assert!(!same(Pass::Weight, i64::MAX, 1, 2).is_possible());
    }
}
