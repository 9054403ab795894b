//! SetRandIPAddress.

use causeway_engine::prelude::*;
use causeway_engine::value::Prefix4;

pub(crate) static SPEC: Spec = Spec {
    name: "SetRandIPAddress",
    category: "ip",
    summary: "sets packets' destination annotation at random",
    doc: "Sets the destination annotation of each packet to a random address of PREFIX, or with LIMIT to one of so many that are \
          chosen when the router starts.",
    args: Own::ARGS,
    example: "InfiniteSource(LIMIT 5) -> SetRandIPAddress(10.0.0.0/8) -> UDPIPEncap(1.0.0.1, 5, DST_ANNO, 7) -> Discard;",
    see: &["SetIPAddress", "GetIPAddress", "StoreIPAddress"],
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Own {
        prefix: Prefix4 = required("PREFIX", "IP prefix", "what addresses are of");
        limit: i32 = optional("LIMIT", "addresses", "most different ones; negative means no limit; default -1"), or(-1);
    }
}

/// Most addresses that are chosen at the start.
const MOST: i32 = 1 << 20;

struct SetRandIPAddress {
    own: Own,
    chosen: Vec<[u8; 4]>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let own = Own::configure(conf);
    if own.limit > MOST {
        conf.error(format!("LIMIT: out of range, bound {MOST}"));
    }
    conf.finish()?;
    Ok(Box::new(SetRandIPAddress { own, chosen: Vec::new() }))
}

impl SetRandIPAddress {
    fn pick(&self, cx: &mut Cx<'_>) -> [u8; 4] {
        let (mask, network) = (self.own.prefix.mask(), self.own.prefix.address.to_bits());
        (network & mask | cx.rng().u32(..) & !mask).to_be_bytes()
    }
}

impl Element for SetRandIPAddress {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.chosen = (0..self.own.limit).map(|_| self.pick(cx)).collect();
        Ok(())
    }

    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let address = match self.chosen.len() {
            0 => self.pick(cx),
            n => self.chosen[cx.rng().usize(..n)],
        };
        packet.set_dst_ip(address);
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, packet};
    use std::collections::HashSet;

    #[test]
    fn addresses_are_of_the_prefix_and_no_more_than_are_wanted() {
        for (config, least, most) in
            [("10.9.0.7/16", 150, 200), ("10.9.0.0/16, 3", 2, 3), ("10.9.1.1, 0", 1, 1)]
        {
            let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
            h.push_all(0, (0..200).map(|_| packet(b"x")));
            let seen: HashSet<[u8; 4]> = h.take(0).iter().map(|p| p.dst_ip()).collect();
            assert!(
                seen.iter().all(|a| a[..2] == [10, 9]) && (least..=most).contains(&seen.len()),
                "{config}: {seen:?}"
            );
        }
        let error = Harness::new(&SPEC, "10.9.0.0/16, 2000000", 1, 1).err().unwrap();
        assert_eq!(error, ["LIMIT: out of range, bound 1048576"]);
    }
}
