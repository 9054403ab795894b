//! Late punts: a frame that the graph has taken and cannot handle goes to the kernel after all.
//!
//! The frame must reach the stack as if it had just come in on its true interface, or addresses, ICMP errors and
//! reverse-path checks would be wrong. So it is written to a TAP whose ingress hook redirects everything to the
//! ingress of that interface. A native XDP program there does not see redirected frames, so they do not come back; a
//! generic one would, so ports in generic mode have no punts.

use crate::bpf::{Asm, Helper, Program, ProgramKind, Reg, TcxLink};
use crate::error::{Error, ErrorKind, Result};
use crate::port::{Counter, Port, Queue, Tx};
use crate::tap;
use causeway_packet::Batch;

/// Redirect to the ingress instead of the egress.
const BPF_F_INGRESS: i32 = 1;

/// Transmits into the kernel's stack. Its counters are those of a TAP.
struct Punt {
    tap: Box<dyn Tx>,
    _link: TcxLink,
}

/// What [`open`] needs to know of the port that frames came in on.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Interface name.
    pub name: String,
    /// Interface index.
    pub ifindex: u32,
    /// Whether the port is in generic XDP mode.
    pub generic: bool,
}

impl From<&Port> for Origin {
    fn from(port: &Port) -> Origin {
        Origin { name: port.name.clone(), ifindex: port.ifindex, generic: port.generic }
    }
}

/// Opens way number `copy` into the kernel's stack for frames that came in on `from`: workers that share no way
/// need a number each. The TAP is called `punt`, the interface's index and, above 0, the number.
///
/// # Errors
/// As [`tap::open`]; [`ErrorKind::Unsupported`] for ports in generic mode, and on kernels before 6.6, which cannot
/// hold the hook by a descriptor.
pub fn open(from: &Origin, copy: usize) -> Result<Box<dyn Tx>> {
    if from.generic {
        let what = format!("{}: frames cannot be punted from a port in generic XDP mode", from.name);
        return Err(Error::new(ErrorKind::Unsupported, what).help("the port would take them again"));
    }
    let suffix = if copy == 0 { String::new() } else { format!(".{copy}") };
    let mut port = tap::open(&format!("punt{}{suffix}", from.ifindex), tap::Kind::Tap)?;
    let mut a = Asm::new();
    a.mov(Reg::R1, from.ifindex as i32);
    a.mov(Reg::R2, BPF_F_INGRESS);
    a.call(Helper::Redirect);
    a.exit();
    let program = Program::load(ProgramKind::SchedCls, "punt", &a.finish()?)?;
    let link = TcxLink::attach_ingress(&program, &port.name, port.ifindex)?;
    let Queue { tx, .. } = port.queues.remove(0);
    Ok(Box::new(Punt { tap: tx, _link: link }))
}

impl Tx for Punt {
    fn transmit(&mut self, batch: &mut Batch) -> usize {
        self.tap.transmit(batch)
    }

    fn flush(&mut self) {
        self.tap.flush();
    }

    fn counters(&self) -> Vec<Counter> {
        self.tap.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::afxdp;
    use crate::testnet::{self, Raw, udp_frame};
    use causeway_packet::Packet;

    #[test]
    fn a_punted_frame_arrives_on_its_interface() {
        testnet::run(&[("g0", "r0")], || {
            // The port takes everything that comes in; a punted frame must not be taken again.
            let mut port = afxdp::open("r0", &afxdp::Options::default(), &testnet::front()).expect("r0");
            let mut punt = open(&Origin::from(&port), 0).expect("punt");
            let kernel = Raw::open("r0");
            let frame = udp_frame(port.mac, 1, 60);
            let mut batch = Batch::new();
            batch.extend(Packet::from_bytes(&frame));
            assert_eq!(punt.transmit(&mut batch), 1);
            assert_eq!(kernel.receive(1), vec![frame]);
            assert_eq!(port.queues[0].rx.pending(), 0);
            drop((punt, port));
            let options = afxdp::Options { generic: true, ..Default::default() };
            let generic = afxdp::open("r0", &options, &testnet::front()).expect("r0");
            let refused = open(&Origin::from(&generic), 0).map(|_| ()).expect_err("generic mode");
            assert_eq!(refused.kind(), ErrorKind::Unsupported);
            assert!(!testnet::ip("ip link").contains("punt"), "the TAP goes with the port");
        });
    }

    #[test]
    fn the_kernel_answers_for_the_true_interface() {
        testnet::run(&[("g0", "r0")], || {
            testnet::ip("ip addr add 198.51.100.1/24 dev r0");
            testnet::ip("ip neigh add 198.51.100.9 lladdr 02:00:00:00:00:09 dev r0");
            let r0 = afxdp::open("r0", &afxdp::Options::default(), &testnet::front()).expect("r0");
            let mut punt = open(&Origin::from(&r0), 0).expect("punt");
            let host = Raw::open("g0");
            // An echo request from the neighbour; the checksum is that of type 8 and zeros.
            let mut frame = udp_frame(r0.mac, 1, 42);
            frame[23] = 1;
            frame[26..30].copy_from_slice(&[198, 51, 100, 9]);
            frame[34..].copy_from_slice(&[8, 0, 0xf7, 0xff, 0, 0, 0, 0]);
            let sum: u32 = frame[14..34].chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c[1])).sum();
            let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
            let mut batch = Batch::new();
            batch.extend(Packet::from_bytes(&frame));
            assert_eq!(punt.transmit(&mut batch), 1);
            let is_reply = |f: &Vec<u8>| f.get(23) == Some(&1) && f.get(34) == Some(&0);
            assert!(host.receive(10).iter().any(is_reply), "an echo reply leaves by the interface");
        });
    }
}
