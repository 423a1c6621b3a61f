//! `x[indices]` and `x[indices] = values`, with integers, masks and `None`. (Slices are views,
//! which the caller takes.)

use crate::context::Context;
use crate::error::Result;
use crate::host;
use crate::indexing::functions::INDEX_PUT;
use crate::movement::copy::{cast, device_copy, fill_with};
use crate::pointwise::kernel::{self, Input};
use crate::primitives::combine::Combine;
use crate::primitives::indexed_access::{self, Action, IndexIteration, Selector};
use crate::primitives::keyed_reduction::{self, KeyedContributions};
use crate::scalar::Scalar as Number;
use crate::view::layout::result_strides_of;
use crate::view::{Dims, View};
use dml_kernel::DType;
use smallvec::SmallVec;

/// Whether a tensor is a mask.
pub fn is_mask(t: &View) -> bool {
    matches!(t.dtype, DType::Bool | DType::U8)
}

/// Positions of a tensor that index tensors select: one for each element of a shape.
pub struct Places {
    /// The shape: the broadcast sizes of the index tensors, inserted into the sizes of the
    /// dimensions without one.
    pub sizes: Dims,
    /// Strides of the tensor along the shape's dimensions; 0 along those of the index tensors.
    strides: Dims,
    /// Position in the shape of the first dimension of the index tensors.
    at: usize,
    /// The broadcast sizes of the index tensors.
    broadcast: Dims,
    /// The index tensors, broadcast to `broadcast`.
    selectors: Vec<Selector>,
}

impl Places {
    /// The places of `t` that `per_dim` select: an index tensor of integers (32 or 64 bits) or none
    /// for each of its first dimensions, which broadcast to `broadcast`. An index below 0 counts
    /// from the end. Index tensors side by side keep their place in the shape; else their
    /// dimensions come first.
    pub fn new(t: &View, per_dim: Vec<Option<View>>, broadcast: Dims) -> Places {
        let selected: Vec<usize> = (0..per_dim.len()).filter(|&d| per_dim[d].is_some()).collect();
        let adjacent = selected.windows(2).all(|w| w[0] + 1 == w[1]);
        let at = if adjacent { selected.first().copied().unwrap_or(0) } else { 0 };
        let rest: Vec<usize> = (0..t.dim()).filter(|d| !selected.contains(d)).collect();
        let (mut sizes, mut strides) = (Dims::new(), Dims::new());
        for &d in &rest[..at] {
            sizes.push(t.sizes[d]);
            strides.push(t.strides[d]);
        }
        sizes.extend_from_slice(&broadcast);
        strides.resize(sizes.len(), 0);
        for &d in &rest[at..] {
            sizes.push(t.sizes[d]);
            strides.push(t.strides[d]);
        }
        let selectors = per_dim.into_iter().enumerate().filter_map(|(dim, index)| {
            let index = index?.expand(&broadcast);
            Some(Selector { index, size: t.sizes[dim], stride: t.strides[dim], dim })
        });
        let selectors = selectors.collect();
        Places { sizes, strides, at, broadcast, selectors }
    }

    /// Whether there is no index tensor: every position is selected.
    pub fn are_all(&self) -> bool {
        self.selectors.is_empty()
    }

    /// Whether there are indices into a dimension without elements.
    pub fn are_missing(&self) -> bool {
        self.broadcast.iter().product::<i64>() != 0 && self.selectors.iter().any(|s| s.size == 0)
    }

    /// The index tensors.
    pub fn indices(&self) -> impl Iterator<Item = &View> {
        self.selectors.iter().map(|s| &s.index)
    }

    /// Replaces the index tensors by others of the same sizes.
    pub fn replace_indices<E>(&mut self, mut by: impl FnMut(&View) -> Result<View, E>) -> Result<(), E> {
        for s in &mut self.selectors {
            s.index = by(&s.index)?;
        }
        Ok(())
    }

    /// The index tensors, broadcast over the whole shape.
    fn over_shape(&self) -> Vec<Selector> {
        let spread = |s: &Selector| {
            let mut strides = Dims::from_elem(0, self.sizes.len());
            strides[self.at..self.at + self.broadcast.len()].copy_from_slice(&s.index.strides);
            Selector { index: s.index.as_strided(&self.sizes, &strides, 0), ..s.clone() }
        };
        self.selectors.iter().map(spread).collect()
    }

    /// Strides of a result in the memory order of the indexed tensor and of its indices.
    pub fn result_strides(&self) -> Dims {
        let over_shape = self.over_shape();
        let mut all: SmallVec<[&[i64]; 4]> = SmallVec::from_slice(&[self.strides.as_slice()]);
        all.extend(over_shape.iter().map(|s| s.index.strides.as_slice()));
        result_strides_of(&self.sizes, &all)
    }

    fn access(&self, cx: &Context, t: &View, action: &Action) -> Result<()> {
        let selectors = self.over_shape();
        let iteration = IndexIteration {
            sizes: &self.sizes,
            base: t,
            strides: &self.strides,
            selectors: &selectors,
            negative: true,
        };
        indexed_access::run(cx, &iteration, action)
    }

    /// Reads the elements of `t` into `out`, of the shape.
    pub fn read(&self, cx: &Context, t: &View, out: &View) -> Result<()> {
        self.access(cx, t, &Action::Read(out))
    }

    /// Writes the elements of `values`, of the shape and the dtype of `t`. If several have the same
    /// position, it is undefined which one remains.
    pub fn write(&self, cx: &Context, t: &View, values: &View) -> Result<()> {
        self.access(cx, t, &Action::Write(values))
    }

    /// Writes one number to all positions of `t`.
    pub fn fill(&self, cx: &Context, t: &View, number: Number) -> Result<()> {
        self.access(cx, t, &Action::Fill(host::bits(t.dtype, number)))
    }

    /// Combines values, of the shape and the dtype of `t`, with the elements at their positions,
    /// one after the other.
    pub fn combine(&self, cx: &Context, t: &View, values: &View, combine: Combine) -> Result<()> {
        let key_sizes: Dims = self.selectors.iter().map(|s| s.size).collect();
        let key_strides: Dims = self.selectors.iter().map(|s| s.stride).collect();
        let numbering = View::contiguous_strides(&key_sizes);
        let numbered: Vec<Selector> =
            self.selectors.iter().zip(&numbering).map(|(s, &stride)| Selector { stride, ..s.clone() }).collect();
        let row = cx.empty(DType::U32, &[self.broadcast.iter().product()])?;
        let none = keyed_reduction::invalid_key(cx.name, &key_sizes)?;
        let own = Dims::from_elem(0, self.broadcast.len());
        let iteration =
            IndexIteration { sizes: &self.broadcast, base: t, strides: &own, selectors: &numbered, negative: true };
        indexed_access::run(cx, &iteration, &Action::Number { row: &row, none })?;
        let accumulation = KeyedContributions {
            dst: t,
            key_sizes: &key_sizes,
            key_strides: &key_strides,
            keys: &row,
            src: values,
            part_sizes: &self.broadcast,
            part_strides: &values.strides[self.at..self.at + self.broadcast.len()],
            slice_sizes: &self.slice(&self.sizes),
            dst_strides: &self.slice(&self.strides),
            src_strides: &self.slice(&values.strides),
            combine,
            include_self: true,
            skip: None,
        };
        keyed_reduction::run(cx, &accumulation)
    }

    /// The entries of the shape's dimensions without an index tensor.
    fn slice(&self, of: &[i64]) -> Dims {
        of[..self.at].iter().chain(&of[self.at + self.broadcast.len()..]).copied().collect()
    }
}

/// No index tensor at all: the whole tensor is meant.
pub fn assign_whole(cx: &Context, t: &View, values: &View, number: Option<Number>, accumulate: bool) -> Result<()> {
    if !accumulate {
        return match number {
            Some(x) => fill_with(cx, t, x),
            None => device_copy(cx, values, t),
        };
    }
    let values = match number {
        Some(x) => Input::Number(x, t.dtype),
        None => Input::Tensor(cast(cx, values, t.dtype)?),
    };
    let inputs = [Input::Tensor(t.clone()), values];
    kernel::run(cx, &INDEX_PUT, &[t], &inputs, t.dtype)
}
