//! The checked arguments of a CTC loss.

use crate::check;
use crate::operator::argument::{AnyTensor, TensorOrInts};
use crate::operator::call::Call;
use crate::operator::error::Result;
use dml_compute::host;
use dml_compute::loss::ctc::problem::{Problem, Sizes};
use dml_compute::movement::copy::as_contiguous;
use dml_compute::view::{Location, View};
use dml_kernel::DType;

/// The integers of a list, which may also be a tensor on any device.
fn integers(call: &Call, list: TensorOrInts) -> Result<Vec<i64>> {
    let t = match list {
        TensorOrInts::Ints(list) => return Ok(list.to_vec()),
        TensorOrInts::Tensor(AnyTensor(t)) => t,
    };
    check!(t.dtype.is_integer(), Runtime, "{}: lengths must be integral", call.name);
    let bytes = if t.location == Location::Host {
        host::row_major_bytes(t)?
    } else {
        call.check_place(t)?;
        let dense = as_contiguous(call, t)?;
        let mut bytes = vec![0; dense.numel() as usize * dense.element_size() as usize];
        call.download(dense.data, &mut bytes)?;
        bytes
    };
    let size = t.element_size() as usize;
    Ok(bytes.chunks_exact(size).map(|bytes| host::element(t.dtype, bytes).to_i64()).collect())
}

/// Checks the arguments as PyTorch does.
pub fn checked(
    call: &Call,
    log_probs: &View,
    targets: &View,
    input_lengths: TensorOrInts,
    target_lengths: TensorOrInts,
    blank: i64,
) -> Result<Problem> {
    check!(
        matches!(log_probs.dtype, DType::F32 | DType::F64),
        NotImplemented,
        "\"ctc_loss_cpu\" not implemented for '{}'",
        log_probs.dtype
    );
    check!(
        log_probs.dim() == 3,
        Runtime,
        "ctc_loss: expected log_probs [frames, batch, labels], got {}",
        log_probs.describe()
    );
    check!(
        matches!(targets.dtype, DType::I64 | DType::I32),
        Runtime,
        "ctc_loss: targets must be of dtype Long or Int, but got {}",
        targets.dtype
    );
    let (frames, batch, labels) = (log_probs.sizes[0], log_probs.sizes[1], log_probs.sizes[2]);
    check!((0..labels).contains(&blank), Runtime, "blank must be in label range");
    let (inputs, counts) = (integers(call, input_lengths)?, integers(call, target_lengths)?);
    check!(inputs.len() as i64 == batch, Runtime, "input_lengths must be of size batch_size");
    check!(counts.len() as i64 == batch, Runtime, "target_lengths must be of size batch_size");
    for &n in &inputs {
        check!(
            (0..=frames).contains(&n),
            Runtime,
            "Expected input_lengths to have value at most {frames}, but got value {n} (while checking arguments for \
             ctc_loss)"
        );
    }
    for &n in &counts {
        check!(n >= 0, Runtime, "Expected target_lengths to have value at least 0, but got value {n}");
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let starts: Vec<i64> = if targets.dim() == 1 {
        let starts = counts.iter().scan(0, |at, &n| {
            *at += n;
            Some(*at - n)
        });
        let (starts, total) = (starts.collect(), counts.iter().sum::<i64>());
        check!(
            targets.numel() == total,
            Runtime,
            "Expected tensor to have size {total} at dimension 0, but got size {} for argument #2 'targets' (while \
             checking arguments for ctc_loss)",
            targets.numel()
        );
        starts
    } else {
        check!(
            targets.dim() == 2 && targets.sizes[0] == batch && targets.sizes[1] >= most,
            Runtime,
            "Expected tensor to have size at least {most} at dimension 1, but got size {:?} for argument #2 'targets' \
             (while checking arguments for ctc_loss)",
            targets.sizes.as_slice()
        );
        (0..batch).map(|b| b * targets.sizes[1]).collect()
    };
    let lengths = call.empty(DType::I64, &[3, batch])?;
    let bytes: Vec<u8> = inputs.iter().chain(&counts).chain(&starts).flat_map(|n| n.to_le_bytes()).collect();
    if batch > 0 {
        call.upload(lengths.data, &bytes)?;
    }
    Ok(Problem {
        log_probs: as_contiguous(call, log_probs)?,
        targets: as_contiguous(call, targets)?,
        lengths,
        sizes: Sizes { frames, batch, labels, states: 2 * most + 1, blank },
        max_length: inputs.iter().copied().max().unwrap_or(0),
    })
}
