//! What CheckTCPHeader, CheckUDPHeader and CheckICMPHeader have in common.

use super::tally::{DETAILS, Tally};
use crate::printing::contents::to_stderr;
use causeway_engine::prelude::*;
use causeway_packet::wire::Ipv4;

drop_reasons! {
    /// What is wrong with a packet.
    pub(crate) enum Fault {
        Protocol = "wrong-protocol", "no IPv4 header of that protocol is marked, and output 1 is not connected";
        Length = "bad-length", "a length is wrong or beyond the packet, and output 1 is not connected";
        Checksum = "bad-checksum", "the checksum is wrong, and output 1 is not connected";
    }
}

settings! {
    pub(crate) struct Verbosity {
        verbose: bool = keyword("VERBOSE", "boolean", "whether each bad packet is told of on standard error, not only the first; default false"), or(false);
        details: bool = keyword("DETAILS", "boolean", "whether there is a handler `drop_details`; default false"), or(false);
    }
}

/// An element that checks packets by `judge`.
pub(crate) struct TransportCheck {
    /// What the protocol is called.
    protocol: &'static str,
    judge: fn(&Packet) -> Result<(), Fault>,
    tally: Tally<Fault>,
    /// Whether [`DETAILS`] can be read.
    details: bool,
    /// What stands in front of what it tells.
    prefix: String,
    verbose: bool,
    said: bool,
}

/// Reads the configuration of a class whose packets are of `protocol`.
pub(crate) fn build(
    conf: &mut Conf<'_>,
    protocol: &'static str,
    judge: fn(&Packet) -> Result<(), Fault>,
) -> Result<Box<dyn Element>, Invalid> {
    let Verbosity { verbose, details } = Verbosity::configure(conf);
    conf.finish()?;
    // Click does not say which element it is of those that check UDP.
    let prefix =
        if protocol == "UDP" { String::new() } else { format!("{} :: {}: ", conf.name(), conf.spec().name) };
    let tally = Tally::new(conf);
    Ok(Box::new(TransportCheck { protocol, judge, tally, details, prefix, verbose, said: false }))
}

/// The marked IPv4 header, if it is whole and of `protocol`.
pub(crate) fn header(packet: &Packet, protocol: u8) -> Result<Ipv4<&[u8]>, Fault> {
    let header = packet.network_header().and_then(|bytes| Ipv4::new_quoted(bytes).ok());
    header.filter(|ip| ip.protocol() == protocol).ok_or(Fault::Protocol)
}

/// The `len` bytes behind the IPv4 header.
pub(crate) fn segment<'a>(packet: &'a Packet, ip: &Ipv4<&[u8]>, len: usize) -> Result<&'a [u8], Fault> {
    let bytes = packet.network_header().and_then(|bytes| bytes.get(ip.header_len()..)?.get(..len));
    bytes.ok_or(Fault::Length)
}

/// What may be wrong with a packet of `protocol`, in the order of the faults and in Click's words.
fn texts(protocol: &str) -> [String; 3] {
    [format!("not {protocol}"), "bad packet length".to_owned(), format!("bad {protocol} checksum")]
}

/// The line for a packet of `protocol` with that fault.
fn line(prefix: &str, protocol: &str, fault: Fault) -> String {
    let text = &texts(protocol)[fault as usize];
    format!("{prefix}{protocol} header check failed: {text}\n")
}

impl Element for TransportCheck {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        let TransportCheck { protocol, judge, tally, prefix, verbose, said, .. } = self;
        tally.sift(batch, cx, |packet| {
            judge(packet).inspect_err(|&fault| {
                if !std::mem::replace(said, true) || *verbose {
                    to_stderr(&line(prefix, protocol, fault));
                }
            })
        });
    }

    fn lacks(&self, name: &str) -> bool {
        name == DETAILS && !self.details
    }

    fn read(&mut self, handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            DETAILS => self.tally.details(texts(self.protocol).iter().map(String::as_str)),
            _ => self.tally.read(handler),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_is_wrong() {
        let of = |fault| line("c: ", "TCP", fault);
        assert_eq!(of(Fault::Protocol), "c: TCP header check failed: not TCP\n");
        assert_eq!(of(Fault::Length), "c: TCP header check failed: bad packet length\n");
        assert_eq!(of(Fault::Checksum), "c: TCP header check failed: bad TCP checksum\n");
    }
}
