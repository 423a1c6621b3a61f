//! Comparisons of integers that were widened, with constants: drivers simplify them, and not all of
//! them rightly.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_engine::{AddressRange, Device, Launch};
use dml_kernel::{Builder, DType, ScalarType, Value};

const NUMBERS: [i32; 9] = [0, 1, -1, 5, -5, 64, 1 << 30, i32::MAX, i32::MIN];
const CONSTANTS: [i64; 13] = [
    0,
    1,
    -1,
    5,
    -5,
    64,
    i32::MAX as i64,
    i32::MIN as i64,
    i32::MAX as i64 + 1,
    i32::MIN as i64 - 1,
    1 << 40,
    i64::MAX,
    i64::MIN,
];

/// Every comparison of `wide` with a constant, as bits.
fn compared<'b>(b: &'b Builder, wide: Value<'b>, constant: Value<'b>) -> Value<'b> {
    let results = [
        wide.lt(constant),
        wide.le(constant),
        wide.gt(constant),
        wide.ge(constant),
        wide.eq(constant),
        wide.ne(constant),
    ];
    results.into_iter().enumerate().fold(b.u32(0), |bits, (place, result)| bits | result.select(b.u32(1 << place), 0))
}

fn expected<T: PartialOrd>(wide: T, constant: T) -> i32 {
    let results =
        [wide < constant, wide <= constant, wide > constant, wide >= constant, wide == constant, wide != constant];
    results.into_iter().enumerate().map(|(place, result)| i32::from(result) << place).sum()
}

/// `out[i * CONSTANTS.len() + j]` holds the comparisons of `NUMBERS[i]`, as `wide`, with
/// `CONSTANTS[j]`.
fn on_device(device: &Device, wide: ScalarType) -> Vec<i32> {
    let kernel = device
        .kernel(&("test::integers", wide as u32), || {
            let b = Builder::new("integers", [64, 1, 1]);
            let (out, x) = (b.pointer("out", DType::U32), b.pointer("x", DType::I32));
            let i = b.global_id(0);
            b.if_(i.lt(NUMBERS.len() as u32), || {
                let number = x.load(i).cast(wide);
                for (j, &constant) in CONSTANTS.iter().enumerate() {
                    let constant = b.int(wide, constant as u64);
                    out.store(i * CONSTANTS.len() as u32 + j as u32, compared(&b, number, constant));
                }
            });
            b.finish()
        })
        .unwrap()
        .clone();
    let count = NUMBERS.len() * CONSTANTS.len();
    let (x, out) = (put(device, &NUMBERS), put(device, &vec![0; count]));
    let params: Vec<u8> = [out, x].iter().flat_map(|address| address.to_ne_bytes()).collect();
    device
        .launch(Launch {
            kernel: &kernel,
            params: &params,
            table: &[],
            groups: [1, 1, 1],
            reads: &[AddressRange::new(x, NUMBERS.len() as u64 * 4)],
            writes: &[AddressRange::new(out, count as u64 * 4)],
            work: 0,
            operator: "integers",
        })
        .unwrap();
    read(device, out, count)
}

fn check(wide: ScalarType, compare: fn(i32, i64) -> i32) {
    let got = on_device(&open(), wide);
    let pairs = NUMBERS.iter().flat_map(|&number| CONSTANTS.iter().map(move |&constant| (number, constant)));
    let wrong: Vec<_> = pairs
        .zip(got)
        .filter(|&((number, constant), got)| got != compare(number, constant))
        .map(|((number, constant), got)| format!("{number} with {constant}: {got:06b}"))
        .collect();
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
}

#[test]
fn i32_as_i64() {
    check(ScalarType::I64, |number, constant| expected(i64::from(number), constant));
}

#[test]
fn i32_as_u64() {
    check(ScalarType::U64, |number, constant| expected(i64::from(number) as u64, constant as u64));
}
