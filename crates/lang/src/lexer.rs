//! Tokens of the Click language.
//!
//! A configuration string is not a token: only the parser knows that a parenthesis opens one, and asks for it
//! with [`Lexer::config`].

use crate::diag::{Diagnostic, Diagnostics};
use crate::source::{FileId, Sources, Span};
use std::sync::Arc;

/// What kind of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Element or class name, possibly with slashes; also a port number.
    Ident,
    /// `$name`.
    Variable,
    /// `->`
    Arrow,
    /// `=>`
    DoubleArrow,
    /// `::`
    Colons,
    /// `||`
    Bars,
    /// `...`
    Dots,
    /// `elementclass`
    ElementClass,
    /// `require`
    Require,
    /// `provide`, reserved and never legal.
    Provide,
    /// `define`
    Define,
    /// Any other single character.
    Char(char),
    /// The end of the text.
    End,
}

/// A token and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Its place.
    pub span: Span,
}

/// Reads tokens from one source text.
pub(crate) struct Lexer {
    text: Arc<str>,
    file: FileId,
    pos: usize,
    /// Directives before this place have been reported; the parser may go back.
    checked: usize,
    /// A comment that is never closed.
    unclosed: Option<Span>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'@'
}

impl Lexer {
    pub fn new(sources: &Sources, file: FileId) -> Self {
        let text = sources.get(file).map_or_else(|| "".into(), |f| f.text().clone());
        Self { text, file, pos: 0, checked: 0, unclosed: None }
    }

    fn at(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.pos + offset).copied()
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span { file: self.file, start: start as u32, end: end as u32 }
    }

    /// A position to come back to with [`Lexer::rewind`].
    pub fn position(&self) -> usize {
        self.pos
    }

    /// Goes back to an earlier [`Lexer::position`].
    pub fn rewind(&mut self, position: usize) {
        self.pos = position;
    }

    /// The opening of a comment that is never closed, which hides the rest of the text.
    pub fn unclosed_comment(&self) -> Option<Span> {
        self.unclosed
    }

    pub fn text_of(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The next token, after blanks, comments and line directives.
    pub fn next(&mut self, sources: &mut Sources, diags: &mut Diagnostics) -> Token {
        self.skip_blank(sources, diags);
        let start = self.pos;
        let kind = self.scan();
        Token { kind, span: self.span(start, self.pos) }
    }

    fn scan(&mut self) -> TokenKind {
        let Some(first) = self.at(0) else { return TokenKind::End };
        if is_word(first) {
            return self.word();
        }
        let variable = first == b'$' && self.at(1).is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        if variable {
            self.pos += 1;
            while self.at(0).is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
                self.pos += 1;
            }
            return TokenKind::Variable;
        }
        let rest = &self.text[self.pos..];
        for (symbol, kind) in [
            ("->", TokenKind::Arrow),
            ("=>", TokenKind::DoubleArrow),
            ("::", TokenKind::Colons),
            ("||", TokenKind::Bars),
            ("...", TokenKind::Dots),
        ] {
            if rest.starts_with(symbol) {
                self.pos += symbol.len();
                return kind;
            }
        }
        let c = rest.chars().next().unwrap_or('\0');
        self.pos += c.len_utf8();
        TokenKind::Char(c)
    }

    fn word(&mut self) -> TokenKind {
        let start = self.pos;
        loop {
            while self.at(0).is_some_and(is_word) {
                self.pos += 1;
            }
            if self.at(0) == Some(b'/') && self.at(1).is_some_and(is_word) {
                self.pos += 1;
            } else {
                break;
            }
        }
        match &self.text[start..self.pos] {
            "elementclass" => TokenKind::ElementClass,
            "require" => TokenKind::Require,
            "provide" => TokenKind::Provide,
            "define" => TokenKind::Define,
            _ => TokenKind::Ident,
        }
    }

    fn skip_blank(&mut self, sources: &mut Sources, diags: &mut Diagnostics) {
        while let Some(byte) = self.at(0) {
            if byte.is_ascii_whitespace() || byte == 0x0b {
                self.pos += 1;
            } else if byte == b'#' && self.at_line_start() {
                self.directive(sources, diags);
            } else if !self.skip_comment() {
                return;
            }
        }
    }

    fn at_line_start(&self) -> bool {
        self.pos == 0 || matches!(self.text.as_bytes()[self.pos - 1], b'\n' | b'\r')
    }

    /// Skips a comment if one begins here.
    fn skip_comment(&mut self) -> bool {
        match (self.at(0), self.at(1)) {
            (Some(b'/'), Some(b'/')) => self.skip_to_line_end(),
            (Some(b'/'), Some(b'*')) => {
                let rest = &self.text.as_bytes()[self.pos + 2..];
                let end = rest.windows(2).position(|w| w == b"*/").map(|at| at + 2);
                if end.is_none() {
                    self.unclosed = Some(self.span(self.pos, self.pos + 2));
                }
                self.pos += 2 + end.unwrap_or(rest.len());
            }
            _ => return false,
        }
        true
    }

    fn skip_to_line_end(&mut self) {
        while self.at(0).is_some_and(|b| b != b'\n' && b != b'\r') {
            self.pos += 1;
        }
    }

    /// `# N "file"` or `#line N "file"` in the first column: the next line is line N of that file.
    fn directive(&mut self, sources: &mut Sources, diags: &mut Diagnostics) {
        let start = self.pos;
        self.skip_to_line_end();
        let line = &self.text[start + 1..self.pos];
        let body = line.trim_start_matches([' ', '\t']);
        let body = match body.strip_prefix("line") {
            Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start_matches([' ', '\t']),
            _ => body,
        };
        let digits = body.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            if start < self.checked {
                return;
            }
            self.checked = self.pos;
            diags.push(
                Diagnostic::error(self.span(start, self.pos), "unknown preprocessor directive")
                    .hint("a '#' in the first column begins a line directive; comments begin with '//'"),
            );
            return;
        }
        let number = body[..digits].parse().unwrap_or(u32::MAX);
        let name = body[digits..].trim_start_matches([' ', '\t']).strip_prefix('"').map(|quoted| {
            let end = quoted.find('"').unwrap_or(quoted.len());
            &quoted[..end]
        });
        // The directive numbers the line after it.
        if self.at(0) == Some(b'\r') && self.at(1) == Some(b'\n') {
            self.pos += 1;
        }
        sources.mark_line(self.file, self.pos as u32 + 1, number, name);
    }

    /// The raw text from here to the parenthesis that closes the configuration string, which is left for the
    /// next token. Quotes, comments and `\<…>` hide parentheses.
    pub fn config(&mut self, sources: &mut Sources, diags: &mut Diagnostics) -> Span {
        let start = self.pos;
        let mut depth = 0usize;
        while let Some(byte) = self.at(0) {
            match byte {
                b'(' => depth += 1,
                b')' if depth == 0 => break,
                b')' => depth -= 1,
                b'\'' => self.skip_single_quotes(),
                b'"' => self.skip_double_quotes(),
                b'\\' if self.at(1) == Some(b'<') => self.skip_angle(),
                b'/' if self.skip_comment() => continue,
                b'#' if self.pos > start && self.at_line_start() => {
                    self.directive(sources, diags);
                    continue;
                }
                _ => {}
            }
            self.pos = (self.pos + 1).min(self.text.len());
        }
        self.span(start, self.pos)
    }

    // The skippers below stop on the closing character, or at the end of the text.

    fn skip_single_quotes(&mut self) {
        self.pos += 1;
        while self.at(0).is_some_and(|b| b != b'\'') {
            self.pos += 1;
        }
    }

    fn skip_double_quotes(&mut self) {
        self.pos += 1;
        while let Some(byte) = self.at(0) {
            match byte {
                b'"' => return,
                b'\\' if self.at(1) == Some(b'<') => self.skip_angle(),
                b'\\' if self.at(1).is_some() => self.pos += 1,
                _ => {}
            }
            self.pos = (self.pos + 1).min(self.text.len());
        }
    }

    fn skip_angle(&mut self) {
        self.pos += 2;
        while self.at(0).is_some_and(|b| b != b'>') {
            if !self.skip_comment() {
                self.pos += 1;
            }
        }
    }
}

/// How error messages call a token that was wanted.
pub(crate) fn describe(kind: TokenKind) -> String {
    match kind {
        TokenKind::Ident => "identifier".into(),
        TokenKind::Variable => "variable".into(),
        TokenKind::Arrow => "'->'".into(),
        TokenKind::DoubleArrow => "'=>'".into(),
        TokenKind::Colons => "'::'".into(),
        TokenKind::Bars => "'||'".into(),
        TokenKind::Dots => "'...'".into(),
        TokenKind::ElementClass => "'elementclass'".into(),
        TokenKind::Require => "'require'".into(),
        TokenKind::Provide => "'provide'".into(),
        TokenKind::Define => "'define'".into(),
        TokenKind::Char(c) => format!("'{c}'"),
        TokenKind::End => "end of file".into(),
    }
}
