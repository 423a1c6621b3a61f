//! Buffers: memory of this process that the driver maps, by offset, for itself, and at an address
//! for the GPU.
//!
//! The no-op shim has 4 GiB for all buffers of a process. Here they are parts of a file in memory,
//! which takes what it holds; the shim keeps a page for each, so that it knows the handle.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::memory::Memory;

/// Offsets for `mmap` from this one on are the player's. No file reaches so far.
pub const OFFSET: u64 = 1 << 52;
const FILE_BYTES: u64 = 1 << 46;
const PAGE: u64 = 4096;

/// The file's number, which `mmap` of every thread looks at; -1 before there is one.
static FILE: AtomicI32 = AtomicI32::new(-1);

struct Buffer {
    /// Where it starts in the file.
    start: u64,
    bytes: u64,
    /// Where it is in the GPU's address space, once a submission has said so.
    address: Option<u64>,
}

/// All buffers of the process.
pub struct Buffers {
    file: OwnedFd,
    end: u64,
    buffers: HashMap<u32, Buffer>,
}

impl Buffers {
    /// None yet.
    ///
    /// # Errors
    ///
    /// The system's, if it gives no file in memory.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a name that ends in zero, and no other pointers.
        let file = unsafe { libc::memfd_create(c"gpu-player".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new file, which nobody else has.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        // SAFETY: a file of this process.
        if unsafe { libc::ftruncate(file.as_raw_fd(), FILE_BYTES as libc::off_t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        FILE.store(file.as_raw_fd(), Relaxed);
        Ok(Self { file, end: 0, buffers: HashMap::new() })
    }

    /// Memory for a new handle, zero as the kernel gives it.
    pub fn create<const UPPER: u64>(&mut self, memory: &Memory<UPPER>, handle: u32, bytes: u64) {
        self.close(memory, handle);
        let bytes = bytes.next_multiple_of(PAGE);
        self.buffers.insert(handle, Buffer { start: self.end, bytes, address: None });
        self.end += bytes;
    }

    /// Gives the memory back to the system.
    pub fn close<const UPPER: u64>(&mut self, memory: &Memory<UPPER>, handle: u32) {
        if let Some(Buffer { start, bytes, address }) = self.buffers.remove(&handle) {
            if let Some(address) = address {
                unmap(memory, address, bytes);
            }
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: a part of the file that no buffer has any more.
            unsafe {
                libc::fallocate(self.file.as_raw_fd(), mode, start as libc::off_t, bytes as libc::off_t);
            }
        }
    }

    /// The offset by which the driver maps a buffer.
    pub fn offset(&self, handle: u32) -> Option<u64> {
        self.buffers.get(&handle).map(|buffer| OFFSET + buffer.start)
    }

    /// Puts a whole buffer where a submission says that it is.
    ///
    /// # Errors
    ///
    /// No such buffer, or the system's.
    pub fn place<const UPPER: u64>(&mut self, memory: &Memory<UPPER>, handle: u32, address: u64) -> io::Result<()> {
        let Some(&Buffer { bytes, address: old, .. }) = self.buffers.get(&handle) else {
            return Err(io::Error::other(format!("no buffer {handle}")));
        };
        if old == Some(address) {
            return Ok(());
        }
        if let Some(old) = old {
            unmap(memory, old, bytes);
        }
        self.map(memory, handle, 0, address, bytes)?;
        if let Some(buffer) = self.buffers.get_mut(&handle) {
            buffer.address = Some(address);
        }
        Ok(())
    }

    /// Puts a part of a buffer at an address of the GPU.
    ///
    /// # Errors
    ///
    /// No such part, or the system's.
    pub fn map<const UPPER: u64>(
        &self,
        memory: &Memory<UPPER>,
        handle: u32,
        offset: u64,
        address: u64,
        bytes: u64,
    ) -> io::Result<()> {
        let buffer =
            self.buffers.get(&handle).filter(|buffer| offset.checked_add(bytes).is_some_and(|end| end <= buffer.bytes));
        let buffer =
            buffer.ok_or_else(|| io::Error::other(format!("no {bytes} bytes at {offset} of buffer {handle}")))?;
        if !Memory::<UPPER>::covers(address, bytes) {
            return Err(io::Error::other(format!("{bytes} bytes at {address:#x} are beyond the player's addresses")));
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let at = memory.host(address).cast();
        let start = (buffer.start + offset) as libc::off_t;
        // SAFETY: within the region of the GPU's addresses, where only the player maps.
        let got = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            libc::mmap(at, bytes as usize, access, flags, self.file.as_raw_fd(), start)
        };
        if got != at {
            return Err(io::Error::last_os_error());
        }
        memory.set_mapped(address, bytes, true);
        Ok(())
    }
}

/// Takes an address of the GPU back.
pub fn unmap<const UPPER: u64>(memory: &Memory<UPPER>, address: u64, bytes: u64) {
    memory.set_mapped(address, bytes, false);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: within the region of the GPU's addresses; shaders fault at pages that are not set,
    // and do not get here.
    unsafe { libc::mmap(memory.host(address).cast(), bytes as usize, libc::PROT_NONE, flags, -1, 0) };
}

/// The driver's own mapping of a buffer: `mmap` with an offset of [`Buffers::offset`].
///
/// # Safety
///
/// Like `mmap`.
pub unsafe fn map_for_driver(at: *mut c_void, bytes: usize, access: c_int, flags: c_int, offset: u64) -> *mut c_void {
    let start = (offset - OFFSET) as libc::off_t;
    // SAFETY: the caller's; the system call itself, since the function of that name leads here.
    unsafe { libc::syscall(libc::SYS_mmap, at, bytes, access, flags, FILE.load(Relaxed), start) as *mut c_void }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_the_same_for_both() {
        let memory = Memory::<0xef>::new();
        let mut buffers = Buffers::new().expect("a file");
        buffers.create(&memory, 1, 100);
        buffers.create(&memory, 2, 3 * PAGE);
        buffers.map(&memory, 2, PAGE, 0xffff_ef01_0000_0000, 2 * PAGE).expect("a mapping");
        assert!(buffers.map(&memory, 2, 2 * PAGE, 0x1000, 2 * PAGE).is_err());
        let offset = buffers.offset(2).expect("a buffer");
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the system's choice.
        let mine = unsafe { map_for_driver(std::ptr::null_mut(), 3 * PAGE as usize, access, libc::MAP_SHARED, offset) };
        assert_ne!(mine, libc::MAP_FAILED);
        // SAFETY: within the mapping.
        unsafe { mine.cast::<u8>().add(PAGE as usize + 5).write(7) };
        let mut byte = [0];
        assert!(memory.read(0xffff_ef01_0000_0005, &mut byte) && byte == [7]);
        assert!(
            memory.is_mapped(0xffff_ef01_0000_0000, 2 * PAGE) && !memory.is_mapped(0xffff_ef01_0000_0000, 2 * PAGE + 1)
        );
        unmap(&memory, 0xffff_ef01_0000_0000, 2 * PAGE);
        assert!(!memory.read(0xffff_ef01_0000_0005, &mut byte));
    }
}
