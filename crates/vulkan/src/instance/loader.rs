//! The Vulkan loader and the one instance of the process.

use std::ffi::CStr;

use ash::{Entry, ext, khr, vk};

use super::validation::{self, Messenger};
use crate::error::{Error, from_vk};
use crate::vulkan::NAME;

/// The loaded Vulkan library and an instance. Created once, never destroyed: a driver's worker
/// threads may outlive `main`.
pub(crate) struct Instance {
    pub(crate) raw: ash::Instance,
    pub(crate) entry: Entry,
    /// The highest version of Vulkan that may be used, even on devices with a later version.
    pub(crate) api: u32,
    _messenger: Option<Messenger>,
}

/// The name that people use for the library.
const LOADER: &str = "Vulkan loader";

impl Instance {
    pub(crate) fn load() -> Result<Self, Error> {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        super::drivers::keep_from_foreign_llvm();
        // SAFETY: loading the system's Vulkan loader runs its initialisers, which is its purpose,
        // and it has the functions of the specification. It is never unloaded: `entry` keeps it,
        // and the adapters, which live as long as the process, keep the instance.
        let entry =
            unsafe { Entry::load() }.map_err(|error| Error::NoLoader { loader: LOADER, message: error.to_string() })?;
        // SAFETY: `entry` is a loaded Vulkan library.
        let version = unsafe { entry.try_enumerate_instance_version() }
            .map_err(|e| from_vk("vkEnumerateInstanceVersion", e))?
            .unwrap_or(vk::API_VERSION_1_0);
        if version < vk::API_VERSION_1_2 {
            return Err(Error::NoLoader {
                loader: LOADER,
                message: format!(
                    "the Vulkan loader is of version {}.{}, and 1.2 is needed",
                    vk::api_version_major(version),
                    vk::api_version_minor(version)
                ),
            });
        }

        let api = version.min(vk::API_VERSION_1_3);
        let extensions = instance_extensions(&entry)?;
        let has = |name: &CStr| extensions.iter().any(|e| e.as_c_str() == name);
        let validation = validation::wanted(&entry)?;

        let mut names = Vec::new();
        let mut flags = vk::InstanceCreateFlags::empty();
        if has(khr::portability_enumeration::NAME) {
            names.push(khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }
        let mut layers = Vec::new();
        if validation {
            layers.push(validation::LAYER.as_ptr());
            // The layer itself offers both if the loader does not.
            names.extend([ext::debug_utils::NAME.as_ptr(), ext::validation_features::NAME.as_ptr()]);
        }
        let application =
            vk::ApplicationInfo::default().application_name(c"torch-dml").engine_name(c"torch-dml").api_version(api);
        let mut messenger_info = validation::messenger_info();
        let mut features = validation::features();
        let mut info = vk::InstanceCreateInfo::default()
            .flags(flags)
            .application_info(&application)
            .enabled_extension_names(&names)
            .enabled_layer_names(&layers);
        if validation {
            info = info.push_next(&mut messenger_info).push_next(&mut features);
        }
        // SAFETY: `info` and everything it points to live through the call. The loader or the layer
        // offers the extensions, and the loader the layer; the messenger's callback may be called
        // at any time, from any thread.
        let raw = unsafe { entry.create_instance(&info, None) }.map_err(|e| match e {
            // The loader's answer when no driver is installed.
            vk::Result::ERROR_INCOMPATIBLE_DRIVER => Error::NoAdapter { api: NAME },
            other => from_vk("vkCreateInstance", other),
        })?;
        let messenger = validation.then(|| Messenger::new(&entry, &raw)).transpose()?;
        Ok(Self { raw, entry, api, _messenger: messenger })
    }
}

fn instance_extensions(entry: &Entry) -> Result<Vec<std::ffi::CString>, Error> {
    // SAFETY: `entry` is a loaded Vulkan library.
    let found = unsafe { entry.enumerate_instance_extension_properties(None) }
        .map_err(|e| from_vk("vkEnumerateInstanceExtensionProperties", e))?;
    Ok(found.iter().filter_map(|p| p.extension_name_as_c_str().ok()).map(CStr::to_owned).collect())
}
