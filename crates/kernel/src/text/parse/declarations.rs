//! Parameters, memory and pointers.

use super::{Named, Parser, Read};
use crate::ir::*;
use crate::matrix_type::MatrixType;
use crate::text::Wrong;
use crate::text::lex::{Kind, Token};
use crate::text::names::*;
use crate::types::ScalarType;

impl<'t> Parser<'t, '_> {
    /// A parameter's name in the text and its own name, up to its type.
    pub(super) fn param_name(&mut self, kind: Kind, what: &str) -> Read<(Token<'t>, String)> {
        let token = self.new_name(kind, what)?;
        let own = self.tokens.peek().kind == Kind::Quoted;
        let name = if own { self.tokens.name()? } else { token.text[1..].to_owned() };
        self.tokens.sign(":")?;
        Ok((token, name))
    }

    pub(super) fn tensor(&mut self, writable: bool) -> Read<()> {
        let (token, name) = self.param_name(Kind::Memory, "@ and a name")?;
        let dtype = self.dtype()?;
        let pointer = self.b.param_pointer(&name, dtype, writable);
        self.bind(token, Named::Pointer(pointer, dtype.word()));
        Ok(())
    }

    pub(super) fn param(&mut self) -> Read<()> {
        let (token, name) = self.param_name(Kind::Value, "% and a name")?;
        let value = if self.tokens.take_if(Kind::Word, "words") {
            self.b.param_words(&name)
        } else {
            let number = |word: &str| type_of(word).filter(|ty| ty.lanes == 1 && ty.scalar != ScalarType::Bool);
            let ty = self.tokens.word_of("a number's type", number)?;
            self.b.param(&name, ty.scalar)
        };
        self.bind(token, Named::Value(value));
        Ok(())
    }

    pub(super) fn var(&mut self) -> Read<()> {
        let token = self.new_name(Kind::Memory, "@ and a name")?;
        self.tokens.sign(":")?;
        let info = VarInfo { ty: self.ty()?, len: self.len()?.unwrap_or(1) };
        let var = self.b.declare_vars(&[info]);
        self.bind(token, Named::Var(var, info));
        Ok(())
    }

    pub(super) fn shared(&mut self) -> Read<()> {
        let token = self.new_name(Kind::Memory, "@ and a name")?;
        self.tokens.sign(":")?;
        let at = self.tokens.at();
        let ty = self.ty()?;
        if ty.scalar == ScalarType::Bool {
            return Err(Wrong::new(at, "a workgroup's array has numbers"));
        }
        let len = match self.len()? {
            Some(len) => len,
            None => return self.tokens.wanted("[ and a length"),
        };
        let shared = self.b.declare_shared(SharedInfo { ty, len });
        self.bind(token, Named::Shared(shared, ty));
        Ok(())
    }

    pub(super) fn declared_matrix(&mut self) -> Read<()> {
        let token = self.new_name(Kind::Memory, "@ and a name")?;
        self.tokens.sign(":")?;
        let part = self
            .tokens
            .word_of("left, right or accumulator", |word| PARTS.iter().copied().find(|part| part.name() == word))?;
        let dtype = self.dtype()?;
        self.tokens.sign("[")?;
        let rows = self.tokens.count()?;
        self.tokens.comma()?;
        let columns = self.tokens.count()?;
        self.tokens.sign("]")?;
        let ty = MatrixType { dtype, rows, columns, part };
        ty.check().map_err(|what| Wrong::new(token.at, what))?;
        let matrix = self.b.declare_matrix(ty);
        self.bind(token, Named::Matrix(matrix, ty));
        Ok(())
    }

    pub(super) fn moved_pointer(&mut self) -> Read<()> {
        let token = self.new_name(Kind::Memory, "a statement")?;
        self.tokens.sign(":")?;
        let word = self.dtype()?.word();
        self.tokens.sign("=")?;
        let base = if self.tokens.take_if(Kind::Word, "at") {
            PointerBase::Address(self.value(None)?.id)
        } else {
            self.tokens.word("offset")?;
            let base = self.pointer()?;
            PointerBase::Offset(base, self.next_value(Some(ScalarType::U64))?.id)
        };
        let pointer = self.b.declare_pointer(PointerInfo { word, base });
        self.stmt(token.at, Stmt::DefPointer(pointer))?;
        self.opened.push(token.text);
        self.bind(token, Named::Pointer(pointer, word));
        Ok(())
    }
}
