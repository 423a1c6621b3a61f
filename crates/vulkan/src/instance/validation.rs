//! The Khronos validation layer: switched on by `TORCH_DML_VALIDATION=1`, with synchronisation validation. What it reports
//! is printed, counted by kind, and keeps the process from ending well: no test passes over it.

use std::ffi::{CStr, c_int, c_void};
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ash::{Entry, ext, vk};
use dml_environment::VALIDATION;
use dml_gpu::ValidationMessage;

use crate::error::{Error, from_vk};

pub(crate) const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// The status of a process that made mistakes, whatever it wanted to end with.
const EXIT_STATUS: c_int = 86;

static MESSAGES: Mutex<Vec<ValidationMessage>> = Mutex::new(Vec::new());

fn messages() -> MutexGuard<'static, Vec<ValidationMessage>> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the validation layer reported in this process so far, by kind. Always empty unless `TORCH_DML_VALIDATION=1` was
/// set before the first use of this crate.
pub fn validation_messages() -> Vec<ValidationMessage> {
    messages().clone()
}

/// The number of errors that the validation layer reported in this process so far.
pub fn validation_errors() -> u64 {
    messages().iter().map(|message| message.count).sum()
}

/// Whether the layer was asked for.
///
/// # Errors
/// [`Error::NoValidation`] if it was and is not installed: a check that silently checks nothing is worse than none.
pub(crate) fn wanted(entry: &Entry) -> Result<bool, Error> {
    if VALIDATION.get() != Some(true) {
        return Ok(false);
    }
    // SAFETY: `entry` is a loaded Vulkan library.
    let layers = unsafe { entry.enumerate_instance_layer_properties() }
        .map_err(|e| from_vk("vkEnumerateInstanceLayerProperties", e))?;
    if layers.iter().any(|layer| layer.layer_name_as_c_str() == Ok(LAYER)) {
        Ok(true)
    } else {
        Err(Error::NoValidation { layer: "Vulkan's validation layer", install: "Debian: vulkan-validationlayers" })
    }
}

/// What an instance needs for the layer to look at synchronisation too. Chained to its creation.
pub(crate) fn features() -> vk::ValidationFeaturesEXT<'static> {
    vk::ValidationFeaturesEXT::default()
        .enabled_validation_features(&[vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION])
}

/// Keeps the callback registered.
pub(crate) struct Messenger {
    _functions: ext::debug_utils::Instance,
    _handle: vk::DebugUtilsMessengerEXT,
}

impl Messenger {
    pub(crate) fn new(entry: &Entry, instance: &ash::Instance) -> Result<Self, Error> {
        let functions = ext::debug_utils::Instance::new(entry, instance);
        // SAFETY: `instance` was made with this extension, by this entry. The callback keeps to its type's contract; the
        // messenger is never destroyed, as the instance.
        let handle = unsafe { functions.create_debug_utils_messenger(&messenger_info(), None) }
            .map_err(|e| from_vk("vkCreateDebugUtilsMessengerEXT", e))?;
        Ok(Self { _functions: functions, _handle: handle })
    }
}

pub(crate) fn messenger_info() -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING)
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::GENERAL | vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
        .pfn_user_callback(Some(on_message))
}

/// What the layer calls, from any thread, in the middle of a Vulkan call: it calls none itself. A panic would end the process.
///
/// # Safety
/// `data` is null or a structure whose strings are null or NUL-terminated, for the time of the call.
unsafe extern "system" fn on_message(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: the caller's promise, as the extension makes it.
    let data = unsafe { data.as_ref() };
    // SAFETY: as above, for the strings.
    let id = data.map_or_else(String::new, |data| unsafe { text_of(data.p_message_id_name) });
    // SAFETY: as above.
    let text = data.map_or_else(String::new, |data| unsafe { text_of(data.p_message) });
    let error = severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR);
    if text.contains("unknown VkStructureType") {
        // The layer is older than the driver, and the mistake is the layer's.
        tracing::debug!("Vulkan validation: {text}");
    } else if error && types.contains(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION) {
        count(id, text);
    } else if error {
        // The loader reports a driver that fails to load as a general error.
        tracing::warn!("Vulkan: {text}");
    } else {
        tracing::debug!("Vulkan: {text}");
    }
    vk::FALSE
}

/// # Safety
/// `text` is null or a NUL-terminated string.
unsafe fn text_of(text: *const std::ffi::c_char) -> String {
    // SAFETY: not null, and the caller's promise.
    if text.is_null() { String::new() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() }
}

/// Counts a message; the first of its kind is printed.
fn count(id: String, text: String) {
    static AT_EXIT: Once = Once::new();
    // SAFETY: `atexit` is the C library's; `end_badly` takes nothing, and is there until the process ends: libraries that
    // Python loads are not unloaded, and of one that is, the C library runs the handlers before.
    AT_EXIT.call_once(|| unsafe {
        atexit(end_badly);
    });
    let mut messages = messages();
    match messages.iter_mut().find(|message| message.id == id) {
        Some(message) => message.count += 1,
        None => {
            // Not in the log, which may be off, and not by `eprintln`, which a Rust test that passes swallows.
            let thread = std::thread::current();
            let _ = writeln!(io::stderr(), "Vulkan validation [{}]: {text}", thread.name().unwrap_or("unnamed thread"));
            messages.push(ValidationMessage { id, text, count: 1 });
        }
    }
}

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
    fn fflush(stream: *mut c_void) -> c_int;
    fn _exit(status: c_int) -> !;
}

/// Ends a process in which the layer reported errors with a status that no caller takes for success.
extern "C" fn end_badly() {
    let kinds: Vec<_> = messages().iter().map(|message| format!("{} {}", message.count, message.id)).collect();
    let _ = writeln!(io::stderr(), "Vulkan's validation layer reported errors: {}", kinds.join(", "));
    // SAFETY: both are the C library's. Null flushes all streams; then the process ends, without the handlers that were
    // registered earlier.
    unsafe {
        fflush(std::ptr::null_mut());
        _exit(EXIT_STATUS)
    }
}
