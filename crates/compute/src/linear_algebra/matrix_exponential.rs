//! The exponential of matrices, by scaling and squaring with Taylor polynomials.
//!
//! Bader, Blanes, Casas, "Computing the matrix exponential with an optimized Taylor polynomial
//! approximation", 2019: polynomials of degrees 1, 2, 4, 8, 12 and 18 with few products. As on the
//! CPU, the 1-norm of each matrix decides on the degree. So the host waits for the norms, as on
//! CUDA; then matrices are sorted by degree, those with most squarings last.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::functions::{MATRIX_EXP_COMBINATION, MATRIX_EXP_IDENTITY, MATRIX_EXP_SINGLE};
use crate::linear_algebra::matrices::{self, MatrixStrides, Update};
use crate::linear_algebra::workgroup_sums::{THREADS, WorkgroupReduction, larger};
use crate::movement::copy::{device_copy, read_numbers};
use crate::pointwise::kernel::{self, Input as Operand};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::check_loop_iterations;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// Maximum norms for the degrees, for float32 and for float64. A matrix with a larger norm is
/// scaled down by halving.
const LIMITS: [[f64; 6]; 2] = [
    [
        1.192092800768788e-07,
        0.0005978858893805233,
        0.05116619363445086,
        0.5800524627688768,
        1.461661507209034,
        3.010066362817634,
    ],
    [
        2.220446049250313e-16,
        2.580956802971767e-08,
        0.0003397168839976962,
        0.04991228871115323,
        0.299615891381158,
        1.090863719290036,
    ],
];

/// How a matrix is computed: index of the polynomial's degree, and number of squarings.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Evaluation {
    degree: usize,
    squarings: u32,
}

impl Evaluation {
    fn of(norm: f64, limits: &[f64; 6]) -> Evaluation {
        let degree = limits.iter().position(|&limit| norm <= limit).unwrap_or(5);
        let halvings = (norm / limits[5]).log2().ceil();
        // For a norm that is not finite the polynomial alone gives NaN.
        let squarings = if norm.is_finite() && degree == 5 { halvings.max(0.0) as u32 } else { 0 };
        Evaluation { degree, squarings }
    }
}

/// Writes the exponentials of real matrices, at least one, to `out`, which has the same sizes and
/// dtype.
pub fn exponentials(cx: &Context, a: &View, out: &View) -> Result<()> {
    if a.numel() == 0 {
        return Ok(());
    }
    let n = a.size(-1);
    if n == 1 {
        return kernel::run(cx, &MATRIX_EXP_SINGLE, &[out], &[Operand::Tensor(a.clone())], a.dtype);
    }
    let dtype = if a.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let x = cx.empty(dtype, &a.sizes)?;
    device_copy(cx, a, &x)?;
    let x = matrices::flat(&x);
    let batch = x.sizes[0];
    let norms: Vec<Number> = read_numbers(cx, &norms(cx, &x)?)?;
    let limits = &LIMITS[usize::from(dtype == DType::F64)];
    let evaluations: Vec<Evaluation> = norms.iter().map(|norm| Evaluation::of(norm.to_f64(), limits)).collect();
    let mut order: Vec<usize> = (0..batch as usize).collect();
    order.sort_by_key(|&i| evaluations[i]);

    let [sorted, results] = [cx.empty(dtype, &x.sizes)?, cx.empty(dtype, &x.sizes)?];
    let (sources, halvings) = (cx.empty(DType::I32, &[batch])?, cx.empty(DType::I32, &[batch])?);
    let bytes =
        |number: &dyn Fn(usize) -> u32| -> Vec<u8> { order.iter().flat_map(|&i| number(i).to_ne_bytes()).collect() };
    cx.upload(sources.data, &bytes(&|i| i as u32))?;
    cx.upload(halvings.data, &bytes(&|i| evaluations[i].squarings))?;
    let select = |from: &View, to: &View, back: bool| {
        let spec = Select { dtype, index: matrices::index_of(&[from]), back };
        let (numel, each) = (from.numel(), n * n);
        let arguments = SelectArguments { from, to, sources: &sources, halvings: &halvings, numel, each };
        cx.run_threads(&spec, &arguments, numel as u64)
    };
    select(&x, &sorted, false)?;
    let mut from = 0;
    while from < batch {
        let degree = evaluations[order[from as usize]].degree;
        let count = order[from as usize..].iter().take_while(|&&i| evaluations[i].degree == degree).count() as i64;
        polynomial(cx, degree, &sorted.narrow(0, from, count), &results.narrow(0, from, count))?;
        from += count;
    }
    let most = order.last().map_or(0, |&i| evaluations[i].squarings);
    for done in 0..most {
        let first = order.iter().position(|&i| evaluations[i].squarings > done).unwrap_or(0) as i64;
        let part = results.narrow(0, first, batch - first);
        let square = product(cx, &part, &part)?;
        device_copy(cx, &square, &part)?;
    }
    select(&results, &x, true)?;
    device_copy(cx, &x.as_strided(&a.sizes, &View::contiguous_strides(&a.sizes), 0), out)
}

fn product(cx: &Context, x: &View, y: &View) -> Result<View> {
    let out = cx.empty(x.dtype, &x.sizes)?;
    matrices::multiply(cx, [x, y], &out, Update::Overwrite)?;
    Ok(out)
}

/// Writes `identity` times the identity plus each of the matrices times its factor to `out`.
fn combine_into(cx: &Context, identity: f64, terms: &[(f64, &View)], out: &View) -> Result<()> {
    let dtype = out.dtype;
    let inputs: Vec<Operand> = terms
        .iter()
        .flat_map(|&(factor, t)| [Operand::Tensor(t.clone()), Operand::Number(Number::Double(factor), dtype)])
        .collect();
    kernel::run(cx, &MATRIX_EXP_COMBINATION, &[out], &inputs, dtype)?;
    if identity == 0.0 {
        return Ok(());
    }
    let diagonal = matrices::diagonal(out);
    let inputs = [Operand::Tensor(diagonal.clone()), Operand::Number(Number::Double(identity), dtype)];
    kernel::run(cx, &MATRIX_EXP_IDENTITY, &[&diagonal], &inputs, dtype)
}

fn combined(cx: &Context, identity: f64, terms: &[(f64, &View)]) -> Result<View> {
    let out = cx.empty(terms[0].1.dtype, &terms[0].1.sizes)?;
    combine_into(cx, identity, terms, &out)?;
    Ok(out)
}

/// `out = out + x @ y`
fn add_product(cx: &Context, x: &View, y: &View, out: &View) -> Result<()> {
    matrices::multiply(cx, [x, y], out, Update::Add(1.0))
}

/// Writes the polynomial of degree number `degree` to `out`.
fn polynomial(cx: &Context, degree: usize, a: &View, out: &View) -> Result<()> {
    if degree == 0 {
        return combine_into(cx, 1.0, &[(1.0, a)], out);
    }
    let a2 = product(cx, a, a)?;
    match degree {
        1 => combine_into(cx, 1.0, &[(1.0, a), (0.5, &a2)], out),
        2 => {
            let inner = combined(cx, 0.5, &[(1.0 / 6.0, a), (1.0 / 24.0, &a2)])?;
            combine_into(cx, 1.0, &[(1.0, a)], out)?;
            add_product(cx, &a2, &inner, out)
        }
        3 => degree_8(cx, [a, &a2], out),
        4 => degree_12(cx, [a, &a2], out),
        _ => degree_18(cx, [a, &a2], out),
    }
}

fn degree_8(cx: &Context, [a, a2]: [&View; 2], out: &View) -> Result<()> {
    let root = 177f64.sqrt();
    let x3 = 2.0 / 3.0;
    let a4 = product(cx, a2, &combined(cx, 0.0, &[(x3 * (1.0 + root) / 88.0, a), (x3 * (1.0 + root) / 352.0, a2)])?)?;
    let left = combined(cx, 0.0, &[(x3, a2), (1.0, &a4)])?;
    let right = combined(
        cx,
        (-271.0 + 29.0 * root) / (315.0 * x3),
        &[
            ((-11.0 + 11.0 * root) / (1260.0 * x3), a),
            ((-99.0 + 11.0 * root) / (5040.0 * x3), a2),
            ((89.0 - root) / (5040.0 * x3 * x3), &a4),
        ],
    )?;
    combine_into(cx, 1.0, &[(1.0, a), ((857.0 - 58.0 * root) / 630.0, a2)], out)?;
    add_product(cx, &left, &right, out)
}

/// A linear combination of the identity and the powers of A.
fn of_powers(cx: &Context, factors: &[f64], powers: &[&View]) -> Result<View> {
    let terms: Vec<(f64, &View)> = factors[1..].iter().copied().zip(powers.iter().copied()).collect();
    combined(cx, factors[0], &terms)
}

fn degree_12(cx: &Context, [a, a2]: [&View; 2], out: &View) -> Result<()> {
    const FACTORS: [[f64; 4]; 4] = [
        [9.0198e-16, 0.4693211759541824, -0.20099424927047285, -0.04623946134063072],
        [5.315978957598713, 1.1992679041713223, 0.01179296240992997, 0.01108844528519168],
        [0.18188869982170436, 0.05502798439925399, 0.09351590770535415, 0.006107005288980582],
        [-2.0861320e-13, -0.13181061013830184, -0.02027855540589259, -0.006759518468630863],
    ];
    let a3 = product(cx, a, a2)?;
    let sum = |i: usize| of_powers(cx, &FACTORS[i], &[a, a2, &a3]);
    let (first, second, third, last) = (sum(0)?, sum(1)?, sum(2)?, sum(3)?);
    add_product(cx, &last, &last, &third)?;
    let left = combined(cx, 0.0, &[(1.0, &second), (1.0, &third)])?;
    device_copy(cx, &first, out)?;
    add_product(cx, &left, &third, out)
}

fn degree_18(cx: &Context, [a, a2]: [&View; 2], out: &View) -> Result<()> {
    const FACTORS: [[f64; 5]; 5] = [
        [0.0, -0.10036558103014462, -0.00802924648241157, -0.00089213849804573, 0.0],
        [0.0, 0.3978497494996451, 1.3678377846041172, 0.49828962252538267, -0.0006378981945947233],
        [-10.967639605296206, 1.680158138789062, 0.05717798464788655, -0.0069821012248805206, 3.349750170860705e-05],
        [-0.09043168323908106, -0.06764045190713819, 0.06759613017704597, 0.029555257042931552, -1.391802575160607e-05],
        [0.0, 0.0, -0.09233646193671186, -0.016936493900208172, -1.400867981820361e-05],
    ];
    let a3 = product(cx, a, a2)?;
    let a6 = product(cx, &a3, &a3)?;
    let sum = |i: usize| of_powers(cx, &FACTORS[i], &[a, a2, &a3, &a6]);
    let (first, second, third, fourth, last) = (sum(0)?, sum(1)?, sum(2)?, sum(3)?, sum(4)?);
    add_product(cx, &first, &last, &fourth)?;
    let left = combined(cx, 0.0, &[(1.0, &third), (1.0, &fourth)])?;
    device_copy(cx, &second, out)?;
    add_product(cx, &left, &fourth, out)
}

/// The 1-norms of `[batch, n, n]`, as `[batch]`: the largest sum of absolute values in a column.
fn norms(cx: &Context, x: &View) -> Result<View> {
    let (batch, n) = (x.sizes[0], x.sizes[1]);
    check_loop_iterations(cx, (n + 1) * (n / i64::from(THREADS) + 1))?;
    let norms = cx.empty(x.dtype, &[batch])?;
    let spec = Norm { dtype: x.dtype, index: matrices::index_of(&[x]) };
    let arguments = NormArguments { x, norms: &norms, strides: x, batch: batch as u32, n: n as u32 };
    cx.run(&spec, &arguments, matrices::workgroups(batch, 1))?;
    Ok(norms)
}

/// One workgroup for each matrix; an invocation has every `THREADS`-th column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Norm {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Norm as s => NormArguments, NormParameters {
        x: Input = s.dtype,
        norms: Output = s.dtype,
        strides: MatrixStrides = s.index,
        batch: U32,
        n: U32,
    }
}

impl KernelSpec for Norm {
    fn name(&self) -> &'static str {
        "largest_column_sum"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: NormParameters<'b>) {
        let compute = self.dtype.compute();
        let (matrix, _) = matrices::workgroup_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let joined = WorkgroupReduction::new(b, compute, 1);
        let (largest, sum) = (b.var(b.float(compute, 0.0)), b.var(b.float(compute, 0.0)));
        b.for_(local, p.n, THREADS, |column| {
            sum.set(0.0);
            b.for_(0, p.n, 1, |row| sum.set(sum.get() + p.x.load(p.strides.at(matrix, row, column)).abs()));
            largest.set(larger(largest.get(), sum.get()));
        });
        joined.join(&[largest], larger);
        b.if_(local.eq(0), || p.norms.store(matrix, joined.result(0)));
    }
}

/// Gathers: matrix `i` of `to` is matrix `sources[i]` of `from`, halved `halvings[i]` times. Or
/// scatters back, without scaling. One invocation for each element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Select {
    dtype: DType,
    index: ScalarType,
    back: bool,
}

parameters! {
    Select as s => SelectArguments, SelectParameters {
        from: Input = s.dtype,
        to: Output = s.dtype,
        sources: Input = DType::I32,
        halvings: Input = DType::I32,
        numel: Index = s.index,
        /// Elements of a matrix.
        each: Index = s.index,
    }
}

impl KernelSpec for Select {
    fn name(&self) -> &'static str {
        "select_matrices"
    }

    fn write<'b>(&self, b: &'b Builder, p: SelectParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let matrix = i / p.each;
            let there = p.sources.load(matrix).cast(self.index) * p.each + (i - matrix * p.each);
            if self.back {
                p.to.store(there, p.from.load(i));
            } else {
                let value = b.var(p.from.load(there));
                b.for_(0, p.halvings.load(matrix), 1, |_| value.set(value.get() * 0.5));
                p.to.store(i, value.get());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::F32, ScalarType::U32), (DType::F64, ScalarType::U64)] {
            accepted(&Norm { dtype, index }.build());
            accepted(&Select { dtype, index, back: dtype == DType::F32 }.build());
        }
    }

    #[test]
    fn evaluations() {
        let of = |norm: f64| {
            let Evaluation { degree, squarings } = Evaluation::of(norm, &LIMITS[0]);
            (degree, squarings)
        };
        assert_eq!(
            [0.0, 1e-4, 0.05, 0.5, 1.0, 2.0, 3.2, 100.0].map(of),
            [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (5, 1), (5, 6)]
        );
        assert_eq!([f64::NAN, f64::INFINITY].map(of), [(5, 0); 2]);
    }
}
