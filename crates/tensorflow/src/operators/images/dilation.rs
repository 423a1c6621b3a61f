//! Greyscale dilation of images `[batch, height, width, channels]`, and its gradients.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::FLOATS;
use crate::operators::common::window::{Format, Padding, Spatial};
use crate::require;
use dml_compute::dtype::accumulator;
use dml_compute::indexing::scatter::{self, Combined};
use dml_compute::movement::copy;
use dml_compute::primitives::combine::Combine;
use dml_compute::spatial::dilation::{Wanted, Windows, dilate};
use dml_compute::{Dims, Scalar, View};
use dml_kernel::DType;

/// What an operator's attributes say.
struct Dilation {
    stride: Spatial,
    rate: Spatial,
    padding: Padding,
}

impl Dilation {
    fn new(attributes: &Attributes) -> Result<Self> {
        let list = |name: &str| Format::ChannelsLast.spatial_of(name, &attributes.ints(name)?, 2);
        let padding = match attributes.string("padding")?.as_str() {
            "SAME" => Padding::Same,
            "VALID" => Padding::Valid,
            other => return Err(Error::InvalidArgument(format!("Invalid padding: {other}"))),
        };
        Ok(Self { stride: list("strides")?, rate: list("rates")?, padding })
    }

    /// The windows, and the shape of the result.
    fn windows(&self, input: &View, filter: &View) -> Result<(Windows, Dims)> {
        require!(input.dim() == 4, "input must be 4-dimensional: {:?}", input.sizes);
        require!(filter.dim() == 3, "filter must be 3-dimensional: {:?}", filter.sizes);
        require!(
            input.sizes[3] == filter.sizes[2],
            "input and filter must have the same depth: {} vs {}",
            input.sizes[3],
            filter.sizes[2]
        );
        let (mut padding, mut sizes) = (Spatial::new(), Dims::from_slice(&[input.sizes[0]]));
        for d in 0..2 {
            let window = filter.sizes[d] + (filter.sizes[d] - 1) * (self.rate[d] - 1);
            let (count, before) = self.padding.windows(d, input.sizes[1 + d], window, self.stride[d])?;
            sizes.push(count);
            padding.push(before);
        }
        sizes.push(input.sizes[3]);
        let [stride, dilation, padding] =
            [&self.stride, &self.rate, &padding].map(|list| list.iter().copied().collect());
        Ok((Windows { stride, dilation, padding }, sizes))
    }
}

/// `Dilation2D`.
fn forward(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let dilation = Dilation::new(attributes)?;
    Ok(move |call: &Call| {
        let [input, filter] = [call.input(0)?, call.input(1)?];
        let (windows, sizes) = dilation.windows(&input, &filter)?;
        let out = call.output(0, &sizes)?;
        Ok(dilate(&call.cx(), &windows, &input, &filter, Wanted::Maximum(&out))?)
    })
}

/// `Dilation2DBackpropInput`, or `..Filter`: the gradient 2 goes to where the maxima are.
fn gradient(attributes: &Attributes, of_filter: bool) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let dilation = Dilation::new(attributes)?;
    Ok(move |call: &Call| {
        let (cx, grad) = (call.cx(), call.input(2)?);
        let [input, filter] = [call.input(0)?, call.input(1)?];
        let (windows, sizes) = dilation.windows(&input, &filter)?;
        require!(grad.sizes == sizes, "out_backprop has incompatible size: {:?}, expected {sizes:?}", grad.sizes);
        let out = call.output(0, if of_filter { &filter.sizes } else { &input.sizes })?;
        if out.numel() == 0 {
            return Ok(());
        }
        let dtype = accumulator(out.dtype);
        let sums = if out.dtype == dtype { out.clone() } else { cx.empty(dtype, &out.sizes)? };
        copy::fill_with(&cx, &sums, Scalar::Int(0))?;
        if grad.numel() > 0 {
            let row = |t: &View| t.as_strided(&[t.numel()], &[1], 0);
            let positions = cx.empty(DType::I64, &sizes)?;
            let wanted = Wanted::Position { out: &positions, in_window: of_filter };
            dilate(&cx, &windows, &input, &filter, wanted)?;
            let grad = row(&copy::cast(&cx, &grad, dtype)?);
            let how = Combined { combine: Some(Combine::Add), include_self: true };
            scatter::write(&cx, &row(&sums), 0, &row(&positions), Some(grad), Scalar::Int(0), how)?;
        }
        if out.dtype != dtype {
            copy::device_copy(&cx, &sums, &out)?;
        }
        Ok(())
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::new("Dilation2D", forward).of("T", FLOATS),
        Operator::new("Dilation2DBackpropInput", |attributes: &Attributes| gradient(attributes, false)).of("T", FLOATS),
        Operator::new("Dilation2DBackpropFilter", |attributes: &Attributes| gradient(attributes, true)).of("T", FLOATS),
    ]
}
