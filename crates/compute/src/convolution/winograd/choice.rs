//! Which convolutions are computed by Winograd's transforms.

use crate::context::Context;
use crate::convolution::geometry::Geometry;
use crate::convolution::winograd::range::MAX_TERMS;
use crate::convolution::winograd::tiles::{Tiles, padded};
use crate::convolution::winograd::transforms::{TAPS, TILE_MULTIPLICATIONS};
use crate::matmul::conditional::is_conditional;
use crate::matmul::select::{self, Limits};
use crate::view::layout::MAX_INDEX_32;
use dml_environment::{WINOGRAD, Winograd};
use dml_kernel::DType;
use std::cell::Cell;

/// What a convolution computes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// The outer side from the inner side.
    Forward,
    /// The inner side from the outer side.
    Data,
    /// The gradient of the weight.
    Weight,
}

/// Maximum bytes of workspace for all transformed numbers. If all images take more, they are
/// processed in parts.
const WORKSPACE: i64 = 256 << 20;

/// Minimum number of multiplications: below, the launches take longer than the products.
const MIN_MULTIPLICATIONS: i64 = 1 << 27;

/// Maximum number of channels of a side, which bounds the terms of a sum and the number of
/// workgroups.
const MAX_CHANNELS: i64 = 1 << 18;

/// The sizes and limits that the choice depends on: the key of its cache.
#[derive(Copy, Clone, Debug, PartialEq)]
struct ChoiceKey {
    limits: Limits,
    pass: Pass,
    batch: i64,
    /// Channels of the inner side and of the outer side.
    channels: [i64; 2],
    /// Height and width of both sides.
    inner: [i64; 2],
    outer: [i64; 2],
}

/// Whether a pass of a convolution of this dtype is computed by the transforms. It depends on the
/// adapter and the sizes alone.
pub fn is_supported(cx: &Context, g: &Geometry, dtype: DType, pass: Pass) -> bool {
    let all = |values: &[i64], x: i64| values.iter().all(|&n| n == x);
    let window = all(&g.kernel, TAPS as i64) && all(&g.stride, 1) && all(&g.dilation, 1);
    if !window || g.kernel.len() != 2 || g.groups != 1 || dtype != DType::F32 {
        return false;
    }
    let question = ChoiceKey {
        limits: Limits::of(cx.device.info()),
        pass,
        batch: g.batch,
        channels: [g.inner.0, g.outer.0],
        inner: [g.inner.1[0], g.inner.1[1]],
        outer: [g.outer.1[0], g.outer.1[1]],
    };
    let large = || !question.limits.software && question.multiplications() >= MIN_MULTIPLICATIONS;
    g.padding.iter().all(|&n| n < MAX_INDEX_32)
        && match WINOGRAD.get() {
            Some(Winograd::Off) => false,
            Some(Winograd::Always) => question.is_possible(),
            Some(Winograd::On) | None => large() && is_faster(question),
        }
}

/// The number of images that are transformed at a time, of `batch`: as many as the workspace holds
/// in addition to `fixed` bytes, in parts of equal size. `bytes` is the workspace of one image.
/// `None` if the workspace does not hold one image.
pub fn images_at_once(batch: i64, bytes: i64, fixed: i64) -> Option<i64> {
    let most = (WORKSPACE - fixed) / bytes.max(1);
    (most > 0).then(|| ceil(batch, ceil(batch, most)))
}

fn ceil(n: i64, by: i64) -> i64 {
    (n + by - 1) / by
}

thread_local! {
    /// A direct-mapped cache of the last choices, since the estimates take microseconds.
    static CHOICE_CACHE: [Cell<Option<(ChoiceKey, bool)>>; 64] = const { [const { Cell::new(None) }; 64] };
}

/// Whether the transforms are possible, and faster than the direct product.
fn is_faster(question: ChoiceKey) -> bool {
    let ChoiceKey { pass, batch, channels: [c, k], inner, .. } = question;
    let mixed = [pass as i64, batch, c, k, inner[0], inner[1]]
        .into_iter()
        .fold(0u64, |mixed, n| (mixed ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23));
    CHOICE_CACHE.with(|chosen| {
        let slot = &chosen[(mixed >> 58) as usize];
        match slot.get() {
            Some((asked, faster)) if asked == question => faster,
            _ => {
                // Without a margin: the estimate ignores that windows cost a direct product a third
                // of its speed.
                let faster = question.is_possible() && question.transformed() < question.direct();
                slot.set(Some((question, faster)));
                faster
            }
        }
    })
}

impl ChoiceKey {
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

    /// Tiles of an image, on the side that is written or whose gradient is read.
    fn tiles(&self) -> i64 {
        let [down, across] = Tiles::of(if self.pass == Pass::Data { &self.inner } else { &self.outer });
        down.saturating_mul(across)
    }

    /// Bytes of transformed numbers: for each image, and in addition.
    fn bytes(&self) -> [i64; 2] {
        let ([c, k], number) = (self.channels, TILE_MULTIPLICATIONS * DType::F32.bytes() as i64);
        [number.saturating_mul(c + k).saturating_mul(self.tiles()), number.saturating_mul(c).saturating_mul(k)]
    }

    /// Whether offsets and numbers of terms are in range, and the workspace holds the transformed
    /// numbers of an image.
    fn is_possible(&self) -> bool {
        let ([c, k], [h, w], [y, x]) = (self.channels, self.inner, self.outer);
        let reach = [(c, h.saturating_mul(w)), (k, y.saturating_mul(x)), (k, c.saturating_mul(9))];
        let tiles = self.batch.saturating_mul(self.tiles());
        let [image, fixed] = self.bytes();
        [self.batch, c, k, h, w, y, x].into_iter().all(|n| n > 0)
            && reach.into_iter().all(|(channels, each)| channels.saturating_mul(each) < MAX_INDEX_32)
            && c.max(k) <= MAX_CHANNELS
            && tiles < if self.pass == Pass::Weight { MAX_TERMS } else { MAX_INDEX_32 }
            && images_at_once(self.batch, image, fixed).is_some()
            && is_conditional(&self.limits, self.direct_size())
    }

    /// Estimated cost of the direct product, in the unit of [`select`].
    fn direct(&self) -> f64 {
        select::choose(&self.limits, self.direct_size(), 4, false).0
    }

    /// Estimated cost of the transforms: products, memory traffic, and launches.
    fn transformed(&self) -> f64 {
        let ChoiceKey { limits, pass, batch, channels: [c, k], inner, outer } = *self;
        let [image, fixed] = self.bytes();
        let Some(images) = images_at_once(batch, image, fixed) else { return f64::INFINITY };
        let tiles = padded(images * self.tiles());
        let parts = ceil(batch, images);
        let (m, n, inside, along_k) = match pass {
            Pass::Forward => (k, tiles, c, false),
            Pass::Data => (c, tiles, k, false),
            Pass::Weight => (k, c, tiles, true),
        };
        let (products, _) = select::choose(&limits, [TILE_MULTIPLICATIONS, m, n, inside], 4, along_k);
        // The products read and write what the transforms write and read.
        let numbers = (image * images + fixed) as f64;
        let products = products.max(limits.passes(0, numbers));
        let pixels = c * inner[0] * inner[1] + k * outer[0] * outer[1];
        let read_or_written = (4 * batch * pixels) as f64 / parts as f64;
        // The first part includes the launch that clears the flags, and the direct product, which
        // returns at once if no flag is set.
        limits.passes(2, 0.0) + parts as f64 * (products + limits.passes(2, numbers + read_or_written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: Limits = Limits::LARGE_GPU;

    fn same(pass: Pass, batch: i64, channels: i64, size: i64) -> ChoiceKey {
        let (inner, outer) = ([size; 2], [size; 2]);
        ChoiceKey { limits: H100, pass, batch, channels: [channels; 2], inner, outer }
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
        // Sizes of expanded tensors, which have no memory of that size.
        assert!(!same(Pass::Forward, 1 << 40, 1 << 20, 1 << 31).is_possible());
        assert!(!same(Pass::Weight, i64::MAX, 1, 2).is_possible());
    }
}
