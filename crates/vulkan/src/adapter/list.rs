//! The adapters of this machine, and their order.

use std::sync::{Arc, OnceLock};

use ash::vk;
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
/// drivers is listed twice.
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
    usable.sort_by(|a, b| a.info().listing_order(b.info()));
    Ok(Found { usable, unsupported })
}
