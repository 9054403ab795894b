//! `sprintf`.

use super::functions::syntax;
use super::text::shift;
use causeway_engine::Error;
use causeway_lang::args::unquote;
use causeway_lang::values;

/// Most characters that one conversion is filled up to: a script cannot ask for all memory.
const MAX_WIDTH: usize = 128;

/// What a conversion asks for besides its letter.
#[derive(Default)]
struct Conversion {
    zero: bool,
    alternate: bool,
    left: bool,
    space: bool,
    plus: bool,
    width: Option<usize>,
    precision: Option<usize>,
    /// Whether the number is cut to 16 bits.
    short: bool,
}

/// The first word of `text` is the format; the others stand in place of its conversions.
pub(super) fn sprintf(text: &str) -> Result<String, Error> {
    let mut rest = text.to_owned();
    let format: Vec<char> = unquote(&shift(&mut rest)).chars().collect();
    let mut chars = format.into_iter().peekable();
    let mut out = String::new();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut conversion = Conversion::default();
        while let Some(flag) = chars.next_if(|c| "0#- +".contains(*c)) {
            match flag {
                '0' => conversion.zero = true,
                '#' => conversion.alternate = true,
                '-' => conversion.left = true,
                ' ' => conversion.space = true,
                _ => conversion.plus = true,
            }
        }
        conversion.width = digits(&mut chars);
        if chars.next_if_eq(&'.').is_some() {
            conversion.precision = digits(&mut chars);
        }
        while let Some(size) = chars.next_if(|c| "hlLq".contains(*c)) {
            conversion.short = size == 'h';
        }
        let text = match chars.next() {
            Some(c @ ('o' | 'x' | 'X' | 'u')) => {
                let word = shift(&mut rest);
                let value = values::unsigned_64(&word)
                    .or_else(|_| values::integer(&word, i64::MIN.into(), 0).map(|v| v as u64));
                let value = value.map_err(|_| syntax())?;
                conversion.unsigned(if conversion.short { value & 0xffff } else { value }, c)
            }
            Some('d' | 'i') => {
                let value = super::number::integer(&shift(&mut rest)).ok_or_else(syntax)?;
                conversion.signed(if conversion.short { i64::from(value as i16) } else { value })
            }
            Some('%') => "%".to_owned(),
            Some('s') => {
                let text = values::string(&shift(&mut rest)).map_err(|_| syntax())?;
                text.chars().take(conversion.precision.unwrap_or(usize::MAX)).collect()
            }
            _ => return Err(syntax()),
        };
        out += &conversion.filled(text);
    }
    if rest.is_empty() { Ok(out) } else { Err(syntax()) }
}

fn digits(chars: &mut std::iter::Peekable<std::vec::IntoIter<char>>) -> Option<usize> {
    let mut number = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit).and_then(|c| c.to_digit(10)) {
        number = Some((number.unwrap_or(0) * 10 + digit as usize).min(MAX_WIDTH));
    }
    number
}

impl Conversion {
    fn unsigned(&self, value: u64, letter: char) -> String {
        let (digits, prefix) = match letter {
            'o' => (format!("{value:o}"), "0"),
            'x' => (format!("{value:x}"), "0x"),
            'X' => (format!("{value:X}"), "0X"),
            _ => (value.to_string(), ""),
        };
        self.number(if self.alternate && value != 0 { prefix } else { "" }, &digits)
    }

    fn signed(&self, value: i64) -> String {
        let sign = match () {
            () if value < 0 => "-",
            () if self.plus => "+",
            () if self.space => " ",
            () => "",
        };
        self.number(sign, &value.unsigned_abs().to_string())
    }

    /// The digits with zeroes and what goes before them.
    fn number(&self, before: &str, digits: &str) -> String {
        let by_width = match (self.zero && !self.left && self.precision.is_none(), self.width) {
            (true, Some(width)) => width.min(MAX_WIDTH).saturating_sub(before.len()),
            _ => 0,
        };
        let length = self.precision.unwrap_or(0).min(MAX_WIDTH).max(by_width);
        format!("{before}{digits:0>length$}")
    }

    /// The text filled up to the width.
    fn filled(&self, text: String) -> String {
        let width = self.width.unwrap_or(0).min(MAX_WIDTH);
        let fill = " ".repeat(width.saturating_sub(text.chars().count()));
        if self.left { text + &fill } else { fill + &text }
    }
}

#[cfg(test)]
mod tests {
    use super::sprintf;
    use causeway_engine::Error;

    #[test]
    fn conversions_have_their_forms() {
        for (text, value) in [
            ("\"%05x\" 127", "0007f"),
            ("\"%d %i|%5d|%-5d|%+d|% d\" 1 -2 3 4 5 6", "1 -2|    3|4    |+5| 6"),
            ("%o/%X/%#x/%u 8 255 255 7", "10/FF/0xff/7"),
            ("\"%s %.2s|%4s\" a bcd \"x y\"", "a bc| x y"),
            ("%4d|%.3d 5 7", "   5|007"),
            ("%d%% 50", "50%"),
            ("%hd 65537", "1"),
            ("%%", "%"),
            ("plain", "plain"),
        ] {
            assert_eq!(sprintf(text), Ok(value.to_owned()), "{text}");
        }
    }

    #[test]
    fn words_and_conversions_must_match() {
        for text in ["%d", "%d x", "%d 1 2", "%c 1", "%*d 4 5", "%"] {
            assert_eq!(sprintf(text), Err(Error::new("syntax error")), "{text}");
        }
    }
}
