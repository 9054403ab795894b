//! WebGen.

use super::web_connection::{Connection, HEADERS_LEN, HTTP, Heard, Page, Segment};
use crate::flow_table::{FlowTable, Id};
use crate::printing::contents::to_stderr;
use causeway_engine::prelude::*;
use causeway_engine::value::Prefix4;
use causeway_lang::values::{MILLISECOND_NS, SECOND_NS};
use causeway_packet::wire::Ipv4;
use causeway_packet::wire::tcp::{Tcp, flag};

pub(crate) static SPEC: Spec = Spec {
    name: "WebGen",
    category: "tcp",
    summary: "asks a web server for pages, over many TCP connections",
    processing: "h/h",
    doc: "Begins RATE TCP connections a second to port 80 of DST, from addresses of PREFIX and ports that are chosen at random, and asks for a page over \
          each: `GET /spec/D/D-C-N HTTP/1.0`, with digits chosen at random. It takes and makes IPv4 packets. \
          What is not answered within a second is sent again, at most six times. A segment of no connection is answered by a reset. All packets that come end here. \
          Every five seconds, and when the router ends, it writes on standard error how many connections have been begun, completed, given up and reset since.",
    args: WebGen::ARGS,
    drops: Reason::DOCS,
    example: "FromDevice(eth0) -> Classifier(12/0800) -> Strip(14) -> WebGen(10.1.0.0/16, 10.0.0.1, 100) \
              -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> ToDevice(eth0);",
    see: &["FastTCPFlows", "TCPIPSend"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

settings! {
    struct WebGen {
        prefix: Prefix4 = required("PREFIX", "IP prefix", "what source addresses are of");
        dst: Ipv4Addr = required("DST", "IP address", "the server");
        rate: u32 = required("RATE", "connections a second", "how many to begin, 1 to 100000");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Heard = "heard", "a segment of one of its connections, which has been looked at";
        Refused = "refused", "a segment of no connection, which was answered by a reset";
        Malformed = "malformed", "no TCP segment in IPv4";
        NoFrame = "no-frame", "no frame was free for a packet to send";
    }
}

const MOST_RATE: u32 = 100_000;
/// When a connection that has sent something sends it again.
const RESEND_NS: u64 = SECOND_NS;
const MOST_RESENT: u8 = 5;
const REPORT_NS: u64 = 5 * SECOND_NS;
const TURN_NS: u64 = MILLISECOND_NS;
/// The only timer.
const TURN: u32 = 0;

/// Connections since the last report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    begun: u32,
    completed: u32,
    given_up: u32,
    reset: u32,
}

struct Generator {
    own: WebGen,
    interval_ns: u64,
    connections: FlowTable<Connection, 1>,
    counts: Counts,
    identification: u16,
    /// When the last connection was due.
    begun_ns: u64,
    reported_ns: u64,
    /// It runs, so it reports when it ends.
    runs: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = WebGen::configure(conf);
    let right = (1..=MOST_RATE).contains(&own.rate);
    if conf.errors().is_empty() && !right {
        conf.error(format!("RATE: must be 1 to {MOST_RATE}"));
    }
    conf.finish()?;
    let interval_us = 1_000_000 / u64::from(own.rate);
    // Twice as many as there are if none is answered.
    let most = 2 * (1_000_000 / interval_us) * u64::from(MOST_RESENT);
    Ok(Box::new(Generator {
        own,
        interval_ns: interval_us * 1_000,
        connections: FlowTable::new(most as usize, 1),
        counts: Counts::default(),
        identification: 0,
        begun_ns: 0,
        reported_ns: 0,
        runs: false,
    }))
}

fn key(src: Ipv4Addr, port: u16) -> u128 {
    u128::from(src.to_bits()) << 16 | u128::from(port)
}

/// A connection from an address of `prefix`.
fn chosen(prefix: Prefix4, cx: &mut Cx<'_>) -> Connection {
    let (rng, mask) = (cx.rng(), prefix.mask());
    let src = rng.u32(..) & !mask | prefix.address.to_bits() & mask;
    let page = Page([rng.u8(..10), rng.u8(..3), rng.u8(..9)]);
    Connection::new(src.into(), 1_024 + rng.u16(..60_000), rng.u32(..1 << 28), page)
}

impl Generator {
    fn emit(&mut self, segment: &Segment, cx: &mut Cx<'_>) {
        let identification = self.identification;
        self.identification = identification.wrapping_add(1);
        match segment.packet(identification) {
            Some(packet) => cx.emit(0, packet),
            None => cx.count_drops(Reason::NoFrame, 1),
        }
    }

    /// Sends what a connection has to send, and forgets it if that was the last.
    fn send(&mut self, id: Id, cx: &mut Cx<'_>) {
        let again_ns = cx.now_ns() + RESEND_NS;
        self.connections.touch(id, 0, again_ns);
        let Some(connection) = self.connections.get_mut(id) else { return };
        let (segment, over) = (connection.segment(self.own.dst), connection.is_over());
        if let Some(segment) = segment {
            self.emit(&segment, cx);
        }
        if over {
            self.counts.completed += 1;
            self.connections.remove(id);
        }
    }

    fn begin(&mut self, cx: &mut Cx<'_>) {
        let connection = chosen(self.own.prefix, cx);
        let again_ns = cx.now_ns() + RESEND_NS;
        if self.connections.len() >= self.connections.limit() {
            return to_stderr("out of available CBs\n");
        }
        // One that there is already is not begun anew.
        if let Ok(id) =
            self.connections.insert([key(connection.src, connection.port)], connection, 0, again_ns)
        {
            self.counts.begun += 1;
            self.send(id, cx);
        }
    }

    fn send_again(&mut self, now_ns: u64, cx: &mut Cx<'_>) {
        while let Some((_, id)) = self.connections.next(0).filter(|(again_ns, _)| *again_ns < now_ns) {
            let Some(connection) = self.connections.get_mut(id) else { return };
            connection.resent += 1;
            if connection.resent > MOST_RESENT + 1 {
                self.counts.given_up += 1;
                self.connections.remove(id);
            } else {
                self.send(id, cx);
            }
        }
    }

    fn report(&mut self) {
        let Counts { begun, completed, given_up, reset } = std::mem::take(&mut self.counts);
        to_stderr(&format!("init: {begun}  comp: {completed:5}  tmo: {given_up:5}  rst: {reset:5}\n"));
    }

    /// What came, and what is to be answered.
    fn hear(&mut self, packet: &Packet, cx: &mut Cx<'_>) -> Reason {
        let whole = Some(packet.data()).filter(|data| data.len() >= HEADERS_LEN);
        let Some(ip) = whole.and_then(|data| Ipv4::new_checked(data).ok()) else { return Reason::Malformed };
        let Ok(segment) = Tcp::new_checked(ip.payload()) else { return Reason::Malformed };
        let (client, len) = (key(ip.dst(), segment.dst_port()), segment.payload().len() as u32);
        let found = (segment.src_port() == HTTP).then(|| self.connections.find(client)).flatten();
        let Some((id, _)) = found else {
            let reset = Segment {
                ip: [ip.dst(), ip.src()],
                ports: [segment.dst_port(), segment.src_port()],
                sequence: segment.acknowledgement(),
                acknowledgement: segment.sequence(),
                flags: flag::RST,
                page: None,
            };
            self.emit(&reset, cx);
            return Reason::Refused;
        };
        match self.connections.get_mut(id).map(|connection| connection.hear(&segment, len)) {
            Some(Heard::Reset) => {
                self.counts.reset += 1;
                self.connections.remove(id);
            }
            _ => self.send(id, cx),
        }
        Reason::Heard
    }
}

impl Element for Generator {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        Verdict::drop(self.hear(packet, cx))
    }

    fn commit(&mut self, cx: &mut Cx<'_>) {
        to_stderr(&format!("Allocated {} CBs\n", self.connections.limit()));
        self.runs = true;
        self.begun_ns = cx.now_ns();
        self.reported_ns = self.begun_ns;
        cx.set_timer(TURN, self.begun_ns);
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        for _ in 0..self.connections.limit() {
            if now_ns.saturating_sub(self.begun_ns) <= self.interval_ns {
                break;
            }
            self.begun_ns += self.interval_ns;
            self.begin(cx);
        }
        self.send_again(now_ns, cx);
        if now_ns.saturating_sub(self.reported_ns) > REPORT_NS {
            self.reported_ns = now_ns;
            self.report();
        }
        cx.set_timer(TURN, now_ns + TURN_NS);
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        if self.runs {
            self.report();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;
    use std::time::Duration;

    const CONFIG: &str = "7.1.0.0/16, 1.0.0.1, 1";

    fn generator(h: &mut Harness) -> &mut Generator {
        h.element::<Generator>().unwrap()
    }

    /// Sequence number, acknowledgement, flags and payload of a segment from the client at `port`.
    fn seen(packet: &Packet) -> (u32, u32, u8, Vec<u8>) {
        let ip = Ipv4::new_checked(packet.data()).unwrap();
        let tcp = Tcp::new_checked(ip.payload()).unwrap();
        assert!(ip.checksum_ok() && tcp.checksum_ok(ip.pseudo_header(ip.payload().len() as u16)));
        assert_eq!((packet.dst_ip(), ip.ttl(), tcp.window()), ([1, 0, 0, 1], 250, 61_440));
        (tcp.sequence(), tcp.acknowledgement(), tcp.flags(), tcp.payload().to_vec())
    }

    /// The server's answer to the client that sent `packet`; of its payload only the length counts.
    fn answer(packet: &Packet, sequence: u32, acknowledgement: u32, flags: u8) -> Packet {
        let ip = Ipv4::new_checked(packet.data()).unwrap();
        let tcp = Tcp::new_checked(ip.payload()).unwrap();
        let (ip, ports) = ([ip.dst(), ip.src()], [tcp.dst_port(), tcp.src_port()]);
        Segment { ip, ports, sequence, acknowledgement, flags, page: None }.packet(0).unwrap()
    }

    fn begun() -> (Harness, Packet) {
        let mut h = Harness::new(&SPEC, CONFIG, 1, 1).unwrap();
        h.advance(Duration::from_millis(1_001).as_nanos() as u64);
        let [syn] = <[Packet; 1]>::try_from(h.take(0)).ok().unwrap();
        (h, syn)
    }

    #[test]
    fn a_page_is_asked_for_and_the_connection_ends() {
        let (mut h, syn) = begun();
        let (first, zero, flags, none) = seen(&syn);
        assert_eq!((zero, flags, none), (0, flag::SYN, vec![]));
        assert_eq!(syn.data()[12..14], [7, 1]);
        h.push(0, answer(&syn, 500, first + 1, flag::SYN | flag::ACK));
        let (sequence, acknowledged, flags, text) = seen(&h.take(0)[0]);
        assert_eq!((sequence, acknowledged, flags), (first + 1, 501, flag::ACK | flag::PSH | flag::FIN));
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("GET /spec/") && text.ends_with(" HTTP/1.0\r\n\r\n"), "{text}");
        assert_eq!((text.len(), text.as_bytes()[10]), (30, text.as_bytes()[12]), "{text}");
        h.push(0, answer(&syn, 501, first + 32, flag::ACK));
        assert_eq!(h.take(0).len(), 0, "there is nothing to acknowledge");
        h.push(0, answer(&syn, 501, first + 32, flag::ACK | flag::FIN));
        let (sequence, acknowledged, flags, _) = seen(&h.take(0)[0]);
        assert_eq!((sequence, acknowledged, flags), (first + 32, 502, flag::ACK | flag::FIN));
        let own = generator(&mut h);
        let expected = Counts { begun: 1, completed: 1, ..Counts::default() };
        assert_eq!((own.connections.len(), own.counts), (0, expected));
        assert_eq!(h.drops().iter().map(|(_, n)| n).sum::<u64>(), 3);
    }

    #[test]
    fn what_is_not_answered_is_sent_again_and_given_up() {
        let mut h = Harness::new(&SPEC, CONFIG, 1, 1).unwrap();
        let most = (0..9_000).map(|_| {
            h.advance(MILLISECOND_NS);
            generator(&mut h).connections.iter().map(|(_, connection)| connection.resent).max().unwrap_or(0)
        });
        let most = most.max().unwrap();
        assert_eq!((most, generator(&mut h).counts.given_up), (6, 1));
    }

    #[test]
    fn resets_end_a_connection_and_answer_strangers() {
        let (mut h, syn) = begun();
        let (first, ..) = seen(&syn);
        h.push(0, answer(&syn, 500, first, flag::RST));
        assert_eq!((h.take(0).len(), generator(&mut h).connections.len()), (0, 0));
        assert_eq!(generator(&mut h).counts.reset, 1);
        h.push(0, answer(&syn, 500, 77, flag::ACK));
        assert_eq!(seen(&h.take(0)[0]), (77, 500, flag::RST, vec![]));
        h.push(0, causeway_engine::harness::packet(&[0x45; 39]));
        let drops: Vec<_> = h.drops().into_iter().filter(|(_, n)| *n > 0).collect();
        assert_eq!(drops, [("heard", 1), ("refused", 1), ("malformed", 1)]);
    }

    #[test]
    fn bad_rates_are_told_of() {
        for rate in ["0", "100001"] {
            let error = Harness::new(&SPEC, &format!("1.0.0.0/8, 2.0.0.1, {rate}"), 1, 1).err().unwrap();
            assert_eq!(error.concat(), "RATE: must be 1 to 100000");
        }
    }
}
