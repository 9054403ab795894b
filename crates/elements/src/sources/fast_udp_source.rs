//! FastUDPSource.

use super::generator::{self, Generator, check_length};
use crate::token_bucket::TokenBucket;
use causeway_engine::prelude::*;
use causeway_engine::spec::{HandlerDoc, Notifies};
use causeway_engine::value::{Ether, Value};
use causeway_packet::wire::{
    EthernetHeader, Ipv4Header, Ipv6Header, MacAddr, Udp, UdpHeader, ethernet, ipv4, ipv6, udp,
};

pub(crate) static SPEC: Spec = Spec {
    name: "FastUDPSource",
    category: "sources",
    summary: "makes UDP packets with fixed headers at a rate",
    ports: "0/1",
    processing: "l/l",
    doc: "Gives Ethernet frames of LENGTH bytes that hold a UDP packet, RATE a second, LIMIT in all. The frame is \
          built once and copied, so this is the source to load a network with. With INTERVAL, both ports are \
          raised by one after every INTERVAL packets, which makes a new flow. Its puller sleeps while there is \
          nothing to give.",
    args: &[
        required("RATE", "packets a second", "how many; 0 means as many as are pulled"),
        required("LIMIT", "packets", "most packets made; negative means no limit"),
        required("LENGTH", "bytes", "length of the frame without its checksum; at least 60"),
        required("SRCETH", "Ethernet address", "source address"),
        required("SRCIP", "IPv4 address", "source address"),
        required("SPORT", "port", "source port"),
        required("DSTETH", "Ethernet address", "destination address"),
        required("DSTIP", "IPv4 address", "destination address"),
        required("DPORT", "port", "destination port"),
        optional("CHECKSUM", "boolean", "whether packets have a UDP checksum; default true"),
        optional("INTERVAL", "packets", "packets of a flow; 0 means that there is one flow; default 0"),
        generator::ACTIVE_ARG,
    ],
    handlers: HANDLERS,
    example: "FastUDPSource(0, 1000, 60, 2:0:0:0:0:1, 10.0.0.1, 1234, 2:0:0:0:0:2, 10.0.0.2, 1234) \
              -> Discard(BURST 32);",
    see: &["FastUDPSourceIP6", "RatedSource"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build: |conf| build(conf, v4),
    ..Spec::DEFAULT
};

pub(crate) static SPEC_IP6: Spec = Spec {
    name: "FastUDPSourceIP6",
    category: "sources",
    summary: "makes UDP packets over IPv6 with fixed headers at a rate",
    ports: "0/1",
    processing: "l/l",
    doc: "As FastUDPSource, over IPv6: gives Ethernet frames of LENGTH bytes that hold a UDP packet, RATE a second, LIMIT in \
          all. With INTERVAL, both ports are raised by one after every INTERVAL packets. Without CHECKSUM the packets \
          have none, which receivers need not accept (RFC 8200 §8.1).",
    args: &[
        required("RATE", "packets a second", "how many; 0 means as many as are pulled"),
        required("LIMIT", "packets", "most packets made; negative means no limit"),
        required("LENGTH", "bytes", "length of the frame without its checksum; at least 62"),
        required("SRCETH", "Ethernet address", "source address"),
        required("SRCIP6", "IPv6 address", "source address"),
        required("SPORT", "port", "source port"),
        required("DSTETH", "Ethernet address", "destination address"),
        required("DSTIP6", "IPv6 address", "destination address"),
        required("DPORT", "port", "destination port"),
        optional("CHECKSUM", "boolean", "whether packets have a UDP checksum; default true"),
        optional("INTERVAL", "packets", "packets of a flow; 0 means that there is one flow; default 0"),
        generator::ACTIVE_ARG,
    ],
    handlers: HANDLERS,
    example: "FastUDPSourceIP6(0, 1000, 62, 2:0:0:0:0:1, 2001:db8::1, 1234, 2:0:0:0:0:2, 2001:db8::2, 1234) \
              -> Discard(BURST 32);",
    see: &["FastUDPSource", "UDPIP6Encap"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build: |conf| build(conf, v6),
    ..Spec::DEFAULT
};

const HANDLERS: &[HandlerDoc] = &[
    generator::COUNT,
    generator::RESET,
    reads_writes("rate", "packets a second; 0 means as many as are pulled"),
    generator::LIMIT,
    generator::ACTIVE,
];

/// Shortest Ethernet frame, without its checksum.
const MIN_LENGTH: usize = 60;
/// The headers of the longer version.
const MIN_LENGTH_V6: usize = ethernet::HEADER_LEN + ipv6::HEADER_LEN + udp::HEADER_LEN;
/// The only timer: the next token.
const TOKEN: u32 = 0;

struct FastUdpSource {
    packets: Generator,
    /// `None` = as many as are pulled.
    bucket: Option<TokenBucket>,
    flow: Flow,
    interval: u64,
    /// Packets that the present flow still has; without meaning when `interval` is 0.
    flow_left: u64,
}

/// What the headers say.
struct Flow {
    length: usize,
    ethernet: EthernetHeader,
    ip: Ip,
    src_port: u16,
    dst_port: u16,
    checksum: bool,
}

/// The IP header; lengths and protocol are filled in.
#[derive(Clone, Copy)]
enum Ip {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

impl Ip {
    fn ether_type(self) -> u16 {
        match self {
            Ip::V4(_) => ethernet::ether_type::IPV4,
            Ip::V6(_) => ethernet::ether_type::IPV6,
        }
    }

    fn least_frame(self) -> usize {
        if matches!(self, Ip::V4(_)) { MIN_LENGTH } else { MIN_LENGTH_V6 }
    }
}

fn v4(conf: &mut Conf<'_>) -> Ends {
    let ends = ends::<Ipv4Addr>(conf, "SRCIP", "DSTIP");
    let (src, dst) = ends.ip;
    let ip = Ip::V4(Ipv4Header {
        tos: 0,
        total_len: 0,
        identification: 0,
        flags_fragment: 0,
        ttl: 250,
        protocol: 0,
        src,
        dst,
    });
    Ends { ip, ether: ends.ether, ports: ends.ports }
}

fn v6(conf: &mut Conf<'_>) -> Ends {
    let ends = ends::<Ipv6Addr>(conf, "SRCIP6", "DSTIP6");
    let (src, dst) = ends.ip;
    let (traffic_class, flow_label) = (0, 0);
    let ip = Ip::V6(Ipv6Header {
        traffic_class,
        flow_label,
        payload_len: 0,
        next_header: 0,
        hop_limit: 250,
        src,
        dst,
    });
    Ends { ip, ether: ends.ether, ports: ends.ports }
}

/// Where packets come from and go to.
struct Ends<I = Ip> {
    ip: I,
    ether: (Ether, Ether),
    ports: (u16, u16),
}

/// Reads the arguments from SRCETH to DPORT.
fn ends<A: Value>(conf: &mut Conf<'_>, src: &'static str, dst: &'static str) -> Ends<(A, A)> {
    let (src_ether, src_ip, src_port) = (conf.required("SRCETH"), conf.required(src), conf.required("SPORT"));
    let (dst_ether, dst_ip, dst_port) = (conf.required("DSTETH"), conf.required(dst), conf.required("DPORT"));
    Ends { ip: (src_ip, dst_ip), ether: (src_ether, dst_ether), ports: (src_port, dst_port) }
}

fn bucket(rate_pps: u32) -> Option<TokenBucket> {
    let rate_pps = u64::from(rate_pps);
    (rate_pps > 0).then(|| TokenBucket::new(rate_pps, (rate_pps / 100).max(2), 1))
}

fn build(conf: &mut Conf<'_>, ends: fn(&mut Conf<'_>) -> Ends) -> Result<Box<dyn Element>, Invalid> {
    let rate_pps = conf.required("RATE");
    let limit = conf.required("LIMIT");
    let mut flow = flow(conf, ends);
    flow.checksum = conf.optional("CHECKSUM", true);
    let interval = conf.optional("INTERVAL", 0u32).into();
    let active = conf.optional("ACTIVE", true);
    conf.finish()?;
    let mut packets = Generator::new(conf, flow.frame(), limit, active);
    packets.set_stamp(false);
    match flow.ip {
        Ip::V4(ip) => packets.set_ip(ipv4::HEADER_LEN, Some(ip.dst)),
        Ip::V6(_) => packets.set_ip(ipv6::HEADER_LEN, None),
    }
    Ok(Box::new(FastUdpSource { packets, bucket: bucket(rate_pps), flow, interval, flow_left: interval }))
}

/// Reads the arguments from LENGTH to DPORT.
fn flow(conf: &mut Conf<'_>, ends: fn(&mut Conf<'_>) -> Ends) -> Flow {
    let mut length = conf.required::<u32>("LENGTH") as usize;
    let Ends { ip, ether: (Ether(src), Ether(dst)), ports: (src_port, dst_port) } = ends(conf);
    let least = ip.least_frame();
    if let Err(why) = check_length(length, Packet::HEADROOM) {
        conf.error(why);
    }
    if length < least {
        conf.warn(&format!("LENGTH {length} is below {least}, which it is taken for"));
        length = least;
    }
    let ethernet = EthernetHeader { dst: MacAddr(dst), src: MacAddr(src), ether_type: ip.ether_type() };
    Flow { length, ethernet, ip, src_port, dst_port, checksum: true }
}

impl Flow {
    /// The frame: headers, then zeros.
    fn frame(&self) -> Vec<u8> {
        let mut frame = vec![0; self.length];
        if let Some((head, packet)) = frame.split_first_chunk_mut::<{ ethernet::HEADER_LEN }>() {
            self.ethernet.emit(head);
            let header = UdpHeader { src_port: self.src_port, dst_port: self.dst_port, length: 0 };
            // A packet that fits a frame is neither too short nor too long for the headers.
            let (_, behind) = match self.ip {
                Ip::V4(ip) => (udp::encapsulate_v4(ip, header, packet), ipv4::HEADER_LEN),
                Ip::V6(ip) => (udp::encapsulate_v6(ip, header, packet), ipv6::HEADER_LEN),
            };
            if !self.checksum
                && let Ok(mut datagram) = Udp::new_checked(&mut packet[behind..])
            {
                datagram.set_checksum(0);
            }
        }
        frame
    }

    fn raise_ports(&mut self) {
        self.src_port = self.src_port.wrapping_add(1);
        self.dst_port = self.dst_port.wrapping_add(1);
    }
}

impl FastUdpSource {
    /// Appends packets to `batch`, at most `max`, a flow at a time; returns how many.
    fn fill(&mut self, max: u64, batch: &mut Batch, cx: &mut Cx<'_>) -> u64 {
        let mut made = 0;
        while made < max {
            let want = if self.interval == 0 { max } else { (max - made).min(self.flow_left) };
            let got = self.packets.fill(want, batch, cx) as u64;
            made += got;
            if got < want || self.interval == 0 {
                break;
            }
            self.flow_left -= got;
            if self.flow_left == 0 {
                self.flow_left = self.interval;
                self.flow.raise_ports();
                self.packets.bytes_mut().copy_from_slice(&self.flow.frame());
            }
        }
        made
    }
}

impl Element for FastUdpSource {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.notify_packets(self.packets.active);
        Ok(())
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if !self.packets.active || self.packets.left() == 0 {
            cx.notify_packets(false);
            return;
        }
        let mut allowed = max as u64;
        if let Some(bucket) = &mut self.bucket {
            allowed = allowed.min(bucket.tokens(cx.now_ns()));
        }
        let made = self.fill(allowed, batch, cx);
        let Some(bucket) = &mut self.bucket else { return };
        bucket.take(made);
        if allowed == 0 {
            cx.notify_packets(false);
            if let Some(when_ns) = bucket.next_ns() {
                cx.set_timer(TOKEN, when_ns);
            }
        }
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        cx.notify_packets(true);
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.packets)
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        cx.notify_packets(true);
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.bucket.as_ref().map_or(0, |b| b.rate_per_s()).to_string())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.bucket = bucket(cx.value(handler, value)?);
        cx.notify_packets(true);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports};
    use causeway_packet::wire::{Ipv4, Ipv6};

    const HEADERS: &str = "60, 2:0:0:0:0:1, 10.0.0.1, 1000, 2:0:0:0:0:2, 10.0.0.2, 2000";

    fn source(config: &str) -> Harness {
        let ports = Ports { pulled_inputs: vec![], outputs: vec![Output::Pulled] };
        Harness::with_ports(&SPEC, config, &ports).unwrap()
    }

    /// Source port, destination port and whether the UDP checksum is right.
    fn read(packet: &Packet) -> (u16, u16, bool) {
        let ip = Ipv4::new_checked(&packet.data()[14..]).unwrap();
        assert!(ip.checksum_ok());
        let udp = Udp::new_checked(ip.payload()).unwrap();
        let sum = ip.pseudo_header(udp.length());
        (udp.src_port(), udp.dst_port(), udp.checksum() != 0 && udp.checksum_ok(sum))
    }

    #[test]
    fn frames_are_whole_udp_packets() {
        let mut h = source(&format!("0, 5, {HEADERS}"));
        let out = h.pull(0, 9);
        assert_eq!((out.len(), out[0].len(), read(&out[4])), (5, 60, (1000, 2000, true)));
        assert_eq!(&out[0].data()[..14], b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0");
        let marks = (out[0].network_offset(), out[0].transport_offset(), out[0].dst_ip());
        assert_eq!(marks, (Some(14), Some(34), [10, 0, 0, 2]));
        let mut h = source(&format!("0, 5, {HEADERS}, false"));
        assert_eq!(read(&h.pull(0, 1)[0]), (1000, 2000, false));
    }

    #[test]
    fn flows_follow_each_other() {
        let mut h = source(&format!("0, -1, {HEADERS}, true, 3"));
        let ports: Vec<_> = h.pull(0, 4).iter().chain(&h.pull(0, 4)).map(read).collect();
        let flow = |n: u16| (1000 + n, 2000 + n, true);
        assert_eq!(ports, [0, 0, 0, 1, 1, 1, 2, 2].map(flow));
    }

    #[test]
    fn keeps_rate_and_limit() {
        let mut h = source(&format!("1000, 8, {HEADERS}"));
        assert_eq!((h.pull(0, 9).len(), h.pull(0, 9).len()), (1, 0));
        h.advance(5_000_000);
        assert_eq!(h.pull(0, 9).len(), 5);
        h.advance(5_000_000);
        assert_eq!((h.pull(0, 9).len(), h.read("count").unwrap()), (2, "8".to_owned()));
        h.write("reset", "").unwrap();
        h.write("rate", "0").unwrap();
        assert_eq!((h.pull(0, 100).len(), h.read("rate").unwrap()), (8, "0".to_owned()));
    }

    #[test]
    fn frames_over_ipv6_are_whole_udp_packets() {
        let ports = Ports { pulled_inputs: vec![], outputs: vec![Output::Pulled] };
        let headers = "2:0:0:0:0:1, 2001:db8::1, 1000, 2:0:0:0:0:2, 2001:db8::2, 2000";
        for (length, sum, checked) in [("62", "true", true), ("90", "true", true), ("20", "false", false)] {
            let config = format!("0, 5, {length}, {headers}, {sum}, 1");
            let mut h = Harness::with_ports(&SPEC_IP6, &config, &ports).unwrap();
            let out = h.pull(0, 2);
            assert_eq!((out.len(), out[1].len()), (2, length.parse::<usize>().unwrap().max(62)));
            let ip = Ipv6::new_checked(&out[1].data()[14..]).unwrap();
            let udp = Udp::new_checked(ip.payload()).unwrap();
            assert_eq!(
                (ip.src().to_string(), udp.src_port(), udp.dst_port()),
                ("2001:db8::1".into(), 1001, 2001)
            );
            let good = udp.checksum_ok(ip.pseudo_header(17, udp.length().into()));
            assert_eq!(udp.checksum() != 0 && good, checked);
            assert_eq!(&out[0].data()[12..14], [0x86, 0xdd]);
        }
    }

    #[test]
    fn lengths_are_checked() {
        let config = |length: &str| format!("0, 1, {length}{}", &HEADERS[2..]);
        let ports = Ports { pulled_inputs: vec![], outputs: vec![Output::Pulled] };
        let errors = Harness::with_ports(&SPEC, &config("3000"), &ports).err().unwrap();
        assert_eq!(errors, ["LENGTH: 3000 bytes, but a frame has room for 1920"]);
        let mut h = source(&config("20"));
        assert_eq!((h.pull(0, 1)[0].len(), h.warnings().len()), (60, 1));
    }
}
