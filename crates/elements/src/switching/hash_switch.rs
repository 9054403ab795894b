//! HashSwitch.

use causeway_engine::ir::{Alu, At, Test};
use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "HashSwitch",
    category: "switching",
    summary: "sends packets to outputs by some of their bytes",
    ports: "1/1-",
    processing: "h/h",
    doc: "Adds up the LENGTH bytes from OFFSET on, and sends the packet to the output that the sum says, so that packets \
          with the same bytes there take the same way. Packets that are too short go to output 0.",
    args: Bytes::ARGS,
    example: "InfiniteSource(LIMIT 9, STOP true) -> h :: HashSwitch(16, 4) -> Discard; h[1] -> Discard;",
    see: &["RoundRobinSwitch", "StrideSwitch", "RandomSwitch"],
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

settings! {
    struct Bytes {
        offset: u32 = required("OFFSET", "bytes", "where the bytes begin");
        length: u32 = required("LENGTH", "bytes", "how many there are");
    }
}

struct HashSwitch {
    bytes: Bytes,
    outputs: usize,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let bytes = Bytes::configure(conf);
    if bytes.length == 0 {
        conf.error("length must be > 0");
    }
    conf.finish()?;
    Ok(Box::new(HashSwitch { bytes, outputs: conf.n_outputs().max(1) }))
}

/// Bytes whose sum programs compute.
const MOST_LOWERED: u32 = 32;
/// Every second byte of eight.
const SECOND: u64 = 0x00ff_00ff_00ff_00ff;

impl HashSwitch {
    /// Whether the upper bits of the sum have a say too: of few outputs, as in Click.
    fn folds(&self) -> bool {
        matches!(self.outputs, 2 | 4 | 8)
    }
}

impl Element for HashSwitch {
    fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        let Bytes { offset, length } = self.bytes;
        let from = offset as usize;
        let bytes = packet.data().get(from..from.saturating_add(length as usize));
        let sum: usize = bytes.into_iter().flatten().map(|&b| usize::from(b)).sum();
        Verdict::Out(if self.folds() { (sum ^ (sum >> 4)) & (self.outputs - 1) } else { sum % self.outputs })
    }

    /// For a power of two of outputs; there is no division.
    fn lower(&self) -> Option<Program> {
        let Bytes { offset, length } = self.bytes;
        if length > MOST_LOWERED || !self.outputs.is_power_of_two() || offset.checked_add(length).is_none() {
            return None;
        }
        let mut b = Builder::new();
        let (there, short) = (b.block(), b.block());
        b.branch(Test::Has(At::data(offset), length), there, short);
        b.at(short);
        b.leave(0);
        b.at(there);
        // Four sums of 16 bits at a time, of every fourth pair of bytes.
        let mut sums = b.compute(Alu::Add, 0, 0);
        for at in (0..length).step_by(8) {
            let word = b.load(At::data(offset + at), (length - at).min(8) as u8);
            let shifted = b.compute(Alu::Shr, word, 8);
            for half in [word, shifted] {
                let bytes = b.compute(Alu::And, half, SECOND);
                sums = b.compute(Alu::Add, sums, bytes);
            }
        }
        for bits in [32, 16] {
            let upper = b.compute(Alu::Shr, sums, bits);
            sums = b.compute(Alu::Add, sums, upper);
        }
        let mut sum = b.compute(Alu::And, sums, 0xffff);
        if self.folds() {
            let upper = b.compute(Alu::Shr, sum, 4);
            sum = b.compute(Alu::Xor, sum, upper);
        }
        let output = b.compute(Alu::And, sum, self.outputs as u64 - 1);
        b.leave_by(output);
        b.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};
    use causeway_engine::ir::Outcome;

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
        // What it says it does it does.
        for (outputs, length) in [(1, 3), (2, 1), (4, 8), (8, 9), (16, 32), (64, 17)] {
            let switch = HashSwitch { bytes: Bytes { offset: 2, length }, outputs };
            let mut program = switch.lower().expect("a program");
            for seed in 0..=255u8 {
                let bytes: Vec<u8> = (0..seed % 48).map(|n| n.wrapping_mul(seed) ^ 0xc5).collect();
                let mut h = Harness::new(&SPEC, &format!("2, {length}"), 1, outputs).unwrap();
                h.push(0, packet(&bytes));
                let Outcome::Leave(port) = program.run(&mut packet(&bytes), 0) else { panic!("given up") };
                assert_eq!(h.take(port).len(), 1, "{length} bytes of {bytes:?} to {outputs} outputs");
            }
        }
        let three = HashSwitch { bytes: Bytes { offset: 0, length: 1 }, outputs: 3 };
        assert!(three.lower().is_none(), "it cannot be divided by 3");
        assert_eq!(Harness::new(&SPEC, "1, 0", 1, 2).err().unwrap(), ["length must be > 0"]);
    }
}
