//! The memory ranges of many tensors: whether they overlap, and merging them.

use dml_engine::AddressRange;

/// Whether a written range overlaps another one, read or written: then the tensors have to be
/// computed in order. Sorts both lists. An empty range at 0 overlaps nothing.
pub fn conflict(reads: &mut [AddressRange], writes: &mut [AddressRange]) -> bool {
    sort(reads);
    sort(writes);
    if writes.windows(2).any(|pair| pair[1].start < pair[0].end) {
        return true;
    }
    let mut at = 0;
    reads.iter().any(|read| {
        // Reads are in order of their start: a write that ends before this one does not overlap
        // later reads either.
        while writes.get(at).is_some_and(|write| write.end <= read.start) {
            at += 1;
        }
        writes.get(at).is_some_and(|write| write.start < read.end)
    })
}

/// Merges adjacent and overlapping ranges, so that the queue has fewer to compare.
pub fn merge(ranges: &mut Vec<AddressRange>) {
    ranges.retain(|range| range.start < range.end);
    sort(ranges);
    ranges.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
}

/// A stable sort, which takes one pass if the tensors were allocated in order.
fn sort(ranges: &mut [AddressRange]) {
    ranges.sort_by_key(|range| range.start);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(pairs: &[(u64, u64)]) -> Vec<AddressRange> {
        pairs.iter().map(|&(start, end)| AddressRange { start, end }).collect()
    }

    #[test]
    fn what_is_written_must_lie_apart() {
        let meets = |reads: &[(u64, u64)], writes: &[(u64, u64)]| conflict(&mut ranges(reads), &mut ranges(writes));
        assert!(!meets(&[], &[]));
        assert!(!meets(&[(0, 9), (5, 8), (30, 40)], &[(20, 30), (10, 20)]));
        assert!(meets(&[], &[(10, 20), (0, 11)]));
        assert!(meets(&[], &[(10, 20), (10, 20)]));
        assert!(meets(&[(0, 100)], &[(40, 50)]));
        assert!(meets(&[(0, 2), (0, 100), (1, 3)], &[(40, 50)]));
        assert!(meets(&[(49, 51)], &[(0, 10), (40, 50)]));
    }

    #[test]
    fn conflicts_agree_with_brute_force() {
        let mut state = 1u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        for _ in 0..2000 {
            let mut some = |most| -> Vec<AddressRange> {
                (0..below(most)).map(|_| AddressRange::new(below(200), 1 + below(12))).collect()
            };
            let (mut reads, mut writes) = (some(8), some(6));
            let hit = |a: &AddressRange, b: &AddressRange| a.start < b.end && b.start < a.end;
            let expected = reads.iter().any(|r| writes.iter().any(|w| hit(r, w)))
                || (0..writes.len()).any(|i| writes[..i].iter().any(|w| hit(w, &writes[i])));
            assert_eq!(conflict(&mut reads, &mut writes), expected, "{reads:?} {writes:?}");
        }
    }

    #[test]
    fn neighbours_are_joined() {
        let mut all = ranges(&[(30, 40), (0, 10), (10, 20), (5, 8), (41, 42), (39, 40), (0, 0)]);
        merge(&mut all);
        assert_eq!(all, ranges(&[(0, 20), (30, 40), (41, 42)]));
    }
}
