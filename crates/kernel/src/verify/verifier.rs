//! The verifier: declarations, and uses of values and memory.

use super::scope::Scope;
use crate::ir::*;
use crate::types::{ScalarType, Type, Word};

/// The error for a kernel that is not well typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidKernel {
    /// The kernel's name.
    pub kernel: String,
    /// The first rule that it breaks.
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
    /// The first invalid instruction, with its types.
    pub fn verify(&self) -> Result<(), InvalidKernel> {
        let invalid = |what| InvalidKernel { kernel: self.name.clone(), what };
        let mut verifier = Verifier { k: self, scope: Some(Scope::new(self)) };
        self.check_declarations()
            .and_then(|()| {
                (0..self.values.len() as ValueId)
                    .filter(|&id| self.values[id as usize].inst.is_entry())
                    .try_for_each(|id| verifier.value(id).map_err(|what| at(id, &what)))
            })
            .and_then(|()| verifier.block(&self.body))
            .map_err(invalid)
    }

    /// Checks the declarations: workgroups, parameters and memory.
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

    /// Checks the types of a value and of its operands, without its scope.
    pub(crate) fn check_value(&self, id: ValueId) -> Check {
        Verifier { k: self, scope: None }.value(id)
    }

    /// The same for a statement without blocks.
    pub(crate) fn check_statement(&self, stmt: &Stmt) -> Check {
        Verifier { k: self, scope: None }.statement(stmt)
    }
}

/// The most bytes of an invocation's variables, and of a workgroup's arrays: more than any adapter
/// has.
const MOST_BYTES: u64 = 16 << 20;

pub(super) type Check = Result<(), String>;

pub(super) struct Verifier<'k> {
    pub(super) k: &'k Kernel,
    /// The definitions that may be used; `None`: all of the kernel's.
    pub(super) scope: Option<Scope>,
}

pub(super) const BOOL: Type = Type::scalar(ScalarType::Bool);
/// An address, or another 64-bit integer.
pub(super) const WORDS: Type = Type { scalar: ScalarType::U32, lanes: 2 };

pub(super) fn is_number(ty: Type) -> bool {
    ty.scalar != ScalarType::Bool
}

pub(super) fn at(id: ValueId, what: &str) -> String {
    format!("%{id}: {what}")
}

/// Types of operands, for messages.
pub(super) fn list(types: &[Type]) -> String {
    types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether memory can be accessed by values of this type: one element by its own type, several
/// elements by any vector of numbers.
pub(super) fn moves(word: Word, ty: Type) -> bool {
    match ty.lanes {
        1 => ty.scalar == word.value() && is_number(ty),
        lanes => is_number(ty) && matches!(lanes, 2 | 4),
    }
}

pub(super) fn check(holds: bool, what: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(what()) }
}

impl Verifier<'_> {
    pub(super) fn used(&self, id: ValueId) -> Result<Type, String> {
        let seen = self.scope.as_ref().is_none_or(|scope| scope.has_value(id));
        match self.k.values.get(id as usize) {
            Some(value) if seen => Ok(value.ty),
            _ => Err(format!("%{id} is used where its definition has not run")),
        }
    }

    pub(super) fn index(&self, id: ValueId) -> Check {
        let ty = self.used(id)?;
        check(ty.lanes == 1 && ty.scalar.is_integer(), || format!("an index is an integer, not {ty}"))
    }

    pub(super) fn pointer(&self, id: PointerId) -> Result<Word, String> {
        let info = self.k.pointers.get(id as usize).ok_or_else(|| format!("there is no pointer {id}"))?;
        let seen = self.scope.as_ref().is_none_or(|scope| scope.has_pointer(id));
        check(seen || matches!(info.base, PointerBase::Param(_)), || {
            format!("pointer {id} is used where its definition has not run")
        })?;
        Ok(info.word)
    }

    /// The word of a pointer that is written to.
    pub(super) fn writable(&self, id: PointerId) -> Result<Word, String> {
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

    /// Checks an atomic access of this type.
    pub(super) fn atomic(&self, pointer: PointerId, index: ValueId, ty: Type) -> Check {
        let word = self.writable(pointer)?;
        self.index(index)?;
        let fits = ty.lanes == 1 && ty.scalar.is_integer() && word == Word::Full(ty.scalar);
        check(fits, || format!("an atomic operation on {ty} in memory of {}", word.name()))
    }

    /// The type of a variable, or of element `index` of an array.
    pub(super) fn variable(&self, var: VarId, index: Option<ValueId>) -> Result<Type, String> {
        let info = self.k.vars.get(var as usize).ok_or_else(|| format!("there is no variable {var}"))?;
        check(index.is_some() || info.len == 1, || "an array is used as a whole".to_owned())?;
        check(index.is_none() || info.len > 1, || "a variable that is no array has no elements".to_owned())?;
        index.map_or(Ok(()), |index| self.index(index))?;
        Ok(info.ty)
    }

    pub(super) fn shared(&self, shared: SharedId, index: ValueId) -> Result<Type, String> {
        let info = self.k.shared.get(shared as usize).ok_or_else(|| format!("there is no shared array {shared}"))?;
        self.index(index)?;
        Ok(info.ty)
    }
}
