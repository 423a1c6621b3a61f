//! Local response normalisation: over neighbouring channels (A. Krizhevsky et al., "ImageNet
//! classification with deep convolutional neural networks", 2012).

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::require;
use dml_compute::Scalar;
use dml_compute::View;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::spatial::pooling::average::{self, Divisor};
use dml_compute::spatial::pooling::window::Windows;
use dml_kernel::{DType, math};

dml_compute::functions! {
    /// `x²`
    SQUARE_OF = "square_of"(x) => x * x;
    /// `x * (bias + alpha * sum)^-beta`
    LOCAL_RESPONSE = "local_response"(x, sum, bias, alpha, beta) => x * math::pow(bias + alpha * sum, -beta);
    /// `grad * y / (bias + alpha * sum)`
    LOCAL_RESPONSE_TERM = "local_response_term"(grad, y, sum, bias, alpha) => grad * y / (bias + alpha * sum);
    /// `grad * (bias + alpha * sum)^-beta - 2 * alpha * beta * x * terms`
    LOCAL_RESPONSE_BACKWARD = "local_response_backward"(grad, x, sum, terms, bias, alpha, beta) => {
        grad * math::pow(bias + alpha * sum, -beta) - 2.0 * alpha * beta * x * terms
    };
}

/// What an operator's attributes say.
struct Normalization {
    radius: i64,
    bias: Input,
    alpha: Input,
    beta: Input,
}

impl Normalization {
    fn new(attributes: &Attributes) -> Result<Self> {
        let number = |name: &str| -> Result<Input> {
            Ok(Input::Number(Scalar::Double(f64::from(attributes.float(name)?)), DType::F32))
        };
        let radius = attributes.int("depth_radius")?;
        require!((0..1 << 30).contains(&radius), "depth_radius = {radius} is not in range");
        Ok(Self { radius, bias: number("bias")?, alpha: number("alpha")?, beta: number("beta")? })
    }

    /// The sum of a function's values over neighbouring channels.
    fn sums(&self, call: &Call, terms: &View) -> Result<View> {
        let (cx, channels) = (call.cx(), terms.sizes[3]);
        let sums = cx.empty(DType::F32, &terms.sizes)?;
        let radius = self.radius.min(channels);
        let windows = Windows {
            kernel: [1, 2 * radius + 1].into_iter().collect(),
            stride: [1, 1].into_iter().collect(),
            padding: [0, radius].into_iter().collect(),
            dilation: [1, 1].into_iter().collect(),
            ceil: false,
        };
        // A row of channels is an image of one row.
        let rows = |t: &View| {
            let sizes = [t.numel() / channels, 1, 1, channels];
            t.as_strided(&sizes, &View::contiguous_strides(&sizes), 0)
        };
        average::pool(&cx, false, &windows, Divisor::Given, 1, &rows(terms), &rows(&sums))?;
        Ok(sums)
    }

    /// The sums of squares of an input's neighbouring channels.
    fn squares(&self, call: &Call, x: &View) -> Result<View> {
        let squares = call.cx().empty(DType::F32, &x.sizes)?;
        kernel::run(&call.cx(), &SQUARE_OF, &[&squares], &[Input::Tensor(x.clone())], DType::F32)?;
        self.sums(call, &squares)
    }
}

/// `LRN`.
fn forward(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let n = Normalization::new(attributes)?;
    Ok(move |call: &Call| {
        let x = call.input(0)?;
        require!(x.dim() == 4, "in must be 4-dimensional: {:?}", x.sizes);
        let out = call.output(0, &x.sizes)?;
        if out.numel() == 0 {
            return Ok(());
        }
        let sum = Input::Tensor(n.squares(call, &x)?);
        let operands = [Input::Tensor(x), sum, n.bias.clone(), n.alpha.clone(), n.beta.clone()];
        Ok(kernel::run(&call.cx(), &LOCAL_RESPONSE, &[&out], &operands, DType::F32)?)
    })
}

/// `LRNGrad`: of the input 1, given the result 2 and its gradient 0.
fn gradient(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let n = Normalization::new(attributes)?;
    Ok(move |call: &Call| {
        let [grad, x, y] = [call.input(0)?, call.input(1)?, call.input(2)?];
        require!(x.dim() == 4, "in must be 4-dimensional: {:?}", x.sizes);
        require!(
            grad.sizes == x.sizes && y.sizes == x.sizes,
            "input_grads, input_image, and out_image should have the same shape"
        );
        let out = call.output(0, &x.sizes)?;
        if out.numel() == 0 {
            return Ok(());
        }
        let sum = Input::Tensor(n.squares(call, &x)?);
        let terms = call.cx().empty(DType::F32, &x.sizes)?;
        let [grad, x, y] = [grad, x, y].map(Input::Tensor);
        let operands = [grad.clone(), y, sum.clone(), n.bias.clone(), n.alpha.clone()];
        kernel::run(&call.cx(), &LOCAL_RESPONSE_TERM, &[&terms], &operands, DType::F32)?;
        let terms = Input::Tensor(n.sums(call, &terms)?);
        let operands = [grad, x, sum, terms, n.bias.clone(), n.alpha.clone(), n.beta.clone()];
        Ok(kernel::run(&call.cx(), &LOCAL_RESPONSE_BACKWARD, &[&out], &operands, DType::F32)?)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::new("LRN", forward).of("T", &[DType::F32]),
        Operator::new("LRNGrad", gradient).of("T", &[DType::F32]),
    ]
}
