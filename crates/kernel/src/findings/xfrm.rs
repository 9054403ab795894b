//! Findings about IPsec policies: packets that should be encrypted, or should have been.

use std::io;

use super::{Check, Finding};
use crate::socket::Socket;
use crate::uapi::*;
use crate::wire::{Attributes, Frame, Malformed, Request, u32_at};

/// Octets of the header of the answer about the policies' number: flags.
const SPD_HEADER_LEN: usize = 4;
/// `struct xfrm_userpolicy_default`: what becomes of packets without a policy that come to this machine, are forwarded,
/// leave it.
const FORWARDED: usize = 1;
const OUT: usize = 2;

pub(super) fn findings(socket: &mut Socket) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let policies = Request::new(XFRM_MSG_GETSPDINFO, NLM_F_REQUEST, &[0; SPD_HEADER_LEN]);
    let count = socket.ask(policies, |frame| Some(policies_in(frame)))?;
    let count = count.transpose().map_err(io::Error::other)?.unwrap_or(0);
    if count > 0 {
        findings.push(Check::XfrmPolicy.refuse(
            "ip xfrm policy",
            format!("forwarded packets would pass by the IPsec policies ({count}) and leave in clear"),
            "ip xfrm policy flush",
        ));
    }
    let defaults = Request::new(XFRM_MSG_GETDEFAULT, NLM_F_REQUEST, &[0; 4]);
    match socket.ask(defaults, |frame| Some(blocks(frame.payload))).map(|blocks| blocks.unwrap_or(false)) {
        Ok(true) => findings.push(Check::XfrmDefault.refuse(
            "ip xfrm policy",
            "the kernel drops forwarded packets that no IPsec policy is for",
            "ip xfrm policy setdefault fwd accept out accept",
        )),
        Ok(false) => {}
        // Before Linux 5.14 nothing could be set.
        Err(error) if matches!(error.raw_os_error(), Some(EINVAL | EOPNOTSUPP)) => {}
        Err(error) => return Err(error),
    }
    Ok(findings)
}

/// Policies for packets that come in, leave and are forwarded, without those of single sockets.
fn policies_in(frame: &Frame<'_>) -> Result<u64, Malformed> {
    for attribute in Attributes::after(frame.payload, SPD_HEADER_LEN) {
        if let (XFRMA_SPD_INFO, counts) = attribute? {
            let count =
                |index: usize| u32_at(counts, 4 * index).map(u64::from).ok_or(Malformed("IPsec counts"));
            return Ok(count(0)? + count(1)? + count(2)?);
        }
    }
    Err(Malformed("IPsec counts"))
}

fn blocks(defaults: &[u8]) -> bool {
    [FORWARDED, OUT].iter().any(|&at| defaults.get(at) == Some(&XFRM_USERPOLICY_BLOCK))
}
