//! Packets as the rings of devices know them: by their offset in the mapping of all frames.

use crate::{Packet, pool};
use std::ptr::NonNull;

/// Between packets and the rings of a device, which know frames by their offset in the region.
impl Packet {
    /// Gives up the packet for `(offset of its first data byte in the region, bytes of data)`. The frame is
    /// lost to the pool until [`Packet::from_region`] takes it up again.
    #[inline]
    pub fn into_region(self) -> (u64, u32) {
        let at = self.region_offset();
        std::mem::forget(self);
        at
    }

    /// `(offset of the first data byte in the region, bytes of data)`.
    #[inline]
    pub fn region_offset(&self) -> (u64, u32) {
        let m = self.m();
        let offset = (m.frame as usize).wrapping_sub(pool::region().0 as usize) + m.data as usize;
        (offset as u64, m.len as u32)
    }

    /// Takes up the frame that holds the byte at `offset` of the region, as a packet of `len` bytes from there.
    /// Offsets or lengths outside the region or the frame give `None`, so a broken ring cannot break memory.
    ///
    /// # Safety
    /// The frame was given up by [`Packet::into_region`] and neither the kernel nor anybody else still uses it.
    #[inline]
    pub unsafe fn from_region(offset: u64, len: u32) -> Option<Packet> {
        let meta = NonNull::new(pool::meta_at(offset)?)?;
        let size = pool::frame_size() as u64;
        let headroom = offset & (size - 1);
        if headroom + len as u64 > size {
            return None;
        }
        let mut p = Packet { meta };
        p.reset(headroom as u16);
        p.mm().len = len as u16;
        Some(p)
    }
}
