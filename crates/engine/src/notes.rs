//! What was found out about an adapter and its driver, kept on disk beside the compiled pipelines: short texts by name.

use crate::backend::Gpu;
use dml_gpu::KeptFile;
use dml_gpu::traits::*;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// More notes than this are not kept: a file stays below the bytes that are read of one.
const MOST: usize = 4096;
/// A name or a text that is longer is not kept.
const LONGEST: usize = 120;

/// The notes of a device. They are read when they are first asked for.
pub(crate) struct Notes {
    file: Option<KeptFile>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` until they are read.
    known: Option<BTreeMap<String, String>>,
    unsaved: bool,
}

impl State {
    fn known(&mut self, file: Option<&KeptFile>) -> &mut BTreeMap<String, String> {
        self.known.get_or_insert_with(|| file.map(read).unwrap_or_default())
    }
}

impl Notes {
    pub(crate) fn of(gpu: &Gpu) -> Notes {
        Notes::new(gpu.notes_file(version()))
    }

    fn new(file: Option<KeptFile>) -> Notes {
        Notes { file, state: Mutex::default() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.known(self.file.as_ref()).get(name).cloned()
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let known = state.known(self.file.as_ref());
        let is_new = known.get(name).is_none_or(|now| now != text);
        let room = known.len() < MOST || known.contains_key(name);
        if is_new && room && is_note(name, text) {
            known.insert(name.to_owned(), text.to_owned());
            state.unsaved = true;
        }
    }

    /// Writes them if there are new ones, together with those that another process wrote meanwhile. Where that cannot be, the
    /// next process finds out again.
    pub(crate) fn save(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = &self.file else { return };
        if !std::mem::take(&mut state.unsaved) {
            return;
        }
        let known = state.known(Some(file));
        for (name, text) in read(file) {
            if known.len() < MOST {
                known.entry(name).or_insert(text);
            }
        }
        let lines: String = known.iter().map(|(name, text)| format!("{name}\t{text}\n")).collect();
        if let Err(error) = file.write(lines.as_bytes()) {
            tracing::debug!("notes are not saved: {error}");
        }
    }
}

/// The engine's version, as a number: another one's kernels differ.
fn version() -> u32 {
    let of = |hash: u32, &byte: &u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    env!("CARGO_PKG_VERSION").as_bytes().iter().fold(0x811c_9dc5, of)
}

fn is_note(name: &str, text: &str) -> bool {
    [name, text].iter().all(|part| part.len() <= LONGEST && !part.contains(['\t', '\n']))
}

fn read(file: &KeptFile) -> BTreeMap<String, String> {
    let bytes = file.read().unwrap_or_default();
    let lines = str::from_utf8(&bytes).unwrap_or_default().lines();
    let notes = lines.filter_map(|line| line.split_once('\t')).filter(|(name, text)| is_note(name, text));
    notes.take(MOST).map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::adapters;
    use dml_gpu::OpenOptions;
    use std::path::PathBuf;

    fn gpu(name: &str) -> (Gpu, PathBuf) {
        let folder = std::env::temp_dir().join(format!("dml-notes-{}-{name}", std::process::id()));
        let options = OpenOptions { cache_dir: Some(folder.clone()), ..OpenOptions::default() };
        (adapters().expect("a Vulkan adapter")[0].open_with(&options).expect("it opens"), folder)
    }

    #[test]
    fn notes_are_kept_and_joined_with_those_of_others() {
        let (gpu, folder) = gpu("kept");
        let (one, two) = (Notes::of(&gpu), Notes::of(&gpu));
        assert_eq!((one.get("a"), two.get("a")), (None, None));
        one.put("a", "1");
        two.put("b", "2");
        one.save();
        two.save();
        let later = Notes::of(&gpu);
        assert_eq!([later.get("a"), later.get("b")].map(Option::unwrap_or_default), ["1", "2"]);
        later.put("a", "3");
        assert_eq!(later.get("a").as_deref(), Some("3"));
        later.save();
        // It knew "a" before, and has nothing new.
        one.put("a", "1");
        one.save();
        assert_eq!(Notes::of(&gpu).get("a").as_deref(), Some("3"));
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn what_is_no_note_is_not_kept() {
        let (gpu, folder) = gpu("bounded");
        let notes = Notes::of(&gpu);
        notes.save();
        assert!(!folder.exists(), "there is nothing to write");
        for (name, text) in [("tab\t", "x"), ("x", "line\n"), (&*"long".repeat(100), "x")] {
            notes.put(name, text);
            assert_eq!(notes.get(name), None);
        }
        (0..MOST + 10).for_each(|i| notes.put(&format!("note {i}"), "x"));
        notes.save();
        let found = Notes::of(&gpu);
        assert_eq!((0..MOST + 10).filter(|i| found.get(&format!("note {i}")).is_some()).count(), MOST);
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn another_version_and_damage_are_ignored() {
        let (gpu, folder) = gpu("foreign");
        let other = Notes::new(gpu.notes_file(version() ^ 1));
        other.put("a", "other's");
        other.save();
        let notes = Notes::of(&gpu);
        assert_eq!(notes.get("a"), None);
        notes.put("a", "ours");
        notes.save();
        let entry = std::fs::read_dir(&folder).expect("a folder").next().expect("one file").expect("readable");
        let mut bytes = std::fs::read(entry.path()).expect("readable");
        *bytes.last_mut().expect("not empty") ^= 1;
        std::fs::write(entry.path(), bytes).expect("writable");
        assert_eq!(Notes::of(&gpu).get("a"), None);
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn without_a_folder_they_are_of_the_process() {
        let notes = Notes::new(None);
        notes.put("a", "1");
        notes.save();
        assert_eq!(notes.get("a").as_deref(), Some("1"));
    }
}
