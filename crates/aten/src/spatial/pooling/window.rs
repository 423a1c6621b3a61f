//! The windows given by the arguments of a pooling, and checks of the pooled tensors.

use crate::operator::error::Result;
use crate::operator::torch_version;
use crate::{check, group};
use dml_compute::spatial::geometry::{Spatial, sizes_with};
use dml_compute::spatial::pooling::window::{Windows, spatial};
use dml_compute::view::{Dims, View};

group! {
    /// The arguments that define windows; a list of one number is for all dimensions.
    pub struct WindowArguments<'a> {
        kernel_size: &'a [i64],
        stride: &'a [i64],
        padding: &'a [i64],
        dilation: &'a [i64] = &[1],
        ceil_mode: bool,
    }
}

/// Checks the arguments of `name`, which pools `rank` dimensions; an empty stride means the
/// kernel's size.
pub fn checked(name: &str, rank: usize, given: &WindowArguments) -> Result<Windows> {
    let tuple = if rank == 2 { "two" } else { "three" };
    let list = |what: &str, list: &[i64], wording: &str| -> Result<Spatial> {
        check!(
            list.len() == 1 || list.len() == rank,
            Runtime,
            "{name}: {what} must {wording} a single int, or a tuple of {tuple} ints"
        );
        Ok((0..rank).map(|d| list[d.min(list.len() - 1)]).collect())
    };
    let (either, omitted) = match name {
        "avg_pool3d" => ("be", "be omitted,"),
        _ => ("either be", "either be omitted,"),
    };
    let windows = Windows {
        kernel: list("kernel_size", given.kernel_size, either)?,
        stride: list("stride", if given.stride.is_empty() { given.kernel_size } else { given.stride }, omitted)?,
        padding: list("padding", given.padding, either)?,
        dilation: list("dilation", given.dilation, "be either")?,
        ceil: given.ceil_mode,
    };
    check!(windows.stride.iter().all(|&s| s != 0), Runtime, "stride should not be zero");
    for d in 0..rank {
        let (pad, size, dilation) = (windows.padding[d], windows.kernel[d], windows.dilation[d]);
        check!(pad >= 0, Runtime, "pad must be non-negative, but got pad: {pad}");
        check!(
            pad <= ((size - 1) * dilation + 1) / 2,
            Runtime,
            "pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={size} and \
             dilation={dilation}"
        );
    }
    let positive = |what: &str, prefix: &str, list: &[i64]| {
        let axes = &["T", "H", "W"][3 - rank..];
        let named: Vec<String> = axes.iter().zip(list).map(|(axis, n)| format!("{prefix}{axis}: {n}")).collect();
        check!(list.iter().all(|&n| n > 0), Runtime, "{what} should be greater than zero, but got {}", named.join(" "));
        Ok(())
    };
    positive("kernel size", "k", &windows.kernel)?;
    positive("stride", "d", &windows.stride)?;
    positive("dilation", "dilation", &windows.dilation)?;
    Ok(windows)
}

/// Checks that the input of `name` has channels, `rank` spatial dimensions, none of them empty, and
/// optionally a batch.
pub fn check_image(name: &str, input: &View, rank: usize) -> Result<()> {
    let (least, most) = (rank + 1, rank + 2);
    let right_rank = input.dim() == least || input.dim() == most;
    let shape = input.sizes.as_slice();
    if rank == 2 {
        check!(
            right_rank && input.sizes[input.dim() - 3..].iter().all(|&n| n > 0),
            Runtime,
            "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{shape:?}"
        );
        return Ok(());
    }
    check!(right_rank, Runtime, "non-empty {least}D or {most}D (batch mode) tensor expected for input");
    let first = input.dim() - least;
    if torch_version::at_least(15) {
        return check_not_empty(name, "input", input, first);
    }
    for d in first..input.dim() {
        check!(
            input.sizes[d] > 0,
            Runtime,
            "{name}(): Expected input's non-batch dimensions to have positive length, but input has a shape of \
             {shape:?} and non-batch dimension {d} has length zero!"
        );
    }
    Ok(())
}

/// Checks that only the batch of `t`, called `what` by `name`, may be empty.
pub fn check_not_empty(name: &str, what: &str, t: &View, first: usize) -> Result<()> {
    for d in first..t.dim() {
        check!(
            t.sizes[d] > 0,
            Runtime,
            "{name}(): Expected {what} to have non-zero size for non-batch dimensions, but {what} has sizes {:?} with \
             dimension {d} being empty",
            t.sizes.as_slice()
        );
    }
    Ok(())
}

/// Checks that a tensor of a backward pass has the sizes of the forward's result.
pub fn check_sizes(t: &View, sizes: &[i64]) -> Result<()> {
    for (d, &n) in sizes.iter().enumerate() {
        check!(
            t.dim() == sizes.len() && t.sizes[d] == n,
            Runtime,
            "Expected a tensor of dimension {} and tensor.size[{d}] == {n} but got: dimension {} and tensor.size[{d}] \
             = {}",
            sizes.len(),
            t.dim(),
            t.sizes.get(d).unwrap_or(&0)
        );
    }
    Ok(())
}

/// The shape of the result of fixed windows, checked.
pub fn output_sizes(input: &View, windows: &Windows) -> Result<Dims> {
    let rank = windows.rank();
    let output = windows.output(spatial(input, rank));
    let named = |sizes: &[i64]| {
        let all = [input.size(-1 - rank as i64)].into_iter().chain(sizes.iter().copied());
        all.map(|n| n.to_string()).collect::<Vec<_>>().join("x")
    };
    check!(
        output.iter().all(|&n| n > 0),
        Runtime,
        "Given input size: ({}). Calculated output size: ({}). Output size is too small",
        named(spatial(input, rank)),
        named(&output)
    );
    Ok(sizes_with(input, &output))
}
