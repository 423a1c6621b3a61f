//! Products and convolutions that are split into several launches give the same bits as unsplit
//! ones, for every tile, division and edge.

mod common;

use common::{Random, TestHost, Values, flag, tensor};
use dml_aten::Arg;
use dml_compute::{Scalar, View};
use dml_kernel::DType;
use std::sync::{Mutex, PoisonError};

/// Maximum operations of a submission; each test case here has several times as many.
const BOUND: u64 = 100_000;
/// A bound for which no launch is split.
const NO_BOUND: u64 = u64::MAX;
/// A lock, since the tests share one device with one bound.
static ONE: Mutex<()> = Mutex::new(());

/// Asserts that the results are the same with and without splitting, and that launches were split.
fn same(host: &TestHost, what: &str, run: impl Fn() -> Vec<View>) {
    let _alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let told = [NO_BOUND, BOUND].map(|bound| {
        host.device.set_submission_work(bound);
        let before = host.device.queue_stats().commands;
        let results = run();
        let launches = host.device.queue_stats().commands - before;
        (launches, results.iter().map(|t| host.read(t)).collect::<Vec<_>>())
    });
    host.device.set_submission_work(NO_BOUND);
    let [whole, cut] = &told;
    assert!(cut.0 > whole.0, "{what}: {} launches are not cut", cut.0);
    let bits = |results: &[Vec<f64>]| results.iter().flatten().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(whole.1.iter().flatten().any(|x| *x != 0.0), "{what}");
    assert_eq!(bits(&whole.1), bits(&cut.1), "{what}");
}

fn random(host: &TestHost, dtype: DType, sizes: &[i64]) -> View {
    let n = sizes.iter().product::<i64>() as usize;
    host.of(dtype, sizes, &Random(n as u64).values(dtype, n))
}

#[test]
fn products() {
    let host = TestHost::new();
    for dtype in [DType::F32, DType::F16, DType::F64, DType::I32] {
        // Products in tiles, few tiles with a long k, rows times a matrix, and a column.
        for [m, n, k] in [[130, 97, 33], [40, 40, 3000], [3, 500, 300], [700, 1, 200], [256, 256, 64]] {
            let (a, b) = (random(&host, dtype, &[m, k]), random(&host, dtype, &[k, n]));
            let what = format!("mm {dtype:?} {m} {n} {k}");
            same(&host, &what, || host.run("aten::mm", &[tensor(&a), tensor(&b)]).expect("a product"));
        }
        let (a, b) = (random(&host, dtype, &[9, 50, 40]), random(&host, dtype, &[9, 40, 45]));
        same(&host, "bmm", || host.run("aten::bmm", &[tensor(&a), tensor(&b)]).expect("products"));
    }
}

#[test]
fn convolutions() {
    let host = TestHost::new();
    for (channels, groups) in [(8, 1), (12, 3), (16, 16)] {
        for transposed in [false, true] {
            let x = random(&host, DType::F32, &[3, channels, 20, 21]);
            let w = random(&host, DType::F32, &[channels, channels / groups, 3, 3]);
            let fixed = [
                Arg::Ints(&[1, 1]),
                Arg::Ints(&[1, 1]),
                Arg::Ints(&[1, 1]),
                flag(transposed),
                Arg::Ints(&[0, 0]),
                Arg::Scalar(Scalar::Int(groups)),
            ];
            let what = format!("{channels} channels in {groups} groups, transposed: {transposed}");
            let args = [vec![tensor(&x), tensor(&w), Arg::None], fixed.to_vec()].concat();
            let forward = || host.run("aten::convolution_overrideable", &args).expect("a convolution");
            same(&host, &what, forward);
            let mut args = [vec![tensor(&forward()[0]), tensor(&x), tensor(&w)], fixed.to_vec()].concat();
            args.push(Arg::Bools(&[1, 1, 1]));
            let what = format!("gradients of {what}");
            same(&host, &what, || host.run("aten::convolution_backward_overrideable", &args).expect("gradients"));
        }
    }
}
