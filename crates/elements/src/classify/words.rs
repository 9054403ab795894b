//! The tokens of IP expressions.

/// Cuts an expression into words and operators. `:` and `-` stand alone only between blanks or brackets, because
/// addresses and names contain them.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut word = String::new();
    let mut rest = text.chars().peekable();
    let mut in_brackets = false;
    while let Some(c) = rest.next() {
        let operator = "()[]=!<>&|?".contains(c) || (c == ':' && in_brackets);
        if !operator && !c.is_whitespace() {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            out.push(std::mem::take(&mut word));
        }
        if operator {
            let double = match rest.peek() {
                Some('=') => "=!<>".contains(c),
                Some(&next) => next == c && "&|".contains(c),
                None => false,
            };
            out.push(if double { format!("{c}{}", rest.next().unwrap_or(c)) } else { c.to_string() });
            in_brackets = (in_brackets || c == '[') && c != ']';
        }
    }
    if !word.is_empty() {
        out.push(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn operators_need_no_blanks() {
        let cut = |text: &str| tokens(text).join(" ");
        assert_eq!(
            cut("!(tcp&&port>=80)||ip[9:1]&0xf0==16"),
            "! ( tcp && port >= 80 ) || ip [ 9 : 1 ] & 0xf0 == 16"
        );
        assert_eq!(cut("tcp ? host a:ip : net 1.0/8"), "tcp ? host a:ip : net 1.0/8");
        assert_eq!(cut("port!=80 | - <"), "port != 80 | - <");
    }
}
