//! Views of packet headers: check once, then read and write fields by name.
//!
//! A view such as [`Ipv4<T>`] wraps a buffer (`&[u8]`, `&mut [u8]`, or anything that dereferences to bytes by
//! `AsRef`). `new_checked` looks at every length the format states, once, and says with [`Malformed`] what is
//! wrong. After that a getter is a load at a constant offset of a fixed-size array: the only check left is one
//! comparison of the buffer's length with the header's, which the optimiser drops wherever it still sees the
//! check. Where each field lies is in the `field` module beside the view, as constant ranges.
//!
//! # Invariants
//!
//! * **No panic on any bytes**, whether or not they were checked, and whatever is written through the setters
//!   afterwards. A view whose buffer is shorter than its header reads zeros and ignores writes; a length field
//!   that points outside the buffer gives an empty slice.
//! * No allocation, no `unsafe`, no state: a view is as large as its buffer reference.
//! * Numbers are in host order, lengths and offsets in bytes, addresses are [`MacAddr`],
//!   [`Ipv4Addr`](core::net::Ipv4Addr) and [`Ipv6Addr`](core::net::Ipv6Addr).
//!
//! # Whole and quoted packets
//!
//! `new_checked` demands the whole packet. A packet quoted in an ICMP error, or the first fragment of a
//! datagram, is cut short with its length fields intact: for those, [`Ipv4`], [`Ipv6`] and [`Udp`] have
//! `new_quoted`, which demands the header only.
//!
//! # Building headers
//!
//! Structures of owned values ([`EthernetHeader`], [`Ipv4Header`], [`Ipv6Header`], [`UdpHeader`], [`ArpPacket`])
//! write themselves with `emit` into a fixed-size array, so there is no length to get wrong. Whole packets are
//! made by [`Icmpv4Error`], [`Icmpv6Error`], [`ndisc::NeighborMessage`] and [`udp::encapsulate_v4`].

#[macro_use]
mod header;

pub mod arp;
pub mod ethernet;
pub mod icmp_error;
pub mod icmpv4;
pub mod icmpv6;
pub mod ipv4;
pub mod ipv4_options;
pub mod ipv6;
pub mod ipv6_ext;
mod malformed;
pub mod ndisc;
pub mod protocol;
pub mod tcp;
pub mod tester;
pub mod udp;
pub mod vlan;

pub use arp::{Arp, ArpPacket};
pub use ethernet::{Ethernet, EthernetHeader, MacAddr};
pub use header::Value;
pub use icmp_error::{Icmpv4Error, Icmpv6Error};
pub use icmpv4::Icmpv4;
pub use icmpv6::Icmpv6;
pub use ipv4::{Ipv4, Ipv4Header};
pub use ipv6::{Ipv6, Ipv6Header};
pub use malformed::Malformed;
pub use tcp::Tcp;
pub use udp::{Udp, UdpHeader};
pub use vlan::Vlan;
