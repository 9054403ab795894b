//! Unqueue2.

use causeway_engine::prelude::*;
use causeway_engine::value::Raw;

pub(crate) static SPEC: Spec = Spec {
    name: "Unqueue2",
    category: "queues",
    summary: "pulls packets and pushes them on while there is room",
    ports: "1/1",
    processing: "l/h",
    doc: "As Unqueue, but it pulls nothing while the queues that its packets go to say that they are full. It moves a packet \
          each time it is scheduled, and sleeps while there is none or no room. Click's compares the lengths of the queues downstream; \
          here they tell, as a Queue does and a SimpleQueue does not.",
    args: &[
        optional("BURST", "packets", "accepted for compatibility"),
        keyword("QUEUES", "element names", "accepted for compatibility"),
        keyword("QUIET", "boolean", "whether not to recommend Unqueue; default false"),
    ],
    handlers: handlers!(&[reads("packets", "packets passed, in words")], TASK),
    example: "InfiniteSource(LIMIT 100, STOP true) -> Queue -> Unqueue2(QUIET true) -> Queue(5) -> Unqueue -> Discard;",
    see: &["Unqueue"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

struct Unqueue2 {
    count: u64,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.optional("BURST", 1i32);
    conf.keyword("QUEUES", Raw(String::new()));
    let quiet = conf.keyword("QUIET", false);
    conf.finish()?;
    if !quiet {
        conf.warn("Unqueue2 is deprecated, you should probably use Unqueue");
    }
    Ok(Box::new(Unqueue2 { count: 0 }))
}

impl Element for Unqueue2 {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if !cx.room_downstream(0) {
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        cx.pull(0, 1, &mut batch);
        let pulled = batch.len();
        self.count += pulled as u64;
        cx.emit_batch(0, batch);
        match pulled {
            0 if !cx.packets_upstream(0) => Run::Sleep,
            0 => Run::Idle,
            _ => Run::Worked,
        }
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(format!("{} packets\n", self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    #[test]
    fn it_moves_a_packet_a_turn() {
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![Output::Pushed] };
        let mut h = Harness::with_ports(&SPEC, "BURST 5, QUIET true", &ports).unwrap();
        (0..3).for_each(|n| h.feed(0, packet(&[n])));
        assert_eq!([h.run_task(), h.run_task()], [Some(Run::Worked); 2]);
        assert_eq!((h.take(0).len(), h.read("packets").unwrap()), (2, "2 packets\n".to_owned()));
        h.assert_balanced();
        let warned = Harness::with_ports(&SPEC, "", &ports).unwrap().warnings().concat();
        assert!(warned.contains("Unqueue2 is deprecated"), "{warned}");
    }
}
