//! Submissions, tickets and timestamps on any adapter.

mod support;

use dml_gpu::traits::*;
use dml_gpu::{Error, MemoryClass, Ticket};
use support::{add, add_kernel, assert_valid, open, read, readback, upload, write};

#[test]
fn ten_thousand_dependent_dispatches_in_a_hundred_submits() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let ones = upload(&gpu, &[1.0; 64]);
    let sum = upload(&gpu, &[0.0; 64]);
    let back = readback(&gpu, 64);
    let mut last = Ticket(0);
    for _ in 0..100 {
        for _ in 0..100 {
            add(&mut recorder, &kernel, [&sum, &ones, &sum], 64)?;
            recorder.barrier();
        }
        let ticket = recorder.submit()?;
        assert_eq!(ticket, Ticket(last.0 + 1));
        last = ticket;
        assert!(recorder.completed()? <= ticket);
    }
    recorder.copy(&sum, 0, &back, 0, 256)?;
    recorder.host_barrier();
    let last = recorder.submit()?;
    recorder.wait(last)?;
    assert_eq!(read(&back, 64), [10_000.0; 64]);
    assert_eq!(recorder.completed()?, last);
    assert_eq!(recorder.last_ticket(), last);
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}

#[test]
fn every_ticket_can_be_awaited() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let ones = upload(&gpu, &[1.0; 64]);
    let sum = gpu.allocate(256, MemoryClass::Staging)?;
    write(&sum, &[0.0; 64]);
    recorder.wait(Ticket(0))?;
    for round in 1..=100u16 {
        add(&mut recorder, &kernel, [&sum, &ones, &sum], 64)?;
        recorder.barrier();
        recorder.host_barrier();
        let ticket = recorder.submit()?;
        recorder.wait(ticket)?;
        assert!(recorder.completed()? >= ticket);
        assert_eq!(read(&sum, 64), [f32::from(round); 64], "round {round}");
    }
    // More pending submissions than the recorder's limit.
    for _ in 0..600 {
        add(&mut recorder, &kernel, [&sum, &ones, &sum], 64)?;
        recorder.barrier();
        recorder.submit()?;
    }
    recorder.host_barrier();
    recorder.wait_idle()?;
    assert_eq!(read(&sum, 64), [700.0; 64]);
    assert_valid();
    Ok(())
}

#[test]
fn nothing_recorded_is_no_submission() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    assert_eq!(recorder.submit()?, Ticket(0));
    recorder.barrier();
    recorder.dispatch(&kernel, &[0; 32], [0, 1, 1])?;
    assert_eq!(recorder.recorded(), 0);
    assert_eq!(recorder.submit()?, Ticket(0));
    recorder.wait(Ticket(0))?;
    Ok(())
}

#[test]
fn another_thread_waits_while_this_one_records() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    let ones = upload(&gpu, &[1.0; 64]);
    let sum = upload(&gpu, &[0.0; 64]);
    let timeline = recorder.timeline().clone();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            add(&mut recorder, &kernel, [&sum, &ones, &sum], 64)?;
            recorder.barrier();
            let ticket = recorder.submit()?;
            let timeline = &timeline;
            scope.spawn(move || timeline.wait(ticket).expect("the ticket completes"));
        }
        Ok::<(), Error>(())
    })?;
    assert_eq!(timeline.completed()?, recorder.last_ticket());
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}

#[test]
fn recorders_wait_for_each_other() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut first = gpu.recorder()?;
    let mut second = gpu.recorder()?;
    let one = upload(&gpu, &[1.0; 64]);
    let sum = gpu.allocate(256, MemoryClass::Device)?;
    let back = readback(&gpu, 64);
    for round in 0..5 {
        add(&mut first, &kernel, [&one, &one, &sum], 64)?;
        let ticket = first.submit()?;
        second.after(first.timeline(), ticket)?;
        second.copy(&sum, 0, &back, 0, 256)?;
        second.host_barrier();
        let copied = second.submit()?;
        second.wait(copied)?;
        assert_eq!(read(&back, 64), [2.0; 64], "round {round}");
    }
    first.wait_idle()?;
    second.wait_idle()?;
    assert_valid();
    Ok(())
}

#[test]
fn timestamps_grow() -> Result<(), Error> {
    let gpu = open();
    let kernel = add_kernel(&gpu)?;
    let mut recorder = gpu.recorder()?;
    if gpu.info().capabilities.timestamp_period_ns == 0.0 {
        assert!(matches!(recorder.timestamp(), Err(Error::Unsupported { .. })));
        return Ok(());
    }
    let sum = upload(&gpu, &[1.0; 64]);
    let mut previous = 0;
    for _ in 0..10 {
        let mut ids = Vec::new();
        for _ in 0..50 {
            ids.push(recorder.timestamp()?);
            add(&mut recorder, &kernel, [&sum, &sum, &sum], 64)?;
            recorder.barrier();
        }
        assert_eq!(recorder.timestamp_ns(&ids[0])?, None);
        let ticket = recorder.submit()?;
        recorder.wait(ticket)?;
        for id in &ids {
            let time = recorder.timestamp_ns(id)?.expect("complete");
            assert!(time >= previous, "{time} after {previous}");
            previous = time;
        }
    }
    recorder.wait_idle()?;
    assert_valid();
    Ok(())
}
