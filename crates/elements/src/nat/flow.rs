//! One flow of a rewriter: who speaks, what they are made, and how long it is remembered.

use super::flow_id::FlowId;

/// No shifts.
pub(super) const NONE: u32 = u32::MAX;

/// Queues of one rewriter, by what their flows wait for.
pub(super) mod queue {
    pub const TCP_GUARANTEE: usize = 0;
    pub const TCP_NO_DATA: usize = 1;
    pub const TCP_DATA: usize = 2;
    pub const TCP_DONE: usize = 3;
    pub const GUARANTEE: usize = 4;
    pub const IDLE: usize = 5;
    pub const STREAMING: usize = 6;
    pub const COUNT: usize = 7;
    /// Those whose flows may be removed for others.
    pub const BEST_EFFORT: [usize; 5] = [TCP_NO_DATA, TCP_DATA, TCP_DONE, IDLE, STREAMING];
    pub const GUARANTEED: [usize; 2] = [TCP_GUARANTEE, GUARANTEE];
}

/// Milliseconds after which flows expire, by queue; a guarantee of 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timeouts {
    pub tcp_guarantee: u64,
    pub tcp_no_data: u64,
    pub tcp_data: u64,
    pub tcp_done: u64,
    pub guarantee: u64,
    pub idle: u64,
    pub streaming: u64,
}

impl Timeouts {
    /// The timeout of a queue's flows.
    pub fn of(&self, queue: usize) -> u64 {
        [
            self.tcp_guarantee,
            self.tcp_no_data,
            self.tcp_data,
            self.tcp_done,
            self.guarantee,
            self.idle,
            self.streaming,
        ][queue]
    }
}

/// How far a flow is.
mod state {
    /// TCP: the forward direction has ended; shifted by one, the reply direction.
    pub const DONE: u8 = 1;
    /// TCP: payload was seen in the forward direction; shifted by one, in the reply direction.
    pub const DATA: u8 = 4;
    /// Others: a reply was seen.
    pub const REPLIED: u8 = 1;
    /// Others: added with each of the first three packets.
    pub const PACKET: u8 = 2;
}

/// One flow, with both its directions.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// As it comes.
    pub from: FlowId,
    /// As it leaves.
    pub to: FlowId,
    /// Number of the rewriter among those of the table, of its input, and the table's part it is in.
    pub member: u32,
    pub input: u16,
    /// Where it leaves, and where replies do.
    pub outputs: [u16; 2],
    /// Its protocol; 0 = any.
    pub protocol: u8,
    /// Whether it is followed as a TCP connection.
    pub is_tcp: bool,
    pub reply_anno: u8,
    state: u8,
    /// Where its shifts of sequence numbers are, or [`NONE`].
    pub shifts: u32,
    /// Flows that were added before it.
    pub number: u64,
}

impl Flow {
    /// A flow of which nothing was seen yet.
    pub fn new(from: FlowId, to: FlowId, protocol: u8, is_tcp: bool, outputs: [u16; 2]) -> Flow {
        let (member, input, reply_anno, state, shifts, number) = (0, 0, 0, 0, NONE, 0);
        Flow { from, to, member, input, outputs, protocol, is_tcp, reply_anno, state, shifts, number }
    }

    /// What packets of this direction come as; 0 is forward.
    #[inline]
    pub fn comes(&self, direction: usize) -> FlowId {
        if direction == 0 { self.from } else { self.to.reverse() }
    }

    /// What packets of this direction leave as.
    #[inline]
    pub fn leaves(&self, direction: usize) -> FlowId {
        if direction == 0 { self.to } else { self.from.reverse() }
    }

    /// Takes note of a packet that is no TCP.
    #[inline]
    pub fn seen(&mut self, direction: usize) {
        if direction == 1 {
            self.state |= state::REPLIED;
        }
        if self.state < 3 * state::PACKET {
            self.state += state::PACKET;
        }
    }

    /// Takes note of a TCP segment.
    #[inline]
    pub fn seen_tcp(&mut self, direction: usize, flags: u8, has_payload: bool) {
        use causeway_packet::wire::tcp::flag::{FIN, RST, SYN};
        let done = state::DONE << direction;
        if flags & RST != 0 {
            self.state |= state::DONE * 3;
        } else if flags & FIN != 0 {
            self.state |= done;
        } else if flags & SYN != 0 || has_payload {
            self.state &= !done;
        }
        if has_payload {
            self.state |= state::DATA << direction;
        }
    }

    /// The queue in which it waits when it has no guarantee.
    pub fn best_effort(&self) -> usize {
        match (self.is_tcp, self.state) {
            (true, s) if s & (state::DONE * 3) == state::DONE * 3 => queue::TCP_DONE,
            (true, s) if s & (state::DATA * 3) == state::DATA * 3 => queue::TCP_DATA,
            (true, _) => queue::TCP_NO_DATA,
            (false, s) if s > 3 * state::PACKET => queue::STREAMING,
            (false, _) => queue::IDLE,
        }
    }

    /// The queue in which it waits while it is guaranteed.
    pub fn guaranteed(&self) -> usize {
        if self.is_tcp { queue::TCP_GUARANTEE } else { queue::GUARANTEE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_packet::wire::tcp::flag::{ACK, FIN, RST, SYN};

    /// Where a connection waits after these segments: direction, flags and whether there is payload.
    fn waits(segments: &[(usize, u8, bool)]) -> usize {
        let mut flow = Flow::new(FlowId::default(), FlowId::default(), 6, true, [0, 1]);
        segments.iter().for_each(|&(direction, flags, payload)| flow.seen_tcp(direction, flags, payload));
        flow.best_effort()
    }

    #[test]
    fn a_connection_is_over_when_both_have_ended_it_and_none_goes_on() {
        let over = [(0, FIN, false), (1, FIN, false)];
        let then = |segment| waits(&[over[0], over[1], segment]);
        assert_eq!(waits(&over[..1]), queue::TCP_NO_DATA);
        assert_eq!([waits(&over), then((0, ACK, false))], [queue::TCP_DONE; 2]);
        assert_eq!(waits(&[(0, RST, false)]), queue::TCP_DONE);
        // It goes on in the direction in which something comes, and the other one stays ended.
        assert_eq!(
            [then((0, ACK, true)), then((1, ACK, true)), then((1, SYN, false))],
            [queue::TCP_NO_DATA; 3]
        );
        assert_eq!(waits(&[over[0], over[1], (0, ACK, true), (0, FIN, false)]), queue::TCP_DONE);
        // Payload of a last segment is none that goes on.
        assert_eq!([then((0, FIN, true)), then((1, RST, true))], [queue::TCP_DONE; 2]);
    }

    #[test]
    fn a_connection_with_payload_of_both_waits_longer() {
        assert_eq!(waits(&[(0, ACK, true), (0, ACK, true)]), queue::TCP_NO_DATA);
        assert_eq!(waits(&[(0, ACK, true), (1, ACK, true)]), queue::TCP_DATA);
    }
}
