//! `causeway new router`: writes the standard router between interfaces, as make-ip-conf of Click does, and for IPv6 too.

use crate::cli::NewRouterArgs;
use crate::output;
use anyhow::{Context, Result, anyhow, bail, ensure};
use causeway_lang::addresses;
use causeway_netio::addresses::of_interface;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;

/// An interface of the router.
#[derive(Debug, Default, PartialEq)]
struct Port {
    name: String,
    mac: String,
    v4: Vec<(Ipv4Addr, u8)>,
    v6: Vec<(Ipv6Addr, u8)>,
}

/// A route beyond the interfaces' own networks.
#[derive(Debug, PartialEq)]
struct Route {
    prefix: (IpAddr, u8),
    gateway: Option<IpAddr>,
    /// Number of the interface.
    port: usize,
}

/// Writes the configuration.
pub fn new_router(args: &NewRouterArgs) -> Result<ExitCode> {
    let ports = args.interfaces.iter().map(|text| port(text)).collect::<Result<Vec<_>>>()?;
    for (i, port) in ports.iter().enumerate() {
        ensure!(!ports[..i].iter().any(|p| p.name == port.name), "{} is named twice", port.name);
    }
    let routes = args.route.iter().map(|text| route(text, &ports)).collect::<Result<Vec<_>>>()?;
    let text = configuration(&ports, &routes);
    match &args.output {
        Some(file) => {
            std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?
        }
        None => output::print(text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads `IF` or `IF=ADDRESS,...`, and from the machine what that does not say.
fn port(text: &str) -> Result<Port> {
    let (name, given) = text.split_once('=').unwrap_or((text, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    ensure!(!name.is_empty() && name.chars().all(is_name), "'{name}' is not a name of an interface");
    let mut port = Port { name: name.to_owned(), ..Port::default() };
    for word in given.split(',').filter(|word| !word.is_empty()) {
        match word.split_once('/') {
            None => {
                let mac = addresses::ether(word);
                let mac = mac.map_err(|_| {
                    anyhow!(
                        "{name}: '{word}' is neither an address with a prefix length nor an Ethernet address"
                    )
                })?;
                port.mac = colons(mac);
            }
            Some(_) => match prefix(word).with_context(|| name.to_owned())? {
                (IpAddr::V4(address), len) => port.v4.push((address, len)),
                (IpAddr::V6(address), len) => port.v6.push((address, len)),
            },
        }
    }
    let found = of_interface(name).unwrap_or_default();
    if port.v4.is_empty() && port.v6.is_empty() {
        port.v4.extend(found.ip);
        port.v6.extend(found.ip6.filter(|(address, _)| !address.is_unicast_link_local()));
    }
    if port.mac.is_empty() {
        let mac = found.mac.with_context(|| {
            format!("{name} is no interface of this machine with an Ethernet address: say it, {name}=MAC,ADDRESS/LENGTH")
        })?;
        port.mac = colons(mac);
    }
    if port.v4.is_empty() && port.v6.is_empty() {
        bail!("{name} has no address: say one, {name}=ADDRESS/LENGTH");
    }
    Ok(port)
}

fn colons(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Reads `ADDRESS/LENGTH`.
fn prefix(text: &str) -> Result<(IpAddr, u8)> {
    let parsed = text
        .split_once('/')
        .and_then(|(address, len)| Some((address.parse::<IpAddr>().ok()?, len.parse::<u8>().ok()?)));
    let most = |address: &IpAddr| if address.is_ipv4() { 32 } else { 128 };
    parsed
        .filter(|(address, len)| *len <= most(address))
        .with_context(|| format!("'{text}' is not an address with a prefix length"))
}

/// Reads `PREFIX [GATEWAY] IF`.
fn route(text: &str, ports: &[Port]) -> Result<Route> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (first, gateway, name) = match words[..] {
        [first, gateway, name] => (first, Some(gateway), name),
        [first, name] => (first, None, name),
        _ => bail!("route '{text}': write it as PREFIX [GATEWAY] IF"),
    };
    let prefix = prefix(first).with_context(|| format!("route '{text}'"))?;
    let gateway: Option<IpAddr> = gateway
        .map(|g| g.parse().map_err(|_| anyhow!("route '{text}': '{g}' is not an address")))
        .transpose()?;
    if gateway.is_some_and(|g| g.is_ipv4() != prefix.0.is_ipv4()) {
        bail!("route '{text}': prefix and gateway are of different versions");
    }
    let port = ports.iter().position(|p| p.name == name);
    let port = port.with_context(|| format!("route '{text}': {name} is not among the interfaces"))?;
    Ok(Route { prefix, gateway, port })
}

/// The first address of a network, and the last.
fn ends4((address, len): (Ipv4Addr, u8)) -> (Ipv4Addr, Ipv4Addr) {
    let hosts = u32::MAX.checked_shr(len.into()).unwrap_or(0);
    ((u32::from(address) & !hosts).into(), (u32::from(address) | hosts).into())
}

fn network6((address, len): (Ipv6Addr, u8)) -> Ipv6Addr {
    let hosts = u128::MAX.checked_shr(len.into()).unwrap_or(0);
    (u128::from(address) & !hosts).into()
}

/// The address that every node of a link has from its Ethernet address (RFC 4291 §2.5.6, appendix A).
fn link_local(mac: &str) -> Ipv6Addr {
    let bytes: Vec<u16> = mac.split(':').filter_map(|byte| u16::from_str_radix(byte, 16).ok()).collect();
    match bytes[..] {
        [a, b, c, d, e, f] => {
            Ipv6Addr::new(0xfe80, 0, 0, 0, (a ^ 2) << 8 | b, c << 8 | 0xff, 0xfe00 | d, e << 8 | f)
        }
        _ => Ipv6Addr::UNSPECIFIED,
    }
}

/// The whole configuration.
fn configuration(ports: &[Port], routes: &[Route]) -> String {
    let names: Vec<&str> = ports.iter().map(|p| p.name.as_str()).collect();
    let mut text = format!(
        "// The standard router between {}, made by causeway new router.\n\
         //\n\
         // It has these interfaces for itself: it answers ARP and neighbour solicitations for its addresses, and pings over\n\
         // IPv4; what else is for it ends at `own4` and `own6`. `routes4` and `routes6` can be changed while it runs.\n\n",
        names.join(", ")
    );
    let has4 = ports.iter().any(|p| !p.v4.is_empty());
    let has6 = ports.iter().any(|p| !p.v6.is_empty());
    // Writing to a string cannot fail.
    if has4 {
        let own: Vec<String> =
            ports.iter().flat_map(|p| &p.v4).map(|(a, len)| format!("{a}/{len}")).collect();
        let _ = writeln!(
            text,
            "routes4 :: IPLookup({});\n\
             check4 :: Strip(14) -> CheckIPHeader(INTERFACES {}) -> GetIPAddress(16) -> routes4;\n\
             routes4 [0] -> ping :: ICMPPingResponder -> routes4;\n\
             ping [1] -> own4 :: Counter -> Discard;",
            table4(ports, routes).join(",\n                    "),
            own.join(" ")
        );
    }
    if has6 {
        let _ = writeln!(
            text,
            "routes6 :: LookupIP6Route({});\n\
             check6 :: Strip(14) -> CheckIP6Header(::) -> GetIP6Address(24) -> routes6;\n\
             routes6 [0] -> own6 :: Counter -> Discard;",
            table6(ports, routes).join(",\n                          ")
        );
    }
    for (n, port) in ports.iter().enumerate() {
        link(&mut text, n, port);
        if has4 {
            leave4(&mut text, n, port);
        }
        if has6 {
            leave6(&mut text, n, port);
        }
    }
    text
}

fn table4(ports: &[Port], routes: &[Route]) -> Vec<String> {
    let mut table = vec!["255.255.255.255/32 0".to_owned()];
    for (n, port) in ports.iter().enumerate() {
        for &(address, len) in &port.v4 {
            let (first, last) = ends4((address, len));
            table.push(format!("{address}/32 0"));
            if len < 31 {
                table.extend([first, last].map(|end| format!("{end}/32 0")));
            }
            if len < 32 {
                table.push(format!("{first}/{len} {}", n + 1));
            }
        }
    }
    let further = routes.iter().filter_map(|r| match (r.prefix, r.gateway) {
        ((IpAddr::V4(a), len), gateway) => {
            let gateway = gateway.map_or(String::new(), |g| format!("{g} "));
            Some(format!("{}/{len} {gateway}{}", ends4((a, len)).0, r.port + 1))
        }
        _ => None,
    });
    table.extend(further);
    table
}

fn table6(ports: &[Port], routes: &[Route]) -> Vec<String> {
    // What is for this link alone is not forwarded (RFC 4291 §2.5.6, §2.7).
    let mut table = vec!["fe80::/10 0".to_owned(), "ff00::/8 0".to_owned()];
    for (n, port) in ports.iter().enumerate() {
        for &(address, len) in &port.v6 {
            table.push(format!("{address}/128 0"));
            if len < 128 {
                table.push(format!("{}/{len} {}", network6((address, len)), n + 1));
            }
        }
    }
    let further = routes.iter().filter_map(|r| match (r.prefix, r.gateway) {
        ((IpAddr::V6(a), len), gateway) => {
            let gateway = gateway.map_or(String::new(), |g| format!("{g} "));
            Some(format!("{}/{len} {gateway}{}", network6((a, len)), r.port + 1))
        }
        _ => None,
    });
    table.extend(further);
    // An interface has an address twice if two networks have it.
    table.dedup();
    table
}

/// What comes in by an interface.
fn link(text: &mut String, n: usize, Port { name, mac, v4, v6 }: &Port) {
    let _ = write!(
        text,
        "
// {name}
FromDevice({name}) -> kind{n} :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800,
    12/86dd 20/3aff 54/87, 12/86dd 20/3aff 54/88, 12/86dd, -);
send{n} :: Queue(1000) -> ToDevice({name});
other{n} :: Counter -> Discard;
kind{n} [6] -> other{n};
"
    );
    match v4.first() {
        Some((address, len)) => {
            let own: Vec<String> = v4.iter().map(|(a, _)| a.to_string()).collect();
            let _ = write!(
                text,
                "kind{n} [0] -> ARPResponder({} {mac}) -> send{n};
arp{n} :: ARPQuerier({address}/{len}, {mac}) -> send{n};
arp{n} [1] -> send{n};
arp{n} [2] -> ICMPError({address}, unreachable, host) -> routes4;
kind{n} [1] -> [1] arp{n};
kind{n} [2] -> Paint({}) -> check4;
",
                own.join(" "),
                n + 1
            );
        }
        None => unused(text, n, 0..3),
    }
    if v6.is_empty() {
        return unused(text, n, 3..6);
    }
    let local = link_local(mac);
    let own: Vec<String> =
        v6.iter().map(|(a, _)| a.to_string()).filter(|a| *a != local.to_string()).collect();
    let _ = write!(
        text,
        "kind{n} [3] -> IP6NDAdvertiser({local} {} {mac}) -> send{n};
nd{n} :: IP6NDSolicitor({local}, {mac}) -> send{n};
nd{n} [1] -> send{n};
kind{n} [4] -> [1] nd{n};
kind{n} [5] -> Paint({}) -> check6;
",
        own.join(" "),
        n + 1
    );
}

/// Packets of a version that an interface has no address of.
fn unused(text: &mut String, n: usize, outputs: std::ops::Range<usize>) {
    for output in outputs {
        let _ = writeln!(text, "kind{n} [{output}] -> other{n};");
    }
}

/// What is done to IPv4 packets before they leave.
fn leave4(text: &mut String, n: usize, port: &Port) {
    let Some((address, len)) = port.v4.first() else {
        let _ = writeln!(text, "routes4 [{}] -> Discard;", n + 1);
        return;
    };
    let number = n + 1;
    let _ = write!(
        text,
        "routes4 [{number}] -> DropBroadcasts -> redirect{n} :: PaintTee({number}) -> options{n} :: IPGWOptions({address})
    -> FixIPSrc({address}) -> ttl{n} :: DecIPTTL -> fragment{n} :: IPFragmenter(1500) -> arp{n};
redirect{n} [1] -> ICMPError({address}/{len}, redirect, host) -> routes4;
options{n} [1] -> ICMPError({address}, parameterproblem) -> routes4;
ttl{n} [1] -> ICMPError({address}, timeexceeded) -> routes4;
fragment{n} [1] -> ICMPError({address}, unreachable, needfrag, PMTU 1500) -> routes4;
"
    );
}

/// The same for IPv6.
fn leave6(text: &mut String, n: usize, port: &Port) {
    let Some((address, _)) = port.v6.first() else {
        let _ = writeln!(text, "routes6 [{}] -> Discard;", n + 1);
        return;
    };
    let _ = write!(
        text,
        "routes6 [{}] -> DropBroadcasts -> hops{n} :: DecIP6HLIM -> size{n} :: IP6Fragmenter(1500) -> nd{n};
hops{n} [1] -> ICMP6Error({address}, 3, 0) -> routes6;
size{n} [1] -> ICMP6Error({address}, 2, 0, MTU 1500) -> routes6;
",
        n + 1
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: &str = "02:00:00:00:00:01";

    fn wrong(text: &str) -> String {
        format!("{:#}", port(text).unwrap_err())
    }

    #[test]
    fn interfaces_are_read() {
        let p = port(&format!("x0={MAC},10.0.0.1/24,2001:db8::1/64")).unwrap();
        assert_eq!((p.mac.as_str(), p.v4.len(), p.v6.len()), (MAC, 1, 1));
        assert!(port("lo=10.0.0.1/8").is_err() || port("lo=10.0.0.1/8").unwrap().mac == "00:00:00:00:00:00");
        assert!(wrong("x0=10.0.0.1").contains("neither an address with a prefix length"));
        assert_eq!(wrong("x0=10.0.0.1/33"), "x0: '10.0.0.1/33' is not an address with a prefix length");
        assert!(wrong("x0=10.0.0.1/24").contains("say it, x0=MAC"));
        assert!(wrong(&format!("x0={MAC}")).contains("has no address"));
        assert_eq!(wrong("x;y"), "'x;y' is not a name of an interface");
        assert_eq!(link_local(MAC).to_string(), "fe80::ff:fe00:1");
    }

    #[test]
    fn routes_are_read() {
        let ports = [port(&format!("x0={MAC},10.0.0.1/24")).unwrap()];
        let good = route("0.0.0.0/0 10.0.0.9 x0", &ports).unwrap();
        assert_eq!((good.gateway, good.port), (Some([10, 0, 0, 9].into()), 0));
        for (text, why) in [
            ("0.0.0.0/0", "write it as"),
            ("0.0.0.0/0 y0", "not among"),
            ("0.0.0.0/0 ::1 x0", "different versions"),
            ("0.0.0.0/0 me x0", "'me' is not an address"),
        ] {
            let error = format!("{:#}", route(text, &ports).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn what_is_written_is_a_router() {
        let library = causeway_elements::library();
        let all = [
            format!("x0={MAC},10.0.0.1/24,2001:db8::1/64"),
            format!("x1={MAC},10.0.1.1/30,10.0.2.1/31"),
            format!("x2={MAC},2001:db8:2::1/64"),
        ];
        for n in 1..8usize {
            let ports: Vec<Port> =
                (0..3).filter(|i| n >> i & 1 == 1).map(|i| port(&all[i]).unwrap()).collect();
            let further = ["0.0.0.0/0 10.0.0.9 x0", "::/0 2001:db8::9 x0"].map(|r| route(r, &ports));
            let text = configuration(&ports, &further.into_iter().flatten().collect::<Vec<_>>());
            let compiled =
                causeway_lang::compile("router", text.as_bytes(), &causeway_lang::NoLibraries, &library, &[]);
            let compiled = compiled.unwrap_or_else(|f| panic!("{text}\n{:?}", f.diagnostics.messages()));
            let plan = causeway_engine::Plan::new(&compiled);
            let checked =
                causeway_engine::Router::check(&library, &plan, &causeway_engine::Options::default());
            assert!(checked.is_ok(), "{text}");
        }
    }
}
