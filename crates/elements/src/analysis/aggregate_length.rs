//! AggregateLength.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "AggregateLength",
    category: "analysis",
    summary: "sets the aggregate annotation to the length of packets",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "The length includes the EXTRA_LENGTH annotation. With IP it is counted from the IP header on, and packets without one go to output 1, or are dropped.",
    args: AggregateLength::ARGS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> AggregateLength -> Discard;",
    see: &["AggregateIP", "AggregateCounter"],
    build: configured::<AggregateLength>,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "with IP, the packet has no IP header, and output 1 is not connected";
    }
}

settings! {
    struct AggregateLength {
        ip: bool = keyword("IP", "boolean", "whether to count from the IP header on; default false"), or(false);
    }
}

impl Element for AggregateLength {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let start = if self.ip { packet.network_offset() } else { Some(0) };
        let Some(start) = start else { return Verdict::divert(1, Reason::NoHeader) };
        let len = (packet.len() - start) as u32 + packet.anno_u32(Anno::EXTRA_LENGTH.offset);
        packet.set_anno_u32(Anno::AGGREGATE.offset, len);
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{packet, verdict};

    #[test]
    fn lengths_are_aggregates() {
        let of = |config: &str, mark: Option<usize>| {
            let mut p = packet(&[7; 50]);
            p.set_anno_u32(Anno::EXTRA_LENGTH.offset, 1_000);
            mark.into_iter().for_each(|at| p.set_network_header(at));
            verdict(&SPEC, config, p).map(|p| p.anno_u32(Anno::AGGREGATE.offset))
        };
        assert_eq!(
            (of("", None), of("IP true", Some(14)), of("IP true", None)),
            (Ok(1_050), Ok(1_036), Err("no-header"))
        );
    }
}
