//! Parses definitions of values: instructions, and functions of the library.

use super::{Named, Parser, Place, Read};
use crate::builder::Value;
use crate::ir::*;
use crate::math::functions::find;
use crate::text::Wrong;
use crate::text::lex::{Kind, Token};
use crate::text::names::*;
use crate::types::{ScalarType, Type};

/// The most lanes of a vector.
const MAX_LANES: usize = 4;

impl<'t, 'b> Parser<'t, 'b> {
    pub(super) fn definition(&mut self) -> Read<()> {
        let token = self.new_name(Kind::Value, "a value")?;
        self.tokens.sign(":")?;
        let ty = self.ty()?;
        self.tokens.sign("=")?;
        let value = self.instruction(ty)?;
        self.opened.push(token.text);
        self.bind(token, Named::Value(value));
        Ok(())
    }

    fn define(&mut self, at: usize, ty: Type, inst: Inst) -> Read<Value<'b>> {
        let value = self.b.def(ty, inst);
        self.b.checked(|kernel| kernel.check_value(value.id)).map_err(|what| Wrong::new(at, what))?;
        Ok(value)
    }

    fn instruction(&mut self, ty: Type) -> Read<Value<'b>> {
        let token = self.tokens.peek();
        if token.kind != Kind::Word {
            return self.tokens.wanted("an instruction");
        }
        self.tokens.next += 1;
        let like = Some(ty.scalar);
        // Some names are instructions on integers and library functions on floats, or the other way
        // round.
        let library = match token.text {
            "div" | "min" | "max" => ty.scalar.is_float(),
            "abs" => !ty.scalar.is_float(),
            _ => false,
        };
        if token.text == "select" {
            return self.select(token, ty);
        }
        let inst = if token.text == "call" {
            return self.call(ty);
        } else if library {
            return self.function(token, ty);
        } else if let Some(op) = thing(UNARY, token.text) {
            Inst::Unary(op, self.value(like)?.id)
        } else if let Some(op) = thing(BINARY, token.text) {
            Inst::Binary(op, self.value(like)?.id, self.next_value(like)?.id)
        } else if let Some(op) = thing(COMPARE, token.text) {
            let a = self.value(None)?;
            Inst::Compare(op, a.id, self.next_value(Some(a.scalar()))?.id)
        } else if let Some(op) = thing(SUBGROUP, token.text) {
            Inst::Subgroup(op, self.value(like)?.id)
        } else if let Some(op) = thing(ATOMIC, token.text) {
            self.atomic(op, like)?
        } else {
            match self.other_instruction(token, ty)? {
                Some(inst) => inst,
                None => return self.function(token, ty),
            }
        };
        self.define(token.at, ty, inst)
    }

    /// By the builder, which keeps the sign of a selected zero.
    fn select(&mut self, token: Token<'t>, ty: Type) -> Read<Value<'b>> {
        let like = Some(ty.scalar);
        let (cond, a, b) = (self.condition("select")?, self.next_value(like)?, self.next_value(like)?);
        if a.ty() != ty || b.ty() != ty {
            return Err(Wrong::new(token.at, format!("select of {}, {} gives no {ty}", a.ty(), b.ty())));
        }
        // Not by the builder, which selects between constants by their bits.
        self.define(token.at, ty, Inst::Select(cond.id, a.id, b.id))
    }

    /// The arguments of a library function.
    fn function(&mut self, token: Token<'t>, ty: Type) -> Read<Value<'b>> {
        let Some((_, function)) = find(token.text) else {
            self.tokens.next -= 1;
            return self.tokens.wanted("an instruction or a function");
        };
        let mut arguments = vec![self.value(function.like(None, ty.scalar))?];
        while arguments.len() < function.arguments() {
            let like = function.like(Some(arguments[0].scalar()), ty.scalar);
            arguments.push(self.next_value(like)?);
        }
        let types: Vec<Type> = arguments.iter().map(|argument| argument.ty()).collect();
        if !function.takes(&types, ty) {
            let types: Vec<String> = types.iter().map(Type::to_string).collect();
            return Err(Wrong::new(token.at, format!("{} of {} gives no {ty}", token.text, types.join(", "))));
        }
        Ok(function.write(&arguments, ty.scalar))
    }

    /// A call of a function that the language does not know.
    fn call(&mut self, ty: Type) -> Read<Value<'b>> {
        let at = self.tokens.at();
        let name = self.tokens.name()?;
        let mut options = Vec::new();
        if self.tokens.take_if(Kind::Sign, "[") {
            while !self.tokens.take_if(Kind::Sign, "]") {
                let word = self.tokens.take();
                if word.kind != Kind::Word {
                    return Err(Wrong::new(word.at, "an option is wanted"));
                }
                let of = matches!(self.tokens.peek().kind, Kind::Word | Kind::Number).then(|| self.tokens.take().text);
                options.push((word.text, of.unwrap_or_default()));
                if !self.tokens.is_sign("]") {
                    self.tokens.comma()?;
                }
            }
        }
        let mut arguments = vec![self.value(Some(ty.scalar))?];
        while self.tokens.is_sign(",") {
            let like = arguments[0].scalar();
            arguments.push(self.next_value(Some(like))?);
        }
        if let Some(vector) = arguments.iter().find(|argument| argument.ty().lanes > 1) {
            return Err(Wrong::new(at, format!("a function takes numbers, and no {}", vector.ty())));
        }
        let result = self.functions.call(&name, &options, &arguments).map_err(|what| Wrong::new(at, what))?;
        if result.ty() == ty {
            return Ok(result);
        }
        Err(Wrong::new(at, format!("the result of {name} is of type {}, and not {ty}", result.ty())))
    }

    fn other_instruction(&mut self, token: Token<'t>, ty: Type) -> Read<Option<Inst>> {
        let like = Some(ty.scalar);
        Ok(Some(match token.text {
            "cast" => Inst::Cast(self.value(None)?.id),
            "bitcast" => Inst::Bitcast(self.value(None)?.id),
            "fma" => Inst::Fma(self.value(like)?.id, self.next_value(like)?.id, self.next_value(like)?.id),
            "larger" => Inst::Larger(self.value(like)?.id, self.next_value(like)?.id),
            "load" => match self.place()? {
                Place::Pointer(pointer, _, index) => Inst::Load { pointer, index: index.id },
                Place::Shared(shared, _, index) => Inst::LoadShared { shared, index: index.id },
                Place::Var(var, _, index) => Inst::GetVar { var, index: index.map(|index| index.id) },
            },
            "lane" => Inst::Extract(self.value(None)?.id, self.small_count()?),
            "vector" => {
                let mut lanes = vec![self.value(like)?.id];
                while lanes.len() < MAX_LANES && self.tokens.is_sign(",") {
                    lanes.push(self.next_value(like)?.id);
                }
                Inst::Vector(lanes)
            }
            "compare_exchange" => {
                let at = self.tokens.at();
                let Place::Pointer(pointer, _, index) = self.place()? else {
                    return Err(Wrong::new(at, "compare_exchange is of tensors alone"));
                };
                let (expected, value) = (self.next_value(like)?.id, self.next_value(like)?.id);
                Inst::CompareExchange { pointer, index: index.id, expected, value }
            }
            "address" => Inst::Address(self.pointer()?),
            "shuffle_xor" => {
                let value = self.value(like)?.id;
                self.tokens.comma()?;
                Inst::ShuffleXor(value, self.tokens.count()?)
            }
            "matrix_get" => {
                let matrix = self.matrix()?.0;
                self.tokens.comma()?;
                Inst::Component { matrix, component: self.tokens.count()? }
            }
            "halves" => {
                let like = Some(ScalarType::F32);
                Inst::Halves(self.value(like)?.id, self.next_value(like)?.id)
            }
            "half" => Inst::Half(self.value(Some(ScalarType::U32))?.id, self.small_count()?),
            _ => return Ok(None),
        }))
    }

    fn atomic(&mut self, op: Atomic, like: Option<ScalarType>) -> Read<Inst> {
        let at = self.tokens.at();
        Ok(match self.place()? {
            Place::Pointer(pointer, _, index) => {
                Inst::Atomic { op, pointer, index: index.id, value: self.next_value(like)?.id }
            }
            Place::Shared(shared, _, index) => {
                Inst::AtomicShared { op, shared, index: index.id, value: self.next_value(like)?.id }
            }
            Place::Var(..) => return Err(Wrong::new(at, "a variable is an invocation's own")),
        })
    }

    /// A comma and a small number.
    fn small_count(&mut self) -> Read<u8> {
        self.tokens.comma()?;
        let at = self.tokens.at();
        u8::try_from(self.tokens.count()?).map_err(|_| Wrong::new(at, "this is more than 255"))
    }
}
