//! Random numbers in graphs. A captured kernel cannot be given its place in a generator's stream: it reads seed and
//! counter from memory, which each replay writes, and adds what the capture drew before it.

use super::capturing::Capturing;
use crate::device::{Device, Shared, State};
use crate::error::Error;
use crate::generator::Generator;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// Seed and counter, 64 bits each, low words first.
pub(crate) const SLOT_BYTES: u64 = 16;
/// Generators that one graph may use.
const MOST_GENERATORS: usize = 32;

/// Where a kernel has the seed and the first counter of its random numbers from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum RandomSource {
    /// They are these.
    Known {
        /// Philox's key.
        seed: u64,
        /// The low 64 bits of Philox's first counter.
        counter: u64,
    },
    /// In a capture: two 64-bit numbers at an address, to the second of which `counter` is to be added. The launch must name the
    /// 16 bytes among its reads.
    Stored {
        /// Where they are.
        address: u64,
        /// What to add.
        counter: u64,
    },
}

/// What a graph draws from one generator.
pub(crate) struct Draw {
    /// `None` is the device's own.
    generator: Option<Arc<Mutex<Generator>>>,
    counters: u64,
}

impl Draw {
    fn same(&self, other: &Self) -> bool {
        match (&self.generator, &other.generator) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Takes the numbers of one replay: seed and first counter, as they go to memory.
    pub(crate) fn reserve(&self, shared: &Shared) -> [u8; SLOT_BYTES as usize] {
        let (seed, counter) = take(self.generator.as_deref().unwrap_or(&shared.generator), self.counters);
        (u128::from(seed) | u128::from(counter) << 64).to_le_bytes()
    }
}

/// Notes that `count` counters are drawn. The generator's slot, and what was drawn from it before; `None` when there are too
/// many generators.
fn note(draws: &mut Vec<Draw>, generator: Draw, count: u64) -> Option<(u64, u64)> {
    let at = draws.iter().position(|draw| draw.same(&generator)).unwrap_or_else(|| {
        draws.push(generator);
        draws.len() - 1
    });
    if at >= MOST_GENERATORS {
        draws.truncate(MOST_GENERATORS);
        return None;
    }
    let before = draws[at].counters;
    draws[at].counters += count;
    Some((at as u64, before))
}

fn take(generator: &Mutex<Generator>, counters: u64) -> (u64, u64) {
    // A generator is two numbers: a panic elsewhere left it sound.
    generator.lock().unwrap_or_else(PoisonError::into_inner).reserve(counters)
}

impl Device {
    /// Takes `counters` counters, of four 32-bit numbers each, from a generator (the device's own for `None`).
    ///
    /// # Errors
    /// In a capture: [`Error::OutOfMemory`], and [`Error::Graph`] for too many generators.
    #[inline]
    pub fn draw(&self, generator: Option<&Arc<Mutex<Generator>>>, counters: u64) -> Result<RandomSource, Error> {
        let shared = self.shared();
        if shared.capturing.load(Ordering::Relaxed)
            && let Some(source) = shared.draw_captured(generator, counters)?
        {
            return Ok(source);
        }
        let (seed, counter) = take(generator.map_or(&shared.generator, |g| g), counters);
        Ok(RandomSource::Known { seed, counter })
    }
}

impl Shared {
    #[cold]
    fn draw_captured(
        &self,
        generator: Option<&Arc<Mutex<Generator>>>,
        counters: u64,
    ) -> Result<Option<RandomSource>, Error> {
        let mut state = self.lock();
        let Some(capture) = state.capture.as_mut().filter(|capture| capture.mine()) else { return Ok(None) };
        let draw = Draw { generator: generator.cloned(), counters: 0 };
        let Some((slot, before)) = note(&mut capture.draws, draw, counters) else {
            let error =
                self.graph_error(format!("a graph can use {MOST_GENERATORS} generators, and this one uses more"));
            return Err(capture.fail(error));
        };
        let address = self.random_states(&mut state)? + slot * SLOT_BYTES;
        Ok(Some(RandomSource::Stored { address, counter: before }))
    }

    /// Where the generators' states are, allocated at the first need.
    fn random_states(&self, state: &mut State) -> Result<u64, Error> {
        let known = state.capture.as_ref().map_or(0, |capture| capture.random);
        if known != 0 {
            return Ok(known);
        }
        let bytes = SLOT_BYTES * MOST_GENERATORS as u64;
        let address = self.allocate_captured(state, bytes).unwrap_or(Ok(0))?;
        if let Some(Capturing { random, .. }) = state.capture.as_deref_mut() {
            *random = address;
        }
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_add_up_per_generator() {
        let own = Arc::new(Mutex::new(Generator::new(1)));
        let from = |generator: Option<&Arc<Mutex<Generator>>>| Draw { generator: generator.cloned(), counters: 0 };
        let mut draws = Vec::new();
        assert_eq!(note(&mut draws, from(None), 5), Some((0, 0)));
        assert_eq!(note(&mut draws, from(Some(&own)), 7), Some((1, 0)));
        assert_eq!(note(&mut draws, from(None), 2), Some((0, 5)));
        assert_eq!(note(&mut draws, from(Some(&own)), 1), Some((1, 7)));
        assert_eq!(draws.iter().map(|d| d.counters).collect::<Vec<_>>(), [7, 8]);
        for _ in 2..MOST_GENERATORS {
            assert!(note(&mut draws, from(Some(&Arc::default())), 1).is_some());
        }
        assert_eq!(note(&mut draws, from(Some(&Arc::default())), 1), None);
        assert_eq!(note(&mut draws, from(None), 1), Some((0, 7)));
    }
}
