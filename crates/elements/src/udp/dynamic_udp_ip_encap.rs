//! DynamicUDPIPEncap.

use super::udp_ip_encap::{Encapsulation, Ends, Port, Reason};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "DynamicUDPIPEncap",
    category: "udp",
    summary: "puts UDP and IP headers in front of packets, whose ports go up",
    doc: "As UDPIPEncap; after every INTERVAL packets both ports are raised by one.",
    args: Headers::ARGS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> DynamicUDPIPEncap(1.0.0.1, 1234, 1.0.0.2, 1234, true, 2) -> Discard;",
    see: &["UDPIPEncap"],
    build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

settings! {
    struct Headers {
        src: Ipv4Addr = required("SRC", "IP address", "the source");
        sport: Port = required("SPORT", "UDP port", "the first source port");
        dst: Ipv4Addr = required("DST", "IP address", "the destination");
        dport: Port = required("DPORT", "UDP port", "the first destination port");
        checksum: bool = optional("CHECKSUM", "boolean", "whether to compute the UDP checksum; default true"), or(true);
        interval: u32 = optional("INTERVAL", "packets", "after how many the ports go up; default 0, never"), or(0);
    }
}

struct DynamicUDPIPEncap {
    ends: Ends,
    encapsulation: Encapsulation,
    interval: u32,
    /// Packets since the ports went up.
    count: u32,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let Headers { src, sport, dst, dport, checksum, interval } = Headers::configure(conf);
    conf.finish()?;
    let ends = Ends { src, sport: sport.0, dst: Some(dst), dport: dport.0, checksum };
    Ok(Box::new(DynamicUDPIPEncap { ends, encapsulation: Encapsulation::new(src), interval, count: 0 }))
}

impl Element for DynamicUDPIPEncap {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        if let Err(reason) = self.encapsulation.apply(packet, self.ends) {
            return Verdict::drop(reason);
        }
        self.count += 1;
        if self.count == self.interval {
            self.count = 0;
            self.ends.sport = self.ends.sport.wrapping_add(1);
            self.ends.dport = self.ends.dport.wrapping_add(1);
        }
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};
    use causeway_packet::wire::{Ipv4, Udp};

    fn ports(h: &mut Harness) -> Vec<(u16, u16, u16)> {
        h.push_all(0, (0..5).map(|n| packet(&[n])));
        let read = |p: Packet| {
            let ip = Ipv4::new_checked(p.data()).unwrap();
            let udp = Udp::new_checked(ip.payload()).unwrap();
            assert!(ip.checksum_ok() && udp.checksum_ok(ip.pseudo_header(udp.length())));
            (udp.src_port(), udp.dst_port(), ip.identification())
        };
        h.take(0).into_iter().map(read).collect()
    }

    #[test]
    fn ports_go_up() {
        let mut h = Harness::new(&SPEC, "1.0.0.1, 65535, 1.0.0.2, domain, true, 2", 1, 1).unwrap();
        let expected = [(65_535, 53, 0), (65_535, 53, 1), (0, 54, 2), (0, 54, 3), (1, 55, 4)];
        assert_eq!(ports(&mut h), expected);
        let mut h = Harness::new(&SPEC, "1.0.0.1, 7, 1.0.0.2, 9", 1, 1).unwrap();
        assert!(ports(&mut h).iter().all(|p| (p.0, p.1) == (7, 9)));
        h.assert_balanced();
    }
}
