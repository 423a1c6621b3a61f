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

/// The generation of a GPU by the name that Mesa's shim has for it; RDNA3 where none is given.
fn generation() -> Generation {
    let name = std::env::var("AMDGPU_GPU_ID").unwrap_or_default();
    match name.as_str() {
        "navi10" | "navi12" | "navi14" => Generation::Rdna1,
        "" | "navi31" | "navi32" | "navi33" | "phoenix" | "phoenix2" | "hawk_point1" | "strix1" | "strix_halo"
        | "gfx1103_r1" | "gfx1150" => Generation::Rdna3,
        "gfx1200" | "gfx1201" | "navi44" | "navi48" => Generation::Rdna4,
        name if name.starts_with("navi2")
            || matches!(name, "vangogh" | "rembrandt" | "raphael_mendocino" | "yellow_carp") =>
        {
            Generation::Rdna2
        }
        other => {
            eprintln!("radeon-player: no player for {other}; it is played as RDNA3");
            Generation::Rdna3
        }
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
                    eprintln!("radeon-player: no memory for buffers: {error}");
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
        let chunks = unsafe {
            let submission = &*argument.cast::<abi::Submission>();
            abi::slice::<u64>(submission.chunks, submission.chunk_count).iter().map(|&at| &*(at as *const abi::Chunk))
        };
        let mut queue = lock(&self.queue);
        for chunk in chunks.clone().filter(|chunk| chunk.id == abi::CHUNK_COMMANDS) {
            if self.lost.load(Relaxed) {
                return Err(io::Error::from_raw_os_error(libc::ECANCELED));
            }
            // SAFETY: a chunk of this kind.
            let commands = unsafe { &*(chunk.data as *const abi::ChunkCommands) };
            let (address, words) = (commands.address, commands.bytes / 4);
            let outcome = match commands.engine {
                abi::ENGINE_GRAPHICS | abi::ENGINE_COMPUTE => queue.submit(address, words),
                abi::ENGINE_DMA => queue.submit_dma(address, words),
                other => Err(Problem::Engine(other)),
            };
            if let Err(problem) = outcome {
                self.lose(&problem);
                // The driver says of this one that its context is to blame, and of `ECANCELED` that
                // it is not.
                return Err(io::Error::from_raw_os_error(libc::ETIME));
            }
        }
        drop(queue);
        for chunk in chunks {
            match chunk.id {
                abi::CHUNK_SYNCOBJ_OUT => {
                    // SAFETY: a chunk of this kind is handles.
                    for &handle in unsafe { abi::slice::<u32>(chunk.data, chunk.words) } {
                        self.objects.signal(handle, 1);
                    }
                }
                abi::CHUNK_TIMELINE_SIGNAL => {
                    // SAFETY: a chunk of this kind is points, four words each.
                    for object in unsafe { abi::slice::<abi::ChunkSyncobj>(chunk.data, chunk.words / 4) } {
                        self.objects.signal(object.handle, object.point);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn lose(&self, problem: &Problem) {
        eprintln!("radeon-player: {problem}; the device is lost");
        self.lost.store(true, Relaxed);
    }

    /// A mapping of a buffer into the GPU's address space, or its end.
    fn set_address(&self, va: &abi::GemVa) -> io::Result<()> {
        if self.options.trace > 1 {
            let abi::GemVa { operation, handle, address, bytes, offset, .. } = va;
            eprintln!(
                "radeon-player: address {operation}: {bytes:#x} at {address:#x}, buffer {handle} from {offset:#x}"
            );
        }
        match va.operation {
            abi::VA_MAP | abi::VA_REPLACE if va.handle != 0 => {
                lock(&self.buffers).map(&self.memory, va.handle, va.offset, va.address, va.bytes)?;
            }
            abi::VA_UNMAP | abi::VA_CLEAR | abi::VA_REPLACE => buffers::unmap(&self.memory, va.address, va.bytes),
            _ => {}
        }
        Ok(())
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
                abi::AMDGPU_GEM_CREATE => {
                    let bytes = std::mem::replace(&mut (*argument.cast::<abi::GemCreate>()).bytes, 4096);
                    let answer = asked()?;
                    lock(&self.buffers).create(&self.memory, *argument.cast(), bytes);
                    Ok(answer)
                }
                abi::AMDGPU_GEM_MMAP => {
                    let map = &mut *argument.cast::<abi::GemMmap>();
                    match lock(&self.buffers).offset(map.handle_or_offset as u32) {
                        Some(offset) => map.handle_or_offset = offset,
                        None => return asked(),
                    }
                    Ok(0)
                }
                abi::GEM_CLOSE => {
                    lock(&self.buffers).close(&self.memory, (*argument.cast::<abi::GemClose>()).handle);
                    asked()
                }
                abi::AMDGPU_GEM_VA => {
                    self.set_address(&*argument.cast())?;
                    if abi::size(request) >= size_of::<abi::GemVaTimeline>() {
                        let timeline = &*argument.cast::<abi::GemVaTimeline>();
                        if timeline.out != 0 {
                            self.objects.signal(timeline.out, timeline.point);
                        }
                    }
                    Ok(0)
                }
                abi::AMDGPU_CS => {
                    let answer = asked()?;
                    self.submit(argument)?;
                    Ok(answer)
                }
                abi::AMDGPU_CTX => {
                    // The shim leaves the question where the answer is read: one of them reads as
                    // "guilty of a hang".
                    let operation = (*argument.cast::<abi::Context>()).operation;
                    let answer = asked()?;
                    if matches!(operation, abi::CONTEXT_QUERY_STATE | abi::CONTEXT_QUERY_STATE_2) {
                        let lost = self.lost.load(Relaxed) && operation == abi::CONTEXT_QUERY_STATE_2;
                        let flags = if lost { abi::CONTEXT_RESET | abi::CONTEXT_GUILTY } else { 0 };
                        argument.cast::<[u64; 2]>().write_unaligned([flags, 0]);
                    }
                    Ok(answer)
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
                eprintln!("radeon-player: request {:#x}: {error}", abi::number(request));
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
