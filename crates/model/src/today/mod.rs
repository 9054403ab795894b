//! Machines of today: several cores, cards on PCI Express that write into the cache, and what one more of anything buys.
//!
//! A [`Plan`](machine::Plan) is a file: a machine, its software and its traffic. The [router](router) is the simulation: each
//! core has a ring for reception and one for transmission of each card, cards spread flows over the rings, and what cards do
//! goes over their links to cache and memory. [`what_if`] runs a plan and its neighbours.
//!
//! A core takes packets in turns, as the live router and the kernel do; what a packet takes of it is a number of the file, and
//! what its lines take is simulated. Or it runs a [graph] of the live router's elements. Not modelled: the engines inside of
//! cards, beside their memory, links and rings; what one core's writes take from another's cache; several sockets.

mod card;
mod check;
mod cores;
pub mod graph;
pub mod machine;
pub mod router;
#[cfg(test)]
mod tests;
pub mod what_if;

use causeway_results::traffic::nth as mix;
