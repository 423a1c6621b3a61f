//! Moving and filling elements by mask. The number of set elements is read back if it is a size of
//! the result.

use crate::context::Context;
use crate::error::Result;
use crate::indexing::functions::MASKED_FILL;
use crate::movement::copy::{as_bits, device_copy, fill_with};
use crate::pointwise::kernel::{self, Input};
use crate::primitives::kernel::{Input as Read, KernelSpec, Output};
use crate::view::layout::{Layout, LayoutParameter, LayoutSpec};
use crate::view::{View, overlap};
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType};

/// Writes `t` to `out`, with a number where the mask is set. `out` may be `t`. The mask has the
/// sizes of `t`. The set elements need not be counted.
pub fn fill_under_mask(cx: &Context, t: &View, mask: View, value: Input, out: &View) -> Result<()> {
    if overlap::is_expanded(out) {
        return store_under_mask(cx, out, &mask, value);
    }
    let inputs = [Input::Tensor(t.clone()), Input::Tensor(mask), value];
    kernel::run(cx, &MASKED_FILL, &[out], &inputs, t.dtype)
}

/// Several elements of an expanded tensor share a memory location, which is written if the mask is
/// set for any of them.
fn store_under_mask(cx: &Context, t: &View, mask: &View, value: Input) -> Result<()> {
    let cell = cx.empty(t.dtype, &[])?;
    match value {
        Input::Number(number, _) => fill_with(cx, &cell, number)?,
        Input::Tensor(value) => device_copy(cx, &value, &cell)?,
    }
    let layout = Layout::row_major(&t.sizes, &[&t.strides, &mask.strides]);
    let spec = StoreSpec { dtype: t.dtype.bits(), mask: mask.dtype, layout: layout.spec() };
    let n = t.numel();
    let arguments =
        StoreArguments { t: &as_bits(t, t).0, value: &as_bits(&cell, &cell).0, under: mask, n, layout: &layout };
    cx.run_threads(&spec, &arguments, n as u64)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StoreSpec {
    dtype: DType,
    mask: DType,
    layout: LayoutSpec,
}

parameters! {
    StoreSpec as s => StoreArguments, StoreParameters {
        t: Output = s.dtype,
        value: Read = s.dtype,
        under: Read = s.mask,
        n: Index = s.layout.index,
        layout: LayoutParameter = s.layout,
    }
}

impl KernelSpec for StoreSpec {
    fn name(&self) -> &'static str {
        "masked_store"
    }

    fn write<'b>(&self, b: &'b Builder, p: StoreParameters<'b>) {
        let i = linear_id(b, self.layout.index);
        b.if_(i.lt(p.n), || {
            let at = p.layout.offsets(b, i);
            b.if_(p.under.load(at[1]).ne(0), || p.t.store(at[0], p.value.load(b.int(self.layout.index, 0))));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use dml_kernel::ScalarType;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::U8, ScalarType::U32), (DType::U64, ScalarType::U64)] {
            let layout = LayoutSpec { rank: 2, operands: 2, index };
            accepted(&StoreSpec { dtype, mask: DType::Bool, layout }.build());
        }
    }
}
