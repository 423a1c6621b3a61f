//! The kernel of a chain.

use crate::fusion::parameters::PointwiseParameters;
use crate::kernels::kernel::KernelRef;
use crate::kernels::pointwise::PointwiseInput;
use dml_kernel::{Builder, DType, Kernel, ScalarType, Value, convert, dense};
use smallvec::SmallVec;

/// The source of a member's input.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Wire {
    /// Memory that the chain does not write, by its number.
    External(u16),
    /// A result of an earlier member, by its number.
    Value(u16),
    /// The member's next number.
    Number,
}

/// A chain's structure: everything that determines its kernel.
pub(super) struct Plan {
    /// The members, in order.
    pub(super) members: Vec<(KernelRef, SmallVec<[Wire; 4]>)>,
    /// The external inputs: dtype, and whether one element is used for all.
    pub(super) externals: Vec<(DType, bool)>,
    /// The results that are written, by number.
    pub(super) stores: Vec<(usize, DType)>,
    /// Neighbouring elements per invocation.
    pub(super) lanes: u32,
}

impl Plan {
    /// The kernel that computes each element through all members.
    pub(super) fn build(&self) -> Kernel {
        let names: Vec<&str> = self.members.iter().map(|(k, _)| k.name()).collect();
        let b = Builder::new(names.join("+"), [dense::GROUP, 1, 1]);
        let externals = self.externals.iter().map(|&(dtype, constant)| PointwiseInput::Tensor { dtype, constant });
        let numbers = self.members.iter().flat_map(|(kernel, _)| {
            let inputs = kernel.pointwise().map(|p| p.inputs.as_slice()).unwrap_or_default();
            inputs.iter().copied().filter(|input| matches!(input, PointwiseInput::Number(_)))
        });
        let dtypes = self.stores.iter().map(|&(_, dtype)| dtype);
        let p = PointwiseParameters::declare(&b, dtypes, externals.chain(numbers), ScalarType::U32);
        let inputs: Vec<_> = p.tensors.iter().zip(&self.externals).map(|(&t, &(_, constant))| (t, constant)).collect();
        dense::write(&b, p.numel, self.lanes, &p.outs, &inputs, &|loaded| {
            let mut values: Vec<Value> = Vec::new();
            let mut numbers = p.numbers.iter();
            for (kernel, wires) in &self.members {
                let Some(pointwise) = kernel.pointwise() else { continue };
                let inputs: Vec<Value> = wires
                    .iter()
                    .filter_map(|wire| match *wire {
                        Wire::External(i) => Some(loaded[usize::from(i)]),
                        Wire::Value(i) => Some(values[usize::from(i)]),
                        Wire::Number => numbers.next().copied(),
                    })
                    .collect();
                let results = pointwise.element.inline(&b, &inputs);
                values.extend(results.into_iter().zip(&pointwise.outs).map(|(v, &dtype)| convert(v, dtype)));
            }
            self.stores.iter().map(|&(i, _)| values[i]).collect()
        });
        b.finish()
    }
}
