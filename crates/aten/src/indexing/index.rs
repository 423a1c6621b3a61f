//! `x[indices]` and `x[indices] = values`, with integers, masks and `None`. (Slices are views that
//! PyTorch takes by itself.)

use crate::indexing::arguments::warn_if_expanded;
use crate::indexing::fill_value::check_value;
use crate::movement::copies::apart;
use crate::operator::argument::{AnyTensor, OptTensors, Out};
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::host;
use dml_compute::indexing::arguments::{is_index, number_tensor};
use dml_compute::indexing::index::{is_mask, put_everywhere};
use dml_compute::indexing::masked::fill_under_mask;
use dml_compute::indexing::nonzero::coordinates;
use dml_compute::pointwise::kernel::Input;
use dml_compute::primitives::indexed_access::{self, Action, Selector, Walk};
use dml_compute::primitives::keyed_reduction::{self, Accumulation, Combine};
use dml_compute::view::layout::joint_strides;
use dml_compute::view::{Dims, Location, View};
use dml_kernel::DType;
use smallvec::SmallVec;

operators! {
    index(self, indices, out) {
        "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
        "aten::index.Tensor_out(Tensor self, Tensor?[] indices, *, Tensor(a!) out) -> Tensor(a!)",
    }
    index_put(self, indices, values, accumulate) {
        "aten::_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor(a!)",
    }
}

/// The tensor itself, or what a CPU tensor holds in a new tensor on the call's device.
pub fn on_device(call: &Call, t: &View) -> Result<View> {
    if t.location != Location::Host {
        call.check_place(t)?;
        return Ok(t.clone());
    }
    let copy = call.empty(t.dtype, &t.sizes)?;
    if t.numel() > 0 {
        call.upload(copy.data, &host::bytes_in_order(t)?)?;
    }
    Ok(copy)
}

/// Index tensors over a tensor, understood.
struct Plan {
    /// Shape of the result.
    sizes: Dims,
    /// Strides of the tensor along the result's dimensions; 0 where index tensors decide.
    strides: Dims,
    /// Where in the result the dimensions of the index tensors begin.
    at: usize,
    /// Sizes of the index tensors, broadcast together.
    broadcast: Dims,
    /// The index tensors, broadcast to `broadcast`.
    selectors: Vec<Selector>,
}

impl Plan {
    fn new(call: &Call, t: &View, indices: &[Option<&View>]) -> Result<Plan> {
        let per_dim = expand_masks(call, t, indices)?;
        check!(
            per_dim.len() <= t.dim(),
            Index,
            "too many indices for tensor of dimension {} (got {})",
            t.dim(),
            per_dim.len()
        );
        let mut broadcast = Dims::new();
        for index in per_dim.iter().flatten() {
            broadcast = call.broadcast(&broadcast, &index.sizes).map_err(|_| {
                let shapes: Vec<String> =
                    per_dim.iter().flatten().map(|i| format!("{:?}", i.sizes.as_slice())).collect();
                Error::Index(format!(
                    "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
                    shapes.join(", ")
                ))
            })?;
        }
        let selected: Vec<usize> = (0..per_dim.len()).filter(|&d| per_dim[d].is_some()).collect();
        // Index tensors side by side keep their place; else their dimensions come first.
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
        let places: i64 = broadcast.iter().product();
        let selectors = per_dim.into_iter().enumerate().filter_map(|(dim, index)| {
            let index = index?.expand(&broadcast);
            Some(Selector { index, size: t.sizes[dim], stride: t.strides[dim], dim })
        });
        let selectors: Vec<Selector> = selectors.collect();
        check!(
            places == 0 || selectors.iter().all(|s| s.size > 0),
            Index,
            "index is out of bounds for dimension with size 0"
        );
        Ok(Plan { sizes, strides, at, broadcast, selectors })
    }

    /// The index tensors, broadcast over the whole result.
    fn over_result(&self) -> Vec<Selector> {
        let spread = |s: &Selector| {
            let mut strides = Dims::from_elem(0, self.sizes.len());
            strides[self.at..self.at + self.broadcast.len()].copy_from_slice(&s.index.strides);
            Selector { index: s.index.as_strided(&self.sizes, &strides, 0), ..s.clone() }
        };
        self.selectors.iter().map(spread).collect()
    }

    /// The result lies in memory as the tensor that is indexed, then as its indices.
    fn result_strides(&self, over_result: &[Selector]) -> Dims {
        let mut all: SmallVec<[&[i64]; 4]> = SmallVec::from_slice(&[self.strides.as_slice()]);
        all.extend(over_result.iter().map(|s| s.index.strides.as_slice()));
        joint_strides(&self.sizes, &all)
    }

    fn walk<'t>(&'t self, base: &'t View, selectors: &'t [Selector]) -> Walk<'t> {
        Walk { sizes: &self.sizes, base, strides: &self.strides, selectors, negative: true }
    }

    /// Dimensions of the result that are not the index tensors'.
    fn slice(&self, of: &[i64]) -> Dims {
        of[..self.at].iter().chain(&of[self.at + self.broadcast.len()..]).copied().collect()
    }
}

/// One index tensor or none a dimension, on the device: masks become the coordinates of their
/// elements.
fn expand_masks(call: &Call, t: &View, indices: &[Option<&View>]) -> Result<Vec<Option<View>>> {
    let mut per_dim = Vec::new();
    for index in indices {
        let Some(index) = *index else {
            per_dim.push(None);
            continue;
        };
        check!(
            is_mask(index) || is_index(index.dtype),
            Index,
            "tensors used as indices must be long, int, byte or bool tensors"
        );
        if !is_mask(index) {
            per_dim.push(Some(on_device(call, index)?));
            continue;
        }
        check_mask(call, t, index, per_dim.len())?;
        let found = coordinates(call, &on_device(call, index)?)?;
        for column in 0..index.dim() {
            let (n, stride) = (found.sizes[0], found.strides[0]);
            per_dim.push(Some(found.as_strided(&[n], &[stride], column as i64 * found.strides[1])));
        }
    }
    Ok(per_dim)
}

/// A mask must have the sizes of the dimensions that it stands for, from dimension `first` on.
fn check_mask(call: &Call, t: &View, mask: &View, first: usize) -> Result<()> {
    if mask.dtype == DType::U8 {
        call.host.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
    }
    check!(
        first + mask.dim() <= t.dim(),
        Index,
        "too many indices for tensor of dimension {} (got {})",
        t.dim(),
        first + mask.dim()
    );
    for d in 0..mask.dim() {
        check!(
            mask.sizes[d] == t.sizes[first + d],
            Index,
            "The shape of the mask {:?} at index {d} does not match the shape of the indexed tensor {:?} at index {}",
            mask.sizes.as_slice(),
            t.sizes.as_slice(),
            first + d
        );
    }
    Ok(())
}

/// A tensor has no more indices than dimensions.
fn check_count(t: &View, indices: &[Option<&View>]) -> Result<()> {
    let (dim, count) = (t.dim(), indices.len());
    check!(count <= dim, Index, "too many indices for tensor of dimension {dim} (got {count})");
    Ok(())
}

fn index(call: &mut Call, t: &View, indices: OptTensors, out: Out) -> Result<()> {
    check!(!indices.is_empty(), Index, "at least one index must be provided");
    check_count(t, &indices)?;
    // Before the indices are looked at, as on the CPU.
    if let Some(out) = out.given() {
        let (own, given) = (t.dtype, out.dtype);
        check!(own == given, Runtime, "index_out: self ({own}) and result ({given}) must have the same scalar type");
        overlap::check_internal(out)?;
        overlap::check_none(out, &[t])?;
        overlap::check_none(out, &indices.iter().copied().flatten().collect::<SmallVec<[_; 4]>>())?;
    }
    let plan = Plan::new(call, t, &indices)?;
    let selectors = plan.over_result();
    let out = call.result_strided(out.given(), t.dtype, &plan.sizes, || plan.result_strides(&selectors))?;
    overlap::check_none(&out, &[t])?;
    overlap::check_none(&out, &selectors.iter().map(|s| &s.index).collect::<Vec<_>>())?;
    indexed_access::run(call, &plan.walk(t, &selectors), &Action::Read(&out))?;
    call.ret(out);
    Ok(())
}

fn index_put(
    call: &mut Call,
    t: &View,
    indices: OptTensors,
    AnyTensor(values): AnyTensor,
    accumulate: bool,
) -> Result<()> {
    check_count(t, &indices)?;
    warn_if_expanded(call, t, "index_put_");
    let number =
        if values.location == Location::Host && values.dim() == 0 { Some(host::read_number(values)?) } else { None };
    if number.is_none() {
        call.check_place(values)?;
    }
    // One value under one mask is filled, and converted.
    if !accumulate && values.numel() == 1 {
        check!(indices.iter().any(Option::is_some), Runtime, "at least one index must be provided");
        if let Some(mask) = only_mask(call, t, &indices)? {
            let value = match number {
                Some(x) => Input::Number(x, t.dtype),
                None => Input::Tensor(values.as_strided(&[], &[], 0)),
            };
            check_value(call, &value, t.dtype)?;
            fill_under_mask(call, t, mask, value, t)?;
            call.ret(t.clone());
            return Ok(());
        }
    }
    check!(
        t.dtype == values.dtype,
        Runtime,
        "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
        t.dtype,
        values.dtype
    );
    let mut plan = Plan::new(call, t, &indices)?;
    let fits = values.dim() <= plan.sizes.len()
        && values.sizes.iter().rev().zip(plan.sizes.iter().rev()).all(|(&v, &n)| v == n || v == 1);
    check!(
        fits,
        Runtime,
        "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape {:?}",
        values.sizes.as_slice(),
        plan.sizes.as_slice()
    );
    if plan.selectors.is_empty() {
        put_everywhere(call, t, values, number, accumulate)?;
        call.ret(t.clone());
        return Ok(());
    }
    for s in &mut plan.selectors {
        s.index = apart(call, t, &s.index)?;
    }
    let ordered = accumulate || call.host.deterministic();
    let values = match number {
        Some(x) if !ordered => {
            let action = Action::Fill(host::bits(t.dtype, x));
            indexed_access::run(call, &plan.walk(t, &plan.over_result()), &action)?;
            call.ret(t.clone());
            return Ok(());
        }
        Some(x) => number_tensor(call, t.dtype, x)?,
        None => apart(call, t, values)?,
    };
    let values = values.expand(&plan.sizes);
    if ordered {
        let combine = if accumulate { Combine::Add } else { Combine::Last };
        put_in_order(call, &plan, t, &values, combine)?;
    } else {
        indexed_access::run(call, &plan.walk(t, &plan.over_result()), &Action::Write(&values))?;
    }
    call.ret(t.clone());
    Ok(())
}

/// The mask, seen in `t`'s sizes, if one mask is the only index.
fn only_mask(call: &Call, t: &View, indices: &[Option<&View>]) -> Result<Option<View>> {
    let mut given = indices.iter().enumerate().filter_map(|(d, i)| i.map(|i| (d, i)));
    let (Some((first, mask)), None) = (given.next(), given.next()) else { return Ok(None) };
    if !is_mask(mask) {
        return Ok(None);
    }
    check_mask(call, t, mask, first)?;
    let mask = apart(call, t, &on_device(call, mask)?)?;
    let mut strides = Dims::from_elem(0, t.dim());
    strides[first..first + mask.dim()].copy_from_slice(&mask.strides);
    Ok(Some(mask.as_strided(&t.sizes, &strides, 0)))
}

/// Values that may share places, one after the other.
fn put_in_order(call: &Call, plan: &Plan, t: &View, values: &View, combine: Combine) -> Result<()> {
    let key_sizes: Dims = plan.selectors.iter().map(|s| s.size).collect();
    let key_strides: Dims = plan.selectors.iter().map(|s| s.stride).collect();
    let numbering = View::contiguous_strides(&key_sizes);
    let numbered: Vec<Selector> =
        plan.selectors.iter().zip(&numbering).map(|(s, &stride)| Selector { stride, ..s.clone() }).collect();
    let row = call.empty(DType::U32, &[plan.broadcast.iter().product()])?;
    let none = keyed_reduction::no_key(call.name, &key_sizes)?;
    let own = Dims::from_elem(0, plan.broadcast.len());
    let walk = Walk { sizes: &plan.broadcast, base: t, strides: &own, selectors: &numbered, negative: true };
    indexed_access::run(call, &walk, &Action::Number { row: &row, none })?;
    let parts: SmallVec<[i64; 6]> = values.strides[plan.at..plan.at + plan.broadcast.len()].iter().copied().collect();
    Ok(keyed_reduction::run(
        call,
        &Accumulation {
            dst: t,
            key_sizes: &key_sizes,
            key_strides: &key_strides,
            keys: &row,
            src: values,
            part_sizes: &plan.broadcast,
            part_strides: &parts,
            slice_sizes: &plan.slice(&plan.sizes),
            dst_strides: &plan.slice(&plan.strides),
            src_strides: &plan.slice(&values.strides),
            combine,
            include_self: true,
            skip: None,
        },
    )?)
}
