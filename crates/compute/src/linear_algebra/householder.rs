//! Products of Householder reflections `I - tau v v^H`, in blocks `I - V T V^H` (the compact WY
//! form).

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::element::{Element, ElementVar, InputElements, OutputElements, SharedElements};
use crate::linear_algebra::matrices::{self, MatrixStrides, Update, adjoint, part};
use crate::primitives::kernel::KernelSpec;
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Maximum reflections of a block.
pub const BLOCK: u32 = 32;

/// A block of reflections, ready to be applied.
pub struct Block {
    /// `[batch, m, k]`, with ones on the diagonal and zeros above.
    pub v: View,
    /// `[batch, k, k]`, upper triangular.
    pub t: View,
}

impl Block {
    /// The reflections whose vectors are below the diagonal of `v`, `[batch, m, k]`, and whose
    /// factors are `first..first + k` of `tau`, contiguous.
    pub fn new(cx: &Context, v: &View, tau: &View, first: i64) -> Result<Block> {
        Block::of_vectors(cx, matrices::unit_lower(cx, v)?, tau, first)
    }

    /// The reflections of vectors with explicit ones on the diagonal and zeros above.
    pub fn of_vectors(cx: &Context, v: View, tau: &View, first: i64) -> Result<Block> {
        let (batch, k) = (v.sizes[0], v.sizes[2]);
        let t = matrices::empty(cx, v.dtype, &[batch, k, k])?;
        matrices::multiply(cx, [&adjoint(&v), &v], &t, Update::Overwrite)?;
        let spec = BlockFactor { dtype: v.dtype, index: matrices::index_of(&[&t, tau]) };
        let arguments = BlockFactorArguments {
            t: &t,
            tau,
            strides: &t,
            batch: batch as u32,
            k: k as u32,
            first: first as u32,
            tau_apart: tau.size(-1) as u32,
        };
        cx.run(&spec, &arguments, matrices::workgroups(batch, 1))?;
        Ok(Block { v, t })
    }

    /// `c = Q c` or, if `inverse`, `c = Q^H c`, for `[batch, m, n]`.
    pub fn apply(&self, cx: &Context, c: &View, inverse: bool) -> Result<()> {
        let (batch, k, n) = (c.sizes[0], self.v.sizes[2], c.sizes[2]);
        let [inner, turned] = [(); 2].map(|()| matrices::empty(cx, c.dtype, &[batch, k, n]));
        let (inner, turned) = (inner?, turned?);
        let t = if inverse { adjoint(&self.t) } else { self.t.clone() };
        matrices::multiply(cx, [&adjoint(&self.v), c], &inner, Update::Overwrite)?;
        matrices::multiply(cx, [&t, &inner], &turned, Update::Overwrite)?;
        matrices::multiply(cx, [&self.v, &turned], c, Update::Subtract)
    }
}

/// `c = Q c` or, if `inverse`, `c = Q^H c` in place, for `[batch, m, n]`, where Q is the product of
/// the reflections in `v`, `[batch, m, k]`, and `tau`, contiguous `[.., at least k]`.
pub fn apply(cx: &Context, v: &View, tau: &View, c: &View, inverse: bool) -> Result<()> {
    let (m, k, n) = (c.sizes[1], v.sizes[2], c.sizes[2]);
    if c.numel() == 0 {
        return Ok(());
    }
    let blocks: Vec<i64> = (0..k).step_by(BLOCK as usize).collect();
    let each = |&from: &i64| {
        let to = (from + i64::from(BLOCK)).min(k);
        let block = Block::new(cx, &part(v, (from, m), (from, to)), tau, from)?;
        block.apply(cx, &part(c, (from, m), (0, n)), inverse)
    };
    if inverse { blocks.iter().try_for_each(each) } else { blocks.iter().rev().try_for_each(each) }
}

/// Computes T from `V^H V` and tau, in place. One workgroup for each matrix, one invocation for
/// each row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BlockFactor {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    BlockFactor as s => BlockFactorArguments, BlockFactorParameters {
        t: OutputElements = s.dtype,
        tau: InputElements = s.dtype,
        strides: MatrixStrides = s.index,
        batch: U32,
        k: U32,
        /// Index of the first reflection in `tau`, and number of reflections of a whole matrix.
        first: U32,
        tau_apart: U32,
    }
}

impl KernelSpec for BlockFactor {
    fn name(&self) -> &'static str {
        "householder_block"
    }

    fn workgroup(&self) -> [u32; 3] {
        [BLOCK, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: BlockFactorParameters<'b>) {
        let dtype = self.dtype;
        let (matrix, _) = matrices::workgroup_tile(b, p.batch, b.u32(1));
        let row = b.local_id(0);
        let products = SharedElements::shared(b, dtype, BLOCK * BLOCK);
        let at = |column| p.strides.at(matrix, row, column);
        // The rows of T, transposed in the lower triangle of the products, which is not used.
        let t_at = |column: Value<'b>| column * BLOCK + row;
        b.if_(row.lt(p.k), || {
            b.for_(0, p.k, 1, |column| products.store(row * BLOCK + column, p.t.load(at(column))));
        });
        b.barrier();
        b.if_(row.lt(p.k), || {
            b.for_(0, p.k, 1, |column| {
                let own = matrix.cast(self.index) * p.tau_apart.cast(self.index);
                let tau = p.tau.load(own + (p.first + column).cast(self.index));
                // Row `row` of T times column `column` of the inner products; the rows of T do not
                // depend on each other.
                let sum = ElementVar::var(b, Element::constant(b, dtype, 0.0));
                b.for_(row, column, 1, |i| {
                    sum.set(sum.get() + products.load(t_at(i)) * products.load(i * BLOCK + column))
                });
                let below = Element::select(column.lt(row), tau.like(0.0), -(tau * sum.get()));
                let value = Element::select(column.eq(row), tau, below);
                b.if_(column.ge(row), || products.store(t_at(column), value));
                p.t.store(at(column), value);
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::C64] {
            accepted(&BlockFactor { dtype, index: ScalarType::U32 }.build());
        }
        for dtype in [DType::F64, DType::C128] {
            accepted(&BlockFactor { dtype, index: ScalarType::U64 }.build());
        }
    }
}
