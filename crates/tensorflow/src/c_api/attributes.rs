//! The attributes of a node, from which its kernel is made.

use super::functions::{RawConstruction, RawStatus, api};
use super::status::checked;
use crate::dtype;
use crate::error::{Error, Result};
use dml_kernel::DType;
use std::ffi::{CString, c_char, c_void};

/// The attributes of a node.
pub struct Attributes<'a> {
    construction: &'a mut RawConstruction,
}

fn name_of(attribute: &str) -> CString {
    CString::new(attribute).unwrap_or_default()
}

impl<'a> Attributes<'a> {
    /// # Safety
    /// `construction` is what TensorFlow gave to the function that makes a kernel, during its call.
    pub(crate) unsafe fn new(construction: *mut RawConstruction) -> Self {
        // SAFETY: the caller's promise.
        Self { construction: unsafe { &mut *construction } }
    }

    fn raw(&self) -> *mut RawConstruction {
        std::ptr::from_ref::<RawConstruction>(self.construction).cast_mut()
    }

    /// One value, written by TensorFlow's function.
    fn value<T>(
        &self,
        attribute: &str,
        initial: T,
        read: unsafe extern "C" fn(*mut RawConstruction, *const c_char, *mut T, *mut RawStatus),
    ) -> Result<T> {
        let mut value = initial;
        // SAFETY: the construction lives, and `value` is a place of the right type.
        checked(|status| unsafe { read(self.raw(), name_of(attribute).as_ptr(), &raw mut value, status) })?;
        Ok(value)
    }

    /// The length of a list, or 1, and the bytes of a string, or of a list's strings.
    fn size(&self, attribute: &str) -> Result<(usize, usize)> {
        let (mut list, mut total) = (0, 0);
        // SAFETY: the construction lives, and both are places for a number.
        checked(|status| unsafe {
            (api().TF_OpKernelConstruction_GetAttrSize)(
                self.raw(),
                name_of(attribute).as_ptr(),
                &raw mut list,
                &raw mut total,
                status,
            );
        })?;
        Ok((usize::try_from(list).unwrap_or(0), usize::try_from(total).unwrap_or(0)))
    }

    /// A list of values, written by TensorFlow's function.
    fn values<T: Clone>(
        &self,
        attribute: &str,
        initial: T,
        read: unsafe extern "C" fn(*mut RawConstruction, *const c_char, *mut T, i32, *mut RawStatus),
    ) -> Result<Vec<T>> {
        let mut values = vec![initial; self.size(attribute)?.0];
        let count = values.len() as i32;
        // SAFETY: the construction lives, and there are places for `count` values.
        checked(|status| unsafe {
            read(self.raw(), name_of(attribute).as_ptr(), values.as_mut_ptr(), count, status);
        })?;
        Ok(values)
    }

    /// Whether the node has the attribute.
    ///
    /// # Errors
    /// TensorFlow's.
    pub fn has(&self, attribute: &str) -> Result<bool> {
        // SAFETY: the construction lives.
        checked(|status| unsafe {
            (api().TF_OpKernelConstruction_HasAttr)(self.raw(), name_of(attribute).as_ptr(), status)
        })
    }

    /// `bool`.
    ///
    /// # Errors
    /// TensorFlow's, if the node lacks the attribute or it has another type; so for all below.
    pub fn bool(&self, attribute: &str) -> Result<bool> {
        Ok(self.value(attribute, 0, api().TF_OpKernelConstruction_GetAttrBool)? != 0)
    }

    /// `int`.
    ///
    /// # Errors
    /// As [`bool`](Self::bool).
    pub fn int(&self, attribute: &str) -> Result<i64> {
        self.value(attribute, 0, api().TF_OpKernelConstruction_GetAttrInt64)
    }

    /// `float`.
    ///
    /// # Errors
    /// As [`bool`](Self::bool).
    pub fn float(&self, attribute: &str) -> Result<f32> {
        self.value(attribute, 0.0, api().TF_OpKernelConstruction_GetAttrFloat)
    }

    /// `type`.
    ///
    /// # Errors
    /// As [`bool`](Self::bool); [`Error::Unimplemented`] for strings, resources and the like.
    pub fn dtype(&self, attribute: &str) -> Result<DType> {
        known(self.value(attribute, 0, api().TF_OpKernelConstruction_GetAttrType)?)
    }

    /// `string`.
    ///
    /// # Errors
    /// As [`bool`](Self::bool).
    pub fn string(&self, attribute: &str) -> Result<String> {
        let mut bytes = vec![0u8; self.size(attribute)?.1];
        // SAFETY: the construction lives, and there is place for so many bytes.
        checked(|status| unsafe {
            (api().TF_OpKernelConstruction_GetAttrString)(
                self.raw(),
                name_of(attribute).as_ptr(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                status,
            );
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// `list(int)`.
    ///
    /// # Errors
    /// As [`bool`](Self::bool).
    pub fn ints(&self, attribute: &str) -> Result<Vec<i64>> {
        self.values(attribute, 0, api().TF_OpKernelConstruction_GetAttrInt64List)
    }

    /// `list(float)`.
    ///
    /// # Errors
    /// As [`bool`](Self::bool).
    pub fn floats(&self, attribute: &str) -> Result<Vec<f32>> {
        self.values(attribute, 0.0, api().TF_OpKernelConstruction_GetAttrFloatList)
    }

    /// `list(type)`.
    ///
    /// # Errors
    /// As [`dtype`](Self::dtype).
    pub fn dtypes(&self, attribute: &str) -> Result<Vec<DType>> {
        let numbers = self.values(attribute, 0, api().TF_OpKernelConstruction_GetAttrTypeList)?;
        numbers.into_iter().map(known).collect()
    }

    /// `list(string)`.
    ///
    /// # Errors
    /// As [`bool`](Self::bool).
    pub fn strings(&self, attribute: &str) -> Result<Vec<String>> {
        let (count, total) = self.size(attribute)?;
        let mut storage = vec![0u8; total];
        let mut starts = vec![std::ptr::null_mut::<c_char>(); count];
        let mut lengths = vec![0usize; count];
        // SAFETY: the construction lives; there are `count` places in both lists and `total` bytes.
        checked(|status| unsafe {
            (api().TF_OpKernelConstruction_GetAttrStringList)(
                self.raw(),
                name_of(attribute).as_ptr(),
                starts.as_mut_ptr(),
                lengths.as_mut_ptr(),
                count as i32,
                storage.as_mut_ptr().cast::<c_void>(),
                total,
                status,
            );
        })?;
        let offset = |start: *mut c_char| start as usize - storage.as_ptr() as usize;
        let text = |(&start, &length): (&*mut c_char, &usize)| storage.get(offset(start)..)?.get(..length);
        Ok(starts
            .iter()
            .zip(&lengths)
            .map(|string| String::from_utf8_lossy(text(string).unwrap_or_default()).into_owned())
            .collect())
    }

    /// The name of the operator.
    ///
    /// # Errors
    /// TensorFlow's.
    pub(crate) fn operator(&self) -> Result<String> {
        // SAFETY: the construction lives.
        let buffer = checked(|status| unsafe { (api().TF_OpKernelConstruction_GetNodeDef)(self.raw(), status) })?;
        // SAFETY: the buffer is ours; it has `length` bytes at `data`.
        let name = unsafe {
            let node = std::slice::from_raw_parts((*buffer).data.cast::<u8>(), (*buffer).length);
            let name = operator_of(node);
            (api().TF_DeleteBuffer)(buffer);
            name
        };
        name.ok_or_else(|| Error::InvalidArgument("a node without an operator".to_owned()))
    }
}

fn known(number: i32) -> Result<DType> {
    dtype::of_number(number).ok_or_else(|| Error::Unimplemented(format!("dtype {number} of TensorFlow")))
}

/// The operator's name in a `NodeDef` message: its second field.
fn operator_of(mut node: &[u8]) -> Option<String> {
    const NAME: u8 = (1 << 3) | 2;
    const OPERATOR: u8 = (2 << 3) | 2;
    // Protocol buffers are written in the order of the fields; the first is the node's name.
    loop {
        let (&tag, rest) = node.split_first()?;
        let (length, rest) = length(rest)?;
        let text = rest.get(..length)?;
        match tag {
            OPERATOR => return Some(String::from_utf8_lossy(text).into_owned()),
            NAME => node = &rest[length..],
            _ => return None,
        }
    }
}

/// A length of a protocol buffer, and what follows it.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0usize;
    for (i, &byte) in bytes.iter().enumerate().take(9) {
        value |= usize::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_is_read_from_a_node() {
        let long = "n".repeat(200);
        let mut node = vec![10, 0xc8, 0x01];
        node.extend(long.as_bytes());
        node.extend([18, 4]);
        node.extend(b"Relu");
        node.extend([26, 1, b'x']);
        assert_eq!(operator_of(&node).as_deref(), Some("Relu"));
        assert_eq!(operator_of(&[18, 3, b'A', b'd', b'd']).as_deref(), Some("Add"));
        for end in 0..206 {
            assert_eq!(operator_of(&node[..end]), None, "{end} bytes");
        }
    }
}
