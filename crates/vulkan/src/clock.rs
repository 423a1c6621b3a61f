//! The device's clock beside the host's, so that what ran on the device can be shown beside what the host did.

use std::time::{SystemTime, UNIX_EPOCH};

use ash::{ext, khr, vk};

use crate::adapter::AdapterCore;
use crate::error::Error;
use crate::extensions::Features;
use crate::gpu::GpuCore;
use crate::recorder::Recorder;

/// Reads the device's clock (`VK_KHR_calibrated_timestamps`, or the extension of the same content under EXT).
pub(crate) type DeviceClock = vk::PFN_vkGetCalibratedTimestampsKHR;

/// Readings of both clocks, of which the one that took the least time is kept.
const TRIES: usize = 8;
/// Over less than this the rates of the two clocks are not compared: the error of the readings would show.
const LEAST_NS: f64 = 1e8;

/// Nanoseconds since 1970 by the host's clock.
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// One moment as both clocks have it.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// Of a device's timestamps.
    ticks: u64,
    /// Of the host, since 1970.
    unix_ns: u64,
    /// The most by which the two are apart.
    error_ns: u64,
    /// Valid bits of a timestamp.
    bits: u32,
    /// Of one tick, as the adapter says.
    period_ns: f64,
}

impl Clocks {
    /// The most by which the two readings are apart, nanoseconds.
    pub fn error_ns(&self) -> u64 {
        self.error_ns
    }

    /// Nanoseconds since 1970 of a timestamp that was taken between this moment and a `later` one. Where enough time
    /// lies between the moments, the two clocks' rates are matched.
    pub fn unix_ns(&self, later: &Self, ticks: u64) -> u64 {
        let (host, device) = (later.unix_ns as f64 - self.unix_ns as f64, self.ticks_to(later.ticks) as f64);
        // Timestamps of few bits start again from 0.
        let wraps = self.bits < 64 && host >= (1u64 << (self.bits - 1)) as f64 * self.period_ns;
        let rate = if host < LEAST_NS || device <= 0.0 || wraps { self.period_ns } else { host / device };
        self.unix_ns.saturating_add_signed((self.ticks_to(ticks) as f64 * rate) as i64)
    }

    /// Ticks from this moment, before it if negative.
    fn ticks_to(&self, ticks: u64) -> i64 {
        let unused = 64 - self.bits.min(64);
        (ticks.wrapping_sub(self.ticks) << unused) as i64 >> unused
    }
}

impl Recorder {
    /// Reads both clocks. Where the driver cannot read the device's, a timestamp that is submitted alone stands for it:
    /// the queue should then have nothing to do.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the queue has no timestamps; [`Error::DeviceLost`]; [`Error::OutOfMemory`].
    pub fn clocks(&mut self) -> Result<Clocks, Error> {
        self.timestamps_exist()?;
        let mut best: Option<Clocks> = None;
        for _ in 0..TRIES {
            let before = unix_now();
            let ticks = match self.gpu.clock {
                Some(clock) => read(&self.gpu, clock)?,
                None => self.submit_timestamp()?,
            };
            let after = unix_now();
            let error_ns = after.saturating_sub(before) / 2;
            if best.is_none_or(|best| error_ns < best.error_ns) {
                best = Some(Clocks {
                    ticks,
                    unix_ns: before + error_ns,
                    error_ns,
                    bits: self.gpu.compute.family.timestamp_bits,
                    period_ns: f64::from(self.gpu.adapter.info.capabilities.timestamp_period_ns),
                });
            }
        }
        best.ok_or(Error::DeviceLost)
    }

    fn submit_timestamp(&mut self) -> Result<u64, Error> {
        self.submit()?;
        let id = self.timestamp()?;
        let ticket = self.submit()?;
        self.wait(ticket)?;
        self.timestamp_ticks(&id)?.ok_or(Error::DeviceLost)
    }
}

fn read(gpu: &GpuCore, clock: DeviceClock) -> Result<u64, Error> {
    let info = vk::CalibratedTimestampInfoKHR::default().time_domain(vk::TimeDomainKHR::DEVICE);
    let (mut ticks, mut deviation) = (0, 0);
    // SAFETY: the extension is enabled and has this time domain; one info, one result.
    let result = unsafe { clock(gpu.device.handle(), 1, &raw const info, &raw mut ticks, &raw mut deviation) };
    match result {
        vk::Result::SUCCESS => Ok(ticks),
        error => Err(gpu.error("vkGetCalibratedTimestamps", error)),
    }
}

/// The function that reads a device's clock, where there is one.
pub(crate) fn device_clock(adapter: &AdapterCore, device: &ash::Device, features: &Features) -> Option<DeviceClock> {
    let (entry, instance) = (&adapter.instance.entry, &adapter.instance.raw);
    // SAFETY: the adapter has the extension that each block asks for.
    let (domains, clock) = unsafe {
        if features.has(khr::calibrated_timestamps::NAME) {
            let functions = khr::calibrated_timestamps::Instance::new(entry, instance);
            (
                functions.get_physical_device_calibrateable_time_domains(adapter.physical),
                khr::calibrated_timestamps::Device::new(instance, device).fp().get_calibrated_timestamps_khr,
            )
        } else if features.has(ext::calibrated_timestamps::NAME) {
            let functions = ext::calibrated_timestamps::Instance::new(entry, instance);
            (
                functions.get_physical_device_calibrateable_time_domains(adapter.physical),
                ext::calibrated_timestamps::Device::new(instance, device).fp().get_calibrated_timestamps_ext,
            )
        } else {
            return None;
        }
    };
    domains.is_ok_and(|domains| domains.contains(&vk::TimeDomainKHR::DEVICE)).then_some(clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_of_the_queue_is_of_the_clock_that_the_driver_reads() -> Result<(), Error> {
        let Ok(adapters) = crate::adapters() else { return Ok(()) };
        let mut recorder = adapters[0].open()?.recorder()?;
        let (Some(clock), Ok(())) = (recorder.gpu.clock, recorder.timestamps_exist()) else { return Ok(()) };
        let before = recorder.clocks()?;
        let ticks = recorder.submit_timestamp()?;
        assert!(before.ticks_to(ticks) >= 0, "{ticks} after {}", before.ticks);
        assert!(before.ticks_to(ticks) <= before.ticks_to(read(&recorder.gpu, clock)?));
        Ok(())
    }

    fn clocks(ticks: u64, unix_ns: u64) -> Clocks {
        Clocks { ticks, unix_ns, error_ns: 0, bits: 36, period_ns: 10.0 }
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
    fn ticks_that_start_again_go_on() {
        let (first, last) = (clocks((1 << 36) - 100, 1_000_000), clocks(100, 1_002_000));
        assert_eq!(first.unix_ns(&last, (1 << 36) - 50), 1_000_500);
        assert_eq!(first.unix_ns(&last, 50), 1_001_500);
        // After half a round the rate cannot be told from the ticks.
        let last = clocks(100, 1_000_000 + (1 << 36) * 10 + 2000);
        assert_eq!(first.unix_ns(&last, 50), 1_001_500);
    }
}
