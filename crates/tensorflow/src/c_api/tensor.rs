//! TensorFlow's tensors.

use super::functions::{RawTensor, api};
use super::status::checked;
use crate::dtype;
use crate::error::{Error, Result};
use dml_compute::{Dims, Location, View};
use dml_engine::AddressRange;
use dml_kernel::DType;
use std::ptr::NonNull;

/// A reference to a tensor.
pub struct Tensor(NonNull<RawTensor>);

impl Tensor {
    /// Takes a tensor over.
    ///
    /// # Safety
    /// `raw` is null or a tensor that the caller owns.
    pub unsafe fn take(raw: *mut RawTensor) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// The pointer, for a call.
    pub fn raw(&self) -> *mut RawTensor {
        self.0.as_ptr()
    }

    /// Its dtype.
    ///
    /// # Errors
    /// [`Error::Unimplemented`] for strings, resources, variants and quantised dtypes.
    pub fn dtype(&self) -> Result<DType> {
        // SAFETY: the tensor lives.
        let number = unsafe { (api().TF_TensorType)(self.raw()) };
        dtype::of_number(number).ok_or_else(|| Error::Unimplemented(format!("dtype {number} of TensorFlow")))
    }

    /// Its shape.
    pub fn sizes(&self) -> Dims {
        // SAFETY: the tensor lives, and has so many dimensions.
        unsafe { (0..(api().TF_NumDims)(self.raw())).map(|d| (api().TF_Dim)(self.raw(), d)).collect() }
    }

    /// Bytes of its elements.
    pub fn bytes(&self) -> u64 {
        // SAFETY: the tensor lives.
        unsafe { (api().TF_TensorByteSize)(self.raw()) as u64 }
    }

    /// The address of its elements, of the device or of the host.
    pub fn address(&self) -> u64 {
        // SAFETY: the tensor lives.
        unsafe { (api().TF_TensorData)(self.raw()) as u64 }
    }

    /// Gives it another shape of as many elements.
    pub fn set_sizes(&mut self, sizes: &[i64]) {
        // SAFETY: the tensor lives; the sizes are read during the call.
        unsafe { (api().TF_SetShape)(self.raw(), sizes.as_ptr(), sizes.len() as i32) };
    }

    /// Makes it another tensor's memory, as elements of another dtype.
    ///
    /// # Errors
    /// TensorFlow's, if there are not as many bytes.
    pub fn reinterpret(&mut self, from: &Self, dtype: DType, sizes: &[i64]) -> Result<()> {
        // SAFETY: both live; the sizes are read during the call.
        checked(|status| unsafe {
            (api().TF_TensorBitcastFrom)(
                from.raw(),
                dtype::number_of(dtype),
                self.raw(),
                sizes.as_ptr(),
                sizes.len() as i32,
                status,
            );
        })
    }

    /// The tensor as a view, valid while the tensor lives.
    ///
    /// # Errors
    /// As [`dtype`](Self::dtype).
    pub fn view(&self, location: Location) -> Result<View> {
        let (sizes, start) = (self.sizes(), self.address());
        let storage = AddressRange { start, end: start + self.bytes() };
        let strides = View::contiguous_strides(&sizes);
        Ok(View::over(storage, location, self.dtype()?, sizes, strides))
    }

    /// The bytes of a tensor in host memory.
    ///
    /// # Safety
    /// It is in host memory, and nobody writes to it while the slice lives.
    pub unsafe fn host_bytes(&self) -> &[u8] {
        if self.bytes() == 0 {
            return &[];
        }
        // SAFETY: the caller's promise; the tensor has so many bytes.
        unsafe { std::slice::from_raw_parts(self.address() as *const u8, self.bytes() as usize) }
    }

    /// Writes the elements of a tensor in host memory.
    ///
    /// # Safety
    /// It is in host memory, has exactly so many bytes, and nobody else accesses it.
    pub unsafe fn write_host(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.bytes() as usize, bytes.len());
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address() as *mut u8, bytes.len()) };
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: this reference is ours, and dropped once.
        unsafe { (api().TF_DeleteTensor)(self.raw()) };
    }
}
