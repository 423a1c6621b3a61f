//! Matrix units: every product that the adapter offers is what the interpreter computes, and
//! emulated ones are anywhere.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_engine::{AddressRange, Device, Launch, element_dtype};
use dml_kernel::interpret::{Argument, run};
use dml_kernel::matrix::product_types;
use dml_kernel::{Builder, DType, Kernel, Matrix, MatrixLayout, MatrixType, ScalarType};
use dml_testing::Random;

/// Subgroups of a workgroup: the products are the same, in places of their own.
const SUBGROUPS: u32 = 2;

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct Case {
    shape: [u32; 3],
    operands: DType,
    sums: DType,
    layout: MatrixLayout,
    /// Operands go through shared memory, and so does the result where its elements have 4 bytes.
    shared: bool,
    emulated: bool,
}

/// `c = a b + 1`
fn kernel(case: Case, lanes: u32) -> Kernel {
    let [m, n, k] = case.shape;
    let b = Builder::new("matrix_units", [SUBGROUPS * lanes, 1, 1]);
    {
        let types = product_types(case.shape, case.operands, case.sums);
        let pointers = [b.input("a", case.operands), b.input("b", case.operands)];
        let out = b.pointer("c", case.sums);
        let matrix = |ty: MatrixType| if case.emulated { b.emulated_matrix(ty) } else { b.matrix(ty) };
        let [left, right, sum]: [Matrix<'_>; 3] = types.map(matrix);
        let strides = if case.layout == MatrixLayout::RowMajor { [k, n] } else { [m, k] };
        for ((to, from), stride) in [left, right].into_iter().zip(pointers).zip(strides) {
            if !case.shared {
                to.load(from, 0u32, stride, case.layout);
                continue;
            }
            let (words, bytes) = (to.ty().len() * case.operands.bytes() as u32 / 4, case.operands.bytes() as u32);
            let (stage, from) = (b.shared(ScalarType::U32, 1, words), from.retyped(DType::U32));
            b.for_(b.local_id(0), b.u32(words), SUBGROUPS * lanes, |i| stage.store(i, from.load(i)));
            b.barrier();
            to.load(stage, 0u32, stride * bytes / 4, case.layout);
        }
        sum.fill(1.0);
        sum.multiply_add(left, right);
        let at = b.subgroup_index() * (m * n);
        if case.shared && case.sums.bytes() == 4 {
            let stage = b.shared(case.sums.compute(), 1, SUBGROUPS * m * n);
            sum.store(stage, at, n, MatrixLayout::RowMajor);
            b.subgroup_barrier();
            b.for_(b.subgroup_lane(), b.u32(m * n), lanes, |i| out.store(at + i, stage.load(at + i)));
        } else {
            sum.store(out, at, n, MatrixLayout::RowMajor);
        }
    }
    b.finish()
}

fn check(device: &Device, case: Case) {
    let lanes = device.info().capabilities.subgroup_size;
    let [m, n, k] = case.shape;
    let mut random = Random(3);
    // Whole numbers of one size and sign or two: sums are exact in every dtype.
    let mut operand = |len: u32| -> Vec<u8> {
        let words = match case.operands {
            DType::F16 => [0x3c00u16, 0xbc00, 0x4000, 0],
            DType::BF16 => [0x3f80, 0xbf80, 0x4000, 0],
            _ => [1, 3, 2, 0],
        };
        let size = case.operands.bytes() as usize;
        (0..len).flat_map(|_| words[random.below(4) as usize].to_le_bytes()[..size].to_vec()).collect()
    };
    let (mut a, mut b) = (operand(m * k), operand(k * n));
    let mut c = vec![0u8; (SUBGROUPS * m * n) as usize * case.sums.bytes() as usize];
    let words = |bytes: &[u8]| -> Vec<i32> {
        bytes.chunks_exact(4).map(|w| i32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
    };
    let addresses = [put(device, &words(&a)), put(device, &words(&b)), put(device, &words(&c))];
    let compiled = device.kernel(&("test::matrix", case), || kernel(case, lanes)).unwrap().clone();
    let range = |i: usize, bytes: &[u8]| AddressRange::new(addresses[i], bytes.len() as u64);
    device
        .launch(Launch {
            kernel: &compiled,
            params: &addresses.iter().flat_map(|address| address.to_ne_bytes()).collect::<Vec<u8>>(),
            table: &[],
            groups: [1, 1, 1],
            reads: &[range(0, &a), range(1, &b)],
            writes: &[range(2, &c)],
            work: 0,
            operator: "matrix",
        })
        .unwrap();
    let got = read(device, addresses[2], c.len() / 4);
    let mut arguments = [&mut a, &mut b, &mut c].map(|memory| Argument::Memory(memory));
    run(&kernel(case, lanes), [1, 1, 1], lanes, &mut arguments);
    assert_eq!(got, words(&c), "{case:?}");
}

fn cases(shape: [u32; 3], operands: DType, sums: DType, emulated: bool) -> impl Iterator<Item = Case> {
    [MatrixLayout::RowMajor, MatrixLayout::ColumnMajor]
        .into_iter()
        .flat_map(move |layout| [false, true].map(|shared| Case { shape, operands, sums, layout, shared, emulated }))
}

#[test]
fn emulated() {
    let device = open();
    for (operands, sums) in [(DType::F16, DType::F32), (DType::BF16, DType::F32), (DType::I8, DType::I32)] {
        cases([16, 8, 16], operands, sums, true).for_each(|case| check(&device, case));
    }
}

#[test]
fn every_shape_of_the_adapter() {
    let device = open();
    // Something to do on an adapter that has none: a process that ends while a device that did
    // nothing compiles its own kernels ends badly in the validation layer of Debian 12.
    cases([8, 8, 8], DType::F16, DType::F32, true).for_each(|case| check(&device, case));
    let mut tried = 0;
    for shape in &device.info().capabilities.matrix_shapes {
        let same = shape.a == shape.b && shape.c == shape.result && !shape.saturating;
        let (Some(operands), Some(sums)) = (element_dtype(shape.a), element_dtype(shape.c)) else { continue };
        let narrow = operands.bytes() < 4 && (operands.is_float() == sums.is_float());
        if same && narrow && (sums.bytes() == 4 || operands == DType::F16) {
            cases([shape.m, shape.n, shape.k], operands, sums, false).for_each(|case| check(&device, case));
            tried += 1;
        }
    }
    println!("{tried} shapes of {}", device.info().name);
    assert_eq!(tried == 0, device.info().capabilities.matrix_shapes.is_empty());
}

#[test]
fn a_shape_that_the_adapter_lacks_is_an_error() {
    let device = open();
    let case = Case {
        shape: [3, 5, 7],
        operands: DType::F16,
        sums: DType::F32,
        layout: MatrixLayout::RowMajor,
        shared: false,
        emulated: false,
    };
    let error = device.kernel(&("test::matrix", case), || kernel(case, 32)).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("matrix units"), "{error}");
}
