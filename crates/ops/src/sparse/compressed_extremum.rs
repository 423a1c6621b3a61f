//! The largest or smallest products of compressed rows (CSR) and a dense matrix, where [`compressed_mm`](super::compressed_mm) adds
//! them up.

use super::compressed_mm::{bounds, is_below};
use crate::movement::copy::as_contiguous;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::segments;
use crate::primitives::work::multiply_adds;
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use crate::{check, operators};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::{groups, linear_id};
use dml_kernel::{Builder, DType, ScalarType};

operators! {
    // Of the products `values[e] * dense[indices[e], c]` of row `r`, `e` from `offsets[r]` to `offsets[r + 1]`, the extreme one and its
    // `e`; of a row without any 0, and the number of all entries.
    compressed_extremum(offsets, indices, values, dense, largest) {
        "torch_dml::compressed_extremum(Tensor offsets, Tensor indices, Tensor values, Tensor dense, bool largest) -> (Tensor, Tensor)",
    }
}

/// `offsets` (`[rows + 1]`) and `indices` (`[entries]`) are of one integer dtype, `values` (`[entries]`) and `dense` (`[.., n]`) floats of one
/// dtype; the places are int64. Of equal products the first counts, of NaN, which is both largest and smallest, the last.
fn compressed_extremum(
    call: &mut Call,
    offsets: &Tensor,
    indices: &Tensor,
    values: &Tensor,
    dense: &Tensor,
    largest: bool,
) -> Result<()> {
    let dtype = dense.dtype;
    let (entries, rows) = (indices.numel(), offsets.numel() - 1);
    let index = matches!(offsets.dtype, DType::I32 | DType::I64) && indices.dtype == offsets.dtype;
    let shaped = offsets.dim() == 1 && indices.dim() == 1 && dense.dim() == 2 && rows >= 0;
    let weights = dtype.is_float() && values.dtype == dtype && values.sizes == indices.sizes;
    check!(
        index && shaped && weights,
        Runtime,
        "{}: offsets {}, indices {}, values {} and dense {} do not fit each other",
        call.name,
        offsets.describe(),
        indices.describe(),
        values.describe(),
        dense.describe()
    );
    let sizes = [rows, dense.sizes[1]];
    let (out, places) = (call.empty(dtype, &sizes)?, call.empty(DType::I64, &sizes)?);
    if out.numel() > 0 {
        let (offsets, indices) = (&as_contiguous(call, offsets)?, &as_contiguous(call, indices)?);
        let (values, dense) = (&as_contiguous(call, values)?, &as_contiguous(call, dense)?);
        let index = index_type(out.numel().max(dense.numel()).max(entries));
        let mut continued = false;
        for part in segments::parts(call, entries.max(1)) {
            let spec = Extremum { offsets: offsets.dtype, dtype, largest, continued, index };
            let taken = if dense.numel() == 0 { 0 } else { entries };
            let arguments = ExtremumArguments {
                offsets,
                indices,
                values,
                dense,
                out: &out,
                places: &places,
                extent: [rows, sizes[1], dense.sizes[0], taken],
                part,
                fault: call.fault_of_index(),
            };
            let operations = multiply_adds(dtype, (entries * sizes[1]) as u64);
            call.run_heavy(&spec, &arguments, groups(out.numel() as u64), operations)?;
            continued = true;
        }
    }
    call.ret(out);
    call.ret(places);
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Extremum {
    offsets: DType,
    dtype: DType,
    largest: bool,
    /// The results hold what is extreme among the entries before.
    continued: bool,
    index: ScalarType,
}

parameters! {
    Extremum as s => ExtremumArguments, ExtremumParameters {
        offsets: Input = s.offsets,
        indices: Input = s.offsets,
        values: Input = s.dtype,
        dense: Input = s.dtype,
        out: Output = s.dtype,
        places: Output = DType::I64,
        /// Rows and columns of the result, rows of the dense matrix, entries.
        extent: [Index; 4] = s.index,
        /// The entries of each row that come before those of this launch, and how many it takes at most.
        part: [U32; 2],
        fault: Fault,
    }
}

impl KernelSpec for Extremum {
    fn name(&self) -> &'static str {
        "compressed_extremum"
    }

    fn write<'b>(&self, b: &'b Builder, p: ExtremumParameters<'b>) {
        let [rows, columns, height, entries] = p.extent;
        let at = linear_id(b, self.index);
        let row = at / columns;
        b.if_(row.lt(rows), || {
            let column = at - row * columns;
            let [first, end] = bounds(p.offsets, row, entries, p.part, self.index);
            let none = entries.cast(ScalarType::I64);
            let (best, place) = if self.continued {
                (b.var(p.out.load(at)), b.var(p.places.load(at)))
            } else {
                (b.var(b.constant_of(self.dtype.compute(), 0.0)), b.var(none))
            };
            b.for_(first, end, 1, |entry| {
                let given = p.indices.load(entry);
                let there = is_below(b, given, height, &p.fault);
                let from = there.select(given.cast(self.index), b.int(self.index, 0)) * columns + column;
                let x = p.values.load(entry) * p.dense.load(from);
                let beyond = if self.largest { x.gt(best.get()) } else { x.lt(best.get()) };
                let better = place.get().eq(none) | beyond | x.is_nan();
                best.set(better.select(x, best.get()));
                place.set(better.select(entry.cast(ScalarType::I64), place.get()));
            });
            p.out.store(at, best.get());
            p.places.store(at, place.get());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, offsets, largest, continued, index) in [
            (DType::F32, DType::I64, true, false, ScalarType::U32),
            (DType::F64, DType::I32, false, true, ScalarType::U64),
            (DType::F16, DType::I64, false, false, ScalarType::U32),
            (DType::BF16, DType::I32, true, true, ScalarType::U32),
        ] {
            accepted(&Extremum { offsets, dtype, largest, continued, index }.build());
        }
    }
}
