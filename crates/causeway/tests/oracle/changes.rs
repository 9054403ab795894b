//! Random changes of everything that is no route: settings, neighbours, addresses, links, filters.

use crate::plan::{self, PORTS, TAKEN};
use crate::space::Step;
use crate::state::Draft;

/// Settings of a port or of all, by family, and the values tried.
const PORT_SETTINGS: [(&str, &[&str]); 26] = [
    ("ipv4/conf/PORT/forwarding", &["0"]),
    ("ipv4/conf/PORT/rp_filter", &["1", "2"]),
    ("ipv4/conf/PORT/rp_filter", &["1", "2"]),
    ("ipv4/conf/all/rp_filter", &["1", "2"]),
    ("ipv4/conf/PORT/send_redirects", &["0"]),
    ("ipv4/conf/all/send_redirects", &["0"]),
    ("ipv4/conf/PORT/accept_local", &["1"]),
    ("ipv4/conf/all/accept_local", &["1"]),
    ("ipv4/conf/PORT/ignore_routes_with_linkdown", &["1"]),
    ("ipv4/conf/PORT/route_localnet", &["1"]),
    ("ipv4/conf/PORT/accept_source_route", &["0"]),
    ("ipv4/conf/PORT/bc_forwarding", &["1"]),
    ("ipv4/conf/all/bc_forwarding", &["1"]),
    ("ipv4/conf/PORT/proxy_arp", &["1"]),
    ("ipv4/conf/PORT/accept_redirects", &["1"]),
    ("ipv4/conf/PORT/drop_unicast_in_l2_multicast", &["1"]),
    ("ipv4/conf/PORT/src_valid_mark", &["1"]),
    ("ipv4/conf/PORT/shared_media", &["0"]),
    ("ipv6/conf/PORT/forwarding", &["0"]),
    ("ipv6/conf/PORT/force_forwarding", &["1"]),
    ("ipv6/conf/PORT/disable_ipv6", &["1"]),
    ("ipv6/conf/PORT/ignore_routes_with_linkdown", &["1"]),
    ("ipv6/conf/PORT/accept_redirects", &["1"]),
    ("ipv6/conf/PORT/mtu", &["1280", "1400"]),
    ("ipv6/conf/PORT/drop_unicast_in_l2_multicast", &["1"]),
    ("ipv6/conf/all/proxy_ndp", &["1"]),
];

/// Settings of the namespace: what they are at first, and the values tried.
const SETTINGS: [(&str, &str, &[&str]); 13] = [
    ("ipv4/ip_forward", "1", &["0"]),
    ("ipv6/conf/all/forwarding", "1", &["0"]),
    ("ipv4/fib_multipath_hash_policy", "0", &["1", "2", "3"]),
    ("ipv4/fib_multipath_hash_policy", "0", &["1", "2", "3"]),
    ("ipv6/fib_multipath_hash_policy", "0", &["1", "2", "3"]),
    ("ipv4/fib_multipath_hash_fields", "7", &["55", "1", "32", "4032"]),
    ("ipv6/fib_multipath_hash_fields", "7", &["55", "1", "32", "4032"]),
    ("ipv4/fib_multipath_hash_seed", "4711", &["1", "4294967295", "77"]),
    ("ipv4/ip_default_ttl", "64", &["64"]),
    ("ipv4/ip_forward_use_pmtu", "0", &["1"]),
    ("ipv4/ip_forward_update_priority", "1", &["0"]),
    ("ipv4/icmp_errors_use_inbound_ifaddr", "0", &["1"]),
    ("ipv4/nexthop_compat_mode", "1", &["0"]),
];

/// A setting.
pub fn setting(draft: &mut Draft) {
    if draft.chance(3) {
        let &(key, first, values) = draft.pick(&SETTINGS);
        let value = *draft.pick(values);
        if !(draft.facts.any_path && key.ends_with("seed")) {
            set(draft, key.to_owned(), value, first);
        }
        return;
    }
    let &(key, values) = draft.pick(&PORT_SETTINGS);
    if draft.facts.any_path && (key.ends_with("mtu") || key.ends_with("linkdown")) {
        return;
    }
    let value = *draft.pick(values);
    let port = format!("p{}", draft.rng.usize(0..PORTS));
    let key = key.replace("PORT", &port);
    let first = match key.rsplit('/').next().unwrap_or_default() {
        "mtu" => "1500",
        "send_redirects" | "accept_source_route" | "shared_media" | "forwarding" => "1",
        _ => "0",
    };
    set(draft, key, value, first);
}

fn set(draft: &mut Draft, key: String, value: &str, first: &str) {
    // These leave all to the kernel, of a port at least.
    let refused = ["accept_redirects", "use_pmtu", "forwarding"].iter().any(|end| key.ends_with(end));
    draft.facts.plain &= !refused;
    draft.undo(Step::Set(key.clone(), first.to_owned()));
    if key == "ipv4/ip_forward" {
        // It sets that of all ports.
        draft.undo(Step::Set("ipv4/conf/all/accept_redirects".into(), "0".into()));
        for port in 0..PORTS {
            draft.undo(Step::Set(format!("ipv4/conf/p{port}/accept_redirects"), "0".into()));
        }
    }
    draft.step(Step::Set(key, value.to_owned()));
}

/// The kernel's own key for the hash, so that nobody can know its choice; nothing else then depends on it.
pub fn any_path(draft: &mut Draft) {
    draft.facts.any_path = true;
    set(draft, "ipv4/fib_multipath_hash_seed".into(), "0", "4711");
    for place in ["all".to_owned()].into_iter().chain((0..PORTS).map(|port| format!("p{port}"))) {
        set(draft, format!("ipv4/conf/{place}/send_redirects"), "0", "1");
    }
}

/// A neighbour in some state.
pub fn neighbour(draft: &mut Draft) {
    let (port, n) = (draft.port(), draft.rng.u8(0..32));
    let (mac, address) = if draft.rng.bool() {
        (plan::mac_text([2, 0xcc, port as u8, 4, 0, n]), format!("10.1.{port}.{}", 8 + n))
    } else {
        (plan::mac_text([2, 0xcc, port as u8, 6, 0, n]), format!("2001:db8:{port}::{:x}", 0x10 + n))
    };
    // A path whose gateway is not known would be left out by whoever asked for it first.
    let states = ["permanent", "permanent", "noarp", "stale", "reachable", "delay", "probe", "failed"];
    let state = *draft.pick(&states[..if n < 16 { 7 } else { 8 }]);
    // An entry that the kernel checks must say what the hosts will answer.
    let line = match state {
        "permanent" | "noarp" => format!("neigh replace {address} lladdr {mac} nud {state} dev p{port}"),
        "failed" => format!("neigh replace {address} nud failed dev p{port}"),
        _ => match crate::cable::host_mac(port, &octets(&address)) {
            Some(mac) => {
                format!("neigh replace {address} lladdr {} nud {state} dev p{port}", plan::mac_text(mac))
            }
            None => return,
        },
    };
    draft.ip(line);
    if draft.chance(6) {
        draft.ip(format!("neigh add proxy {address} dev p{port}"));
        draft.undo_ip(format!("neigh del proxy {address} dev p{port}"));
    }
}

fn octets(address: &str) -> Vec<u8> {
    match address.parse().expect("an address") {
        std::net::IpAddr::V4(address) => address.octets().to_vec(),
        std::net::IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// An address more or less.
pub fn address(draft: &mut Draft) {
    let port = draft.rng.usize(0..PORTS);
    let line = match draft.rng.u32(0..10) {
        0 => format!("addr add 10.1.{port}.5/24 dev p{port}"),
        1 => format!("addr add 10.64.0.4/24 dev p{port}"),
        2 => format!("addr add 10.65.1.4/30 brd + dev p{port} noprefixroute"),
        3 => format!("addr add 10.66.0.2 peer 10.66.0.5/32 dev p{port}"),
        4 => format!("addr add 2001:db8:{port}::5/64 dev p{port} nodad"),
        5 => format!("addr add 2001:db8:41:1::4/64 dev p{port} nodad"),
        6 => format!("addr add 2001:db8:42::4/128 dev p{port} nodad preferred_lft 0"),
        7 => format!("addr add 10.67.0.4/29 scope link dev p{port}"),
        8 => {
            draft.ip(format!("addr del 2001:db8:{port}::1/64 dev p{port}"));
            return;
        }
        _ => {
            // With the last address the kernel forgets the neighbours.
            draft.ip(format!("addr del 10.1.{port}.1/24 dev p{port}"));
            draft.later.extend(plan::gateways(port));
            return;
        }
    };
    draft.undo_ip(line.replacen("add", "del", 1).split(" nodad").next().unwrap_or_default().to_owned());
    draft.ip(line);
}

/// Another MTU of a port.
pub fn mtu(draft: &mut Draft) {
    let (port, mtu) = (draft.rng.usize(0..PORTS), *draft.pick(&[1000, 1280, 1400, 1499, 1501, 1600]));
    draft.ip(format!("link set p{port} mtu {mtu}"));
}

/// Something happens to a link.
pub fn link(draft: &mut Draft) {
    let port = draft.rng.usize(0..TAKEN);
    // The kernel forgets neighbours with the link.
    draft.later.extend(plan::gateways(port));
    match draft.rng.u32(0..10) {
        0 | 1 => {
            // Of paths that come and go at once the kernel may keep the old shares.
            draft.ip(format!("link set p{port} down"));
            draft.shell("sleep 0.2".into());
            draft.ip(format!("link set p{port} up"));
            draft.shell("sleep 0.2".into());
        }
        2 => {
            draft.ip(format!("link set p{port} down"));
            draft.facts.down[port] = true;
        }
        3 => {
            draft.step(Step::Host(format!("link set h{port} down")));
            draft.undo(Step::Host(format!("link set h{port} up")));
            draft.facts.down[port] = true;
        }
        4 | 5 => {
            let mac = [2, 0xc1, 0, 0, 0, port as u8];
            draft.ip(format!("link set p{port} address {}", plan::mac_text(mac)));
            draft.facts.macs[port] = mac;
        }
        6 => {
            draft.facts.attaches = true;
            draft.ip(format!("link set p{port} name q{port}"));
        }
        7 => {
            draft.facts.attaches = true;
            draft.ip(format!("link set p{port} name q{port}\nlink set q{port} name p{port}"));
        }
        8 => {
            draft.facts.attaches = true;
            draft.step(Step::Recreate(port));
            draft.ip(format!("addr add 10.1.{port}.1/24 brd + dev p{port}"));
            draft.ip(format!("addr add 2001:db8:{port}::1/64 dev p{port} nodad"));
            draft.ip(format!("route add 10.{}.0.0/16 via 10.1.{port}.20 proto 77", 64 + port));
        }
        _ => {
            let what = *draft.pick(&["arp off", "promisc on", "allmulticast on", "multicast off"]);
            draft.facts.mute[port] |= what == "arp off";
            draft.ip(format!("link set p{port} {what}"));
        }
    }
}

/// A packet filter, a queueing discipline, or what else all packets pass through.
pub fn filter(draft: &mut Draft) {
    let port = draft.rng.usize(0..TAKEN);
    let (line, undo) = match draft.rng.u32(0..6) {
        0 => (
            "nft add table inet f; nft 'add chain inet f c { type filter hook forward priority 0; }'; \
             nft add rule inet f c udp dport 1000-30000 drop"
                .to_owned(),
            "nft flush ruleset".to_owned(),
        ),
        1 => (
            "nft add table ip f; nft 'add chain ip f c { type filter hook prerouting priority 0; }'; \
             nft add rule ip f c ip ttl set 9"
                .to_owned(),
            "nft flush ruleset".to_owned(),
        ),
        2 => {
            draft.facts.mute[port] = true;
            (
                format!(
                    "nft add table netdev f; nft 'add chain netdev f c {{ type filter hook ingress device p{port} \
                 priority 0; policy drop; }}'"
                ),
                "nft flush ruleset".to_owned(),
            )
        }
        3 => {
            ("iptables-legacy -A FORWARD -p udp -j DROP".to_owned(), "iptables-legacy -F FORWARD".to_owned())
        }
        4 => (
            format!("ip6tables-legacy -A FORWARD -i p{port} -j REJECT"),
            "ip6tables-legacy -F FORWARD".to_owned(),
        ),
        _ => (
            format!("tc qdisc add dev p{port} root pfifo limit 900"),
            format!("tc qdisc del dev p{port} root"),
        ),
    };
    draft.shell(line);
    draft.undo_shell(undo);
}
