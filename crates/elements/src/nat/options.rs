//! Arguments and handlers that rewriters have in common.

use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc};

pub(super) const INPUTS: ArgDoc =
    rest("INPUTSPEC", "specification", "what becomes of packets of unknown flows, one for each input");
pub(super) const TCP_TIMEOUT: ArgDoc = keyword(
    "TCP_TIMEOUT",
    "seconds",
    "of TCP connections with payload in both directions; also TIMEOUT; default 24 h",
);
pub(super) const TCP_DONE_TIMEOUT: ArgDoc =
    keyword("TCP_DONE_TIMEOUT", "seconds", "of TCP connections that have ended; default 4 min");
pub(super) const TCP_NODATA_TIMEOUT: ArgDoc = keyword(
    "TCP_NODATA_TIMEOUT",
    "seconds",
    "of TCP connections without payload in one direction; default 5 min",
);
pub(super) const TCP_GUARANTEE: ArgDoc = keyword(
    "TCP_GUARANTEE",
    "seconds",
    "for which TCP connections stay after each packet whatever comes; default 5 s",
);
pub(super) const UDP_TIMEOUT: ArgDoc = keyword("UDP_TIMEOUT", "seconds", "of UDP flows; default 5 min");
pub(super) const UDP_STREAMING_TIMEOUT: ArgDoc = keyword(
    "UDP_STREAMING_TIMEOUT",
    "seconds",
    "of UDP flows of three packets or more in both directions; default UDP_TIMEOUT",
);
pub(super) const UDP_GUARANTEE: ArgDoc = keyword(
    "UDP_GUARANTEE",
    "seconds",
    "for which UDP flows stay after each packet whatever comes; default 5 s",
);
pub(super) const TIMEOUT: ArgDoc = keyword("TIMEOUT", "seconds", "of flows; default 5 min");
pub(super) const LONG_TIMEOUT: ArgDoc = keyword("TIMEOUT", "seconds", "of flows; default 2 h");
pub(super) const STREAMING_TIMEOUT: ArgDoc = keyword(
    "STREAMING_TIMEOUT",
    "seconds",
    "of flows of three packets or more in both directions; default TIMEOUT",
);
pub(super) const GUARANTEE: ArgDoc =
    keyword("GUARANTEE", "seconds", "for which flows stay after each packet whatever comes; default 5 s");
pub(super) const REAP_INTERVAL: ArgDoc = keyword(
    "REAP_INTERVAL",
    "seconds",
    "between searches for flows whose timeout is over; 0 = never; default 15 min",
);
pub(super) const MAPPING_CAPACITY: ArgDoc = keyword(
    "MAPPING_CAPACITY",
    "flows or element",
    "most flows, or the rewriter whose table is shared; also CAPACITY; default as many as there is room for",
);
pub(super) const DST_ANNO: ArgDoc = keyword(
    "DST_ANNO",
    "boolean",
    "whether the destination annotation is set to the new destination; default true",
);
pub(super) const REPLY_ANNO: ArgDoc = keyword(
    "REPLY_ANNO",
    "annotation",
    "one byte that replies get as the packet had it that began their flow; default none",
);

/// Handlers of all rewriters.
pub(super) const COMMON: &[HandlerDoc] = &[
    reads("table_size", "flows in its tables").measures(Unit::None),
    reads("nmappings", "`table_size`"),
    reads("evicted", "flows that were forgotten before their time because another one needed their place")
        .counts(Unit::None),
    reads("mapping_failures", "new flows that were refused because no port, address or place was free")
        .counts(Unit::None),
    reads("patterns", "the inputs' specifications, one a line, each with its number of flows if it has any"),
    reads("size", "flows in the table, with those of the rewriters that share it").measures(Unit::None),
    reads_writes("capacity", "most flows in the table"),
    writes("clear", "removes all flows of the table"),
    reads_writes("pattern#", "the specification of an input; when it is written the input's flows go"),
];
pub(super) const TABLE: &[HandlerDoc] = &[
    reads(
        "table",
        "the flows, a line for each direction: as it comes, as it leaves, outputs (a star at its own), input, seconds to \
         its end",
    ),
    reads("mappings", "`table`"),
];
pub(super) const LOOKUP: &[HandlerDoc] = &[reads_with(
    "lookup",
    "of `SADDR SPORT DADDR DPORT`, what a TCP packet with these becomes; empty if unknown",
)];
pub(super) const TCP_UDP_TABLES: &[HandlerDoc] = &[
    reads(
        "tcp_table",
        "the TCP flows, a line for each direction: as it comes, as it leaves, outputs (a star at its own), input, seconds \
         to its end",
    ),
    reads("udp_table", "the UDP flows, likewise"),
    reads("tcp_mappings", "`tcp_table`"),
    reads("udp_mappings", "`udp_table`"),
    reads_with(
        "tcp_lookup",
        "of `SADDR SPORT DADDR DPORT`, what a TCP packet with these becomes; empty if unknown",
    ),
];
