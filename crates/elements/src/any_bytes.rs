//! What holds for all elements whatever the bytes are: they do not panic, and no packet gets lost.

use crate::ip::corpus;
use causeway_engine::Spec;
use causeway_engine::harness::{self, Harness};
use proptest::prelude::*;

/// Configurations of classes that need one, or that do more with it.
const CONFIGS: &[(&str, &str)] = &[
    ("ARPQuerier", "10.9.0.1/24, 2:0:0:0:0:1"),
    ("BandwidthMeter", "8kbps"),
    ("BandwidthRatedSplitter", "80kbps"),
    ("HashSwitch", "4, 4"),
    ("Meter", "50"),
    ("PaintSwitch", "20"),
    ("RandomSample", "0.5"),
    ("RatedSplitter", "5"),
    ("Resize", "-14, 4"),
    ("StaticSwitch", "0"),
    ("StrideSwitch", "1"),
    ("Truncate", "30"),
    ("WebGen", "10.9.0.0/16, 10.0.0.1, 100"),
    ("Align", "4, 0"),
    ("EtherRewrite", "1:1:1:1:1:1, 2:2:2:2:2:2"),
    ("EtherVLANEncap", "0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, ANNO"),
    ("HostEtherFilter", "2:0:0:0:0:1"),
    ("Block", "5"),
    ("CheckARPHeader", "14"),
    ("CompareBlock", "5, 2, 9"),
    ("GetEtherAddress", "0, src"),
    ("SetAnnoByte", "0, 5"),
    ("SetEtherAddress", "1:1:1:1:1:1, 0"),
    ("SetPacketType", "HOST"),
    ("SetRandIPAddress", "10.0.0.0/8, 9"),
    ("StoreData", "4, abc"),
    ("ICMPIPEncap", "1.2.3.4, 1.2.3.5, echo"),
    ("ICMPPingEncap", "1.2.3.4, 1.2.3.5"),
    ("SetIPDSCP", "46"),
    ("StoreIPAddress", "1.2.3.4, src"),
    ("SetIPECN", "ect1"),
    ("StoreEtherAddress", "1:1:1:1:1:1, 8"),
    ("VLANEncap", "5"),
    ("ARPResponder", "10.9.0.0/16 2:0:0:0:0:1"),
    ("AggregateFilter", "allow all"),
    ("AggregateIP", "ip src"),
    ("AggregateIPFlows", "ICMP true, FRAGMENT_TIMEOUT 0"),
    ("CheckIPHeader", "INTERFACES 10.9.0.1/8"),
    ("CheckLength", "30"),
    ("Clipboard", "4/4, 30/2"),
    ("CheckPaint", "1"),
    ("Classifier", "12/0800"),
    ("DynamicUDPIPEncap", "1.0.0.1, 1, 1.0.0.2, 2, true, 3"),
    ("RandomBitErrors", "0.01"),
    ("TCPFragmenter", "MTU 60"),
    ("EtherEncap", "0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2"),
    ("FixIPSrc", "1.2.3.4"),
    ("AddressTranslator", "0, 1, 0, 0, 2001:db8::9"),
    ("GetIP6Address", "24"),
    ("ICMP6Error", "2001:db8::9, 3, 0"),
    ("IP6Encap", "ipip, 2001:db8::1, DST_ANNO"),
    ("IP6Fragmenter", "60"),
    ("IP6NDAdvertiser", "::/0 2:0:0:0:0:1"),
    ("IP6NDSolicitor", "2001:db8::1, 2:0:0:0:0:1"),
    ("SetIP6Address", "2001:db8::1"),
    ("SetIP6DSCP", "46"),
    ("UDPIP6Encap", "2001:db8::1, 1, DST_ANNO, 2"),
    ("GetIPAddress", "16"),
    ("ICMPError", "1.2.3.4, unreachable"),
    ("ICMPPingRewriter", "pattern 1.0.0.1 1024-65535 - - 0 0"),
    ("IPAddrPairRewriter", "pattern 1.0.0.1-1.0.0.9 - 0 0"),
    ("IPAddrRewriter", "pattern 1.0.0.1-1.0.0.9 - 0 0"),
    ("IPClassifier", "udp or tcp opt syn or icmp type echo"),
    ("IPEncap", "ipip, 1.0.0.1, DST_ANNO"),
    ("IPFilter", "allow src net 10.0.0.0/8"),
    ("IPFragmenter", "40"),
    ("IPGWOptions", "1.2.3.4"),
    ("IPInputCombo", "1, INTERFACES 10.9.0.1/8"),
    ("IPOutputCombo", "0, 1.2.3.4, 40"),
    ("IPRateMonitor", "PACKETS, 1, 1"),
    ("IPRewriter", "pattern 1.0.0.1 1024-65535 - - 0 0"),
    ("Paint", "1"),
    ("PaintTee", "0"),
    ("Print", "ACTIVE false"),
    ("SetIPAddress", "1.2.3.4"),
    ("StoreTimestamp", "TAIL true"),
    ("StoreUDPTimeSeqRecord", "0"),
    ("Strip", "14"),
    ("TCPRewriter", "pattern 1.0.0.1 1024-65535 - - 0 0"),
    ("UDPIPEncap", "1.0.0.1, 1, DST_ANNO, 2"),
    ("UDPRewriter", "pattern 1.0.0.1 1024-65535 - - 0 0"),
    ("Unstrip", "14"),
];
/// Subjects whose elements need more than a harness, or take no packets by being pushed them.
const OTHERS: &[&str] = &[
    "aqm",
    "control",
    "devices",
    "fuse",
    "information",
    "kernel",
    "scheduling",
    "sockets",
    "sources",
    "traces",
];
/// Classes that work on other elements, or have no inputs.
const NOT_ALONE: &[&str] = &[
    "ARPFaker",
    "FTPPortMapper",
    "ICMPPingSource",
    "ICMPRewriter",
    "IPRewriterPatterns",
    "RIPSend",
    "RoundRobinIPMapper",
    "SourceIPHashMapper",
    "TCPIPSend",
];
/// Classes that make packets.
const MAKERS: &[&str] = &[
    "ARPQuerier",
    "IP6NDSolicitor",
    "EtherSwitch",
    "Hub",
    "IPFragmenter",
    "IPOutputCombo",
    "PaintSwitch",
    "PaintTee",
    "TCPFragmenter",
    "Tee",
    "WebGen",
];

/// A class on the bench with as many outputs as it must have, or one.
fn harness(spec: &'static Spec) -> Harness {
    let config = CONFIGS.iter().find(|(class, _)| *class == spec.name).map_or("", |(_, config)| config);
    let least = |ports: &str| ports.split('-').next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let (inputs, outputs) = spec.ports.split_once('/').map_or((1, 1), |(i, o)| (least(i), least(o)));
    let built = Harness::new(spec, config, inputs, outputs);
    built.unwrap_or_else(|e| panic!("{} needs a line in CONFIGS: {e:?}", spec.name))
}

/// Bytes, which may be nearly IPv6, and where their network header is marked, if it is.
fn packet() -> impl Strategy<Value = (Vec<u8>, Option<usize>)> {
    (corpus::frame(14), 0usize..40, any::<bool>(), any::<bool>()).prop_map(|(mut bytes, at, marked, six)| {
        if let Some(first) = bytes.get_mut(at).filter(|_| six) {
            *first = 0x60;
        }
        (bytes, marked.then_some(at))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn any_bytes_pass_or_are_counted(packets in prop::collection::vec(packet(), 20)) {
        let library = crate::library();
        let pushed = |s: &&Spec| !OTHERS.contains(&s.category) && !s.processing.starts_with('l');
        for spec in library.iter().filter(pushed).filter(|s| !NOT_ALONE.contains(&s.name)) {
            let mut h = harness(spec);
            for (bytes, at) in &packets {
                h.push(0, at.map_or_else(|| harness::packet(bytes), |at| corpus::marked(bytes, at)));
            }
            if !MAKERS.contains(&spec.name) {
                h.assert_balanced();
            }
        }
    }
}
