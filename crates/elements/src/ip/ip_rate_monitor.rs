//! IPRateMonitor.

use super::rate_tree::{EPOCHS_PER_S, MOST, Network, RateTree, Walk, Way, epoch};
use causeway_engine::prelude::*;
use causeway_lang::args::split_args;
use causeway_packet::wire::Ipv4;

pub(crate) static SPEC: Spec = Spec {
    name: "IPRateMonitor",
    category: "ip",
    summary: "measures the traffic of addresses and networks",
    ports: "1-2/1-2",
    processing: "a/a",
    flow: "#/#",
    doc: "Measures how much comes from addresses, by the sources of the packets of input 0, and how much goes to them, by the \
          destinations of those of input 1, in packets or bytes a second: first by the first byte of the address; where one of the \
          rates is THRESH or more, by the next byte as well, and so on. With ANNO the packet gets both rates of the smallest \
          network that is measured and has its address, as the annotations FWD_RATE and REV_RATE. The IP header must be \
          marked; packets without one pass unmeasured.\n\n\
          At most MEMORY kilobytes are used (0 = 65536; Click has no limit then); every second networks whose rates are below THRESH \
          are measured as a whole again while memory is short. What there is no room for is not measured, and `refused` counts it. A hot swap goes on with the rates if MEMORY is \
          the same.",
    args: Own::ARGS,
    handlers: &[
        reads(
            "look",
            "eighths of 64 ms since the last reset, and a line for each network: bytes, rate from, rate to",
        ),
        reads("thresh", "THRESH, times RATIO"),
        reads("mem", "bytes in use").measures(Unit::Bytes),
        reads("refused", "networks that there was no room for").counts(Unit::None),
        reads_writes("memmax", "most bytes; written in kilobytes"),
        writes(
            "anno_level",
            "`ADDRESS LEVEL SECONDS`: for so long nothing below that byte (0 to 3) of the address is measured",
        ),
        writes("reset", "forgets all rates"),
    ],
    drops: &[],
    example: "InfiniteSource(LIMIT 5, STOP true) -> UDPIPEncap(1.0.0.1, 5, 1.0.0.2, 7) -> IPRateMonitor(PACKETS, 1, 100) -> Discard;",
    see: &["AggregateIP", "AverageCounter", "BandwidthMeter"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Own {
        kind: String = required("TYPE", "PACKETS or BYTES", "what is measured");
        ratio: f64 = required("RATIO", "0 to 1", "the share of packets that are measured");
        threshold: i32 = required("THRESH", "per second", "rate at which a network is looked at closer");
        memory: u32 = optional("MEMORY", "kilobytes", "most memory, 100 or more; default 0, which means 65536"), or(0);
        annotate: bool = optional("ANNO", "boolean", "whether packets get their rates; default true"), or(true);
    }
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Packets,
    Bytes,
}

/// The timer that goes on with freeing memory: so many levels at a time, and nanoseconds to the next.
const FREE: u32 = 0;
const FREED: usize = 32;
const FREE_INTERVAL_NS: u64 = 1_000_000;

/// Least kilobytes.
const LEAST: u32 = 100;
/// A RATIO of one.
const ONE: u32 = 1 << 16;

struct IPRateMonitor {
    own: Own,
    counted: Counted,
    /// RATIO in parts of 2^16.
    ratio: u32,
    /// As if all packets were measured.
    threshold: i32,
    limit: usize,
    tree: RateTree,
    since: u32,
    folded: u32,
}

fn bytes(kilobytes: u32) -> usize {
    if kilobytes == 0 { 0 } else { kilobytes.max(LEAST) as usize * 1024 }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = Own::configure(conf);
    let counted = match own.kind.to_ascii_uppercase().as_str() {
        "BYTES" => Counted::Bytes,
        "PACKETS" => Counted::Packets,
        _ => {
            if conf.errors().is_empty() {
                conf.error("monitor type should be \"PACKETS\" or \"BYTES\"");
            }
            Counted::Packets
        }
    };
    if !(0.0..=1.0).contains(&own.ratio) {
        conf.error("ratio must be between 0 and 1");
    }
    conf.finish()?;
    let ratio = (own.ratio * f64::from(ONE)).round() as u32;
    let limit = bytes(own.memory);
    let threshold = ((i64::from(own.threshold) * i64::from(ratio)) >> 16) as i32;
    let tree = RateTree::new(if limit == 0 { MOST } else { limit.min(MOST) });
    Ok(Box::new(IPRateMonitor { own, counted, ratio, threshold, limit, tree, since: 0, folded: 0 }))
}

impl IPRateMonitor {
    fn measure(&mut self, port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Option<()> {
        let ip = Ipv4::new_quoted(packet.network_header()?).ok()?;
        let counted = match self.counted {
            Counted::Packets => 1,
            Counted::Bytes => u32::from(ip.total_len()),
        };
        let (address, way) = match port {
            0 => (ip.src(), Way::Forward),
            _ => (ip.dst(), Way::Reverse),
        };
        let now = epoch(cx.now_ns());
        let measured = cx.rng().u32(..ONE) <= self.ratio;
        let rates = self.tree.update(address, measured.then_some(counted), way, self.threshold, now);
        if u64::from(now.wrapping_sub(self.folded)) >= EPOCHS_PER_S {
            self.folded = now;
            self.fold(cx);
        }
        if let Some([forward, reverse]) = rates.filter(|_| self.own.annotate) {
            packet.set_anno_u32(Anno::AGGREGATE.offset, forward as u32);
            packet.set_anno_u32(Anno::EXTRA_PACKETS.offset, reverse as u32);
        }
        Some(())
    }

    fn fold(&mut self, cx: &mut Cx<'_>) {
        // Without a limit of its own a tenth of what there is is enough.
        let enough = if self.limit > 0 { self.limit } else { self.tree.used() / 10 * 9 };
        self.tree.fold(self.threshold.into(), cx.rng().bool(), enough);
        self.free(cx);
    }

    /// Frees some memory, if there is some to be freed, and goes on soon.
    fn free(&mut self, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        if self.tree.go_on(FREED, epoch(now_ns)) {
            cx.set_timer(FREE, now_ns + FREE_INTERVAL_NS);
        }
    }
}

impl Element for IPRateMonitor {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.since = epoch(cx.now_ns());
        self.folded = self.since;
        Ok(())
    }

    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for mut packet in batch.drain() {
            self.measure(port, &mut packet, cx);
            cx.emit(port, packet);
        }
    }

    fn pull(&mut self, port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        cx.pull(port, max, batch);
        for packet in batch.iter_mut() {
            self.measure(port, packet, cx);
        }
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        self.free(cx);
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "thresh" => self.threshold.to_string(),
            "mem" => self.tree.used().to_string(),
            "refused" => self.tree.refused.to_string(),
            _ => self.limit.to_string(),
        })
    }

    fn read_in_pieces(&self, handler: &str) -> Option<Box<dyn Pieces>> {
        (handler == "look").then(|| Box::<Look>::default() as Box<dyn Pieces>)
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        let now = epoch(cx.now_ns());
        let words = split_args(value);
        match handler {
            "memmax" => {
                let [word] = &words[..] else { return Err(Error::new("expecting 1 integer")) };
                let kilobytes: i32 = cx.value(handler, word).map_err(|_| "not an integer")?;
                self.limit = bytes(kilobytes.max(0) as u32);
                let limit = if self.limit == 0 { MOST } else { self.limit };
                self.tree.set_limit(limit, self.threshold.into());
                self.free(cx);
            }
            "anno_level" => {
                let [address, level, seconds] = &words[..] else {
                    return Err(Error::new("expecting 3 arguments"));
                };
                let address = cx.value(handler, address).map_err(|_| "not an IP address")?;
                let level: Result<u8, _> = cx.value(handler, level);
                let level = level.ok().filter(|level| *level < 4);
                let level = level.ok_or("2nd argument specifies a level, between 0 and 3, to annotate")?;
                let seconds: Result<i32, _> = cx.value(handler, seconds);
                let seconds = seconds.ok().filter(|seconds| *seconds > 0);
                let seconds = seconds.ok_or("3rd argument specifies when this rule expires, must be > 0")?;
                let until = now.saturating_add((seconds as u32).saturating_mul(EPOCHS_PER_S as u32));
                self.tree.keep_closed(address, level.into(), until);
                self.free(cx);
            }
            _ => {
                cx.dispose_of(self.tree.reset());
                self.since = now;
            }
        }
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<IPRateMonitor>()
            && (old.limit, old.counted) == (self.limit, self.counted)
        {
            std::mem::swap(&mut self.tree, &mut old.tree);
            self.since = old.since;
            self.free(cx);
        }
    }
}

/// What `look` shows, while it is copied.
#[derive(Default)]
struct Look {
    walk: Walk,
    networks: Vec<Vec<Network>>,
    /// Epochs since the last reset.
    epochs: u32,
}

impl Pieces for Look {
    fn go_on(&mut self, element: &mut dyn Element, cx: &mut Cx<'_>) -> bool {
        let Some(monitor) = element.downcast_mut::<IPRateMonitor>() else { return false };
        let now = epoch(cx.now_ns());
        if self.networks.is_empty() {
            self.epochs = now.wrapping_sub(monitor.since);
        }
        let mut networks = Vec::with_capacity(PIECE);
        let more = monitor.tree.copy(&mut self.walk, now, &mut networks);
        self.networks.push(networks);
        more
    }

    fn text(self: Box<Self>) -> String {
        let mut text = format!("{}\n", self.epochs);
        self.networks.iter().flatten().for_each(|network| network.show(&mut text));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus;
    use causeway_engine::harness::Harness;

    const SECOND_NS: u64 = 1_000_000_000;

    fn from(source: [u8; 4]) -> Packet {
        let mut bytes = corpus::datagram(&[], &[0; 80], 9, 0);
        bytes[12..16].copy_from_slice(&source);
        corpus::marked(&bytes, 0)
    }

    /// Pushes `per_s` packets a second from each of `sources` for some seconds.
    fn run(h: &mut Harness, sources: &[[u8; 4]], per_s: u64, seconds: u64) {
        for _ in 0..per_s * seconds {
            sources.iter().for_each(|source| h.push(0, from(*source)));
            h.advance(SECOND_NS / per_s);
        }
    }

    /// The rates in `look`, by network.
    fn rates(h: &mut Harness) -> Vec<(String, f64, f64)> {
        let text = h.read("look").unwrap();
        let lines = text
            .lines()
            .skip(1)
            .map(|line| line.trim_start().split('\t').map(str::to_owned).collect::<Vec<_>>());
        lines.map(|f| (f[0].clone(), f[1].parse().unwrap(), f[2].parse().unwrap())).collect()
    }

    #[test]
    fn busy_networks_are_looked_at_closer() {
        let mut h = Harness::new(&SPEC, "PACKETS, 1, 400", 2, 2).unwrap();
        run(&mut h, &[[1, 2, 3, 4], [9, 9, 9, 9]], 300, 4);
        let names =
            |h: &mut Harness| rates(h).into_iter().filter(|r| r.1 > 1.0).map(|r| r.0).collect::<Vec<_>>();
        assert_eq!(names(&mut h), ["1", "9"], "{:?}", h.read("look"));
        assert!(
            rates(&mut h).iter().all(|r| (r.1 - 300.0).abs() < 30.0 && r.2 == 0.0),
            "{:?}",
            rates(&mut h)
        );
        run(&mut h, &[[1, 2, 3, 4]], 600, 4);
        assert_eq!(names(&mut h), ["1", "1.2", "1.2.3", "1.2.3.4"]);
        let out = h.take(0);
        let noted = out.last().unwrap().anno_u32(Anno::AGGREGATE.offset);
        assert!((550..650).contains(&noted), "{noted}");
        h.push(1, from([7, 7, 7, 7]));
        assert_eq!(h.take(1).len(), 1);
        h.assert_balanced();
        h.write("reset", "").unwrap();
        assert_eq!((h.read("look").unwrap(), h.read("mem").unwrap()), ("0\n".into(), "2080".into()));
    }

    #[test]
    fn bytes_to_addresses_are_measured_by_the_other_input() {
        let mut h = Harness::new(&SPEC, "BYTES, 1, 1000000", 2, 2).unwrap();
        for _ in 0..400 {
            h.push(1, from([1, 2, 3, 4]));
            h.advance(SECOND_NS / 100);
        }
        let rates = rates(&mut h);
        assert_eq!((rates.len(), rates[0].0.as_str(), rates[0].1), (1, "10", 0.0));
        assert!((rates[0].2 - 10_000.0).abs() < 1_500.0, "{rates:?}");
    }

    #[test]
    fn memory_is_bounded_and_comes_back() {
        let mut h = Harness::new(&SPEC, "PACKETS, 1, 1, 100", 1, 1).unwrap();
        for n in 0..20_000u32 {
            h.push(0, from([n as u8, (n >> 8) as u8, 1, n as u8]));
            h.take(0);
            h.advance(SECOND_NS / 2_000);
        }
        let used: usize = h.read("mem").unwrap().parse().unwrap();
        assert!(used <= 100 * 1024 && used > 50 * 1024, "{used}");
        assert_ne!(h.read("refused").unwrap(), "0");
        h.assert_balanced();
        assert_eq!((h.read("memmax").unwrap(), h.read("thresh").unwrap()), ("102400".into(), "1".into()));
        h.advance(10 * SECOND_NS);
        h.push(0, from([1, 1, 1, 1]));
        h.advance(SECOND_NS / 100);
        assert!(h.read("mem").unwrap().parse::<usize>().unwrap() < used);
    }

    #[test]
    fn networks_may_be_kept_closed() {
        let mut h = Harness::new(&SPEC, "PACKETS, 1, 100", 1, 1).unwrap();
        run(&mut h, &[[1, 2, 3, 4]], 300, 4);
        assert_eq!(rates(&mut h).len(), 4);
        h.write("anno_level", "1.2.3.4, 1, 100").unwrap();
        run(&mut h, &[[1, 2, 3, 4]], 300, 4);
        assert_eq!(rates(&mut h).len(), 2);
        for (handler, value, error) in [
            ("anno_level", "1.2.3.4, 1", "expecting 3 arguments"),
            ("anno_level", "x, 1, 1", "not an IP address"),
            ("anno_level", "1.2.3.4, 4, 1", "2nd argument specifies a level, between 0 and 3, to annotate"),
            ("anno_level", "1.2.3.4, 3, 0", "3rd argument specifies when this rule expires, must be > 0"),
            ("memmax", "1, 2", "expecting 1 integer"),
            ("memmax", "x", "not an integer"),
        ] {
            assert_eq!(h.write(handler, value), Err(error.to_owned()));
        }
        h.write("memmax", "200").unwrap();
        assert_eq!(h.read("memmax").unwrap(), "204800");
    }

    #[test]
    fn bad_configurations_are_named() {
        let error = |config: &str| Harness::new(&SPEC, config, 1, 1).err().unwrap().join("|");
        assert_eq!(error("DOGS, 1, 1"), "monitor type should be \"PACKETS\" or \"BYTES\"");
        assert_eq!(error("PACKETS, 2, 1"), "ratio must be between 0 and 1");
        assert_eq!(error("PACKETS, 1"), "THRESH: required argument missing");
    }
}
