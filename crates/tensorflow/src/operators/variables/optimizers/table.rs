//! The optimizers: their names, arguments, attributes and steps.

use super::steps;
use crate::c_api::Attributes;
use crate::error::Result;
use dml_compute::pointwise::function::{Function, Variant};

/// An optimizer.
pub struct Optimizer {
    /// The names of the operator on resources and of that on references; empty where TensorFlow has
    /// none.
    pub names: [&'static str; 2],
    /// The same for gradients of some rows.
    pub sparse_names: [&'static str; 2],
    /// The variables' names: the first inputs.
    pub variables: &'static [&'static str],
    /// The names of the other inputs. All except the gradient are single numbers.
    pub arguments: &'static [&'static str],
    /// The attribute that is the step's flag 0.
    pub flag: Option<&'static str>,
    /// The step.
    pub step: &'static Function,
}

impl Optimizer {
    /// Whether an argument is the gradient.
    pub fn is_gradient(argument: &str) -> bool {
        matches!(argument, "grad" | "delta")
    }

    /// The step of a node: with the flag of its attribute.
    pub fn variant(&self, attributes: &Attributes) -> Result<Variant> {
        let flag = match self.flag {
            Some(attribute) => attributes.bool(attribute)?,
            None => false,
        };
        Ok(self.step.with([flag]))
    }
}

/// All optimizers.
pub static OPTIMIZERS: &[Optimizer] = &[
    Optimizer {
        names: ["ResourceApplyGradientDescent", "ApplyGradientDescent"],
        sparse_names: ["", ""],
        variables: &["var"],
        arguments: &["alpha", "delta"],
        flag: None,
        step: &steps::GRADIENT_DESCENT,
    },
    Optimizer {
        names: ["ResourceApplyProximalGradientDescent", "ApplyProximalGradientDescent"],
        sparse_names: ["ResourceSparseApplyProximalGradientDescent", "SparseApplyProximalGradientDescent"],
        variables: &["var"],
        arguments: &["alpha", "l1", "l2", "delta"],
        flag: None,
        step: &steps::PROXIMAL_GRADIENT_DESCENT,
    },
    Optimizer {
        names: ["ResourceApplyMomentum", "ApplyMomentum"],
        sparse_names: ["ResourceSparseApplyMomentum", "SparseApplyMomentum"],
        variables: &["var", "accum"],
        arguments: &["lr", "grad", "momentum"],
        flag: Some("use_nesterov"),
        step: &steps::MOMENTUM,
    },
    Optimizer {
        names: ["ResourceApplyKerasMomentum", ""],
        sparse_names: ["ResourceSparseApplyKerasMomentum", ""],
        variables: &["var", "accum"],
        arguments: &["lr", "grad", "momentum"],
        flag: Some("use_nesterov"),
        step: &steps::KERAS_MOMENTUM,
    },
    Optimizer {
        names: ["ResourceApplyAdagrad", "ApplyAdagrad"],
        sparse_names: ["ResourceSparseApplyAdagrad", "SparseApplyAdagrad"],
        variables: &["var", "accum"],
        arguments: &["lr", "grad"],
        flag: Some("update_slots"),
        step: &steps::ADAGRAD,
    },
    Optimizer {
        names: ["ResourceApplyAdagradV2", "ApplyAdagradV2"],
        sparse_names: ["ResourceSparseApplyAdagradV2", "SparseApplyAdagradV2"],
        variables: &["var", "accum"],
        arguments: &["lr", "epsilon", "grad"],
        flag: Some("update_slots"),
        step: &steps::ADAGRAD_V2,
    },
    Optimizer {
        names: ["ResourceApplyAdagradDA", "ApplyAdagradDA"],
        sparse_names: ["ResourceSparseApplyAdagradDA", "SparseApplyAdagradDA"],
        variables: &["var", "gradient_accumulator", "gradient_squared_accumulator"],
        arguments: &["grad", "lr", "l1", "l2", "global_step"],
        flag: None,
        step: &steps::ADAGRAD_DA,
    },
    Optimizer {
        names: ["ResourceApplyProximalAdagrad", "ApplyProximalAdagrad"],
        sparse_names: ["ResourceSparseApplyProximalAdagrad", "SparseApplyProximalAdagrad"],
        variables: &["var", "accum"],
        arguments: &["lr", "l1", "l2", "grad"],
        flag: None,
        step: &steps::PROXIMAL_ADAGRAD,
    },
    Optimizer {
        names: ["ResourceApplyAdadelta", "ApplyAdadelta"],
        sparse_names: ["ResourceSparseApplyAdadelta", "SparseApplyAdadelta"],
        variables: &["var", "accum", "accum_update"],
        arguments: &["lr", "rho", "epsilon", "grad"],
        flag: None,
        step: &steps::ADADELTA,
    },
    Optimizer {
        names: ["ResourceApplyAdam", "ApplyAdam"],
        sparse_names: ["", ""],
        variables: &["var", "m", "v"],
        arguments: &["beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"],
        flag: Some("use_nesterov"),
        step: &steps::ADAM,
    },
    Optimizer {
        names: ["ResourceApplyAdamWithAmsgrad", ""],
        sparse_names: ["", ""],
        variables: &["var", "m", "v", "vhat"],
        arguments: &["beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"],
        flag: None,
        step: &steps::ADAM_WITH_AMSGRAD,
    },
    Optimizer {
        names: ["ResourceApplyAdaMax", "ApplyAdaMax"],
        sparse_names: ["", ""],
        variables: &["var", "m", "v"],
        arguments: &["beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"],
        flag: None,
        step: &steps::ADA_MAX,
    },
    Optimizer {
        names: ["ResourceApplyRMSProp", "ApplyRMSProp"],
        sparse_names: ["ResourceSparseApplyRMSProp", "SparseApplyRMSProp"],
        variables: &["var", "ms", "mom"],
        arguments: &["lr", "rho", "momentum", "epsilon", "grad"],
        flag: None,
        step: &steps::RMS_PROP,
    },
    Optimizer {
        names: ["ResourceApplyCenteredRMSProp", "ApplyCenteredRMSProp"],
        sparse_names: ["ResourceSparseApplyCenteredRMSProp", "SparseApplyCenteredRMSProp"],
        variables: &["var", "mg", "ms", "mom"],
        arguments: &["lr", "rho", "momentum", "epsilon", "grad"],
        flag: None,
        step: &steps::CENTERED_RMS_PROP,
    },
    Optimizer {
        names: ["ResourceApplyFtrl", "ApplyFtrl"],
        sparse_names: ["ResourceSparseApplyFtrl", "SparseApplyFtrl"],
        variables: &["var", "accum", "linear"],
        arguments: &["grad", "lr", "l1", "l2", "lr_power"],
        flag: Some("multiply_linear_by_lr"),
        step: &steps::FTRL,
    },
    Optimizer {
        names: ["ResourceApplyFtrlV2", "ApplyFtrlV2"],
        sparse_names: ["ResourceSparseApplyFtrlV2", "SparseApplyFtrlV2"],
        variables: &["var", "accum", "linear"],
        arguments: &["grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"],
        flag: Some("multiply_linear_by_lr"),
        step: &steps::FTRL_V2,
    },
    Optimizer {
        names: ["ResourceApplyAddSign", "ApplyAddSign"],
        sparse_names: ["", ""],
        variables: &["var", "m"],
        arguments: &["lr", "alpha", "sign_decay", "beta", "grad"],
        flag: None,
        step: &steps::ADD_SIGN,
    },
    Optimizer {
        names: ["ResourceApplyPowerSign", "ApplyPowerSign"],
        sparse_names: ["", ""],
        variables: &["var", "m"],
        arguments: &["lr", "logbase", "sign_decay", "beta", "grad"],
        flag: None,
        step: &steps::POWER_SIGN,
    },
];
