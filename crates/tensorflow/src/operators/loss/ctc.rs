//! The loss of connectionist temporal classification, with its gradient. The blank label is 0.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::constants::vector;
use crate::require;
use dml_compute::Scalar;
use dml_compute::loss::ctc::backward::gradient;
use dml_compute::loss::ctc::forward::losses;
use dml_compute::loss::ctc::problem::{Problem, Sizes};
use dml_compute::movement::copy;
use dml_compute::normalization::softmax::{Mode, rows};
use dml_compute::primitives::loops::check_loop_iterations;
use dml_kernel::DType;

/// What an operator's attributes say.
#[derive(Copy, Clone)]
struct Ctc {
    /// Repeated labels of a target count once.
    collapse: bool,
    /// A target that is longer than its frames has no loss; else it is an error.
    ignore_longer: bool,
}

/// The labels of each example, from inputs 1 and 2 on the host: a sparse matrix's indices and
/// values.
fn targets(call: &Call, ctc: Ctc, batch: i64, labels: i64) -> Result<Vec<Vec<i64>>> {
    let (indices, values) = (call.host_ints(1)?, call.host_ints(2)?);
    let shape = call.sizes(1)?;
    require!(
        shape.len() == 2 && shape[1] == 2 && shape[0] == values.len() as i64,
        "labels_indices and labels_values do not belong together: {shape:?}, {}",
        values.len()
    );
    let mut targets = vec![Vec::new(); batch as usize];
    for (index, &label) in indices.chunks_exact(2).zip(&values) {
        require!(
            (0..batch).contains(&index[0]),
            "labels batch index must be between 0 and {batch} but saw: {}",
            index[0]
        );
        require!((0..labels).contains(&label), "label must be between 0 and {labels}, got {label}");
        let target: &mut Vec<i64> = &mut targets[index[0] as usize];
        if !(ctc.collapse && target.last() == Some(&label)) {
            target.push(label);
        }
    }
    Ok(targets)
}

/// `CTCLossV2`.
fn loss(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let ctc = Ctc {
        collapse: attributes.bool("preprocess_collapse_repeated")?,
        ignore_longer: attributes.bool("ignore_longer_outputs_than_inputs")?,
    };
    if !attributes.bool("ctc_merge_repeated")? {
        return Err(Error::Unimplemented("CTC loss without merging of repeated labels".to_owned()));
    }
    Ok(move |call: &Call| {
        let (cx, inputs) = (call.cx(), call.input(0)?);
        require!(inputs.dim() == 3, "inputs is not a 3-Tensor: {:?}", inputs.sizes);
        let [frames, batch, labels] = [inputs.sizes[0], inputs.sizes[1], inputs.sizes[2]];
        require!(batch > 0, "batch_size must not be 0");
        let mut lengths = call.host_ints(3)?;
        require!(lengths.len() as i64 == batch, "len(sequence_length) != batch_size: {} vs {batch}", lengths.len());
        let mut targets = targets(call, ctc, batch, labels)?;
        for (length, target) in lengths.iter_mut().zip(&mut targets) {
            require!((0..=frames).contains(length), "sequence_length must be between 0 and {frames}: {length}");
            let repeats = target.windows(2).filter(|pair| pair[0] == pair[1]).count();
            if (target.len() + repeats) as i64 > *length {
                require!(
                    ctc.ignore_longer,
                    "Not enough time for target transition sequence (required: {}, available: {length})",
                    target.len() + repeats
                );
                // No labels in no frames: no loss.
                (*length, *target) = (0, Vec::new());
            }
        }
        let (out, grad) = (call.output(0, &[batch])?, call.output(1, &inputs.sizes)?);
        let most = targets.iter().map(Vec::len).max().unwrap_or(0) as i64;
        let counts: Vec<i64> = targets.iter().map(|target| target.len() as i64).collect();
        let starts = counts.iter().scan(0, |end, count| {
            *end += count;
            Some(*end - count)
        });
        let table: Vec<Scalar> =
            lengths.iter().copied().chain(counts.iter().copied()).chain(starts).map(Scalar::Int).collect();
        let all: Vec<Scalar> =
            targets.iter().flatten().map(|&label| Scalar::Int(label)).chain([Scalar::Int(0)]).collect();
        let problem = Problem {
            log_probs: cx.empty(DType::F32, &inputs.sizes)?,
            targets: vector(call, DType::I64, &all)?,
            lengths: vector(call, DType::I64, &table)?,
            sizes: Sizes { frames, batch, labels, states: 2 * most + 1, blank: 0 },
            max_length: lengths.iter().copied().max().unwrap_or(0),
        };
        check_loop_iterations(&cx, 2 * problem.sizes.states)?;
        if inputs.numel() > 0 {
            rows(&cx, Mode::LogSoftmax, &[inputs], 2, &problem.log_probs)?;
        }
        let alpha = problem.paths(&cx)?;
        losses(&cx, &problem, &out, &alpha)?;
        if grad.numel() > 0 {
            let ones = cx.empty(DType::F32, &[batch])?;
            copy::fill_with(&cx, &ones, Scalar::Int(1))?;
            gradient(&cx, &problem, &ones, &out, &alpha, true, &grad)?;
        }
        Ok(())
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![Operator::new("CTCLossV2", loss).on_host(&["labels_indices", "labels_values", "sequence_length"])]
}
