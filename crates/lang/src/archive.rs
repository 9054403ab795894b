//! Configurations packed in an `ar` archive, as Click's tools write them: the member `config` is the text.

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER_LEN: usize = 60;

/// The `config` member if `bytes` are an archive; `None` if they are none, an error text if they are a broken one.
pub(crate) fn config_member(bytes: &[u8]) -> Option<Result<&[u8], &'static str>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    loop {
        if rest.is_empty() {
            return Some(Err("archive has no 'config' section"));
        }
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
        if name.strip_suffix('/').unwrap_or(&name) == "config" {
            return Some(Ok(content));
        }
        // Members begin at even offsets.
        rest = after.get(size % 2..).unwrap_or(&[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(members: &[(&str, &str)]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        for (name, content) in members {
            out.extend(
                format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, content.len()).bytes(),
            );
            out.extend(content.bytes());
            out.extend(vec![b'\n'; content.len() % 2]);
        }
        out
    }

    #[test]
    fn finds_the_member() {
        assert_eq!(config_member(b"Idle -> Discard"), None);
        let bytes = archive(&[("a.cc/", "odd"), ("config/", "Idle;")]);
        assert_eq!(config_member(&bytes), Some(Ok(&b"Idle;"[..])));
    }

    #[test]
    fn broken_archives() {
        assert!(matches!(
            config_member(&archive(&[("x", "y")])),
            Some(Err("archive has no 'config' section"))
        ));
        let bytes = archive(&[("config", "Idle;")]);
        for length in MAGIC.len() + 1..bytes.len() - 1 {
            assert!(matches!(config_member(&bytes[..length]), Some(Err(_))), "{length}");
        }
    }
}
