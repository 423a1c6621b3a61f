//! Graphs: a replay is what the captured calls would have been, with fewer barriers.
#![allow(clippy::unwrap_used)]

mod common;
use common::graphs::*;
use common::*;
use dml_engine::{AddressRange, Device, Error, Generator, KernelRef, Launch, RandomSource};
use dml_kernel::{Builder, DType, ScalarType};
use dml_testing::Random;
use std::sync::{Arc, Mutex};

#[test]
fn a_replay_takes_its_place_among_other_work() {
    let device = open();
    let kernel = multiply_add(&device);
    let (x, y) = (put(&device, &[1; N]), put(&device, &[5; N]));
    let before = device.queue_stats();
    let (graph, out) = capture(&device, || {
        let t = device.allocate(4 * N as u64).unwrap();
        let out = device.allocate(4 * N as u64).unwrap();
        step(&device, &kernel, (t, x, y), 2); // 2 x + y
        step(&device, &kernel, (out, t, t), 1); // twice that
        device.free(t);
        out
    });
    assert_eq!(device.queue_stats().commands, before.commands, "nothing ran");
    assert_eq!((graph.stats().launches, graph.stats().barriers), (2, 2));
    let mut expected = 0;
    for round in 0..50 {
        device.upload(x, &bytes_of(&[round; N])).unwrap();
        graph.replay().unwrap();
        expected = 2 * (2 * round + 5);
        if round % 7 == 0 {
            assert_eq!(read(&device, out, N), [expected; N]);
        }
        // What comes after a replay sees its results, and the next replay sees what came between.
        step(&device, &kernel, (y, out, y), 0);
        step(&device, &kernel, (x, out, x), 1);
        let sum = device.allocate(4 * N as u64).unwrap();
        step(&device, &kernel, (sum, out, x), 1);
        if round % 11 == 0 {
            assert_eq!(read(&device, sum, N), [2 * expected + round; N]);
        }
        device.free(sum);
    }
    assert_eq!(read(&device, out, N), [expected; N]);
    for _ in 0..300 {
        graph.replay().unwrap(); // Several in a submission, and pending at the same time.
    }
    assert_eq!(read(&device, out, N), [2 * (2 * (expected + 49) + 5); N]);
}

/// A random program of launches, small uploads, allocations and frees. Returns its outputs.
fn program(device: &Device, kernel: &KernelRef, seed: u64, inputs: &[u64]) -> Vec<u64> {
    let mut random = Random(seed);
    let mut live: Vec<u64> = Vec::new();
    for round in 0..300 {
        let pick = |random: &mut Random, live: &[u64]| {
            let at = random.below((inputs.len() + live.len()) as u64) as usize;
            if at < inputs.len() { inputs[at] } else { live[at - inputs.len()] }
        };
        match random.below(10) {
            0..7 => {
                let (x, y) = (pick(&mut random, &live), pick(&mut random, &live));
                let out = device.allocate(4 * N as u64).unwrap();
                step(device, kernel, (out, x, y), random.below(5) as i32 - 2);
                live.push(out);
            }
            7 if live.len() > 4 => device.free(live.swap_remove(random.below(live.len() as u64) as usize)),
            8 if !live.is_empty() => {
                // In place, over a part that is not a multiple of anything.
                let x = live[random.below(live.len() as u64) as usize];
                device.upload(x + random.below(100), &vec![round as u8; 1 + random.below(300) as usize]).unwrap();
            }
            _ => {
                if let Some(&x) = live.last() {
                    step(device, kernel, (x, x, pick(&mut random, inputs)), 3);
                }
            }
        }
    }
    live
}

#[test]
fn random_programs_give_the_same_bits_with_fewer_barriers() {
    let (mut barriers, mut in_order) = (0, 0);
    for seed in 0..6 {
        let device = open();
        let kernel = multiply_add(&device);
        let inputs: Vec<u64> =
            (0..4).map(|i| put(&device, &(0..N as i32).map(|j| j * i).collect::<Vec<_>>())).collect();
        let eager = program(&device, &kernel, seed, &inputs);
        let expected: Vec<_> = eager.iter().map(|&x| read(&device, x, N)).collect();
        let (graph, outputs) = capture(&device, || program(&device, &kernel, seed, &inputs));
        for _ in 0..3 {
            graph.replay().unwrap();
        }
        let replayed: Vec<_> = outputs.iter().map(|&x| read(&device, x, N)).collect();
        assert_eq!(replayed, expected, "seed {seed}");
        let stats = graph.stats();
        assert!(stats.barriers <= stats.barriers_in_order);
        barriers += stats.barriers;
        in_order += stats.barriers_in_order;
    }
    assert!(barriers * 4 < in_order * 3, "{barriers} barriers, {in_order} in order");
}

#[test]
fn independent_chains_share_their_barriers() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; N]);
    let (graph, outs) = capture(&device, || -> Vec<u64> {
        (0..10)
            .map(|chain| {
                let mut now = x;
                for _ in 0..4 {
                    let next = device.allocate(4 * N as u64).unwrap();
                    step(&device, &kernel, (next, now, x), chain);
                    if now != x {
                        device.free(now);
                    }
                    now = next;
                }
                now
            })
            .collect()
    });
    let stats = graph.stats();
    assert_eq!((stats.launches, stats.barriers, stats.barriers_in_order), (40, 4, 31));
    device.synchronize().unwrap();
    let before = device.queue_stats();
    graph.replay().unwrap();
    device.synchronize().unwrap();
    let after = device.queue_stats();
    assert_eq!((after.commands - before.commands, after.barriers - before.barriers), (40, 4));
    for (chain, &out) in outs.iter().enumerate() {
        let c = chain as i32;
        assert_eq!(read(&device, out, N), [c * (c * (c * (c + 1) + 1) + 1) + 1; N]);
    }
}

#[test]
fn large_parameter_blocks_are_the_graphs() {
    let device = open();
    let count = 100;
    let key = ("test::many_in_graph", [count]);
    let kernel = device
        .kernel(&key, || {
            let b = Builder::new("many_in_graph", [1, 1, 1]);
            let out = b.pointer("out", DType::I32);
            let mut sum = b.i32(0);
            for i in 0..count {
                sum = sum + b.param(&format!("p{i}"), ScalarType::I32) * (i + 1);
            }
            out.store(0, sum);
            b.finish()
        })
        .unwrap();
    let outs: Vec<u64> = (0..1000).map(|_| device.allocate(4).unwrap()).collect();
    let (graph, ()) = capture(&device, || {
        for (round, &out) in outs.iter().enumerate() {
            let mut params = out.to_ne_bytes().to_vec();
            (0..count).for_each(|i| params.extend_from_slice(&(round as i32 ^ i).to_ne_bytes()));
            let writes = &[AddressRange::new(out, 4)];
            let launch = Launch {
                kernel,
                params: &params,
                table: &[],
                groups: [1, 1, 1],
                reads: &[],
                writes,
                work: 0,
                operator: "many",
            };
            device.launch(launch).unwrap();
        }
    });
    assert_eq!(graph.stats().barriers, 1);
    graph.replay().unwrap();
    drop(graph); // What runs is kept.
    for (round, &out) in outs.iter().enumerate().step_by(37) {
        let expected: i32 = (0..count).map(|i| (round as i32 ^ i) * (i + 1)).sum();
        assert_eq!(read(&device, out, 1), [expected]);
    }
}

#[test]
fn tables_stay_with_the_graph() {
    let device = open();
    let kernel = sum_of_table(&device);
    let outs: Vec<u64> = (0..100).map(|_| device.allocate(4).unwrap()).collect();
    let table = |i: usize| vec![i as i32; 5000];
    let (graph, ()) = capture(&device, || {
        for (i, &out) in outs.iter().enumerate() {
            launch_sum_of_table(&device, &kernel, out, &table(i)).unwrap();
        }
    });
    for _ in 0..2 {
        graph.replay().unwrap();
        for (i, &out) in outs.iter().enumerate().step_by(13) {
            assert_eq!(read(&device, out, 1), [5000 * i as i32]);
        }
    }
}

#[test]
fn what_cannot_be_captured_fails_and_leaves_the_device_usable() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; N]);
    let event = device.record_event(false).unwrap();
    let (other, _) = capture(&device, || step(&device, &kernel, (x, x, x), 1));
    type Work<'a> = Box<dyn Fn() -> Result<(), Error> + 'a>;
    let refused: [(&str, Work<'_>); 8] = [
        ("reading", Box::new(|| device.download(x, &mut [0; 4]))),
        ("synchronize", Box::new(|| device.synchronize())),
        ("done", Box::new(|| device.idle().map(drop))),
        ("cached", Box::new(|| device.empty_cache())),
        ("64 KiB", Box::new(|| device.upload(x, &[0; 70_000]))),
        ("event", Box::new(|| event.wait())),
        ("timing", Box::new(|| device.record_event(true).map(drop))),
        ("another graph", Box::new(|| other.replay())),
    ];
    for (word, work) in refused {
        let capture = device.capture(None).unwrap();
        step(&device, &kernel, (x, x, x), 1);
        device.record_event(false).unwrap();
        device.flush().unwrap();
        let what = is_graph_error(work());
        assert!(what.contains(word), "{what}");
        // The capture is lost, and says why, at every later launch and at its end.
        let later = launch_multiply_add(&device, &kernel, (x, x, x), N as u32, 1);
        assert_eq!(is_graph_error(later), what);
        assert_eq!(is_graph_error(capture.end()), what);
        assert!(!device.is_capturing());
        assert_eq!(read(&device, x, N), [1; N], "nothing of it ran");
    }
    let capture = device.capture(None).unwrap();
    assert!(is_graph_error(device.capture(None)).contains("this thread"));
    drop(capture);
    other.replay().unwrap();
    assert_eq!(read(&device, x, N), [2; N]);
    assert!(matches!(device.download(3, &mut [0; 4]), Err(Error::InvalidAddress { .. })));
}

#[test]
fn an_empty_graph_does_nothing() {
    let device = open();
    let (graph, ()) = capture(&device, || ());
    let before = device.queue_stats();
    graph.replay().unwrap();
    assert_eq!(device.queue_stats(), before);
    assert_eq!(graph.stats(), dml_engine::GraphStats::default());
}

#[test]
fn other_threads_go_on_during_a_capture() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; N]);
    let capture = device.capture(None).unwrap();
    let t = device.allocate(4 * N as u64).unwrap();
    step(&device, &kernel, (t, x, x), 1);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            assert!(!device.is_capturing());
            let y = put(&device, &[10; N]);
            step(&device, &kernel, (y, y, x), 2);
            assert_eq!(read(&device, y, N), [21; N]);
            device.synchronize().unwrap();
            assert!(is_graph_error(device.capture(None)).contains("another thread"));
            let foreign = launch_multiply_add(&device, &kernel, (y, t, x), N as u32, 1);
            assert!(is_graph_error(foreign).contains("uses memory of a graph"));
            device.free(y);
        });
        other.join().unwrap();
    });
    let graph = capture.end().unwrap();
    assert_eq!(graph.stats().launches, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| graph.replay().unwrap());
    });
    assert_eq!(read(&device, t, N), [2; N]);
    let capture = device.capture(None).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || assert!(is_graph_error(capture.end()).contains("thread that began it")));
    });
    assert!(!device.is_capturing());
    assert_eq!(read(&device, t, N), [2; N]);
}

/// Writes the state that a kernel would draw from: seed and counter.
fn drawn(device: &Device, kernel: &KernelRef, generator: Option<&Arc<Mutex<Generator>>>, out: u64, count: u64) -> u64 {
    match device.draw(generator, count).unwrap() {
        RandomSource::Stored { address, counter } => {
            let zero = device.allocate(16).unwrap();
            device.upload(zero, &[0; 16]).unwrap();
            launch_multiply_add(device, kernel, (out, address, zero), 4, 1).unwrap();
            counter
        }
        RandomSource::Known { .. } => panic!("not captured"),
    }
}

#[test]
fn every_replay_draws_new_numbers() {
    let device = open();
    let kernel = multiply_add(&device);
    let own = Arc::new(Mutex::new(Generator::new(99)));
    device.generator().lock().unwrap().set_seed(7);
    assert_eq!(device.draw(None, 3).unwrap(), RandomSource::Known { seed: 7, counter: 0 });
    let outs: Vec<u64> = (0..3).map(|_| device.allocate(16).unwrap()).collect();
    let (graph, counters) = capture(&device, || {
        [
            drawn(&device, &kernel, None, outs[0], 5),
            drawn(&device, &kernel, Some(&own), outs[1], 2),
            drawn(&device, &kernel, None, outs[2], 6),
        ]
    });
    assert_eq!(counters, [0, 0, 5]);
    assert_eq!(device.generator().lock().unwrap().offset(), 3, "capturing draws nothing");
    for round in 0..20 {
        graph.replay().unwrap();
        if round % 3 == 0 {
            // What runs between draws from the same stream.
            let expected = RandomSource::Known { seed: 7, counter: 3 + 11 * (round + 1) as u64 };
            assert_eq!(device.draw(None, 0).unwrap(), expected);
            assert_eq!(read(&device, outs[0], 4), [7, 0, 3 + 11 * round, 0]);
            assert_eq!(read(&device, outs[1], 4), [99, 0, 2 * round, 0]);
            assert_eq!(read(&device, outs[2], 4), [7, 0, 3 + 11 * round, 0]);
        }
    }
    device.generator().lock().unwrap().set_seed(8);
    graph.replay().unwrap();
    assert_eq!(read(&device, outs[2], 4), [8, 0, 0, 0]);
    assert_eq!(device.draw(None, 1).unwrap(), RandomSource::Known { seed: 8, counter: 11 });
}

#[test]
fn a_lost_device_says_so() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; N]);
    let (graph, ()) = capture(&device, || step(&device, &kernel, (x, x, x), 1));
    graph.replay().unwrap();
    let capture = device.capture(None).unwrap();
    device.simulate_loss();
    assert!(matches!(graph.replay(), Err(Error::DeviceLost { .. })));
    assert!(matches!(capture.end(), Err(Error::DeviceLost { .. })));
    assert!(matches!(device.capture(None), Err(Error::DeviceLost { .. })));
}
