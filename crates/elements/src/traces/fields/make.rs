//! Packets made of fields.

use super::What;
use super::view::{Value, has_identifier, has_ports, is_first, payload_place, set_first_timestamp_ns};
use crate::nat::flow_id::FlowId;
use crate::nat::{get_u16, put_u16, put_u32};
use causeway_packet::wire::protocol;
use causeway_packet::{Anno, Packet, wire};

/// Room before the data.
const HEADROOM: usize = 128;
/// What nobody says.
const TTL: u8 = 100;
/// IPv6, which has no IPv4 header but is IP.
const ETHER_IP6: u16 = 0x86dd;

/// A packet that is being made. Whatever its fields do not set is zero.
pub(crate) struct Maker {
    pub(super) packet: Packet,
    pub(super) is_ip: bool,
    icmp_type: Option<u8>,
    has_icmp_code: bool,
    has_ip_header_len: bool,
    has_tcp_header_len: bool,
    protocol: u8,
    pub(super) flow: Option<FlowId>,
    /// Bytes that the packet has on the wire, if the fields say so.
    pub(super) wanted: usize,
}

/// The packet cannot be made: it does not fit a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

type Done = Result<(), TooLong>;

impl Maker {
    /// An empty packet, whose protocol and flow are these unless its fields say others. `None` = no frame is free.
    pub fn new(protocol: u8, flow: Option<FlowId>) -> Option<Maker> {
        Some(Maker {
            packet: Packet::with_headroom(HEADROOM)?,
            is_ip: true,
            icmp_type: None,
            has_icmp_code: false,
            has_ip_header_len: false,
            has_tcp_header_len: false,
            protocol,
            flow,
            wanted: 0,
        })
    }

    /// The type of the ICMP message, if a field has set it.
    pub fn icmp_type(&self) -> Option<u8> {
        self.icmp_type
    }

    pub(super) fn put(&mut self, n: usize) -> Done {
        self.packet.put(n).map_err(|_| TooLong)?.fill(0);
        Ok(())
    }

    pub(super) fn network(&self) -> usize {
        self.packet.network_offset().unwrap_or(0)
    }

    pub(super) fn transport(&self) -> usize {
        self.packet.transport_offset().unwrap_or(0)
    }

    pub(super) fn ip(&mut self) -> &mut [u8] {
        let at = self.network();
        self.packet.data_mut().get_mut(at..).unwrap_or_default()
    }

    /// What follows the IP header.
    pub(super) fn segment(&mut self) -> &mut [u8] {
        let at = self.transport();
        self.packet.data_mut().get_mut(at..).unwrap_or_default()
    }

    pub(super) fn segment_len(&self) -> usize {
        self.packet.len().saturating_sub(self.transport())
    }

    /// Makes the packet at least `n` bytes long from the transport header on.
    fn lengthen_segment(&mut self, n: usize) -> Done {
        self.put(n.saturating_sub(self.segment_len()))
    }

    pub(super) fn has_ip(&self) -> bool {
        self.packet.network_offset().is_some_and(|at| self.packet.len() >= at + 20)
    }

    /// Makes an IP header, if there is none. False if the packet is none of IP, or not of protocol `number`.
    pub(super) fn make_ip(&mut self, number: Option<u8>) -> Result<bool, TooLong> {
        if !self.is_ip {
            return Ok(false);
        }
        if self.packet.network_offset().is_none() {
            self.packet.set_network_header(0);
        }
        let at = self.network();
        if self.packet.len() < at + 20 {
            self.put(at + 20 - self.packet.len())?;
            self.packet.set_transport_header(at + 20);
            let (protocol, flow) = (self.protocol, self.flow);
            let ip = self.ip();
            (ip[0], ip[8], ip[9]) = (0x45, TTL, protocol);
            if let Some(flow) = flow {
                put_u32(ip, 12, flow.source);
                put_u32(ip, 16, flow.destination);
            }
        }
        let own = self.ip()[9];
        Ok(number.is_none_or(|number| own == 0 || own == number))
    }

    /// Makes a transport header, if there is none. False if the packet is a fragment that has none.
    pub(super) fn make_transport(&mut self) -> Result<bool, TooLong> {
        if !is_first(self.ip()) {
            return Ok(false);
        }
        if self.segment_len() >= 8 {
            return Ok(true);
        }
        let number = self.ip()[9];
        let mut len = match number {
            protocol::TCP => 20,
            protocol::UDP | 136 => 8,
            33 => 12,
            protocol::ICMP => 8,
            _ => return Ok(true),
        };
        let at = self.transport();
        if self.wanted > 0 && self.wanted < at + len {
            len = self.wanted.saturating_sub(at);
        }
        if self.segment_len() < len {
            // Ports are there in any case while they are set.
            self.lengthen_segment(len.max(4))?;
            let flow = self.flow;
            let segment = self.segment();
            if number == protocol::TCP && len >= 13 {
                segment[12] = 0x50;
            }
            if let Some(flow) = flow {
                put_u16(segment, 0, flow.source_port);
                put_u16(segment, 2, flow.destination_port);
            }
            self.packet.truncate(at + len);
        }
        Ok(true)
    }

    /// Sets a field.
    pub fn set(&mut self, what: What, value: Value<'_>) -> Done {
        match value {
            Value::Number(n) => self.set_number(what, n),
            Value::Bytes(bytes) => self.set_bytes(what, bytes),
        }
    }

    fn set_number(&mut self, what: What, n: u64) -> Done {
        let ns = self.packet.timestamp_ns();
        match what {
            What::Timestamp => self.packet.set_timestamp_ns(n),
            What::TimestampSec => self.packet.set_timestamp_ns(n * 1_000_000_000 + ns % 1_000_000_000),
            What::TimestampUsec => {
                self.packet.set_timestamp_ns(ns / 1_000_000_000 * 1_000_000_000 + n * 1_000)
            }
            What::TimestampUsec1 => self.packet.set_timestamp_ns(n.saturating_mul(1_000)),
            What::FirstTimestamp => set_first_timestamp_ns(&mut self.packet, n),
            What::Count => self.packet.set_anno_u32(Anno::EXTRA_PACKETS.offset, n.saturating_sub(1) as u32),
            What::Link | What::Direction => self.packet.set_paint(n as u8),
            What::Aggregate => self.packet.set_anno_u32(Anno::AGGREGATE.offset, n as u32),
            What::WireLen => self.wanted = n as usize,
            What::EthType => {
                self.make_ethernet()?;
                put_u16(self.packet.data_mut(), 12, n as u16);
                self.is_ip &= matches!(n as u16, wire::ethernet::ether_type::IPV4 | ETHER_IP6);
            }
            What::PayloadLen => {
                let (at, _) = self.payload()?;
                self.account_payload(at, n as usize)?;
            }
            What::Sport | What::Dport | What::UdpLen => self.set_ports(what, n as u16)?,
            What::IcmpType
            | What::IcmpTypeName
            | What::IcmpCode
            | What::IcmpCodeName
            | What::IcmpFlowid
            | What::IcmpSeq
            | What::IcmpNextmtu => self.set_icmp(what, n as u16)?,
            What::TcpSeq | What::TcpAck | What::TcpOff | What::TcpFlags | What::TcpWindow | What::TcpUrp => {
                self.set_tcp(what, n as u32)?
            }
            _ => self.set_ip(what, n as u32)?,
        }
        Ok(())
    }

    fn set_bytes(&mut self, what: What, bytes: &[u8]) -> Done {
        match what {
            What::EthSrc | What::EthDst => {
                self.make_ethernet()?;
                let at = if what == What::EthSrc { 6 } else { 0 };
                if let (Some(to), Some(from)) = (self.packet.data_mut().get_mut(at..at + 6), bytes.get(..6)) {
                    to.copy_from_slice(from);
                }
            }
            What::IpOpt if self.make_ip(None)? => {
                self.has_ip_header_len = true;
                self.set_ip_options(bytes)?;
            }
            What::TcpOpt | What::TcpNtopt | What::TcpSack
                if self.make_ip(Some(protocol::TCP))? && self.make_transport()? =>
            {
                self.has_tcp_header_len = true;
                self.set_tcp_options(bytes)?;
            }
            What::Payload if !bytes.is_empty() => {
                let (at, _) = self.payload()?;
                self.account_payload(at, bytes.len())?;
                // Where it would be without options, as in Click: lengths that say more than there is put them in.
                self.put((at + bytes.len()).saturating_sub(self.packet.len()))?;
                if let Some(to) = self.packet.data_mut().get_mut(at..at + bytes.len()) {
                    to.copy_from_slice(bytes);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn make_ethernet(&mut self) -> Done {
        if self.packet.mac_distance().is_none() {
            self.packet.push(14).map_err(|_| TooLong)?[..14].fill(0);
            self.packet.set_mac_header(0);
            self.packet.set_network_header(14);
            put_u16(self.packet.data_mut(), 12, wire::ethernet::ether_type::IPV4);
        }
        Ok(())
    }

    fn set_ip(&mut self, what: What, n: u32) -> Done {
        if !self.make_ip(None)? {
            return Ok(());
        }
        let network = self.network();
        let ip = self.ip();
        match what {
            What::IpSrc => put_u32(ip, 12, n),
            What::IpDst => put_u32(ip, 16, n),
            What::IpTos => ip[1] = n as u8,
            What::IpDscp => ip[1] = ip[1] & 3 | (n << 2) as u8,
            What::IpEcn => ip[1] = ip[1] & !3 | n as u8 & 3,
            What::IpTtl => ip[8] = n as u8,
            What::IpFrag | What::IpFragoff => put_u16(ip, 6, n as u16),
            What::IpId => put_u16(ip, 4, n as u16),
            What::IpSum => put_u16(ip, 10, n as u16),
            What::IpProto => ip[9] = n as u8,
            What::IpHl => {
                self.has_ip_header_len = true;
                self.lengthen_ip_header(n.next_multiple_of(4).min(60) as usize)?;
                self.ip()[0] = 0x40 | (n.next_multiple_of(4).min(60) / 4) as u8;
            }
            What::IpLen => self.wanted = network + n as usize,
            // The length of what was captured follows from the rest.
            _ => {}
        }
        Ok(())
    }

    /// Makes the IP header `len` bytes long, if it is shorter; new bytes end the options.
    fn lengthen_ip_header(&mut self, len: usize) -> Done {
        let own = usize::from(self.ip()[0] & 15) * 4;
        if len > own {
            self.put(len - own)?;
            let at = self.network();
            self.packet.set_transport_header(at + len);
            self.ip()[own..len].fill(0);
        }
        Ok(())
    }

    fn set_ip_options(&mut self, options: &[u8]) -> Done {
        if options.is_empty() {
            return Ok(());
        }
        let len = (20 + options.len()).next_multiple_of(4);
        let at = self.network();
        self.put((at + len).saturating_sub(self.packet.len()))?;
        if len > usize::from(self.ip()[0] & 15) * 4 {
            self.packet.set_transport_header(at + len);
            self.ip()[0] = 0x40 | (len / 4) as u8;
        }
        let ip = self.ip();
        ip[20..20 + options.len()].copy_from_slice(options);
        ip[20 + options.len()..len].fill(0);
        Ok(())
    }

    fn set_tcp_options(&mut self, options: &[u8]) -> Done {
        if options.is_empty() {
            return Ok(());
        }
        let len = (20 + options.len()).next_multiple_of(4);
        self.lengthen_segment(len)?;
        let segment = self.segment();
        if len > usize::from(segment[12] >> 4) * 4 {
            segment[12] = segment[12] & 15 | (len as u8 / 4) << 4;
        }
        segment[20..20 + options.len()].copy_from_slice(options);
        segment[20 + options.len()..len].fill(0);
        Ok(())
    }

    fn set_ports(&mut self, what: What, n: u16) -> Done {
        if !self.make_ip(None)? || !self.make_transport()? {
            return Ok(());
        }
        let number = self.ip()[9];
        match what {
            What::UdpLen if number == 0 || matches!(number, protocol::UDP | 136) => {
                self.lengthen_segment(8)?;
                put_u16(self.segment(), 4, n);
            }
            What::UdpLen => {}
            _ if number == 0 || has_ports(number) => {
                put_u16(self.segment(), if what == What::Sport { 0 } else { 2 }, n);
            }
            _ => {}
        }
        Ok(())
    }

    fn set_tcp(&mut self, what: What, n: u32) -> Done {
        if !self.make_ip(Some(protocol::TCP))? || !self.make_transport()? {
            return Ok(());
        }
        if what == What::TcpOff {
            let len = n.next_multiple_of(4).min(60) as usize;
            let own = self.segment().get(12).map_or(0, |offset| usize::from(offset >> 4) * 4);
            self.put(len.saturating_sub(own))?;
        }
        let segment = self.segment();
        match what {
            What::TcpSeq => put_u32(segment, 4, n),
            What::TcpAck => put_u32(segment, 8, n),
            What::TcpFlags => {
                if let Some(bytes) = segment.get_mut(12..14) {
                    (bytes[0], bytes[1]) = (bytes[0] & 0xf0 | (n >> 8) as u8 & 15, n as u8);
                }
            }
            What::TcpOff => {
                if let Some(offset) = segment.get_mut(12) {
                    *offset = *offset & 15 | ((n.next_multiple_of(4).min(60) / 4) << 4) as u8;
                }
            }
            What::TcpWindow => put_u16(segment, 14, n as u16),
            _ => put_u16(segment, 18, n as u16),
        }
        Ok(())
    }

    fn set_icmp(&mut self, what: What, n: u16) -> Done {
        if !self.make_ip(Some(protocol::ICMP))? || !self.make_transport()? {
            return Ok(());
        }
        self.lengthen_segment(8)?;
        let kind = self.segment()[0];
        let has_identifier = self.icmp_type.is_none() || has_identifier(kind);
        match what {
            What::IcmpType | What::IcmpTypeName => {
                self.icmp_type = Some(n as u8);
                self.segment()[0] = n as u8;
                // Timestamps and address masks have more than the others (RFC 792, RFC 950).
                self.lengthen_segment(match n {
                    13 | 14 => 20,
                    17 | 18 => 12,
                    _ => 8,
                })?;
            }
            What::IcmpCode | What::IcmpCodeName => {
                self.has_icmp_code = true;
                self.segment()[1] = n as u8;
            }
            What::IcmpFlowid if has_identifier => put_u16(self.segment(), 4, n),
            What::IcmpSeq if has_identifier => put_u16(self.segment(), 6, n),
            What::IcmpNextmtu => {
                let code = self.segment()[1];
                if self.icmp_type.is_none_or(|t| t == 3) && (!self.has_icmp_code || code == 4) {
                    put_u16(self.segment(), 6, n);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Where the payload begins, with the headers made that come before it.
    fn payload(&mut self) -> Result<(usize, usize), TooLong> {
        if self.make_ip(None)? {
            self.make_transport()?;
        }
        if !self.is_ip || !self.has_ip() {
            return Ok((0, self.packet.len()));
        }
        let (network, transport) = (self.network(), self.transport());
        Ok(payload_place(self.packet.data(), network, transport, self.packet.len()))
    }

    /// The payload has `len` bytes: where lengths said more, the headers have options.
    fn account_payload(&mut self, at: usize, len: usize) -> Done {
        if !self.is_ip || !self.has_ip() || get_u16(self.ip(), 2) == 0 && self.wanted == 0 {
            self.wanted = at + len;
            return Ok(());
        }
        let network = self.network();
        let said = match get_u16(self.ip(), 2) {
            0 => self.wanted,
            n => usize::from(n) + network,
        };
        let mut missing = said.saturating_sub(at + len);
        let (number, first) = (self.ip()[9], is_first(self.ip()));
        let tcp_header_len = self.segment().get(12).map_or(0, |offset| usize::from(offset >> 4) * 4);
        if missing > 3 && first && number == protocol::TCP && !self.has_tcp_header_len && tcp_header_len == 20
        {
            let more = (missing & !3).min(40);
            self.insert(self.transport() + 20, more)?;
            self.segment()[12] = ((20 + more) / 4 * 16) as u8;
            missing -= more;
        }
        if missing > 3 && !self.has_ip_header_len && self.ip()[0] & 15 == 5 {
            let more = (missing & !3).min(40);
            self.insert(network + 20, more)?;
            self.ip()[0] = 0x40 | ((20 + more) / 4) as u8;
            self.packet.set_transport_header(network + 20 + more);
        }
        Ok(())
    }

    /// Puts `n` zeros in at `at`.
    fn insert(&mut self, at: usize, n: usize) -> Done {
        let before = self.packet.len();
        self.put(n)?;
        let data = self.packet.data_mut();
        if at <= before {
            data.copy_within(at..before, at + n);
            data[at..at + n].fill(0);
        }
        Ok(())
    }
}
