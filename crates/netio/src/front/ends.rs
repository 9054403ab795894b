//! How the program behind the gate ends.

use super::code::{CTX, DATA, END, PORT, Parts};
use super::port::field;
use super::{Place, Reason, flag};
use causeway_bpf::{Alu, Asm, Cond, Helper, Label, Reg, Size, action, xdp_md};
use std::os::fd::BorrowedFd;

/// Bytes of luggage that say nothing.
const LUGGAGE: i16 = 16;
/// Ports whose graphs are called without the array.
const DIRECT: i32 = 8;
/// Bytes of a time of arrival.
const ARRIVAL: i16 = 8;

impl Parts<'_> {
    /// The ends: the lease, the graph, the redirect to a socket, a stub for each reason used, the counting and the exit.
    pub fn ends(&mut self, a: &mut Asm) {
        let lease = self.pass(a, Reason::Lease);
        a.bind(self.transit);
        a.call(Helper::KtimeGetCoarseNs);
        a.map_value(Reg::R1, self.maps.lease, 0);
        a.load(Size::D, Reg::R1, Reg::R1, 0);
        a.jump_if(Cond::Gt, Reg::R0, Reg::R1, lease);
        self.graph(a);
        match self.place {
            Place::Xdp => self.take(a),
            Place::Tcx => {
                let not_taken = self.pass(a, Reason::NotTaken);
                a.jump(not_taken);
            }
        }
        self.leave(a);
    }

    /// Goes on in the program of the port's graph, if it has one; with a frame only if it is in one piece.
    pub fn graph(&mut self, a: &mut Asm) {
        let Some(graphs) = self.maps.graphs else { return };
        if self.place == Place::Xdp {
            a.mov(Reg::R2, END);
            a.alu(Alu::Sub, Reg::R2, DATA);
            a.load_slot(Size::D, Reg::R3, self.length, 0);
            a.jump_if(Cond::Ne, Reg::R2, Reg::R3, self.taken);
        }
        if self.maps.luggage && self.place == Place::Xdp {
            self.require_socket(a);
        }
        // The kernel writes calls into the machine code whose index it knows, which spares the first ports an indirect call: where
        // those are guarded against speculation (retpolines) each costs some 25 ns a frame.
        let none = a.label();
        a.load(Size::W, Reg::R3, PORT, field::GRAPH);
        for number in 0..DIRECT {
            let other = a.label();
            a.jump_if(Cond::Ne, Reg::R3, number, other);
            a.mov(Reg::R3, number);
            self.call_graph(a, graphs);
            a.jump(none);
            a.bind(other);
        }
        self.call_graph(a, graphs);
        a.bind(none);
    }

    /// Goes on in the program of the graph with the number in R3; here, if there is none.
    fn call_graph(&self, a: &mut Asm, graphs: BorrowedFd<'_>) {
        a.mov(Reg::R1, CTX);
        a.map(Reg::R2, graphs);
        a.call(Helper::TailCall);
    }

    /// Leaves frames of a queue without a socket to the kernel before anything is done to them.
    fn require_socket(&mut self, a: &mut Asm) {
        let no_socket = self.pass(a, Reason::NoSocket);
        self.socket_place(a, no_socket);
        a.store_slot(Size::W, self.key, 0, Reg::R2);
        a.map(Reg::R1, self.maps.sockets);
        a.slot_address(Reg::R2, self.key);
        a.call(Helper::MapLookup);
        a.jump_if(Cond::Eq, Reg::R0, 0, no_socket);
    }

    /// R2 = the place of the queue's socket. A queue that came up after the port was opened would have another port's.
    fn socket_place(&self, a: &mut Asm, no_socket: Label) {
        a.load(Size::W, Reg::R2, CTX, xdp_md::RX_QUEUE_INDEX);
        a.load(Size::W, Reg::R3, PORT, field::QUEUES);
        a.jump_if(Cond::Ge, Reg::R2, Reg::R3, no_socket);
        a.load(Size::W, Reg::R3, PORT, field::FIRST_SOCKET);
        a.alu(Alu::Add, Reg::R2, Reg::R3);
    }

    /// Takes the frame.
    pub fn take(&mut self, a: &mut Asm) {
        let is_kernels = self.refusal == self.place.pass();
        let no_socket = self.pass(a, if is_kernels { Reason::NoSocket } else { Reason::HalfDone });
        // From here on DATA is the verdict, and END the reason.
        let (verdict, reason) = (DATA, END);
        a.bind(self.taken);
        if self.maps.luggage {
            self.pack(a);
        } else if self.maps.arrivals {
            self.stamp(a);
        }
        self.socket_place(a, no_socket);
        a.map(Reg::R1, self.maps.sockets);
        a.mov(Reg::R3, self.refusal);
        a.call(Helper::RedirectMap);
        a.mov(verdict, Reg::R0);
        a.mov(reason, Reason::Taken as i32);
        a.jump_if(Cond::Ne, verdict, action::XDP_REDIRECT, no_socket);
        self.count(a);
    }

    /// Leaves frames to the kernel, or drops them, each for the reason that was found.
    pub fn leave(&mut self, a: &mut Asm) {
        let count = a.label();
        let (verdict, reason) = (DATA, END);
        for (why, label) in std::mem::take(&mut self.passes) {
            a.bind(label);
            a.mov(reason, why as i32);
            a.mov(verdict, self.refusal);
            a.jump(count);
        }
        a.bind(count);
        self.count(a);
    }

    /// Gives a frame that goes as it came the luggage that says so: zeros. None where there is no room for any.
    fn pack(&mut self, a: &mut Asm) {
        let bare = a.label();
        self.flag(a, flag::BARE);
        a.jump_if(Cond::Ne, Reg::R2, 0, bare);
        let no_room = self.make_room(a, LUGGAGE);
        self.room(a, LUGGAGE, no_room);
        (0..LUGGAGE).step_by(8).for_each(|at| a.store(Size::D, Reg::R2, at, 0));
        a.bind(bare);
    }

    /// Gives a frame its time of arrival, by `CLOCK_TAI`.
    fn stamp(&mut self, a: &mut Asm) {
        let no_room = self.make_room(a, ARRIVAL);
        a.call(Helper::KtimeGetTaiNs);
        self.room(a, ARRIVAL, no_room);
        a.store(Size::D, Reg::R2, 0, Reg::R0);
    }

    /// Makes room for `bytes` in front of the frame. Returns where it is left to the kernel that has none.
    fn make_room(&mut self, a: &mut Asm, bytes: i16) -> Label {
        let no_room = self.pass(a, Reason::NoRoom);
        a.mov(Reg::R1, CTX);
        a.mov(Reg::R2, -i32::from(bytes));
        a.call(Helper::XdpAdjustMeta);
        a.jump_if(Cond::Ne, Reg::R0, 0, no_room);
        no_room
    }

    /// R2 = the room that was made, of `bytes`.
    fn room(&self, a: &mut Asm, bytes: i16, no_room: Label) {
        a.load(Size::W, Reg::R2, CTX, xdp_md::DATA_META);
        a.load(Size::W, Reg::R3, CTX, xdp_md::DATA);
        a.xdp_require(Reg::R2, Reg::R3, i32::from(bytes), Reg::R1, no_room);
    }

    /// Leaves the frame to the kernel for `reason`.
    pub fn pass_for(&self, a: &mut Asm, reason: Reason) {
        a.mov(END, reason as i32);
        a.mov(DATA, self.place.pass());
        self.count(a);
    }

    /// Counts the reason in END, and exits with the verdict in DATA.
    pub fn count(&self, a: &mut Asm) {
        let (verdict, reason, exit) = (DATA, END, a.label());
        a.load(Size::W, Reg::R1, PORT, field::FIRST_COUNTER);
        a.alu(Alu::Add, reason, Reg::R1);
        a.count_per_cpu(self.maps.counters, reason, self.key, exit);
        a.bind(exit);
        a.mov(Reg::R0, verdict);
        a.exit();
    }
}
