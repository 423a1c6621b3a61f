//! Transfers and memory on a device.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_engine::{Device, Error};
use dml_testing::Random;

fn pattern(n: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut data: Vec<u8> = Vec::with_capacity(n + 8);
    while data.len() < n {
        data.extend_from_slice(&random.next_u64().to_ne_bytes());
    }
    data.truncate(n);
    data
}

#[test]
fn round_trips_of_odd_sizes_and_places() {
    let device = open();
    let block = device.allocate(1 << 20).unwrap();
    let mut model = pattern(1 << 20, 1);
    device.upload(block, &model).unwrap();
    let mut random = Random(2);
    for i in 0..200 {
        let most = if i % 10 == 0 { 300_000 } else { 5000 };
        let n = 1 + random.below(most) as usize;
        let at = random.below((1 << 20) - n as u64) as usize;
        if random.below(2) == 0 {
            let data = pattern(n, random.next_u64());
            device.upload(block + at as u64, &data).unwrap();
            model[at..at + n].copy_from_slice(&data);
        } else {
            let mut got = vec![0; n];
            device.download(block + at as u64, &mut got).unwrap();
            assert!(got == model[at..at + n], "{n} bytes at {at}");
        }
    }
    for n in [0usize, 1, 2, 3, 4, 5, 65535, 65536, 65537] {
        let data = pattern(n, n as u64);
        device.upload(block + 1, &data).unwrap();
        let mut got = vec![0; n];
        device.download(block + 1, &mut got).unwrap();
        assert!(got == data, "{n} bytes");
    }
}

#[test]
fn large_transfers() {
    let device = open();
    let n = (64 << 20) + 12345;
    let data = pattern(n, 3);
    let block = device.allocate(n as u64).unwrap();
    device.upload(block, &data).unwrap();
    let mut got = vec![0; n];
    device.download(block, &mut got).unwrap();
    assert!(got == data);
    device.free(block);
    device.empty_cache().unwrap();
    assert_eq!(device.memory_stats().all.reserved_bytes.current, 0);
}

#[test]
fn foreign_addresses_are_refused() {
    let device = open();
    let block = device.allocate(1000).unwrap();
    for (address, n) in [(64, 4), (block, 64 << 20), (block + (2 << 20) - 2, 4)] {
        let mut buffer = vec![0; n];
        assert!(matches!(device.upload(address, &buffer), Err(Error::InvalidAddress { .. })));
        assert!(matches!(device.download(address, &mut buffer), Err(Error::InvalidAddress { .. })));
    }
    device.free(12345); // Ignored.
    assert_eq!(device.block(block + 100), Some(device.range(block, 1024)));
    device.synchronize().unwrap();
}

/// Two devices may have memory at equal addresses.
#[test]
fn memory_names_its_device() {
    let adapter = &dml_engine::adapters().unwrap()[0];
    let [one, other] = [0, 1].map(|index| Device::open(adapter, index).unwrap());
    let address = one.allocate(1000).unwrap();
    let block = one.block(address).unwrap();
    assert_eq!(block, one.range(address, 1024));
    assert!(block.overlaps(one.range(address + 8, 8)) && !block.overlaps(other.range(address, 1024)));
    assert_ne!(other.block(address), Some(block));
    if other.block(address).is_none() {
        let memory = other.range(address, 16);
        assert_eq!(other.upload(address, &[0; 16]), Err(Error::InvalidAddress { call: "upload", memory }));
    }
}

#[test]
fn out_of_memory_is_an_error_and_then_all_is_well() {
    let device = open();
    assert_eq!(device.allocate(0).unwrap(), 0);
    device.free(0);
    let e = device.allocate(1 << 50).unwrap_err();
    assert!(matches!(e, Error::OutOfMemory { requested, .. } if requested == 1 << 50));
    assert!(e.to_string().contains("1048576.00 GiB were asked for"), "{e}");
    device.set_memory_fraction((64u64 << 20) as f64 / device.info().memory_total as f64);
    let a = device.allocate(40 << 20).unwrap();
    let e = device.allocate(40 << 20).unwrap_err();
    assert!(e.to_string().contains("limits itself"), "{e}");
    device.free(a);
    let b = device.allocate(50 << 20).expect("what is cached is released");
    let stats = device.memory_stats();
    assert_eq!(stats.ooms, 2);
    assert_eq!(stats.alloc_retries, 2);
    assert_eq!(stats.all.allocated_bytes.current, 50 << 20);
    assert_eq!(stats.all.allocated_bytes.peak, 50 << 20);
    device.free(b);
    device.reset_peak_stats();
    assert_eq!(device.memory_stats().all.allocated_bytes.peak, 0);
    let (free, total) = device.memory_info();
    assert!(free > 0 && free <= total);
}

/// Uploads and launches are pending when their memory is freed and the cache is emptied.
#[test]
fn emptying_the_cache_waits_for_pending_work() {
    let device = open();
    let kernel = multiply_add(&device);
    let keep = put(&device, &[0; 64]);
    for i in 0..50 {
        let x = put(&device, &vec![i; 1 << 20]);
        launch_multiply_add(&device, &kernel, (keep, x, keep), 64, 1).unwrap();
        device.free(x);
        if i % 10 == 0 {
            device.empty_cache().unwrap();
        }
    }
    assert_eq!(read(&device, keep, 64), [49 * 25; 64]);
}

#[test]
fn pinned_memory_is_copied_in_place() {
    let device = open();
    let n = (1 << 20) + 12;
    let data = pattern(n, 5);
    let pinned = device.allocate_pinned(n as u64).unwrap();
    let address = pinned.as_ptr() as u64;
    assert!(device.is_pinned(address + 100) && !device.is_pinned(data.as_ptr() as u64));
    // SAFETY: fresh memory of `n` bytes, which the device uses only inside the copies below.
    let host = unsafe { std::slice::from_raw_parts_mut(pinned.as_ptr(), n) };
    host.copy_from_slice(&data);
    let block = device.allocate(n as u64).unwrap();
    assert!(!device.upload_pinned(block, &data, true).unwrap(), "not pinned");
    assert!(!device.upload_pinned(block, &host[..100], false).unwrap(), "little is sooner copied");
    assert!(device.upload_pinned(block, host, false).unwrap());
    device.synchronize().unwrap();
    host.fill(0);
    assert!(device.download_pinned(block, host, true).unwrap());
    assert!(host == data);
    // A few bytes at odd places, without waiting.
    let kernel = multiply_add(&device);
    launch_multiply_add(&device, &kernel, (block, block, block), 4, 1).unwrap();
    assert!(device.download_pinned(block + 3, &mut host[5..12], false).unwrap());
    let event = device.record_event(false).unwrap();
    event.wait().unwrap();
    let mut got = vec![0; 7];
    device.download(block + 3, &mut got).unwrap();
    assert_eq!(host[5..12], got);
    assert!(device.upload_pinned(64, host, false).is_err(), "a foreign address");
    device.free(block);
    assert!(device.free_pinned(address));
    assert!(!device.free_pinned(address));
}

/// A block that was freed with a copy under way comes back when the copy is done, not before.
#[test]
fn pinned_memory_is_reused_in_order() {
    let device = open();
    let n = 4usize << 20;
    let block = device.allocate(n as u64).unwrap();
    for round in 0..20u8 {
        let pinned = device.allocate_pinned(n as u64).unwrap();
        // SAFETY: memory of `n` bytes that no copy uses any more: the allocator's promise, which
        // this tests.
        let host = unsafe { std::slice::from_raw_parts_mut(pinned.as_ptr(), n) };
        host.fill(round);
        assert!(device.upload_pinned(block, host, false).unwrap());
        let copy = device.allocate(n as u64).unwrap();
        device.free_pinned(pinned.as_ptr() as u64);
        device.free(copy);
        if round % 3 == 0 {
            let mut got = vec![0; n];
            device.download(block, &mut got).unwrap();
            assert!(got.iter().all(|&b| b == round));
        }
    }
    device.synchronize().unwrap();
    let stats = device.pinned_stats().all;
    assert_eq!(stats.allocations.current, 0);
    assert!(stats.reserved_bytes.current >= n as u64);
    device.empty_pinned_cache().unwrap();
    assert_eq!(device.pinned_stats().all.reserved_bytes.current, 0);
    device.reset_pinned_stats(true);
    assert_eq!(device.pinned_stats().all.allocated_bytes.peak, 0);
    assert!(
        matches!(device.allocate_pinned(1 << 50), Err(Error::HostOutOfMemory { requested }) if requested == 1 << 50)
    );
}
