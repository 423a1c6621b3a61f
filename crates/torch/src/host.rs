//! The plugin as the operators' host.

use crate::abi::{DmlHost, DmlTensor, Status};
use crate::convert::{tensor, to_abi};
use dml_engine::AddressRange;
use dml_engine::measure::{self, Stage};
use dml_kernel::DType;
use dml_ops::{DeviceKind, Dims, Error, Host, Result, Tensor};
use std::ffi::CString;
use std::mem::MaybeUninit;

/// The callbacks of one call.
pub struct Plugin<'a> {
    host: &'a DmlHost,
}

impl<'a> Plugin<'a> {
    /// # Safety
    /// The functions of `host` may be called as `engine.h` says.
    pub unsafe fn new(host: &'a DmlHost) -> Self {
        Self { host }
    }

    /// Runs a callback that yields a tensor.
    #[inline]
    fn yielded(callback: impl FnOnce(*mut DmlTensor) -> i32) -> Result<DmlTensor> {
        let _stage = measure::enter(Stage::Allocate);
        let mut out = MaybeUninit::<DmlTensor>::uninit();
        let status = callback(out.as_mut_ptr());
        if status != Status::Ok as i32 {
            return Err(Error::Host(status));
        }
        // SAFETY: a callback that succeeds has filled it.
        Ok(unsafe { out.assume_init() })
    }

    /// [`yielded`](Self::yielded) with the tensor's sizes and strides as the plugin has them.
    fn made(callback: impl FnOnce(*mut DmlTensor) -> i32) -> Result<Tensor> {
        let made = Self::yielded(callback)?;
        // SAFETY: its pointers hold during the call.
        unsafe { tensor(&made) }.map_err(|e| Error::Fallback(e.message.unwrap_or_default()))
    }
}

impl Host for Plugin<'_> {
    fn empty(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> Result<Tensor> {
        debug_assert_eq!(sizes.len(), strides.len());
        let made = Self::yielded(|out| {
            // SAFETY: `new`'s promise; the slices have `dim` numbers.
            unsafe {
                (self.host.empty)(
                    self.host.this,
                    sizes.as_ptr(),
                    strides.as_ptr(),
                    sizes.len() as i32,
                    dtype as u8,
                    device,
                    out,
                )
            }
        })?;
        Ok(Tensor {
            handle: made.handle as usize,
            data: made.data,
            dtype,
            place: DeviceKind::Dml(device),
            sizes: Dims::from_slice(sizes),
            strides: Dims::from_slice(strides),
            storage: AddressRange { start: made.storage, end: made.storage + made.storage_bytes },
            wrapped_number: false,
            negative: false,
            conjugate: false,
        })
    }

    fn resize(&self, t: &mut Tensor, sizes: &[i64], strides: &[i64]) -> Result<()> {
        let before = to_abi(t);
        *t = Self::made(|out| {
            // SAFETY: `new`'s promise; `out` is valid for a write.
            unsafe {
                out.write(before);
                (self.host.resize)(self.host.this, out, sizes.as_ptr(), strides.as_ptr(), sizes.len() as i32)
            }
        })?;
        Ok(())
    }

    fn view(&self, base: &Tensor, view: &Tensor) -> Result<Tensor> {
        let offset = (view.data - base.storage.start) / base.element_size();
        let base = to_abi(base);
        Self::made(|out| {
            // SAFETY: `new`'s promise.
            unsafe {
                (self.host.view)(
                    self.host.this,
                    &raw const base,
                    view.sizes.as_ptr(),
                    view.strides.as_ptr(),
                    view.sizes.len() as i32,
                    offset as i64,
                    out,
                )
            }
        })
    }

    fn warn(&self, message: &str) {
        if let Ok(text) = CString::new(message) {
            // SAFETY: `new`'s promise.
            unsafe { (self.host.warn)(self.host.this, text.as_ptr()) };
        }
    }

    fn default_dtype(&self) -> DType {
        DType::from_code(self.host.default_dtype).unwrap_or(DType::F32)
    }

    fn deterministic(&self) -> bool {
        self.host.deterministic != 0
    }
}
