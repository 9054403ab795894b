//! RawSocket.

use super::descriptors::{Descriptors, Place};
use super::failed;
use super::inlet::{Inlet, Kind};
use super::outlet::{Outlet, Peer, Reason, Sent};
use super::socket::send_to;
use super::socket_args::{TcpPort, UdpPort, descriptors, open, received};
use crate::devices::mark_ip;
use causeway_engine::RECEIVED;
use causeway_engine::Scope;
use causeway_engine::prelude::*;
use causeway_engine::value::Value;
use causeway_lang::addresses;
use causeway_packet::Receiver;
use causeway_packet::wire::{Ipv4, ipv4, protocol};
use rustix::net::addr::SocketAddrArg;
use rustix::net::{AddressFamily, Protocol, RawProtocol, SocketType, ipproto, sockopt};
use std::net::SocketAddrV4;

pub(crate) static SPEC: Spec = Spec {
    name: "RawSocket",
    category: "sockets",
    summary: "sends and receives IPv4 packets by a raw socket",
    ports: "0-1/0-1",
    processing: "l/h",
    flow: "x/y",
    doc: "What is pulled are IPv4 packets with their headers, which the kernel sends by its routes. What is pushed out are the \
          packets of the IP protocol TYPE that the kernel has received for this machine, which gets them as well; their headers are marked. \
          With PORT, a port of TCP or UDP is taken, so that the kernel does not refuse what comes to it; packets to \
          other ports come as well.\n\n\
          Nothing here waits for the kernel: when it has no room a packet waits, and no others are pulled.",
    args: &[
        required("TYPE", "IP protocol", "protocol of the packets received, by name or number"),
        optional("PORT", "port", "the port to take"),
        keyword("SNAPLEN", "bytes", "longest packet received, at most a frame; default 2048"),
        keyword("HEADROOM", "bytes", "room in front of packets, as far as there is; default 128"),
    ],
    handlers: handlers!(TASK),
    drops: Reason::DOCS,
    example: "RawSocket(UDP, 53) -> IPPrint(in) -> Discard;",
    see: &["Socket", "KernelTun"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

/// A protocol, by name or number.
struct Number(u8);

impl Value for Number {
    fn parse(text: &str, _: &Scope<'_>) -> Result<Self, Error> {
        addresses::protocol(text).map(Number).map_err(Error::caused_by)
    }

    fn placeholder() -> Self {
        Number(0)
    }
}

struct RawSocket {
    protocol: u8,
    port: u16,
    receives: bool,
    place: Place,
    inlet: Inlet,
    outlet: Outlet,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let Number(protocol) = conf.required("TYPE");
    let port = match protocol {
        protocol::TCP => conf.optional("PORT", TcpPort(0)).0,
        protocol::UDP => conf.optional("PORT", UdpPort(0)).0,
        _ => conf.optional("PORT", 0),
    };
    let (snaplen, headroom) =
        (conf.keyword("SNAPLEN", 2_048), conf.keyword("HEADROOM", Packet::HEADROOM as u32));
    conf.finish()?;
    let place = Place::of(conf, &format!("{protocol} {port}"));
    let inlet = Inlet::new(Kind::Datagrams { peer: None, own: None }, snaplen, headroom);
    Ok(Box::new(RawSocket {
        protocol,
        port,
        receives: conf.n_outputs() > 0,
        place,
        inlet,
        outlet: Outlet::new(),
    }))
}

impl RawSocket {
    fn open(&self) -> Result<Descriptors, Error> {
        let number = RawProtocol::new(self.protocol.into()).map(Protocol::from_raw);
        let receives = open(AddressFamily::INET, SocketType::RAW, number)?;
        // One of this protocol expects headers in what it sends.
        let sends = open(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW))?;
        sockopt::set_socket_broadcast(&sends, true).map_err(failed("SO_BROADCAST"))?;
        let mut all = descriptors(receives)?;
        all.sender = Some(sends);
        let taken = match self.protocol {
            protocol::TCP if self.port > 0 => Some((SocketType::STREAM, ipproto::TCP)),
            protocol::UDP if self.port > 0 => Some((SocketType::DGRAM, ipproto::UDP)),
            _ => None,
        };
        if let Some((kind, protocol)) = taken {
            let socket = open(AddressFamily::INET, kind, Some(protocol))?;
            let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, self.port);
            rustix::net::bind(&socket, &address).map_err(failed("bind"))?;
            all.taken = Some(socket);
        }
        Ok(all)
    }
}

/// Sends a packet where its header says.
fn send(inlet: &Inlet, packet: &Packet) -> Sent {
    let Ok(ip) = Ipv4::new_quoted(packet.data()) else { return Sent::Never(Reason::Runt) };
    let socket = inlet.descriptors.as_ref().and_then(|d| d.sender.as_ref());
    let to = SocketAddrV4::new(ip.dst(), 0).as_any();
    socket.map_or(Sent::Never(Reason::Refused), |socket| send_to(socket, packet, &to))
}

impl Element for RawSocket {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.inlet.descriptors = Some(self.place.open(|| self.open())?);
        self.outlet.start(cx);
        Ok(())
    }

    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        debug_assert_eq!(port, RECEIVED, "its input pulls");
        let now_ns = cx.now_ns();
        for packet in batch.iter_mut() {
            received(packet, true, now_ns);
            mark_ip(packet);
        }
        batch.filter_map(|packet| {
            if packet.network_header().is_some_and(|h| h.len() >= ipv4::HEADER_LEN) {
                return Some(packet);
            }
            cx.drop(Reason::Runt, packet);
            None
        });
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let inlet = &self.inlet;
        self.outlet.run(Peer::There, |packet| send(inlet, packet), cx)
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<RawSocket>() {
            self.inlet.go_on(&mut old.inlet);
            self.outlet.go_on(&mut old.outlet, cx);
        }
    }

    fn held(&self) -> usize {
        self.outlet.held()
    }

    fn receiver(&mut self) -> Option<&mut dyn Receiver> {
        self.receives.then_some(&mut self.inlet)
    }
}
