//! The relation of the device's clock to the host's, to show device and host activities on one time
//! axis.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Error;

/// Number of readings of both clocks; the reading that took the least time is used.
const TRIES: usize = 8;
/// The rates of the two clocks are not compared over a shorter time, because the error of the
/// readings would dominate.
const MIN_RATE_NS: f64 = 1e8;

/// Nanoseconds since 1970 by the host's clock.
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// One moment on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// Device timestamp.
    ticks: u64,
    /// Nanoseconds of the host since 1970.
    unix_ns: u64,
    /// The largest possible time between the two readings.
    error_ns: u64,
    /// Valid bits of a timestamp.
    bits: u32,
    /// Nanoseconds of a tick, according to the adapter.
    period_ns: f64,
}

impl Clocks {
    /// Reads both clocks. `ticks` reads the device's: timestamps of `bits` bits, with ticks
    /// of `period_ns` nanoseconds.
    pub fn read(bits: u32, period_ns: f64, mut ticks: impl FnMut() -> Result<u64, Error>) -> Result<Self, Error> {
        let mut once = || {
            let before = unix_now();
            let ticks = ticks()?;
            let error_ns = unix_now().saturating_sub(before) / 2;
            Ok(Self { ticks, unix_ns: before + error_ns, error_ns, bits, period_ns })
        };
        let mut best = once()?;
        for _ in 1..TRIES {
            let next = once()?;
            if next.error_ns < best.error_ns {
                best = next;
            }
        }
        Ok(best)
    }

    /// The largest possible time between the two readings, nanoseconds.
    pub fn error_ns(&self) -> u64 {
        self.error_ns
    }

    /// Nanoseconds since 1970 of a timestamp between this moment and a `later` one. If the moments
    /// are far enough apart, the rate of the device's clock is corrected by the host's.
    pub fn unix_ns(&self, later: &Self, ticks: u64) -> u64 {
        let (host, device) = (later.unix_ns as f64 - self.unix_ns as f64, self.ticks_to(later.ticks) as f64);
        // Timestamps of few bits wrap around.
        let wraps = self.bits < 64 && host >= (1u64 << (self.bits - 1)) as f64 * self.period_ns;
        let rate = if host < MIN_RATE_NS || device <= 0.0 || wraps { self.period_ns } else { host / device };
        self.unix_ns.saturating_add_signed((self.ticks_to(ticks) as f64 * rate) as i64)
    }

    /// Ticks from this moment, negative for an earlier timestamp.
    pub fn ticks_to(&self, ticks: u64) -> i64 {
        ticks_between(self.ticks, ticks, self.bits)
    }
}

/// Ticks from one timestamp of `bits` bits to another, negative if the second is earlier. The
/// timestamps must be less than half a period apart: with Intel's 36 bits, 47 minutes.
pub fn ticks_between(from: u64, to: u64, bits: u32) -> i64 {
    let unused = 64 - bits.min(64);
    (to.wrapping_sub(from) << unused) as i64 >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(ticks: u64, unix_ns: u64) -> Clocks {
        Clocks { ticks, unix_ns, error_ns: 0, bits: 36, period_ns: 10.0 }
    }

    #[test]
    fn a_clock_that_cannot_be_read_is_an_error() {
        assert_eq!(Clocks::read(64, 1.0, || Err(Error::DeviceLost)).map(drop), Err(Error::DeviceLost));
    }

    #[test]
    fn the_adapters_period_counts_over_a_short_time() {
        let (first, last) = (clocks(1000, 5_000_000), clocks(2000, 5_020_000));
        assert_eq!(first.unix_ns(&last, 1500), 5_005_000);
        assert_eq!(first.unix_ns(&last, 900), 4_999_000);
    }

    #[test]
    fn rates_are_matched_over_a_long_time() {
        // The device's clock is a tenth slow.
        let (first, last) = (clocks(0, 0), clocks(90_000_000, 1_000_000_000));
        assert_eq!(first.unix_ns(&last, 45_000_000), 500_000_000);
    }

    #[test]
    fn ticks_between_timestamps_of_few_bits() {
        assert_eq!(ticks_between((1 << 36) - 100, 100, 36), 200);
        assert_eq!(ticks_between(100, (1 << 36) - 100, 36), -200);
        assert_eq!(ticks_between(u64::MAX - 9, 10, 64), 20);
    }

    #[test]
    fn ticks_that_start_again_go_on() {
        let (first, last) = (clocks((1 << 36) - 100, 1_000_000), clocks(100, 1_002_000));
        assert_eq!(first.unix_ns(&last, (1 << 36) - 50), 1_000_500);
        assert_eq!(first.unix_ns(&last, 50), 1_001_500);
        // After half a period the ticks do not determine the rate.
        let last = clocks(100, 1_000_000 + (1 << 36) * 10 + 2000);
        assert_eq!(first.unix_ns(&last, 50), 1_001_500);
    }
}
