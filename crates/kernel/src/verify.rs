//! Checks a kernel's types before it is emitted, so that no driver is handed an invalid module:
//! some end the process.
//!
//! Every instruction has operands of the types that SPIR-V's instruction takes, and uses values
//! only where their definition has run. What `spirv-val` would say of the module is known here
//! without it, in microseconds.

use crate::ir::*;
use crate::matrix_type::{MatrixType, MatrixUse};
use crate::text::names::mnemonic;
use crate::types::{ScalarType, Type, Word};

/// A kernel that its builder should not have made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidKernel {
    /// The kernel's name.
    pub kernel: String,
    /// What is wrong with it.
    pub what: String,
}

impl std::fmt::Display for InvalidKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "kernel {} is not valid: {}", self.kernel, self.what)
    }
}

impl std::error::Error for InvalidKernel {}

impl Kernel {
    /// Checks the whole kernel.
    ///
    /// # Errors
    /// The first instruction that is wrong, with its types.
    pub fn verify(&self) -> Result<(), InvalidKernel> {
        let invalid = |what| InvalidKernel { kernel: self.name.clone(), what };
        let defined = self.values.iter().map(|value| value.inst.is_entry()).collect();
        let scope = Scope { defined, pointers: vec![false; self.pointers.len()] };
        let mut verifier = Verifier { k: self, scope: Some(scope), opened: Vec::new() };
        self.check_declarations()
            .and_then(|()| {
                (0..self.values.len() as ValueId)
                    .filter(|&id| self.values[id as usize].inst.is_entry())
                    .try_for_each(|id| verifier.value(id).map_err(|what| at(id, &what)))
            })
            .and_then(|()| verifier.block(&self.body))
            .map_err(invalid)
    }

    /// Checks what is declared: workgroups, parameters and memory.
    fn check_declarations(&self) -> Check {
        let size = self.workgroup_size;
        let invocations = size.iter().try_fold(1u32, |all, &size| all.checked_mul(size));
        check(!size.contains(&0) && invocations.is_some(), || format!("its workgroups have {size:?} invocations"))?;
        for (param, p) in self.params.iter().zip(0..) {
            let fits = match param.kind {
                ParamKind::Pointer { pointer, dtype, writable: _ } => {
                    let info = self.pointers.get(pointer as usize);
                    !dtype.is_complex()
                        && info.is_some_and(|info| (info.word, info.base) == (dtype.word(), PointerBase::Param(p)))
                }
                ParamKind::Scalar(scalar) => scalar != ScalarType::Bool,
                ParamKind::Words => true,
            };
            check(fits, || format!("parameter {p} is {:?}", param.kind))?;
        }
        let bytes = |ty: Type, len: u32| u64::from(ty.scalar.bytes().max(1)) * u64::from(ty.lanes) * u64::from(len);
        let lengths = self.vars.iter().map(|var| var.len).chain(self.shared.iter().map(|shared| shared.len));
        check(lengths.min() != Some(0), || "an array has no elements".to_owned())?;
        let private: u64 = self.vars.iter().map(|var| bytes(var.ty, var.len)).sum();
        check(private <= MOST_BYTES, || format!("an invocation has {private} bytes of variables"))?;
        let shared: u64 = self.shared.iter().map(|shared| bytes(shared.ty, shared.len)).sum();
        check(shared <= MOST_BYTES, || format!("a workgroup has {shared} bytes of memory"))?;
        self.matrices.iter().try_for_each(|matrix| matrix.check())
    }

    /// Checks a value's type and those of its operands, wherever it is used.
    pub(crate) fn check_value(&self, id: ValueId) -> Check {
        Verifier { k: self, scope: None, opened: Vec::new() }.value(id)
    }

    /// The same of a statement without blocks.
    pub(crate) fn check_statement(&self, stmt: &Stmt) -> Check {
        Verifier { k: self, scope: None, opened: Vec::new() }.statement(stmt)
    }
}

/// The most bytes of variables, and of a workgroup's arrays: more than any adapter has.
const MOST_BYTES: u64 = 16 << 20;

type Check = Result<(), String>;

struct Verifier<'k> {
    k: &'k Kernel,
    /// What may be used here; `None`: anything that there is.
    scope: Option<Scope>,
    /// What the open blocks defined, in order.
    opened: Vec<Definition>,
}

struct Scope {
    /// Values.
    defined: Vec<bool>,
    /// Moved pointers.
    pointers: Vec<bool>,
}

#[derive(Copy, Clone)]
enum Definition {
    Value(ValueId),
    Pointer(PointerId),
}

const BOOL: Type = Type::scalar(ScalarType::Bool);
/// An address, or another 64-bit integer.
const WORDS: Type = Type { scalar: ScalarType::U32, lanes: 2 };

fn is_number(ty: Type) -> bool {
    ty.scalar != ScalarType::Bool
}

fn at(id: ValueId, what: &str) -> String {
    format!("%{id}: {what}")
}

/// Types of operands, for messages.
fn list(types: &[Type]) -> String {
    types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether memory is accessed by this type: one element by its own type, several by any vector of
/// numbers.
fn moves(word: Word, ty: Type) -> bool {
    match ty.lanes {
        1 => ty.scalar == word.value() && is_number(ty),
        lanes => is_number(ty) && matches!(lanes, 2 | 4),
    }
}

fn check(holds: bool, what: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(what()) }
}

impl Verifier<'_> {
    fn used(&self, id: ValueId) -> Result<Type, String> {
        let seen = self.scope.as_ref().is_none_or(|scope| scope.defined.get(id as usize) == Some(&true));
        match self.k.values.get(id as usize) {
            Some(value) if seen => Ok(value.ty),
            _ => Err(format!("%{id} is used where its definition has not run")),
        }
    }

    fn index(&self, id: ValueId) -> Check {
        let ty = self.used(id)?;
        check(ty.lanes == 1 && ty.scalar.is_integer(), || format!("an index is an integer, not {ty}"))
    }

    fn pointer(&self, id: PointerId) -> Result<Word, String> {
        let info = self.k.pointers.get(id as usize).ok_or_else(|| format!("there is no pointer {id}"))?;
        let seen = self.scope.as_ref().is_none_or(|scope| scope.pointers[id as usize]);
        check(seen || matches!(info.base, PointerBase::Param(_)), || {
            format!("pointer {id} is used where its definition has not run")
        })?;
        Ok(info.word)
    }

    /// A pointer that is written through.
    fn written(&self, id: PointerId) -> Result<Word, String> {
        let word = self.pointer(id)?;
        let mut base = self.k.pointers[id as usize].base;
        while let PointerBase::Offset(of, _) = base {
            base = self.k.pointers[of as usize].base;
        }
        if let PointerBase::Param(p) = base
            && let Some(Param { name, kind: ParamKind::Pointer { writable: false, .. } }) =
                self.k.params.get(p as usize)
        {
            return Err(format!("{name} is an input, which nothing is written to"));
        }
        Ok(word)
    }

    /// An atomic access of this type.
    fn atomic(&self, pointer: PointerId, index: ValueId, ty: Type) -> Check {
        let word = self.written(pointer)?;
        self.index(index)?;
        let fits = ty.lanes == 1 && ty.scalar.is_integer() && word == Word::Full(ty.scalar);
        check(fits, || format!("an atomic operation on {ty} in memory of {}", word.name()))
    }

    /// Element `index` of a variable.
    fn variable(&self, var: VarId, index: Option<ValueId>) -> Result<Type, String> {
        let info = self.k.vars.get(var as usize).ok_or_else(|| format!("there is no variable {var}"))?;
        check(index.is_some() || info.len == 1, || "an array is used as a whole".to_owned())?;
        check(index.is_none() || info.len > 1, || "a variable that is no array has no elements".to_owned())?;
        index.map_or(Ok(()), |index| self.index(index))?;
        Ok(info.ty)
    }

    fn shared(&self, shared: SharedId, index: ValueId) -> Result<Type, String> {
        let info = self.k.shared.get(shared as usize).ok_or_else(|| format!("there is no shared array {shared}"))?;
        self.index(index)?;
        Ok(info.ty)
    }

    fn matrix(&self, id: MatrixId) -> Result<MatrixType, String> {
        self.k.matrices.get(id as usize).copied().ok_or_else(|| format!("there is no matrix {id}"))
    }

    fn accumulator(&self, id: MatrixId) -> Result<MatrixType, String> {
        let ty = self.matrix(id)?;
        check(ty.part == MatrixUse::Accumulator, || format!("a matrix {ty} is used as an accumulator"))?;
        Ok(ty)
    }

    /// Memory of a matrix of a type: from an index on, with a stride.
    fn matrix_memory(&self, ty: MatrixType, memory: MatrixMemory, places: [ValueId; 2]) -> Check {
        for place in places {
            let index = self.used(place)?;
            let fits = index == Type::scalar(ScalarType::U32);
            check(fits, || format!("a matrix's place and stride are of type u32, not {index}"))?;
        }
        match memory {
            MatrixMemory::Shared(id) => {
                let array = self.k.shared.get(id as usize).ok_or_else(|| format!("there is no shared array {id}"))?;
                let fits = array.ty.scalar.bytes() == 4;
                check(fits, || format!("a matrix {ty} in an array of {}", array.ty))
            }
            MatrixMemory::Pointer(id) => {
                let word = self.pointer(id)?;
                check(word == ty.dtype.word(), || format!("a matrix {ty} in memory of {}", word.name()))
            }
        }
    }

    fn matrix_statement(&self, stmt: &MatrixStmt) -> Check {
        let float = |ty: MatrixType| ty.dtype.is_float();
        match *stmt {
            MatrixStmt::Fill { matrix, value } => {
                let (ty, value) = (self.accumulator(matrix)?, self.used(value)?);
                check(value == Type::scalar(ty.dtype.compute()), || format!("a matrix {ty} is filled with {value}"))
            }
            MatrixStmt::Load { matrix, from: memory, index, stride, layout: _ } => {
                self.matrix_memory(self.matrix(matrix)?, memory, [index, stride])
            }
            MatrixStmt::Store { matrix, to: memory, index, stride, layout: _ } => {
                if let MatrixMemory::Pointer(pointer) = memory {
                    self.written(pointer)?;
                }
                self.matrix_memory(self.matrix(matrix)?, memory, [index, stride])
            }
            MatrixStmt::MultiplyAdd { sum, left, right } => {
                let (sum, left, right) = (self.accumulator(sum)?, self.matrix(left)?, self.matrix(right)?);
                let parts = (left.part, right.part) == (MatrixUse::Left, MatrixUse::Right);
                let sizes = (left.rows, right.columns, left.columns) == (sum.rows, sum.columns, right.rows);
                let fits = parts && sizes && float(sum) == float(left) && float(sum) == float(right);
                check(fits, || format!("a product of {left} and {right} is added to {sum}"))
            }
            MatrixStmt::Add { to, from } => {
                let (to, from) = (self.accumulator(to)?, self.accumulator(from)?);
                check(to == from, || format!("{from} is added to {to}"))
            }
            MatrixStmt::Scale { matrix, by } => {
                let (ty, by) = (self.accumulator(matrix)?, self.used(by)?);
                check(float(ty) && by == Type::scalar(ScalarType::F32), || format!("{ty} is multiplied by {by}"))
            }
            MatrixStmt::Convert { to, from } => {
                let (to, from) = (self.accumulator(to)?, self.accumulator(from)?);
                let sizes = (to.rows, to.columns) == (from.rows, from.columns);
                let fits = sizes && float(to) && float(from) && to.dtype != from.dtype;
                check(fits, || format!("{from} is converted to {to}"))
            }
            MatrixStmt::SetComponent { matrix, component, value } => {
                let (ty, value) = (self.matrix(matrix)?, self.used(value)?);
                let fits = float(ty) && component < ty.len() && value == Type::scalar(ScalarType::F32);
                check(fits, || format!("component {component} of {ty} becomes {value}"))
            }
        }
    }

    fn value(&self, id: ValueId) -> Check {
        let ValueInfo { ty, ref inst } = self.k.values[id as usize];
        let wrong = || format!("{} gives no {ty}", mnemonic(inst));
        let wrong_of = |operands: &[Type]| format!("{} of {} gives no {ty}", mnemonic(inst), list(operands));
        match *inst {
            Inst::ConstBool(_) => check(ty == BOOL, wrong),
            Inst::ConstInt(_) => check(ty.lanes == 1 && ty.scalar.is_integer(), wrong),
            Inst::ConstFloat(_) => check(ty.lanes == 1 && ty.scalar.is_float(), wrong),
            Inst::Builtin(Builtin::Group(d) | Builtin::Local(d) | Builtin::Groups(d)) if d > 2 => Err(wrong()),
            Inst::Builtin(_) => check(ty == Type::scalar(ScalarType::U32), wrong),
            Inst::Param(p) => match self.k.params.get(p as usize).map(|p| p.kind) {
                Some(ParamKind::Scalar(s)) => check(ty == Type::scalar(s) && is_number(ty), wrong),
                Some(ParamKind::Words) => check(ty == WORDS, wrong),
                _ => Err(wrong()),
            },
            Inst::Hole(_) => Err(wrong()),
            Inst::Address(pointer) => {
                self.pointer(pointer)?;
                check(ty == WORDS, wrong)
            }
            Inst::Unary(op, a) => {
                let a = self.used(a)?;
                let takes = match op {
                    Unary::Neg => is_number(ty),
                    Unary::Not => !ty.scalar.is_float(),
                    Unary::Trunc | Unary::Round if ty.scalar == ScalarType::F64 => ty.lanes == 1,
                    Unary::Abs | Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round => ty.scalar.is_float(),
                    Unary::CountOneBits => ty.scalar.is_integer() && ty.scalar.bytes() == 4,
                    Unary::HighestBit => ty.scalar == ScalarType::U32,
                    Unary::FastExp2 => ty.scalar == ScalarType::F32,
                };
                check(takes && a == ty, || wrong_of(&[a]))
            }
            Inst::Binary(op, a, b) => {
                let (a, b) = (self.used(a)?, self.used(b)?);
                let takes = match op {
                    Binary::Add | Binary::Sub | Binary::Mul => is_number(ty),
                    Binary::And | Binary::Or | Binary::Xor => !ty.scalar.is_float(),
                    Binary::MulHigh => ty == Type::scalar(ScalarType::U32),
                    Binary::Div | Binary::Rem | Binary::Shl | Binary::Shr | Binary::Min | Binary::Max => {
                        ty.scalar.is_integer()
                    }
                };
                check(takes && a == ty && b == ty, || wrong_of(&[a, b]))
            }
            Inst::Compare(op, a, b) => {
                let (a, b) = (self.used(a)?, self.used(b)?);
                let takes = is_number(a) || matches!(op, Compare::Eq | Compare::Ne);
                check(takes && ty == BOOL && a.lanes == 1 && a == b, || wrong_of(&[a, b]))
            }
            Inst::Select(c, a, b) => {
                let (c, a, b) = (self.used(c)?, self.used(a)?, self.used(b)?);
                check(c == BOOL && a == ty && b == ty, || wrong_of(&[c, a, b]))
            }
            Inst::Cast(a) => {
                let a = self.used(a)?;
                let fits = is_number(a) && is_number(ty) && a.scalar != ty.scalar && (a.lanes, ty.lanes) == (1, 1);
                check(fits, || wrong_of(&[a]))
            }
            Inst::Bitcast(a) => {
                let a = self.used(a)?;
                let fits =
                    is_number(a) && is_number(ty) && a.scalar.bytes() == ty.scalar.bytes() && a.lanes == ty.lanes;
                check(fits && a != ty, || wrong_of(&[a]))
            }
            Inst::Fma(a, b, c) => {
                let (a, b, c) = (self.used(a)?, self.used(b)?, self.used(c)?);
                check(ty.scalar.is_float() && [a, b, c] == [ty; 3], || wrong_of(&[a, b, c]))
            }
            Inst::GetVar { var, index } => {
                let var = self.variable(var, index)?;
                check(var == ty, || wrong_of(&[var]))
            }
            Inst::Load { pointer, index } => {
                let word = self.pointer(pointer)?;
                self.index(index)?;
                check(moves(word, ty), || format!("memory of {} gives no {ty}", word.name()))
            }
            Inst::LoadShared { shared, index } => {
                let element = self.shared(shared, index)?;
                check(element == ty, || wrong_of(&[element]))
            }
            Inst::Extract(a, lane) => {
                let a = self.used(a)?;
                let fits = a.lanes > 1 && lane < a.lanes && ty == Type::scalar(a.scalar);
                check(fits, || wrong_of(&[a]))
            }
            Inst::Vector(ref lanes) => {
                let types = lanes.iter().map(|&l| self.used(l)).collect::<Result<Vec<_>, _>>()?;
                let fits = matches!(ty.lanes, 2 | 4) && types.len() == usize::from(ty.lanes);
                check(fits && types.iter().all(|&t| t == Type::scalar(ty.scalar)), || wrong_of(&types))
            }
            Inst::Atomic { op: _, pointer, index, value } => {
                let value = self.used(value)?;
                self.atomic(pointer, index, ty)?;
                check(value == ty, || wrong_of(&[value]))
            }
            Inst::AtomicShared { op: _, shared, index, value } => {
                let (element, value) = (self.shared(shared, index)?, self.used(value)?);
                let fits = element == ty && ty.lanes == 1 && ty.scalar.is_integer() && ty.scalar.bytes() == 4;
                check(fits && value == ty, || wrong_of(&[element, value]))
            }
            Inst::CompareExchange { pointer, index, expected, value } => {
                let (expected, value) = (self.used(expected)?, self.used(value)?);
                self.atomic(pointer, index, ty)?;
                check([expected, value] == [ty; 2], || wrong_of(&[expected, value]))
            }
            Inst::Subgroup(op, a) => {
                let a = self.used(a)?;
                let takes = is_number(ty) || op == Subgroup::First;
                check(takes && ty.lanes == 1 && a == ty, || wrong_of(&[a]))
            }
            Inst::ShuffleXor(a, _) => {
                let a = self.used(a)?;
                check(ty.lanes == 1 && a == ty, || wrong_of(&[a]))
            }
            Inst::Component { matrix, component } => {
                let of = self.matrix(matrix)?;
                check(of.dtype.is_float() && component < of.len() && ty == Type::scalar(ScalarType::F32), wrong)
            }
            Inst::Larger(a, b) => {
                let (a, b) = (self.used(a)?, self.used(b)?);
                check(ty == Type::scalar(ScalarType::F32) && [a, b] == [ty; 2], || wrong_of(&[a, b]))
            }
            Inst::Halves(low, high) => {
                let parts = [self.used(low)?, self.used(high)?];
                let floats = parts == [Type::scalar(ScalarType::F32); 2];
                check(ty == Type::scalar(ScalarType::U32) && floats, || wrong_of(&parts))
            }
            Inst::Half(word, half) => {
                let word = self.used(word)?;
                let takes = word == Type::scalar(ScalarType::U32) && half < 2;
                check(ty == Type::scalar(ScalarType::F32) && takes, || wrong_of(&[word]))
            }
        }
    }

    /// Checks the statements of a block, which go on to be visible behind it: the caller closes it.
    fn open(&mut self, block: &Block) -> Check {
        block.0.iter().try_for_each(|stmt| self.statement(stmt))
    }

    /// Checks a block whose definitions end with it.
    fn block(&mut self, block: &Block) -> Check {
        let before = self.opened.len();
        self.open(block)?;
        self.close(before);
        Ok(())
    }

    fn close(&mut self, before: usize) {
        let Some(scope) = &mut self.scope else { return };
        for definition in self.opened.drain(before..) {
            match definition {
                Definition::Value(id) => scope.defined[id as usize] = false,
                Definition::Pointer(id) => scope.pointers[id as usize] = false,
            }
        }
    }

    fn statement(&mut self, stmt: &Stmt) -> Check {
        match *stmt {
            Stmt::Def(id) => {
                check((id as usize) < self.k.values.len(), || format!("there is no value %{id}"))?;
                let twice = self.scope.as_ref().is_some_and(|scope| scope.defined[id as usize]);
                check(!twice, || format!("%{id} is defined twice"))?;
                self.value(id).map_err(|what| at(id, &what))?;
                if let Some(scope) = &mut self.scope {
                    scope.defined[id as usize] = true;
                    self.opened.push(Definition::Value(id));
                }
                Ok(())
            }
            Stmt::DefPointer(id) => {
                let info = self.k.pointers.get(id as usize).ok_or_else(|| format!("there is no pointer {id}"))?;
                match info.base {
                    PointerBase::Param(_) => {
                        return Err(format!("pointer {id} is a parameter and is moved by nothing"));
                    }
                    PointerBase::Offset(base, elements) => {
                        self.pointer(base)?;
                        let by = self.used(elements)?;
                        let fits = by.lanes == 1 && by.scalar.is_integer() && by.scalar.bytes() == 8;
                        check(fits, || format!("a pointer is moved by a u64 or an i64, not by {by}"))?;
                    }
                    PointerBase::Address(address) => {
                        let ty = self.used(address)?;
                        check(ty == WORDS, || format!("an address is two u32, not {ty}"))?;
                    }
                }
                if let Some(scope) = &mut self.scope {
                    scope.pointers[id as usize] = true;
                    self.opened.push(Definition::Pointer(id));
                }
                Ok(())
            }
            Stmt::SetVar { var, index, value } => {
                let (to, from) = (self.variable(var, index)?, self.used(value)?);
                check(to == from, || format!("a variable of type {to} takes no {from}"))
            }
            Stmt::Store { pointer, index, value } => {
                let (word, ty) = (self.written(pointer)?, self.used(value)?);
                self.index(index)?;
                check(moves(word, ty), || format!("memory of {} takes no {ty}", word.name()))
            }
            Stmt::StoreShared { shared, index, lane, value } => {
                let (to, from) = (self.shared(shared, index)?, self.used(value)?);
                let to = match lane {
                    Some(lane) => {
                        self.index(lane)?;
                        check(to.lanes > 1, || format!("an element of type {to} has no lanes"))?;
                        Type::scalar(to.scalar)
                    }
                    None => to,
                };
                check(to == from, || format!("an array of {to} takes no {from}"))
            }
            Stmt::If { cond, ref then, ref otherwise } => {
                let ty = self.used(cond)?;
                check(ty == BOOL, || format!("if takes a bool, not {ty}"))?;
                self.block(then)?;
                self.block(otherwise)
            }
            Stmt::While { ref test, cond, ref body, unroll: _ } => {
                let ends = test.0.iter().any(|stmt| matches!(stmt, Stmt::Return));
                check(!ends, || "a loop returns before its while".to_owned())?;
                // The test runs at least once, and before the body: what it defines is usable in
                // the body and behind the loop.
                self.open(test)?;
                let ty = self.used(cond)?;
                check(ty == BOOL, || format!("while takes a bool, not {ty}"))?;
                self.block(body)
            }
            Stmt::Call(ref call) => self.open(&call.body),
            Stmt::Matrix(ref stmt) => self.matrix_statement(stmt),
            Stmt::Barrier | Stmt::SubgroupBarrier | Stmt::Return => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, DType};

    /// The kernel that `body` makes, with what it says is wrong.
    fn verdict(body: impl FnOnce(&Builder)) -> Result<(), String> {
        let b = Builder::new("test", [1, 1, 1]);
        body(&b);
        b.finish().verify().map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn valid_kernels_pass() {
        let passes = verdict(|b| {
            let (out, x) = (b.pointer("out", DType::F32), b.input("x", DType::F16));
            let n = b.param("n", ScalarType::U32);
            let sum = b.var(b.float(ScalarType::F32, 0.0));
            b.for_(0, n, 1, |i| b.if_(x.load(i).gt(0), || sum.set(sum.get() + x.load(i))));
            out.store(0, sum.get());
        });
        assert_eq!(passes, Ok(()));
    }

    #[test]
    fn arithmetic_and_order_of_bools_are_refused() {
        for op in [Binary::Add, Binary::Mul, Binary::Shl, Binary::Min] {
            let result = verdict(|b| {
                let (x, y) = (b.u32(1).eq(2), b.u32(3).eq(4));
                b.def(BOOL, Inst::Binary(op, x.id, y.id));
            });
            assert!(result.is_err_and(|what| what.contains("kernel test is not valid") && what.contains("bool")));
        }
        let result = verdict(|b| {
            let x = b.u32(1).eq(2);
            b.def(BOOL, Inst::Compare(Compare::Lt, x.id, x.id));
        });
        assert!(result.is_err());
    }

    #[test]
    fn each_operand_has_the_type_that_its_instruction_takes() {
        let f32 = Type::scalar(ScalarType::F32);
        let wrong: [fn(&Builder, Type) -> Inst; 9] = [
            |b, _| Inst::Unary(Unary::Not, b.float(ScalarType::F32, 1.0).id),
            |b, _| Inst::Unary(Unary::Neg, b.u32(1).id),
            |b, _| Inst::Binary(Binary::Div, b.float(ScalarType::F32, 1.0).id, b.float(ScalarType::F32, 1.0).id),
            |b, _| Inst::Binary(Binary::Add, b.float(ScalarType::F32, 1.0).id, b.u32(1).id),
            |b, _| Inst::Select(b.u32(1).id, b.float(ScalarType::F32, 1.0).id, b.float(ScalarType::F32, 1.0).id),
            |b, _| Inst::Cast(b.bool(true).id),
            |b, _| Inst::Bitcast(b.float(ScalarType::F64, 1.0).id),
            |b, _| Inst::Fma(b.u32(1).id, b.u32(1).id, b.u32(1).id),
            |b, _| Inst::Subgroup(Subgroup::Add, b.bool(true).id),
        ];
        for make in wrong {
            let result = verdict(|b| {
                b.def(f32, make(b, f32));
            });
            assert!(result.is_err(), "{result:?}");
        }
    }

    #[test]
    fn a_value_is_used_only_where_its_definition_has_run() {
        let result = verdict(|b| {
            let inside = b.var(b.u32(0));
            let mut escaped = None;
            b.if_(b.bool(true), || escaped = Some(inside.get() + 1));
            if let Some(value) = escaped {
                inside.set(value);
            }
        });
        assert!(result.is_err_and(|what| what.contains("used where its definition has not run")));
    }

    #[test]
    fn memory_that_is_not_there_is_refused() {
        let narrow = verdict(|b| {
            let x = b.pointer("x", DType::F16);
            x.store(0, b.float(ScalarType::F32, 1.0));
            b.def(
                Type::scalar(ScalarType::U32),
                Inst::Atomic { op: Atomic::Add, pointer: 0, index: b.u32(0).id, value: b.u32(1).id },
            );
        });
        assert!(narrow.is_err_and(|what| what.contains("u16")));
        assert!(verdict(|b| b.stmt(Stmt::SetVar { var: 3, index: None, value: b.u32(0).id })).is_err());
    }
}
