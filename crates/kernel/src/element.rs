//! A computation on one element of each input, recorded so that it can be inserted into any kernel,
//! several times if need be.

use crate::builder::{Builder, Value};
use crate::ir::{Block, Inst, Kernel, Stmt, ValueId, VarId};
use crate::types::{ScalarType, Type};

/// The computation of a pointwise kernel: instructions with placeholders ([`Inst::Placeholder`])
/// for the inputs.
#[derive(Clone, Debug)]
pub struct Element {
    kernel: Kernel,
    inputs: Vec<ValueId>,
    results: Vec<ValueId>,
}

impl Element {
    /// Records the instructions of `body` on inputs of these types. `None` if an instruction
    /// accesses memory, depends on the invocation's index, or ends the invocation.
    pub fn record(
        inputs: &[ScalarType],
        body: impl for<'b> FnOnce(&'b Builder, &[Value<'b>]) -> Vec<Value<'b>>,
    ) -> Option<Element> {
        let b = Builder::new("element", [1, 1, 1]);
        let (inputs, results) = {
            let placeholders: Vec<Value> =
                inputs.iter().enumerate().map(|(i, &s)| b.placeholder(Type::scalar(s), i as u32)).collect();
            let results = body(&b, &placeholders);
            let ids = |values: &[Value]| values.iter().map(|v| v.id).collect::<Vec<_>>();
            (ids(&placeholders), ids(&results))
        };
        let kernel = b.finish();
        let computes = kernel.params.is_empty()
            && kernel.pointers.is_empty()
            && kernel.shared.is_empty()
            && kernel.values.iter().all(|v| {
                !matches!(v.inst, Inst::Builtin(_) | Inst::Subgroup(..) | Inst::ShuffleXor(..) | Inst::Component { .. })
            })
            && goes_through(&kernel.body);
        computes.then_some(Element { kernel, inputs, results })
    }

    /// The approximate number of instructions that a copy adds to a kernel.
    pub fn len(&self) -> usize {
        self.kernel.values.len()
    }

    /// Whether it computes nothing.
    pub fn is_empty(&self) -> bool {
        self.kernel.body.0.is_empty()
    }

    /// Appends a copy of the computation to a kernel.
    pub fn inline<'b>(&self, b: &'b Builder, inputs: &[Value<'b>]) -> Vec<Value<'b>> {
        let mut copy = Copy { b, from: &self.kernel, values: vec![None; self.kernel.values.len()], first_var: 0 };
        for (&placeholder, &value) in self.inputs.iter().zip(inputs) {
            copy.values[placeholder as usize] = Some(value);
        }
        copy.first_var = b.declare_vars(&self.kernel.vars);
        copy.block(&self.kernel.body);
        self.results.iter().map(|&id| copy.value(id)).collect()
    }
}

/// Whether control always reaches the block's end.
fn goes_through(block: &Block) -> bool {
    block.0.iter().all(|stmt| match stmt {
        Stmt::Return | Stmt::Barrier | Stmt::SubgroupBarrier | Stmt::Matrix(_) => false,
        Stmt::If { then, otherwise, .. } => goes_through(then) && goes_through(otherwise),
        Stmt::While { test, body, .. } => goes_through(test) && goes_through(body),
        _ => true,
    })
}

/// A copy under construction.
struct Copy<'b, 'k> {
    b: &'b Builder,
    from: &'k Kernel,
    /// The copy's value for each value of the original.
    values: Vec<Option<Value<'b>>>,
    first_var: VarId,
}

impl<'b> Copy<'b, '_> {
    fn value(&mut self, id: ValueId) -> Value<'b> {
        if let Some(value) = self.values[id as usize] {
            return value;
        }
        let info = &self.from.values[id as usize];
        // Only constants have no definition among the statements.
        let value = match info.inst {
            Inst::ConstBool(x) => self.b.bool(x),
            Inst::ConstInt(x) => self.b.int(info.ty.scalar, x),
            Inst::ConstFloat(bits) => self.b.float_bits(info.ty.scalar, bits),
            _ => self.define(id),
        };
        self.values[id as usize] = Some(value);
        value
    }

    fn define(&mut self, id: ValueId) -> Value<'b> {
        let from = self.from;
        let info = &from.values[id as usize];
        let mut inst = info.inst.map(|id| self.value(id).id);
        if let Inst::GetVar { var, .. } = &mut inst {
            *var += self.first_var;
        }
        self.b.def(info.ty, inst)
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.0 {
            match stmt {
                Stmt::Def(id) => {
                    let value = self.define(*id);
                    self.values[*id as usize] = Some(value);
                }
                Stmt::SetVar { var, index, value } => {
                    let index = index.map(|i| self.value(i).id);
                    let value = self.value(*value).id;
                    self.b.stmt(Stmt::SetVar { var: self.first_var + var, index, value });
                }
                Stmt::If { cond, then, otherwise } => {
                    let cond = self.value(*cond).id;
                    let b = self.b;
                    let then = b.block(|| self.block(then));
                    let otherwise = b.block(|| self.block(otherwise));
                    b.stmt(Stmt::If { cond, then, otherwise });
                }
                Stmt::While { test, cond, body, unroll } => {
                    let b = self.b;
                    let test = b.block(|| self.block(test));
                    let cond = self.value(*cond).id;
                    let body = b.block(|| self.block(body));
                    b.stmt(Stmt::While { test, cond, body, unroll: *unroll });
                }
                // The copy is no call: it defines constants at their first use, so the body's
                // values have no range of their own.
                Stmt::Call(call) => self.block(&call.body),
                // `record` rejects all others.
                other => self.b.stmt(other.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::interpret::{Argument, run};

    #[test]
    fn a_copy_computes_what_the_original_does() {
        fn powers<'b>(b: &'b Builder, v: &[Value<'b>]) -> Vec<Value<'b>> {
            let sum = b.var(v[0]);
            b.for_(0, v[1], 1, |i| {
                b.if_else((i & 1).eq(0), || sum.set(sum.get() * 3), || sum.set(sum.get() + 1));
            });
            vec![sum.get(), v[0]]
        }
        let element = Element::record(&[ScalarType::I32, ScalarType::I32], powers).expect("it only computes");
        let make = |copied: bool| {
            let b = Builder::new("test", [4, 1, 1]);
            let (out, x) = (b.pointer("out", DType::I32), b.pointer("x", DType::I32));
            let i = b.local_id(0);
            let inputs = [x.load(i), x.load(i + 4)];
            let results = if copied { element.inline(&b, &inputs) } else { powers(&b, &inputs) };
            // Two copies in one kernel have separate variables.
            let again = if copied { element.inline(&b, &results) } else { powers(&b, &results) };
            out.store(i, results[0] + again[0]);
            b.finish()
        };
        let x: Vec<u8> = [1i32, 2, 3, -4, 0, 1, 5, 8].iter().flat_map(|x| x.to_le_bytes()).collect();
        let [direct, copied] = [false, true].map(|copied| {
            let (mut out, mut x) = (vec![0u8; 16], x.clone());
            run(&make(copied), [1, 1, 1], 4, &mut [Argument::Memory(&mut out), Argument::Memory(&mut x)]);
            out
        });
        assert_eq!(direct, copied);
        assert_ne!(direct, [0; 16]);
    }

    #[test]
    fn what_touches_memory_is_not_recorded() {
        let asks = Element::record(&[ScalarType::I32], |b, v| vec![v[0] + b.local_id(0).bitcast(ScalarType::I32)]);
        assert!(asks.is_none());
        let ends = Element::record(&[ScalarType::I32], |b, v| {
            b.if_(v[0].eq(0), || b.return_());
            v.to_vec()
        });
        assert!(ends.is_none());
    }
}
