//! Fused optimizer steps: one launch reads and writes all parameters and their states.

use crate::context::Context;
use crate::error::Result;
use crate::lists::functions::{FUSED_ADAGRAD, FUSED_ADAM, FUSED_SGD};
use crate::lists::multi_tensor;
use crate::lists::multi_tensor::batch::Row;
use crate::pointwise::division::DIV;
use crate::pointwise::kernel::{Input, Operand};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::{DType, Value};
use smallvec::SmallVec;

/// Where the weight decay is applied.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Decay {
    /// It is added to the gradient, as in Adam.
    Gradient,
    /// It is subtracted from the parameter, as in AdamW.
    Parameter,
}

/// Of a step, what all parameters share.
pub struct Shared<'t> {
    /// The learning rate: a number, or a tensor of one element.
    pub rate: Input,
    /// The factor of the parameters that is added to the gradients, or what else it changes.
    pub weight_decay: f64,
    /// The step goes up the gradient.
    pub maximize: bool,
    /// The loss scale (one float32), by which the gradients are divided first, in place.
    pub scale: Option<&'t View>,
    /// Nothing is changed where it is not 0 (one float32).
    pub found: Option<&'t View>,
}

impl Shared<'_> {
    /// Inputs of all parameters: `found`, the learning rate, and numbers.
    fn inputs<const N: usize>(&self, numbers: [f64; N]) -> SmallVec<[Input; 12]> {
        let mut all: SmallVec<[Input; 12]> = self.found.map(|t| Input::Tensor(t.clone())).into_iter().collect();
        all.push(self.rate.clone());
        // Each kernel takes a number in the dtype of its parameters.
        all.extend(numbers.map(|x| Input::Number(Number::Double(x), DType::F64)));
        all
    }

    fn sign(&self) -> f64 {
        if self.maximize { -1.0 } else { 1.0 }
    }

    fn decays(&self) -> bool {
        self.weight_decay != 0.0
    }

    /// Divides the gradients by the loss scale, in place.
    fn unscale(&self, cx: &Context, grads: &[&View]) -> Result<()> {
        let Some(scale) = self.scale else { return Ok(()) };
        let rows: Vec<Row> = grads.iter().map(|&grad| Row::in_place(grad)).collect();
        multi_tensor::run(cx, (&DIV).into(), &rows, &[Input::Tensor(scale.clone())])
    }
}

/// A step of Adam (D. Kingma and J. Ba, 2015) or AdamW (I. Loshchilov and F. Hutter, 2019). Lists
/// have a tensor for each parameter, of its shape and dtype.
pub struct Adam<'l, 't> {
    /// The parameters.
    pub params: &'l [&'t View],
    /// Their gradients.
    pub grads: &'l [&'t View],
    /// Running averages of the gradients.
    pub averages: &'l [&'t View],
    /// Running averages of their squares.
    pub squares: &'l [&'t View],
    /// The largest of the latter (AMSGrad), or none.
    pub largest: &'l [&'t View],
    /// The numbers of steps, this one counted: one float32 each.
    pub steps: &'l [&'t View],
    /// The factors of the averages.
    pub betas: [f64; 2],
    /// Is added to roots.
    pub eps: f64,
    /// What the weight decay changes.
    pub decay: Decay,
}

impl Adam<'_, '_> {
    /// Takes the step.
    pub fn run(&self, cx: &Context, shared: &Shared) -> Result<()> {
        shared.unscale(cx, self.grads)?;
        let of_parameter = self.decay == Decay::Parameter;
        let step = FUSED_ADAM.with([!self.largest.is_empty(), shared.found.is_some(), of_parameter, shared.decays()]);
        // The bias corrections are 1 - beta^step: by the logarithm, which loses no digits where
        // beta is close to 1.
        let [beta1, beta2] = self.betas;
        let (decay, sign) = (shared.weight_decay, shared.sign());
        let numbers = [1.0 - beta1, beta2, 1.0 - beta2, beta1.ln(), beta2.ln(), decay, self.eps, sign];
        let rows: Vec<Row> = (0..self.params.len())
            .map(|i| {
                let (param, average, square) = (self.params[i], self.averages[i], self.squares[i]);
                match self.largest.get(i) {
                    None => row(&[param, average, square], self.grads[i], &[self.steps[i]]),
                    Some(largest) => row(&[param, average, square, largest], self.grads[i], &[self.steps[i]]),
                }
            })
            .collect();
        multi_tensor::run(cx, step, &rows, &shared.inputs(numbers))
    }
}

/// A step of Adagrad (J. Duchi, E. Hazan and Y. Singer, 2011). Lists have a tensor for each
/// parameter, of its shape and dtype.
pub struct Adagrad<'l, 't> {
    /// The parameters.
    pub params: &'l [&'t View],
    /// Their gradients.
    pub grads: &'l [&'t View],
    /// Sums of the squares of the gradients.
    pub sums: &'l [&'t View],
    /// The numbers of steps, this one counted: one float32 each.
    pub steps: &'l [&'t View],
    /// What the learning rate decays by.
    pub rate_decay: f64,
    /// Is added to roots.
    pub eps: f64,
}

impl Adagrad<'_, '_> {
    /// Takes the step.
    pub fn run(&self, cx: &Context, shared: &Shared) -> Result<()> {
        shared.unscale(cx, self.grads)?;
        let numbers = [self.rate_decay, shared.weight_decay, self.eps, shared.sign()];
        let rows: Vec<Row> = (0..self.params.len())
            .map(|i| row(&[self.params[i], self.sums[i]], self.grads[i], &[self.steps[i]]))
            .collect();
        let step = FUSED_ADAGRAD.with([shared.found.is_some(), shared.decays()]);
        multi_tensor::run(cx, step, &rows, &shared.inputs(numbers))
    }
}

/// A step of stochastic gradient descent, with momentum if there are buffers. Lists have a tensor
/// for each parameter, of its shape and dtype.
pub struct GradientDescent<'l, 't> {
    /// The parameters.
    pub params: &'l [&'t View],
    /// Their gradients.
    pub grads: &'l [&'t View],
    /// What is left of the gradients before, or none.
    pub buffers: &'l [&'t View],
    /// The factor of the buffers; 0 without them.
    pub momentum: f64,
    /// What the gradients lack in the buffers.
    pub dampening: f64,
    /// Nesterov's momentum.
    pub nesterov: bool,
    /// The buffers have no values yet.
    pub first: bool,
}

impl GradientDescent<'_, '_> {
    /// Takes the step.
    pub fn run(&self, cx: &Context, shared: &Shared) -> Result<()> {
        shared.unscale(cx, self.grads)?;
        let (momentum, found) = (self.momentum != 0.0, shared.found.is_some());
        let step = FUSED_SGD.with([momentum, self.nesterov, self.first, found, shared.decays()]);
        let numbers = [shared.weight_decay, self.momentum, 1.0 - self.dampening, shared.sign()];
        let rows: Vec<Row> = (0..self.params.len())
            .map(|i| match self.buffers.get(i) {
                None => row(&[self.params[i]], self.grads[i], &[]),
                Some(buffer) => row(&[self.params[i], buffer], self.grads[i], &[]),
            })
            .collect();
        multi_tensor::run(cx, step, &rows, &shared.inputs(numbers))
    }
}

/// One parameter's results, which are inputs as well, and its other inputs: the gradient comes
/// second.
fn row<'t>(outs: &[&'t View], grad: &'t View, others: &[&'t View]) -> Row<'t> {
    let inputs = std::iter::once(outs[0]).chain([grad]).chain(outs[1..].iter().copied()).chain(others.iter().copied());
    Row { outs: SmallVec::from_slice(outs), inputs: inputs.map(Operand::Tensor).collect(), common: outs[0].dtype }
}

/// The gradient plus the weight decay. Only for a weight decay that is not 0, since 0 times an
/// infinite parameter is NaN.
pub(super) fn decayed<'b>(grad: Value<'b>, weight_decay: Value<'b>, p: Value<'b>) -> Value<'b> {
    grad + weight_decay * p
}

/// Replaces the results by the values before the step if `found` is not 0. `before` is the
/// parameter, the gradient, and the states.
pub(super) fn skip_where<'b>(found: Value<'b>, results: &mut [Value<'b>], before: &[Value<'b>]) {
    let skip = found.ne(0);
    for (i, result) in results.iter_mut().enumerate() {
        *result = skip.select(before[if i == 0 { 0 } else { i + 1 }], *result);
    }
}
