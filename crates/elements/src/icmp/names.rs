//! Names of ICMP types and codes (RFC 792, RFC 950, RFC 1122 §3.2.2.1, RFC 1256, RFC 1812 §5.2.7), as configurations
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

/// Codes by message type.
const CODES: &[(u8, &[(&str, u8)])] = &[
    (
        3,
        &[
            ("net", 0),
            ("host", 1),
            ("protocol", 2),
            ("port", 3),
            ("needfrag", 4),
            ("srcroutefail", 5),
            ("netunknown", 6),
            ("hostunknown", 7),
            ("isolated", 8),
            ("netprohibited", 9),
            ("hostprohibited", 10),
            ("tosnet", 11),
            ("toshost", 12),
            ("filterprohibited", 13),
            ("hostprecedence", 14),
            ("precedencecutoff", 15),
        ],
    ),
    (5, &[("net", 0), ("host", 1), ("tosnet", 2), ("toshost", 3)]),
    (11, &[("transit", 0), ("reassembly", 1)]),
    (12, &[("erroratptr", 0), ("missingopt", 1), ("length", 2)]),
];

fn find(list: &[(&str, u8)], word: &str) -> Option<u8> {
    let by_name = list.iter().find(|(name, _)| *name == word).map(|&(_, n)| n);
    by_name.or_else(|| values::integer(word, 0, 255).ok().map(|n| n as u8))
}

/// The name of ICMP type `kind`.
pub(crate) fn type_name(kind: u8) -> Option<&'static str> {
    TYPES.iter().find(|(_, n)| *n == kind).map(|&(name, _)| name)
}

/// The name of `code` in messages of type `kind`.
pub(crate) fn code_name(kind: u8, code: u8) -> Option<&'static str> {
    let (_, codes) = CODES.iter().find(|(k, _)| *k == kind)?;
    codes.iter().find(|(_, n)| *n == code).map(|&(name, _)| name)
}

/// The ICMP type that `word` names, or the number that it is.
pub(crate) fn icmp_type(word: &str) -> Option<u8> {
    find(TYPES, word)
}

/// The code that `word` names for messages of type `kind`, or the number that it is.
pub(crate) fn icmp_code(kind: u8, word: &str) -> Option<u8> {
    let codes = CODES.iter().find(|(k, _)| *k == kind).map_or(&[][..], |(_, codes)| codes);
    find(codes, word)
}
