//! Hub.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Hub",
    category: "basic",
    summary: "sends a copy of each packet to every output but that of its own port",
    ports: "-/=",
    processing: "h/h",
    flow: "#/[^#]",
    doc: "Sends a packet that comes in by input N to all outputs but output N. Where there is no other output it is dropped.",
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> h :: Hub -> Discard; Idle -> [1] h [1] -> Discard;",
    see: &["Tee"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoBuffer = "no-buffer", "there was no frame for a copy";
        Alone = "alone", "there is no output but its own port's";
    }
}

struct Hub;

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(Hub))
}

impl Element for Hub {
    fn packet(&mut self, port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Some(last) = (0..cx.n_outputs()).rev().find(|&output| output != port) else {
            return Verdict::drop(Reason::Alone);
        };
        for output in (0..last).filter(|&output| output != port) {
            match packet.copy() {
                Some(copy) => cx.emit(output, copy),
                None => cx.count_drops(Reason::NoBuffer, 1),
            }
        }
        Verdict::Out(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn packets_go_everywhere_but_back() {
        for port in 0..3 {
            let mut h = Harness::new(&SPEC, "", 3, 3).unwrap();
            h.push(port, packet(b"x"));
            assert_eq!(
                [0, 1, 2].map(|output| h.take(output).len()),
                [0, 1, 2].map(|output| usize::from(output != port))
            );
        }
        let mut h = Harness::new(&SPEC, "", 1, 1).unwrap();
        h.push(0, packet(b"x"));
        assert_eq!(h.drops(), [("alone", 1)]);
    }
}
