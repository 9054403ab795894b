//! How the classes relate to Click's, for those who bring configurations of Click.

mod names;

use names::{INSTEAD, KERNEL, USER_LEVEL};

/// What a class is beside Click's of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It does what Click's does, with the same arguments and handlers.
    Same,
    /// As Click's, and this besides.
    More(&'static str),
    /// Not as Click's in this.
    Differs(&'static str),
    /// Click has no such class.
    Own,
}

impl Relation {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Relation::Same => "same",
            Relation::More(_) => "more",
            Relation::Differs(_) => "differs",
            Relation::Own => "own",
        }
    }
}

impl std::fmt::Display for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Relation::Same => f.write_str("as Click's class of this name"),
            Relation::More(what) => write!(f, "as Click's class of this name, and more: {what}"),
            Relation::Differs(where_) => write!(f, "differs from Click's class of this name: {where_}"),
            Relation::Own => f.write_str("Click has no class of this name"),
        }
    }
}

use Relation::{Differs, More};

/// The classes that are more than Click's, or different; the others of Click's names are the same.
const KNOWN: &[(&str, Relation)] = &[
    ("VLANEncap", Differs("`config` is what was written; Click writes number and priority by themselves")),
    ("StripToNetworkHeader", More("packets without a mark are dropped; Click reads what was never written")),
    ("StripIPHeader", More("packets without a mark are dropped; Click reads what was never written")),
    ("SetVLANAnno", Differs("`config` is what was written; Click writes number and priority by themselves")),
    (
        "Script",
        Differs(
            "a script of type PACKET that is pulled cannot call handlers of the element that pulls it, which is at work",
        ),
    ),
    (
        "EtherVLANEncap",
        Differs(
            "`config` is what was written; Click writes it anew, with addresses and type in an order in which it cannot be read",
        ),
    ),
    (
        "AdaptiveRED",
        Differs(
            "`min_thresh`, `max_thresh` and `max_p` cannot be written; in Click that is an error of another kind",
        ),
    ),
    (
        "AddressTranslator",
        More(
            "the identifier of an ICMPv6 echo counts as its port, and packets that find no mapping are counted",
        ),
    ),
    (
        "ICMP6Error",
        More(
            "MTU, RATE, no errors about errors or to who is no single node, and quotations up to 1280 bytes (RFC 4443); \
             Click's are of 568, and of a fixed MTU whose bytes are in the wrong order",
        ),
    ),
    (
        "IP6NDAdvertiser",
        Differs(
            "an advertisement for a single address overrides what the asker knows (RFC 4861 §7.2.4), and who asks \
             without an address is answered by multicast; an entry must have an Ethernet address",
        ),
    ),
    (
        "IP6NDSolicitor",
        More(
            "the table is bounded, solicitations back off, and only advertisements that RFC 4861 §7.1.2 and §7.2.5 let \
             be believed are",
        ),
    ),
    (
        "ProtocolTranslator46",
        Differs(
            "TTL and TOS stay (RFC 7915 §4.1), fragments and the packets that ICMP errors quote are translated, PREFIX; \
             what has no translation leaves by output 1",
        ),
    ),
    (
        "ProtocolTranslator64",
        Differs(
            "the traffic class stays and short packets may be fragmented (RFC 7915 §5.1), extension headers and the \
             packets that ICMPv6 errors quote are translated, PREFIX; what has no translation leaves by output 1",
        ),
    ),
    ("ARPQuerier", More("the table is bounded, and answers that nobody asked for push nobody out of it")),
    ("AggregateIPFlows", More("CAPACITY flows at most, and 4096 packets held; Click's grow without bound")),
    (
        "CheckIP6Header",
        Differs(
            "the destination annotation is set, which is GetIP6Address's work in Click; sources that are multicast \
             addresses are bad, each fault has a named reason, and BADADDRS may be several addresses, of which Click's \
             takes one",
        ),
    ),
    ("DecIP6HLIM", More("a header that is cut short is none; Click's reads beyond the packet")),
    (
        "IPClassifier",
        Differs(
            "`program` has the same steps or fewer: tests of one word that lead to the same place are one, and a test of a \
             single bit is never turned round; after the first fault of a pattern no more of its faults are told",
        ),
    ),
    ("IPEncap", More("DSCP may be 63, which Click refuses")),
    ("GetIPAddress", More("a packet that is too short is passed on unchanged; Click reads beyond it")),
    (
        "IPFragmenter",
        Differs(
            "a fragment that reaches beyond the longest datagram is dropped; in Click its offset runs over into the flags",
        ),
    ),
    (
        "IPFilter",
        Differs(
            "`program` has the same steps or fewer, as IPClassifier's, and after the first fault of a pattern no more of its \
             faults are told",
        ),
    ),
    ("IP6Mirror", More("a header that is cut short is none; Click's reads beyond the packet")),
    ("IP6Print", More("a header that is cut short is none; Click's reads beyond the packet")),
    ("BalancedThreadSched", Differs("tasks stay where they are, since what they know is there")),
    ("Classifier", More("patterns of any number become one program in which nothing is tested twice")),
    ("ControlSocket", More("numbers of elements and long answers are checked; the protocol is Click's")),
    (
        "Counter",
        More("the counts are also in the shared counters' file, which can be read without the router"),
    ),
    (
        "CPUQueue",
        Differs("one queue of CAPACITY packets for a worker's processors; a copy of the graph has its own"),
    ),
    (
        "DirectIPLookup",
        Differs(
            "the table grows as it must, changes while packets are forwarded, and `table` lists routes in the order in which they came; \
             Click's in that of a hash function",
        ),
    ),
    ("DiscardNoFree", Differs("the packets are given back; it is Discard")),
    ("Discard", More("counts what it drops for `causeway stats`")),
    (
        "FromDevice",
        Differs(
            "the kernel sees the packets only with SNIFFER true (under the name click that is the \
        default, as in Click), and METHOD is AFXDP where nothing is said",
        ),
    ),
    ("EtherPauseSource", More("while ACTIVE is false it does not push frames either")),
    ("FastTCPFlows", More("up to 1048576 flows; what is behind the headers is zero")),
    ("FastUDPFlows", More("up to 1048576 flows; what is behind the headers is zero")),
    ("FromDump", More("reads pcapng, and nanosecond timestamps")),
    ("ICMPError", More("RATE limits the errors a second (RFC 1812 §4.3.2.8)")),
    (
        "IPRewriter",
        More("a million flows in constant time; flows come to an end by a wheel of timers, not by a walk"),
    ),
    (
        "IP6Fragmenter",
        More("what is too long goes to output 1, where ICMP6Error can answer it; Click's drops it"),
    ),
    (
        "LinuxIPLookup",
        Differs(
            "it does not print what it looks up, flags and metrics of routes count, and it has the handlers of a table",
        ),
    ),
    ("MSQueue", Differs("all queues here may be used from several workers, so it is Queue")),
    ("LookupIP6Route", More("a table of any size with the handlers of IPv4's; Click's is a list")),
    ("PollDevice", Differs("Click's is for its kernel driver; this is FromDevice with its arguments")),
    ("QuickNoteQueue", Differs("all queues here tell their pullers at once, so it is Queue")),
    ("SortedTaskSched", Differs("tasks stay where they are, since what they know is there")),
    ("SpinlockAcquire", Differs("nothing is locked, since an element belongs to one worker")),
    ("SpinlockInfo", Differs("nothing is locked, since an element belongs to one worker")),
    ("SpinlockPush", Differs("nothing is locked, since an element belongs to one worker")),
    ("SpinlockRelease", Differs("nothing is locked, since an element belongs to one worker")),
    (
        "StoreUDPTimeSeqRecord",
        Differs(
            "what is no UDP over IPv4 is dropped as well, and packets without a UDP checksum stay without",
        ),
    ),
    ("TCPFragmenter", Differs("FIN stays in the last part alone; what is no whole TCP packet passes")),
    (
        "ToIPFlowDumps",
        Differs(
            "a UDP packet's payload_len is without its IP header, `tcp_window` is among the fields that the file names, at most \
             CAPACITY flows are written at a time, and a hot swap goes on in their files",
        ),
    ),
    ("RadixIPLookup", More("changes while packets are forwarded")),
    (
        "RangeIPLookup",
        Differs("`table` lists routes in the order in which they came; Click's in that of a hash function"),
    ),
    ("RatedSource", More("under any name but click it makes up for at most 10 ms that it came late")),
    ("SchedOrderTest", More("SIZE is at most 1048576, and 0 stands for the default")),
    ("SourceIPHashMapper", More("up to a million points")),
    ("StaticThreadSched", More("a packet that goes to another worker crosses by a ring; nothing is locked")),
    ("ThreadSafeQueue", Differs("all queues here may be used from several workers, so it is Queue")),
    ("Unqueue2", Differs("it moves a packet a turn while the queues downstream tell that they have room")),
    (
        "WebGen",
        More("RATE is checked, and sequence numbers may wrap; Click ends at a RATE of 0 or above a million"),
    ),
    ("ToDevice", Differs("METHOD is AFXDP where nothing is said, and PACKET under the name click")),
    ("ToDump", More("a hot swap goes on in the same file")),
    ("ToHost", More("without DEVNAME, as for Click's kernel driver, the interface is called causeway")),
];

/// What the class called `name` is beside Click's.
pub fn relation(name: &str) -> Relation {
    let known = KNOWN.iter().find(|(class, _)| *class == name).map(|(_, relation)| *relation);
    known.unwrap_or(if is_clicks(name) { Relation::Same } else { Relation::Own })
}

fn is_clicks(name: &str) -> bool {
    KERNEL.iter().any(|(class, _)| *class == name) || USER_LEVEL.split(' ').any(|class| class == name)
}

/// What to tell who uses the class `name` that there is not.
pub fn missing(name: &str) -> Option<String> {
    if let Some((_, instead)) = KERNEL.iter().find(|(class, _)| *class == name) {
        return Some(format!("Click has {name} in its kernel driver or simulator alone; here {instead}"));
    }
    if let Some((_, instead)) = INSTEAD.iter().find(|(class, _)| *class == name) {
        return Some(format!("Click has {name}, Causeway does not: {instead}"));
    }
    is_clicks(name).then(|| format!("Click has {name}, Causeway does not yet"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_a_relation_and_every_entry_a_class() {
        let library = crate::library();
        for (name, relation) in KNOWN {
            assert!(library.get(name).is_some(), "{name} is no class");
            assert!(is_clicks(name), "{name} is not Click's");
            let (More(text) | Differs(text)) = relation else { panic!("{name}: says nothing") };
            assert!(!text.ends_with('.') && !text.contains("  "), "{name}: {text}");
        }
        for spec in library.iter() {
            let own = relation(spec.name) == Relation::Own;
            assert_eq!(own, !is_clicks(spec.name), "{}", spec.name);
        }
        assert_eq!(relation("Queue"), Relation::Same);
        assert_eq!(relation("KernelForward"), Relation::Own);
    }

    #[test]
    fn a_class_that_is_not_here_is_told_about() {
        let told = |name: &str| missing(name).unwrap_or_default();
        assert_eq!(told("AiroInfo"), "Click has AiroInfo, Causeway does not yet");
        assert!(told("ToHostSniffers").contains("SNIFFER"));
        assert!(told("ScheduleLinux").contains("kernel driver"));
        assert!(told("FromTcpdump").contains("tcpdump -w"));
        assert_eq!(missing("Nonsense"), None);
        let library = crate::library();
        assert!(INSTEAD.iter().all(|(name, _)| is_clicks(name) && library.get(name).is_none()));
        assert!(KERNEL.iter().all(|(name, _)| !USER_LEVEL.split(' ').any(|n| n == *name)));
    }
}
