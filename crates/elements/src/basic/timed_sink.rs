//! TimedSink.

use causeway_engine::prelude::*;
use causeway_engine::value::Nanoseconds;

pub(crate) static SPEC: Spec = Spec {
    name: "TimedSink",
    category: "basic",
    summary: "pulls a packet every so often and drops it",
    ports: "1/0",
    processing: "l/l",
    doc: "Pulls one packet every INTERVAL, whether there is one or not, and drops it.",
    args: TimedSink::ARGS,
    handlers: handlers!(TimedSink::HANDLERS, &[CONFIG]),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Queue -> TimedSink(0.1);",
    see: &["Discard", "TimedSource", "Shaper"],
    copies: Copies::One,
    build: configured::<TimedSink>,
    ..Spec::DEFAULT
};

settings! {
    struct TimedSink {
        interval: Nanoseconds = optional("INTERVAL", "seconds", "how long it waits between two packets; default 500ms"), or(Nanoseconds(500_000_000)),
            live("interval", "how long it waits between two packets");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Discarded = "discarded", "packets end here";
    }
}

/// The only timer: the next packet.
const NEXT: u32 = 0;

impl TimedSink {
    fn wait(&self, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        // Never at once, or time would stand still.
        cx.set_timer(NEXT, now_ns.saturating_add(self.interval.0.max(1)));
    }
}

impl Element for TimedSink {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.wait(cx);
        Ok(())
    }

    fn timer(&mut self, _key: u32, cx: &mut Cx<'_>) {
        let mut batch = cx.lend_batch();
        cx.pull(0, 1, &mut batch);
        cx.count_drops(Reason::Discarded, batch.len() as u64);
        cx.return_batch(batch);
        self.wait(cx);
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        self.wait(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Ports, packet};

    #[test]
    fn one_packet_an_interval() {
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![] };
        let mut h = Harness::with_ports(&SPEC, "", &ports).unwrap();
        (0..99).for_each(|n| h.feed(0, packet(&[n])));
        h.advance(2_400_000_000);
        assert_eq!(h.drops(), [("discarded", 4)]);
        h.write("interval", "0.1").unwrap();
        h.advance(1_050_000_000);
        assert_eq!((h.drops(), h.read("interval").unwrap()), (vec![("discarded", 14)], "100ms".to_owned()));
        h.assert_balanced();
    }
}
