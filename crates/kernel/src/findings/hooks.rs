//! Findings about the packet filter's hooks themselves: whoever put a function there.
//!
//! nftables and iptables show their rules; others (IPVS, security modules, BPF programs) show nothing but the function that is
//! called. Linux 5.14 and later list them, if built to.

use std::io;

use super::inquiry::netfilter_dump;
use super::{Check, Finding};
use crate::model::Link;
use crate::socket::Socket;
use crate::uapi::*;
use crate::wire::{Attributes, Frame, Malformed, Request, text};

/// Octets of `struct nfgenmsg`.
const HEADER_LEN: usize = 4;

/// How the names of functions begin that do nothing to forwarded packets by themselves, or that are judged by their rules.
const HARMLESS: [&str; 15] = [
    // Chains of nftables and of iptables, each judged by its rules; flow tables by their devices.
    "nft_do_chain",
    "ipt_do_table",
    "ip6t_do_table",
    "iptable_",
    "ip6table_",
    "nf_flow_offload_",
    // Connections are followed and fragments put together for such rules; without them nothing comes of it.
    "ipv4_conntrack_",
    "ipv6_conntrack_",
    "nf_confirm",
    "ipv4_confirm",
    "ipv6_confirm",
    "ipv6_defrag",
    // Addresses are translated by rules, and by what is kept of connections that rules were for: that is asked for.
    "nf_nat_",
    // Of frames that pass through a bridge alone.
    "ip_sabotage_in",
    // Of packets that come from a socket of this machine alone.
    "apparmor_ip_postroute",
];

/// Asks for the functions in the hooks that forwarded packets pass.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    /// The kernel cannot list them. Asking again would make it look for a module each time.
    unlisted: bool,
    /// Whether some were the old packet filter's, or may be, when they were listed last: for IPv4 and IPv6.
    legacy: [Option<bool>; 2],
}

impl Hooks {
    pub fn findings(&mut self, socket: &mut Socket, ports: &[&Link]) -> io::Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let passed = [
            (NF_INET_PRE_ROUTING, "prerouting"),
            (NF_INET_FORWARD, "forward"),
            (NF_INET_POST_ROUTING, "postrouting"),
        ];
        for (version, (family, command)) in [(AF_INET, "ip"), (AF_INET6, "ip6")].into_iter().enumerate() {
            let mut legacy = false;
            for (hook, name) in passed {
                let functions = self.functions(socket, family, hook, None)?;
                legacy |= functions.iter().any(|function| may_be_legacy(function));
                findings.extend(functions.iter().filter_map(|function| judge(function, command, name)));
            }
            self.legacy[version] = (!self.unlisted).then_some(legacy);
        }
        for port in ports {
            for (hook, name) in [(NF_NETDEV_INGRESS, "ingress"), (NF_NETDEV_EGRESS, "egress")] {
                let functions = self.functions(socket, NFPROTO_NETDEV, hook, Some(&port.name))?;
                findings.extend(functions.iter().filter_map(|function| judge(function, &port.name, name)));
            }
        }
        Ok(findings)
    }

    /// Whether the old packet filter has a function in the hooks that forwarded packets pass; none if that is not known.
    pub fn has_legacy(&self, ipv6: bool) -> Option<bool> {
        self.legacy[usize::from(ipv6)]
    }

    /// The names of the functions in one hook; empty ones where the kernel does not tell.
    fn functions(
        &mut self,
        socket: &mut Socket,
        family: u8,
        hook: u32,
        device: Option<&str>,
    ) -> io::Result<Vec<String>> {
        /// `ENODEV`: the device went meanwhile, of which there is a message.
        const ENODEV: i32 = 19;
        if self.unlisted {
            return Ok(Vec::new());
        }
        let complete = |request: Request| {
            let request = request.attribute(NFNLA_HOOK_HOOKNUM, &hook.to_be_bytes());
            match device {
                Some(device) => request.attribute(NFNLA_HOOK_DEV, &[device.as_bytes(), &[0]].concat()),
                None => request,
            }
        };
        let kind = NFNL_SUBSYS_HOOK << 8 | NFNL_MSG_HOOK_GET;
        match netfilter_dump(socket, kind, family, complete, |frame| function(frame).map(Some)) {
            Err(error) => match error.raw_os_error() {
                Some(EINVAL) => {
                    self.unlisted = true;
                    Ok(Vec::new())
                }
                // A hook that the kernel does not have.
                Some(EOPNOTSUPP | EPROTONOSUPPORT | ENODEV) => Ok(Vec::new()),
                _ => Err(error),
            },
            functions => functions,
        }
    }
}

/// Tables of the old packet filter are called by functions of their own, but for those that translate addresses.
fn may_be_legacy(function: &str) -> bool {
    const LEGACY: [&str; 5] = ["ipt_do_table", "ip6t_do_table", "iptable_", "ip6table_", "nf_nat_"];
    function.is_empty() || LEGACY.iter().any(|legacy| function.starts_with(legacy))
}

fn judge(function: &str, place: &str, hook: &str) -> Option<Finding> {
    if HARMLESS.iter().any(|harmless| function.starts_with(harmless)) {
        return None;
    }
    let name = if function.is_empty() { "a function without a name" } else { function };
    Some(Check::NetfilterHook.refuse(
        format!("{place} {hook}"),
        format!("forwarded packets would pass by {name}, which the kernel calls here"),
        "nft list hooks    # shows it; remove what put it there",
    ))
}

fn function(frame: &Frame<'_>) -> Result<String, Malformed> {
    let mut name = String::new();
    for attribute in Attributes::after(frame.payload, HEADER_LEN) {
        if let (NFNLA_HOOK_FUNCTION_NAME, value) = attribute? {
            name = text(value);
        }
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Frames;

    #[test]
    fn what_is_not_known_refuses() {
        for function in ["nft_do_chain_inet", "ipv4_conntrack_defrag", "nf_nat_ipv4_out", "ip_sabotage_in"] {
            assert_eq!(judge(function, "ip", "forward"), None);
        }
        for function in ["ip_vs_forward_icmp", "selinux_ip_forward", "nf_hook_run_bpf", "new_in_linux_9", ""]
        {
            let finding = judge(function, "ip", "forward").unwrap();
            assert_eq!((finding.code(), finding.place.as_str()), ("netfilter-hook", "ip forward"));
            assert!(finding.what.contains(function), "{finding}");
        }
    }

    #[test]
    fn the_old_packet_filter_is_known_by_its_functions() {
        assert!(
            ["ipt_do_table", "ip6table_mangle_hook", "nf_nat_ipv4_out", ""].into_iter().all(may_be_legacy)
        );
        assert!(!["nft_do_chain", "ipv4_conntrack_in", "selinux_ip_forward"].into_iter().any(may_be_legacy));
    }

    #[test]
    fn the_functions_name_is_read() {
        let bytes = Request::new(0, 0, &[2, 0, 0, 0])
            .attribute(NFNLA_HOOK_HOOKNUM, &2u32.to_be_bytes())
            .attribute(NFNLA_HOOK_FUNCTION_NAME, b"ip_vs_in_hook\0")
            .finish(1);
        let frame = Frames(&bytes).next().unwrap().unwrap();
        assert_eq!(function(&frame).unwrap(), "ip_vs_in_hook");
    }
}
