//! A few bytes to the host: right whatever their place, and one submit each.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_engine::{Device, Error};
use dml_testing::Random;
use std::time::{Duration, Instant};

fn download(device: &Device, from: u64, bytes: usize) -> Vec<u8> {
    let mut out = vec![0xaa; bytes];
    device.download(from, &mut out).unwrap();
    out
}

#[test]
fn any_length_from_anywhere() {
    let device = open();
    let mut random = Random(5);
    let data: Vec<u8> = (0..1024).map(|_| random.next_u64() as u8).collect();
    let block = device.allocate(1024).unwrap();
    device.upload(block, &data).unwrap();
    for bytes in (1..=70).chain([127, 128, 255, 256, 500, 504, 505, 506, 507, 508, 509, 510, 512, 513, 1000]) {
        for from in [0, 1, 2, 3, 5, 8, 17, 24] {
            assert_eq!(download(&device, block + from as u64, bytes), data[from..from + bytes], "{bytes} from {from}");
        }
    }
    assert_eq!(download(&device, block + 1023, 1), data[1023..]);
    let e = device.download(block + (64 << 20), &mut [0; 4]).unwrap_err();
    assert!(matches!(e, Error::InvalidAddress { .. }), "{e}");
    let e = device.download(64, &mut [0; 4]).unwrap_err();
    assert!(matches!(e, Error::InvalidAddress { .. }), "{e}");
}

/// Values that differ little and repeat, so that an older one would pass for a newer.
#[test]
fn many_reads_of_a_changing_value() {
    let device = open();
    let kernel = multiply_add(&device);
    let (x, one) = (put(&device, &[0; 4]), put(&device, &[1, 0, 3, 0]));
    let start = Instant::now();
    for i in 1..=100_000 {
        launch_multiply_add(&device, &kernel, (x, x, one), 4, 1).unwrap();
        assert_eq!(read(&device, x, 4), [i, 0, 3 * i, 0]);
        if i >= 2_000 && start.elapsed() > Duration::from_secs(4) {
            break; // A software adapter.
        }
    }
}

#[test]
fn a_read_waits_once_behind_one_barrier() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; 16]);
    assert_eq!(read(&device, x, 16), [1; 16]);
    let before = device.queue_stats();
    for _ in 0..200 {
        let out = device.allocate(64).unwrap();
        launch_multiply_add(&device, &kernel, (out, x, x), 16, 1).unwrap();
        assert_eq!(read(&device, out, 1), [2]);
        device.free(out);
    }
    let after = device.queue_stats();
    // What is launched after a rest goes at once; else a launch and its read share a submit.
    assert!((200..=400).contains(&(after.submits - before.submits)), "{after:?}");
    assert_eq!(after.waits - before.waits, 200);
    assert_eq!(after.barriers - before.barriers, 200);
    // With nothing before it, a read needs no barrier.
    for _ in 0..200 {
        assert_eq!(read(&device, x, 1), [1]);
    }
    assert_eq!(device.queue_stats().barriers, after.barriers);
    assert_eq!(device.queue_stats().submits, after.submits + 200);
}

/// What follows a read overwrites what it read and frees what came before it, at once.
#[test]
fn reads_between_launches_uploads_and_frees() {
    let device = open();
    let kernel = multiply_add(&device);
    let mut random = Random(9);
    let zero = put(&device, &[0; 64]);
    let mut model = [1i32; 64];
    let mut now = put(&device, &model);
    for step in 0..4000i32 {
        match random.below(5) {
            0 => {
                let next = device.allocate(256).unwrap();
                launch_multiply_add(&device, &kernel, (next, now, zero), 64, 3).unwrap();
                device.free(now);
                now = next;
                model = model.map(|x| x.wrapping_mul(3));
            }
            1 => {
                launch_multiply_add(&device, &kernel, (now, now, now), 64, 1).unwrap();
                model = model.map(|x| x.wrapping_mul(2));
            }
            2 => {
                let at = random.below(64) as usize;
                device.upload(now + 4 * at as u64, &(step * 7 + 1).to_ne_bytes()).unwrap();
                model[at] = step * 7 + 1;
            }
            3 => {
                let at = random.below(64) as usize;
                assert_eq!(read(&device, now + 4 * at as u64, 1), model[at..=at], "step {step}");
            }
            _ => {
                let n = 1 + random.below(64) as usize;
                assert_eq!(read(&device, now, n), model[..n], "step {step}");
            }
        }
    }
    assert_eq!(read(&device, now, 64), model);
}

#[test]
fn threads_read_at_once() {
    let device = open();
    let kernel = multiply_add(&device);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (device, kernel) = (&device, &kernel);
            scope.spawn(move || {
                let mut random = Random(thread);
                let (x, one) = (put(device, &[0; 64]), put(device, &[1; 64]));
                for i in 1..=400 {
                    launch_multiply_add(device, kernel, (x, x, one), 64, 1).unwrap();
                    let n = 1 + random.below(64) as usize;
                    assert_eq!(read(device, x, n), vec![i; n]);
                    if i % 50 == 0 {
                        device.synchronize().unwrap();
                    }
                }
            });
        }
    });
}

#[test]
fn profiled_reads() {
    let device = open();
    if device.start_profile().is_err() {
        return; // No timestamps.
    }
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; 64]);
    for i in 1..20 {
        launch_multiply_add(&device, &kernel, (x, x, x), 64, 1).unwrap();
        assert_eq!(read(&device, x, 1), [1 << i]);
    }
    let activities = device.stop_profile().unwrap();
    assert_eq!(activities.iter().filter(|a| a.name() == "download").count(), 19);
    assert_eq!(activities.iter().filter(|a| a.name() == "multiply_add").count(), 19);
    assert!(activities.windows(2).all(|pair| pair[0].ran_ns[1] <= pair[1].ran_ns[1]));
}

#[test]
fn a_loss_ends_the_wait() {
    let device = open();
    let kernel = multiply_add(&device);
    let n = 1 << 20;
    let x = device.allocate(4 * n).unwrap();
    for _ in 0..200 {
        launch_multiply_add(&device, &kernel, (x, x, x), n as u32, 1).unwrap();
    }
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let start = Instant::now();
            loop {
                match device.download(x, &mut [0; 4]) {
                    Ok(()) => assert!(start.elapsed() < Duration::from_secs(20)),
                    Err(e) => return e,
                }
            }
        });
        std::thread::sleep(Duration::from_millis(20));
        device.simulate_loss();
        assert!(matches!(reading.join().unwrap(), Error::DeviceLost { .. }));
    });
    assert!(matches!(device.download(x, &mut [0; 4]).unwrap_err(), Error::DeviceLost { .. }));
}
