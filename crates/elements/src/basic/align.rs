//! Align.

use causeway_engine::prelude::*;

pub(crate) static SPEC: Spec = Spec {
    name: "Align",
    category: "basic",
    summary: "passes packets on: nothing here needs them aligned",
    doc: "Does nothing with its packets. Configurations written for processors that must not read words at odd addresses \
          have it; where packets begin does not matter here.",
    args: Align::ARGS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Align(4, 0) -> Discard;",
    see: &["AlignmentInfo", "Null"],
    build,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

settings! {
    struct Align {
        modulus: u32 = required("MODULUS", "2, 4 or 8", "accepted for compatibility");
        offset: u32 = required("OFFSET", "bytes", "accepted for compatibility; below MODULUS");
    }
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let align = Align::configure(conf);
    if conf.errors().is_empty() {
        if !matches!(align.modulus, 2 | 4 | 8) {
            conf.error("MODULUS must be 2, 4, or 8");
        } else if align.offset >= align.modulus {
            conf.error("OFFSET must be smaller than MODULUS");
        }
    }
    conf.finish()?;
    Ok(Box::new(align))
}

impl Element for Align {
    fn lower(&self) -> Option<Program> {
        Builder::pass()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet, verdict};

    #[test]
    fn packets_pass() {
        assert_eq!(verdict(&SPEC, "4, 2", packet(b"abc")).unwrap().data(), b"abc");
        for (config, why) in
            [("3, 1", "MODULUS must be 2, 4, or 8"), ("4, 4", "OFFSET must be smaller than MODULUS")]
        {
            assert_eq!(Harness::new(&SPEC, config, 1, 1).err().unwrap(), [why]);
        }
    }
}
