//! An IP expression as a filter of packets outside of the graph.

use super::ip_expr;
use super::program::{DROP, Goal, Program, bases};
use causeway_engine::{Error, Names};
use causeway_packet::Packet;
use causeway_packet::wire::ethernet::{Ethernet, ether_type};
use causeway_packet::wire::ipv4::Ipv4;

/// Whether packets match the IP expression `text`, as IPClassifier has it. Where nothing says yet where their IP header
/// is, they are taken for Ethernet frames of IPv4 or for bare packets. No packet that is not IPv4 matches.
///
/// # Errors
/// What is wrong with the expression.
pub fn packet_filter(text: &str) -> Result<impl Fn(&Packet) -> bool + Send + Sync + use<>, Error> {
    let names = Names::default();
    let expr = ip_expr::parse(text, &names.scope(""), &mut Vec::new())?;
    let program = Program::new(&[(expr, Goal::Output(0))]);
    Ok(move |packet: &Packet| {
        let data = packet.data();
        let framed = Ethernet::new_checked(data).ok().map(|frame| frame.network_layer());
        let framed = framed.filter(|(kind, _)| *kind == ether_type::IPV4).map(|(_, at)| at);
        let at = packet.network_offset().or(framed).unwrap_or(0);
        let Some(ip) = data.get(at..).and_then(|ip| Ipv4::new_checked(ip).ok()) else { return false };
        program.run(data, &bases(Some(at), Some(at + ip.header_len())), || None) != DROP
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::tests::udp_packet;

    #[test]
    fn frames_and_packets_are_matched() {
        let filter = packet_filter("udp port 53 and src 10.0.0.0/8").unwrap();
        let packet = udp_packet("10.0.0.2", "1.2.3.4", 9, 53);
        let mut frame = Packet::from_bytes(packet.data()).unwrap();
        frame.push(14).unwrap()[..14].copy_from_slice(&[0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 6, 8, 0]);
        let bare = Packet::from_bytes(packet.data()).unwrap();
        assert!(filter(&packet) && filter(&frame) && filter(&bare));
        assert!(!filter(&udp_packet("11.0.0.2", "1.2.3.4", 9, 53)));
        assert!(!filter(&Packet::from_bytes(&[0; 60]).unwrap()), "no IPv4");
        assert!(packet_filter("udp prot 53").is_err());
    }
}
