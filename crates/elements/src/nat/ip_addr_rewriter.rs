//! IPAddrRewriter.

use super::configure::{build, companions};
use super::kind::Kind;
use super::options::*;
use super::rewriter::Reason;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "IPAddrRewriter",
    category: "nat",
    summary: "rewrites source addresses of IP packets",
    ports: "1-/1-",
    processing: "h/h",
    doc: "Basic network address translation, for any protocol: each source address gets another, and packets to that one are sent back \
          to it. A pattern is `SADDR -`, where SADDR may be a range `L-H` or a prefix, of which a free address is taken at random, \
          with `#` behind it in order. Fragments are rewritten too. \
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
    args: &[INPUTS, LONG_TIMEOUT, GUARANTEE, REAP_INTERVAL, MAPPING_CAPACITY, REPLY_ANNO],
    handlers: handlers!(TABLE, COMMON),
    drops: Reason::DOCS,
    example: "Idle -> rw :: IPAddrRewriter(pattern 1.0.0.1-1.0.0.254 - 0 1, drop); Idle -> [1]rw; rw[0] -> Discard; rw[1] -> Discard;",
    see: &["IPRewriter", "IPAddrPairRewriter"],
    copies: Copies::One,
    lives_with: companions,
    build: |conf| build(Kind::Addr, conf),
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);
