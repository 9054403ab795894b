//! A graph of the live router on a machine of today: the engine's own scheduler and workers, in simulated time.
//!
//! A [`Configuration`] is a graph and what its elements cost. Where a plan has one, the cores of its machine do not take turns
//! of a mechanism: each is a worker of the engine ([`causeway_engine::simulation`]), with the elements, tasks, timers,
//! notifiers and reception mechanisms that the live router has, and packets stay together in batches as they do there. What
//! a piece of a worker's work takes is a number of a file, by the element's class; the waits for lines of frames, copies and
//! tables are simulated as for all that a machine of today does.
//!
//! | where | what |
//! | --- | --- |
//! | [`costs`] | what element classes cost |
//! | [`configuration`] | a graph that can be modelled: its ports are the machine's |
//! | [`frames`] | what frames hold: the packets that come in |
//! | [`ports`] | the ports of a graph, over the rings of the modelled cards |
//! | [`desk`] | what workers, ports and cards leave for each other between two pieces of work |
//! | [`work`] | a graph at work: which worker has what to do |
//!
//! A piece of work is done at once, and then takes its time: what it gives to a card is given at its end, and what it gives to
//! another worker is there from its begin on. So a packet may be on another worker earlier than it could, by a piece at most.

pub mod configuration;
pub mod costs;
mod desk;
mod frames;
mod ports;
pub mod report;
#[cfg(test)]
mod tests;
mod work;

pub use configuration::Configuration;
pub(super) use desk::{Account, Offered, Ready, Taken};
pub(super) use frames::{Networks, Reply};
pub use work::ElementTime;
pub(super) use work::{Graph, when_ps};
