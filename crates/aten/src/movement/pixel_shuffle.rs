//! Rearranging pixels of `factor` by `factor` blocks into channels and back (Shi et al., "Real-time
//! single image and video super-resolution using an efficient sub-pixel convolutional neural
//! network", 2016).

use crate::movement::copies::checked_copy;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::movement::pixel_shuffle::{blocks_as_channels, blocks_in_image, result};
use dml_compute::view::View;

operators! {
    pixel_shuffle(self, upscale_factor).complex(Complex::Run(complex::run_as_bits)) {
        "aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    }
    pixel_unshuffle(self, downscale_factor).complex(Complex::Run(complex::run_as_bits)) {
        "aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    }
}

/// `[.., channels * factor^2, height, width]` to `[.., channels, height * factor, width * factor]`.
fn pixel_shuffle(call: &mut Call, t: &View, factor: i64) -> Result<()> {
    let ([channels, height, width], square) = (image(t, "pixel_shuffle")?, factor.saturating_mul(factor));
    check!(factor > 0, Runtime, "pixel_shuffle expects a positive upscale_factor, but got {factor}");
    check!(
        channels % square == 0,
        Runtime,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but \
         input.size(-3)={channels} is not divisible by {square}"
    );
    let out = result(call, t, [channels / square, height * factor, width * factor])?;
    checked_copy(call, &blocks_as_channels(t, factor), &blocks_in_image(&out, factor))?;
    call.ret(out);
    Ok(())
}

/// `[.., channels, height, width]` to `[.., channels * factor^2, height / factor, width / factor]`.
fn pixel_unshuffle(call: &mut Call, t: &View, factor: i64) -> Result<()> {
    let [channels, height, width] = image(t, "pixel_unshuffle")?;
    check!(factor > 0, Runtime, "pixel_unshuffle expects a positive downscale_factor, but got {factor}");
    for (name, d, n) in [("height", -2, height), ("width", -1, width)] {
        check!(
            n % factor == 0,
            Runtime,
            "pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({d})={n} is not \
             divisible by {factor}"
        );
    }
    let out =
        result(call, t, [channels.saturating_mul(factor).saturating_mul(factor), height / factor, width / factor])?;
    checked_copy(call, &blocks_in_image(t, factor), &blocks_as_channels(&out, factor))?;
    call.ret(out);
    Ok(())
}

/// The last three sizes, checked.
fn image(t: &View, name: &str) -> Result<[i64; 3]> {
    let rank = t.dim();
    check!(
        rank >= 3,
        Runtime,
        "{name} expects input to have at least 3 dimensions, but got input with {rank} dimension(s)"
    );
    Ok([t.sizes[rank - 3], t.sizes[rank - 2], t.sizes[rank - 1]])
}
