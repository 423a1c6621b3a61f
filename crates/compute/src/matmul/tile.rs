//! How a product is divided into workgroups and invocations.

use crate::primitives::registers::{Kept, Loads};

/// The tile of one workgroup. Every number is a power of two.
///
/// Invocations form patches of `lanes_m x lanes_n` in Z-order; a patch covers `lanes_m * thread_m`
/// by `lanes_n * thread_n` outputs, of which an invocation owns groups of up to four adjacent ones.
/// The groups of a patch's invocations are interleaved, so that neighbouring invocations read
/// adjacent vectors of shared memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Rows of the result that a workgroup computes.
    pub m: u32,
    /// Columns of the result that a workgroup computes.
    pub n: u32,
    /// Length of the inner dimension that is staged in shared memory at a time.
    pub k: u32,
    /// Rows of one invocation.
    pub thread_m: u32,
    /// Columns of one invocation.
    pub thread_n: u32,
    /// Invocations of a patch along m.
    pub lanes_m: u32,
    /// Invocations of a patch along n.
    pub lanes_n: u32,
    /// 2: double-buffered; the next k-tile is stored while this one is read, with one barrier a
    /// k-tile. 1: half the shared memory, two barriers.
    pub stages: u32,
    /// Neighbouring invocations that read along k, if an operand is contiguous along k and
    /// transposed on its way to shared memory: higher numbers make better use of memory, and have
    /// more bank conflicts.
    pub k_lanes: u32,
    /// Transposed tiles are stored with columns permuted by an exclusive or, so that stores have no
    /// bank conflicts.
    pub swizzle: bool,
    /// The last k-tile prefetches nothing: less latency if k is short, a branch if it is long.
    pub guard: bool,
    /// The loop is unrolled by two k-tiles, for two stages: so the stage that is read is a
    /// constant.
    pub unroll: bool,
    /// Addresses in the loop take few instructions: pointers to the operands advance by a step, and
    /// positions in shared memory are divided into vectors and lanes before the loop. NVIDIA's
    /// compiler finds as much by itself.
    pub lean: bool,
}

impl Tile {
    /// A double-buffered tile.
    pub const fn new(m: u32, n: u32, k: u32, thread: [u32; 2], lanes: [u32; 2]) -> Tile {
        let [thread_m, thread_n] = thread;
        let [lanes_m, lanes_n] = lanes;
        Tile {
            m,
            n,
            k,
            thread_m,
            thread_n,
            lanes_m,
            lanes_n,
            stages: 2,
            k_lanes: 4,
            swizzle: false,
            guard: false,
            unroll: false,
            lean: false,
        }
    }

    /// Invocations of a workgroup.
    pub const fn threads(&self) -> u32 {
        self.m / self.thread_m * (self.n / self.thread_n)
    }

    /// Bytes of shared memory for elements of `bytes` bytes.
    pub const fn shared_bytes(&self, bytes: u32) -> u32 {
        self.stages * self.k * (self.m + self.n) * bytes
    }

    /// What an invocation keeps in registers, for elements of `bytes` bytes: accumulators, the rows
    /// and columns that are multiplied, and the next k-tile.
    pub const fn kept(&self, bytes: u32, loads: Loads) -> Kept {
        let one = self.k * (self.m + self.n) / self.threads();
        let next = if self.unroll { 2 * one } else { one };
        let elements = self.thread_m * self.thread_n + self.thread_m + self.thread_n + next;
        Kept { bytes, elements, loaded: (one, loads) }
    }

    /// Whether the sizes are consistent.
    pub fn is_valid(&self) -> bool {
        let all = [
            self.m,
            self.n,
            self.k,
            self.thread_m,
            self.thread_n,
            self.lanes_m,
            self.lanes_n,
            self.stages,
            self.k_lanes,
        ];
        all.iter().all(|x| x.is_power_of_two())
            && self.m.min(self.n).min(self.k) >= 4
            && self.m.max(self.n) <= 1024
            && self.k <= 128
            && self.lanes_m * self.thread_m <= self.m
            && self.lanes_n * self.thread_n <= self.n
            && self.thread_m.max(self.thread_n) <= 16
            && self.lanes_m.max(self.lanes_n) <= 64
            && self.stages <= 2
            && self.k_lanes <= self.k
            && (self.stages == 2 || !self.unroll)
    }

    /// Parses `128x256x16/8x8/8x4`, optionally followed by `/s1` (one stage), `/k2` (k lanes), `/x`
    /// (swizzle), `/g` (guard), `/u` (unroll), `/l` (lean).
    pub fn parse(text: &str) -> Option<Tile> {
        let mut parts = text.split('/');
        let numbers = |part: Option<&str>| -> Option<Vec<u32>> {
            part?.split('x').map(|n| n.parse().ok()).collect::<Option<Vec<u32>>>()
        };
        let size = numbers(parts.next())?;
        let thread = numbers(parts.next())?;
        let lanes = numbers(parts.next())?;
        let (&[m, n, k], &[tm, tn], &[lm, ln]) = (&size[..], &thread[..], &lanes[..]) else { return None };
        let mut tile = Tile::new(m, n, k, [tm, tn], [lm, ln]);
        for option in parts {
            match option.split_at_checked(1)? {
                ("x", "") => tile.swizzle = true,
                ("g", "") => tile.guard = true,
                ("u", "") => tile.unroll = true,
                ("l", "") => tile.lean = true,
                ("s", count) => tile.stages = count.parse().ok()?,
                ("k", count) => tile.k_lanes = count.parse().ok()?,
                _ => return None,
            }
        }
        tile.is_valid().then_some(tile)
    }
}

impl std::fmt::Display for Tile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tile { m, n, k, thread_m, thread_n, lanes_m, lanes_n, stages, k_lanes, swizzle, guard, unroll, lean } =
            self;
        write!(f, "{m}x{n}x{k}/{thread_m}x{thread_n}/{lanes_m}x{lanes_n}/s{stages}/k{k_lanes}")?;
        f.write_str(if *swizzle { "/x" } else { "" })?;
        f.write_str(if *guard { "/g" } else { "" })?;
        f.write_str(if *unroll { "/u" } else { "" })?;
        f.write_str(if *lean { "/l" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let tile = Tile::parse("128x256x16/8x8/8x4/k2/x/g/u/l").expect("it is well formed");
        assert_eq!(tile.threads(), 512);
        assert_eq!(tile.shared_bytes(4), 48 << 10);
        assert_eq!(Tile::parse(&tile.to_string()), Some(tile));
        for bad in
            ["", "128x128", "128x128x8/8x8/32x32", "100x128x8/8x8/8x4", "128x128x8/8x8/8x4/q", "64x64x8/8x8/8x4/s1/u"]
        {
            assert_eq!(Tile::parse(bad), None, "{bad}");
        }
    }
}
