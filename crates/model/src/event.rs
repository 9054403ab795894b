//! The queue of events: what happens when, in an order that is the same in every run.
//!
//! Events are small values that say what happens; whoever takes them from the queue does it. Two events of the same time
//! happen in the order in which they were scheduled. Nothing is ever taken back: who changed his mind about an event
//! numbers his intentions, and lets an event with an old number pass.

/// Picoseconds: a bit of a link of 100 Gbit/s takes ten, and 2^64 of them are 213 days.
pub type Time = u64;

/// Picoseconds in a nanosecond.
pub const NANOSECOND: Time = 1_000;
/// Picoseconds in a microsecond.
pub const MICROSECOND: Time = 1_000_000;
/// Picoseconds in a millisecond.
pub const MILLISECOND: Time = 1_000_000_000;
/// Picoseconds in a second.
pub const SECOND: Time = 1_000_000_000_000;

/// Children of a node of the heap: with four the heap is half as deep as with two, and they are neighbours in memory.
const CHILDREN: usize = 4;

/// Events that are yet to happen.
#[derive(Clone, Debug)]
pub struct Queue<E> {
    /// A heap: no entry is later than one of its children.
    heap: Vec<Entry<E>>,
    now_ps: Time,
    scheduled: u64,
    happened: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    /// The time above, the number below, so that one comparison orders both.
    key: u128,
    event: E,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Queue { heap: Vec::new(), now_ps: 0, scheduled: 0, happened: 0 }
    }
}

impl<E: Copy> Queue<E> {
    /// A queue without events, at time 0.
    pub fn new() -> Self {
        Queue::default()
    }

    /// The time of the last event that happened, picoseconds.
    pub fn now_ps(&self) -> Time {
        self.now_ps
    }

    /// Events that happened.
    pub fn happened(&self) -> u64 {
        self.happened
    }

    /// Events that are yet to happen.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is to happen any more.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// When the next event happens.
    pub fn next_ps(&self) -> Option<Time> {
        self.heap.first().map(|entry| (entry.key >> 64) as Time)
    }

    /// Has `event` happen at `when_ps`; a time that has passed is now.
    pub fn at(&mut self, when_ps: Time, event: E) {
        let when_ps = when_ps.max(self.now_ps);
        let key = u128::from(when_ps) << 64 | u128::from(self.scheduled);
        self.scheduled += 1;
        self.heap.push(Entry { key, event });
        self.rise(self.heap.len() - 1);
    }

    /// Has `event` happen in `delay_ps`.
    pub fn after(&mut self, delay_ps: Time, event: E) {
        self.at(self.now_ps.saturating_add(delay_ps), event);
    }

    /// Takes the next event if it happens before `until_ps`; it is then its time.
    pub fn before(&mut self, until_ps: Time) -> Option<E> {
        (self.next_ps()? < until_ps).then(|| self.pop())?
    }

    /// Takes the next event; it is then its time.
    pub fn pop(&mut self) -> Option<E> {
        let last = self.heap.pop()?;
        let first = match self.heap.first_mut() {
            Some(root) => std::mem::replace(root, last),
            None => last,
        };
        self.sink();
        self.now_ps = (first.key >> 64) as Time;
        self.happened += 1;
        Some(first.event)
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent].key <= entry.key {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = entry;
    }

    /// Lets the root sink to its place: down to a leaf first and up again from there, since it was a leaf before and is
    /// likely to be late.
    fn sink(&mut self) {
        let Some(&entry) = self.heap.first() else { return };
        let mut place = 0;
        while let Some(least) = self.least_child(place) {
            self.heap[place] = self.heap[least];
            place = least;
        }
        self.heap[place] = entry;
        self.rise(place);
    }

    fn least_child(&self, place: usize) -> Option<usize> {
        let first = place * CHILDREN + 1;
        if let Some([a, b, c, d]) = self.heap.get(first..first + CHILDREN) {
            // Two rounds, which the compiler makes without branches.
            let (ab, left) = if b.key < a.key { (b.key, 1) } else { (a.key, 0) };
            let (cd, right) = if d.key < c.key { (d.key, 3) } else { (c.key, 2) };
            return Some(first + if cd < ab { right } else { left });
        }
        (first..self.heap.len()).min_by_key(|&child| self.heap[child].key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_of_the_same_time_happen_in_the_order_in_which_they_were_scheduled() {
        let mut queue = Queue::new();
        for (when, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b'), (9, 'e')] {
            queue.at(when, event);
        }
        assert_eq!((queue.before(3), queue.before(4)), (None, Some('a')));
        queue.at(1, 'x');
        assert_eq!(queue.now_ps(), 3, "no event happens in the past");
        let rest: Vec<char> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(
            (rest.as_slice(), queue.now_ps(), queue.happened()),
            (&['b', 'x', 'c', 'd', 'e'][..], 9, 6)
        );
    }

    proptest! {
        /// As a list that is sorted before each event.
        #[test]
        fn the_next_event_is_that_of_a_sorted_list(steps in proptest::collection::vec(prop_oneof![
            2 => (0u64..40).prop_map(Some), 1 => Just(None)], 0..400)) {
            let (mut queue, mut list) = (Queue::new(), Vec::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Some(delay) => {
                        list.push((queue.now_ps() + delay, number));
                        queue.after(delay, number);
                    }
                    None => {
                        list.sort_unstable();
                        let next = (!list.is_empty()).then(|| list.remove(0));
                        prop_assert_eq!(queue.next_ps(), next.map(|(when, _)| when));
                        prop_assert_eq!(queue.pop(), next.map(|(_, number)| number));
                    }
                }
                prop_assert_eq!(queue.len(), list.len());
            }
        }
    }
}
