//! Classifier.

use super::pattern;
use super::patterns::{Patterns, Reason};
use super::program::DATA_ONLY;
use causeway_engine::ir;
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Classifier",
    category: "classify",
    summary: "classifies packets by contents",
    ports: "1/-",
    processing: "h/h",
    doc: "Sends each packet to the output of the first pattern that it matches; output N belongs to PATTERN N. \
          A packet that matches none is dropped.\n\n\
          A pattern is a list of clauses separated by blanks, all of which must hold. A clause is \
          `OFFSET/VALUE` or `OFFSET/VALUE%MASK`: the bytes from decimal OFFSET on, under the hexadecimal MASK, \
          equal the hexadecimal VALUE. A `?` in VALUE stands for any digit. `!` in front of a clause negates it. \
          The pattern `-` matches every packet. A clause about bytes beyond a packet's end does not hold.\n\n\
          All patterns are compiled to one decision program, in which nothing is tested twice.",
    args: &[rest("PATTERN", "pattern", "clauses that a packet must match, one pattern for each output")],
    handlers: &[
        reads("program", "the decision program, a step a line"),
        reads_writes("pattern#", "pattern of one output"),
        reads_writes("config", "all patterns"),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> c :: Classifier(12/0806 20/0001, 12/0800, -); \
              c[0] -> Discard; c[1] -> Discard; c[2] -> Discard;",
    see: &["IPClassifier", "IPFilter"],
    build,
    lowers: Lowers::Classify,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

struct Classifier {
    patterns: Patterns,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    Ok(Box::new(Classifier { patterns: Patterns::build(conf, |text, _, _| pattern::parse(text))? }))
}

impl Element for Classifier {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.patterns.push(batch, cx, |_| DATA_ONLY);
    }

    fn lower(&self) -> Option<ir::Program> {
        self.patterns.lower()
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        self.patterns.read(handler)
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.patterns.write(handler, value, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::Harness;

    const STANDARD: &str = "12/0806 20/0001, 12/0806 20/0002, 12/0800, -";

    fn frame(ether_type: u16, operation: u16) -> Packet {
        let mut bytes = [0; 42];
        bytes[12..14].copy_from_slice(&ether_type.to_be_bytes());
        bytes[20..22].copy_from_slice(&operation.to_be_bytes());
        Packet::from_bytes(&bytes).unwrap()
    }

    fn taken(h: &mut Harness, ports: usize) -> Vec<usize> {
        (0..ports).map(|port| h.take(port).len()).collect()
    }

    #[test]
    fn the_standard_router_s_classifier() {
        let mut h = Harness::new(&SPEC, STANDARD, 1, 4).unwrap();
        let frames = [(0x806, 1), (0x800, 1), (0x806, 2), (0x86dd, 2), (0x806, 3), (0x800, 2)];
        h.push_all(0, frames.map(|(t, o)| frame(t, o)));
        assert_eq!(taken(&mut h, 4), [1, 1, 2, 2]);
        h.push_all(0, (0..5).map(|_| frame(0x800, 9)));
        assert_eq!(taken(&mut h, 4), [0, 0, 5, 0]);
        h.push(0, Packet::from_bytes(&[0; 13]).unwrap());
        assert_eq!(taken(&mut h, 4), [0, 0, 0, 1]);
        h.assert_balanced();
    }

    #[test]
    fn the_program_tests_nothing_twice() {
        let mut h = Harness::new(&SPEC, STANDARD, 1, 4).unwrap();
        assert_eq!(
            h.read("program").unwrap(),
            " 0  12/08060000%ffff0000  yes->step 1  no->step 3\n \
             1  20/00010000%ffff0000  yes->[0]  no->step 2\n \
             2  20/00020000%ffff0000  yes->[1]  no->[3]\n \
             3  12/08000000%ffff0000  yes->[2]  no->[3]\n\
             safe length 22\nalignment offset 0\n"
        );
    }

    #[test]
    fn patterns_change_while_packets_flow() {
        let mut h = Harness::new(&SPEC, "12/0800, 12/0806", 1, 2).unwrap();
        h.push_all(0, [frame(0x86dd, 0), frame(0x806, 0)]);
        assert_eq!((taken(&mut h, 2), h.drops()), (vec![0, 1], vec![("no-match", 1)]));
        h.write("pattern1", "12/86dd").unwrap();
        h.push_all(0, [frame(0x86dd, 0), frame(0x806, 0)]);
        assert_eq!((taken(&mut h, 2), h.drops()), (vec![0, 1], vec![("no-match", 2)]));
        assert_eq!(h.read("config").unwrap(), "12/0800, 12/86dd");
        for (handler, bad) in
            [("pattern1", "12/8"), ("pattern2", "-"), ("config", "-"), ("config", "12/08, x")]
        {
            assert!(h.write(handler, bad).is_err(), "{handler} {bad}");
        }
        h.write("config", "-, 12/0800").unwrap();
        h.push_all(0, [frame(0x86dd, 0), frame(0x800, 0)]);
        assert_eq!(taken(&mut h, 2), [2, 0]);
        assert_eq!(h.read("program").unwrap(), "all->[0]\nsafe length 0\nalignment offset 0\n");
        h.assert_balanced();
    }

    #[test]
    fn errors_name_the_pattern() {
        let errors = |text: &str, outputs| Harness::new(&SPEC, text, 1, outputs).err().unwrap();
        assert_eq!(errors("-", 2), ["need 2 arguments, one per output port"]);
        assert_eq!(errors("12/08, 12", 2), ["pattern 1: expected '/'"]);
    }
}
