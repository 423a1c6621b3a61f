//! Times of the device, with rare behaviour of drivers simulated.

use super::*;
use dml_gpu::MemoryClass;

/// Queries of a submission that the driver refused were neither reset nor written, and must not be
/// read.
#[test]
fn times_of_a_discarded_submission_are_never_read() -> Result<(), Error> {
    let gpu = crate::adapters()?[0].open()?;
    let memory = gpu.allocate(64, MemoryClass::Device)?;
    let mut recorder = gpu.recorder()?;
    if recorder.check_timestamps().is_err() {
        return Ok(());
    }
    let update = |recorder: &mut Recorder| {
        recorder.barrier();
        recorder.update(&memory, 0, &[1; 64])
    };
    // Simulates a driver that refuses to end a command buffer.
    let fail = |recorder: &mut Recorder| recorder.close().map(|()| recorder.discard());
    let mut spans = Vec::new();
    for round in 0..3u64 {
        recorder.timed(10 * round, update)?;
        let kept = recorder.timestamp()?;
        recorder.submit()?;
        let gone = recorder.timestamp()?;
        for i in 0..200 {
            recorder.timed(1000 + i, update)?;
        }
        fail(&mut recorder)?;
        recorder.timed(2000, |recorder| fail(recorder).and_then(|()| update(recorder)))?;
        recorder.timed(10 * round + 1, update)?;
        let ticket = recorder.submit()?;
        recorder.wait_idle()?;
        assert_eq!(gone.ticket(), ticket, "the next submission has the ticket of the one that was discarded");
        assert_eq!(recorder.timestamp_ns(&gone), Ok(None));
        assert!(recorder.timestamp_ns(&kept)?.is_some());
    }
    recorder.take_spans(&mut spans)?;
    assert!(spans.iter().map(|span| span.0).eq([0, 1, 10, 11, 20, 21]), "{spans:?}");
    assert!(recorder.spans.is_empty());
    assert_eq!(crate::validation_messages(), []);
    Ok(())
}

#[test]
fn a_timestamp_of_the_queue_is_of_the_clock_that_the_driver_reads() -> Result<(), Error> {
    let mut recorder = crate::adapters()?[0].open()?.recorder()?;
    let (Some(_), Ok(())) = (recorder.device.clock_ticks(), recorder.check_timestamps()) else {
        eprintln!("not tested: this adapter has no timestamps that can be compared with a clock");
        return Ok(());
    };
    let before = recorder.clocks()?;
    let ticks = recorder.submit_timestamp()?;
    assert!(before.ticks_to(ticks) >= 0, "{ticks} after {before:?}");
    let after = recorder.device.clock_ticks().transpose()?;
    assert!(after.is_some_and(|after| before.ticks_to(ticks) <= before.ticks_to(after)));
    Ok(())
}
