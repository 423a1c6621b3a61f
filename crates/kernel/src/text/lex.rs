//! The lexer: splits a text into words, names, numbers and punctuation.

use super::Wrong;

/// The kind of a token.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `load`, `f32`, `group.x`.
    Word,
    /// `%name`.
    Value,
    /// `@name`.
    Memory,
    /// `-7`, `0x1f`, `1e-3`, `-inf`.
    Number,
    /// `"any text"`, with its quotes.
    Quoted,
    /// One character.
    Sign,
    /// The end of the text.
    End,
}

/// A token: its characters, and its position.
#[derive(Copy, Clone, Debug)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    pub(super) at: usize,
}

/// The tokens of a text; the last one is its end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Wrong> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (kind, len) = match first {
            '%' | '@' => {
                let len = 1 + length(&rest[1..], is_of_name);
                let kind = if first == '%' { Kind::Value } else { Kind::Memory };
                if len == 1 {
                    return Err(Wrong::new(at, format!("a name is missing after {first}")));
                }
                (kind, len)
            }
            '"' => (Kind::Quoted, quoted(rest).ok_or_else(|| Wrong::new(at, "a quote is not closed"))?),
            '-' | '0'..='9' => (Kind::Number, number(rest)),
            c if c.is_ascii_alphabetic() || c == '_' => (Kind::Word, length(rest, |c| is_of_name(c) || c == '.')),
            '{' | '}' | '[' | ']' | ',' | ':' | '=' | '.' => (Kind::Sign, 1),
            other => return Err(Wrong::new(at, format!("{other:?} begins nothing"))),
        };
        tokens.push(Token { kind, text: &rest[..len], at });
        at += len;
    }
    tokens.push(Token { kind: Kind::End, text: "", at });
    Ok(tokens)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The number of leading bytes whose characters satisfy `of`.
fn length(text: &str, of: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !of(c)).unwrap_or(text.len())
}

/// The number of bytes of a number: digits, letters and points, and the sign of an exponent.
fn number(text: &str) -> usize {
    let hexadecimal = text.trim_start_matches('-').starts_with("0x");
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let exponent = matches!(c, '-' | '+') && matches!(before, 'e' | 'E') && !hexadecimal;
        if !(is_of_name(c) || c == '.' || exponent || at == 0) {
            return at;
        }
        before = c;
    }
    text.len()
}

/// The number of bytes up to the closing quote.
fn quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The content of a quoted text; `None` if an escape is not one of Rust's.
pub(super) fn unquoted(quoted: &str) -> Option<String> {
    let inner = quoted.get(1..quoted.len().checked_sub(1)?)?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            c @ ('\\' | '"' | '\'') => c,
            'u' => {
                let (code, _) = chars.as_str().strip_prefix('{')?.split_once('}')?;
                let escaped = char::from_u32(u32::from_str_radix(code, 16).ok()?)?;
                chars.by_ref().nth(code.chars().count() + 1);
                escaped
            }
            _ => return None,
        });
    }
    Some(out)
}
