//! Products whose k is divided among workgroups: which part is a workgroup's, and the second pass
//! that adds the parts' sums in order and finishes them.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::epilogue::{Epilogue, Finish, FinishSpec, Finishing};
use crate::primitives::kernel::{Input, KernelSpec};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{ReadRange, U32, WriteRange};
use dml_engine::{ArgumentBlock, Parameter, parameters};
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// How k is divided.
#[derive(Copy, Clone, Debug)]
pub struct Division {
    /// Parts, each of which gives every result a sum.
    pub parts: i64,
    /// Elements of a part; the last one may be shorter.
    pub length: i64,
}

/// A [`Division`] as a kernel's parameter.
pub struct SplitK;

/// A [`Division`] in a kernel.
#[derive(Copy, Clone)]
pub struct DivisionParams<'b> {
    parts: Value<'b>,
    length: Value<'b>,
}

impl Parameter for SplitK {
    type Type = ();
    type Argument<'a> = Division;
    type Declared<'b> = DivisionParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, (): &()) -> DivisionParams<'b> {
        DivisionParams { parts: b.param("parts", ScalarType::U32), length: b.param("length", ScalarType::U32) }
    }

    #[inline]
    fn pass(division: &Division, (): &(), block: &mut ArgumentBlock) {
        U32::pass(&(division.parts as u32), &(), block);
        U32::pass(&(division.length as u32), &(), block);
    }
}

/// The matrix of the batch that workgroup `z` computes, and the beginning and the end of its part
/// of k.
pub fn part<'b>(
    b: &'b Builder,
    z: Value<'b>,
    k: Value<'b>,
    division: Option<DivisionParams<'b>>,
) -> (Value<'b>, Value<'b>, Value<'b>) {
    match division {
        None => (z, b.u32(0), k),
        Some(DivisionParams { parts, length }) => {
            let batch = z / parts;
            let begin = (z - batch * parts) * length;
            (batch, begin, (begin + length).min(k))
        }
    }
}

/// Parts whose sums are loaded at a time.
const AHEAD: u32 = 8;

/// Adds `parts` workspaces of `batch x m x n` sums each, which lie at `[batch][part][m][n]`.
pub fn reduce(cx: &Context, workspace: &View, size: [i64; 3], parts: i64, finish: &Finish) -> Result<()> {
    let [batch, m, n] = size;
    let spec = Spec { sums: workspace.dtype, epilogue: finish.epilogue(n), index: index_type(finish.reach(m, n)) };
    let arguments = Arguments {
        workspace,
        out: finish.out_range(0),
        bias: finish.bias_range(0),
        m: m as u32,
        n: n as u32,
        parts: parts as u32,
        finish,
    };
    let groups = ((m * n) as u64 / u64::from(spec.width())).div_ceil(u64::from(GROUP));
    cx.run(&spec, &arguments, [groups as u32, 1, batch as u32])
}

/// Everything that changes the code of the second pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Dtype of the parts' sums.
    pub sums: DType,
    /// What happens to their totals.
    pub epilogue: Epilogue,
    /// Type of offsets.
    pub index: ScalarType,
}

impl Spec {
    /// Neighbouring columns of an invocation.
    fn width(&self) -> u32 {
        if self.epilogue.wide { 4 } else { 1 }
    }
}

parameters! {
    /// The second pass.
    pub Spec as s => Arguments, Parameters {
        /// The parts' sums.
        workspace: Input = s.sums,
        /// The result.
        out: WriteRange = s.epilogue.dtype,
        /// What is added.
        bias: Option<ReadRange> = s.epilogue.bias,
        /// Rows.
        m: U32,
        /// Columns.
        n: U32,
        /// Parts.
        parts: U32,
        /// What happens to totals.
        finish: Finishing = FinishSpec { epilogue: s.epilogue, sums: s.sums, index: s.index },
    }
}

/// Dimension 2 of the workgroups counts the batch.
impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "gemm reduce"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { workspace, m, n, parts, .. } = p;
        let mut out = p.finish.writer(b, p.out, p.bias);
        let width = self.width();
        let chunk = b.global_id(0);
        let size = m * n;
        let first = chunk * width;
        b.if_(first.lt(size), || {
            let batch = b.group_id(2);
            let size = size.cast(ScalarType::U64);
            let base = workspace.offset((batch * parts).cast(ScalarType::U64) * size);
            let zero = b.constant_of(self.sums.compute(), 0.0);
            let sums: Vec<_> = (0..width).map(|_| b.var(zero)).collect();
            b.for_(0u32, parts, AHEAD, |part| {
                let loaded: Vec<_> = (0..AHEAD)
                    .map(|ahead| {
                        let part = part + ahead;
                        let valid = part.lt(parts);
                        let at = valid.select(part, 0).cast(ScalarType::U64) * size;
                        let chunk = base.offset(at).load_chunk(chunk, width);
                        chunk.into_iter().map(|x| valid.select(x, 0)).collect::<Vec<_>>()
                    })
                    .collect();
                for (sum, value) in loaded.iter().flat_map(|part| sums.iter().zip(part)) {
                    sum.set(sum.get() + *value);
                }
            });
            out.begin(batch, b.u32(0), b.u32(0));
            let row = first / n;
            let sums: Vec<_> = sums.iter().map(|s| s.get()).collect();
            out.store(b, row, first - row * n, &sums, None);
        });
    }
}
