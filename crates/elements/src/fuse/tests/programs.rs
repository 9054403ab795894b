//! Elements and the programs that they lower to: the interpreter does to a packet what the element does.

use super::ends::{Given, Seen};
use super::frames;
use causeway_engine::harness::Harness;
use causeway_engine::ir::Outcome;
use causeway_engine::spec::Lowers;
use causeway_packet::Packet;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A class that lowers: its inputs and outputs, configurations, handlers written before packets come, and bytes that were
/// stripped off those.
struct Case {
    class: &'static str,
    ports: (usize, usize),
    configs: &'static [&'static str],
    writes: &'static [(&'static str, &'static str)],
    stripped: usize,
}

const fn case(class: &'static str, ports: (usize, usize), configs: &'static [&'static str]) -> Case {
    Case { class, ports, configs, writes: &[], stripped: 0 }
}

const ROUTES: &[&str] =
    &["0.0.0.0/0 10.0.0.9 1, 10.1.0.0/16 2, 10.0.0.0/16 0", "10.1.0.0/16 10.0.0.9 2, 10.0.0.2/32 1"];
const ROUTES6: &[&str] = &["::/0 2001:db8::1 1, a00::/16 2", "0a00:0000::/8 0"];

const CASES: &[Case] = &[
    case("Paint", (1, 1), &["1", "2, 20", "3, 0"]),
    case("PaintTee", (1, 2), &["1", "0, 19"]),
    case("CheckPaint", (1, 2), &["1", "0, 20"]),
    case("Strip", (1, 1), &["14", "0", "34"]),
    case(
        "CheckIPHeader",
        (1, 2),
        &["", "14", "14, CHECKSUM false", "OFFSET 14, INTERFACES 10.0.0.1/16", "10.0.0.3, 14"],
    ),
    case("CheckIPHeader2", (1, 2), &["14", "14, CHECKSUM true"]),
    case("GetIPAddress", (1, 1), &["16", "30", "IP src", "IP dst", "30, ANNO 20", "16, ANNO 46"]),
    case("DropBroadcasts", (1, 2), &[""]),
    case("IPGWOptions", (1, 2), &["10.0.0.1"]),
    case("FixIPSrc", (1, 1), &["10.0.0.1"]),
    case("DecIPTTL", (1, 2), &["", "MULTICAST false", "ACTIVE false"]),
    case("IPFragmenter", (1, 2), &["1500", "100"]),
    case("EtherEncap", (1, 1), &["0x0800, 1:2:3:4:5:6, 2:0:0:0:0:9"]),
    Case {
        class: "ARPQuerier",
        ports: (2, 1),
        configs: &["10.0.0.1/16, 2:0:0:0:0:1"],
        writes: &[("insert", "0.0.0.5 2:0:0:0:0:5")],
        stripped: 0,
    },
    case(
        "Classifier",
        (1, 4),
        &["12/0806 20/0001, 12/0806 20/0002, 12/0800, -", "14/45 23/11, 12/08??, !30/0a, 33/03"],
    ),
    case(
        "IPClassifier",
        (1, 3),
        &["udp, ip frag, -", "dst host 10.0.0.2 and ttl > 5, src net 10.0.0.0/16, ip tos 3"],
    ),
    case(
        "IPFilter",
        (1, 2),
        &["allow udp and not dst 10.1.0.0/16, 1 dst port 53, deny all", "1 ip vers 4, allow tcp"],
    ),
    case("IPLookup", (1, 3), ROUTES),
    case("StaticIPLookup", (1, 3), ROUTES),
    case("LinearIPLookup", (1, 3), ROUTES),
    case("RadixIPLookup", (1, 3), ROUTES),
    case("DirectIPLookup", (1, 3), ROUTES),
    case("RangeIPLookup", (1, 3), ROUTES),
    case("LCTrieIPLookup", (1, 3), ROUTES),
    case("LookupIP6Route", (1, 3), ROUTES6),
    case("RadixIP6Lookup", (1, 3), ROUTES6),
    case("LCTrieIP6Lookup", (1, 3), ROUTES6),
    case("CheckIP6Header", (1, 2), &["", "OFFSET 14", ":: a00:1::, 14"]),
    case("DecIP6HLIM", (1, 2), &[""]),
    case("IP6Fragmenter", (1, 2), &["1500", "100"]),
    case("IP6NDSolicitor", (2, 1), &["2001:db8::1, 2:0:0:0:0:1"]),
    case("HashSwitch", (1, 4), &["26, 8", "0, 1", "14, 32"]),
    Case { class: "Switch", ports: (1, 3), configs: &["0", "2"], writes: &[("switch", "1")], stripped: 0 },
    case("Switch", (1, 3), &["-1"]),
    case("StaticSwitch", (1, 2), &["1", "-1", "5"]),
    case("PaintSwitch", (1, 3), &["", "20"]),
    case("SetAnnoByte", (1, 1), &["20, 7"]),
    case("Null", (1, 1), &[""]),
    case("PushNull", (1, 1), &[""]),
    case("Align", (1, 1), &["4, 0"]),
    case("Counter", (1, 1), &[""]),
    case("Discard", (1, 0), &[""]),
    case("Idle", (1, 0), &[""]),
    Case { class: "Unstrip", ports: (1, 1), configs: &["4", "0", "4000000"], writes: &[], stripped: 4 },
    case("Truncate", (1, 1), &["40", "70, EXTRA_LENGTH false"]),
    case("CheckLength", (1, 2), &["60", "100, USE_EXTRA_LENGTH true"]),
    case("MarkIPHeader", (1, 1), &["14", "", "60"]),
    case("MarkIP6Header", (1, 1), &["14", "60"]),
    case("MarkMACHeader", (1, 1), &["", "14", "2, 14"]),
    case("SetIPAddress", (1, 1), &["1.2.3.4", "1.2.3.4, 20"]),
    case("SetIP6Address", (1, 1), &["2001:db8::1"]),
    case("GetIP6Address", (1, 1), &["20", "60"]),
    case("SetIPDSCP", (1, 1), &["46", "0"]),
    case("SetIPECN", (1, 1), &["ect1", "no"]),
    case("MarkIPCE", (1, 1), &["", "true"]),
    case("SetIP6DSCP", (1, 1), &["46"]),
    case("EtherMirror", (1, 1), &[""]),
    case("StoreEtherAddress", (1, 2), &["1:2:3:4:5:6, src", "OFFSET 60, ANNO 0"]),
    case("GetEtherAddress", (1, 2), &["20, src", "4, 60"]),
    case("SetVLANAnno", (1, 1), &["0x6005", "VLAN_ID 7"]),
    case("VLANDecap", (1, 1), &["", "false, ETHERTYPE 0x0800"]),
    case("StripEtherVLANHeader", (1, 2), &["", "-1", "5"]),
];

const NEED_IP6: [&str; 3] = ["CheckIP6Header", "SetIP6DSCP", "IP6NDSolicitor"];

#[test]
fn every_class_that_lowers_is_compared() {
    let mut lowers: Vec<_> =
        crate::library().iter().filter(|s| s.lowers != Lowers::No).map(|s| s.name).collect();
    lowers.sort_unstable();
    let mut compared: Vec<_> = CASES.iter().map(|case| case.class).collect();
    compared.sort_unstable();
    compared.dedup();
    assert_eq!(lowers, compared);
}

/// What an element counts and shows, but what it drops.
fn counts(h: &mut Harness) -> [u64; 2] {
    ["count", "byte_count"].map(|name| h.read(name).ok().and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// What came to counts.
fn gained(h: &mut Harness, before: [u64; 2]) -> [u64; 2] {
    let after = counts(h);
    std::array::from_fn(|i| after[i] - before[i])
}

/// A packet with its headers marked somewhere.
#[derive(Clone, Debug)]
struct Marked {
    given: Given,
    network: Option<usize>,
    transport: Option<usize>,
    destination: [u8; 4],
}

impl Marked {
    fn packet(&self, case: &Case) -> Packet {
        let mut packet = self.given.packet();
        let stripped = case.stripped.min(packet.len());
        packet.pull(stripped).unwrap();
        self.network.into_iter().for_each(|at| packet.set_network_header(at));
        self.transport.into_iter().for_each(|at| packet.set_transport_header(at));
        packet.set_dst_ip(self.destination);
        packet
    }
}

fn marked() -> impl Strategy<Value = Vec<Marked>> {
    let network = select(vec![Some(14), Some(14), Some(14), Some(0), Some(30), None]);
    let transport = select(vec![Some(34), Some(34), Some(20), None]);
    let destination = select(vec![[10, 1, 0, 2], [10, 0, 0, 2], [10, 9, 0, 2], [0; 4], [0, 0, 0, 5]]);
    (frames::round(), prop::collection::vec((network, transport, destination), 1..8)).prop_map(
        |(round, marks)| {
            let marks = marks.into_iter().cycle();
            let marked = |(given, (network, transport, destination))| Marked {
                given,
                network,
                transport,
                destination,
            };
            round.into_iter().zip(marks).map(marked).collect()
        },
    )
}

/// Where a packet went, and how it looked then; the reason if it was dropped.
#[derive(Debug, PartialEq)]
enum Fate {
    Left(usize, Seen),
    Dropped(&'static str),
}

fn fate_at_element(h: &mut Harness, packet: Packet, outputs: usize) -> Fate {
    let before: BTreeMap<_, _> = h.drops().into_iter().collect();
    h.push(0, packet);
    for port in 0..outputs {
        if let Some(packet) = h.take(port).pop() {
            return Fate::Left(port, Seen::of(&packet));
        }
    }
    let after = h.drops().into_iter().find(|(reason, n)| before.get(reason) != Some(n));
    Fate::Dropped(after.map_or("nowhere", |(reason, _)| reason))
}

/// Compares one packet; says whether the program treated it.
fn compare(case: &Case, h: &mut Harness, marked: &Marked) -> Result<bool, TestCaseError> {
    let spec = crate::library().get(case.class).unwrap();
    // Some configurations cannot be said.
    let Some(mut program) = h.lower() else { return Ok(false) };
    let (mut packet, before) = (marked.packet(case), counts(h));
    let verdict = program.run(&mut packet, 1);
    let counted = gained(h, before);
    let expected = match verdict {
        Outcome::GiveUp => {
            prop_assert_eq!(Seen::of(&packet), Seen::of(&marked.packet(case)), "given up and changed");
            prop_assert_eq!(counted, [0, 0]);
            return Ok(false);
        }
        Outcome::Leave(port) => Fate::Left(port, Seen::of(&packet)),
        Outcome::Drop(reason) => Fate::Dropped(spec.drops[reason].name),
    };
    let before = counts(h);
    prop_assert_eq!(fate_at_element(h, marked.packet(case), case.ports.1), expected);
    prop_assert_eq!(gained(h, before), counted);
    Ok(true)
}

#[test]
fn programs_do_what_their_elements_do() {
    let treated: Vec<_> = CASES.iter().map(|_| AtomicUsize::new(0)).collect();
    let config = ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(packets in marked())| {
        for (case, treated) in CASES.iter().zip(&treated) {
            for config in case.configs {
                let spec = crate::library().get(case.class).unwrap();
                let h = Harness::new(spec, config, case.ports.0, case.ports.1);
                let mut h = h.map_err(|why| TestCaseError::fail(format!("{} {config}: {why:?}", case.class)))?;
                case.writes.iter().for_each(|(handler, value)| h.write(handler, value).unwrap());
                if case.class == "ARPQuerier" {
                    // What the table knows becomes a header when it is first asked for.
                    let mut first = Packet::from_bytes(&[0; 20]).unwrap();
                    first.set_dst_ip([0, 0, 0, 5]);
                    h.push(0, first);
                    h.take(0);
                }
                for marked in &packets {
                    let done = compare(case, &mut h, marked);
                    let done = done.map_err(|e| TestCaseError::fail(format!("{} {config}: {e}", case.class)))?;
                    treated.fetch_add(done as usize, Ordering::Relaxed);
                }
            }
        }
    });
    // Else the test shows nothing. Of IPv6 headers there are hardly any here: who needs them compares with them itself.
    let cases = CASES.iter().zip(&treated).filter(|(case, _)| !NEED_IP6.contains(&case.class));
    for (case, treated) in cases {
        assert!(treated.load(Ordering::Relaxed) > 50, "{}: {treated:?}", case.class);
    }
}
