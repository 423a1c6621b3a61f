//! Records about an adapter and its driver: short texts by name, such as the result of a self-test
//! or the fastest tile of a product. They are saved on disk with the compiled pipelines.

use crate::backend::Gpu;
use dml_gpu::traits::*;
use dml_gpu::{CacheFile, Journal};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The largest number of records. With it, a file stays below the largest size that is read.
const MAX_RECORDS: usize = 4096;
/// The largest number of bytes of a name, and of a text.
const MAX_BYTES: usize = 120;

/// The records of a device. The first access reads them from disk.
pub(crate) struct AdapterRecords {
    file: Option<CacheFile>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` until the file is read.
    records: Option<BTreeMap<String, String>>,
    unsaved: bool,
}

impl State {
    fn records(&mut self, file: Option<&CacheFile>) -> &mut BTreeMap<String, String> {
        self.records.get_or_insert_with(|| file.map(read).unwrap_or_default())
    }
}

impl AdapterRecords {
    pub(crate) fn of(gpu: &Gpu) -> Self {
        Self::new(gpu.records_file(version()))
    }

    pub(crate) fn new(file: Option<CacheFile>) -> Self {
        Self { file, state: Mutex::default() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.records(self.file.as_ref()).get(name).cloned()
    }

    /// Whether there is a record whose name and text are as `is` says.
    pub(crate) fn any(&self, is: impl Fn(&str, &str) -> bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.records(self.file.as_ref()).iter().any(|(name, text)| is(name, text))
    }

    /// The journal of this process beside the records; `None` if there is no folder for it.
    pub(crate) fn journal(&self) -> Option<Journal> {
        self.file.as_ref().map(CacheFile::journal)
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let records = state.records(self.file.as_ref());
        let is_new = records.get(name).is_none_or(|now| now != text);
        let room = records.len() < MAX_RECORDS || records.contains_key(name);
        if is_new && room && is_valid(name, text) {
            records.insert(name.to_owned(), text.to_owned());
            state.unsaved = true;
        }
    }

    /// Writes the records if there are new ones, together with records that other processes wrote
    /// meanwhile. If the file cannot be written, the next process has to measure again.
    pub(crate) fn save(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = &self.file else { return };
        if !std::mem::take(&mut state.unsaved) {
            return;
        }
        let records = state.records(Some(file));
        for (name, text) in read(file) {
            if records.len() < MAX_RECORDS {
                records.entry(name).or_insert(text);
            }
        }
        let lines: String = records.iter().map(|(name, text)| format!("{name}\t{text}\n")).collect();
        if let Err(error) = file.write(lines.as_bytes()) {
            tracing::debug!("records of the adapter are not saved: {error}");
        }
    }
}

/// The engine's version as a number: kernels of another version differ, and so do the results.
fn version() -> u32 {
    let of = |hash: u32, &byte: &u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    env!("CARGO_PKG_VERSION").as_bytes().iter().fold(0x811c_9dc5, of)
}

fn is_valid(name: &str, text: &str) -> bool {
    [name, text].iter().all(|part| part.len() <= MAX_BYTES && !part.contains(['\t', '\n']))
}

fn read(file: &CacheFile) -> BTreeMap<String, String> {
    let bytes = file.read().unwrap_or_default();
    let lines = str::from_utf8(&bytes).unwrap_or_default().lines();
    let records = lines.filter_map(|line| line.split_once('\t')).filter(|(name, text)| is_valid(name, text));
    records.take(MAX_RECORDS).map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::adapters;
    use dml_gpu::OpenOptions;
    use std::path::PathBuf;

    fn gpu(name: &str) -> (Gpu, PathBuf) {
        let folder = std::env::temp_dir().join(format!("dml-records-{}-{name}", std::process::id()));
        let options = OpenOptions { cache_dir: Some(folder.clone()), ..OpenOptions::default() };
        (adapters().expect("a Vulkan adapter")[0].open_with(&options).expect("it opens"), folder)
    }

    #[test]
    fn records_are_saved_and_joined_with_those_of_other_processes() {
        let (gpu, folder) = gpu("kept");
        let (one, two) = (AdapterRecords::of(&gpu), AdapterRecords::of(&gpu));
        assert_eq!((one.get("a"), two.get("a")), (None, None));
        one.put("a", "1");
        two.put("b", "2");
        one.save();
        two.save();
        let later = AdapterRecords::of(&gpu);
        assert_eq!([later.get("a"), later.get("b")].map(Option::unwrap_or_default), ["1", "2"]);
        later.put("a", "3");
        assert_eq!(later.get("a").as_deref(), Some("3"));
        later.save();
        // The value of "a" is the one that it read: nothing is new.
        one.put("a", "1");
        one.save();
        assert_eq!(AdapterRecords::of(&gpu).get("a").as_deref(), Some("3"));
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn invalid_records_are_not_kept() {
        let (gpu, folder) = gpu("bounded");
        let records = AdapterRecords::of(&gpu);
        records.save();
        assert!(!folder.exists(), "there is nothing to write");
        for (name, text) in [("tab\t", "x"), ("x", "line\n"), (&*"long".repeat(100), "x")] {
            records.put(name, text);
            assert_eq!(records.get(name), None);
        }
        (0..MAX_RECORDS + 10).for_each(|i| records.put(&format!("record {i}"), "x"));
        records.save();
        let found = AdapterRecords::of(&gpu);
        assert_eq!((0..MAX_RECORDS + 10).filter(|i| found.get(&format!("record {i}")).is_some()).count(), MAX_RECORDS);
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn files_of_another_version_and_damaged_files_are_ignored() {
        let (gpu, folder) = gpu("foreign");
        let other = AdapterRecords::new(gpu.records_file(version() ^ 1));
        other.put("a", "other's");
        other.save();
        let records = AdapterRecords::of(&gpu);
        assert_eq!(records.get("a"), None);
        records.put("a", "ours");
        records.save();
        let entry = std::fs::read_dir(&folder).expect("a folder").next().expect("one file").expect("readable");
        let mut bytes = std::fs::read(entry.path()).expect("readable");
        *bytes.last_mut().expect("not empty") ^= 1;
        std::fs::write(entry.path(), bytes).expect("writable");
        assert_eq!(AdapterRecords::of(&gpu).get("a"), None);
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn without_a_folder_records_last_as_long_as_the_process() {
        let records = AdapterRecords::new(None);
        records.put("a", "1");
        records.save();
        assert_eq!(records.get("a").as_deref(), Some("1"));
    }
}
