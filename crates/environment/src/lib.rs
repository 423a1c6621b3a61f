//! The environment variables that the crates read, in one table: what each is called, the values that it understands, and what
//! they mean. A value that makes no sense is named in a warning of the log, once, and ignored. Python's side has a table of
//! its own (`python/torch_dml/environment.py`), which names the same values as nonsense in Python's warnings.
//!
//! A new variable is one line here, one there, and one of `docs/environment.md`.

#![forbid(unsafe_code)]

mod parse;

use parse::{flag, folder, one_of, seconds, text, whole_number};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// One variable.
pub struct Variable<T: 'static> {
    name: &'static str,
    parse: fn(&OsStr) -> Option<T>,
    /// What is said of a value that `parse` does not understand.
    expected: &'static str,
    value: OnceLock<Option<T>>,
}

impl<T: Clone> Variable<T> {
    const fn new(name: &'static str, parse: fn(&OsStr) -> Option<T>, expected: &'static str) -> Self {
        Self { name, parse, expected, value: OnceLock::new() }
    }

    /// Its value; `None` if it is unset, empty, or makes no sense. Read once a process.
    pub fn get(&self) -> Option<T> {
        self.value.get_or_init(|| self.read(std::env::var_os(self.name).as_deref())).clone()
    }

    fn read(&self, value: Option<&OsStr>) -> Option<T> {
        let value = value.filter(|value| !value.is_empty())?;
        let understood = (self.parse)(value);
        if understood.is_none() {
            tracing::warn!("{}={} is ignored: {} is understood", self.name, value.to_string_lossy(), self.expected);
        }
        understood
    }
}

/// Whether pointwise launches that follow one another are fused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusionMode {
    /// Never.
    Off,
    /// When a kernel is ready.
    On,
    /// The flush waits for the kernel, the first time already: for graphs and for tests.
    Wait,
}

/// Whether products run on matrix units: of halves, and of float32 where PyTorch is told that they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixUnits {
    /// Never.
    Off,
    /// Where the adapter has them, a software one too.
    On,
    /// As if it had them, computed without: for tests.
    Emulated,
}

/// Whether products that come again and again are timed in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Autotune {
    /// Never.
    Off,
    /// In ways of the same bits.
    On,
    /// In all ways.
    All,
}

/// How recurrent layers go through their steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recurrence {
    /// In loops of workgroups, wherever these fit.
    Loop,
    /// With launches for each step.
    Steps,
}

/// Whether convolutions go through Winograd's transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Winograd {
    /// Never.
    Off,
    /// Where that is estimated to be faster.
    On,
    /// Wherever it is possible: for tests.
    Always,
}

/// Loads Vulkan's validation layer.
pub static VALIDATION: Variable<bool> = Variable::new("TORCH_DML_VALIDATION", flag, "0 or 1");
/// Completion is never read from a marker.
pub static NO_MARKER: Variable<bool> = Variable::new("TORCH_DML_NO_MARKER", flag, "0 or 1");
/// How long a wait goes on without progress before the device counts as lost.
pub static TIMEOUT: Variable<Duration> = Variable::new("TORCH_DML_TIMEOUT_S", seconds, "a number of seconds");
/// Where compiled pipelines are kept.
pub static CACHE_DIR: Variable<PathBuf> = Variable::new("TORCH_DML_CACHE_DIR", folder, "a folder");
/// The adapter to imitate. Any name is understood here: one that there is not is an error, and not ignored.
pub static PROFILE: Variable<String> = Variable::new("TORCH_DML_PROFILE", text, "a name");
/// Known faults of drivers are looked for.
pub static QUIRKS: Variable<bool> = Variable::new("TORCH_DML_QUIRKS", flag, "0 or 1");
/// Where the SPIR-V of every kernel is kept.
pub static SPIRV_DIR: Variable<PathBuf> = Variable::new("TORCH_DML_SPIRV_DIR", folder, "a folder");
/// Every lookup of a kernel builds it again and compares.
pub static CHECK_KERNELS: Variable<bool> = Variable::new("TORCH_DML_CHECK_KERNELS", flag, "0 or 1");
/// Where the HLSL of every kernel is kept.
pub static HLSL_DIR: Variable<PathBuf> = Variable::new("TORCH_DML_HLSL_DIR", folder, "a folder");
/// Software adapters are devices beside others.
pub static SOFTWARE: Variable<bool> = Variable::new("TORCH_DML_SOFTWARE", flag, "0 or 1");
/// How many devices each adapter is.
pub static DEVICES_PER_ADAPTER: Variable<usize> =
    Variable::new("TORCH_DML_DEVICES_PER_ADAPTER", whole_number::<1, 8>, "a number from 1 to 8");
/// Whether a device's thread submits what others enqueue.
pub static SUBMIT_THREAD: Variable<bool> = Variable::new("TORCH_DML_SUBMIT_THREAD", flag, "0 or 1");
/// Millions of operations that one submission does at most.
pub static SUBMIT_WORK: Variable<usize> =
    Variable::new("TORCH_DML_SUBMIT_WORK", whole_number::<1, 999_999_999>, "a number from 1 to 999999999");
/// How many threads compile kernels.
pub static COMPILE_THREADS: Variable<usize> =
    Variable::new("TORCH_DML_COMPILE_THREADS", whole_number::<1, 1024>, "a number from 1 to 1024");
/// See [`FusionMode`].
pub static FUSION: Variable<FusionMode> = Variable::new(
    "TORCH_DML_FUSION",
    |value| one_of(value, &[("0", FusionMode::Off), ("1", FusionMode::On), ("wait", FusionMode::Wait)]),
    "0, 1 or wait",
);
/// See [`MatrixUnits`].
pub static MATRIX_UNITS: Variable<MatrixUnits> = Variable::new(
    "TORCH_DML_MATRIX_UNITS",
    |value| one_of(value, &[("0", MatrixUnits::Off), ("1", MatrixUnits::On), ("emulate", MatrixUnits::Emulated)]),
    "0, 1 or emulate",
);
/// See [`Autotune`].
pub static AUTOTUNE: Variable<Autotune> = Variable::new(
    "TORCH_DML_AUTOTUNE",
    |value| one_of(value, &[("0", Autotune::Off), ("1", Autotune::On), ("all", Autotune::All)]),
    "0, 1 or all",
);
/// Lists of tensors go one tensor after the other.
pub static FOREACH_SINGLE: Variable<bool> =
    Variable::new("TORCH_DML_FOREACH", |value| one_of(value, &[("single", true)]), "single");
/// See [`Recurrence`].
pub static RECURRENCE: Variable<Recurrence> = Variable::new(
    "TORCH_DML_RECURRENCE",
    |value| one_of(value, &[("loop", Recurrence::Loop), ("steps", Recurrence::Steps)]),
    "loop or steps",
);
/// See [`Winograd`].
pub static WINOGRAD: Variable<Winograd> = Variable::new(
    "TORCH_DML_WINOGRAD",
    |value| one_of(value, &[("0", Winograd::Off), ("1", Winograd::On), ("always", Winograd::Always)]),
    "0, 1 or always",
);
/// What is written to the log, as `tracing_subscriber` understands it, which says what it does not.
pub static LOG: Variable<String> = Variable::new("TORCH_DML_LOG", text, "a level, or TARGET=LEVEL,...");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unset_empty_or_nonsense_is_none() {
        for value in ["", "nonsense!", "-1", "1e999", "0x10", "é中"] {
            let value = Some(OsStr::new(value));
            for flag in [&VALIDATION, &NO_MARKER, &QUIRKS, &SOFTWARE, &SUBMIT_THREAD, &CHECK_KERNELS, &FOREACH_SINGLE] {
                assert_eq!(flag.read(value), None, "{}", flag.name);
            }
            assert_eq!((TIMEOUT.read(value), FUSION.read(value)), (None, None));
            assert_eq!((MATRIX_UNITS.read(value), RECURRENCE.read(value)), (None, None));
            assert_eq!((AUTOTUNE.read(value), WINOGRAD.read(value)), (None, None));
            assert_eq!((DEVICES_PER_ADAPTER.read(value), COMPILE_THREADS.read(value)), (None, None));
            assert_eq!(SUBMIT_WORK.read(value), None);
        }
        assert_eq!((CACHE_DIR.read(None), FUSION.read(None), TIMEOUT.read(None)), (None, None, None));
        assert_eq!(CACHE_DIR.read(Some(OsStr::new(""))), None);
    }

    #[test]
    fn what_makes_sense_is_understood() {
        let set = |value: &'static str| Some(OsStr::new(value));
        assert_eq!((SOFTWARE.read(set("1")), SOFTWARE.read(set("0"))), (Some(true), Some(false)));
        assert_eq!((SOFTWARE.read(set("true")), FOREACH_SINGLE.read(set("single"))), (None, Some(true)));
        assert_eq!((FUSION.read(set("0")), FUSION.read(set("wait"))), (Some(FusionMode::Off), Some(FusionMode::Wait)));
        assert_eq!(MATRIX_UNITS.read(set("emulate")), Some(MatrixUnits::Emulated));
        assert_eq!((AUTOTUNE.read(set("0")), AUTOTUNE.read(set("all"))), (Some(Autotune::Off), Some(Autotune::All)));
        assert_eq!(RECURRENCE.read(set("steps")), Some(Recurrence::Steps));
        assert_eq!(
            (WINOGRAD.read(set("0")), WINOGRAD.read(set("always"))),
            (Some(Winograd::Off), Some(Winograd::Always))
        );
        assert_eq!((DEVICES_PER_ADAPTER.read(set(" 2 ")), DEVICES_PER_ADAPTER.read(set("9"))), (Some(2), None));
        assert_eq!((COMPILE_THREADS.read(set("1024")), COMPILE_THREADS.read(set("0"))), (Some(1024), None));
        assert_eq!(TIMEOUT.read(set("0.25")), Some(Duration::from_millis(250)));
        assert_eq!((TIMEOUT.read(set("0")), TIMEOUT.read(set("nan"))), (None, None));
        assert_eq!(PROFILE.read(set("minimum")).as_deref(), Some("minimum"));
    }

    #[test]
    fn a_folder_may_be_one_that_does_not_exist_and_is_no_file() {
        let here = env!("CARGO_MANIFEST_DIR");
        let file = format!("{here}/Cargo.toml");
        assert_eq!(CACHE_DIR.read(Some(OsStr::new(here))), Some(PathBuf::from(here)));
        assert_eq!(CACHE_DIR.read(Some(OsStr::new("not/there"))), Some(PathBuf::from("not/there")));
        assert_eq!((CACHE_DIR.read(Some(OsStr::new(&file))), SPIRV_DIR.read(Some(OsStr::new(&file)))), (None, None));
    }
}
