//! Configurations packed in an `ar` archive, as Click's tools write them: the member `config` is the text.

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER_LEN: usize = 60;

/// A member's name and content.
pub type Member<'a> = (String, &'a [u8]);

/// The members, if `bytes` are an archive; `None` if they are none.
///
/// # Errors
/// A text that says how the archive is broken.
pub fn members(bytes: &[u8]) -> Option<Result<Vec<Member<'_>>, &'static str>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut found = vec![];
    while !rest.is_empty() {
        let Some((header, body)) = rest.split_at_checked(HEADER_LEN) else {
            return Some(Err("archive is truncated"));
        };
        let field =
            |range: std::ops::Range<usize>| String::from_utf8_lossy(&header[range]).trim().to_string();
        let Ok(size) = field(48..58).parse::<usize>() else {
            return Some(Err("archive has a malformed header"));
        };
        let Some((content, after)) = body.split_at_checked(size) else {
            return Some(Err("archive is truncated"));
        };
        let name = field(0..16);
        found.push((name.strip_suffix('/').unwrap_or(&name).to_string(), content));
        // Members begin at even offsets.
        rest = after.get(size % 2..).unwrap_or(&[]);
    }
    Some(Ok(found))
}

/// The `config` member if `bytes` are an archive; `None` if they are none, an error text if they are a broken one.
pub(crate) fn config_member(bytes: &[u8]) -> Option<Result<&[u8], &'static str>> {
    Some(members(bytes)?.and_then(|found| {
        let config = found.iter().find(|(name, _)| name == "config");
        config.map(|&(_, content)| content).ok_or("archive has no 'config' section")
    }))
}

/// An archive of `members`. Names are cut to 15 bytes, which is all that a header has room for.
pub fn write(members: &[Member<'_>]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for (name, content) in members {
        let name: String = name.chars().filter(char::is_ascii).take(15).chain(['/']).collect();
        // Date, owner, group and mode: nobody's, of no time, for the owner to read and write.
        out.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 600, content.len()).bytes());
        out.extend(*content);
        out.extend(vec![b'\n'; content.len() % 2]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found() {
        assert_eq!(config_member(b"Idle -> Discard"), None);
        let bytes = write(&[("a.cc".into(), b"odd"), ("config".into(), b"Idle;")]);
        assert_eq!(config_member(&bytes), Some(Ok(&b"Idle;"[..])));
        assert_eq!(members(&bytes).unwrap().unwrap()[0], ("a.cc".to_owned(), &b"odd"[..]));
    }

    #[test]
    fn broken_archives() {
        let without = write(&[("x".into(), b"y")]);
        assert_eq!(config_member(&without), Some(Err("archive has no 'config' section")));
        let bytes = write(&[("config".into(), b"Idle;")]);
        for length in MAGIC.len() + 1..bytes.len() - 1 {
            assert!(matches!(config_member(&bytes[..length]), Some(Err(_))), "{length}");
        }
    }
}
