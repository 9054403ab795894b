//! CheckIPHeader.

use super::header::{self, Fault};
use super::tally::{self, DETAILS, Tally};
use crate::printing::to_stderr;
use causeway_engine::ir::{Alu, At, Field, Reg, Test};
use causeway_engine::prelude::*;
use causeway_engine::value::{Prefix4, Raw, Value};
use causeway_packet::wire::ipv4::HEADER_LEN;
use std::sync::Arc;

pub(crate) static SPEC: Spec = Spec {
    name: "CheckIPHeader",
    category: "ip",
    summary: "checks IPv4 headers",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Expects an IPv4 header OFFSET bytes into each packet. A good packet is cut to the length its header gives, \
          its network and transport headers are marked, and its destination annotation becomes the header's \
          destination. A bad one goes to output 1 if that is connected and is dropped otherwise; the first one's \
          reason is said on standard error. The checks are those of RFC 1812 §5.2.2. Sources are looked at only if \
          some are said to be bad: those of BADSRC, unless the destination is one of GOODDST. INTERFACES names the \
          router's own addresses with their prefix lengths: the broadcast address of each, 0.0.0.0 and \
          255.255.255.255 are bad sources then, and the address itself is a good destination.",
    args: &[
        optional(
            "OFFSET",
            "bytes",
            "where the header begins; default 0. It may follow a list of bad sources, to which 0.0.0.0 and \
             255.255.255.255 are added",
        ),
        keyword("INTERFACES", "prefixes", "the router's addresses with prefix lengths"),
        keyword("BADSRC", "IPv4 addresses", "bad sources"),
        keyword("GOODDST", "IPv4 addresses", "destinations for which the source is not looked at"),
        keyword("CHECKSUM", "boolean", "whether the checksum is verified; default true"),
        keyword(
            "VERBOSE",
            "boolean",
            "whether every bad packet's reason is said; default false: the first one's",
        ),
        keyword("DETAILS", "boolean", "whether there is a handler `drop_details`; default false"),
    ],
    handlers: tally::HANDLERS,
    drops: Fault::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> CheckIPHeader -> Discard;",
    see: &["CheckIP6Header", "MarkIPHeader", "GetIPAddress", "IPInputCombo"],
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Fault);

pub(crate) static UNSUMMED: Spec = Spec {
    name: UNSUMMED_NAME,
    category: SPEC.category,
    summary: "checks IPv4 headers but for their checksums",
    ports: SPEC.ports,
    processing: SPEC.processing,
    doc: "As CheckIPHeader, but checksums are verified only if CHECKSUM is true.",
    args: SPEC.args,
    handlers: SPEC.handlers,
    drops: Fault::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> CheckIPHeader2 -> Discard;",
    see: &["CheckIPHeader", "MarkIPHeader"],
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

shares_drop_reasons!(UNSUMMED, Fault);

const UNSUMMED_NAME: &str = "CheckIPHeader2";

struct CheckIPHeader {
    checker: Checker,
    tally: Tally<Fault>,
    /// Whether [`DETAILS`] can be read.
    details: bool,
    notice: Notice,
}

/// The reasons in Click's words.
const TEXTS: [&str; 6] = [
    "tiny packet",
    "bad IP version",
    "bad IP header length",
    "bad IP length",
    "bad IP checksum",
    "bad source address",
];

/// Says why packets are bad: of the first one, or of all.
struct Notice {
    element: Arc<str>,
    verbose: bool,
    said: bool,
}

impl Notice {
    /// The line for a packet that is bad for `reason`, if it is to be said.
    fn line(&mut self, reason: Fault) -> Option<String> {
        let said = std::mem::replace(&mut self.said, true);
        (self.verbose || !said).then(|| {
            let text = TEXTS[reason as usize];
            format!("{}: IP header check failed: {text}\n", self.element)
        })
    }

    #[cold]
    fn say(&mut self, reason: Fault) {
        if let Some(line) = self.line(reason) {
            to_stderr(&line);
        }
    }
}

/// How headers are checked.
pub(crate) struct Checker {
    /// Bytes before the header.
    pub offset: usize,
    /// Whether the checksum is verified.
    pub checksum: bool,
    /// Which sources are bad.
    pub sources: Sources,
}

/// Which sources are bad.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    bad: Vec<u32>,
    /// A bit for each bad source, by [`bit`]: most packets' sources are told to be good by this alone.
    filter: u64,
    good_destinations: Vec<u32>,
}

/// The bit of an address in a set of 64, which may take one for another (Fibonacci hashing).
#[inline(always)]
pub(crate) fn bit(address: u32) -> u64 {
    1 << (address.wrapping_mul(0x9e37_79b1) >> 26)
}

/// What is no source of a packet from any network: "this host" and the limited broadcast (RFC 1812 §5.3.7).
const NO_SOURCE: [u32; 2] = [0, u32::MAX];

impl Sources {
    /// What INTERFACES and GOODDST say.
    pub fn read(conf: &mut Conf<'_>) -> Self {
        let mut sources = Sources::default();
        let interfaces: Option<Raw> = conf.keyword_given("INTERFACES");
        for text in interfaces.iter().flat_map(|r| r.0.split_ascii_whitespace()) {
            let Ok(p) = Prefix4::parse(text, &conf.scope()) else {
                conf.bad_argument("INTERFACES", "parse error");
                return sources;
            };
            sources.good_destinations.push(p.address.into());
            if p.len < 31 {
                sources.add_bad([u32::from(p.address) | !p.mask()]);
            }
            sources.add_bad(NO_SOURCE);
        }
        if let Some(list) = conf.keyword_given::<Raw>("GOODDST") {
            sources.good_destinations.extend(addresses(conf, "GOODDST", &list.0));
        }
        sources
    }

    /// Adds the list of bad sources that was given by position, as it was done before there were keywords: such a
    /// list says that sources are to be looked at, so that those are bad too which no packet may have.
    pub fn add_positional(&mut self, conf: &mut Conf<'_>, list: &str) {
        self.add_bad(addresses(conf, "BADSRC", list));
        self.add_bad(NO_SOURCE);
    }

    fn add_bad(&mut self, sources: impl IntoIterator<Item = u32>) {
        for source in sources {
            self.filter |= bit(source);
            if !self.bad.contains(&source) {
                self.bad.push(source);
            }
        }
    }

    /// Whether a packet from `source` to `destination` is bad.
    #[inline(always)]
    pub fn is_bad(&self, source: u32, destination: u32) -> bool {
        self.filter & bit(source) != 0 && self.is_listed(source, destination)
    }

    #[cold]
    fn is_listed(&self, source: u32, destination: u32) -> bool {
        self.bad.contains(&source) && !self.good_destinations.contains(&destination)
    }

    /// Gives packets up whose source, which is at `source`, is bad.
    fn lower(&self, b: &mut Builder, source: At, destination: Reg) {
        if self.bad.is_empty() {
            return;
        }
        let set = |list: &[u32]| list.iter().map(|&a| u64::from(a)).collect::<Arc<[u64]>>();
        let source = b.load(source, 4);
        let bad = b.member(source, set(&self.bad));
        let good = b.member(destination, set(&self.good_destinations));
        let not_good = b.compute(Alu::Xor, good, 1);
        let both = b.compute(Alu::And, bad, not_good);
        b.require(Test::Equal(both.into(), 0.into()));
    }

    /// The sources that a program of [`Sources::lower`] gives up.
    pub fn of_sets(bad: &[u64], good_destinations: &[u64]) -> Self {
        let good_destinations = good_destinations.iter().map(|&a| a as u32).collect();
        let mut sources = Sources { good_destinations, ..Sources::default() };
        sources.add_bad(bad.iter().map(|&a| a as u32));
        sources
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut sources = Sources::read(conf);
    if let Some(list) = conf.keyword_given::<Raw>("BADSRC") {
        sources.add_bad(addresses(conf, "BADSRC", &list.0));
    }
    let mut offset = 0u32;
    // Before there were keywords, bad sources came first and the offset second.
    let first: Raw = conf.optional("OFFSET", Raw("0".into()));
    if first.0.is_empty() || first.0.contains('.') {
        sources.add_positional(conf, &first.0);
        offset = conf.optional("OFFSET", 0);
    } else if let Some(n) = conf.parse("OFFSET", &first.0) {
        offset = n;
    }
    let checksum = conf.keyword("CHECKSUM", conf.spec().name != UNSUMMED_NAME);
    let verbose = conf.keyword("VERBOSE", false);
    let details = conf.keyword("DETAILS", false);
    conf.finish()?;
    let tally = Tally::new(conf);
    let checker = Checker { offset: offset as usize, checksum, sources };
    let notice = Notice { element: conf.name().clone(), verbose, said: false };
    Ok(Box::new(CheckIPHeader { checker, tally, details, notice }))
}

fn addresses(conf: &mut Conf<'_>, name: &str, list: &str) -> Vec<u32> {
    list.split_ascii_whitespace().filter_map(|t| conf.parse::<Ipv4Addr>(name, t)).map(u32::from).collect()
}

impl Checker {
    /// Checks one packet and marks it; the error is the reason.
    #[inline]
    pub fn check(&self, packet: &mut Packet) -> Result<(), Fault> {
        let data = packet.data().get(self.offset..).ok_or(Fault::Short)?;
        let h = header::check(data, self.checksum)?;
        if self.sources.is_bad(h.source, h.destination) {
            return Err(Fault::Source);
        }
        packet.truncate(self.offset + h.total_len);
        packet.set_network_headers(self.offset, h.header_len);
        packet.set_dst_ip(h.destination.to_be_bytes());
        Ok(())
    }

    /// The same as a program, which goes on with good packets; bad ones are given up.
    pub fn lower(&self, b: &mut Builder) -> Option<()> {
        let start = u32::try_from(self.offset).ok()?;
        start.checked_add(HEADER_LEN as u32)?;
        let at = |offset| At::data(start + offset);
        b.require(Test::Has(at(0), HEADER_LEN as u32));
        let first = b.load(at(0), 1);
        let version = b.compute(Alu::Shr, first, 4);
        b.require(Test::Equal(version.into(), 4.into()));
        let words = b.compute(Alu::And, first, 15);
        let header_len = b.compute(Alu::Shl, words, 2);
        b.forbid(Test::Above((HEADER_LEN as u64).into(), header_len.into()));
        let (total_len, len) = (b.load(at(2), 2), b.get(Field::Length));
        let left = b.compute(Alu::Sub, len, u64::from(start));
        b.forbid(Test::Above(header_len.into(), total_len.into()));
        b.forbid(Test::Above(total_len.into(), left.into()));
        if self.checksum {
            let sum = b.sum(at(0), header_len);
            b.require(Test::Equal(sum.into(), 0xffff.into()));
        }
        let destination = b.load(at(16), 4);
        self.sources.lower(b, at(12), destination);
        let end = b.compute(Alu::Add, total_len, u64::from(start));
        let transport = b.compute(Alu::Add, header_len, u64::from(start));
        b.put(Field::Length, end);
        b.put(Field::Network, u64::from(start));
        b.put(Field::Transport, transport);
        b.put(Anno::DST_IP.into(), destination);
        Some(())
    }
}

impl Element for CheckIPHeader {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let CheckIPHeader { checker, tally, notice, .. } = self;
        tally.sift(batch, cx, |packet| checker.check(packet).inspect_err(|&reason| notice.say(reason)));
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        self.checker.lower(&mut b)?;
        b.count(&self.tally.good, 1);
        b.leave(0);
        b.finish()
    }

    fn lacks(&self, name: &str) -> bool {
        name == DETAILS && !self.details
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            DETAILS => self.tally.details(TEXTS),
            _ => self.tally.read(handler),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{self, Harness};
    use causeway_packet::wire::ipv4::Ipv4;

    /// A good header of 20 bytes with 8 bytes of payload.
    pub(crate) fn good() -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        bytes.extend([0; 8]);
        seal(&mut bytes);
        bytes
    }

    fn seal(bytes: &mut [u8]) {
        Ipv4::new_checked(bytes).unwrap().fill_checksum();
    }

    fn verdict(config: &str, bytes: &[u8]) -> Result<Packet, &'static str> {
        harness::verdict(&SPEC, config, harness::packet(bytes))
    }

    #[test]
    fn the_second_class_leaves_checksums_alone() {
        let bad = |class: &'static Spec, config: &str| {
            let mut bytes = crate::ip::corpus::datagram(&[], &[1, 2], 9, 0);
            bytes[10] ^= 1;
            causeway_engine::harness::verdict(class, config, causeway_engine::harness::packet(&bytes)).err()
        };
        assert_eq!((bad(&UNSUMMED, ""), bad(&SPEC, "")), (None, Some("bad-checksum")));
        assert_eq!(bad(&UNSUMMED, "CHECKSUM true"), Some("bad-checksum"));
    }

    #[test]
    fn a_good_packet_is_cut_and_marked() {
        let mut bytes = vec![0xee; 14];
        bytes.extend(good());
        bytes.extend([0xff; 18]);
        let p = verdict("14", &bytes).unwrap();
        assert_eq!((p.len(), p.network_offset(), p.transport_offset()), (42, Some(14), Some(34)));
        assert_eq!(p.dst_ip(), [10, 0, 0, 2]);
    }

    #[test]
    fn each_fault_has_its_reason() {
        let broken = |at: usize, value: u8| {
            let mut b = good();
            b[at] = value;
            verdict("", &b).err()
        };
        assert_eq!(verdict("", &good()[..19]).err(), Some("short"));
        assert_eq!(broken(0, 0x65), Some("bad-version"));
        assert_eq!(broken(0, 0x44), Some("bad-header-length"));
        assert_eq!(broken(0, 0x4f), Some("bad-header-length"));
        assert_eq!(broken(3, 29), Some("bad-length"));
        assert_eq!(broken(3, 19), Some("bad-length"));
        assert_eq!(broken(8, 63), Some("bad-checksum"));
        assert!(
            verdict("CHECKSUM false", &{
                let mut b = good();
                b[8] = 63;
                b
            })
            .is_ok()
        );
    }

    #[test]
    fn bad_sources_are_bad_unless_the_destination_is_ours() {
        let from = |source: [u8; 4], config: &str| {
            let mut b = good();
            b[12..16].copy_from_slice(&source);
            seal(&mut b);
            verdict(config, &b).is_ok()
        };
        assert!(from([0; 4], "") && from([255; 4], "GOODDST 1.1.1.1"), "nobody says that sources are bad");
        assert!(!from([0; 4], "INTERFACES 10.1.2.3/16") && !from([255; 4], "INTERFACES 10.1.2.3/32"));
        assert!(!from([0; 4], "1.2.3.4") && from([0; 4], "BADSRC 1.2.3.4"), "as lists in Click");
        assert!(!from([10, 1, 255, 255], "INTERFACES 10.1.2.3/16 10.2.2.3/16"));
        assert!(from([10, 1, 255, 255], "INTERFACES 10.1.2.3/16 10.0.0.2/8"));
        assert!(!from([1, 2, 3, 4], "BADSRC 9.9.9.9 1.2.3.4") && !from([1, 2, 3, 4], "1.2.3.4 5.6.7.8, 0"));
        assert!(from([0; 4], "INTERFACES 10.1.2.3/16, GOODDST 10.0.0.2"));
    }

    #[test]
    fn the_first_bad_packet_s_reason_is_said_or_every_one_s() {
        for (verbose, second) in [(false, None), (true, Some("c: IP header check failed: bad IP length\n"))] {
            let mut notice = Notice { element: "c".into(), verbose, said: false };
            assert_eq!(
                notice.line(Fault::Short).as_deref(),
                Some("c: IP header check failed: tiny packet\n")
            );
            assert_eq!(notice.line(Fault::Length).as_deref(), second);
        }
    }

    #[test]
    fn bad_packets_go_to_output_1_if_there_is_one() {
        let mut h = Harness::new(&SPEC, "", 1, 2).unwrap();
        h.push_all(0, [Packet::from_bytes(b"no").unwrap(), Packet::from_bytes(&good()).unwrap()]);
        assert_eq!((h.take(0).len(), h.take(1).len(), h.drops()), (1, 1, vec![]));
        assert_eq!((h.read("drops").unwrap(), h.read("count").unwrap()), ("1".into(), "1".into()));
    }
}
