//! Messages, by hand.

use std::sync::atomic::Ordering::Relaxed;

use super::message::{scratch_surface, send};
use super::thread::Thread;
use super::{Group, Outcome};
use crate::dispatch::{Dispatch, State};
use crate::fault::FaultKind;
use crate::isa::Generation;
use crate::isa::instruction::{Extended, Instruction, Message};
use crate::memory::Memory;

const AT: u64 = 0x10_0000;

pub fn dispatch() -> Dispatch {
    Dispatch {
        generation: Generation::Xe,
        number: 1,
        code: 0,
        channels: 8,
        threads: 1,
        last: 0xff,
        groups: [1; 3],
        start: [0; 3],
        shared: 1024,
        common: Vec::new(),
        own: Vec::new(),
        own_bytes: 0,
        word: 0,
        own_first: false,
        table: 0,
        state: State::default(),
    }
}

/// A message of eight channels from `g2` and `g6` to `g2`, which is where the addresses are.
fn message(function: u8, descriptor: u32) -> Instruction {
    let words = [0x0003_0031, 0, 0, 0];
    let mut it = crate::isa::decode::decode(Generation::Xe, &words, 0).expect("a message");
    it.message = Message {
        function,
        descriptor: Some(descriptor),
        extended: Extended::Value(0),
        end: false,
        registers: [Some(2), Some(6)],
        answer: Some(2),
    };
    it
}

fn carry_out(it: &Instruction, thread: &mut Thread, memory: &Memory) -> Outcome {
    let dispatch = dispatch();
    let mut group = Group { dispatch: &dispatch, memory, shared: vec![0; 1024], scratch: Vec::new() };
    send(it, thread, &mut group, 0x7f)
}

fn addresses(thread: &mut Thread, of: impl Fn(u64) -> u64) {
    for k in 0..8 {
        thread.set_word(64 + 8 * k, of(k as u64) as u32);
        thread.set_word(68 + 8 * k, (of(k as u64) >> 32) as u32);
    }
}

#[test]
fn words_of_memory() {
    let memory = Memory::new();
    memory.map_anonymous(AT, 4096);
    let mut thread = Thread::new(0xff);
    // A word of each channel: data port 1 of Gen12, and the unit that Gen12.5 has.
    for (function, store, load, first) in [(12, 0x0406_6efd, 0x0414_6efd, 0), (15, 0x0400_0584, 0x0410_0580, 512)] {
        addresses(&mut thread, |k| AT + first + 8 * k);
        (0..8).for_each(|k| thread.set_word(192 + 4 * k, 100 + k as u32));
        carry_out(&message(function, store), &mut thread, &memory).expect("written");
        let word = |k: u64| memory.u32(AT + first + 8 * k).expect("mapped").load(Relaxed);
        assert_eq!((word(0), word(6), word(7)), (100, 106, 0), "the last channel is off");
        carry_out(&message(function, load), &mut thread, &memory).expect("read");
        assert_eq!([0, 1, 6].map(|k| thread.word(64 + 4 * k)), [100, 101, 106]);
    }
}

#[test]
fn atomics_of_memory() {
    let memory = Memory::new();
    memory.map_anonymous(AT, 4096);
    let mut thread = Thread::new(0xff);
    addresses(&mut thread, |_| AT);
    (0..8).for_each(|k| thread.set_word(192 + 4 * k, 1 + k as u32));
    carry_out(&message(12, 0x0414_a7fd), &mut thread, &memory).expect("added");
    assert_eq!(memory.u32(AT).expect("mapped").load(Relaxed), 28);
    assert_eq!([0, 1, 2, 6].map(|k| thread.word(64 + 4 * k)), [0, 1, 3, 21]);
}

/// On Gen12.5 the message names a surface, by which the thread is known.
#[test]
fn scratch_of_a_thread() {
    let memory = Memory::new();
    let dispatch = Dispatch { state: State { scratch: (AT, 1024), ..State::default() }, ..dispatch() };
    let mut group = Group { dispatch: &dispatch, memory: &memory, shared: Vec::new(), scratch: vec![0; 2048] };
    let mut thread = Thread::new(0xff);
    let of = |descriptor: u32, number: u32| {
        let mut it = message(15, descriptor);
        it.message.extended = Extended::Value(scratch_surface(number) >> 4);
        it
    };
    (0..8).for_each(|k| {
        thread.set_word(64 + 4 * k, 64 + 4 * k as u32);
        thread.set_word(192 + 4 * k, 100 + k as u32);
    });
    send(&of(0x4200_0504, 1), &mut thread, &mut group, 0xff).expect("written");
    assert_eq!((group.scratch[1024 + 64], group.scratch[1024 + 92], group.scratch[64]), (100, 107, 0));
    // Eight words at the first channel's address.
    send(&of(0x4210_c500, 1), &mut thread, &mut group, 0xff).expect("read");
    assert_eq!([0, 7].map(|k| thread.word(64 + 4 * k)), [100, 107]);
    thread.set_word(64, 0);
    let outside = send(&of(0x4210_c500, 2), &mut thread, &mut group, 0xff).expect_err("of no thread");
    assert!(matches!(outside.kind, FaultKind::OutOfBounds { .. }));
}

#[test]
fn what_is_missing_is_an_error() {
    let memory = Memory::new();
    let mut thread = Thread::new(0xff);
    addresses(&mut thread, |_| AT);
    let outside = carry_out(&message(12, 0x0414_6efd), &mut thread, &memory).expect_err("no buffer");
    assert_eq!(outside.kind, FaultKind::OutOfBounds { bytes: 4, write: false });
    assert_eq!((outside.channel, outside.address), (Some(0), Some(AT)));
    let missing = carry_out(&message(5, 0x0414_6efd), &mut thread, &memory).expect_err("no such function");
    assert!(matches!(missing.kind, FaultKind::Missing(_)));
}
