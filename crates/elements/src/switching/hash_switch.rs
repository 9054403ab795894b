//! HashSwitch.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "HashSwitch",
    category: "switching",
    summary: "sends packets to outputs by some of their bytes",
    ports: "1/1-",
    processing: "h/h",
    doc: "Adds up the LENGTH bytes from OFFSET on, and sends the packet to the output that the sum says, so that packets \
          with the same bytes there take the same way. Packets that are too short go to output 0.",
    args: HashSwitch::ARGS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> h :: HashSwitch(16, 4) -> Discard; h[1] -> Discard;",
    see: &["RoundRobinSwitch", "StrideSwitch", "RandomSwitch"],
    build,
    ..Spec::DEFAULT
};

settings! {
    struct HashSwitch {
        offset: u32 = required("OFFSET", "bytes", "where the bytes begin");
        length: u32 = required("LENGTH", "bytes", "how many there are");
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let switch = HashSwitch::configure(conf);
    if switch.length == 0 {
        conf.error("length must be > 0");
    }
    conf.finish()?;
    Ok(Box::new(switch))
}

impl Element for HashSwitch {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let from = self.offset as usize;
        let bytes = packet.data().get(from..from.saturating_add(self.length as usize));
        let sum: usize = bytes.into_iter().flatten().map(|&b| usize::from(b)).sum();
        let outputs = cx.n_outputs().max(1);
        // Of few outputs the upper bits have a say too, as in Click.
        Verdict::Out(if matches!(outputs, 2 | 4 | 8) {
            (sum ^ (sum >> 4)) & (outputs - 1)
        } else {
            sum % outputs
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    #[test]
    fn the_bytes_say_where_to() {
        for (outputs, config, bytes, port) in [
            (3, "1, 2", &[9, 1, 4][..], 2),
            (3, "1, 2", &[9, 1][..], 0),
            (4, "0, 1", &[0x31][..], 2),
            (1, "0, 4000000000", &[5][..], 0),
        ] {
            let mut h = Harness::new(&SPEC, config, 1, outputs).unwrap();
            h.push(0, packet(bytes));
            assert_eq!(h.take(port).len(), 1, "{config} of {outputs}: {bytes:?}");
        }
        assert_eq!(Harness::new(&SPEC, "1, 0", 1, 2).err().unwrap(), ["length must be > 0"]);
    }
}
