//! Memory, kernels, submission and waiting on whatever adapter is there.

mod support;

use dml_gpu::traits::*;
use dml_gpu::{AdapterKind, Error, MemoryClass, Ticket};
use dml_vulkan::{Gpu, Recorder, Segment, Timeline};
use support::{add, add_kernel, add_push, assert_valid, open, read, upload, write};

fn readback(gpu: &Gpu, count: u64) -> Segment {
    gpu.allocate(count * 4, MemoryClass::Readback).expect("memory")
}

#[test]
fn handles_cross_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Gpu>();
    shared::<Segment>();
    shared::<Timeline>();
    shared::<dml_vulkan::Pipeline>();
    shared::<dml_vulkan::TimestampId>();
    sent::<Recorder>();
}

#[test]
fn adapters_are_described() {
    let adapters = dml_vulkan::adapters().expect("adapters");
    for adapter in adapters {
        let info = adapter.info();
        let can = &info.capabilities;
        assert!(!info.name.is_empty() && !info.vendor.is_empty());
        assert!(info.api_version >= (1, 2, 0));
        assert!(info.memory_total > 0);
        assert!(adapter.memory_free() > 0);
        assert!(can.max_push_constants >= 128);
        assert!(can.max_workgroup_invocations >= 128);
        assert!(can.max_shared_memory >= 16_384);
        assert!(can.max_groups.iter().all(|&n| n >= 65_535));
        assert!(can.subgroup_size.is_power_of_two());
        assert!(can.subgroup_size_min <= can.subgroup_size);
        assert!(can.max_allocation >= 1 << 30);
        assert_eq!(can.matrix_shapes.is_empty(), !can.matrix && !can.bf16_matrix);
        println!("{info:#?}");
    }
    assert!(adapters.is_sorted_by_key(|a| a.info().kind));
}

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
fn a_kernel_adds() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let one = upload(&gpu, &[1.0]);
    let two = upload(&gpu, &[2.0]);
    let out = readback(&gpu, 1);
    add(&mut recorder, &kernel, [&one, &two, &out], 1)?;
    recorder.host_barrier();
    let ticket = recorder.submit()?;
    recorder.wait(ticket)?;
    assert_eq!(read(&out, 1), [3.0]);

    let count = 10_007u32;
    let a: Vec<f32> = (0..count).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..count).map(|i| 2.0 * i as f32).collect();
    let expected: Vec<f32> = (0..count).map(|i| 3.0 * i as f32).collect();
    let (a, b) = (upload(&gpu, &a), upload(&gpu, &b));
    let sum = gpu.allocate(u64::from(count) * 4, MemoryClass::Device)?;
    let back = readback(&gpu, u64::from(count));
    add(&mut recorder, &kernel, [&a, &b, &sum], count)?;
    recorder.barrier();
    recorder.copy(&sum, 0, &back, 0, sum.bytes())?;
    recorder.host_barrier();
    let ticket = recorder.submit()?;
    recorder.wait(ticket)?;
    assert_eq!(read(&back, count as usize), expected);
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}

#[test]
fn ten_thousand_dependent_dispatches_in_a_hundred_submits() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let ones = upload(&gpu, &[1.0; 64]);
    let sum = upload(&gpu, &[0.0; 64]);
    let back = readback(&gpu, 64);
    let mut last = Ticket(0);
    for _ in 0..100 {
        for _ in 0..100 {
            add(&mut recorder, &kernel, [&sum, &ones, &sum], 64)?;
            recorder.barrier();
        }
        let ticket = recorder.submit()?;
        assert_eq!(ticket, Ticket(last.0 + 1));
        last = ticket;
        assert!(recorder.completed()? <= ticket);
    }
    recorder.copy(&sum, 0, &back, 0, 256)?;
    recorder.host_barrier();
    let last = recorder.submit()?;
    recorder.wait(last)?;
    assert_eq!(read(&back, 64), [10_000.0; 64]);
    assert_eq!(recorder.completed()?, last);
    assert_eq!(recorder.last_ticket(), last);
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}

#[test]
fn every_ticket_can_be_awaited() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let ones = upload(&gpu, &[1.0; 64]);
    let sum = gpu.allocate(256, MemoryClass::Staging)?;
    write(&sum, &[0.0; 64]);
    recorder.wait(Ticket(0))?;
    for round in 1..=100u16 {
        add(&mut recorder, &kernel, [&sum, &ones, &sum], 64)?;
        recorder.barrier();
        recorder.host_barrier();
        let ticket = recorder.submit()?;
        recorder.wait(ticket)?;
        assert!(recorder.completed()? >= ticket);
        assert_eq!(read(&sum, 64), [f32::from(round); 64], "round {round}");
    }
    // More pending submissions than the ring holds.
    for _ in 0..600 {
        add(&mut recorder, &kernel, [&sum, &ones, &sum], 64)?;
        recorder.barrier();
        recorder.submit()?;
    }
    recorder.host_barrier();
    recorder.wait_idle()?;
    assert_eq!(read(&sum, 64), [700.0; 64]);
    assert_valid();
    Ok(())
}

#[test]
fn nothing_recorded_is_no_submission() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    assert_eq!(recorder.submit()?, Ticket(0));
    recorder.barrier();
    recorder.dispatch(&kernel, &[0; 32], [0, 1, 1])?;
    assert_eq!(recorder.recorded(), 0);
    assert_eq!(recorder.submit()?, Ticket(0));
    recorder.wait(Ticket(0))?;
    Ok(())
}

#[test]
fn another_thread_waits_while_this_one_records() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let ones = upload(&gpu, &[1.0; 64]);
    let sum = upload(&gpu, &[0.0; 64]);
    let timeline = recorder.timeline().clone();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            add(&mut recorder, &kernel, [&sum, &ones, &sum], 64)?;
            recorder.barrier();
            let ticket = recorder.submit()?;
            let timeline = &timeline;
            scope.spawn(move || timeline.wait(ticket).expect("the ticket completes"));
        }
        Ok::<(), Error>(())
    })?;
    assert_eq!(timeline.completed()?, recorder.last_ticket());
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}

#[test]
fn recorders_wait_for_each_other() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut first = gpu.recorder()?;
    let mut second = gpu.recorder()?;
    let one = upload(&gpu, &[1.0; 64]);
    let sum = gpu.allocate(256, MemoryClass::Device)?;
    let back = readback(&gpu, 64);
    for round in 0..5 {
        add(&mut first, &kernel, [&one, &one, &sum], 64)?;
        let ticket = first.submit()?;
        second.after(first.timeline(), ticket)?;
        second.copy(&sum, 0, &back, 0, 256)?;
        second.host_barrier();
        let copied = second.submit()?;
        second.wait(copied)?;
        assert_eq!(read(&back, 64), [2.0; 64], "round {round}");
    }
    first.wait_idle()?;
    second.wait_idle()?;
    assert_valid();
    Ok(())
}

#[test]
fn timestamps_grow() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    if gpu.info().capabilities.timestamp_period_ns == 0.0 {
        assert!(matches!(recorder.timestamp(), Err(Error::Unsupported { .. })));
        return Ok(());
    }
    let sum = upload(&gpu, &[1.0; 64]);
    let mut previous = 0;
    for _ in 0..10 {
        let mut ids = Vec::new();
        for _ in 0..50 {
            ids.push(recorder.timestamp()?);
            add(&mut recorder, &kernel, [&sum, &sum, &sum], 64)?;
            recorder.barrier();
        }
        assert_eq!(recorder.timestamp_ns(&ids[0])?, None);
        let ticket = recorder.submit()?;
        recorder.wait(ticket)?;
        for id in &ids {
            let time = recorder.timestamp_ns(id)?.expect("complete");
            assert!(time >= previous, "{time} after {previous}");
            previous = time;
        }
    }
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}

#[test]
fn broken_rules_are_errors() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let segment = gpu.allocate(64, MemoryClass::Device)?;
    let rejected = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    };
    rejected(gpu.allocate(0, MemoryClass::Device).map(drop));
    rejected(gpu.compile("empty", &[], 0).map(drop));
    rejected(gpu.compile("push", support::ADD, 1 << 20).map(drop));
    rejected(recorder.dispatch(&kernel, &[0; 28], [1, 1, 1]));
    rejected(recorder.dispatch(&kernel, &[0; 32], [1, u32::MAX, 1]));
    rejected(recorder.copy(&segment, 0, &segment, 8, 16));
    rejected(recorder.copy(&segment, 0, &segment, u64::MAX, 16));
    rejected(recorder.copy(&segment, 60, &segment, 0, 8));
    rejected(recorder.update(&segment, 2, &[0; 4]));
    rejected(recorder.update(&segment, 0, &[0; 3]));
    rejected(recorder.update(&segment, 0, &[0; 68]));
    rejected(recorder.wait(Ticket(1)));
    let other = open();
    rejected(recorder.dispatch(&add_kernel(&other)?, &[0; 32], [1, 1, 1]));
    rejected(recorder.after(other.recorder()?.timeline(), Ticket(0)));
    assert_eq!(recorder.recorded(), 0);
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

/// A tensor may be larger than what drivers vouch for.
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

#[test]
fn a_closed_device_opens_again() -> Result<(), Error> {
    for _ in 0..20 {
        let gpu = open();
        let kernel = add_kernel(&gpu)?;
        let mut recorder = gpu.recorder()?;
        let one = upload(&gpu, &[1.0]);
        let out = readback(&gpu, 1);
        add(&mut recorder, &kernel, [&one, &one, &out], 1)?;
        recorder.host_barrier();
        let ticket = recorder.submit()?;
        assert_eq!(ticket, Ticket(1));
        recorder.wait(ticket)?;
        assert_eq!(read(&out, 1), [2.0]);
    }
    assert_valid();
    Ok(())
}

/// Takes all memory of the adapter, so it does not run beside the others.
#[test]
#[ignore = "takes all GPU memory"]
fn a_full_gpu_recovers() {
    let gpu = open();
    let chunk = gpu.info().capabilities.max_allocation.min(4 << 30);
    let limit = gpu.info().memory_total / chunk + 2;
    let mut held = Vec::new();
    let error = loop {
        match gpu.allocate(chunk, MemoryClass::Device) {
            Ok(segment) => held.push(segment),
            Err(error) => break error,
        }
        assert!((held.len() as u64) < limit, "more memory than there is");
    };
    assert_eq!(error, Error::OutOfMemory { requested: chunk });
    println!("{} segments of {chunk} bytes", held.len());
    held.pop();
    let again = gpu.allocate(chunk, MemoryClass::Device);
    assert!(again.is_ok(), "{again:?}");
}

#[test]
fn many_threads_compile() -> Result<(), Error> {
    let gpu = open();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| add_kernel(&gpu).map(drop))).collect();
        for thread in threads {
            thread.join().expect("no panic")?;
        }
        Ok(())
    })
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

#[test]
fn workgroups_can_be_counted_from_a_base() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let count = 10 * 64u32;
    let ones = upload(&gpu, &vec![1.0; count as usize]);
    let sum = readback(&gpu, u64::from(count));
    write(&sum, &vec![0.0; count as usize]);
    let push = add_push([&ones, &ones, &sum], count);
    recorder.dispatch_from(&kernel, &push, [3, 0, 0], [4, 1, 1])?;
    recorder.dispatch_from(&kernel, &push, [9, 0, 0], [1, 1, 1])?;
    recorder.dispatch_from(&kernel, &push, [8, 0, 0], [0, 1, 1])?;
    recorder.host_barrier();
    let ticket = recorder.submit()?;
    recorder.wait(ticket)?;
    let expected: Vec<f32> =
        (0..count / 64).flat_map(|group| [if (3..7).contains(&group) || group == 9 { 2.0 } else { 0.0 }; 64]).collect();
    assert_eq!(read(&sum, count as usize), expected);
    let most = gpu.info().capabilities.max_groups[1];
    for base in [[0, 1, 0], [0, u32::MAX, 0]] {
        let beyond = recorder.dispatch_from(&kernel, &push, base, [1, most, 1]);
        assert!(matches!(beyond, Err(Error::Invalid { .. })), "{beyond:?}");
    }
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}
