//! A lost device answers at once, and leaves others alone.

mod support;

use std::time::{Duration, Instant};

use dml_gpu::traits::*;
use dml_gpu::{Error, MemoryClass, OpenOptions};
use support::{add, add_kernel, open, read, upload};

#[test]
fn every_call_after_a_loss_says_so() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let one = upload(&gpu, &[1.0]);
    let out = gpu.allocate(4, MemoryClass::Readback)?;
    add(&mut recorder, &kernel, [&one, &one, &out], 1)?;
    let ticket = recorder.submit()?;
    let time = recorder.timestamp().ok();
    let timeline = recorder.timeline().clone();
    assert!(!gpu.is_lost());

    gpu.simulate_loss();
    assert!(gpu.is_lost());
    let lost = |result: Result<(), Error>| assert_eq!(result, Err(Error::DeviceLost));
    lost(gpu.allocate(4, MemoryClass::Device).map(drop));
    lost(add_kernel(&gpu).map(drop));
    lost(gpu.save_pipeline_cache());
    lost(gpu.recorder().map(drop));
    lost(add(&mut recorder, &kernel, [&one, &one, &out], 1));
    lost(recorder.copy(&one, 0, &out, 0, 4));
    lost(recorder.update(&out, 0, &[0; 4]));
    lost(recorder.timestamp().map(drop));
    if let Some(time) = time {
        lost(recorder.timestamp_ns(&time).map(drop));
    }
    lost(recorder.after(&timeline, ticket));
    lost(recorder.submit().map(drop));
    lost(recorder.completed().map(drop));
    lost(recorder.wait(ticket));
    lost(recorder.wait_idle());
    lost(timeline.wait(ticket));

    // Another device of the same adapter works on.
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let one = upload(&gpu, &[1.0]);
    let out = gpu.allocate(4, MemoryClass::Readback)?;
    add(&mut recorder, &kernel, [&one, &one, &out], 1)?;
    recorder.host_barrier();
    recorder.wait_idle()?;
    assert_eq!(read(&out, 1), [2.0]);
    Ok(())
}

#[test]
fn a_blocked_wait_notices_the_loss() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let sum = upload(&gpu, &[0.0; 64]);
    for _ in 0..20_000 {
        add(&mut recorder, &kernel, [&sum, &sum, &sum], 64)?;
        recorder.barrier();
    }
    let ticket = recorder.submit()?;
    let waited = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| recorder.wait(ticket));
        gpu.simulate_loss();
        waiter.join().expect("no panic")
    });
    assert_eq!(waited, Err(Error::DeviceLost));
    drop(recorder); // waits for the work, which still runs
    support::assert_valid();
    Ok(())
}

#[test]
fn a_gpu_without_progress_counts_as_lost() -> Result<(), Error> {
    let gpu = dml_vulkan::adapters()?[0].open_with(&OpenOptions {
        cache_dir: Some(support::cache_dir("hung")),
        timeout: Some(Duration::from_millis(5)),
    })?;
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let sum = upload(&gpu, &[0.0; 64]);
    for _ in 0..20_000 {
        add(&mut recorder, &kernel, [&sum, &sum, &sum], 64)?;
        recorder.barrier();
    }
    let ticket = recorder.submit()?;
    assert_eq!(recorder.wait(ticket), Err(Error::DeviceLost));
    assert!(gpu.is_lost());
    // What the GPU still uses is leaked, and dropping its handles does not wait for it.
    let start = Instant::now();
    drop((recorder, sum, kernel, gpu));
    assert!(start.elapsed() < Duration::from_millis(100));
    Ok(())
}
