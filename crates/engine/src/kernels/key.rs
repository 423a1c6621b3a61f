//! Specialisations of kernels.

use rustc_hash::FxBuildHasher;
use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};

/// A kernel's specialisation: everything that changes its code. Any value will do. Its type
/// distinguishes families of kernels, so two types never share a specialisation, whatever their
/// values.
pub trait KernelKey: Any + Hash + Eq + Clone + Debug + Send + Sync {}

impl<T: Any + Hash + Eq + Clone + Debug + Send + Sync> KernelKey for T {}

/// A specialisation of any type, as the store has it.
pub(crate) trait AnyKey: Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
}

impl<K: KernelKey> AnyKey for K {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The hash of a specialisation and its type.
#[inline]
pub(crate) fn hash<K: KernelKey>(key: &K) -> u64 {
    FxBuildHasher.hash_one((TypeId::of::<K>(), key))
}

/// Whether a stored specialisation is this one.
#[inline]
pub(crate) fn is<K: KernelKey>(stored: &dyn AnyKey, key: &K) -> bool {
    stored.as_any().downcast_ref::<K>() == Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_different_types_differ_whatever_their_values() {
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        struct One(u32);
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        struct Other(u32);
        let stored: Box<dyn AnyKey> = Box::new(One(1));
        assert!(is(&*stored, &One(1)));
        assert!(!is(&*stored, &One(2)));
        assert!(!is(&*stored, &Other(1)));
    }
}
