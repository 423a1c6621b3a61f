//! Group normalisation: over the channels of a group and all positions, for each element of the
//! batch (Y. Wu and K. He, "Group normalization", ECCV 2018).

use crate::normalization::statistics::parameter_dtype;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, group, operators};
use dml_compute::dtype::accumulator;
use dml_compute::movement::copy::{self, as_contiguous, cast};
use dml_compute::normalization::group::weighted_sums;
use dml_compute::normalization::statistics::moments;
use dml_compute::normalization::sums::Products;
use dml_compute::normalization::terms::{NormalizationTerms, Sums};
use dml_compute::reduction::axes::Axes;
use dml_compute::view::memory_format::{self, is_channels_last};
use dml_compute::view::{Dims, View};

operators! {
    group_norm(input, weight, bias, {Sizes}, eps) {
        "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
    }
    backward(grad_out, input, mean, rstd, weight, {Sizes}, output_mask) {
        "aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    }
}

group! {
    /// The sizes of an input: batch, channels, positions; and the number of groups.
    #[allow(non_snake_case)]
    struct Sizes {
        N: i64,
        C: i64,
        HxW: i64,
        group: i64,
    }
}

/// An input `[batch, channels, ..]` in one of the two memory formats, viewed as
/// `[batch, groups, channels of a group, positions]`.
struct Groups {
    sizes: [i64; 4],
    /// Whether the input is channels last.
    last: bool,
}

impl Groups {
    /// A tensor of the input's sizes, viewed in four dimensions; a copy if it is not dense in the
    /// input's format.
    fn of_input(&self, call: &Call, t: &View) -> Result<View> {
        let dense = copy::in_memory_format(call, t, self.last)?;
        let [_, groups, each, positions] = self.sizes;
        let channels = groups * each;
        let strides = if self.last {
            [channels * positions, each, 1, channels]
        } else {
            [channels * positions, each * positions, positions, 1]
        };
        Ok(dense.as_strided(&self.sizes, &strides, 0))
    }

    fn empty_like(&self, call: &Call, input: &View) -> Result<View> {
        Ok(call.empty_strided(input.dtype, &input.sizes, &memory_format::strides(&input.sizes, self.last))?)
    }

    /// A contiguous `[batch, groups]`, expanded to the first `rank` dimensions.
    fn of_groups(&self, t: &View, rank: usize) -> View {
        t.as_strided(&self.sizes[..rank], &[self.sizes[1], 1, 0, 0][..rank], 0)
    }

    /// A vector of channels, expanded to the first `rank` dimensions.
    fn of_channels(&self, t: &View, rank: usize) -> View {
        let step = t.strides[0];
        t.as_strided(&self.sizes[..rank], &[0, self.sizes[2] * step, step, 0][..rank], 0)
    }

    fn axes(&self, call: &Call, dims: &[i64], rank: usize) -> Result<Axes> {
        crate::reduction::axes::axes_listed(call, dims, rank, false)
    }
}

/// The groups of an input of these sizes, checked.
fn checked_groups(input: &View, parameters: [Option<&View>; 2], sizes: Sizes) -> Result<Groups> {
    let Sizes { N: batch, C: channels, HxW: positions, group: groups } = sizes;
    check!(groups > 0, Runtime, "Expected num groups to be greater than 0, got {groups}");
    check!(
        channels % groups == 0,
        Runtime,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape {:?} and \
         num_groups={groups}",
        input.sizes.as_slice()
    );
    for (name, t) in ["weight", "bias"].iter().zip(parameters) {
        let Some(t) = t else { continue };
        check!(
            t.dim() == 1 && t.numel() == channels,
            Runtime,
            "Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of \
             shape {:?} and input of shape {:?}",
            t.sizes.as_slice(),
            input.sizes.as_slice()
        );
    }
    check!(
        input.numel() == batch * channels * positions,
        Runtime,
        "group_norm: an input of shape {:?} does not have {batch} x {channels} x {positions} elements",
        input.sizes.as_slice()
    );
    Ok(Groups { sizes: [batch, groups, channels / groups, positions], last: is_channels_last(input) })
}

fn group_norm(
    call: &mut Call,
    input: &View,
    weight: Option<&View>,
    bias: Option<&View>,
    sizes: Sizes,
    eps: f64,
) -> Result<()> {
    let groups = checked_groups(input, [weight, bias], sizes)?;
    check!(input.dtype.is_float(), NotImplemented, "\"GroupNormKernelImpl\" not implemented for '{}'", input.dtype);
    let dtype = parameter_dtype(input, &[weight, bias])?;
    let [batch, count, ..] = groups.sizes;
    let out = groups.empty_like(call, input)?;
    // In half precision a mean far from zero would lose all digits of the elements' differences.
    let exact = accumulator(input.dtype);
    let (mean, scale) = (call.empty(exact, &[batch, count])?, call.empty(exact, &[batch, count])?);
    let x = groups.of_input(call, input)?;
    moments(call, &x, groups.axes(call, &[2, 3], 4)?, eps, &[&mean, &scale])?;
    let terms = NormalizationTerms {
        mean: Some(groups.of_groups(&mean, 4)),
        scale: Some(groups.of_groups(&scale, 4)),
        weight: weight.map(|t| groups.of_channels(t, 4)),
        bias: bias.map(|t| groups.of_channels(t, 4)),
    };
    terms.normalize(call, &x, &groups.of_input(call, &out)?)?;
    call.ret(out);
    for t in [mean, scale] {
        call.ret(cast(call, &t, dtype)?);
    }
    Ok(())
}

fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    mean: &View,
    scale: &View,
    weight: Option<&View>,
    sizes: Sizes,
    mask: &[u8],
) -> Result<()> {
    let groups = checked_groups(input, [weight, None], sizes)?;
    check!(
        input.dtype.is_float(),
        NotImplemented,
        "\"GroupNormBackwardKernelImpl\" not implemented for '{}'",
        input.dtype
    );
    check!(grad.dtype == input.dtype, Runtime, "Expected scalar types of X and dY are same.");
    let [batch, count, each, positions] = groups.sizes;
    check!(
        grad.sizes == input.sizes && mean.numel() == batch * count && scale.numel() == batch * count,
        Runtime,
        "{}: gradient {} and statistics {} do not belong to the input {}",
        call.name,
        grad.describe(),
        mean.describe(),
        input.describe()
    );
    let dtype = parameter_dtype(input, &[weight])?;
    let (mean, scale) = (as_contiguous(call, mean)?, as_contiguous(call, scale)?);
    let wants = |i: usize| mask.get(i).is_some_and(|&m| m != 0);
    let (x, grad) = (groups.of_input(call, input)?, groups.of_input(call, grad)?);
    let wide = accumulator(input.dtype);
    let terms = NormalizationTerms {
        mean: Some(groups.of_groups(&mean, 4)),
        scale: Some(groups.of_groups(&scale, 4)),
        weight: weight.map(|t| groups.of_channels(t, 4)),
        bias: None,
    };
    // Sums over positions are used for both groups and channels.
    let channels: Dims = Dims::from_slice(&groups.sizes[..3]);
    let (product, total) = (call.empty(wide, &channels)?, call.empty(wide, &channels)?);
    let (m, s) = (terms.mean.as_ref(), terms.scale.as_ref());
    let products = Products { grad: &grad, x: &x, mean: m, scale: s, weight: None };
    products.sum(call, groups.axes(call, &[3], 4)?, &[&product, &total])?;
    let fold = |call: &Call, dims: &[i64], weight: Option<View>, outs: [&View; 2]| -> Result<()> {
        let axes = groups.axes(call, dims, 3)?;
        Ok(weighted_sums(call, [&product, &total], weight.as_ref(), axes, outs)?)
    };
    let mut of_input = None;
    if wants(0) {
        let out = groups.empty_like(call, input)?;
        let (p, t) = (call.empty(wide, &[batch, count])?, call.empty(wide, &[batch, count])?);
        fold(call, &[2], weight.map(|t| groups.of_channels(t, 3)), [&p, &t])?;
        let sums = Sums {
            total: Some(groups.of_groups(&t, 4)),
            product: Some(groups.of_groups(&p, 4)),
            count: each * positions,
            weighted_after: false,
        };
        terms.gradient(call, &grad, &x, &sums, &groups.of_input(call, &out)?)?;
        of_input = Some(out);
    }
    let (mut of_weight, mut of_bias) = (None, None);
    if wants(1) || wants(2) {
        let (p, t) = (call.empty(wide, &[count * each])?, call.empty(wide, &[count * each])?);
        let shaped = |t: &View| t.as_strided(&[count, each], &[each, 1], 0);
        fold(call, &[0], None, [&shaped(&p), &shaped(&t)])?;
        of_weight = wants(1).then(|| cast(call, &p, dtype)).transpose()?;
        of_bias = wants(2).then(|| cast(call, &t, dtype)).transpose()?;
    }
    for t in [of_input, of_weight, of_bias] {
        call.ret_optional(t);
    }
    Ok(())
}
