//! Puts mutants into a file of Rust, all at once, each behind a question whether it is on: then a crate is built once, and not
//! once for each of its mutants.
//!
//! It reads a file's mutants from standard input, as cargo-mutants lists them, one a line: number, genre, line, column and
//! replacement, with tabs between them. It rewrites the file and prints the numbers of those that it has no place for: where
//! constants are computed nothing can be asked.
//!
//! What belongs to mutants is between comments with their numbers, `/*<1 2*/` and `/*>*/`, and within it the code of each between
//! `/*=1*/` and `/*>*/`, so that whoever reads the compiler's errors knows which of them do not compile.

use std::collections::BTreeMap;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A mutant that is wanted: its number, and what the code becomes.
struct Mutant {
    number: u32,
    replacement: String,
}

/// Where cargo-mutants says that a mutant is: genre, line, column from 1.
type Place = (String, usize, usize);

/// What a piece of the file becomes.
struct Rewrite {
    range: Range<usize>,
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    /// Of the file, with what is rewritten there.
    Source(Range<usize>),
}

struct Rewriter<'a> {
    source: &'a str,
    wanted: BTreeMap<Place, Vec<Mutant>>,
    rewrites: Vec<Rewrite>,
}

fn bytes(of: &impl Spanned) -> Range<usize> {
    of.span().byte_range()
}

fn on(number: u32) -> String {
    format!("crate::mutants_switch::on({number})")
}

fn place(genre: &str, at: proc_macro2::Span) -> Place {
    (genre.to_owned(), at.start().line, at.start().column + 1)
}

/// Text between the comments of mutants.
fn marked(mutants: &[Mutant], parts: impl IntoIterator<Item = Part>) -> Vec<Part> {
    let numbers: Vec<String> = mutants.iter().map(|m| m.number.to_string()).collect();
    let begin = Part::Text(format!("/*<{}*/", numbers.join(" ")));
    std::iter::once(begin).chain(parts).chain([Part::Text("/*>*/".to_owned())]).collect()
}

/// `if on(1) { ... } else if on(2) { ... } else { ... }`, each mutant as `one` makes it of its replacement.
fn choice(mutants: &[Mutant], one: impl Fn(&str) -> String, otherwise: &str) -> String {
    let chosen = mutants.iter().map(|Mutant { number, replacement }| {
        format!("if {} {{ /*={number}*/{}/*>*/ }} else ", on(*number), one(replacement))
    });
    format!("{}{{ {} }}", chosen.collect::<String>(), one(otherwise))
}

fn text(text: impl Into<String>) -> Part {
    Part::Text(text.into())
}

impl Rewriter<'_> {
    fn take(&mut self, genre: &str, at: proc_macro2::Span) -> Vec<Mutant> {
        self.wanted.remove(&place(genre, at)).unwrap_or_default()
    }

    fn rewrite(&mut self, range: Range<usize>, mutants: &[Mutant], parts: impl IntoIterator<Item = Part>) {
        self.rewrites.push(Rewrite { range, parts: marked(mutants, parts) });
    }

    fn body(&mut self, block: &syn::Block) {
        let Some(first) = block.stmts.first() else { return };
        let mutants = self.take("FnValue", first.span());
        for mutant in mutants {
            let at = bytes(first).start;
            let Mutant { number, replacement } = &mutant;
            let line = format!("if {} {{ return /*={number}*/{replacement}/*>*/; }} ", on(*number));
            self.rewrite(at..at, &[mutant], [text(line)]);
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block, visit: impl FnOnce(&mut Self)) {
        let before = self.rewrites.len();
        // Something else in the place of `impl Iterator` would be another type.
        if !self.source[bytes(&signature.output)].contains("impl ") {
            self.body(block);
        }
        visit(self);
        // What asks is not for constants, and most such functions are called elsewhere.
        if let Some(constant) = signature.constness.as_ref().filter(|_| self.rewrites.len() > before) {
            self.rewrites.push(Rewrite { range: bytes(constant), parts: Vec::new() });
        }
    }
}

impl<'ast> Visit<'ast> for Rewriter<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block, |this| visit::visit_item_fn(this, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block, |this| visit::visit_impl_item_fn(this, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let Some(block) = &item.default else { return };
        self.function(&item.sig, block, |this| visit::visit_trait_item_fn(this, item));
    }

    // Patterns and what is below are computed by the compiler, which cannot ask.
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_expr_repeat(&mut self, array: &'ast syn::ExprRepeat) {
        self.visit_expr(&array.expr);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        let mutants = self.take("BinaryOperator", expr.op.span());
        if !mutants.is_empty() {
            let (range, operator) = (bytes(expr), bytes(&expr.op));
            let (left, right) =
                (Part::Source(range.start..operator.start), Part::Source(operator.end..range.end));
            let parts = parts_of_binary(&self.source[operator], &mutants, left, right);
            self.rewrite(range, &mutants, parts);
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        let mutants = self.take("UnaryOperator", expr.op.span());
        if !mutants.is_empty() {
            let (range, operator) = (bytes(expr), bytes(&expr.op));
            let chosen =
                choice(&mutants, |operator| format!("{operator}__x"), &self.source[operator.clone()]);
            let operand = Part::Source(operator.end..range.end);
            self.rewrite(
                range,
                &mutants,
                [text("(match ("), operand, text(format!(") {{ __x => {chosen} }})"))],
            );
        }
        visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        // An arm that may be deleted counts for nothing; if the others are not for all values, the compiler says so of the whole.
        let plain = expr.arms.iter().filter(|arm| !matches!(arm.pat, syn::Pat::Guard(_)));
        let deleted = plain.filter_map(|arm| self.wanted.get(&place("MatchArm", arm.span()))).flatten();
        let numbers: Vec<String> = deleted.map(|mutant| mutant.number.to_string()).collect();
        if !numbers.is_empty() {
            let begin = text(format!("/*={}*/", numbers.join(" ")));
            let parts = vec![begin, Part::Source(bytes(expr)), text("/*>*/")];
            self.rewrites.push(Rewrite { range: bytes(expr), parts });
        }
        visit::visit_expr_match(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let mut mutants = self.take("MatchArm", arm.span());
        let mut holds: Vec<String> = mutants.iter().map(|m| format!("!{}", on(m.number))).collect();
        let syn::Pat::Guard(syn::PatGuard { guard, .. }) = &arm.pat else {
            if !mutants.is_empty() {
                let at = bytes(&arm.pat).end;
                self.rewrite(at..at, &mutants, [text(format!(" if {}", holds.join(" && ")))]);
            }
            return self.visit_expr(&arm.body);
        };
        for mutant in self.take("MatchArmGuard", guard.span()) {
            let on = on(mutant.number);
            holds.push(if mutant.replacement == "true" { on } else { format!("!{on}") });
            mutants.push(mutant);
        }
        if !mutants.is_empty() {
            // Deleted, or replaced by `false`: not; replaced by `true`: so; else as it says.
            let (not, so): (Vec<_>, Vec<_>) =
                holds.into_iter().partition(|question| question.starts_with('!'));
            let all = |questions: Vec<String>, joint: &str| {
                questions.iter().map(|q| format!("{q}{joint}")).collect::<String>()
            };
            let before = format!("{}({}(", all(not, " && "), all(so, " || "));
            self.rewrite(bytes(guard), &mutants, [text(before), Part::Source(bytes(guard)), text("))")]);
        }
        self.visit_expr(guard);
        self.visit_expr(&arm.body);
    }
}

/// Both sides are computed once, where they were, and in their order.
fn parts_of_binary(operator: &str, mutants: &[Mutant], left: Part, right: Part) -> Vec<Part> {
    let plain = |by: &str| choice(mutants, |operator| format!("{by}__l {operator} {by}__r"), operator);
    match operator {
        // The other of the two asks for the right side just when this one does not.
        "&&" | "||" => {
            let same = if operator == "&&" { "!=" } else { "==" };
            let asks = format!(") {{ __l => if __l {same} {} {{ ", on(mutants[0].number));
            vec![text("(match ("), left, text(asks), right, text(" } else { __l } })")]
        }
        // They look at their sides and do not take them.
        "==" | "!=" | "<" | "<=" | ">" | ">=" => {
            vec![
                text("(match (&("),
                left,
                text("), &("),
                right,
                text(format!(")) {{ (__l, __r) => {} }})", plain("*"))),
            ]
        }
        // The right side comes first, and the left one is a place.
        _ if operator.ends_with('=') => {
            let chosen = choice(mutants, |operator| format!("*__l {operator} __r;"), operator);
            vec![
                text("(match ("),
                right,
                text(") { __r => { let __l = &mut "),
                left,
                text(format!("; {chosen} }} }})")),
            ]
        }
        _ => vec![
            text("(match ("),
            left,
            text(", "),
            right,
            text(format!(") {{ (__l, __r) => {} }})", plain(""))),
        ],
    }
}

/// A range of the source with all that is rewritten in it, of the rewrites from the given one on, which are in order, outer ones
/// before inner ones.
fn rewritten(source: &str, rewrites: &[Rewrite], range: Range<usize>) -> String {
    let (mut text, mut at) = (String::new(), range.start);
    for (index, rewrite) in rewrites.iter().enumerate() {
        let Range { start, end } = rewrite.range;
        if start < at || end > range.end {
            continue;
        }
        text.push_str(&source[at..start]);
        for part in &rewrite.parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Source(part) => text.push_str(&rewritten(source, &rewrites[index + 1..], part.clone())),
            }
        }
        at = end;
    }
    text + &source[at..range.end]
}

/// Puts mutants into a source; returns it, and the numbers of those that it has no place for.
fn with_mutants(source: &str, wanted: BTreeMap<Place, Vec<Mutant>>) -> syn::Result<(String, Vec<u32>)> {
    let file = syn::parse_file(source)?;
    let mut rewriter = Rewriter { source, wanted, rewrites: Vec::new() };
    rewriter.visit_file(&file);
    // What is put between two characters comes before what begins there.
    rewriter
        .rewrites
        .sort_by_key(|Rewrite { range, .. }| (range.start, !range.is_empty(), usize::MAX - range.end));
    let left = rewriter.wanted.into_values().flatten().map(|mutant| mutant.number).collect();
    Ok((rewritten(source, &rewriter.rewrites, 0..source.len()), left))
}

fn read(lines: impl Iterator<Item = String>) -> Option<BTreeMap<Place, Vec<Mutant>>> {
    let mut wanted: BTreeMap<Place, Vec<Mutant>> = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[number, genre, line, column, replacement] = &fields[..] else { return None };
        let place = (genre.to_owned(), line.parse().ok()?, column.parse().ok()?);
        let mutant = Mutant { number: number.parse().ok()?, replacement: replacement.to_owned() };
        wanted.entry(place).or_default().push(mutant);
    }
    Some(wanted)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: schemata FILE <MUTANTS")?;
    let lines = std::io::stdin().lines().collect::<Result<Vec<String>, _>>()?;
    let wanted = read(lines.into_iter())
        .ok_or("a mutant is: number, genre, line, column, replacement, with tabs between")?;
    let (text, left) = with_mutants(&std::fs::read_to_string(&path)?, wanted)?;
    std::fs::write(path, text)?;
    left.iter().for_each(|number| println!("{number}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
const MOST: u32 = 1 + 2;
const fn less(a: u32) -> u32 { a - MOST }
fn f(mut a: u32, b: bool) -> u32 {
    a += less(3);
    match a { 1 if b && a == 3 => a * 1 * 2, 2 => 0, _ => !a }
}
fn g() -> impl Iterator<Item = u32> { [1].into_iter() }
";

    /// A mutant at the `nth` time that `at` is in the source.
    fn mutant(genre: &str, at: &str, nth: usize, number: u32, replacement: &str) -> String {
        let (offset, _) = SOURCE.match_indices(at).nth(nth).expect("in the source");
        let before = &SOURCE[..offset];
        let (line, column) =
            (before.lines().count(), before.len() - before.rfind('\n').map_or(0, |end| end + 1) + 1);
        let line = if column == 1 { line + 1 } else { line };
        format!("{number}\t{genre}\t{line}\t{column}\t{replacement}")
    }

    fn all() -> Vec<String> {
        vec![
            mutant("BinaryOperator", "+", 0, 0, "-"),
            mutant("FnValue", "a - MOST", 0, 1, "0"),
            mutant("BinaryOperator", "-", 1, 2, "+"),
            mutant("FnValue", "a += ", 0, 3, "1"),
            mutant("BinaryOperator", "+=", 0, 4, "-="),
            mutant("MatchArm", "1 if", 0, 5, ""),
            mutant("MatchArmGuard", "b && a", 0, 6, "true"),
            mutant("MatchArmGuard", "b && a", 0, 7, "false"),
            mutant("BinaryOperator", "&&", 0, 8, "||"),
            mutant("BinaryOperator", "==", 0, 9, "!="),
            mutant("BinaryOperator", "*", 0, 10, "+"),
            mutant("BinaryOperator", "*", 1, 11, "+"),
            mutant("MatchArm", "2 =>", 0, 12, ""),
            mutant("UnaryOperator", "!a", 0, 13, ""),
            mutant("FnValue", "[1].into", 0, 14, "::std::iter::empty()"),
        ]
    }

    #[test]
    fn each_mutant_is_asked_for_once_but_where_nothing_can_be_asked() {
        let (text, left) = with_mutants(SOURCE, read(all().into_iter()).expect("mutants")).expect("Rust");
        assert_eq!(left, [0, 14]);
        syn::parse_file(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        for number in 0..15 {
            let asked = text.matches(&format!("on({number})")).count();
            assert_eq!(asked, usize::from(!left.contains(&number)), "{number} in {text}");
        }
        assert_eq!(text.matches("/*<").count() + text.matches("/*=").count(), text.matches("/*>").count());
        assert!(!text.contains("const fn"), "what asks is none: {text}");
    }

    #[test]
    fn without_mutants_nothing_changes() {
        assert_eq!(with_mutants(SOURCE, BTreeMap::new()).expect("Rust"), (SOURCE.to_owned(), Vec::new()));
    }

    #[test]
    fn lines_that_say_something_else_are_refused() {
        for line in ["", "1\tFnValue\t1\t1", "one\tFnValue\t1\t1\t0", "1\tFnValue\t1\t1\t0\t0"] {
            assert!(read([line.to_owned()].into_iter()).is_none(), "{line}");
        }
    }
}
