//! The pointwise kernel over lists of tensors.

use crate::context::Context;
use crate::error::Result;
use crate::lists::multi_tensor::batch::{Row, split};
use crate::lists::multi_tensor::signature::{Kind, Signature};
use crate::pointwise::function::Variant;
use crate::pointwise::kernel::{self, Input, Operands};
use crate::primitives::kernel::InDType;
use crate::primitives::list_table::ListTable;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::{Each, ReadRange};
use dml_engine::{ArgumentBlock, Interface, Parameter, parameters};
use dml_kernel::dense::{self, GROUP};
use dml_kernel::{Builder, DType, Kernel, Pointer, ScalarType, Value};

/// Computes the results of every row from its inputs and from the shared inputs, which are numbers
/// and tensors of one element. The function gets the row's inputs first, then the shared ones.
pub fn run(cx: &Context, variant: Variant, rows: &[Row], shared: &[Input]) -> Result<()> {
    if cx.needs_no_kernel() {
        return Ok(());
    }
    let (batches, singles) = split(rows, shared);
    for mut batch in batches {
        batch.narrow(most_lanes(cx, batch.signature()));
        let spec = Spec { variant, signature: batch.signature().clone() };
        let kernel = cx.device.kernel(&spec, || spec.build())?;
        batch.launch(|lists, groups| {
            cx.enqueue(kernel, &spec, &Arguments { lists, shared: shared.iter().map(Argument::of).collect() }, groups)
        })?;
    }
    let shared = kernel::operands(shared);
    for row in singles {
        let mut inputs: Operands = row.inputs.iter().copied().collect();
        inputs.extend(shared.iter().copied());
        kernel::run_operands(cx, variant, &row.outs, &inputs, row.common)?;
    }
    Ok(())
}

/// The most elements of each tensor that an invocation computes with at a time.
fn most_lanes(cx: &Context, signature: &Signature) -> u32 {
    if kernel::takes_many_registers(cx, signature.common.compute()) {
        return 1;
    }
    let Some(registers) = cx.device.info().capabilities.registers else { return signature.lanes };
    let tensors = (signature.outs.len() + signature.inputs.len()) as u32;
    let mut lanes = signature.lanes;
    while registers.are_few_and_all() && lanes > 4 && lanes * tensors > 24 {
        lanes /= 2;
    }
    lanes
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    /// What is computed.
    variant: Variant,
    signature: Signature,
}

parameters! {
    Spec as s => Arguments, Parameters {
        lists: ListTable,
        /// The inputs that all tensors share.
        shared: Each<ListInputParameter> = s.signature.shared().map(|kind| (kind, s.signature.common)).collect(),
    }
}

/// Kernel parameter: a number or a tensor of one element that all tensors of a list share.
struct ListInputParameter;

/// The argument for [`ListInputParameter`].
enum Argument<'a> {
    Tensor(&'a View),
    Number(Number),
}

impl<'a> Argument<'a> {
    fn of(input: &'a Input) -> Self {
        match input {
            Input::Tensor(t) => Argument::Tensor(t),
            Input::Number(x, _) => Argument::Number(*x),
        }
    }
}

/// A [`ListInputParameter`] in a kernel.
#[derive(Copy, Clone)]
enum Declared<'b> {
    Tensor(Pointer<'b>),
    Number(Value<'b>),
}

impl Parameter for ListInputParameter {
    /// The kind of input, and the dtype of numbers.
    type Type = (Kind, DType);
    type Argument<'a> = Argument<'a>;
    type Declared<'b> = Declared<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, &(kind, common): &(Kind, DType)) -> Declared<'b> {
        match kind {
            Kind::SharedTensor(dtype) => Declared::Tensor(ReadRange::declare(b, name, &dtype)),
            _ => Declared::Number(InDType::declare(b, name, &common)),
        }
    }

    fn pass(argument: &Argument, &(kind, common): &(Kind, DType), block: &mut ArgumentBlock) {
        match (argument, kind) {
            (Argument::Tensor(t), Kind::SharedTensor(dtype)) if t.dtype == dtype => {
                ReadRange::pass(&t.range(), &dtype, block);
            }
            (Argument::Number(x), Kind::ListScalar) => InDType::pass(x, &common, block),
            _ => block.mismatch("what all tensors share is not what the kernel is made for"),
        }
    }
}

/// Decodes the number that [`crate::primitives::kernel::number_word`] encoded in a word.
fn number(word: Value<'_>, scalar: ScalarType) -> Value<'_> {
    match scalar {
        ScalarType::Bool => word.cast(ScalarType::U32).cast(ScalarType::Bool),
        s if s.bytes() == 8 => word.bitcast(s),
        s => word.cast(ScalarType::U32).bitcast(s),
    }
}

impl Spec {
    fn build(&self) -> Kernel {
        let b = Builder::new(self.variant.function.name, [GROUP, 1, 1]);
        let Parameters { lists, shared } = self.declare(&b);
        let signature = &self.signature;
        let compute = signature.common.compute();
        lists.part(signature.lanes, signature.words(), |part| {
            let outs: Vec<Pointer> =
                signature.outs.iter().zip(0..).map(|(&dtype, i)| lists.part_of(&part, i, dtype)).collect();
            let mut next = outs.len() as u32;
            let mut word = || {
                next += 1;
                next - 1
            };
            let mut shared = shared.iter();
            let (mut tensors, mut dtypes, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
            for &kind in &signature.inputs {
                let (tensor, number) = match kind {
                    Kind::Dense(dtype) => (Some((lists.part_of(&part, word(), dtype), false)), None),
                    Kind::One(dtype) => (Some((lists.tensor(&part, word(), dtype), true)), None),
                    Kind::Number => (None, Some(number(lists.word(&part, word()), compute))),
                    Kind::SharedTensor(_) | Kind::ListScalar => match shared.next() {
                        Some(&Declared::Tensor(pointer)) => (Some((pointer, true)), None),
                        Some(&Declared::Number(value)) => (None, Some(value)),
                        None => (None, None),
                    },
                };
                numbers.push(number);
                dtypes.extend(tensor.map(|(pointer, _)| pointer.dtype()));
                tensors.extend(tensor);
            }
            let compute = |loaded: &[_]| {
                let values = kernel::assemble(&numbers, loaded, &dtypes, signature.common);
                self.variant.results(&values, signature.outs.len())
            };
            b.for_(0, lists.rounds, 1, |round| {
                let chunk = round * GROUP + b.local_id(0);
                dense::write_chunk(&b, chunk, part.n, signature.lanes, &outs, &tensors, &compute);
            });
        });
        b.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use smallvec::smallvec;

    crate::functions! {
        /// A function with every kind of input.
        TEST = "test"(a, b, c, d, e) => a.eq(e).select(b, c).ne(d).cast(a.scalar());
    }

    #[test]
    fn kernels_are_valid() {
        let numbers = [Kind::Number, Kind::ListScalar, Kind::SharedTensor(DType::F32)];
        for common in [DType::Bool, DType::U8, DType::I64, DType::F16, DType::F32, DType::F64] {
            let mut signature = Signature { outs: smallvec![common], inputs: smallvec![], common, lanes: 2 };
            signature.inputs.extend([Kind::Dense(common), Kind::One(DType::I32)]);
            signature.inputs.extend(numbers);
            accepted(&Spec { variant: FUNCTIONS[0].into(), signature }.build());
        }
    }
}
