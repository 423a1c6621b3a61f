//! The adapters of this machine, and their order.

use std::sync::{Arc, OnceLock};

use ash::vk;
use dml_gpu::AdapterInfo;
use dml_gpu::traits::*;

use super::physical::{Adapter, AdapterShared};
use super::profile::Profile;
use super::profiles::PROFILES;
use crate::error::{Error, from_vk};
use crate::instance::Instance;
use crate::vulkan::NAME;

struct Found {
    usable: Vec<Adapter>,
    unsupported: Vec<(String, String)>,
}

fn found() -> Result<&'static Found, Error> {
    static FOUND: OnceLock<Result<Found, Error>> = OnceLock::new();
    FOUND.get_or_init(enumerate).as_ref().map_err(Clone::clone)
}

/// The usable adapters: discrete, integrated, virtual, software; within a kind by memory, largest
/// first. The loader is loaded and the adapters are enumerated once per process. A GPU with two
/// drivers of its own is listed twice; Mesa's driver over Direct3D 12 is left out beside another.
///
/// # Errors
/// [`Error::NoLoader`], [`Error::NoAdapter`], or the driver's error; [`Error::Invalid`] for an
/// unknown `TORCH_DML_PROFILE`.
pub fn adapters() -> Result<&'static [Adapter], Error> {
    let found = found()?;
    if found.usable.is_empty() {
        return Err(Error::NoAdapter { api: NAME });
    }
    Ok(&found.usable)
}

/// The adapters that `TORCH_DML_PROFILE` can imitate: name, and the source of the figures.
pub fn profiles() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROFILES.iter().map(|profile| (profile.name, profile.source))
}

/// The adapters that [`adapters`] leaves out: name and reason.
pub fn unsupported_adapters() -> Vec<(String, String)> {
    found().map_or_else(|_| Vec::new(), |found| found.unsupported.clone())
}

fn enumerate() -> Result<Found, Error> {
    let profile = Profile::chosen()?;
    let instance = Arc::new(Instance::load()?);
    // SAFETY: the instance is valid.
    let devices = match unsafe { instance.raw.enumerate_physical_devices() } {
        Ok(devices) => devices,
        // The answer of some drivers when their hardware is absent.
        Err(vk::Result::ERROR_INITIALIZATION_FAILED) => Vec::new(),
        Err(error) => return Err(from_vk("vkEnumeratePhysicalDevices", error)),
    };
    let mut usable = Vec::new();
    let mut unsupported = Vec::new();
    for device in devices {
        match AdapterShared::inspect(&instance, device, profile) {
            Ok(shared) => usable.push(Adapter { shared: Arc::new(shared) }),
            Err(left_out) => {
                tracing::debug!("adapter {} left out: {}", left_out.0, left_out.1);
                unsupported.push(left_out);
            }
        }
    }
    let infos: Vec<&AdapterInfo> = usable.iter().map(|adapter: &Adapter| adapter.info()).collect();
    let layered = layered_duplicates(&infos);
    let mut is_layered = layered.iter().copied();
    usable.retain(|adapter| {
        let left_out = is_layered.next() == Some(true);
        if left_out {
            unsupported.push((
                format!("{} ({})", adapter.info().name, DOZEN),
                "another driver offers this GPU without Direct3D 12 in between".to_owned(),
            ));
        }
        !left_out
    });
    usable.sort_by(|a, b| a.info().listing_order(b.info()));
    Ok(Found { usable, unsupported })
}

/// The name of Mesa's driver over Direct3D 12, which Windows' and WSL2's systems may have beside
/// the GPU's own.
const DOZEN: &str = "Dozen";

/// Which adapters are GPUs over Direct3D 12 that another driver offers, too.
fn layered_duplicates(infos: &[&AdapterInfo]) -> Vec<bool> {
    let is_layered = |info: &AdapterInfo| info.driver_name == DOZEN;
    let is_same = |a: &AdapterInfo, b: &AdapterInfo| (a.vendor_id, a.device_id) == (b.vendor_id, b.device_id);
    infos
        .iter()
        .map(|info| is_layered(info) && infos.iter().any(|other| !is_layered(other) && is_same(info, other)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dml_gpu::AdapterKind;

    fn info(driver: &str, device_id: u32) -> AdapterInfo {
        AdapterInfo {
            name: "a GPU".to_owned(),
            profile: None,
            vendor: "AMD".to_owned(),
            vendor_id: 0x1002,
            device_id,
            kind: AdapterKind::Discrete,
            driver_name: driver.to_owned(),
            driver_info: String::new(),
            driver_version: 0,
            api_version: (1, 3, 0),
            device_uuid: [0; 16],
            memory_total: 0,
            capabilities: Default::default(),
        }
    }

    #[test]
    fn a_gpu_over_direct3d_is_left_out_beside_its_own_driver() {
        let [own, layered, other] = [info("AMD proprietary driver", 1), info(DOZEN, 1), info(DOZEN, 2)];
        assert_eq!(layered_duplicates(&[&layered, &own, &other]), [true, false, false]);
        assert_eq!(layered_duplicates(&[&layered, &layered]), [false, false]);
    }
}
