//! The steps of the optimizers, for one element of each operand: the variables, and then
//! TensorFlow's arguments in their order. The results are the variables.

use dml_compute::functions;
use dml_compute::pointwise::unary::sign;
use dml_kernel::math::comparison::maximum;
use dml_kernel::{Value, math};

/// A moving average, moved towards a value: as TensorFlow rounds it.
fn moved<'b>(average: Value<'b>, to: Value<'b>, decay: Value<'b>) -> Value<'b> {
    average + (to - average) * (1.0 - decay)
}

/// The learning rate of Adam with its corrections, from the powers of both betas.
fn corrected<'b>(rate: Value<'b>, power1: Value<'b>, power2: Value<'b>) -> Value<'b> {
    rate * math::sqrt(1.0 - power2) / (1.0 - power1)
}

/// The larger number: the first one where the other is NaN, as on TensorFlow's CPU and CUDA.
fn larger<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    x.lt(y).select(y, x)
}

/// A parameter that is drawn to 0: by `l1` where that is above 0, and by a factor.
fn shrunk<'b>(x: Value<'b>, rate: Value<'b>, l1: Value<'b>, l2: Value<'b>) -> Value<'b> {
    let less = sign(x) * maximum(x.abs() - rate * l1, x.like(0.0));
    l1.gt(0.0).select(less, x) / (1.0 + l2 * rate)
}

/// `x ^ -power`, where -1/2, the usual power, is a root.
fn rooted<'b>(x: Value<'b>, power: Value<'b>) -> Value<'b> {
    power.eq(-0.5).select(math::sqrt(x), math::pow(x, -power))
}

/// A step of FTRL, with the gradient that is added to the linear term. Results: the parameter, the
/// sum of squares and the linear term.
fn ftrl<'b>(
    [p, sum, linear, grad, rate, l1, l2, power]: [Value<'b>; 8],
    added: Value<'b>,
    multiplied_by_rate: bool,
) -> [Value<'b>; 3] {
    let new_sum = sum + grad * grad;
    let (root, new_root) = (rooted(sum, power), rooted(new_sum, power));
    let one = rate.like(1.0);
    // Either the linear term has the learning rate as a factor, or it is divided by it.
    let (factor, divisor) = if multiplied_by_rate { (rate, one) } else { (one, rate) };
    let new_linear = linear + (added * factor - (new_root - root) / divisor * p);
    let limit = l1 * factor;
    let step = (limit * sign(new_linear) - new_linear) / (new_root / divisor + 2.0 * l2 * factor);
    [new_linear.abs().gt(limit).select(step, p.like(0.0)), new_sum, new_linear]
}

functions! {
    /// A step against the gradient.
    GRADIENT_DESCENT = "tf_gradient_descent"(p, rate, grad) => p - rate * grad;
    /// A step of the proximal algorithm with a fixed learning rate.
    PROXIMAL_GRADIENT_DESCENT = "tf_proximal_gradient_descent"(p, rate, l1, l2, grad) => {
        shrunk(p - rate * grad, rate, l1, l2)
    };
    /// Momentum; Nesterov's with flag 0.
    MOMENTUM = "tf_momentum"(p, speed, rate, grad, momentum | o) => {
        let new_speed = speed * momentum + grad;
        let step = if o.flags[0] { grad * rate + new_speed * momentum * rate } else { new_speed * rate };
        [p - step, new_speed]
    };
    /// Momentum whose buffer has the learning rate; Nesterov's with flag 0.
    KERAS_MOMENTUM = "tf_keras_momentum"(p, speed, rate, grad, momentum | o) => {
        let new_speed = speed * momentum - grad * rate;
        let step = if o.flags[0] { new_speed * momentum - grad * rate } else { new_speed };
        [p + step, new_speed]
    };
    /// Adagrad; flag 0: the sum of squares is updated.
    ADAGRAD = "tf_adagrad"(p, sum, rate, grad | o) => {
        let new_sum = if o.flags[0] { sum + grad * grad } else { sum };
        [p - grad * rate * math::rsqrt(new_sum), new_sum]
    };
    /// Adagrad with an epsilon; flag 0: the sum of squares is updated.
    ADAGRAD_V2 = "tf_adagrad_v2"(p, sum, rate, epsilon, grad | o) => {
        let new_sum = if o.flags[0] { sum + grad * grad } else { sum };
        [p - grad * rate / (math::sqrt(new_sum) + epsilon), new_sum]
    };
    /// Adagrad by dual averaging: the parameter follows from the sums of gradients and of squares.
    ADAGRAD_DA = "tf_adagrad_da"(_p, sum, squares, grad, rate, l1, l2, step) => {
        let (new_sum, new_squares) = (sum + grad, squares + grad * grad);
        let less = sign(new_sum) * maximum(new_sum.abs() - l1 * step, sum.like(0.0));
        let kept = l1.gt(0.0).select(less, new_sum);
        [-(rate * kept) / (l2 * step * rate + math::sqrt(new_squares)), new_sum, new_squares]
    };
    /// Proximal Adagrad.
    PROXIMAL_ADAGRAD = "tf_proximal_adagrad"(p, sum, rate, l1, l2, grad) => {
        let new_sum = sum + grad * grad;
        let own_rate = rate * math::rsqrt(new_sum);
        [shrunk(p - grad * own_rate, own_rate, l1, l2), new_sum]
    };
    /// Adadelta.
    ADADELTA = "tf_adadelta"(p, squares, steps, rate, decay, epsilon, grad) => {
        let new_squares = squares * decay + grad * grad * (1.0 - decay);
        let step = math::sqrt(steps + epsilon) * math::rsqrt(new_squares + epsilon) * grad;
        [p - step * rate, new_squares, steps * decay + step * step * (1.0 - decay)]
    };
    /// Adam; Nesterov's with flag 0.
    ADAM = "tf_adam"(p, m, v, power1, power2, rate, beta1, beta2, epsilon, grad | o) => {
        let (new_m, new_v) = (moved(m, grad, beta1), moved(v, grad * grad, beta2));
        let ahead = if o.flags[0] { grad * (1.0 - beta1) + beta1 * new_m } else { new_m };
        [p - ahead * corrected(rate, power1, power2) / (math::sqrt(new_v) + epsilon), new_m, new_v]
    };
    /// Adam with the largest second moment so far.
    ADAM_WITH_AMSGRAD =
        "tf_adam_with_amsgrad"(p, m, v, most, power1, power2, rate, beta1, beta2, epsilon, grad) => {
        let (new_m, new_v) = (moved(m, grad, beta1), moved(v, grad * grad, beta2));
        let new_most = larger(most, new_v);
        let step = new_m * corrected(rate, power1, power2) / (math::sqrt(new_most) + epsilon);
        [p - step, new_m, new_v, new_most]
    };
    /// Adam with the infinity norm.
    ADA_MAX = "tf_ada_max"(p, m, v, power1, rate, beta1, beta2, epsilon, grad) => {
        let (new_m, new_v) = (moved(m, grad, beta1), larger(beta2 * v, grad.abs()));
        [p - rate / (1.0 - power1) * (new_m / (new_v + epsilon)), new_m, new_v]
    };
    /// RMSProp.
    RMS_PROP = "tf_rms_prop"(p, squares, speed, rate, decay, momentum, epsilon, grad) => {
        let new_squares = moved(squares, grad * grad, decay);
        let new_speed = speed * momentum + grad * rate / math::sqrt(new_squares + epsilon);
        [p - new_speed, new_squares, new_speed]
    };
    /// RMSProp with the estimate of the variance.
    CENTERED_RMS_PROP =
        "tf_centered_rms_prop"(p, means, squares, speed, rate, decay, momentum, epsilon, grad) => {
        let (new_means, new_squares) = (moved(means, grad, decay), moved(squares, grad * grad, decay));
        let variance = new_squares - new_means * new_means + epsilon;
        let new_speed = speed * momentum + grad * rate / math::sqrt(variance);
        [p - new_speed, new_means, new_squares, new_speed]
    };
    /// FTRL; flag 0: the linear term has the learning rate as a factor.
    FTRL = "tf_ftrl"(p, sum, linear, grad, rate, l1, l2, power | o).heavy() => {
        ftrl([p, sum, linear, grad, rate, l1, l2, power], grad, o.flags[0])
    };
    /// FTRL that shrinks the parameter too; flag 0 as for [`FTRL`].
    FTRL_V2 = "tf_ftrl_v2"(p, sum, linear, grad, rate, l1, l2, shrinkage, power | o).heavy() => {
        ftrl([p, sum, linear, grad, rate, l1, l2, power], grad + 2.0 * shrinkage * p, o.flags[0])
    };
    /// A step whose size depends on whether gradient and mean agree in their signs.
    ADD_SIGN = "tf_add_sign"(p, m, rate, alpha, decay, beta, grad) => {
        let new_m = m * beta + grad * (1.0 - beta);
        [p - rate * (alpha + decay * (sign(grad) * sign(new_m))) * grad, new_m]
    };
    /// [`ADD_SIGN`] with a power of the agreement.
    POWER_SIGN = "tf_power_sign"(p, m, rate, base, decay, beta, grad) => {
        let new_m = m * beta + grad * (1.0 - beta);
        [p - rate * math::exp(base * decay * (sign(grad) * sign(new_m))) * grad, new_m]
    };
}
