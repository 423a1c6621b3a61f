//! A list that elements are only ever added to. Reading it takes no lock and counts no reference,
//! and what is found is borrowed for as long as the list.

use crate::sync::OnceLock;

/// The elements in the order in which they were added, by any thread.
pub(crate) struct AppendOnlyList<T> {
    first: Link<T>,
}

/// The next element of a list, if there is one.
type Link<T> = OnceLock<Box<Node<T>>>;

struct Node<T> {
    value: T,
    next: Link<T>,
}

/// The end of a list as a search saw it. Other threads may have added elements behind it since.
pub(crate) struct End<'l, T>(&'l Link<T>);

impl<T> Default for AppendOnlyList<T> {
    fn default() -> Self {
        Self { first: Link::new() }
    }
}

impl<T> AppendOnlyList<T> {
    /// The first element of which `matches` holds.
    ///
    /// # Errors
    /// There is none: the end of the list, where one can be added.
    #[inline]
    pub(crate) fn find(&self, matches: impl Fn(&T) -> bool) -> Result<&T, End<'_, T>> {
        let mut link = &self.first;
        while let Some(node) = link.get() {
            if matches(&node.value) {
                return Ok(&node.value);
            }
            link = &node.next;
        }
        Err(End(link))
    }
}

impl<'l, T> End<'l, T> {
    /// Adds `value`, unless another thread has added an element since of which `matches` holds.
    /// Returns the one that is in the list, and whether it is `value`.
    pub(crate) fn append(self, value: T, matches: impl Fn(&T) -> bool) -> (&'l T, bool) {
        let mut link = self.0;
        let mut new = Some(Box::new(Node { value, next: Link::new() }));
        loop {
            if let Some(node) = link.get() {
                let added = new.is_none();
                if added || matches(&node.value) {
                    return (&node.value, added);
                }
                link = &node.next;
            } else if let Some(node) = new.take() {
                // Another thread may be quicker: then the node comes back.
                new = link.set(node).err();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_and_added_once() {
        let list = AppendOnlyList::default();
        let add = |n: u32| match list.find(|item| *item == n) {
            Ok(item) => (*item, false),
            Err(end) => {
                let (item, added) = end.append(n, |item| *item == n);
                (*item, added)
            }
        };
        assert_eq!([3, 1, 3, 2, 1].map(add), [(3, true), (1, true), (3, false), (2, true), (1, false)]);
        // An end that other elements were added behind.
        let Err(end) = list.find(|item| *item == 4) else { unreachable!("nobody added it") };
        assert_eq!([5, 4].map(add), [(5, true), (4, true)]);
        assert_eq!(end.append(4, |item| *item == 4), (&4, false));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// The element that is in the list for `n`, and whether this call added it.
    fn add(list: &AppendOnlyList<(u32, u32)>, n: u32, by: u32) -> ((u32, u32), bool) {
        match list.find(|item| item.0 == n) {
            Ok(item) => (*item, false),
            Err(end) => {
                let (item, added) = end.append((n, by), |item| item.0 == n);
                (*item, added)
            }
        }
    }

    #[test]
    fn loom_threads_that_add_the_same_get_the_same() {
        loom::model(|| {
            let list = Arc::new(AppendOnlyList::default());
            let other = thread::spawn({
                let list = Arc::clone(&list);
                move || (add(&list, 1, 1), add(&list, 2, 1))
            });
            let (two, one) = (add(&list, 2, 0), add(&list, 1, 0));
            let (others_one, others_two) = other.join().unwrap();
            assert_eq!((one.0, two.0), (others_one.0, others_two.0), "one element each");
            assert_eq!((one.1 as u32 + others_one.1 as u32, two.1 as u32 + others_two.1 as u32), (1, 1), "added once");
        });
    }

    #[test]
    fn loom_no_element_is_lost() {
        loom::model(|| {
            let list = Arc::new(AppendOnlyList::default());
            let threads: Vec<_> = (1..3)
                .map(|n| {
                    let list = Arc::clone(&list);
                    thread::spawn(move || add(&list, n, n))
                })
                .collect();
            assert!(add(&list, 0, 0).1);
            threads.into_iter().for_each(|thread| assert!(thread.join().unwrap().1));
            (0..3).for_each(|n| assert_eq!(list.find(|item| item.0 == n).ok(), Some(&(n, n))));
        });
    }
}
