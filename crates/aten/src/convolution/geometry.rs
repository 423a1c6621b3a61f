//! The checked sizes of a convolution.

use crate::check;
use crate::operator::error::Result;
use dml_compute::convolution::geometry::{Arguments, Geometry, Spatial, format_product, format_sizes};
use dml_compute::view::View;

/// The convolution of `input` by `weight`.
pub fn checked(input: &View, weight: &View, args: &Arguments) -> Result<Geometry> {
    let rank = input.dim().saturating_sub(2);
    check!(
        (1..=3).contains(&rank) && weight.dim() == input.dim(),
        Runtime,
        "Expected {}-dimensional input for {}-dimensional weight {:?}, but got {}-dimensional input of size {:?} \
         instead",
        weight.dim(),
        weight.dim(),
        weight.sizes.as_slice(),
        input.dim(),
        input.sizes.as_slice()
    );
    let per_dim =
        |list: &[i64]| -> Spatial { (0..rank).map(|d| list.get(d).or(list.first()).copied().unwrap_or(0)).collect() };
    let [stride, padding, dilation, extra] =
        [args.stride, args.padding, args.dilation, args.output_padding].map(per_dim);
    check!(stride.iter().all(|&s| s > 0), Runtime, "non-positive stride is not supported");
    check!(padding.iter().all(|&p| p >= 0), Runtime, "negative padding is not supported");
    check!(dilation.iter().all(|&d| d > 0), Runtime, "dilation should be greater than zero");
    check!(args.groups > 0, Runtime, "non-positive groups is not supported");
    let small = !args.transposed || (0..rank).all(|d| extra[d] < stride[d] || extra[d] < dilation[d]);
    check!(
        small,
        Runtime,
        "output padding must be smaller than either stride or dilation, but got {} {} {}",
        format_sizes("output_padding", &extra, 0),
        format_sizes("stride", &stride, 1),
        format_sizes("dilation", &dilation, 1)
    );
    let (groups, transposed) = (args.groups, args.transposed);
    let channels = input.sizes[1];
    let expected = if transposed { weight.sizes[0] } else { weight.sizes[1] * groups };
    check!(
        channels == expected && weight.sizes[0] % groups == 0,
        Runtime,
        "Given groups={groups}, weight of size {:?}, expected input{:?} to have {expected} channels, but got \
         {channels} channels instead",
        weight.sizes.as_slice(),
        input.sizes.as_slice()
    );
    let kernel: Spatial = weight.sizes[2..].iter().copied().collect();
    let here: Spatial = input.sizes[2..].iter().copied().collect();
    let window = |d: usize| dilation[d] * (kernel[d] - 1) + 1;
    let there: Spatial = (0..rank)
        .map(|d| {
            if transposed {
                (here[d] - 1) * stride[d] - 2 * padding[d] + window(d) + extra[d]
            } else {
                let room = here[d] + 2 * padding[d] - window(d);
                if room < 0 { 0 } else { room / stride[d] + 1 }
            }
        })
        .collect();
    check!(
        !transposed || there.iter().all(|&n| n > 0),
        Runtime,
        "Given input size per channel: ({}). Calculated output size per channel: ({}). Output size is too small",
        format_product(here.iter().copied()),
        format_product(there.iter().copied())
    );
    check!(
        there.iter().all(|&n| n > 0),
        Runtime,
        "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than \
         actual input size",
        format_product((0..rank).map(|d| here[d] + 2 * padding[d])),
        format_product((0..rank).map(window))
    );
    let (first, second) = (weight.sizes[0] / groups, weight.sizes[1]);
    let (inner, outer) = if transposed { (there, here) } else { (here, there) };
    Ok(Geometry {
        batch: input.sizes[0],
        groups,
        inner: (second, inner),
        outer: (first, outer),
        kernel,
        stride,
        padding,
        dilation,
        transposed,
    })
}
