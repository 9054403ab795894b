//! TCP options as dumps write them.

use super::text::Cursor;
use std::fmt::Write;

/// Which options are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// All.
    All,
    /// All but padding and timestamps.
    NoTimestamp,
    /// Selective acknowledgements (RFC 2018).
    Sack,
}

mod kind {
    pub const END: u8 = 0;
    pub const NO_OPERATION: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMP: u8 = 8;
}

impl Choice {
    fn has(self, option: u8) -> bool {
        let padding = matches!(option, kind::END | kind::NO_OPERATION);
        match self {
            Choice::All => true,
            Choice::NoTimestamp => option != kind::TIMESTAMP && !padding,
            Choice::Sack => matches!(option, kind::SACK | kind::SACK_PERMITTED),
        }
    }
}

/// Whether the option has the length that its kind has.
pub(crate) fn is_well_formed(option: &[u8]) -> bool {
    match option[0] {
        kind::MSS => option.len() == 4,
        kind::WINDOW_SCALE => option.len() == 3,
        kind::SACK_PERMITTED => option.len() == 2,
        kind::SACK => option.len() % 8 == 2,
        kind::TIMESTAMP => option.len() == 10,
        _ => true,
    }
}

/// The options without padding, one after the other; an error behind the last good one.
pub(crate) fn each(mut rest: &[u8]) -> impl Iterator<Item = Result<&[u8], ()>> {
    std::iter::from_fn(move || {
        loop {
            match *rest.first()? {
                kind::END => return None,
                kind::NO_OPERATION => rest = &rest[1..],
                _ => break,
            }
        }
        let len = rest.get(1).map_or(0, |len| usize::from(*len));
        if len < 2 || len > rest.len() {
            rest = &[];
            return Some(Err(()));
        }
        let (option, behind) = rest.split_at(len);
        rest = behind;
        Some(Ok(option))
    })
}

/// An option of unknown kind: `98` or `99=0:5:10`.
pub(super) fn unknown(option: &[u8], text: &mut String) {
    let _ = write!(text, "{}", option[0]);
    for (i, byte) in option[2..].iter().enumerate() {
        let _ = write!(text, "{}{byte}", if i == 0 { '=' } else { ':' });
    }
}

/// Appends the options; `.` if there are none, `?` if one is bad.
pub(crate) fn print(options: &[u8], choice: Choice, text: &mut String) {
    let start = text.len();
    let word = |option: &[u8], at: usize| super::text::number(&option[at..at + 4]);
    for option in each(options) {
        let Some(option) = option.ok().filter(|o| is_well_formed(o)) else {
            text.truncate(start);
            text.push('?');
            return;
        };
        if !choice.has(option[0]) {
            continue;
        }
        if text.len() > start {
            text.push(';');
        }
        match option[0] {
            kind::MSS => drop(write!(text, "mss{}", u16::from_be_bytes([option[2], option[3]]))),
            kind::WINDOW_SCALE => drop(write!(text, "wscale{}", option[2])),
            kind::SACK_PERMITTED => text.push_str("sackok"),
            kind::SACK => {
                for at in (2..option.len()).step_by(8) {
                    let sep = if at > 2 { ";" } else { "" };
                    let _ = write!(text, "{sep}sack{}-{}", word(option, at), word(option, at + 4));
                }
            }
            kind::TIMESTAMP => drop(write!(text, "ts{}:{}", word(option, 2), word(option, 6))),
            _ => unknown(option, text),
        }
    }
    if text.len() == start {
        text.push('.');
    }
}

/// Appends the chosen options as they are, for binary records.
pub(super) fn copy(options: &[u8], choice: Choice, record: &mut Vec<u8>) {
    match choice {
        Choice::All => record.extend_from_slice(options),
        _ => each(options)
            .map_while(Result::ok)
            .filter(|o| choice.has(o[0]))
            .for_each(|option| record.extend_from_slice(option)),
    }
}

/// Reads what [`print`] writes, and `nop` and `eol`. `None` if it is not that, or too long for a header.
pub(super) fn parse(text: &str, choice: Choice, options: &mut Vec<u8>) -> Option<()> {
    options.clear();
    if text.is_empty() || text == "." {
        return Some(());
    }
    let mut at = Cursor::new(text);
    let has = |option: u8| choice.has(option);
    loop {
        if has(kind::MSS) && at.skip("mss") {
            let mss = u16::try_from(at.number()?).ok()?;
            options.extend([kind::MSS, 4]);
            options.extend(mss.to_be_bytes());
        } else if has(kind::WINDOW_SCALE) && at.skip("wscale") {
            options.extend([kind::WINDOW_SCALE, 3, u8::try_from(at.number()?).ok()?]);
        } else if has(kind::SACK_PERMITTED) && at.skip("sackok") {
            options.extend([kind::SACK_PERMITTED, 2]);
        } else if has(kind::SACK) && at.skip("sack") {
            // Blocks side by side, with a comma between them, make one option.
            let start = options.len();
            options.extend([kind::SACK, 0]);
            loop {
                options.extend(at.number()?.to_be_bytes());
                (at.skip("-") || at.skip(":")).then_some(())?;
                options.extend(at.number()?.to_be_bytes());
                if !at.skip(",sack") {
                    break;
                }
            }
            options[start + 1] = u8::try_from(options.len() - start).ok()?;
        } else if has(kind::TIMESTAMP) && at.skip("ts") {
            if options.is_empty() {
                options.extend([kind::NO_OPERATION; 2]);
            }
            options.extend([kind::TIMESTAMP, 10]);
            options.extend(at.number()?.to_be_bytes());
            at.skip(":").then_some(())?;
            options.extend(at.number()?.to_be_bytes());
        } else if choice == Choice::All && at.skip("nop") {
            options.push(kind::NO_OPERATION);
        } else if choice == Choice::All && at.skip("eol") {
            options.push(kind::END);
        } else if choice != Choice::Sack {
            parse_unknown(&mut at, options)?;
        } else {
            return None;
        }
        if at.is_empty() {
            break;
        }
        (at.skip(";") || at.skip(",")).then_some(())?;
    }
    fit(options)
}

/// Reads what [`unknown`] writes.
pub(super) fn parse_unknown(at: &mut Cursor<'_>, options: &mut Vec<u8>) -> Option<()> {
    options.push(u8::try_from(at.number()?).ok()?);
    if at.skip("=") {
        let start = options.len();
        options.push(0);
        loop {
            options.push(u8::try_from(at.number()?).ok()?);
            if !at.skip(":") {
                break;
            }
        }
        options[start] = u8::try_from(options.len() - start + 1).ok()?;
    }
    Some(())
}

/// Options have room for 40 bytes; padding in front of them may go.
pub(super) fn fit(options: &mut Vec<u8>) -> Option<()> {
    while options.len() > 40 && options[0] == kind::NO_OPERATION {
        options.remove(0);
    }
    (options.len() <= 40).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(options: &[u8], choice: Choice) -> String {
        let mut text = String::new();
        print(options, choice, &mut text);
        text
    }

    #[test]
    fn options_are_printed_and_read() {
        for text in [
            ".",
            "mss1400",
            "mss1460;sackok;ts1:2;wscale7",
            "sack95-98",
            "sack1-2,sack3-4",
            "98=;99",
            "99=0:5:10",
            "ts669063908:38382731",
        ] {
            let mut options = Vec::new();
            let read = parse(text, Choice::All, &mut options);
            if text == "98=;99" {
                assert_eq!(read, None);
                continue;
            }
            assert_eq!(read, Some(()), "{text}");
            assert_eq!(printed(&options, Choice::All), text.replace(",sack", ";sack"));
        }
        let mut options = Vec::new();
        parse("mss1400,sackok;ts1:2;sack3-4", Choice::All, &mut options).unwrap();
        assert_eq!(printed(&options, Choice::NoTimestamp), "mss1400;sackok;sack3-4");
        assert_eq!(printed(&options, Choice::Sack), "sackok;sack3-4");
        assert_eq!(printed(&[2, 3, 1], Choice::All), "?");
        assert_eq!(printed(&[1, 1, 0], Choice::All), ".");
        for bad in ["mss", "mss70000", "x", "mss1;", "sack1", "ts1", "256", "1=256"] {
            assert_eq!(parse(bad, Choice::All, &mut options), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_printed(options in prop::collection::vec(any::<u8>(), 0..41)) {
            for choice in [Choice::All, Choice::NoTimestamp, Choice::Sack] {
                printed(&options, choice);
                copy(&options, choice, &mut Vec::new());
            }
        }

        #[test]
        fn any_text_is_read(text in "[a-z0-9=:;,.{}!?^+-]{0,40}") {
            let _ = parse(&text, Choice::All, &mut Vec::new());
        }
    }
}
