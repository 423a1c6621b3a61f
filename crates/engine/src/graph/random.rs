//! Random numbers in graphs. A captured kernel cannot be given its position in a generator's
//! stream. It reads seed and counter from memory, which each replay writes, and adds the counters
//! that the capture drew before it.

use crate::capture::draws::{self, Draws, MAX_GENERATORS};
use crate::error::Error;
use crate::generator::Generator;
use crate::queue::device_queue::{DeviceQueue, State};
use std::sync::{Arc, Mutex};

/// Seed and counter, 64 bits each, low words first.
const STATE_BYTES: u64 = 16;

/// Where a kernel gets the seed and the first counter of its random numbers from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum RandomSource {
    /// Both are known at the launch.
    Known {
        /// Philox's key.
        seed: u64,
        /// The low 64 bits of Philox's first counter.
        counter: u64,
    },
    /// In a capture: seed and counter are two 64-bit numbers at `address`, and the kernel adds
    /// `counter` to the second. The launch must name the 16 bytes among its reads.
    Stored {
        /// The address of the two numbers.
        address: u64,
        /// The counters that the capture drew before.
        counter: u64,
    },
}

/// Takes `counters` counters, of four 32-bit numbers each, from a generator: for a launch on this
/// queue.
///
/// # Errors
/// In a capture: [`Error::OutOfMemory`], and [`Error::Graph`] for too many generators.
#[inline]
pub(crate) fn draw(
    queue: &DeviceQueue,
    generator: &Arc<Mutex<Generator>>,
    counters: u64,
) -> Result<RandomSource, Error> {
    if queue.may_capture()
        && let Some(source) = draw_captured(queue, generator, counters)?
    {
        return Ok(source);
    }
    let (seed, counter) = draws::reserve(generator, counters);
    Ok(RandomSource::Known { seed, counter })
}

/// `None` if the calling thread is not capturing.
#[cold]
fn draw_captured(
    queue: &DeviceQueue,
    generator: &Arc<Mutex<Generator>>,
    counters: u64,
) -> Result<Option<RandomSource>, Error> {
    let mut state = queue.lock();
    let Some(capture) = state.capture.here() else { return Ok(None) };
    let Some((number, before)) = capture.draws.add(generator, counters) else {
        let what = format!("a graph can use {MAX_GENERATORS} generators, and this one uses more");
        return Err(capture.fail(Error::graph(queue.device(), what)));
    };
    let address = states(queue, &mut state)? + number * STATE_BYTES;
    Ok(Some(RandomSource::Stored { address, counter: before }))
}

/// The address of the generators' states in the calling thread's capture. The memory is allocated
/// at the first draw.
fn states(queue: &DeviceQueue, state: &mut State) -> Result<u64, Error> {
    let known = state.capture.here().map_or(0, |capture| capture.random);
    if known != 0 {
        return Ok(known);
    }
    let bytes = STATE_BYTES * MAX_GENERATORS as u64;
    let address = queue.allocate_captured(state, bytes).unwrap_or(Ok(0))?;
    if let Some(capture) = state.capture.here() {
        capture.random = address;
    }
    Ok(address)
}

/// The states of the generators for the kernels of one replay, whose numbers are taken from the
/// generators.
pub(crate) fn stored(draws: &Draws) -> Vec<u8> {
    let state = |(seed, counter): (u64, u64)| (u128::from(seed) | u128::from(counter) << 64).to_le_bytes();
    draws.reserve().flat_map(state).collect()
}
