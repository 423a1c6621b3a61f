//! The devices of the process.

use crate::compiler;
use crate::device::Device;
use crate::error::Error;
use crate::profile;
use dml_vulkan::{Adapter, AdapterInfo, AdapterKind, adapters};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

struct Slot {
    adapter: &'static Adapter,
    device: OnceLock<Arc<Device>>,
    opening: Mutex<()>,
}

fn slots() -> Result<&'static [Slot], Error> {
    static SLOTS: OnceLock<Vec<Slot>> = OnceLock::new();
    if let Some(slots) = SLOTS.get() {
        return Ok(slots);
    }
    let all = adapters()?;
    let wanted = std::env::var("TORCH_DML_SOFTWARE").is_ok_and(|v| v == "1");
    let kinds: Vec<AdapterKind> = all.iter().map(|a| a.info().kind).collect();
    Ok(SLOTS.get_or_init(|| {
        visible(&kinds, wanted)
            .into_iter()
            .map(|i| Slot { adapter: &all[i], device: OnceLock::new(), opening: Mutex::new(()) })
            .collect()
    }))
}

/// Which adapters are devices: software ones only when there is nothing else, or when wanted, and then last.
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

/// How many devices there are: every adapter in [`dml_vulkan::adapters`]' order, software adapters only
/// when there is nothing else, or when `TORCH_DML_SOFTWARE=1`, and then last.
///
/// # Errors
/// [`dml_vulkan::Error::NoLoader`] and [`dml_vulkan::Error::NoAdapter`] when there is none.
pub fn device_count() -> Result<usize, Error> {
    Ok(slots()?.len())
}

/// What is known of a device, without opening it.
///
/// # Errors
/// [`Error::InvalidDevice`]; as [`device_count`].
pub fn adapter_info(index: usize) -> Result<&'static AdapterInfo, Error> {
    Ok(slot(index)?.adapter.info())
}

/// The device of an index. Opens it the first time; it stays open.
///
/// # Errors
/// [`Error::InvalidDevice`]; what the driver said when opening, and the next call tries again.
pub fn device(index: usize) -> Result<&'static Arc<Device>, Error> {
    let slot = slot(index)?;
    if let Some(device) = slot.device.get() {
        return Ok(device);
    }
    let _one_at_a_time = slot.opening.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = slot.device.get() {
        return Ok(device);
    }
    let device = Arc::new(Device::open(slot.adapter, index)?);
    if profile::wanted()
        && let Err(e) = device.start_profile()
    {
        tracing::warn!("device {index} is not profiled: {e}");
    }
    Ok(slot.device.get_or_init(|| device))
}

/// The device of an index, if it is open.
pub fn opened(index: usize) -> Option<&'static Arc<Device>> {
    slot(index).ok()?.device.get()
}

/// The devices that are open.
pub(crate) fn all_opened() -> impl Iterator<Item = &'static Arc<Device>> {
    (0..device_count().unwrap_or(0)).filter_map(opened)
}

/// Finishes all work and saves compiled pipelines: to be called before the process ends. Devices stay usable.
pub fn shutdown() {
    compiler::finish();
    for device in all_opened() {
        if let Err(e) = device.synchronize() {
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
