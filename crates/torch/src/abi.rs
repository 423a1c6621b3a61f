//! The types and constants of the C ABI. `plugin/engine.h` and `python/torch_dml/abi.py` are
//! written from this file and from the functions of the other files (`tests/abi`).

use std::ffi::{c_char, c_void};

/// Version of this interface. Callers must be built for the same version.
pub const ABI_VERSION: u32 = 12;

/// The status of a call.
#[repr(i32)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It worked.
    Ok = 0,
    /// `RuntimeError`
    RuntimeError = 1,
    /// `IndexError`
    IndexError = 2,
    /// `TypeError`
    TypeError = 3,
    /// `ValueError`
    ValueError = 4,
    /// `NotImplementedError`
    NotImplemented = 5,
    /// `torch.OutOfMemoryError`
    OutOfMemory = 6,
    /// `torch.AcceleratorError` where there is one, else `RuntimeError`
    DeviceLost = 7,
    /// This operator has no kernel for these arguments: the CPU must run it.
    Fallback = 8,
    /// The check of `dml_set_interrupt_check` ended a wait.
    Interrupted = 9,
    /// `dml_infer`: the results depend on values.
    NeedsData = 10,
}

/// The code of a dtype that the engine does not know.
pub const DTYPE_NONE: u8 = 255;

/// Where a tensor is: `DmlTensor.place`.
pub mod place {
    /// Host memory.
    pub const CPU: u8 = 0;
    /// A device of this engine.
    pub const DML: u8 = 1;
    /// Anything else.
    pub const OTHER: u8 = 2;
}

/// Bits of `DmlTensor.flags`.
pub mod tensor_flag {
    /// A Python scalar promoted to a 0-dim tensor.
    pub const WRAPPED_NUMBER: u8 = 1;
    /// The conjugate bit.
    pub const CONJ: u8 = 2;
    /// The negative bit.
    pub const NEG: u8 = 4;
}

/// A strided tensor, borrowed for the time of one call.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DmlTensor {
    /// The plugin's object. The engine hands it back and never reads it.
    pub handle: *mut c_void,
    /// Address of the first element: a GPU address, or a host pointer where `place` is the CPU.
    pub data: u64,
    /// `dim` sizes.
    pub sizes: *const i64,
    /// `dim` strides.
    pub strides: *const i64,
    /// Address of the storage's first byte.
    pub storage: u64,
    /// Bytes of the storage.
    pub storage_bytes: u64,
    /// Number of dimensions.
    pub dim: i32,
    /// A `DmlDType`.
    pub dtype: u8,
    /// A `DmlPlace`.
    pub place: u8,
    /// Index of the device.
    pub device: u8,
    /// Bits of `DmlTensorFlag`.
    pub flags: u8,
}

/// The kinds of a `DmlValue`.
pub mod tag {
    /// Nothing.
    pub const NONE: u8 = 0;
    /// `bool`
    pub const BOOL: u8 = 1;
    /// `int`; also a dtype as its `DmlDType`, and a memory format: 0 contiguous, 1 preserve,
    /// 2 channels_last, 3 channels_last_3d.
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
    /// A result alone: an int whose bits are those of a uint64.
    pub const UNSIGNED: u8 = 14;
}

/// The content of a `DmlValue`. Its tag selects the member.
#[repr(C)]
#[derive(Copy, Clone)]
pub union DmlPayload {
    /// `DML_TAG_BOOL`
    pub boolean: u8,
    /// `DML_TAG_INT`, `DML_TAG_UNSIGNED`, and the index of a `DML_TAG_DEVICE`
    pub integer: i64,
    /// `DML_TAG_DOUBLE`
    pub number: f64,
    /// `DML_TAG_COMPLEX`
    pub complex: [f64; 2],
    /// `DML_TAG_TENSOR`
    pub tensor: DmlTensor,
    /// `DML_TAG_INTS`
    pub ints: *const i64,
    /// `DML_TAG_DOUBLES`
    pub doubles: *const f64,
    /// `DML_TAG_BOOLS`
    pub bools: *const u8,
    /// `DML_TAG_TENSORS`. An undefined tensor of the list has no handle.
    pub tensors: *const DmlTensor,
    /// `DML_TAG_SCALARS`: values of tag BOOL, INT, DOUBLE or COMPLEX.
    pub scalars: *const DmlValue,
    /// `DML_TAG_STRING`
    pub string: *const c_char,
    /// `DML_TAG_GENERATOR`: a handle of `dml_generator_new`, or 0 for the device's default one.
    pub generator: u64,
}

/// One argument or one result of an operator.
#[repr(C)]
#[derive(Copy, Clone)]
pub struct DmlValue {
    /// A `DmlTag`.
    pub tag: u8,
    /// Length of a list or string.
    pub len: i64,
    /// The value.
    pub u: DmlPayload,
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

/// Functions of the plugin that the engine calls during `dml_call`. A function that fails returns a
/// `DmlStatus` and sets the message with `dml_set_error`.
#[repr(C)]
pub struct DmlHost {
    /// Passed back to each function.
    pub context: *mut c_void,
    /// A new uninitialised tensor on dml:`device`. `strides` may be null: contiguous. The call owns
    /// it: tensors that are not returned are released when the call ends.
    pub empty: unsafe extern "C" fn(
        context: *mut c_void,
        sizes: *const i64,
        strides: *const i64,
        dim: i32,
        dtype: u8,
        device: u8,
        out: *mut DmlTensor,
    ) -> i32,
    /// Resizes an `out=` tensor as at::native::resize_output does, warning included, and refreshes
    /// it.
    pub resize: unsafe extern "C" fn(
        context: *mut c_void,
        tensor: *mut DmlTensor,
        sizes: *const i64,
        strides: *const i64,
        dim: i32,
    ) -> i32,
    /// A view of `base`'s storage. The offset counts elements from the storage's start.
    pub view: unsafe extern "C" fn(
        context: *mut c_void,
        base: *const DmlTensor,
        sizes: *const i64,
        strides: *const i64,
        dim: i32,
        storage_offset: i64,
        out: *mut DmlTensor,
    ) -> i32,
    /// A warning for the user.
    pub warn: unsafe extern "C" fn(context: *mut c_void, message: *const c_char),
    /// How float32 is multiplied: a `DmlPrecision`. Asked by products of float32.
    pub matmul_precision: unsafe extern "C" fn(context: *mut c_void) -> u8,
    /// The `DmlDType` that products round float32 operands to; float32's where they do not.
    pub product_dtype: unsafe extern "C" fn(context: *mut c_void) -> u8,
    /// `torch.get_default_dtype()`
    pub default_dtype: u8,
    /// `torch.are_deterministic_algorithms_enabled()`
    pub deterministic: u8,
}

/// Bytes of a device's memory.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DmlRange {
    /// The address of the first byte.
    pub address: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// A run of a kernel.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DmlLaunch {
    /// The parameter block, in the host's byte order: addresses (8 bytes) and numbers in the
    /// kernel's order, each aligned to its size, the block's end to 4. The address 0 stands for
    /// memory without bytes.
    pub params: *const c_void,
    /// Bytes of the parameter block.
    pub params_bytes: usize,
    /// What the kernel may read. Accesses to bytes that are not named are not ordered.
    pub reads: *const DmlRange,
    /// Number of ranges that it may read.
    pub reads_count: usize,
    /// What the kernel may write.
    pub writes: *const DmlRange,
    /// Number of ranges that it may write.
    pub writes_count: usize,
    /// Workgroups in each dimension. None run if one is 0.
    pub groups: [u32; 3],
}

/// The kinds of a `DmlActivity`.
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

/// One command that ran on a device. Times are nanoseconds since 1970 by the host's clock, from and
/// to.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DmlActivity {
    /// The kernel's name, or "graph replay", "upload", "download".
    pub name: *const c_char,
    /// The operator that enqueued it.
    pub op: *const c_char,
    /// The id of `dml_profile_correlate` when it was enqueued.
    pub correlation: u64,
    /// When the host enqueued it.
    pub enqueued: [i64; 2],
    /// When it ran on the device. The activities of a device do not overlap.
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
    /// Index of the device.
    pub device: i32,
    /// A `DmlWork`.
    pub work: u8,
}

/// One figure over time. Totals count from the start, or from the last
/// `dml_reset_accumulated_stats`.
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

/// Figures of some blocks. A block is active until it is freed.
/// What PyTorch calls active is what it calls allocated.
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
    /// Free blocks of segments in use, now.
    pub inactive_split: i64,
    /// Their bytes.
    pub inactive_split_bytes: i64,
}

/// A device's memory.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default)]
pub struct DmlMemoryStats {
    /// All blocks.
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
