//! From the device to the host.

use crate::device::{Device, SMALL_COPY, Shared};
use crate::error::Error;
use crate::profile::activity::Work;
use crate::queue::launch::Range;
use crate::queue::pending::mapped;
use crate::submit::stream::Stream;
use crate::transfer::copy_kernel;
use crate::transfer::polled::{MOST_WORDS, Slot};
use crate::transfer::upload::invalid;
use dml_vulkan::{Recorder, Segment, Ticket};
use std::collections::VecDeque;
use std::sync::Arc;

/// The operator of what brings bytes to the host.
pub(crate) const DOWNLOAD: &str = "download";
/// Chunks on their way at a time.
const AHEAD: usize = 3;

impl Device {
    /// Reads `out.len()` bytes from `src`, after all work enqueued before. Waits; polls before it blocks.
    ///
    /// # Errors
    /// [`Error::InvalidAddress`] unless the bytes lie in one segment of this device;
    /// [`Error::DeviceLost`]; an error of earlier work, such as [`Error::IndexOutOfRange`].
    pub fn download(&self, src: u64, out: &mut [u8]) -> Result<(), Error> {
        if out.is_empty() {
            return Ok(());
        }
        let shared = &**self.shared();
        shared.alive()?;
        shared.refuse_in_capture("reading from the device (.item(), .cpu(), print, shapes that depend on data)")?;
        let read = if out.len() > SMALL_COPY {
            shared.read_large(src, out)
        } else if words_around(src, out.len()).1 <= MOST_WORDS
            && let Some(slot) = shared.slots.take()
        {
            shared.read_packed(slot, src, out)
        } else {
            shared.read_small(src, out)
        };
        // A fault is the cause of what went wrong after it.
        self.check_faults()?;
        read
    }
}

/// The first whole word of the bytes, how many words they reach over, and where the bytes begin in them. Blocks are
/// multiples of words.
fn words_around(src: u64, bytes: usize) -> (u64, u32, usize) {
    let skip = (src & 3) as usize;
    (src & !3, (skip + bytes).div_ceil(4) as u32, skip)
}

impl Shared {
    /// Polls for the words themselves; see [`packed`](crate::transfer::polled).
    fn read_packed(&self, slot: Slot, src: u64, out: &mut [u8]) -> Result<(), Error> {
        let (first, words, skip) = words_around(src, out.len());
        let pipeline = match self.wrap(self.slots.pipeline(self.gpu())) {
            Ok(pipeline) => pipeline,
            Err(e) => {
                self.slots.give_back(slot);
                return Err(e);
            }
        };
        let mut state = self.lock();
        if state.allocator.locate(src, out.len() as u64).is_none() {
            self.slots.give_back(slot);
            return Err(invalid("download", src, out.len() as u64));
        }
        let fault = self.fault.given();
        let (params, written) = self.slots.command(&slot, first, words, fault);
        let read = Range::new(first, u64::from(words) * 4);
        let mut shown = None;
        let mut pack = |stream: &mut Stream| {
            let packed = |recorder: &mut Recorder| recorder.dispatch(pipeline, &params, [1, 1, 1]);
            shown = Some(stream.record_polled(DOWNLOAD, [read, written], packed)?);
            self.slots.began();
            Ok(())
        };
        let (submitted, ticket) = self.submit_polled(&mut state, &mut pack);
        drop(state);
        let Some(shown) = shown else {
            self.slots.give_back(slot);
            return submitted;
        };
        let mut arrival = self.slots.arrival(&slot, words + u32::from(fault.is_some()));
        let arrived = self.wrap(self.timeline().wait_for(ticket, || arrival.poll()))?;
        if shown > self.lock().queue.done() {
            self.wait(shown)?;
        }
        if let Some(done) = self.slots.arrived(ticket) {
            self.completed(done);
        }
        if arrived {
            let (bytes, fault) = arrival.bytes().split_at(words as usize * 4);
            out.copy_from_slice(&bytes[skip..skip + out.len()]);
            let faulted = fault.iter().any(|&byte| byte != 0);
            self.slots.give_back(slot);
            if faulted {
                self.raise_fault()?;
            }
        } else if submitted.is_ok() {
            tracing::debug!("device {}: the host sees what a kernel wrote only after a barrier", self.index());
            self.slots.give_up();
            self.read_small(src, out)?;
        }
        submitted
    }

    /// By the copy kernel, in whole words: blocks are multiples of them.
    fn read_small(&self, src: u64, out: &mut [u8]) -> Result<(), Error> {
        let readback = self.wrap(self.readback_small.take(self.gpu(), self.timeline()))?;
        let (first, words, skip) = words_around(src, out.len());
        let (params, groups) = copy_kernel::arguments(readback.address(), first, words);
        let pipeline = self.wrap(self.copy_words().pipeline(self.gpu()))?;
        let read = Range::new(first, u64::from(words) * 4);
        let mut state = self.lock();
        if state.allocator.locate(src, out.len() as u64).is_none() {
            return Err(invalid("download", src, out.len() as u64));
        }
        let mut copy = |stream: &mut Stream| {
            stream.record_command(Work::Download, DOWNLOAD, [&[read], &[]], |recorder| {
                recorder.dispatch(pipeline, &params, groups)
            })
        };
        let (submitted, ticket) = self.submit_for_host(&mut state, Some(&mut copy));
        drop(state);
        self.wait(ticket)?;
        let host = mapped(&readback)?;
        // SAFETY: the segment has room for `SMALL_COPY` bytes and 8 more, is mapped, and the GPU wrote it
        // and is done; `out` is another memory.
        unsafe {
            std::ptr::copy_nonoverlapping(host.as_ptr().add(skip), out.as_mut_ptr(), out.len());
        }
        self.readback_small.put(readback, ticket);
        submitted
    }

    fn read_large(&self, src: u64, out: &mut [u8]) -> Result<(), Error> {
        let chunk = self.readback_large.bytes() as usize;
        let mut from = src;
        let mut on_their_way: VecDeque<(Segment, Ticket, &mut [u8])> = VecDeque::new();
        for part in out.chunks_mut(chunk) {
            if on_their_way.len() == AHEAD {
                self.arrive(on_their_way.pop_front())?;
            }
            let bytes = part.len() as u64;
            let readback = self.wrap(self.readback_large.take(self.gpu(), self.timeline()))?;
            let mut state = self.lock();
            let (segment, offset) = match state.allocator.locate_segment(from, bytes) {
                Some((segment, offset)) => (Arc::clone(segment), offset),
                None => {
                    self.abandon(on_their_way);
                    return Err(invalid("download", from, bytes));
                }
            };
            let mut copy = |stream: &mut Stream| {
                stream.record_command(Work::Download, DOWNLOAD, [&[Range::new(from, bytes)], &[]], |recorder| {
                    recorder.copy(&segment, offset, &readback, 0, bytes)
                })
            };
            let (ok, ticket) = self.submit_for_host(&mut state, Some(&mut copy));
            drop(state);
            // Keeps the segment until the GPU is done with it, also when something failed.
            on_their_way.push_back((readback, ticket, part));
            if ok.is_err() {
                self.abandon(on_their_way);
                return ok;
            }
            from += bytes;
        }
        for arriving in on_their_way {
            self.arrive(Some(arriving))?;
        }
        Ok(())
    }

    /// Gives back the segments of chunks that nobody waits for.
    fn abandon(&self, on_their_way: VecDeque<(Segment, Ticket, &mut [u8])>) {
        for (segment, ticket, _) in on_their_way {
            self.readback_large.put(segment, ticket);
        }
    }

    fn arrive(&self, arriving: Option<(Segment, Ticket, &mut [u8])>) -> Result<(), Error> {
        let Some((segment, ticket, part)) = arriving else { return Ok(()) };
        self.wait(ticket)?;
        let host = mapped(&segment)?;
        // SAFETY: the segment has a chunk's bytes, is mapped, and the GPU wrote it and is done.
        unsafe { std::ptr::copy_nonoverlapping(host.as_ptr(), part.as_mut_ptr(), part.len()) };
        self.readback_large.put(segment, ticket);
        Ok(())
    }
}
