//! The second pass of a product whose k was divided: adds the parts in order and finishes the sums.

use super::epilogue::{Epilogue, Finish, Pointers, Writer};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::launch::GROUP;
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Scalar};

/// Parts that are on their way at a time.
const AHEAD: u32 = 8;

/// Adds `parts` workspaces of `batch x m x n` sums each, which lie at `[batch][part][m][n]`.
pub fn run(call: &Call, workspace: &Tensor, size: [i64; 3], parts: i64, finish: &Finish) -> Result<()> {
    let [batch, m, n] = size;
    let epilogue = finish.epilogue(n);
    let index = crate::tensor::layout::index_type(finish.reach(m, n));
    let width = if epilogue.wide { 4 } else { 1 };
    let dtype = workspace.dtype;
    let key = [dtype as u32, epilogue.code(), u32::from(index == Scalar::U64), 0, 0, 0];
    let kernel = call.kernel("gemm_reduce", key, || build(dtype, epilogue, width, index))?;
    let launcher = finish.pass_pointers(call.launch(kernel).read(workspace), 0);
    let launcher = launcher.u32(m as u32).u32(n as u32).u32(parts as u32);
    let groups = ((m * n) as u64 / u64::from(width)).div_ceil(u64::from(GROUP));
    finish.pass(dtype, index, launcher).groups([groups as u32, 1, batch as u32])
}

/// As a kernel; dimension 2 counts the batch.
pub fn build(dtype: DType, epilogue: Epilogue, width: u32, index: Scalar) -> Kernel {
    let compute = dtype.compute();
    let b = Builder::new("gemm reduce", [GROUP, 1, 1]);
    let workspace = b.pointer("workspace", dtype);
    let pointers = Pointers::declare(&b, &epilogue);
    let [m, n, parts] = ["m", "n", "parts"].map(|name| b.param(name, Scalar::U32));
    let mut out = Writer::declare(&b, pointers, epilogue, compute, index);
    let chunk = b.global_id(0);
    let size = m * n;
    let first = chunk * width;
    b.if_(first.lt(size), || {
        let batch = b.group_id(2);
        let size = size.cast(Scalar::U64);
        let base = workspace.offset((batch * parts).cast(Scalar::U64) * size);
        let zero = b.constant_of(compute, 0.0);
        let sums: Vec<_> = (0..width).map(|_| b.var(zero)).collect();
        b.for_(0u32, parts, AHEAD, |part| {
            let loaded: Vec<_> = (0..AHEAD)
                .map(|ahead| {
                    let part = part + ahead;
                    let valid = part.lt(parts);
                    let at = valid.select(part, 0).cast(Scalar::U64) * size;
                    base.offset(at).load_chunk(chunk, width).into_iter().map(|x| valid.select(x, 0)).collect::<Vec<_>>()
                })
                .collect();
            for (sum, value) in loaded.iter().flat_map(|part| sums.iter().zip(part)) {
                sum.set(sum.get() + *value);
            }
        });
        out.begin(batch, b.u32(0), b.u32(0));
        let row = first / n;
        let sums: Vec<_> = sums.iter().map(|s| s.get()).collect();
        out.store(&b, row, first - row * n, &sums, None);
    });
    b.finish()
}

/// The dtype in which parts are kept: that of sums.
pub fn workspace_dtype(operands: DType) -> DType {
    match operands.compute() {
        Scalar::F64 => DType::F64,
        Scalar::I64 | Scalar::U64 => DType::I64,
        Scalar::F32 => DType::F32,
        _ => DType::I32,
    }
}
