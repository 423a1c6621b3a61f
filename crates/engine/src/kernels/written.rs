//! In builds with debug assertions: whether those who ask for a kernel write the same one.
//!
//! A key says everything that changes a kernel's code. Where two operators share a key and not the code, or something that is
//! not in the key changes it, whatever was compiled first serves both, and gives wrong numbers that depend on what ran
//! before. So here, a kernel that is found is written again, and what comes of it is compared, for half a millisecond each of the
//! first [`TIMES`] times: later ones would make loops slow, and a test counts their allocations.

use super::cache::target;
use super::pointwise::Pointwise;
use crate::backend::Gpu;
use dml_gpu::traits::*;
use dml_kernel::{Kernel, Module};
use rustc_hash::FxBuildHasher;
use std::fmt::Debug;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often a kernel is written again.
const TIMES: u32 = 16;

/// What the first one who asked for a kernel wrote.
#[derive(Debug)]
pub(crate) struct Written {
    name: String,
    /// Of all that is emitted.
    hash: u64,
    /// How often it was written again.
    times: AtomicU32,
}

impl Written {
    pub(crate) fn of(module: &Module) -> Self {
        let Module { words, name, push_bytes, param_bytes, indirect, workgroup_size, .. } = module;
        let hash = FxBuildHasher.hash_one((words, push_bytes, param_bytes, indirect, workgroup_size));
        Self { name: name.clone(), hash, times: AtomicU32::new(0) }
    }

    /// Asserts that somebody else writes the same, the first [`TIMES`] times.
    ///
    /// # Panics
    /// Naming both kernels and their key, if not.
    pub(crate) fn assert_written_again(
        &self,
        gpu: &Gpu,
        key: &impl Debug,
        build: impl FnOnce() -> (Kernel, Option<Pointwise>),
    ) {
        if self.times.fetch_add(1, Ordering::Relaxed) >= TIMES {
            return;
        }
        match build().0.emit_for(&target(gpu.info())) {
            Ok(module) => self.assert_same(&Self::of(&module), key),
            Err(e) => {
                panic!("the kernel {:?} is not valid when it is written again: {e}; its key is {key:?}", self.name)
            }
        }
    }

    /// Asserts that `other` is the same.
    ///
    /// # Panics
    /// As [`assert_written_again`](Self::assert_written_again).
    pub(crate) fn assert_same(&self, other: &Self, key: &impl Debug) {
        assert!(
            (&self.name, self.hash) == (&other.name, other.hash),
            "two kernels, {:?} and {:?}, have one key and different code: what changes the code must be in the key, which \
             is {key:?}",
            self.name,
            other.name
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::Device;
    use dml_kernel::{Builder, DType, Kernel};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Stores;

    /// A kernel that stores a number.
    fn stores(name: &str, number: u32) -> Kernel {
        let b = Builder::new(name, [1, 1, 1]);
        b.pointer("out", DType::U32).store(b.u32(0), b.u32(number));
        b.finish()
    }

    #[test]
    fn two_kernels_of_one_key_are_found() {
        let device = Device::open(&crate::backend::adapters().unwrap()[0], 0).unwrap();
        let get = |name, number| device.kernel(&Stores, || stores(name, number)).unwrap().id();
        let id = get("stores_one", 1);
        assert_eq!(get("stores_one", 1), id);
        let panic = catch_unwind(AssertUnwindSafe(|| get("stores_two", 2))).unwrap_err();
        let message = panic.downcast::<String>().unwrap();
        for said in ["\"stores_one\" and \"stores_two\"", "which is Stores"] {
            assert!(message.contains(said), "{message}");
        }
        assert!(catch_unwind(AssertUnwindSafe(|| get("stores_one", 2))).is_err(), "the code alone differs");
        assert_eq!(get("stores_one", 1), id);
    }
}
