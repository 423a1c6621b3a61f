//! Devices, events, threads, loss.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_engine::{AddressRange, Error, Launch, adapter_info, device, device_count, kernel_stats};
use dml_kernel::{Builder, DType};
use dml_testing::Random;
use std::sync::Arc;

#[test]
fn the_registry_opens_each_device_once() {
    let count = device_count().unwrap();
    assert!(count > 0);
    let open = || Arc::as_ptr(device(0).unwrap()) as usize;
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(open)).collect();
    let devices: Vec<usize> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    assert!(devices.iter().all(|&d| d == devices[0]));
    assert_eq!(adapter_info(0).unwrap().name, device(0).unwrap().info().name);
    let e = device(count).unwrap_err();
    assert_eq!(e, Error::InvalidDevice { index: count, count });
    dml_engine::shutdown();
    device(0).unwrap().synchronize().unwrap();
}

#[test]
fn events_complete_in_order() {
    let device = open();
    let nothing = device.record_event(false).unwrap();
    assert!(nothing.query().unwrap());
    let kernel = multiply_add(&device);
    let x = put(&device, &vec![1; 100_000]);
    let start = device.record_event(true).unwrap();
    for _ in 0..30 {
        launch_multiply_add(&device, &kernel, (x, x, x), 100_000, 1).unwrap();
    }
    let end = device.record_event(true).unwrap();
    let plain = device.record_event(false).unwrap();
    end.wait().unwrap();
    assert!(start.query().unwrap() && end.query().unwrap());
    plain.wait().unwrap();
    assert!(device.idle().unwrap());
    let ms = start.elapsed_ms(&end).unwrap();
    assert!(ms > 0.0 && ms < 60_000.0, "{ms}");
    assert!(matches!(start.elapsed_ms(&plain), Err(Error::NoTiming { .. })));
    let launched = device.record_event(false).unwrap();
    launch_multiply_add(&device, &kernel, (x, x, x), 64, 1).unwrap();
    while !launched.query().unwrap() {}
    let pending = device.record_event(false).unwrap();
    while !pending.query().unwrap() {}
}

#[test]
fn two_devices_in_one_process() {
    let (a, b) = (open(), open());
    let (ka, kb) = (multiply_add(&a), multiply_add(&b));
    let (x, y) = (put(&a, &[1; 64]), put(&b, &[2; 64]));
    for _ in 0..10 {
        launch_multiply_add(&a, &ka, (x, x, x), 64, 1).unwrap();
        launch_multiply_add(&b, &kb, (y, y, y), 64, 1).unwrap();
    }
    assert_eq!(read(&a, x, 64), [1 << 10; 64]);
    assert_eq!(read(&b, y, 64), [2 << 10; 64]);
    // A kernel of the other device is an error, not a crash.
    launch_multiply_add(&a, &kb, (x, x, x), 64, 1).unwrap();
    assert!(a.synchronize().is_err());
    assert_eq!(read(&a, x, 64), [1 << 10; 64]);
    let e = a.record_event(true).unwrap();
    let f = b.record_event(true).unwrap();
    assert!(matches!(e.elapsed_ms(&f), Err(Error::NoTiming { .. })));
}

#[test]
fn threads_share_a_device() {
    let device = Arc::new(open());
    std::thread::scope(|scope| {
        for t in 0..8 {
            let device = Arc::clone(&device);
            scope.spawn(move || {
                let kernel = multiply_add(&device);
                let mut random = Random(t);
                for round in 0..20 {
                    let n = 1 + random.below(5000) as usize;
                    let start = round * 100 + t as i32;
                    let mut now = put(&device, &vec![start; n]);
                    let one = put(&device, &vec![1; n]);
                    for _ in 0..30 {
                        let next = device.allocate(n as u64 * 4).unwrap();
                        launch_multiply_add(&device, &kernel, (next, now, one), n as u32, 1).unwrap();
                        device.free(now);
                        now = next;
                    }
                    if round % 7 == 3 {
                        device.empty_cache().unwrap();
                    }
                    assert_eq!(read(&device, now, n), vec![start + 30; n]);
                    device.free(now);
                    device.free(one);
                }
            });
        }
    });
    assert_eq!(device.memory_stats().all.allocations.current, 0);
    device.generator().lock().unwrap().set_seed(1);
}

#[test]
fn a_lost_device_raises_and_the_others_work_on() {
    let (lost, other) = (open(), open());
    let kernel = multiply_add(&lost);
    let x = put(&lost, &[1; 64]);
    launch_multiply_add(&lost, &kernel, (x, x, x), 64, 1).unwrap();
    let event = lost.record_event(false).unwrap();
    lost.simulate_loss();
    assert!(lost.is_lost());
    let is_loss = |r: Result<(), Error>| matches!(r, Err(Error::DeviceLost { device: 0, .. }));
    assert!(is_loss(launch_multiply_add(&lost, &kernel, (x, x, x), 64, 1)));
    assert!(is_loss(lost.synchronize()));
    assert!(is_loss(lost.flush()));
    assert!(is_loss(lost.upload(x, &[1; 4])));
    assert!(is_loss(lost.download(x, &mut [0; 4])));
    assert!(is_loss(lost.empty_cache()));
    assert!(is_loss(lost.allocate(1 << 30).map(drop)));
    assert!(is_loss(lost.allocate(4).map(drop)));
    assert!(is_loss(event.wait()));
    assert!(is_loss(event.query().map(drop)));
    assert!(is_loss(lost.record_event(true).map(drop)));
    lost.free(x);
    let kernel = multiply_add(&other);
    let y = put(&other, &[1; 64]);
    launch_multiply_add(&other, &kernel, (y, y, y), 64, 1).unwrap();
    assert_eq!(read(&other, y, 64), [2; 64]);
}

#[test]
fn kernels_tell_what_they_cost() {
    let device = open();
    let before = kernel_stats();
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; 8]);
    launch_multiply_add(&device, &kernel, (x, x, x), 8, 1).unwrap();
    device.synchronize().unwrap();
    let after = kernel_stats();
    assert!(after.kernels > before.kernels && after.emit_ns > before.emit_ns);
    assert!(after.compile_ns > before.compile_ns && after.longest_ns <= after.compile_ns);
    assert!(after.longest_ns > 0 && after.wait_ns >= before.wait_ns);
}

/// Each needs a kernel that is being compiled, in no particular order, and what the one before it
/// wrote.
#[test]
fn launches_of_new_kernels_keep_their_order() {
    let device = open();
    let x = put(&device, &[1; 64]);
    device.synchronize().unwrap();
    let submits = device.queue_stats().submits;
    let kernels: Vec<_> = (1..=40)
        .map(|i| {
            let key = ("test::chain", [i]);
            let build = || {
                let b = Builder::new("chain", [64, 1, 1]);
                let data = b.pointer("data", DType::I32);
                let mut value = data.load(b.global_id(0));
                for step in 0..i * 10 {
                    value = value * (2 * step + 1) + (value >> 1);
                }
                data.store(b.global_id(0), value);
                b.finish()
            };
            let kernel = device.kernel(&key, build).unwrap();
            let launch = Launch {
                kernel,
                params: &x.to_ne_bytes(),
                table: &[],
                groups: [1, 1, 1],
                reads: &[],
                writes: &[AddressRange::new(x, 256)],
                work: 0,
                operator: "chain",
            };
            device.launch(launch).unwrap();
            kernel
        })
        .collect();
    let compiled = kernels.iter().filter(|kernel| kernel.is_compiled()).count();
    let submitted = device.queue_stats().submits - submits;
    println!("{compiled} of 40 kernels compiled, {submitted} submits when the last was enqueued");
    let expected = (1..=40)
        .fold(1i32, |value, i| (0..i * 10).fold(value, |v, step| v.wrapping_mul(2 * step + 1).wrapping_add(v >> 1)));
    assert_eq!(read(&device, x, 64), [expected; 64]);
    assert!(kernels.iter().all(|kernel| kernel.is_compiled()));
}
