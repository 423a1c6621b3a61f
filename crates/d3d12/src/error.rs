//! Direct3D's statuses as the errors of the interface.

pub(crate) use dml_gpu::Error;
use windows::Win32::Foundation::{E_OUTOFMEMORY, ERROR_NOT_ENOUGH_MEMORY};
use windows::Win32::Graphics::Dxgi::{
    DXGI_ERROR_DEVICE_HUNG, DXGI_ERROR_DEVICE_REMOVED, DXGI_ERROR_DEVICE_RESET, DXGI_ERROR_DRIVER_INTERNAL_ERROR,
};
use windows::core::HRESULT;

/// Maps an `HRESULT` of `call`. Device loss and exhausted memory get their own variants.
pub(crate) fn from_hresult(call: &'static str, error: &windows::core::Error) -> Error {
    const LOST: [HRESULT; 4] =
        [DXGI_ERROR_DEVICE_REMOVED, DXGI_ERROR_DEVICE_HUNG, DXGI_ERROR_DEVICE_RESET, DXGI_ERROR_DRIVER_INTERNAL_ERROR];
    let code = error.code();
    if LOST.contains(&code) {
        Error::DeviceLost
    } else if code == E_OUTOFMEMORY || code == ERROR_NOT_ENOUGH_MEMORY.to_hresult() {
        Error::OutOfMemory { requested: 0 }
    } else {
        Error::Driver { call, code: code.0, name: error.message() }
    }
}

pub(crate) fn invalid(call: &'static str, what: impl Into<String>) -> Error {
    Error::Invalid { call, what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hresults_map_to_variants() {
        let map = |code: HRESULT| from_hresult("call", &code.into());
        assert_eq!(map(DXGI_ERROR_DEVICE_REMOVED), Error::DeviceLost);
        assert_eq!(map(E_OUTOFMEMORY), Error::OutOfMemory { requested: 0 });
        assert!(matches!(map(HRESULT(-1)), Error::Driver { call: "call", code: -1, .. }));
    }
}
