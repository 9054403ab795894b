//! IPGWOptions.

use causeway_engine::ir::{At, Test};
use causeway_engine::prelude::*;
use causeway_engine::value::List;
use causeway_packet::wire::Ipv4;
use causeway_packet::wire::ipv4::{HEADER_LEN, MAX_HEADER_LEN};
use causeway_packet::wire::ipv4_options::{BadOption, Ipv4Option};

pub(crate) static SPEC: Spec = Spec {
    name: "IPGWOptions",
    category: "ip",
    summary: "does what IPv4 options ask of every router",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Writes the router's address into Record Route options, and its address and the time into Timestamp options \
          (RFC 1812 §5.2.4, RFC 791 §3.1), and updates the checksum. MYADDR is the address of the interface that the \
          packets leave by, so that the element belongs on the output path; OTHERADDRS are the router's other \
          addresses, after which Timestamp options with addresses written by the sender may ask as well. Source \
          routes are left alone.\n\n\
          A packet with a malformed option goes to output 1 unchanged, with its ICMP_PARAMPROB annotation set to the \
          offset of the wrong byte, for an ICMPError of type `parameterproblem`; or it is dropped if that is not \
          connected. The network header must be marked.",
    args: IPGWOptions::ARGS,
    handlers: IPGWOptions::HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 53, 1.0.0.2, 53) -> IPGWOptions(2.0.0.1) -> Discard;",
    see: &["ICMPError", "IPOutputCombo"],
    build: configured::<IPGWOptions>,
    lowers: Lowers::Straight,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        BadOption = "bad-option", "a malformed option, and output 1 is not connected";
        NoHeader = "no-header", "no IPv4 header is marked";
    }
}

settings! {
    struct IPGWOptions {
        address: Ipv4Addr = required("MYADDR", "IP address", "address of the outgoing interface");
        others: List<Ipv4Addr> = optional("OTHERADDRS", "IP addresses", "the router's other addresses"),
            or(List::default());
    }
    counts {
        bad: u64 = reads("drops", "packets with malformed options").counts(Unit::Packets);
    }
}

/// A router's addresses, as it writes them into options.
pub(crate) struct Recorder<'a> {
    pub address: Ipv4Addr,
    pub others: &'a [Ipv4Addr],
}

/// Why a packet's options could not be seen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    NoHeader,
    /// A malformed option; the packet's annotation says where.
    Option,
}

impl Recorder<'_> {
    /// Does what the options of `packet` ask for. In case of a fault the packet's bytes are unchanged.
    #[inline]
    pub fn process(&self, packet: &mut Packet, now_ns: impl FnMut() -> u64) -> Result<(), Fault> {
        let header = packet.network_header().and_then(|h| h.first_chunk::<HEADER_LEN>());
        match header.ok_or(Fault::NoHeader)?[0] {
            0x45 => Ok(()),
            _ => self.process_options(packet, now_ns),
        }
    }

    #[cold]
    fn process_options(&self, packet: &mut Packet, now_ns: impl FnMut() -> u64) -> Result<(), Fault> {
        let Some(Ok(ip)) = packet.network_header().map(Ipv4::new_quoted) else {
            return Err(Fault::NoHeader);
        };
        match self.rewritten(&ip, now_ns) {
            Ok(None) => Ok(()),
            Ok(Some((header, len))) => {
                if let Some(to) = packet.network_header_mut().and_then(|h| h.get_mut(..len)) {
                    to.copy_from_slice(&header[..len]);
                }
                Ok(())
            }
            Err(BadOption { offset }) => {
                packet.set_anno_u8(Anno::ICMP_PARAMPROB.offset, offset as u8);
                Err(Fault::Option)
            }
        }
    }

    /// The header with this router in it, and its length; `None` if the options ask for nothing.
    fn rewritten(
        &self,
        ip: &Ipv4<&[u8]>,
        mut now_ns: impl FnMut() -> u64,
    ) -> Result<Option<([u8; MAX_HEADER_LEN], usize)>, BadOption> {
        let (mut header, len) = ([0; MAX_HEADER_LEN], ip.header_len());
        let Some(bytes) = ip.as_bytes().get(..len) else { return Ok(None) };
        header[..len].copy_from_slice(bytes);
        let Ok(mut copy) = Ipv4::new_quoted(&mut header[..len]) else { return Ok(None) };
        let mut changed = false;
        for option in ip.options() {
            let at = option?;
            changed |= match at.option {
                Ipv4Option::RecordRoute(_) => copy.record_route(at.offset, self.address)?,
                Ipv4Option::Timestamp(_) => {
                    let is_mine = |a| a == self.address || self.others.contains(&a);
                    copy.record_timestamp(at.offset, self.address, time_of_day_ms(now_ns()), is_mine)?
                }
                _ => false,
            };
        }
        if changed {
            copy.fill_checksum();
        }
        Ok(changed.then_some((header, len)))
    }
}

/// Milliseconds since midnight UT, as Timestamp options have them.
fn time_of_day_ms(now_ns: u64) -> u32 {
    (now_ns / 1_000_000 % 86_400_000) as u32
}

impl Element for IPGWOptions {
    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let recorder = Recorder { address: self.address, others: &self.others.0 };
        match recorder.process(packet, || cx.now_ns()) {
            Ok(()) => Verdict::Pass,
            Err(Fault::NoHeader) => Verdict::drop(Reason::NoHeader),
            Err(Fault::Option) => {
                self.bad += 1;
                Verdict::divert(1, Reason::BadOption)
            }
        }
    }

    fn lower(&self) -> Option<Program> {
        let mut b = Builder::new();
        b.require(Test::Has(At::network(0), HEADER_LEN as u32));
        let first = b.load(At::network(0), 1);
        // No options.
        b.require(Test::Equal(first.into(), 0x45.into()));
        b.leave(0);
        b.finish()
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::corpus;
    use super::*;
    use causeway_engine::harness::Harness;
    use proptest::prelude::*;

    /// The options behind the element, or the pointer of the parameter problem.
    fn options_after(options: &[u8]) -> Result<Vec<u8>, u8> {
        let mut h = Harness::new(&SPEC, "1.2.3.4, 5.6.7.8 9.9.9.9", 1, 2).unwrap();
        let before = corpus::datagram(options, b"payload", 64, 0);
        h.push(0, corpus::marked(&before, 0));
        h.assert_balanced();
        let Some(p) = h.take(0).pop() else {
            let bad = h.take(1).remove(0);
            assert_eq!((bad.data(), h.read("drops").unwrap()), (&before[..], "1".to_owned()));
            return Err(bad.anno_u8(Anno::ICMP_PARAMPROB.offset));
        };
        let ip = Ipv4::new_checked(p.data()).unwrap();
        assert!(ip.checksum_ok());
        assert_eq!(ip.payload(), b"payload");
        Ok(ip.options_bytes().to_vec())
    }

    #[test]
    fn routes_are_recorded_while_there_is_room() {
        assert_eq!(options_after(&[7, 7, 4, 0, 0, 0, 0, 0]), Ok(vec![7, 7, 8, 1, 2, 3, 4, 0]));
        assert_eq!(options_after(&[1, 7, 7, 8, 9, 9, 9, 9]), Ok(vec![1, 7, 7, 8, 9, 9, 9, 9]));
        assert_eq!(options_after(&[131, 7, 4, 9, 9, 9, 9, 0]), Ok(vec![131, 7, 4, 9, 9, 9, 9, 0]));
    }

    #[test]
    fn times_are_recorded_as_the_flag_says() {
        // 1,000,000,000 seconds after the epoch it is 01:46:40 UT.
        let [a, b, c, d] = 6_400_000u32.to_be_bytes();
        assert_eq!(options_after(&[68, 8, 5, 0, 0, 0, 0, 0]), Ok(vec![68, 8, 9, 0, a, b, c, d]));
        let with_address = [68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(options_after(&with_address), Ok(vec![68, 12, 13, 1, 1, 2, 3, 4, a, b, c, d]));
        let asked = |x: u8| [68, 12, 5, 3, x, x, x, x, 0, 0, 0, 0];
        assert_eq!(options_after(&asked(9)), Ok(vec![68, 12, 13, 3, 9, 9, 9, 9, a, b, c, d]));
        assert_eq!(options_after(&asked(8)), Ok(asked(8).to_vec()));
        assert_eq!(options_after(&[68, 8, 9, 0x30, 0, 0, 0, 0]), Ok(vec![68, 8, 9, 0x40, 0, 0, 0, 0]));
    }

    #[test]
    fn wrong_bytes_are_pointed_at() {
        assert_eq!(options_after(&[7, 40, 4, 0]), Err(21));
        assert_eq!(options_after(&[1, 7, 7, 3, 0, 0, 0, 0]), Err(23));
        assert_eq!(options_after(&[68, 8, 9, 0xf0, 0, 0, 0, 0]), Err(23));
        // What was good in front of it is not recorded, so that the error quotes the packet as it came.
        assert_eq!(options_after(&[7, 7, 4, 0, 0, 0, 0, 200]), Err(28));
    }

    proptest! {
        #[test]
        fn any_bytes_pass_or_are_counted(bytes in corpus::frame(0), at in 0usize..4, outputs in 1usize..3) {
            let mut h = Harness::new(&SPEC, "1.2.3.4", 1, outputs).unwrap();
            h.push(0, corpus::marked(&bytes, at));
            h.assert_balanced();
            for p in h.take(0) {
                prop_assert_eq!(p.len(), bytes.len());
                prop_assert_eq!(p.data().get(at + 60..), bytes.get(at + 60..));
            }
        }
    }
}
