//! Views that share memory.

use crate::view::{Dims, View};

/// Whether the byte ranges from the first to the last element of two views overlap. Memory of
/// different devices never does, even with equal addresses.
pub fn ranges_overlap(a: &View, b: &View) -> bool {
    if a.location != b.location {
        return false;
    }
    let (a, b) = (a.range(), b.range());
    a.start < b.end && b.start < a.end
}

/// Whether several elements have one address, because the view is expanded. False for an empty
/// view.
pub fn is_expanded(t: &View) -> bool {
    t.sizes.iter().zip(&t.strides).any(|(&n, &s)| n > 1 && s == 0) && t.numel() != 0
}

/// An expanded view with size 1 in its expanded dimensions, for operators that write the same value
/// everywhere.
pub fn unexpanded(t: &View) -> View {
    let sizes: Dims = t.sizes.iter().zip(&t.strides).map(|(&n, &s)| if s == 0 { n.min(1) } else { n }).collect();
    t.as_strided(&sizes, &t.strides, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Location;
    use dml_engine::AddressRange;
    use dml_kernel::DType;

    fn floats(location: Location, start: u64, n: i64) -> View {
        View {
            handle: 0,
            data: start,
            dtype: DType::F32,
            location,
            sizes: Dims::from_slice(&[n]),
            strides: Dims::from_slice(&[1]),
            storage: AddressRange::new(start, 4 * n as u64),
            weak: false,
            negative: false,
            conjugate: false,
        }
    }

    #[test]
    fn equal_addresses_of_two_devices_are_different_memory() {
        let [a, b] = [0, 1].map(|device| floats(Location::Device(device), 4096, 8));
        assert!(ranges_overlap(&a, &a.narrow(0, 7, 1)));
        assert!(!ranges_overlap(&a, &b));
        assert!(!ranges_overlap(&a, &floats(Location::Device(0), 4096 + 32, 8)));
    }

    #[test]
    fn an_expanded_view_is_one_element_without_its_repetitions() {
        let x = floats(Location::Device(0), 4096, 1).expand(&[3, 1]);
        assert!(is_expanded(&x) && !is_expanded(&unexpanded(&x)));
        assert_eq!(unexpanded(&x).numel(), 1);
    }
}
