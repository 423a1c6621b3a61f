//! Memory, copies, waits, recordings and times, on the available Direct3D 12. `kernels.rs` tests
//! kernels.
#![cfg(windows)]

mod support;

use dml_d3d12::{Gpu, Recorder, Segment};
use dml_gpu::traits::*;
use dml_gpu::{Error, MemoryClass, Ticket, Waited};
use support::{bytes_of, download, fill, gpu, upload};

/// Bytes that depend on their position and on `seed`.
fn pattern(seed: u32, bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
}

fn copy(recorder: &mut Recorder, from: &Segment, to: &Segment) {
    recorder.copy(from, 0, to, 0, from.bytes().min(to.bytes())).expect("recorded");
}

#[test]
fn bytes_come_back_through_the_device() {
    let Some(gpu) = gpu() else { return };
    for bytes in [1, 4, 255, 65_536, 3_000_001] {
        let sent = pattern(bytes as u32, bytes);
        let from = upload(&gpu, &sent);
        let there = gpu.allocate(bytes as u64, MemoryClass::Device).expect("memory");
        assert!(there.host_ptr().is_none());
        let mut recorder = gpu.recorder().expect("a recorder");
        copy(&mut recorder, &from, &there);
        recorder.barrier();
        assert_eq!(download(&gpu, &mut recorder, &there), sent, "{bytes} bytes");
    }
}

#[test]
fn dependent_copies_of_one_submission_run_in_their_order() {
    let Some(gpu) = gpu() else { return };
    let (a, b) = (upload(&gpu, &pattern(1, 4096)), upload(&gpu, &pattern(2, 4096)));
    let there: [Segment; 3] = std::array::from_fn(|_| gpu.allocate(4096, MemoryClass::Device).expect("memory"));
    let mut recorder = gpu.recorder().expect("a recorder");
    // The last bytes of each segment were copied from `b` through all the others.
    for from in [&a, &b] {
        copy(&mut recorder, from, &there[0]);
        recorder.barrier();
        copy(&mut recorder, &there[0], &there[1]);
        recorder.barrier();
        copy(&mut recorder, &there[1], &there[2]);
        recorder.barrier();
    }
    assert_eq!(recorder.recorded(), 6);
    assert_eq!(download(&gpu, &mut recorder, &there[2]), pattern(2, 4096));
}

#[test]
fn parts_of_segments_are_copied_to_where_they_belong() {
    let Some(gpu) = gpu() else { return };
    let sent = pattern(3, 1000);
    let (from, to) = (upload(&gpu, &sent), upload(&gpu, &[7; 1000]));
    let there = gpu.allocate(1000, MemoryClass::Device).expect("memory");
    let mut recorder = gpu.recorder().expect("a recorder");
    copy(&mut recorder, &to, &there);
    recorder.barrier();
    recorder.copy(&from, 100, &there, 900, 100).expect("recorded");
    recorder.copy(&from, 13, &there, 1, 5).expect("recorded");
    recorder.barrier();
    let mut expected = vec![7; 1000];
    expected[900..].copy_from_slice(&sent[100..200]);
    expected[1..6].copy_from_slice(&sent[13..18]);
    assert_eq!(download(&gpu, &mut recorder, &there), expected);
}

#[test]
fn addresses_are_of_one_segment_each_and_are_used_again() {
    let Some(gpu) = gpu() else { return };
    let segments: Vec<Segment> =
        [MemoryClass::Device, MemoryClass::Upload, MemoryClass::Readback, MemoryClass::Staging]
            .into_iter()
            .map(|class| gpu.allocate(1 << 16, class).expect("memory"))
            .collect();
    let mut ranges: Vec<_> = segments.iter().map(|s| (s.address(), s.address() + s.bytes())).collect();
    ranges.sort_unstable();
    assert!(ranges[0].0 > 0 && ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ranges:x?}");
    assert!(segments.iter().map(|s| s.host_ptr().is_some()).eq([false, true, true, true]));
    let most = segments.iter().map(Segment::address).max();
    drop(segments);
    let again = gpu.allocate(64, MemoryClass::Device).expect("memory");
    assert!(Some(again.address()) <= most, "places are used again");
}

#[test]
fn the_host_reads_and_writes_staging_memory() {
    let Some(gpu) = gpu() else { return };
    let pinned = gpu.allocate(4096, MemoryClass::Staging).expect("memory");
    fill(&pinned, &pattern(4, 4096));
    assert_eq!(bytes_of(&pinned), pattern(4, 4096));
    let there = gpu.allocate(4096, MemoryClass::Device).expect("memory");
    let mut recorder = gpu.recorder().expect("a recorder");
    copy(&mut recorder, &pinned, &there);
    let sent = recorder.submit().expect("submitted");
    recorder.wait(sent).expect("done");
    fill(&pinned, &[0; 4096]);
    copy(&mut recorder, &there, &pinned);
    recorder.host_barrier();
    recorder.wait_idle().expect("done");
    assert_eq!(bytes_of(&pinned), pattern(4, 4096));
}

#[test]
fn tickets_count_submissions_and_waits_end() {
    let Some(gpu) = gpu() else { return };
    let (from, to) = (upload(&gpu, &pattern(5, 1 << 20)), gpu.allocate(1 << 20, MemoryClass::Device).expect("memory"));
    let mut recorder = gpu.recorder().expect("a recorder");
    let timeline = recorder.timeline().clone();
    assert_eq!((timeline.last_ticket(), timeline.completed()), (Ticket(0), Ok(Ticket(0))));
    assert_eq!(recorder.submit(), Ok(Ticket(0)), "there is nothing to submit");
    assert!(matches!(timeline.wait(Ticket(1)), Err(Error::Invalid { .. })));
    for expected in 1..=300 {
        copy(&mut recorder, &from, &to);
        assert_eq!(recorder.submit(), Ok(Ticket(expected)));
    }
    assert_eq!(timeline.wait_unless(Ticket(300), || false), Ok(true));
    assert_eq!(timeline.completed(), Ok(Ticket(300)));
    assert_eq!(recorder.submit_next(), Ok(Ticket(301)), "if only nothing");
    assert_eq!(timeline.wait_for(Ticket(301), || false, || false), Ok(Waited::Missing));
    assert_eq!(timeline.wait_for(Ticket(301), || true, || false), Ok(Waited::Arrived));
    assert_eq!(timeline.look_until(|done| done >= Ticket(301), || false), Ok(true));
    assert_eq!(timeline.look_until(|done| done > Ticket(301), || true), Ok(false), "it was told to stop");
}

#[test]
fn a_recording_runs_as_often_as_wanted_and_keeps_what_it_uses() {
    let Some(gpu) = gpu() else { return };
    let to = gpu.allocate(4096, MemoryClass::Device).expect("memory");
    let constants = vec![upload(&gpu, &pattern(6, 4096))];
    let recording = gpu
        .record::<Error>(constants, |commands, constants| commands.copy(&constants[0], 0, &to, 0, 4096))
        .expect("recorded");
    let mut recorder = gpu.recorder().expect("a recorder");
    let zeros = upload(&gpu, &[0; 4096]);
    for _ in 0..3 {
        copy(&mut recorder, &zeros, &to);
        recorder.execute(&recording).expect("recorded");
        recorder.barrier();
        assert_eq!(recorder.recorded(), 2);
        assert_eq!(download(&gpu, &mut recorder, &to), pattern(6, 4096));
    }
    let failed = gpu.record(Vec::new(), |_, _| Err(Error::NoAdapter { api: "none" }));
    assert_eq!(failed.err(), Some(Error::NoAdapter { api: "none" }));
}

#[test]
fn mistakes_are_errors_and_change_nothing() {
    let Some(gpu) = gpu() else { return };
    let Some(other) = support::gpu() else { return };
    let (a, b) = (upload(&gpu, &[1; 64]), gpu.allocate(64, MemoryClass::Device).expect("memory"));
    let foreign = other.allocate(64, MemoryClass::Device).expect("memory");
    let mut recorder = gpu.recorder().expect("a recorder");
    let invalid = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    invalid(recorder.copy(&a, 1, &b, 0, 64));
    invalid(recorder.copy(&a, u64::MAX, &b, 0, 64));
    invalid(recorder.copy(&a, 0, &b, 60, 5));
    invalid(recorder.copy(&a, 0, &foreign, 0, 64));
    invalid(recorder.copy(&a, 0, &a, 32, 33));
    invalid(gpu.allocate(0, MemoryClass::Device).map(drop));
    invalid(gpu.compile("text", b"text", 0).map(drop));
    invalid(gpu.compile("parameters", b"DXBC", 132).map(drop));
    let huge = gpu.largest_segment() + 1;
    assert_eq!(gpu.allocate(huge, MemoryClass::Device).err(), Some(Error::OutOfMemory { requested: huge }));
    let recording = other.record::<Error>(Vec::new(), |_, _| Ok(())).expect("recorded");
    invalid(recorder.execute(&recording));
    assert_eq!(recorder.recorded(), 0);
    copy(&mut recorder, &a, &b);
    assert_eq!(download(&gpu, &mut recorder, &b), [1; 64]);
}

#[test]
fn after_a_loss_every_call_says_so_and_another_device_works() {
    let Some(gpu) = gpu() else { return };
    let Some(other) = support::gpu() else { return };
    let (from, to) = (upload(&gpu, &[1; 64]), gpu.allocate(64, MemoryClass::Device).expect("memory"));
    let mut recorder = gpu.recorder().expect("a recorder");
    copy(&mut recorder, &from, &to);
    let ticket = recorder.submit().expect("submitted");
    gpu.simulate_loss();
    let lost = Some(Error::DeviceLost);
    assert!(gpu.is_lost() && !other.is_lost());
    assert_eq!(recorder.copy(&from, 0, &to, 0, 64).err(), lost);
    assert_eq!(recorder.submit().err(), lost);
    assert_eq!(recorder.wait(ticket).err(), lost);
    assert_eq!(gpu.allocate(64, MemoryClass::Device).err(), lost);
    assert_eq!(gpu.recorder().err(), lost);
    drop((recorder, from, to));
    bytes_come_back(&other);
}

fn bytes_come_back(gpu: &Gpu) {
    let from = upload(gpu, &[9; 64]);
    assert_eq!(download(gpu, &mut gpu.recorder().expect("a recorder"), &from), [9; 64]);
}

#[test]
fn devices_are_used_by_many_threads() {
    let Some(gpu) = gpu() else { return };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let gpu = &gpu;
            scope.spawn(move || {
                let mut recorder = gpu.recorder().expect("a recorder");
                for round in 0..10 {
                    let sent = pattern(thread * 100 + round, 10_000);
                    assert_eq!(download(gpu, &mut recorder, &upload(gpu, &sent)), sent);
                }
            });
        }
    });
}

#[test]
fn times_go_forward_and_spans_have_names() {
    let Some(gpu) = gpu() else { return };
    let (from, to) = (upload(&gpu, &pattern(7, 1 << 20)), gpu.allocate(1 << 20, MemoryClass::Device).expect("memory"));
    let mut recorder = gpu.recorder().expect("a recorder");
    let first = match recorder.timestamp() {
        Ok(first) => first,
        Err(Error::Unsupported { what, .. }) => return eprintln!("skipped: there are no {what}"),
        Err(error) => panic!("{error}"),
    };
    recorder.timed(42, |recorder| recorder.copy(&from, 0, &to, 0, 1 << 20)).expect("recorded");
    let last = recorder.timestamp().expect("recorded");
    assert_eq!(recorder.elapsed_ns(&first, &last), Ok(None), "nothing was submitted");
    recorder.wait_idle().expect("done");
    let elapsed = recorder.elapsed_ns(&first, &last).expect("known").expect("complete");
    let mut spans = Vec::new();
    recorder.take_spans(&mut spans).expect("known");
    assert_eq!(spans.iter().map(|&(id, _)| id).collect::<Vec<_>>(), [42]);
    assert!(elapsed >= 0.0 && spans[0].1.end >= spans[0].1.begin, "{elapsed} {spans:?}");
    match recorder.clocks() {
        Ok(clocks) => assert!(clocks.error_ns() < 1_000_000_000),
        Err(error) => eprintln!("the clocks are not compared: {error}"),
    }
}

#[test]
fn adapters_are_told_apart_and_say_what_they_lack() {
    let Some(gpu) = gpu() else { return };
    let info = gpu.info();
    assert!(!info.name.is_empty() && info.memory_total > 0, "{info:?}");
    assert!(gpu.memory_free() > 0 && gpu.largest_segment() > 0);
    for (name, why) in dml_d3d12::unsupported_adapters() {
        assert!(!why.is_empty(), "{name}");
        println!("{name}: {why}");
    }
    println!("{info:#?}");
}
