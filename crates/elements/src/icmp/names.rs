//! Names of ICMP types (RFC 792, RFC 950, RFC 1122 §3.2.2.1, RFC 1256, RFC 1812 §5.2.7), as configurations
//! spell them.

use causeway_lang::values;

const TYPES: &[(&str, u8)] = &[
    ("echo-reply", 0),
    ("unreachable", 3),
    ("sourcequench", 4),
    ("redirect", 5),
    ("echo", 8),
    ("routeradvert", 9),
    ("routersolicit", 10),
    ("timeexceeded", 11),
    ("parameterproblem", 12),
    ("timestamp", 13),
    ("timestamp-reply", 14),
    ("inforeq", 15),
    ("inforeq-reply", 16),
    ("maskreq", 17),
    ("maskreq-reply", 18),
];

fn find(list: &[(&str, u8)], word: &str) -> Option<u8> {
    let by_name = list.iter().find(|(name, _)| *name == word).map(|&(_, n)| n);
    by_name.or_else(|| values::integer(word, 0, 255).ok().map(|n| n as u8))
}

/// The ICMP type that `word` names, or the number that it is.
pub(crate) fn icmp_type(word: &str) -> Option<u8> {
    find(TYPES, word)
}
