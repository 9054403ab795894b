//! FTPPortMapper.

use super::apply::{Headers, get_u16, get_u32, put_u16};
use super::flow_id::FlowId;
use super::kind::Kind;
use super::rewriter::with_peer;
use causeway_engine::Peer;
use causeway_engine::prelude::*;
use causeway_lang::args::split_args;
use causeway_packet::checksum::{pseudo_header_v4, update_u16};
use causeway_packet::wire::protocol;
use std::io::Write;

pub(crate) static SPEC: Spec = Spec {
    name: "FTPPortMapper",
    category: "nat",
    summary: "lets FTP pass through rewriters",
    doc: "Looks at FTP control packets, before they are rewritten, for PORT commands (RFC 959 §4.1.2), by which a client says where it \
          waits for data. It adds the flow of the data to come (from the port before the server's control port) to DATA_REWRITER, as if \
          its first packet had come to that one's input DATA_REWRITER_INPUT, puts the rewritten address and port into the command, and \
          tells CONTROL_REWRITER, which must follow it and know the connection, how much longer the command has become. The \
          command must be whole and the first of its packet. Addresses and ports of the packet itself are CONTROL_REWRITER's work. \
          A command for which there is no flow, no place or no port stays as it is.",
    args: &[
        required("CONTROL_REWRITER", "element", "the TCPRewriter or IPRewriter of the control connections"),
        required("DATA_REWRITER", "element", "the rewriter of the data connections; it may be the same"),
        required("DATA_REWRITER_INPUT", "number", "which input's specification is used for data connections"),
    ],
    handlers: &[CONFIG],
    example: "rw :: TCPRewriter(pattern 1.0.0.1 1024-65535 - - 0 1, drop); Idle -> FTPPortMapper(rw, rw, 0) -> rw; Idle -> [1]rw; \
              rw[0] -> Discard; rw[1] -> Discard;",
    see: &["TCPRewriter", "IPRewriter"],
    copies: Copies::One,
    lives_with: |config| split_args(config).into_iter().take(2).collect(),
    build,
    ..Spec::DEFAULT
};

struct FTPPortMapper {
    names: [String; 2],
    input: usize,
    control: Option<Peer>,
    data: Option<Peer>,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let control: String = conf.required("CONTROL_REWRITER");
    let data: String = conf.required("DATA_REWRITER");
    let input: i32 = conf.required("DATA_REWRITER_INPUT");
    // What the `config` handler writes is read where the elements are not known; they are looked up when it is taken.
    if !conf.env.elements.is_empty() && conf.errors().is_empty() {
        let kind = |conf: &Conf<'_>, name: &str| conf.element(name).and_then(|(_, c)| Kind::of_class(c));
        if !matches!(kind(conf, &control), Some(Kind::Ip | Kind::Tcp)) {
            let why = not_a(conf, &control, "TCPRewriter");
            conf.bad_argument("CONTROL_REWRITER", &why);
        }
        if kind(conf, &data).is_none() {
            let why = not_a(conf, &data, "IPRewriterBase");
            conf.bad_argument("DATA_REWRITER", &why);
        }
    }
    let input = usize::try_from(input).unwrap_or_else(|_| {
        conf.error("DATA_REWRITER_INPUT out of range");
        0
    });
    conf.finish()?;
    Ok(Box::new(FTPPortMapper { names: [control, data], input, control: None, data: None }))
}

/// Why the element called `name` is none of this `kind`.
fn not_a(conf: &Conf<'_>, name: &str, kind: &str) -> String {
    match conf.element(name) {
        Some(_) => format!("does not name an element of type '{kind}'"),
        None => "does not name an element".to_owned(),
    }
}

/// A PORT command: where its argument is in the payload, and what it says.
#[derive(Debug, PartialEq, Eq)]
struct Command {
    argument: std::ops::Range<usize>,
    address: u32,
    port: u16,
}

impl Command {
    fn parse(payload: &[u8]) -> Option<Command> {
        let blanks = payload.get(5..)?.iter().take_while(|b| **b == b' ').count();
        if !payload[..4].eq_ignore_ascii_case(b"PORT") || payload[4] != b' ' {
            return None;
        }
        let start = 5 + blanks;
        let len = payload[start..].iter().take_while(|b| b.is_ascii_digit() || **b == b',').count();
        let argument = start..start + len;
        payload.get(argument.end).filter(|b| matches!(b, b'\r' | b'\n'))?;
        let mut numbers = [0u8; 6];
        let mut parts = payload[argument.clone()].split(|b| *b == b',');
        for number in &mut numbers {
            // An empty number counts as 0.
            let digits = parts.next()?;
            *number = digits.iter().try_fold(0u8, |n, d| n.checked_mul(10)?.checked_add(d - b'0'))?;
        }
        let [a, b, c, d, high, low] = numbers;
        let whole = parts.next().is_none();
        whole.then_some(Command {
            argument,
            address: u32::from_be_bytes([a, b, c, d]),
            port: u16::from_be_bytes([high, low]),
        })
    }
}

/// The argument of a PORT command for `address` and `port`: 23 bytes at most.
fn argument(address: u32, port: u16) -> ([u8; 24], usize) {
    let mut text = [0; 24];
    let [a, b, c, d] = address.to_be_bytes();
    let [high, low] = port.to_be_bytes();
    let mut rest = &mut text[..];
    // There is room for six numbers and five commas.
    let _ = write!(rest, "{a},{b},{c},{d},{high},{low}");
    let left = rest.len();
    (text, 24 - left)
}

/// Puts `new` in the place of `old` bytes of the data.
fn splice(packet: &mut Packet, old: std::ops::Range<usize>, new: &[u8]) -> Option<()> {
    let before = packet.len();
    if new.len() > old.len() {
        packet.put(new.len() - old.len()).ok()?;
    }
    packet.data_mut().copy_within(old.end..before, old.start + new.len());
    packet.data_mut().get_mut(old.start..old.start + new.len())?.copy_from_slice(new);
    if new.len() < old.len() {
        packet.take(old.len() - new.len()).ok()?;
    }
    Some(())
}

impl FTPPortMapper {
    /// Looks the rewriters up.
    fn find(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        let [control, data] = [cx.find_peer(&self.names[0])?, cx.find_peer(&self.names[1])?];
        if with_peer(cx, control, |rewriter, _| rewriter.follows_tcp()) != Some(true) {
            return Err(Error::new("CONTROL_REWRITER: does not name an element of type 'TCPRewriter'"));
        }
        let inputs = with_peer(cx, data, |rewriter, _| rewriter.n_inputs()).unwrap_or(0);
        if self.input >= inputs {
            return Err(Error::new("DATA_REWRITER_INPUT out of range"));
        }
        (self.control, self.data) = (Some(control), Some(data));
        Ok(())
    }

    /// Maps the PORT command in the packet, if there is one.
    fn map(&self, packet: &mut Packet, cx: &mut Cx<'_>) -> Option<()> {
        let headers = Headers::of(packet).filter(|h| h.protocol == protocol::TCP && h.is_first)?;
        let tcp = headers.transport(packet);
        let header_len = usize::from(tcp.get(12)? >> 4) * 4;
        let payload = tcp.get(header_len..).filter(|_| header_len >= 20)?;
        let command = Command::parse(payload)?;
        let (sequence, payload_len) = (get_u32(tcp, 4), payload.len() as u32);
        let control_flow = headers.flow(packet);
        let at = packet.transport_offset()? + header_len;
        let (now_ms, random) = (cx.now_ns() / 1_000_000, cx.rng().u32(..));

        let (control, reply_anno) = with_peer(cx, self.control?, |rewriter, flows| {
            let entry = rewriter.entry(flows, protocol::TCP, control_flow, false)?;
            Some((entry, flows.get(entry.0)?.reply_anno))
        })??;
        let server_port = control_flow.destination_port.wrapping_sub(1);
        let data_flow = FlowId::new(command.address, command.port, headers.destination, server_port);
        let to = with_peer(cx, self.data?, |rewriter, flows| {
            let (id, direction) =
                rewriter.entry_or_new(flows, (protocol::TCP, data_flow), self.input, (now_ms, random))?;
            let flow = flows.get_mut(id)?;
            flow.reply_anno = reply_anno;
            Some(flow.leaves(direction))
        })??;
        let (text, len) = argument(to.source, to.source_port);
        let shift = len as i32 - command.argument.len() as i32;
        if shift > 0 && packet.tailroom() < shift as usize {
            return None;
        }
        with_peer(cx, self.control?, |_, flows| {
            let (id, direction) = control;
            flows.shift(id, direction, sequence.wrapping_add(payload_len), shift).then_some(())
        })??;
        splice(packet, at + command.argument.start..at + command.argument.end, &text[..len])?;
        set_length_and_checksums(packet);
        Some(())
    }
}

fn set_length_and_checksums(packet: &mut Packet) {
    let (Some(network), Some(transport)) = (packet.network_offset(), packet.transport_offset()) else {
        return;
    };
    let total_len = (packet.len() - network) as u16;
    let tcp_len = (packet.len() - transport) as u16;
    let ip = &mut packet.data_mut()[network..];
    let sum = update_u16(get_u16(ip, 10), get_u16(ip, 2), total_len);
    put_u16(ip, 10, sum);
    put_u16(ip, 2, total_len);
    let pseudo = pseudo_header_v4(get_u32(ip, 12).into(), get_u32(ip, 16).into(), protocol::TCP, tcp_len);
    let tcp = &mut packet.data_mut()[transport..];
    put_u16(tcp, 16, 0);
    let sum = pseudo.bytes(tcp).finish();
    put_u16(tcp, 16, sum);
}

impl Element for FTPPortMapper {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.find(cx)
    }

    fn packet(&mut self, _port: usize, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        // Whatever cannot be mapped passes as it is.
        let _ = self.map(packet, cx);
        Verdict::Pass
    }

    fn take_settings(&mut self, new: &mut dyn Element, cx: &mut Cx<'_>) {
        let Some(new) = new.downcast_mut::<FTPPortMapper>() else { return };
        if let Err(why) = new.find(cx) {
            log::error!("{}: {why}; it stays as it was", cx.name());
            return;
        }
        std::mem::swap(self, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::packet;

    #[test]
    fn commands_are_read_when_they_are_whole() {
        let read = |text: &str| Command::parse(text.as_bytes()).map(|c| (c.argument, c.address, c.port));
        assert_eq!(read("PORT 1,0,0,2,3,9\r\n"), Some((5..16, 0x0100_0002, 777)));
        assert_eq!(read("port   1,0,0,2,3,9\nQUIT\n"), Some((7..18, 0x0100_0002, 777)));
        for bad in [
            "PORT 1,0,0,2,3,9",
            "PORT 1,0,0,2,3\r\n",
            "PORT 1,0,0,2,3,256\r\n",
            "PORT 1,0,0,2,3,9,1\r\n",
            "PORT",
            "PASV \r\n",
            "PORTX1,0,0,2,3,9\r\n",
            "PORT ",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
        let (text, len) = argument(0xffff_ffff, u16::MAX);
        assert_eq!(&text[..len], b"255,255,255,255,255,255");
    }

    #[test]
    fn text_grows_and_shrinks_in_its_place() {
        let mut p = packet(b"PORT 12 rest");
        splice(&mut p, 5..7, b"3456").unwrap();
        assert_eq!(p.data(), b"PORT 3456 rest");
        splice(&mut p, 5..9, b"7").unwrap();
        assert_eq!(p.data(), b"PORT 7 rest");
    }
}
