//! What the kernels of a product take, whichever way they compute it.

use crate::matmul::epilogue::{Epilogue, FinishSpec, Finishing};
use crate::matmul::guard::{Guard, Tiles};
use crate::matmul::operand::Access;
use crate::matmul::reader::Operand;
use crate::matmul::split_k::SplitK;
use dml_engine::interface::{ReadRange, U32, WriteRange};
use dml_engine::{ArgumentBlock, Interface, Parameter, parameters};
use dml_kernel::{Builder, DType, ScalarType};

/// What changes the code of every kernel of a product.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProductSpec {
    /// The first operand: m and k.
    pub a: Access,
    /// The second operand: n and k.
    pub b: Access,
    /// What happens to sums.
    pub epilogue: Epilogue,
    /// Type of offsets inside a tile: u32 or u64.
    pub index: ScalarType,
    /// k is no multiple of the step in which the kernel walks along it.
    pub ragged_k: bool,
    /// k is divided among workgroups.
    pub split_k: bool,
    /// Another launch computes some of the tiles.
    pub guard: Option<Tiles>,
}

impl ProductSpec {
    /// The dtype of sums.
    pub fn sums(&self) -> DType {
        self.a.sums()
    }
}

parameters! {
    /// A product as its kernels take it.
    pub ProductSpec as s => ProductArguments, ProductParams {
        /// The first operand.
        a: ReadRange = s.a.dtype,
        /// The second operand.
        b: ReadRange = s.b.dtype,
        /// The result, or split-K's sums.
        out: WriteRange = s.epilogue.dtype,
        /// What is added.
        bias: Option<ReadRange> = s.epilogue.bias,
        /// Rows of the result.
        m: U32,
        /// Columns of the result.
        n: U32,
        /// Length of the inner dimension.
        k: U32,
        /// Where the first operand's elements lie.
        a_elements: Operand = (s.a, s.index),
        /// Where the second operand's elements lie.
        b_elements: Operand = (s.b, s.index),
        /// What happens to sums.
        finish: Finishing = FinishSpec { epilogue: s.epilogue, sums: s.sums(), index: s.index },
        /// How k is divided among workgroups.
        split_k: Option<SplitK> = s.split_k.then_some(()),
        /// Which tiles are another launch's.
        guard: Option<Guard> = s.guard,
    }
}

/// A product as one parameter of a kernel.
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
