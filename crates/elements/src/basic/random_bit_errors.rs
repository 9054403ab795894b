//! RandomBitErrors.

use crate::fixed::Probability;
use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;

pub(crate) static SPEC: Spec = Spec {
    name: "RandomBitErrors",
    category: "basic",
    summary: "changes bits of packets with some probability",
    doc: "Changes each bit with probability P, whatever the others are: `flip` turns it round, `set` makes it one and `clear` zero.",
    args: RandomBitErrors::ARGS,
    handlers: handlers!(RandomBitErrors::HANDLERS, &[CONFIG]),
    example: "InfiniteSource(LIMIT 9, STOP true) -> RandomBitErrors(0.001) -> Discard;",
    see: &["RandomSample"],
    build,
    ..Spec::DEFAULT
};

/// What becomes of a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Flip,
    Set,
    Clear,
}

impl Value for Kind {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        match text {
            "flip" | "" => Ok(Kind::Flip),
            "set" => Ok(Kind::Set),
            "clear" => Ok(Kind::Clear),
            _ => Err(Error::new(format!("bad action '{text}' (must be 'set', 'clear', or 'flip')"))),
        }
    }

    fn placeholder() -> Self {
        Kind::Flip
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Flip => "flip",
            Kind::Set => "set",
            Kind::Clear => "clear",
        })
    }
}

settings! {
    struct RandomBitErrors {
        p: Probability<28> = required("P", "probability", "with which a bit is changed"), live("p_bit_error", "probability with which a bit is changed");
        kind: Kind = optional("KIND", "word", "flip, set or clear; default flip"), or(Kind::Flip), live("error_kind", "flip, set or clear");
        active: bool = optional("ACTIVE", "boolean", "whether anything is changed; default true"), or(true), live("active", "whether anything is changed");
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let p: Probability<28> = conf.required("P");
    let kind = conf.optional("KIND", String::new());
    let active = conf.optional("ACTIVE", true);
    conf.finish()?;
    // In Click's words and order, without the names of the arguments.
    let scope = conf.scope();
    let told = Kind::parse(&kind, &scope).and_then(|kind| p.check("drop probability").map(|()| kind));
    let kind = told.map_err(|why| {
        conf.error(why);
        Invalid
    })?;
    let errors = RandomBitErrors { p, kind, active };
    if errors.p.0 == 0 {
        conf.warn("zero bit error probability (underflow?)");
    }
    Ok(Box::new(errors))
}

impl Element for RandomBitErrors {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if !self.active || self.p.0 == 0 {
            return Verdict::Pass;
        }
        let p = f64::from(self.p.0) / f64::from(Probability::<28>::ONE.0);
        let per_bit = (-p).ln_1p();
        let bits = packet.len() * 8;
        // Bits between two that are changed are distributed geometrically, which asks for one number an error, not one a bit.
        let mut gap = || ((1.0 - cx.rng().f64()).ln() / per_bit) as usize;
        let mut bit = gap();
        let data = packet.data_mut();
        while bit < bits {
            let (byte, mask) = (&mut data[bit / 8], 1 << (bit % 8));
            match self.kind {
                Kind::Flip => *byte ^= mask,
                Kind::Set => *byte |= mask,
                Kind::Clear => *byte &= !mask,
            }
            bit = bit.saturating_add(gap()).saturating_add(1);
        }
        Verdict::Pass
    }

    fn settings_changed(&mut self, _cx: &mut Cx<'_>) {
        // What is written is at most certain.
        self.p = Probability(self.p.0.min(Probability::<28>::ONE.0));
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};

    /// Ones in 1000 packets of 100 bytes that were `byte`.
    fn ones(h: &mut Harness, byte: u8) -> u32 {
        let mut ones = 0;
        for _ in 0..1_000 {
            h.push(0, packet(&[byte; 100]));
            ones += h.take(0)[0].data().iter().map(|b| b.count_ones()).sum::<u32>();
        }
        ones
    }

    #[test]
    fn so_many_bits_change() {
        let mut h = Harness::new(&SPEC, "0.01", 1, 1).unwrap();
        // Eight standard deviations of 8000 in 800000.
        assert!(ones(&mut h, 0).abs_diff(8_000) < 720);
        assert!(ones(&mut h, 0xff).abs_diff(792_000) < 720);
        h.write("error_kind", "clear").unwrap();
        assert_eq!(ones(&mut h, 0), 0);
        assert!(ones(&mut h, 0xff).abs_diff(792_000) < 720);
        h.write("error_kind", "set").unwrap();
        assert_eq!(ones(&mut h, 0xff), 800_000);
        h.write("active", "false").unwrap();
        assert_eq!((ones(&mut h, 0), h.read("p_bit_error").unwrap()), (0, "0.01".to_owned()));
    }

    #[test]
    fn bad_arguments_are_told_in_clicks_words() {
        let error = |config: &str| Harness::new(&SPEC, config, 1, 1).err().unwrap().concat();
        assert_eq!([error("x"), error("-1, set")], ["P: parse error"; 2]);
        assert_eq!(error("2, foo"), "bad action 'foo' (must be 'set', 'clear', or 'flip')");
        assert_eq!(error("2"), "drop probability must be between 0 and 1");
    }

    #[test]
    fn certain_and_impossible_errors() {
        let mut h = Harness::new(&SPEC, "1", 1, 1).unwrap();
        assert_eq!((ones(&mut h, 0), ones(&mut h, 0xff)), (800_000, 0));
        h.write("p_bit_error", "0").unwrap();
        assert_eq!(ones(&mut h, 0x0f), 400_000);
        assert!(h.write("error_kind", "turn").unwrap_err().contains("bad action 'turn'"));
    }
}
