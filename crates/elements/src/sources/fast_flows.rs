//! FastTCPFlows and FastUDPFlows.

use super::flows::{Flows, Plan, Transport};
use causeway_engine::prelude::*;
use causeway_engine::settings::Fresh;
use causeway_engine::spec::Notifies;
use causeway_engine::value::{AtLeast, Ether};

pub(crate) static TCP: Spec = Spec {
    name: "FastTCPFlows",
    category: "sources",
    summary: "makes TCP packets of many flows at a rate",
    ports: "0/1",
    processing: "l/l",
    doc: "Gives Ethernet frames of LENGTH bytes that hold a TCP packet, RATE a second, LIMIT in all. Each is of one of FLOWS flows, \
          chosen at random. The first packet of a flow is a SYN, the last of FLOWSIZE a FIN, those between have data; then the flow \
          gets other ports at random. Sequence numbers do not go up. After LIMIT packets each flow that has not ended gets its FIN, \
          which is counted too. `active` begins anew when it becomes true.",
    args: TcpFlows::ARGS,
    handlers: TcpFlows::HANDLERS,
    example: "FastTCPFlows(0, 1000, 60, 2:0:0:0:0:1, 10.0.0.1, 2:0:0:0:0:2, 10.0.0.2, 100, 10) -> Discard(BURST 32);",
    see: &["FastUDPFlows", "FastUDPSource"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build: build::<TcpFlows>,
    ..Spec::DEFAULT
};

pub(crate) static UDP: Spec = Spec {
    name: "FastUDPFlows",
    category: "sources",
    summary: "makes UDP packets of many flows at a rate",
    ports: "0/1",
    processing: "l/l",
    doc: "Gives Ethernet frames of LENGTH bytes that hold a UDP packet, RATE a second, LIMIT in all. Each is of one of FLOWS flows, \
          chosen at random, which gets other ports at random after FLOWSIZE packets. `active` begins anew when it becomes true.",
    args: UdpFlows::ARGS,
    handlers: UdpFlows::HANDLERS,
    example: "FastUDPFlows(0, 1000, 60, 2:0:0:0:0:1, 10.0.0.1, 2:0:0:0:0:2, 10.0.0.2, 100, 10) -> Discard(BURST 32);",
    see: &["FastTCPFlows", "FastUDPSource"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build: build::<UdpFlows>,
    ..Spec::DEFAULT
};

/// The settings of both classes, where they are the same.
macro_rules! fast_flows {
    (
        $name:ident, $transport:expr, limit $limit:literal, flowsize $flowsize:literal,
        length { $($length:tt)* }, { $($checksum:tt)* }
    ) => {
        settings! {
            struct $name {
                rate: u32 = required("RATE", "packets a second", "how many; 0 means as many as are pulled"), live("rate", "packets a second; 0 means as many as are pulled");
                limit: i64 = required("LIMIT", "packets", $limit), live("limit", "most packets made; negative means no limit");
                length: u32 = required("LENGTH", "bytes", "length of a frame without its checksum; at least 60") $($length)*;
                srceth: Ether = required("SRCETH", "Ethernet address", "source address");
                srcip: Ipv4Addr = required("SRCIP", "IPv4 address", "source address");
                dsteth: Ether = required("DSTETH", "Ethernet address", "destination address");
                dstip: Ipv4Addr = required("DSTIP", "IPv4 address", "destination address");
                flows: AtLeast<1> = required("FLOWS", "flows", "how many at a time, at most 1048576");
                flowsize: u32 = required("FLOWSIZE", "packets", $flowsize);
                $($checksum)*
                active: bool = optional("ACTIVE", "boolean", "whether to give packets; default true"), or(true), live("active", "whether it gives packets");
            }
            counts {
                count: Fresh = reads("count", "packets made since the last reset").counts(Unit::Packets);
            }
            resets {
                "reset", "sets the count to zero, so that LIMIT packets are made again";
            }
        }

        impl Told for $name {
            fn plan(&self) -> Plan {
                let transport: fn(&$name) -> Transport = $transport;
                Plan {
                    rate_pps: self.rate,
                    limit: self.limit,
                    active: self.active,
                    length: self.length,
                    ether: [self.srceth.0, self.dsteth.0],
                    ip: [self.srcip, self.dstip],
                    flows: self.flows.0,
                    flow_len: self.flowsize,
                    transport: transport(self),
                }
            }

            fn count(&self) -> &Counter {
                &self.count
            }
        }
    };
}

fast_flows! {
    TcpFlows, |_| Transport::Tcp,
    limit "most packets made, but for the last FINs; negative means no limit",
    flowsize "length of a flow; at least 3", length {}, {}
}

fast_flows! {
    UdpFlows, |told| Transport::Udp { checksum: told.checksum },
    limit "most packets made; negative means no limit",
    flowsize "length of a flow",
    length { , live("length", "bytes of a frame without its checksum") },
    { checksum: bool = optional("CHECKSUM", "boolean", "whether packets have a UDP checksum; default true"), or(true); }
}

/// What the two classes have in common.
trait Told: Settings + Configure + Send {
    fn plan(&self) -> Plan;
    fn count(&self) -> &Counter;
}

/// The only timer: the next token.
const TOKEN: u32 = 0;

struct FastFlows<T> {
    told: T,
    flows: Flows,
}

fn build<T: Told>(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let told = T::configure(conf);
    let mut plan = told.plan();
    if let Err(why) = plan.check(&mut |warning| conf.warn(warning)) {
        conf.error(why);
    }
    conf.finish()?;
    Ok(Box::new(FastFlows { told, flows: Flows::new(plan) }))
}

impl<T: Told> Element for FastFlows<T> {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.flows.begin(cx);
        cx.notify_packets(self.flows.plan.active);
        Ok(())
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if self.flows.is_over(self.told.count().get()) {
            return cx.notify_packets(false);
        }
        let allowed = self.flows.allowed(max as u64, cx);
        let made = self.flows.fill(allowed, self.told.count().get(), batch, cx);
        self.told.count().add(made);
        if allowed == 0 {
            cx.notify_packets(false);
            if let Some(when_ns) = self.flows.next_ns() {
                cx.set_timer(TOKEN, when_ns);
            }
        }
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        cx.notify_packets(true);
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.told)
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        let mut plan = self.told.plan();
        let was_active = self.flows.plan.active;
        match plan.check(&mut |warning| log::warn!("{}: {warning}", cx.name())) {
            Ok(()) => self.flows.follow(plan, cx),
            Err(why) => log::error!("{}: {why}", cx.name()),
        }
        if plan.active && !was_active {
            self.told.count().set(0);
        }
        cx.notify_packets(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports};
    use causeway_packet::wire::{Ipv4, Udp, tcp::Tcp};
    use std::collections::HashMap;

    const HEADERS: &str = "2:0:0:0:0:1, 10.0.0.1, 2:0:0:0:0:2, 10.0.0.2";

    fn source(spec: &'static Spec, config: &str) -> Harness {
        let ports = Ports { pulled_inputs: vec![], outputs: vec![Output::Pulled] };
        Harness::with_ports(spec, config, &ports).unwrap()
    }

    /// The ports, and the flags of TCP.
    fn read(packet: &Packet) -> ((u16, u16), u8) {
        let ip = Ipv4::new_checked(packet.network_header().unwrap()).unwrap();
        assert!(ip.checksum_ok() && ip.ttl() == 250 && packet.dst_ip() == [10, 0, 0, 2]);
        if let Ok(udp) = Udp::new_checked(ip.payload())
            && ip.protocol() == 17
        {
            assert!(udp.checksum() == 0 || udp.checksum_ok(ip.pseudo_header(udp.length())));
            return ((udp.src_port(), udp.dst_port()), 0);
        }
        let tcp = Tcp::new_checked(ip.payload()).unwrap();
        assert!(tcp.checksum_ok(ip.pseudo_header(ip.payload().len() as u16)));
        ((tcp.src_port(), tcp.dst_port()), tcp.flags())
    }

    #[test]
    fn flows_of_udp_get_other_ports_after_so_many() {
        let mut h = source(&UDP, &format!("0, 120, 90, {HEADERS}, 4, 5"));
        let out: Vec<_> = (0..200).flat_map(|_| h.pull(0, 7)).collect();
        let mut flows: HashMap<_, usize> = HashMap::new();
        out.iter().for_each(|p| *flows.entry(read(p)).or_default() += 1);
        assert_eq!((out.len(), out[0].len(), h.read("count").unwrap()), (120, 90, "120".to_owned()));
        assert!(flows.values().all(|n| *n <= 5) && flows.len() >= 24, "{flows:?}");
        h.write("length", "70").unwrap();
        h.write("reset", "").unwrap();
        assert_eq!((h.pull(0, 1)[0].len(), h.read("length").unwrap()), (70, "70".to_owned()));
        let mut h = source(&UDP, &format!("0, -1, 20, {HEADERS}, 1, 5, false"));
        let out = h.pull(0, 1);
        assert_eq!((out[0].len(), &out[0].data()[40..42]), (60, &[0, 0][..]));
    }

    #[test]
    fn flows_of_tcp_begin_and_end() {
        let mut h = source(&TCP, &format!("0, 40, 60, {HEADERS}, 3, 4"));
        let out: Vec<_> = (0..50).flat_map(|_| h.pull(0, 9)).collect();
        let mut flows: HashMap<_, Vec<u8>> = HashMap::new();
        out.iter().map(read).for_each(|(ports, flags)| flows.entry(ports).or_default().push(flags));
        for flags in flows.values() {
            // One that was never begun has its end alone.
            let (last, others) = flags.split_last().unwrap();
            assert!(*last == 1 && others.len() <= 3, "{flags:?}");
            assert!(others.iter().enumerate().all(|(i, f)| *f == if i == 0 { 2 } else { 0x18 }), "{flags:?}");
        }
        assert_eq!(h.read("count").unwrap(), out.len().to_string());
        assert!((40..=43).contains(&out.len()));
    }

    #[test]
    fn rate_and_activity_hold() {
        let mut h = source(&TCP, &format!("1000, 5, 60, {HEADERS}, 1, 100"));
        assert_eq!((h.pull(0, 9).len(), h.pull(0, 9).len()), (1, 0));
        h.advance(2_000_000);
        assert_eq!(h.pull(0, 9).len(), 2);
        h.write("active", "false").unwrap();
        h.advance(9_000_000);
        assert_eq!(h.pull(0, 9).len(), 0);
        h.write("active", "true").unwrap();
        assert_eq!(h.read("count").unwrap(), "0");
        h.write("rate", "0").unwrap();
        // The limit, and the end of the flow.
        assert_eq!((h.pull(0, 9).len(), h.read("rate").unwrap()), (6, "0".to_owned()));
    }

    #[test]
    fn bad_configurations_are_named() {
        let error = |config: String| Harness::new(&UDP, &config, 0, 1).err().unwrap().concat();
        assert_eq!(error(format!("0, 1, 60, {HEADERS}, 0, 5")), "FLOWS: must be at least 1");
        assert_eq!(error(format!("0, 1, 60, {HEADERS}, 2000000, 5")), "FLOWS: out of range, bound 1048576");
        assert!(error(format!("0, 1, 60000, {HEADERS}, 1, 5")).starts_with("LENGTH: 60000 bytes"));
    }
}
