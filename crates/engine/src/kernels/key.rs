//! Specialisations of kernels.

use rustc_hash::FxBuildHasher;
use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash, Hasher};

/// A kernel's specialisation: everything that changes its code. Any value will do. Its type
/// distinguishes families of kernels, so two types never share a specialisation, whatever their
/// values.
pub trait KernelKey: Any + Hash + Eq + Clone + Debug + Send + Sync {}

impl<T: Any + Hash + Eq + Clone + Debug + Send + Sync> KernelKey for T {}

/// A specialisation of any type, as the store keeps it.
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
pub(crate) fn is<K: KernelKey>(kept: &dyn AnyKey, key: &K) -> bool {
    kept.as_any().downcast_ref::<K>() == Some(key)
}

/// A family's name inside a specialisation, for kernels of one type that differ by more than their
/// data, such as the operators of the pointwise kernel.
#[derive(Copy, Clone, Debug)]
pub struct Family(pub &'static str);

impl PartialEq for Family {
    /// Equal names usually have the same address.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0) || self.0 == other.0
    }
}

impl Eq for Family {}

impl Hash for Family {
    /// Hashes only the length and some characters; equality compares the content.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let name = self.0.as_bytes();
        let ends = match name {
            [] => [0; 4],
            [a, .., b] => [*a, name[name.len() / 2], name[name.len() - 2], *b],
            [a] => [*a; 4],
        };
        state.write_u64((name.len() as u64) << 32 | u64::from(u32::from_le_bytes(ends)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_families_hash_alike_wherever_their_names_lie() {
        static ELSEWHERE: [u8; 9] = *b"pointwise";
        let (a, b) = (Family("pointwise"), Family(std::str::from_utf8(&ELSEWHERE).expect("ASCII")));
        assert_eq!(a, b);
        assert_eq!(hash(&a), hash(&b));
        for name in ["", "a", "ab", "abc"] {
            hash(&Family(name));
        }
        assert_ne!(a, Family("pointwisf"));
    }

    #[test]
    fn keys_of_different_types_differ_whatever_their_values() {
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        struct One(u32);
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        struct Other(u32);
        let kept: Box<dyn AnyKey> = Box::new(One(1));
        assert!(is(&*kept, &One(1)));
        assert!(!is(&*kept, &One(2)));
        assert!(!is(&*kept, &Other(1)));
    }
}
