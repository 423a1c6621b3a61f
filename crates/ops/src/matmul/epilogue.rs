//! What happens to a finished sum: `out = alpha * sum + beta * bias`, rounded once to the result's dtype.

use super::divisor::{self, Divisor};
use super::operand::{Memory, WIDE};
use crate::operator::call::Scalar as Number;
use crate::primitives::launch::Launcher;
use dml_kernel::{Builder, DType, Pointer, Scalar, Value};

/// The part that changes code.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Epilogue {
    /// Dtype of the result.
    pub dtype: DType,
    /// Rows of the result are contiguous along n, and stored in vectors.
    pub wide: bool,
    /// n is two digits, which step through the result differently.
    pub split_n: bool,
    /// Sums are multiplied by alpha (a parameter).
    pub scaled: bool,
    /// Dtype of the bias that is added, times beta (a parameter).
    pub bias: Option<DType>,
    /// The bias is contiguous along n too, and loaded in vectors. Only where the result is wide.
    pub bias_wide: bool,
}

impl Epilogue {
    /// Plain sums to a workspace.
    pub fn partial(dtype: DType, wide: bool) -> Epilogue {
        Epilogue { dtype, wide, split_n: false, scaled: false, bias: None, bias_wide: false }
    }

    /// The epilogue as part of a kernel's key.
    pub fn code(&self) -> u32 {
        let flags = [self.wide, self.split_n, self.scaled, self.bias.is_some(), self.bias_wide];
        let flags = flags.iter().fold(0, |code, &flag| code << 1 | u32::from(flag));
        flags << 8 | self.bias.map_or(0, |d| d as u32) << 4 | self.dtype as u32
    }
}

/// Where results go.
#[derive(Copy, Clone, Debug)]
pub struct Output {
    /// The result.
    pub memory: Memory,
    /// Elements from one matrix of the batch, row, column to the next.
    pub strides: [i64; 3],
    /// Where n is two digits: values of the fast one, and elements from one value of the slow one to the next.
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
}

impl Finish {
    /// The code that it needs, for results of `n` columns.
    pub fn epilogue(&self, n: i64) -> Epilogue {
        let multiple = |x: i64| x % i64::from(WIDE) == 0;
        let wide = |t: Memory, s: [i64; 3]| s[2] == 1 && multiple(s[0]) && multiple(s[1]) && t.is_aligned();
        let out = &self.out;
        let split = out.split.is_none_or(|(size, stride)| multiple(size) && multiple(stride));
        let out_wide = multiple(n) && wide(out.memory, out.strides) && split;
        Epilogue {
            dtype: out.memory.dtype,
            wide: out_wide,
            split_n: out.split.is_some(),
            scaled: self.alpha.to_f64() != 1.0,
            bias: self.bias.as_ref().map(|b| b.memory.dtype),
            bias_wide: out_wide && self.bias.as_ref().is_some_and(|b| wide(b.memory, b.strides)),
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

    /// Passes the pointers, from matrix `first` of the batch on.
    pub fn pass_pointers<'c, 'a>(&self, mut launcher: Launcher<'c, 'a>, first: i64) -> Launcher<'c, 'a> {
        let out = self.out.memory.skip(first * self.out.strides[0]);
        launcher = launcher.write_bytes(out.address, out.bytes());
        if let Some(bias) = &self.bias {
            let bias = bias.memory.skip(first * bias.strides[0]);
            launcher = launcher.read_bytes(bias.address, bias.bytes());
        }
        launcher
    }

    /// Passes the numbers in the order in which [`Writer::declare`] declares them.
    pub fn pass<'c, 'a>(&self, compute: DType, index: Scalar, mut launcher: Launcher<'c, 'a>) -> Launcher<'c, 'a> {
        for s in self.out.strides {
            launcher = launcher.index(index, s);
        }
        if let Some((size, stride)) = self.out.split {
            launcher = divisor::pass(launcher, size).index(index, stride);
        }
        if self.alpha.to_f64() != 1.0 {
            launcher = launcher.number(compute, self.alpha);
        }
        if let Some(bias) = &self.bias {
            for s in bias.strides {
                launcher = launcher.index(index, s);
            }
            launcher = launcher.number(compute, bias.beta);
        }
        launcher
    }
}

/// The pointers of an epilogue.
#[derive(Copy, Clone)]
pub struct Pointers<'b> {
    out: Pointer<'b>,
    bias: Option<Pointer<'b>>,
}

impl<'b> Pointers<'b> {
    /// Declares them.
    pub fn declare(b: &'b Builder, epilogue: &Epilogue) -> Pointers<'b> {
        Pointers { out: b.pointer("out", epilogue.dtype), bias: epilogue.bias.map(|dtype| b.pointer("bias", dtype)) }
    }
}

/// An epilogue inside a kernel.
pub struct Writer<'b> {
    epilogue: Epilogue,
    index: Scalar,
    out: Pointer<'b>,
    strides: [Value<'b>; 3],
    split: Option<(Divisor<'b>, Value<'b>)>,
    alpha: Option<Value<'b>>,
    bias: Option<(Pointer<'b>, [Value<'b>; 3], Value<'b>)>,
    /// Row and column of the tile.
    origin: [Value<'b>; 2],
}

impl<'b> Writer<'b> {
    /// Declares the numbers; `compute` is the type of sums.
    pub fn declare(
        b: &'b Builder,
        pointers: Pointers<'b>,
        epilogue: Epilogue,
        compute: Scalar,
        index: Scalar,
    ) -> Writer<'b> {
        let strides = ["out_batch", "out_m", "out_n"].map(|name| b.param(name, index));
        let split = epilogue.split_n.then(|| (Divisor::declare(b, "out_size"), b.param("out_slow", index)));
        let alpha = epilogue.scaled.then(|| b.param("alpha", compute));
        let bias = pointers.bias.map(|pointer| {
            let strides = ["bias_batch", "bias_m", "bias_n"].map(|name| b.param(name, index));
            (pointer, strides, b.param("beta", compute))
        });
        let origin = [b.u32(0), b.u32(0)];
        Writer { epilogue, index, out: pointers.out, strides, split, alpha, bias, origin }
    }

    /// Moves to the tile whose first element is `(batch, m, n)`.
    pub fn begin(&mut self, batch: Value<'b>, m: Value<'b>, n: Value<'b>) {
        let at = |place: Value<'b>, stride: Value<'b>| place.cast(Scalar::U64) * stride.cast(Scalar::U64);
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

    /// Finishes the sums of neighbouring columns from `(m, n)` of the tile. `columns` guards ragged edges: the
    /// columns of the whole result.
    pub fn store(&self, b: &'b Builder, m: Value<'b>, n: Value<'b>, sums: &[Value<'b>], columns: Option<Value<'b>>) {
        let wide = self.epilogue.wide;
        let step = if wide { sums.len() } else { 1 };
        for (i, part) in sums.chunks(step).enumerate() {
            let n = n + i as u32;
            let store = || {
                let scaled: Vec<Value> = part.iter().map(|&s| self.alpha.map_or(s, |alpha| s * alpha)).collect();
                let results = match &self.bias {
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
