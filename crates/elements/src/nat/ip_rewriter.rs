//! IPRewriter.

use super::configure::{build, companions};
use super::kind::Kind;
use super::options::*;
use super::rewriter::Reason;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "IPRewriter",
    category: "nat",
    summary: "rewrites addresses and ports of TCP and UDP packets",
    ports: "1-/1-",
    processing: "h/h",
    doc: "Network address and port translation. Knows each flow by protocol, addresses and ports, and writes new ones into its \
          packets, with their checksums; replies are rewritten back. A pattern is `SADDR SPORT DADDR DPORT`, `-` for what stays. SPORT may be a range `L-H`: the packet's own port if it \
          is free, else a random one that is; with `#` behind it they are taken in order, with `?` always at random. Packets need marked headers. Other protocols, and \
          fragments but the first, are dropped unless their input passes them. \
          \n\n\
          The six forms of an input's specification: `drop` (or `discard`); `pass [OUTPUT]`, which lets packets out as they are and \
          remembers nothing; `keep FOUTPUT ROUTPUT`, which remembers the flow and changes nothing; `pattern PATTERN FOUTPUT \
          ROUTPUT`; the same with the name of a pattern (IPRewriterPatterns); and the name of a mapper (RoundRobinIPMapper, \
          SourceIPHashMapper). Packets of known flows leave by FOUTPUT, their replies by ROUTPUT, whichever input they came to. \
          \n\n\
          A flow is removed when its timeout is over (looked for every REAP_INTERVAL), or earlier for a new one when the table is \
          full and the flow's guarantee is over: flows that are over by themselves, or were ended, go \
          first, and if all that are left have guarantees the new flow's packet is dropped as `full`. Adding, \
          finding and removing flows takes constant time, and there is room for a million of them where MAPPING_CAPACITY says \
          nothing. A hot swap keeps the flows of inputs whose specifications stay, if the timeouts do. \
          The element lives on one worker, together with those that it shares its table with.",
    args: &[
        INPUTS,
        TCP_TIMEOUT,
        TCP_DONE_TIMEOUT,
        TCP_NODATA_TIMEOUT,
        TCP_GUARANTEE,
        UDP_TIMEOUT,
        UDP_STREAMING_TIMEOUT,
        UDP_GUARANTEE,
        REAP_INTERVAL,
        MAPPING_CAPACITY,
        DST_ANNO,
        REPLY_ANNO,
    ],
    handlers: handlers!(TCP_UDP_TABLES, COMMON),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(10.0.0.2, 7, 1.0.0.2, 53) -> MarkIPHeader \
              -> rw :: IPRewriter(pattern 1.0.0.1 1024-65535 - - 0 1, drop); Idle -> [1]rw; rw[0] -> Discard; rw[1] -> Discard;",
    see: &[
        "TCPRewriter",
        "UDPRewriter",
        "IPAddrRewriter",
        "IPAddrPairRewriter",
        "ICMPPingRewriter",
        "ICMPRewriter",
        "IPRewriterPatterns",
        "RoundRobinIPMapper",
        "FTPPortMapper",
    ],
    copies: Copies::One,
    lives_with: companions,
    build: |conf| build(Kind::Ip, conf),
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);
