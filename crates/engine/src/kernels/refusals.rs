//! Kernels that a driver refuses to compile, or whose compilation ends the process.
//!
//! Some drivers fail on valid kernels, and compile them without optimisation, or with smaller
//! workgroups. What was found is noted in the [records](crate::adapter_records) of the adapter and
//! driver under the kernel's id, and no later process asks the driver for it again.
//!
//! A process that dies while the driver compiles leaves its journal, with a line for each
//! compilation that began and for each that ended. The next process that opens the device reads it.
//! The user may have ended the process, so a kernel counts as refused when its compilation was left
//! unfinished twice.

use crate::adapter_records::AdapterRecords;
use crate::backend::Gpu;
use crate::kernels::id::KernelId;
use dml_gpu::Journal;
use dml_gpu::traits::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a driver made of a kernel; the better the less.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is compiled as usual.
    Optimised,
    /// It could only be compiled without optimisation, and is slow.
    Unoptimised,
    /// As [`Unoptimised`](Self::Unoptimised), with workgroups of half the invocations.
    Halved,
    /// It could not be compiled.
    Refused,
}

impl Verdict {
    /// The form of the kernel, in words that follow its name.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Optimised => "",
            Self::Unoptimised => ", even without optimisation",
            Self::Halved | Self::Refused => ", even in halves of its workgroups",
        }
    }
}

/// What is known of a kernel that has not always been compiled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Note {
    /// The best that may be expected.
    verdict: Verdict,
    /// Whether a compilation with that expectation was left unfinished once.
    unfinished: bool,
}

impl Note {
    const NONE: Note = Note { verdict: Verdict::Optimised, unfinished: false };

    const ALL: [(Note, &'static str); 7] = [
        (Note::NONE, "compiled"),
        (Note { verdict: Verdict::Optimised, unfinished: true }, "unfinished 1"),
        (Note { verdict: Verdict::Unoptimised, unfinished: false }, UNOPTIMISED),
        (Note { verdict: Verdict::Unoptimised, unfinished: true }, "unoptimised, unfinished 1"),
        (Note { verdict: Verdict::Halved, unfinished: false }, HALVED),
        (Note { verdict: Verdict::Halved, unfinished: true }, "halved, unfinished 1"),
        (Note { verdict: Verdict::Refused, unfinished: false }, REFUSED),
    ];

    fn text(self) -> &'static str {
        Self::ALL.into_iter().find(|(note, _)| *note == self).map_or(REFUSED, |(_, text)| text)
    }

    fn of_text(text: &str) -> Self {
        Self::ALL.into_iter().find(|(_, of)| *of == text).map_or(Self::NONE, |(note, _)| note)
    }

    /// After one more compilation that was left unfinished, with this expectation.
    fn after_unfinished(self, expected: Verdict) -> Self {
        match (self.verdict.cmp(&expected), self.unfinished) {
            (std::cmp::Ordering::Greater, _) => self,
            (std::cmp::Ordering::Equal, true) => Self { verdict: next(expected), unfinished: false },
            _ => Self { verdict: expected, unfinished: true },
        }
    }
}

const UNOPTIMISED: &str = "unoptimised";
const HALVED: &str = "halved";
const REFUSED: &str = "refused";
/// The first word of the names of records.
const PREFIX: &str = "pipeline ";

fn name(id: impl std::fmt::Display) -> String {
    format!("{PREFIX}{id}")
}

/// The next worse verdict.
fn next(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Optimised => Verdict::Unoptimised,
        Verdict::Unoptimised => Verdict::Halved,
        Verdict::Halved | Verdict::Refused => Verdict::Refused,
    }
}

/// What the driver of one device has refused, in this process and in earlier ones.
pub(crate) struct Refusals {
    records: Arc<AdapterRecords>,
    journal: Option<Journal>,
    any: AtomicBool,
}

impl Refusals {
    /// The refusals of a device, whose records they are noted in. Reads what ended processes left.
    pub(crate) fn new(gpu: &Gpu, records: Arc<AdapterRecords>) -> Self {
        let journal = records.journal();
        for left in journal.iter().flat_map(Journal::take_abandoned) {
            note_unfinished(&records, &left);
        }
        let refused =
            |name: &str, text: &str| name.starts_with(PREFIX) && Note::of_text(text).verdict != Verdict::Optimised;
        let any = gpu.info().capabilities.refuses_kernels || records.any(refused);
        Self { records, journal, any: AtomicBool::new(any) }
    }

    /// Whether the driver has refused a kernel, or is known to. One load.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// The best verdict that is to be expected for a kernel.
    pub(super) fn expected(&self, id: KernelId) -> Verdict {
        self.note(id).verdict
    }

    fn note(&self, id: KernelId) -> Note {
        self.records.get(&name(id)).map_or(Note::NONE, |text| Note::of_text(&text))
    }

    /// Runs a compilation with an expectation. If it ends the process, later processes know.
    pub(super) fn watched<T>(&self, id: KernelId, expected: Verdict, compile: impl FnOnce() -> T) -> T {
        let line = |word: &str| {
            if let Some(journal) = &self.journal {
                journal.append(&format!("{word} {id} {}", word_of(expected)));
            }
        };
        line("begin");
        let result = compile();
        line("end");
        let note = self.note(id);
        if note.unfinished && note.verdict == expected {
            self.records.put(&name(id), Note { unfinished: false, ..note }.text());
        }
        result
    }

    /// Notes that the driver refused a kernel with an expectation, for later processes too, and
    /// returns the next one. Takes milliseconds.
    pub(super) fn worsen(&self, id: KernelId, expected: Verdict) -> Verdict {
        let verdict = next(expected);
        self.any.store(true, Ordering::Relaxed);
        self.records.put(&name(id), Note { verdict, unfinished: false }.text());
        self.records.save();
        verdict
    }

    /// For the end of the process, when no kernel is being compiled.
    pub(crate) fn close(&self) {
        if let Some(journal) = &self.journal {
            journal.close();
        }
    }
}

/// The forms of a kernel in journals.
const FORMS: [(Verdict, &str); 3] =
    [(Verdict::Optimised, "optimised"), (Verdict::Unoptimised, "plain"), (Verdict::Halved, "halved")];

fn word_of(expected: Verdict) -> &'static str {
    FORMS.into_iter().find(|(verdict, _)| *verdict == expected).map_or("", |(_, word)| word)
}

/// Notes the compilations that began and did not end, of a journal.
fn note_unfinished(records: &AdapterRecords, journal: &str) {
    let mut open = BTreeSet::new();
    for line in journal.lines() {
        if let Some(begun) = line.strip_prefix("begin ") {
            open.insert(begun);
        } else if let Some(ended) = line.strip_prefix("end ") {
            open.remove(ended);
        }
    }
    for (id, level) in open.iter().filter_map(|of| of.split_once(' ')) {
        // There is none if the process died while it wrote the line.
        let Some((expected, _)) = FORMS.into_iter().find(|(_, word)| *word == level) else { continue };
        let before = records.get(&name(id)).map_or(Note::NONE, |text| Note::of_text(&text));
        let now = before.after_unfinished(expected);
        if now.verdict != before.verdict {
            tracing::warn!(
                "two processes ended while the driver compiled kernel {id}, which from now on is {}",
                now.text()
            );
        }
        records.put(&name(id), now.text());
    }
    records.save();
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00000000000000000000000000000001";

    fn noted(records: &AdapterRecords, id: &str) -> Option<String> {
        records.get(&name(id))
    }

    #[test]
    fn a_kernel_counts_after_two_unfinished_compilations() {
        let records = AdapterRecords::new(None);
        let left = |level: &str| {
            note_unfinished(&records, &format!("begin {ID} {level}\nbegin 2 optimised\nend 2 optimised\n"));
            noted(&records, ID).unwrap_or_default()
        };
        assert_eq!(left("optimised"), "unfinished 1");
        assert_eq!(left("optimised"), UNOPTIMISED);
        assert_eq!(left("optimised"), UNOPTIMISED, "of a process that began before");
        assert_eq!(left("plain"), "unoptimised, unfinished 1");
        assert_eq!(left("plain"), HALVED);
        assert_eq!(left("plain"), HALVED);
        assert_eq!(left("halved"), "halved, unfinished 1");
        assert_eq!([left("halved"), left("halved")], [REFUSED; 2]);
        assert_eq!(noted(&records, "2"), None, "it was compiled");
    }

    #[test]
    fn all_unfinished_compilations_count_and_damaged_lines_do_not() {
        let records = AdapterRecords::new(None);
        note_unfinished(&records, "begin 1 optimised\nbegin 2 plain\nend 3 plain\nbegin 4 opti");
        let notes = ["1", "2", "3", "4"].map(|id| noted(&records, id));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(notes, [some("unfinished 1"), some("unoptimised, unfinished 1"), None, None]);
    }
}
