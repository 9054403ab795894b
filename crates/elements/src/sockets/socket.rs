//! Socket.

use super::descriptors::{Descriptors, Place};
use super::inlet::{Inlet, Kind};
use super::outlet::{self, Outlet, Reason, Sent};
use super::socket_args::{Common, TcpPort, UdpPort, connect, descriptors, listen, open, received};
use super::stream::Stream;
use super::{failed, text};
use crate::iproute;
use crate::printing::to_stderr;
use causeway_engine::prelude::*;
use causeway_engine::value::{Filename, Raw};
use causeway_engine::{Peer, RECEIVED};
use causeway_lang::args::{keyword as keyword_of, split_args};
use causeway_packet::Receiver;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{AddressFamily, SendFlags, SocketAddrAny, SocketAddrUnix, SocketType, ipproto, sockopt};
use std::net::SocketAddrV4;
use std::path::PathBuf;

pub(crate) static SPEC: Spec = Spec {
    name: "Socket",
    category: "sockets",
    summary: "sends and receives by a socket of the kernel's",
    ports: "0-1/0-1",
    processing: "a/h",
    flow: "x/y",
    doc: "What is pushed to the input, or pulled by it, is sent; what is received is pushed out. TYPE is `TCP` or `UDP`, with an \
          IPv4 address and a port, or `UNIX` or `UNIX_DGRAM`, with the name of a file. A client connects to that address; its own \
          may be given behind it. A server binds to that address. One of TCP or UNIX serves one connection after the other, and what it sends \
          goes to whoever has connected; one of datagrams sends to who sent it the last one. It is a client with CLIENT, with an address of \
          its own, or without an output, and a server otherwise. A client of UDP to 0.0.0.0 sends each packet to its destination \
          annotation.\n\n\
          Streams have no packets: what comes out are the pieces in which bytes arrived. Nothing here waits for the kernel: when it has no room, up to 256 \
          pushed packets wait and those behind them are dropped (Click stops the router until there is room); a pulled one waits, \
          and no others are pulled. What is pushed before anybody has connected is dropped, and nothing is pulled. A hot swap goes on with socket and connection, if the element has \
          the same name and addresses. The file of a UNIX server is removed with it.",
    args: &[
        required("TYPE", "TCP, UDP, UNIX or UNIX_DGRAM", "the kind of socket"),
        required(
            "ADDR",
            "IP address",
            "the address to connect or bind to; a file's name, called FILENAME, for UNIX",
        ),
        optional("PORT", "port", "of TCP and UDP, by name or number"),
        optional(
            "LOCAL_ADDR",
            "IP address",
            "a client's own address; a file's name, called LOCAL_FILENAME, for UNIX",
        ),
        optional("LOCAL_PORT", "port", "a client's own port"),
        keyword("CLIENT", "boolean", "whether it connects; default see above"),
        keyword("NODELAY", "boolean", "whether TCP sends small segments at once; default true"),
        keyword(
            "ALLOW",
            "element",
            "a table of IPv4 routes: a server serves addresses that it has a route for",
        ),
        keyword("DENY", "element", "the same: of the others it serves those that this one has no route for"),
        keyword("VERBOSE", "boolean", "whether to tell of connections on standard error; default false"),
        keyword("PROPER", "boolean", "accepted for compatibility"),
        keyword("SNAPLEN", "bytes", "longest packet received, at most a frame; default 2048"),
        keyword("HEADROOM", "bytes", "room in front of packets, as far as there is; default 128"),
        keyword("TIMESTAMP", "boolean", "whether packets get the time of their reception; default true"),
        keyword("RCVBUF", "bytes", "of the kernel's receive buffer; default the kernel's"),
        keyword("SNDBUF", "bytes", "of the kernel's send buffer; default the kernel's"),
    ],
    handlers: handlers!(TASK),
    drops: Reason::DOCS,
    example: "Socket(UDP, 127.0.0.1, 7007) -> Print(in) -> Discard;",
    see: &["RawSocket", "McastSocket", "KernelTun", "ControlSocket"],
    copies: Copies::One,
    lives_with: tables,
    build,
    ..Spec::DEFAULT
};

shares_drop_reasons!(SPEC, Reason);

/// The elements that a configuration calls ALLOW and DENY.
fn tables(config: &str) -> Vec<String> {
    let arguments = split_args(config);
    let named = |argument: &String| match keyword_of(argument) {
        Some(("ALLOW" | "DENY", name)) => Some(name.to_owned()),
        _ => None,
    };
    arguments.iter().filter_map(named).collect()
}

/// What TYPE says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Tcp,
    Udp,
    Unix,
    UnixDatagram,
}

impl Type {
    fn by_name(name: &str) -> Option<Type> {
        match name.to_ascii_uppercase().as_str() {
            "TCP" => Some(Type::Tcp),
            "UDP" => Some(Type::Udp),
            "UNIX" => Some(Type::Unix),
            "UNIX_DGRAM" => Some(Type::UnixDatagram),
            _ => None,
        }
    }

    fn is_stream(self) -> bool {
        matches!(self, Type::Tcp | Type::Unix)
    }
}

struct Socket {
    common: Common,
    kind: Type,
    client: bool,
    nodelay: bool,
    verbose: bool,
    remote: SocketAddrAny,
    local: Option<SocketAddrAny>,
    /// The file that a server makes.
    path: Option<PathBuf>,
    /// Whether packets go where their annotations say.
    by_annotation: bool,
    /// The names of ALLOW and DENY, and where they are.
    tables: [Option<String>; 2],
    peers: [Option<Peer>; 2],
    place: Place,
    inlet: Inlet,
    outlet: Outlet,
    receives: bool,
}

/// An address to connect or bind to, and the file that it is.
type End = (SocketAddrAny, Option<PathBuf>);

/// The name of a file as an address.
fn file(conf: &mut Conf<'_>, which: &str, name: &str) -> Option<End> {
    let address = match name.as_bytes().strip_prefix(b"\0") {
        Some(rest) => SocketAddrUnix::new_abstract_name(rest),
        None => SocketAddrUnix::new(name),
    };
    match address {
        Ok(address) => {
            let path = (!name.starts_with('\0')).then(|| PathBuf::from(name));
            Some((address.as_any(), path))
        }
        Err(_) => {
            conf.error(format!("{which} filename '{name}' too long"));
            None
        }
    }
}

/// Where to connect or bind to, and a client's own address.
fn ends(conf: &mut Conf<'_>, kind: Type) -> (Option<End>, Option<End>) {
    if matches!(kind, Type::Unix | Type::UnixDatagram) {
        let Filename(remote) = conf.required("FILENAME");
        let Filename(local) = conf.optional("LOCAL_FILENAME", Filename::default());
        let remote = file(conf, "remote", &remote);
        return (remote, if local.is_empty() { None } else { file(conf, "local", &local) });
    }
    let any = Ipv4Addr::UNSPECIFIED;
    let end = |address: Ipv4Addr, port: u16| (SocketAddrV4::new(address, port).as_any(), None);
    let address = conf.required("ADDR");
    let port = match kind {
        Type::Tcp => conf.required::<TcpPort>("PORT").0,
        _ => conf.required::<UdpPort>("PORT").0,
    };
    let own = conf.optional("LOCAL_ADDR", any);
    let own_port = match kind {
        Type::Tcp => conf.optional("LOCAL_PORT", TcpPort(0)).0,
        _ => conf.optional("LOCAL_PORT", UdpPort(0)).0,
    };
    (Some(end(address, port)), (own_port != 0).then(|| end(own, own_port)))
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let word: String = conf.required("TYPE");
    let common = Common::configure(conf);
    let verbose = conf.keyword("VERBOSE", false);
    let nodelay = conf.keyword("NODELAY", true);
    let client: Option<bool> = conf.keyword_given("CLIENT");
    conf.keyword("PROPER", false);
    let tables = ["ALLOW", "DENY"].map(|name| conf.keyword_given::<Raw>(name).map(|name| name.0));
    for (name, argument) in tables.iter().zip(["ALLOW", "DENY"]) {
        let Some(name) = name else { continue };
        match conf.element(name) {
            None => conf.error(format!("{argument}: does not name an element")),
            Some((_, class)) if !iproute::SPECS.iter().any(|spec| spec.name == class) => {
                conf.error(format!("{name} is not an IPRouteTable"));
            }
            Some(_) => {}
        }
    }
    let Some(kind) = Type::by_name(&word) else {
        if conf.errors().is_empty() {
            conf.error(format!("unknown socket type `{}'", word.to_ascii_uppercase()));
        }
        return Err(Invalid);
    };
    let (remote, local) = ends(conf, kind);
    conf.finish()?;
    let (Some((remote, path)), local) = (remote, local) else { return Err(Invalid) };
    let client = client.unwrap_or(conf.n_outputs() == 0 || local.is_some());
    let v4 = SocketAddrV4::try_from(remote.clone()).ok();
    let by_annotation = client && kind == Type::Udp && v4.is_some_and(|a| a.ip().is_unspecified());
    let place = Place::of(conf, &format!("{kind:?} {remote:?} {:?} {client}", local.as_ref().map(|l| &l.0)));
    let way_in = match kind.is_stream() {
        true => Kind::Stream(Stream::new(!client, tables.iter().any(Option::is_some))),
        false => Kind::Datagrams { peer: client.then(|| remote.clone()), own: None },
    };
    let inlet = Inlet::new(way_in, common.snaplen, common.headroom);
    Ok(Box::new(Socket {
        kind,
        client,
        nodelay,
        verbose,
        // Who takes an address of a file has a file.
        path: if client { local.as_ref().and_then(|l| l.1.clone()) } else { path },
        remote,
        local: local.map(|l| l.0),
        by_annotation,
        tables,
        peers: [None; 2],
        place,
        inlet,
        outlet: Outlet::new(),
        receives: conf.n_outputs() > 0 || (kind.is_stream() && !client),
        common,
    }))
}

impl Socket {
    /// Opens the socket, and makes the connection of a client.
    fn open(&self) -> Result<Descriptors, Error> {
        let inet = matches!(self.kind, Type::Tcp | Type::Udp);
        let family = if inet { AddressFamily::INET } else { AddressFamily::UNIX };
        let kind = if self.kind.is_stream() { SocketType::STREAM } else { SocketType::DGRAM };
        let protocol = match self.kind {
            Type::Tcp => Some(ipproto::TCP),
            Type::Udp => Some(ipproto::UDP),
            _ => None,
        };
        let socket = open(family, kind, protocol)?;
        if self.kind == Type::Tcp && self.nodelay {
            sockopt::set_tcp_nodelay(&socket, true).map_err(failed("setsockopt(TCP_NODELAY)"))?;
        }
        self.common.set_buffers(&socket, &socket)?;
        if self.kind == Type::Tcp && !self.client {
            // Connections of before, which have ended, are in nobody's way.
            sockopt::set_socket_reuseaddr(&socket, true).map_err(failed("setsockopt(SO_REUSEADDR)"))?;
        }
        let own = if self.client { self.local.as_ref() } else { Some(&self.remote) };
        if let Some(own) = own {
            rustix::net::bind(&socket, own).map_err(failed("bind"))?;
        }
        if self.kind.is_stream() {
            if self.client {
                connect(&socket, &self.remote)?
            } else {
                listen(&socket)?
            };
        }
        Ok(descriptors(socket)?.with_path(self.path.clone().filter(|_| own.is_some())))
    }

    /// Whether a server serves an address.
    fn allows(&self, address: u32, cx: &mut Cx<'_>) -> bool {
        let address = Ipv4Addr::from(address).to_string();
        let mut has = |peer: Option<Peer>| {
            let answer = peer.and_then(|peer| cx.ask_peer(peer, "lookup", &address));
            answer.is_some_and(|answer| !answer.starts_with('-'))
        };
        has(self.peers[0]) || !has(self.peers[1])
    }

    fn is_guarded(&self) -> bool {
        !self.client && self.peers.iter().any(Option::is_some)
    }

    /// What was received, or asks to be.
    fn receive(&mut self, batch: &mut Batch, cx: &mut Cx<'_>) {
        let now_ns = cx.now_ns();
        for mut packet in batch.drain() {
            let source = packet.flow_hash();
            received(&mut packet, self.common.timestamp, now_ns);
            let asker = match &self.inlet.kind {
                Kind::Stream(stream) if packet.is_empty() => stream.asker(),
                _ => None,
            };
            if let Some(asker) = asker {
                let allowed = self.allows(asker, cx);
                if let (Kind::Stream(stream), Some(descriptors)) =
                    (&mut self.inlet.kind, &self.inlet.descriptors)
                {
                    stream.answer(descriptors, allowed);
                }
            } else if self.kind == Type::Udp && self.is_guarded() && !self.allows(source, cx) {
                if self.verbose {
                    let (name, class) = (cx.name(), cx.class());
                    to_stderr(&format!(
                        "{name} :: {class}: dropped datagram from {}\n",
                        Ipv4Addr::from(source)
                    ));
                }
                cx.drop(Reason::Denied, packet);
            } else {
                cx.emit(0, packet);
            }
        }
    }
}

/// Sends a packet by the element's socket.
fn send(inlet: &mut Inlet, by_annotation: Option<u16>, packet: &mut Packet) -> Sent {
    let Some(descriptors) = &inlet.descriptors else { return Sent::Never(Reason::NoPeer) };
    match &mut inlet.kind {
        Kind::Stream(stream) => {
            let Some(sent) = stream.write(descriptors, packet.data()) else {
                return Sent::Never(Reason::NoPeer);
            };
            // So many there are.
            let _ = packet.pull(sent);
            if packet.is_empty() { Sent::Done } else { Sent::Blocked }
        }
        Kind::Datagrams { peer, .. } => {
            let noted = by_annotation.map(|port| SocketAddrV4::new(packet.dst_ip().into(), port).as_any());
            match noted.as_ref().or(peer.as_ref()) {
                Some(to) => send_to(&descriptors.socket, packet, to),
                None => Sent::Never(Reason::NoPeer),
            }
        }
    }
}

/// Sends a packet as a datagram.
pub(super) fn send_to(socket: &rustix::fd::OwnedFd, packet: &Packet, to: &SocketAddrAny) -> Sent {
    use rustix::io::Errno;
    loop {
        return match rustix::net::sendto(socket, packet.data(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL, to)
        {
            Ok(_) => Sent::Done,
            // The second: what a datagram that was sent before met on its way.
            Err(Errno::INTR | Errno::CONNREFUSED) => continue,
            Err(Errno::AGAIN | Errno::NOBUFS) => Sent::Blocked,
            Err(e) => {
                log::debug!("sendto: {}", text(e));
                Sent::Never(Reason::Refused)
            }
        };
    }
}

impl Element for Socket {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        for (peer, name) in self.peers.iter_mut().zip(&self.tables) {
            *peer = name.as_ref().map(|name| cx.find_peer(name)).transpose()?;
        }
        self.inlet.descriptors = Some(self.place.open(|| self.open())?);
        if let (Kind::Stream(stream), true) = (&mut self.inlet.kind, self.verbose) {
            stream.set_verbose(format!("{} :: {}", cx.name(), cx.class()));
        }
        self.outlet.start(cx);
        Ok(())
    }

    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if port == RECEIVED {
            return self.receive(batch, cx);
        }
        let (inlet, to) = (&mut self.inlet, self.by_annotation.then(|| port_of(&self.remote)));
        self.outlet.push(batch, |packet| send(inlet, to, packet), cx);
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let (inlet, to) = (&mut self.inlet, self.by_annotation.then(|| port_of(&self.remote)));
        let peer = if to.is_some() { outlet::Peer::There } else { inlet.peer() };
        self.outlet.run(peer, |packet| send(inlet, to, packet), cx)
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Socket>() {
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

/// The port of an address, 0 if it has none.
fn port_of(address: &SocketAddrAny) -> u16 {
    SocketAddrV4::try_from(address.clone()).map_or(0, |a| a.port())
}
