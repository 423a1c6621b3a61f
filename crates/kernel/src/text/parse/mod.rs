//! The parser: each statement becomes a call of the builder.

mod declarations;
mod instructions;
mod statements;
mod tokens;

use super::lex::{Kind, Token};
use super::literal::bits_of;
use super::names::*;
use super::{Functions, Wrong};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::ir::*;
use crate::matrix_type::MatrixType;
use crate::types::{ScalarType, Type, Word};
use rustc_hash::FxHashMap;
use tokens::Tokens;

/// The deepest nesting of blocks: the parser and the emitters are recursive.
const MAX_DEPTH: usize = 100;

type Read<T> = Result<T, Wrong>;

/// The kernel of a text.
pub(super) fn kernel(text: &str, functions: &dyn Functions) -> Read<Kernel> {
    let mut tokens = Tokens { tokens: super::lex::tokens(text)?, next: 0 };
    tokens.word("kernel")?;
    let name = tokens.name()?;
    tokens.sign("[")?;
    let mut size = [0; 3];
    for (d, size) in size.iter_mut().enumerate() {
        if d > 0 {
            tokens.sign(",")?;
        }
        *size = tokens.count()?;
    }
    tokens.sign("]")?;
    let b = Builder::new(name, size);
    let at = {
        let names = FxHashMap::default();
        let mut parser = Parser { tokens, b: &b, functions, names, opened: Vec::new(), depth: 0 };
        parser.block()?;
        parser.tokens.end()?;
        parser.tokens.at()
    };
    let kernel = b.finish();
    // Mistakes that no single statement shows, such as too much memory in total.
    kernel.verify().map_err(|invalid| Wrong::new(at, invalid.what))?;
    Ok(kernel)
}

/// The meaning of a name.
#[derive(Copy, Clone)]
enum Named<'b> {
    Value(Value<'b>),
    Pointer(PointerId, Word),
    Var(VarId, VarInfo),
    Shared(SharedId, Type),
    Matrix(MatrixId, MatrixType),
}

/// An element of memory, to load or to store.
enum Place<'b> {
    Pointer(PointerId, Word, Value<'b>),
    Var(VarId, Type, Option<Value<'b>>),
    Shared(SharedId, Type, Value<'b>),
}

struct Parser<'t, 'b> {
    tokens: Tokens<'t>,
    b: &'b Builder,
    /// What `call` calls.
    functions: &'t dyn Functions,
    names: FxHashMap<&'t str, Named<'b>>,
    /// The names that are visible to the ends of the open blocks.
    opened: Vec<&'t str>,
    depth: usize,
}

impl<'t, 'b> Parser<'t, 'b> {
    // ---- names

    fn bind(&mut self, token: Token<'t>, named: Named<'b>) {
        self.names.insert(token.text, named);
    }

    /// A new name of a kind.
    fn new_name(&mut self, kind: Kind, what: &str) -> Read<Token<'t>> {
        let token = self.tokens.peek();
        if token.kind != kind {
            return self.tokens.wanted(what);
        }
        if self.names.contains_key(token.text) {
            return Err(Wrong::new(token.at, format!("{} is defined before", token.text)));
        }
        self.tokens.next += 1;
        Ok(token)
    }

    fn named(&mut self, kind: Kind, what: &str) -> Read<Named<'b>> {
        let token = self.tokens.peek();
        if token.kind != kind {
            return self.tokens.wanted(what);
        }
        let named = self.names.get(token.text).copied();
        self.tokens.next += 1;
        named.ok_or_else(|| Wrong::new(token.at, format!("{} is not defined here", token.text)))
    }

    fn pointer(&mut self) -> Read<PointerId> {
        let at = self.tokens.at();
        match self.named(Kind::Memory, "a pointer")? {
            Named::Pointer(id, _) => Ok(id),
            _ => Err(Wrong::new(at, "this is no pointer")),
        }
    }

    fn matrix(&mut self) -> Read<(MatrixId, MatrixType)> {
        let at = self.tokens.at();
        match self.named(Kind::Memory, "a matrix")? {
            Named::Matrix(id, ty) => Ok((id, ty)),
            _ => Err(Wrong::new(at, "this is no matrix")),
        }
    }

    // ---- types

    fn ty(&mut self) -> Read<Type> {
        self.tokens.word_of("a type", type_of)
    }

    fn dtype(&mut self) -> Read<DType> {
        self.tokens.word_of("a dtype", dtype_of)
    }

    /// `[8]`, or else nothing.
    fn len(&mut self) -> Read<Option<u32>> {
        if !self.tokens.take_if(Kind::Sign, "[") {
            return Ok(None);
        }
        let len = self.tokens.count()?;
        self.tokens.sign("]")?;
        Ok(Some(len))
    }

    // ---- operands

    /// A value or a literal; a literal without a type has the type `like`.
    fn value(&mut self, like: Option<ScalarType>) -> Read<Value<'b>> {
        let token = self.tokens.peek();
        match token.kind {
            Kind::Value => match self.named(Kind::Value, "a value")? {
                Named::Value(value) => Ok(value),
                _ => Err(Wrong::new(token.at, "this is no value")),
            },
            Kind::Number => self.number(like),
            Kind::Word => match token.text {
                "true" | "false" => {
                    self.tokens.next += 1;
                    Ok(self.b.bool(token.text == "true"))
                }
                "inf" | "nan" => self.number(like),
                word => match thing(BUILTIN, word) {
                    Some(builtin) => {
                        self.tokens.next += 1;
                        Ok(self.b.builtin(builtin))
                    }
                    None => self.tokens.wanted("a value"),
                },
            },
            _ => self.tokens.wanted("a value"),
        }
    }

    fn number(&mut self, like: Option<ScalarType>) -> Read<Value<'b>> {
        let token = self.tokens.take();
        let own = match self.tokens.take_if(Kind::Sign, ":") {
            true => {
                Some(self.tokens.word_of("a number's type", |word| type_of(word).filter(|ty| ty.lanes == 1))?.scalar)
            }
            false => None,
        };
        let unknown = || format!("the type of {0} is not known here: {0}:u32 says it", token.text);
        let scalar = own.or(like).ok_or_else(|| Wrong::new(token.at, unknown()))?;
        let bits = bits_of(token.text, scalar)
            .ok_or_else(|| Wrong::new(token.at, format!("{} is no number of type {scalar}", token.text)))?;
        Ok(if scalar.is_float() { self.b.float_bits(scalar, bits) } else { self.b.int(scalar, bits) })
    }

    /// As [`value`](Self::value), after a comma.
    fn next_value(&mut self, like: Option<ScalarType>) -> Read<Value<'b>> {
        self.tokens.comma()?;
        self.value(like)
    }

    fn condition(&mut self, what: &str) -> Read<Value<'b>> {
        let at = self.tokens.at();
        let value = self.value(Some(ScalarType::Bool))?;
        if value.ty() == Type::scalar(ScalarType::Bool) {
            return Ok(value);
        }
        Err(Wrong::new(at, format!("{what} takes a bool, and this is of type {}", value.ty())))
    }

    /// `[%i]`
    fn index(&mut self) -> Read<Value<'b>> {
        self.tokens.sign("[")?;
        let at = self.tokens.at();
        let index = self.value(Some(ScalarType::U32))?;
        if index.ty().lanes != 1 || !index.scalar().is_integer() {
            return Err(Wrong::new(at, format!("an index is an integer, and this is of type {}", index.ty())));
        }
        self.tokens.sign("]")?;
        Ok(index)
    }

    /// `@x[%i]`, or `@x` of a variable.
    fn place(&mut self) -> Read<Place<'b>> {
        let at = self.tokens.at();
        Ok(match self.named(Kind::Memory, "memory")? {
            Named::Pointer(id, word) => Place::Pointer(id, word, self.index()?),
            Named::Shared(id, ty) => Place::Shared(id, ty, self.index()?),
            Named::Var(id, info) => {
                let index = if self.tokens.is_sign("[") { Some(self.index()?) } else { None };
                Place::Var(id, info.ty, index)
            }
            Named::Matrix(..) => return Err(Wrong::new(at, "a matrix is no memory")),
            Named::Value(_) => return Err(Wrong::new(at, "a value is no memory")),
        })
    }

    // ---- blocks and statements

    /// `{ .. }`, whose names end with it.
    fn block(&mut self) -> Read<()> {
        let before = self.opened.len();
        self.open()?;
        self.close(before)
    }

    /// `{ ..`, up to a token that ends it.
    fn open(&mut self) -> Read<()> {
        let at = self.tokens.at();
        self.tokens.sign("{")?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Wrong::new(at, format!("more than {MAX_DEPTH} blocks in each other")));
        }
        self.statements()
    }

    /// `}`, which removes the names that were defined since.
    fn close(&mut self, before: usize) -> Read<()> {
        self.tokens.sign("}")?;
        self.depth -= 1;
        for name in self.opened.drain(before..) {
            self.names.remove(name);
        }
        Ok(())
    }

    fn statements(&mut self) -> Read<()> {
        while !self.tokens.is_sign("}") && !self.tokens.is_word("while") {
            self.statement()?;
        }
        Ok(())
    }

    /// The statements that `read` appends, as a block.
    fn collected(&mut self, read: impl FnOnce(&mut Self) -> Read<()>) -> Read<Block> {
        let (b, mut result) = (self.b, Ok(()));
        let block = b.block(|| result = read(self));
        result.map(|()| block)
    }

    fn stmt(&mut self, at: usize, stmt: Stmt) -> Read<()> {
        self.b.checked(|kernel| kernel.check_statement(&stmt)).map_err(|what| Wrong::new(at, what))?;
        self.b.stmt(stmt);
        Ok(())
    }

    fn statement(&mut self) -> Read<()> {
        let token = self.tokens.peek();
        let at = token.at;
        match token.kind {
            Kind::Value => return self.definition(),
            Kind::Memory => return self.moved_pointer(),
            Kind::Word => {}
            _ => return self.tokens.wanted("a statement"),
        }
        self.tokens.next += 1;
        match token.text {
            "input" | "output" => self.tensor(token.text == "output"),
            "param" => self.param(),
            "var" => self.var(),
            "shared" => self.shared(),
            "matrix" => self.declared_matrix(),
            "const" => match self.tokens.peek().kind {
                Kind::Value => self.tokens.wanted("a literal"),
                _ => self.value(None).map(drop),
            },
            "store" => self.store(at),
            "if" => self.branch(),
            "loop" => self.repeat(),
            "barrier" => self.stmt(at, Stmt::Barrier),
            "subgroup_barrier" => self.stmt(at, Stmt::SubgroupBarrier),
            "return" => self.stmt(at, Stmt::Return),
            _ => {
                self.tokens.next -= 1;
                self.matrix_statement()
            }
        }
    }
}
