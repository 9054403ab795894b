//! Policy rules.

use super::route::prefix;
use super::{family, octet, word};
use crate::model::{Rule, RuleAction};
use crate::uapi::*;
use crate::wire::{self, Attributes, Malformed, u32_at};

/// Octets of `struct fib_rule_hdr`.
const HEADER_LEN: usize = 12;
/// Where its flags are.
const FLAGS: std::ops::Range<usize> = 8..12;
/// Flags that come and go with other rules and with interfaces, of which no message tells.
const PASSING: u32 = FIB_RULE_UNRESOLVED | FIB_RULE_IIF_DETACHED | FIB_RULE_OIF_DETACHED;
const KNOWN: u32 = FIB_RULE_PERMANENT | FIB_RULE_INVERT | FIB_RULE_FIND_SADDR | PASSING;

const WHAT: &str = "rule";

pub(super) fn rule(payload: &[u8]) -> Result<Option<Rule>, Malformed> {
    let Some(family) = family(octet(payload, 0, WHAT)?) else { return Ok(None) };
    let (to_len, from_len) = (octet(payload, 1, WHAT)?, octet(payload, 2, WHAT)?);
    let (tos, kind, flags) = (octet(payload, 3, WHAT)?, octet(payload, 7, WHAT)?, word(payload, 8, WHAT)?);
    let mut table = u32::from(octet(payload, 4, WHAT)?);
    let mut rule = Rule { more: tos != 0, bytes: payload.to_vec(), ..Rule::plain(family, 0, 0) };
    rule.bytes[FLAGS].copy_from_slice(&(flags & !PASSING).to_ne_bytes());
    let mut understood = flags & !KNOWN == 0;
    for attribute in Attributes::after(payload, HEADER_LEN) {
        let (kind, value) = attribute?;
        match kind {
            FRA_DST => rule.to = Some(prefix(value, family, to_len)?),
            FRA_SRC => rule.from = Some(prefix(value, family, from_len)?),
            FRA_IIFNAME => {
                let name = wire::text(value);
                // Names that are not text look the same as others.
                understood &= !name.contains(char::REPLACEMENT_CHARACTER);
                rule.iif = Some(name);
            }
            FRA_OIFNAME => rule.oif = true,
            FRA_PRIORITY => rule.priority = word(value, 0, WHAT)?,
            FRA_TABLE => table = word(value, 0, WHAT)?,
            FRA_PROTOCOL => {}
            FRA_SUPPRESS_PREFIXLEN => match u32_at(value, 0) {
                Some(u32::MAX) => {}
                Some(len @ ..=128) => rule.shortest = len as u8 + 1,
                _ => rule.more = true,
            },
            // The table is another for each packet.
            FRA_L3MDEV => understood = false,
            // Marks, tunnels, users, protocols, ports, and routes by groups of interfaces that do not count.
            FRA_FWMARK..=FRA_DSCP_MASK => rule.more = true,
            _ => understood = false,
        }
    }
    understood &= (rule.to.is_some(), rule.from.is_some()) == (to_len != 0, from_len != 0);
    rule.action = match kind {
        _ if !understood => RuleAction::Other,
        FR_ACT_TO_TBL => RuleAction::LookUp(table),
        FR_ACT_NOP => RuleAction::Nothing,
        _ => RuleAction::Other,
    };
    if !understood || flags & FIB_RULE_INVERT != 0 {
        // Whom it selects is not known from its parts.
        (rule.to, rule.from, rule.iif, rule.oif, rule.more) = (None, None, None, false, true);
    }
    Ok(Some(rule))
}
