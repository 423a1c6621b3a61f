//! Schemas of operators, as PyTorch prints them, parsed at compile time: an argument is found by
//! its name, and a name that the schema lacks does not compile.
//!
//! `aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)`:
//! arguments are between the first parenthesis and its partner, each a type, a name, and optionally
//! a default; `*` precedes keyword-only arguments and is not an argument itself; `!` marks
//! arguments that the operator writes.

/// The overload's name: the schema up to its arguments.
pub const fn name(schema: &'static str) -> &'static str {
    let bytes = schema.as_bytes();
    let mut end = 0;
    while end < bytes.len() && bytes[end] != b'(' {
        end += 1;
    }
    schema.split_at(end).0
}

/// Whether a schema belongs to the operator with this name, or to its in-place form:
/// `aten::add_.Scalar` belongs to `add`.
pub const fn is_of(schema: &str, name: &str) -> bool {
    let (schema, name) = (schema.as_bytes(), name.as_bytes());
    let mut at = 0;
    while at < schema.len() && schema[at] != b':' {
        at += 1;
    }
    at += 2;
    let mut i = 0;
    while i < name.len() {
        if at + i >= schema.len() || schema[at + i] != name[i] {
            return false;
        }
        i += 1;
    }
    at += i;
    if at < schema.len() && schema[at] == b'_' {
        at += 1;
    }
    at < schema.len() && (schema[at] == b'.' || schema[at] == b'(')
}

/// One argument in a schema: the bounds of its text.
#[derive(Copy, Clone)]
struct Span {
    start: usize,
    end: usize,
}

/// The argument that begins at `start`: up to the comma or the parenthesis that ends it. `None` at
/// the end of the list.
const fn argument(bytes: &[u8], start: usize) -> Option<Span> {
    let mut at = start;
    while at < bytes.len() && bytes[at] == b' ' {
        at += 1;
    }
    let begin = at;
    let mut depth = 0;
    let mut quoted = false;
    while at < bytes.len() {
        match bytes[at] {
            b'\'' | b'"' => quoted = !quoted,
            b'(' | b'[' if !quoted => depth += 1,
            b')' | b']' if !quoted => {
                if depth == 0 {
                    break;
                }
                depth -= 1;
            }
            b',' if depth == 0 && !quoted => break,
            _ => {}
        }
        at += 1;
    }
    if at == begin { None } else { Some(Span { start: begin, end: at }) }
}

/// Whether an argument is the last one: the results follow.
const fn is_last(bytes: &[u8], argument: Span) -> bool {
    argument.end == bytes.len() || bytes[argument.end] == b')'
}

/// The bounds of an argument's name: after the last space before its default.
const fn name_span(bytes: &[u8], argument: Span) -> Span {
    let mut end = argument.start;
    while end < argument.end && bytes[end] != b'=' {
        end += 1;
    }
    let mut start = end;
    while start > argument.start && bytes[start - 1] != b' ' {
        start -= 1;
    }
    Span { start, end }
}

const fn is(bytes: &[u8], span: Span, text: &[u8]) -> bool {
    if span.end - span.start != text.len() {
        return false;
    }
    let mut i = 0;
    while i < text.len() {
        if bytes[span.start + i] != text[i] {
            return false;
        }
        i += 1;
    }
    true
}

const fn contains(bytes: &[u8], span: Span, byte: u8) -> bool {
    let mut i = span.start;
    while i < span.end {
        if bytes[i] == byte {
            return true;
        }
        i += 1;
    }
    false
}

/// The position of the argument with this name, if the schema has it.
pub const fn find(schema: &str, wanted: &str) -> Option<usize> {
    let (bytes, wanted) = (schema.as_bytes(), wanted.as_bytes());
    let mut at = name_length(bytes) + 1;
    let mut position = 0;
    while let Some(span) = argument(bytes, at) {
        if !is(bytes, span, b"*") {
            if is(bytes, name_span(bytes, span), wanted) {
                return Some(position);
            }
            position += 1;
        }
        if is_last(bytes, span) {
            break;
        }
        at = span.end + 1;
    }
    None
}

const fn name_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() && bytes[at] != b'(' {
        at += 1;
    }
    at
}

/// The names of the arguments.
pub fn names(schema: &'static str) -> impl Iterator<Item = &'static str> {
    let bytes = schema.as_bytes();
    let mut next = Some(name_length(bytes) + 1);
    std::iter::from_fn(move || {
        let span = argument(bytes, next?)?;
        next = if is_last(bytes, span) { None } else { Some(span.end + 1) };
        let name = name_span(bytes, span);
        Some(&schema[name.start..name.end])
    })
    .filter(|name| *name != "*")
}

/// The position of the argument with this name.
///
/// # Panics
/// If the schema has no such argument: at compile time, where the name is a constant.
pub const fn position(schema: &str, wanted: &str) -> usize {
    match find(schema, wanted) {
        Some(position) => position,
        None => panic!("the schema has no argument of this name"),
    }
}

/// The arguments to which an overload writes its results: `self`, or keyword arguments. Other
/// written arguments, such as the running mean of a batch norm, are not among them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Position of the first one; the others follow it.
    pub first: usize,
    /// Their number.
    pub count: usize,
    /// The first one is `self`: the overload works in place.
    pub in_place: bool,
}

impl Written {
    /// Whether argument `i` is one of them.
    pub fn contains(self, i: usize) -> bool {
        (self.first..self.first + self.count).contains(&i)
    }
}

/// The arguments to which an overload writes its results.
pub const fn written(schema: &str) -> Written {
    let bytes = schema.as_bytes();
    let mut at = name_length(bytes) + 1;
    let mut position = 0;
    let mut by_keyword = false;
    let mut written = Written { first: 0, count: 0, in_place: false };
    while let Some(span) = argument(bytes, at) {
        if is(bytes, span, b"*") {
            by_keyword = true;
        } else {
            let in_place = is(bytes, name_span(bytes, span), b"self");
            if contains(bytes, span, b'!') && (in_place || by_keyword) {
                if written.count == 0 {
                    written.first = position;
                    written.in_place = in_place;
                }
                written.count += 1;
            }
            position += 1;
        }
        if is_last(bytes, span) {
            break;
        }
        at = span.end + 1;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADD: &str = "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)";
    const TOPK: &str = "aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)";
    const GELU: &str = "aten::gelu_(Tensor(a!) self, *, str approximate='none') -> Tensor(a!)";
    const ADAM: &str =
        "aten::_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, *, float lr, Tensor? found_inf=None) -> ()";
    const NORM: &str = "aten::norm.dtype_out(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype, Tensor(a!) out) -> Tensor(a!)";
    const POOL: &str = "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=[1, 1], bool ceil_mode=False) -> (Tensor, Tensor)";

    const RRELU: &str = "aten::rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor";
    const FREXP: &str = "aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)";
    const FREXP_OUT: &str = "aten::frexp.Tensor_out(Tensor self, *, Tensor(a!) mantissa, Tensor(b!) exponent) -> (Tensor(a!) mantissa, Tensor(b!) exponent)";

    #[test]
    fn names_and_positions() {
        assert_eq!(name(ADD), "aten::add.out");
        assert_eq!(name("aten::add"), "aten::add");
        assert_eq!(["self", "other", "alpha", "out"].map(|n| position(ADD, n)), [0, 1, 2, 3]);
        assert_eq!(position(GELU, "approximate"), 1);
        assert_eq!(position(POOL, "ceil_mode"), 5);
        assert_eq!(position(NORM, "p"), 1);
        assert_eq!(find(ADD, "alph"), None);
        assert_eq!(names(ADD).collect::<Vec<_>>(), ["self", "other", "alpha", "out"]);
        assert_eq!(names("aten::rand() -> Tensor").count(), 0);
        assert_eq!(find(FREXP, "mantissa"), None);
        assert_eq!(find("aten::rand() -> Tensor", "self"), None);
    }

    #[test]
    fn operators_of_a_name() {
        assert!(is_of(ADD, "add") && is_of(GELU, "gelu") && is_of("aten::add(Tensor self)", "add"));
        assert!(!is_of(ADD, "ad") && !is_of(ADD, "addr") && !is_of(ADAM, "_fused"));
    }

    #[test]
    fn what_is_written() {
        assert_eq!(written(ADD), Written { first: 3, count: 1, in_place: false });
        assert_eq!(written(TOPK), Written { first: 5, count: 2, in_place: false });
        assert_eq!(written(GELU), Written { first: 0, count: 1, in_place: true });
        assert_eq!(written(ADAM), Written { first: 0, count: 1, in_place: true });
        assert_eq!(written(POOL).count, 0);
        assert_eq!(written(RRELU).count, 0);
        assert_eq!(written(FREXP).count, 0);
        assert_eq!(written(FREXP_OUT), Written { first: 1, count: 2, in_place: false });
    }
}
