//! What stands before the kernel interface: `ioctl` and `mmap` of the process, by their names.
//!
//! Requests that are not DRM's go on untouched. Of DRM's, the no-op shim that is loaded after this
//! library answers what the driver asks about the GPU; buffers, synchronisation objects and
//! submissions are the player's.

// What the C library and the driver call: their names and types say what they are.
#[allow(missing_docs, dead_code)]
mod abi;

use std::ffi::{c_int, c_ulong, c_void};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gpu_player::buffers::{self, Buffers};
use gpu_player::interpose;
use gpu_player::syncobjs::SyncObjects;

use crate::isa::Generation;
use crate::memory::Memory;
use crate::queue::{Problem, Queue};
use crate::report::{Options, Record};

pub use gpu_player::syncobjs::now;

struct Player {
    options: Arc<Options>,
    memory: Arc<Memory>,
    buffers: Mutex<Buffers>,
    objects: SyncObjects,
    queue: Mutex<Queue>,
    record: Arc<Mutex<Record>>,
    /// After a fault nothing is carried out any more.
    lost: AtomicBool,
}

static PLAYER: OnceLock<Player> = OnceLock::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The generation of a GPU by the name that Mesa's shim has for it; none that is not played.
fn generation() -> Option<Generation> {
    match std::env::var("INTEL_STUB_GPU_PLATFORM").unwrap_or_default().as_str() {
        "skl" | "bxt" | "kbl" | "aml" | "glk" | "cfl" | "whl" | "cml" => Some(Generation::Nine),
        "tgl" | "rkl" | "adl" | "dg1" | "rpl" => Some(Generation::Xe),
        "dg2" | "mtl" | "arl" => Some(Generation::XeHpg),
        _ => None,
    }
}

impl Player {
    fn get() -> &'static Self {
        PLAYER.get_or_init(|| {
            let options = Arc::new(Options::from_environment());
            let memory = Arc::new(Memory::new());
            let record = Arc::new(Mutex::new(Record::default()));
            let queue = Queue::new(memory.clone(), options.clone(), generation(), record.clone());
            let buffers = match Buffers::new() {
                Ok(buffers) => Mutex::new(buffers),
                Err(error) => {
                    eprintln!("intel-player: no memory for buffers: {error}");
                    std::process::abort();
                }
            };
            // SAFETY: a function without arguments that stays loaded: this library is never closed.
            unsafe { libc::atexit(at_exit) };
            let (objects, queue, lost) = (SyncObjects::default(), Mutex::new(queue), AtomicBool::new(false));
            Self { options, memory, buffers, objects, queue, record, lost }
        })
    }

    /// Carries out a submission; what waits for it may go on after that, and not before.
    ///
    /// # Safety
    ///
    /// The argument is the driver's.
    unsafe fn submit(&self, argument: *mut c_void) -> io::Result<()> {
        // SAFETY: the request's argument, and what it points to, are the driver's for the time of
        // the request.
        let (submission, objects) = unsafe {
            let submission = &*argument.cast::<abi::ExecBuffer>();
            (submission, abi::slice::<abi::ExecObject>(submission.objects, submission.object_count))
        };
        if self.lost.load(Relaxed) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let mut queue = lock(&self.queue);
        {
            let mut buffers = lock(&self.buffers);
            for object in objects.iter().filter(|object| object.flags & abi::OBJECT_PINNED != 0) {
                buffers.place(&self.memory, object.handle, object.address)?;
            }
        }
        let first = submission.flags & abi::EXEC_BATCH_FIRST != 0;
        let batch = if first { objects.first() } else { objects.last() };
        if let Some(batch) = batch
            && let Err(problem) = queue.submit(batch.address + u64::from(submission.batch_start))
        {
            self.lose(&problem);
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        drop(queue);
        if submission.flags & abi::EXEC_FENCE_ARRAY != 0 {
            // SAFETY: with this flag the field is fences.
            for fence in unsafe { abi::slice::<abi::ExecFence>(submission.fences, submission.fence_count) } {
                self.signal(fence, 1);
            }
        }
        if submission.flags & abi::EXEC_EXTENSIONS != 0 {
            let mut at = submission.fences;
            while at != 0 {
                // SAFETY: with this flag the field is a list of extensions, of which there is one
                // kind; the others start alike.
                let extension = unsafe { &*(at as *const abi::ExecTimelineFences) };
                at = extension.next;
                if extension.name != abi::EXTENSION_TIMELINE_FENCES {
                    eprintln!("intel-player: extension {} of a submission is left out", extension.name);
                    continue;
                }
                let count = extension.count as u32;
                // SAFETY: arrays of so many.
                let (fences, points) = unsafe {
                    (abi::slice::<abi::ExecFence>(extension.fences, count), abi::slice::<u64>(extension.points, count))
                };
                for (fence, &point) in fences.iter().zip(points) {
                    self.signal(fence, point);
                }
            }
        }
        Ok(())
    }

    fn signal(&self, fence: &abi::ExecFence, point: u64) {
        if fence.flags & abi::FENCE_SIGNAL != 0 {
            self.objects.signal(fence.handle, point);
        }
    }

    fn lose(&self, problem: &Problem) {
        eprintln!("intel-player: {problem}; the device is lost");
        self.lost.store(true, Relaxed);
    }

    /// A request of DRM. `next` asks the shim.
    ///
    /// # Safety
    ///
    /// The argument is that of the request.
    unsafe fn request(&self, request: c_ulong, argument: *mut c_void, next: &dyn Fn() -> c_int) -> io::Result<c_int> {
        let kind = abi::number(request);
        let asked = || match next() {
            -1 => Err(io::Error::last_os_error()),
            answer => Ok(answer),
        };
        // SAFETY: each request's argument is of its type.
        unsafe {
            if let Some(answer) = self.objects.request(kind, argument) {
                return answer.map(|()| 0);
            }
            match kind {
                abi::I915_GEM_CREATE | abi::I915_GEM_CREATE_EXT => {
                    let create = argument.cast::<abi::GemCreate>();
                    let bytes = std::mem::replace(&mut (*create).bytes, 4096);
                    let answer = asked();
                    (*create).bytes = bytes;
                    lock(&self.buffers).create(&self.memory, (*create).handle, bytes);
                    answer
                }
                abi::I915_GEM_MMAP_OFFSET => {
                    let map = &mut *argument.cast::<abi::GemMmapOffset>();
                    match lock(&self.buffers).offset(map.handle) {
                        Some(offset) => map.offset = offset,
                        None => return asked(),
                    }
                    Ok(0)
                }
                abi::I915_GEM_MMAP => {
                    let map = &mut *argument.cast::<abi::GemMmap>();
                    let Some(offset) = lock(&self.buffers).offset(map.handle) else { return asked() };
                    let access = libc::PROT_READ | libc::PROT_WRITE;
                    let (bytes, offset) = (map.bytes as usize, offset + map.offset);
                    let at = buffers::map_for_driver(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, offset);
                    if at == libc::MAP_FAILED {
                        return Err(io::Error::last_os_error());
                    }
                    map.address = at as u64;
                    Ok(0)
                }
                // Memory of the program as a buffer: the player has no address for it.
                abi::I915_GEM_USERPTR => Err(io::Error::from_raw_os_error(libc::ENODEV)),
                abi::GEM_CLOSE => {
                    let handle = (*argument.cast::<abi::GemClose>()).handle;
                    lock(&self.buffers).close(&self.memory, handle);
                    asked()
                }
                abi::I915_GEM_EXECBUFFER2 => {
                    let answer = asked()?;
                    self.submit(argument)?;
                    Ok(answer)
                }
                abi::I915_GET_RESET_STATS => {
                    let stats = &mut *argument.cast::<abi::ResetStats>();
                    (stats.resets, stats.active, stats.pending) = (0, u32::from(self.lost.load(Relaxed)), 0);
                    Ok(0)
                }
                _ => asked(),
            }
        }
    }
}

extern "C" fn at_exit() {
    if let Some(player) = PLAYER.get() {
        lock(&player.record).write(&player.options);
    }
}

/// `ioctl` of the process.
///
/// # Safety
///
/// Like `ioctl`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let answer = |next: &dyn Fn() -> c_int| {
        let player = Player::get();
        // SAFETY: the caller's.
        unsafe { player.request(request, argument, next) }.inspect_err(|error| {
            if player.options.trace > 1 {
                eprintln!("intel-player: request {:#x}: {error}", abi::number(request));
            }
        })
    };
    // SAFETY: the caller's.
    unsafe { interpose::ioctl(file, request, argument, answer) }
}

/// `mmap` of the process.
///
/// # Safety
///
/// Like `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { interpose::mmap(at, bytes, access, flags, file, offset) }
}

/// `mmap` by the name that it has for 64-bit offsets, which all are here.
///
/// # Safety
///
/// Like `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { interpose::mmap(at, bytes, access, flags, file, offset) }
}
