//! LinuxIPLookup.

use super::hops::Hop;
use super::lookup::{LENGTH, LOOKUP, Reason, TABLE, build_of};
use super::routes::Route;
use causeway_engine::prelude::*;
use causeway_fib::{Compact16, Prefix};

pub(crate) static SPEC: Spec = Spec {
    name: "LinuxIPLookup",
    category: "iproute",
    summary: "looks up IPv4 routes in the kernel's table of when the router started",
    ports: "1/1-",
    processing: "h/h",
    doc: "Reads the kernel's main routing table once, when the configuration is read, and looks up the destination annotation of each packet there: \
          it leaves by the output whose number is that of the route's interface among the arguments, with the annotation \
          set to the gateway if there is one. What has no route, or one by another interface, leaves by the output behind \
          those, or is dropped if there is none; there may be one output more than arguments, and no further. Routes that the kernel gets later are not seen; KernelForward follows them.",
    args: &[rest(
        "DEVNAME",
        "interface name",
        "the interface whose packets leave by the output of this number",
    )],
    handlers: &[TABLE, LENGTH, LOOKUP],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> UDPIPEncap(1.0.0.1, 53, 127.0.0.1, 53) -> rt :: LinuxIPLookup(lo); \
              rt[0] -> Discard; rt[1] -> Discard;",
    see: &["KernelForward", "IPLookup"],
    build: |conf| {
        let interfaces = conf.rest();
        conf.finish()?;
        let named = interfaces.len();
        if !(named..=named + 1).contains(&conf.n_outputs()) {
            conf.error(format!("need {named} or {} output ports", named + 1));
            return Err(Invalid);
        }
        let kernels = std::fs::read_to_string("/proc/net/route").map_err(|e| {
            conf.error(format!("/proc/net/route: {e}"));
            Invalid
        })?;
        let routes = routes(&kernels, &interfaces, conf.n_outputs());
        build_of::<u32, Compact16>(conf, &routes)
    },
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

/// Flags of a route (route(8)): it is up, and refuses what it is for.
const UP: u16 = 1;
const REJECT: u16 = 0x200;

/// The routes of the kernel's text to `interfaces`, of which the first of a prefix counts. Those by others lead to the output behind
/// them, and so does what has no route, if there is that output.
fn routes(kernels: &str, interfaces: &[String], outputs: usize) -> Vec<Route<u32>> {
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let other = Hop { gateway: 0, port: interfaces.len() as u16 };
    let read = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [interface, destination, gateway, flags, _, _, metric, mask, ..] = fields[..] else {
            return None;
        };
        // The kernel prints addresses as they lie in memory.
        let [destination, gateway, mask] = [destination, gateway, mask]
            .map(|text| number(text).map(|word| u32::from_be_bytes(word.to_ne_bytes())));
        let flags = u16::from_str_radix(flags, 16).ok().filter(|flags| flags & UP != 0)?;
        let port = interfaces.iter().position(|name| name == interface).filter(|_| flags & REJECT == 0);
        let hop = port.map_or(Some(other), |port| Some(Hop { gateway: gateway?, port: port as u16 }))?;
        let prefix = Prefix::truncated(destination?, mask?.leading_ones() as u8);
        Some((metric.parse::<u32>().unwrap_or(0), Route { prefix, hop }))
    };
    let mut routes: Vec<_> = kernels.lines().filter_map(read).collect();
    routes.sort_by_key(|(metric, _)| *metric);
    let rest = Route { prefix: Prefix::truncated(0, 0), hop: other };
    let routes = routes.into_iter().map(|(_, route)| route).chain([rest]);
    let mut seen = std::collections::HashSet::new();
    routes.filter(|route| usize::from(route.hop.port) < outputs && seen.insert(route.prefix)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    const KERNELS: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        eth1\t0000010A\t00000000\t0001\t0\t0\t5\t00FFFFFF\t0\t0\t0\n\
        eth0\t0000010A\t00000000\t0001\t0\t0\t9\t00FFFFFF\t0\t0\t0\n\
        eth2\t0000020A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
        eth0\t0000030A\t00000000\t0201\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
        eth0\t0000040A\t00000000\t0000\t0\t0\t0\t0000FFFF\t0\t0\t0\n";

    /// Prefixes, gateways and outputs.
    fn read(interfaces: &[&str], outputs: usize) -> Vec<String> {
        let interfaces: Vec<String> = interfaces.iter().map(|name| name.to_string()).collect();
        let text = |r: Route<u32>| {
            let (first, gateway) = (Ipv4Addr::from(r.prefix.first()), Ipv4Addr::from(r.hop.gateway));
            format!("{first}/{} {gateway} {}", r.prefix.len(), r.hop.port)
        };
        routes(KERNELS, &interfaces, outputs).into_iter().map(text).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn routes_lead_to_the_interfaces_that_are_named() {
        let [two, three] = ["10.2.0.0/16 0.0.0.0 2", "10.3.0.0/16 0.0.0.0 2"];
        let [one, all] = ["10.1.0.0/24 0.0.0.0 1", "0.0.0.0/0 10.0.0.1 0"];
        assert_eq!(read(&["eth0", "eth1"], 3), [two, three, one, all]);
        assert_eq!(read(&["eth0", "eth1"], 2), [one, all], "without an output for the others");
        assert_eq!(read(&["eth1"], 2).last().unwrap(), "0.0.0.0/0 0.0.0.0 1");
    }

    #[test]
    fn outputs_are_as_many_as_interfaces_or_one_more() {
        for (interfaces, outputs, right) in
            [("a, b", 1, false), ("a, b", 2, true), ("a, b", 3, true), ("a, b", 4, false)]
        {
            let made = Harness::new(&SPEC, interfaces, 1, outputs).map(drop);
            let expected = if right { Ok(()) } else { Err(vec!["need 2 or 3 output ports".to_owned()]) };
            assert_eq!(made, expected, "{outputs}");
        }
    }

    #[test]
    fn the_kernels_table_is_read() {
        let mut h = Harness::new(&SPEC, "no such interface", 1, 2).unwrap();
        let mut p = packet(b"");
        p.set_dst_ip([192, 0, 2, 1]);
        h.push(0, p);
        assert_eq!((h.take(0).len(), h.take(1).len()), (0, 1));
    }
}
