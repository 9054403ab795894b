//! How flows are shown.

use super::flows::{Flow, space};
use super::kind::Kind;
use super::order::Order;
use super::rewriter::{Rewriter, borrow, give_back, now_ms};
use causeway_engine::pieces::{PIECE, Pieces};
use causeway_engine::{Cx, Element};

/// A flow, copied from its table.
pub(super) struct Shown {
    pub flow: Flow,
    /// How far the sequence numbers of each direction have shifted.
    pub shifted: [i32; 2],
    pub expires_s: u32,
}

impl Shown {
    /// Appends the line of one direction.
    fn line(&self, kind: Kind, direction: usize, text: &mut String) {
        *text += &kind.line(&self.flow, direction);
        let shifted = self.shifted[direction];
        if shifted != 0 {
            *text += &format!(" seq {shifted:+}");
        }
        let [forward, reply] = self.flow.outputs;
        let stars = if direction == 0 { ("*", "") } else { ("", "*") };
        let (input, expires_s) = (self.flow.input, self.expires_s);
        *text += &format!(" [{}{forward} {}{reply}] i{input} exp{expires_s}\n", stars.0, stars.1);
    }
}

/// The flows of one part of a rewriter's table, while they are copied.
pub(super) struct Listing {
    kind: Kind,
    space: u32,
    place: usize,
    pieces: Vec<Vec<Shown>>,
    grown: Vec<u64>,
}

impl Listing {
    /// What the read handler `handler` of `rewriter` shows, if that is a table.
    pub fn of(rewriter: &Rewriter, handler: &str) -> Option<Listing> {
        let second = match handler {
            "table" | "mappings" | "tcp_table" | "tcp_mappings" => false,
            "udp_table" | "udp_mappings" => true,
            _ => return None,
        };
        let space = space(rewriter.member, second);
        Some(Listing { kind: rewriter.kind, space, place: 0, pieces: Vec::new(), grown: Vec::new() })
    }
}

impl Pieces for Listing {
    fn go_on(&mut self, element: &mut dyn Element, cx: &mut Cx<'_>) -> bool {
        let Some(rewriter) = element.downcast_mut::<Rewriter>() else { return false };
        let Some(flows) = borrow(rewriter, cx) else { return false };
        let mut piece = Vec::with_capacity(PIECE);
        let more = flows.copy(self.space, &mut self.place, now_ms(cx), &mut piece);
        self.pieces.push(piece);
        if !more {
            self.grown = flows.grown(self.space).to_vec();
        }
        give_back(rewriter, flows, cx);
        more
    }

    fn text(self: Box<Self>) -> String {
        lines(self.kind, self.pieces.into_iter().flatten().collect(), &self.grown)
    }
}

/// The lines of both directions of all flows, in Click's order. `grown` are the flows whose coming made Click's table grow.
fn lines(kind: Kind, mut flows: Vec<Shown>, grown: &[u64]) -> String {
    flows.sort_unstable_by_key(|shown| shown.flow.number);
    let (mut order, mut steps) = (Order::new(), grown.iter().peekable());
    for (i, Shown { flow, .. }) in flows.iter().enumerate() {
        while steps.next_if(|number| **number < flow.number).is_some() {
            order.grow();
        }
        if flow.comes(0) != flow.comes(1) {
            order.add(flow.comes(0).order(), (i, 0));
        }
        order.add(flow.comes(1).order(), (i, 1));
    }
    steps.for_each(|_| order.grow());
    let mut text = String::new();
    order.entries().for_each(|(i, direction)| flows[i].line(kind, direction, &mut text));
    text
}
