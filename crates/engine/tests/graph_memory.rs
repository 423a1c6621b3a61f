//! Memory of graphs: it is not used by other work while the graph lives, and is freed with it.
#![allow(clippy::unwrap_used)]

mod common;
use common::graphs::*;
use common::*;
use dml_engine::Graph;
use std::sync::Arc;

#[test]
fn a_graph_keeps_its_memory_to_itself() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[4; N]);
    let (graph, (t, out)) = capture(&device, || {
        let t = device.allocate(4 * N as u64).unwrap();
        let out = device.allocate(4 * N as u64).unwrap();
        step(&device, &kernel, (t, x, x), 1);
        step(&device, &kernel, (out, t, x), 1);
        device.free(t);
        (t, out)
    });
    let reserved = device.memory_stats().all.reserved_bytes.current;
    // Neither the freed block nor the segment goes to anybody else.
    let others: Vec<u64> = (0..100).map(|_| device.allocate(4 * N as u64).unwrap()).collect();
    assert!(!others.contains(&t));
    others.iter().for_each(|&other| device.free(other));
    device.empty_cache().unwrap();
    graph.replay().unwrap();
    assert_eq!(read(&device, out, N), [12; N]);
    // The output outlives the graph, whose memory is then everybody's.
    drop(graph);
    assert_eq!(read(&device, out, N), [12; N]);
    assert_eq!(device.block(out), Some(device.range(out, 1024)));
    let others: Vec<u64> = (0..2000).map(|_| device.allocate(4 * N as u64).unwrap()).collect();
    assert!(others.contains(&t));
    assert!(device.memory_stats().all.reserved_bytes.current <= reserved);
    others.iter().chain([&out, &x]).for_each(|&other| device.free(other));
    device.empty_cache().unwrap();
    assert_eq!(device.memory_stats().all.reserved_bytes.current, 0);
}

#[test]
fn graphs_of_a_pool_share_memory() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; N]);
    let pool = device.graph_pool();
    let mut scratch = Vec::new();
    let graphs: Vec<Graph> = (0..3)
        .map(|i| {
            let capture = device.capture(Some(&pool)).unwrap();
            assert!(Arc::ptr_eq(capture.pool(), &pool));
            let t = device.allocate(4 * N as u64).unwrap();
            step(&device, &kernel, (t, x, x), i);
            step(&device, &kernel, (x, t, x), 1);
            device.free(t);
            scratch.push(t);
            capture.end().unwrap()
        })
        .collect();
    assert_eq!(scratch, [scratch[0]; 3]);
    let mut expected = 1;
    for (i, graph) in graphs.iter().enumerate() {
        graph.replay().unwrap();
        expected *= i as i32 + 2;
    }
    assert_eq!(read(&device, x, N), [expected; N]);
    let other = open();
    assert!(is_graph_error(other.capture(Some(&pool))).contains("another device"));
}

#[test]
fn memory_that_was_freed_outside_is_not_returned_to_the_driver() {
    let device = open();
    let kernel = multiply_add(&device);
    // Segments of their own.
    let x = put(&device, &[7; 4 << 20]);
    let out = device.allocate(16 << 20).unwrap();
    let (graph, ()) = capture(&device, || step(&device, &kernel, (out, x, x), 1));
    device.free(x);
    device.free(out);
    let reserved = device.memory_stats().all.reserved_bytes.current;
    device.empty_cache().unwrap();
    assert_eq!(device.memory_stats().all.reserved_bytes.current, reserved);
    graph.replay().unwrap(); // Computes with what lies there, and harms nothing but that.
    device.synchronize().unwrap();
    graph.replay().unwrap();
    drop(graph); // With a replay that is not submitted yet.
    device.empty_cache().unwrap();
    assert_eq!(device.memory_stats().all.reserved_bytes.current, 0);
}

#[test]
fn a_discarded_capture_leaves_nothing() {
    let device = open();
    let kernel = multiply_add(&device);
    let x = put(&device, &[1; N]);
    let capture = device.capture(None).unwrap();
    let t = device.allocate(4 * N as u64).unwrap();
    step(&device, &kernel, (x, x, x), 1);
    drop(capture);
    assert_eq!(read(&device, x, N), [1; N]);
    device.free(t);
    device.free(x);
    device.empty_cache().unwrap();
    assert_eq!(device.memory_stats().all.reserved_bytes.current, 0);
}
