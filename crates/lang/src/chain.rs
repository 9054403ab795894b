//! Parsing of connections: chains of element lists with ports, and stand-alone declarations.

use crate::ast::*;
use crate::diag::Diagnostic;
use crate::lexer::{Token, TokenKind};
use crate::parser::{Inside, Parser};
use TokenKind::Char;

/// The highest port number. Every port costs memory in the tables of the checks and of the router.
pub const MAX_PORT: u32 = 65_535;

impl Parser<'_> {
    /// A connection or declaration. `None` if nothing of it can be kept.
    pub(crate) fn chain(&mut self, inside: Inside) -> Option<Stmt> {
        let mut steps: Vec<Step> = vec![];
        let mut arrow = None;
        loop {
            let ends = self.element_list(inside, steps.is_empty());
            if !ends.is_empty() {
                steps.push(Step { arrow, ends });
            }
            arrow = self.connector(inside, &steps);
            if arrow.is_none() {
                break;
            }
        }
        match steps.as_slice() {
            [] => None,
            [only] => Some(standalone(&only.ends).unwrap_or(Stmt::Chain(Chain { steps }))),
            _ => Some(Stmt::Chain(Chain { steps })),
        }
    }

    /// The arrow that continues a chain; `None` at its end.
    fn connector(&mut self, inside: Inside, steps: &[Step]) -> Option<(Arrow, crate::Span)> {
        loop {
            let token = self.peek();
            let arrow = match token.kind {
                TokenKind::Arrow => Arrow::Single,
                TokenKind::DoubleArrow => Arrow::Double,
                Char(';') => {
                    self.next();
                    return None;
                }
                TokenKind::Ident
                | TokenKind::ElementClass
                | TokenKind::Require
                | TokenKind::Provide
                | TokenKind::Define
                | TokenKind::Bars
                | TokenKind::End
                | Char('{' | '}' | '[') => return None,
                Char(')') if inside == Inside::Group => return None,
                Char(',') | TokenKind::Colons => {
                    self.next();
                    self.syntax_error(token);
                    continue;
                }
                _ => {
                    self.next();
                    self.syntax_error(token);
                    return None;
                }
            };
            self.next();
            let implied = |end: &Endpoint| matches!(end.target, Target::ImpliedOutput);
            if steps.last().is_some_and(|s| s.ends.iter().any(implied)) {
                self.diags.error(token.span, "implicit ports used in the middle of a chain");
            }
            return Some((arrow, token.span));
        }
    }

    /// One comma-separated list of elements.
    fn element_list(&mut self, inside: Inside, first: bool) -> Vec<Endpoint> {
        let mut list = vec![];
        loop {
            let start = self.peek();
            let ports = self.ports();
            let Some(end) = self.endpoint(inside, first, ports, start, list.is_empty()) else { break };
            list.push(end);
            if self.accept(Char(',')).is_none() {
                break;
            }
        }
        list
    }

    fn endpoint(
        &mut self,
        inside: Inside,
        first: bool,
        ports: Option<Ports>,
        start: Token,
        list_empty: bool,
    ) -> Option<Endpoint> {
        let target = match self.target() {
            Some(target) => target,
            None => return self.implied(inside, first, ports, start, list_empty),
        };
        let outputs = self.ports();
        let named = match &target {
            Target::Name(name) | Target::Declared { name, .. } => name.span,
            Target::Anonymous { class: ClassRef::Name(name), .. } => name.span,
            Target::Group(group) => group.span,
            _ => start.span,
        };
        Some(Endpoint { inputs: ports, target, outputs, span: named })
    }

    /// Where an element is missing: `input` or `output` inside a compound or group, else an error.
    fn implied(
        &mut self,
        inside: Inside,
        first: bool,
        ports: Option<Ports>,
        start: Token,
        list_empty: bool,
    ) -> Option<Endpoint> {
        let token = self.peek();
        let nested = inside != Inside::File;
        let given = ports.is_some();
        let implied = nested
            && match token.kind {
                TokenKind::Arrow | TokenKind::DoubleArrow => first && (given || list_empty),
                Char(',') => given,
                TokenKind::Colons => false,
                _ => !first && (given || list_empty),
            };
        if implied {
            let span = ports.as_ref().map_or(start.span, |p| p.span);
            let (target, inputs, outputs) = match first {
                true => (Target::ImpliedInput, None, ports),
                false => (Target::ImpliedOutput, ports, None),
            };
            return Some(Endpoint { inputs, target, outputs, span });
        }
        if let Some(ports) = ports {
            self.diags.error(ports.span, "stranded port ignored");
        }
        if list_empty && !(nested && first && matches!(token.kind, Char('}' | ')') | TokenKind::Bars)) {
            self.next_unless_closing(token);
            self.syntax_error(token);
        }
        None
    }

    /// A token that closes something, or begins a statement, is worth keeping after an error.
    fn next_unless_closing(&mut self, token: Token) {
        let keep = matches!(
            token.kind,
            Char('}' | ')' | ';')
                | TokenKind::Bars
                | TokenKind::ElementClass
                | TokenKind::Require
                | TokenKind::Define
                | TokenKind::Arrow
                | TokenKind::DoubleArrow
                | TokenKind::End
        );
        if !keep {
            self.next();
        }
    }

    /// The element itself; `None` if the next token begins none.
    fn target(&mut self) -> Option<Target> {
        let token = self.peek();
        match token.kind {
            TokenKind::Ident => {
                self.next();
                let name = self.ident(token);
                if self.accept(TokenKind::Colons).is_some() {
                    return Some(self.declared(name));
                }
                Some(match self.optional_config() {
                    None => Target::Name(name),
                    config => Target::Anonymous { class: ClassRef::Name(name), config },
                })
            }
            Char('{') => {
                self.next();
                let class = ClassRef::Compound(self.compound(token));
                let config = self.optional_config();
                Some(Target::Anonymous { class, config })
            }
            Char('(') => {
                self.next();
                let group = self.group(token);
                if let Some(config) = self.optional_config() {
                    self.diags.error(config.span, "configuration string ignored on element reference");
                }
                Some(Target::Group(group))
            }
            _ => None,
        }
    }

    /// The class after `name ::`.
    fn declared(&mut self, name: Ident) -> Target {
        let token = self.peek();
        let class = match token.kind {
            TokenKind::Ident => {
                self.next();
                ClassRef::Name(self.ident(token))
            }
            Char('{') => {
                self.next();
                ClassRef::Compound(self.compound(token))
            }
            _ => {
                self.diags.error(token.span, "missing element type in declaration");
                // An empty name is the class of elements whose class is not worth a second error.
                ClassRef::Name(Ident { text: String::new(), span: token.span })
            }
        };
        let config = self.optional_config();
        Target::Declared { name, class, config }
    }

    /// `[…]` if it is there. An empty pair of brackets stands for no ports.
    fn ports(&mut self) -> Option<Ports> {
        let open = self.accept(Char('['))?;
        let mut ports = Ports { ranges: vec![], expandable: false, span: open.span };
        loop {
            let token = self.peek();
            match token.kind {
                TokenKind::Ident => {
                    let low = self.port_number();
                    let high = match self.accept(Char('-')) {
                        Some(_) => self.port_number(),
                        None => low,
                    };
                    if high < low {
                        self.diags.error(token.span, "syntax error: port range goes backwards");
                    }
                    ports.ranges.push((low.min(high), high.max(low)));
                    ports.expandable = false;
                    if self.accept(Char(',')).is_none() {
                        break;
                    }
                    ports.expandable = true;
                }
                Char(']') => break,
                _ => {
                    self.diags.error(token.span, "syntax error: expected port number");
                    self.skip_to_bracket();
                    break;
                }
            }
        }
        match self.accept(Char(']')) {
            Some(close) => ports.span = open.span.to(close.span),
            None => {
                let span = self.peek().span;
                self.diags
                    .push(Diagnostic::error(span, "expected ']'").see(open.span, "the port list opens here"));
            }
        }
        (!ports.ranges.is_empty()).then_some(ports)
    }

    /// Skips what cannot be in a port list, up to its end or the next thing that makes sense.
    fn skip_to_bracket(&mut self) {
        loop {
            match self.peek().kind {
                TokenKind::Ident | TokenKind::Variable | TokenKind::Colons => {}
                Char(c) if !"]{}();".contains(c) => {}
                _ => return,
            }
            self.next();
        }
    }

    fn port_number(&mut self) -> u32 {
        let token = self.peek();
        let Some(token) = (token.kind == TokenKind::Ident).then(|| self.next()) else {
            self.diags.error(token.span, "syntax error: expected port number");
            return 0;
        };
        let text = self.ident(token).text;
        match crate::values::integer(&text, 0, i128::from(u32::MAX)) {
            Ok(number) if number <= i128::from(MAX_PORT) => number as u32,
            Ok(_) => {
                self.diags.error(token.span, format!("port number too large, bound {MAX_PORT}"));
                0
            }
            Err(_) => {
                self.diags.error(token.span, "syntax error: port number should be integer");
                0
            }
        }
    }
}

/// `a, b, c :: Class(config)`: the class and configuration after the last name are those of all.
fn standalone(ends: &[Endpoint]) -> Option<Stmt> {
    let (last, others) = ends.split_last()?;
    if ends.iter().any(|e| e.inputs.is_some() || e.outputs.is_some()) {
        return None;
    }
    let Target::Declared { name, class, config } = &last.target else { return None };
    let mut names = vec![];
    for end in others {
        let Target::Name(name) = &end.target else { return None };
        names.push(name.clone());
    }
    names.push(name.clone());
    Some(Stmt::Declaration(Declaration { names, class: class.clone(), config: config.clone() }))
}
