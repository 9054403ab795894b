//! Elements that are configured anew while they run: by their handler `config`.

use causeway_engine::spec::{HandlerDoc, reads_writes};
use causeway_engine::{Conf, Counters, Cx, Defaults, Element, Env, Names, Spec};
use std::any::Any;

/// The handler.
pub(crate) const CONFIG: HandlerDoc = reads_writes(
    "config",
    "the configuration; what is written takes its place, while counts and packets stay",
);

/// What the configuration of an element depends on besides its text.
pub(crate) struct Anew {
    spec: &'static Spec,
    names: Names,
    defaults: Defaults,
}

impl Anew {
    /// As the element is being configured now.
    pub(crate) fn new(conf: &Conf<'_>) -> Self {
        Anew { spec: conf.spec(), names: conf.env.names.clone(), defaults: conf.env.defaults }
    }

    /// The element that `text` configures, for the running one to take its settings from. It has counters of its
    /// own, that nobody reads.
    pub(crate) fn element<T: Element>(&self, text: &str, cx: &Cx<'_>) -> Result<Box<T>, String> {
        let counters = Counters::new(cx.worker() + 1, 64, None).map_err(|e| e.to_string())?;
        let mut env = Env::new(counters);
        (env.names, env.defaults) = (self.names.clone(), self.defaults);
        let ports = (cx.n_inputs(), cx.n_outputs());
        let mut conf = Conf::new(&mut env, cx.name().into(), self.spec, cx.worker(), ports, text);
        let built = (self.spec.build)(&mut conf).map_err(|_| conf.errors().join("\n"))?;
        let built: Box<dyn Any> = built;
        built.downcast().map_err(|_| "cannot be configured anew".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use causeway_engine::harness::{Harness, Output, Ports};

    #[test]
    fn what_is_written_takes_the_place_of_the_configuration() {
        let ether = "2:0:0:0:0:1";
        for (class, outputs, before, after, handler, value) in [
            ("ARPQuerier", 1, "1.0.0.1, 2:0:0:0:0:1", "1.0.0.2, 2:0:0:0:0:1", "ipaddr", "1.0.0.2"),
            (
                "ARPResponder",
                1,
                "1.0.0.1 2:0:0:0:0:1",
                "1.0.0.2 2:0:0:0:0:1",
                "table",
                "1.0.0.2/32 02-00-00-00-00-01\n",
            ),
            (
                "EtherEncap",
                1,
                "0x800, 2:0:0:0:0:1, 2:0:0:0:0:1",
                "0x806, 2:0:0:0:0:1, 2:0:0:0:0:1",
                "etht",
                "2054",
            ),
            ("ICMPError", 1, "1.0.0.1, unreachable", "1.0.0.2, redirect, MTU 200", "mtu", "200"),
            ("IPEncap", 1, "4, 1.0.0.1, 1.0.0.2", "4, 1.0.0.3, 1.0.0.2", "src", "1.0.0.3"),
            ("InfiniteSource", 1, "LIMIT 0", "LIMIT 0, BURST 7", "burstsize", "7"),
            ("Paint", 1, "1", "2", "color", "2"),
            ("Print", 1, "a", "b, ACTIVE false", "active", "false"),
            ("Queue", 1, "10", "20", "capacity", "20"),
            ("SimpleQueue", 1, "10", "20", "capacity", "20"),
            ("SetIPAddress", 1, "1.0.0.1", "1.0.0.2", "addr", "1.0.0.2"),
            ("Switch", 2, "0", "1", "switch", "1"),
            ("UDPIPEncap", 1, "1.0.0.1, 1, 1.0.0.2, 2", "1.0.0.1, 1, 1.0.0.2, 3", "dport", "3"),
        ] {
            let spec = crate::library().get(class).unwrap();
            let inputs = match spec.ports.split_once('/').map(|(inputs, _)| inputs) {
                Some("0") => 0,
                Some("2") => 2,
                _ => 1,
            };
            let ports = Ports { pulled_inputs: vec![false; inputs], outputs: vec![Output::Pushed; outputs] };
            let mut h = Harness::with_ports(spec, before, &ports).unwrap();
            assert_eq!(h.read("config").unwrap(), before, "{class}");
            h.write("config", after).unwrap();
            assert_eq!(
                (h.read(handler).unwrap().as_str(), h.read("config").unwrap().as_str()),
                (value, after),
                "{class}"
            );
            let bad = format!("{after}, NONSENSE {ether}");
            assert!(h.write("config", &bad).is_err(), "{class}");
            assert_eq!(
                (h.read(handler).unwrap().as_str(), h.read("config").unwrap().as_str()),
                (value, after),
                "{class}"
            );
        }
    }
}
