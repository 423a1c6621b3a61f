//! Convolutions and their gradients, compared with sums in f64 on the host.

mod common;

use common::{Random, TestHost, Values, flag, message, tensor};
use dml_aten::{Arg, Result};
use dml_compute::{Scalar, View};
use dml_kernel::DType;

/// One convolution over up to three spatial dimensions.
#[derive(Clone, Debug)]
struct Case {
    batch: i64,
    channels: [i64; 2],
    spatial: Vec<i64>,
    kernel: Vec<i64>,
    stride: i64,
    padding: i64,
    dilation: i64,
    groups: i64,
    transposed: bool,
    extra: i64,
}

fn case(batch: i64, channels: [i64; 2], spatial: &[i64], kernel: &[i64]) -> Case {
    let (spatial, kernel) = (spatial.to_vec(), kernel.to_vec());
    let (stride, padding, dilation, groups, transposed, extra) = (1, 0, 1, 1, false, 0);
    Case { batch, channels, spatial, kernel, stride, padding, dilation, groups, transposed, extra }
}

impl Case {
    fn input(&self) -> Vec<i64> {
        [&[self.batch, self.channels[0]], &self.spatial[..]].concat()
    }

    fn weight(&self) -> Vec<i64> {
        let [ci, co] = self.channels;
        let head = if self.transposed { [ci, co / self.groups] } else { [co, ci / self.groups] };
        [&head, &self.kernel[..]].concat()
    }

    fn output(&self) -> Vec<i64> {
        let window = |k: i64| self.dilation * (k - 1) + 1;
        let spatial = self.spatial.iter().zip(&self.kernel).map(|(&n, &k)| {
            if self.transposed {
                (n - 1) * self.stride - 2 * self.padding + window(k) + self.extra
            } else {
                (n + 2 * self.padding - window(k)) / self.stride + 1
            }
        });
        [self.batch, self.channels[1]].into_iter().chain(spatial).collect()
    }

    /// Calls `f` with the linear indices of every combination of input, weight and output elements.
    fn meet(&self, mut f: impl FnMut(usize, usize, usize)) {
        let (x, w, y) = (self.input(), self.weight(), self.output());
        // From the side over which windows move to the other side.
        let (wide, narrow) = if self.transposed { (&y, &x) } else { (&x, &y) };
        let (per_wide, per_narrow) = (wide[1] / self.groups, narrow[1] / self.groups);
        let linear = |sizes: &[i64], at: &[i64]| sizes.iter().zip(at).fold(0, |l, (n, i)| l * n + i) as usize;
        for narrow_at in indices(narrow) {
            for tap in indices(&self.kernel) {
                let place: Vec<i64> = (0..tap.len())
                    .map(|d| narrow_at[2 + d] * self.stride - self.padding + tap[d] * self.dilation)
                    .collect();
                if place.iter().zip(&wide[2..]).any(|(p, n)| p < &0 || p >= n) {
                    continue;
                }
                let group = narrow_at[1] / per_narrow;
                for c in 0..per_wide {
                    let wide_at = [&[narrow_at[0], group * per_wide + c], &place[..]].concat();
                    let weight_at = [&[narrow_at[1], c], &tap[..]].concat();
                    let (i, j) = (linear(wide, &wide_at), linear(narrow, &narrow_at));
                    let k = linear(&w, &weight_at);
                    if self.transposed { f(j, k, i) } else { f(i, k, j) }
                }
            }
        }
    }

    fn args<'a>(&'a self, lists: &'a [Vec<i64>; 4]) -> Vec<Arg<'a>> {
        let [stride, padding, dilation, extra] = lists;
        vec![
            Arg::Ints(stride),
            Arg::Ints(padding),
            Arg::Ints(dilation),
            flag(self.transposed),
            Arg::Ints(extra),
            Arg::Scalar(Scalar::Int(self.groups)),
        ]
    }

    fn lists(&self) -> [Vec<i64>; 4] {
        [self.stride, self.padding, self.dilation, self.extra].map(|x| vec![x; self.spatial.len()])
    }
}

/// Every index in a tensor of these sizes, in row-major order.
fn indices(sizes: &[i64]) -> Vec<Vec<i64>> {
    let count: i64 = sizes.iter().product();
    let at = |mut linear: i64| {
        let mut index = vec![0; sizes.len()];
        for d in (0..sizes.len()).rev() {
            index[d] = linear % sizes[d];
            linear /= sizes[d];
        }
        index
    };
    (0..count).map(at).collect()
}

/// A tensor with values in row-major order, whose memory is channels-last if `last`.
fn make(host: &TestHost, dtype: DType, sizes: &[i64], values: &[f64], last: bool) -> View {
    if !last {
        return host.of(dtype, sizes, values);
    }
    let mut moved = vec![0.0; values.len()];
    let strides = last_strides(sizes);
    for (linear, index) in indices(sizes).iter().enumerate() {
        moved[index.iter().zip(&strides).map(|(i, s)| i * s).sum::<i64>() as usize] = values[linear];
    }
    host.of(dtype, &[values.len() as i64], &moved).as_strided(sizes, &strides, 0)
}

fn last_strides(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![0; sizes.len()];
    let mut step = 1;
    for d in [1].into_iter().chain((2..sizes.len()).rev()).chain([0]) {
        strides[d] = step;
        step *= sizes[d];
    }
    strides
}

/// The values, in row-major order, of a dense tensor in either memory order.
fn read(host: &TestHost, t: &View) -> Vec<f64> {
    if t.is_contiguous() {
        return host.read(t);
    }
    let memory = host.read(&t.as_strided(&[t.numel()], &[1], 0));
    let at = |index: &Vec<i64>| index.iter().zip(&t.strides).map(|(i, s)| i * s).sum::<i64>() as usize;
    indices(&t.sizes).iter().map(|i| memory[at(i)]).collect()
}

fn assert_close(dtype: DType, got: &[f64], want: &[f64], terms: f64, what: &str) {
    let (last, sums) = match dtype {
        DType::F16 => (2f64.powi(-11), 2f64.powi(-23)),
        DType::BF16 => (2f64.powi(-8), 2f64.powi(-23)),
        DType::F64 => (2f64.powi(-52), 2f64.powi(-52)),
        _ => (2f64.powi(-23), 2f64.powi(-23)),
    };
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= last * w.abs() + sums * (terms + 1.0), "{what}: element {i} is {g}, not {w}");
    }
}

fn check(host: &TestHost, case: &Case, dtype: DType, last: bool) {
    let mut random = Random(case.batch as u64 * 77 + case.channels[0] as u64);
    let (xs, ws, ys) = (case.input(), case.weight(), case.output());
    let count = |sizes: &[i64]| sizes.iter().product::<i64>() as usize;
    let [x, w, grad] = [&xs, &ws, &ys].map(|sizes| random.values(dtype, count(sizes)));
    let bias = random.values(dtype, ys[1] as usize);
    let [tx, tw] = [(&xs, &x), (&ws, &w)].map(|(sizes, values)| make(host, dtype, sizes, values, last));
    let (tgrad, tbias) = (make(host, dtype, &ys, &grad, last), host.of(dtype, &[ys[1]], &bias));
    let per_image = count(&ys[2..]);
    let mut y: Vec<f64> = (0..count(&ys)).map(|i| bias[i / per_image % ys[1] as usize]).collect();
    let (mut gx, mut gw) = (vec![0.0; x.len()], vec![0.0; w.len()]);
    case.meet(|i, k, j| {
        y[j] += x[i] * w[k];
        gx[i] += grad[j] * w[k];
        gw[k] += grad[j] * x[i];
    });
    let mut gb = vec![0.0; ys[1] as usize];
    for (i, g) in grad.iter().enumerate() {
        gb[i / per_image % ys[1] as usize] += g;
    }
    let lists = case.lists();
    let what = format!("{case:?} {dtype} last={last}");
    let args = [vec![tensor(&tx), tensor(&tw), tensor(&tbias)], case.args(&lists)].concat();
    let out = host.run("aten::convolution_overrideable", &args).expect(&what).remove(0);
    assert_eq!(out.sizes.as_slice(), ys, "{what}");
    let taps = count(&case.kernel) as f64;
    assert_close(dtype, &read(host, &out), &y, taps * case.channels[0] as f64, &format!("forward {what}"));
    let mask = [1u8; 3];
    let mut args = [vec![tensor(&tgrad), tensor(&tx), tensor(&tw)], case.args(&lists)].concat();
    args.push(Arg::Bools(&mask));
    let grads = host.run("aten::convolution_backward_overrideable", &args).expect(&what);
    let pixels = (case.batch as usize * per_image.max(count(&xs[2..]))) as f64;
    for (i, (want, terms)) in [(&gx, taps * case.channels[1] as f64), (&gw, pixels), (&gb, pixels)].iter().enumerate() {
        assert_close(dtype, &read(host, &grads[i]), want, *terms, &format!("gradient {i} {what}"));
    }
}

#[test]
fn two_dimensions() {
    let host = TestHost::new();
    let plain = case(2, [3, 5], &[7, 9], &[3, 3]);
    let cases = [
        plain.clone(),
        Case { stride: 2, padding: 1, ..case(2, [4, 8], &[9, 8], &[3, 2]) },
        Case { padding: 2, dilation: 2, ..case(1, [4, 20], &[8, 8], &[3, 3]) },
        Case { groups: 2, padding: 1, ..case(3, [8, 8], &[6, 5], &[3, 3]) },
        Case { groups: 6, stride: 2, padding: 1, ..case(2, [6, 12], &[7, 7], &[3, 3]) },
        Case { groups: 6, padding: 1, ..case(2, [6, 6], &[7, 9], &[3, 4]) },
        Case { groups: 4, stride: 2, dilation: 2, padding: 2, ..case(2, [4, 4], &[17, 8], &[3, 2]) },
        case(2, [16, 24], &[4, 4], &[1, 1]),
        case(4, [8, 4], &[5, 5], &[5, 5]),
        Case { transposed: true, ..plain },
        Case { transposed: true, stride: 2, padding: 1, extra: 1, groups: 4, ..case(2, [4, 4], &[5, 4], &[3, 3]) },
        Case { transposed: true, stride: 2, padding: 1, extra: 1, groups: 2, ..case(2, [4, 6], &[5, 4], &[3, 3]) },
    ];
    for case in &cases {
        for last in [false, true] {
            check(&host, case, DType::F32, last);
        }
        host.device.synchronize().expect("the device works");
        host.clear();
    }
}

#[test]
fn one_and_three_dimensions() {
    let host = TestHost::new();
    check(&host, &Case { stride: 2, padding: 1, ..case(2, [3, 8], &[13], &[3]) }, DType::F32, false);
    check(&host, &Case { padding: 1, ..case(2, [4, 4], &[3, 4, 5], &[2, 3, 2]) }, DType::F32, false);
    let case = Case { padding: 1, stride: 2, transposed: true, ..case(1, [4, 4], &[3, 4, 5], &[2, 3, 3]) };
    check(&host, &case, DType::F32, true);
}

#[test]
fn every_dtype() {
    let host = TestHost::new();
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        check(&host, &Case { padding: 1, ..case(2, [4, 8], &[6, 6], &[3, 3]) }, dtype, false);
        check(&host, &Case { padding: 1, ..case(2, [4, 8], &[6, 6], &[3, 3]) }, dtype, true);
    }
}

#[test]
fn only_what_is_wanted_and_what_is_wrong() {
    let host = TestHost::new();
    let case = case(1, [2, 3], &[4, 4], &[3, 3]);
    let lists = case.lists();
    let t = |dtype, sizes: &[i64]| host.of(dtype, sizes, &vec![1.0; sizes.iter().product::<i64>() as usize]);
    let f = |sizes: &[i64]| tensor(&t(DType::F32, sizes));
    let forward = |x: Arg<'static>, w: Arg<'static>, b: Arg<'static>| -> Result<Vec<View>> {
        host.run("aten::convolution_overrideable", &[vec![x, w, b], case.args(&lists)].concat())
    };
    assert_eq!(
        message(forward(f(&[1, 3, 8, 8]), f(&[4, 2, 3, 3]), Arg::None)),
        "Given groups=1, weight of size [4, 2, 3, 3], expected input[1, 3, 8, 8] to have 2 channels, but got 3 \
         channels instead"
    );
    assert_eq!(
        message(forward(f(&[1, 2, 2, 2]), f(&[4, 2, 3, 3]), Arg::None)),
        "Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3). Kernel size can't be greater than \
         actual input size"
    );
    let double = tensor(&t(DType::F64, &[4, 2, 3, 3]));
    assert_eq!(message(forward(f(&[1, 2, 8, 8]), double, Arg::None)), "expected scalar type Float but found Double");
}
