//! Settings of interfaces (`netconf`).

use super::{family, octet, word};
use crate::model::{Setting, SettingScope};
use crate::uapi::*;
use crate::wire::{Attributes, Malformed};

/// Octets of `struct netconfmsg`.
const HEADER_LEN: usize = 1;

pub(super) fn setting(payload: &[u8]) -> Result<Option<Setting>, Malformed> {
    const WHAT: &str = "setting";
    let Some(family) = family(octet(payload, 0, WHAT)?) else { return Ok(None) };
    let (mut scope, mut ignores_linkdown) = (None, None);
    for attribute in Attributes::after(payload, HEADER_LEN) {
        match attribute? {
            (NETCONFA_IFINDEX, value) => {
                scope = Some(match word(value, 0, WHAT)? {
                    NETCONFA_IFINDEX_ALL => SettingScope::All,
                    NETCONFA_IFINDEX_DEFAULT => SettingScope::Default,
                    ifindex => SettingScope::Interface(ifindex),
                });
            }
            (NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN, value) => {
                ignores_linkdown = Some(word(value, 0, WHAT)? != 0);
            }
            _ => {}
        }
    }
    let scope = scope.ok_or(Malformed(WHAT))?;
    Ok(Some(Setting { family, scope, ignores_linkdown }))
}
