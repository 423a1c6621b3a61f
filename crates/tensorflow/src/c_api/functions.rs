//! The functions of TensorFlow's C API, looked up in the library that the process has loaded.
#![allow(non_snake_case)] // They have TensorFlow's names.

use libloading::Library;
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

/// Declares types of which only pointers are used.
macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[repr(C)] pub struct $name { _opaque: [u8; 0] })*
    };
}

opaque! {
    /// `TF_Status`.
    RawStatus;
    /// `TF_Tensor`.
    RawTensor;
    /// `TF_OpKernelContext`.
    RawContext;
    /// `TF_OpKernelConstruction`.
    RawConstruction;
    /// `TF_KernelBuilder`.
    RawBuilder;
    /// `TF_VariableInputLockHolder`.
    RawLocks;
}

/// `TF_Buffer`.
#[repr(C)]
pub struct RawBuffer {
    /// The bytes.
    pub data: *const c_void,
    /// Their number.
    pub length: usize,
    /// Frees the bytes.
    pub deallocator: Option<unsafe extern "C" fn(*mut c_void, usize)>,
}

/// Makes a kernel.
pub type Create = unsafe extern "C" fn(*mut RawConstruction) -> *mut c_void;
/// Runs a kernel.
pub type Compute = unsafe extern "C" fn(*mut c_void, *mut RawContext);
/// Drops a kernel.
pub type Delete = unsafe extern "C" fn(*mut c_void);
/// Copies a tensor to another one, and deletes both.
pub type Copy = unsafe extern "C" fn(*mut RawContext, *mut RawTensor, *mut RawTensor);
/// Updates a tensor by another one and the number of an operation, and deletes both.
pub type Update = unsafe extern "C" fn(*mut RawContext, *mut RawTensor, *mut RawTensor, c_int);

/// Declares a table of functions with its lookup.
macro_rules! table {
    ($(#[$doc:meta])* $table:ident { $($function:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)* }) => {
        $(#[$doc])*
        #[allow(missing_docs)]
        pub struct $table { $(pub $function: unsafe extern "C" fn($($argument),*) $(-> $result)?,)* }

        impl $table {
            /// The functions of a library; else the names that it lacks.
            fn load(library: &Library) -> Result<Self, Vec<&'static str>> {
                let mut missing = Vec::new();
                // SAFETY: these are the types that TensorFlow's headers declare. The library stays
                // loaded until the process ends, since Python never unloads it.
                $(let $function = unsafe { library.get(concat!(stringify!($function), "\0").as_bytes()) }
                    .map(|symbol| *symbol)
                    .inspect_err(|_| missing.push(stringify!($function)))
                    .ok();)*
                match ($($function,)*) {
                    ($(Some($function),)*) => Ok(Self { $($function),* }),
                    _ => Err(missing),
                }
            }
        }
    };
}

table! {
    /// What every supported TensorFlow has.
    Functions {
        TF_NewStatus: fn() -> *mut RawStatus;
        TF_DeleteStatus: fn(*mut RawStatus);
        TF_SetStatus: fn(*mut RawStatus, c_int, *const c_char);
        TF_GetCode: fn(*const RawStatus) -> c_int;
        TF_Message: fn(*const RawStatus) -> *const c_char;
        TF_DeleteBuffer: fn(*mut RawBuffer);
        TF_TensorType: fn(*const RawTensor) -> c_int;
        TF_TensorData: fn(*const RawTensor) -> *mut c_void;
        TF_TensorByteSize: fn(*const RawTensor) -> usize;
        TF_NumDims: fn(*const RawTensor) -> c_int;
        TF_Dim: fn(*const RawTensor, c_int) -> i64;
        TF_SetShape: fn(*mut RawTensor, *const i64, c_int);
        TF_TensorBitcastFrom: fn(*const RawTensor, c_int, *mut RawTensor, *const i64, c_int, *mut RawStatus);
        TF_DeleteTensor: fn(*mut RawTensor);
        TF_NewKernelBuilder: fn(*const c_char, *const c_char, Option<Create>, Compute, Option<Delete>) -> *mut RawBuilder;
        TF_KernelBuilder_TypeConstraint: fn(*mut RawBuilder, *const c_char, c_int, *mut RawStatus);
        TF_KernelBuilder_HostMemory: fn(*mut RawBuilder, *const c_char);
        TF_KernelBuilder_Priority: fn(*mut RawBuilder, i32);
        TF_RegisterKernelBuilder: fn(*const c_char, *mut RawBuilder, *mut RawStatus);
        TF_GetStream: fn(*mut RawContext, *mut RawStatus) -> *mut c_void;
        TF_NumInputs: fn(*mut RawContext) -> c_int;
        TF_NumOutputs: fn(*mut RawContext) -> c_int;
        TF_GetInput: fn(*mut RawContext, c_int, *mut *mut RawTensor, *mut RawStatus);
        TF_InputDatatype: fn(*mut RawContext, c_int) -> c_int;
        TF_ExpectedOutputDataType: fn(*mut RawContext, c_int) -> c_int;
        TF_IsHostMemoryInput: fn(*mut RawContext, c_int, *mut RawStatus) -> bool;
        TF_IsHostMemoryOutput: fn(*mut RawContext, c_int, *mut RawStatus) -> bool;
        TF_AllocateOutput: fn(*mut RawContext, c_int, c_int, *const i64, c_int, usize, *mut RawStatus) -> *mut RawTensor;
        TF_ForwardInputOrAllocateOutput: fn(*mut RawContext, *const c_int, c_int, c_int, *const i64, c_int, *mut c_int, *mut RawStatus) -> *mut RawTensor;
        TF_SetOutput: fn(*mut RawContext, c_int, *const RawTensor, *mut RawStatus);
        TF_OpKernelContext_Failure: fn(*mut RawContext, *mut RawStatus);
        TF_OpKernelConstruction_Failure: fn(*mut RawConstruction, *mut RawStatus);
        TF_OpKernelConstruction_GetNodeDef: fn(*mut RawConstruction, *mut RawStatus) -> *mut RawBuffer;
        TF_OpKernelConstruction_HasAttr: fn(*mut RawConstruction, *const c_char, *mut RawStatus) -> bool;
        TF_OpKernelConstruction_GetAttrSize: fn(*mut RawConstruction, *const c_char, *mut i32, *mut i32, *mut RawStatus);
        TF_OpKernelConstruction_GetAttrType: fn(*mut RawConstruction, *const c_char, *mut c_int, *mut RawStatus);
        TF_OpKernelConstruction_GetAttrInt64: fn(*mut RawConstruction, *const c_char, *mut i64, *mut RawStatus);
        TF_OpKernelConstruction_GetAttrFloat: fn(*mut RawConstruction, *const c_char, *mut f32, *mut RawStatus);
        TF_OpKernelConstruction_GetAttrBool: fn(*mut RawConstruction, *const c_char, *mut u8, *mut RawStatus);
        TF_OpKernelConstruction_GetAttrString: fn(*mut RawConstruction, *const c_char, *mut c_char, usize, *mut RawStatus);
        TF_OpKernelConstruction_GetAttrInt64List: fn(*mut RawConstruction, *const c_char, *mut i64, c_int, *mut RawStatus);
        TF_OpKernelConstruction_GetAttrFloatList: fn(*mut RawConstruction, *const c_char, *mut f32, c_int, *mut RawStatus);
        TF_OpKernelConstruction_GetAttrTypeList: fn(*mut RawConstruction, *const c_char, *mut c_int, c_int, *mut RawStatus);
        TF_OpKernelConstruction_GetAttrStringList: fn(*mut RawConstruction, *const c_char, *mut *mut c_char, *mut usize, c_int, *mut c_void, usize, *mut RawStatus);
    }
}

table! {
    /// What updates variables: TensorFlow 2.20 and 2.21 lack it.
    VariableFunctions {
        TF_AssignVariable: fn(*mut RawContext, c_int, c_int, bool, Copy, *mut RawStatus);
        TF_AssignRefVariable: fn(*mut RawContext, c_int, c_int, c_int, bool, bool, Copy, *mut RawStatus);
        TF_AssignUpdateVariable: fn(*mut RawContext, c_int, c_int, c_int, c_int, Copy, Update, *mut RawStatus);
        TF_MaybeLockVariableInputMutexesInOrder: fn(*mut RawContext, bool, bool, *const c_int, usize, Copy, *mut *mut RawLocks, *mut RawStatus);
        TF_GetInputTensorFromVariable: fn(*mut RawContext, c_int, bool, bool, bool, Copy, *mut *mut RawTensor, *mut RawStatus);
        TF_OpKernelContext_ForwardRefInputToRefOutput: fn(*mut RawContext, i32, i32);
        TF_ReleaseVariableInputLockHolder: fn(*mut RawLocks);
        TF_IsRefInput: fn(*mut RawContext, c_int, *mut RawStatus) -> bool;
    }
}

/// All functions.
pub struct Api {
    /// What every supported TensorFlow has.
    pub functions: Functions,
    /// What updates variables.
    pub variables: VariableFunctions,
}

/// The library that has the C API, if the process has loaded it.
#[cfg(unix)]
fn library() -> Result<Library, String> {
    use libloading::os::unix;
    const NAMES: [&str; 2] = ["libtensorflow_framework.so.2", "libtensorflow_framework.2.dylib"];
    /// `RTLD_NOLOAD` of glibc and musl.
    const NO_LOAD: i32 = 4;
    // SAFETY: a library that is loaded already runs no initialiser again.
    let open = |name: &str| unsafe { unix::Library::open(Some(name), unix::RTLD_NOW | NO_LOAD) };
    let found = NAMES.iter().find_map(|name| open(name).ok());
    found.map(Library::from).ok_or_else(|| format!("{} is not loaded", NAMES[0]))
}

/// The library that has the C API, if the process has loaded it.
#[cfg(windows)]
fn library() -> Result<Library, String> {
    use libloading::os::windows;
    const NAMES: [&str; 3] =
        ["_pywrap_tensorflow_common.dll", "_pywrap_tensorflow_internal.pyd", "tensorflow_framework.2.dll"];
    let found = NAMES.iter().find_map(|name| windows::Library::open_already_loaded(name).ok());
    found.map(Library::from).ok_or_else(|| format!("{} is not loaded", NAMES[0]))
}

fn load() -> Result<Api, String> {
    let library = library()?;
    let functions = Functions::load(&library).map_err(|names| format!("it lacks {}", names.join(", ")))?;
    let variables = VariableFunctions::load(&library).map_err(|_| {
        "it lacks the C functions for variables, as 2.20 and 2.21 do: pip install --upgrade tensorflow-cpu".to_owned()
    });
    // The handle is never closed: the functions stay valid.
    std::mem::forget(library);
    Ok(Api { functions, variables: variables? })
}

/// The functions, or why this TensorFlow cannot be used. The first call looks them up.
pub fn loaded() -> Result<&'static Api, &'static str> {
    static API: OnceLock<Result<Api, String>> = OnceLock::new();
    API.get_or_init(load).as_ref().map_err(String::as_str)
}

/// The functions, in code that TensorFlow calls only after they were found.
///
/// # Panics
/// If they were not found.
pub fn api() -> &'static Functions {
    &loaded().expect("kernels are registered only when the functions were found").functions
}

/// The functions for variables, as [`api`].
pub fn variable_api() -> &'static VariableFunctions {
    &loaded().expect("kernels are registered only when the functions were found").variables
}
