//! Commands recorded once and run many times.

mod support;

use dml_gpu::traits::*;
use dml_gpu::{Error, MemoryClass};
use dml_vulkan::Recording;
use support::{add, add_kernel, add_push, assert_valid, open, read, upload};

const N: u32 = 1000;

#[test]
fn runs_keep_their_place_in_the_stream() -> Result<(), Error> {
    fn shared<T: Send + Sync>() {}
    shared::<Recording>();
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let ones = upload(&gpu, &[1.0; N as usize]);
    let sum = gpu.allocate(u64::from(N) * 4, MemoryClass::Readback)?;
    let twice = gpu.allocate(u64::from(N) * 4, MemoryClass::Readback)?;
    // sum = 1 + 1; each run: sum += 1, twice = sum + sum; each round in between: sum += sum.
    add(&mut recorder, &kernel, [&ones, &ones, &sum], N)?;
    let before = recorder.recorded();
    let recording = gpu.record::<Error>(Vec::new(), |commands, _| {
        commands.dispatch(&kernel, &add_push([&sum, &ones, &sum], N), [N.div_ceil(64), 1, 1])?;
        commands.barrier();
        commands.dispatch(&kernel, &add_push([&sum, &sum, &twice], N), [N.div_ceil(64), 1, 1])
    })?;
    assert_eq!((recording.len(), recording.is_empty()), (2, false));
    assert_eq!(recorder.recorded(), before, "recording is not running");
    let mut expected = 2.0;
    for round in 0..5 {
        for _ in 0..=round {
            recorder.execute(&recording)?;
            expected += 1.0;
        }
        if round % 2 == 0 {
            recorder.submit()?;
        }
        recorder.barrier();
        add(&mut recorder, &kernel, [&sum, &sum, &sum], N)?;
        expected *= 2.0;
    }
    recorder.execute(&recording)?;
    expected += 1.0;
    drop(recording); // The recording, or its pending execution, keeps the segment.
    recorder.host_barrier();
    let ticket = recorder.submit()?;
    recorder.wait(ticket)?;
    assert_eq!(read(&sum, N as usize), vec![expected; N as usize]);
    assert_eq!(read(&twice, N as usize), vec![expected * 2.0; N as usize]);
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}

#[test]
fn a_recording_keeps_its_segments() -> Result<(), Error> {
    let gpu = open();
    let mut recorder = gpu.recorder()?;
    let back = gpu.allocate(64, MemoryClass::Readback)?;
    let constants = upload(&gpu, &[3.0; 16]);
    let recording =
        gpu.record::<Error>(vec![constants], |commands, segments| commands.copy(&segments[0], 0, &back, 0, 64))?;
    recorder.execute(&recording)?;
    drop(recording);
    recorder.host_barrier();
    let ticket = recorder.submit()?;
    recorder.wait(ticket)?;
    assert_eq!(read(&back, 16), [3.0; 16]);
    assert_valid();
    Ok(())
}

#[test]
fn a_failed_or_empty_recording_changes_nothing() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let ones = upload(&gpu, &[1.0; N as usize]);
    let sum = gpu.allocate(u64::from(N) * 4, MemoryClass::Readback)?;
    add(&mut recorder, &kernel, [&ones, &ones, &sum], N)?;
    let failed = gpu.record::<Error>(Vec::new(), |commands, _| commands.dispatch(&kernel, &[0; 4], [1, 1, 1]));
    assert!(matches!(failed, Err(Error::Invalid { .. })));
    let empty = gpu.record::<Error>(Vec::new(), |_, _| Ok(()))?;
    assert!(empty.is_empty());
    recorder.execute(&empty)?;
    assert_eq!(recorder.recorded(), 1);
    let other = open();
    assert!(matches!(other.recorder()?.execute(&empty), Err(Error::Invalid { .. })));
    recorder.host_barrier();
    let ticket = recorder.submit()?;
    recorder.wait(ticket)?;
    assert_eq!(read(&sum, N as usize), vec![2.0; N as usize]);
    assert_valid();
    Ok(())
}
