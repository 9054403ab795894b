//! Late punts: a frame that the graph has taken and cannot handle goes to the kernel after all.
//!
//! The frame must reach the stack as if it had just come in on its true interface, or addresses, ICMP errors and
//! reverse-path checks would be wrong. So it is written to a TAP whose ingress hook redirects it to the ingress of that
//! interface. One TAP serves all interfaces: a VLAN tag that is put in front says which, and the hook takes it away
//! again. A native XDP program at the interface does not see redirected frames, so they do not come back; a generic one
//! would, so ports in generic mode have no punts.
//!
//! The TAP has no addresses and answers nobody: it is no interface that routing daemons could use.

use crate::port::{Queue, Tx};
use crate::statistics::Statistics;
use crate::tap;
use crate::{Error, ErrorKind, Result};
use causeway_bpf::{
    Alu, Asm, Code, Cond, Helper, Map, MapKind, Program, ProgramKind, Reg, Size, TcxLink, action, sk_buff,
};
use causeway_packet::{Batch, Packet};
use std::os::fd::AsFd;
use std::sync::Arc;

/// Redirect to the ingress instead of the egress.
const BPF_F_INGRESS: i32 = 1;
/// Interfaces that one TAP can stand for: VLAN identifiers from 1.
pub const ORIGINS_MAX: usize = 4_000;
/// Type of an 802.1Q tag, and the bytes of a tag.
const TAG_TYPE: [u8; 2] = [0x81, 0x00];
const TAG: usize = 4;
/// Bytes of the two Ethernet addresses, behind which the tag stands.
const ADDRESSES: usize = 12;
/// Bits of a VLAN identifier.
const VLAN_ID: i32 = 0x0fff;

/// A way into the kernel's stack for frames of several interfaces. It belongs to one worker at a time.
pub struct Punt {
    tap: Box<dyn Tx>,
    /// Interface indices by VLAN identifier.
    origins: Map,
    _link: TcxLink,
}

impl std::fmt::Debug for Punt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Punt")
    }
}

impl Punt {
    /// Makes a TAP called `punt` and a number.
    ///
    /// # Errors
    /// As [`tap::open`]; [`ErrorKind::Unsupported`] on kernels before 6.6, which cannot hold the hook by a descriptor.
    pub fn open() -> Result<Punt> {
        let origins = Map::new(MapKind::Array, "punt_origins", 4, 4, ORIGINS_MAX as u32 + 1)?;
        let program = Program::load(ProgramKind::SchedCls, "punt", &hook(&origins)?)?;
        let mut port = tap::open_bare("punt%d")?;
        let link = TcxLink::attach_ingress(&program, &port.name, port.ifindex)?;
        let Queue { tx, .. } = port.queues.remove(0);
        Ok(Punt { tap: tx, origins, _link: link })
    }

    /// From now on frames of origin `number`, below [`ORIGINS_MAX`], come in by the interface `ifindex`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a larger number; what bpf(2) says.
    pub fn set_origin(&self, number: usize, ifindex: u32) -> Result<()> {
        if number >= ORIGINS_MAX {
            let what = format!("no more than {ORIGINS_MAX} interfaces can give frames back to the kernel");
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
        self.origins.insert_u32(number as u32 + 1, ifindex)
    }

    /// Hands the frames of `batch` to the kernel as received on origin `number`; returns how many it took. The others
    /// stay in the batch, changed.
    pub fn transmit(&mut self, number: usize, batch: &mut Batch) -> usize {
        let id = (number as u16 + 1).to_be_bytes();
        batch.retain(|packet| tag(packet, id));
        let taken = self.tap.offer(batch);
        self.tap.flush();
        taken
    }

    /// What the TAP counted.
    pub fn statistics(&self) -> Arc<dyn Statistics> {
        self.tap.statistics()
    }
}

/// Puts a VLAN tag behind the addresses; false if it has no room, or is no Ethernet frame.
fn tag(packet: &mut Packet, id: [u8; 2]) -> bool {
    if packet.len() < ADDRESSES || packet.push(TAG).is_err() {
        return false;
    }
    let frame = packet.data_mut();
    frame.copy_within(TAG..TAG + ADDRESSES, 0);
    frame[ADDRESSES..ADDRESSES + 2].copy_from_slice(&TAG_TYPE);
    frame[ADDRESSES + 2..ADDRESSES + TAG].copy_from_slice(&id);
    true
}

/// Takes the tag away and redirects to the ingress of the interface that it names. The kernel has put the tag beside
/// the frame by then.
fn hook(origins: &Map) -> Result<Code> {
    let mut a = Asm::new();
    let (key, refuse) = (a.slot(4), a.label());
    a.mov(Reg::R6, Reg::R1);
    a.load(Size::W, Reg::R2, Reg::R6, sk_buff::VLAN_TCI);
    a.alu(Alu::And, Reg::R2, VLAN_ID);
    a.store_slot(Size::W, key, 0, Reg::R2);
    a.map(Reg::R1, origins.as_fd());
    a.slot_address(Reg::R2, key);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, Reg::R0, 0, refuse);
    a.load(Size::W, Reg::R7, Reg::R0, 0);
    a.jump_if(Cond::Eq, Reg::R7, 0, refuse);
    a.mov(Reg::R1, Reg::R6);
    a.call(Helper::SkbVlanPop);
    a.jump_if(Cond::Ne, Reg::R0, 0, refuse);
    a.mov(Reg::R1, Reg::R7);
    a.mov(Reg::R2, BPF_F_INGRESS);
    a.call(Helper::Redirect);
    a.exit();
    a.bind(refuse);
    a.mov(Reg::R0, action::TCX_DROP);
    a.exit();
    a.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::afxdp;
    use crate::testnet::{self, Raw, udp_frame};

    fn batch(frames: &[Vec<u8>]) -> Batch {
        let mut batch = Batch::new();
        batch.extend(frames.iter().filter_map(|f| Packet::from_bytes(f)));
        batch
    }

    #[test]
    fn punted_frames_arrive_each_on_its_interface() {
        testnet::run(&[("g0", "r0"), ("g1", "r1")], || {
            // The ports take everything that comes in; a punted frame must not be taken again.
            let front = testnet::front();
            let mut ports =
                ["r0", "r1"].map(|name| afxdp::open(name, &afxdp::Options::default(), &front).expect(name));
            let mut punt = Punt::open().expect("punt");
            let kernel = ["r0", "r1"].map(Raw::open);
            for (number, port) in ports.iter().enumerate() {
                punt.set_origin(number * 7, port.ifindex).expect("set");
            }
            for (number, port) in ports.iter_mut().enumerate() {
                let plain = udp_frame(port.mac, 1, 60);
                // One tag is ours; a packet socket sees the other beside the frame.
                let tagged = [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat();
                let frames = vec![plain.clone(), tagged];
                assert_eq!(punt.transmit(number * 7, &mut batch(&frames)), 2);
                let got = kernel[number].receive(2);
                assert_eq!(got.len(), 2);
                assert_eq!(got[0], plain);
                assert_eq!(port.queues[0].rx.waiting(), 0);
            }
            assert_eq!(kernel[0].receive(1).len(), 0, "nothing on the other interface");
            assert_eq!(punt.transmit(3, &mut batch(&[vec![0; 60]])), 1);
            assert_eq!(punt.transmit(0, &mut batch(&[vec![0; 11]])), 0, "no Ethernet frame");
            assert!(punt.set_origin(ORIGINS_MAX, 1).is_err());
            let devices = testnet::ip("ip addr show type tun");
            assert!(devices.contains("punt0") && !devices.contains("inet"), "{devices}");
            drop(punt);
            assert!(!testnet::ip("ip link").contains("punt"), "the TAP goes with the value");
        });
    }

    #[test]
    fn the_kernel_answers_for_the_true_interface() {
        testnet::run(&[("g0", "r0")], || {
            testnet::ip("ip addr add 198.51.100.1/24 dev r0");
            testnet::ip("ip neigh add 198.51.100.9 lladdr 02:00:00:00:00:09 dev r0");
            let r0 = afxdp::open("r0", &afxdp::Options::default(), &testnet::front()).expect("r0");
            let mut punt = Punt::open().expect("punt");
            punt.set_origin(0, r0.ifindex).expect("set");
            let host = Raw::open("g0");
            // An echo request from the neighbour; the checksum is that of type 8 and zeros.
            let mut frame = udp_frame(r0.mac, 1, 42);
            frame[23] = 1;
            frame[26..30].copy_from_slice(&[198, 51, 100, 9]);
            frame[34..].copy_from_slice(&[8, 0, 0xf7, 0xff, 0, 0, 0, 0]);
            let sum: u32 = frame[14..34].chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c[1])).sum();
            let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
            assert_eq!(punt.transmit(0, &mut batch(&[frame])), 1);
            let is_reply = |f: &Vec<u8>| f.get(23) == Some(&1) && f.get(34) == Some(&0);
            assert!(host.receive(10).iter().any(is_reply), "an echo reply leaves by the interface");
        });
    }
}
