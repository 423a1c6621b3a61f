//! No submission does more than it should: long launches are cut, and many are submitted apart. No
//! result tells.
#![allow(clippy::unwrap_used)]

mod common;
use common::slow::Slow;
use common::*;
use dml_engine::interface::{U32, WriteRange};
use dml_engine::{Activity, AddressRange, ArgumentBlock, Device, Interface, KernelRef, parameters};
use dml_kernel::{Builder, DType};
use std::time::Duration;

/// How a kernel knows its place.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// By its index in each dimension.
    Indices,
    /// By its index in a row, and the length of rows.
    Folded,
    /// By the numbers of workgroups in two dimensions.
    Deep,
    /// It walks in steps of as many as there are workgroups along dimension 0.
    Stride,
}

/// Adds to each of `n` numbers a number of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec(Place);

parameters! {
    Spec as s => Arguments, Parameters {
        out: WriteRange = DType::U32,
        n: U32,
        x: U32,
        y: U32,
        filler: dml_engine::interface::Each<U32> = vec![(); if s.0 == Place::Deep { 40 } else { 0 }].into(),
    }
}

const SIZE: u32 = 4;

fn kernel(device: &Device, place: Place) -> KernelRef {
    let build = || {
        let b = Builder::new("place", [SIZE, 1, 1]);
        let Parameters { out, n, x, y, .. } = Spec(place).declare(&b);
        let add = |i| out.store(i, out.load(i) + i + 1);
        let in_group = |group| group * SIZE + b.local_id(0);
        let at = match place {
            Place::Indices => in_group(b.group_id(0) + x * (b.group_id(1) + y * b.group_id(2))),
            Place::Folded => in_group(b.group_id(0) + b.group_id(1) * b.group_count(0) + b.group_id(2) * (x * y)),
            Place::Deep => {
                in_group(b.group_id(0) + b.group_count(0) * (b.group_id(1) + b.group_count(1) * b.group_id(2)))
            }
            Place::Stride => {
                let rows = b.group_id(1) + y * b.group_id(2);
                b.for_(b.global_id(0), x * SIZE, b.group_count(0) * SIZE, |i| {
                    let at = i + rows * (x * SIZE);
                    b.if_(at.lt(n), || add(at));
                });
                return b.finish();
            }
        };
        b.if_(at.lt(n), || add(at));
        b.finish()
    };
    device.kernel(&Spec(place), build).unwrap().clone()
}

/// Runs a launch of so much work, which is cut into `parts`, and a graph of two; returns how many
/// launches the graph consists of.
fn check(place: Place, groups: [u32; 3], parts: u64) -> u32 {
    let device = open();
    let kernel = kernel(&device, place);
    let n = groups.iter().product::<u32>() * SIZE - 1;
    let out = put(&device, &vec![0; n as usize]);
    let work = 1 << 20;
    device.set_submission_work(work / parts);
    let launch = || {
        let mut block = ArgumentBlock::default();
        let filler = vec![0; if place == Place::Deep { 40 } else { 0 }];
        let out = AddressRange::new(out, u64::from(n) * 4);
        Spec(place).pass(&Arguments { out, n, x: groups[0], y: groups[1], filler: filler.into() }, &mut block);
        block.operations(work);
        device.launch(block.launch(&kernel, groups, "place").unwrap()).unwrap();
    };
    launch();
    let capture = device.capture(None).unwrap();
    launch();
    launch();
    let graph = capture.end().unwrap();
    graph.replay().unwrap();
    let expected: Vec<i32> = (1..=n as i32).map(|i| 3 * i).collect();
    assert_eq!(read(&device, out, n as usize), expected, "{place:?} {groups:?} {parts}");
    graph.stats().launches
}

#[test]
fn launches_are_cut_where_their_kernel_allows_it() {
    for groups in [[100, 1, 1], [1, 70, 1], [13, 7, 1], [5, 3, 4], [1, 1, 9]] {
        for place in [Place::Indices, Place::Folded, Place::Deep, Place::Stride] {
            let [x, y, z] = groups;
            let most = match place {
                Place::Indices => x * y * z,
                Place::Folded => y * z * if y == 1 { x } else { 1 },
                Place::Deep => z * if z == 1 { y } else { 1 } * if y * z == 1 { x } else { 1 },
                Place::Stride => y * z,
            };
            for parts in [1, 4, 8] {
                let cut = check(place, groups, parts.into()) / 2;
                // Halves of halves: up to twice as many as needed.
                let expected = if parts == 1 { 1..=1 } else { parts.min(most)..=most.min(2 * parts) };
                assert!(expected.contains(&cut), "{place:?} {groups:?} {parts}: {cut}");
            }
        }
    }
}

/// Measures `run`, which is `count` commands, until none of them takes much of the time of all: on
/// a machine that is busy some wait for the processor. `check` is told what ran, and the submits,
/// of each time. Returns how often it ran.
fn are_short(device: &Device, count: usize, run: impl Fn(), check: impl Fn(&[Activity], u64)) -> i32 {
    if device.info().capabilities.timestamp_period_ns <= 0.0 {
        run();
        return 1;
    }
    for times in 1..=5 {
        let before = device.queue_stats().submits;
        device.start_profile().unwrap();
        run();
        let told = device.stop_profile().unwrap();
        assert_eq!(told.len(), count, "{told:?}");
        check(&told, device.queue_stats().submits - before);
        let took = || told.iter().map(|activity| activity.ran_ns[1] - activity.ran_ns[0]);
        if took().max().unwrap() * 2 < took().sum() {
            return times;
        }
    }
    panic!("one command takes as long as all others");
}

#[test]
fn a_long_launch_is_submitted_in_parts() {
    let slow = Slow::open();
    slow.device.set_submission_work(1000);
    let barriers = slow.device.queue_stats().barriers;
    let run = || slow.run_as(8, 8000);
    let times = are_short(&slow.device, 8, run, |told, submits| {
        assert!(told.iter().all(|part| part.name() == "count" && part.operator == "count"));
        assert_eq!(told.iter().map(|part| part.bytes_written).sum::<u64>(), 4, "told once");
        assert!(submits >= 8, "{submits}");
    });
    let stats = slow.device.queue_stats();
    assert_eq!((stats.most_work, stats.barriers - barriers), (1000, 0), "none between parts");
    assert_eq!(slow.counted(), 2 + times);
}

#[test]
fn many_long_launches_are_submitted_apart_before_anything_is_known_of_them() {
    let slow = Slow::open();
    slow.device.set_submission_work(1000);
    let run = || {
        std::thread::sleep(Duration::from_millis(150)); // After that the device is forgotten.
        (0..8).for_each(|_| slow.run_as(1, 600));
    };
    let times = are_short(&slow.device, 8, run, |_, submits| assert!(submits >= 8, "{submits}"));
    assert_eq!(slow.device.queue_stats().most_work, 600);
    assert_eq!(slow.counted(), 2 + 8 * times);
}

#[test]
fn a_long_graph_is_submitted_in_parts() {
    let slow = Slow::open();
    slow.device.set_submission_work(1000);
    let capture = slow.device.capture(None).unwrap();
    (0..4).for_each(|_| slow.run_as(1, 500));
    slow.run_as(4, 4000);
    let graph = capture.end().unwrap();
    // Two submissions of two launches, and four of a part each.
    assert_eq!((graph.stats().captured, graph.stats().launches, graph.stats().barriers), (5, 8, 8));
    let times = are_short(
        &slow.device,
        6,
        || graph.replay().unwrap(),
        |told, submits| {
            assert!(told.iter().all(|part| part.name() == "graph replay"));
            assert!(submits >= 6, "{submits}");
        },
    );
    assert_eq!(slow.device.queue_stats().most_work, 1000);
    assert_eq!(slow.counted(), 2 + 5 * times);
}
