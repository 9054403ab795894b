//! Pieces of work, for who says what they cost under simulated time.

/// What kind of work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// A task ran. What it pulled has been charged by itself; what it pushed is yet to come.
    Task,
    /// A timer fired.
    Timer,
    /// Packets were pushed to the element.
    Push,
    /// Packets were pulled from the element; none is a vain attempt.
    Pull,
    /// A device was polled for packets that go on at once; none is an empty poll.
    Receive,
    /// An interrupt handler took packets from a device for the backlog, or dropped them because that was full.
    Enqueue,
    /// Packets from the backlog entered the graph.
    Forward,
}

/// A piece of work of one element.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// The element's name.
    pub element: &'a str,
    /// Its class.
    pub class: &'static str,
    /// What it did.
    pub work: Work,
    /// With how many packets.
    pub packets: usize,
}

/// Nanoseconds that a piece of work takes.
pub(crate) type Costs = Box<dyn FnMut(&Visit<'_>) -> u64 + Send>;
