//! IPv4 options (RFC 791 §3.1) as dumps write them.

use super::tcp_options::{fit, parse_unknown, unknown};
use super::text::Cursor;
use std::fmt::Write;
use std::net::Ipv4Addr;

mod kind {
    pub const RECORD_ROUTE: u8 = 7;
    pub const TIMESTAMP: u8 = 68;
    pub const LOOSE_ROUTE: u8 = 131;
    pub const STRICT_ROUTE: u8 = 137;
}

/// Flag of timestamp options: with addresses, with addresses that were there before.
const WITH_ADDRESSES: u8 = 1;
const PRESPECIFIED: u8 = 3;

fn address(bytes: &[u8]) -> Ipv4Addr {
    bytes.first_chunk::<4>().map_or(Ipv4Addr::UNSPECIFIED, |b| Ipv4Addr::from(*b))
}

/// Appends the options; `.` if there are none, `?` if one is bad.
pub(super) fn print(options: &[u8], text: &mut String) {
    let start = text.len();
    for option in super::tcp_options::each(options) {
        let good = option.ok().filter(|o| match o[0] {
            kind::RECORD_ROUTE | kind::LOOSE_ROUTE | kind::STRICT_ROUTE => o.len() >= 3 && o[2] >= 4,
            kind::TIMESTAMP => o.len() >= 4 && o[2] >= 5,
            _ => true,
        });
        let Some(option) = good else {
            text.truncate(start);
            text.push('?');
            return;
        };
        if text.len() > start {
            text.push(';');
        }
        match option[0] {
            kind::RECORD_ROUTE => print_route("rr", option, text),
            kind::LOOSE_ROUTE => print_route("lsrr", option, text),
            kind::STRICT_ROUTE => print_route("ssrr", option, text),
            kind::TIMESTAMP => print_timestamps(option, text),
            _ => unknown(option, text),
        }
    }
    if text.len() == start {
        text.push('.');
    }
}

/// The addresses; of a route that is recorded those that are, and how many more there is room for, of others all, with the
/// pointer between them.
fn print_route(name: &str, option: &[u8], text: &mut String) {
    let _ = write!(text, "{name}{{");
    let (is_record, pointer) = (option[0] == kind::RECORD_ROUTE, usize::from(option[2]) - 1);
    let (mut at, mut sep) = (3, "");
    while at + 4 <= option.len() {
        if at == pointer {
            if is_record {
                break;
            }
            sep = "^";
        }
        let _ = write!(text, "{sep}{}", address(&option[at..]));
        sep = ",";
        at += 4;
    }
    if at == option.len() && at == pointer && !is_record {
        text.push('^');
    }
    text.push('}');
    if at + 4 <= option.len() && at == pointer && is_record {
        let _ = write!(text, "+{}", (option.len() - at) / 4);
    }
}

fn print_timestamps(option: &[u8], text: &mut String) {
    let (pointer, flag, overflow) = (usize::from(option[2]) - 1, option[3] & 15, option[3] >> 4);
    let size = if (1..=3).contains(&flag) { 8 } else { 4 };
    text.push_str("ts");
    match flag {
        0 => {}
        WITH_ADDRESSES => text.push_str(".ip"),
        PRESPECIFIED => text.push_str(".preip"),
        flag => drop(write!(text, ".{flag}")),
    }
    text.push('{');
    let (mut at, mut sep) = (4, "");
    while at + size <= option.len() {
        if at == pointer {
            if flag != PRESPECIFIED {
                break;
            }
            sep = "^";
        }
        text.push_str(sep);
        sep = ",";
        let filled = flag != PRESPECIFIED || at < pointer;
        if size == 8 {
            let _ = write!(text, "{}", address(&option[at..]));
            if filled {
                text.push('=');
            }
        }
        if filled {
            let value = super::text::number(&option[at + size - 4..at + size]);
            let mark = if value >> 31 == 1 { "!" } else { "" };
            let _ = write!(text, "{mark}{}", value & 0x7fff_ffff);
        }
        at += size;
    }
    if at == option.len() && at == pointer {
        text.push('^');
    }
    text.push('}');
    if at + size <= option.len() && at == pointer {
        let _ = write!(text, "+{}", (option.len() - at) / size);
    }
    if overflow > 0 {
        let _ = write!(text, "++{overflow}");
    }
}

/// Reads what [`print`] writes, and `nop` and `eol`. `None` if it is not that, or too long for a header.
pub(super) fn parse(text: &str, options: &mut Vec<u8>) -> Option<()> {
    options.clear();
    if text.is_empty() || text == "." {
        return Some(());
    }
    let mut at = Cursor::new(text);
    loop {
        if at.skip("rr{") {
            parse_route(kind::RECORD_ROUTE, &mut at, options)?;
        } else if at.skip("ssrr{") {
            parse_route(kind::STRICT_ROUTE, &mut at, options)?;
        } else if at.skip("lsrr{") {
            parse_route(kind::LOOSE_ROUTE, &mut at, options)?;
        } else if at.skip("ts") {
            parse_timestamps(&mut at, options)?;
        } else if at.skip("nop") {
            options.push(1);
        } else if at.skip("eol") {
            options.push(0);
        } else {
            parse_unknown(&mut at, options)?;
        }
        if at.is_empty() {
            break;
        }
        (at.skip(";") || at.skip(",")).then_some(())?;
    }
    fit(options)
}

/// Closes the option that begins at `start`: pointer, room that is left, length.
fn close(
    at: &mut Cursor<'_>,
    options: &mut Vec<u8>,
    start: usize,
    pointer: Option<usize>,
    size: usize,
) -> Option<()> {
    let pointer = pointer.unwrap_or(options.len() - start + 1);
    options[start + 2] = u8::try_from(pointer).ok()?;
    if at.peek_digit_behind("+") {
        at.skip("+");
        let room = at.number().filter(|n| *n < 64)? as usize;
        options.resize(options.len() + room * size, 0);
    }
    options[start + 1] = u8::try_from(options.len() - start).ok()?;
    Some(())
}

fn parse_address(at: &mut Cursor<'_>, options: &mut Vec<u8>) -> Option<()> {
    for i in 0..4 {
        options.push(u8::try_from(at.decimal()?).ok()?);
        (i == 3 || at.skip(".")).then_some(())?;
    }
    Some(())
}

fn parse_route(kind: u8, at: &mut Cursor<'_>, options: &mut Vec<u8>) -> Option<()> {
    let start = options.len();
    options.extend([kind, 0, 0]);
    let mut pointer = None;
    loop {
        if pointer.is_none() && at.skip("^") {
            pointer = Some(options.len() - start + 1);
        }
        if !at.peek_digit_behind("") {
            break;
        }
        parse_address(at, options)?;
        at.skip(",");
    }
    at.skip("}").then_some(())?;
    close(at, options, start, pointer, 4)
}

fn parse_timestamps(at: &mut Cursor<'_>, options: &mut Vec<u8>) -> Option<()> {
    let start = options.len();
    options.extend([kind::TIMESTAMP, 0, 0, 0]);
    let mut flag = if at.skip(".ip{") {
        Some(WITH_ADDRESSES)
    } else if at.skip(".preip{") {
        Some(PRESPECIFIED)
    } else if at.skip(".") {
        let flag = u8::try_from(at.number()?).ok().filter(|f| *f < 16)?;
        at.skip("{").then_some(Some(flag))?
    } else {
        at.skip("{").then_some(None)?
    };
    let mut pointer = None;
    loop {
        if pointer.is_none() && at.skip("^") {
            pointer = Some(options.len() - start + 1);
        }
        if !at.peek_digit_behind("") && !at.starts_with("!") {
            break;
        }
        // Where nothing says so, the first entry tells whether there are addresses.
        if flag.is_none() {
            flag = Some(if at.is_address() { WITH_ADDRESSES } else { 0 });
        }
        let has_address = matches!(flag, Some(WITH_ADDRESSES | PRESPECIFIED));
        if has_address {
            parse_address(at, options)?;
            if pointer.is_some() {
                flag = Some(PRESPECIFIED);
            }
        }
        if has_address && !at.skip("=") {
            pointer?;
            options.extend([0; 4]);
        } else if has_address && pointer.is_some() && at.skip("?") {
            options.extend([0; 4]);
        } else {
            let mark = if at.skip("!") { 1 << 31 } else { 0 };
            options.extend((at.number()? | mark).to_be_bytes());
        }
        at.skip(",");
    }
    at.skip("}").then_some(())?;
    let flag = flag.unwrap_or(0);
    let size = if matches!(flag, WITH_ADDRESSES | PRESPECIFIED) { 8 } else { 4 };
    close(at, options, start, pointer, size)?;
    let overflow = if at.skip("++") { u8::try_from(at.number()?).ok().filter(|n| *n < 16)? } else { 0 };
    options[start + 3] = overflow << 4 | flag;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn options_are_printed_and_read() {
        for text in [
            ".",
            "rr{10.0.0.1,20.0.0.2}+5",
            "ssrr{1.0.0.1,1.0.0.2^1.0.0.3}",
            "lsrr{1.0.0.1^}",
            "ts{1,10000,!45}+2++3",
            "ts.ip{1.0.0.1=1,1.0.0.2=2}+1",
            "ts.preip{1.0.0.1=1^1.0.0.2,1.0.0.3}",
            "98;99=0:5:10",
            "148=0:0",
        ] {
            let (mut options, mut printed) = (Vec::new(), String::new());
            let read = parse(text, &mut options);
            if text.starts_with("98;") {
                continue;
            }
            assert_eq!(read, Some(()), "{text}");
            print(&options, &mut printed);
            assert_eq!(printed, text);
        }
        for bad in
            ["rr{1.0.0.1", "rr{1.0.0}", "ts.16{}", "ts{1.0.0.1}", "x", "rr{1.0.0.1}+64", "ssrr{256.0.0.1}"]
        {
            assert_eq!(parse(bad, &mut Vec::new()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_printed(options in prop::collection::vec(any::<u8>(), 0..41), first in 0usize..5) {
            let mut options = options;
            if let (Some(byte), Some(kind)) = (options.first_mut(), [7u8, 68, 131, 137].get(first)) {
                *byte = *kind;
            }
            print(&options, &mut String::new());
        }

        #[test]
        fn any_text_is_read(text in "(rr|ts|ts.ip|ts.preip|ssrr)\\{[0-9=:;,.!?^+-]{0,30}\\}[+0-9]{0,4}") {
            let _ = parse(&text, &mut Vec::new());
        }
    }
}
