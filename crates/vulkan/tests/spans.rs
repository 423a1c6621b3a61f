//! The times of commands, by the device's clock and by the host's.

mod support;

use dml_gpu::traits::*;
use dml_gpu::{Error, Span, unix_now};
use dml_vulkan::Recorder;
use support::{add, add_kernel, assert_valid, open, upload};

/// Waits for all submissions, and takes their spans.
fn finish(recorder: &mut Recorder, spans: &mut Vec<(u64, Span)>) -> Result<(), Error> {
    let ticket = recorder.submit()?;
    recorder.wait(ticket)?;
    recorder.take_spans(spans)
}

#[test]
fn spans_follow_each_other_and_lie_between_submit_and_wait() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    if gpu.info().capabilities.timestamp_period_ns == 0.0 {
        assert!(matches!(recorder.clocks(), Err(Error::Unsupported { .. })));
        assert!(matches!(recorder.timed(0, |_| Ok(())), Err(Error::Unsupported { .. })));
        return Ok(());
    }
    let sum = upload(&gpu, &[1.0; 64]);
    let first = recorder.clocks()?;
    let mut spans = Vec::new();
    let began = unix_now();
    // More spans than a pool has, in batches, some of which leave a pool half full.
    for batch in 0..10u64 {
        for i in 0..30 {
            recorder.barrier();
            recorder.timed(batch * 30 + i, |r| add(r, &kernel, [&sum, &sum, &sum], 64))?;
        }
        recorder.take_spans(&mut spans)?;
        assert_eq!(spans.len() as u64, batch * 30, "what was not submitted has no time yet");
        finish(&mut recorder, &mut spans)?;
    }
    let ended = unix_now();
    let last = recorder.clocks()?;
    assert!(spans.iter().map(|s| s.0).eq(0..300), "in the order of the commands");
    let error = first.error_ns() + last.error_ns() + 1000;
    let mut previous = 0;
    for &(_, span) in &spans {
        let (from, to) = (first.unix_ns(&last, span.begin), first.unix_ns(&last, span.end));
        assert!(previous <= from + 1 && from <= to, "{previous} {from} {to}");
        assert!(from + error >= began && to <= ended + error, "{from} to {to} is outside of {began} to {ended}");
        previous = to;
    }
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}

#[test]
fn a_command_that_fails_leaves_the_recorder_usable() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    if gpu.info().capabilities.timestamp_period_ns == 0.0 {
        return Ok(());
    }
    let sum = upload(&gpu, &[1.0; 64]);
    let failed = recorder.timed(1, |r| r.dispatch(&kernel, &[], [1, 1, 1]));
    assert!(matches!(failed, Err(Error::Invalid { .. })), "{failed:?}");
    recorder.timed(2, |r| add(r, &kernel, [&sum, &sum, &sum], 64))?;
    let mut spans = Vec::new();
    finish(&mut recorder, &mut spans)?;
    assert!(spans.iter().map(|s| s.0).eq([1, 2]));
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}
