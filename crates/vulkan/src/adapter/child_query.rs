//! Asks for an adapter's matrix shapes in a child process, where the question may end the process.
//!
//! The host program says how a child is started ([`set_command`]); the child calls [`answer`]. The
//! answer is kept on disk, for one adapter and driver, also when the child died.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use ash::vk;
use dml_environment::TIMEOUT;
use dml_gpu::{CacheFile, FileIdentity, FileKind, folder};

use super::features::Features;
use super::matrix;
use super::properties::uuid_of;
use crate::error::{Error, from_vk};
use crate::imitated_faults;
use crate::instance::Instance;

/// How long a child may take.
const LIMIT: Duration = Duration::from_secs(20);
/// The most bytes of an answer that are read.
const MOST_BYTES: u64 = 1 << 16;
/// The kept answer of a child that gave none.
const NONE: &str = "no answer";

const ANSWERS: FileKind = FileKind { name: "matrices", magic: *b"TDMLMX\x00\x01", version: 0, most_bytes: MOST_BYTES };

/// The program and its first arguments; the last one is added.
static COMMAND: Mutex<Vec<OsString>> = Mutex::new(Vec::new());

/// Sets the command that starts a process which calls [`answer`] with one more argument, and then
/// ends. To be called before the adapters are listed. Without it, what has to be asked for in a
/// child is not asked for.
pub fn set_command(command: Vec<OsString>) {
    *COMMAND.lock().unwrap_or_else(PoisonError::into_inner) = command;
}

/// In a child process: writes the matrix shapes of the adapter of this UUID, in hexadecimal digits,
/// to the standard output.
///
/// # Errors
/// [`Error::Invalid`] if there is no such adapter of Vulkan 1.2 or later; [`Error::NoLoader`]; the
/// driver's error; [`Error::Io`].
pub fn answer(uuid: &str) -> Result<(), Error> {
    match imitated_faults::of_matrix_query() {
        Some("dies") => std::process::abort(),
        Some("hangs") => std::thread::sleep(Duration::from_secs(600)),
        Some("rubbish") => return print("Segmentation fault\n"),
        _ => {}
    }
    let instance = Instance::load()?;
    // SAFETY: the instance is valid.
    let devices = unsafe { instance.raw.enumerate_physical_devices() }
        .map_err(|error| from_vk("vkEnumeratePhysicalDevices", error))?;
    // SAFETY: the device comes from this instance.
    let api = |device| unsafe { instance.raw.get_physical_device_properties(device) }.api_version;
    let is_meant = |device| api(device) >= vk::API_VERSION_1_2 && hexadecimal(&uuid_of(&instance, device)) == uuid;
    let device = devices.into_iter().find(|&device| is_meant(device));
    let device =
        device.ok_or_else(|| Error::Invalid { call: "answer", what: format!("there is no adapter {uuid}") })?;
    let features = Features::query(&instance.raw, device, api(device).min(instance.api))
        .map_err(|error| from_vk("vkGetPhysicalDeviceFeatures2", error))?;
    print(&if features.cooperative_matrix() { matrix::query(&instance, device, text) } else { text(&[]) })
}

fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Error::Io { path: "the standard output".to_owned(), message: error.to_string() })
}

/// The matrices of an adapter, from the file of its answer, or else from a child process. `None` if
/// no child is started, or if it does not answer in time.
pub(super) fn matrices(
    identity: FileIdentity,
    uuid: [u8; vk::UUID_SIZE],
) -> Option<Vec<vk::CooperativeMatrixPropertiesKHR<'static>>> {
    /// The answers of this process, for adapters without a folder.
    static ANSWERED: Mutex<Vec<([u8; vk::UUID_SIZE], String)>> = Mutex::new(Vec::new());
    let mut answered = ANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, answer)) = answered.iter().find(|(of, _)| *of == uuid) {
        return parse(answer);
    }
    let file = folder(None).map(|folder| CacheFile::new(identity, &folder, ANSWERS));
    let kept = file.as_ref().and_then(CacheFile::read).and_then(|bytes| String::from_utf8(bytes).ok());
    let answer = kept.unwrap_or_else(|| asked(&hexadecimal(&uuid), file.as_ref()));
    let matrices = parse(&answer);
    answered.push((uuid, answer));
    matrices
}

/// The answer of a child process, which is written to the file, or [`NONE`].
fn asked(uuid: &str, file: Option<&CacheFile>) -> String {
    let command = COMMAND.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let limit = TIMEOUT.get().map_or(LIMIT, |limit| limit.min(LIMIT));
    let said = match ask(&command, uuid, limit) {
        Ok(said) => said,
        Err(error) => {
            // Another program, or a later start of this one, may ask.
            tracing::warn!("matrix units are not used: no child process asks for their shapes: {error}");
            return NONE.to_owned();
        }
    };
    let answer = if parse(&said).is_some() { said } else { NONE.to_owned() };
    if answer == NONE {
        tracing::warn!("matrix units are not used: the query of their shapes ended its process, or does not end");
    }
    if let Some(Err(error)) = file.map(|file| file.write(answer.as_bytes())) {
        tracing::debug!("the answer of a child process is not kept: {error}");
    }
    answer
}

/// What a child says: an empty text if it dies without a word, or says nothing in time.
///
/// # Errors
/// The child cannot be started.
fn ask(command: &[OsString], question: &str, limit: Duration) -> io::Result<String> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| io::Error::other("the program has set no command"))?;
    let mut command = Command::new(program);
    command.args(arguments).arg(question).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    #[cfg(windows)]
    {
        const NO_WINDOW: u32 = 0x0800_0000;
        std::os::windows::process::CommandExt::creation_flags(&mut command, NO_WINDOW);
    }
    let mut child = command.spawn()?;
    let stdout = child.stdout.take();
    let (send, receive) = mpsc::channel();
    std::thread::Builder::new().name("dml-ask".to_owned()).spawn(move || {
        let mut text = Vec::new();
        let _ = stdout.map(|stdout| stdout.take(MOST_BYTES).read_to_end(&mut text));
        let _ = send.send(text);
    })?;
    let said = receive.recv_timeout(limit).unwrap_or_default();
    // It has answered, or takes too long.
    let _ = child.kill();
    let _ = child.wait();
    Ok(String::from_utf8_lossy(&said).into_owned())
}

const FIRST_LINE: &str = "matrix shapes";
const LAST_LINE: &str = "end";

/// A line for each shape: its sizes, the types of its parts, whether it saturates, its scope, all
/// as Vulkan's numbers.
fn text(matrices: &[vk::CooperativeMatrixPropertiesKHR<'_>]) -> String {
    let mut text = format!("{FIRST_LINE}\n");
    for p in matrices {
        let types = [p.a_type, p.b_type, p.c_type, p.result_type].map(vk::ComponentTypeKHR::as_raw);
        let [a, b, c, result] = types;
        let saturates = u32::from(p.saturating_accumulation != vk::FALSE);
        let scope = p.scope.as_raw();
        let _ = writeln!(text, "{} {} {} {a} {b} {c} {result} {saturates} {scope}", p.m_size, p.n_size, p.k_size);
    }
    text + LAST_LINE + "\n"
}

/// The shapes of a [text]; `None` for any other text.
fn parse(text: &str) -> Option<Vec<vk::CooperativeMatrixPropertiesKHR<'static>>> {
    let lines = text.strip_prefix(FIRST_LINE)?.trim_end().strip_suffix(LAST_LINE)?.trim();
    let of_line = |line: &str| {
        let numbers: Vec<i32> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [m, n, k, a, b, c, result, saturates, scope] = numbers[..] else { return None };
        let size = |number: i32| u32::try_from(number).ok();
        Some(
            vk::CooperativeMatrixPropertiesKHR::default()
                .m_size(size(m)?)
                .n_size(size(n)?)
                .k_size(size(k)?)
                .a_type(vk::ComponentTypeKHR::from_raw(a))
                .b_type(vk::ComponentTypeKHR::from_raw(b))
                .c_type(vk::ComponentTypeKHR::from_raw(c))
                .result_type(vk::ComponentTypeKHR::from_raw(result))
                .saturating_accumulation(saturates != 0)
                .scope(vk::ScopeKHR::from_raw(scope)),
        )
    };
    lines.lines().map(of_line).collect()
}

fn hexadecimal(uuid: &[u8]) -> String {
    uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn shape(k: u32) -> vk::CooperativeMatrixPropertiesKHR<'static> {
        vk::CooperativeMatrixPropertiesKHR::default()
            .m_size(16)
            .n_size(8)
            .k_size(k)
            .a_type(vk::ComponentTypeKHR::FLOAT16)
            .result_type(vk::ComponentTypeKHR::FLOAT32)
            .saturating_accumulation(k == 32)
            .scope(vk::ScopeKHR::SUBGROUP)
    }

    #[test]
    fn shapes_are_read_as_they_were_written() {
        for count in 0..3 {
            let written = text(&[shape(16), shape(32)][..count]);
            let read = parse(&written).expect("an answer");
            assert_eq!((read.len(), text(&read)), (count, written));
        }
    }

    #[test]
    fn other_texts_are_no_answers() {
        let whole = text(&[shape(16)]);
        for length in 0..whole.len() - 1 {
            assert!(parse(&whole[..length]).is_none(), "{length} bytes");
        }
        for other in ["", NONE, "Segmentation fault", "matrix shapes\n1 2 3\nend\n", "matrix shapes\na\nend"] {
            assert!(parse(other).is_none(), "{other}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn children_that_die_or_hang_are_not_waited_for() {
        let shell = |script: &str| ["/bin/sh", "-c", script, "sh"].map(OsString::from);
        let ask = |script: &str, limit| ask(&shell(script), "uuid", limit).expect("it starts");
        assert_eq!(ask("echo $1", LIMIT), "uuid\n");
        assert_eq!(ask("kill -9 $$", LIMIT), "");
        let start = Instant::now();
        assert_eq!(ask("exec sleep 60", Duration::from_millis(200)), "");
        assert!(start.elapsed() < LIMIT);
        assert!(super::ask(&[], "uuid", LIMIT).is_err());
        assert!(super::ask(&["/not/there".into()], "uuid", LIMIT).is_err());
    }
}
