//! Policy rules as they are written: `PRIORITY [from PREFIX] [tos N] [mark N[/MASK]] [iif N] ACTION`.

use super::error::{RouteError, RuleFault};
use super::family::{Family, bare};
use causeway_fib::Prefix;
use causeway_fib::policy::{Action, PolicyKey, Rule};
use std::num::NonZeroU8;

/// The table that routes go to when none is named, and that [`last`] looks in; Linux's `main`.
pub(crate) const MAIN: NonZeroU8 = NonZeroU8::new(254).expect("not zero");

/// The rule that every policy begins with.
pub(crate) fn last<A: Family>() -> Rule<A> {
    let action = Action::Table(MAIN.get());
    Rule { priority: 32_766, source: None, tos: None, mark: None, interface: None, action }
}

/// Reads a rule, with `prefix` for what is behind `from`.
pub(crate) fn rule<A: Family>(
    text: &str,
    mut prefix: impl FnMut(&str) -> Result<Prefix<A>, RouteError>,
) -> Result<Rule<A>, RouteError> {
    let bad = |why: RuleFault| RouteError::Rule { rule: text.to_owned(), why };
    let mut words = text.split_ascii_whitespace();
    let priority = words.next().and_then(|word| bare(word).ok()).ok_or(bad(RuleFault::Priority))?;
    let mut rule = Rule { priority, ..last() };
    let mut action = None;
    while let Some(word) = words.next() {
        if word == "unreachable" && action.is_none() {
            action = Some(Action::Unreachable);
            continue;
        }
        let value = words.next().ok_or(bad(RuleFault::LacksValue(word.to_owned())))?;
        let of_field =
            |why: RouteError| bad(RuleFault::Value { word: word.to_owned(), why: why.to_string() });
        match word {
            "from" => rule.source = Some(prefix(value).map_err(of_field)?),
            "tos" => rule.tos = Some(bare(value).map_err(of_field)?),
            "iif" => rule.interface = Some(bare(value).map_err(of_field)?),
            "mark" => {
                let (mark, mask) = value.split_once('/').unwrap_or((value, "0xffffffff"));
                rule.mark = Some((bare(mark).map_err(of_field)?, bare(mask).map_err(of_field)?));
            }
            "table" if action.is_none() => {
                action = Some(Action::Table(number(value).map_err(of_field)?.get()))
            }
            _ => return Err(bad(RuleFault::Unexpected(word.to_owned()))),
        }
    }
    rule.action = action.ok_or(bad(RuleFault::Action))?;
    Ok(rule)
}

/// Reads the number of a table.
pub(crate) fn number(text: &str) -> Result<NonZeroU8, RouteError> {
    let number = bare(text).ok().and_then(NonZeroU8::new);
    number.ok_or(RouteError::TableNumber(text.to_owned()))
}

/// The rule as it is written.
pub(crate) fn text<A: Family>(rule: &Rule<A>) -> String {
    let mut text = rule.priority.to_string();
    if let Some(source) = rule.source {
        text += &format!(" from {}/{}", source.first().to_text(), source.len());
    }
    text += &rule.tos.map_or(String::new(), |tos| format!(" tos {tos:#x}"));
    text += &rule.mark.map_or(String::new(), |(mark, mask)| format!(" mark {mark:#x}/{mask:#x}"));
    text += &rule.interface.map_or(String::new(), |interface| format!(" iif {interface}"));
    match rule.action {
        Action::Table(number) => text + &format!(" table {number}"),
        Action::Unreachable => text + " unreachable",
    }
}

/// Reads a packet's fields: `DESTINATION [from ADDRESS] [tos N] [mark N] [iif N]`; what is not given is zero.
pub(crate) fn key<A: Family>(
    text: &str,
    address: impl Fn(&str) -> Result<A, RouteError>,
) -> Result<PolicyKey<A>, RouteError> {
    let mut words = text.split_ascii_whitespace();
    let mut key = PolicyKey { destination: address(words.next().unwrap_or(""))?, ..PolicyKey::default() };
    while let Some(word) = words.next() {
        let value = words.next().ok_or(RouteError::LacksValue(word.to_owned()))?;
        match word {
            "from" => key.source = address(value)?,
            "tos" => key.tos = bare(value)?,
            "mark" => key.mark = bare(value)?,
            "iif" => key.interface = bare(value)?,
            _ => return Err(RouteError::Field(word.to_owned())),
        }
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Rule<u32>, RouteError> {
        rule(text, u32::prefix_of)
    }

    #[test]
    fn rules_read_back_as_they_are_written() {
        for text in [
            "0 table 1",
            "7 unreachable",
            "100 from 10.0.0.0/8 tos 0x10 mark 0x1/0xff iif 3 table 255",
            "100 mark 0x5/0xffffffff unreachable",
        ] {
            assert_eq!(super::text(&read(text).unwrap()), text);
        }
        assert_eq!(read("1 iif 2 mark 5 table 3").unwrap().mark, Some((5, u32::MAX)));
    }

    #[test]
    fn what_is_wrong_with_a_rule_is_named() {
        for (text, why) in [
            ("", "priority"),
            ("from 10.0.0.0/8 table 1", "priority"),
            ("1", "should end"),
            ("1 from 10.0.0.0/8", "should end"),
            ("1 from 10.0.0.0/33 table 1", "from: "),
            ("1 tos 256 table 1", "tos: "),
            ("1 mark 1/x table 1", "mark: "),
            ("1 table 0", "table: '0' is not a table"),
            ("1 table 256", "table: '256' is not a table"),
            ("1 table", "lacks its value"),
            ("1 table 1 table 2", "'table' is not expected"),
            ("1 to 10.0.0.0/8 table 1", "'to' is not expected"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn keys_are_read_by_field() {
        let address = |text: &str| super::super::routes::address::<u32>(text);
        let read = |text: &str| key(text, address);
        let all = PolicyKey { source: 1, destination: 2, tos: 3, mark: 4, interface: 5 };
        assert_eq!(read("0.0.0.2 from 0.0.0.1 tos 3 mark 4 iif 5").unwrap(), all);
        assert!(read("").is_err() && read("0.0.0.2 from").is_err() && read("0.0.0.2 to 1").is_err());
    }
}
