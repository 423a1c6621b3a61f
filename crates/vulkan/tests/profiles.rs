//! Imitated adapters. Each runs in a child process, this test binary started again, because a
//! process lists its adapters once.

mod support;

use dml_gpu::traits::*;
use dml_gpu::{Error, MemoryClass};
use dml_vulkan::{Gpu, Segment};
use std::process::{Command, Output};

fn under(profile: &str, test: &str) -> Output {
    Command::new(std::env::current_exe().expect("the test binary"))
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env("TORCH_DML_PROFILE", profile)
        .output()
        .expect("the test binary runs")
}

#[track_caller]
fn passes(profile: &str, test: &str) {
    let output = under(profile, test);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{profile}: {}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("1 passed"), "{profile}: {}", text(&output.stdout));
}

fn add_on(gpu: &Gpu) -> Result<(), Error> {
    let (one, out) = (support::upload(gpu, &[1.0]), gpu.allocate(4, MemoryClass::Readback)?);
    let kernel = support::add_kernel(gpu)?;
    let mut recorder = gpu.recorder()?;
    support::add(&mut recorder, &kernel, [&one, &one, &out], 1)?;
    recorder.host_barrier();
    recorder.wait_idle()?;
    assert_eq!(support::read(&out, 1), [2.0]);
    Ok(())
}

#[test]
fn every_profile_computes() {
    for (profile, _) in dml_vulkan::profiles() {
        passes(profile, "computes");
    }
}

#[test]
#[ignore = "called under each profile"]
fn computes() -> Result<(), Error> {
    let gpu = support::open();
    let info = gpu.info();
    let profile = std::env::var("TORCH_DML_PROFILE").ok();
    assert_eq!(info.profile, profile.as_deref());
    assert!(info.name.ends_with(&format!(", profile {}", profile.expect("one is set"))), "{}", info.name);
    add_on(&gpu)?;
    support::assert_valid();
    Ok(())
}

#[test]
fn an_unknown_profile_is_refused() {
    passes("voodoo2", "is_refused");
}

#[test]
#[ignore = "called with an unknown profile"]
fn is_refused() {
    let error = dml_vulkan::adapters().expect_err("there is no such profile").to_string();
    assert!(error.contains("voodoo2") && error.contains("amd-rdna2") && error.contains("minimum"), "{error}");
}

#[test]
fn the_minimum_is_what_vulkan_requires() {
    passes("minimum", "is_the_minimum");
}

#[test]
#[ignore = "called under the profile minimum"]
fn is_the_minimum() -> Result<(), Error> {
    let gpu = support::open();
    let can = &gpu.info().capabilities;
    assert_eq!((can.max_workgroup_invocations, can.max_shared_memory), (128, 16 << 10));
    assert_eq!((can.max_push_constants, can.max_storage_range), (128, 1 << 27));
    assert!(!(can.i64 || can.i16 || can.i8_arithmetic || can.f64 || can.f16_arithmetic));
    assert!(!(can.i8_storage || can.f16_storage || can.atomics_i64 || can.atomics_f32_add));
    assert!(!(can.subgroup_arithmetic || can.subgroup_shuffle || can.matrix || can.memory_budget));
    assert_eq!(can.float_controls, Default::default());

    // The largest possible allocation.
    match gpu.allocate((1 << 30) + 1, MemoryClass::Device) {
        Err(Error::OutOfMemory { requested }) => assert_eq!(requested, (1 << 30) + 1),
        other => panic!("{other:?}"),
    }
    assert_eq!(gpu.largest_segment(), 1 << 30);

    // 256 MiB of the device's memory are visible to the host; larger segments are in other memory.
    let part = || gpu.allocate(100 << 20, MemoryClass::Upload);
    let parts: Vec<Segment> = (0..4).map(|_| part()).collect::<Result<_, _>>()?;
    assert!(parts.iter().all(|part| part.host_ptr().is_some()));
    drop(parts);

    // At most 4,096 allocations exist at a time.
    let small = || gpu.allocate(64, MemoryClass::Device);
    let mut all: Vec<Segment> = (0..4096).map(|_| small()).collect::<Result<_, _>>()?;
    assert_eq!(small().err(), Some(Error::TooManyAllocations { limit: 4096 }));
    all.pop();
    all.push(small()?);
    drop(all);
    add_on(&gpu)
}

#[test]
fn timestamps_of_52_nanoseconds() {
    passes("intel-arc", "counts_in_52_nanoseconds");
}

#[test]
#[ignore = "called under a profile with slow timestamps"]
fn counts_in_52_nanoseconds() -> Result<(), Error> {
    let gpu = support::open();
    let period = gpu.info().capabilities.timestamp_period_ns;
    if period == 0.0 {
        return Ok(()); // The adapter under test has none.
    }
    assert!((period - 52.0833).abs() < 1e-3, "{period}");
    let mut recorder = gpu.recorder()?;
    let (before, start) = (recorder.clocks()?, std::time::Instant::now());
    let memory = gpu.allocate(64, MemoryClass::Device)?;
    recorder.timed(7, |recorder| recorder.update(&memory, 0, &[1; 64]))?;
    recorder.wait_idle()?;
    std::thread::sleep(std::time::Duration::from_millis(150));
    let (after, taken) = (recorder.clocks()?, start.elapsed().as_nanos() as u64);
    let mut spans = Vec::new();
    recorder.take_spans(&mut spans)?;
    let [(7, span)] = spans[..] else { panic!("{spans:?}") };
    // The device's time is between the host's times before and after.
    let (begin, end) = (before.unix_ns(&after, span.begin), before.unix_ns(&after, span.end));
    let slack = before.error_ns() + after.error_ns() + 1_000_000;
    assert!(begin <= end && end - begin <= taken + slack, "{begin} {end} {taken}");
    let first = dml_gpu::unix_now() - start.elapsed().as_nanos() as u64;
    assert!(begin + slack >= first && end <= first + taken + slack, "{begin} {end} {first}");
    // With the adapter's reported period: the time is too short to compare the rates of the clocks.
    let (soon, start) = (recorder.clocks()?, dml_gpu::unix_now());
    let same = soon.unix_ns(&soon, span.end);
    assert!(same.abs_diff(end) < 5_000_000, "{same} {end} {start}");
    Ok(())
}
