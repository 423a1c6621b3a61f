//! The allocator over a source that only counts.

use super::*;
use dml_testing::Random;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Hands out addresses up to a budget.
struct Fake {
    next: Cell<u64>,
    left: Cell<u64>,
}

struct FakeSegment {
    address: u64,
    bytes: u64,
}

impl Fake {
    fn new(budget: u64) -> Self {
        Self { next: Cell::new(1 << 40), left: Cell::new(budget) }
    }

    fn give_back(&self, segments: Vec<FakeSegment>) {
        for s in segments {
            self.left.set(self.left.get() + s.bytes);
        }
    }
}

impl Source for &Fake {
    type Segment = FakeSegment;
    type Error = ();

    fn allocate(&self, bytes: u64) -> Result<FakeSegment, ()> {
        if bytes > self.left.get() {
            return Err(());
        }
        self.left.set(self.left.get() - bytes);
        let address = self.next.get();
        self.next.set(address + bytes + 4096);
        Ok(FakeSegment { address, bytes })
    }

    fn address(segment: &FakeSegment) -> u64 {
        segment.address
    }
}

type Fakes<'f> = Allocator<&'f Fake>;

fn get(a: &mut Fakes<'_>, bytes: u64) -> u64 {
    a.take(COMMON, bytes).unwrap_or_else(|| a.grow(COMMON, bytes, false).expect("budget"))
}

#[test]
fn segments_have_their_sizes() {
    let source = Fake::new(u64::MAX);
    let mut a = Fakes::new(&source);
    get(&mut a, 1);
    assert_eq!(a.reserved(), 2 * MIB);
    get(&mut a, MIB);
    assert_eq!(a.reserved(), 2 * MIB, "the second fits beside the first");
    get(&mut a, MIB + 1);
    assert_eq!(a.reserved(), 22 * MIB);
    get(&mut a, 9 * MIB);
    assert_eq!(a.reserved(), 22 * MIB);
    get(&mut a, 10 * MIB);
    assert_eq!(a.reserved(), 32 * MIB);
    get(&mut a, 33 * MIB + 1);
    assert_eq!(a.reserved(), 66 * MIB);
}

#[test]
fn a_freed_block_is_reused_and_neighbours_merge() {
    let source = Fake::new(u64::MAX);
    let mut a = Fakes::new(&source);
    let x = get(&mut a, 1000);
    let y = get(&mut a, 1000);
    let z = get(&mut a, 1000);
    assert_eq!((y, z), (x + 1024, x + 2048));
    assert!(a.free(y, false));
    assert_eq!(get(&mut a, 600), y, "best fit, not the large rest");
    assert!(a.free(x, false));
    assert!(a.free(y, false));
    assert_eq!(get(&mut a, 2048), x, "two merged");
    assert!(!a.free(y, false), "not a block any more");
    assert!(a.free(x, false));
    assert!(a.free(z, false));
    assert!(!a.free(z, false), "freed twice");
    assert_eq!(a.release().len(), 1);
    assert_eq!(a.reserved(), 0);
}

#[test]
fn blocks_of_deferred_frees_are_handed_out_last() {
    let source = Fake::new(2 * MIB);
    let mut a = Fakes::new(&source);
    let x = get(&mut a, 512);
    assert!(a.free(x, true));
    assert_eq!(a.stats().all.allocated_bytes.current, 0);
    assert_eq!(a.block(x), None);
    let y = get(&mut a, 512);
    assert_ne!(x, y);
    assert!(a.free(y, true));
    assert_eq!(get(&mut a, MIB), x + 1024);
    assert!(a.free(x + 1024, false));
    a.reclaim(COMMON);
    assert_eq!(get(&mut a, 512), x);
    let z = get(&mut a, 200 << 10);
    assert!(a.free(z, true));
    assert!(a.free(x, true));
    assert_eq!(get(&mut a, MIB), x + 512 + (200 << 10), "behind what was freed");
    get(&mut a, MIB - (200 << 10) - 512);
    assert_eq!(get(&mut a, 512 + (200 << 10)), x, "what was freed, when nothing else is left");
}

#[test]
fn addresses_map_to_blocks() {
    let source = Fake::new(u64::MAX);
    let mut a = Fakes::new(&source);
    let x = get(&mut a, 1000);
    let y = get(&mut a, 5 * MIB);
    assert_eq!(a.block(x), Some((x, 1024)));
    assert_eq!(a.block(x + 1023), Some((x, 1024)));
    assert_eq!(a.block(x + 1024), None);
    assert_eq!(a.block(y + 7), Some((y, 5 * MIB)));
    assert_eq!(a.block(3), None);
    let (slot, offset) = a.locate(y + 8, 100).expect("inside");
    assert_eq!(offset, 8);
    assert_eq!(a.segment(slot).map(<&Fake as Source>::address), Some(y));
    assert_eq!(a.locate(y, 21 * MIB), None);
}

#[test]
fn pools_share_nothing_until_they_end() {
    let source = Fake::new(u64::MAX);
    let mut a = Fakes::new(&source);
    let common = get(&mut a, 1000);
    let pool = a.new_pool();
    assert_eq!(a.take(pool, 1000), None, "the common pool's memory is not the new one's");
    let x = a.grow(pool, 1000, false).expect("budget");
    let y = a.take(pool, 5000).expect("beside it");
    assert_eq!((a.pool_of(common), a.pool_of(y), a.pool_of(3)), (Some(COMMON), Some(pool), None));
    assert_eq!(a.stats().all.reserved_bytes.current, 4 * MIB, "the statistics count it");
    assert!(a.free(x, true));
    assert_eq!(a.take(COMMON, 2 * MIB), None);
    assert!(a.free(common, false));
    assert_eq!(a.release().len(), 1, "the pool keeps its segments");
    a.end_pool(pool);
    assert_eq!(a.pool_of(y), Some(COMMON));
    assert_eq!(a.take(COMMON, 1000), Some(x));
    assert!(a.free(x, false));
    assert!(a.free(y, false));
    assert_eq!(a.release().len(), 1);
    assert_eq!(a.reserved(), 0);
    assert_eq!(a.new_pool(), pool, "the number is used again");
}

#[test]
fn a_pinned_segment_is_not_released() {
    let source = Fake::new(u64::MAX);
    let mut a = Fakes::new(&source);
    let x = get(&mut a, 1000);
    let slot = a.pin(x + 10).expect("in use");
    assert_eq!(a.pin(x), Some(slot));
    assert_eq!(a.pin(3), None);
    assert!(a.free(x, false));
    a.unpin(slot);
    assert!(a.release().is_empty());
    assert_eq!(get(&mut a, 1000), x, "but its memory can be used");
    assert!(a.free(x, false));
    a.unpin(slot);
    assert_eq!(a.release().len(), 1);
}

#[test]
fn out_of_memory_recovers() {
    let source = Fake::new(64 * MIB);
    let mut a = Fakes::new(&source);
    let x = get(&mut a, 40 * MIB);
    assert!(a.grow(COMMON, 30 * MIB, false).is_err());
    assert!(a.free(x, false));
    assert!(a.take(COMMON, 50 * MIB).is_none());
    assert!(a.grow(COMMON, 50 * MIB, false).is_err(), "the cache holds it");
    source.give_back(a.release());
    let y = a.grow(COMMON, 50 * MIB, false).expect("released");
    assert!(a.grow(COMMON, 2 * MIB, false).is_err(), "no 20 MiB");
    a.grow(COMMON, 2 * MIB, true).expect("modest");
    a.set_limit(53 * MIB);
    assert!(matches!(a.grow(COMMON, 2 * MIB, true), Err(GrowError::Limit)));
    assert!(a.free(y, false));
}

/// Random allocations and frees: blocks never overlap, lie in segments, the statistics add up,
/// and everything merges back into whole segments at the end.
#[test]
fn random_traffic() {
    for seed in 0..8 {
        let mut random = Random(seed);
        let source = Fake::new(600 * MIB);
        let mut a = Fakes::new(&source);
        let mut live: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut order: Vec<u64> = Vec::new();
        for step in 0..6000 {
            if random.below(100) < 55 {
                let bytes = match random.below(10) {
                    0..6 => 1 + random.below(8192),
                    6..8 => 1 + random.below(MIB),
                    8 => 1 + random.below(10 * MIB),
                    _ => 1 + random.below(40 * MIB),
                };
                let got = a.take(COMMON, bytes).or_else(|| a.grow(COMMON, bytes, false).ok());
                let Some(address) = got else {
                    source.give_back(a.release());
                    continue;
                };
                let (start, size) = a.block(address).expect("in use");
                assert_eq!(start, address);
                assert!(size >= bytes);
                assert_eq!(address % 512, 0);
                let below = live.range(..=address).next_back();
                assert!(below.is_none_or(|(s, (n, _))| s + n <= address));
                let above = live.range(address..).next();
                assert!(above.is_none_or(|(s, _)| address + size <= *s));
                assert!(a.locate(address, size).is_some());
                live.insert(address, (size, bytes));
                order.push(address);
            } else if !order.is_empty() {
                let at = random.below(order.len() as u64) as usize;
                let address = order.swap_remove(at);
                live.remove(&address);
                assert!(a.free(address, random.below(2) == 0));
            }
            if random.below(40) == 0 {
                a.reclaim(COMMON);
            }
            if step % 100 == 0 {
                let s = a.stats();
                assert_eq!(s.all.allocated_bytes.current, live.values().map(|v| v.0).sum::<u64>());
                assert_eq!(s.all.requested_bytes.current, live.values().map(|v| v.1).sum::<u64>());
                assert_eq!(s.all.allocations.current, live.len() as u64);
                for stat in [s.all.allocated_bytes, s.all.reserved_bytes, s.all.allocations, s.all.segments] {
                    assert_eq!(stat.allocated - stat.freed, stat.current);
                    assert!(stat.peak >= stat.current);
                }
                assert_eq!(
                    s.small.reserved_bytes.current + s.large.reserved_bytes.current,
                    s.all.reserved_bytes.current
                );
                assert!(s.all.inactive_split_bytes + s.all.allocated_bytes.current <= s.all.reserved_bytes.current);
                let snapshot = a.snapshot();
                let blocks = || snapshot.iter().flat_map(|s| &s.blocks);
                assert_eq!(snapshot.iter().map(|s| s.bytes).sum::<u64>(), s.all.reserved_bytes.current);
                assert_eq!(blocks().map(|b| b.bytes).sum::<u64>(), s.all.reserved_bytes.current);
                assert_eq!(blocks().map(|b| b.requested).sum::<u64>(), s.all.requested_bytes.current);
            }
        }
        for address in order {
            assert!(a.free(address, false));
        }
        source.give_back(a.release());
        assert_eq!(a.reserved(), 0);
        assert_eq!(source.left.get(), 600 * MIB);
        assert_eq!(a.stats().all.allocations.current, 0);
    }
}
