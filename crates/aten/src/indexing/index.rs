//! `x[indices]` and `x[indices] = values`, with integers, masks and `None`. (Slices are views,
//! which PyTorch takes by itself.)

use crate::indexing::arguments::warn_if_expanded;
use crate::indexing::fill_value::check_value;
use crate::movement::copies::without_overlap;
use crate::operator::argument::{AnyTensor, OptTensors, Out};
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::host;
use dml_compute::indexing::arguments::{is_index, number_tensor};
use dml_compute::indexing::index::{Places, assign_whole, is_mask};
use dml_compute::indexing::masked::fill_under_mask;
use dml_compute::indexing::nonzero::coordinates;
use dml_compute::pointwise::kernel::Input;
use dml_compute::primitives::combine::Combine;
use dml_compute::view::{Dims, Location, View};
use dml_kernel::DType;
use smallvec::SmallVec;

operators! {
    index(self, indices, out).complex(Complex::Run(complex::run_as_bits)).float8(float8::run_as_bits) {
        "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
        "aten::index.Tensor_out(Tensor self, Tensor?[] indices, *, Tensor(a!) out) -> Tensor(a!)",
    }
    index_put(self, indices, values, accumulate).complex(Complex::Run(complex::by_parts)).float8(float8::index_put) {
        "aten::_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor(a!)",
    }
}

/// The tensor itself, or a copy of a CPU tensor on the call's device.
pub fn on_device(call: &Call, t: &View) -> Result<View> {
    if t.location != Location::Host {
        call.check_place(t)?;
        return Ok(t.clone());
    }
    let copy = call.empty(t.dtype, &t.sizes)?;
    if t.numel() > 0 {
        call.upload(copy.data, &host::row_major_bytes(t)?)?;
    }
    Ok(copy)
}

/// The places that index tensors select.
fn places(call: &Call, t: &View, indices: &[Option<&View>]) -> Result<Places> {
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
            let shapes: Vec<String> = per_dim.iter().flatten().map(|i| format!("{:?}", i.sizes.as_slice())).collect();
            Error::Index(format!(
                "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
                shapes.join(", ")
            ))
        })?;
    }
    let places = Places::new(t, per_dim, broadcast);
    check!(!places.are_missing(), Index, "index is out of bounds for dimension with size 0");
    Ok(places)
}

/// For each dimension its index tensor, if any, on the device: masks become the coordinates of
/// their set elements.
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

/// Checks that a mask has the sizes of the dimensions that it indexes, from dimension `first` on.
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

/// Checks that a tensor has at most as many indices as dimensions.
fn check_count(t: &View, indices: &[Option<&View>]) -> Result<()> {
    let (dim, count) = (t.dim(), indices.len());
    check!(count <= dim, Index, "too many indices for tensor of dimension {dim} (got {count})");
    Ok(())
}

fn index(call: &mut Call, t: &View, indices: OptTensors, out: Out) -> Result<()> {
    check!(!indices.is_empty(), Index, "at least one index must be provided");
    check_count(t, &indices)?;
    // This check comes before those of the indices, as on the CPU.
    if let Some(out) = out.given() {
        let (own, given) = (t.dtype, out.dtype);
        check!(own == given, Runtime, "index_out: self ({own}) and result ({given}) must have the same scalar type");
        overlap::check_internal(out)?;
        overlap::check_none(out, &[t])?;
        overlap::check_none(out, &indices.iter().copied().flatten().collect::<SmallVec<[_; 4]>>())?;
    }
    let places = places(call, t, &indices)?;
    let out = call.result_strided(out.given(), t.dtype, &places.sizes, || places.result_strides())?;
    overlap::check_none(&out, &[t])?;
    overlap::check_none(&out, &places.indices().collect::<SmallVec<[_; 4]>>())?;
    places.read(call, t, &out)?;
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
    // A single value under a single mask is a fill, and is converted.
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
    let mut places = places(call, t, &indices)?;
    let fits = values.dim() <= places.sizes.len()
        && values.sizes.iter().rev().zip(places.sizes.iter().rev()).all(|(&v, &n)| v == n || v == 1);
    check!(
        fits,
        Runtime,
        "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape {:?}",
        values.sizes.as_slice(),
        places.sizes.as_slice()
    );
    if places.are_all() {
        assign_whole(call, t, values, number, accumulate)?;
        call.ret(t.clone());
        return Ok(());
    }
    places.replace_indices(|index| without_overlap(call, t, index))?;
    let ordered = accumulate || call.host.policy().deterministic();
    let values = match number {
        Some(x) if !ordered => {
            places.fill(call, t, x)?;
            call.ret(t.clone());
            return Ok(());
        }
        Some(x) => number_tensor(call, t.dtype, x)?,
        None => without_overlap(call, t, values)?,
    };
    let values = values.expand(&places.sizes);
    if ordered {
        let combine = if accumulate { Combine::Add } else { Combine::Last };
        places.combine(call, t, &values, combine)?;
    } else {
        places.write(call, t, &values)?;
    }
    call.ret(t.clone());
    Ok(())
}

/// The mask, expanded to the sizes of `t`, if a single mask is the only index.
fn only_mask(call: &Call, t: &View, indices: &[Option<&View>]) -> Result<Option<View>> {
    let mut given = indices.iter().enumerate().filter_map(|(d, i)| i.map(|i| (d, i)));
    let (Some((first, mask)), None) = (given.next(), given.next()) else { return Ok(None) };
    if !is_mask(mask) {
        return Ok(None);
    }
    check_mask(call, t, mask, first)?;
    let mask = without_overlap(call, t, &on_device(call, mask)?)?;
    let mut strides = Dims::from_elem(0, t.dim());
    strides[first..first + mask.dim()].copy_from_slice(&mask.strides);
    Ok(Some(mask.as_strided(&t.sizes, &strides, 0)))
}
