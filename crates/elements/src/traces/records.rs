//! Fields of a line or a binary record.

use super::fields::Width;
use super::fields::make::{Maker, TooLong};
use super::fields::text::{Context, Parsed, parse};
use super::fields::view::Value as FieldValue;
use super::from_ip_summary_dump::FromIPSummaryDump;
use causeway_engine::Cx;

/// Most fields of a line.
const MOST: usize = 64;

impl FromIPSummaryDump {
    /// Sets the fields that `line` has; says how many.
    pub(super) fn fill(
        &self,
        maker: &mut Maker,
        line: &str,
        scratch: &mut Vec<u8>,
        cx: &Cx<'_>,
    ) -> Result<usize, TooLong> {
        let mut words: [&str; MOST] = [""; MOST];
        let mut rest = line;
        for word in words.iter_mut().take(self.fields.len()) {
            let end = word_end(rest);
            (*word, rest) = (&rest[..end], rest[end..].trim_start());
        }
        let scope = cx.scope();
        let mut known = 0;
        for &i in &self.order {
            let (field, word) = (self.fields[i], words.get(i).copied().unwrap_or(""));
            if word.is_empty() || word == "-" || field.order.is_none() {
                continue;
            }
            let width = if let Width::Bytes(n) = field.width { n } else { 4 };
            let context = Context { scope: &scope, version: self.version, icmp_type: maker.icmp_type() };
            let value = match parse(field.what, word, width, context, scratch) {
                None => continue,
                Some(Parsed::Number(n)) => FieldValue::Number(n),
                Some(Parsed::Scratch) => FieldValue::Bytes(scratch),
            };
            maker.set(field.what, value)?;
            known += 1;
        }
        Ok(known)
    }

    /// As [`FromIPSummaryDump::fill`], of a binary record.
    pub(super) fn fill_binary(&self, maker: &mut Maker, record: &[u8]) -> Result<usize, TooLong> {
        let mut values: [Option<FieldValue<'_>>; MOST] = [None; MOST];
        let mut rest = record;
        for (field, value) in self.fields.iter().zip(&mut values) {
            *value = field.width.read(&mut rest);
            if value.is_none() {
                break;
            }
        }
        let mut known = 0;
        for &i in &self.order {
            let Some(value) = values.get(i).copied().flatten() else { continue };
            if self.fields[i].order.is_some() {
                maker.set(self.fields[i].what, value)?;
                known += 1;
            }
        }
        Ok(known)
    }
}

/// Where the first word ends: at a blank outside of quotes.
fn word_end(text: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => return i,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::word_end;

    #[test]
    fn words_end_at_blanks_outside_of_quotes() {
        for (text, word) in
            [("a b", "a"), ("\"a b\" c", "\"a b\""), ("\"a\\\" b\"", "\"a\\\" b\""), ("", ""), ("x", "x")]
        {
            assert_eq!(&text[..word_end(text)], word);
        }
    }
}
