//! The plugin as the operators' host.

use crate::abi::{DmlHost, DmlTensor, Status, precision};
use crate::convert::{tensor, to_abi};
use dml_aten::{Error, Host, Result};
use dml_compute::{Dims, Environment, Location, MatmulPrecision, Policy, View};
use dml_engine::measure::{self, Stage};
use dml_engine::{AddressRange, Device, KernelRef};
use dml_kernel::DType;
use std::ffi::CString;
use std::mem::MaybeUninit;

/// The callbacks of one call.
pub struct Plugin<'a> {
    host: &'a DmlHost,
}

impl<'a> Plugin<'a> {
    /// # Safety
    /// The functions of `host` may be called with `host.context`, according to the contract, on the
    /// calling thread while the result lives: it is neither `Send` nor `Sync`.
    pub unsafe fn new(host: &'a DmlHost) -> Self {
        Self { host }
    }

    /// Runs a callback that yields a tensor; the error is its status.
    #[inline]
    fn yielded(callback: impl FnOnce(*mut DmlTensor) -> i32) -> Result<DmlTensor, i32> {
        let _stage = measure::enter(Stage::Allocate);
        let mut out = MaybeUninit::<DmlTensor>::uninit();
        let status = callback(out.as_mut_ptr());
        if status != Status::Ok as i32 {
            return Err(status);
        }
        // SAFETY: by the contract, a successful callback has filled the whole structure.
        Ok(unsafe { out.assume_init() })
    }

    /// [`yielded`](Self::yielded) with the tensor's sizes and strides as the plugin has them.
    fn made(callback: impl FnOnce(*mut DmlTensor) -> i32) -> Result<View> {
        let made = Self::yielded(callback).map_err(Error::Host)?;
        // SAFETY: the plugin's sizes and strides of a tensor that it holds until the operator's
        // call ends: nothing resizes it before they are copied here.
        unsafe { tensor(&made) }.map_err(|e| Error::Fallback(e.message.unwrap_or_default()))
    }
}

/// The dimensions of a tensor of these sizes and strides.
#[inline]
fn dim(sizes: &[i64], strides: &[i64]) -> Result<i32> {
    if sizes.len() == strides.len() {
        Ok(sizes.len() as i32)
    } else {
        Err(Error::Runtime(format!(
            "internal error of torch-dml, please report it: sizes {sizes:?}, strides {strides:?}"
        )))
    }
}

impl Policy for Plugin<'_> {
    fn deterministic(&self) -> bool {
        self.host.deterministic != 0
    }

    fn matmul_precision(&self) -> MatmulPrecision {
        // SAFETY: `new`'s promise.
        match unsafe { (self.host.matmul_precision)(self.host.context) } {
            precision::HIGH => MatmulPrecision::High,
            precision::MEDIUM => MatmulPrecision::Medium,
            _ => MatmulPrecision::Highest,
        }
    }

    fn product_dtype(&self) -> Option<DType> {
        // SAFETY: `new`'s promise.
        let code = unsafe { (self.host.product_dtype)(self.host.context) };
        DType::from_code(code).filter(|dtype| matches!(dtype, DType::F16 | DType::BF16))
    }
}

impl Environment for Plugin<'_> {
    fn allocate(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> dml_compute::Result<View> {
        let dim = dim(sizes, strides).map_err(|e| dml_compute::Error::Invalid(e.to_string()))?;
        let made = Self::yielded(|out| {
            // SAFETY: `new`'s promise; both slices have `dim` numbers, and `out` is a place for a
            // tensor.
            unsafe {
                (self.host.empty)(self.host.context, sizes.as_ptr(), strides.as_ptr(), dim, dtype as u8, device, out)
            }
        })
        .map_err(dml_compute::Error::Allocation)?;
        Ok(View {
            handle: made.handle as usize,
            data: made.data,
            dtype,
            location: Location::Device(device),
            sizes: Dims::from_slice(sizes),
            strides: Dims::from_slice(strides),
            storage: AddressRange { start: made.storage, end: made.storage + made.storage_bytes },
            weak: false,
            negative: false,
            conjugate: false,
        })
    }

    fn policy(&self) -> &dyn Policy {
        self
    }

    fn probe(&self, _: &Device, _: &KernelRef, _: &[AddressRange]) -> dml_compute::Result<()> {
        Ok(())
    }
}

impl Host for Plugin<'_> {
    fn resize(&self, t: &mut View, sizes: &[i64], strides: &[i64]) -> Result<()> {
        let (before, dim) = (to_abi(t), dim(sizes, strides)?);
        *t = Self::made(|out| {
            // SAFETY: `new`'s promise; both slices have `dim` numbers. `out` is valid for a write,
            // and `before` points into `t`, which does not change before the callback has returned.
            unsafe {
                out.write(before);
                (self.host.resize)(self.host.context, out, sizes.as_ptr(), strides.as_ptr(), dim)
            }
        })?;
        Ok(())
    }

    fn view(&self, base: &View, view: &View) -> Result<View> {
        let offset = (view.data - base.storage.start) / base.element_size();
        let (base, dim) = (to_abi(base), dim(&view.sizes, &view.strides)?);
        Self::made(|out| {
            // SAFETY: `new`'s promise; both slices have `dim` numbers, `base` points into a tensor
            // that outlives the callback, and `out` is a place for a tensor.
            unsafe {
                (self.host.view)(
                    self.host.context,
                    &raw const base,
                    view.sizes.as_ptr(),
                    view.strides.as_ptr(),
                    dim,
                    offset as i64,
                    out,
                )
            }
        })
    }

    fn warn(&self, message: &str) {
        if let Ok(text) = CString::new(message) {
            // SAFETY: `new`'s promise; the text ends with a 0 and lives through the call.
            unsafe { (self.host.warn)(self.host.context, text.as_ptr()) };
        }
    }

    fn default_dtype(&self) -> DType {
        DType::from_code(self.host.default_dtype).unwrap_or(DType::F32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{c_char, c_void};

    unsafe extern "C" fn empty(
        _: *mut c_void,
        _: *const i64,
        _: *const i64,
        _: i32,
        _: u8,
        _: u8,
        _: *mut DmlTensor,
    ) -> i32 {
        panic!("called")
    }
    unsafe extern "C" fn resize(_: *mut c_void, _: *mut DmlTensor, _: *const i64, _: *const i64, _: i32) -> i32 {
        panic!("called")
    }
    unsafe extern "C" fn view(
        _: *mut c_void,
        _: *const DmlTensor,
        _: *const i64,
        _: *const i64,
        _: i32,
        _: i64,
        _: *mut DmlTensor,
    ) -> i32 {
        panic!("called")
    }
    unsafe extern "C" fn warn(_: *mut c_void, _: *const c_char) {}
    unsafe extern "C" fn matmul_precision(_: *mut c_void) -> u8 {
        precision::MEDIUM
    }
    unsafe extern "C" fn product_dtype(_: *mut c_void) -> u8 {
        DType::BF16 as u8
    }

    #[test]
    fn the_plugin_never_reads_beyond_the_strides() {
        let host = DmlHost {
            context: std::ptr::null_mut(),
            empty,
            resize,
            view,
            warn,
            matmul_precision,
            product_dtype,
            default_dtype: 0,
            deterministic: 0,
        };
        // SAFETY: the functions take anything.
        let plugin = unsafe { Plugin::new(&host) };
        let mut tensor = View {
            handle: 16,
            data: 0,
            dtype: DType::F32,
            location: Location::Device(0),
            sizes: Dims::from_slice(&[2, 3]),
            strides: Dims::from_slice(&[1]),
            storage: AddressRange { start: 0, end: 24 },
            weak: false,
            negative: false,
            conjugate: false,
        };
        let refused = |result: Result<()>| assert!(matches!(result, Err(Error::Runtime(_))), "{result:?}");
        let allocated = plugin.allocate(0, DType::F32, &[2, 3], &[1]);
        assert!(matches!(allocated, Err(dml_compute::Error::Invalid(_))), "{allocated:?}");
        refused(plugin.view(&tensor.clone(), &tensor).map(drop));
        refused(plugin.resize(&mut tensor, &[2], &[]));
    }
}
