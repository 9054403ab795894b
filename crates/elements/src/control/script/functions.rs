//! Handlers of a script that only compute: arithmetic, comparisons, truth values, words.

use super::number::{general, integer, real};
use super::text::{shift, words};
use causeway_engine::Error;
use causeway_lang::args::{escape_for_quotes, unquote};
use causeway_lang::values::{boolean, filename};
use std::cmp::Ordering;
use std::ops::RangeInclusive;

/// What gives a random number of a range.
pub(super) type Draw<'a> = &'a mut dyn FnMut(RangeInclusive<u32>) -> u32;

/// What `handler` makes of its parameters; `None` if it is none of these.
pub(super) fn call(handler: &str, text: &str, draw: Draw<'_>) -> Option<Result<String, Error>> {
    Some(match handler {
        "add" | "sub" | "min" | "max" | "mul" | "div" | "idiv" => arithmetic(handler, text),
        "mod" | "rem" => remainder(handler, text),
        "neg" | "abs" => signed(handler, text),
        "eq" | "ne" | "gt" | "ge" | "lt" | "le" => compare(handler, text),
        "not" => boolean(text).map(|x| (!x).to_string()).map_err(|_| syntax()),
        "and" | "or" | "nand" | "nor" => logic(handler, text),
        "if" => choose(text),
        "in" => Ok(is_in(text).to_string()),
        "first" => Ok(words(text).into_iter().next().unwrap_or_default()),
        "sprintf" => super::format::sprintf(text),
        "random" => random(text, draw),
        "length" => Ok(text.len().to_string()),
        "unquote" => Ok(unquote(text)),
        "htons" | "ntohs" => integer_32(text).map(|x| (x as u16).to_be().to_string()),
        "htonl" | "ntohl" => integer_32(text).map(|x| (x as u32).to_be().to_string()),
        "cat" => file(text),
        "catq" => file(text).map(|text| format!("\"{}\"", escape_for_quotes(&text))),
        _ => return None,
    })
}

pub(super) fn syntax() -> Error {
    Error::new("syntax error")
}

/// A list of numbers: integers as long as all are and nothing is divided.
fn arithmetic(handler: &str, text: &str) -> Result<String, Error> {
    let identity = if matches!(handler, "add" | "sub") { 0 } else { 1 };
    let (mut sum, mut float) = (identity, identity as f64);
    let mut floating = matches!(handler, "div" | "idiv");
    for (i, word) in words(text).iter().enumerate() {
        let value = integer(word);
        if !floating && value.is_none() {
            (floating, float) = (true, sum as f64);
        }
        if floating {
            let value = real(word).ok_or("expected list of numbers")?;
            float = match handler {
                _ if i == 0 => value,
                "add" => float + value,
                "sub" => float - value,
                "min" => float.min(value),
                "max" => float.max(value),
                "mul" => float * value,
                _ => float / value,
            };
            continue;
        }
        let value = value.unwrap_or(0);
        sum = match handler {
            _ if i == 0 => value,
            "add" => sum.wrapping_add(value),
            "sub" => sum.wrapping_sub(value),
            "min" => sum.min(value),
            "max" => sum.max(value),
            _ => sum.wrapping_mul(value),
        };
    }
    Ok(match (handler, floating) {
        // What no integer is becomes the least one, as on the machines that Click runs on.
        ("idiv", _) if !(i64::MIN as f64..i64::MAX as f64).contains(&float) => i64::MIN.to_string(),
        ("idiv", _) => (float as i64).to_string(),
        (_, true) => general(float),
        (_, false) => sum.to_string(),
    })
}

/// Exactly two words.
fn two(text: &str) -> Result<(String, String), Error> {
    let mut rest = text.to_owned();
    let (a, b) = (shift(&mut rest), shift(&mut rest));
    match rest.is_empty() && !a.is_empty() && !b.is_empty() {
        true => Ok((a, b)),
        false => Err(Error::new("expected two numbers")),
    }
}

fn remainder(handler: &str, text: &str) -> Result<String, Error> {
    let wrong = || Error::new("expected two numbers");
    let (a, b) = two(text)?;
    if let (Some(a), Some(b)) = (integer(&a), integer(&b)) {
        return a.checked_rem(b).map(|r| r.to_string()).ok_or_else(|| Error::new("division by zero"));
    }
    match (handler, real(&a), real(&b)) {
        ("rem", Some(a), Some(b)) => Ok(general(a % b)),
        _ => Err(wrong()),
    }
}

fn signed(handler: &str, text: &str) -> Result<String, Error> {
    if let Some(x) = integer(text) {
        let negated = handler == "neg" || x < 0;
        return Ok(if negated { x.wrapping_neg() } else { x }.to_string());
    }
    let x = real(text).ok_or("expected one number")?;
    Ok(general(if handler == "neg" { -x } else { x.abs() }))
}

/// Numbers by their values, others as texts.
fn compare(handler: &str, text: &str) -> Result<String, Error> {
    let (a, b) = two(text)?;
    let integers = integer(&a).zip(integer(&b)).map(|(a, b)| a.cmp(&b));
    // A number that is none is greater than any.
    let reals = || real(&a).zip(real(&b)).map(|(a, b)| a.partial_cmp(&b).unwrap_or(Ordering::Greater));
    let order = integers.or_else(reals).unwrap_or_else(|| unquote(&a).cmp(&unquote(&b)));
    let holds = match handler {
        "eq" => order.is_eq(),
        "ne" => order.is_ne(),
        "gt" => order.is_gt(),
        "ge" => order.is_ge(),
        "lt" => order.is_lt(),
        _ => order.is_le(),
    };
    Ok(holds.to_string())
}

/// Parameters are looked at until the answer is known.
fn logic(handler: &str, text: &str) -> Result<String, Error> {
    let all = matches!(handler, "and" | "nand");
    let mut value = all;
    for word in words(text) {
        value = boolean(&word).map_err(|_| syntax())?;
        if value != all {
            break;
        }
    }
    Ok((value != matches!(handler, "nand" | "nor")).to_string())
}

fn choose(text: &str) -> Result<String, Error> {
    let mut rest = text.to_owned();
    let condition = boolean(&shift(&mut rest)).map_err(|_| syntax())?;
    let first = shift(&mut rest);
    Ok(if condition { first } else { shift(&mut rest) })
}

fn is_in(text: &str) -> bool {
    let words: Vec<String> = words(text).iter().map(|word| unquote(word)).collect();
    words.split_first().is_some_and(|(word, rest)| !word.is_empty() && rest.contains(word))
}

fn random(text: &str, draw: Draw<'_>) -> Result<String, Error> {
    let words = words(text);
    let number = |name: &str, i: usize| {
        words
            .get(i)
            .map(|w| causeway_lang::values::unsigned_32(w).map_err(|e| Error::caused_by(e).of(name)))
            .transpose()
    };
    if words.is_empty() {
        return Ok(draw(0..=i32::MAX as u32).to_string());
    }
    let (first, second) = (number("N1", 0)?.unwrap_or(0), number("N2", 1)?);
    let range = match second {
        _ if words.len() > 2 => return Err(Error::new("too many arguments")),
        Some(second) if second >= first => first..=second,
        None if first > 0 => 0..=first - 1,
        _ => return Err(Error::new("bad N")),
    };
    Ok(draw(range).to_string())
}

fn integer_32(text: &str) -> Result<i32, Error> {
    causeway_lang::values::signed_32(text).map_err(|_| syntax())
}

/// A file's contents.
fn file(text: &str) -> Result<String, Error> {
    let name = filename(text, std::env::var("HOME").ok().as_deref()).map_err(|_| Error::new("bad FILE"))?;
    let bytes = std::fs::read(&name).map_err(|e| Error::new(without_number(&e)).of(&name))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What the system says, without its number.
pub(in crate::control) fn without_number(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(call_text: &str) -> Result<String, Error> {
        let (handler, text) = call_text.split_once(' ').unwrap_or((call_text, ""));
        call(handler, text, &mut |range| *range.end()).unwrap()
    }

    #[test]
    fn functions_compute() {
        for (text, value) in [
            ("add 10 5 2", "17"),
            ("add", "0"),
            ("add 010 1", "9"),
            ("add 1.5 1", "2.5"),
            ("sub 10 5 2", "3"),
            ("sub 5", "5"),
            ("mul 3 4", "12"),
            ("mul", "1"),
            ("div 7 2", "3.5"),
            ("div 6 2", "3"),
            ("idiv 7 2", "3"),
            ("idiv 1 0", "-9223372036854775808"),
            ("min 5 10 2", "2"),
            ("max 5 10.5 2", "10.5"),
            ("mod 7 3", "1"),
            ("mod -7 3", "-1"),
            ("rem 7.5 2", "1.5"),
            ("neg 5", "-5"),
            ("neg 1.5", "-1.5"),
            ("abs -5", "5"),
            ("abs -.5", "0.5"),
            ("eq 10 0xA", "true"),
            ("eq 1.0 1", "true"),
            ("eq 10x 10x", "true"),
            ("eq \"a\" a", "true"),
            ("lt a b", "true"),
            ("le 9 8", "false"),
            ("ge 9 8", "true"),
            ("gt 2 10", "false"),
            ("ne 1 1", "false"),
            ("not true", "false"),
            ("and true 1 yes", "true"),
            ("and", "true"),
            ("and false x", "false"),
            ("or false 1", "true"),
            ("nand true true", "false"),
            ("nor false", "true"),
            ("if true a b", "a"),
            ("if 0 a b", "b"),
            ("in foo bar foo", "true"),
            ("in foo bar", "false"),
            ("first \"a b\" c", "\"a b\""),
            ("length abcdef", "6"),
            ("unquote \"a b\"", "a b"),
            ("htons 1", "256"),
            ("ntohl 1", "16777216"),
            ("random 1", "0"),
            ("random 7 7", "7"),
        ] {
            assert_eq!(of(text), Ok(value.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_computed_is_named() {
        for (text, why) in [
            ("add 1 x", "expected list of numbers"),
            ("mod 1 0", "division by zero"),
            ("mod 1.5 1", "expected two numbers"),
            ("eq 1", "expected two numbers"),
            ("eq 1 2 3", "expected two numbers"),
            ("neg x", "expected one number"),
            ("not maybe", "syntax error"),
            ("or maybe", "syntax error"),
            ("if maybe a b", "syntax error"),
            ("random 0", "bad N"),
            ("random 5 1", "bad N"),
            ("htons x", "syntax error"),
            ("cat /nonexistent/x", "/nonexistent/x: No such file or directory"),
        ] {
            assert_eq!(of(text), Err(Error::new(why)), "{text}");
        }
    }
}
