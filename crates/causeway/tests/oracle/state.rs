//! A random state of the routers: what is done to reach it, and what the packets have to know of it.

use crate::lessons::{self, Lesson};
use crate::plan::{self, PORTS};
use crate::space::Step;
use crate::{changes, routes};
use fastrand::Rng;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A state.
pub struct State {
    /// From the first state, which both twins are in.
    pub steps: Vec<Step>,
    /// Before the first state is set up again.
    pub undo: Vec<Step>,
    /// What the routers are taught when all is done.
    pub lessons: Vec<Lesson>,
    pub facts: Facts,
}

/// What packets have to know, and who compares.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The ports' Ethernet addresses.
    pub macs: [[u8; 6]; PORTS],
    /// Ports that cannot be reached by packets.
    pub down: [bool; PORTS],
    /// Ports that do not answer ARP, so that nobody can tell when all packets were handled.
    pub mute: [bool; PORTS],
    /// Ports may have to be attached again.
    pub attaches: bool,
    /// Prefixes with routes, by which destinations are chosen: address and length.
    pub prefixes4: Vec<(u32, u8)>,
    pub prefixes6: Vec<(u128, u8)>,
    /// The key of the hash is the kernel's own: any path of several is right.
    pub any_path: bool,
    /// Nothing is in it that leaves all packets to the kernel.
    pub plain: bool,
}

/// A state that is being made up.
pub struct Draft {
    pub rng: Rng,
    pub facts: Facts,
    /// Next hop objects so far.
    pub objects: u32,
    /// `ip` commands that come last.
    pub later: Vec<String>,
    steps: Vec<Step>,
    undo: Vec<Step>,
}

impl Facts {
    /// Of the state that all begin from.
    pub fn of_first_state() -> Facts {
        let mut macs = [[0; 6]; PORTS];
        (0..PORTS).for_each(|port| macs[port] = plan::mac(port));
        Facts {
            macs,
            down: [false; PORTS],
            mute: [false; PORTS],
            attaches: false,
            prefixes4: vec![(0x0a40_0000, 14), (0x0a01_0000, 22)],
            prefixes6: vec![(0x2001_0db8_0040 << 80, 46), (0x2001_0db8 << 96, 46)],
            any_path: false,
            plain: true,
        }
    }
}

impl State {
    /// The state of that number.
    pub fn new(rng: Rng) -> State {
        let facts = Facts::of_first_state();
        let (later, steps, undo) = (Vec::new(), Vec::new(), Vec::new());
        let mut draft = Draft { rng, facts, objects: 0, later, steps, undo };
        draft.fill();
        let lessons = if draft.chance(6) { draft.lessons() } else { Vec::new() };
        State { steps: draft.steps, undo: draft.undo, lessons, facts: draft.facts }
    }
}

impl Draft {
    fn fill(&mut self) {
        if self.chance(8) {
            changes::any_path(self);
        }
        for _ in 0..self.rng.usize(2..14) {
            routes::route(self);
        }
        for _ in 0..self.rng.usize(0..4) {
            changes::setting(self);
        }
        for _ in 0..self.rng.usize(0..4) {
            changes::neighbour(self);
        }
        for _ in 0..self.rng.usize(0..3) {
            changes::address(self);
        }
        if self.chance(3) && !self.facts.any_path {
            changes::mtu(self);
        }
        if self.chance(5) {
            changes::link(self);
        }
        if self.chance(6) {
            for _ in 0..self.rng.usize(1..4) {
                routes::rule(self);
            }
            self.facts.plain = false;
        }
        if self.chance(12) {
            changes::filter(self);
            self.facts.plain = false;
        }
        for _ in 0..self.rng.usize(0..3) {
            routes::route(self);
        }
        // Objects change and go while routes use them, and neighbours of a link that was down are known again.
        for line in std::mem::take(&mut self.later) {
            self.ip(line);
        }
    }

    /// Teaches that some destinations cannot be reached by long packets.
    fn lessons(&mut self) -> Vec<Lesson> {
        let mut frames = Vec::new();
        for _ in 0..self.rng.usize(1..6) {
            let port = self.rng.usize(0..plan::TAKEN);
            let mtu = *self.pick(&[400, 552, 600, 1300, 1400]);
            if self.rng.bool() {
                let to = 0x0a40_0000 | self.rng.u32(0..4) << 16 | self.rng.u32(0..64);
                self.facts.prefixes4.extend([(to, 32); 4]);
                frames.push(lessons::too_long4(port, Ipv4Addr::from(to), mtu));
            } else {
                let net = u128::from(0x40 + self.rng.u32(0..4)) << 80;
                let to = 0x2001_0db8 << 96 | net | u128::from(self.rng.u8(..));
                self.facts.prefixes6.extend([(to, 128); 4]);
                frames.push(lessons::too_long6(port, Ipv6Addr::from(to), u32::from(mtu).max(1280)));
            }
        }
        frames
    }

    /// Once in `n` times.
    pub fn chance(&mut self, n: u32) -> bool {
        self.rng.u32(0..n) == 0
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.rng.usize(0..list.len())]
    }

    /// A port, seldom the one that the router does not have.
    pub fn port(&mut self) -> usize {
        if self.chance(12) { plan::TAKEN } else { self.rng.usize(0..plan::TAKEN) }
    }

    pub fn ip(&mut self, line: String) {
        self.steps.push(Step::Ip(line));
    }

    pub fn shell(&mut self, line: String) {
        self.steps.push(Step::Shell(line));
    }

    pub fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub fn undo_ip(&mut self, line: String) {
        self.undo.push(Step::Ip(line));
    }

    pub fn undo_shell(&mut self, line: String) {
        self.undo.push(Step::Shell(line));
    }

    pub fn undo(&mut self, step: Step) {
        self.undo.push(step);
    }

    /// An IPv4 prefix, often one that is inside another; packets will be sent to it.
    pub fn prefix4(&mut self) -> String {
        let (address, len) = match self.rng.u32(0..20) {
            0 => (0, 0),
            // Into the subnet of a port.
            1 => (
                0x0a01_0000 | self.rng.u32(0..5) << 8 | self.rng.u32(..) & 0xff,
                *self.pick(&[24, 25, 28, 32]),
            ),
            _ => {
                let near = self.rng.u32(0..4) << 16 | self.rng.u32(0..4) << 8 | self.rng.u32(0..16);
                (0x0a40_0000 | near, *self.pick(&[15, 16, 16, 20, 24, 24, 28, 29, 32, 32]))
            }
        };
        let address = if len == 0 { 0 } else { address & (u32::MAX << (32 - len)) };
        self.facts.prefixes4.push((address, len));
        format!("{}/{len}", Ipv4Addr::from(address))
    }

    /// The same for IPv6.
    pub fn prefix6(&mut self) -> String {
        let site = 0x2001_0db8_u128 << 96;
        let (address, len) = match self.rng.u32(0..20) {
            0 => (0, 0),
            1 => (
                site | u128::from(self.rng.u32(0..5)) << 80 | u128::from(self.rng.u8(..)),
                *self.pick(&[64, 112, 120, 128]),
            ),
            _ => {
                let net = u128::from(0x40 + self.rng.u32(0..5)) << 80 | u128::from(self.rng.u32(0..3)) << 64;
                (
                    site | net | u128::from(self.rng.u32(0..16)),
                    *self.pick(&[47, 48, 48, 56, 64, 64, 96, 127, 128]),
                )
            }
        };
        let address = if len == 0 { 0 } else { address & (u128::MAX << (128 - len)) };
        self.facts.prefixes6.push((address, len));
        format!("{}/{len}", Ipv6Addr::from(address))
    }
}
