//! Memory, and transfers between its segments, on any adapter.

mod support;

use dml_gpu::traits::*;
use dml_gpu::{AdapterKind, Error, MemoryClass};
use support::{add, add_kernel, assert_valid, open, read, readback, upload, write};

#[test]
fn mapped_memory_keeps_what_the_host_writes() {
    let gpu = open();
    for class in [MemoryClass::Readback, MemoryClass::Staging] {
        let segment = gpu.allocate(4096, class).expect("memory");
        let values: Vec<f32> = (0..1024).map(|i| i as f32).collect();
        write(&segment, &values);
        assert_eq!(read(&segment, 1024), values);
    }
    let device = gpu.allocate(4096, MemoryClass::Device).expect("memory");
    assert!(device.host_ptr().is_none());
    assert_ne!(device.address(), 0);
    assert_eq!(device.bytes(), 4096);
    assert_valid();
}

#[test]
fn copies_go_round() -> Result<(), Error> {
    let gpu = open();
    let mut recorder = gpu.recorder()?;
    let values: Vec<f32> = (0..4096).map(|i| i as f32 * 0.5).collect();
    let source = upload(&gpu, &values);
    let device = gpu.allocate(source.bytes(), MemoryClass::Device)?;
    let back = readback(&gpu, 4096);
    recorder.copy(&source, 0, &device, 0, source.bytes())?;
    recorder.barrier();
    recorder.update(&device, 8, &7.0f32.to_le_bytes())?;
    recorder.barrier();
    recorder.copy(&device, 0, &back, 0, device.bytes())?;
    recorder.host_barrier();
    assert_eq!(recorder.recorded(), 3);
    let ticket = recorder.submit()?;
    recorder.wait(ticket)?;
    let mut expected = values;
    expected[2] = 7.0;
    assert_eq!(read(&back, 4096), expected);
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}

#[test]
fn exhausted_memory_is_an_error_and_not_the_end() -> Result<(), Error> {
    let gpu = open();
    for bytes in [u64::MAX, 1 << 60, 1 << 45] {
        for class in [MemoryClass::Device, MemoryClass::Staging] {
            match gpu.allocate(bytes, class) {
                Err(Error::OutOfMemory { requested }) => assert_eq!(requested, bytes),
                other => panic!("{bytes} bytes: {other:?}"),
            }
        }
    }
    let one = upload(&gpu, &[1.0]);
    let out = readback(&gpu, 1);
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    add(&mut recorder, &kernel, [&one, &one, &out], 1)?;
    recorder.host_barrier();
    recorder.wait_idle()?;
    assert_eq!(read(&out, 1), [2.0]);
    assert_valid();
    Ok(())
}

/// A tensor may be larger than the size that drivers guarantee.
#[test]
fn segments_over_four_gibibytes() -> Result<(), Error> {
    let gpu = open();
    let bytes = 5u64 << 30;
    if gpu.info().kind != AdapterKind::Discrete || gpu.memory_free() < 2 * bytes {
        return Ok(());
    }
    let big = match gpu.allocate(bytes, MemoryClass::Device) {
        Ok(segment) => segment,
        Err(Error::OutOfMemory { requested }) => {
            println!("no segment of {requested} bytes");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let back = readback(&gpu, 2);
    let mut recorder = gpu.recorder()?;
    recorder.update(&big, 0, &1.0f32.to_le_bytes())?;
    recorder.update(&big, bytes - 4, &2.0f32.to_le_bytes())?;
    recorder.barrier();
    recorder.copy(&big, 0, &back, 0, 4)?;
    recorder.copy(&big, bytes - 4, &back, 4, 4)?;
    recorder.host_barrier();
    recorder.wait_idle()?;
    assert_eq!(read(&back, 2), [1.0, 2.0]);
    assert_valid();
    Ok(())
}

/// Takes all memory of the adapter, so it must run alone.
#[test]
#[ignore = "takes all GPU memory"]
fn a_full_gpu_recovers() {
    let gpu = open();
    let chunk = gpu.info().capabilities.max_allocation.min(4 << 30);
    let limit = gpu.info().memory_total / chunk + 2;
    let mut segments = Vec::new();
    let error = loop {
        match gpu.allocate(chunk, MemoryClass::Device) {
            Ok(segment) => segments.push(segment),
            Err(error) => break error,
        }
        assert!((segments.len() as u64) < limit, "more memory than there is");
    };
    assert_eq!(error, Error::OutOfMemory { requested: chunk });
    println!("{} segments of {chunk} bytes", segments.len());
    segments.pop();
    let again = gpu.allocate(chunk, MemoryClass::Device);
    assert!(again.is_ok(), "{again:?}");
}

#[test]
fn segments_of_another_device_are_refused() -> Result<(), Error> {
    let (gpu, other) = (open(), open());
    let mut recorder = gpu.recorder()?;
    let allocate = |gpu: &dml_vulkan::Gpu| gpu.allocate(64, MemoryClass::Device);
    let (here, there) = (allocate(&gpu)?, allocate(&other)?);
    for result in [
        recorder.copy(&here, 0, &there, 0, 64),
        recorder.copy(&there, 0, &here, 0, 64),
        recorder.copy(&there, 0, &there, 32, 32),
        recorder.update(&there, 0, &[0; 64]),
        gpu.record(Vec::new(), |encoder, _| encoder.update(&there, 0, &[0; 64])).map(drop),
    ] {
        assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    }
    recorder.update(&here, 0, &[0; 64])?;
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}
