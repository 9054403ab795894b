//! Tee.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Tee",
    category: "basic",
    summary: "sends a copy of each packet to every output",
    ports: "1/1-",
    processing: "h/h",
    doc: "Sends every packet to all of its outputs. The packet itself goes to output 0; the other outputs get \
          copies with the same bytes, header offsets and annotations.",
    args: Tee::ARGS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> t :: Tee(2); t[0] -> Discard; t[1] -> Discard;",
    see: &["PaintTee"],
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoBuffer = "no-buffer", "there was no frame for a copy";
    }
}

settings! {
    struct Tee {
        n: Option<usize> = optional("N", "outputs", "how many outputs there are; an error if others are in use"), or(None);
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let (tee, outputs) = (Tee::configure(conf), conf.n_outputs());
    if tee.n.is_some_and(|n| n != outputs) {
        conf.error(format!("{outputs} outputs implies {outputs} arms"));
    }
    conf.finish()?;
    Ok(Box::new(tee))
}

impl Element for Tee {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        for port in 1..cx.n_outputs() {
            match packet.copy() {
                Some(copy) => cx.emit(port, copy),
                None => cx.count_drops(Reason::NoBuffer, 1),
            }
        }
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    #[test]
    fn every_output_gets_all_of_it() {
        let mut h = Harness::new(&SPEC, "3", 1, 3).unwrap();
        let mut packet = Packet::from_bytes(b"abc").unwrap();
        packet.set_paint(7);
        h.push_all(0, [packet, Packet::from_bytes(b"de").unwrap()]);
        for port in 0..3 {
            let out = h.take(port);
            assert_eq!((out[0].data(), out[0].paint(), out[1].data()), (&b"abc"[..], 7, &b"de"[..]));
        }
    }

    #[test]
    fn copies_are_apart() {
        let mut h = Harness::new(&SPEC, "", 1, 2).unwrap();
        h.push(0, Packet::from_bytes(b"abc").unwrap());
        h.take(0)[0].data_mut()[0] = b'X';
        assert_eq!(h.take(1)[0].data(), b"abc");
    }

    #[test]
    fn the_number_of_outputs_is_checked() {
        assert_eq!(Harness::new(&SPEC, "3", 1, 2).err().unwrap(), ["2 outputs implies 2 arms"]);
    }
}
