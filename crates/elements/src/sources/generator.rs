//! What the sources share: the packet they repeat, how many of them they make, and their handlers.

use crate::handlers::Call;
use causeway_engine::measure::Unit;
use causeway_engine::spec::{ArgDoc, HandlerDoc, keyword, optional, reads, reads_writes, writes};
use causeway_engine::value::{Bytes, written};
use causeway_engine::{Conf, Counter, Cx, Error, Scope, Settings};
use causeway_packet::wire::ethernet;
use causeway_packet::{Batch, Packet, pool};
use std::net::Ipv4Addr;

/// What a packet holds unless DATA says otherwise: 69 bytes, the length that Click's sources have.
pub(super) const DATA: &[u8] = b"Causeway made this packet; it needs no more than sixty-nine bytes :-)";

/// What packets contain.
pub(super) const DATA_ARG: ArgDoc =
    optional("DATA", "string", "what packets contain; default a text of 69 bytes");
/// After how many packets a source ends.
pub(super) const LIMIT_ARG: ArgDoc =
    optional("LIMIT", "packets", "most packets made; negative means no limit; default -1");
/// Whether a source starts at once.
pub(super) const ACTIVE_ARG: ArgDoc = optional("ACTIVE", "boolean", "whether to make packets; default true");
/// Keyword arguments of every source.
pub(super) const LENGTH_ARG: ArgDoc = keyword(
    "LENGTH",
    "bytes",
    "length of the packets: DATA is cut, or repeated, to it; negative means that of DATA; default -1",
);
/// See [`LENGTH_ARG`]; the name that older configurations have.
pub(super) const DATASIZE_ARG: ArgDoc = keyword("DATASIZE", "bytes", "the same as LENGTH");
/// Room in front of the data.
pub(super) const HEADROOM_ARG: ArgDoc =
    keyword("HEADROOM", "bytes", "room in front of the packets' data; default 128");
/// What happens at the limit.
pub(super) const STOP_ARG: ArgDoc =
    keyword("STOP", "boolean", "whether to stop the router after LIMIT packets; default false");
/// What else happens there.
pub(super) const END_CALL_ARG: ArgDoc =
    keyword("END_CALL", "handler and value", "write handler to call after LIMIT packets; instead of STOP");

/// Packets made.
pub(super) const COUNT: HandlerDoc =
    reads("count", "packets made since the last reset").counts(Unit::Packets);
/// Start again.
pub(super) const RESET: HandlerDoc =
    writes("reset", "sets the count to zero, so that LIMIT packets are made again");
/// The limit.
pub(super) const LIMIT: HandlerDoc = reads_writes("limit", "most packets made; negative means no limit");
/// Whether it works.
pub(super) const ACTIVE: HandlerDoc = reads_writes("active", "whether it makes packets");
/// The bytes.
pub(super) const DATA_HANDLER: HandlerDoc = reads_writes("data", "DATA, as it stands, without unquoting");
/// The length.
pub(super) const LENGTH: HandlerDoc = reads_writes("length", "LENGTH");
/// See [`LENGTH`]; the name that older scripts have.
pub(super) const DATASIZE: HandlerDoc = reads_writes("datasize", "the same as `length`");

/// The room in front.
pub(super) const HEADROOM: HandlerDoc =
    reads_writes("headroom", "room in front of the packets' data, in bytes");

/// Makes copies of one packet, at most so many.
pub(super) struct Generator {
    data: Vec<u8>,
    /// Negative: that of `data`.
    length: i32,
    /// The bytes of a packet.
    bytes: Vec<u8>,
    headroom: usize,
    stamp: bool,
    /// Of packets that are Ethernet frames: length of the IP header, and the IPv4 destination.
    ip: Option<(usize, Option<Ipv4Addr>)>,
    /// Negative: none.
    limit: i64,
    end: Option<Call>,
    /// Whether it makes packets.
    pub(super) active: bool,
    count: Counter,
}

impl Generator {
    /// A generator of packets with `data`, which has room in a frame.
    pub(super) fn new(conf: &mut Conf<'_>, data: Vec<u8>, limit: i64, active: bool) -> Self {
        Generator {
            bytes: data.clone(),
            data,
            length: -1,
            headroom: Packet::HEADROOM,
            stamp: true,
            ip: None,
            limit,
            end: None,
            active,
            count: conf.fresh_counter("count"),
        }
    }

    /// As [`Generator::new`]; reads the keywords of the sources whose packets have any content.
    pub(super) fn configured(conf: &mut Conf<'_>, data: Bytes, limit: i64, active: bool) -> Self {
        let mut generator = Generator::new(conf, data.0, limit, active);
        generator.length = conf.keyword("LENGTH", -1);
        generator.length = conf.keyword("DATASIZE", generator.length);
        generator.headroom = conf.keyword("HEADROOM", Packet::HEADROOM as u32) as usize;
        generator.finish(conf);
        generator
    }

    /// As [`Generator::configured`], of packets that have nothing but a length.
    pub(super) fn sized(conf: &mut Conf<'_>, length: i32, limit: i64, active: bool) -> Self {
        let mut generator = Generator::new(conf, Vec::new(), limit, active);
        generator.length = length;
        generator.finish(conf);
        generator
    }

    /// Reads what happens at the limit, and makes the packet.
    fn finish(&mut self, conf: &mut Conf<'_>) {
        self.end = conf.keyword("STOP", false).then(Call::stop);
        if let Some(call) = conf.keyword_given("END_CALL")
            && self.end.replace(call).is_some()
        {
            conf.error("END_CALL and STOP are mutually exclusive");
        }
        if let Err(why) = self.render() {
            conf.error(why);
        }
    }

    /// Lets packets have no timestamp, or have one.
    pub(super) fn set_stamp(&mut self, stamp: bool) {
        self.stamp = stamp;
    }

    /// Lets packets, which are Ethernet frames, have their IP header of `header_len` bytes marked and their destination
    /// annotation set.
    pub(super) fn set_ip(&mut self, header_len: usize, dst: Option<Ipv4Addr>) {
        self.ip = Some((header_len, dst));
    }

    /// The bytes of a packet, to be changed.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Bytes of a packet.
    pub(super) fn packet_len(&self) -> usize {
        self.bytes.len()
    }

    fn render(&mut self) -> Result<(), Error> {
        let length = usize::try_from(self.length).unwrap_or(self.data.len());
        check_length(length, self.headroom)?;
        // Without data to repeat the packets are zeros.
        let repeated = self.data.iter().copied().cycle().chain(std::iter::repeat(0));
        self.bytes = repeated.take(length).collect();
        Ok(())
    }

    /// Packets that may still be made.
    pub(super) fn left(&self) -> u64 {
        u64::try_from(self.limit).map_or(u64::MAX, |limit| limit.saturating_sub(self.count.get()))
    }

    /// Appends at most `max` packets to `batch`, as many as limit, batch and pool allow; returns how many.
    pub(super) fn fill(&mut self, max: u64, batch: &mut Batch, cx: &mut Cx<'_>) -> usize {
        let want = max.min(self.left()).min(batch.room() as u64);
        let now_ns = if self.stamp && want > 0 { cx.now_ns() } else { 0 };
        let mut made = 0;
        while made < want {
            let Some(mut packet) = Packet::with_headroom(self.headroom) else { break };
            let Ok(data) = packet.put(self.bytes.len()) else { break };
            data.copy_from_slice(&self.bytes);
            packet.set_timestamp_ns(now_ns);
            if let Some((header_len, dst)) = self.ip {
                packet.set_network_headers(ethernet::HEADER_LEN, header_len);
                packet.set_dst_ip(dst.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
            }
            if batch.push(packet).is_err() {
                break;
            }
            made += 1;
        }
        self.count.add(made);
        made as usize
    }

    /// An error if there is nobody to be told that the limit was reached.
    pub(super) fn check(&self, cx: &Cx<'_>) -> Result<(), Error> {
        self.end.as_ref().map_or(Ok(()), |call| call.check(cx))
    }

    /// Says that the limit was reached.
    pub(super) fn end(&self, cx: &mut Cx<'_>) {
        if let Some(call) = &self.end {
            call.make(cx);
        }
    }

    fn set(&mut self, handler: &str, text: &str, scope: &Scope<'_>) -> Result<(), Error> {
        match handler {
            "limit" => self.limit = written(handler, text, scope)?,
            "active" => self.active = written(handler, text, scope)?,
            "headroom" => {
                let room: u32 = written(handler, text, scope)?;
                let before = std::mem::replace(&mut self.headroom, room as usize);
                self.render().inspect_err(|_| self.headroom = before)?;
            }
            "length" | "datasize" => {
                let before = std::mem::replace(&mut self.length, written(handler, text, scope)?);
                self.render().inspect_err(|_| self.length = before)?;
            }
            "data" => {
                let before = std::mem::replace(&mut self.data, text.as_bytes().to_vec());
                if let Err(why) = self.render() {
                    self.data = before;
                    return Err(why);
                }
            }
            _ => self.count.set(0),
        }
        Ok(())
    }
}

/// An error if no frame can hold so many bytes behind so many of headroom.
pub(super) fn check_length(length: usize, headroom: usize) -> Result<(), Error> {
    pool::ask_for_frames_of(length.saturating_add(headroom)).map_err(|most| {
        let room = most.saturating_sub(headroom);
        Error::new(format!("LENGTH: {length} bytes, but a frame has room for {room}"))
    })
}

/// What all sources have. Written by hand, since the length and the data must fit together.
impl Settings for Generator {
    fn read(&self, handler: &str) -> Option<String> {
        Some(match handler {
            "count" => self.count.get().to_string(),
            "limit" => self.limit.to_string(),
            "active" => self.active.to_string(),
            "length" | "datasize" => self.length.to_string(),
            "headroom" => self.headroom.to_string(),
            "data" => String::from_utf8_lossy(&self.data).into_owned(),
            _ => return None,
        })
    }

    fn write(&mut self, handler: &str, text: &str, scope: &Scope<'_>) -> Option<Result<(), Error>> {
        let known = ["reset", "limit", "active", "length", "datasize", "data", "headroom"].contains(&handler);
        known.then(|| self.set(handler, text, scope))
    }

    /// The count goes on.
    fn take(&mut self, new: &mut dyn Settings) {
        let new: &mut dyn std::any::Any = new;
        if let Some(new) = new.downcast_mut::<Generator>() {
            std::mem::swap(self, new);
            std::mem::swap(&mut self.count, &mut new.count);
        }
    }
}
