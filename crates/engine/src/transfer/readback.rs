//! From the device to the host.

use crate::backend::Recorder;
use crate::error::Error;
use crate::interrupt;
use crate::kernels::argument_block::ArgumentBlock;
use crate::kernels::kernel::KernelRef;
use crate::memory::host_pool::{PooledSegment, SMALL_COPY};
use crate::memory::mapped::mapped;
use crate::memory::range::AddressRange;
use crate::profile::activity::{DOWNLOAD, Work};
use crate::queue::device_queue::DeviceQueue;
use crate::submit::ordered::OrderedRecorder;
use crate::submit::submission::Visibility;
use crate::transfer::copy_kernel;
use crate::transfer::polled::{MAX_WORDS, PolledReadback};
use crate::transfer::polled_slots::PolledRead;
use dml_gpu::traits::*;
use dml_gpu::{Ticket, Waited};
use std::collections::VecDeque;
use std::sync::Arc;

/// Chunks on their way at a time.
const AHEAD: usize = 3;

/// Read-backs of one device: [polled](crate::transfer::polled) where there are few bytes, through
/// the copy kernel up to 64 KiB, and through staging memory in chunks above.
pub(crate) struct Readbacks {
    queue: Arc<DeviceQueue>,
    copy_words: KernelRef,
    polled: Arc<PolledReadback>,
}

/// The first whole word of the bytes, how many words they reach over, and where the bytes begin in
/// them. Blocks are multiples of words.
fn words_around(src: u64, bytes: usize) -> (u64, u32, usize) {
    let skip = (src & 3) as usize;
    (src & !3, (skip + bytes).div_ceil(4) as u32, skip)
}

impl Readbacks {
    /// Read-backs by a kernel that [copies words](copy_kernel::copy_words), and by `polled`.
    pub(crate) fn new(queue: Arc<DeviceQueue>, copy_words: KernelRef, polled: PolledReadback) -> Self {
        let polled = Arc::new(polled);
        queue.keep(Arc::clone(&polled) as _);
        Self { queue, copy_words, polled }
    }

    #[cfg(test)]
    pub(crate) fn polled(&self) -> &PolledReadback {
        &self.polled
    }

    /// Reads `out.len()` bytes from `src`, after all work enqueued before. Waits; polls before it
    /// blocks.
    ///
    /// # Errors
    /// As [`Device::download`](crate::Device::download).
    pub(crate) fn download(&self, src: u64, out: &mut [u8]) -> Result<(), Error> {
        if out.is_empty() {
            return Ok(());
        }
        let queue = &*self.queue;
        queue.submission.alive()?;
        queue.refuse_in_capture("reading from the device (.item(), .cpu(), print, shapes that depend on data)")?;
        queue.prepare_wait()?;
        let read = if out.len() > SMALL_COPY {
            self.read_large(src, out)
        } else if words_around(src, out.len()).1 <= MAX_WORDS
            && let Some(read) = self.polled.take(queue.submission.timeline())
        {
            self.read_polled(read, src, out)
        } else {
            self.read_small(src, out)
        };
        // A fault is the cause of what went wrong after it.
        queue.check_faults()?;
        read
    }

    /// Polls for the words themselves.
    fn read_polled(&self, read: PolledRead, src: u64, out: &mut [u8]) -> Result<(), Error> {
        let (queue, polled) = (&*self.queue, &self.polled);
        let submission = &queue.submission;
        let (first, words, skip) = words_around(src, out.len());
        let pipeline = match submission.check(polled.pipeline(queue.gpu())) {
            Ok(pipeline) => pipeline,
            Err(e) => {
                polled.give_back(read);
                if !matches!(e, Error::Compile { .. }) {
                    return Err(e);
                }
                polled.give_up();
                return self.read_small(src, out);
            }
        };
        let mut state = queue.lock();
        if state.memory.locate(src, out.len() as u64).is_none() {
            polled.give_back(read);
            return Err(Error::invalid_address(DOWNLOAD, queue.device(), src, out.len() as u64));
        }
        let fault = queue.fault.given();
        let source = AddressRange::new(first, u64::from(words) * 4);
        let mut shown = None;
        let (submitted, ticket) = ArgumentBlock::with_spare(|block| {
            block.begin(queue.fault.placeholder());
            let written = polled.pass(&read, source, fault, block);
            let mut record = |recorder: &mut OrderedRecorder| {
                let dispatch = |recorder: &mut Recorder| recorder.dispatch(pipeline, block.params(), [1, 1, 1]);
                shown = Some(recorder.record_polled(DOWNLOAD, [source, written], dispatch)?);
                polled.began();
                Ok(())
            };
            queue.flush_to_wait(&mut state, Visibility::Device, Some(&mut record))
        });
        drop(state);
        let Some(shown) = shown else {
            polled.give_back(read);
            return submitted;
        };
        let pairs = words + u32::from(fault.is_some());
        let mut arrival = polled.arrival(&read, pairs);
        let waited = submission.timeline().wait_for(ticket, || arrival.poll(), interrupt::requested);
        let waited = submission.check(waited)?;
        if waited == Waited::Stopped {
            polled.abandon(read, ticket, pairs);
            return Err(Error::Interrupted);
        }
        if shown > queue.lock().pending.complete() {
            queue.wait(shown)?;
        }
        if let Some(done) = polled.arrived(ticket) {
            queue.retire(done);
        }
        if waited == Waited::Arrived {
            let (bytes, fault) = arrival.bytes().split_at(words as usize * 4);
            out.copy_from_slice(&bytes[skip..skip + out.len()]);
            let faulted = fault.iter().any(|&byte| byte != 0);
            polled.give_back(read);
            if faulted {
                queue.raise_fault()?;
            }
        } else if submitted.is_ok() {
            tracing::debug!("device {}: the host sees what a kernel wrote only after a barrier", queue.device());
            polled.give_up();
            self.read_small(src, out)?;
        }
        submitted
    }

    /// By the copy kernel, in whole words: blocks are multiples of them. A refused kernel leaves it
    /// to the driver's copies.
    fn read_small(&self, src: u64, out: &mut [u8]) -> Result<(), Error> {
        let (queue, pool) = (&*self.queue, &self.queue.host_pools.readback_small);
        let submission = &queue.submission;
        let pipeline = match submission.check(self.copy_words.pipeline(queue.gpu())) {
            Err(Error::Compile { .. }) => return self.read_large(src, out),
            pipeline => pipeline?,
        };
        let mut readback = submission.check(pool.take(queue.gpu(), submission.timeline()))?;
        let (first, words, skip) = words_around(src, out.len());
        let read = AddressRange::new(first, u64::from(words) * 4);
        let mut state = queue.lock();
        if state.memory.locate(src, out.len() as u64).is_none() {
            return Err(Error::invalid_address(DOWNLOAD, queue.device(), src, out.len() as u64));
        }
        let (submitted, ticket) = ArgumentBlock::with_spare(|block| {
            let groups = copy_kernel::pass(AddressRange::new(readback.address(), read.end - read.start), first, block);
            let mut copy = |recorder: &mut OrderedRecorder| {
                recorder.record(Work::Download, DOWNLOAD, [&[read], &[]], |recorder| {
                    recorder.dispatch(pipeline, block.params(), groups)
                })
            };
            queue.flush_to_wait(&mut state, Visibility::Host, Some(&mut copy))
        });
        drop(state);
        readback.used(ticket);
        queue.wait(ticket)?;
        let host = mapped(&readback)?;
        // SAFETY: the segment is mapped and has room for `SMALL_COPY` bytes and 8 more, and so for
        // `skip`, at most 3, and `out`, at most `SMALL_COPY` (`download`). The GPU wrote it and is
        // done, and nobody else has it. `out` is other memory: nobody has a slice of a pool's
        // segment.
        unsafe {
            std::ptr::copy_nonoverlapping(host.as_ptr().add(skip), out.as_mut_ptr(), out.len());
        }
        submitted
    }

    fn read_large(&self, src: u64, out: &mut [u8]) -> Result<(), Error> {
        let (queue, pool) = (&*self.queue, &self.queue.host_pools.readback_large);
        let mut from = src;
        // The pool gets the segments of chunks that nobody waits for any more, too.
        let mut on_their_way: VecDeque<(PooledSegment<'_>, Ticket, &mut [u8])> = VecDeque::new();
        for part in out.chunks_mut(pool.bytes() as usize) {
            if on_their_way.len() == AHEAD
                && let Some(first) = on_their_way.pop_front()
            {
                self.arrive(first)?;
            }
            let bytes = part.len() as u64;
            let mut readback = queue.submission.check(pool.take(queue.gpu(), queue.submission.timeline()))?;
            let mut state = queue.lock();
            let Some((segment, offset)) = state.memory.locate_segment(from, bytes) else {
                return Err(Error::invalid_address(DOWNLOAD, queue.device(), from, bytes));
            };
            let segment = Arc::clone(segment);
            let mut copy = |recorder: &mut OrderedRecorder| {
                recorder.record(Work::Download, DOWNLOAD, [&[AddressRange::new(from, bytes)], &[]], |recorder| {
                    recorder.copy(&segment, offset, &readback, 0, bytes)
                })
            };
            let (submitted, ticket) = queue.flush_to_wait(&mut state, Visibility::Host, Some(&mut copy));
            drop(state);
            // Also when something failed: the GPU may use it.
            readback.used(ticket);
            submitted?;
            on_their_way.push_back((readback, ticket, part));
            from += bytes;
        }
        on_their_way.into_iter().try_for_each(|chunk| self.arrive(chunk))
    }

    fn arrive(&self, (segment, ticket, part): (PooledSegment<'_>, Ticket, &mut [u8])) -> Result<(), Error> {
        self.queue.wait(ticket)?;
        let host = mapped(&segment)?;
        // SAFETY: the segment is mapped and has a chunk's bytes, of which `part` is one. The GPU
        // wrote it and is done, and nobody else has it. `part` is other memory: nobody has a slice
        // of a pool's segment.
        unsafe { std::ptr::copy_nonoverlapping(host.as_ptr(), part.as_mut_ptr(), part.len()) };
        Ok(())
    }
}
