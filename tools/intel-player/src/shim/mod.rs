//! What stands before the kernel interface: `ioctl` and `mmap` of the process, by their names.
//!
//! Requests that are not DRM's go on untouched. Of DRM's, the no-op shim that is loaded after this
//! library answers what the driver asks about the GPU; buffers, synchronisation objects and
//! submissions are the player's.

// What the C library and the driver call: their names and types say what they are.
#[allow(missing_docs, dead_code)]
mod abi;
mod buffers;
mod syncobjs;

use std::ffi::{c_int, c_ulong, c_void};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::isa::Generation;
use crate::memory::Memory;
use crate::queue::{Problem, Queue};
use crate::report::{Options, Record};

use buffers::Buffers;
use syncobjs::SyncObjects;
pub use syncobjs::now;

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
            (submission, slice::<abi::ExecObject>(submission.objects, submission.object_count))
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
            for fence in unsafe { slice::<abi::ExecFence>(submission.fences, submission.fence_count) } {
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
                    (slice::<abi::ExecFence>(extension.fences, count), slice::<u64>(extension.points, count))
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

    /// Answers a request of synchronisation objects; none if it is another.
    ///
    /// # Safety
    ///
    /// The argument is that of the request.
    unsafe fn synchronise(&self, request: c_ulong, argument: *mut c_void) -> Option<io::Result<()>> {
        let objects = &self.objects;
        // SAFETY: each request's argument is of its type, and arrays are as long as it says.
        unsafe {
            match request {
                abi::SYNCOBJ_CREATE => {
                    let create = &mut *argument.cast::<abi::SyncobjCreate>();
                    create.handle = objects.create(create.flags & abi::CREATE_SIGNALED != 0);
                }
                abi::SYNCOBJ_DESTROY => objects.destroy(*argument.cast()),
                abi::SYNCOBJ_WAIT => {
                    let wait = &mut *argument.cast::<abi::SyncobjWait>();
                    let wanted: Vec<_> = slice::<u32>(wait.handles, wait.count).iter().map(|&it| (it, 1)).collect();
                    match objects.wait(&wanted, wait.flags & abi::WAIT_ALL != 0, wait.timeout) {
                        Some(first) => wait.first_signaled = first,
                        None => return Some(Err(io::Error::from_raw_os_error(libc::ETIME))),
                    }
                }
                abi::SYNCOBJ_TIMELINE_WAIT => {
                    let wait = &mut *argument.cast::<abi::SyncobjTimelineWait>();
                    let handles = slice::<u32>(wait.handles, wait.count).iter().copied();
                    let wanted: Vec<_> = handles.zip(slice::<u64>(wait.points, wait.count).iter().copied()).collect();
                    match objects.wait(&wanted, wait.flags & abi::WAIT_ALL != 0, wait.timeout) {
                        Some(first) => wait.first_signaled = first,
                        None => return Some(Err(io::Error::from_raw_os_error(libc::ETIME))),
                    }
                }
                abi::SYNCOBJ_RESET => {
                    let array = &*argument.cast::<abi::SyncobjArray>();
                    slice::<u32>(array.handles, array.count).iter().for_each(|&handle| objects.reset(handle));
                }
                abi::SYNCOBJ_SIGNAL => {
                    let array = &*argument.cast::<abi::SyncobjArray>();
                    slice::<u32>(array.handles, array.count).iter().for_each(|&handle| objects.signal(handle, 1));
                }
                abi::SYNCOBJ_QUERY => {
                    let array = &*argument.cast::<abi::SyncobjTimelineArray>();
                    for (k, &handle) in slice::<u32>(array.handles, array.count).iter().enumerate() {
                        (array.points as *mut u64).add(k).write(objects.point(handle));
                    }
                }
                abi::SYNCOBJ_TIMELINE_SIGNAL => {
                    let array = &*argument.cast::<abi::SyncobjTimelineArray>();
                    let points = slice::<u64>(array.points, array.count);
                    for (&handle, &point) in slice::<u32>(array.handles, array.count).iter().zip(points) {
                        objects.signal(handle, point);
                    }
                }
                abi::SYNCOBJ_TRANSFER => {
                    let transfer = &*argument.cast::<abi::SyncobjTransfer>();
                    objects.signal(transfer.to, transfer.to_point);
                }
                _ => return None,
            }
        }
        Some(Ok(()))
    }

    /// A request of DRM. `next` asks the shim.
    ///
    /// # Safety
    ///
    /// The argument is that of the request.
    unsafe fn request(&self, request: c_ulong, argument: *mut c_void, next: impl Fn() -> c_int) -> io::Result<c_int> {
        let kind = abi::number(request);
        let asked = || match next() {
            -1 => Err(io::Error::last_os_error()),
            answer => Ok(answer),
        };
        // SAFETY: each request's argument is of its type.
        unsafe {
            if let Some(answer) = self.synchronise(kind, argument) {
                return answer.map(|()| 0);
            }
            match kind {
                abi::I915_GEM_CREATE | abi::I915_GEM_CREATE_EXT => {
                    let create = argument.cast::<abi::GemCreate>();
                    let bytes = std::mem::replace(&mut (*create).bytes, 4096);
                    let answer = asked();
                    (*create).bytes = bytes;
                    lock(&self.buffers).create((*create).handle, bytes);
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

/// An array of the driver's.
///
/// # Safety
///
/// There are `count` values at the address, or the count is 0.
unsafe fn slice<'a, T>(address: u64, count: u32) -> &'a [T] {
    if address == 0 || count == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(address as *const T, count as usize) }
}

extern "C" fn at_exit() {
    if let Some(player) = PLAYER.get() {
        lock(&player.record).write(&player.options);
    }
}

/// The function of a name in the library that is loaded after this one.
fn next_function(cache: &AtomicPtr<c_void>, name: &std::ffi::CStr) -> *mut c_void {
    let known = cache.load(Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: a name that ends in zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    cache.store(found, Relaxed);
    found
}

static NEXT_IOCTL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static NEXT_MMAP: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// `ioctl` of the process.
///
/// # Safety
///
/// Like `ioctl`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let next = next_function(&NEXT_IOCTL, c"ioctl");
    if next.is_null() {
        // SAFETY: the caller's.
        return unsafe { libc::syscall(libc::SYS_ioctl, file, request, argument) as c_int };
    }
    // SAFETY: the C library's type; the third argument is passed the same way where it is one of
    // any number.
    let next: unsafe extern "C" fn(c_int, c_ulong, ...) -> c_int = unsafe { std::mem::transmute(next) };
    // SAFETY: the caller's.
    let ask = || unsafe { next(file, request, argument) };
    if abi::letter(request) != abi::DRM {
        return ask();
    }
    // SAFETY: the caller's.
    match unsafe { Player::get().request(request, argument, ask) } {
        Ok(answer) => answer,
        Err(error) => {
            if Player::get().options.trace > 1 {
                eprintln!("intel-player: request {:#x}: {error}", abi::number(request));
            }
            // SAFETY: this thread's.
            unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EINVAL) };
            -1
        }
    }
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
    let next = next_function(&NEXT_MMAP, c"mmap");
    // SAFETY: the caller's.
    unsafe {
        if file >= 0 && offset as u64 >= buffers::OFFSET && offset > 0 {
            return buffers::map_for_driver(at, bytes, access, flags, offset as u64);
        }
        if next.is_null() {
            return libc::syscall(libc::SYS_mmap, at, bytes, access, flags, file, offset) as *mut c_void;
        }
        type Mmap = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;
        std::mem::transmute::<*mut c_void, Mmap>(next)(at, bytes, access, flags, file, offset)
    }
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
    unsafe { mmap(at, bytes, access, flags, file, offset) }
}
