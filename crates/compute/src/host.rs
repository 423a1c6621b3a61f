//! The only module that reads and writes host memory: values of 0-dim CPU tensors that are operands
//! together with device tensors, and copies.
//!
//! A CPU tensor's storage is memory of the plugin's tensor with the view's handle, and lives until
//! the operator's call ends; the caller of the operator guarantees this (`plugin/engine.h`), and
//! there are no other storages on the host. The offsets of a view are arithmetic of this crate, and
//! are checked here: no access is out of the storage's range.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::view::{Location, View};
use dml_kernel::DType;
use dml_kernel::float8::Format;

/// The value of a CPU tensor with one element.
pub fn read_number(t: &View) -> Result<Scalar> {
    if t.location != Location::Host || t.numel() != 1 {
        return Err(Error::Invalid(format!("expected a CPU tensor with one element, got {}", t.describe())));
    }
    let number = t.as_strided(&[], &[], 0);
    Ok(element(t.dtype, bytes(&number)?))
}

/// The value of one element, which has these bytes.
pub fn element(dtype: DType, bytes: &[u8]) -> Scalar {
    if dtype.is_complex() {
        return decode_complex(dtype, bytes);
    }
    let mut eight = [0; 8];
    eight[..bytes.len()].copy_from_slice(bytes);
    decode(dtype, eight)
}

/// Decodes one element of a complex dtype.
pub fn decode_complex(dtype: DType, bytes: &[u8]) -> Scalar {
    let part = |i: usize| {
        let mut part = [0; 8];
        let size = dtype.real().bytes() as usize;
        part[..size].copy_from_slice(&bytes[i * size..][..size]);
        decode(dtype.real(), part).to_f64()
    };
    Scalar::Complex(part(0), part(1))
}

/// Decodes one element of a real dtype (from the first `dtype.bytes()` of the eight bytes).
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
        DType::F8E4M3FN | DType::F8E5M2 | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ => {
            Scalar::Double(Format::of(dtype).map_or(f64::NAN, |format| format.number(b[0])))
        }
        DType::C32 | DType::C64 | DType::C128 => unreachable!("a complex number has two parts"),
    }
}

/// The bytes of elements of a real dtype.
pub fn elements(dtype: DType, numbers: &[Scalar]) -> Vec<u8> {
    let size = dtype.bytes() as usize;
    numbers.iter().flat_map(|&number| bits(dtype, number).to_le_bytes().into_iter().take(size)).collect()
}

/// Encodes a number as an element of a dtype.
pub fn bits(dtype: DType, x: Scalar) -> u64 {
    match dtype {
        DType::Bool => u64::from(x.to_f64() != 0.0),
        DType::F16 => u64::from(half::f16::from_f64(x.to_f64()).to_bits()),
        DType::BF16 => u64::from(half::bf16::from_f64(x.to_f64()).to_bits()),
        DType::F32 => u64::from((x.to_f64() as f32).to_bits()),
        DType::F64 => x.to_f64().to_bits(),
        DType::F8E4M3FN | DType::F8E5M2 | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ => {
            Format::of(dtype).map_or(0, |format| u64::from(format.bits(x.to_f64())))
        }
        _ => x.to_i64() as u64 & (u64::MAX >> (64 - 8 * dtype.bytes())),
    }
}

/// The bytes of a contiguous CPU tensor.
pub fn bytes(t: &View) -> Result<&[u8]> {
    let n = host_extent(t)?;
    // SAFETY: the n bytes from `data` on are inside of a host storage, which lives as long as the
    // caller has the tensor: for the time of the call. Nobody writes it meanwhile; a program that
    // writes a tensor in another thread gets undefined contents, as with any operator of the CPU.
    Ok(if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(t.data as *const u8, n) } })
}

/// The bytes of a CPU tensor with arbitrary strides, in row-major order.
pub fn row_major_bytes(t: &View) -> Result<Vec<u8>> {
    if t.is_contiguous() {
        return Ok(bytes(t)?.to_vec());
    }
    let range = t.range();
    let row = t.as_strided(&[(range.end - range.start) as i64 / t.element_size() as i64], &[1], 0);
    let (all, size) = (bytes(&row)?, t.element_size() as usize);
    Ok(offsets(t).iter().flat_map(|&o| &all[o * size..][..size]).copied().collect())
}

/// The offsets of a tensor's elements from the first one, in elements and in row-major order.
pub fn offsets(t: &View) -> Vec<usize> {
    let mut offsets = vec![0];
    for (&n, &stride) in t.sizes.iter().zip(&t.strides) {
        offsets = offsets.iter().flat_map(|o| (0..n).map(move |i| o + (i * stride) as usize)).collect();
    }
    offsets
}

/// The bytes of a contiguous CPU tensor that the caller allows this call to overwrite.
pub fn bytes_mut(t: &mut View) -> Result<&mut [u8]> {
    let n = host_extent(t)?;
    // SAFETY: as in `bytes`; the caller gives this tensor to the call for writing, and has no slice
    // of its memory.
    Ok(if n == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(t.data as *mut u8, n) } })
}

fn host_extent(t: &View) -> Result<usize> {
    if t.location != Location::Host || !t.is_contiguous() {
        return Err(Error::Invalid(format!("expected a contiguous CPU tensor, got {}", t.describe())));
    }
    let bytes = (t.numel() as u64).checked_mul(t.element_size());
    let end = bytes.and_then(|bytes| t.data.checked_add(bytes));
    match (bytes, end) {
        (Some(0), _) => Ok(0),
        (Some(bytes), Some(end)) if t.data != 0 && t.data >= t.storage.start && end <= t.storage.end => {
            Ok(bytes as usize)
        }
        _ => {
            let held = t.storage.end - t.storage.start;
            Err(Error::Invalid(format!("{} lies outside its storage of {held} bytes", t.describe())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Dims;
    use dml_engine::AddressRange;

    fn tensor(of: &[f32], sizes: &[i64], strides: &[i64]) -> View {
        let start = of.as_ptr() as u64;
        View {
            handle: 1,
            data: start,
            dtype: DType::F32,
            location: Location::Host,
            sizes: Dims::from_slice(sizes),
            strides: Dims::from_slice(strides),
            storage: AddressRange { start, end: start + 4 * of.len() as u64 },
            weak: false,
            negative: false,
            conjugate: false,
        }
    }

    #[test]
    fn what_lies_in_the_storage_is_read() {
        let memory = [1.0f32, 2.0, 3.0, 4.0];
        let t = tensor(&memory, &[2, 2], &[1, 2]);
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect()
        };
        assert_eq!(row_major_bytes(&t).map(|bytes| floats(&bytes)).ok(), Some(vec![1.0, 3.0, 2.0, 4.0]));
        assert_eq!(bytes(&t.as_strided(&[3], &[1], 1)).map(floats).ok(), Some(vec![2.0, 3.0, 4.0]));
        assert_eq!(read_number(&t.as_strided(&[1, 1], &[7, 7], 3)).ok(), Some(Scalar::Double(4.0)));
        assert!(bytes(&t.as_strided(&[0], &[1], 9)).is_ok_and(<[u8]>::is_empty));
    }

    #[test]
    fn what_lies_outside_is_an_error() {
        let memory = [1.0f32, 2.0, 3.0, 4.0];
        let t = tensor(&memory, &[4], &[1]);
        for (sizes, strides, offset) in
            [(&[4i64][..], &[1i64][..], 1i64), (&[5], &[1], 0), (&[1], &[1], -1), (&[1 << 62], &[1], 0), (&[], &[], 4)]
        {
            let view = t.as_strided(sizes, strides, offset);
            assert!(bytes(&view).is_err() && bytes_mut(&mut view.clone()).is_err(), "{}", view.describe());
        }
        assert!(row_major_bytes(&t.as_strided(&[2, 2], &[1, 3], 0)).is_err());
        assert!(read_number(&t.as_strided(&[], &[], 4)).is_err() && read_number(&t.as_strided(&[], &[], -1)).is_err());
        let gone = View { storage: AddressRange { start: t.data, end: t.data }, ..t };
        assert!(bytes(&gone).is_err() && read_number(&gone.as_strided(&[], &[], 0)).is_err());
    }
}
