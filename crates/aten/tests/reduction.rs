//! Reductions over every kind of shape, compared with sums in f64 on the host.

mod common;

use common::{TestHost, flag, message, noise, tensor};
use dml_aten::Arg;
use dml_compute::View;
use dml_kernel::DType;

fn sum(host: &TestHost, t: &View, dims: &[i64]) -> Vec<f32> {
    let args = [tensor(t), Arg::Ints(dims), flag(false), Arg::None];
    let out = host.run("aten::sum.dim_IntList", &args).expect("a sum").remove(0);
    host.read_floats(&out)
}

/// The sum over the middle dimension of `[outer, n, inner]`.
fn check(host: &TestHost, outer: usize, n: usize, inner: usize) {
    let values = noise(outer * n * inner, (outer + n * 7 + inner * 31) as u64);
    let t = host.floats(&[outer as i64, n as i64, inner as i64], &values);
    let got = sum(host, &t, &[1]);
    for o in 0..outer {
        for i in 0..inner {
            let column = || (0..n).map(|k| f64::from(values[(o * n + k) * inner + i]));
            let (want, size) = (column().sum::<f64>(), column().map(f64::abs).sum::<f64>());
            let error = (f64::from(got[o * inner + i]) - want).abs();
            // 2^-24 for each rounding on the path through the tree.
            assert!(error <= size * 12.0 * 2f64.powi(-24) + 1e-12, "{outer} {n} {inner}: {error} of {size}");
        }
    }
}

#[test]
fn every_shape() {
    let host = TestHost::new();
    for n in [1, 2, 3, 5, 8, 33, 256, 1000, 4096, 40_000] {
        for (outer, inner) in [(1, 1), (3, 1), (1, 3), (1, 40), (5, 7), (2, 300)] {
            if outer * n * inner < 3_000_000 {
                check(&host, outer, n, inner);
            }
        }
    }
    check(&host, 70_000, 3, 1);
    check(&host, 1, 3, 70_001);
    check(&host, 1, 2_000_003, 1);
    check(&host, 1, 1 << 21, 1);
    check(&host, 1, 500_000, 3);
}

#[test]
fn many_dims_and_strides() {
    let host = TestHost::new();
    let values = noise(2 * 3 * 4 * 5, 1);
    let t = host.floats(&[2, 3, 4, 5], &values).permute(&[3, 1, 0, 2]);
    let got = sum(&host, &t, &[0, -2]);
    for b in 0..3 {
        for d in 0..4 {
            let mut want = 0.0;
            for a in 0..5 {
                for c in 0..2 {
                    want += f64::from(values[((c * 3 + b) * 4 + d) * 5 + a]);
                }
            }
            assert!((f64::from(got[b * 4 + d]) - want).abs() < 1e-5);
        }
    }
}

#[test]
fn nothing_to_sum() {
    let host = TestHost::new();
    let t = host.floats(&[3, 0, 2], &[]);
    assert_eq!(sum(&host, &t, &[1]), [0.0; 6]);
    assert!(sum(&host, &t, &[0]).is_empty());
    assert_eq!(sum(&host, &t, &[]), [0.0]);
    let text = message(host.run("aten::amax", &[tensor(&t), Arg::Ints(&[1]), flag(false)]));
    assert_eq!(text, "amax(): Expected reduction dim 1 to have non-zero size.");
}

#[test]
fn first_of_equals_wins() {
    let host = TestHost::new();
    let mut values = vec![0.0; 10_000];
    for at in [77, 300, 301, 9_999] {
        values[at] = 2.0;
    }
    let t = host.floats(&[100, 100], &values);
    let arg = |t: &View| host.run("aten::argmax", &[tensor(t), Arg::None, flag(false)]).expect("argmax").remove(0);
    assert_eq!(host.read_longs(&arg(&t)), [77]);
    // With columns as rows, index 0·100 + 3 comes first.
    assert_eq!(host.read_longs(&arg(&t.transpose(0, 1))), [3]);
    values[5_000] = f32::NAN;
    values[5_001] = f32::NAN;
    let t = host.floats(&[100, 100], &values);
    assert_eq!(host.read_longs(&arg(&t)), [5_000]);
}

#[test]
fn integers_sum_in_64_bits() {
    let host = TestHost::new();
    let t = host.bytes(DType::U8, &[100_000], &[255; 100_000]);
    let out = host.run("aten::sum", &[tensor(&t), Arg::None]).expect("a sum").remove(0);
    assert_eq!(host.read_longs(&out), [25_500_000]);
}
