//! How a workgroup finds its tensor, and the pointwise kernel over lists of tensors.
//!
//! The table holds 64-bit words: for each tensor the number of the first workgroup that works on it, then the number of
//! workgroups of all, then an entry a tensor. An entry is the number of elements, and what else the kernel
//! wants to know: addresses, in elements, and numbers.

use super::{Kind, Signature};
use crate::pointwise::kernel::{self, Bodies};
use crate::primitives::launch::GROUP;
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value, dense};

/// The parameters of every kernel over lists, declared in this order.
pub struct Lists<'b> {
    b: &'b Builder,
    table: Pointer<'b>,
    /// All memory: the addresses of the table count from its start.
    memory: Pointer<'b>,
    tensors: Value<'b>,
    groups: Value<'b>,
    /// Accesses of an invocation.
    pub rounds: Value<'b>,
}

/// What a workgroup works on.
pub struct Part<'b> {
    /// Where the tensor's entry is in the table.
    entry: Value<'b>,
    /// The first element (u64).
    pub start: Value<'b>,
    /// Elements (u32).
    pub n: Value<'b>,
}

impl<'b> Lists<'b> {
    /// Declares the parameters: those that [`super::launch`] passes.
    pub fn declare(b: &'b Builder) -> Self {
        Lists {
            b,
            table: b.pointer("table", DType::U64),
            memory: b.pointer("memory", DType::U8),
            tensors: b.param("tensors", Scalar::U32),
            groups: b.param("groups", Scalar::U32),
            rounds: b.param("rounds", Scalar::U32),
        }
    }

    /// Runs `body` in every workgroup that has work. An invocation works on `lanes` elements at a time, in
    /// [`rounds`](Self::rounds) turns with the others of its workgroup. `words` is the length of an entry.
    pub fn part(&self, lanes: u32, words: u32, body: impl FnOnce(Part<'b>)) {
        let (b, table) = (self.b, self.table);
        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        // The whole workgroup searches: one look each, where a binary search would take several in a row.
        let found = b.shared(Scalar::U32, 1, 2);
        b.for_(b.local_id(0), self.tensors, GROUP, |tensor| {
            let [first, next] = [tensor, tensor + 1].map(|i| table.load(i).cast(Scalar::U32));
            b.if_(group.ge(first) & group.lt(next), || {
                found.store(0, tensor);
                found.store(1, first);
            });
        });
        b.barrier();
        b.if_(group.lt(self.groups), || {
            let (tensor, first) = (found.load(0), found.load(1));
            let entry = self.tensors + 1 + tensor * words;
            let most = (self.rounds * (GROUP * lanes)).cast(Scalar::U64);
            let start = (group - first).cast(Scalar::U64) * most;
            let left = table.load(entry) - start;
            let n = left.lt(most).select(left, most).cast(Scalar::U32);
            body(Part { entry, start, n });
        });
    }

    /// Word `i` of a part's entry, after the number of elements.
    pub fn word(&self, part: &Part<'b>, i: u32) -> Value<'b> {
        self.table.load(part.entry + (1 + i))
    }

    /// The tensor whose address is word `i`.
    pub fn tensor(&self, part: &Part<'b>, i: u32, dtype: DType) -> Pointer<'b> {
        self.memory.retyped(dtype).offset(self.word(part, i))
    }

    /// The part of a tensor whose address is word `i`.
    pub fn part_of(&self, part: &Part<'b>, i: u32, dtype: DType) -> Pointer<'b> {
        self.memory.retyped(dtype).offset(self.word(part, i) + part.start)
    }
}

/// The number whose bits a word holds, as [`crate::primitives::launch::number_word`] put them there.
fn number(word: Value<'_>, scalar: Scalar) -> Value<'_> {
    match scalar {
        Scalar::Bool => word.cast(Scalar::U32).cast(Scalar::Bool),
        s if s.bytes() == 8 => word.bitcast(s),
        s => word.cast(Scalar::U32).bitcast(s),
    }
}

/// The pointwise kernel. Numbers and tensors that all share are parameters.
pub fn pointwise(family: &str, signature: &Signature, body: Bodies<'_>) -> Kernel {
    let b = Builder::new(family, [GROUP, 1, 1]);
    let lists = Lists::declare(&b);
    let compute = signature.common.compute();
    let parameters: Vec<_> = signature
        .inputs
        .iter()
        .map(|&kind| match kind {
            Kind::SharedTensor(dtype) => (Some(b.pointer("shared", dtype)), None),
            Kind::SharedNumber if compute == Scalar::Bool => (None, Some(b.param("number", Scalar::U32).cast(compute))),
            Kind::SharedNumber => (None, Some(b.param("number", compute))),
            _ => (None, None),
        })
        .collect();
    lists.part(signature.lanes, signature.words(), |part| {
        let outs: Vec<Pointer> =
            signature.outs.iter().zip(0..).map(|(&dtype, i)| lists.part_of(&part, i, dtype)).collect();
        let mut next = outs.len() as u32;
        let mut word = || {
            next += 1;
            next - 1
        };
        let (mut tensors, mut dtypes, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (&kind, &(pointer, parameter)) in signature.inputs.iter().zip(&parameters) {
            let tensor = match kind {
                Kind::Dense(dtype) => Some((lists.part_of(&part, word(), dtype), false)),
                Kind::One(dtype) => Some((lists.tensor(&part, word(), dtype), true)),
                Kind::SharedTensor(_) => pointer.map(|pointer| (pointer, true)),
                Kind::Number | Kind::SharedNumber => None,
            };
            numbers.push(match kind {
                Kind::Number => Some(number(lists.word(&part, word()), compute)),
                _ => parameter,
            });
            dtypes.extend(tensor.map(|(pointer, _)| pointer.dtype()));
            tensors.extend(tensor);
        }
        let compute = |loaded: &[_]| body(&b, &kernel::assemble(&numbers, loaded, &dtypes, signature.common));
        b.for_(0, lists.rounds, 1, |round| {
            let chunk = round * GROUP + b.local_id(0);
            dense::write_chunk(&b, chunk, part.n, signature.lanes, &outs, &tensors, &compute);
        });
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use dml_kernel::interpret::{Argument, run};
    use smallvec::smallvec;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn words(bytes: &[u8]) -> Vec<u64> {
        bytes.chunks_exact(8).map(|b| b.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b))).collect()
    }

    #[test]
    fn kernels_are_valid() {
        let numbers = [Kind::Number, Kind::SharedNumber, Kind::SharedTensor(DType::F32)];
        for common in [DType::Bool, DType::U8, DType::I64, DType::F16, DType::F32, DType::F64] {
            let mut signature = Signature { outs: smallvec![common], inputs: smallvec![], common, lanes: 2 };
            signature.inputs.extend([Kind::Dense(common), Kind::One(DType::I32)]);
            signature.inputs.extend(numbers);
            accepted(&pointwise("test", &signature, &|_, v| {
                vec![v[0].eq(v[4]).select(v[1], v[2]).ne(v[3]).cast(v[0].scalar())]
            }));
        }
    }

    /// Positions beyond 32 bits: the workgroups of tensors of more than 2^33 elements start where they should.
    #[test]
    fn workgroups_find_their_parts() {
        let (rounds, lanes) = (1u64 << 20, 4);
        let chunk = rounds * u64::from(GROUP) * lanes;
        let counts: Vec<u64> = (0..300).map(|i| if i % 100 == 7 { 9 * chunk + i } else { i + 1 }).collect();
        let mut firsts = vec![0];
        for count in &counts {
            firsts.push(firsts[firsts.len() - 1] + count.div_ceil(chunk));
        }
        let groups = firsts[counts.len()];
        let table = [firsts.as_slice(), &counts].concat();
        let b = Builder::new("parts", [GROUP, 1, 1]);
        let lists = Lists::declare(&b);
        let out = b.pointer("out", DType::U64);
        lists.part(lanes as u32, 1, |part| {
            let at = (b.group_id(0) + b.group_id(1) * b.group_count(0)) * 3;
            out.store(at, part.entry.cast(Scalar::U64));
            out.store(at + 1, part.start);
            out.store(at + 2, part.n.cast(Scalar::U64));
        });
        let kernel = b.finish();
        accepted(&kernel);
        let (mut table, mut found) = (bytes(&table), vec![0; groups as usize * 24]);
        let grid = [groups as u32 / 2 + 1, 2, 1];
        run(
            &kernel,
            grid,
            8,
            &mut [
                Argument::Memory(&mut table),
                Argument::Memory(&mut []),
                Argument::Number(counts.len() as u64),
                Argument::Number(groups),
                Argument::Number(rounds),
                Argument::Memory(&mut found),
            ],
        );
        let mut expected = Vec::new();
        for (i, &count) in counts.iter().enumerate() {
            for part in 0..count.div_ceil(chunk) {
                let start = part * chunk;
                expected.extend([counts.len() as u64 + 1 + i as u64, start, (count - start).min(chunk)]);
            }
        }
        assert_eq!(words(&found), expected);
    }
}
