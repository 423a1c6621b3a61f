//! The random number generator: Philox4x32-10, the same numbers on every adapter.
//!
//! Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), and
//! the authors' Random123 library, whose known answers are the tests here.

/// A seed and a position in its stream of 128-bit numbers.
///
/// A kernel that draws numbers reserves as many counters as it will use, `[offset, offset + n)`,
/// and runs Philox with the key `seed` on them. So one seed gives one stream, whatever else runs.
///
/// The default generator has the seed 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Generator {
    seed: u64,
    offset: u64,
}

impl Generator {
    /// The start of `seed`'s stream.
    pub fn new(seed: u64) -> Self {
        Self { seed, offset: 0 }
    }

    /// Takes `count` counters, of four 32-bit numbers each. Returns the seed (Philox's key, low
    /// word first) and the first counter (the low 64 bits of Philox's counter).
    pub fn reserve(&mut self, count: u64) -> (u64, u64) {
        let first = self.offset;
        self.offset = first.wrapping_add(count);
        (self.seed, first)
    }

    /// Goes to the start of `seed`'s stream.
    pub fn set_seed(&mut self, seed: u64) {
        *self = Self::new(seed);
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Counters taken so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Moves to a position of the stream.
    pub fn set_offset(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Seed and offset, little-endian.
    pub fn state(&self) -> [u8; 16] {
        let mut state = [0; 16];
        state[..8].copy_from_slice(&self.seed.to_le_bytes());
        state[8..].copy_from_slice(&self.offset.to_le_bytes());
        state
    }

    /// The generator that [`state`](Self::state) was taken from.
    pub fn from_state(state: [u8; 16]) -> Self {
        let number = u128::from_le_bytes(state);
        Self { seed: number as u64, offset: (number >> 64) as u64 }
    }
}

/// One 128-bit number of Philox4x32 with ten rounds, on the host.
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let mut x = counter;
    let mut k = key;
    for round in 0..10 {
        if round > 0 {
            k[0] = k[0].wrapping_add(0x9e37_79b9);
            k[1] = k[1].wrapping_add(0xbb67_ae85);
        }
        let p = u64::from(x[0]) * 0xd251_1f53;
        let q = u64::from(x[2]) * 0xcd9e_8d57;
        x = [(q >> 32) as u32 ^ x[1] ^ k[0], q as u32, (p >> 32) as u32 ^ x[3] ^ k[1], p as u32];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kat_vectors` of Random123, lines `philox4x32 10`.
    #[test]
    fn known_answers() {
        assert_eq!(philox4x32_10([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox4x32_10([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox4x32_10([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn reservations_do_not_overlap() {
        let mut g = Generator::new(7);
        assert_eq!(g.reserve(10), (7, 0));
        assert_eq!(g.reserve(1), (7, 10));
        assert_eq!(g.offset(), 11);
        g.set_seed(9);
        assert_eq!(g.reserve(1), (9, 0));
    }

    #[test]
    fn state_round_trips() {
        let mut g = Generator::new(u64::MAX - 3);
        g.reserve(1 << 40);
        assert_eq!(Generator::from_state(g.state()), g);
    }
}
