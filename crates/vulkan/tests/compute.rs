//! Adapters, devices and kernels on any adapter.

mod support;

use dml_gpu::traits::*;
use dml_gpu::{Error, MemoryClass, Ticket};
use dml_vulkan::{Gpu, Recorder, Segment, Timeline};
use support::{add, add_kernel, add_push, assert_valid, open, read, readback, upload, write};

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
