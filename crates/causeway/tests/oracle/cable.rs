//! The hosts' end of a cable: sends any frame, takes in what comes, and says who is there.

use causeway_netio::{Queue, Rx, Tx, afpacket};
use causeway_packet::{Batch, Packet, checksum};
use std::net::Ipv6Addr;

use crate::space::Space;

/// Octets of an Ethernet header.
pub const ETHERNET: usize = 14;

/// The hosts' end of the cable at a port.
pub struct Cable {
    tx: Box<dyn Tx>,
    rx: Box<dyn Rx>,
    /// The port's number.
    number: usize,
    /// Questions for neighbours that were answered.
    pub answers: u64,
}

impl Cable {
    /// Opens `h{number}` in the hosts' namespace.
    pub fn open(hosts: &Space, number: usize) -> Cable {
        let name = format!("h{number}");
        let queue = hosts.inside(|| {
            let port = afpacket::open(&name, false).expect("a packet socket");
            port.queues.into_iter().next().expect("a queue")
        });
        // Without it the other end takes no frames from XDP programs.
        hosts.shell(&format!("ethtool -K {name} gro on"));
        let Queue { tx, rx } = queue;
        Cable { tx, rx, number, answers: 0 }
    }

    /// Sends a frame, and says whether it went. The other end may refuse it: it is too long, or there is no carrier.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        let mut batch = Batch::new();
        let packet = Packet::from_bytes(frame).expect("a free frame of the pool");
        assert!(batch.push(packet).is_ok());
        self.tx.offer(&mut batch) > 0
    }

    /// Frames that came and found no room.
    pub fn lost(&self) -> u64 {
        let drops = self.rx.statistics().list().into_iter().filter(|(name, _)| name.starts_with("rx_drop_"));
        drops.map(|(_, n)| n).sum()
    }

    /// What has come, answering who asks for neighbours.
    pub fn receive(&mut self) -> Vec<Vec<u8>> {
        let frames = self.take();
        for frame in &frames {
            if let Some(answer) = answer(frame, self.number) {
                self.send(&answer);
                self.answers += 1;
            }
        }
        frames
    }

    /// What has come.
    pub fn take(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            let mut batch = Batch::new();
            self.rx.poll(&mut batch, 64);
            if batch.is_empty() {
                return frames;
            }
            frames.extend(batch.drain().map(|packet| packet.data().to_vec()));
        }
    }
}

/// The Ethernet address of a host behind a port, by the last octets of its IP address. None: there is no such host.
pub fn host_mac(port: usize, address: &[u8]) -> Option<[u8; 6]> {
    let last = *address.last()?;
    (last % 4 != 3)
        .then(|| [2, 0xaa, port as u8, address[address.len() - 3], address[address.len() - 2], last])
}

/// The answer of the hosts behind a port to a question for a neighbour.
fn answer(frame: &[u8], port: usize) -> Option<Vec<u8>> {
    match frame.get(12..ETHERNET)? {
        [8, 6] => answer_arp(frame, port),
        [0x86, 0xdd] => answer_ndisc(frame, port),
        _ => None,
    }
}

fn answer_arp(frame: &[u8], port: usize) -> Option<Vec<u8>> {
    let arp = frame.get(ETHERNET..ETHERNET + 28)?;
    let (sender_mac, sender, target) = (&arp[8..14], &arp[14..18], &arp[24..28]);
    let announces = sender == target || sender == [0; 4];
    if arp[7] != 1 || announces || crate::plan::is_router4(target) {
        return None;
    }
    let mac = host_mac(port, target)?;
    let header = [0, 1, 8, 0, 6, 4, 0, 2];
    Some([sender_mac, &mac, &[8, 6], &header, &mac, target, sender_mac, sender].concat())
}

fn answer_ndisc(frame: &[u8], port: usize) -> Option<Vec<u8>> {
    let ip = frame.get(ETHERNET..)?;
    let (solicitation, sender) = (ip.get(40..64)?, &ip[8..24]);
    if ip[6] != 58 || solicitation[0] != 135 || ip[7] != 255 || sender == [0; 16] {
        return None;
    }
    let target = &solicitation[8..24];
    if crate::plan::is_router6(target) {
        return None;
    }
    let mac = host_mac(port, target)?;
    let header = [136, 0, 0, 0, 0x60, 0, 0, 0];
    let mut message = [&header, target, &[2, 1], &mac].concat();
    let address = |a: &[u8]| Ipv6Addr::from(<[u8; 16]>::try_from(a).expect("16 octets"));
    let sum = checksum::pseudo_header_v6(address(target), address(sender), 58, message.len() as u32);
    let sum = !sum.bytes(&message).fold();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let ip = [&[0x60, 0, 0, 0, 0, message.len() as u8, 58, 255][..], target, sender].concat();
    Some([&frame[6..12], &mac, &[0x86, 0xdd], &ip, &message].concat())
}
