//! The draws of a graph from generators: each replay takes the numbers that the captured calls
//! would have taken.

use crate::generator::Generator;
use std::sync::{Arc, Mutex, PoisonError};

/// The most generators that one graph may use.
pub(crate) const MAX_GENERATORS: usize = 32;

/// The draws of a capture, by generator.
#[derive(Default)]
pub(crate) struct Draws(Vec<Draw>);

/// The draws of a graph from one generator.
struct Draw {
    generator: Arc<Mutex<Generator>>,
    counters: u64,
}

impl Draws {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a draw of `count` counters. Returns the generator's number in the graph, and the
    /// counters that were drawn from it before; `None` when there are too many generators.
    pub(crate) fn add(&mut self, generator: &Arc<Mutex<Generator>>, count: u64) -> Option<(u64, u64)> {
        let draws = &mut self.0;
        let at = match draws.iter().position(|draw| Arc::ptr_eq(&draw.generator, generator)) {
            Some(at) => at,
            None if draws.len() == MAX_GENERATORS => return None,
            None => {
                draws.push(Draw { generator: Arc::clone(generator), counters: 0 });
                draws.len() - 1
            }
        };
        let before = draws[at].counters;
        draws[at].counters += count;
        Some((at as u64, before))
    }

    /// Takes the numbers of one replay from the generators. Returns the seed and the first counter
    /// of each, in the order of the generators' numbers.
    pub(crate) fn reserve(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|draw| reserve(&draw.generator, draw.counters))
    }
}

/// Takes counters from a generator. Returns the seed and the first counter.
pub(crate) fn reserve(generator: &Mutex<Generator>, counters: u64) -> (u64, u64) {
    // A generator is two numbers, which a panic elsewhere left valid.
    generator.lock().unwrap_or_else(PoisonError::into_inner).reserve(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_add_up_per_generator() {
        let (default, own) = (Arc::default(), Arc::new(Mutex::new(Generator::new(1))));
        let mut draws = Draws::default();
        assert_eq!(draws.add(&default, 5), Some((0, 0)));
        assert_eq!(draws.add(&own, 7), Some((1, 0)));
        assert_eq!(draws.add(&default, 2), Some((0, 5)));
        assert_eq!(draws.add(&own, 1), Some((1, 7)));
        for _ in 2..MAX_GENERATORS {
            assert!(draws.add(&Arc::default(), 1).is_some());
        }
        assert_eq!(draws.add(&Arc::default(), 1), None);
        assert_eq!(draws.add(&default, 1), Some((0, 7)));
        assert_eq!(draws.reserve().nth(1), Some((1, 0)));
        assert_eq!(own.lock().map(|own| own.offset()).ok(), Some(8));
        assert_eq!(draws.reserve().nth(1), Some((1, 8)));
    }
}
