//! Convolutions and their gradients, in two and three dimensions, in groups, and by channel.
//!
//! TensorFlow's filters are `[spatial.., input channels of a group, output channels]`: the engine's
//! `[output channels, input channels of a group, spatial..]` as a view.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{FLOATS, FLOATS_AND_I32};
use crate::operators::common::window::{Format, Padding, Spatial};
use crate::require;
use dml_compute::convolution::geometry::Geometry;
use dml_compute::convolution::overrideable::by_channels;
use dml_compute::convolution::passes;
use dml_compute::convolution::winograd::choice::Pass;
use dml_compute::movement::copy;
use dml_compute::{Dims, View};

/// What an operator's attributes say of its convolution.
#[derive(Clone, Debug)]
pub struct Convolution {
    /// The place of channels.
    pub format: Format,
    padding: Padding,
    stride: Spatial,
    dilation: Spatial,
    /// The filter has some outputs for each input channel, which are groups of one.
    by_channel: bool,
    /// The leading dimensions that are all images of a batch.
    batch_dims: usize,
    rank: usize,
}

impl Convolution {
    /// Of an operator with `rank` spatial dimensions.
    pub fn new(attributes: &Attributes, rank: usize, by_channel: bool) -> Result<Self> {
        let format = Format::of(attributes)?;
        let padding = Padding::of(attributes, format, rank)?;
        let stride = format.spatial_of("strides", &attributes.ints("strides")?, rank)?;
        let mut dilation = Spatial::from_elem(1, rank);
        if attributes.has("dilations")? {
            dilation = format.spatial_of("dilations", &attributes.ints("dilations")?, rank)?;
        }
        Ok(Self { format, padding, stride, dilation, by_channel, batch_dims: 1, rank })
    }

    /// Of `Conv`, whose number of spatial dimensions is the input's.
    fn of_any_rank(attributes: &Attributes) -> Result<Self> {
        let format = Format::of(attributes)?;
        let strides = attributes.ints("strides")?;
        let batch_dims = attributes.int("batch_dims")?;
        require!(batch_dims >= 1, "batch_dims must be positive: {batch_dims}");
        require!(matches!(strides.len(), 4 | 5), "strides must specify 4 or 5 dimensions, got {strides:?}");
        let rank = strides.len() - 2;
        let padding = Padding::of(attributes, format, rank)?;
        let stride = format.spatial_of("strides", &strides, rank)?;
        let mut dilation = Spatial::from_elem(1, rank);
        let dilations = attributes.ints("dilations")?;
        if !dilations.is_empty() {
            dilation = format.spatial_of("dilations", &dilations, rank)?;
        }
        let batch_dims = batch_dims as usize;
        Ok(Self { format, padding, stride, dilation, by_channel: false, batch_dims, rank })
    }

    fn rank(&self) -> usize {
        self.rank
    }

    /// The geometry for images and a filter of these shapes, both TensorFlow's.
    pub fn geometry(&self, input: &[i64], filter: &[i64]) -> Result<Geometry> {
        let rank = self.rank();
        require!(input.len() == rank + 2, "input must be {}-dimensional: {input:?}", rank + 2);
        require!(filter.len() == rank + 2, "filter must be {}-dimensional: {filter:?}", rank + 2);
        let image = self.format.image_sizes(input);
        let kernel: Spatial = filter[..rank].iter().copied().collect();
        require!(kernel.iter().all(|&n| n > 0), "filter must not have zero elements: {filter:?}");
        let (channels, each, outer) = (image[1], filter[rank], filter[rank + 1]);
        let (groups, outer) = if self.by_channel {
            require!(channels == each, "input and filter must have the same depth: {channels} vs {each}");
            (channels, outer)
        } else {
            require!(each > 0 || channels == 0, "filter depth must be greater than 0, got {filter:?}");
            let groups = if each > 0 { channels / each } else { 1 };
            require!(
                each * groups.max(1) == channels || channels == 0,
                "input depth must be evenly divisible by filter depth: {channels} vs {each}"
            );
            let groups = groups.max(1);
            require!(
                outer % groups == 0,
                "output depth must be evenly divisible by number of groups: {outer} vs {groups}"
            );
            (groups, outer / groups)
        };
        let (mut spatial, mut padding) = (Spatial::new(), Spatial::new());
        for d in 0..rank {
            let window = self.dilation[d] * (kernel[d] - 1) + 1;
            let (count, before) = self.padding.windows(d, image[2 + d], window, self.stride[d])?;
            spatial.push(count);
            padding.push(before);
        }
        Ok(Geometry {
            batch: image[0],
            groups,
            inner: (channels / groups.max(1), image[2..].iter().copied().collect()),
            outer: (outer, spatial),
            kernel,
            stride: self.stride.clone(),
            padding,
            dilation: self.dilation.clone(),
            transposed: false,
        })
    }

    /// The shape of the result.
    pub fn result(&self, g: &Geometry) -> Dims {
        self.format.sizes(g.batch, g.outer.0 * g.groups, &g.outer.1)
    }

    /// A filter as `[output channels, input channels of a group, spatial..]`.
    pub fn weight(&self, filter: &View) -> View {
        let rank = filter.dim() - 2;
        let mut order = vec![rank + 1, rank];
        order.extend(0..rank);
        let t = filter.permute(&order);
        if !self.by_channel {
            return t;
        }
        // The outputs of a channel follow each other, and the channels follow those.
        let (mut sizes, mut strides) = (t.sizes.clone(), t.strides.clone());
        (sizes[0], sizes[1], strides[0]) = (sizes[0] * sizes[1], 1, 1);
        strides[1] = sizes[0];
        t.as_strided(&sizes, &strides, 0)
    }

    /// Images in the memory order in which a pass is computed.
    pub fn images(&self, call: &Call, g: &Geometry, t: &View, passes: &[Pass]) -> Result<View> {
        let last = self.format == Format::ChannelsLast || by_channels(&call.cx(), g, t.dtype, passes)?;
        Ok(copy::in_memory_format(&call.cx(), &self.format.image(t), last)?)
    }
}

/// The convolution of input 0 by filter 1.
fn forward(call: &Call, c: &Convolution) -> Result<()> {
    let (input, filter) = (call.input(0)?, call.input(1)?);
    // More leading dimensions than one are a batch together.
    let extra = c.batch_dims - 1;
    require!(
        input.dim() == c.rank() + 1 + c.batch_dims,
        "input must be {}-dimensional: {:?}",
        c.rank() + 1 + c.batch_dims,
        input.sizes
    );
    let mut sizes = Dims::from_slice(&[input.sizes[..=extra].iter().product()]);
    sizes.extend_from_slice(&input.sizes[c.batch_dims..]);
    let images = input.as_strided(&sizes, &View::contiguous_strides(&sizes), 0);
    let g = c.geometry(&sizes, &filter.sizes)?;
    let result = c.result(&g);
    let mut full = Dims::from_slice(&input.sizes[..c.batch_dims]);
    full.extend_from_slice(&result[1..]);
    let out = call.output(0, &full)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let out = out.as_strided(&result, &View::contiguous_strides(&result), 0);
    let images = c.images(call, &g, &images, &[Pass::Forward])?;
    Ok(passes::forward(&call.cx(), &g, &images, &c.weight(&filter), &c.format.image(&out), None)?)
}

/// The gradient of a convolution's input, of shape `sizes`, from filter 1 and gradient 2.
fn input_gradient(call: &Call, c: &Convolution, sizes: &[i64]) -> Result<()> {
    let (filter, grad) = (call.input(1)?, call.input(2)?);
    let rank = c.rank();
    require!(filter.dim() == rank + 2, "filter must be {}-dimensional: {:?}", rank + 2, filter.sizes);
    require!(grad.dim() == rank + 2, "out_backprop must be {}-dimensional: {:?}", rank + 2, grad.sizes);
    require!(sizes.iter().all(|&n| n >= 0), "input_sizes must not be negative: {sizes:?}");
    // The spatial sizes alone: batch and channels are the others'.
    let sizes = if sizes.len() == rank && !c.by_channel {
        c.format.sizes(grad.sizes[0], filter.sizes[rank], sizes)
    } else {
        Dims::from_slice(sizes)
    };
    let g = c.geometry(&sizes, &filter.sizes)?;
    check_gradient(c, &g, &grad)?;
    let out = call.output(0, &sizes)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let images = c.images(call, &g, &grad, &[Pass::Data])?;
    Ok(passes::backward_data(&call.cx(), &g, &images, &c.weight(&filter), &c.format.image(&out), None)?)
}

/// The gradient of a convolution's filter, of shape `sizes`, from input 0 and gradient 2.
fn filter_gradient(call: &Call, c: &Convolution, sizes: &[i64]) -> Result<()> {
    let (input, grad) = (call.input(0)?, call.input(2)?);
    let rank = c.rank();
    require!(grad.dim() == rank + 2, "out_backprop must be {}-dimensional: {:?}", rank + 2, grad.sizes);
    require!(sizes.iter().all(|&n| n >= 0), "filter_sizes must not be negative: {sizes:?}");
    let g = c.geometry(&input.sizes, sizes)?;
    check_gradient(c, &g, &grad)?;
    let out = call.output(0, sizes)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let inner = c.images(call, &g, &input, &[Pass::Weight])?;
    let outer = c.images(call, &g, &grad, &[Pass::Weight])?;
    Ok(passes::backward_weight(&call.cx(), &g, &inner, &outer, &c.weight(&out))?)
}

fn check_gradient(c: &Convolution, g: &Geometry, grad: &View) -> Result<()> {
    let expected = c.result(g);
    require!(
        grad.sizes == expected,
        "the gradient of the result has shape {:?}, but the result has {expected:?}",
        grad.sizes
    );
    Ok(())
}

/// A convolution's operators: the convolution, and its gradients, where shapes are host inputs.
fn family(
    rank: usize,
    by_channel: bool,
    names: [&'static str; 3],
    dtypes: [&'static [dml_kernel::DType]; 3],
) -> Vec<Operator> {
    let make = move |attributes: &Attributes| Convolution::new(attributes, rank, by_channel);
    let [of_result, of_input, of_filter] = names;
    let forward_kernel = move |attributes: &Attributes| {
        let c = make(attributes)?;
        Ok(move |call: &Call| forward(call, &c))
    };
    let input_kernel = move |attributes: &Attributes| {
        let c = make(attributes)?;
        Ok(move |call: &Call| input_gradient(call, &c, &call.host_ints(0)?))
    };
    let filter_kernel = move |attributes: &Attributes| {
        let c = make(attributes)?;
        Ok(move |call: &Call| filter_gradient(call, &c, &call.host_ints(1)?))
    };
    vec![
        Operator::new(of_result, forward_kernel).of("T", dtypes[0]),
        Operator::new(of_input, input_kernel).of("T", dtypes[1]).on_host(&["input_sizes"]),
        Operator::new(of_filter, filter_kernel).of("T", dtypes[2]).on_host(&["filter_sizes"]),
    ]
}

/// `Conv`.
fn conv(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let c = Convolution::of_any_rank(attributes)?;
    Ok(move |call: &Call| forward(call, &c))
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let plane = ["Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"];
    let space = ["Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"];
    let depthwise =
        ["DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"];
    let mut all = family(2, false, plane, [FLOATS_AND_I32, FLOATS_AND_I32, FLOATS]);
    all.extend(family(3, false, space, [FLOATS; 3]));
    all.extend(family(2, true, depthwise, [FLOATS; 3]));
    all.push(Operator::new("Conv", conv).of("T", FLOATS_AND_I32));
    all
}
