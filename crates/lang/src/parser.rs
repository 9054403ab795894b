//! From tokens to the tree. Errors are collected and parsing goes on, so that one run reports them all.

use crate::args;
use crate::ast::*;
use crate::diag::{Diagnostic, Diagnostics};
use crate::lexer::{Lexer, Token, TokenKind, describe};
use crate::library::Loader;
use crate::source::{FileId, Sources, Span};
use TokenKind::Char;

/// What encloses the statements being read; it decides how they may end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inside {
    File,
    Compound,
    Group,
}

pub(crate) struct Parser<'a> {
    pub(crate) sources: &'a mut Sources,
    pub(crate) diags: &'a mut Diagnostics,
    loader: &'a dyn Loader,
    /// Resolved names of the libraries read so far.
    libraries: &'a mut Vec<String>,
    lexer: Lexer,
    peeked: Option<Token>,
    /// Compounds, groups and libraries around the current place.
    depth: usize,
    /// Compounds around the current place.
    compounds: usize,
}

/// Parses the text `file` of `sources`.
pub(crate) fn parse_file(
    sources: &mut Sources,
    diags: &mut Diagnostics,
    loader: &dyn Loader,
    libraries: &mut Vec<String>,
    file: FileId,
    depth: usize,
) -> Vec<Stmt> {
    let lexer = Lexer::new(sources, file);
    let mut parser = Parser { sources, diags, loader, libraries, lexer, peeked: None, depth, compounds: 0 };
    let statements = parser.statements(Inside::File);
    if let Some(span) = parser.lexer.unclosed_comment() {
        parser.diags.push(Diagnostic::warning(span, "comment is never closed"));
    }
    statements
}

impl Parser<'_> {
    // ---- tokens ----

    pub(crate) fn next(&mut self) -> Token {
        match self.peeked.take() {
            Some(token) => token,
            None => self.lexer.next(self.sources, self.diags),
        }
    }

    pub(crate) fn peek(&mut self) -> Token {
        let token = self.next();
        self.peeked = Some(token);
        token
    }

    pub(crate) fn accept(&mut self, kind: TokenKind) -> Option<Token> {
        (self.peek().kind == kind).then(|| self.next())
    }

    /// Takes a token of this kind, or reports its absence and leaves the next token alone.
    fn expect(&mut self, kind: TokenKind) -> Option<Token> {
        let token = self.accept(kind);
        if token.is_none() {
            let span = self.peek().span;
            self.diags.error(span, format!("expected {}", describe(kind)));
        }
        token
    }

    /// Takes the token after `first` if it is of this kind; otherwise nothing after `first` was taken.
    fn accept_pair(&mut self, first: TokenKind, second: TokenKind) -> Option<(Token, Token)> {
        let a = self.accept(first)?;
        let back = self.lexer.position();
        let b = self.next();
        if b.kind == second {
            return Some((a, b));
        }
        self.lexer.rewind(back);
        self.peeked = Some(a);
        None
    }

    pub(crate) fn ident(&self, token: Token) -> Ident {
        Ident { text: self.lexer.text_of(token.span).to_string(), span: token.span }
    }

    pub(crate) fn syntax_error(&mut self, token: Token) {
        let text = self.lexer.text_of(token.span);
        let error = Diagnostic::error(token.span, format!("syntax error near '{text}'"));
        let hint = match token.kind {
            TokenKind::End => Some("the text ends here, but more was expected"),
            Char('=') | Char('-') | Char('>') => Some("connections are written '->' or '=>'"),
            Char(':') => Some("declarations are written 'name :: Class'"),
            TokenKind::Provide => Some("'provide' is a reserved word"),
            _ => None,
        };
        self.diags.push(error.hint_opt(hint.map(String::from)));
    }

    /// The configuration string after `open`, and its closing parenthesis.
    pub(crate) fn config_after(&mut self, open: Token) -> Config {
        let span = self.lexer.config(self.sources, self.diags);
        let text = self.lexer.text_of(span).to_string();
        if self.accept(Char(')')).is_none() {
            self.diags.push(
                Diagnostic::error(self.peeked.map_or(span, |t| t.span), "expected ')'")
                    .see(open.span, "the configuration string opens here"),
            );
        }
        Config { text, span }
    }

    pub(crate) fn optional_config(&mut self) -> Option<Config> {
        let open = self.accept(Char('('))?;
        Some(self.config_after(open))
    }

    // ---- statements ----

    /// Statements up to the token that ends `inside`, which is not taken.
    pub(crate) fn statements(&mut self, inside: Inside) -> Vec<Stmt> {
        let mut list = vec![];
        loop {
            let token = self.peek();
            match token.kind {
                TokenKind::End => return list,
                Char('}') | TokenKind::Bars if inside != Inside::File => return list,
                Char(')') if inside == Inside::Group => return list,
                Char(';') => {
                    self.next();
                }
                TokenKind::ElementClass => list.extend(self.element_class()),
                TokenKind::Require => self.require(&mut list),
                TokenKind::Define => self.define(&mut list),
                TokenKind::Ident | Char('[' | '{' | '(') => list.extend(self.chain(inside)),
                TokenKind::Arrow | TokenKind::DoubleArrow | Char(',') if inside != Inside::File => {
                    list.extend(self.chain(inside));
                }
                _ => {
                    self.next();
                    self.syntax_error(token);
                }
            }
        }
    }

    fn element_class(&mut self) -> Option<Stmt> {
        self.next();
        let Some(name) = self.accept(TokenKind::Ident) else {
            let span = self.peek().span;
            self.diags.error(span, "expected element type name");
            // A body that follows is still worth checking.
            if let Some(open) = self.accept(Char('{')) {
                self.compound(open);
            }
            return None;
        };
        let name = self.ident(name);
        let token = self.peek();
        let class = match token.kind {
            Char('{') => {
                self.next();
                ClassRef::Compound(self.compound(token))
            }
            TokenKind::Ident => {
                self.next();
                ClassRef::Name(self.ident(token))
            }
            _ => {
                self.syntax_error(token);
                return None;
            }
        };
        Some(Stmt::ElementClass(ElementClass { name, class }))
    }

    fn require(&mut self, list: &mut Vec<Stmt>) {
        let keyword = self.next();
        let Some(open) = self.expect(Char('(')) else { return };
        let config = self.config_after(open);
        let span = keyword.span.to(config.span);
        for argument in args::split_args(&config.text) {
            let mut words = args::split_words(&argument);
            // A library's name may have any characters, other names are words with or without quotes.
            if words.first().is_some_and(|w| w != "library") {
                words.iter_mut().for_each(|word| *word = args::unquote(word));
            }
            if !words.iter().all(|w| args::is_word(w)) && words.first().is_none_or(|w| w != "library") {
                self.diags.error(span, "bad requirement: not a word");
                continue;
            }
            match words.as_slice() {
                [] => {}
                [kind] if kind == "compact_config" => {
                    list.push(Stmt::Require(Requirement { kind: kind.clone(), name: String::new(), span }));
                }
                [name] => {
                    let kind = "package".to_string();
                    list.push(Stmt::Require(Requirement { kind, name: name.clone(), span }));
                }
                [kind, file] if kind == "library" => list.extend(self.library(&args::unquote(file), span)),
                [kind, name] => {
                    list.push(Stmt::Require(Requirement { kind: kind.clone(), name: name.clone(), span }));
                }
                _ => self.diags.error(span, "bad requirement: too many words"),
            }
        }
    }

    fn library(&mut self, name: &str, span: Span) -> Option<Stmt> {
        if self.compounds > 0 {
            self.diags.error(span, "'require library' must be used at file scope");
            return None;
        }
        if self.depth >= MAX_DEPTH {
            self.diags.error(span, "maximum library nesting depth exceeded");
            return None;
        }
        let from = self.sources.get(span.file).map_or(String::new(), |f| f.name().to_string());
        let Some(found) = self.loader.load(name, &from) else {
            self.diags.push(
                Diagnostic::error(span, format!("library '{name}' not found in CLICKPATH/conf"))
                    .hint("libraries are looked up next to the requiring file, then in CLICKPATH"),
            );
            return None;
        };
        let mut body = vec![];
        if !self.libraries.contains(&found.name) {
            self.libraries.push(found.name.clone());
            if u32::try_from(found.text.len()).is_err() {
                self.diags.error(span, format!("library '{name}' is too large"));
                return None;
            }
            let file = self.sources.add(&found.name, &found.text);
            body = parse_file(self.sources, self.diags, self.loader, self.libraries, file, self.depth + 1);
        }
        Some(Stmt::Library(Library { name: name.to_string(), body, span }))
    }

    fn define(&mut self, list: &mut Vec<Stmt>) {
        let keyword = self.next();
        let Some(open) = self.expect(Char('(')) else { return };
        let config = self.config_after(open);
        let span = keyword.span.to(config.span);
        for argument in args::split_args(&config.text) {
            if argument.is_empty() {
                continue;
            }
            let (variable, value) = args::first_word(&argument);
            let name = variable.strip_prefix('$').unwrap_or("");
            let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if is_name {
                let (name, value) = (name.to_string(), value.to_string());
                list.push(Stmt::Define(Definition { name, value, span }));
            } else {
                self.diags.push(
                    Diagnostic::error(span, "bad 'define' declaration: not a variable")
                        .hint("definitions are written 'define($name value, …)'"),
                );
            }
        }
    }

    // ---- compound classes and groups ----

    /// The compound class after its opening brace.
    pub(crate) fn compound(&mut self, open: Token) -> Compound {
        let mut compound = Compound { overloads: vec![], extends: None, span: open.span };
        if self.depth >= MAX_DEPTH {
            self.diags.error(open.span, "maximum compound element nesting depth exceeded");
            self.skip_to_brace();
            return compound;
        }
        self.depth += 1;
        self.compounds += 1;
        loop {
            if let Some(dots) = self.accept(TokenKind::Dots) {
                let misplaced = compound.overloads.is_empty() || self.peek().kind != Char('}');
                if misplaced {
                    self.diags.error(dots.span, "'...' should occur last, after one or more compounds");
                }
                compound.extends = Some(dots.span);
                if !misplaced {
                    break;
                }
            }
            let span = if compound.overloads.is_empty() { open.span } else { self.peek().span };
            let formals = self.formals();
            let body = self.statements(Inside::Compound);
            compound.overloads.push(Overload { formals, body, span });
            if self.accept(TokenKind::Bars).is_none() {
                break;
            }
        }
        if let Some(close) = self.expect(Char('}')) {
            compound.span = compound.span.to(close.span);
        }
        self.depth -= 1;
        self.compounds -= 1;
        compound
    }

    /// The parameters and the bar after them; nothing if the text begins with a statement.
    fn formals(&mut self) -> Vec<Formal> {
        let mut list: Vec<Formal> = vec![];
        loop {
            let first = self.peek();
            let (keyword, variable) = match first.kind {
                TokenKind::Variable => (None, self.next()),
                TokenKind::Ident => match self.accept_pair(TokenKind::Ident, TokenKind::Variable) {
                    Some((keyword, variable)) => (Some(self.ident(keyword).text), variable),
                    None => return self.formals_end(list, first),
                },
                Char('|') => {
                    self.next();
                    return list;
                }
                _ => return self.formals_end(list, first),
            };
            let name = self.lexer.text_of(variable.span)[1..].to_string();
            list.push(Formal { keyword, name, span: first.span.to(variable.span) });
            let separator = self.peek();
            match separator.kind {
                Char('|') => {
                    self.next();
                    return list;
                }
                Char(',') => {
                    self.next();
                }
                _ => {
                    self.diags.error(separator.span, "expected ',' or '|'");
                    return list;
                }
            }
        }
    }

    /// Parameters end without a bar: wrong unless there are none.
    fn formals_end(&mut self, list: Vec<Formal>, at: Token) -> Vec<Formal> {
        if !list.is_empty() {
            self.diags.error(at.span, "expected variable");
        }
        list
    }

    /// The group after its opening parenthesis.
    pub(crate) fn group(&mut self, open: Token) -> Group {
        if self.depth >= MAX_DEPTH {
            self.diags.error(open.span, "maximum element group nesting depth exceeded");
            self.config_after(open);
            return Group { body: vec![], span: open.span };
        }
        self.depth += 1;
        let body = self.statements(Inside::Group);
        let end = self.expect(Char(')')).map_or(open.span, |t| t.span);
        self.depth -= 1;
        Group { body, span: open.span.to(end) }
    }

    /// Skips the rest of a compound that is nested too deep.
    fn skip_to_brace(&mut self) {
        let mut depth = 1usize;
        while depth > 0 {
            let token = self.next();
            match token.kind {
                Char('{') => depth += 1,
                Char('}') => depth -= 1,
                Char('(') => {
                    self.lexer.config(self.sources, self.diags);
                }
                TokenKind::End => return,
                _ => {}
            }
        }
    }
}
