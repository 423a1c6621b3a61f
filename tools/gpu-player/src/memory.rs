//! The GPU's address space, as addresses of this process.
//!
//! A region of 2 TiB is reserved, for the first of each half of the GPU's addresses; a buffer is
//! mapped at its address in it, so that a translation is one addition. One bit for each page says
//! whether a buffer is there, which makes an access outside all buffers a fault, not a signal.
//!
//! Accesses are relaxed atomics where they are aligned: shaders of several threads share memory as
//! they do on a GPU, and what they race for is theirs.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bytes of each half of the GPU's address space that the region covers, from its start.
const HALF: u64 = 1 << 40;
/// The bytes of the region: those halves, and a page that no buffer is ever mapped to.
const REGION: u64 = 2 * HALF + PAGE;
const PAGE: u64 = 4096;
/// Bytes of the bits of all pages.
const MAPPED: u64 = REGION / PAGE / 8 + 8;

/// What another launch did to a word without a barrier between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The number of that launch.
    pub other: u32,
    /// Whether it wrote; otherwise it read what is written now.
    pub wrote: bool,
    /// The address.
    pub address: u64,
}

/// The address space. The driver has memory in the upper half of the GPU's addresses too; `UPPER`
/// is bits 40 to 47 of the addresses there that the region covers.
pub struct Memory<const UPPER: u64> {
    region: *mut u8,
    /// A bit for each page.
    mapped: *const AtomicU64,
    /// For each word of memory, the last launch that wrote it and the last that read it; made when
    /// first asked for.
    shadow: std::sync::OnceLock<Shadow>,
    /// The launches up to this one are behind a barrier.
    barrier: AtomicU32,
}

struct Shadow {
    words: *const [AtomicU32; 2],
}

// SAFETY: the pointers are those of mappings that live as long as the value, and what is in them is
// accessed by atomics or as the memory of a GPU, whose programs answer for their races.
unsafe impl<const UPPER: u64> Send for Memory<UPPER> {}
// SAFETY: as above.
unsafe impl<const UPPER: u64> Sync for Memory<UPPER> {}
// SAFETY: as above.
unsafe impl Send for Shadow {}
// SAFETY: as above.
unsafe impl Sync for Shadow {}

/// Where an address is in the region. The upper bits of addresses in the upper half repeat bit 47,
/// or are cut off after 48.
#[inline(always)]
fn offset<const UPPER: u64>(address: u64) -> u64 {
    match address >> 40 {
        0 => address,
        top if top == UPPER || top == 0xff_ff00 | UPPER => HALF + (address & (HALF - 1)),
        _ => 2 * HALF,
    }
}

/// Address space without memory behind it, that reads as zero where `access` allows to.
fn reserve(bytes: u64, access: libc::c_int) -> *mut u8 {
    // SAFETY: a new mapping at an address of the system's choice touches nothing that exists.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes as usize,
            access,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    assert!(at != libc::MAP_FAILED, "{bytes} bytes of address space: {}", std::io::Error::last_os_error());
    at.cast()
}

impl<const UPPER: u64> Memory<UPPER> {
    /// An address space without buffers.
    ///
    /// # Panics
    ///
    /// If the system has no 2 TiB of address space.
    #[must_use]
    pub fn new() -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        Self {
            region: reserve(REGION, libc::PROT_NONE),
            mapped: reserve(MAPPED, access) as *const AtomicU64,
            shadow: std::sync::OnceLock::new(),
            barrier: AtomicU32::new(0),
        }
    }

    /// Where an address of the GPU lies in this process, mapped or not.
    #[must_use]
    pub fn host(&self, address: u64) -> *mut u8 {
        self.region.wrapping_add(offset::<UPPER>(address) as usize)
    }

    fn page_word(&self, page: u64) -> &AtomicU64 {
        // SAFETY: pages of the region are within the bits that `new` reserved.
        unsafe { &*self.mapped.add((page / 64) as usize) }
    }

    /// Whether buffers can lie there.
    #[must_use]
    pub fn covers(address: u64, bytes: u64) -> bool {
        let start = offset::<UPPER>(address);
        start < 2 * HALF && bytes <= HALF && offset::<UPPER>(address + (bytes.max(1) - 1)) == start + (bytes.max(1) - 1)
    }

    /// Says of whole pages whether a buffer is there. The shim has mapped it, or will unmap it
    /// after this.
    pub fn set_mapped(&self, address: u64, bytes: u64, there: bool) {
        let first = offset::<UPPER>(address) / PAGE;
        for page in first..first + bytes.div_ceil(PAGE) {
            let bit = 1 << (page % 64);
            if there {
                self.page_word(page).fetch_or(bit, Relaxed);
            } else {
                self.page_word(page).fetch_and(!bit, Relaxed);
            }
        }
        if !there && let Some(shadow) = self.shadow.get() {
            shadow.forget(offset::<UPPER>(address), bytes);
        }
    }

    /// Memory of its own at an address, for tests.
    pub fn map_anonymous(&self, address: u64, bytes: u64) {
        // SAFETY: within the region, where no buffer is.
        let at = unsafe {
            libc::mmap(
                self.host(address).cast(),
                bytes.next_multiple_of(PAGE) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        assert!(at == self.host(address).cast(), "mmap: {}", std::io::Error::last_os_error());
        self.set_mapped(address, bytes, true);
    }

    /// Whether all of the bytes are in buffers.
    #[inline]
    #[must_use]
    pub fn is_mapped(&self, address: u64, bytes: u64) -> bool {
        let start = offset::<UPPER>(address);
        let (first, last) = (start / PAGE, (start + bytes.max(1) - 1) / PAGE);
        let here = |page: u64| self.page_word(page).load(Relaxed) >> (page % 64) & 1 != 0;
        here(first) && (last == first || (first + 1..=last).all(here))
    }

    /// A pointer to bytes that are all in buffers.
    #[inline]
    #[must_use]
    pub fn pointer(&self, address: u64, bytes: u64) -> Option<*mut u8> {
        self.is_mapped(address, bytes).then(|| self.host(address))
    }

    /// The words from an address to the end of the mapped pages, for code.
    #[must_use]
    pub fn words(&self, address: u64) -> Option<&[u32]> {
        let mut bytes = PAGE - address % PAGE;
        if !address.is_multiple_of(4) || !self.is_mapped(address, bytes) {
            return None;
        }
        while bytes < 1 << 24 && self.is_mapped(address + bytes, PAGE) {
            bytes += PAGE;
        }
        // SAFETY: mapped; the driver does not write code that a submission uses while it runs.
        Some(unsafe { std::slice::from_raw_parts(self.host(address).cast(), (bytes / 4) as usize) })
    }

    /// Copies bytes out; false if any of them is outside all buffers.
    #[inline]
    #[must_use]
    pub fn read(&self, address: u64, to: &mut [u8]) -> bool {
        let Some(from) = self.pointer(address, to.len() as u64) else { return false };
        // SAFETY: mapped, and not part of `to`, which is Rust's.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        true
    }

    /// Copies bytes in; false if any of them is outside all buffers.
    #[inline]
    #[must_use]
    pub fn write(&self, address: u64, from: &[u8]) -> bool {
        let Some(to) = self.pointer(address, from.len() as u64) else { return false };
        // SAFETY: mapped, and not part of `from`, which is Rust's.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        true
    }

    /// A byte.
    #[inline]
    #[must_use]
    pub fn u8(&self, address: u64) -> Option<&AtomicU8> {
        // SAFETY: mapped.
        self.pointer(address, 1).map(|p| unsafe { &*p.cast() })
    }

    /// Two bytes, aligned.
    #[inline]
    #[must_use]
    pub fn u16(&self, address: u64) -> Option<&AtomicU16> {
        // SAFETY: mapped and aligned.
        self.pointer(address & !1, 2).map(|p| unsafe { &*p.cast() })
    }

    /// A word, aligned: for atomics, and for loads and stores of words.
    #[inline]
    #[must_use]
    pub fn u32(&self, address: u64) -> Option<&AtomicU32> {
        // SAFETY: mapped and aligned.
        self.pointer(address & !3, 4).map(|p| unsafe { &*p.cast() })
    }

    /// Two words, aligned, for atomics.
    #[inline]
    #[must_use]
    pub fn u64(&self, address: u64) -> Option<&AtomicU64> {
        // SAFETY: mapped and aligned.
        self.pointer(address & !7, 8).map(|p| unsafe { &*p.cast() })
    }

    /// A barrier: what launches up to this one did is seen by those after.
    pub fn barrier(&self, launch: u32) {
        self.barrier.store(launch, Relaxed);
    }

    fn shadow(&self) -> &Shadow {
        self.shadow.get_or_init(|| Shadow {
            words: reserve(REGION * 2, libc::PROT_READ | libc::PROT_WRITE) as *const [AtomicU32; 2],
        })
    }

    /// Notes that a launch reads bytes that are mapped; what another wrote without a barrier
    /// between is a conflict. For strict runs.
    ///
    /// # Errors
    ///
    /// The first word that another launch wrote.
    #[inline]
    pub fn note_read(&self, launch: u32, address: u64, bytes: u64) -> Result<(), Conflict> {
        let barrier = self.barrier.load(Relaxed);
        for at in (address & !3..address + bytes).step_by(4) {
            let [wrote, read] = self.shadow().word(offset::<UPPER>(at));
            let other = wrote.load(Relaxed);
            if other > barrier && other != launch {
                return Err(Conflict { other, wrote: true, address: at });
            }
            if read.load(Relaxed) != launch {
                read.store(launch, Relaxed);
            }
        }
        Ok(())
    }

    /// What launches without a barrier between did to bytes that the command processor reads or
    /// writes now. For strict runs.
    ///
    /// # Errors
    ///
    /// The first word that a launch wrote or, if it is written now, touched.
    pub fn look(&self, address: u64, bytes: u64, write: bool) -> Result<(), Conflict> {
        let barrier = self.barrier.load(Relaxed);
        for at in (address & !3..address + bytes).step_by(4) {
            for (word, wrote) in self.shadow().word(offset::<UPPER>(at)).iter().zip([true, false]) {
                let other = word.load(Relaxed);
                if other > barrier && (wrote || write) {
                    return Err(Conflict { other, wrote, address: at });
                }
            }
        }
        Ok(())
    }

    /// Notes that a launch writes bytes that are mapped; what another wrote or read without a
    /// barrier between is a conflict. For strict runs. An atomic access is a write.
    ///
    /// # Errors
    ///
    /// The first word that another launch touched.
    #[inline]
    pub fn note_write(&self, launch: u32, address: u64, bytes: u64) -> Result<(), Conflict> {
        let barrier = self.barrier.load(Relaxed);
        for at in (address & !3..address + bytes).step_by(4) {
            let [wrote, read] = self.shadow().word(offset::<UPPER>(at));
            for (word, is_write) in [(wrote, true), (read, false)] {
                let other = word.load(Relaxed);
                if other > barrier && other != launch {
                    return Err(Conflict { other, wrote: is_write, address: at });
                }
            }
            wrote.store(launch, Relaxed);
        }
        Ok(())
    }
}

impl<const UPPER: u64> Drop for Memory<UPPER> {
    fn drop(&mut self) {
        // SAFETY: what `new` and `shadow` mapped, to which nobody has a reference any more.
        unsafe {
            libc::munmap(self.region.cast(), REGION as usize);
            libc::munmap(self.mapped as *mut _, MAPPED as usize);
            if let Some(shadow) = self.shadow.get() {
                libc::munmap(shadow.words as *mut _, (REGION * 2) as usize);
            }
        }
    }
}

impl<const UPPER: u64> Default for Memory<UPPER> {
    fn default() -> Self {
        Self::new()
    }
}

impl Shadow {
    #[inline]
    fn word(&self, offset: u64) -> &[AtomicU32; 2] {
        // SAFETY: an offset in the region is within the reserved words.
        unsafe { &*self.words.add((offset / 4) as usize) }
    }

    fn forget(&self, offset: u64, bytes: u64) {
        // SAFETY: whole pages of the shadow, which read as zero afterwards.
        unsafe {
            libc::madvise(self.words.add((offset / 4) as usize) as *mut _, (bytes * 2) as usize, libc::MADV_DONTNEED)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves<const UPPER: u64>(upper: u64) {
        let memory = Memory::<UPPER>::new();
        memory.map_anonymous(upper, PAGE);
        memory.map_anonymous(0x20_0000, PAGE);
        assert!(memory.write((upper & 0xffff_ffff_ffff) + 8, &[1, 2]));
        let mut two = [0; 2];
        assert!(memory.read(upper + 8, &mut two) && two == [1, 2]);
        for address in [0, 8, 0x20_0000 - 1, 0x20_0fff, upper + 0x1000, 0x4000_0000_0000, 0xffff_0000_0000_0000] {
            assert!(!memory.read(address, &mut two), "{address:#x}");
        }
        let covers = Memory::<UPPER>::covers;
        assert!(covers(upper, PAGE) && covers(0, HALF));
        assert!(!covers(0, HALF + 1) && !covers(0x4000_0000_0000, 1) && !covers(HALF - 1, 2));
    }

    #[test]
    fn halves_of_the_addresses_do_not_meet() {
        halves::<0x80>(0xffff_8000_0000_0000);
        halves::<0xef>(0xffff_ef00_0000_0000);
    }

    #[test]
    fn words_end_with_the_buffers() {
        let memory = Memory::<0x80>::new();
        memory.map_anonymous(0x10_0000, 2 * PAGE);
        assert_eq!(memory.words(0x10_0ff8).map(<[u32]>::len), Some(1026));
        assert_eq!(memory.words(0x10_0ffa), None);
        assert_eq!(memory.words(0x10_2000), None);
    }

    #[test]
    fn notes_end_at_barriers() {
        let memory = Memory::<0x80>::new();
        memory.map_anonymous(0x10_0000, PAGE);
        let at = 0x10_0010;
        memory.note_write(1, at, 8).expect("nobody before");
        memory.note_read(1, at, 4).expect("its own");
        let conflict = Conflict { other: 1, wrote: true, address: at + 4 };
        assert_eq!(memory.note_read(2, at + 4, 4), Err(conflict));
        assert_eq!(memory.look(at + 4, 4, false), Err(conflict));
        memory.note_read(2, at + 8, 4).expect("nobody before");
        let read = Conflict { other: 2, wrote: false, address: at + 8 };
        assert_eq!(memory.note_write(3, at + 8, 4), Err(read));
        memory.look(at + 8, 4, false).expect("two readers");
        memory.barrier(3);
        memory.note_write(4, at, 16).expect("behind a barrier");
        // A buffer that goes takes its notes with it.
        memory.set_mapped(0x10_0000, PAGE, false);
        memory.note_read(5, at, 4).expect("forgotten");
    }
}
