//! A packet: the only owner of one frame.

use crate::hints::prefetch_at;
use crate::meta::{Far, Meta, NO_HEADER, Near};
use crate::pool;
use std::fmt;
use std::ptr::NonNull;

/// There is not enough room in the frame, or there are not enough bytes in the packet, for what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not enough room in the packet's frame")
    }
}

impl std::error::Error for NoRoom {}

/// A packet. It owns one frame and is not `Clone`; dropping it recycles the frame.
///
/// The data window starts at an offset in the frame; the bytes before it are headroom, those after it tailroom.
/// Header offsets stay valid when the window moves, because they are kept relative to the frame.
pub struct Packet {
    pub(crate) meta: NonNull<Meta>,
}

// SAFETY: a packet is the only owner of its frame and metadata; both are plain memory without thread affinity.
unsafe impl Send for Packet {}

impl Drop for Packet {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this packet owned the frame, and is gone after this call.
        unsafe { pool::give_back(self.meta) }
    }
}

impl Packet {
    /// Headroom of a fresh packet in bytes: room for an Ethernet header with two tags, an IPv6 header and more.
    pub const HEADROOM: usize = 128;

    /// An empty packet with the usual headroom; `None` when the pool is exhausted.
    #[inline]
    pub fn new() -> Option<Packet> {
        Self::with_headroom(Self::HEADROOM)
    }

    /// An empty packet with `headroom` bytes (at most the frame size) before its data.
    #[inline]
    pub fn with_headroom(headroom: usize) -> Option<Packet> {
        let (meta, frame) = pool::take()?;
        // SAFETY: the pool has just given this frame to us.
        Some(unsafe { Self::at(meta, frame, headroom.min(pool::frame_size()) as u16, 0) })
    }

    /// The packet of `len` bytes, `data` bytes into `frame`, with fresh metadata.
    ///
    /// # Safety
    /// `meta` and `frame` belong together and to nobody else, and `data + len` is at most the frame size.
    #[inline]
    pub(crate) unsafe fn at(meta: NonNull<Meta>, frame: *mut u8, data: u16, len: u16) -> Packet {
        // SAFETY: the metadata is ours to write; nothing in it needs to be dropped. Its far half stays as it is.
        unsafe { (&raw mut (*meta.as_ptr()).near).write(Near::fresh(frame, data, len)) };
        Packet { meta }
    }

    /// A packet that holds a copy of `bytes`; `None` when the pool is exhausted or the bytes do not fit a frame.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Option<Packet> {
        let mut p = Self::new()?;
        p.fill(bytes).ok()?;
        Some(p)
    }

    /// Copies `bytes` into a fresh packet, with less headroom if there is not enough room for both.
    #[inline]
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        let most = pool::frame_size().checked_sub(bytes.len()).ok_or(NoRoom)?;
        let m = self.mm();
        m.data = m.data.min(most as u16);
        self.put(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// A copy of data, header offsets and annotations in a fresh frame; `None` when the pool is exhausted. The
    /// transmit tag is the original's alone.
    pub fn copy(&self) -> Option<Packet> {
        let (meta, frame) = pool::take()?;
        // SAFETY: the pool has just given us this frame and its metadata. Every field but the frame's own address is
        // the original's.
        unsafe { (&raw mut (*meta.as_ptr()).near).write(Near { frame, ..self.m().clone() }) };
        let mut p = Packet { meta };
        if let Some(far) = self.far() {
            // SAFETY: as above; only the original tells its sender when it is gone.
            unsafe { (&raw mut (*meta.as_ptr()).far).write(Far { tagged: false, ..far.clone() }) };
        }
        p.data_mut().copy_from_slice(self.data());
        Some(p)
    }

    /// Forgets all but the data: header offsets, annotations, times, tag and trace, as if it had come over a wire.
    #[inline]
    pub fn forget(&mut self) {
        let m = self.mm();
        *m = Near::fresh(m.frame, m.data, m.len);
    }

    #[inline(always)]
    pub(crate) fn m(&self) -> &Near {
        // SAFETY: the packet is the only owner of its metadata, which was written when it was made.
        unsafe { &(*self.meta.as_ptr()).near }
    }

    #[inline(always)]
    pub(crate) fn mm(&mut self) -> &mut Near {
        // SAFETY: as in `m`; the borrow of `self` is exclusive.
        unsafe { &mut (*self.meta.as_ptr()).near }
    }

    /// The far half of the metadata; `None` if nothing of it was set.
    #[inline(always)]
    pub(crate) fn far(&self) -> Option<&Far> {
        // SAFETY: as in `m`; this half was written when `has_far` was set.
        self.m().has_far.then(|| unsafe { &(*self.meta.as_ptr()).far })
    }

    /// The far half of the metadata, for writing.
    #[inline]
    pub(crate) fn far_mut(&mut self) -> &mut Far {
        // SAFETY: the address of a field of what `meta` points to.
        let far = unsafe { &raw mut (*self.meta.as_ptr()).far };
        if !std::mem::replace(&mut self.mm().has_far, true) {
            // SAFETY: the metadata is this packet's to write, and nothing in it needs to be dropped.
            unsafe { far.write(Far::EMPTY) };
        }
        // SAFETY: written, above or before; the borrow of `self` is exclusive.
        unsafe { &mut *far }
    }

    /// The packet's bytes.
    #[inline(always)]
    pub fn data(&self) -> &[u8] {
        let m = self.m();
        // SAFETY: `data + len` never exceeds the frame size, and the frame belongs to this packet.
        unsafe { std::slice::from_raw_parts(m.frame.add(m.data as usize), m.len as usize) }
    }

    /// The packet's bytes, for writing.
    #[inline(always)]
    pub fn data_mut(&mut self) -> &mut [u8] {
        let m = self.m();
        // SAFETY: as in `data`; the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(m.frame.add(m.data as usize), m.len as usize) }
    }

    /// Bytes of data.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.m().len as usize
    }

    /// Whether there are no bytes of data.
    pub fn is_empty(&self) -> bool {
        self.m().len == 0
    }

    /// The `N` bytes before the data, if there are as many: what a device put there, or what is stale.
    #[inline]
    pub fn in_front<const N: usize>(&self) -> Option<[u8; N]> {
        let m = self.m();
        let from = usize::from(m.data).checked_sub(N)?;
        // SAFETY: `from..data` lies inside the frame, whose bytes are all initialised, mapped or allocated as zeros, and which belongs to this packet.
        Some(unsafe { m.frame.add(from).cast::<[u8; N]>().read_unaligned() })
    }

    /// Bytes before the data.
    #[inline]
    pub fn headroom(&self) -> usize {
        self.m().data as usize
    }

    /// Bytes after the data.
    #[inline]
    pub fn tailroom(&self) -> usize {
        pool::frame_size() - self.m().data as usize - self.m().len as usize
    }

    /// Takes `n` bytes of headroom into the packet and returns the whole data; the new bytes are stale.
    #[inline]
    pub fn push(&mut self, n: usize) -> Result<&mut [u8], NoRoom> {
        let m = self.mm();
        let Some(data) = (m.data as usize).checked_sub(n) else { return self.push_after_moving(n) };
        m.data = data as u16;
        m.len += n as u16;
        Ok(self.data_mut())
    }

    /// The slow case of `push`: the data moves towards the end of the frame to make headroom.
    #[cold]
    fn push_after_moving(&mut self, n: usize) -> Result<&mut [u8], NoRoom> {
        let (tail, len, from) = (self.tailroom(), self.len(), self.headroom());
        let missing = n.checked_sub(from).ok_or(NoRoom)?;
        if missing > tail {
            return Err(NoRoom);
        }
        let shift = (missing + Self::HEADROOM).min(tail);
        self.put(shift)?;
        self.data_mut().copy_within(..len, shift);
        let m = self.mm();
        m.data = (from + shift - n) as u16;
        m.len = (len + n) as u16;
        for header in [&mut m.mac, &mut m.network, &mut m.transport] {
            if *header != NO_HEADER {
                *header += shift as u16;
            }
        }
        Ok(self.data_mut())
    }

    /// Gives the first `n` bytes back to the headroom.
    #[inline]
    pub fn pull(&mut self, n: usize) -> Result<(), NoRoom> {
        let m = self.mm();
        if n > m.len as usize {
            return Err(NoRoom);
        }
        m.data += n as u16;
        m.len -= n as u16;
        Ok(())
    }

    /// Appends `n` bytes of tailroom and returns them; their content is stale.
    #[inline]
    pub fn put(&mut self, n: usize) -> Result<&mut [u8], NoRoom> {
        if n > self.tailroom() {
            return Err(NoRoom);
        }
        let m = self.mm();
        let at = m.len as usize;
        m.len += n as u16;
        Ok(&mut self.data_mut()[at..])
    }

    /// Cuts `n` bytes off the end.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<(), NoRoom> {
        let m = self.mm();
        if n > m.len as usize {
            return Err(NoRoom);
        }
        m.len -= n as u16;
        Ok(())
    }

    /// Cuts the packet to its first `len` bytes; a longer `len` changes nothing.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        let m = self.mm();
        m.len = m.len.min(len.min(u16::MAX as usize) as u16);
    }

    /// Asks the processor to fetch the start of the data.
    #[inline(always)]
    pub fn prefetch_data(&self) {
        let m = self.m();
        prefetch_at(m.frame.wrapping_add(m.data as usize));
    }

    /// Asks the processor to fetch the packet's metadata.
    #[inline(always)]
    pub fn prefetch_meta(&self) {
        prefetch_at(self.meta.as_ptr().cast());
    }
}

/// Header offsets. They are set and read relative to the start of the data, and survive moves of the window.
impl Packet {
    /// The link-layer header and what follows it, if its place is known and inside the data.
    pub fn mac_header(&self) -> Option<&[u8]> {
        self.at_frame_offset(self.m().mac)
    }

    /// The network header and what follows it, if its place is known and inside the data.
    #[inline]
    pub fn network_header(&self) -> Option<&[u8]> {
        self.at_frame_offset(self.m().network)
    }

    /// The network header and what follows it, for writing.
    #[inline]
    pub fn network_header_mut(&mut self) -> Option<&mut [u8]> {
        let at = self.network_offset()?;
        self.data_mut().get_mut(at..)
    }

    /// The transport header and what follows it, if its place is known and inside the data.
    #[inline]
    pub fn transport_header(&self) -> Option<&[u8]> {
        self.at_frame_offset(self.m().transport)
    }

    /// The transport header and what follows it, for writing.
    #[inline]
    pub fn transport_header_mut(&mut self) -> Option<&mut [u8]> {
        let at = self.transport_offset()?;
        self.data_mut().get_mut(at..)
    }

    fn at_frame_offset(&self, offset: u16) -> Option<&[u8]> {
        self.data().get(self.data_offset(offset)?..)
    }

    #[inline]
    fn data_offset(&self, offset: u16) -> Option<usize> {
        if offset == NO_HEADER { None } else { offset.checked_sub(self.m().data).map(usize::from) }
    }

    /// Offset of the network header from the start of the data; `None` if unset or before the data.
    #[inline]
    pub fn network_offset(&self) -> Option<usize> {
        self.data_offset(self.m().network)
    }

    /// Offset of the transport header from the start of the data; `None` if unset or before the data.
    #[inline]
    pub fn transport_offset(&self) -> Option<usize> {
        self.data_offset(self.m().transport)
    }

    /// Whether a network header was marked, and how many bytes before (negative) or after the start of the data it
    /// lies.
    pub fn network_distance(&self) -> Option<i32> {
        let m = self.m();
        (m.network != NO_HEADER).then(|| m.network as i32 - m.data as i32)
    }

    /// Whether a link-layer header was marked, and how many bytes before (negative) or after the start of the
    /// data it lies.
    pub fn mac_distance(&self) -> Option<i32> {
        let m = self.m();
        (m.mac != NO_HEADER).then(|| m.mac as i32 - m.data as i32)
    }

    /// The link-layer header, even when it was stripped off: the bytes from it to the start of the data.
    pub fn stripped_mac_header(&self) -> Option<&[u8]> {
        let m = self.m();
        let len = (m.data as usize).checked_sub(m.mac as usize)?;
        // SAFETY: `mac..data` lies inside the frame, which belongs to this packet.
        Some(unsafe { std::slice::from_raw_parts(m.frame.add(m.mac as usize), len) })
    }

    /// Marks the link-layer header at `offset` bytes into the data.
    #[inline]
    pub fn set_mac_header(&mut self, offset: usize) {
        let m = self.mm();
        m.mac = match offset {
            0 => m.data,
            _ => clamp_header(m.data as usize + offset),
        };
    }

    /// Marks the network header at `offset` bytes into the data.
    #[inline]
    pub fn set_network_header(&mut self, offset: usize) {
        let m = self.mm();
        m.network = clamp_header(m.data as usize + offset);
    }

    /// Marks the transport header at `offset` bytes into the data.
    #[inline]
    pub fn set_transport_header(&mut self, offset: usize) {
        let m = self.mm();
        m.transport = clamp_header(m.data as usize + offset);
    }

    /// Marks the network header at `offset` bytes into the data, and the transport header `header_len` bytes behind it.
    #[inline]
    pub fn set_network_headers(&mut self, offset: usize, header_len: usize) {
        let m = self.mm();
        let network = m.data as usize + offset;
        let transport = network + header_len;
        // Within the data is within the frame, and nobody need ask how large that is.
        (m.network, m.transport) =
            match offset + header_len <= m.len as usize || transport <= pool::frame_size() {
                true => (network as u16, transport as u16),
                false => (clamp_header(network), NO_HEADER),
            };
    }

    /// Cuts the packet to a link-layer header of `link_len` bytes and `network_len` bytes behind it, and marks the headers
    /// there: link-layer, network, and transport `header_len` bytes behind that. All at once, for who has checked the
    /// lengths; what is not there is cut and marked as [`truncate`](Self::truncate) and the others do it.
    #[inline(always)]
    pub fn frame_as(&mut self, link_len: usize, header_len: usize, network_len: usize) {
        let m = self.mm();
        let (data, network) = (m.data, m.data as usize + link_len);
        if header_len <= network_len && link_len + network_len <= m.len as usize {
            m.len = (link_len + network_len) as u16;
            (m.mac, m.network, m.transport) = (data, network as u16, (network + header_len) as u16);
        } else {
            self.truncate(link_len + network_len);
            self.set_mac_header(0);
            self.set_network_headers(link_len, header_len);
        }
    }

    /// Forgets where the headers are.
    pub fn clear_headers(&mut self) {
        let m = self.mm();
        (m.mac, m.network, m.transport) = (NO_HEADER, NO_HEADER, NO_HEADER);
    }
}

#[inline]
fn clamp_header(offset: usize) -> u16 {
    if offset <= pool::frame_size() { offset as u16 } else { NO_HEADER }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packet({} bytes: {:02x?})", self.len(), &self.data()[..self.len().min(32)])
    }
}
