//! The text of [expressions](Expr), in the manner of the kernel language's
//! ([`dml_kernel::text`]), with the functions of the [catalogue](crate::catalogue) as instructions:
//!
//! ```
//! use dml_compute::pointwise::expr::Expr;
//!
//! let text = "
//! // What a linear layer does with its sums.
//! expr %sum, %bias {
//!   %y = add %sum, %bias
//!   %z = relu %y
//! }";
//! let expr: Expr = text.parse()?;
//! assert_eq!(expr.to_string(), "expr %0, %1 {\n  %2 = add %0, %1\n  %3 = relu %2\n}\n");
//! assert_eq!(expr.to_string().parse(), Ok(expr));
//!
//! let error = text.replace("relu", "rely").parse::<Expr>().unwrap_err();
//! assert_eq!(error.to_string(), "5:8: no function is called rely");
//! # Ok::<(), dml_kernel::ParseError>(())
//! ```
//!
//! An argument may be a number: `%y = mul %x, 0.5`. The last function gives the results. Options
//! stand in brackets behind a function's name: `flag 2` (the third of the function's flags is set),
//! `of bf16` (its dtype), `rounded f16` (results are rounded to it), `unguarded` (the caller has
//! checked the operands that the function guards).

use crate::catalogue::named;
use crate::pointwise::expr::{Expr, Node, Source};
use crate::pointwise::function::{Options, Variant};
use dml_kernel::{DType, ParseError};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::sync::{LazyLock, PoisonError, RwLock};

/// The expression of a text. A text is read once.
pub fn expression(text: &str) -> Result<Expr, ParseError> {
    static READ: LazyLock<RwLock<HashMap<String, Expr>>> = LazyLock::new(RwLock::default);
    if let Some(&expr) = READ.read().unwrap_or_else(PoisonError::into_inner).get(text) {
        return Ok(expr);
    }
    let expr = text.parse()?;
    READ.write().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned(), expr);
    Ok(expr)
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let operands = self.operands();
        let names = (0..operands).map(|operand| format!("%{operand}")).collect::<Vec<_>>();
        writeln!(f, "expr {} {{", names.join(", "))?;
        for (i, Node { variant, arguments }) in self.nodes().iter().enumerate() {
            let options = options_of(variant);
            let options = if options.is_empty() { String::new() } else { format!(" [{}]", options.join(", ")) };
            let argument = |source: &Source| match *source {
                Source::Operand(operand) => format!("%{operand}"),
                Source::Node(node) => format!("%{}", operands + usize::from(node)),
                Source::Number(number) => format!("{number:?}"),
            };
            let arguments = arguments.iter().map(argument).collect::<Vec<_>>().join(", ");
            writeln!(f, "  %{} = {}{options} {arguments}", operands + i, variant.function.name)?;
        }
        writeln!(f, "}}")
    }
}

/// The options of a function that differ from the defaults.
fn options_of(variant: &Variant) -> Vec<String> {
    let Options { flags, dtype } = variant.options;
    let mut all: Vec<String> = (0..flags.len()).filter(|&i| flags[i]).map(|i| format!("flag {i}")).collect();
    if dtype != Options::default().dtype {
        all.push(format!("of {}", dtype.short_name()));
    }
    all.extend(variant.rounded.map(|dtype| format!("rounded {}", dtype.short_name())));
    all.extend(variant.unguarded.then(|| "unguarded".to_owned()));
    all
}

impl FromStr for Expr {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Expr, ParseError> {
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        parser.expr().map_err(|what| {
            let end = parser.tokens.get(parser.at).map_or(text.len(), |&(start, _)| start);
            let line = text[..end].rfind('\n').map_or(0, |start| start + 1);
            let column = text[line..end].chars().count() + 1;
            ParseError { line: text[..end].matches('\n').count() + 1, column, what }
        })
    }
}

/// The words and signs of a text, with their byte offsets.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '%' | '.' | '+' | '-');
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if is_word(c) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push((at, &rest[..length]));
            length
        } else {
            if !c.is_whitespace() {
                tokens.push((at, &rest[..c.len_utf8()]));
            }
            c.len_utf8()
        };
        at += length;
    }
    tokens
}

/// The error at the parser's current token.
type Found<T> = Result<T, String>;

struct Parser<'t> {
    tokens: Vec<(usize, &'t str)>,
    at: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &'t str {
        self.tokens.get(self.at).map_or("", |&(_, token)| token)
    }

    /// Skips this token if it is the current one; returns whether it was.
    fn takes(&mut self, token: &str) -> bool {
        let takes = self.peek() == token;
        self.at += usize::from(takes);
        takes
    }

    fn expect(&mut self, token: &str) -> Found<()> {
        if self.takes(token) { Ok(()) } else { Err(format!("expected {token}")) }
    }

    fn name(&mut self) -> Found<&'t str> {
        let token = self.peek();
        if token.len() < 2 || !token.starts_with('%') {
            return Err("expected the name of a value".to_owned());
        }
        self.at += 1;
        Ok(token)
    }

    fn expr(&mut self) -> Found<Expr> {
        self.expect("expr")?;
        let mut names: Vec<(&str, Source)> = Vec::new();
        while self.peek() != "{" {
            if !names.is_empty() {
                self.expect(",")?;
            }
            let operand = u8::try_from(names.len()).map_err(|_| "more than 255 operands".to_owned())?;
            let name = self.new_name(&names)?;
            names.push((name, Source::Operand(operand)));
        }
        self.expect("{")?;
        let operands = names.len() as u8;
        let mut nodes = SmallVec::new();
        while self.peek() != "}" {
            let node = u8::try_from(nodes.len()).map_err(|_| "more than 255 functions".to_owned())?;
            let name = self.new_name(&names)?;
            self.expect("=")?;
            nodes.push(self.node(&names)?);
            names.push((name, Source::Node(node)));
        }
        let expr = Expr::new(operands, nodes).ok_or_else(|| "expected a function".to_owned())?;
        self.expect("}")?;
        if self.at == self.tokens.len() { Ok(expr) } else { Err("expected the end".to_owned()) }
    }

    fn new_name(&mut self, names: &[(&str, Source)]) -> Found<&'t str> {
        if names.iter().any(|&(name, _)| name == self.peek()) {
            return Err(format!("{} is defined twice", self.peek()));
        }
        self.name()
    }

    fn node(&mut self, names: &[(&str, Source)]) -> Found<Node> {
        let name = self.peek();
        let function = named(name).ok_or_else(|| format!("no function is called {name}"))?;
        let start = self.at;
        self.at += 1;
        let mut variant = Variant::from(function);
        if self.takes("[") {
            while !self.takes("]") {
                self.option(&mut variant)?;
                if self.peek() != "]" {
                    self.expect(",")?;
                }
            }
        }
        let mut arguments = SmallVec::new();
        loop {
            let named = names.iter().find(|&&(name, _)| name == self.peek()).map(|&(_, source)| source);
            let number = || Some(Source::Number(self.peek().parse::<f64>().ok()?.into()));
            let source = named.or_else(number).ok_or_else(|| format!("{} is not defined", self.peek()))?;
            self.at += 1;
            arguments.push(source);
            if !self.takes(",") {
                break;
            }
        }
        let wanted = function.arguments.map_or(arguments.len(), <[_]>::len);
        if function.is_complex() || wanted == arguments.len() {
            return Ok(Node { variant, arguments });
        }
        self.at = start;
        Err(format!("{name} has {wanted} arguments"))
    }

    fn option(&mut self, variant: &mut Variant) -> Found<()> {
        if self.takes("unguarded") {
            variant.unguarded = true;
        } else if self.takes("of") {
            variant.options.dtype = self.dtype()?;
        } else if self.takes("rounded") {
            variant.rounded = Some(self.dtype()?);
        } else {
            self.expect("flag")?;
            let number = self.peek().parse().ok();
            let flag = number.and_then(|i: usize| variant.options.flags.get_mut(i));
            *flag.ok_or_else(|| "expected a number below 8".to_owned())? = true;
            self.at += 1;
        }
        Ok(())
    }

    fn dtype(&mut self) -> Found<DType> {
        let dtype = DType::from_short_name(self.peek());
        self.at += usize::from(dtype.is_some());
        dtype.ok_or_else(|| "expected a dtype".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::catalogue;
    use crate::pointwise::{activation, arithmetic};

    #[test]
    fn every_function_is_read_as_it_is_printed() {
        for function in catalogue() {
            let operands = function.arguments.map_or(3, <[_]>::len);
            let plain = Variant::from(function);
            let rounded = Variant { rounded: Some(DType::BF16), unguarded: true, ..plain.of(DType::F16) };
            for variant in [plain, rounded.with([true, false, true])] {
                let expr = Expr::of(variant, operands);
                assert_eq!(expr.to_string().parse(), Ok(expr), "{expr}");
                let further = expr.then(Expr::of(plain, operands)).then((&activation::RELU).into());
                assert_eq!(further.to_string().parse(), Ok(further), "{further}");
            }
        }
    }

    #[test]
    fn errors_name_the_place() {
        let error = |text: &str| text.parse::<Expr>().map_err(|error| error.to_string());
        assert_eq!(error("expr %x {\n  %y = add %x\n}"), Err("2:8: add has 2 arguments".to_owned()));
        assert_eq!(error("expr %x {\n  %y = relu %z\n}"), Err("2:13: %z is not defined".to_owned()));
        assert_eq!(error("expr %x {\n  %x = relu %x\n}"), Err("2:3: %x is defined twice".to_owned()));
        assert_eq!(error("expr %x {\n}"), Err("2:1: expected a function".to_owned()));
        assert_eq!(error("expr %x { %y = relu [flag 9] %x }"), Err("1:27: expected a number below 8".to_owned()));
        assert_eq!(error("expr %x { %y = relu [of f17] %x }"), Err("1:25: expected a dtype".to_owned()));
        assert_eq!(error("expr %x { %y = relu %x"), Err("1:23: expected the name of a value".to_owned()));
        assert_eq!(error("expr %x { %y = relu %x } x"), Err("1:26: expected the end".to_owned()));
        assert_eq!(error("expr %x { %y = add 1, 2 }"), Err("1:25: expected a function".to_owned()));
        let text = "expr %0 {\n  %1 = mul %0, -1.5e-7\n  %2 = maximum inf, %1\n}\n";
        assert_eq!(text.parse::<Expr>().map(|expr| expr.to_string()), Ok(text.to_owned()));
        let sum: Expr = "expr %x, %y { %z = add %x, %y }".parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(sum, Expr::from(&arithmetic::ADD));
    }
}
