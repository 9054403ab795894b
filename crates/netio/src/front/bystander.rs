//! The program at virtual ports whose packets are all left to the kernel.

use super::gate::Gate;
use crate::Result;
use causeway_bpf::{Asm, Map, MapKind, Program, ProgramKind, Reg, TcxLink, action, program_name};
use std::os::fd::AsFd;

/// The name of the program that is attached.
const ATTACHED: &str = "causeway_tcx";

/// Counts the packets that come in by some interfaces and leaves them to the kernel.
///
/// On a veth, TAP or tunnel an XDP program would end super-packets and break checksums that are left to hardware. A
/// program at tcx works on the stack's own packets and harms neither.
#[derive(Debug)]
pub struct Bystander {
    gate: Gate,
    counters: Map,
    links: Vec<TcxLink>,
}

impl Bystander {
    /// Loads the program.
    ///
    /// # Errors
    /// As [`Map::new`] and [`Program::load`].
    pub fn new() -> Result<Bystander> {
        let counters = Map::new(MapKind::PerCpuArray, "tcx_counters", 4, 8, 1)?;
        let mut a = Asm::new();
        let (key, exit) = (a.slot(4), a.label());
        a.mov(Reg::R6, 0);
        a.count_per_cpu(counters.as_fd(), Reg::R6, key, exit);
        a.bind(exit);
        a.mov(Reg::R0, action::TCX_NEXT);
        a.exit();
        let program = Program::load(ProgramKind::SchedCls, ATTACHED, &a.finish()?)?;
        let gate = Gate::new(ProgramKind::SchedCls, ATTACHED, &program)?;
        Ok(Bystander { gate, counters, links: Vec::new() })
    }

    /// Stands at the ingress of one more interface, until this value is dropped.
    ///
    /// # Errors
    /// As [`TcxLink::attach_ingress`].
    pub fn stand_at(&mut self, ifname: &str, ifindex: u32) -> Result<()> {
        self.links.push(TcxLink::attach_ingress(&self.gate.root, ifname, ifindex)?);
        Ok(())
    }

    /// Packets that were left to the kernel.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn count(&self) -> Result<u64> {
        self.counters.per_cpu_sum(0)
    }
}

/// Whether the program with this number is what a bystander attaches, of whatever process that is alive, as for
/// [`is_of_a_front`](super::is_of_a_front).
pub fn is_a_bystander(program: u32) -> bool {
    program_name(program).is_ok_and(|name| name == ATTACHED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Interface;
    use crate::testnet;
    use causeway_bpf::{TcxSide, tcx_programs};

    #[test]
    fn programs_at_an_interface_are_seen() {
        testnet::run(&[("g0", "r0")], || {
            let index = Interface::open("r0").expect("r0").index;
            let there = |side| tcx_programs(index, side).expect("asked").len();
            assert_eq!((there(TcxSide::Ingress), there(TcxSide::Egress)), (0, 0));
            let mut bystander = Bystander::new().expect("loaded");
            bystander.stand_at("r0", index).expect("attached");
            assert_eq!((there(TcxSide::Ingress), there(TcxSide::Egress)), (1, 0));
            testnet::ip("ip addr add 198.51.100.1/24 dev r0");
            testnet::ip("ip addr add 198.51.100.2/24 dev g0");
            let before = bystander.count().expect("counted");
            testnet::Raw::open("g0").send(&testnet::udp_frame([2; 6], 1, 60));
            assert!(bystander.count().expect("counted") > before, "packets are counted and passed");
            drop(bystander);
            assert_eq!(there(TcxSide::Ingress), 0);
        });
    }
}
