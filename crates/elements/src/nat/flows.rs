//! The flows that rewriters know: one table for those that share a capacity.

use super::ended::{Ended, Which};
pub(super) use super::flow::{Flow, Timeouts};
use super::flow::{NONE, queue};
use super::flow_id::FlowId;
use super::order::Growth;
use super::sequence::Shifts;
use super::shown::Shown;
use crate::flow_table::{FlowTable, Id, MOST, NoPlace, ROOM};
use causeway_engine::pieces::PIECE;

/// What Click shows as the capacity where nobody sets one.
pub(super) const UNLIMITED: i32 = i32::MAX;
/// TCP connections whose sequence numbers may be shifted at a time.
const SHIFTED: usize = 1_024;

/// Places of flows that are gone, which are freed at most before flows are counted.
const SWEPT: usize = 1_024;
/// Places that are looked at for ended flows when another needs one: so many lie one after another in memory.
const SEARCHED: usize = 1_024;

/// Live flows of one input, new ones that failed, and those that had to go for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub flows: u32,
    pub failures: u32,
    pub evicted: u32,
}

/// One rewriter, as its flows' table sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub name: String,
    pub timeouts: Timeouts,
    pub inputs: Vec<Tally>,
    /// What each input does, as text.
    pub specs: Vec<String>,
    pub outputs: usize,
}

impl Member {
    /// Whether it is the same rewriter with the same timeouts, in the next graph.
    fn goes_on_from(&self, old: &Member) -> bool {
        self.name == old.name && self.timeouts == old.timeouts && self.inputs.len() == old.inputs.len()
    }
}

/// The flows of one rewriter, or of several that share a capacity.
pub(super) struct Flows {
    table: FlowTable<Flow, 2>,
    members: Vec<Member>,
    /// Of each part of the table.
    growths: Vec<Growth>,
    capacity: i32,
    /// Flows that expired at or before this are gone, though some may still have their places.
    horizon_ms: u64,
    /// Flows that are gone as well.
    ended: Ended,
    number: u64,
    shifts: Vec<[Shifts; 2]>,
    free_shifts: Vec<u32>,
}

/// The part of the table that a rewriter's flows are in; UDP flows of one that knows both are in another.
#[inline]
pub(super) fn space(member: u32, second: bool) -> u32 {
    member << 1 | u32::from(second)
}

/// Most flows of a capacity.
fn places(capacity: i32) -> usize {
    if capacity == UNLIMITED { ROOM } else { capacity.max(0) as usize }
}

/// How many entries a flow has: one key may serve both directions.
fn entries(keys: [u128; 2]) -> usize {
    if keys[0] == keys[1] { 1 } else { 2 }
}

impl Flows {
    /// An empty table for `capacity` flows.
    pub fn new(capacity: i32) -> Flows {
        Flows {
            table: FlowTable::new(places(capacity), 0),
            members: Vec::new(),
            growths: Vec::new(),
            capacity,
            horizon_ms: 0,
            ended: Ended::default(),
            number: 0,
            shifts: Vec::with_capacity(SHIFTED),
            free_shifts: Vec::with_capacity(SHIFTED),
        }
    }

    /// Most flows.
    fn places(&self) -> usize {
        places(self.capacity).min(MOST)
    }

    /// Adds a rewriter; answers its number.
    pub fn join(&mut self, member: Member) -> u32 {
        self.members.push(member);
        self.growths.extend([Growth::new(), Growth::new()]);
        self.table.add_queues(self.members.len() * queue::COUNT);
        (self.members.len() - 1) as u32
    }

    /// The rewriter with this number.
    pub fn member(&mut self, member: u32) -> Option<&mut Member> {
        self.members.get_mut(member as usize)
    }

    /// Counts a failure of an input.
    pub fn failed(&mut self, member: u32, input: usize) {
        if let Some(tally) = self.tally(member, input) {
            tally.failures += 1;
        }
    }

    fn tally(&mut self, member: u32, input: usize) -> Option<&mut Tally> {
        self.members.get_mut(member as usize)?.inputs.get_mut(input)
    }

    /// Removes a flow before its time.
    fn evict(&mut self, id: Id) {
        let flow = self.table.get(id).filter(|flow| !self.ended.has(flow));
        let of = flow.map(|flow| (flow.member, usize::from(flow.input)));
        if let Some(tally) = of.and_then(|(member, input)| self.tally(member, input)) {
            tally.evicted += 1;
        }
        self.remove(id);
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
        let flow = || self.table.get(id);
        expires <= self.horizon_ms && flow().is_none_or(|f| self.best_effort_expiry(id, f) <= self.horizon_ms)
            || !self.ended.is_empty() && flow().is_none_or(|f| self.ended.has(f))
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

    /// Whether it pays to ask for flows in advance.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.table.is_long()
    }

    /// Asks for where the flow is to be found whose packets come as `from`; the answer is for [`Flows::prefetch_flow`].
    #[inline]
    pub fn prefetch_word(&self, space: u32, from: FlowId) -> usize {
        self.table.prefetch_word(from.key(space))
    }

    /// Asks for the flow.
    #[inline]
    pub fn prefetch_flow(&self, word: usize) {
        self.table.prefetch_flow(word);
    }

    #[inline]
    pub fn get(&self, id: Id) -> Option<&Flow> {
        self.table.get(id)
    }

    #[inline]
    pub fn get_mut(&mut self, id: Id) -> Option<&mut Flow> {
        self.table.get_mut(id)
    }

    /// Adds a flow of an input of `member` in part `space`. `None` if there is no place for it ([`Flows::make_room`]).
    pub fn insert(
        &mut self,
        mut flow: Flow,
        member: u32,
        input: usize,
        space: u32,
        now_ms: u64,
    ) -> Option<Id> {
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
        if self.table.len() >= self.places() && !self.make_room(queue, expires, now_ms) {
            return None;
        }
        let queue = member as usize * queue::COUNT + queue;
        let id = match self.table.insert(keys, flow, queue, expires) {
            Ok(id) => id,
            Err(NoPlace::Full | NoPlace::Taken(_)) => return None,
        };
        self.members[member as usize].inputs[input].flows += 1;
        self.growths[space as usize].came(self.number - 1, entries(keys));
        Some(id)
    }

    /// Frees a place for a flow that is to wait in `queue` until `expires`: that of one that has expired or was ended; if there
    /// is none, that of the one without guarantee that expires next, if that is before the new one or that has a guarantee. While
    /// some that were ended may still have places no other flow goes.
    fn make_room(&mut self, queue: usize, expires: u64, now_ms: u64) -> bool {
        self.end_guarantees(now_ms, SWEPT);
        let first = self.fronts(&queue::BEST_EFFORT).find(|&(expires, _)| expires <= now_ms);
        let gone = || self.fronts(&queue::GUARANTEED).chain(self.fronts(&queue::BEST_EFFORT));
        if let Some((_, id)) = first.or_else(|| gone().find(|&(_, id)| self.is_gone(id))) {
            self.remove(id);
            return true;
        }
        let before = self.table.len();
        self.walk_ended(SEARCHED);
        if self.table.len() < before || !self.ended.is_empty() {
            return self.table.len() < before;
        }
        let Some((earliest, victim)) = self.earliest(&queue::BEST_EFFORT) else { return false };
        let goes = queue::GUARANTEED.contains(&queue) || expires >= earliest;
        if goes {
            self.evict(victim);
        }
        goes
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
        let keys = self.table.keys(id);
        let Some(flow) = self.table.remove(id) else { return };
        self.growths[(keys[0] >> 96) as usize].went(entries(keys));
        if let Some(tally) = self.tally(flow.member, usize::from(flow.input)) {
            tally.flows = tally.flows.saturating_sub(1);
        }
        if flow.shifts != NONE {
            self.free_shifts.push(flow.shifts);
        }
    }

    /// Of all flows in such queues, the one that expires next.
    fn earliest(&self, queues: &[usize]) -> Option<(u64, Id)> {
        self.fronts(queues).min_by_key(|(expires, _)| *expires)
    }

    /// Of each of such queues of all rewriters, the flow that expires next.
    fn fronts(&self, queues: &[usize]) -> impl Iterator<Item = (u64, Id)> {
        let all = (0..self.members.len()).flat_map(move |m| queues.iter().map(move |q| m * queue::COUNT + q));
        all.filter_map(|queue| self.table.next(queue))
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

    /// Frees the places of flows that are gone, then those of flows beyond the capacity, of these without guarantee first: at
    /// most `most`; and lets as many flows move after the capacity has grown. Says whether there may be more.
    pub fn sweep(&mut self, most: usize) -> bool {
        let mut done = self.end_guarantees(self.horizon_ms, most);
        while done < most
            && let Some((expires, id)) = self.earliest(&queue::BEST_EFFORT)
            && expires <= self.horizon_ms
        {
            self.remove(id);
            done += 1;
        }
        done += self.walk_ended(most - done);
        while done < most
            && self.table.len() > self.places()
            && let Some((_, id)) =
                self.earliest(&queue::BEST_EFFORT).or_else(|| self.earliest(&queue::GUARANTEED))
        {
            self.evict(id);
            done += 1;
        }
        if self.table.len() <= self.places() && self.table.limit() > self.places() {
            self.table.set_limit(self.places());
        }
        self.table.go_on(most) || done >= most
    }

    /// Looks at the next `most` places for flows that were ended. Says how many places there were.
    fn walk_ended(&mut self, most: usize) -> usize {
        let mut looked = 0;
        while looked < most
            && let Some(from) = self.ended.next()
        {
            let mut place = from;
            let (flows, _) = self.table.walk(&mut place, (most - looked).min(self.ended.left()));
            let ids: Vec<Id> = flows.filter(|(_, flow)| self.ended.has(flow)).map(|(id, _)| id).collect();
            ids.into_iter().for_each(|id| self.remove(id));
            self.ended.walked(place - from, place);
            looked += place - from;
        }
        looked
    }

    /// Flows of all rewriters. Of very many that went at once some may still count.
    pub fn len(&mut self) -> usize {
        self.sweep(SWEPT);
        self.table.len()
    }

    pub fn capacity(&self) -> i32 {
        self.capacity
    }

    /// Sets the capacity. Flows beyond it go, the first ones now and the others as [`Flows::sweep`] comes to them.
    pub fn set_capacity(&mut self, capacity: i32, now_ms: u64) {
        self.capacity = capacity;
        if self.places() > self.table.limit() {
            self.table.set_limit(self.places());
        }
        self.reap(now_ms);
        self.sweep(SWEPT);
    }

    /// Ends flows: they are gone from now on. Their places are freed by [`Flows::sweep`].
    pub fn end(&mut self, which: Which) {
        self.ended.add(self.number, which, self.table.spread());
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
    fn expires_in_s(&self, id: Id, flow: &Flow, now_ms: u64) -> u32 {
        let expires = self.best_effort_expiry(id, flow);
        (expires as u32).wrapping_add(500).wrapping_sub(now_ms as u32) / 1_000
    }

    /// Copies the flows in one part of the table, some at a time from `place` on; says whether there are more.
    pub fn copy(&self, space: u32, place: &mut usize, now_ms: u64, to: &mut Vec<Shown>) -> bool {
        let (flows, more) = self.table.walk(place, PIECE);
        let own =
            flows.filter(|(id, _)| (self.table.keys(*id)[0] >> 96) as u32 == space && !self.is_gone(*id));
        to.extend(own.map(|(id, flow)| Shown {
            shifted:
                self.shifts.get(flow.shifts as usize).map_or([0; 2], |s| s.each_ref().map(Shifts::latest)),
            expires_s: self.expires_in_s(id, flow, now_ms),
            flow: flow.clone(),
        }));
        more
    }

    /// The flows, by number, whose coming would have made Click's table of a part grow.
    pub fn grown(&self, space: u32) -> &[u64] {
        self.growths.get(space as usize).map_or(&[], |growth| &growth.at)
    }

    /// Takes the flows of `old`, if the rewriters are the same ones with the same timeouts; those of inputs that do something else,
    /// those with an output that is no more, and those beyond the capacity, go.
    pub fn take(&mut self, old: &mut Flows, now_ms: u64) {
        let both = || self.members.iter().zip(&old.members);
        if self.members.len() != old.members.len() || !both().all(|(new, old)| new.goes_on_from(old)) {
            return;
        }
        let capacity = self.capacity;
        std::mem::swap(self, old);
        for (member, new) in (0..).zip(&old.members) {
            let Some(own) = self.member(member) else { continue };
            let kept: Vec<bool> = new.specs.iter().zip(&own.specs).map(|(new, old)| new == old).collect();
            let changed = kept.contains(&false) || new.outputs < own.outputs;
            (own.specs, own.outputs) = (new.specs.clone(), new.outputs);
            if changed {
                self.end(Which::But { member, kept, outputs: new.outputs });
            }
        }
        if self.capacity != capacity {
            self.set_capacity(capacity, now_ms);
        }
    }
}

#[cfg(test)]
impl Flows {
    /// A table of one rewriter with one input, for tests.
    pub(super) fn of_one(capacity: i32, timeouts: Timeouts) -> Flows {
        let mut flows = Flows::new(capacity);
        flows.join(Member {
            name: "rw".to_owned(),
            timeouts,
            inputs: vec![Tally::default()],
            specs: vec!["<keep>".to_owned()],
            outputs: 2,
        });
        flows
    }
}

#[cfg(test)]
mod tests;
