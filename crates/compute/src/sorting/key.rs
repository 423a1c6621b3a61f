//! The [sort keys](crate::primitives::sort_key) of tensors, and binary search.

pub use crate::primitives::sort_key::bits;

pub use crate::primitives::sort_key::dtype_of;

pub use crate::primitives::sort_key::largest;

pub use crate::primitives::sort_key::load;

pub use crate::primitives::sort_key::of_bits;

use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Operand};
use crate::primitives::row_operands::Operands;
use crate::sorting::functions::SORT_KEY;
use crate::view::View;
use dml_kernel::Value;
use smallvec::SmallVec;

/// The keys of a tensor's elements, contiguous.
pub fn of_tensor(cx: &Context, t: &View, descending: bool) -> Result<View> {
    let (dtype, keys) = (t.dtype, cx.empty(dtype_of(t.dtype), &t.sizes)?);
    let raw = View { dtype: dtype.bits(), ..t.clone() };
    let sort_key = SORT_KEY.with([descending]).of(dtype);
    kernel::run_operands(cx, sort_key, &[&keys], &[Operand::Tensor(&raw)], keys.dtype)?;
    Ok(keys)
}

/// The keys of the input's elements by row, contiguous.
pub fn of_rows(cx: &Context, o: &Operands, descending: bool) -> Result<View> {
    let input = &o.tensors[0];
    of_tensor(cx, &input.permute(&order(input, o.dim)), descending)
}

/// The order of dimensions in which `dim` is the innermost.
pub fn order(t: &View, dim: usize) -> SmallVec<[usize; 6]> {
    (0..t.dim()).filter(|&d| d != dim).chain((t.dim() > 0).then_some(dim)).collect()
}

/// Binary search: the lowest index in `0..n` (u32) for which `before` is false, or `n`. `before`
/// has to be true for all indices below it and false from there on.
pub fn partition_point<'b>(n: Value<'b>, before: impl FnOnce(Value<'b>) -> Value<'b>) -> Value<'b> {
    let b = n.builder();
    let (low, high) = (b.var(n.like(0.0)), b.var(n));
    b.while_(
        || low.get().lt(high.get()),
        || {
            let middle = low.get() + ((high.get() - low.get()) >> 1);
            b.if_else(before(middle), || low.set(middle + 1), || high.set(middle));
        },
    );
    low.get()
}
