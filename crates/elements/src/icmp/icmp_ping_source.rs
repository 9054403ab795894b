//! ICMPPingSource.

use super::round_trips::{Reply, RoundTrips};
use crate::printing::to_stderr;
use causeway_engine::prelude::*;
use causeway_engine::value::{Bytes, Nanoseconds};
use causeway_packet::checksum::checksum;
use causeway_packet::wire::{Icmpv4, Ipv4, Ipv4Header, icmpv4, ipv4, protocol};

pub(crate) static SPEC: Spec = Spec {
    name: "ICMPPingSource",
    aliases: &["ICMPSendPings"],
    category: "icmp",
    summary: "sends ICMP echo requests, and measures what comes back",
    ports: "0-1/1",
    processing: "h/a",
    flow: "x/y",
    doc: "Sends an ICMP echo request (RFC 792) from SRC to DST every INTERVAL, or one at each pull. Sequence numbers begin at \
          1. Replies that are pushed to the input, if it is connected, are reported in a line each on standard error unless \
          VERBOSE is false, and when the router ends a summary as ping(8) prints it. The identifier is stored in the byte \
          order of the machine, as Click does on Linux. With MIRROR each reply is made the next request at once, whatever \
          LIMIT says. The IP headers of replies must be marked; packets of the input go no further.",
    args: Own::ARGS,
    handlers: handlers!(
        Own::HANDLERS,
        &[
            reads_writes("src", "the source address"),
            reads_writes("dst", "the destination address"),
            reads_writes("active", "whether it sends"),
            writes("limit", "most requests"),
            writes("interval", "time between requests"),
            writes("reset_counts", "forgets what was sent and what came back"),
            reads("summary", "requests and replies, losses, and round-trip times, as ping(8) shows them"),
            reads("rtt_min", "the shortest round trip, 0 if there was none"),
            reads("rtt_avg", "the mean round trip, 0 if there was none"),
            reads("rtt_max", "the longest round trip, 0 if there was none"),
        ]
    ),
    drops: Reason::DOCS,
    example: "p :: ICMPPingSource(1.0.0.1, 1.0.0.2, INTERVAL 10ms, LIMIT 3, STOP true, VERBOSE false) -> ICMPPingResponder -> p;",
    see: &["ICMPPingEncap", "ICMPPingResponder", "ICMPPingRewriter"],
    copies: Copies::One,
    build,
    stamps: true,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        Answer = "answer", "a reply to one of its requests, which has been counted";
        Foreign = "foreign", "no reply to any of its requests";
    }
}

settings! {
    struct Own {
        src: Ipv4Addr = required("SRC", "IP address", "the source");
        dst: Ipv4Addr = required("DST", "IP address", "the destination");
        interval: Nanoseconds = keyword("INTERVAL", "seconds", "time between requests; default 1"), or(Nanoseconds(1_000_000_000));
        identifier: u16 = keyword("IDENTIFIER", "0 to 65535", "the identifier of the requests; default 0"), or(0);
        data: Bytes = keyword("DATA", "string", "what requests carry; default nothing"), or(Bytes(Vec::new()));
        limit: i32 = keyword("LIMIT", "packets", "most requests; negative means no limit; default -1"), or(-1);
        active: bool = keyword("ACTIVE", "boolean", "whether it sends; default true"), or(true);
        verbose: bool = keyword("VERBOSE", "boolean", "whether to report replies; default true"), or(true);
        stop: bool = keyword("STOP", "boolean", "whether to stop the router after LIMIT requests; default false"), or(false);
        mirror: bool = keyword("MIRROR", "boolean", "whether replies are sent again as requests; default false"), or(false);
    }
    counts {
        count: u64 = reads("count", "requests sent").counts(Unit::Packets);
    }
}

/// Time to live of requests, as Click's.
const TTL: u8 = 200;
const HEADERS_LEN: usize = ipv4::HEADER_LEN + icmpv4::HEADER_LEN;
const NEXT: u32 = 0;
/// Intervals are whole milliseconds.
const MILLISECOND_NS: u64 = 1_000_000;

struct ICMPPingSource {
    own: Own,
    interval_ns: u64,
    /// When the next request is due, while the timer runs.
    due_ns: Option<u64>,
    /// Of what came back, if the input is connected.
    round_trips: Option<RoundTrips>,
    /// Whether the graph has been put in place; then its name is here.
    declaration: Option<String>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = Own::configure(conf);
    conf.finish()?;
    let interval_ns = own.interval.0 / MILLISECOND_NS * MILLISECOND_NS;
    if interval_ns == 0 {
        conf.warn("INTERVAL so small that it is zero");
    }
    let round_trips = (conf.n_inputs() > 0).then(RoundTrips::default);
    Ok(Box::new(ICMPPingSource { own, interval_ns, due_ns: None, round_trips, declaration: None }))
}

impl ICMPPingSource {
    fn left(&self) -> bool {
        u64::try_from(self.own.limit).is_ok_and(|limit| self.own.count < limit) || self.own.limit < 0
    }

    /// Makes a request of `packet`, whose first bytes are to be the headers.
    fn write_request(&mut self, packet: &mut Packet, now_ns: u64) -> Option<()> {
        let number = (self.own.count % 0xffff) as u16 + 1;
        let data = packet.data_mut();
        let total_len = u16::try_from(data.len()).ok()?;
        let (header, message) = data.split_first_chunk_mut()?;
        Ipv4Header {
            tos: 0,
            total_len,
            identification: number,
            flags_fragment: 0,
            ttl: TTL,
            protocol: protocol::ICMP,
            src: self.own.src,
            dst: self.own.dst,
        }
        .emit(header);
        let fields = message.first_chunk_mut::<{ icmpv4::HEADER_LEN }>()?;
        let [i0, i1] = self.own.identifier.to_ne_bytes();
        let [n0, n1] = number.to_be_bytes();
        *fields = [icmpv4::kind::ECHO_REQUEST, 0, 0, 0, i0, i1, n0, n1];
        let sum = checksum(message).to_be_bytes();
        message[2..4].copy_from_slice(&sum);
        packet.set_network_headers(0, ipv4::HEADER_LEN);
        packet.set_dst_ip(self.own.dst.octets());
        packet.set_timestamp_ns(now_ns);
        if let Some(round_trips) = &mut self.round_trips {
            round_trips.sent(number, now_ns);
        }
        self.own.count += 1;
        Some(())
    }

    fn request(&mut self, now_ns: u64) -> Option<Packet> {
        let mut packet = Packet::new()?;
        let data = packet.put(HEADERS_LEN + self.own.data.0.len()).ok()?;
        data[HEADERS_LEN..].copy_from_slice(&self.own.data.0);
        self.write_request(&mut packet, now_ns)?;
        Some(packet)
    }

    /// Counts a reply; says whether it is one.
    fn reply(&mut self, packet: &Packet) -> Option<()> {
        let ip = Ipv4::new_quoted(packet.network_header()?).ok()?;
        let icmp = Icmpv4::new_checked(packet.transport_header()?).ok()?;
        let ours = u16::from_be_bytes(self.own.identifier.to_ne_bytes());
        if ip.protocol() != protocol::ICMP
            || icmp.message_type() != icmpv4::kind::ECHO_REPLY
            || icmp.identifier() != ours
        {
            return None;
        }
        let number = icmp.rest() as u16;
        let Reply { round_trip_us } = self.round_trips.as_mut()?.received(number, packet.timestamp_ns())?;
        if let Some(declaration) = self.declaration.as_ref().filter(|_| self.own.verbose) {
            let headers = ip.header_len() + icmpv4::HEADER_LEN;
            to_stderr(&format!(
                "{declaration}: {} bytes from {}: icmp_seq={number} ttl={} time={}.{:03} ms\n",
                i32::from(ip.total_len()) - headers as i32,
                ip.src(),
                ip.ttl(),
                round_trip_us / 1_000,
                round_trip_us % 1_000
            ));
        }
        Some(())
    }

    /// Makes a request of a reply that was counted.
    fn mirror(&mut self, packet: &mut Packet, now_ns: u64) -> Option<()> {
        packet.pull(packet.network_offset()?).ok()?;
        self.write_request(packet, now_ns)
    }

    fn set_timer(&mut self, when_ns: u64, cx: &mut Cx<'_>) {
        self.due_ns = Some(when_ns);
        cx.set_timer(NEXT, when_ns);
    }

    /// Sets the timer going, if it pushes and there is something to send.
    fn start(&mut self, after_ns: u64, cx: &mut Cx<'_>) {
        if self.own.active && self.due_ns.is_none() && cx.connected(0) {
            let when_ns = cx.now_ns() + after_ns;
            self.set_timer(when_ns, cx);
        }
    }
}

impl Element for ICMPPingSource {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        if self.own.mirror && !cx.connected(0) {
            return Err(Error::new("MIRROR invalid on pull element"));
        }
        if self.own.limit != 0 {
            self.start(self.interval_ns, cx);
        }
        Ok(())
    }

    fn commit(&mut self, cx: &mut Cx<'_>) {
        self.declaration = Some(format!("{} :: {}", cx.name(), cx.class()));
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        let Some(due_ns) = self.due_ns.take() else { return };
        if !self.left() {
            if self.own.stop {
                cx.stop_driver();
            }
            return;
        }
        let now_ns = cx.now_ns();
        // Without a frame to be had it is tried again an interval later.
        if let Some(packet) = self.request(now_ns) {
            cx.emit(0, packet);
        }
        self.set_timer(due_ns + self.interval_ns, cx);
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        while batch.len() < max && self.own.active && self.left() {
            let now_ns = cx.now_ns();
            let Some(packet) = self.request(now_ns) else { return };
            if batch.push(packet).is_err() {
                return;
            }
        }
        if batch.is_empty() && self.own.active && std::mem::take(&mut self.own.stop) {
            cx.stop_driver();
        }
    }

    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for mut packet in batch.drain() {
            let now_ns = cx.now_ns();
            if self.reply(&packet).is_none() {
                cx.drop(Reason::Foreign, packet);
            } else if self.own.mirror && self.mirror(&mut packet, now_ns).is_some() {
                cx.emit(0, packet);
            } else {
                cx.drop(Reason::Answer, packet);
            }
        }
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.own)
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        match handler {
            "src" => return Ok(self.own.src.to_string()),
            "dst" => return Ok(self.own.dst.to_string()),
            "active" => return Ok(self.own.active.to_string()),
            _ => {}
        }
        let round_trips = self.round_trips.as_ref().ok_or("no replies: the input is not connected")?;
        Ok(match handler {
            "summary" => round_trips.summary(self.own.count),
            other => round_trips.microseconds(other),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        match handler {
            "src" => self.own.src = cx.value(handler, value).map_err(|_| "syntax error")?,
            "dst" => self.own.dst = cx.value(handler, value).map_err(|_| "syntax error")?,
            "active" => {
                self.own.active = cx.value(handler, value).map_err(|_| "type mismatch")?;
                if self.own.active {
                    self.start(0, cx);
                } else {
                    self.due_ns = None;
                    cx.clear_timer(NEXT);
                }
            }
            "limit" => {
                self.own.limit = cx.value(handler, value).map_err(|_| "'limit' should be integer")?;
            }
            "interval" => {
                let Nanoseconds(ns) =
                    cx.value(handler, value).map_err(|_| "'interval' should be an interval")?;
                self.interval_ns = ns / MILLISECOND_NS * MILLISECOND_NS;
            }
            _ => {
                self.own.count = 0;
                self.round_trips.iter_mut().for_each(|r| *r = RoundTrips::default());
            }
        }
        if matches!(handler, "limit" | "reset_counts") && self.left() {
            self.start(self.interval_ns, cx);
        }
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<ICMPPingSource>() {
            self.own.count = old.own.count;
            if let (Some(own), Some(old)) = (&mut self.round_trips, &mut old.round_trips) {
                std::mem::swap(own, old);
            }
            // The summary is for the one that goes on.
            old.declaration = None;
        }
    }
}

impl Drop for ICMPPingSource {
    fn drop(&mut self) {
        let declaration = self.declaration.as_ref().filter(|_| self.own.verbose);
        if let (Some(declaration), Some(round_trips)) = (declaration, &self.round_trips) {
            let summary = round_trips.summary(self.own.count);
            to_stderr(&summary.lines().map(|line| format!("{declaration}: {line}\n")).collect::<String>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports};

    const SECOND_NS: u64 = 1_000_000_000;

    /// The reply to a request, which came so much later.
    fn reply(request: &Packet, later_ns: u64) -> Packet {
        let mut reply = request.copy().unwrap();
        reply.data_mut()[20] = icmpv4::kind::ECHO_REPLY;
        reply.set_timestamp_ns(request.timestamp_ns() + later_ns);
        reply
    }

    #[test]
    fn requests_go_out_at_intervals_up_to_the_limit() {
        let config = "1.2.3.4, 5.6.7.8, IDENTIFIER 258, LIMIT 3, DATA abc, STOP true, INTERVAL 0.5";
        let mut h = Harness::new(&SPEC, config, 0, 1).unwrap();
        h.advance(SECOND_NS / 4);
        assert_eq!(h.take(0).len(), 0);
        h.advance(2 * SECOND_NS);
        let out = h.take(0);
        // As Click sends them on this machine.
        let first = b"\x45\0\0\x1f\0\x01\0\0\xc8\x01\xe2\xc9\x01\x02\x03\x04\x05\x06\x07\x08\x08\0\x31\x9b\x02\x01\0\x01abc";
        assert_eq!((out.len(), out[0].data(), out[0].dst_ip()), (3, &first[..], [5, 6, 7, 8]));
        assert_eq!((out[2].data()[27], h.read("count").unwrap(), h.stopped()), (3, "3".to_owned(), true));
        assert!(h.read("summary").is_err(), "nothing comes back");
        h.write("reset_counts", "").unwrap();
        h.advance(10 * SECOND_NS);
        assert_eq!(h.take(0).len(), 3);
    }

    #[test]
    fn round_trips_are_measured() {
        let mut h = Harness::new(&SPEC, "1.2.3.4, 5.6.7.8, LIMIT 4, VERBOSE false", 1, 1).unwrap();
        assert_eq!(
            (h.read("summary").unwrap(), h.read("rtt_avg").unwrap()),
            ("0 packets transmitted, 0 received".into(), "0s".into())
        );
        h.advance(5 * SECOND_NS);
        let out = h.take(0);
        h.push_all(0, [reply(&out[0], 1_500_000), reply(&out[2], 500_000), reply(&out[2], 700_000)]);
        let mut foreign = reply(&out[1], 1);
        foreign.data_mut()[24] = 9;
        h.push_all(0, [foreign, out[3].copy().unwrap()]);
        assert_eq!(h.drops(), [("answer", 3), ("foreign", 2)]);
        assert_eq!(
            h.read("summary").unwrap(),
            "4 packets transmitted, 2 received, +1 duplicates, 0% packet loss\nrtt min/avg/max/mdev = 0.500/0.900/1.500/0.432\n"
        );
        let of = |h: &mut Harness, name: &str| h.read(name).unwrap();
        assert_eq!(
            [of(&mut h, "rtt_min"), of(&mut h, "rtt_avg"), of(&mut h, "rtt_max")],
            ["500us", "900us", "0.0015s"]
        );
    }

    #[test]
    fn replies_are_sent_again_if_that_is_wanted() {
        let mut h =
            Harness::new(&SPEC, "1.2.3.4, 5.6.7.8, LIMIT 1, MIRROR true, DATA xy, VERBOSE false", 1, 1)
                .unwrap();
        h.advance(2 * SECOND_NS);
        let out = h.take(0);
        h.push(0, reply(&out[0], 5));
        let again = h.take(0);
        assert_eq!((again.len(), &again[0].data()[26..]), (1, &b"\0\x02xy"[..]));
        assert!(
            Ipv4::new_checked(again[0].data())
                .is_ok_and(|ip| Icmpv4::new_checked(ip.payload()).unwrap().checksum_ok())
        );
        let ports = Ports { pulled_inputs: vec![false], outputs: vec![Output::Pulled] };
        let pulled = Harness::with_ports(&SPEC, "1.2.3.4, 5.6.7.8, MIRROR true", &ports);
        assert_eq!(pulled.err().unwrap(), ["MIRROR invalid on pull element"]);
    }

    #[test]
    fn it_may_be_pulled_and_written_to() {
        let mut h = Harness::with_ports(
            &SPEC,
            "1.2.3.4, 5.6.7.8, LIMIT 3, STOP true",
            &Ports { pulled_inputs: vec![], outputs: vec![Output::Pulled] },
        )
        .unwrap();
        assert_eq!((h.pull(0, 2).len(), h.pull(0, 2).len(), h.stopped()), (2, 1, false));
        assert_eq!((h.pull(0, 2).len(), h.stopped()), (0, true));
        h.write("limit", "4").unwrap();
        h.write("dst", "9.9.9.9").unwrap();
        assert_eq!((h.pull(0, 2)[0].dst_ip(), h.read("dst").unwrap()), ([9; 4], "9.9.9.9".to_owned()));
        for (handler, error) in [
            ("src", "syntax error"),
            ("active", "type mismatch"),
            ("limit", "'limit' should be integer"),
            ("interval", "'interval' should be an interval"),
        ] {
            assert_eq!(h.write(handler, "x"), Err(error.to_owned()));
        }
    }

    #[test]
    fn handlers_change_the_pace() {
        let mut h = Harness::new(&SPEC, "1.2.3.4, 5.6.7.8, ACTIVE false", 0, 1).unwrap();
        h.advance(5 * SECOND_NS);
        assert_eq!(h.take(0).len(), 0);
        h.write("interval", "0.1").unwrap();
        h.write("active", "true").unwrap();
        h.advance(SECOND_NS);
        assert_eq!(h.take(0).len(), 11);
        h.write("active", "false").unwrap();
        h.advance(SECOND_NS);
        assert_eq!(h.take(0).len(), 0);
    }
}
