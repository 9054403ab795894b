//! The standard IP router as a configuration: the shape that Click's own generator of routers gives it.
//!
//! Tests compare its plain and its fused graph, and the benchmark runs it from source to sink.

use std::fmt::Write;
use std::net::Ipv4Addr;

/// One interface of the router.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The interface's address.
    pub address: Ipv4Addr,
    /// Its prefix length.
    pub prefix_len: u8,
    /// Its Ethernet address, as configurations write it.
    pub mac: String,
    /// Text of the element that gives its frames, such as `FromDevice(eth0)`.
    pub input: String,
    /// Text of the element that takes its frames from a queue, such as `ToDevice(eth0)`.
    pub output: String,
}

/// The configuration of a router between `interfaces`. `table` is the class of its routing table, with arguments of
/// its own behind a blank, and `routes` are further routes, `PREFIX [GATEWAY] NUMBER` with the numbers of interfaces
/// from 0.
///
/// Its elements are, for interface *i*: `c`*i* (the classifier), `ar`*i*, `arpq`*i*, `cp`*i*, `gio`*i*, `dt`*i*,
/// `fr`*i* and `out`*i* (the queue); `chk` checks headers, `rt` is the routing table, `host` takes what is for the
/// router itself.
pub fn configuration(interfaces: &[Interface], table: &str, routes: &[String]) -> String {
    let mut text = String::new();
    let mut all = vec![];
    for i in interfaces {
        all.push(format!("{}/32 0", i.address));
    }
    for (n, i) in interfaces.iter().enumerate() {
        let network = u32::from(i.address) & u32::MAX.checked_shl(32 - u32::from(i.prefix_len)).unwrap_or(0);
        all.push(format!("{}/{} {}", Ipv4Addr::from(network), i.prefix_len, n + 1));
    }
    for route in routes {
        let (front, port) = route.rsplit_once(' ').unwrap_or((route, "0"));
        all.push(format!("{front} {}", port.parse::<usize>().unwrap_or(0) + 1));
    }
    let (class, arguments) = table.split_once(' ').unwrap_or((table, ""));
    all.extend((!arguments.is_empty()).then(|| arguments.to_owned()));
    let own: Vec<String> = interfaces.iter().map(|i| format!("{}/{}", i.address, i.prefix_len)).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "rt :: {class}({});", all.join(", "));
    let _ = writeln!(text, "ip :: Strip(14) -> chk :: CheckIPHeader(INTERFACES {}) -> [0]rt;", own.join(" "));
    let _ = writeln!(text, "rt[0] -> host :: Counter -> Discard;");
    for (n, i) in interfaces.iter().enumerate() {
        one(&mut text, n, i);
    }
    text
}

fn one(text: &mut String, n: usize, i: &Interface) {
    let Interface { address, prefix_len, mac, input, output } = i;
    let port = n + 1;
    let _ = write!(
        text,
        "
// Interface {n}
{input} -> c{n} :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
out{n} :: Queue(200) -> {output};
c{n}[0] -> ar{n} :: ARPResponder({address} {mac}) -> out{n};
arpq{n} :: ARPQuerier({address}/{prefix_len}, {mac}) -> out{n};
c{n}[1] -> [1]arpq{n};
c{n}[2] -> Paint({port}) -> ip;
c{n}[3] -> other{n} :: Counter -> Discard;
rt[{port}] -> db{n} :: DropBroadcasts -> cp{n} :: PaintTee({port}) -> gio{n} :: IPGWOptions({address})
  -> FixIPSrc({address}) -> dt{n} :: DecIPTTL -> fr{n} :: IPFragmenter(1500) -> [0]arpq{n};
dt{n}[1] -> ICMPError({address}, timeexceeded) -> [0]rt;
fr{n}[1] -> ICMPError({address}, unreachable, needfrag) -> [0]rt;
gio{n}[1] -> ICMPError({address}, parameterproblem) -> [0]rt;
cp{n}[1] -> ICMPError({address}, redirect, host) -> [0]rt;
"
    );
}
