//! Index errors reach the thread whose work they are of.
#![allow(clippy::unwrap_used)]

mod common;
use common::open;
use dml_engine::interface::{U32, Unordered};
use dml_engine::{ArgumentBlock, Device, Error, Interface, operator_id, parameters};
use dml_kernel::{Builder, DType};
use std::sync::Barrier;

/// Reports an index as bad.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Report;
parameters! { Report as _spec => Arguments, Parameters { fault: Unordered = DType::U32, operator: U32, index: U32 } }

/// Enqueues a kernel that reports `index`.
fn report(device: &Device, index: u32) -> Result<(), Error> {
    let kernel = device.kernel(&Report, || {
        let b = Builder::new("report", [1, 1, 1]);
        let Parameters { fault, operator, index } = Report.declare(&b);
        b.if_(fault.compare_exchange(0, 0, 1).eq(0), || {
            fault.store(1, operator);
            fault.store(2, index);
            fault.store(4, b.u32(5));
        });
        b.finish()
    })?;
    let mut block = ArgumentBlock::default();
    let arguments = Arguments { fault: device.fault_address(), operator: operator_id("aten::report"), index };
    Report.pass(&arguments, &mut block);
    device.launch(block.launch(kernel, [1, 1, 1], "aten::report")?)
}

/// The index of an index error.
fn index(result: Result<(), Error>) -> Option<i64> {
    match result {
        Err(Error::IndexOutOfRange { operator: "aten::report", index, .. }) => Some(index),
        Ok(()) => None,
        Err(other) => panic!("{other}"),
    }
}

/// Waits for the device: by reading a word, or all of it.
fn wait(device: &Device, word: u64, how: usize) -> Result<(), Error> {
    match how % 3 {
        0 => device.synchronize(),
        1 => device.download(word, &mut [0; 4]),
        _ => device.download(word, &mut [0; 2000]),
    }
}

#[test]
fn each_thread_gets_its_own_error_and_no_other() {
    let device = open();
    let word = device.allocate(4096).unwrap();
    for how in 0..6 {
        let step = Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (device, step) = (&device, &step);
                scope.spawn(move || {
                    device.fault_address();
                    step.wait();
                    if thread % 2 == 1 {
                        report(device, 100 + thread).unwrap();
                    }
                    step.wait();
                    // The innocent first, with all the work submitted and done.
                    if thread % 2 == 0 {
                        assert_eq!(index(wait(device, word, how)), None, "{thread} of {how}");
                        assert_eq!(index(report_nothing(device, word)), None, "{thread} of {how}");
                    }
                    step.wait();
                    if thread % 2 == 1 {
                        assert_eq!(index(wait(device, word, how)), Some(i64::from(100 + thread)), "{thread} of {how}");
                        assert_eq!(index(wait(device, word, how)), None, "once");
                    }
                    step.wait();
                });
            }
        });
    }
}

/// Enqueues something harmless.
fn report_nothing(device: &Device, word: u64) -> Result<(), Error> {
    device.upload(word, &[0; 4])?;
    device.flush()
}

#[test]
fn what_a_thread_leaves_behind_is_not_lost() {
    let device = open();
    std::thread::scope(|scope| scope.spawn(|| report(&device, 77)).join().unwrap().unwrap());
    // The scope ends a little before the thread's destructors have run.
    let mut raised = None;
    for _ in 0..100 {
        raised = raised.or(index(device.synchronize()));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(raised, Some(77));
}

#[test]
fn the_error_of_a_graph_reaches_who_replays_it() {
    let device = open();
    let word = device.allocate(4096).unwrap();
    let capture = device.capture(None).unwrap();
    report(&device, 9).unwrap();
    let graph = capture.end().unwrap();
    assert_eq!(index(device.synchronize()), None, "it was only captured");
    for how in 0..6 {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                graph.replay().unwrap();
                device.flush().unwrap();
                std::thread::scope(|inner| {
                    assert_eq!(inner.spawn(|| index(wait(&device, word, how))).join().unwrap(), None, "innocent");
                });
                [index(wait(&device, word, how)), index(wait(&device, word, how))]
            });
            assert_eq!(other.join().unwrap(), [Some(9), None]);
        });
        graph.replay().unwrap();
        assert_eq!(index(wait(&device, word, how)), Some(9));
    }
}
