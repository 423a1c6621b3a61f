//! The types of `plugin/engine.h`, field by field.

use std::ffi::{c_char, c_void};

/// Version of this interface; plugin and engine must agree.
pub const ABI_VERSION: u32 = 11;

/// What a call came to.
#[repr(i32)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It worked.
    Ok = 0,
    /// `RuntimeError`
    Runtime = 1,
    /// `IndexError`
    Index = 2,
    /// `TypeError`
    Type = 3,
    /// `ValueError`
    Value = 4,
    /// `NotImplementedError`
    NotImplemented = 5,
    /// `torch.OutOfMemoryError`
    OutOfMemory = 6,
    /// `torch.AcceleratorError`
    DeviceLost = 7,
    /// The CPU must do it.
    Fallback = 8,
    /// A wait was told to end.
    Interrupted = 9,
}

/// Where a tensor is: [`DmlTensor::place`].
pub mod place {
    /// Host memory.
    pub const CPU: u8 = 0;
    /// A device of this engine.
    pub const DML: u8 = 1;
    /// Anything else.
    pub const OTHER: u8 = 2;
}

/// Bits of [`DmlTensor::flags`].
pub mod flags {
    /// A Python scalar promoted to a 0-dim tensor.
    pub const WRAPPED_NUMBER: u8 = 1;
    /// The conjugate bit.
    pub const CONJ: u8 = 2;
    /// The negative bit.
    pub const NEG: u8 = 4;
}

/// A strided tensor, borrowed for one call.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DmlTensor {
    /// The plugin's object.
    pub handle: *mut c_void,
    /// Address of the first element.
    pub data: u64,
    /// `dim` sizes.
    pub sizes: *const i64,
    /// `dim` strides.
    pub strides: *const i64,
    /// Address of the storage.
    pub storage: u64,
    /// Bytes of the storage.
    pub storage_bytes: u64,
    /// Number of dimensions.
    pub dim: i32,
    /// Code of the dtype.
    pub dtype: u8,
    /// One of [`place`].
    pub place: u8,
    /// Device index.
    pub device: u8,
    /// Bits of [`flags`].
    pub flags: u8,
}

/// Tags of a [`DmlValue`].
pub mod tag {
    /// Nothing.
    pub const NONE: u8 = 0;
    /// `bool`
    pub const BOOL: u8 = 1;
    /// `int`
    pub const INT: u8 = 2;
    /// `float`
    pub const DOUBLE: u8 = 3;
    /// `complex`
    pub const COMPLEX: u8 = 4;
    /// `Tensor`
    pub const TENSOR: u8 = 5;
    /// `int[]`
    pub const INTS: u8 = 6;
    /// `float[]`
    pub const DOUBLES: u8 = 7;
    /// `bool[]`
    pub const BOOLS: u8 = 8;
    /// `Tensor[]`
    pub const TENSORS: u8 = 9;
    /// `str`
    pub const STRING: u8 = 10;
    /// `Scalar[]`
    pub const SCALARS: u8 = 11;
    /// `Generator`
    pub const GENERATOR: u8 = 12;
    /// `Device`
    pub const DEVICE: u8 = 13;
    /// A result: the bits of a uint64
    pub const UNSIGNED: u8 = 14;
}

/// What a [`DmlValue`] holds; its tag says which.
#[repr(C)]
#[derive(Copy, Clone)]
pub union Payload {
    /// `BOOL`
    pub boolean: u8,
    /// `INT`, `DEVICE`, `UNSIGNED`
    pub integer: i64,
    /// `DOUBLE`
    pub number: f64,
    /// `COMPLEX`
    pub complex: [f64; 2],
    /// `TENSOR`
    pub tensor: DmlTensor,
    /// `INTS`
    pub ints: *const i64,
    /// `DOUBLES`
    pub doubles: *const f64,
    /// `BOOLS`
    pub bools: *const u8,
    /// `TENSORS`
    pub tensors: *const DmlTensor,
    /// `SCALARS`
    pub scalars: *const DmlValue,
    /// `STRING`
    pub string: *const c_char,
    /// `GENERATOR`
    pub generator: u64,
}

/// One argument or one result.
#[repr(C)]
#[derive(Copy, Clone)]
pub struct DmlValue {
    /// One of [`tag`].
    pub tag: u8,
    /// Length of a list or string.
    pub len: i64,
    /// The value.
    pub u: Payload,
}

/// `torch.get_float32_matmul_precision()`
pub mod precision {
    /// "highest"
    pub const HIGHEST: u8 = 0;
    /// "high"
    pub const HIGH: u8 = 1;
    /// "medium"
    pub const MEDIUM: u8 = 2;
}

/// What the plugin offers during a call.
#[repr(C)]
pub struct DmlHost {
    /// Passed back to each function.
    pub this: *mut c_void,
    /// A new tensor.
    pub empty: unsafe extern "C" fn(*mut c_void, *const i64, *const i64, i32, u8, u8, *mut DmlTensor) -> i32,
    /// Resizes an `out=` tensor.
    pub resize: unsafe extern "C" fn(*mut c_void, *mut DmlTensor, *const i64, *const i64, i32) -> i32,
    /// A view of a storage.
    pub view:
        unsafe extern "C" fn(*mut c_void, *const DmlTensor, *const i64, *const i64, i32, i64, *mut DmlTensor) -> i32,
    /// A warning for the user.
    pub warn: unsafe extern "C" fn(*mut c_void, *const c_char),
    /// How float32 is multiplied: one of [`precision`].
    pub matmul_precision: unsafe extern "C" fn(*mut c_void) -> u8,
    /// What products round float32 operands to: a dtype of 16 bits, or float32's.
    pub product_dtype: unsafe extern "C" fn(*mut c_void) -> u8,
    /// `torch.get_default_dtype()`
    pub default_dtype: u8,
    /// `torch.are_deterministic_algorithms_enabled()`
    pub deterministic: u8,
}

/// What a [`DmlActivity`] did.
pub mod work {
    /// A kernel ran.
    pub const KERNEL: u8 = 0;
    /// Bytes came from the host.
    pub const UPLOAD: u8 = 1;
    /// Bytes went to the host.
    pub const DOWNLOAD: u8 = 2;
    /// A graph was replayed.
    pub const REPLAY: u8 = 3;
}

/// One command that ran on a device.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DmlActivity {
    /// Of the kernel.
    pub name: *const c_char,
    /// Of the operator.
    pub op: *const c_char,
    /// The profiler's event.
    pub correlation: u64,
    /// On the host, nanoseconds since 1970.
    pub enqueued: [i64; 2],
    /// On the device, nanoseconds since 1970.
    pub ran: [i64; 2],
    /// Bytes named as read.
    pub bytes_read: u64,
    /// Bytes named as written.
    pub bytes_written: u64,
    /// Workgroups of a kernel.
    pub groups: [u32; 3],
    /// Invocations of a workgroup.
    pub group_size: [u32; 3],
    /// Launches and copies of a graph; else 1.
    pub launches: u32,
    /// Device index.
    pub device: i32,
    /// One of [`work`].
    pub work: u8,
}

/// One figure over time.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default)]
pub struct DmlStat {
    /// Now.
    pub current: i64,
    /// The most since the last reset.
    pub peak: i64,
    /// Sum of increases.
    pub allocated: i64,
    /// Sum of decreases.
    pub freed: i64,
}

/// One pool of the allocator.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default)]
pub struct DmlPoolStats {
    /// Blocks in use.
    pub allocation: DmlStat,
    /// Segments held from the driver.
    pub segment: DmlStat,
    /// Bytes in use, rounded up.
    pub allocated_bytes: DmlStat,
    /// Bytes held from the driver.
    pub reserved_bytes: DmlStat,
    /// Bytes in use, as asked for.
    pub requested_bytes: DmlStat,
    /// Free blocks of segments in use.
    pub inactive_split: i64,
    /// Their bytes.
    pub inactive_split_bytes: i64,
}

/// A device's memory.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default)]
pub struct DmlMemoryStats {
    /// Both pools.
    pub all: DmlPoolStats,
    /// Blocks up to 1 MiB.
    pub small: DmlPoolStats,
    /// Blocks above 1 MiB.
    pub large: DmlPoolStats,
    /// Allocations tried again after a release.
    pub num_alloc_retries: i64,
    /// Allocations that failed.
    pub num_ooms: i64,
}
