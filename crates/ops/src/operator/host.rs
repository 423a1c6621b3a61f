//! The one place that reads host memory: values of 0-dim CPU tensors that meet device tensors.
#![allow(unsafe_code)]

use crate::operator::call::Scalar;
use crate::operator::error::{Error, Result};
use crate::tensor::{DeviceKind, Tensor};
use dml_kernel::DType;

/// The value of a CPU tensor with one element.
pub fn read_number(t: &Tensor) -> Result<Scalar> {
    if t.place != DeviceKind::Cpu || t.numel() != 1 || t.data == 0 {
        return Err(Error::Runtime(format!("expected a CPU tensor with one element, got {}", t.describe())));
    }
    let mut bytes = [0u8; 8];
    let n = t.element_size() as usize;
    // SAFETY: the caller's tensor is alive for the whole call, lies in host memory and holds one element of n bytes.
    bytes[..n].copy_from_slice(unsafe { std::slice::from_raw_parts(t.data as *const u8, n) });
    Ok(decode(t.dtype, bytes))
}

/// One element of a dtype from its bytes in memory (the first `dtype.bytes()` of the eight).
pub fn decode(dtype: DType, b: [u8; 8]) -> Scalar {
    let two = [b[0], b[1]];
    let four = [b[0], b[1], b[2], b[3]];
    match dtype {
        DType::Bool => Scalar::Bool(b[0] != 0),
        DType::U8 => Scalar::Int(i64::from(b[0])),
        DType::I8 => Scalar::Int(i64::from(b[0] as i8)),
        DType::I16 => Scalar::Int(i64::from(i16::from_le_bytes(two))),
        DType::U16 => Scalar::Int(i64::from(u16::from_le_bytes(two))),
        DType::I32 => Scalar::Int(i64::from(i32::from_le_bytes(four))),
        DType::U32 => Scalar::Int(i64::from(u32::from_le_bytes(four))),
        DType::I64 | DType::U64 => Scalar::Int(i64::from_le_bytes(b)),
        DType::F16 => Scalar::Double(half::f16::from_le_bytes(two).to_f64()),
        DType::BF16 => Scalar::Double(half::bf16::from_le_bytes(two).to_f64()),
        DType::F32 => Scalar::Double(f64::from(f32::from_le_bytes(four))),
        DType::F64 => Scalar::Double(f64::from_le_bytes(b)),
    }
}

/// The bits of a number as an element of a dtype.
pub fn bits(dtype: DType, x: Scalar) -> u64 {
    match dtype {
        DType::Bool => u64::from(x.to_f64() != 0.0),
        DType::F16 => u64::from(half::f16::from_f64(x.to_f64()).to_bits()),
        DType::BF16 => u64::from(half::bf16::from_f64(x.to_f64()).to_bits()),
        DType::F32 => u64::from((x.to_f64() as f32).to_bits()),
        DType::F64 => x.to_f64().to_bits(),
        _ => x.to_i64() as u64 & (u64::MAX >> (64 - 8 * dtype.bytes())),
    }
}

/// The bytes of a contiguous CPU tensor.
pub fn bytes(t: &Tensor) -> Result<&[u8]> {
    let n = host_extent(t)?;
    // SAFETY: as in `read_number`; a contiguous tensor of n bytes starts at `data`.
    Ok(if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(t.data as *const u8, n) } })
}

/// The bytes of a CPU tensor of any strides, in row-major order.
pub fn bytes_in_order(t: &Tensor) -> Result<Vec<u8>> {
    if t.is_contiguous() {
        return Ok(bytes(t)?.to_vec());
    }
    let range = t.range();
    let row = t.as_strided(&[(range.end - range.start) as i64 / t.element_size() as i64], &[1], 0);
    let (all, size) = (bytes(&row)?, t.element_size() as usize);
    let mut offsets = vec![0i64];
    for (&n, &stride) in t.sizes.iter().zip(&t.strides) {
        offsets = offsets.iter().flat_map(|o| (0..n).map(move |i| o + i * stride)).collect();
    }
    Ok(offsets.iter().flat_map(|&o| &all[o as usize * size..][..size]).copied().collect())
}

/// The bytes of a contiguous CPU tensor that the caller lets this call overwrite.
pub fn bytes_mut(t: &mut Tensor) -> Result<&mut [u8]> {
    let n = host_extent(t)?;
    // SAFETY: as in `bytes`; the caller hands this tensor over for writing and holds no other reference to its memory.
    Ok(if n == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(t.data as *mut u8, n) } })
}

fn host_extent(t: &Tensor) -> Result<usize> {
    if t.place != DeviceKind::Cpu || !t.is_contiguous() {
        return Err(Error::Runtime(format!("expected a contiguous CPU tensor, got {}", t.describe())));
    }
    Ok(t.numel() as usize * t.element_size() as usize)
}
