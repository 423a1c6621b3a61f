//! Direct3D's libraries, which are loaded when an adapter is requested: the program also starts on
//! systems without them.

use std::ffi::c_void;

use windows::Win32::Graphics::Direct3D::{D3D_FEATURE_LEVEL, D3D_FEATURE_LEVEL_11_0, ID3DBlob};
use windows::Win32::Graphics::Direct3D12::{
    D3D_ROOT_SIGNATURE_VERSION, D3D_ROOT_SIGNATURE_VERSION_1, D3D12_ROOT_SIGNATURE_DESC, ID3D12Device,
};
use windows::Win32::Graphics::Dxgi::{IDXGIAdapter3, IDXGIFactory4};
use windows::Win32::System::LibraryLoader::{GetProcAddress, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW};
use windows::core::{GUID, HRESULT, Interface, PCSTR, PCWSTR, s, w};

use crate::error::{Error, from_hresult};

type CreateFactory = unsafe extern "system" fn(u32, *const GUID, *mut *mut c_void) -> HRESULT;
type CreateDevice = unsafe extern "system" fn(*mut c_void, D3D_FEATURE_LEVEL, *const GUID, *mut *mut c_void) -> HRESULT;
type SerializeRootSignature = unsafe extern "system" fn(
    *const D3D12_ROOT_SIGNATURE_DESC,
    D3D_ROOT_SIGNATURE_VERSION,
    *mut *mut c_void,
    *mut *mut c_void,
) -> HRESULT;
/// A function before its type is known.
type Untyped = unsafe extern "system" fn() -> isize;

/// The functions of `dxgi.dll` and `d3d12.dll`. Neither is ever unloaded.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    create_factory: CreateFactory,
    create_device: CreateDevice,
    serialize_root_signature: SerializeRootSignature,
}

impl Library {
    pub(crate) fn load() -> Result<Self, Error> {
        let create_factory = function("dxgi.dll", w!("dxgi.dll"), s!("CreateDXGIFactory2"))?;
        let create_device = function("d3d12.dll", w!("d3d12.dll"), s!("D3D12CreateDevice"))?;
        let serialize = function("d3d12.dll", w!("d3d12.dll"), s!("D3D12SerializeRootSignature"))?;
        // SAFETY: these are the functions' types in Microsoft's headers (`dxgi1_3.h`, `d3d12.h`),
        // where an interface is a pointer.
        unsafe {
            Ok(Self {
                create_factory: std::mem::transmute::<Untyped, CreateFactory>(create_factory),
                create_device: std::mem::transmute::<Untyped, CreateDevice>(create_device),
                serialize_root_signature: std::mem::transmute::<Untyped, SerializeRootSignature>(serialize),
            })
        }
    }

    /// The factory that lists adapters.
    pub(crate) fn factory(&self) -> Result<IDXGIFactory4, Error> {
        // SAFETY: the id is that of the interface, and what is written lives through the call.
        unsafe { made("CreateDXGIFactory2", |to| (self.create_factory)(0, &IDXGIFactory4::IID, to)) }
    }

    /// A device of an adapter, of the lowest feature level that Direct3D 12 has.
    pub(crate) fn device(&self, adapter: &IDXGIAdapter3) -> Result<ID3D12Device, Error> {
        // SAFETY: as above; the adapter lives through the call.
        unsafe {
            made("D3D12CreateDevice", |to| {
                (self.create_device)(adapter.as_raw(), D3D_FEATURE_LEVEL_11_0, &ID3D12Device::IID, to)
            })
        }
    }

    /// A root signature in the form that a device takes.
    ///
    /// # Safety
    /// The memory that `description` points to is valid.
    pub(crate) unsafe fn root_signature(&self, description: &D3D12_ROOT_SIGNATURE_DESC) -> Result<ID3DBlob, Error> {
        // SAFETY: the caller's promise. Null: the text of an error is not requested.
        unsafe {
            made("D3D12SerializeRootSignature", |to| {
                (self.serialize_root_signature)(description, D3D_ROOT_SIGNATURE_VERSION_1, to, std::ptr::null_mut())
            })
        }
    }
}

/// The object that `make` creates.
///
/// # Safety
/// If it returns success, `make` has written null or one reference to an object of type `T`.
unsafe fn made<T: Interface>(call: &'static str, make: impl FnOnce(*mut *mut c_void) -> HRESULT) -> Result<T, Error> {
    let mut object = std::ptr::null_mut();
    let status = make(&mut object);
    // SAFETY: the caller's promise.
    status.and_then(|| unsafe { windows::core::Type::from_abi(object) }).map_err(|e| from_hresult(call, &e))
}

fn function(loader: &'static str, library: PCWSTR, name: PCSTR) -> Result<Untyped, Error> {
    let missing = |message: String| Error::NoLoader { loader, message };
    // SAFETY: the name ends with NUL; the system's own folder is searched and nothing else. Loading
    // these libraries runs their initialisers, which is their purpose.
    let library =
        unsafe { LoadLibraryExW(library, None, LOAD_LIBRARY_SEARCH_SYSTEM32) }.map_err(|e| missing(e.message()))?;
    // SAFETY: the library is loaded; the name ends with NUL.
    unsafe { GetProcAddress(library, name) }.ok_or_else(|| missing("it lacks a function of Windows 10".to_owned()))
}
