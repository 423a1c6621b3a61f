//! Shared by the tests: the adapter under test and one kernel.

#![allow(dead_code, reason = "each test uses a part")]

use dml_gpu::traits::*;
use dml_gpu::{Error, MemoryClass, OpenOptions};
use dml_vulkan::{Gpu, Pipeline, Recorder, Segment};

/// The first adapter, opened with a cache directory that no other test uses.
pub fn open() -> Gpu {
    open_in("shared")
}

/// As [`open`], with a separate, empty pipeline cache.
pub fn open_in(name: &str) -> Gpu {
    let adapters = dml_vulkan::adapters().expect("a Vulkan adapter");
    adapters[0]
        .open_with(&OpenOptions { cache_dir: Some(cache_dir(name)), ..OpenOptions::default() })
        .expect("the adapter opens")
}

/// The folder of the cache of [`open_in`].
pub fn cache_dir(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("dml-vulkan-test-{}-{name}", std::process::id()))
}

/// Fails if the validation layer reported errors.
pub fn assert_valid() {
    assert_eq!(dml_vulkan::validation_errors(), 0, "validation errors");
}

/// The kernel below.
pub fn add_kernel(gpu: &Gpu) -> Result<Pipeline, Error> {
    gpu.compile("add", ADD, 32)
}

/// Records `out[i] = a[i] + b[i]` for `i` below `n`.
pub fn add(recorder: &mut Recorder, kernel: &Pipeline, [a, b, out]: [&Segment; 3], n: u32) -> Result<(), Error> {
    recorder.dispatch(kernel, &add_push([a, b, out], n), [n.div_ceil(64), 1, 1])
}

/// The kernel's push constants.
pub fn add_push([a, b, out]: [&Segment; 3], n: u32) -> [u8; 32] {
    let mut push = [0u8; 32];
    push[0..8].copy_from_slice(&a.address().to_le_bytes());
    push[8..16].copy_from_slice(&b.address().to_le_bytes());
    push[16..24].copy_from_slice(&out.address().to_le_bytes());
    push[24..28].copy_from_slice(&n.to_le_bytes());
    push
}

/// A segment with these values.
pub fn upload(gpu: &Gpu, values: &[f32]) -> Segment {
    let segment = gpu.allocate(values.len() as u64 * 4, MemoryClass::Upload).expect("memory");
    write(&segment, values);
    segment
}

/// Memory of `count` f32 that the host reads.
pub fn readback(gpu: &Gpu, count: u64) -> Segment {
    gpu.allocate(count * 4, MemoryClass::Readback).expect("memory")
}

/// Fills mapped memory.
pub fn write(segment: &Segment, values: &[f32]) {
    assert!(values.len() as u64 * 4 <= segment.bytes());
    let to = segment.host_ptr().expect("mapped memory").cast::<f32>();
    // SAFETY: the segment is mapped, long enough, and not in use by the GPU.
    unsafe { to.copy_from_nonoverlapping(std::ptr::NonNull::from(values).cast(), values.len()) };
}

/// Reads mapped memory.
pub fn read(segment: &Segment, count: usize) -> Vec<f32> {
    assert!(count as u64 * 4 <= segment.bytes());
    let from = segment.host_ptr().expect("mapped memory").cast::<f32>();
    // SAFETY: the segment is mapped, long enough, and the GPU is done with it.
    unsafe { std::slice::from_raw_parts(from.as_ptr(), count) }.to_vec()
}

/// Adds two f32 arrays by address. Made with `spirv-as --target-env vulkan1.2` from:
///
/// ```text
/// OpCapability Shader
/// OpCapability PhysicalStorageBufferAddresses
/// OpMemoryModel PhysicalStorageBuffer64 GLSL450
/// OpEntryPoint GLCompute %main "main" %gid %push
/// OpExecutionMode %main LocalSize 64 1 1
/// OpDecorate %gid BuiltIn GlobalInvocationId
/// OpDecorate %array ArrayStride 4
/// OpDecorate %data Block
/// OpMemberDecorate %data 0 Offset 0
/// OpDecorate %args Block
/// OpMemberDecorate %args 0 Offset 0
/// OpMemberDecorate %args 1 Offset 8
/// OpMemberDecorate %args 2 Offset 16
/// OpMemberDecorate %args 3 Offset 24
/// %void = OpTypeVoid
/// %fn = OpTypeFunction %void
/// %bool = OpTypeBool
/// %uint = OpTypeInt 32 0
/// %float = OpTypeFloat 32
/// %v3 = OpTypeVector %uint 3
/// %0u = OpConstant %uint 0
/// %1u = OpConstant %uint 1
/// %2u = OpConstant %uint 2
/// %3u = OpConstant %uint 3
/// %in_v3 = OpTypePointer Input %v3
/// %in_uint = OpTypePointer Input %uint
/// %gid = OpVariable %in_v3 Input
/// %array = OpTypeRuntimeArray %float
/// %data = OpTypeStruct %array
/// %buf = OpTypePointer PhysicalStorageBuffer %data
/// %elem = OpTypePointer PhysicalStorageBuffer %float
/// %args = OpTypeStruct %buf %buf %buf %uint
/// %push_args = OpTypePointer PushConstant %args
/// %push_buf = OpTypePointer PushConstant %buf
/// %push_uint = OpTypePointer PushConstant %uint
/// %push = OpVariable %push_args PushConstant
/// %main = OpFunction %void None %fn
/// %entry = OpLabel
/// %px = OpAccessChain %in_uint %gid %0u
/// %i = OpLoad %uint %px
/// %pn = OpAccessChain %push_uint %push %3u
/// %n = OpLoad %uint %pn
/// %inside = OpULessThan %bool %i %n
/// OpSelectionMerge %end None
/// OpBranchConditional %inside %body %end
/// %body = OpLabel
/// %pa = OpAccessChain %push_buf %push %0u
/// %a = OpLoad %buf %pa
/// %pb = OpAccessChain %push_buf %push %1u
/// %b = OpLoad %buf %pb
/// %po = OpAccessChain %push_buf %push %2u
/// %o = OpLoad %buf %po
/// %pai = OpAccessChain %elem %a %0u %i
/// %pbi = OpAccessChain %elem %b %0u %i
/// %poi = OpAccessChain %elem %o %0u %i
/// %ai = OpLoad %float %pai Aligned 4
/// %bi = OpLoad %float %pbi Aligned 4
/// %sum = OpFAdd %float %ai %bi
/// OpStore %poi %sum Aligned 4
/// OpBranch %end
/// %end = OpLabel
/// OpReturn
/// OpFunctionEnd
/// ```
#[rustfmt::skip]
pub const ADD: &[u32] = &[
    0x07230203, 0x00010500, 0x00070000, 0x0000002c, 0x00000000, 0x00020011, 0x00000001, 0x00020011,
    0x000014e3, 0x0003000e, 0x000014e4, 0x00000001, 0x0007000f, 0x00000005, 0x00000001, 0x6e69616d,
    0x00000000, 0x00000002, 0x00000003, 0x00060010, 0x00000001, 0x00000011, 0x00000040, 0x00000001,
    0x00000001, 0x00040047, 0x00000002, 0x0000000b, 0x0000001c, 0x00040047, 0x00000004, 0x00000006,
    0x00000004, 0x00030047, 0x00000005, 0x00000002, 0x00050048, 0x00000005, 0x00000000, 0x00000023,
    0x00000000, 0x00030047, 0x00000006, 0x00000002, 0x00050048, 0x00000006, 0x00000000, 0x00000023,
    0x00000000, 0x00050048, 0x00000006, 0x00000001, 0x00000023, 0x00000008, 0x00050048, 0x00000006,
    0x00000002, 0x00000023, 0x00000010, 0x00050048, 0x00000006, 0x00000003, 0x00000023, 0x00000018,
    0x00020013, 0x00000007, 0x00030021, 0x00000008, 0x00000007, 0x00020014, 0x00000009, 0x00040015,
    0x0000000a, 0x00000020, 0x00000000, 0x00030016, 0x0000000b, 0x00000020, 0x00040017, 0x0000000c,
    0x0000000a, 0x00000003, 0x0004002b, 0x0000000a, 0x0000000d, 0x00000000, 0x0004002b, 0x0000000a,
    0x0000000e, 0x00000001, 0x0004002b, 0x0000000a, 0x0000000f, 0x00000002, 0x0004002b, 0x0000000a,
    0x00000010, 0x00000003, 0x00040020, 0x00000011, 0x00000001, 0x0000000c, 0x00040020, 0x00000012,
    0x00000001, 0x0000000a, 0x0004003b, 0x00000011, 0x00000002, 0x00000001, 0x0003001d, 0x00000004,
    0x0000000b, 0x0003001e, 0x00000005, 0x00000004, 0x00040020, 0x00000013, 0x000014e5, 0x00000005,
    0x00040020, 0x00000014, 0x000014e5, 0x0000000b, 0x0006001e, 0x00000006, 0x00000013, 0x00000013,
    0x00000013, 0x0000000a, 0x00040020, 0x00000015, 0x00000009, 0x00000006, 0x00040020, 0x00000016,
    0x00000009, 0x00000013, 0x00040020, 0x00000017, 0x00000009, 0x0000000a, 0x0004003b, 0x00000015,
    0x00000003, 0x00000009, 0x00050036, 0x00000007, 0x00000001, 0x00000000, 0x00000008, 0x000200f8,
    0x00000018, 0x00050041, 0x00000012, 0x00000019, 0x00000002, 0x0000000d, 0x0004003d, 0x0000000a,
    0x0000001a, 0x00000019, 0x00050041, 0x00000017, 0x0000001b, 0x00000003, 0x00000010, 0x0004003d,
    0x0000000a, 0x0000001c, 0x0000001b, 0x000500b0, 0x00000009, 0x0000001d, 0x0000001a, 0x0000001c,
    0x000300f7, 0x0000001e, 0x00000000, 0x000400fa, 0x0000001d, 0x0000001f, 0x0000001e, 0x000200f8,
    0x0000001f, 0x00050041, 0x00000016, 0x00000020, 0x00000003, 0x0000000d, 0x0004003d, 0x00000013,
    0x00000021, 0x00000020, 0x00050041, 0x00000016, 0x00000022, 0x00000003, 0x0000000e, 0x0004003d,
    0x00000013, 0x00000023, 0x00000022, 0x00050041, 0x00000016, 0x00000024, 0x00000003, 0x0000000f,
    0x0004003d, 0x00000013, 0x00000025, 0x00000024, 0x00060041, 0x00000014, 0x00000026, 0x00000021,
    0x0000000d, 0x0000001a, 0x00060041, 0x00000014, 0x00000027, 0x00000023, 0x0000000d, 0x0000001a,
    0x00060041, 0x00000014, 0x00000028, 0x00000025, 0x0000000d, 0x0000001a, 0x0006003d, 0x0000000b,
    0x00000029, 0x00000026, 0x00000002, 0x00000004, 0x0006003d, 0x0000000b, 0x0000002a, 0x00000027,
    0x00000002, 0x00000004, 0x00050081, 0x0000000b, 0x0000002b, 0x00000029, 0x0000002a, 0x0005003e,
    0x00000028, 0x0000002b, 0x00000002, 0x00000004, 0x000200f9, 0x0000001e, 0x000200f8, 0x0000001e,
    0x000100fd, 0x00010038,
];
