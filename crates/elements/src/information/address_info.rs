//! AddressInfo.

use super::Settled;
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_engine::value::{Ether, Prefix4, Prefix6, Value};
use causeway_engine::{Addresses, Scope};

pub(crate) static SPEC: Spec = Spec {
    name: "AddressInfo",
    category: "information",
    summary: "gives names to addresses",
    ports: "0/0",
    phase: phase::INFO,
    doc: "Defines names for addresses. Each argument is a name and what it stands for: an IPv4 or IPv6 address, \
          with a prefix length when the name is to stand for the network too, a network, an Ethernet address, or \
          names defined before; one of each at most. Other elements then take the name for an address. Where a \
          prefix is wanted the name is that of its address alone, or of the network if it has no address. Where a \
          name has several kinds, the kind can be said: `gate:ip`, `gate:net` (or `gate:ipnet`), `gate:bcast`, \
          `gate:gw`, `gate:ip6`, `gate:ip6net`, `gate:eth`. The gateway `gate:gw` is that of an interface's default \
          route, else the first address of the network. A name defined inside a compound element is seen only there. Names of network interfaces \
          need no definition: `eth0` stands for that interface's addresses.",
    args: &[rest("NAME ADDRESS …", "name and addresses", "a name and what it stands for")],
    example: "AddressInfo(gate 10.0.0.1/24 2:0:0:0:0:1);\n\
              FastUDPSource(0, 9, 60, gate, gate, 7, 2:0:0:0:0:2, 10.0.0.2, 7) -> Discard;",
    see: &["ScheduleInfo"],
    build,
    ..Spec::DEFAULT
};

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    for text in conf.rest() {
        let mut words = text.split_whitespace();
        let Some(name) = words.next() else { continue };
        if words.clone().next().is_none() {
            conf.error("expected 'NAME [ADDRS]'");
        }
        for word in words {
            match addresses(word, &conf.env.names.scope(conf.name())) {
                Some(found) => {
                    let by = conf.name().clone();
                    conf.env.names.define(&by, name, found);
                }
                None => conf.error(format!("'{word}' is not a recognizable address")),
            }
        }
    }
    conf.finish()?;
    Ok(Box::new(Settled))
}

/// What one word stands for.
fn addresses(word: &str, scope: &Scope<'_>) -> Option<Addresses> {
    let none = Addresses::default();
    if word.contains('/') {
        // A network by itself is nobody's address.
        let v4 = Prefix4::parse_network(word, scope).map(|p| Addresses {
            ip: (p.len == 32 || u32::from(p.address) & !p.mask() != 0).then_some(p.address),
            ip_net: Some((p.address, p.len)),
            ..none
        });
        let v6 = || {
            Prefix6::parse(word, scope).map(|p| Addresses {
                ip6: (p.len == 128 || u128::from(p.address) & !p.mask() != 0).then_some(p.address),
                ip6_net: Some((p.address, p.len)),
                ..none
            })
        };
        return v4.or_else(|_| v6()).ok();
    }
    if let Some(all) = scope.get(word) {
        return Some(all);
    }
    let ether = Ether::parse(word, scope).map(|e| Addresses { ether: Some(e.0), ..none });
    let v4 = || Ipv4Addr::parse(word, scope).map(|a| Addresses { ip: Some(a), ..none });
    let v6 = || Ipv6Addr::parse(word, scope).map(|a| Addresses { ip6: Some(a), ..none });
    ether.or_else(|_| v4()).or_else(|_| v6()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::{Counters, Env};

    fn env(configs: &[(&str, &str)]) -> Result<Env, Vec<String>> {
        let mut env = Env::new(Counters::new(1, 16, None).unwrap());
        for (name, text) in configs {
            let mut conf = Conf::new(&mut env, (*name).into(), &SPEC, 0, (0, 0), text);
            if build(&mut conf).is_err() {
                return Err(conf.errors().to_vec());
            }
        }
        Ok(env)
    }

    #[test]
    fn names_stand_for_every_kind_of_address() {
        let env =
            env(&[("i", "gate 10.0.0.1/24 2:0:0:0:0:a fe80::1/64, host 10.0.0.9, copy gate, mac gate:eth")]);
        let env = env.unwrap();
        let scope = env.names.scope("x");
        assert_eq!(Ipv4Addr::parse("gate", &scope), Ok(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(Ipv4Addr::parse("gate:bcast", &scope), Ok(Ipv4Addr::new(10, 0, 0, 255)));
        let network = Prefix4 { address: Ipv4Addr::new(10, 0, 0, 0), len: 24 };
        assert_eq!(Prefix4::parse("gate:ipnet", &scope), Ok(network));
        assert_eq!(Prefix4::parse("gate:net", &scope), Ok(network));
        for (text, address) in [
            ("gate", [10, 0, 0, 1]),
            ("gate:ip4", [10, 0, 0, 1]),
            ("gate:bcast", [10, 0, 0, 255]),
            ("gate:gw", [10, 0, 0, 1]),
        ] {
            assert_eq!(
                Prefix4::parse(text, &scope),
                Ok(Prefix4 { address: address.into(), len: 32 }),
                "{text}"
            );
        }
        assert_eq!(Prefix4::parse("gate/16", &scope).map(|p| p.len), Ok(16));
        assert_eq!(Ether::parse("copy", &scope).map(|e| e.0), Ok([2, 0, 0, 0, 0, 10]));
        assert_eq!(Ipv6Addr::parse("gate:ip6", &scope), Ok("fe80::1".parse().unwrap()));
        assert_eq!(Prefix6::parse("copy", &scope).map(|p| p.len), Ok(128));
        assert_eq!(Prefix6::parse("copy:ip6net", &scope).map(|p| p.len), Ok(64));
        assert_eq!(Ipv4Addr::parse("host", &scope), Ok(Ipv4Addr::new(10, 0, 0, 9)));
        assert!(Ipv4Addr::parse("mac", &scope).is_err() && Ether::parse("mac", &scope).is_ok());
    }

    #[test]
    fn a_network_is_no_address() {
        let env = env(&[("i", "net 10.1.0.0/16, both 10.2.0.0/16 10.2.0.9, gw 10.3.0.0/24, gw:gw 10.3.0.7")])
            .unwrap();
        let scope = env.names.scope("x");
        assert!(Ipv4Addr::parse("net", &scope).is_err());
        let prefix = |text: &str| Prefix4::parse(text, &scope).map(|p| (p.address.octets(), p.len));
        assert_eq!(prefix("net"), Ok(([10, 1, 0, 0], 16)));
        assert_eq!(prefix("both"), Ok(([10, 2, 0, 9], 32)));
        assert_eq!(prefix("both:net"), Ok(([10, 2, 0, 0], 16)));
        assert_eq!((prefix("net:gw"), prefix("gw:gw")), (Ok(([10, 1, 0, 1], 32)), Ok(([10, 3, 0, 7], 32))));
    }

    #[test]
    fn names_in_compounds_stay_there() {
        let env = env(&[("c/i", "gate 10.0.0.1")]).unwrap();
        assert!(Ipv4Addr::parse("gate", &env.names.scope("c/x")).is_ok());
        assert!(Ipv4Addr::parse("gate", &env.names.scope("x")).is_err());
    }

    #[test]
    fn the_machine_s_interfaces_have_names() {
        let lo = crate::information::interface("lo").unwrap();
        let net = Some((Ipv4Addr::LOCALHOST, 8));
        assert_eq!((lo.ip, lo.ip_net), (Some(Ipv4Addr::LOCALHOST), net));
    }

    #[test]
    fn what_is_no_address_is_named() {
        assert_eq!(
            env(&[("i", "a 1.2.3.4, b 1.2.3")]).err().unwrap(),
            ["'1.2.3' is not a recognizable address"]
        );
    }
}
