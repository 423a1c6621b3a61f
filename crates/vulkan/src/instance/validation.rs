//! The Khronos validation layer: `TORCH_DML_VALIDATION=1` enables it, with synchronisation
//! validation. Its messages are printed, counted by kind, and make the process end with an error,
//! so that no test can miss them.

use std::ffi::{CStr, c_int, c_void};
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ash::{Entry, ext, vk};
use dml_environment::VALIDATION;
use dml_gpu::ValidationMessage;

use crate::error::{Error, from_vk};

pub(crate) const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// The exit status of a process with validation errors, whatever status it asked for.
const EXIT_STATUS: c_int = 86;

static MESSAGES: Mutex<Vec<ValidationMessage>> = Mutex::new(Vec::new());

fn messages() -> MutexGuard<'static, Vec<ValidationMessage>> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The messages of the validation layer in this process so far, by kind. Always empty unless
/// `TORCH_DML_VALIDATION=1` was set before the first use of this crate.
pub fn validation_messages() -> Vec<ValidationMessage> {
    messages().clone()
}

/// The number of errors that the validation layer has reported in this process.
pub fn validation_errors() -> u64 {
    messages().iter().map(|message| message.count).sum()
}

/// Whether the layer was asked for.
///
/// # Errors
/// [`Error::NoValidation`] if the layer is not installed: a check that silently checks nothing is
/// worse than none.
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

/// The option of an instance that enables the check of synchronisation. Chained to its creation.
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
        // SAFETY: `instance` was made with this extension, by this entry. The callback follows its
        // type's contract. The messenger is never destroyed, and neither is the instance.
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

/// The layer's callback. It may run on any thread, in the middle of a Vulkan call, so it makes no
/// Vulkan call itself. A panic would end the process.
///
/// # Safety
/// `data` is null or a structure whose strings are null or NUL-terminated, for the time of the
/// call.
unsafe extern "system" fn on_message(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: the caller's promise, which the extension makes.
    let data = unsafe { data.as_ref() };
    // SAFETY: as above, for the strings.
    let id = data.map_or_else(String::new, |data| unsafe { text_of(data.p_message_id_name) });
    // SAFETY: as above.
    let text = data.map_or_else(String::new, |data| unsafe { text_of(data.p_message) });
    let error = severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR);
    if text.contains("unknown VkStructureType") {
        // A fault of the layer, which is older than the driver.
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
    // SAFETY: `atexit` is a function of the C library. `end_badly` takes nothing and lives until
    // the process ends: Python does not unload libraries, and the C library runs the handlers of an
    // unloaded library first.
    AT_EXIT.call_once(|| unsafe {
        atexit(end_badly);
    });
    let mut messages = messages();
    match messages.iter_mut().find(|message| message.id == id) {
        Some(message) => message.count += 1,
        None => {
            // Not through the log, which may be off, and not through `eprintln`, whose output a
            // passing Rust test discards.
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

/// Ends a process with validation errors with a status that no caller takes for success.
extern "C" fn end_badly() {
    let kinds: Vec<_> = messages().iter().map(|message| format!("{} {}", message.count, message.id)).collect();
    let _ = writeln!(io::stderr(), "Vulkan's validation layer reported errors: {}", kinds.join(", "));
    // SAFETY: both are functions of the C library. Null flushes all streams; then the process ends,
    // without the handlers that were registered earlier.
    unsafe {
        fflush(std::ptr::null_mut());
        _exit(EXIT_STATUS)
    }
}
