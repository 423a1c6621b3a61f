//! Convolutions with what follows them, as TensorFlow's optimiser joins them: a bias, an addend
//! or a normalisation by constants, and an activation.

use super::convolutions::Convolution;
use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::require;
use dml_compute::convolution::passes;
use dml_compute::convolution::winograd::choice::Pass;
use dml_compute::dtype::accumulator;
use dml_compute::normalization::channels::of_channels;
use dml_compute::normalization::statistics::inverse_deviation;
use dml_compute::normalization::terms::NormalizationTerms;
use dml_compute::pointwise::activation::{LEAKY_RELU, RELU};
use dml_compute::pointwise::arithmetic;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::pointwise::unary::{SIGMOID, TANH};
use dml_compute::{Scalar, View};
use dml_kernel::math::comparison::{less, maximum, minimum};
use dml_kernel::{DType, math};

dml_compute::functions! {
    /// `x` between 0 and 6.
    RELU_6 = "relu_6"(x) => minimum(maximum(x, x.like(0.0)), x.like(6.0));
    /// `x` from 0 on, else `e^x - 1`.
    ELU_1 = "elu_1"(x) => less(x, x.like(0.0)).select(math::expm1(x), x);
}

/// The last step.
#[derive(Copy, Clone)]
enum Activation {
    /// A function.
    Function(&'static Function),
    /// A line of this slope below 0.
    Leaky(f64),
}

/// What an operator's attributes say.
struct Fused {
    convolution: Convolution,
    /// A vector is added, else the result is normalised by constants.
    bias: bool,
    /// A tensor is added.
    addend: bool,
    epsilon: f64,
    activation: Option<Activation>,
}

impl Fused {
    fn new(attributes: &Attributes) -> Result<Self> {
        let steps = attributes.strings("fused_ops")?;
        let mut names = steps.iter().map(String::as_str).peekable();
        let unknown = || Error::Unimplemented(format!("Fusion is not implemented: {steps:?}"));
        let bias = match names.next() {
            Some("BiasAdd") => true,
            Some("FusedBatchNorm") => false,
            _ => return Err(unknown()),
        };
        let addend = bias && names.next_if_eq(&"Add").is_some();
        let activation = match names.next() {
            None => None,
            Some("Relu") => Some(Activation::Function(&RELU)),
            Some("Relu6") => Some(Activation::Function(&RELU_6)),
            Some("Elu") => Some(Activation::Function(&ELU_1)),
            Some("Tanh") => Some(Activation::Function(&TANH)),
            Some("Sigmoid") => Some(Activation::Function(&SIGMOID)),
            Some("LeakyRelu") => Some(Activation::Leaky(f64::from(attributes.float("leakyrelu_alpha")?))),
            Some(_) => return Err(unknown()),
        };
        let count = match (bias, addend) {
            (false, _) => 4,
            (true, addend) => 1 + i64::from(addend),
        };
        require!(
            names.next().is_none() && attributes.int("num_args")? == count,
            "Fused Conv2D of {steps:?} must have {count} extra arguments"
        );
        require!(attributes.string("filter_format")? == "HWIO", "filters must be of the format HWIO");
        let convolution = Convolution::new(attributes, 2, false)?;
        Ok(Self { convolution, bias, addend, epsilon: f64::from(attributes.float("epsilon")?), activation })
    }

    fn run(&self, call: &Call) -> Result<()> {
        let (cx, c) = (call.cx(), &self.convolution);
        let [input, filter] = [call.input(0)?, call.input(1)?];
        let g = c.geometry(&input.sizes, &filter.sizes)?;
        let sizes = c.result(&g);
        let out = call.output(0, &sizes)?;
        let channels = g.outer.0 * g.groups;
        let vector = |i: usize| -> Result<View> {
            let t = call.input(i)?;
            require!(t.sizes.as_slice() == [channels], "argument {i} must have {channels} elements: {:?}", t.sizes);
            Ok(t)
        };
        let bias = if self.bias { Some(vector(2)?) } else { None };
        let addend = if self.addend { Some(call.input(3)?) } else { None };
        if let Some(addend) = &addend {
            require!(addend.sizes == sizes, "the addend has shape {:?}, the result {sizes:?}", addend.sizes);
        }
        if out.numel() == 0 {
            return Ok(());
        }
        let (images, result) = (c.images(call, &g, &input, &[Pass::Forward])?, c.format.image(&out));
        let at_once = match self.activation {
            Some(Activation::Function(function)) if self.bias && !self.addend => Some(function),
            _ => None,
        };
        passes::forward_then(
            &cx,
            &g,
            &images,
            &c.weight(&filter),
            &result,
            bias.as_ref(),
            at_once.map(|function| (function.into(), &[][..])),
        )?;
        let over = |function: &'static Function, more: Option<Input>| -> Result<()> {
            let operands: Vec<Input> = [Input::Tensor(out.clone())].into_iter().chain(more).collect();
            Ok(kernel::run(&cx, function, &[&out], &operands, out.dtype)?)
        };
        if !self.bias {
            let [weight, bias, mean, variance] = [vector(2)?, vector(3)?, vector(4)?, vector(5)?];
            let scale = cx.empty(accumulator(out.dtype), &[channels])?;
            inverse_deviation(&cx, &variance, self.epsilon, &scale)?;
            let [mean, scale, weight, bias] = [&mean, &scale, &weight, &bias].map(|t| Some(of_channels(t, &result)));
            NormalizationTerms { mean, scale, weight, bias }.normalize(&cx, &result, &result)?;
        }
        if let Some(addend) = addend {
            over(&arithmetic::ADD, Some(Input::Tensor(addend)))?;
        }
        match self.activation {
            Some(Activation::Function(function)) if at_once.is_none() => over(function, None),
            Some(Activation::Leaky(slope)) => over(&LEAKY_RELU, Some(Input::Number(Scalar::Double(slope), out.dtype))),
            _ => Ok(()),
        }
    }
}

/// `_FusedConv2D`.
fn fused(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let fused = Fused::new(attributes)?;
    Ok(move |call: &Call| fused.run(call))
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let floats: &[DType] = &[DType::F32, DType::F16, DType::F64];
    vec![Operator::new("_FusedConv2D", fused).of("T", floats).on_host(&["host_args"])]
}
