//! Steps of an elementwise function on the rows of several tensors, chosen by index: those of one
//! row one after the other, in the order of the indices.
//!
//! The indices are sorted, which keeps the order of equal ones. An invocation takes an element of a
//! row through all its steps; the first of the row's indices has it.

use crate::context::Context;
use crate::error::Result;
use crate::indexing::index_select::Slices;
use crate::pointwise::function::Variant;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::keyed_reduction::invalid_key;
use crate::sorting::sort;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Each, Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, convert};
use smallvec::{SmallVec, smallvec};

/// The operands of a step, contiguous.
pub struct RowSteps<'t> {
    /// The function: of an element of each tensor, then of the arguments. Its results are the
    /// tensors' elements.
    pub function: Variant,
    /// The tensors: `[rows, width]`, of one dtype.
    pub tensors: &'t [View],
    /// The arguments: single numbers, and one that has a row for each index, `[indices, width]`.
    pub arguments: &'t [View],
    /// Which argument has the rows.
    pub by_index: usize,
    /// `[indices]`; an index out of range is reported.
    pub indices: &'t View,
}

impl RowSteps<'_> {
    /// Takes the rows through all steps.
    pub fn run(&self, cx: &Context) -> Result<()> {
        let (t, n) = (&self.tensors[0], self.indices.numel());
        let (rows, width) = (t.sizes[0], t.sizes[1]);
        if n == 0 || width == 0 {
            return Ok(());
        }
        let chosen = Slices { dim: 0, index: self.indices, negative: false }.numbers(cx, t)?;
        let (chosen, positions) = sort::by_rows(cx, &chosen, 0, false)?;
        let spec = Spec {
            function: self.function,
            dtype: t.dtype,
            tensors: self.tensors.len(),
            arguments: self.arguments.iter().map(|argument| argument.dtype).collect(),
            by_index: self.by_index,
            index: index_type(rows.max(n) * width),
        };
        let arguments = SpecArguments {
            tensors: self.tensors.iter().collect(),
            arguments: self.arguments.iter().collect(),
            chosen: &chosen,
            positions: &positions,
            n,
            width,
            none: invalid_key(cx.name, &[rows])?,
        };
        cx.run_threads(&spec, &arguments, (n * width) as u64)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    function: Variant,
    dtype: DType,
    tensors: usize,
    arguments: SmallVec<[DType; 4]>,
    by_index: usize,
    /// Integer type of offsets.
    index: ScalarType,
}

parameters! {
    Spec as s => SpecArguments, SpecParameters {
        tensors: Each<Output> = smallvec![s.dtype; s.tensors],
        arguments: Each<Input> = s.arguments.clone(),
        chosen: Input = DType::U32,
        positions: Input = DType::I64,
        n: Index = s.index,
        width: Index = s.index,
        /// Above all rows: an index out of range.
        none: U32,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "row_steps"
    }

    fn full_name(&self) -> String {
        format!("row_steps {}", self.function.function.name)
    }

    fn write<'b>(&self, b: &'b Builder, p: SpecParameters<'b>) {
        let thread = linear_id(b, self.index);
        let first = thread / p.width;
        let column = thread - first * p.width;
        b.if_(first.lt(p.n), || {
            let row = p.chosen.load(first);
            let before = p.chosen.load(first.eq(0).select(first, first - 1));
            b.if_(row.lt(p.none) & (first.eq(0) | before.ne(row)), || {
                let at = row.cast(self.index) * p.width + column;
                let state: Vec<_> = p.tensors.iter().map(|t| b.var(t.load(at))).collect();
                let numbers: Vec<Option<Value>> = (0..self.arguments.len())
                    .map(|i| (i != self.by_index).then(|| convert(p.arguments[i].load(column.like(0.0)), self.dtype)))
                    .collect();
                let step = b.var(first);
                b.while_(
                    || step.get().lt(p.n) & p.chosen.load(step.get().min(p.n - 1)).eq(row),
                    || {
                        let from = p.positions.load(step.get()).cast(self.index) * p.width + column;
                        let own = p.arguments[self.by_index].load(from);
                        let given = numbers.iter().map(|number| number.unwrap_or(own));
                        let operands: Vec<Value> = state.iter().map(|x| x.get()).chain(given).collect();
                        for (x, result) in state.iter().zip(self.function.results(&operands, state.len())) {
                            x.set(convert(result, self.dtype));
                        }
                        step.set(step.get() + 1);
                    },
                );
                for (t, x) in p.tensors.iter().zip(&state) {
                    t.store(at, x.get());
                }
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointwise::arithmetic::ADD_SCALE;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::F32, ScalarType::U32), (DType::BF16, ScalarType::U64)] {
            let spec = Spec {
                function: (&ADD_SCALE).into(),
                dtype,
                tensors: 1,
                arguments: smallvec![dtype, DType::I64],
                by_index: 0,
                index,
            };
            accepted(&spec.build());
        }
    }
}
