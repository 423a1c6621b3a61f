//! The store of a device's kernels.
//!
//! A kernel is identified by its content ([`KernelId`](crate::kernels::id::KernelId)), and a device
//! has one compiled kernel for each content. The store also remembers the kernel of each
//! specialisation, so that a caller need not build a kernel to find it. Such a lookup takes no lock
//! and counts no reference.
//!
//! A specialisation must determine the code. If two operators shared a specialisation but not the
//! code, the kernel that was built first would serve both, and results would depend on what ran
//! before. A store that [checks](Checks) its lookups builds the kernel again at each lookup and
//! compares the content.

use crate::adapter_records::AdapterRecords;
use crate::backend::Gpu;
use crate::error::Error;
use crate::kernels::append_only::{AppendOnlyList, End};
use crate::kernels::compiler;
use crate::kernels::costs;
use crate::kernels::id::KernelId;
use crate::kernels::kernel::{KernelRef, Origin};
use crate::kernels::key::{self, AnyKey, KernelKey};
use crate::kernels::pointwise::Pointwise;
use crate::kernels::refusals::Refusals;
use crate::kernels::requirements::{missing, target};
use dml_environment::{CHECK_KERNELS, PIPELINE_STATISTICS};
use dml_gpu::traits::*;
use dml_kernel::Kernel;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Number of lists that a device's specialisations are distributed over. Programs use some tens to
/// some thousands of specialisations.
const LISTS: usize = 4096;

/// The kernels of one device. They live as long as the store, so a lookup returns a reference.
pub(crate) struct KernelStore {
    gpu: Gpu,
    /// The kernel of each specialisation. The array is part of the store, so that a lookup loads no
    /// pointer to it.
    lists: [AppendOnlyList<Listed>; LISTS],
    /// One kernel for each content.
    kernels: Mutex<FxHashMap<KernelId, KernelRef>>,
    checks: Checks,
    /// What the driver has refused.
    refusals: Arc<Refusals>,
}

/// A specialisation and its kernel.
struct Listed {
    hash: u64,
    key: Box<dyn AnyKey>,
    kernel: KernelRef,
    /// The number of lookups that found it, in a store that checks samples.
    lookups: AtomicU32,
}

impl Listed {
    #[inline]
    fn is<K: KernelKey>(&self, hash: u64, key: &K) -> bool {
        self.hash == hash && key::is(&*self.key, key)
    }
}

/// The lookups that build their kernel again, to compare it with the one that was found.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Checks {
    None,
    /// The first [`FIRST`] of each specialisation. A check takes half a millisecond, so more checks
    /// would make the loops of tests slow.
    First,
    All,
}

/// See [`Checks::First`].
const FIRST: u32 = 16;

impl Checks {
    /// The choice of `TORCH_DML_CHECK_KERNELS`, else of the build.
    fn chosen() -> Self {
        match CHECK_KERNELS.get() {
            Some(true) => Self::All,
            Some(false) => Self::None,
            None if cfg!(debug_assertions) => Self::First,
            None => Self::None,
        }
    }

    /// The hash that specialisations are listed under. A store that checks lists them under another
    /// hash than [`KernelStore::get`] looks for. So every lookup takes the slow path, and the fast
    /// path has no test of its own.
    fn listed_hash(self, hash: u64) -> u64 {
        if self == Self::None { hash } else { !hash }
    }

    /// Whether a lookup is checked.
    fn is_due(self, lookups: &AtomicU32) -> bool {
        match self {
            Self::None => false,
            Self::First => lookups.fetch_add(1, Ordering::Relaxed) < FIRST,
            Self::All => true,
        }
    }
}

impl KernelStore {
    /// A store without kernels. What the driver refuses is noted in `records`.
    pub(crate) fn new(gpu: Gpu, records: Arc<AdapterRecords>) -> Self {
        let lists = std::array::from_fn(|_| AppendOnlyList::default());
        let refusals = Arc::new(Refusals::new(&gpu, records));
        Self { gpu, lists, kernels: Mutex::default(), checks: Checks::chosen(), refusals }
    }

    /// The kernel of a specialisation. The first call builds and emits it. If no other
    /// specialisation has given the same kernel, the pool compiles it.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; [`Error::InvalidKernel`]; [`Error::AmbiguousKernel`] in a store that
    /// checks lookups.
    #[inline]
    pub(crate) fn get<K: KernelKey>(
        &self,
        key: &K,
        build: impl FnOnce() -> (Kernel, Option<Pointwise>),
    ) -> Result<&KernelRef, Error> {
        let hash = key::hash(key);
        match self.search(hash, key) {
            Ok(listed) => Ok(&listed.kernel),
            Err(_) => self.get_slowly(hash, key, build),
        }
    }

    #[cold]
    fn get_slowly<K: KernelKey>(
        &self,
        hash: u64,
        key: &K,
        build: impl FnOnce() -> (Kernel, Option<Pointwise>),
    ) -> Result<&KernelRef, Error> {
        let (kernel, new) = self.find_or_make(hash, key, build)?;
        if new {
            let job = kernel.clone();
            compiler::enqueue(&self.gpu, Box::new(move |gpu| job.compile(gpu)));
        }
        Ok(kernel)
    }

    /// As [`get`](Self::get), but the calling thread compiles the kernel.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) fn get_compiled<K: KernelKey>(
        &self,
        key: &K,
        build: impl FnOnce() -> (Kernel, Option<Pointwise>),
    ) -> Result<&KernelRef, Error> {
        let (kernel, _) = self.find_or_make(key::hash(key), key, build)?;
        kernel.compile(&self.gpu);
        Ok(kernel)
    }

    /// The kernel of a specialisation, if it exists. These lookups are not checked.
    pub(crate) fn find<K: KernelKey>(&self, key: &K) -> Option<&KernelRef> {
        self.search(self.checks.listed_hash(key::hash(key)), key).ok().map(|listed| &listed.kernel)
    }

    /// The GPU that runs the kernels.
    pub(crate) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// What the driver has refused.
    #[inline]
    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// The number of kernels.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<KernelId, KernelRef>> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A listed specialisation, or the end of the list that it would be in.
    #[inline]
    fn search<K: KernelKey>(&self, hash: u64, key: &K) -> Result<&Listed, End<'_, Listed>> {
        self.lists[hash as usize % LISTS].find(|listed| listed.is(hash, key))
    }

    /// The kernel of a specialisation, and whether its content is new.
    fn find_or_make<K: KernelKey>(
        &self,
        hash: u64,
        key: &K,
        build: impl FnOnce() -> (Kernel, Option<Pointwise>),
    ) -> Result<(&KernelRef, bool), Error> {
        let hash = self.checks.listed_hash(hash);
        let end = match self.search(hash, key) {
            Ok(listed) => {
                if self.checks.is_due(&listed.lookups) {
                    unambiguous(key, &listed.kernel, &self.emit(key, build)?)?;
                }
                return Ok((&listed.kernel, false));
            }
            Err(end) => end,
        };
        let start = Instant::now();
        let made = self.emit(key, build)?;
        costs::emitted(start);
        let (kernel, new) = self.intern(made);
        let entry = Listed { hash, key: Box::new(key.clone()), kernel: kernel.clone(), lookups: AtomicU32::new(0) };
        // Another thread may have listed the same specialisation meanwhile.
        let (listed, _) = end.append(entry, |listed| listed.is(hash, key));
        unambiguous(key, &listed.kernel, &kernel)?;
        Ok((&listed.kernel, new))
    }

    /// Builds and emits a kernel that the adapter can run.
    fn emit<K: KernelKey>(
        &self,
        key: &K,
        build: impl FnOnce() -> (Kernel, Option<Pointwise>),
    ) -> Result<KernelRef, Error> {
        let info = self.gpu.info();
        let (kernel, pointwise) = build();
        let module = kernel.emit_for(&target(info))?;
        if let Some(feature) = missing(&module, info) {
            return Err(Error::Unsupported { kernel: module.name, adapter: info.name.clone(), feature });
        }
        let origin = PIPELINE_STATISTICS.get().map(|_| Origin::of(key));
        Ok(KernelRef::new(module, kernel, pointwise, origin, Arc::clone(&self.refusals)))
    }

    /// The one kernel of this content, and whether the given kernel is that one.
    fn intern(&self, kernel: KernelRef) -> (KernelRef, bool) {
        let mut kernels = self.lock();
        let before = kernels.len();
        let one = kernels.entry(kernel.id()).or_insert(kernel).clone();
        (one, kernels.len() > before)
    }
}

/// Checks that two kernels of one specialisation are the same.
///
/// # Errors
/// [`Error::AmbiguousKernel`].
fn unambiguous<K: KernelKey>(key: &K, first: &KernelRef, second: &KernelRef) -> Result<(), Error> {
    if first.id() == second.id() {
        return Ok(());
    }
    let [first, second] = [first, second].map(|kernel| format!("{} ({})", kernel.name(), kernel.id()));
    Err(Error::AmbiguousKernel { first, second, specialisation: format!("{key:?}") })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dml_kernel::{Builder, DType};

    /// A specialisation of the tests.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Numbered(u32);

    fn store(checks: Checks) -> KernelStore {
        let gpu = crate::backend::adapters().unwrap()[0].open().unwrap();
        KernelStore { checks, ..KernelStore::new(gpu, Arc::new(AdapterRecords::new(None))) }
    }

    /// A kernel that stores a number.
    fn stores(name: &str, number: u32) -> (Kernel, Option<Pointwise>) {
        let b = Builder::new(name, [1, 1, 1]);
        b.pointer("out", DType::U32).store(b.u32(0), b.u32(number));
        (b.finish(), None)
    }

    /// Specialisations that share a list, asked for by several threads at once.
    #[test]
    fn specialisations_of_one_list_are_told_apart_and_made_once() {
        for checks in [Checks::None, Checks::First] {
            let store = store(checks);
            let list = |key: &Numbered| key::hash(key) as usize % LISTS;
            let keys: Vec<_> = (0..).map(Numbered).filter(|k| list(k) == list(&Numbered(0))).take(3).collect();
            let ids = || {
                let id = |key: &Numbered| store.get(key, || stores("one_list", key.0)).unwrap().id();
                keys.iter().map(id).collect::<Vec<_>>()
            };
            let all: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(ids)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(all.iter().all(|found| *found == ids()), "{all:?}");
            assert_eq!(store.len(), 3);
            assert!(ids().iter().all(|id| ids().iter().filter(|other| *other == id).count() == 1));
        }
    }

    #[test]
    fn specialisations_that_give_the_same_kernel_share_it() {
        let store = store(Checks::All);
        let one = store.get(&Numbered(1), || stores("shared", 7)).unwrap();
        let other = store.get_compiled(&Numbered(2), || stores("shared", 7)).unwrap();
        assert_eq!(one.id(), other.id());
        assert!(one.is_compiled(), "compiling either is compiling both");
        assert_eq!(store.len(), 1);
        assert_ne!(store.get(&Numbered(3), || stores("shared", 8)).unwrap().id(), one.id());
        assert_eq!(store.len(), 2);
    }

    #[test]
    fn only_what_was_made_is_found() {
        for checks in [Checks::None, Checks::All] {
            let store = store(checks);
            assert!(store.find(&Numbered(1)).is_none());
            let id = store.get(&Numbered(1), || stores("found", 1)).unwrap().id();
            assert_eq!(store.find(&Numbered(1)).map(KernelRef::id), Some(id));
            assert!(store.find(&Numbered(2)).is_none());
        }
    }

    #[test]
    fn two_kernels_of_one_specialisation_are_an_error_where_lookups_are_checked() {
        let store = store(Checks::All);
        let get = |name, number| store.get(&Numbered(1), || stores(name, number)).map(KernelRef::id);
        let id = get("stores_one", 1).unwrap();
        for _ in 0..2 * FIRST {
            assert_eq!(get("stores_one", 1), Ok(id));
        }
        let message = get("stores_two", 2).unwrap_err().to_string();
        for said in ["stores_one", "stores_two", "Numbered(1)", &id.to_string()] {
            assert!(message.contains(said), "{message}");
        }
        assert!(get("stores_one", 2).is_err(), "the code alone differs");
        assert!(get("stores_two", 1).is_err(), "the name alone differs");
        assert_eq!(get("stores_one", 1), Ok(id));
    }

    #[test]
    fn a_sample_of_lookups_is_checked() {
        let store = store(Checks::First);
        let get = |number| store.get(&Numbered(1), || stores("sampled", number)).map(KernelRef::id);
        let id = get(1).unwrap();
        assert!(get(2).is_err());
        for _ in 1..FIRST {
            assert_eq!(get(1), Ok(id));
        }
        assert_eq!(get(2), Ok(id), "later lookups are not built again");
    }
}
