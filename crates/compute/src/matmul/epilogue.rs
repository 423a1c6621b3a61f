//! What happens to a finished sum: `out = activation(alpha * sum + beta * bias)`, rounded once to
//! the result's dtype.

use crate::matmul::divisor::{Divisor, DivisorParams};
use crate::matmul::operand::{Memory, UNIT, WIDE};
use crate::pointwise::function::Function;
use crate::primitives::kernel::InDType;
use crate::scalar::Scalar as Number;
use dml_engine::interface::Index;
use dml_engine::{AddressRange, ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// The part that changes code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Epilogue {
    /// Dtype of the result.
    pub dtype: DType,
    /// Rows of the result are contiguous along n, and stored in vectors.
    pub wide: bool,
    /// They are of 16 bits, and stored in [units](super::operand::UNIT), with a bias that is loaded
    /// so.
    pub in_units: bool,
    /// n is two digits, which step through the result differently.
    pub split_n: bool,
    /// Sums are multiplied by alpha (a parameter).
    pub scaled: bool,
    /// Dtype of the bias that is added, times beta (a parameter).
    pub bias: Option<DType>,
    /// The bias is contiguous along n too, and loaded in vectors. Only where the result is wide.
    pub bias_wide: bool,
    /// A function of each result, of one argument and without options.
    pub activation: Option<&'static Function>,
}

/// Where results go.
#[derive(Copy, Clone, Debug)]
pub struct Output {
    /// The result.
    pub memory: Memory,
    /// Elements from one matrix of the batch, row, column to the next.
    pub strides: [i64; 3],
    /// Where n is two digits: values of the fast one, and elements from one value of the slow one
    /// to the next.
    pub split: Option<(i64, i64)>,
}

/// What is added to results.
#[derive(Copy, Clone, Debug)]
pub struct Bias {
    /// Where it lies.
    pub memory: Memory,
    /// Elements from one matrix of the batch, row, column to the next; 0 where it is broadcast.
    pub strides: [i64; 3],
    /// It is multiplied by this.
    pub beta: Number,
}

/// Everything after the sum, of one launch.
#[derive(Copy, Clone, Debug)]
pub struct Finish {
    /// Where results go.
    pub out: Output,
    /// Sums are multiplied by this.
    pub alpha: Number,
    /// What is added.
    pub bias: Option<Bias>,
    /// A function of each result, of one argument and without options.
    pub activation: Option<&'static Function>,
}

impl Finish {
    /// The code that it needs, for results of `n` columns.
    pub fn epilogue(&self, n: i64) -> Epilogue {
        let (out, bias) = (&self.out, self.bias.as_ref());
        let multiples = |of: &[i64], width: u32| of.iter().all(|x| x % i64::from(width) == 0);
        let aligned =
            |t: Memory, s: [i64; 3], width: u32| s[2] == 1 && multiples(&s[..2], width) && t.is_aligned(width);
        let out_in = |width: u32| {
            let split = out.split.is_none_or(|(size, stride)| multiples(&[size, stride], width));
            multiples(&[n], width) && aligned(out.memory, out.strides, width) && split
        };
        let bias_in = |width: u32| bias.is_some_and(|b| aligned(b.memory, b.strides, width));
        let out_wide = out_in(WIDE);
        Epilogue {
            dtype: out.memory.dtype,
            wide: out_wide,
            in_units: out.memory.dtype.bytes() == 2 && out_in(UNIT) && (bias.is_none() || bias_in(UNIT)),
            split_n: out.split.is_some(),
            scaled: self.alpha.to_f64() != 1.0,
            bias: bias.map(|b| b.memory.dtype),
            bias_wide: out_wide && bias_in(WIDE),
            activation: self.activation,
        }
    }

    /// Elements between the first and the last of a tile.
    pub fn reach(&self, m: i64, n: i64) -> i64 {
        let [_, sm, sn] = self.out.strides;
        let out = match self.out.split {
            None => m * sm + n * sn,
            Some(_) => self.out.memory.reach(),
        };
        out.max(self.bias.as_ref().map_or(0, |b| m * b.strides[1] + n * b.strides[2]))
    }

    /// The results' bytes, from matrix `first` of the batch on.
    pub fn out_range(&self, first: i64) -> AddressRange {
        self.out.memory.skip(first * self.out.strides[0]).range()
    }

    /// The bytes of what is added, from matrix `first` of the batch on.
    pub fn bias_range(&self, first: i64) -> Option<AddressRange> {
        self.bias.as_ref().map(|bias| bias.memory.skip(first * bias.strides[0]).range())
    }
}

/// The numbers of a [`Finish`] as a kernel's parameter. The addresses are parameters of their own.
pub struct Finishing;

/// What a kernel is specialised by in a [`Finish`].
#[derive(Copy, Clone, Debug)]
pub struct FinishSpec {
    /// The code.
    pub epilogue: Epilogue,
    /// Dtype of sums, alpha and beta.
    pub sums: DType,
    /// The type of offsets.
    pub index: ScalarType,
}

/// A [`Finish`] in a kernel.
pub struct FinishParams<'b> {
    epilogue: Epilogue,
    index: ScalarType,
    strides: [Value<'b>; 3],
    split: Option<(DivisorParams<'b>, Value<'b>)>,
    alpha: Option<Value<'b>>,
    /// Strides of the bias, and beta.
    bias: Option<([Value<'b>; 3], Value<'b>)>,
}

impl Parameter for Finishing {
    type Type = FinishSpec;
    type Argument<'a> = &'a Finish;
    type Declared<'b> = FinishParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, of: &FinishSpec) -> FinishParams<'b> {
        let FinishSpec { epilogue, sums, index } = *of;
        let strides = ["out_batch", "out_m", "out_n"].map(|name| b.param(name, index));
        let split = epilogue.split_n.then(|| (Divisor::declare(b, "out_size", &()), b.param("out_slow", index)));
        let alpha = epilogue.scaled.then(|| InDType::declare(b, "alpha", &sums));
        let bias = epilogue.bias.map(|_| {
            let strides = ["bias_batch", "bias_m", "bias_n"].map(|name| b.param(name, index));
            (strides, InDType::declare(b, "beta", &sums))
        });
        FinishParams { epilogue, index, strides, split, alpha, bias }
    }

    fn pass(finish: &&Finish, of: &FinishSpec, block: &mut ArgumentBlock) {
        let FinishSpec { epilogue, sums, index } = of;
        let Finish { out, alpha, bias, activation } = *finish;
        if out.split.is_some() != epilogue.split_n
            || bias.is_some() != epilogue.bias.is_some()
            || *activation != epilogue.activation
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
            <[Index; 3]>::pass(&bias.strides, index, block);
            InDType::pass(&bias.beta, sums, block);
        }
    }
}

impl<'b> FinishParams<'b> {
    /// Writes to `out`, and adds what is at `bias`.
    pub fn writer(self, b: &'b Builder, out: Pointer<'b>, bias: Option<Pointer<'b>>) -> Writer<'b> {
        let FinishParams { epilogue, index, strides, split, alpha, bias: numbers } = self;
        let bias = bias.zip(numbers).map(|(pointer, (strides, beta))| (pointer, strides, beta));
        Writer { epilogue, index, out, strides, split, alpha, bias, origin: [b.u32(0), b.u32(0)] }
    }
}

/// An epilogue inside a kernel.
pub struct Writer<'b> {
    epilogue: Epilogue,
    index: ScalarType,
    out: Pointer<'b>,
    strides: [Value<'b>; 3],
    split: Option<(DivisorParams<'b>, Value<'b>)>,
    alpha: Option<Value<'b>>,
    bias: Option<(Pointer<'b>, [Value<'b>; 3], Value<'b>)>,
    /// Row and column of the tile.
    origin: [Value<'b>; 2],
}

impl<'b> Writer<'b> {
    /// Moves to the tile whose first element is `(batch, m, n)`.
    pub fn begin(&mut self, batch: Value<'b>, m: Value<'b>, n: Value<'b>) {
        let at = |place: Value<'b>, stride: Value<'b>| place.cast(ScalarType::U64) * stride.cast(ScalarType::U64);
        let rows = |s: [Value<'b>; 3]| at(batch, s[0]) + at(m, s[1]);
        let mut elements = rows(self.strides);
        if self.split.is_none() {
            elements = elements + at(n, self.strides[2]);
        }
        self.out = self.out.offset(elements);
        if let Some((pointer, strides, _)) = &mut self.bias {
            *pointer = pointer.offset(rows(*strides) + at(n, strides[2]));
        }
        self.origin = [m, n];
    }

    /// `alpha * sum`. An alpha of 0 leaves nothing of it, as in BLAS, which has float32 and
    /// float64: no NaN, and in a sum with the bias not even a zero, whose sign would count.
    fn scaled(&self, sum: Value<'b>) -> Value<'b> {
        let Some(alpha) = self.alpha else { return sum };
        let product = sum * alpha;
        if !matches!(self.epilogue.dtype, DType::F32 | DType::F64) {
            return product;
        }
        let nothing = sum.like(if self.bias.is_some() { -0.0 } else { 0.0 });
        alpha.eq(0.0).select(nothing, product)
    }

    /// Finishes the sums of neighbouring columns from `(m, n)` of the tile. `columns` guards ragged
    /// edges: the columns of the whole result.
    pub fn store(&self, b: &'b Builder, m: Value<'b>, n: Value<'b>, sums: &[Value<'b>], columns: Option<Value<'b>>) {
        let wide = self.epilogue.wide;
        let step = if wide { sums.len() } else { 1 };
        for (i, part) in sums.chunks(step).enumerate() {
            let n = n + i as u32;
            let store = || {
                let scaled: Vec<Value> = part.iter().map(|&s| self.scaled(s)).collect();
                let sums_and_bias = match &self.bias {
                    None => scaled,
                    Some((pointer, strides, beta)) => {
                        let at = |n: Value<'b>| m.cast(self.index) * strides[1] + n.cast(self.index) * strides[2];
                        let bias: Vec<Value> = if self.epilogue.bias_wide && part.len() > 1 {
                            pointer.load_chunk(at(n) >> part.len().ilog2(), part.len() as u32)
                        } else {
                            (0..part.len() as u32).map(|j| pointer.load(at(n + j))).collect()
                        };
                        let bias = bias.into_iter().map(|x| x.cast(sums[0].scalar()) * *beta);
                        scaled.into_iter().zip(bias).map(|(s, x)| s + x).collect()
                    }
                };
                let results: Vec<Value> = match self.epilogue.activation {
                    Some(activation) => sums_and_bias.into_iter().map(|x| activation.apply(x)).collect(),
                    None => sums_and_bias,
                };
                let column = match self.split {
                    None => n.cast(self.index) * self.strides[2],
                    Some((size, slow)) => {
                        let (high, low) = size.divide(self.origin[1] + n);
                        high.cast(self.index) * slow + low.cast(self.index) * self.strides[2]
                    }
                };
                let offset = m.cast(self.index) * self.strides[1] + column;
                if part.len() > 1 {
                    self.out.store_chunk(offset >> part.len().ilog2(), &results);
                } else {
                    self.out.store(offset, results[0]);
                }
            };
            match columns {
                Some(columns) => b.if_((self.origin[1] + n).lt(columns), store),
                None => store(),
            }
        }
    }
}
