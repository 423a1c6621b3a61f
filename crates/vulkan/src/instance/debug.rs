//! Messages of the validation layer: into the log, and counted.

use std::borrow::Cow;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use ash::{Entry, ext, vk};

static ERRORS: AtomicU64 = AtomicU64::new(0);

/// The number of errors that the validation layer reported in this process. Always 0 unless
/// `TORCH_DML_VALIDATION=1` was set before the first use of this crate and the layer is installed.
pub fn validation_errors() -> u64 {
    ERRORS.load(Ordering::Relaxed)
}

/// Keeps the debug callback registered.
pub(crate) struct Messenger {
    _functions: ext::debug_utils::Instance,
    _handle: vk::DebugUtilsMessengerEXT,
}

impl Messenger {
    pub(crate) fn new(entry: &Entry, instance: &ash::Instance) -> Option<Self> {
        let functions = ext::debug_utils::Instance::new(entry, instance);
        // SAFETY: the extension was enabled on `instance`; the callback is a plain function.
        match unsafe { functions.create_debug_utils_messenger(&messenger_info(), None) } {
            Ok(handle) => Some(Self { _functions: functions, _handle: handle }),
            Err(error) => {
                tracing::warn!("vkCreateDebugUtilsMessengerEXT failed: {error:?}");
                None
            }
        }
    }
}

pub(crate) fn messenger_info() -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING)
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::GENERAL | vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
        .pfn_user_callback(Some(on_message))
}

unsafe extern "system" fn on_message(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: the layer passes a valid structure, or null.
    let text = match unsafe { data.as_ref() } {
        // SAFETY: `p_message` is null or a NUL-terminated string that lives through the call.
        Some(data) if !data.p_message.is_null() => unsafe { CStr::from_ptr(data.p_message).to_string_lossy() },
        _ => Cow::Borrowed("(no message)"),
    };
    if text.contains("unknown VkStructureType") {
        // The layer is older than the driver, and the mistake is the layer's.
        tracing::debug!("Vulkan validation: {text}");
        return vk::FALSE;
    }
    let error = severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR);
    if error && types.contains(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION) {
        ERRORS.fetch_add(1, Ordering::Relaxed);
        tracing::error!("Vulkan validation: {text}");
    } else if error {
        // The loader reports a driver that fails to load as a general error.
        tracing::warn!("Vulkan: {text}");
    } else {
        tracing::debug!("Vulkan: {text}");
    }
    vk::FALSE
}
