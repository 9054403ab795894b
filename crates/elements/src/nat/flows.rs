//! The flows that rewriters know: one table for those that share a capacity.

use super::flow_id::FlowId;
use super::sequence::Shifts;
use crate::flow_table::{FlowTable, Id, NoPlace, ROOM};

/// What Click shows as the capacity where nobody sets one.
pub(super) const UNLIMITED: i32 = i32::MAX;
/// TCP connections whose sequence numbers may be shifted at a time.
const SHIFTED: usize = 1_024;
/// No shifts.
const NONE: u32 = u32::MAX;

/// Queues of one rewriter, by what their flows wait for.
mod queue {
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
    fn of(&self, queue: usize) -> u64 {
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
    shifts: u32,
    /// Flows that were added before it.
    number: u64,
}

impl Flow {
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
    fn best_effort(&self) -> usize {
        match (self.is_tcp, self.state) {
            (true, s) if s & (state::DONE * 3) == state::DONE * 3 => queue::TCP_DONE,
            (true, s) if s & (state::DATA * 3) == state::DATA * 3 => queue::TCP_DATA,
            (true, _) => queue::TCP_NO_DATA,
            (false, s) if s > 3 * state::PACKET => queue::STREAMING,
            (false, _) => queue::IDLE,
        }
    }

    fn guaranteed(&self) -> usize {
        if self.is_tcp { queue::TCP_GUARANTEE } else { queue::GUARANTEE }
    }
}

/// Live flows and failures of one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub flows: u32,
    pub failures: u32,
}

/// One rewriter, as its flows' table sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub name: String,
    pub timeouts: Timeouts,
    pub inputs: Vec<Tally>,
}

/// The flows of one rewriter, or of several that share a capacity.
pub(super) struct Flows {
    table: FlowTable<Flow, 2>,
    members: Vec<Member>,
    capacity: i32,
    /// Flows that expired at or before this are gone, though some may still have their places.
    horizon_ms: u64,
    number: u64,
    shifts: Vec<[Shifts; 2]>,
    free_shifts: Vec<u32>,
}

/// The part of the table that a rewriter's flows are in; UDP flows of one that knows both are in another.
#[inline]
pub(super) fn space(member: u32, second: bool) -> u32 {
    member << 1 | u32::from(second)
}

impl Flows {
    /// An empty table for `capacity` flows.
    pub fn new(capacity: i32) -> Flows {
        Flows {
            table: FlowTable::new(Self::places(capacity), 0),
            members: Vec::new(),
            capacity,
            horizon_ms: 0,
            number: 0,
            shifts: Vec::with_capacity(SHIFTED),
            free_shifts: Vec::with_capacity(SHIFTED),
        }
    }

    fn places(capacity: i32) -> usize {
        if capacity == UNLIMITED { ROOM } else { capacity.max(0) as usize }
    }

    /// Adds a rewriter; answers its number.
    pub fn join(&mut self, member: Member) -> u32 {
        self.members.push(member);
        self.table.add_queues(self.members.len() * queue::COUNT);
        (self.members.len() - 1) as u32
    }

    /// The rewriter with this number.
    pub fn member(&mut self, member: u32) -> Option<&mut Member> {
        self.members.get_mut(member as usize)
    }

    /// Counts a failure of an input.
    pub fn failed(&mut self, member: u32, input: usize) {
        if let Some(tally) = self.members.get_mut(member as usize).and_then(|m| m.inputs.get_mut(input)) {
            tally.failures += 1;
        }
    }

    fn timeouts(&self, flow: &Flow) -> Timeouts {
        self.members[flow.member as usize].timeouts
    }

    /// When the flow expires if nothing guarantees it.
    fn best_effort_expiry(&self, id: Id, flow: &Flow) -> u64 {
        let (expires, queue) = self.table.expiry(id);
        let queue = queue % queue::COUNT;
        if !queue::GUARANTEED.contains(&queue) {
            return expires;
        }
        let timeouts = self.timeouts(flow);
        (expires + timeouts.of(flow.best_effort())).saturating_sub(timeouts.of(queue))
    }

    fn is_gone(&self, id: Id) -> bool {
        let (expires, _) = self.table.expiry(id);
        expires <= self.horizon_ms
            && self.table.get(id).is_none_or(|f| self.best_effort_expiry(id, f) <= self.horizon_ms)
    }

    /// The flow of `flow` in this part of the table, and the direction.
    #[inline]
    pub fn find(&mut self, space: u32, flow: FlowId) -> Option<(Id, usize)> {
        let found = self.table.find(flow.key(space))?;
        if self.is_gone(found.0) {
            self.remove(found.0);
            return None;
        }
        Some(found)
    }

    /// Whether no flow of the part has replies that come as `to` would have them.
    pub fn is_free(&self, space: u32, to: FlowId) -> bool {
        self.table.find(to.reverse().key(space)).is_none_or(|(id, _)| self.is_gone(id))
    }

    #[inline]
    pub fn get(&self, id: Id) -> Option<&Flow> {
        self.table.get(id)
    }

    #[inline]
    pub fn get_mut(&mut self, id: Id) -> Option<&mut Flow> {
        self.table.get_mut(id)
    }

    /// Adds a flow of an input of `member` in part `space`. `None` if all places are taken by flows with guarantees.
    pub fn insert(&mut self, mut flow: Flow, member: u32, input: usize, space: u32, now_ms: u64) -> Option<Id> {
        (flow.member, flow.input, flow.number) = (member, input as u16, self.number);
        self.number += 1;
        let timeouts = self.timeouts(&flow);
        let (queue, timeout) = match (timeouts.of(flow.guaranteed()), flow.best_effort()) {
            (0, queue) => (queue, timeouts.of(queue)),
            (guarantee, _) => (flow.guaranteed(), guarantee),
        };
        let expires = now_ms + timeout;
        let keys = [flow.from.key(space), flow.to.reverse().key(space)];
        for key in keys {
            if let Some((other, _)) = self.table.find(key) {
                self.remove(other);
            }
        }
        if self.table.len() >= self.table.limit() {
            self.end_guarantees(now_ms, usize::MAX);
            let (earliest, victim) = self.earliest(&queue::BEST_EFFORT)?;
            if !queue::GUARANTEED.contains(&queue) && expires < earliest {
                return None;
            }
            self.remove(victim);
        }
        let queue = member as usize * queue::COUNT + queue;
        let id = match self.table.insert(keys, flow, queue, expires) {
            Ok(id) => id,
            Err(NoPlace::Full | NoPlace::Taken(_)) => return None,
        };
        self.members[member as usize].inputs[input].flows += 1;
        Some(id)
    }

    /// The flow has been used: it waits anew.
    #[inline]
    pub fn touch(&mut self, id: Id, now_ms: u64) {
        let Some(flow) = self.table.get(id) else { return };
        let timeouts = self.timeouts(flow);
        let (guaranteed, best_effort) = (flow.guaranteed(), flow.best_effort());
        let queue = if timeouts.of(guaranteed) > 0 { guaranteed } else { best_effort };
        let first = flow.member as usize * queue::COUNT;
        self.table.touch(id, first + queue, now_ms + timeouts.of(queue));
    }

    fn remove(&mut self, id: Id) {
        let Some(flow) = self.table.remove(id) else { return };
        let inputs = self.members.get_mut(flow.member as usize).map(|m| &mut m.inputs);
        if let Some(tally) = inputs.and_then(|i| i.get_mut(flow.input as usize)) {
            tally.flows = tally.flows.saturating_sub(1);
        }
        if flow.shifts != NONE {
            self.free_shifts.push(flow.shifts);
        }
    }

    /// Of all flows in such queues, the one that expires next.
    fn earliest(&self, queues: &[usize]) -> Option<(u64, Id)> {
        let all = (0..self.members.len()).flat_map(|m| queues.iter().map(move |q| m * queue::COUNT + q));
        all.filter_map(|queue| self.table.next(queue)).min_by_key(|(expires, _)| *expires)
    }

    /// Lets at most `most` flows whose guarantee is over wait for their timeouts; says how many there were.
    fn end_guarantees(&mut self, now_ms: u64, most: usize) -> usize {
        let mut ended = 0;
        while ended < most
            && let Some((expires, id)) = self.earliest(&queue::GUARANTEED)
            && expires <= now_ms
            && let Some(flow) = self.table.get(id)
        {
            let expires = self.best_effort_expiry(id, flow);
            let queue = flow.member as usize * queue::COUNT + flow.best_effort();
            self.table.touch(id, queue, expires);
            ended += 1;
        }
        ended
    }

    /// From now on all flows that have expired are gone. Their places are freed by [`Flows::sweep`].
    pub fn reap(&mut self, now_ms: u64) {
        self.horizon_ms = now_ms;
    }

    /// Frees the places of at most `most` flows that are gone. Says whether there may be more.
    pub fn sweep(&mut self, most: usize) -> bool {
        let mut done = self.end_guarantees(self.horizon_ms, most);
        while done < most
            && let Some((expires, id)) = self.earliest(&queue::BEST_EFFORT)
            && expires <= self.horizon_ms
        {
            self.remove(id);
            done += 1;
        }
        done >= most
    }

    /// Flows of all rewriters.
    pub fn len(&mut self) -> usize {
        self.sweep(usize::MAX);
        self.table.len()
    }

    pub fn capacity(&self) -> i32 {
        self.capacity
    }

    /// Sets the capacity; flows beyond it go, those without guarantee first.
    pub fn set_capacity(&mut self, capacity: i32, now_ms: u64) {
        self.capacity = capacity;
        self.table.set_limit(Self::places(capacity));
        self.reap(now_ms);
        self.sweep(usize::MAX);
        while self.table.len() > self.table.limit()
            && let Some((_, id)) =
                self.earliest(&queue::BEST_EFFORT).or_else(|| self.earliest(&queue::GUARANTEED))
        {
            self.remove(id);
        }
    }

    /// Removes all flows that `which` says.
    pub fn remove_all(&mut self, which: impl Fn(&Flow) -> bool) {
        let ids: Vec<Id> = self.table.iter().filter(|(_, f)| which(f)).map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.remove(id));
    }

    /// How far the sequence numbers of a flow have shifted, by direction.
    pub fn shifts(&mut self, id: Id) -> Option<&mut [Shifts; 2]> {
        self.shifts.get_mut(self.table.get(id)?.shifts as usize)
    }

    /// From `from` on, sequence numbers of that direction are `by` more. False if that cannot be remembered.
    pub fn shift(&mut self, id: Id, direction: usize, from: u32, by: i32) -> bool {
        let Some(flow) = self.table.get_mut(id) else { return false };
        if flow.shifts == NONE {
            flow.shifts = match self.free_shifts.pop() {
                Some(place) => place,
                None if self.shifts.len() < SHIFTED => {
                    self.shifts.push(Default::default());
                    (self.shifts.len() - 1) as u32
                }
                None => return false,
            };
            self.shifts[flow.shifts as usize] = Default::default();
        }
        self.shifts[flow.shifts as usize][direction].add(from, by)
    }

    /// Seconds until the flow expires, as Click rounds them.
    pub fn expires_in_s(&self, id: Id, flow: &Flow, now_ms: u64) -> u32 {
        let expires = self.best_effort_expiry(id, flow);
        (expires as u32).wrapping_add(500).wrapping_sub(now_ms as u32) / 1_000
    }

    /// Both directions of all flows of `member` in one part of the table (the TCP or the other one), in Click's order.
    pub fn in_order(&mut self, member: u32, is_tcp: Option<bool>) -> Vec<(Id, usize)> {
        self.sweep(usize::MAX);
        let all = self.table.iter();
        let mut flows: Vec<(u64, Id, [u32; 2])> = all
            .filter(|(_, f)| f.member == member && is_tcp.is_none_or(|tcp| tcp == f.is_tcp))
            .map(|(id, f)| (f.number, id, [f.comes(0).order(), f.comes(1).order()]))
            .collect();
        flows.sort_unstable_by_key(|f| f.0);
        let mut order = Order::new();
        for (_, id, [forward, reply]) in flows {
            let same = self.table.get(id).is_some_and(|f| f.comes(0) == f.comes(1));
            if !same {
                order.add(forward, (id, 0));
            }
            order.add(reply, (id, 1));
            order.balance();
        }
        order.buckets.into_iter().flatten().map(|(_, entry)| entry).collect()
    }

    /// Takes the flows of `old`, if the rewriters are the same ones with the same timeouts; those that `keep` refuses, and those beyond the
    /// capacity, go.
    pub fn take(&mut self, old: &mut Flows, keep: impl Fn(&Flow) -> bool, now_ms: u64) {
        let same = |a: &Member, b: &Member| {
            a.name == b.name && a.timeouts == b.timeouts && a.inputs.len() == b.inputs.len()
        };
        if self.members.len() != old.members.len()
            || !self.members.iter().zip(&old.members).all(|(a, b)| same(a, b))
        {
            return;
        }
        let capacity = self.capacity;
        std::mem::swap(self, old);
        self.remove_all(|f| !keep(f));
        if self.capacity != capacity {
            self.set_capacity(capacity, now_ms);
        }
    }
}

/// The order in which Click lists a table: that of a hash table with chains, which grows when these have two entries each.
struct Order {
    buckets: Vec<Vec<(u32, (Id, usize))>>,
    len: usize,
}

impl Order {
    fn new() -> Order {
        Order { buckets: vec![Vec::new(); 63], len: 0 }
    }

    fn add(&mut self, number: u32, entry: (Id, usize)) {
        let bucket = number as usize % self.buckets.len();
        self.buckets[bucket].insert(0, (number, entry));
        self.len += 1;
    }

    fn balance(&mut self) {
        if self.len <= 2 * self.buckets.len() {
            return;
        }
        let larger = vec![Vec::new(); 2 * self.buckets.len() + 1];
        let old = std::mem::replace(&mut self.buckets, larger);
        self.len = 0;
        old.into_iter().flatten().for_each(|(number, entry)| self.add(number, entry));
    }
}
