//! Conversion between PyTorch's values, as the plugin passes them, and the operators' types.

use crate::abi::{DmlPayload, DmlTensor, DmlValue, Status, place, tag, tensor_flag};
use crate::error::Failure;
use crate::generator;
use dml_aten::Arg;
use dml_compute::{Dims, Location, Scalar, View};
use dml_engine::AddressRange;
use dml_kernel::DType;
use std::ffi::c_void;

/// A slice of the ABI; its pointer may be null if it is empty.
///
/// # Safety
/// `data` points to `len` initialised values that live as long as `'a` and that nobody writes
/// meanwhile; if `len` is 0, it may be anything.
pub unsafe fn slice<'a, T>(data: *const T, len: usize) -> &'a [T] {
    if len == 0 {
        &[]
    } else {
        // SAFETY: the caller's promise, and `len` is not 0.
        unsafe { std::slice::from_raw_parts(data, len) }
    }
}

/// A tensor. A dtype that the engine does not compute with (quantised) makes the call a fallback.
///
/// # Safety
/// `t.sizes` and `t.strides` point to `t.dim` numbers during the call.
pub unsafe fn tensor(t: &DmlTensor) -> Result<View, Failure> {
    let location = match t.place {
        place::CPU => Location::Host,
        place::DML => Location::Device(t.device),
        _ => Location::OtherDevice,
    };
    let dtype = match (DType::from_code(t.dtype), location) {
        // The operator refuses it for its place; what it holds does not matter.
        (Some(dtype), Location::OtherDevice) if !dtype.is_common() => DType::F32,
        (Some(dtype), _) => dtype,
        (None, Location::OtherDevice) => DType::F32,
        (None, _) => {
            return Err(Failure::new(Status::Fallback, "dml computes with no quantised tensors"));
        }
    };
    let dim = t.dim.max(0) as usize;
    Ok(View {
        handle: t.handle as usize,
        data: t.data,
        dtype,
        location,
        // SAFETY: the caller's promise.
        sizes: Dims::from_slice(unsafe { slice(t.sizes, dim) }),
        // SAFETY: the caller's promise.
        strides: Dims::from_slice(unsafe { slice(t.strides, dim) }),
        storage: AddressRange { start: t.storage, end: t.storage + t.storage_bytes },
        weak: t.flags & tensor_flag::WRAPPED_NUMBER != 0,
        negative: t.flags & tensor_flag::NEG != 0,
        conjugate: t.flags & tensor_flag::CONJ != 0,
    })
}

/// A tensor as the plugin knows it; borrows `t`'s sizes and strides.
pub fn to_abi(t: &View) -> DmlTensor {
    let (place, device) = match t.location {
        Location::Host => (place::CPU, 0),
        Location::Device(i) => (place::DML, i),
        Location::OtherDevice => (place::OTHER, 0),
    };
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    DmlTensor {
        handle: t.handle as *mut c_void,
        data: t.data,
        sizes: t.sizes.as_ptr(),
        strides: t.strides.as_ptr(),
        storage: t.storage.start,
        storage_bytes: t.storage.end - t.storage.start,
        dim: t.sizes.len() as i32,
        dtype: t.dtype as u8,
        place,
        device,
        flags: flag(t.weak, tensor_flag::WRAPPED_NUMBER)
            | flag(t.negative, tensor_flag::NEG)
            | flag(t.conjugate, tensor_flag::CONJ),
    }
}

/// A number.
///
/// # Safety
/// The payload is initialised as the tag says. Any bits are a valid value of the types here.
unsafe fn scalar(v: &DmlValue) -> Option<Scalar> {
    // SAFETY: the caller's promise.
    unsafe {
        Some(match v.tag {
            tag::BOOL => Scalar::Bool(v.u.boolean != 0),
            tag::INT | tag::DEVICE => Scalar::Int(v.u.integer),
            tag::DOUBLE => Scalar::Double(v.u.number),
            tag::COMPLEX => Scalar::Complex(v.u.complex[0], v.u.complex[1]),
            _ => return None,
        })
    }
}

/// One argument.
///
/// # Safety
/// The payload is initialised as the tag says, and its pointers fulfil the conditions of
/// [`slice()`] and [`tensor`] for `'a`.
pub unsafe fn arg<'a>(v: &DmlValue) -> Result<Arg<'a>, Failure> {
    let len = || v.len as usize;
    // SAFETY: the caller's promise: the part of the union that the tag names is initialised. `len`,
    // which may be uninitialised otherwise, is only read for lists and strings.
    unsafe {
        Ok(match v.tag {
            tag::TENSOR => Arg::Tensor(tensor(&v.u.tensor)?),
            tag::NONE => Arg::None,
            tag::INTS => Arg::Ints(slice(v.u.ints, len())),
            tag::DOUBLES => Arg::Doubles(slice(v.u.doubles, len())),
            tag::BOOLS => Arg::Bools(slice(v.u.bools, len())),
            tag::TENSORS => Arg::Tensors(
                slice(v.u.tensors, len())
                    .iter()
                    .map(|t| if t.handle.is_null() { Ok(None) } else { tensor(t).map(Some) })
                    .collect::<Result<_, _>>()?,
            ),
            tag::SCALARS => Arg::Scalars(slice(v.u.scalars, len()).iter().filter_map(|s| scalar(s)).collect()),
            tag::STRING => Arg::Str(
                std::str::from_utf8(slice(v.u.string.cast(), len()))
                    .map_err(|_| Failure::new(Status::ValueError, "a string argument is not UTF-8"))?,
            ),
            tag::GENERATOR => generator::shared(v.u.generator).map_or(Arg::None, Arg::Generator),
            _ => match scalar(v) {
                Some(s) => Arg::Scalar(s),
                None => return Err(Failure::new(Status::RuntimeError, format!("argument of unknown tag {}", v.tag))),
            },
        })
    }
}

/// A number as a result.
pub fn from_scalar(s: Scalar) -> DmlValue {
    let (tag, u) = match s {
        Scalar::Bool(b) => (tag::BOOL, DmlPayload { boolean: u8::from(b) }),
        Scalar::Int(i) => (tag::INT, DmlPayload { integer: i }),
        Scalar::Double(d) => (tag::DOUBLE, DmlPayload { number: d }),
        Scalar::Complex(re, im) => (tag::COMPLEX, DmlPayload { complex: [re, im] }),
    };
    DmlValue { tag, len: 0, u }
}

/// No result.
pub const NONE: DmlValue = DmlValue { tag: tag::NONE, len: 0, u: DmlPayload { integer: 0 } };

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [i64; 2] = [2, 3];
    const STRIDES: [i64; 2] = [3, 1];

    fn sample(dtype: u8) -> DmlTensor {
        DmlTensor {
            handle: 0x10 as *mut c_void,
            data: 0x1010,
            sizes: SIZES.as_ptr(),
            strides: STRIDES.as_ptr(),
            storage: 0x1000,
            storage_bytes: 64,
            dim: 2,
            dtype,
            place: place::DML,
            device: 1,
            flags: tensor_flag::NEG,
        }
    }

    fn value(tag: u8, len: i64, u: DmlPayload) -> DmlValue {
        DmlValue { tag, len, u }
    }

    #[test]
    fn a_tensor_survives_the_round_trip() {
        // SAFETY: the sample's pointers are to statics.
        let t = unsafe { tensor(&sample(DType::F32 as u8)) }.expect("f32");
        assert_eq!(t.location, Location::Device(1));
        assert_eq!(t.sizes.as_slice(), SIZES);
        assert_eq!((t.storage.start, t.storage.end), (0x1000, 0x1040));
        assert!(t.negative && !t.conjugate && !t.weak);
        let back = to_abi(&t);
        assert_eq!((back.data, back.storage, back.storage_bytes), (0x1010, 0x1000, 64));
        assert_eq!((back.dim, back.dtype, back.device, back.flags), (2, DType::F32 as u8, 1, tensor_flag::NEG));
    }

    #[test]
    fn a_tensor_of_an_unknown_dtype_is_a_fallback() {
        // SAFETY: as above.
        let e = unsafe { tensor(&sample(20)) }.expect_err("no dtype");
        assert_eq!(e.status, Status::Fallback);
    }

    #[test]
    fn numbers_lists_and_strings() {
        let ints = [1i64, -2];
        let list = [sample(DType::I64 as u8), DmlTensor { handle: std::ptr::null_mut(), ..sample(255) }];
        let scalars = [from_scalar(Scalar::Bool(true)), from_scalar(Scalar::Double(0.5))];
        // SAFETY: each payload is what its tag says and outlives the call.
        unsafe {
            assert!(matches!(arg(&value(tag::INTS, 2, DmlPayload { ints: ints.as_ptr() })), Ok(Arg::Ints([1, -2]))));
            assert!(matches!(arg(&value(tag::INTS, 0, DmlPayload { ints: std::ptr::null() })), Ok(Arg::Ints([]))));
            let Ok(Arg::Tensors(tensors)) = arg(&value(tag::TENSORS, 2, DmlPayload { tensors: list.as_ptr() })) else {
                panic!("not a list");
            };
            assert!(tensors[0].is_some() && tensors[1].is_none());
            let Ok(Arg::Scalars(s)) = arg(&value(tag::SCALARS, 2, DmlPayload { scalars: scalars.as_ptr() })) else {
                panic!("not scalars");
            };
            assert_eq!(s, [Scalar::Bool(true), Scalar::Double(0.5)]);
            assert!(matches!(
                arg(&value(tag::STRING, 4, DmlPayload { string: c"none!".as_ptr() })),
                Ok(Arg::Str("none"))
            ));
            assert!(matches!(arg(&from_scalar(Scalar::Complex(1.0, 2.0))), Ok(Arg::Scalar(Scalar::Complex(1.0, 2.0)))));
            assert!(matches!(arg(&NONE), Ok(Arg::None)));
            assert!(matches!(arg(&value(tag::GENERATOR, 0, DmlPayload { generator: 0 })), Ok(Arg::None)));
            assert!(arg(&value(77, 0, DmlPayload { integer: 0 })).is_err());
        }
    }
}
