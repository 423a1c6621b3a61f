//! The environment variables that the crates read: the name of each, and the type of its value.
//!
//! `variables.toml` is the table of all variables, including Python's and C++'s, with their
//! accepted values and meanings. A value that is not accepted is named in a warning of the log,
//! once, and ignored.
//!
//! A new variable is an entry of `variables.toml` and of its copy in `python/torch_dml`, and a line
//! here if the crates read it.

#![forbid(unsafe_code)]

mod parse;
mod table;

use parse::{flag, folder, one_of, path, seconds, text, whole_number};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// One variable.
pub struct Variable<T: 'static> {
    name: &'static str,
    parse: fn(&OsStr) -> Option<T>,
    value: OnceLock<Option<T>>,
}

impl<T: Clone> Variable<T> {
    const fn new(name: &'static str, parse: fn(&OsStr) -> Option<T>) -> Self {
        Self { name, parse, value: OnceLock::new() }
    }

    /// The value; `None` if it is unset, empty, or not accepted. Read once per process.
    pub fn get(&self) -> Option<T> {
        self.value.get_or_init(|| self.read(std::env::var_os(self.name).as_deref())).clone()
    }

    /// The current value, which the program may have changed since its start; `None` as in
    /// [`get`](Self::get).
    pub fn get_now(&self) -> Option<T> {
        self.read(std::env::var_os(self.name).as_deref())
    }

    fn read(&self, value: Option<&OsStr>) -> Option<T> {
        let value = value.filter(|value| !value.is_empty())?;
        let understood = (self.parse)(value);
        if understood.is_none() {
            let expected = table::values(self.name).unwrap_or("nothing");
            tracing::warn!("{}={} is ignored: {expected} is understood", self.name, value.to_string_lossy());
        }
        understood
    }
}

/// Fusion of consecutive pointwise launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusionMode {
    /// Never.
    Off,
    /// As soon as the kernel is compiled.
    On,
    /// A flush waits for the kernel, even at the first occurrence: for graphs and tests.
    Wait,
}

/// Use of matrix units for products of halves, and of float32 if the program allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixUnits {
    /// Never.
    Off,
    /// On adapters that have them, including software adapters.
    On,
    /// Emulated without them: for tests.
    Emulated,
}

/// Timing of frequent products with several tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Autotune {
    /// Never.
    Off,
    /// With tiles that give the same bits.
    On,
    /// With all tiles.
    All,
}

/// The steps of recurrent layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recurrence {
    /// In loops of workgroups, wherever they fit.
    Loop,
    /// In launches per step.
    Steps,
}

/// Winograd's algorithm for convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Winograd {
    /// Never.
    Off,
    /// Where the estimate says that it is faster.
    On,
    /// Wherever it is possible: for tests.
    Always,
}

/// The statics of the variables, and for tests a function that passes each one's name and a check
/// of values to a callback.
macro_rules! variables {
    ($($(#[$meta:meta])* $id:ident: $type:ty = $name:literal, $parse:expr;)*) => {
        $($(#[$meta])* pub static $id: Variable<$type> = Variable::new($name, $parse);)*

        #[cfg(test)]
        fn each(mut check: impl FnMut(&'static str, &dyn Fn(&str) -> bool)) {
            $(check($id.name, &|value| $id.read(Some(OsStr::new(value))).is_some());)*
        }
    };
}

variables! {
    /// Loads Vulkan's validation layer.
    VALIDATION: bool = "TORCH_DML_VALIDATION", flag;
    /// Completion is never read from a marker.
    NO_MARKER: bool = "TORCH_DML_NO_MARKER", flag;
    /// The driver has no GPU: kernels are compiled, and compute nothing.
    DRY_RUN: bool = "TORCH_DML_DRY_RUN", flag;
    /// How long a wait lasts without progress before the device counts as lost.
    TIMEOUT: Duration = "TORCH_DML_TIMEOUT_S", seconds;
    /// The folder of the disk cache.
    CACHE_DIR: PathBuf = "TORCH_DML_CACHE_DIR", folder;
    /// The adapter to imitate. Any name is accepted here; an unknown one is an error later.
    PROFILE: String = "TORCH_DML_PROFILE", text;
    /// Faults of drivers to imitate, for tests. Any text is accepted here.
    IMITATED_FAULTS: String = "TORCH_DML_IMITATED_FAULTS", text;
    /// Features with known faults of drivers are avoided.
    QUIRKS: bool = "TORCH_DML_QUIRKS", flag;
    /// Every call of an operator is described first, and compared with its description.
    CHECK_INFERENCE: bool = "TORCH_DML_CHECK_INFERENCE", flag;
    /// Every lookup of a kernel builds it again and compares.
    CHECK_KERNELS: bool = "TORCH_DML_CHECK_KERNELS", flag;
    /// The folder that receives the SPIR-V of every kernel.
    SPIRV_DIR: PathBuf = "TORCH_DML_SPIRV_DIR", folder;
    /// The file that receives a line for every compiled pipeline.
    PIPELINE_STATISTICS: PathBuf = "TORCH_DML_PIPELINE_STATISTICS", path;
    /// The folder that receives the machine code of every compiled pipeline.
    PIPELINE_DISASSEMBLY: PathBuf = "TORCH_DML_PIPELINE_DISASSEMBLY", folder;
    /// In a dry run, an earlier file of pipelines: what stands in it is not compiled again.
    KNOWN_PIPELINES: PathBuf = "TORCH_DML_KNOWN_PIPELINES", path;
    /// The folder that receives the HLSL of every kernel.
    HLSL_DIR: PathBuf = "TORCH_DML_HLSL_DIR", folder;
    /// Software adapters are devices in addition to others.
    SOFTWARE: bool = "TORCH_DML_SOFTWARE", flag;
    /// The number of devices per adapter.
    DEVICES_PER_ADAPTER: usize = "TORCH_DML_DEVICES_PER_ADAPTER", whole_number::<1, 8>;
    /// A device's thread submits the work that other threads enqueue.
    SUBMIT_THREAD: bool = "TORCH_DML_SUBMIT_THREAD", flag;
    /// The most operations of one submission, in millions.
    SUBMIT_WORK: usize = "TORCH_DML_SUBMIT_WORK", whole_number::<1, 999_999_999>;
    /// The number of threads that compile kernels.
    COMPILE_THREADS: usize = "TORCH_DML_COMPILE_THREADS", whole_number::<1, 1024>;
    /// See [`FusionMode`].
    FUSION: FusionMode = "TORCH_DML_FUSION",
        |value| one_of(value, &[("0", FusionMode::Off), ("1", FusionMode::On), ("wait", FusionMode::Wait)]);
    /// See [`MatrixUnits`].
    MATRIX_UNITS: MatrixUnits = "TORCH_DML_MATRIX_UNITS",
        |value| one_of(value, &[("0", MatrixUnits::Off), ("1", MatrixUnits::On), ("emulate", MatrixUnits::Emulated)]);
    /// See [`Autotune`].
    AUTOTUNE: Autotune = "TORCH_DML_AUTOTUNE",
        |value| one_of(value, &[("0", Autotune::Off), ("1", Autotune::On), ("all", Autotune::All)]);
    /// Operators on lists launch one kernel per tensor.
    FOREACH_SINGLE: bool = "TORCH_DML_FOREACH", |value| one_of(value, &[("single", true)]);
    /// See [`Recurrence`].
    RECURRENCE: Recurrence = "TORCH_DML_RECURRENCE",
        |value| one_of(value, &[("loop", Recurrence::Loop), ("steps", Recurrence::Steps)]);
    /// See [`Winograd`].
    WINOGRAD: Winograd = "TORCH_DML_WINOGRAD",
        |value| one_of(value, &[("0", Winograd::Off), ("1", Winograd::On), ("always", Winograd::Always)]);
    /// An operator without a kernel is an error.
    FALLBACK_IS_ERROR: bool = "TORCH_DML_FALLBACK", |value| one_of(value, &[("error", true)]);
    /// The filter of the log in the syntax of `tracing_subscriber`, which reports errors in it.
    LOG: String = "TORCH_DML_LOG", text;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The words in `values`, if it consists of words.
    fn words(values: &str) -> Option<Vec<&str>> {
        let words: Vec<&str> = values.split(", ").flat_map(|part| part.split(" or ")).collect();
        words.iter().all(|word| !word.contains(' ')).then_some(words)
    }

    #[test]
    fn variables_understand_what_the_table_says() {
        let here = env!("CARGO_MANIFEST_DIR");
        let file = format!("{here}/Cargo.toml");
        each(|name, understands| {
            let values = table::values(name).unwrap_or_else(|| panic!("{name} is not in the table"));
            let range = values.strip_prefix("a number from ").and_then(|range| range.split_once(" to "));
            if let Some(words) = words(values) {
                for word in &words {
                    assert!(understands(word) && understands(&word.to_uppercase()), "{name}={word}");
                }
                for other in ["0", "1", "2", "all", "wait", "error", "single", "true", "-1", "nonsense!"] {
                    assert_eq!(understands(other), words.contains(&other), "{name}={other}");
                }
            } else if let Some((low, high)) = range {
                let [low, high]: [usize; 2] = [low, high].map(|number| number.parse().unwrap());
                let understood = [low - 1, low, high, high + 1].map(|number| understands(&number.to_string()));
                assert_eq!(understood, [false, true, true, false], "{name}: {values}");
            } else if values == "a folder" {
                assert_eq!([here, "not/there", &*file].map(understands), [true, true, false], "{name}");
            } else if values == "a number of seconds" {
                assert_eq!(["0.25", " 3 ", "0", "nan", "1e999"].map(understands), [true, true, false, false, false]);
            } else {
                assert!(understands("anything"), "{name}: {values}");
            }
            assert!(!understands(""), "{name}");
        });
    }

    #[test]
    fn every_entry_says_everything_and_each_variable_has_one() {
        let mut names: Vec<&str> = Vec::new();
        for entry in table::TABLE.split("[[variable]]").skip(1) {
            let name = table::text(entry, "name").unwrap();
            assert!(name.starts_with("TORCH_DML_"), "{name}");
            for key in ["group", "values", "default", "meaning"] {
                assert!(table::text(entry, key).is_some_and(|text| !text.is_empty()), "{name}: {key}");
            }
            assert_eq!(entry.lines().filter(|line| !line.is_empty()).count(), 5, "{name}");
            names.push(name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_packages_copy_of_the_table_is_the_same() {
        let copy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/torch_dml/variables.toml");
        assert!(
            std::fs::read_to_string(copy).unwrap() == table::TABLE,
            "cp crates/environment/variables.toml python/torch_dml/variables.toml"
        );
    }

    #[test]
    fn what_is_unset_is_none() {
        assert_eq!((CACHE_DIR.read(None), FUSION.read(None), TIMEOUT.read(None)), (None, None, None));
    }

    #[test]
    fn values_mean_what_they_say() {
        let set = |value: &'static str| Some(OsStr::new(value));
        assert_eq!((SOFTWARE.read(set("1")), SOFTWARE.read(set("0"))), (Some(true), Some(false)));
        assert_eq!((FUSION.read(set("0")), FUSION.read(set("wait"))), (Some(FusionMode::Off), Some(FusionMode::Wait)));
        assert_eq!(MATRIX_UNITS.read(set("emulate")), Some(MatrixUnits::Emulated));
        assert_eq!((AUTOTUNE.read(set("0")), AUTOTUNE.read(set("all"))), (Some(Autotune::Off), Some(Autotune::All)));
        assert_eq!(RECURRENCE.read(set("steps")), Some(Recurrence::Steps));
        assert_eq!(
            (WINOGRAD.read(set("0")), WINOGRAD.read(set("always"))),
            (Some(Winograd::Off), Some(Winograd::Always))
        );
        assert_eq!((DEVICES_PER_ADAPTER.read(set(" 2 ")), COMPILE_THREADS.read(set("1024"))), (Some(2), Some(1024)));
        assert_eq!(TIMEOUT.read(set("0.25")), Some(Duration::from_millis(250)));
        assert_eq!(PROFILE.read(set("minimum")).as_deref(), Some("minimum"));
        assert_eq!(CACHE_DIR.read(set("not/there")), Some(PathBuf::from("not/there")));
    }
}
