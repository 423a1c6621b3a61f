//! Variables: what kernels read, assign and update under TensorFlow's locks.

use super::call::Call;
use crate::c_api::functions::{RawContext, RawLocks, RawTensor, api, variable_api};
use crate::c_api::status::{Status, checked, guarded};
use crate::c_api::tensor::Tensor;
use crate::error::{Error, Result};
use dml_compute::View;
use dml_compute::complex::parts::as_bits;
use dml_compute::movement::copy;

/// Copies a variable's tensor that somebody else holds too, before it is written to.
unsafe extern "C" fn copy_tensor(context: *mut RawContext, from: *mut RawTensor, to: *mut RawTensor) {
    let done = guarded(|| {
        // SAFETY: both are this function's; the context is that of the kernel's call.
        let (from, to, call) =
            unsafe { (Tensor::take(from), Tensor::take(to), Call::new(context, "copy of a variable", false)?) };
        match (from, to) {
            (Some(from), Some(to)) => {
                let (from, to) = (call.keep(from)?, call.keep(to)?);
                // No integer is as wide as a complex128: that is copied as pairs.
                Ok(copy::device_copy(&call.cx(), &as_bits(&from), &as_bits(&to))?)
            }
            _ => Err(Error::InvalidArgument("a variable without a tensor".to_owned())),
        }
    });
    if let Err(error) = done {
        let status = Status::of(&error);
        // SAFETY: both live.
        unsafe { (api().TF_OpKernelContext_Failure)(context, status.raw()) };
    }
}

/// Some variables of a call, locked where the operator wants it. A kernel locks all that it
/// updates before it takes the first.
pub struct Variables<'c> {
    call: &'c Call,
    locks: *mut RawLocks,
    is_locked: bool,
}

impl Call {
    /// Locks the variables at these inputs, in the order that all kernels use. `sparse`: elements
    /// are updated one by one.
    ///
    /// # Errors
    /// TensorFlow's.
    pub fn lock(&self, inputs: &[i32], use_locking: bool, sparse: bool) -> Result<Variables<'_>> {
        let mut locks = std::ptr::null_mut();
        // SAFETY: the context lives; the list is read during the call.
        checked(|status| unsafe {
            (variable_api().TF_MaybeLockVariableInputMutexesInOrder)(
                self.raw(),
                use_locking,
                sparse,
                inputs.as_ptr(),
                inputs.len(),
                copy_tensor,
                &raw mut locks,
                status,
            );
        })?;
        Ok(Variables { call: self, locks, is_locked: use_locking })
    }

    /// Assigns a value to the variable of an input, which is a resource.
    ///
    /// # Errors
    /// TensorFlow's.
    pub fn assign(&self, variable: usize, value: usize, validate_shape: bool) -> Result<()> {
        // SAFETY: the context lives.
        checked(|status| unsafe {
            (variable_api().TF_AssignVariable)(
                self.raw(),
                variable as i32,
                value as i32,
                validate_shape,
                copy_tensor,
                status,
            );
        })
    }

    /// Assigns a value to the reference variable of input 0, and returns the reference as result 0.
    ///
    /// # Errors
    /// TensorFlow's.
    pub fn assign_reference(&self, value: usize, use_locking: bool, validate_shape: bool) -> Result<()> {
        // SAFETY: the context lives.
        checked(|status| unsafe {
            (variable_api().TF_AssignRefVariable)(
                self.raw(),
                0,
                0,
                value as i32,
                use_locking,
                validate_shape,
                copy_tensor,
                status,
            );
        })
    }

    /// Returns the reference of an input as a result, if it is one.
    ///
    /// # Errors
    /// TensorFlow's.
    pub fn pass_reference_on(&self, input: usize, output: usize) -> Result<()> {
        // SAFETY: the context lives.
        unsafe {
            if checked(|status| (variable_api().TF_IsRefInput)(self.raw(), input as i32, status))? {
                (variable_api().TF_OpKernelContext_ForwardRefInputToRefOutput)(self.raw(), input as i32, output as i32);
            }
        }
        Ok(())
    }
}

impl Variables<'_> {
    /// The tensor of the variable at an input, which may be written to. `sparse`: see
    /// [`lock`](Call::lock).
    ///
    /// # Errors
    /// TensorFlow's, if the variable has no value.
    pub fn tensor(&self, input: usize, sparse: bool) -> Result<View> {
        let mut tensor = std::ptr::null_mut();
        // SAFETY: the context lives; the tensor is ours then.
        let tensor = unsafe {
            checked(|status| {
                (variable_api().TF_GetInputTensorFromVariable)(
                    self.call.raw(),
                    input as i32,
                    self.is_locked,
                    false,
                    sparse,
                    copy_tensor,
                    &raw mut tensor,
                    status,
                );
            })?;
            Tensor::take(tensor)
        };
        let tensor = tensor
            .ok_or_else(|| Error::InvalidArgument(format!("the variable of {} has no value", self.call.operator())))?;
        self.call.keep(tensor)
    }
}

impl Drop for Variables<'_> {
    fn drop(&mut self) {
        if !self.locks.is_null() {
            // SAFETY: the holder is ours, and released once.
            unsafe { (variable_api().TF_ReleaseVariableInputLockHolder)(self.locks) };
        }
    }
}
