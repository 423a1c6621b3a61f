//! Loads of a loop's next iteration while the current iteration computes.

use dml_kernel::{Builder, Value, Var};

/// The elements of an invocation's loads, by load.
pub type Loads<'b> = Vec<Vec<Value<'b>>>;

/// The loads of the next iteration, in variables; without prefetching, each iteration loads its own
/// elements.
pub struct Prefetch<'b> {
    loaded: Option<Vec<Vec<Var<'b>>>>,
}

impl<'b> Prefetch<'b> {
    /// Before the loop: `first` loads the elements of the first iteration.
    pub fn new(b: &'b Builder, prefetch: bool, first: impl FnOnce() -> Loads<'b>) -> Self {
        let variables = |load: Vec<Value<'b>>| load.into_iter().map(|x| b.var(x)).collect();
        Prefetch { loaded: prefetch.then(|| first().into_iter().map(variables).collect()) }
    }

    /// The elements of the current iteration; `load` loads them without prefetching.
    pub fn current(&self, load: impl FnOnce() -> Loads<'b>) -> Loads<'b> {
        let Some(loaded) = &self.loaded else { return load() };
        loaded.iter().map(|load| load.iter().map(|x| x.get()).collect()).collect()
    }

    /// Loads the elements of the next iteration with `load`; without prefetching, nothing.
    pub fn next(&self, load: impl FnOnce() -> Loads<'b>) -> Option<Loads<'b>> {
        self.loaded.is_some().then(load)
    }

    /// At the end of an iteration, with what [`next`](Self::next) returned.
    pub fn advance(&self, next: Option<Loads<'b>>) {
        let (Some(loaded), Some(next)) = (&self.loaded, next) else { return };
        for (x, &next) in loaded.iter().flatten().zip(next.iter().flatten()) {
            x.set(next);
        }
    }
}
