//! What a router must check of an IPv4 header before it believes it (RFC 1812 §5.2.2).

use causeway_engine::drop_reasons;
use causeway_packet::checksum;

drop_reasons! {
    /// What is wrong with a header.
    pub(crate) enum Fault {
        Short = "short", "fewer bytes than a header";
        Version = "bad-version", "the version is not 4";
        HeaderLength = "bad-header-length", "the header length is below 20 bytes or beyond the packet";
        Length = "bad-length", "the total length is below the header length or beyond the packet";
        Checksum = "bad-checksum", "the header checksum is wrong";
        Source = "bad-source", "the source is an address that no packet may come from";
    }
}

/// The fields of a checked header that forwarding needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Bytes of header, options included.
    pub header_len: usize,
    /// Bytes of the whole packet as the header has it.
    pub total_len: usize,
    pub source: u32,
    pub destination: u32,
}

/// Checks the header at the start of `data`.
#[inline(always)]
pub(crate) fn check(data: &[u8], with_checksum: bool) -> Result<Header, Fault> {
    let Some(h) = data.first_chunk::<20>() else { return Err(Fault::Short) };
    if h[0] >> 4 != 4 {
        return Err(Fault::Version);
    }
    let header_len = (h[0] & 15) as usize * 4;
    if header_len < 20 {
        return Err(Fault::HeaderLength);
    }
    // The usual header has no options, and its length is known when this is compiled.
    let with_options = match header_len {
        20 => None,
        _ => Some(data.get(..header_len).ok_or(Fault::HeaderLength)?),
    };
    let total_len = u16::from_be_bytes([h[2], h[3]]) as usize;
    if total_len < header_len || total_len > data.len() {
        return Err(Fault::Length);
    }
    if with_checksum && !with_options.map_or_else(|| checksum::verify_ipv4_header(h), checksum::verify) {
        return Err(Fault::Checksum);
    }
    Ok(Header {
        header_len,
        total_len,
        source: u32::from_be_bytes([h[12], h[13], h[14], h[15]]),
        destination: u32::from_be_bytes([h[16], h[17], h[18], h[19]]),
    })
}
