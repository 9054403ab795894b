//! Elaboration of compound classes: parameters, alternatives, and the ports they offer.

use crate::ast::*;
use crate::diag::Diagnostic;
use crate::elaborate::{ClassDef, ClassId, CompoundDef, Elaborator, collect_declared};
use crate::source::Span;
use std::collections::{HashMap, HashSet};

impl Elaborator<'_> {
    /// Defines all alternatives of a compound class; the first one's id stands for the class.
    pub(crate) fn compound(&mut self, compound: &Compound, name: &str) -> ClassId {
        let mut next = None;
        if let Some(span) = compound.extends {
            next = self.find_class(name);
            if next.is_none() {
                self.diags.error(span, format!("cannot extend unknown element class '{name}'"));
            }
        }
        let ids: Vec<ClassId> =
            compound.overloads.iter().map(|overload| self.overload(overload, name)).collect();
        for &id in ids.iter().rev() {
            if let ClassDef::Compound(def) = &mut self.defs[id] {
                def.next = next;
            }
            next = Some(id);
        }
        match ids.first() {
            Some(&first) => first,
            // Only after a syntax error.
            None => self.add_def(ClassDef::Unknown(name.to_string())),
        }
    }

    fn overload(&mut self, overload: &Overload, name: &str) -> ClassId {
        let outer_body = std::mem::take(&mut self.body);
        let outer_declared = std::mem::take(&mut self.declared);
        self.visible.push(HashMap::new());
        for pseudo in ["input", "output"] {
            self.add_tunnel_node(pseudo.to_string(), overload.span);
        }
        self.body.hidden = 2;
        self.check_formals(&overload.formals);
        collect_declared(&overload.body, &mut self.declared);
        self.statements(&overload.body);

        let printable = if name.is_empty() { "<anonymous>" } else { name };
        let inputs = self.count_pseudo_ports(0, 0, false, printable, overload.span);
        let outputs = self.count_pseudo_ports(1, 0, true, printable, overload.span);
        self.visible.pop();
        let depth = self.visible.len() - 1;
        self.declared = outer_declared;
        let mut body = std::mem::replace(&mut self.body, outer_body);
        body.settle_anonymous_names();
        let formals: Vec<Formal> = overload.formals.clone();
        self.add_def(ClassDef::Compound(Box::new(CompoundDef {
            name: name.to_string(),
            span: overload.span,
            depth,
            formals,
            body,
            inputs,
            outputs,
            next: None,
        })))
    }

    /// Positional parameters, then keywords, then `__REST__`, each name and keyword once.
    fn check_formals(&mut self, formals: &[Formal]) {
        let rank = |f: &Formal| match f.keyword.as_deref() {
            None => 0,
            Some("__REST__") => 2,
            Some(_) => 1,
        };
        let mut order_reported = false;
        let mut keywords = HashSet::new();
        let mut before = 0;
        for formal in formals {
            // A definition of the same name in the body would be a second one.
            self.claim_variable(&formal.name, formal.span);
            if let Some(keyword) = &formal.keyword
                && !keywords.insert(keyword)
            {
                let message = format!("repeated keyword parameter '{keyword}' in compound element");
                self.diags.error(formal.span, message);
            }
            if before > rank(formal) && !order_reported {
                order_reported = true;
                self.diags.push(
                    Diagnostic::error(formal.span, "compound element parameters out of order")
                        .note(None, "(The correct order is '[positional], [keywords], [__REST__]'.)"),
                );
            }
            before = rank(formal);
        }
    }

    /// The number of ports used of a pseudo-element, by the edges from `first_edge` on. Its other side must not
    /// be used, and its ports must be numbered without holes.
    pub(crate) fn count_pseudo_ports(
        &mut self,
        node: usize,
        first_edge: usize,
        output: bool,
        owner: &str,
        span: Span,
    ) -> usize {
        let mut used: Vec<u32> = vec![];
        let mut wrong = None;
        for edge in &self.body.edges[first_edge.min(self.body.edges.len())..] {
            let (inner, outer) = if output { (edge.to, edge.from) } else { (edge.from, edge.to) };
            if inner.0 == node {
                used.push(inner.1);
            }
            if outer.0 == node {
                wrong = wrong.or(Some(edge.span));
            }
        }
        let (name, right) = if output { ("output", "input") } else { ("input", "output") };
        if let Some(at) = wrong {
            let message = format!("'{owner}' pseudoelement '{name}' may only be used as {right}");
            self.diags.error(at, message);
        }
        used.sort_unstable();
        used.dedup();
        let count = used.last().map_or(0, |&last| last as usize + 1);
        let mut present = used.iter().peekable();
        for port in 0..count as u32 {
            if present.next_if_eq(&&port).is_none() {
                self.diags.error(span, format!("'{owner}' {name} {port} missing"));
            }
        }
        count
    }
}
