//! Dropout of attention's weights as a kernel's parameter.

use crate::primitives::kernel::{InDType, Input};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::F32;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, Value};

/// Neighbouring keys of a query that share a block of random words.
pub const DROPPED_TOGETHER: u32 = 4;

/// Random numbers, and what is kept of them.
pub struct Dropout;

/// Dropout in one launch.
pub struct Dropping<'a> {
    /// Seed and offset of the random numbers, int64 scalars on the device.
    pub random: &'a [View; 2],
    /// The share of weights that is dropped.
    pub probability: f64,
}

/// [`Dropout`] in a kernel: the generator's state, the share that is kept, and its factor.
pub struct DropoutParams<'b> {
    /// Seed.
    pub seed: Pointer<'b>,
    /// Number of the first block of random words.
    pub offset: Pointer<'b>,
    /// The share of weights that is kept (f32).
    pub keep: Value<'b>,
    /// Factor of kept weights.
    pub boost: Value<'b>,
}

impl Parameter for Dropout {
    /// Of sums, and of the factor.
    type Type = DType;
    type Argument<'a> = Dropping<'a>;
    type Declared<'b> = DropoutParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, sums: &DType) -> DropoutParams<'b> {
        DropoutParams {
            seed: Input::declare(b, "seed", &DType::I64),
            offset: Input::declare(b, "offset", &DType::I64),
            keep: F32::declare(b, "keep", &()),
            boost: InDType::declare(b, "boost", sums),
        }
    }

    fn pass(dropping: &Dropping<'_>, sums: &DType, block: &mut ArgumentBlock) {
        let keep = 1.0 - dropping.probability;
        let boost = if dropping.probability == 1.0 { 0.0 } else { 1.0 / keep };
        for state in dropping.random {
            Input::pass(&state, &DType::I64, block);
        }
        F32::pass(&(keep as f32), &(), block);
        InDType::pass(&Number::Double(boost), sums, block);
    }
}
