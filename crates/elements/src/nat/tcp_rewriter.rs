//! TCPRewriter.

use super::configure::{build, companions};
use super::kind::Kind;
use super::options::*;
use super::rewriter::Reason;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "TCPRewriter",
    category: "nat",
    summary: "rewrites addresses, ports and sequence numbers of TCP packets",
    ports: "1-/1-",
    processing: "h/h",
    doc: "As IPRewriter, for TCP alone. Sequence and acknowledgement numbers, those of selective acknowledgements included, follow \
          when an element such as FTPPortMapper changes the length of what is sent. A pattern is `SADDR SPORT DADDR DPORT`, `-` for what stays. SPORT may be a range `L-H`: the packet's own port if it \
          is free, else a random one that is; with `#` behind it they are taken in order, with `?` always at random. \
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
        REAP_INTERVAL,
        MAPPING_CAPACITY,
        DST_ANNO,
        REPLY_ANNO,
    ],
    handlers: handlers!(TABLE, LOOKUP, COMMON),
    drops: Reason::DOCS,
    example: "Idle -> rw :: TCPRewriter(pattern 1.0.0.1 1024-65535 - - 0 1, drop); Idle -> [1]rw; rw[0] -> Discard; rw[1] -> Discard;",
    see: &["IPRewriter", "FTPPortMapper", "IPRewriterPatterns"],
    copies: Copies::One,
    lives_with: companions,
    build: |conf| build(Kind::Tcp, conf),
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);
