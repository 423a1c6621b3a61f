//! The parsers of values, one for each kind.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// 0 or 1.
pub(crate) fn flag(value: &OsStr) -> Option<bool> {
    one_of(value, &[("0", false), ("1", true)])
}

/// One of some words, in upper or lower case.
pub(crate) fn one_of<T: Copy>(value: &OsStr, words: &[(&str, T)]) -> Option<T> {
    let value = value.to_str()?.trim();
    words.iter().find(|(word, _)| value.eq_ignore_ascii_case(word)).map(|&(_, meaning)| meaning)
}

/// A number from `LOW` to `HIGH`.
pub(crate) fn whole_number<const LOW: usize, const HIGH: usize>(value: &OsStr) -> Option<usize> {
    value.to_str()?.trim().parse().ok().filter(|number| (LOW..=HIGH).contains(number))
}

/// Seconds above 0, and less than 30 years.
pub(crate) fn seconds(value: &OsStr) -> Option<Duration> {
    let seconds = value.to_str()?.trim().parse::<f64>().ok().filter(|&seconds| seconds > 0.0 && seconds < 1e9)?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// A folder, or a path where one can be made.
pub(crate) fn folder(value: &OsStr) -> Option<PathBuf> {
    let path = Path::new(value);
    (path.is_dir() || path.symlink_metadata().is_err()).then(|| path.to_path_buf())
}

/// Any path.
pub(crate) fn path(value: &OsStr) -> Option<PathBuf> {
    Some(PathBuf::from(value))
}

/// Any text.
pub(crate) fn text(value: &OsStr) -> Option<String> {
    Some(value.to_string_lossy().into_owned())
}
