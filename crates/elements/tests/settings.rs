//! `config` shows each element as handlers have left it.

use causeway_engine::harness::{Harness, Output, Ports};
use causeway_engine::{Library, Spec};
use std::collections::BTreeSet;

/// Class, configuration, and a handler with a value; the configuration after it was written.
const WRITES: &[(&str, &str, &str, &str, &str)] = &[
    ("AdjustTimestamp", "5", "time", "2", "2"),
    ("AggregateCounter", "BYTES true", "banner", "a b", "BYTES true, BANNER \"a b\""),
    ("AggregateCounter", "", "aggregate_call", "5 element.clear", "AGGREGATE_CALL 5 element.clear"),
    ("AggregateCounter", "", "count_call", "5 stop", "COUNT_CALL 5 stop"),
    ("TimeFilter", "1, 2", "start", "3", "3, 2"),
    ("TimeFilter", "1, 2", "end", "3", "1, 3"),
    ("TimeFilter", "START 1", "interval", "3", "START 1, INTERVAL 3"),
    (
        "ARPQuerier",
        "1.0.0.1/24, 2:0:0:0:0:1",
        "broadcast",
        "1.0.0.9",
        "1.0.0.1/24, 2:0:0:0:0:1, BROADCAST 1.0.0.9",
    ),
    ("ARPQuerier", "1.0.0.1/24, 2:0:0:0:0:1", "ipaddr", "1.0.0.5", "1.0.0.5/24, 02-00-00-00-00-01"),
    (
        "ARPResponder",
        "1.0.0.1 2:0:0:0:0:1",
        "add",
        "1.0.1.0/24 2:0:0:0:0:2",
        "1.0.0.1/32 02-00-00-00-00-01, 1.0.1.0/24 02-00-00-00-00-02",
    ),
    ("ARPResponder", "1.0.0.1 1.0.0.2 2:0:0:0:0:1", "remove", "1.0.0.1", "1.0.0.2/32 02-00-00-00-00-01"),
    ("BandwidthRatedSplitter", "8kbps, BURST_BYTES 9", "rate", "1Mbps", "1Mbps, BURST_BYTES 9"),
    ("BandwidthRatedUnqueue", "8kbps", "rate", "1Mbps", "1Mbps"),
    ("BandwidthShaper", "8kbps", "rate", "1Mbps", "1Mbps"),
    ("Bypass", "false", "active", "true", "true"),
    ("CheckLength", "60", "length", "90", "90"),
    ("CheckPaint", "COLOR 1, ANNO 20", "color", "7", "COLOR 7, ANNO 20"),
    ("Classifier", "12/0800, -", "pattern0", "12/0806", "12/0806, -"),
    ("Counter", "", "count_call", "5 element.reset c", "COUNT_CALL 5 element.reset c"),
    ("Counter", "BYTE_COUNT_CALL 9 element.reset", "byte_count_call", "5 stop", "BYTE_COUNT_CALL 5 stop"),
    ("DecIPTTL", "MULTICAST false", "active", "false", "MULTICAST false, ACTIVE false"),
    ("DelayShaper", "5", "delay", "10ms", "10ms"),
    ("DelayUnqueue", "5", "delay", "10ms", "10ms"),
    ("Discard", "BURST 3, ACTIVE true", "active", "false", "BURST 3, ACTIVE false"),
    (
        "EtherEncap",
        "0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2",
        "ethertype",
        "0x0806",
        "0x0806, 1:1:1:1:1:1, 2:2:2:2:2:2",
    ),
    ("EtherEncap", "0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2", "etht", "0x0806", "0x0806, 1:1:1:1:1:1, 2:2:2:2:2:2"),
    (
        "EtherEncap",
        "0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2",
        "src",
        "3:3:3:3:3:3",
        "0x0800, 3:3:3:3:3:3, 2:2:2:2:2:2",
    ),
    (
        "EtherEncap",
        "0x0800, 4:4:4:4:4:4, 2:2:2:2:2:2, SRC 1:1:1:1:1:1",
        "dst",
        "3:3:3:3:3:3",
        "0x0800, 4:4:4:4:4:4, 3:3:3:3:3:3, SRC 1:1:1:1:1:1",
    ),
    ("EtherRewrite", "1:1:1:1:1:1, 2:2:2:2:2:2", "src", "3:3:3:3:3:3", "3:3:3:3:3:3, 2:2:2:2:2:2"),
    ("EtherRewrite", "1:1:1:1:1:1, 2:2:2:2:2:2", "dst", "3:3:3:3:3:3", "1:1:1:1:1:1, 3:3:3:3:3:3"),
    ("EtherVLANEncap", VLAN, "ethertype", "5", "5, 1:1:1:1:1:1, 2:2:2:2:2:2, 7"),
    ("EtherVLANEncap", VLAN, "src", "3:3:3:3:3:3", "2048, 3:3:3:3:3:3, 2:2:2:2:2:2, 7"),
    ("EtherVLANEncap", VLAN, "dst", "3:3:3:3:3:3", "2048, 1:1:1:1:1:1, 3:3:3:3:3:3, 7"),
    ("EtherVLANEncap", VLAN, "vlan_tci", "9", "2048, 1:1:1:1:1:1, 2:2:2:2:2:2, 9"),
    ("EtherVLANEncap", VLAN, "vlan_pcp", "3", "2048, 1:1:1:1:1:1, 2:2:2:2:2:2, 7, VLAN_PCP 3"),
    ("EtherVLANEncap", VLAN, "vlan_id", "3", "2048, 1:1:1:1:1:1, 2:2:2:2:2:2, 7, VLAN_ID 3"),
    ("EtherVLANEncap", VLAN, "native_vlan", "3", "2048, 1:1:1:1:1:1, 2:2:2:2:2:2, 7, NATIVE_VLAN 3"),
    ("EtherSwitch", "", "timeout", "7", "TIMEOUT 7"),
    ("FastUDPSourceIP6", UDP6_SOURCE, "active", "false", UDP6_PASSIVE),
    ("FastUDPSourceIP6", UDP6_SOURCE, "limit", "9", UDP6_NINE),
    ("FastUDPSourceIP6", UDP6_SOURCE, "rate", "7", UDP6_SEVEN),
    ("ICMP6Error", "::1, 2, 0", "mtu", "1400", "::1, 2, 0, MTU 1400"),
    ("ICMP6Error", "::1, 2, 0", "src", "::9", "::9, 2, 0"),
    ("IP6Encap", "4, ::1, ::2, HLIM 9", "dst", "DST_ANNO", "4, ::1, DST_ANNO, HLIM 9"),
    ("IP6Encap", "4, ::1, ::2, HLIM 9", "src", "::3", "4, ::3, ::2, HLIM 9"),
    ("SetIP6DSCP", "5", "dscp", "7", "7"),
    ("UDPIP6Encap", "::1, 5, ::2, 7", "dport", "9", "::1, 5, ::2, 9"),
    ("UDPIP6Encap", "::1, 5, ::2, 7", "dst", "::3", "::1, 5, ::3, 7"),
    ("UDPIP6Encap", "::1, 5, ::2, 7", "sport", "9", "::1, 9, ::2, 7"),
    ("UDPIP6Encap", "::1, 5, ::2, 7", "src", "::3", "::3, 5, ::2, 7"),
    ("FastUDPSource", UDP_SOURCE, "rate", "7", "7, 50, 60, 2:0:0:0:0:1, 1.0.0.1, 7, 2:0:0:0:0:2, 1.0.0.2, 9"),
    (
        "FastUDPSource",
        UDP_SOURCE,
        "limit",
        "7",
        "1000, 7, 60, 2:0:0:0:0:1, 1.0.0.1, 7, 2:0:0:0:0:2, 1.0.0.2, 9",
    ),
    (
        "FastUDPSource",
        UDP_SOURCE,
        "active",
        "false",
        "1000, 50, 60, 2:0:0:0:0:1, 1.0.0.1, 7, 2:0:0:0:0:2, 1.0.0.2, 9, ACTIVE false",
    ),
    ("EtherPauseSource", PAUSE, "src", "3:3:3:3:3:3", "3:3:3:3:3:3, 390"),
    ("EtherPauseSource", PAUSE, "pausetime", "9", "2:0:0:0:0:1, 9"),
    ("EtherPauseSource", PAUSE, "dst", "3:3:3:3:3:3", "2:0:0:0:0:1, 390, DST 3:3:3:3:3:3"),
    ("EtherPauseSource", PAUSE, "limit", "9", "2:0:0:0:0:1, 390, LIMIT 9"),
    ("EtherPauseSource", PAUSE, "active", "false", "2:0:0:0:0:1, 390, ACTIVE false"),
    ("FastTCPFlows", TCP_FLOWS, "rate", "7", "7, 50, 60, 2:0:0:0:0:1, 1.0.0.1, 2:0:0:0:0:2, 1.0.0.2, 5, 9"),
    (
        "FastTCPFlows",
        TCP_FLOWS,
        "limit",
        "7",
        "1000, 7, 60, 2:0:0:0:0:1, 1.0.0.1, 2:0:0:0:0:2, 1.0.0.2, 5, 9",
    ),
    (
        "FastTCPFlows",
        TCP_FLOWS,
        "active",
        "false",
        "1000, 50, 60, 2:0:0:0:0:1, 1.0.0.1, 2:0:0:0:0:2, 1.0.0.2, 5, 9, ACTIVE false",
    ),
    ("FastUDPFlows", TCP_FLOWS, "rate", "7", "7, 50, 60, 2:0:0:0:0:1, 1.0.0.1, 2:0:0:0:0:2, 1.0.0.2, 5, 9"),
    (
        "FastUDPFlows",
        TCP_FLOWS,
        "limit",
        "7",
        "1000, 7, 60, 2:0:0:0:0:1, 1.0.0.1, 2:0:0:0:0:2, 1.0.0.2, 5, 9",
    ),
    (
        "FastUDPFlows",
        TCP_FLOWS,
        "length",
        "70",
        "1000, 50, 70, 2:0:0:0:0:1, 1.0.0.1, 2:0:0:0:0:2, 1.0.0.2, 5, 9",
    ),
    (
        "FastUDPFlows",
        TCP_FLOWS,
        "active",
        "false",
        "1000, 50, 60, 2:0:0:0:0:1, 1.0.0.1, 2:0:0:0:0:2, 1.0.0.2, 5, 9, ACTIVE false",
    ),
    ("TimedSource", "5", "headroom", "40", "5, HEADROOM 40"),
    ("RandomSource", "64, 5", "active", "false", "64, 5, ACTIVE false"),
    ("RandomSource", "64, 5", "burst", "7", "64, 5, BURST 7"),
    ("RandomSource", "64, 5", "length", "7", "7, 5"),
    ("RandomSource", "64, 5", "limit", "7", "64, 7"),
    ("RandomBitErrors", "0.5", "p_bit_error", "0.25", "0.25"),
    ("RandomBitErrors", "0.5", "error_kind", "set", "0.5, KIND set"),
    ("RandomBitErrors", "0.5", "active", "false", "0.5, ACTIVE false"),
    ("FrontDropQueue", "20", "capacity", "30", "30"),
    ("HostEtherFilter", "1:1:1:1:1:1", "ether", "3:3:3:3:3:3", "3:3:3:3:3:3"),
    ("InputSwitch", "0", "switch", "-1", "-1"),
    ("IPEncap", "4, 1.0.0.1, 1.0.0.2, TTL 9", "src", "3.3.3.3", "4, 3.3.3.3, 1.0.0.2, TTL 9"),
    ("IPEncap", "4, 1.0.0.1, 1.0.0.2, TTL 9", "dst", "DST_ANNO", "4, 1.0.0.1, DST_ANNO, TTL 9"),
    ("IPFilter", "allow all", "config", "drop all", "drop all"),
    ("IPPrint", "in", "active", "false", "in, ACTIVE false"),
    ("ICMPError", "1.0.0.1, redirect", "src", "1.0.0.2", "1.0.0.2, redirect"),
    ("ICMPError", "1.0.0.1, redirect", "mtu", "200", "1.0.0.1, redirect, MTU 200"),
    ("ICMPError", "1.0.0.1, redirect", "pmtu", "200", "1.0.0.1, redirect, PMTU 200"),
    ("InfiniteSource", "abc", "datasize", "9", "abc, DATASIZE 9"),
    ("RatedSource", "abc", "datasize", "9", "abc, DATASIZE 9"),
    ("Block", "5", "thresh", "9", "9"),
    ("CompareBlock", "5, 2, 100", "fwd_weight", "9", "9, 2, 100"),
    ("CompareBlock", "5, 2, 100", "rev_weight", "9", "5, 9, 100"),
    ("CompareBlock", "5, 2, 100", "thresh", "9", "5, 2, 9"),
    ("SetAnnoByte", "4, 5", "value", "9", "4, 9"),
    ("SetEtherAddress", "1:1:1:1:1:1, 4", "addr", "3:3:3:3:3:3", "3:3:3:3:3:3, 4"),
    ("ARPPrint", "x", "active", "false", "x, ACTIVE false"),
    ("ICMPIPEncap", "1.0.0.1, 1.0.0.2, echo", "src", "3.3.3.3", "3.3.3.3, 1.0.0.2, echo"),
    ("ICMPIPEncap", "1.0.0.1, 1.0.0.2, echo", "dst", "3.3.3.3", "1.0.0.1, 3.3.3.3, echo"),
    ("ICMPPingEncap", "1.0.0.1, 1.0.0.2", "src", "3.3.3.3", "3.3.3.3, 1.0.0.2"),
    ("ICMPPingEncap", "1.0.0.1, 1.0.0.2", "dst", "3.3.3.3", "1.0.0.1, 3.3.3.3"),
    ("ICMPPingSource", "1.0.0.1, 1.0.0.2", "src", "3.3.3.3", "3.3.3.3, 1.0.0.2"),
    ("ICMPPingSource", "1.0.0.1, 1.0.0.2", "dst", "3.3.3.3", "1.0.0.1, 3.3.3.3"),
    ("ICMPPingSource", "1.0.0.1, 1.0.0.2", "active", "false", "1.0.0.1, 1.0.0.2, ACTIVE false"),
    ("InfiniteSource", "abc, 5", "data", "x, y", "\"x, y\", 5"),
    ("InfiniteSource", "abc, 5", "limit", "-1", "abc, -1"),
    ("InfiniteSource", "abc, 5 /* five */", "burst", "7", "abc, 5, BURST 7"),
    ("InfiniteSource", "abc, 5", "burstsize", "7", "abc, 5, BURST 7"),
    ("InfiniteSource", "abc, 5, 1, true", "active", "false", "abc, 5, 1, false"),
    ("InfiniteSource", "abc", "length", "9", "abc, LENGTH 9"),
    ("LinkUnqueue", "1s, 1Mbps", "latency", "2s", "2s, 1Mbps"),
    ("LinkUnqueue", "1s, 1Mbps", "bandwidth", "2Mbps", "1s, 2Mbps"),
    ("MixedQueue", "", "capacity", "30", "CAPACITY 30"),
    ("NotifierQueue", "20", "capacity", "30", "30"),
    ("Paint", "3, 20", "color", "7", "7, 20"),
    ("PaintTee", "3", "color", " 7\n", "7"),
    ("Print", "in, 5", "active", "false", "in, 5, ACTIVE false"),
    ("PullSwitch", "0", "switch", "-1", "-1"),
    ("ProgressBar", "held", "active", "false", "held, ACTIVE false"),
    ("ProgressBar", "held", "banner", "a b", "held, BANNER \"a b\""),
    ("ProgressBar", "held", "poshandler", "held held", "held held"),
    ("ProgressBar", "held", "sizehandler", "held", "held, SIZEHANDLER held"),
    ("Queue", "20", "capacity", "30", "30"),
    ("QuickNoteQueue", "20", "capacity", "30", "30"),
    ("RandomSample", "0.5", "active", "false", "SAMPLE 0.5, ACTIVE false"),
    ("RatedSplitter", "5, BURST_SIZE 9", "rate", "7", "7, BURST_SIZE 9"),
    ("RatedUnqueue", "5", "rate", "7", "7"),
    ("Resize", "-14, 4", "head", "2", "2, 4"),
    ("Resize", "-14, 4", "tail", "2", "-14, 2"),
    ("RatedSource", "abc, 5", "rate", "7", "abc, 7"),
    ("RatedSource", "abc", "limit", "7", "abc, LIMIT 7"),
    ("RatedSource", "", "active", "false", "ACTIVE false"),
    ("RatedSource", "abc", "data", "$x", "\"\\$x\""),
    ("RatedSource", "abc", "length", "7", "abc, LENGTH 7"),
    ("SetIPDSCP", "5", "dscp", "7", "7"),
    ("SetIPECN", "1", "ecn", "2", "2"),
    ("SetVLANAnno", "7", "vlan_tci", "9", "9"),
    ("SetVLANAnno", "7", "vlan_pcp", "3", "7, VLAN_PCP 3"),
    ("SetVLANAnno", "7", "vlan_id", "3", "7, VLAN_ID 3"),
    ("Shaper", "5", "rate", "7", "7"),
    ("SimplePullSwitch", "0", "switch", "-1", "-1"),
    ("SimpleQueue", "", "capacity", "30", "CAPACITY 30"),
    ("StoreEtherAddress", "1:1:1:1:1:1, 8", "addr", "3:3:3:3:3:3", "3:3:3:3:3:3, 8"),
    ("Strip", "14", "length", "16", "16"),
    ("SetIPAddress", "1.0.0.1, 4", "addr", "1.0.0.2", "1.0.0.2, 4"),
    ("Switch", "1", "switch", "0", "0"),
    ("ThreadSafeQueue", "20", "capacity", "30", "30"),
    ("TimedSink", "2", "interval", "1.5", "1.5"),
    ("Truncate", "20", "nbytes", "30", "30"),
    ("TimedSource", "2", "interval", "1.5", "1.5"),
    ("TimedSource", "2", "data", "x", "2, DATA x"),
    ("TimedSource", "2, x", "data", "", "2, \"\""),
    ("TimedSource", "2", "limit", "7", "2, LIMIT 7"),
    ("TimedSource", "2", "length", "7", "2, LENGTH 7"),
    ("TimedSource", "2, ACTIVE true", "active", "false", "2, ACTIVE false"),
    ("UDPIPEncap", "1.0.0.1, 5, 1.0.0.2, 7, false", "src", "3.3.3.3", "3.3.3.3, 5, 1.0.0.2, 7, false"),
    ("UDPIPEncap", "1.0.0.1, 5, 1.0.0.2, 7, false", "sport", "9", "1.0.0.1, 9, 1.0.0.2, 7, false"),
    ("UDPIPEncap", "1.0.0.1, 5, 1.0.0.2, 7, false", "dst", "3.3.3.3", "1.0.0.1, 5, 3.3.3.3, 7, false"),
    ("UDPIPEncap", "1.0.0.1, 5, 1.0.0.2, 7, false", "dport", "9", "1.0.0.1, 5, 1.0.0.2, 9, false"),
    ("UDPRewriter", "drop, CAPACITY 9", "capacity", "7", "drop, MAPPING_CAPACITY 7"),
    ("UDPRewriter", "CAPACITY 9, drop", "pattern0", "pass", "CAPACITY 9, pass"),
    ("Unqueue", "3", "burst", "9", "9"),
    ("Unqueue", "3", "limit", "9", "3, LIMIT 9"),
    ("Unqueue", "3", "active", "false", "3, ACTIVE false"),
    ("Unstrip", "14", "length", "4", "4"),
    ("VLANEncap", "7", "vlan_tci", "ANNO", "ANNO"),
    ("VLANEncap", "7", "vlan_pcp", "3", "7, VLAN_PCP 3"),
    ("VLANEncap", "7", "vlan_id", "3", "7, VLAN_ID 3"),
    ("VLANEncap", "7", "native_vlan", "3", "7, NATIVE_VLAN 3"),
    ("VLANEncap", "7", "ethertype", "5", "7, ETHERTYPE 5"),
];

const PAUSE: &str = "2:0:0:0:0:1, 390";
const TCP_FLOWS: &str = "1000, 50, 60, 2:0:0:0:0:1, 1.0.0.1, 2:0:0:0:0:2, 1.0.0.2, 5, 9";
const VLAN: &str = "2048, 1:1:1:1:1:1, 2:2:2:2:2:2, 7";

const UDP6_SOURCE: &str = "1000, 50, 62, 2:0:0:0:0:1, ::1, 7, 2:0:0:0:0:2, ::2, 9";
const UDP6_PASSIVE: &str = "1000, 50, 62, 2:0:0:0:0:1, ::1, 7, 2:0:0:0:0:2, ::2, 9, ACTIVE false";
const UDP6_NINE: &str = "1000, 9, 62, 2:0:0:0:0:1, ::1, 7, 2:0:0:0:0:2, ::2, 9";
const UDP6_SEVEN: &str = "7, 50, 62, 2:0:0:0:0:1, ::1, 7, 2:0:0:0:0:2, ::2, 9";
const UDP_SOURCE: &str = "1000, 50, 60, 2:0:0:0:0:1, 1.0.0.1, 7, 2:0:0:0:0:2, 1.0.0.2, 9";

fn element(spec: &'static Spec, config: &str) -> Harness {
    let outputs = config.split(',').count().max(2) * (spec.name == "Classifier") as usize;
    let inputs: usize = match spec.ports.split('/').next() {
        Some("0") => 0,
        Some("2") => 2,
        _ => 1,
    };
    let outputs = if spec.ports.ends_with("/0") {
        0
    } else {
        outputs.max(1 + ["PaintTee", "Switch"].contains(&spec.name) as usize)
    };
    let built = Harness::new(spec, config, inputs, outputs);
    built.unwrap_or_else(|e| panic!("{} ({config}): {e:?}", spec.name))
}

#[test]
fn what_is_written_is_in_the_configuration_and_comes_of_it() {
    let library = causeway_elements::library();
    for &(class, config, handler, value, expected) in WRITES {
        let spec = library.get(class).unwrap();
        let mut h = element(spec, config);
        h.write(handler, value).unwrap_or_else(|e| panic!("{class} ({config}): {handler} {value}: {e}"));
        let now = h.read("config").unwrap();
        assert_eq!(now, expected, "{class} ({config}): {handler} {value}");
        let mut again = element(spec, &now);
        let (read, reread) = (h.read(handler), again.read(handler));
        assert_eq!(read, reread, "{class} ({config}): {handler} {value}");
    }
}

/// Elements that open devices and files, or need others beside them.
const EXTERNAL: &[&str] = &["aqm", "devices", "traces"];

#[test]
fn every_setting_is_tried() {
    let library: Library = causeway_elements::library();
    let tried: BTreeSet<_> = WRITES.iter().map(|w| (w.0, w.2)).collect();
    let inside = library.iter().filter(|spec| !EXTERNAL.contains(&spec.category));
    for spec in inside {
        for h in spec.handlers.iter().filter(|h| h.argument(spec).is_some()) {
            assert!(tried.contains(&(spec.name, h.name)), "{}.{}", spec.name, h.name);
        }
    }
}

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
        let spec = causeway_elements::library().get(class).unwrap();
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

#[test]
fn bad_configurations_are_named() {
    let missing = |argument: &str| format!("{argument}: required argument missing");
    for (class, config, outputs, errors) in [
        ("CheckLength", "", 1, vec![missing("LENGTH")]),
        ("Discard", "BURST 0", 0, vec!["BURST: must be at least 1".to_owned()]),
        ("GetIP6Address", "", 1, vec![missing("OFFSET")]),
        ("GetIPAddress", "IP both", 1, vec!["bad IP".to_owned()]),
        ("IPFragmenter", "7", 1, vec!["MTU must be at least 8".to_owned()]),
        ("IPOutputCombo", "3, 1.2.3.4", 5, vec![missing("MTU")]),
        ("Null", "1", 1, vec!["too many arguments".to_owned()]),
        ("Paint", "", 1, vec![missing("COLOR")]),
        ("Paint", "256", 1, vec!["COLOR: out of range, bound 255".to_owned()]),
        (
            "Paint",
            "1, PAINT, FOO 3, 4",
            1,
            vec!["FOO: unknown argument".to_owned(), "too many arguments".to_owned()],
        ),
        ("SetIPAddress", "", 1, vec![missing("IPADDR")]),
        ("Strip", "", 1, vec![missing("LENGTH")]),
        ("Strip", "many", 1, vec!["LENGTH: invalid number".to_owned()]),
        ("Unstrip", "-1", 1, vec!["LENGTH: invalid number".to_owned()]),
    ] {
        let spec = causeway_elements::library().get(class).unwrap();
        assert_eq!(Harness::new(spec, config, 1, outputs).err().unwrap(), errors, "{class}({config})");
    }
}
