//! Microseconds for recording, submitting and waiting on the first adapter.
//!
//! `cargo run --release -p dml-vulkan --example queue_costs`

#[path = "../crates/vulkan/tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use dml_gpu::traits::*;
use dml_gpu::{Error, MemoryClass, Ticket};
use dml_vulkan::Recorder;
use support::{add, add_kernel, upload};

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn report(what: &str, mut samples: Vec<f64>) {
    samples.sort_by(f64::total_cmp);
    let at = |share: usize| samples[samples.len() * share / 100];
    println!("{what:<58} {:>9.3} median {:>9.3} p90", at(50), at(90));
}

/// Waits like a caller that reads the result.
fn finish(recorder: &mut Recorder) -> Result<(), Error> {
    let ticket = recorder.submit()?;
    recorder.wait(ticket)
}

fn main() -> Result<(), Error> {
    let adapter = &dml_vulkan::adapters()?[0];
    let info = adapter.info();
    println!("{} ({} {})", info.name, info.driver_name, info.driver_info);
    println!("marker {}", info.capabilities.buffer_marker);
    let start = Instant::now();
    let gpu = adapter.open()?;
    println!("open {:.0}", micros(start.elapsed()));
    let start = Instant::now();
    let kernel = add_kernel(&gpu)?;
    println!("compile {:.0}", micros(start.elapsed()));
    let mut recorder = gpu.recorder()?;
    let ones = upload(&gpu, &[1.0; 64]);
    let sum = gpu.allocate(256, MemoryClass::Device)?;
    let back = gpu.allocate(256, MemoryClass::Readback)?;

    for (what, barrier) in [("without", false), ("with", true)] {
        let (mut record, mut whole) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            let start = Instant::now();
            for _ in 0..64 {
                add(&mut recorder, &kernel, [&ones, &ones, &sum], 64)?;
                if barrier {
                    recorder.barrier();
                }
            }
            record.push(micros(start.elapsed()) / 64.0);
            finish(&mut recorder)?;
            whole.push(micros(start.elapsed()) / 64.0);
        }
        report(&format!("record a dispatch, {what} barrier"), record);
        report(&format!("64 of them and a wait, each, {what} barrier"), whole);
    }

    let (mut begin, mut submit) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        let start = Instant::now();
        add(&mut recorder, &kernel, [&ones, &ones, &sum], 64)?;
        begin.push(micros(start.elapsed()));
        let start = Instant::now();
        recorder.submit()?;
        submit.push(micros(start.elapsed()));
        recorder.wait(recorder.last_ticket())?;
    }
    report("the first dispatch of a submit", begin);
    report("submit", submit);

    let mut trip = Vec::new();
    for _ in 0..500 {
        let start = Instant::now();
        add(&mut recorder, &kernel, [&ones, &ones, &back], 64)?;
        recorder.host_barrier();
        finish(&mut recorder)?;
        trip.push(micros(start.elapsed()));
    }
    report("one dispatch to the host and a wait", trip);

    let mut trip = Vec::new();
    for _ in 0..500 {
        let start = Instant::now();
        add(&mut recorder, &kernel, [&ones, &ones, &sum], 64)?;
        recorder.barrier();
        recorder.copy(&sum, 0, &back, 0, 256)?;
        recorder.host_barrier();
        finish(&mut recorder)?;
        trip.push(micros(start.elapsed()));
    }
    report("one dispatch, a copy to the host and a wait", trip);

    let (mut idle, mut busy) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        for _ in 0..200 {
            add(&mut recorder, &kernel, [&sum, &ones, &sum], 64)?;
            recorder.barrier();
        }
        let ticket = recorder.submit()?;
        busy.push(poll(&mut recorder, ticket)?);
        recorder.wait(ticket)?;
        idle.push(poll(&mut recorder, ticket)?);
    }
    report("completed(), busy", busy);
    report("completed(), idle", idle);

    let mut block = Vec::new();
    for _ in 0..100 {
        for _ in 0..400 {
            add(&mut recorder, &kernel, [&sum, &ones, &sum], 64)?;
            recorder.barrier();
        }
        let first = recorder.timestamp().ok();
        let start = Instant::now();
        finish(&mut recorder)?;
        block.push(micros(start.elapsed()));
        drop(first);
    }
    report("400 dependent dispatches, a wait that blocks", block);
    recorder.wait_idle()
}

fn poll(recorder: &mut Recorder, ticket: Ticket) -> Result<f64, Error> {
    let start = Instant::now();
    for _ in 0..100 {
        if recorder.completed()? > ticket {
            break;
        }
    }
    Ok(micros(start.elapsed()) / 100.0)
}
