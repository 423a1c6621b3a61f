//! Reading, writing and combining slices through index tensors.
//!
//! As TensorFlow documents for GPUs, an index out of range reads zeros, and nothing is written for
//! it; on the CPU it is an error.

use super::regions::fill;
use crate::error::Result;
use crate::kernel::Call;
use dml_compute::complex::parts::{as_bits, parts};
use dml_compute::pointwise::arithmetic::SUB;
use dml_compute::pointwise::division::{DIV, DIV_TRUNC};
use dml_compute::pointwise::function::Variant;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::primitives::combine::Combine;
use dml_compute::primitives::indexed_access::{Action, IndexIteration, Outside, Selector, run_within};
use dml_compute::primitives::keyed_reduction::{self, KeyedContributions};
use dml_compute::{Dims, Scalar, View};
use dml_kernel::DType;

/// An iteration in words instead of elements: those of 16 bytes are two, along a last dimension.
struct Words {
    base: View,
    other: View,
    strides: Dims,
    selectors: Vec<Selector>,
}

impl Words {
    /// `other` has the iteration's sizes, and `strides` are those in `base` besides the selectors'.
    fn new(base: &View, strides: &[i64], selectors: &[Selector], other: &View) -> Self {
        let rank = other.dim();
        let (base, other) = (as_bits(base), as_bits(other));
        let words = if other.dim() > rank { 2 } else { 1 };
        let mut strides: Dims = strides.iter().map(|stride| words * stride).collect();
        strides.resize(other.dim(), 1);
        let selectors = selectors.iter().map(|selector| {
            let mut own = selector.index.strides.clone();
            own.resize(other.dim(), 0);
            let index = selector.index.as_strided(&other.sizes, &own, 0);
            Selector { index, stride: words * selector.stride, ..*selector }
        });
        Self { strides, selectors: selectors.collect(), base, other }
    }

    fn iteration(&self) -> IndexIteration<'_> {
        IndexIteration {
            sizes: &self.other.sizes,
            base: &self.base,
            strides: &self.strides,
            selectors: &self.selectors,
            negative: false,
        }
    }
}

/// Reads elements of `t` into `out`. `strides` are those of the result's iteration in `t`, besides
/// the selectors'.
pub fn read(call: &Call, t: &View, strides: &[i64], selectors: &[Selector], out: &View) -> Result<()> {
    let words = Words::new(t, strides, selectors, out);
    Ok(run_within(&call.cx(), &words.iteration(), &Action::Read(&words.other), Outside::Nothing)?)
}

/// Writes elements of `values` to `t`; `strides` as in [`read`]. If several have one place, any of
/// them remains.
pub fn write(call: &Call, t: &View, strides: &[i64], selectors: &[Selector], values: &View) -> Result<()> {
    let words = Words::new(t, strides, selectors, values);
    Ok(run_within(&call.cx(), &words.iteration(), &Action::Write(&words.other), Outside::Nothing)?)
}

/// What happens to a slice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// It is replaced. If several updates are for one slice, any of them remains.
    Assign,
    /// The update is added.
    Add,
    /// The update is subtracted.
    Sub,
    /// It is multiplied.
    Mul,
    /// It is divided.
    Div,
    /// The larger element remains.
    Max,
    /// The smaller element remains.
    Min,
}

/// Slices of a tensor that indices select: indices for its first dimensions.
pub struct Places {
    /// The sizes of the index tensors.
    pub sizes: Dims,
    /// The index tensors of the first dimensions.
    pub indices: Vec<View>,
}

impl Places {
    /// One index tensor, for the first dimension.
    pub fn of_first(indices: &View) -> Self {
        Self { sizes: indices.sizes.clone(), indices: vec![indices.clone()] }
    }

    /// Index tensors side by side: the last dimension of `indices`.
    pub fn of_last_dimension(indices: &View) -> Self {
        let outer = indices.dim() - 1;
        let sizes = Dims::from_slice(&indices.sizes[..outer]);
        let of_dim = |d: i64| indices.as_strided(&sizes, &indices.strides[..outer], d * indices.strides[outer]);
        Self { indices: (0..indices.sizes[outer]).map(of_dim).collect(), sizes }
    }

    /// The number of dimensions that have indices.
    pub fn depth(&self) -> usize {
        self.indices.len()
    }

    /// The sizes of the slices of a tensor, one for each index.
    pub fn slices(&self, of: &[i64]) -> Dims {
        self.sizes.iter().chain(&of[self.depth()..]).copied().collect()
    }

    /// The selectors over these sizes, of which the first are the indices'; with these strides.
    fn selectors(&self, t: &View, sizes: &[i64], strides: &[i64]) -> Vec<Selector> {
        let of_dim = |(dim, index): (usize, &View)| {
            let mut own = index.strides.clone();
            own.resize(sizes.len(), 0);
            Selector { index: index.as_strided(sizes, &own, 0), size: t.sizes[dim], stride: strides[dim], dim }
        };
        self.indices.iter().enumerate().map(of_dim).collect()
    }

    fn strides_of_slices(&self, t: &View) -> Dims {
        vec![0; self.sizes.len()].iter().chain(&t.strides[self.depth()..]).copied().collect()
    }

    /// Reads the slices of `t` into `out`.
    pub fn read(&self, call: &Call, t: &View, out: &View) -> Result<()> {
        read(call, t, &self.strides_of_slices(t), &self.selectors(t, &out.sizes, &t.strides), out)
    }

    /// The row-major number of each place among the tensor's first dimensions.
    fn keys(&self, call: &Call, t: &View) -> Result<View> {
        let cx = call.cx();
        let sizes = &t.sizes[..self.depth()];
        let none = keyed_reduction::invalid_key(cx.name, sizes)?;
        let row = cx.empty(DType::U32, &[self.sizes.iter().product()])?;
        if self.depth() == 0 {
            // Each slice is the whole tensor.
            fill(call, &row, Scalar::Int(0))?;
            return Ok(row);
        }
        let selectors = self.selectors(t, &self.sizes, &View::contiguous_strides(sizes));
        let iteration = IndexIteration {
            sizes: &self.sizes,
            base: t,
            strides: &Dims::from_elem(0, self.sizes.len()),
            selectors: &selectors,
            negative: false,
        };
        run_within(&cx, &iteration, &Action::Number { row: &row, none }, Outside::Nothing)?;
        Ok(row)
    }

    /// Combines the slices of `values` with those of `t`, in their order; without the first ones in
    /// `t` unless `include_self`.
    pub fn combine(&self, call: &Call, t: &View, values: &View, combine: Combine, include_self: bool) -> Result<()> {
        if values.numel() == 0 || t.numel() == 0 {
            return Ok(());
        }
        let keys = self.keys(call, t)?;
        let complex = t.dtype.is_complex();
        let by_parts = |t: &View| if complex { parts(t).to_vec() } else { vec![t.clone()] };
        let (depth, rank) = (self.depth(), self.sizes.len());
        for (t, values) in by_parts(t).iter().zip(&by_parts(values)) {
            let contributions = KeyedContributions {
                dst: t,
                key_sizes: &t.sizes[..depth],
                key_strides: &t.strides[..depth],
                keys: &keys,
                src: values,
                part_sizes: &self.sizes,
                part_strides: &values.strides[..rank],
                slice_sizes: &t.sizes[depth..],
                dst_strides: &t.strides[depth..],
                src_strides: &values.strides[rank..],
                combine,
                include_self,
                skip: None,
            };
            keyed_reduction::run(&call.cx(), &contributions)?;
        }
        Ok(())
    }

    /// Updates the slices of `t` by those of `values`.
    pub fn update(&self, call: &Call, t: &View, values: &View, update: Update) -> Result<()> {
        match update {
            Update::Assign if values.numel() == 0 || t.numel() == 0 => Ok(()),
            Update::Assign => {
                write(call, t, &self.strides_of_slices(t), &self.selectors(t, &values.sizes, &t.strides), values)
            }
            Update::Add => self.combine(call, t, values, Combine::Add, true),
            Update::Mul => self.combine(call, t, values, Combine::Mul, true),
            Update::Max => self.combine(call, t, values, Combine::Max, true),
            Update::Min => self.combine(call, t, values, Combine::Min, true),
            Update::Sub => self.subtract(call, t, values),
            Update::Div => self.divide(call, t, values),
        }
    }

    fn subtract(&self, call: &Call, t: &View, values: &View) -> Result<()> {
        let cx = call.cx();
        let negative = cx.empty(values.dtype, &values.sizes)?;
        let by_parts = |t: &View| if t.dtype.is_complex() { parts(t).to_vec() } else { vec![t.clone()] };
        for (from, to) in by_parts(values).into_iter().zip(&by_parts(&negative)) {
            let zero = Input::Number(Scalar::Int(0), from.dtype);
            kernel::run(&cx, &SUB, &[to], &[zero, Input::Tensor(from)], to.dtype)?;
        }
        self.combine(call, t, &negative, Combine::Add, true)
    }

    /// Divides by the product of a slice's divisors.
    fn divide(&self, call: &Call, t: &View, values: &View) -> Result<()> {
        let cx = call.cx();
        let divisors = cx.empty(t.dtype, &t.sizes)?;
        fill(call, &divisors, Scalar::Int(1))?;
        self.combine(call, &divisors, values, Combine::Mul, true)?;
        let divide: Variant = if t.dtype.is_float() { (&DIV).into() } else { DIV_TRUNC.of(t.dtype) };
        let operands = [Input::Tensor(t.clone()), Input::Tensor(divisors)];
        Ok(kernel::run(&cx, divide, &[t], &operands, t.dtype)?)
    }
}
