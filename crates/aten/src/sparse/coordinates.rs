//! The indices of COO tensors: which entries have equal positions, and which entries of one tensor
//! have the position of an entry of another.
//!
//! Indices are `[dims, entries]` of int64 or int32, one column per entry; `sizes` are the sizes of
//! the sparse dimensions. A position is also a number: its row-major index among all positions.

use crate::creation::sequences::arange;
use crate::movement::rearrange::repeat_interleave;
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::sorting::search::search;
use crate::{check, operators};
use dml_compute::indexing::index_select::Slices;
use dml_compute::indexing::nonzero;
use dml_compute::movement::copy::{as_contiguous, cast, device_copy, fill_with, read_numbers};
use dml_compute::pointwise::arithmetic::{ADD, ADD_ALPHA, SUB};
use dml_compute::pointwise::comparison::{EQ, MINIMUM};
use dml_compute::pointwise::division::{DIV_TRUNC, REMAINDER, Rounding};
use dml_compute::pointwise::function::{Function, Variant};
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::primitives::indexed_access::Action;
use dml_compute::primitives::prefix_sum;
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::extremum;
use dml_compute::scalar::Scalar;
use dml_compute::sorting::sort;
use dml_compute::sorting::unique::Ordered;
use dml_compute::sparse::coo_to_csr::convert;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    // Returns the number of each entry's position.
    flatten(indices, sizes) {
        "torch_dml::coo_flatten(Tensor indices, int[] sizes) -> Tensor",
    }
}

fn check_indices(call: &Call, indices: &View, sizes: &[i64]) -> Result<()> {
    check!(
        matches!(indices.dtype, DType::I32 | DType::I64)
            && indices.dim() == 2
            && indices.sizes[0] <= sizes.len() as i64,
        Runtime,
        "{}: {} are no indices into dimensions of {sizes:?}",
        call.name,
        indices.describe()
    );
    Ok(())
}

/// The coordinates of all entries in one dimension.
pub fn row(indices: &View, dim: usize) -> View {
    indices.as_strided(&[indices.sizes[1]], &[indices.strides[1]], dim as i64 * indices.strides[0])
}

/// A new vector, computed elementwise from others with a common dtype, and from numbers.
pub fn computed(call: &Call, function: impl Into<Variant>, rows: &[&View], numbers: &[i64]) -> Result<View> {
    let out = call.empty(rows[0].dtype, &rows[0].sizes)?;
    compute_into(call, function, &out, rows, numbers)?;
    Ok(out)
}

fn compute_into(call: &Call, function: impl Into<Variant>, out: &View, rows: &[&View], numbers: &[i64]) -> Result<()> {
    let dtype = rows[0].dtype;
    let tensors = rows.iter().map(|&row| Input::Tensor(row.clone()));
    let inputs: Vec<Input> = tensors.chain(numbers.iter().map(|&n| Input::Number(Scalar::Int(n), dtype))).collect();
    Ok(kernel::run(call, function, &[out], &inputs, dtype)?)
}

/// A division of a vector of this dtype by a number.
fn by_number(function: &'static Function, dtype: DType) -> Variant {
    Rounding { steps: false, dividend: false, divisor: true }.of(function, dtype)
}

/// The elements of a vector, or the columns of indices, with the indices `chosen`.
pub fn chosen(call: &Call, t: &View, chosen: &View) -> Result<View> {
    let dim = t.dim() - 1;
    let mut sizes = t.sizes.clone();
    sizes[dim] = chosen.numel();
    let out = call.empty(t.dtype, &sizes)?;
    Slices { dim, index: chosen, negative: false }.run(call, t, &sizes, &Action::Read(&out))?;
    Ok(out)
}

/// The number of each entry's position.
pub fn numbers(call: &Call, indices: &View, sizes: &[i64]) -> Result<View> {
    check_indices(call, indices, sizes)?;
    if indices.sizes[0] == 0 {
        let zeros = call.empty(indices.dtype, &[indices.sizes[1]])?;
        fill_with(call, &zeros, Scalar::Int(0))?;
        return Ok(zeros);
    }
    let mut flat = row(indices, 0);
    for (dim, &size) in sizes.iter().enumerate().take(indices.sizes[0] as usize).skip(1) {
        let rows = [&row(indices, dim), &flat];
        flat = if size == 1 { computed(call, &ADD, &rows, &[])? } else { computed(call, &ADD_ALPHA, &rows, &[size])? };
    }
    Ok(flat)
}

/// The inverse of [`numbers`].
fn positions(call: &Call, flat: &View, sizes: &[i64]) -> Result<View> {
    let indices = call.empty(flat.dtype, &[sizes.len() as i64, flat.numel()])?;
    let mut rest = flat.clone();
    for (dim, &size) in sizes.iter().enumerate().skip(1).rev() {
        compute_into(call, by_number(&REMAINDER, flat.dtype), &row(&indices, dim), &[&rest], &[size])?;
        rest = computed(call, by_number(&DIV_TRUNC, flat.dtype), &[&rest], &[size])?;
    }
    if !sizes.is_empty() {
        device_copy(call, &rest, &row(&indices, 0))?;
    }
    Ok(indices)
}

/// The index of each element of `wanted` in the sorted vector `sorted`, or any index, and whether
/// it is there.
fn found(call: &Call, sorted: &View, wanted: &View) -> Result<[View; 2]> {
    let dtype = if sorted.dtype == wanted.dtype { sorted.dtype } else { DType::I64 };
    let (sorted, wanted) = (&cast(call, sorted, dtype)?, &cast(call, wanted, dtype)?);
    let positions = call.result_of(|call| search(call, sorted, wanted, None, false, false, Out::New))?;
    let positions = computed(call, &MINIMUM, &[&positions], &[sorted.numel() - 1])?;
    let there = call.empty(DType::Bool, &wanted.sizes)?;
    compute_into(call, &EQ, &there, &[&chosen(call, sorted, &positions)?, wanted], &[])?;
    Ok([positions, there])
}

/// The distinct numbers in order, and the index of each number among them.
struct Distinct {
    ordered: Ordered,
    starts: View,
    numbers: View,
}

impl Distinct {
    fn of(call: &Call, numbers: &View) -> Result<Distinct> {
        let (elements, order) = sort::by_rows(call, &as_contiguous(call, numbers)?, 0, false)?;
        let n = elements.numel();
        let ranked = Ordered { elements: elements.clone(), width: 1, n, order: None };
        let starts = ranked.starts(call)?;
        let numbers = chosen(call, &elements, &starts)?;
        Ok(Distinct { ordered: Ordered { order: Some(order), ..ranked }, starts, numbers })
    }
}

fn flatten(call: &mut Call, indices: &View, sizes: &[i64]) -> Result<()> {
    let flat = numbers(call, indices, sizes)?;
    // For one dimension it is a view of the indices.
    let flat = if flat.handle == 0 { call.host.view(indices, &flat)? } else { flat };
    call.ret(flat);
    Ok(())
}

/// The distinct positions of the entries in order, and for each entry the index of its position.
pub fn distinct(call: &Call, indices: &View, sizes: &[i64]) -> Result<[View; 2]> {
    let flat = numbers(call, indices, sizes)?;
    let distinct = Distinct::of(call, &flat)?;
    let inverse = distinct.ordered.inverse(call, &distinct.starts, true, &[flat.numel()])?;
    Ok([positions(call, &distinct.numbers, sizes)?, inverse])
}

/// For each wanted position, the index of an entry (whose positions are sorted) with this position,
/// or of any entry, and whether there is one.
pub fn find(call: &Call, indices: &View, wanted: &View, sizes: &[i64]) -> Result<[View; 2]> {
    found(call, &numbers(call, indices, sizes)?, &numbers(call, wanted, sizes)?)
}

/// For each wanted position, the number of entries with it, and whether there is one.
pub fn count(call: &Call, indices: &View, wanted: &View, sizes: &[i64]) -> Result<[View; 2]> {
    let distinct = Distinct::of(call, &numbers(call, indices, sizes)?)?;
    let counts = distinct.ordered.counts(call, &distinct.starts, true)?;
    let [positions, there] = found(call, &distinct.numbers, &numbers(call, wanted, sizes)?)?;
    Ok([chosen(call, &counts, &positions)?, there])
}

/// The positions that both tensors (with sorted positions) have, and the indices of their entries
/// in both.
pub fn intersect(call: &Call, indices: &View, other: &View, sizes: &[i64]) -> Result<[View; 3]> {
    let [positions, there] = find(call, other, indices, sizes)?;
    let coordinates = nonzero::coordinates(call, &there)?;
    let common = coordinates.as_strided(&[coordinates.numel()], &[1], 0);
    Ok([chosen(call, indices, &common)?, chosen(call, &positions, &common)?, common])
}

/// Indices into a dimension with negative ones, which count from the end, made nonnegative. `index`
/// is a vector of int64 that is not empty.
pub fn wrap(call: &Call, index: &View, dim: usize, sizes: &[i64]) -> Result<View> {
    let size = sizes[dim];
    let extremes = [call.empty(DType::I64, &[])?, call.empty(DType::I64, &[])?];
    extremum::both(call, &as_contiguous(call, index)?, [&extremes[0], &extremes[1]], Axes::all(false))?;
    for extreme in &extremes {
        for x in read_numbers::<Vec<_>>(call, extreme)?.into_iter().map(Scalar::to_i64) {
            check!(
                (-size..size).contains(&x),
                Index,
                "index_select(): index contains {x} that is out of range for tensor of size {sizes:?} at dimension \
                 {dim}"
            );
        }
    }
    computed(call, by_number(&REMAINDER, index.dtype), &[index], &[size])
}

/// The entries of an index_select along a sparse dimension of this size: the new coordinate and the
/// original entry.
pub fn select(call: &Call, indices: &View, dim: usize, wanted: &View, size: i64) -> Result<[View; 2]> {
    let count = wanted.numel();
    // The entries in the order of the dimension, and the start of each coordinate's entries.
    let (sorted, order) = sort::by_rows(call, &row(indices, dim), 0, false)?;
    let offsets = call.empty(DType::I64, &[size + 1])?;
    match sorted.numel() {
        0 => fill_with(call, &offsets, Scalar::Int(0))?,
        _ => convert(call, &sorted, &offsets)?,
    }
    let begin = chosen(call, &offsets.narrow(0, 0, size), wanted)?;
    let each = computed(call, &SUB, &[&chosen(call, &offsets.narrow(0, 1, size), wanted)?, &begin], &[])?;
    // For the n-th result: its coordinate, and the distance of its index in the order from n.
    let coordinates = call.result_of(|call| repeat_interleave(call, &each, None))?;
    let before = call.empty(DType::I64, &[count + 1])?;
    device_copy(call, &each, &before.narrow(0, 0, count))?;
    prefix_sum::exclusive(call, &before, count)?;
    let apart = computed(call, &SUB, &[&begin, &before.narrow(0, 0, count)], &[])?;
    let nth = call.empty(DType::I64, &coordinates.sizes)?;
    call.result_of(|call| arange(call, Scalar::Int(0), Scalar::Int(nth.numel()), Scalar::Int(1), Out::Into(&nth)))?;
    let positions = computed(call, &ADD, &[&nth, &chosen(call, &apart, &coordinates)?], &[])?;
    Ok([coordinates, chosen(call, &order, &positions)?])
}
