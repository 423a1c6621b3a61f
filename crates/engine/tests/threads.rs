//! Many threads on one device and on two: no race, no deadlock, no wrong result.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_engine::{Device, Error, KernelRef};
use dml_testing::Random;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const THREADS: u64 = 8;
const N: usize = 300;

/// One thread's buffers, with what they hold.
struct Worker<'d> {
    device: &'d Device,
    kernel: KernelRef,
    random: Random,
    live: Vec<(u64, Vec<i32>)>,
    /// Read by all threads, written by none.
    shared: u64,
}

impl Worker<'_> {
    fn pick(&mut self) -> usize {
        self.random.below(self.live.len() as u64) as usize
    }

    /// A new buffer, from memory that other threads free all the time.
    fn compute(&mut self) {
        let (x, y) = (self.pick(), self.pick());
        let scale = self.random.below(9) as i32 - 4;
        let out = self.device.allocate(4 * N as u64).unwrap();
        let with_shared = self.random.below(2) == 0;
        let (a, b) = (self.live[x].0, if with_shared { self.shared } else { self.live[y].0 });
        launch_multiply_add(self.device, &self.kernel, (out, a, b), N as u32, scale).unwrap();
        let value = |i: usize| {
            let other = if with_shared { i as i32 } else { self.live[y].1[i] };
            self.live[x].1[i].wrapping_mul(scale).wrapping_add(other)
        };
        let values = (0..N).map(value).collect();
        self.live.push((out, values));
    }

    fn check(&mut self) {
        let at = self.pick();
        assert_eq!(read(self.device, self.live[at].0, N), self.live[at].1);
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0..22 => self.compute(),
            22..32 if self.live.len() > 3 => {
                let at = self.pick();
                self.device.free(self.live.swap_remove(at).0);
            }
            32..35 => {
                let at = self.pick();
                let (from, n) =
                    (self.random.below(N as u64 / 2) as usize, 1 + self.random.below(N as u64 / 2) as usize);
                let values: Vec<i32> = (0..n).map(|_| self.random.next_u64() as i32).collect();
                self.device.upload(self.live[at].0 + 4 * from as u64, &bytes_of(&values)).unwrap();
                self.live[at].1[from..from + n].copy_from_slice(&values);
            }
            35 => {
                let event = self.device.record_event(self.random.below(2) == 0).unwrap();
                if self.random.below(2) == 0 {
                    event.wait().unwrap();
                    assert!(event.query().unwrap());
                }
            }
            36 => {
                self.device.idle().unwrap();
                self.device.memory_stats();
            }
            37 if self.random.below(10) == 0 => self.device.empty_cache().unwrap(),
            38 if self.random.below(4) == 0 => self.graph(),
            39 => self.device.synchronize().unwrap(),
            _ => self.check(),
        }
    }

    /// Captures one update of a buffer and replays it; another thread may be capturing, and then it
    /// is left.
    fn graph(&mut self) {
        let capture = match self.device.capture(None) {
            Ok(capture) => capture,
            Err(Error::Graph { .. }) => return,
            Err(e) => panic!("{e}"),
        };
        let at = self.pick();
        let x = self.live[at].0;
        let t = self.device.allocate(4 * N as u64).unwrap();
        launch_multiply_add(self.device, &self.kernel, (t, x, self.shared), N as u32, 2).unwrap();
        launch_multiply_add(self.device, &self.kernel, (x, t, x), N as u32, 1).unwrap();
        self.device.free(t);
        let graph = capture.end().unwrap();
        for _ in 0..self.random.below(5) {
            graph.replay().unwrap();
            self.live[at].1.iter_mut().enumerate().for_each(|(i, v)| *v = v.wrapping_mul(3).wrapping_add(i as i32));
        }
    }
}

/// Eight threads do all that a device can do, each with memory of its own.
fn stress(devices: &[Device], steps: usize) {
    let inputs: Vec<u64> = devices.iter().map(|d| put(d, &(0..N as i32).collect::<Vec<_>>())).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let at = thread as usize % devices.len();
            let (device, shared) = (&devices[at], inputs[at]);
            scope.spawn(move || {
                let start: Vec<i32> = (0..N as i32).map(|i| i * thread as i32).collect();
                let live = vec![(put(device, &start), start)];
                let kernel = multiply_add(device);
                let mut worker = Worker { device, kernel, random: Random(thread), live, shared };
                (0..steps).for_each(|_| worker.step());
                for (x, values) in &worker.live {
                    assert_eq!(read(device, *x, N), *values);
                    device.free(*x);
                }
            });
        }
    });
    for (device, input) in devices.iter().zip(inputs) {
        device.free(input);
        assert_eq!(device.memory_stats().all.allocations.current, 0);
        device.empty_cache().unwrap();
        assert_eq!(device.memory_stats().all.reserved_bytes.current, 0);
    }
}

/// Fails a test that hangs, rather than to hang with it.
fn within(limit: Duration, test: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = finished.recv_timeout(limit) {
        panic!("deadlock: no end after {limit:?}");
    }
    thread.join().unwrap();
}

#[test]
fn eight_threads_on_one_device() {
    within(Duration::from_secs(300), || stress(&[open()], 1500));
}

#[test]
fn eight_threads_on_two_devices() {
    within(Duration::from_secs(300), || stress(&[open(), open()], 1500));
}

/// What one thread enqueues and another one waits for or frees keeps its order.
#[test]
fn buffers_pass_between_threads() {
    within(Duration::from_secs(300), || {
        let device = Arc::new(open());
        let (first, mut receive) = mpsc::channel::<(u64, i32)>();
        let mut stages = Vec::new();
        for stage in 0..THREADS as i32 {
            let (send, next) = mpsc::channel();
            let device = Arc::clone(&device);
            let input = std::mem::replace(&mut receive, next);
            stages.push(std::thread::spawn(move || {
                let kernel = multiply_add(&device);
                let one = put(&device, &[1; N]);
                for (x, value) in input {
                    let out = device.allocate(4 * N as u64).unwrap();
                    launch_multiply_add(&device, &kernel, (out, x, one), N as u32, stage).unwrap();
                    device.free(x); // While this thread's launch, and perhaps the writer's, is pending.
                    send.send((out, value.wrapping_mul(stage).wrapping_add(1))).unwrap();
                }
                device.free(one);
            }));
        }
        let source = std::thread::spawn({
            let device = Arc::clone(&device);
            move || (0..300).for_each(|i| first.send((put(&device, &[i; N]), i)).unwrap())
        });
        let mut passed = 0;
        for (x, value) in receive {
            assert_eq!(read(&device, x, N), [value; N]);
            device.free(x);
            passed += 1;
        }
        source.join().unwrap();
        stages.into_iter().for_each(|stage| stage.join().unwrap());
        assert_eq!(passed, 300);
        assert_eq!(device.memory_stats().all.allocations.current, 0);
    });
}

/// Replays by several threads run one after the other, whichever order they come in.
#[test]
fn several_threads_replay_one_graph() {
    within(Duration::from_secs(300), || {
        let device = open();
        let kernel = multiply_add(&device);
        let (x, one) = (put(&device, &[0; N]), put(&device, &[1; N]));
        let capture = device.capture(None).unwrap();
        for _ in 0..10 {
            launch_multiply_add(&device, &kernel, (x, x, one), N as u32, 1).unwrap();
        }
        let graph = capture.end().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let replaying: Vec<_> =
                (0..THREADS).map(|_| scope.spawn(|| (0..200).for_each(|_| graph.replay().unwrap()))).collect();
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // A moment between replays: never between the launches of one.
                    let seen = read(&device, x, N);
                    assert!(seen.iter().all(|&v| v == seen[0] && v % 10 == 0), "{seen:?}");
                }
            });
            replaying.into_iter().for_each(|thread| thread.join().unwrap());
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(read(&device, x, N), [THREADS as i32 * 2000; N]);
    });
}
