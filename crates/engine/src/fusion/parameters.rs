//! The order of the parameters of pointwise kernels, defined only here.
//!
//! A pointwise kernel has the addresses of its results, the addresses of its input tensors, its
//! numbers, and the number of elements. Single and fused kernels declare and pass them here, and
//! fusion reads the arguments of a chain's launches here.

use crate::kernels::argument_block::ArgumentBlock;
use crate::kernels::pointwise::PointwiseInput;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::SmallVec;

/// The parameters of a pointwise kernel.
pub struct PointwiseParameters<'b> {
    /// The results.
    pub outs: Vec<Pointer<'b>>,
    /// The input tensors, in order.
    pub tensors: Vec<Pointer<'b>>,
    /// The numbers, in order.
    pub numbers: Vec<Value<'b>>,
    /// The number of elements.
    pub numel: Value<'b>,
}

impl<'b> PointwiseParameters<'b> {
    /// Declares the parameters of a kernel with results of these dtypes and these inputs; `index`
    /// is the type of the number of elements.
    pub fn declare(
        b: &'b Builder,
        outs: impl IntoIterator<Item = DType>,
        inputs: impl IntoIterator<Item = PointwiseInput> + Clone,
        index: ScalarType,
    ) -> Self {
        let outs = outs.into_iter().enumerate().map(|(i, dtype)| b.pointer(&format!("out{i}"), dtype)).collect();
        let tensor = |(i, input)| match input {
            PointwiseInput::Tensor { dtype, .. } => Some(b.input(&format!("in{i}"), dtype)),
            PointwiseInput::Number(_) => None,
        };
        let tensors = inputs.clone().into_iter().enumerate().filter_map(tensor).collect();
        let number = |(i, input)| match input {
            PointwiseInput::Number(ScalarType::Bool) => {
                Some(b.param(&format!("number{i}"), ScalarType::U32).cast(ScalarType::Bool))
            }
            PointwiseInput::Number(scalar) => Some(b.param(&format!("number{i}"), scalar)),
            PointwiseInput::Tensor { .. } => None,
        };
        let numbers = inputs.into_iter().enumerate().filter_map(number).collect();
        Self { outs, tensors, numbers, numel: b.param("numel", index) }
    }

    /// Packs the parameters that [`declare`](Self::declare) declares: addresses of results and of
    /// input tensors, the bits of numbers, the number of elements. The caller names the ranges.
    #[inline]
    pub fn pass(
        block: &mut ArgumentBlock,
        outs: impl IntoIterator<Item = u64>,
        tensors: impl IntoIterator<Item = u64>,
        numbers: impl IntoIterator<Item = (ScalarType, u64)>,
        index: ScalarType,
        numel: u64,
    ) {
        for address in outs.into_iter().chain(tensors) {
            block.memory(address);
        }
        let scalar = |block: &mut ArgumentBlock, scalar: ScalarType, bits: u64| {
            if scalar.bytes() == 8 {
                block.scalar(bits.to_ne_bytes())
            } else {
                block.scalar((bits as u32).to_ne_bytes())
            }
        };
        for (number, bits) in numbers {
            scalar(block, number, bits);
        }
        scalar(block, index, numel);
    }
}

/// A number among packed parameters.
#[derive(Copy, Clone)]
pub(super) struct PackedNumber {
    at: u16,
    pub(super) scalar: ScalarType,
}

impl PackedNumber {
    /// Its bytes in the block.
    pub(super) fn bytes(&self) -> usize {
        self.scalar.bytes().max(4) as usize
    }

    /// Its bits, in the parameters that it was found in.
    pub(super) fn bits(&self, params: &[u8]) -> u64 {
        let at = usize::from(self.at);
        if self.bytes() == 8 { word(params, at).unwrap_or(0) } else { u64::from(half_word(params, at).unwrap_or(0)) }
    }
}

/// The packed parameters of a launch whose elements are counted in 32 bits.
pub(super) struct Packed<'p> {
    params: &'p [u8],
    outs: usize,
    /// The numbers, in order.
    pub(super) numbers: SmallVec<[PackedNumber; 2]>,
    /// Elements.
    pub(super) numel: u32,
}

impl<'p> Packed<'p> {
    /// Reads the parameters of a kernel with `outs` results and these inputs. `None` if there are
    /// too few bytes.
    pub(super) fn read(params: &'p [u8], outs: usize, inputs: &[PointwiseInput]) -> Option<Self> {
        let tensors = inputs.iter().filter(|i| matches!(i, PointwiseInput::Tensor { .. })).count();
        let mut numbers = SmallVec::new();
        let mut at: usize = 8 * (outs + tensors);
        for input in inputs {
            if let PointwiseInput::Number(scalar) = *input {
                let mut number = PackedNumber { at: 0, scalar };
                at = at.next_multiple_of(number.bytes());
                number.at = at as u16;
                at += number.bytes();
                numbers.push(number);
            }
        }
        Some(Self { params, outs, numbers, numel: half_word(params, at)? })
    }

    /// The address of result `i`.
    pub(super) fn out(&self, i: usize) -> u64 {
        word(self.params, 8 * i).unwrap_or(0)
    }

    /// The address of input tensor `i`, counting tensors only.
    pub(super) fn tensor(&self, i: usize) -> u64 {
        word(self.params, 8 * (self.outs + i)).unwrap_or(0)
    }
}

fn word(params: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(params.get(at..at + 8)?.try_into().ok()?))
}

fn half_word(params: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(params.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Packed parameters are found again, at the offsets that a kernel reads.
    #[test]
    fn packed_parameters_are_read_as_they_were_passed() {
        let tensor = PointwiseInput::Tensor { dtype: DType::F32, constant: false };
        let inputs = [tensor, PointwiseInput::Number(ScalarType::F32), tensor, PointwiseInput::Number(ScalarType::F64)];
        let mut block = ArgumentBlock::default();
        let numbers = [(ScalarType::F32, 7), (ScalarType::F64, u64::MAX - 1)];
        PointwiseParameters::pass(&mut block, [0x100], [0x200, 0x300], numbers, ScalarType::U32, 99);
        let params = block.params().to_vec();
        let packed = Packed::read(&params, 1, &inputs).unwrap();
        assert_eq!((packed.out(0), packed.tensor(0), packed.tensor(1), packed.numel), (0x100, 0x200, 0x300, 99));
        assert_eq!(packed.numbers[0].bits(&params), 7);
        assert_eq!(packed.numbers[1].bits(&params), u64::MAX - 1);
        let b = Builder::new("test", [1, 1, 1]);
        PointwiseParameters::declare(&b, [DType::F32], inputs, ScalarType::U32);
        assert_eq!(b.finish().emit().unwrap().param_bytes as usize, params.len());
        assert!(Packed::read(&params[..20], 1, &inputs).is_none());
    }
}
