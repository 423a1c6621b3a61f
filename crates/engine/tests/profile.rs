//! What the profile says: every command, in order, with times that fit together; nothing when it is
//! off.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_engine::{Activity, Device, Work, set_correlation};

/// A device whose queue has timestamps.
fn timed() -> Option<Device> {
    let device = open();
    if device.info().capabilities.timestamp_period_ns > 0.0 {
        return Some(device);
    }
    assert!(device.start_profile().is_err());
    eprintln!("not tested: the queue of {} has no timestamps", device.info().name);
    None
}

fn names(activities: &[Activity]) -> Vec<&str> {
    activities.iter().map(Activity::name).collect()
}

#[test]
fn every_command_is_told_in_order() {
    let Some(device) = timed() else { return };
    let kernel = multiply_add(&device);
    let zero = put(&device, &[0; 1000]);
    device.start_profile().unwrap();
    set_correlation(7);
    let x = put(&device, &[1; 1000]);
    let out = device.allocate(4000).unwrap();
    set_correlation(8);
    launch_multiply_add(&device, &kernel, (out, x, zero), 1000, 2).unwrap();
    set_correlation(0);
    assert_eq!(read(&device, out, 1000), [2; 1000]);
    let big = put(&device, &vec![5; 100_000]);
    assert_eq!(read(&device, big, 100_000)[99_999], 5);
    let told = device.stop_profile().unwrap();
    assert_eq!(names(&told), ["upload", "multiply_add", "download", "upload", "download"]);
    assert_eq!(told.iter().map(|a| a.correlation).collect::<Vec<_>>(), [7, 8, 0, 0, 0]);
    let sum = &told[1];
    assert_eq!((sum.operator, sum.bytes_read, sum.bytes_written), ("multiply_add", 8000, 4000));
    let Work::Kernel(of, groups) = &sum.work else { panic!("{:?}", sum.work) };
    assert_eq!((of.workgroup_size(), *groups), ([64, 1, 1], [16, 1, 1]));
}

#[test]
fn times_do_not_overlap_and_follow_the_host() {
    let Some(device) = timed() else { return };
    let kernel = multiply_add(&device);
    let zero = put(&device, &[0; 64]);
    let x = put(&device, &[1; 64]);
    device.start_profile().unwrap();
    for i in 0..1000 {
        // Every third one is independent of the one before.
        let to = if i % 3 == 0 { zero } else { x };
        launch_multiply_add(&device, &kernel, (to, to, zero), 64, 1).unwrap();
    }
    let told = device.stop_profile().unwrap();
    assert_eq!(told.len(), 1000);
    // The two clocks are compared to within the time that it takes to read them.
    let error = 1_000_000;
    let (mut device_time, mut host_time) = (0, 0);
    for Activity { enqueued_ns: [asked, returned], ran_ns: [from, to], .. } in told {
        assert!(host_time <= asked && asked <= returned, "{host_time} {asked} {returned}");
        assert!(device_time <= from + 1 && from < to, "{device_time} {from} {to}");
        assert!(from + error >= asked, "ran {} ns before it was enqueued", asked - from);
        (device_time, host_time) = (to, returned);
    }
}

#[test]
fn a_replay_is_one_activity_between_its_neighbours() {
    let Some(device) = timed() else { return };
    let kernel = multiply_add(&device);
    let (x, one) = (put(&device, &[0; 1000]), put(&device, &[1; 1000]));
    let capture = device.capture(None).unwrap();
    for _ in 0..10 {
        launch_multiply_add(&device, &kernel, (x, x, one), 1000, 1).unwrap();
    }
    let graph = capture.end().unwrap();
    device.start_profile().unwrap();
    set_correlation(5);
    graph.replay().unwrap();
    set_correlation(0);
    launch_multiply_add(&device, &kernel, (x, x, x), 1000, 1).unwrap();
    // More than a pool of queries holds.
    for _ in 0..300 {
        graph.replay().unwrap();
    }
    let told = device.stop_profile().unwrap();
    assert_eq!(names(&told)[..3], ["graph replay", "multiply_add", "graph replay"]);
    assert_eq!(told.len(), 302);
    assert_eq!((told[0].correlation, told[0].operator), (5, "graph"));
    assert!(matches!(told[0].work, Work::Replay(10)), "{:?}", told[0].work);
    for (first, second) in told.iter().zip(&told[1..]) {
        assert!(first.ran_ns[0] < first.ran_ns[1] && first.ran_ns[1] <= second.ran_ns[0] + 1, "{first:?} {second:?}");
    }
    assert_eq!(read(&device, x, 1000), [3020; 1000]);
    assert!(device.stop_profile().unwrap().is_empty());
    graph.replay().unwrap();
    assert_eq!(read(&device, x, 1000), [3030; 1000]);
}

#[test]
fn nothing_is_told_when_it_is_off() {
    let Some(device) = timed() else { return };
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; 64]);
    assert!(device.stop_profile().unwrap().is_empty());
    // Pending before the start, and enqueued after the stop.
    launch_multiply_add(&device, &kernel, (x, x, x), 64, 1).unwrap();
    device.start_profile().unwrap();
    assert!(device.stop_profile().unwrap().is_empty());
    launch_multiply_add(&device, &kernel, (x, x, x), 64, 1).unwrap();
    assert_eq!(read(&device, x, 64), [4; 64]);
    device.start_profile().unwrap();
    launch_multiply_add(&device, &kernel, (x, x, x), 64, 1).unwrap();
    assert_eq!(device.stop_profile().unwrap().len(), 1);
}

#[test]
fn a_lost_device_has_nothing_to_tell() {
    let Some(device) = timed() else { return };
    device.start_profile().unwrap();
    put(&device, &[1; 64]);
    device.simulate_loss();
    assert!(device.stop_profile().is_err());
    assert!(device.stop_profile().unwrap().is_empty());
    assert!(device.start_profile().is_err());
}
