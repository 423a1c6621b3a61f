//! Looking for numbers among others: searchsorted, bucketize, isin.

use crate::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::sorting::key;
use dml_engine::interface::{Index, ReadRange, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::math::comparison::{less, less_equal};
use dml_kernel::{Builder, DType, ScalarType};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Search {
    pub dtype: DType,
    pub out: DType,
    pub index: ScalarType,
    pub right: bool,
    /// Boundaries are in order; otherwise a sorter says in which order they are.
    pub sorted: bool,
}

parameters! {
    pub Search as s => SearchArguments, SearchParameters {
        boundaries: Input = s.dtype,
        values: Input = s.dtype,
        out: Output = s.out,
        sorter: Option<Input> = (!s.sorted).then_some(DType::I64),
        fault: Option<Fault> = (!s.sorted).then_some(()),
        count: Index = s.index,
        /// Values of a row of boundaries.
        row: Index = s.index,
        /// Boundaries of a row.
        n: U32,
    }
}

impl KernelSpec for Search {
    fn name(&self) -> &'static str {
        "searchsorted"
    }

    fn write<'b>(&self, b: &'b Builder, p: SearchParameters<'b>) {
        let index = self.index;
        let i = linear_id(b, index);
        b.if_(i.lt(p.count), || {
            let first = i / p.row * p.n.cast(index);
            let value = p.values.load(i);
            let place = key::partition_point(p.n, |at| {
                let at = b.var(at.cast(index));
                if let (Some(sorter), Some(fault)) = (p.sorter, p.fault) {
                    let given = sorter.load(first + at.get());
                    let size = p.n.cast(ScalarType::I64);
                    b.if_else(
                        given.ge(0) & given.lt(size),
                        || at.set(given.cast(index)),
                        || fault.report(given, size, 0),
                    );
                }
                let boundary = p.boundaries.load(first + at.get());
                // A NaN among the boundaries, or sought, is passed over.
                !if self.right { less(value, boundary) } else { less_equal(value, boundary) }
            });
            p.out.store(i, place);
        });
    }
}

/// Whether each element is among sorted ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IsIn {
    pub dtype: DType,
    pub index: ScalarType,
    pub invert: bool,
}

parameters! {
    pub IsIn as s => IsInArguments, IsInParameters {
        elements: ReadRange = s.dtype.bits(),
        tests: ReadRange = s.dtype.bits(),
        out: Output = DType::Bool,
        count: Index = s.index,
        n: U32,
    }
}

impl KernelSpec for IsIn {
    fn name(&self) -> &'static str {
        "isin"
    }

    fn write<'b>(&self, b: &'b Builder, p: IsInParameters<'b>) {
        let &IsIn { dtype, index, .. } = self;
        let i = linear_id(b, index);
        b.if_(i.lt(p.count), || {
            let wanted = key::load(p.elements, dtype, i);
            let place = key::partition_point(p.n, |at| key::load(p.tests, dtype, at.cast(index)).lt(wanted));
            let mut found = place.lt(p.n) & key::load(p.tests, dtype, place.min(p.n - 1).cast(index)).eq(wanted);
            if dtype.is_float() {
                found = found & wanted.ne(key::largest(dtype));
            }
            p.out.store(i, if self.invert { !found } else { found });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in
            [(DType::U8, ScalarType::U32), (DType::F16, ScalarType::U64), (DType::F64, ScalarType::U32)]
        {
            for flag in [false, true] {
                for (out, sorted) in [(DType::I64, flag), (DType::I32, !flag)] {
                    accepted(&Search { dtype, out, index, right: flag, sorted }.build());
                }
                accepted(&IsIn { dtype, index, invert: flag }.build());
            }
        }
    }
}
