//! Addresses: what the twins have in common.
//!
//! Port `i` has 10.1.i.1/24 and 2001:db8:i::1/64. Behind it are hosts with all other addresses but every fourth, which is
//! silent. Routes lead into 10.64.0.0/14 and 2001:db8:40::/44. The last port is not the router's: the kernel has it alone.

use crate::space::Step;

/// Ports; the last is not the router's.
pub const PORTS: usize = 5;
/// Those that the router takes.
pub const TAKEN: usize = 4;

/// Asked for by ARP to know that all packets before were handled; it is on the loopback interface.
pub const BARRIER: [u8; 4] = [10, 255, 0, 1];

/// The Ethernet address of a port.
pub fn mac(port: usize) -> [u8; 6] {
    [2, 0xc0, 0, 0, 0, port as u8]
}

/// An Ethernet address as text.
pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|octet| format!("{octet:02x}")).join(":")
}

/// Whether the router may have such an IPv4 address of its own.
pub fn is_router4(address: &[u8]) -> bool {
    address[..2] == [10, 255] || (address[..2] == [10, 1] && matches!(address[3], 1 | 2 | 4 | 5))
}

/// Whether the router may have such an IPv6 address of its own.
pub fn is_router6(address: &[u8]) -> bool {
    address[..4] == [0x20, 1, 0x0d, 0xb8] && address[8..15] == [0; 7] && matches!(address[15], 1 | 2 | 4 | 5)
        || (address[0] == 0xfe && address[9..12] == [0, 0xff, 0xfe])
}

/// What every state begins from, but for the ports themselves: brings back what another state has changed.
pub fn baseline() -> Vec<Step> {
    let mut steps = Vec::new();
    let mut ip = |line: String| steps.push(Step::Ip(line));
    for i in 0..PORTS {
        let mac = mac_text(mac(i));
        ip(format!("link set dev q{i} name p{i}"));
        ip(format!(
            "link set dev p{i} mtu 1500 address {mac} arp on multicast on promisc off allmulticast off up"
        ));
    }
    ip("nexthop flush".into());
    let flushes = |table: &&str| ["77", "ra"].map(|proto| format!("route flush table {table} proto {proto}"));
    let flushes: Vec<String> = ["main", "local", "default", "100", "101"].iter().flat_map(flushes).collect();
    steps.extend(flushes.iter().cloned().map(Step::Ip));
    steps.extend(flushes.into_iter().map(Step::Ip6));
    steps.push(Step::Ip6("route flush cache".into()));
    steps.push(Step::Ip("route flush cache".into()));
    for i in 0..PORTS {
        let lines = [
            format!("neigh flush dev p{i} nud all"),
            format!("addr replace 10.1.{i}.1/24 brd + dev p{i}"),
            format!("addr replace 2001:db8:{i}::1/64 dev p{i} nodad"),
            format!("route replace 10.1.{i}.0/24 dev p{i} proto kernel scope link src 10.1.{i}.1"),
            format!("route replace 2001:db8:{i}::/64 dev p{i} proto kernel metric 256"),
            format!("route replace 10.{}.0.0/16 via 10.1.{i}.10 proto 77", 64 + i % TAKEN),
            format!("route replace 2001:db8:4{i}::/48 via 2001:db8:{i}::10 proto 77"),
        ];
        steps.extend(lines.into_iter().chain(gateways(i)).map(Step::Ip));
    }
    steps
}

/// Last octets of the gateways behind a port that are known for good, of IPv4 and IPv6, and of those that are asked for.
pub const KNOWN: [(u8, u8); 3] = [(8, 0x10), (9, 0x11), (10, 0x12)];
pub const ASKED: [(u8, u8); 3] = [(20, 0x20), (21, 0x21), (22, 0x22)];

/// The gateways behind a port, known for good.
pub fn gateways(port: usize) -> impl Iterator<Item = String> {
    KNOWN.into_iter().flat_map(move |(v4, v6)| {
        let mac = |last| mac_text([2, 0xbb, port as u8, 0, 0, last]);
        [
            format!("neigh replace 10.1.{port}.{v4} lladdr {} nud permanent dev p{port}", mac(v4)),
            format!("neigh replace 2001:db8:{port}::{v6:x} lladdr {} nud permanent dev p{port}", mac(v6)),
        ]
    })
}

/// Lets the kernel ask for the other gateways: of several paths it takes those that are known.
pub fn asking() -> Vec<Step> {
    let of = |port: usize, (v4, v6): (u8, u8)| {
        [
            format!("neigh replace 10.1.{port}.{v4} dev p{port} use"),
            format!("neigh replace 2001:db8:{port}::{v6:x} dev p{port} use"),
        ]
    };
    let all = (0..PORTS).flat_map(|port| ASKED.into_iter().flat_map(move |gateway| of(port, gateway)));
    all.map(Step::Ip).collect()
}

/// Settings that every state begins from, also for ports made again; a name without a port for all.
pub fn settings() -> Vec<(String, String)> {
    let mut list = Vec::new();
    let mut set = |key: &str, value: &str| list.push((key.to_owned(), value.to_owned()));
    for (key, value) in [
        ("ipv4/ip_forward", "1"),
        ("ipv6/conf/all/forwarding", "1"),
        ("ipv4/icmp_ratelimit", "0"),
        ("ipv4/icmp_ratemask", "0"),
        ("ipv4/icmp_msgs_per_sec", "100000000"),
        ("ipv4/icmp_msgs_burst", "100000000"),
        ("ipv6/icmp/ratelimit", "0"),
        ("ipv6/icmp/ratemask", ""),
        ("ipv4/fib_multipath_hash_seed", "4711"),
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/all/accept_redirects", "0"),
    ] {
        set(key, value);
    }
    let ports = (0..PORTS).map(|i| format!("p{i}"));
    for place in ["default".to_owned()].into_iter().chain(ports) {
        for (key, value) in [
            ("ipv4/conf/PORT/rp_filter", "0"),
            ("ipv4/conf/PORT/forwarding", "1"),
            ("ipv4/conf/PORT/accept_redirects", "0"),
            ("ipv6/conf/PORT/accept_redirects", "0"),
            ("ipv6/conf/PORT/disable_ipv6", "0"),
            ("ipv6/conf/PORT/accept_dad", "0"),
            ("ipv6/conf/PORT/dad_transmits", "0"),
        ] {
            set(&key.replace("PORT", &place), value);
        }
    }
    list
}
