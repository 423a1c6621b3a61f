//! Distribution of slices by number: `DynamicStitch` and `DynamicPartition`.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::ALL_AND_I32;
use crate::operators::common::index_access::Places;
use crate::operators::common::regions::{Region, copy_regions, fill, reshaped};
use crate::require;
use dml_compute::movement::copy::read_numbers;
use dml_compute::{Dims, Scalar, View};
use dml_kernel::DType;

/// `DynamicStitch`: the last slice for each index. A row without one is 0.
fn stitch(call: &Call) -> Result<()> {
    let count = call.inputs() / 2;
    let data: Vec<View> = (count..2 * count).map(|i| call.input(i)).collect::<Result<_>>()?;
    let mut slice: Option<Dims> = None;
    // Where each row comes from: the input, and the slice in it.
    let mut sources: Vec<Option<(usize, i64)>> = Vec::new();
    for (i, t) in data.iter().enumerate() {
        let shape = call.sizes(i)?;
        require!(
            shape.len() <= t.dim() && t.sizes[..shape.len()] == shape[..],
            "data[{i}].shape = {:?} does not start with indices[{i}].shape = {:?}",
            t.sizes.as_slice(),
            shape.as_slice()
        );
        let own = Dims::from_slice(&t.sizes[shape.len()..]);
        require!(
            slice.as_ref().is_none_or(|slice| *slice == own),
            "Need data[0].shape and data[{i}].shape to be the same after the dimensions of the indices"
        );
        slice = Some(own);
        for (at, &row) in call.host_ints(i)?.iter().enumerate() {
            require!(row >= 0, "indices[{i}] is out of range: {row}");
            if row as usize >= sources.len() {
                sources.resize(row as usize + 1, None);
            }
            sources[row as usize] = Some((i, at as i64));
        }
    }
    let slice = slice.unwrap_or_default();
    let n: i64 = slice.iter().product();
    let rows = sources.len() as i64;
    let sizes: Dims = [rows].into_iter().chain(slice).collect();
    let out = call.output(0, &sizes)?;
    if out.numel() == 0 {
        return Ok(());
    }
    if sources.contains(&None) {
        fill(call, &out, Scalar::Int(0))?;
    }
    let out = reshaped(&out, &[rows, n]);
    let mut regions = Vec::new();
    let mut row = 0;
    while row < sources.len() {
        let first = row;
        row += 1;
        let Some((input, at)) = sources[first] else { continue };
        // Adjacent slices that stay adjacent are copied together.
        while row < sources.len() && sources[row] == Some((input, at + (row - first) as i64)) {
            row += 1;
        }
        let length = (row - first) as i64;
        let from = data[input].as_strided(&[length, n], &[n, 1], at * n);
        regions.push(Region::whole(out.narrow(0, first as i64, length), from));
    }
    copy_regions(call, regions)
}

/// `DynamicPartition`. The partitions are read back: they determine the results' sizes.
fn partition(call: &Call) -> Result<()> {
    let (cx, data, partitions) = (call.cx(), call.input(0)?, call.input(1)?);
    let (rank, count) = (partitions.dim(), call.outputs());
    require!(
        rank <= data.dim() && data.sizes[..rank] == partitions.sizes[..],
        "data.shape must start with partitions.shape, got data.shape = {:?}, partitions.shape = {:?}",
        data.sizes.as_slice(),
        partitions.sizes.as_slice()
    );
    let numbers: Vec<Scalar> = if partitions.numel() == 0 { Vec::new() } else { read_numbers(&cx, &partitions)? };
    let mut slices: Vec<Vec<i32>> = vec![Vec::new(); count];
    for (at, number) in numbers.iter().enumerate() {
        let number = number.to_i64();
        require!((0..count as i64).contains(&number), "partitions[{at}] = {number} is not in [0, {count})");
        slices[number as usize].push(at as i32);
    }
    let order = cx.empty(DType::I32, &[numbers.len() as i64])?;
    let bytes: Vec<u8> = slices.iter().flatten().flat_map(|at| at.to_le_bytes()).collect();
    if !bytes.is_empty() {
        cx.upload(order.data, &bytes)?;
    }
    let rest = &data.sizes[rank..];
    let rows: Dims = [partitions.numel()].into_iter().chain(rest.iter().copied()).collect();
    let data = reshaped(&data, &rows);
    let mut first = 0;
    for (i, chosen) in slices.iter().enumerate() {
        let n = chosen.len() as i64;
        let sizes: Dims = [n].into_iter().chain(rest.iter().copied()).collect();
        let out = call.output(i, &sizes)?;
        if out.numel() > 0 {
            Places::of_first(&order.narrow(0, first, n)).read(call, &data, &out)?;
        }
        first += n;
    }
    Ok(())
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("DynamicStitch", stitch).of("T", ALL_AND_I32).on_host(&["indices"]),
        Operator::plain("DynamicPartition", partition).of("T", ALL_AND_I32),
    ]
}
