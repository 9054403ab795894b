//! PortInfo.

use super::Settled;
use causeway_engine::prelude::*;
use causeway_engine::spec::phase;
use causeway_lang::addresses::{Transport, protocol};
use causeway_lang::args::split_words;
use causeway_lang::values::integer;

pub(crate) static SPEC: Spec = Spec {
    name: "PortInfo",
    category: "information",
    summary: "gives names to TCP and UDP ports",
    ports: "0/0",
    phase: phase::FIRST,
    doc: "Defines names for ports, each argument one or more: `NAME PORT`, for TCP and UDP, or `NAME PORT/tcp`, `NAME PORT/udp`, \
          and further names of the same port behind it. Lines of /etc/services can stand there as they are; what follows `#` is \
          a comment. Patterns of IPClassifier and IPFilter and the ports of UDPIPEncap then take the name for the port. A name \
          defined inside a compound element is seen only there, and one that is defined here goes before the services that \
          everybody knows.",
    args: &[rest("NAME PORT[/PROTOCOL]", "name and number", "a name and what it stands for")],
    example: "PortInfo(game 27015/udp); InfiniteSource(LIMIT 1, STOP true) -> UDPIPEncap(10.0.0.1, 7, 10.0.0.2, game) \
              -> c :: IPClassifier(dst port game, -); c[0] -> Discard; c[1] -> Discard;",
    see: &["AddressInfo", "IPNameInfo", "IPClassifier"],
    build,
    ..Spec::DEFAULT
};

const BOTH: &[Transport] = &[Transport::Tcp, Transport::Udp];

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    for text in conf.rest() {
        let words = split_words(&text);
        let mut words = words.iter().take_while(|word| !word.starts_with('#'));
        let Some(name) = words.next() else { continue };
        let text = words.next().map_or("", String::as_str);
        let (number, protocol) = text.split_once('/').map_or((text, None), |(n, p)| (n, Some(p)));
        let Ok(port) = integer(number, 0, u16::MAX.into()) else {
            conf.error("expected 'NAME PORT/PROTO'");
            continue;
        };
        let by = conf.name().clone();
        for name in std::iter::once(name).chain(words) {
            for transport in transports(protocol) {
                conf.env.names.define_port(&by, name, *transport, port as u16);
            }
        }
    }
    conf.finish()?;
    Ok(Box::new(Settled))
}

/// The transports that a line is about; others have no names here.
fn transports(name: Option<&str>) -> &'static [Transport] {
    match name.map(protocol) {
        None => BOTH,
        Some(Ok(6)) => &BOTH[..1],
        Some(Ok(17)) => &BOTH[1..],
        Some(_) => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::{Counters, Env};

    #[test]
    fn lines_define_names() {
        let mut env = Env::new(Counters::new(1, 16, None).unwrap());
        let config = "a 5, b 7/udp c d # e, # f 5, g 8/foo, h 0x50/tcp";
        let mut conf = Conf::new(&mut env, "box/i".into(), &SPEC, 0, (0, 0), config);
        assert!(build(&mut conf).is_ok());
        let of = |element: &str, name: &str| {
            BOTH.iter().map(|t| env.names.scope(element).port(name, *t)).collect::<Vec<_>>()
        };
        for (name, ports) in [
            ("a", [Some(5), Some(5)]),
            ("c", [None, Some(7)]),
            ("d", [None, Some(7)]),
            ("e", [None, None]),
            ("f", [None, None]),
            ("g", [None, None]),
            ("h", [Some(80), None]),
        ] {
            assert_eq!(of("box/x", name), ports, "{name}");
        }
        assert_eq!(of("x", "a"), [None, None], "outside of the compound");
    }

    #[test]
    fn what_is_no_port_is_named() {
        let mut env = Env::new(Counters::new(1, 16, None).unwrap());
        let mut conf = Conf::new(&mut env, "i".into(), &SPEC, 0, (0, 0), "a, b x, c 70000");
        assert!(build(&mut conf).is_err());
        assert_eq!(conf.errors(), ["expected 'NAME PORT/PROTO'"; 3]);
    }
}
