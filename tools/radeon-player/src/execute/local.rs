//! Shared memory of a workgroup: its bytes, and in strict runs who read and wrote them.

use super::{Outcome, Trap};
use crate::fault::FaultKind;

/// The shared memory of a workgroup.
pub struct Shared {
    pub(super) bytes: Vec<u8>,
    /// In strict runs what was done to each byte.
    watch: Option<Vec<Watch>>,
    /// How many waves have come to the barrier so far, of those that say so.
    signals: u32,
    /// Counts barriers, from 1: what was done before the last one is over.
    epoch: u32,
}

/// What was done to a byte of shared memory.
#[derive(Clone, Copy, Default)]
struct Watch {
    /// When the waves below did it.
    epoch: u32,
    /// The wave that wrote, plus one.
    writer: u16,
    /// The wave that read, plus one; [`SEVERAL`] if there are more.
    reader: u16,
    /// Whether the write was an atomic, with which other atomics do not race.
    atomic: bool,
    /// Something was written since the workgroup began.
    written: bool,
}

const SEVERAL: u16 = u16::MAX;

/// What is done to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// As a whole, so that it does not race with others of its kind.
    Atomic,
}

impl Shared {
    /// Shared memory that nothing was written to. What it reads as shows.
    #[must_use]
    pub fn new(bytes: usize, strict: bool) -> Self {
        let watch = strict.then(|| vec![Watch::default(); bytes]);
        Self { bytes: vec![0xcd; bytes], watch, signals: 0, epoch: 1 }
    }

    /// All waves are at a barrier.
    pub fn barrier(&mut self) {
        self.epoch += 1;
        self.signals = 0;
    }

    /// A wave comes to the barrier; whether it is the first.
    pub(super) fn signal(&mut self) -> bool {
        self.signals += 1;
        self.signals == 1
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The fault of an access beyond its end.
    #[cold]
    #[inline(never)]
    pub(super) fn outside(&self, at: usize) -> Box<Trap> {
        Trap::new(FaultKind::SharedOutOfBounds { offset: at as u32, size: self.bytes.len() as u32 })
    }

    /// Notes an access of a wave, in strict runs.
    #[inline(always)]
    pub(super) fn note(&mut self, wave: u32, at: usize, size: usize, access: Access) -> Outcome {
        if self.watch.is_some() { self.note_strictly(wave, at, size, access) } else { Ok(()) }
    }

    #[inline(never)]
    fn note_strictly(&mut self, wave: u32, at: usize, size: usize, access: Access) -> Outcome {
        let epoch = self.epoch;
        let size_of_all = self.bytes.len() as u32;
        let Some(watch) = &mut self.watch else { return Ok(()) };
        let me = wave as u16 + 1;
        let Some(bytes) = watch.get_mut(at..at + size) else {
            return Err(Trap::new(FaultKind::SharedOutOfBounds { offset: at as u32, size: size_of_all }));
        };
        for (k, byte) in bytes.iter_mut().enumerate() {
            if byte.epoch != epoch {
                *byte = Watch { epoch, written: byte.written, ..Watch::default() };
            }
            let offset = (at + k) as u32;
            if access != Access::Write && !byte.written {
                return Err(Trap::new(FaultKind::UnwrittenShared(offset)));
            }
            let race = |other: u16| {
                // Of several readers any that is another.
                let other = if other == SEVERAL { u16::from(me == 1) + 1 } else { other };
                let (offset, waves) = (offset & !3, [u32::from(other) - 1, wave]);
                Err(Trap::new(FaultKind::SharedRace { offset, waves }))
            };
            let atomics = access == Access::Atomic && byte.atomic;
            if byte.writer != 0 && byte.writer != me && !atomics {
                return race(byte.writer);
            }
            if access == Access::Read {
                byte.reader = if byte.reader == 0 || byte.reader == me { me } else { SEVERAL };
            } else {
                if byte.reader != 0 && byte.reader != me {
                    return race(byte.reader);
                }
                byte.writer = me;
                byte.atomic = access == Access::Atomic;
                byte.written = true;
            }
        }
        Ok(())
    }

    /// Bytes that a wave reads.
    #[inline(always)]
    pub(super) fn read<const SIZE: usize>(&mut self, wave: u32, at: usize) -> Result<[u8; SIZE], Box<Trap>> {
        self.note(wave, at, SIZE, Access::Read)?;
        match self.bytes.get(at..).and_then(|bytes| bytes.first_chunk()) {
            Some(bytes) => Ok(*bytes),
            None => Err(self.outside(at)),
        }
    }

    /// Bytes that a wave writes.
    #[inline(always)]
    pub(super) fn write<const SIZE: usize>(&mut self, wave: u32, at: usize, value: [u8; SIZE]) -> Outcome {
        self.note(wave, at, SIZE, Access::Write)?;
        match self.bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut()) {
            Some(bytes) => *bytes = value,
            None => return Err(self.outside(at)),
        }
        Ok(())
    }

    /// Changes bytes as a whole, and gives back what was there.
    #[inline(always)]
    pub(super) fn change<const SIZE: usize>(
        &mut self,
        wave: u32,
        at: usize,
        f: impl Fn([u8; SIZE]) -> [u8; SIZE],
    ) -> Result<[u8; SIZE], Box<Trap>> {
        self.note(wave, at, SIZE, Access::Atomic)?;
        match self.bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut()) {
            Some(bytes) => {
                let old = *bytes;
                *bytes = f(old);
                Ok(old)
            }
            None => Err(self.outside(at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn races_are_between_barriers() {
        let mut shared = Shared::new(64, true);
        assert!(shared.write(0, 0, [1, 2, 3, 4]).is_ok());
        assert_eq!(shared.read(0, 0).ok(), Some([1, 2, 3, 4]));
        let kind = |outcome: Result<[u8; 4], Box<Trap>>| outcome.err().map(|trap| trap.kind);
        assert_eq!(kind(shared.read(1, 0)), Some(FaultKind::SharedRace { offset: 0, waves: [0, 1] }));
        shared.barrier();
        assert_eq!(shared.read(1, 0).ok(), Some([1, 2, 3, 4]));
        assert!(shared.write(0, 0, [0; 4]).is_err());
        assert_eq!(kind(shared.read(1, 4)), Some(FaultKind::UnwrittenShared(4)));
        assert_eq!(kind(Shared::new(8, false).read(0, 6)), Some(FaultKind::SharedOutOfBounds { offset: 6, size: 8 }));
        shared.barrier();
        assert!(shared.change(0, 0, |old: [u8; 4]| old).is_ok());
        assert!(shared.change(1, 0, |old: [u8; 4]| old).is_ok());
        assert!(shared.read::<4>(2, 0).is_err());
    }
}
