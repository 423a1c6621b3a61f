//! The parameters that all kernels of a product share.

use crate::matmul::epilogue::Epilogue;
use crate::matmul::guard::{Guard, Tiles};
use crate::matmul::operand::Access;
use crate::matmul::reader::Operand;
use crate::matmul::split_k::SplitK;
use dml_engine::interface::{Each, ReadRange, U32, WriteRange};
use dml_engine::{ArgumentBlock, Interface, Parameter, parameters};
use dml_kernel::{Builder, DType, ScalarType};

/// The part of a product's specialisation that all kernels share.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProductSpec {
    /// The first operand, with indices m and k.
    pub a: Access,
    /// The second operand, with indices n and k.
    pub b: Access,
    /// The epilogue.
    pub epilogue: Epilogue,
    /// Integer type of offsets inside a tile: u32 or u64.
    pub index: ScalarType,
    /// Whether k is not a multiple of the kernel's step along k.
    pub has_k_remainder: bool,
    /// Whether ranges of k are computed by separate workgroups.
    pub split_k: bool,
    /// Whether another launch computes some of the tiles, and which ones this launch computes.
    pub guard: Option<Tiles>,
}

impl ProductSpec {
    /// The dtype of accumulators.
    pub fn sums(&self) -> DType {
        self.a.sums()
    }
}

parameters! {
    /// The parameters of a product's kernels.
    pub ProductSpec as s => ProductArguments, ProductParams {
        /// The first operand.
        a: ReadRange = s.a.dtype,
        /// The second operand.
        b: ReadRange = s.b.dtype,
        /// The result, or split-K's partial sums.
        out: WriteRange = s.epilogue.dtype,
        /// The bias that is added.
        bias: Option<ReadRange> = s.epilogue.bias,
        /// The tensors that the epilogue reads.
        tensors: Each<ReadRange> = s.epilogue.tensor_dtypes(),
        /// Rows of the result.
        m: U32,
        /// Columns of the result.
        n: U32,
        /// Length of the inner dimension.
        k: U32,
        /// Offsets of the first operand's elements.
        a_elements: Operand = (s.a, s.index),
        /// Offsets of the second operand's elements.
        b_elements: Operand = (s.b, s.index),
        /// The epilogue.
        epilogue: Epilogue = (s.epilogue, s.sums(), s.index),
        /// The ranges of k.
        split_k: Option<SplitK> = s.split_k.then_some(()),
        /// The tiles that another launch computes.
        guard: Option<Guard> = s.guard,
    }
}

/// Kernel parameter: a whole product.
pub struct Product;

impl Parameter for Product {
    type Type = ProductSpec;
    type Argument<'a> = ProductArguments<'a>;
    type Declared<'b> = ProductParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, of: &ProductSpec) -> ProductParams<'b> {
        of.declare(b)
    }

    #[inline]
    fn pass(product: &ProductArguments<'_>, of: &ProductSpec, block: &mut ArgumentBlock) {
        of.pass(product, block);
    }
}
