//! AnonymizeIPAddr.

use crate::flow_table::ROOM;
use crate::nat::{Headers, get_u16, get_u32, put_u16, put_u32};
use causeway_engine::prelude::*;
use causeway_engine::value::List;
use causeway_packet::checksum::update_u32;
use causeway_packet::wire::{icmpv4, protocol};

pub(crate) static SPEC: Spec = Spec {
    name: "AnonymizeIPAddr",
    category: "analysis",
    summary: "puts other addresses in the place of IP addresses",
    ports: "1/1-2",
    processing: "a/ah",
    doc: "Source and destination addresses become others, each always the same; addresses that share a prefix share one of the same length afterwards. 0.0.0.0 and 255.255.255.255 stay. The IP \
          header's checksum follows, and addresses that ICMP errors quote are replaced too. Packets without IPv4 header go to output 1, or are dropped. Whoever knows some of the addresses \
          may find others: do not publish traces of a network that is a secret. A million addresses are known; packets with more are dropped.",
    args: &[
        keyword(
            "CLASS",
            "0 to 32",
            "how many leading one bits stay, so that classes A to D do with 1 to 4; default 0",
        ),
        keyword("PRESERVE_8", "numbers", "networks of prefix length 8 that stay"),
        keyword("SEED", "boolean", "without effect; older configurations have it"),
    ],
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5) -> UDPIPEncap(1.0.0.1, 7, 1.0.0.2, 53) -> MarkIPHeader -> AnonymizeIPAddr -> Discard;",
    see: &["EraseIPPayload", "ToDump"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

drop_reasons! {
    enum Reason for SPEC {
        NoHeader = "no-header", "the packet has no IPv4 header, and output 1 is not connected";
        Full = "full", "there is no place for another address";
    }
}

/// A node of the tree of known addresses: leaves are addresses, the others have two children.
#[derive(Clone, Copy, Debug)]
struct Node {
    input: u32,
    output: u32,
    /// 0 = none: the root is nobody's child.
    children: [u32; 2],
}

struct AnonymizeIPAddr {
    class: u32,
    preserve: Vec<u8>,
    nodes: Vec<Node>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let mut class = conf.keyword("CLASS", 0u32);
    let List(preserve) = conf.keyword("PRESERVE_8", List::<u8>::default());
    conf.keyword("SEED", false);
    if class == 99 {
        class = 32;
    }
    if class > 32 {
        conf.error("CLASS must be between 0 and 32");
    }
    conf.finish()?;
    Ok(Box::new(AnonymizeIPAddr { class, preserve, nodes: Vec::new() }))
}

impl AnonymizeIPAddr {
    /// The place of `address` in the tree, made if it is not there. `None` = there is no room.
    fn find(&mut self, address: u32, cx: &mut Cx<'_>) -> Option<usize> {
        let mut at = 0;
        loop {
            let node = *self.nodes.get(at)?;
            if node.input == address {
                return Some(at);
            }
            let differs = (address ^ node.input).leading_zeros();
            if node.children == [0; 2] {
                return self.split(at, address, differs, cx);
            }
            let [low, high] = node.children.map(|c| c as usize);
            let swivel = (self.nodes[low].input ^ self.nodes[high].input).leading_zeros();
            if differs < swivel {
                return self.split(at, address, differs, cx);
            }
            at = if address >> (31 - swivel) & 1 == 1 { high } else { low };
        }
    }

    /// Makes the node at `at` the parent of what it was and of `address`, which differ first in bit `differs`.
    fn split(&mut self, at: usize, address: u32, differs: u32, cx: &mut Cx<'_>) -> Option<usize> {
        if self.nodes.len() + 2 > self.nodes.capacity() {
            return None;
        }
        let old = self.nodes[at];
        // Bits before the one that differs are the same, that one is turned, and those behind are drawn.
        let shift = 31 - differs;
        let known = (old.output >> shift ^ 1) << shift;
        let output = known | cx.rng().u32(..) & ((1u32 << shift) - 1);
        let new = self.nodes.len();
        self.nodes.push(Node { input: address, output, children: [0; 2] });
        self.nodes.push(old);
        let bit = (address >> shift & 1) as usize;
        let mut children = [0; 2];
        (children[bit], children[1 - bit]) = (new as u32, new as u32 + 1);
        let right = self.nodes[children[1] as usize];
        self.nodes[at] = Node { input: right.input, output: right.output, children };
        Some(new)
    }

    fn anonymous(&mut self, address: u32, cx: &mut Cx<'_>) -> Option<u32> {
        match address {
            0 | u32::MAX => Some(address),
            _ => self.find(address, cx).map(|at| self.nodes[at].output),
        }
    }

    /// Replaces the addresses that an ICMP error quotes.
    fn quoted(&mut self, message: &mut [u8], cx: &mut Cx<'_>) -> Option<()> {
        let is_error = matches!(
            message.first(),
            Some(
                4 | &icmpv4::kind::UNREACHABLE
                    | &icmpv4::kind::REDIRECT
                    | &icmpv4::kind::TIME_EXCEEDED
                    | &icmpv4::kind::PARAMETER_PROBLEM
            )
        );
        let header_len = usize::from(message.get(8).copied().unwrap_or(0) & 15) * 4;
        if !is_error || header_len < 20 || message.len() < 8 + header_len + 8 {
            return Some(());
        }
        for at in [20, 24] {
            let old = get_u32(message, at);
            let new = self.anonymous(old, cx)?;
            let sum = update_u32(get_u16(message, 2), old, new);
            put_u16(message, 2, sum);
            put_u32(message, at, new);
        }
        Some(())
    }
}

impl Element for AnonymizeIPAddr {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.nodes = Vec::with_capacity(2 * ROOM + 1);
        let class_mask = !u32::MAX.checked_shr(self.class).unwrap_or(0);
        let mut root = Node { input: 1, output: cx.rng().u32(..), children: [0; 2] };
        if self.class > 0 {
            (root.input, root.output) = (class_mask, root.output | class_mask);
        }
        self.nodes.push(root);
        for (i, net) in self.preserve.clone().into_iter().enumerate() {
            let address = u32::from(net) << 24;
            let at = if i == 0 && self.class == 0 {
                self.nodes[0].input = address;
                Some(0)
            } else {
                self.find(address, cx)
            };
            let node = at.and_then(|at| self.nodes.get_mut(at)).ok_or("out of memory!")?;
            node.output = node.output & 0x00ff_ffff | address;
        }
        Ok(())
    }

    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let is_ip = packet.network_header().is_some_and(|ip| ip.first().is_some_and(|b| b >> 4 == 4));
        let Some(headers) = Headers::of(packet).filter(|_| is_ip) else {
            return Verdict::divert(1, Reason::NoHeader);
        };
        let source = self.anonymous(headers.source, cx);
        let destination = self.anonymous(headers.destination, cx);
        let Some((source, destination)) = source.zip(destination) else { return Verdict::drop(Reason::Full) };
        headers.set_addresses(packet, source, destination);
        if headers.protocol == protocol::ICMP
            && let Some(message) = packet.transport_header_mut()
            && self.quoted(message, cx).is_none()
        {
            return Verdict::drop(Reason::Full);
        }
        Verdict::Pass
    }

    fn take_state(&mut self, old: &mut dyn Element, _cx: &mut Cx<'_>) {
        let same = |old: &&mut AnonymizeIPAddr| old.class == self.class && old.preserve == self.preserve;
        if let Some(old) = old.downcast_mut::<AnonymizeIPAddr>().filter(same) {
            std::mem::swap(&mut self.nodes, &mut old.nodes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::corpus::{datagram, marked};
    use causeway_engine::harness::Harness;
    use causeway_packet::wire::Ipv4;

    /// What `addresses` become.
    fn mapped(config: &str, addresses: &[u32]) -> Vec<u32> {
        let mut h = Harness::new(&SPEC, config, 1, 1).unwrap();
        let mut all = Vec::new();
        for address in addresses {
            let mut bytes = datagram(&[], b"x", 64, 0);
            put_u32(&mut bytes, 12, *address);
            Ipv4::new_checked(&mut bytes[..]).unwrap().fill_checksum();
            h.push(0, marked(&bytes, 0));
            let out = h.take(0).remove(0);
            assert!(Ipv4::new_checked(out.data()).unwrap().checksum_ok());
            all.push(get_u32(out.data(), 12));
        }
        all
    }

    #[test]
    fn prefixes_are_kept() {
        let addresses: Vec<u32> =
            (0..200u32).map(|i| i.wrapping_mul(0x9e37_79b1) | 1).chain([0, u32::MAX]).collect();
        let new = mapped("", &addresses);
        for (i, a) in addresses.iter().enumerate().take(200) {
            for (j, b) in addresses.iter().enumerate().take(i) {
                assert_eq!((a ^ b).leading_zeros(), (new[i] ^ new[j]).leading_zeros());
            }
        }
        assert_eq!(new[200..], [0, u32::MAX]);
        let again = mapped("", &[7, 9, 7]);
        assert_eq!(again[0], again[2]);
    }

    #[test]
    fn networks_and_classes_stay() {
        let addresses: Vec<u32> = (0..100u32).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
        for (old, new) in addresses.iter().zip(mapped("CLASS 4", &addresses)) {
            assert_eq!(old.leading_ones().min(4), new.leading_ones().min(4));
        }
        for (old, new) in addresses.iter().zip(mapped("PRESERVE_8 18 10", &addresses)) {
            assert_eq!(old >> 24 == 18, new >> 24 == 18);
        }
        assert_eq!(mapped("PRESERVE_8 10", &[0x0a01_0203])[0] >> 24, 10);
        assert_eq!(Harness::new(&SPEC, "CLASS 33", 1, 1).err().unwrap(), ["CLASS must be between 0 and 32"]);
    }
}
