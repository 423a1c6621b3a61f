//! Matrices of subgroups: the interpreter has the same results with matrix registers and with
//! emulated matrices.

use dml_kernel::interpret::{Argument, run};
use dml_kernel::matrix::product_types;
use dml_kernel::{Builder, ComponentMap, DType, Kernel, Matrix, MatrixLayout, MatrixType, ScalarType, Target};
use dml_testing::Random;
use half::{bf16, f16};

const LANES: u32 = 8;

/// The variant of a test's kernel.
#[derive(Copy, Clone, Debug)]
struct Case {
    shape: [u32; 3],
    operands: DType,
    sums: DType,
    layout: MatrixLayout,
    /// Operands and result are passed through shared memory.
    shared: bool,
    emulated: bool,
}

fn matrix<'b>(b: &'b Builder, case: Case, ty: MatrixType) -> Matrix<'b> {
    if case.emulated { b.emulated_matrix(ty) } else { b.matrix(ty) }
}

/// `c = 2 (a b + 1) + 1`, by two subgroups, each on its own matrices.
fn kernel(case: Case) -> Kernel {
    let Case { shape: [m, n, k], layout, .. } = case;
    let b = Builder::new("product", [2 * LANES, 1, 1]);
    {
        let [left, right, sum] = product_types(case.shape, case.operands, case.sums);
        let (x, y) = (b.input("a", case.operands), b.input("b", case.operands));
        let out = b.pointer("c", case.sums);
        let half = b.subgroup_index();
        let [a, w, c, d] = [left, right, sum, sum].map(|ty| matrix(&b, case, ty));
        let (a_stride, b_stride) = if layout == MatrixLayout::RowMajor { (k, n) } else { (m, k) };
        if case.shared {
            let words = |ty: MatrixType| ty.len() * ty.dtype.bytes() as u32 / 16;
            let stage_a = b.shared(ScalarType::U32, 4, words(left));
            let stage_b = b.shared(ScalarType::U32, 4, words(right));
            let lane = b.local_id(0);
            for (to, from, ty) in [(stage_a, x, left), (stage_b, y, right)] {
                let from = from.retyped(DType::U32);
                b.for_(lane, b.u32(words(ty)), 2 * LANES, |i| {
                    let at = i * 4;
                    to.store(i, b.vector(&[0u32, 1, 2, 3].map(|j| from.load(at + j))));
                });
            }
            b.barrier();
            let vector = 16 / case.operands.bytes() as u32;
            a.load(stage_a, 0u32, a_stride / vector, layout);
            w.load(stage_b, 0u32, b_stride / vector, layout);
        } else {
            a.load(x, 0u32, a_stride, layout);
            w.load(y, 0u32, b_stride, layout);
        }
        c.fill(1.0);
        d.fill(1.0);
        c.multiply_add(a, w);
        if case.sums.is_float() {
            c.scale(2.0);
        } else {
            c.add(c);
        }
        c.add(d);
        let at = half * (m * n);
        if case.shared && case.sums.bytes() == 4 {
            let stage = b.shared(case.sums.compute(), 1, 2 * m * n);
            c.store(stage, at, n, MatrixLayout::RowMajor);
            b.subgroup_barrier();
            b.for_(b.subgroup_lane(), b.u32(m * n), LANES, |i| out.store(at + i, stage.load(at + i)));
        } else {
            c.store(out, at, n, MatrixLayout::RowMajor);
        }
    }
    b.finish()
}

fn bytes(dtype: DType, x: f32) -> Vec<u8> {
    match dtype {
        DType::F16 => f16::from_f32(x).to_le_bytes().to_vec(),
        DType::BF16 => bf16::from_f32(x).to_le_bytes().to_vec(),
        DType::I8 => vec![x as i8 as u8],
        DType::U8 => vec![x as u8],
        DType::I32 => (x as i32).to_le_bytes().to_vec(),
        _ => x.to_le_bytes().to_vec(),
    }
}

fn number(dtype: DType, bytes: &[u8]) -> f32 {
    match dtype {
        DType::F16 => f16::from_le_bytes([bytes[0], bytes[1]]).to_f32(),
        DType::I32 => i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as f32,
        _ => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
    }
}

/// The result, which must be exact: all numbers are integers.
fn check(case: Case) {
    let [m, n, k] = case.shape.map(|x| x as usize);
    let mut rng = Random(7);
    let low = if case.operands == DType::U8 { 0.0 } else { -4.0 };
    let mut numbers = |len: usize| -> Vec<f32> { (0..len).map(|_| low + rng.below(9) as f32).collect() };
    let (a, b) = (numbers(m * k), numbers(k * n));
    let laid = |x: &[f32], rows: usize, columns: usize| -> Vec<u8> {
        let at = |i: usize| match case.layout {
            MatrixLayout::RowMajor => x[i],
            MatrixLayout::ColumnMajor => x[(i % rows) * columns + i / rows],
        };
        (0..rows * columns).flat_map(|i| bytes(case.operands, at(i))).collect()
    };
    let (mut a_bytes, mut b_bytes) = (laid(&a, m, k), laid(&b, k, n));
    let size = case.sums.bytes() as usize;
    let mut c = vec![0; 2 * m * n * size];
    let kernel = kernel(case);
    kernel.verify().unwrap_or_else(|wrong| panic!("{case:?}: {wrong}"));
    let mut arguments = [&mut a_bytes, &mut b_bytes, &mut c].map(|memory| Argument::Memory(memory));
    run(&kernel, [1, 1, 1], LANES, &mut arguments);
    for (i, element) in c.chunks_exact(size).enumerate() {
        let (row, column) = (i % (m * n) / n, i % n);
        let sum: f32 = (0..k).map(|k_| a[row * k + k_] * b[k_ * n + column]).sum();
        assert_eq!(number(case.sums, element), 2.0 * (sum + 1.0) + 1.0, "{case:?} at {row}, {column}");
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (operands, sums) in [
        (DType::F16, DType::F32),
        (DType::F16, DType::F16),
        (DType::BF16, DType::F32),
        (DType::I8, DType::I32),
        (DType::U8, DType::I32),
    ] {
        for shape in [[16, 16, 16], [8, 16, 32]] {
            for layout in [MatrixLayout::RowMajor, MatrixLayout::ColumnMajor] {
                for shared in [false, true] {
                    // A line of shared memory consists of whole vectors.
                    if shared && operands.bytes() == 1 && layout == MatrixLayout::ColumnMajor && shape[0] == 8 {
                        continue;
                    }
                    cases.push(Case { shape, operands, sums, layout, shared, emulated: false });
                }
            }
        }
    }
    cases
}

#[test]
fn registers_compute_the_product() {
    cases().into_iter().for_each(check);
}

#[test]
fn emulated_matrices_compute_the_product() {
    cases().into_iter().for_each(|case| check(Case { emulated: true, ..case }));
}

#[test]
fn registers_need_matrix_units_and_emulated_ones_none() -> Result<(), dml_kernel::InvalidKernel> {
    for case in cases() {
        let module = kernel(case).emit()?;
        assert!(module.needs.matrix);
        assert_eq!(module.needs.bf16_matrix, case.operands == DType::BF16);
        assert!(!kernel(Case { emulated: true, ..case }).emit()?.needs.matrix);
        let small = Target { invocations: 4, int64: false, storage16: false, ..Target::default() };
        assert!(kernel(case).emit_for(&small)?.needs.matrix, "it stays as it is");
    }
    Ok(())
}

/// `c = 2 (a + 1)`, by operations on components: of the left operand before a multiplication by 1,
/// and of the sum.
#[test]
fn invocations_have_components() {
    for (emulated, operands) in [(false, DType::F16), (true, DType::F16), (false, DType::BF16), (true, DType::BF16)] {
        let b = Builder::new("components", [2 * LANES, 1, 1]);
        {
            let [left, right, sum] = product_types([16; 3], operands, DType::F32);
            let (x, one, out) = (b.input("a", operands), b.input("b", operands), b.pointer("c", DType::F32));
            let matrix = |ty| if emulated { b.emulated_matrix(ty) } else { b.matrix(ty) };
            let (map, [x_, one_, sum]) = (ComponentMap::quads(16, 16, LANES), [left, right, sum].map(matrix));
            x_.load(x, 0u32, 16u32, MatrixLayout::RowMajor);
            one_.load(one, 0u32, 16u32, MatrixLayout::RowMajor);
            let change = |matrix: Matrix<'_>, times: f64, plus: f64| {
                let changed: Vec<_> = matrix.components(&map).iter().map(|&x| x * times + plus).collect();
                matrix.set_components(&map, &changed);
            };
            // Only the first subgroup changes the operand.
            b.if_(b.subgroup_index().eq(0), || change(x_, 1.0, 1.0));
            sum.fill(0.0);
            sum.multiply_add(x_, one_);
            change(sum, 2.0, 0.0);
            sum.store(out, b.subgroup_index() * 256, 16u32, MatrixLayout::RowMajor);
        }
        let kernel = b.finish();
        kernel.verify().unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(kernel.emit().is_ok_and(|module| module.needs.matrix), !emulated);
        let numbers: Vec<f32> = (0..256).map(|i| (i * 7 % 31) as f32).collect();
        let mut a: Vec<u8> = numbers.iter().flat_map(|&x| bytes(operands, x)).collect();
        let mut one: Vec<u8> = (0..256).flat_map(|i| bytes(operands, if i % 17 == 0 { 1.0 } else { 0.0 })).collect();
        let mut c = vec![0; 2 * 256 * 4];
        run(&kernel, [1, 1, 1], LANES, &mut [&mut a, &mut one, &mut c].map(|memory| Argument::Memory(memory)));
        for (i, element) in c.chunks_exact(4).enumerate() {
            let plus = if i < 256 { 1.0 } else { 0.0 };
            assert_eq!(number(DType::F32, element), 2.0 * (numbers[i % 256] + plus), "{emulated} {operands:?} at {i}");
        }
    }
}

#[test]
fn kernels_print_their_matrices() {
    let text = kernel(cases()[0]).to_string();
    for line in [
        "matrix @matrix0: left f16[16, 16]",
        "matrix_load @matrix0, @a[0], 16, row_major",
        "matrix_multiply_add @matrix2, @matrix0, @matrix1",
        "matrix_scale @matrix2, 2.0",
        "matrix_add @matrix2, @matrix3",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}

#[test]
fn wrong_matrices_are_refused() {
    let refused = |body: &dyn Fn(&Builder, [Matrix<'_>; 3])| {
        let b = Builder::new("wrong", [LANES, 1, 1]);
        body(&b, product_types([16, 16, 16], DType::F16, DType::F32).map(|ty| b.matrix(ty)));
        assert!(b.finish().verify().is_err());
    };
    refused(&|_, [left, right, sum]| sum.multiply_add(right, left));
    refused(&|_, [left, right, _]| left.multiply_add(left, right));
    refused(&|_, [left, ..]| left.fill(0.0));
    refused(&|_, [left, _, sum]| sum.add(left));
    refused(&|_, [.., sum]| sum.convert_from(sum));
    refused(&|b, [left, ..]| left.load(b.input("x", DType::F32), 0u32, 16u32, MatrixLayout::RowMajor));
    refused(&|b, [left, ..]| {
        left.load(b.shared(ScalarType::F64, 1, 256), 0u32, 16u32, MatrixLayout::RowMajor);
    });
    refused(&|b, [_, right, sum]| {
        let short = b.matrix(product_types([16, 16, 8], DType::F16, DType::F32)[0]);
        sum.multiply_add(short, right);
    });
}
