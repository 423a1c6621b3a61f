//! Operators that write results which exist.

mod common;

use common::{Random, TestHost, Values, flag, number, tensor};
use dml_aten::inference::{infer, run_with_outputs};
use dml_aten::{Arg, Error, Operator, Result, Ret};
use dml_compute::{Environment, Scalar, View};
use dml_kernel::DType;

fn operator(name: &str) -> &'static Operator {
    dml_aten::operators().iter().find(|o| o.name == name).expect("the operator exists")
}

fn integer(n: i64) -> Arg<'static> {
    Arg::Scalar(Scalar::Int(n))
}

fn random(host: &TestHost, sizes: &[i64]) -> View {
    let n = sizes.iter().product::<i64>() as usize;
    host.of(DType::F32, sizes, &Random(n as u64).values(DType::F32, n))
}

fn tensors(results: impl IntoIterator<Item = Ret>) -> Vec<View> {
    let tensors = results.into_iter().map(|result| match result {
        Ret::Tensor(t) => t,
        other => panic!("{other:?} is no tensor"),
    });
    tensors.collect()
}

fn into(host: &TestHost, name: &str, args: &[Arg], outputs: &[View]) -> Result<Vec<View>> {
    Ok(tensors(run_with_outputs(operator(name), args, &host.device, host, outputs)?))
}

/// Operators of one result and of several, computed in one launch and in more, with and without
/// scratch memory.
fn calls(host: &TestHost) -> Vec<(&'static str, Vec<Arg<'static>>)> {
    let (x, y, wide) = (random(host, &[6, 7]), random(host, &[6, 7]), random(host, &[7, 300]));
    let (weight, bias) = (random(host, &[300]), random(host, &[300]));
    let turned = y.transpose(0, 1);
    vec![
        ("aten::add.Tensor", vec![tensor(&x), tensor(&y), integer(2)]),
        ("aten::relu", vec![tensor(&turned)]),
        ("aten::mm", vec![tensor(&x), tensor(&wide)]),
        ("aten::sum.dim_IntList", vec![tensor(&wide), Arg::Ints(&[1]), flag(false), Arg::None]),
        ("aten::_softmax", vec![tensor(&wide), integer(1), flag(false)]),
        (
            "aten::native_layer_norm",
            vec![tensor(&wide), Arg::Ints(&[300]), tensor(&weight), tensor(&bias), number(1e-5)],
        ),
        ("aten::topk", vec![tensor(&wide), integer(5), integer(1), flag(true), flag(true)]),
        ("aten::gather", vec![tensor(&x), integer(0), tensor(&index(host)), flag(false)]),
    ]
}

fn index(host: &TestHost) -> View {
    host.of(DType::I64, &[2, 7], &[0.0, 5.0, 1.0, 4.0, 2.0, 3.0, 0.0, 5.0, 5.0, 0.0, 3.0, 1.0, 2.0, 4.0])
}

/// The bits of a tensor's memory, which begins with its first element and has no gaps.
fn memory(host: &TestHost, t: &View) -> Vec<u8> {
    let mut bytes = vec![0; (t.numel() as u64 * t.element_size()) as usize];
    host.device.download(t.data, &mut bytes).expect("the device works");
    bytes
}

/// New memory for a result, which holds something else.
fn place(host: &TestHost, t: &View, strides: &[i64]) -> View {
    let place = host.allocate(0, t.dtype, &t.sizes, strides).expect("there is memory");
    let bytes = vec![0xa5; (t.numel() as u64 * t.element_size()) as usize];
    host.device.upload(place.data, &bytes).expect("the device works");
    place
}

#[test]
fn inferred_results_are_written_in_place() {
    let host = TestHost::new();
    for (name, args) in calls(&host) {
        let expected = host.run(name, &args).expect(name);
        let inferred = infer(operator(name), &args, &host.device, &host).expect(name);
        let outputs: Vec<View> = tensors(inferred.results).iter().map(|t| place(&host, t, &t.strides)).collect();
        let results = into(&host, name, &args, &outputs).expect(name);
        assert_eq!(results.len(), expected.len(), "{name}");
        for ((result, out), expected) in results.iter().zip(&outputs).zip(&expected) {
            // Where nothing else of a result's shape is needed, there is nothing to copy.
            if matches!(name, "aten::add.Tensor" | "aten::relu" | "aten::mm") {
                assert_eq!(result.data, out.data, "{name}: the result is elsewhere");
            }
            assert_eq!(out.strides, expected.strides, "{name}");
            assert_eq!(memory(&host, out), memory(&host, expected), "{name}");
        }
    }
}

#[test]
fn results_of_other_strides_are_written_too() {
    let host = TestHost::new();
    for (name, args) in calls(&host) {
        let expected = host.run(name, &args).expect(name);
        let backwards = |t: &View| {
            let mut strides = t.sizes.clone();
            let mut step = 1;
            for (stride, n) in strides.iter_mut().zip(&t.sizes) {
                *stride = step;
                step *= n;
            }
            strides
        };
        let outputs: Vec<View> = expected.iter().map(|t| place(&host, t, &backwards(t))).collect();
        into(&host, name, &args, &outputs).expect(name);
        for (out, expected) in outputs.iter().zip(&expected) {
            let read = |t: &View| {
                let row = host.allocate(0, t.dtype, &t.sizes, &View::contiguous_strides(&t.sizes)).expect("memory");
                let same = [tensor(t), tensor(&row), flag(false)];
                host.run("aten::_copy_from", &same).expect("a copy");
                memory(&host, &row)
            };
            assert_eq!(read(out), read(expected), "{name}");
        }
    }
}

#[test]
fn results_that_do_not_fit_are_errors() {
    let host = TestHost::new();
    let contiguous = |dtype, sizes: &[i64]| {
        host.allocate(0, dtype, sizes, &View::contiguous_strides(sizes)).expect("there is memory")
    };
    for (name, args) in calls(&host) {
        let expected = host.run(name, &args).expect(name);
        let good: Vec<View> = expected.iter().map(|t| contiguous(t.dtype, &t.sizes)).collect();
        let mut wider = good.clone();
        wider[0] = contiguous(good[0].dtype, &[&[3], &good[0].sizes[..]].concat());
        let mut doubles = good.clone();
        doubles[0] = contiguous(DType::F64, &good[0].sizes);
        let mut more = good.clone();
        more.push(contiguous(DType::F32, &[2]));
        for (what, outputs) in [("shape", &wider), ("dtype", &doubles), ("number", &more)] {
            let error = into(&host, name, &args, outputs).expect_err("this does not fit");
            assert!(matches!(&error, Error::Runtime(message) if message.contains(name)), "{name}, {what}: {error:?}");
        }
        let fewer = &good[1..];
        assert!(matches!(into(&host, name, &args, fewer), Err(Error::Runtime(_))), "{name}");
        into(&host, name, &args, &good).expect(name);
    }
}

#[test]
fn errors_of_arguments_are_the_operators() {
    let host = TestHost::new();
    let (x, y) = (random(&host, &[6, 7]), random(&host, &[6, 7]));
    let out = random(&host, &[6, 6]);
    let (args, outputs) = ([tensor(&x), tensor(&y)], [out]);
    let told = |result: Result<Vec<View>>| result.expect_err("these cannot be multiplied").to_string();
    assert_eq!(told(into(&host, "aten::mm", &args, &outputs)), told(host.run("aten::mm", &args)));
}

#[test]
fn results_that_depend_on_values_are_copied() {
    let host = TestHost::new();
    let x = host.of(DType::F32, &[5], &[0.0, 2.0, 0.0, 1.0, 3.0]);
    let args = [tensor(&x)];
    let described = infer(operator("aten::nonzero"), &args, &host.device, &host);
    assert!(matches!(described, Err(Error::NeedsData(_))), "{described:?}");
    let out = host.of(DType::I64, &[3, 1], &[9.0; 3]);
    into(&host, "aten::nonzero", &args, std::slice::from_ref(&out)).expect("three are not 0");
    assert_eq!(host.read_longs(&out), [1, 3, 4]);
    let short = host.of(DType::I64, &[2, 1], &[9.0; 2]);
    let error = into(&host, "aten::nonzero", &args, &[short]).expect_err("three are not 0");
    assert!(matches!(error, Error::Runtime(_)), "{error:?}");
}

/// All results of `_unique2` may be of one dtype and shape, and are made in an order of their own.
#[test]
fn results_that_are_alike_keep_apart() {
    let host = TestHost::new();
    let x = host.of(DType::I64, &[5], &[40.0, 10.0, 30.0, 50.0, 20.0]);
    let args = [tensor(&x), flag(true), flag(true), flag(true)];
    let outputs: Vec<View> = (0..3).map(|_| host.of(DType::I64, &[5], &[9.0; 5])).collect();
    into(&host, "aten::_unique2", &args, &outputs).expect("the elements are distinct");
    assert_eq!(host.read_longs(&outputs[0]), [10, 20, 30, 40, 50]);
    assert_eq!(host.read_longs(&outputs[1]), [3, 0, 2, 4, 1]);
    assert_eq!(host.read_longs(&outputs[2]), [1; 5]);
}
