//! The language of IPClassifier and IPFilter: how tests combine.
//!
//! From weakest to strongest: `a ? b : c`; `or`, `||`; `and`, `&&`, and mere juxtaposition; `not`, `!`. What a
//! single test looks like is in [`super::ip_test`].

use super::expr::Expr;
use super::ip_subject::Subject;
use super::ip_test;
use super::words::tokens;
use causeway_engine::{Error, Scope};
use causeway_lang::args::unquote;

/// Parentheses and negations inside each other, at most.
const DEPTH: usize = 100;

/// Reads an expression; addresses may be names in `scope`. What is odd about it, but no error, goes to `warnings`.
pub(crate) fn parse(text: &str, scope: &Scope<'_>, warnings: &mut Vec<String>) -> Result<Expr, Error> {
    let words = tokens(&unquote(text));
    let mut parser = Parser { words, at: 0, scope, last: Subject::default(), warnings: Vec::new(), depth: 0 };
    if parser.words.is_empty() {
        return Err(Error::new("empty pattern (should be '-')"));
    }
    let expr = parser.ternary()?;
    warnings.append(&mut parser.warnings);
    match parser.peek() {
        None => Ok(expr),
        Some(word) => Err(Error::new(format!("syntax error near '{word}'"))),
    }
}

pub(crate) struct Parser<'a> {
    words: Vec<String>,
    at: usize,
    pub(crate) scope: &'a Scope<'a>,
    /// What the test before said, which a value standing alone takes over: `port 80 or 443`.
    pub(crate) last: Subject,
    pub(crate) warnings: Vec<String>,
    depth: usize,
}

impl Parser<'_> {
    /// How many words were taken.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    /// The word `ahead` places after the next one.
    pub(crate) fn peek_at(&self, ahead: usize) -> Option<&str> {
        self.words.get(self.at + ahead).map(String::as_str)
    }

    pub(crate) fn next(&mut self) -> Option<String> {
        let word = self.words.get(self.at).cloned();
        self.at += 1;
        word
    }

    /// Takes the next word if it is one of `words`.
    pub(crate) fn take(&mut self, words: &[&str]) -> bool {
        let taken = self.peek().is_some_and(|w| words.contains(&w));
        self.at += taken as usize;
        taken
    }

    pub(crate) fn expect(&mut self, word: &str) -> Result<(), Error> {
        if self.take(&[word]) { Ok(()) } else { Err(Error::new(format!("'{word}' expected{}", self.here()))) }
    }

    /// Where an error is, in words.
    pub(crate) fn here(&self) -> String {
        self.peek().map_or(" at the end".to_owned(), |w| format!(" before '{w}'"))
    }

    fn ternary(&mut self) -> Result<Expr, Error> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(Error::new("expression is nested too deeply"));
        }
        let mut expr = self.or()?;
        if self.take(&["?"]) {
            let yes = self.ternary()?;
            self.expect(":")?;
            let no = self.ternary()?;
            expr = Expr::If(Box::new([expr, yes, no]));
        }
        self.depth -= 1;
        Ok(expr)
    }

    fn or(&mut self) -> Result<Expr, Error> {
        let mut terms = vec![self.and()?];
        while self.take(&["or", "||"]) {
            terms.push(self.and()?);
        }
        Ok(if terms.len() == 1 { terms.remove(0) } else { Expr::Or(terms) })
    }

    fn and(&mut self) -> Result<Expr, Error> {
        let mut factors = vec![self.factor()?];
        loop {
            let explicit = self.take(&["and", "&&"]);
            if !explicit && matches!(self.peek(), None | Some("or" | "||" | "?" | ":" | ")")) {
                break;
            }
            factors.push(self.factor()?);
        }
        Ok(if factors.len() == 1 { factors.remove(0) } else { Expr::And(factors) })
    }

    fn factor(&mut self) -> Result<Expr, Error> {
        let mut negate = false;
        while self.take(&["not", "!"]) {
            negate = !negate;
        }
        let expr = if self.take(&["("]) {
            let inner = self.ternary()?;
            self.expect(")")?;
            inner
        } else if self.take(&["any", "all", "-", "true"]) {
            Expr::Const(true)
        } else if self.take(&["false"]) {
            Expr::Const(false)
        } else {
            ip_test::parse(self)?
        };
        Ok(if negate { expr.not() } else { expr })
    }
}
