//! How packets leave a compiled graph.

use crate::frame::Frame;
use crate::state::{FARTHEST, Header, Mark, State};
use crate::write::{DATA, DATA_END};
use causeway_bpf::{Alu, Asm, Cond, Helper, Label, Map, Reg, Size, action, sk_buff, xdp_md};
use causeway_engine::ir::ANNOTATIONS;
use std::os::fd::AsFd;

/// Where the program is attached, and what that means for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// XDP, of an interface with this link-layer address.
    Xdp([u8; 6]),
    /// tcx at ingress, where a packet may be longer than what can be read of it.
    Tcx(Above),
}

/// Who has what a program at tcx gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above {
    /// The kernel, which has packets as they came. The program sees none that it is not told the parts of ([`crate::Ways`]).
    Kernel,
    /// A graph, by a device on whose way the kernel cuts packets into their parts. Luggage is in front of them, as many bytes as
    /// the first word of [`sk_buff::CB`] says, which is 0 when packets come.
    Graph,
}

impl Hook {
    pub(crate) fn is_tcx(self) -> bool {
        matches!(self, Hook::Tcx(_))
    }

    /// What leaves a packet to the kernel there, and what drops it.
    pub(crate) fn refusals(self) -> [i32; 2] {
        match self {
            Hook::Tcx(_) => [action::TCX_NEXT, action::TCX_DROP],
            Hook::Xdp(_) => [action::XDP_PASS, action::XDP_DROP],
        }
    }
}

/// What is done with a packet that leaves.
#[derive(Clone, Copy, Debug)]
pub enum Action<'m> {
    /// The program returns this.
    Return(i32),
    /// A router forwards it: the table has asked for the redirect already ([`crate::NextHops::interfaces`]), and one has been
    /// taken from its time to live or hop limit.
    Forward,
    /// It goes to an entry of a map of interfaces: at tcx one of [`crate::Outlet`]s.
    Redirect(&'m Map, u32),
    /// It goes on in a program of an array: the first, or the second if it goes up and may have been written to. What is returned
    /// without one is what is safe.
    Program(&'m Map),
    /// It goes to the entry of a map of sockets that has the number of its queue.
    Socket(&'m Map),
}

/// A place in the graph above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The input of one of the compiled graph's nodes, which gives packets up or cannot be compiled.
    Node(usize),
    /// An element of the plan and its input.
    Element(usize, usize),
    /// A port that it is to leave by: at tcx, where the program cannot move the packet's start; at XDP, where its interface
    /// cannot be redirected to any more. It brings no annotations there, and is the frame that was to go out.
    Port(usize),
}

/// A way out, by which packets are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// By a port.
    Emit(usize),
    /// Dropped by a node for a reason of its class.
    Drop(usize, u16),
    /// By an output of a node that leads nowhere; dropped.
    Nowhere(usize),
    /// To the graph above.
    Up(Place),
    /// To the kernel, which says that it would not forward it as the table does ([`crate::Routes::check`]).
    Doubted,
    /// It was to go out, and is no frame: too short, or the kernel would not cut it. Or it was to go up and has no room for what
    /// goes up with it, and is not as it came, or at tcx the graph's alone. Dropped.
    Refused,
    /// At XDP, it was to go up as it came, and has no room for what goes up with it. The kernel's.
    NoRoom,
}

/// Bytes of metadata behind the words of annotations, and right in front of the frame.
const HEAD: i16 = 16;
/// Where among them is how a packet was addressed.
const ADDRESSED: usize = 14;

/// What goes up with a packet, in front of it: annotations; then two words, the number of the exit with the end of the data,
/// and the headers with how it was addressed. So the number is where whoever has the frame finds it, however much there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Luggage {
    /// The place.
    pub place: Place,
    state: State,
    eights: Vec<i16>,
    /// Whether it says how the packet was addressed, which the frame may not any more.
    addressed: bool,
}

/// A packet's state when it comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// Where the data starts, in bytes behind the start of the frame.
    pub data: usize,
    /// Where it ends; `None` where the frame does.
    pub end: Option<usize>,
    /// Where the link-layer, network and transport headers are, counted as the others.
    pub headers: [Option<usize>; 3],
    /// How it was addressed at the link layer, as the number of a packet type; `None` if the frame still says so.
    pub packet_type: Option<u8>,
    eights: &'a [i16],
    words: &'a [[u8; 8]],
}

impl<'a> Arrival<'a> {
    /// Annotations by offset, eight bytes each; others are zero.
    pub fn annotations(&self) -> impl Iterator<Item = (u8, [u8; 8])> + use<'a> {
        self.eights.iter().map(|&at| at as u8).zip(self.words.iter().copied())
    }
}

impl Luggage {
    pub(crate) fn new(place: Place, state: State, eights: Vec<i16>, addressed: bool) -> Luggage {
        Luggage { place, state, eights, addressed }
    }

    /// Bytes of metadata.
    #[must_use]
    pub fn len(&self) -> usize {
        HEAD as usize + 8 * self.eights.len()
    }

    /// Whether there is none, which is never so.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Bytes of metadata at most.
    pub const MOST: usize = HEAD as usize + ANNOTATIONS;

    /// Whether bytes of the frame may have been written before it was given up.
    #[must_use]
    pub fn is_touched(&self) -> bool {
        self.state.touched
    }

    /// What the metadata of a packet says, which is the end of what lies in front of it; `None` if that is too short.
    #[must_use]
    pub fn unpack<'a>(&'a self, front: &'a [u8]) -> Option<Arrival<'a>> {
        let metadata = &front[front.len().checked_sub(self.len())?..];
        let (words, head) = metadata.split_at_checked(8 * self.eights.len())?;
        let half = |i: usize| Some(usize::from(u16::from_ne_bytes([*head.get(i)?, *head.get(i + 1)?])));
        let end = u32::from_ne_bytes(head.get(4..8)?.try_into().ok()?) as usize;
        let mut headers = [None; 3];
        for (i, mark) in self.state.marks.iter().enumerate() {
            headers[i] = match *mark {
                Mark::None => None,
                Mark::At(at) => usize::try_from(at).ok(),
                Mark::Stack => half(8 + 2 * i).filter(|&at| at <= FARTHEST as usize),
            };
        }
        Some(Arrival {
            data: usize::try_from(self.state.data).ok()?,
            end: self.state.cut.then_some(end),
            headers,
            packet_type: head.get(ADDRESSED).copied().filter(|_| self.addressed),
            eights: &self.eights,
            words: words.as_chunks().0,
        })
    }

    /// The number of the exit that the metadata of a packet says, of which this is the end.
    #[must_use]
    pub fn number(front: &[u8]) -> Option<u32> {
        let head = front.last_chunk::<{ HEAD as usize }>()?;
        head.first_chunk().copied().map(u32::from_ne_bytes)
    }
}

/// The state of a packet that was in `state` when it was to go out, once it is what goes out.
pub(crate) fn as_it_goes_out(hook: Hook, state: &State) -> State {
    let touched = state.touched || state.cut || state.data != 0;
    State { touched, cut: hook.is_tcx(), ..State::default() }
}

/// Writes what is done at an exit.
pub(crate) struct Leaving<'a> {
    pub asm: &'a mut Asm,
    pub frame: &'a Frame,
    pub hook: Hook,
    /// Where packets go on that the kernel would not take.
    pub refused: Label,
    /// Where those go on that are as they came, and have no room for what goes up with them.
    pub without_room: Label,
}

impl Leaving<'_> {
    /// Ends the program with `action`.
    pub fn act(&mut self, action: Action<'_>, or: i32) {
        match action {
            Action::Return(verdict) => self.asm.mov(Reg::R0, verdict),
            Action::Forward => match self.hook {
                Hook::Xdp(_) => self.asm.mov(Reg::R0, action::XDP_REDIRECT),
                Hook::Tcx(_) => {
                    self.sum_up();
                    self.asm.mov(Reg::R0, action::TCX_REDIRECT);
                }
            },
            Action::Redirect(map, key) => {
                self.asm.map(Reg::R1, map.as_fd());
                self.asm.mov64(Reg::R2, key.into());
                self.asm.mov(Reg::R3, or);
                self.asm.call(Helper::RedirectMap);
            }
            Action::Program(map) => {
                self.asm.load_slot(Size::D, Reg::R1, self.frame.context, 0);
                let ifindex = match self.hook {
                    Hook::Tcx(_) => sk_buff::IFINDEX,
                    Hook::Xdp(_) => xdp_md::INGRESS_IFINDEX,
                };
                // 0, which the verifier must not know: with an index that it knows the kernel writes the call into the
                // machine code of each program, and has to mend each when the array is emptied.
                self.asm.load(Size::W, Reg::R3, Reg::R1, ifindex);
                self.asm.alu(Alu::Rsh, Reg::R3, 31);
                if or != self.hook.refusals()[0] {
                    self.asm.alu(Alu::Add, Reg::R3, 1);
                }
                self.asm.map(Reg::R2, map.as_fd());
                self.asm.call(Helper::TailCall);
                self.asm.mov(Reg::R0, or);
            }
            Action::Socket(map) => {
                self.asm.load_slot(Size::D, Reg::R1, self.frame.context, 0);
                self.asm.load(Size::W, Reg::R2, Reg::R1, xdp_md::RX_QUEUE_INDEX);
                self.asm.map(Reg::R1, map.as_fd());
                self.asm.mov(Reg::R3, or);
                self.asm.call(Helper::RedirectMap);
            }
        }
        self.asm.exit();
    }

    /// Mends the sum over the packet that a device may have made, for whom it goes to. That of an IPv4 header is the same as
    /// before; in an IPv6 header nothing makes up for the hop limit, which is one less (RFC 1624 has the arithmetic).
    fn sum_up(&mut self) {
        const IPV6: u16 = 0x86dd;
        let less = !u32::from(u16::from_ne_bytes([0, 1]));
        let done = self.asm.label();
        self.asm.load_slot(Size::D, Reg::R1, self.frame.context, 0);
        self.asm.load(Size::W, Reg::R2, Reg::R1, sk_buff::PROTOCOL);
        self.asm.jump_if(Cond::Ne, Reg::R2, i32::from(u16::from_ne_bytes(IPV6.to_be_bytes())), done);
        self.asm.mov32(Reg::R2, less as i32);
        self.asm.call(Helper::CsumUpdate);
        self.asm.bind(done);
    }

    /// The packet as it is goes out, and is counted then by `count`, which may destroy R0 to R2. Where its interface cannot be
    /// redirected to, or the stack does not cut it because a checksum is unfinished behind its end, it goes on at `astray` as what
    /// [`as_it_goes_out`] says.
    pub fn emit(
        &mut self,
        state: &State,
        action: Action<'_>,
        astray: Option<Label>,
        count: impl FnOnce(&mut Asm),
    ) {
        let refused = self.refused;
        if state.cut {
            let whole = self.asm.label();
            let refused = astray.filter(|_| self.hook.is_tcx()).unwrap_or(refused);
            self.asm.load_slot(Size::D, Reg::R2, self.frame.end, 0);
            self.asm.load_slot(Size::D, Reg::R1, self.frame.context, 0);
            if self.hook.is_tcx() {
                self.asm.load(Size::W, Reg::R0, Reg::R1, sk_buff::LEN);
                self.asm.jump_if(Cond::Eq, Reg::R2, Reg::R0, whole);
                self.asm.mov(Reg::R3, 0);
                self.asm.call(Helper::SkbChangeTail);
            } else {
                self.asm.alu(Alu::Sub, DATA_END, DATA);
                self.asm.alu(Alu::Sub, Reg::R2, DATA_END);
                self.asm.jump_if(Cond::Eq, Reg::R2, 0, whole);
                self.asm.call(Helper::XdpAdjustTail);
            }
            self.asm.jump_if(Cond::Ne, Reg::R0, 0, refused);
            self.asm.bind(whole);
        }
        if state.data != 0 {
            self.asm.load_slot(Size::D, Reg::R1, self.frame.context, 0);
            self.asm.mov(Reg::R2, state.data);
            self.asm.call(Helper::XdpAdjustHead);
            self.asm.jump_if(Cond::Ne, Reg::R0, 0, refused);
        }
        if let Action::Redirect(map, key) = action {
            let astray = astray.unwrap_or(refused);
            if self.hook.is_tcx() {
                return self.let_out(state, (map, key), astray, count);
            }
            self.asm.map(Reg::R1, map.as_fd());
            self.asm.mov64(Reg::R2, key.into());
            self.asm.mov(Reg::R3, 0);
            self.asm.call(Helper::RedirectMap);
            self.asm.jump_if(Cond::Ne, Reg::R0, action::XDP_REDIRECT, astray);
            count(self.asm);
            self.asm.mov(Reg::R0, action::XDP_REDIRECT);
            return self.asm.exit();
        }
        count(self.asm);
        // Nothing can be passed any more.
        let dropped = if self.hook.is_tcx() { action::TCX_DROP } else { action::XDP_ABORTED };
        self.act(action, dropped);
    }

    /// The packet goes up with its luggage, under the number of the exit.
    pub fn up(&mut self, number: u32, luggage: &Luggage, action: Action<'_>) {
        let state = &luggage.state;
        let [passed, dropped] = self.hook.refusals();
        let mut passed = if state.touched { dropped } else { passed };
        if self.hook == Hook::Tcx(Above::Kernel) {
            return self.act(action, passed);
        }
        let is_kernels = !state.touched && !self.hook.is_tcx();
        let refused = if is_kernels { self.without_room } else { self.refused };
        let len = luggage.len() as i32;
        self.asm.load_slot(Size::D, Reg::R1, self.frame.context, 0);
        match self.hook {
            Hook::Xdp(_) => {
                self.asm.mov(Reg::R2, -len);
                self.asm.call(Helper::XdpAdjustMeta);
            }
            Hook::Tcx(_) => {
                self.asm.store(Size::W, Reg::R1, sk_buff::CB, len);
                self.asm.mov(Reg::R2, len);
                self.asm.mov(Reg::R3, 0);
                self.asm.call(Helper::SkbChangeHead);
                // The kernel must not have it with what is in front of it.
                passed = dropped;
            }
        }
        self.asm.jump_if(Cond::Ne, Reg::R0, 0, refused);
        self.asm.load_slot(Size::D, Reg::R1, self.frame.context, 0);
        let [front, end] = match self.hook {
            Hook::Xdp(_) => [xdp_md::DATA_META, xdp_md::DATA],
            Hook::Tcx(_) => [sk_buff::DATA, sk_buff::DATA_END],
        };
        self.asm.load(Size::W, Reg::R2, Reg::R1, front);
        self.asm.load(Size::W, Reg::R3, Reg::R1, end);
        self.asm.xdp_require(Reg::R2, Reg::R3, len, Reg::R0, refused);
        let head = len as i16 - HEAD;
        self.asm.store(Size::W, Reg::R2, head, number as i32);
        if state.cut {
            self.asm.load_slot(Size::D, Reg::R0, self.frame.end, 0);
            self.asm.store(Size::W, Reg::R2, head + 4, Reg::R0);
        }
        for (i, header) in [Header::Mac, Header::Network, Header::Transport].into_iter().enumerate() {
            if state.mark(header) == Mark::Stack {
                self.asm.load_slot(Size::D, Reg::R0, self.frame.mark(header), 0);
                self.asm.store(Size::H, Reg::R2, head + 8 + 2 * i as i16, Reg::R0);
            }
        }
        if luggage.addressed {
            self.asm.load_slot(Size::D, Reg::R0, self.frame.packet_type, 0);
            self.asm.store(Size::B, Reg::R2, head + ADDRESSED as i16, Reg::R0);
        }
        for (place, &eight) in luggage.eights.iter().enumerate() {
            self.asm.load_slot(Size::D, Reg::R0, self.frame.annotations, eight);
            self.asm.store(Size::D, Reg::R2, 8 * place as i16, Reg::R0);
        }
        self.act(action, passed);
    }
}
