//! Declarations by their plain data, for the parser of kernel text and for rewritten kernels.

use super::state::appended;
use super::{Builder, Value};
use crate::dtype::DType;
use crate::ir::*;
use crate::matrix_type::MatrixType;
use crate::types::{ScalarType, Type};

impl Builder {
    /// Declares the next member of the parameter block; returns its index.
    pub(super) fn param_of(&self, name: &str, kind: ParamKind) -> u32 {
        appended(&mut self.state.borrow_mut().kernel.params, Param { name: name.to_string(), kind })
    }

    /// Declares a tensor argument: the next member of the parameter block is its address.
    pub(crate) fn param_pointer(&self, name: &str, dtype: DType, writable: bool) -> PointerId {
        let pointer = self.state.borrow().kernel.pointers.len() as PointerId;
        let param = self.param_of(name, ParamKind::Pointer { pointer, dtype, writable });
        self.declare_pointer(PointerInfo { word: dtype.word(), base: PointerBase::Param(param) })
    }

    /// A 64-bit integer argument as its two words: the next member of the parameter block.
    pub(crate) fn param_words(&self, name: &str) -> Value<'_> {
        let index = self.param_of(name, ParamKind::Words);
        self.entry(Type { scalar: ScalarType::U32, lanes: 2 }, Inst::Param(index))
    }

    /// Declares a pointer. Unless it is a parameter, [`Stmt::DefPointer`] evaluates it.
    pub(crate) fn declare_pointer(&self, info: PointerInfo) -> PointerId {
        appended(&mut self.state.borrow_mut().kernel.pointers, info)
    }

    /// Declares a workgroup array.
    pub(crate) fn declare_shared(&self, info: SharedInfo) -> SharedId {
        appended(&mut self.state.borrow_mut().kernel.shared, info)
    }

    /// Declares a matrix register.
    pub(crate) fn declare_matrix(&self, ty: MatrixType) -> MatrixId {
        appended(&mut self.state.borrow_mut().kernel.matrices, ty)
    }

    /// Declares a variable, or a private array.
    pub(super) fn declare_var(&self, info: VarInfo) -> VarId {
        appended(&mut self.state.borrow_mut().kernel.vars, info)
    }

    /// Declares variables; returns the index of the first one.
    pub(crate) fn declare_vars(&self, vars: &[VarInfo]) -> VarId {
        let mut state = self.state.borrow_mut();
        let first = state.kernel.vars.len() as VarId;
        state.kernel.vars.extend_from_slice(vars);
        first
    }

    /// Input `i` of an [`Element`](crate::Element), in place of a value.
    pub(crate) fn placeholder(&self, ty: Type, i: u32) -> Value<'_> {
        let id = self.state.borrow_mut().value(ValueInfo { ty, inst: Inst::Placeholder(i) });
        Value { b: self, id, ty }
    }
}
