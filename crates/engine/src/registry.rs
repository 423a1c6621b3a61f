//! The devices of the process.

use crate::backend::{Adapter, adapters};
use crate::device::Device;
use crate::error::Error;
use crate::exit;
use crate::fork;
use crate::kernels::compiler;
use crate::profile::activity::Activity;
use dml_environment::{DEVICES_PER_ADAPTER, SOFTWARE};
use dml_gpu::traits::*;
use dml_gpu::{AdapterInfo, AdapterKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

struct Slot {
    adapter: &'static Adapter,
    device: OnceLock<Arc<Device>>,
    opening: Mutex<()>,
}

static SLOTS: OnceLock<Vec<Slot>> = OnceLock::new();
/// The seed of devices that are opened later: the last one of [`seed_all`], else the
/// [default](set_default_seed).
static SEED: Mutex<Option<u64>> = Mutex::new(None);
/// Devices that are opened from now on are profiled from the start.
static PROFILING: AtomicBool = AtomicBool::new(false);

fn slots() -> Result<&'static [Slot], Error> {
    if let Some(slots) = SLOTS.get() {
        return Ok(slots);
    }
    fork::watch();
    exit::watch();
    let all = adapters()?;
    // The number of devices per adapter: 1, unless a test of several devices asks for more.
    let each = DEVICES_PER_ADAPTER.get().unwrap_or(1);
    let wanted = SOFTWARE.get() == Some(true);
    let kinds: Vec<AdapterKind> = all.iter().map(|a| a.info().kind).collect();
    Ok(SLOTS.get_or_init(|| {
        visible(&kinds, wanted)
            .into_iter()
            .flat_map(|i| std::iter::repeat_n(i, each))
            .map(|i| Slot { adapter: &all[i], device: OnceLock::new(), opening: Mutex::new(()) })
            .collect()
    }))
}

/// The adapters that are devices: software adapters only if there is no other adapter, or if
/// `software` is set, and then last.
fn visible(kinds: &[AdapterKind], software: bool) -> Vec<usize> {
    let (soft, hard): (Vec<usize>, Vec<usize>) = (0..kinds.len()).partition(|&i| kinds[i] == AdapterKind::Software);
    if hard.is_empty() {
        return soft;
    }
    if software { hard.into_iter().chain(soft).collect() } else { hard }
}

fn slot(index: usize) -> Result<&'static Slot, Error> {
    let slots = slots()?;
    slots.get(index).ok_or(Error::InvalidDevice { index, count: slots.len() })
}

/// The number of devices: every adapter in the order of [`adapters`], software adapters only if
/// there is no other adapter, or with `TORCH_DML_SOFTWARE=1`, and then last. With
/// `TORCH_DML_DEVICES_PER_ADAPTER=2` each adapter is two independent devices.
///
/// # Errors
/// [`dml_gpu::Error::NoLoader`] and [`dml_gpu::Error::NoAdapter`] if there is none.
pub fn device_count() -> Result<usize, Error> {
    Ok(slots()?.len())
}

/// The description of a device. Does not open it.
///
/// # Errors
/// [`Error::InvalidDevice`]; as [`device_count`].
pub fn adapter_info(index: usize) -> Result<&'static AdapterInfo, Error> {
    Ok(slot(index)?.adapter.info())
}

/// The device of an index. The first call opens it, and it stays open.
///
/// # Errors
/// [`Error::InvalidDevice`]; [`Error::Forked`]; the driver's error when opening, after which the
/// next call tries again.
#[inline]
pub fn device(index: usize) -> Result<&'static Arc<Device>, Error> {
    match opened(index) {
        Some(device) => Ok(device),
        None => open(index),
    }
}

#[cold]
fn open(index: usize) -> Result<&'static Arc<Device>, Error> {
    fork::check()?;
    let slot = slot(index)?;
    let _one_at_a_time = slot.opening.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = slot.device.get() {
        return Ok(device);
    }
    let device = Arc::new(Device::open(slot.adapter, index)?);
    fork::watch();
    exit::watch();
    if PROFILING.load(Ordering::SeqCst)
        && let Err(e) = device.start_profile()
    {
        tracing::warn!("device {index} is not profiled: {e}");
    }
    let seed = SEED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(seed) = *seed {
        device.seed(seed);
    }
    Ok(slot.device.get_or_init(|| device))
}

/// The device of an index, if it is open. Calls no driver.
#[inline]
pub fn opened(index: usize) -> Option<&'static Arc<Device>> {
    SLOTS.get().filter(|_| !fork::forked())?.get(index)?.device.get()
}

/// The devices that are open.
pub fn all_opened() -> impl Iterator<Item = &'static Arc<Device>> {
    (0..SLOTS.get().map_or(0, Vec::len)).filter_map(opened)
}

/// The seed of devices that are opened from now on, unless [`seed_all`] has set one.
pub fn set_default_seed(seed: u64) {
    SEED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(seed);
}

/// Seeds the generators of all devices. Opens no device: devices that are opened later start with
/// the seed.
pub fn seed_all(seed: u64) {
    let mut later = SEED.lock().unwrap_or_else(PoisonError::into_inner);
    *later = Some(seed);
    for device in all_opened() {
        device.seed(seed);
    }
}

/// Starts to profile every device, including those opened later.
///
/// # Errors
/// [`dml_gpu::Error::Unsupported`] for a device without timestamps; [`Error::DeviceLost`]. Other
/// devices are profiled.
pub fn start_profile() -> Result<(), Error> {
    PROFILING.store(true, Ordering::SeqCst);
    all_opened().map(|device| device.start_profile()).fold(Ok(()), Result::and)
}

/// Waits for every device, ends profiling, and returns all activities since [`start_profile`], for
/// each device in order. A device that was lost meanwhile has none.
pub fn stop_profile() -> Vec<Activity> {
    PROFILING.store(false, Ordering::SeqCst);
    let told = all_opened().map(|device| {
        device.stop_profile().unwrap_or_else(|e| {
            tracing::warn!("the profile of device {} is lost: {e}", device.index());
            Vec::new()
        })
    });
    told.flatten().collect()
}

/// Waits for all work that drivers have, and saves compiled pipelines: to be called before the
/// process ends. Work that no driver has is not run unless a later call waits for it. Devices stay
/// usable.
pub fn shutdown() {
    compiler::finish();
    for device in all_opened() {
        if let Err(e) = device.finish() {
            tracing::debug!("at shutdown: {e}");
        }
        device.save_pipelines();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AdapterKind::{Discrete, Integrated, Software};

    #[test]
    fn software_adapters_are_a_last_resort() {
        assert_eq!(visible(&[Discrete, Integrated, Software], false), [0, 1]);
        assert_eq!(visible(&[Discrete, Integrated, Software], true), [0, 1, 2]);
        assert_eq!(visible(&[Software], false), [0]);
        assert_eq!(visible(&[Software, Discrete], true), [1, 0]);
        assert!(visible(&[], true).is_empty());
    }
}
