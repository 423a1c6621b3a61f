//! Shared by the tests: the device under test, and memory that the host fills and reads.

#![allow(dead_code, reason = "each test uses a part")]

use dml_d3d12::{Gpu, Recorder, Segment};
use dml_gpu::traits::*;
use dml_gpu::{MemoryClass, OpenOptions};

/// A new device of the first adapter, also of one that runs no kernels; `None`, with a printed
/// reason, if there is no adapter.
pub fn gpu() -> Option<Gpu> {
    let usable = dml_d3d12::adapters();
    let first = usable.as_ref().ok().and_then(|all| all.first()).or(dml_d3d12::adapters_without_kernels().first());
    let Some(adapter) = first else {
        eprintln!("skipped: {:?}; left out: {:?}", usable.err(), dml_d3d12::unsupported_adapters());
        return None;
    };
    let options = OpenOptions { cache_dir: Some(std::env::temp_dir()), ..OpenOptions::default() };
    Some(adapter.open_with(&options).expect("it opens"))
}

/// A segment with these bytes.
pub fn upload(gpu: &Gpu, bytes: &[u8]) -> Segment {
    let segment = gpu.allocate(bytes.len() as u64, MemoryClass::Upload).expect("memory");
    fill(&segment, bytes);
    segment
}

/// Fills mapped memory.
pub fn fill(segment: &Segment, bytes: &[u8]) {
    assert!(bytes.len() as u64 <= segment.bytes());
    let to = segment.host_ptr().expect("mapped memory");
    // SAFETY: the segment is mapped, long enough, and not in use by the GPU.
    unsafe { to.copy_from_nonoverlapping(std::ptr::NonNull::from(bytes).cast(), bytes.len()) };
}

/// Reads mapped memory.
pub fn bytes_of(segment: &Segment) -> Vec<u8> {
    let from = segment.host_ptr().expect("mapped memory");
    // SAFETY: the segment is mapped, long enough, and not in use by the GPU.
    unsafe { std::slice::from_raw_parts(from.as_ptr(), segment.bytes() as usize) }.to_vec()
}

/// The content of a segment after all recorded commands.
pub fn download(gpu: &Gpu, recorder: &mut Recorder, from: &Segment) -> Vec<u8> {
    let to = gpu.allocate(from.bytes(), MemoryClass::Readback).expect("memory");
    recorder.copy(from, 0, &to, 0, from.bytes()).expect("recorded");
    recorder.host_barrier();
    let ticket = recorder.submit().expect("submitted");
    recorder.wait(ticket).expect("done");
    bytes_of(&to)
}
