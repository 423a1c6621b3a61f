//! A cursor over the tokens of a text.

use super::Read;
use crate::text::Wrong;
use crate::text::lex::{Kind, Token, unquoted};
use crate::text::names::is_plain;

/// The tokens of a text, and the index of the next one.
pub(super) struct Tokens<'t> {
    pub(super) tokens: Vec<Token<'t>>,
    pub(super) next: usize,
}

/// The next token, for messages.
fn found(token: Token<'_>) -> String {
    match token.kind {
        Kind::End => "the text ends".to_owned(),
        _ => format!("{} is found", token.text),
    }
}

impl<'t> Tokens<'t> {
    pub(super) fn peek(&self) -> Token<'t> {
        self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    pub(super) fn at(&self) -> usize {
        self.peek().at
    }

    pub(super) fn take(&mut self) -> Token<'t> {
        let token = self.peek();
        self.next += 1;
        token
    }

    pub(super) fn take_if(&mut self, kind: Kind, text: &str) -> bool {
        let token = self.peek();
        let is = token.kind == kind && token.text == text;
        self.next += usize::from(is);
        is
    }

    pub(super) fn is_sign(&self, text: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Sign && token.text == text
    }

    pub(super) fn is_word(&self, text: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Word && token.text == text
    }

    pub(super) fn wanted<T>(&self, what: &str) -> Read<T> {
        let token = self.peek();
        Err(Wrong::new(token.at, format!("{what} is wanted, and {}", found(token))))
    }

    pub(super) fn sign(&mut self, text: &str) -> Read<()> {
        if self.take_if(Kind::Sign, text) { Ok(()) } else { self.wanted(text) }
    }

    pub(super) fn comma(&mut self) -> Read<()> {
        self.sign(",")
    }

    pub(super) fn word(&mut self, text: &str) -> Read<()> {
        if self.take_if(Kind::Word, text) { Ok(()) } else { self.wanted(text) }
    }

    /// A word for which `f` returns a result.
    pub(super) fn word_of<T>(&mut self, what: &str, f: impl FnOnce(&str) -> Option<T>) -> Read<T> {
        let token = self.peek();
        match f(token.text).filter(|_| token.kind == Kind::Word) {
            Some(thing) => {
                self.next += 1;
                Ok(thing)
            }
            None => self.wanted(what),
        }
    }

    /// A word, or any text in quotes.
    pub(super) fn name(&mut self) -> Read<String> {
        let token = self.peek();
        let name = match token.kind {
            Kind::Word if is_plain(token.text) => token.text.to_owned(),
            Kind::Quoted => unquoted(token.text).ok_or_else(|| Wrong::new(token.at, "an escape that is not known"))?,
            _ => return self.wanted("a name"),
        };
        self.next += 1;
        Ok(name)
    }

    /// A number from 0 on, below 2^32.
    pub(super) fn count(&mut self) -> Read<u32> {
        let token = self.peek();
        match (token.kind, token.text.parse()) {
            (Kind::Number, Ok(count)) => {
                self.next += 1;
                Ok(count)
            }
            _ => self.wanted("a number from 0 to 4294967295"),
        }
    }

    pub(super) fn end(&self) -> Read<()> {
        if self.peek().kind == Kind::End { Ok(()) } else { self.wanted("the end of the text") }
    }
}
