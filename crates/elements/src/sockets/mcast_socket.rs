//! McastSocket.

use super::descriptors::{Descriptors, Place};
use super::failed;
use super::inlet::{Inlet, Kind};
use super::outlet::{Outlet, Peer, Reason, Sent};
use super::socket::send_to;
use super::socket_args::{Common, UdpPort, descriptors, open, received};
use causeway_engine::RECEIVED;
use causeway_engine::prelude::*;
use causeway_packet::Receiver;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{AddressFamily, SocketType, getsockname, ipproto, sockopt};
use std::net::SocketAddrV4;

pub(crate) static SPEC: Spec = Spec {
    name: "McastSocket",
    category: "sockets",
    summary: "sends to a multicast group by UDP, and receives what others send there",
    ports: "0-1/0-1",
    processing: "a/h",
    flow: "x/y",
    doc: "What is pushed to the input, or pulled by it, is sent to the group MCASTIP and port MCASTPORT in a UDP datagram; what \
          anybody sends there is pushed out. With SOURCEIP that is the source, and the interface is the one with that address; \
          its own datagrams are not received then. Else the routing table says which interface it is, and datagrams that the \
          element sent come back to it unless LOOP is false. Frames that are sent this way make an Ethernet of any number of \
          routers and virtual machines.\n\n\
          Nothing here waits for the kernel: when it has no room, up to 256 pushed packets wait and those behind them are dropped; \
          a pulled one waits, and no others are pulled. A hot swap goes on with the sockets, if the element has the same name and addresses.",
    args: &[
        required("MCASTIP", "IP address", "the group"),
        required("MCASTPORT", "port", "the group's port, by name or number"),
        optional("SOURCEIP", "IP address", "source, and address of the interface; default as routes say"),
        optional("SOURCEPORT", "port", "source port; default any"),
        keyword("LOOP", "boolean", "whether this machine receives what is sent; default true"),
        keyword("SNAPLEN", "bytes", "longest packet received, at most a frame; default 2048"),
        keyword("HEADROOM", "bytes", "room in front of packets, as far as there is; default 128"),
        keyword("TIMESTAMP", "boolean", "whether packets get the time of their reception; default true"),
        keyword("RCVBUF", "bytes", "of the kernel's receive buffer; default the kernel's"),
        keyword("SNDBUF", "bytes", "of the kernel's send buffer; default the kernel's"),
    ],
    handlers: handlers!(TASK),
    drops: Reason::DOCS,
    example: "link :: McastSocket(239.0.0.0, 1234) -> Print(in) -> Discard; FromDevice(eth0) -> link;",
    see: &["Socket", "RawSocket"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

struct McastSocket {
    common: Common,
    group: SocketAddrV4,
    source: SocketAddrV4,
    loops: bool,
    receives: bool,
    place: Place,
    inlet: Inlet,
    outlet: Outlet,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let address = conf.required("MCASTIP");
    let group = SocketAddrV4::new(address, conf.required::<UdpPort>("MCASTPORT").0);
    let address = conf.optional("SOURCEIP", Ipv4Addr::UNSPECIFIED);
    let source = SocketAddrV4::new(address, conf.optional("SOURCEPORT", UdpPort(0)).0);
    let loops = conf.keyword("LOOP", true);
    let common = Common::configure(conf);
    conf.finish()?;
    let place = Place::of(conf, &format!("{group} {source} {loops}"));
    let inlet = Inlet::new(Kind::Datagrams { peer: None, own: None }, common.snaplen, common.headroom);
    let receives = conf.n_outputs() > 0;
    Ok(Box::new(McastSocket { common, group, source, loops, receives, place, inlet, outlet: Outlet::new() }))
}

impl McastSocket {
    fn open(&self) -> Result<Descriptors, Error> {
        let [receives, sends] =
            [(); 2].map(|()| open(AddressFamily::INET, SocketType::DGRAM, Some(ipproto::UDP)));
        let (receives, sends) = (receives?, sends?);
        self.common.set_buffers(&receives, &sends)?;
        // Several may listen to a group.
        sockopt::set_socket_reuseaddr(&receives, true).map_err(failed("setsockopt(SO_REUSEADDR)"))?;
        rustix::net::bind(&receives, &self.group).map_err(failed("bind"))?;
        let source = self.source.ip();
        if !source.is_unspecified() {
            rustix::net::bind(&sends, &self.source).map_err(failed("bind"))?;
            sockopt::set_ip_multicast_if(&sends, source).map_err(failed("setsockopt(IP_MULTICAST_IF)"))?;
        }
        let join = sockopt::set_ip_add_membership(&receives, self.group.ip(), source);
        join.map_err(failed("setsockopt(IP_ADD_MEMBERSHIP)"))?;
        let loops = sockopt::set_ip_multicast_loop(&sends, self.loops);
        loops.map_err(failed("setsockopt(IP_MULTICAST_LOOP)"))?;
        let mut both = descriptors(receives)?;
        both.sender = Some(sends);
        Ok(both)
    }
}

/// Sends a packet to the group.
fn send(inlet: &Inlet, group: SocketAddrV4, packet: &Packet) -> Sent {
    let socket = inlet.descriptors.as_ref().and_then(|d| d.sender.as_ref());
    socket.map_or(Sent::Never(Reason::Refused), |socket| send_to(socket, packet, &group.as_any()))
}

impl Element for McastSocket {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let both = self.place.open(|| self.open())?;
        if let (Some(sends), false) = (&both.sender, self.source.ip().is_unspecified()) {
            let own = getsockname(sends).map_err(failed("getsockname"))?;
            self.inlet.kind = Kind::Datagrams { peer: None, own: Some(own) };
        }
        self.inlet.descriptors = Some(both);
        self.outlet.start(cx);
        Ok(())
    }

    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if port == RECEIVED {
            let (timestamp, now_ns) = (self.common.timestamp, cx.now_ns());
            batch.iter_mut().for_each(|packet| received(packet, timestamp, now_ns));
            return;
        }
        let (inlet, group) = (&self.inlet, self.group);
        self.outlet.push(batch, |packet| send(inlet, group, packet), cx);
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let (inlet, group) = (&self.inlet, self.group);
        self.outlet.run(Peer::There, |packet| send(inlet, group, packet), cx)
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<McastSocket>() {
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
