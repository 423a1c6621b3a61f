//! The processing of a finished sum: an expression of the sum, of alpha, of a bias with its factor
//! beta, and of further tensors. The result is rounded once to its dtype.

use crate::matmul::divisor::{Divisor, DivisorParams};
use crate::matmul::functions::{PLUS_BIAS, SCALED_SUM};
use crate::matmul::operand::{Memory, VECTOR, VECTOR_16_BIT};
use crate::pointwise::expr::Expr;
use crate::primitives::kernel::InDType;
use crate::scalar::Scalar as Number;
use dml_engine::interface::Index;
use dml_engine::{AddressRange, ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// The part that changes the code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Epilogue {
    /// Dtype of the result.
    pub dtype: DType,
    /// Rows of the result are contiguous along n, and stored in vectors.
    pub wide: bool,
    /// Results have 16 bits and are stored in 16-byte vectors ([`VECTOR_16_BIT`]
    /// elements); so the bias is loaded.
    pub stores_vectors: bool,
    /// n is two digits, with different strides in the result.
    pub split_n: bool,
    /// Alpha is an operand (a parameter).
    pub scaled: bool,
    /// Dtype of the bias, which is an operand together with beta (a parameter).
    pub bias: Option<DType>,
    /// The bias is contiguous along n too, and loaded in vectors. Only where the result is wide.
    pub bias_wide: bool,
    /// The tensors that are further operands; those that exist come first.
    pub tensors: [Option<TensorAccess>; MOST_TENSORS],
    /// The result, of the sum, alpha if it is scaled, the bias and beta if there is one, and the
    /// tensors; `None` is the sum.
    pub expr: Option<Expr>,
}

/// How elements of a tensor are loaded.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorAccess {
    /// Element type.
    pub dtype: DType,
    /// Rows are contiguous along n, and loaded in vectors. Only where the result is wide.
    pub wide: bool,
}

/// Maximum number of tensors that an expression has as operands beside the bias.
pub const MOST_TENSORS: usize = 6;

/// An operand of an epilogue's expression.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Operand {
    Sum,
    Alpha,
    Bias,
    Beta,
    Tensor(usize),
}

impl Epilogue {
    /// The operands of the expression.
    fn operands(&self) -> SmallVec<[Operand; 8]> {
        let mut all = smallvec![Operand::Sum];
        if self.scaled {
            all.push(Operand::Alpha);
        }
        if self.bias.is_some() {
            all.extend([Operand::Bias, Operand::Beta]);
        }
        all.extend((0..MOST_TENSORS).filter(|&i| self.tensors[i].is_some()).map(Operand::Tensor));
        all
    }

    /// The dtypes of the tensors.
    pub fn tensor_dtypes(&self) -> SmallVec<[DType; 4]> {
        self.tensors.iter().flatten().map(|tensor| tensor.dtype).collect()
    }

    /// The expression `then(alpha * sum + beta * bias)` for results of a dtype.
    pub fn expr_of(dtype: DType, scaled: bool, bias: bool, then: Option<Expr>) -> Option<Expr> {
        // As in BLAS, for float32 and float64.
        let exact = matches!(dtype, DType::F32 | DType::F64);
        let scale = scaled.then(|| Expr::of(SCALED_SUM.with([exact, bias]), 2));
        let add = bias.then(|| Expr::from(&PLUS_BIAS));
        [scale, add, then].into_iter().flatten().reduce(|first, next| first.then(next))
    }
}

/// The memory of results.
#[derive(Copy, Clone, Debug)]
pub struct Output {
    /// The result.
    pub memory: Memory,
    /// Strides in elements: of the batch, rows and columns.
    pub strides: [i64; 3],
    /// If n is two digits: number of values of the fast one, and stride of the slow one in
    /// elements.
    pub split: Option<(i64, i64)>,
}

/// A tensor with an element for each result.
#[derive(Copy, Clone, Debug)]
pub struct ResultTensor {
    /// Its memory.
    pub memory: Memory,
    /// Strides in elements: of the batch, rows and columns; 0 where it is broadcast.
    pub strides: [i64; 3],
    /// If n is two digits in the result, the stride of the slow one; `strides` has the fast one's.
    pub slow: i64,
}

/// The addend of results.
#[derive(Copy, Clone, Debug)]
pub struct Bias {
    /// What is added.
    pub tensor: ResultTensor,
    /// Its factor.
    pub beta: Number,
}

impl ResultTensor {
    /// A tensor with these strides of the batch, rows and columns.
    pub fn new(memory: Memory, strides: [i64; 3]) -> ResultTensor {
        ResultTensor { memory, strides, slow: 0 }
    }

    /// The memory from matrix `first` of the batch on.
    fn range(&self, first: i64) -> AddressRange {
        self.memory.skip(first * self.strides[0]).range()
    }
}

/// What becomes of a product and its bias.
#[derive(Copy, Clone, Debug)]
pub struct Then {
    /// The result, of that value and of the tensors.
    pub expr: Expr,
    /// The tensors; those that exist come first.
    pub tensors: [Option<ResultTensor>; MOST_TENSORS],
}

impl From<Expr> for Then {
    /// An expression of the value alone.
    fn from(expr: Expr) -> Then {
        Then { expr, tensors: [None; MOST_TENSORS] }
    }
}

/// The operands of an epilogue, of one launch.
#[derive(Copy, Clone, Debug)]
pub struct EpilogueOperands {
    /// The memory of results.
    pub out: Output,
    /// The factor of sums.
    pub alpha: Number,
    /// The addend.
    pub bias: Option<Bias>,
    /// What becomes of `alpha * sum + beta * bias`; `None` leaves that value.
    pub then: Option<Then>,
}

impl EpilogueOperands {
    /// The code for these operands, for results of `n` columns.
    pub fn epilogue(&self, n: i64) -> Epilogue {
        let (out, bias) = (&self.out, self.bias.as_ref());
        let tensors = self.then.map_or([None; MOST_TENSORS], |then| then.tensors);
        let multiples = |of: &[i64], width: u32| of.iter().all(|x| x % i64::from(width) == 0);
        let aligned =
            |t: Memory, s: [i64; 3], width: u32| s[2] == 1 && multiples(&s[..2], width) && t.is_aligned(width);
        let out_in = |width: u32| {
            let split = out.split.is_none_or(|(size, stride)| multiples(&[size, stride], width));
            multiples(&[n], width) && aligned(out.memory, out.strides, width) && split
        };
        let read_in = |t: &ResultTensor, width: u32| {
            aligned(t.memory, t.strides, width) && (out.split.is_none() || multiples(&[t.slow], width))
        };
        let bias_in = |width: u32| bias.is_some_and(|b| read_in(&b.tensor, width));
        let all_in = |width: u32| {
            (bias.is_none() || bias_in(width)) && tensors.iter().flatten().all(|tensor| read_in(tensor, width))
        };
        let out_wide = out_in(VECTOR);
        let (dtype, scaled) = (out.memory.dtype, self.alpha.to_f64() != 1.0);
        Epilogue {
            dtype,
            wide: out_wide,
            stores_vectors: dtype.bytes() == 2 && out_in(VECTOR_16_BIT) && all_in(VECTOR_16_BIT),
            split_n: out.split.is_some(),
            scaled,
            bias: bias.map(|b| b.tensor.memory.dtype),
            bias_wide: out_wide && bias_in(VECTOR),
            tensors: tensors.map(|tensor| {
                tensor.map(|t| TensorAccess { dtype: t.memory.dtype, wide: out_wide && read_in(&t, VECTOR) })
            }),
            expr: Epilogue::expr_of(dtype, scaled, bias.is_some(), self.then.map(|then| then.expr)),
        }
    }

    /// Number of elements from the first to the last of a tile.
    pub fn reach(&self, m: i64, n: i64) -> i64 {
        let [_, sm, sn] = self.out.strides;
        let out = match self.out.split {
            None => m * sm + n * sn,
            Some(_) => self.out.memory.reach(),
        };
        let read = |t: &ResultTensor| match self.out.split {
            None => m * t.strides[1] + n * t.strides[2],
            Some(_) => t.memory.reach(),
        };
        self.read().map(read).fold(out, i64::max)
    }

    /// The bias and the tensors.
    fn read(&self) -> impl Iterator<Item = &ResultTensor> {
        let tensors = self.then.iter().flat_map(|then| then.tensors.iter().flatten());
        self.bias.iter().map(|bias| &bias.tensor).chain(tensors)
    }

    /// The bias and the tensors.
    pub fn read_mut(&mut self) -> impl Iterator<Item = &mut ResultTensor> {
        let tensors = self.then.iter_mut().flat_map(|then| then.tensors.iter_mut().flatten());
        self.bias.iter_mut().map(|bias| &mut bias.tensor).chain(tensors)
    }

    /// The memory of the results, from matrix `first` of the batch on.
    pub fn out_range(&self, first: i64) -> AddressRange {
        self.out.memory.skip(first * self.out.strides[0]).range()
    }

    /// The memory of the bias, from matrix `first` of the batch on.
    pub fn bias_range(&self, first: i64) -> Option<AddressRange> {
        self.bias.as_ref().map(|bias| bias.tensor.range(first))
    }

    /// The memory of the tensors, from matrix `first` of the batch on.
    pub fn tensor_ranges(&self, first: i64) -> SmallVec<[AddressRange; 4]> {
        self.then.iter().flat_map(|then| then.tensors.iter().flatten()).map(|tensor| tensor.range(first)).collect()
    }
}

/// The code of an epilogue, in a kernel whose parameters its numbers are. The addresses are
/// parameters of their own: `M` is [`EpilogueMemory`] once they are known.
pub struct EpilogueCode<'b, M = EpilogueMemory<'b>> {
    epilogue: Epilogue,
    index: ScalarType,
    strides: [Value<'b>; 3],
    split: Option<(DivisorParams<'b>, Value<'b>)>,
    alpha: Option<Value<'b>>,
    /// Strides of the bias, and beta.
    bias: Option<([Value<'b>; 3], Value<'b>)>,
    /// Strides of the tensors, and of n's slow digit.
    tensors: Vec<([Value<'b>; 3], Option<Value<'b>>)>,
    memory: M,
}

/// The addresses of the results, the bias and the tensors of a tile.
pub struct EpilogueMemory<'b> {
    out: Pointer<'b>,
    bias: Option<Pointer<'b>>,
    tensors: Vec<Pointer<'b>>,
    /// Row and column of the tile.
    origin: [Value<'b>; 2],
}

impl Parameter for Epilogue {
    /// The code, the dtype of sums, of alpha and of beta, and the integer type of offsets.
    type Type = (Epilogue, DType, ScalarType);
    type Argument<'a> = &'a EpilogueOperands;
    type Declared<'b> = EpilogueCode<'b, ()>;

    fn declare<'b>(b: &'b Builder, _: &str, of: &Self::Type) -> EpilogueCode<'b, ()> {
        let (epilogue, sums, index) = *of;
        let strides = ["out_batch", "out_m", "out_n"].map(|name| b.param(name, index));
        let split = epilogue.split_n.then(|| (Divisor::declare(b, "out_size", &()), b.param("out_slow", index)));
        let alpha = epilogue.scaled.then(|| InDType::declare(b, "alpha", &sums));
        let bias = epilogue.bias.map(|_| {
            let strides = ["bias_batch", "bias_m", "bias_n"].map(|name| b.param(name, index));
            (strides, InDType::declare(b, "beta", &sums))
        });
        let count = epilogue.tensors.iter().flatten().count();
        let strides_of = |i: usize| {
            let stride = |digit: &str| b.param(&format!("tensor{i}_{digit}"), index);
            (["batch", "m", "n"].map(stride), epilogue.split_n.then(|| stride("slow")))
        };
        let tensors = (0..count).map(strides_of).collect();
        EpilogueCode { epilogue, index, strides, split, alpha, bias, tensors, memory: () }
    }

    fn pass(operands: &&EpilogueOperands, of: &Self::Type, block: &mut ArgumentBlock) {
        let (epilogue, sums, index) = of;
        let EpilogueOperands { out, alpha, bias, then } = *operands;
        let tensors = then.map_or([None; MOST_TENSORS], |then| then.tensors);
        if out.split.is_some() != epilogue.split_n
            || bias.is_some() != epilogue.bias.is_some()
            || tensors.map(|tensor| tensor.is_some()) != epilogue.tensors.map(|tensor| tensor.is_some())
        {
            block.mismatch("an epilogue is not the one that the kernel is made for");
        }
        <[Index; 3]>::pass(&out.strides, index, block);
        if let Some((size, stride)) = &out.split {
            Divisor::pass(size, &(), block);
            Index::pass(stride, index, block);
        }
        if epilogue.scaled {
            InDType::pass(alpha, sums, block);
        }
        if let Some(bias) = bias {
            <[Index; 3]>::pass(&bias.tensor.strides, index, block);
            InDType::pass(&bias.beta, sums, block);
        }
        for tensor in tensors.iter().flatten() {
            <[Index; 3]>::pass(&tensor.strides, index, block);
            if epilogue.split_n {
                Index::pass(&tensor.slow, index, block);
            }
        }
    }
}

impl<'b> EpilogueCode<'b, ()> {
    /// Writes to `out`, adds the bias at `bias`, and reads the tensors at `tensors`.
    pub fn at(
        self,
        b: &'b Builder,
        out: Pointer<'b>,
        bias: Option<Pointer<'b>>,
        tensors: Vec<Pointer<'b>>,
    ) -> EpilogueCode<'b> {
        let EpilogueCode { epilogue, index, strides, split, alpha, bias: numbers, tensors: tensor_strides, memory: () } =
            self;
        let memory = EpilogueMemory { out, bias, tensors, origin: [b.u32(0), b.u32(0)] };
        EpilogueCode { epilogue, index, strides, split, alpha, bias: numbers, tensors: tensor_strides, memory }
    }
}

impl<'b> EpilogueCode<'b> {
    /// Sets the tile, whose first element is `(batch, m, n)`.
    pub fn begin(&mut self, batch: Value<'b>, m: Value<'b>, n: Value<'b>) {
        let at = |place: Value<'b>, stride: Value<'b>| place.cast(ScalarType::U64) * stride.cast(ScalarType::U64);
        let rows = |s: [Value<'b>; 3]| at(batch, s[0]) + at(m, s[1]);
        let mut elements = rows(self.strides);
        if self.split.is_none() {
            elements = elements + at(n, self.strides[2]);
        }
        let EpilogueMemory { out, bias, tensors, origin } = &mut self.memory;
        *out = out.offset(elements);
        if let (Some(pointer), Some((strides, _))) = (bias, &self.bias) {
            *pointer = pointer.offset(rows(*strides) + at(n, strides[2]));
        }
        for (pointer, (strides, slow)) in tensors.iter_mut().zip(&self.tensors) {
            let columns = if slow.is_none() { at(n, strides[2]) } else { n.like(0.0).cast(ScalarType::U64) };
            *pointer = pointer.offset(rows(*strides) + columns);
        }
        *origin = [m, n];
    }

    /// The elements of the bias or of a tensor for `count` adjacent columns from `(m, n)` of the
    /// tile.
    fn load(
        &self,
        pointer: Pointer<'b>,
        (strides, slow): (&[Value<'b>; 3], Option<Value<'b>>),
        wide: bool,
        [m, n]: [Value<'b>; 2],
        count: usize,
    ) -> Vec<Value<'b>> {
        let at = |n: Value<'b>| m.cast(self.index) * strides[1] + self.column(n, strides[2], slow);
        if wide && count > 1 {
            pointer.load_chunk(at(n) >> count.ilog2(), count as u32)
        } else {
            (0..count as u32).map(|j| pointer.load(at(n + j))).collect()
        }
    }

    /// The offset of column `n` of the tile, or of the result if there is a stride of n's slow
    /// digit.
    fn column(&self, n: Value<'b>, stride: Value<'b>, slow: Option<Value<'b>>) -> Value<'b> {
        match (self.split, slow) {
            (Some((size, _)), Some(slow)) => {
                let (high, low) = size.divide(self.memory.origin[1] + n);
                high.cast(self.index) * slow + low.cast(self.index) * stride
            }
            _ => n.cast(self.index) * stride,
        }
    }

    /// Loads what the results of `count` adjacent columns from `(m, n)` of the tile need beside the
    /// sums.
    fn operands(&self, [m, n]: [Value<'b>; 2], count: usize) -> Operands<'b> {
        let all = |number: Option<Value<'b>>| number.map_or_else(Vec::new, |number| vec![number; count]);
        let of = |operand: &Operand| match *operand {
            Operand::Sum => Vec::new(),
            Operand::Alpha => all(self.alpha),
            Operand::Bias => match (self.memory.bias, &self.bias) {
                (Some(pointer), Some((strides, _))) => {
                    self.load(pointer, (strides, None), self.epilogue.bias_wide, [m, n], count)
                }
                _ => Vec::new(),
            },
            Operand::Beta => all(self.bias.map(|(_, beta)| beta)),
            Operand::Tensor(i) => {
                let wide = self.epilogue.tensors[i].is_some_and(|tensor| tensor.wide);
                let (strides, slow) = &self.tensors[i];
                self.load(self.memory.tensors[i], (strides, *slow), wide, [m, n], count)
            }
        };
        self.epilogue.operands().iter().map(of).collect()
    }

    /// What [`Self::store`] needs for `count` adjacent columns from `at` of a complete tile, loaded
    /// ahead: its latency is that of the GPU's memory. `None` if it would take too many registers,
    /// or if nothing is loaded.
    pub fn fetch(&self, at: [Value<'b>; 2], count: usize) -> Option<Operands<'b>> {
        let tensors = self.tensors.len() + usize::from(self.bias.is_some());
        (self.epilogue.wide && (1..=MOST_AHEAD).contains(&tensors)).then(|| self.operands(at, count))
    }

    /// The results for sums of adjacent columns, and for the other operands.
    fn results(&self, sums: &[Value<'b>], operands: &[Vec<Value<'b>>]) -> Vec<Value<'b>> {
        let Some(expr) = self.epilogue.expr else { return sums.to_vec() };
        let kinds = self.epilogue.operands();
        expr.of_neighbours(|i| match kinds[i] {
            Operand::Sum => sums.to_vec(),
            Operand::Tensor(_) => operands[i].iter().map(|element| element.cast(sums[0].scalar())).collect(),
            Operand::Alpha | Operand::Bias | Operand::Beta => operands[i].clone(),
        })
    }

    /// Stores the results for the sums of adjacent columns from `(m, n)` of the tile. `columns`,
    /// the number of columns of the whole result, guards incomplete tiles. `fetched` is what
    /// [`Self::fetch`] has returned for the same columns.
    pub fn store(
        &self,
        b: &'b Builder,
        [m, n]: [Value<'b>; 2],
        sums: &[Value<'b>],
        columns: Option<Value<'b>>,
        fetched: Option<&[Vec<Value<'b>>]>,
    ) {
        let wide = self.epilogue.wide;
        let step = if wide { sums.len() } else { 1 };
        for (i, part) in sums.chunks(step).enumerate() {
            let n = n + i as u32;
            let store = || {
                let results = match fetched {
                    Some(operands) => self.results(part, operands),
                    None => self.results(part, &self.operands([m, n], part.len())),
                };
                let column = self.column(n, self.strides[2], self.split.map(|(_, slow)| slow));
                let offset = m.cast(self.index) * self.strides[1] + column;
                if part.len() > 1 {
                    self.memory.out.store_chunk(offset >> part.len().ilog2(), &results);
                } else {
                    self.memory.out.store(offset, results[0]);
                }
            };
            match columns {
                Some(columns) => b.if_((self.memory.origin[1] + n).lt(columns), store),
                None => store(),
            }
        }
    }
}

/// Tensors of which elements are loaded ahead: more would take too many registers.
const MOST_AHEAD: usize = 2;

/// The operands of an epilogue's expression for adjacent columns; nothing for the sum.
pub type Operands<'b> = Vec<Vec<Value<'b>>>;
