//! The checked arguments of a CTC loss, and what its kernels share of them.

use crate::check;
use crate::movement::copy::as_contiguous;
use crate::operator::argument::{AnyTensor, TensorOrInts};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::host;
use crate::tensor::layout::index_type;
use crate::tensor::{DeviceKind, Tensor};
use dml_engine::interface::Index;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Checked arguments.
pub struct Problem {
    /// `[frames, batch, labels]`, contiguous.
    pub log_probs: Tensor,
    /// The labels of all examples, contiguous.
    pub targets: Tensor,
    /// For each example: its frames, its labels, and where they begin. int64, `[3, batch]`.
    pub lengths: Tensor,
    /// How large all of it is.
    pub sizes: Sizes,
    /// The most frames of an example.
    pub longest: i64,
}

/// The numbers that kernels take.
#[derive(Copy, Clone)]
pub struct Sizes {
    /// Frames of `log_probs`.
    pub frames: i64,
    /// Examples.
    pub batch: i64,
    /// Labels that there are, with blank.
    pub labels: i64,
    /// The most states of an example.
    pub states: i64,
    /// The label that stands for none.
    pub blank: i64,
}

/// What changes the code of every kernel here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Of log-probabilities.
    pub dtype: DType,
    /// Of targets: int32 or int64.
    pub targets: DType,
    /// The type of indices.
    pub index: ScalarType,
}

/// [`Sizes`] as a kernel's parameter.
pub struct SizesOf;

/// [`Sizes`] in a kernel.
#[derive(Copy, Clone)]
pub struct SizeParams<'b> {
    pub frames: Value<'b>,
    pub batch: Value<'b>,
    pub labels: Value<'b>,
    pub states: Value<'b>,
    pub blank: Value<'b>,
}

impl Parameter for SizesOf {
    /// The type of all.
    type Type = ScalarType;
    type Argument<'a> = Sizes;
    type Declared<'b> = SizeParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, index: &ScalarType) -> SizeParams<'b> {
        let [frames, batch, labels, states, blank] =
            ["frames", "batch", "labels", "states", "blank"].map(|name| b.param(name, *index));
        SizeParams { frames, batch, labels, states, blank }
    }

    fn pass(sizes: &Sizes, index: &ScalarType, block: &mut ArgumentBlock) {
        for size in [sizes.frames, sizes.batch, sizes.labels, sizes.states, sizes.blank] {
            Index::pass(&size, index, block);
        }
    }
}

/// The integers of a list, which may also be a tensor on any device.
fn integers(call: &Call, list: TensorOrInts) -> Result<Vec<i64>> {
    let t = match list {
        TensorOrInts::Ints(list) => return Ok(list.to_vec()),
        TensorOrInts::Tensor(AnyTensor(t)) => t,
    };
    check!(t.dtype.is_integer(), Runtime, "{}: lengths must be integral", call.name);
    let bytes = if t.place == DeviceKind::Cpu {
        host::bytes_in_order(t)?
    } else {
        call.check_place(t)?;
        let dense = as_contiguous(call, t)?;
        let mut bytes = vec![0; dense.numel() as usize * dense.element_size() as usize];
        call.device.download(dense.data, &mut bytes)?;
        bytes
    };
    let size = t.element_size() as usize;
    Ok(bytes
        .chunks_exact(size)
        .map(|b| {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(b);
            host::decode(t.dtype, wide).to_i64()
        })
        .collect())
}

impl Problem {
    /// Checks arguments as PyTorch does.
    pub fn new(
        call: &Call,
        log_probs: &Tensor,
        targets: &Tensor,
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
            call.device.upload(lengths.data, &bytes)?;
        }
        Ok(Problem {
            log_probs: as_contiguous(call, log_probs)?,
            targets: as_contiguous(call, targets)?,
            lengths,
            sizes: Sizes { frames, batch, labels, states: 2 * most + 1, blank },
            longest: inputs.iter().copied().max().unwrap_or(0),
        })
    }

    /// What the kernels are specialised by.
    pub fn spec(&self) -> Spec {
        let Sizes { frames, batch, states, .. } = self.sizes;
        let index = index_type(self.log_probs.numel().max(batch * frames * states));
        Spec { dtype: self.log_probs.dtype, targets: self.targets.dtype, index }
    }

    /// A tensor of a number for each frame and state of each example.
    pub fn paths(&self, call: &Call) -> Result<Tensor> {
        call.empty(self.log_probs.dtype, &[self.sizes.batch, self.sizes.frames, self.sizes.states])
    }
}
