//! Dropout of attention's weights as a kernel's parameter.

use crate::primitives::kernel::{InDType, Input};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::F32;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, Value};

/// Neighbouring keys of a query that share one block of random words.
pub const KEYS_PER_RANDOM_BLOCK: u32 = 4;

/// Kernel parameter: dropout of attention weights. The kernel draws a random number for each
/// weight.
pub struct Dropout;

/// Argument for [`Dropout`].
pub struct DropoutArgument<'a> {
    /// Seed and offset of the random numbers, int64 scalars on the device.
    pub random: &'a [View; 2],
    /// Probability that a weight is dropped.
    pub probability: f64,
}

/// [`Dropout`] in a kernel: the generator's state, the probability to keep a weight, and the factor
/// of the weights that are kept.
pub struct DropoutParams<'b> {
    /// Pointer to the generator's seed.
    pub seed: Pointer<'b>,
    /// Pointer to the number of the first block of random words.
    pub offset: Pointer<'b>,
    /// Probability that a weight is kept (f32).
    pub keep: Value<'b>,
    /// Factor of the weights that are kept, `1 / keep`; 0 if every weight is dropped.
    pub boost: Value<'b>,
}

impl Parameter for Dropout {
    /// The dtype in which sums are computed; `boost` has it too.
    type Type = DType;
    type Argument<'a> = DropoutArgument<'a>;
    type Declared<'b> = DropoutParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, sums: &DType) -> DropoutParams<'b> {
        DropoutParams {
            seed: Input::declare(b, "seed", &DType::I64),
            offset: Input::declare(b, "offset", &DType::I64),
            keep: F32::declare(b, "keep", &()),
            boost: InDType::declare(b, "boost", sums),
        }
    }

    fn pass(dropping: &DropoutArgument<'_>, sums: &DType, block: &mut ArgumentBlock) {
        let keep = 1.0 - dropping.probability;
        let boost = if dropping.probability == 1.0 { 0.0 } else { 1.0 / keep };
        for state in dropping.random {
            Input::pass(&state, &DType::I64, block);
        }
        F32::pass(&(keep as f32), &(), block);
        InDType::pass(&Number::Double(boost), sums, block);
    }
}
