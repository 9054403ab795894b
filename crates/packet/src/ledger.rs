//! The ledger: who has each frame.
//!
//! Every frame has one owner at a time, a word in the pool's memory: nobody (it is free), a [`Packet`], or a ring of
//! a device. A ring's frames go through its [`RingFrames`], which notes what goes out and takes back only what is
//! noted as its own. So whatever numbers a driver writes into its rings, however often, no frame gets a second
//! owner: a frame that this ring does not have is refused, and the caller counts that.
//!
//! When the device is done with a ring that was closed, its [`Claim`] takes back what the ring still has.
//!
//! # The words
//!
//! An owner is 16 bits: 0 free, 1 a packet, from 2 on the ring in that place (less 2) of the table of rings. A ring is
//! 64 bits: interface index (0..32), queue (32..48), direction (48..56; 0 receive, 1 transmit), state (56..64; 0 no
//! ring, 1 open, 2 closed, 3 its frames are being taken back).

use crate::packet::Packet;
use crate::pool::{self, CHUNK};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

/// Rings that can have frames at once.
pub(crate) const RINGS: usize = 4_096;

/// Owner of a frame that nobody uses.
pub(crate) const FREE: u16 = 0;
/// Owner of a frame that is a packet.
pub(crate) const PACKET: u16 = 1;
/// Owner of the frames of the first ring.
const FIRST_RING: u16 = 2;

/// Which way a ring's frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Empty frames to the device, received packets back.
    Receive,
    /// Packets to the device, empty frames back.
    Transmit,
}

/// Which ring it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingName {
    /// The kernel's index of the interface.
    pub ifindex: u32,
    /// Queue of the interface.
    pub queue: u16,
    /// Which way its frames go.
    pub direction: Direction,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum State {
    Open = 1,
    Closed = 2,
    Reclaiming = 3,
}

impl RingName {
    fn word(self, state: State) -> u64 {
        let direction = u64::from(self.direction == Direction::Transmit);
        u64::from(self.ifindex) | u64::from(self.queue) << 32 | direction << 48 | (state as u64) << 56
    }

    fn of(word: u64) -> RingName {
        let direction = if word >> 48 & 1 == 0 { Direction::Receive } else { Direction::Transmit };
        RingName { ifindex: word as u32, queue: (word >> 32) as u16, direction }
    }
}

/// The frames that one ring of a device has. One thread at a time gives and takes.
#[derive(Debug)]
pub struct RingFrames {
    name: RingName,
    owner: u16,
    held: u32,
}

/// The right to take back what a ring still has when it was closed and its device is done with it.
#[derive(Debug)]
pub struct Claim {
    name: RingName,
    owner: u16,
}

fn place(owner: u16) -> &'static AtomicU64 {
    &pool::memory().rings()[usize::from(owner - FIRST_RING)]
}

fn owners() -> &'static [AtomicU16] {
    pool::memory().owners()
}

impl RingFrames {
    /// A ring without frames. `None` when [`pool::Mode::Allocator`] rules, whose packets no device can reach, or when
    /// the table of rings is full.
    pub fn new(name: RingName) -> Option<(RingFrames, Claim)> {
        if pool::config().mode == pool::Mode::Allocator {
            return None;
        }
        let word = name.word(State::Open);
        let take =
            |place: &AtomicU64| place.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let place = pool::memory().rings().iter().position(take)?;
        let owner = FIRST_RING + place as u16;
        Some((RingFrames { name, owner, held: 0 }, Claim { name, owner }))
    }

    /// Frames that the ring has.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Gives free frames to the ring: writes their addresses (offsets in [`pool::region`]) to `out` and returns how
    /// many the pool had.
    pub fn lend(&mut self, out: &mut [u64]) -> usize {
        let (memory, mut lent) = (pool::memory(), 0);
        let mut ids = [0; CHUNK];
        for addresses in out.chunks_mut(CHUNK) {
            let n = pool::take_free(&mut ids[..addresses.len()]);
            for (address, &id) in addresses.iter_mut().zip(&ids[..n]) {
                memory.owner(id).store(self.owner, Ordering::Relaxed);
                *address = memory.address(id);
            }
            lent += n;
            if n < addresses.len() {
                break;
            }
        }
        self.held += lent as u32;
        lent
    }

    /// Gives a packet's frame to the ring; returns the address of its first byte and its length.
    #[inline]
    pub fn give(&mut self, packet: Packet) -> (u64, u32) {
        let (memory, m) = (pool::memory(), packet.m());
        let id = memory.id_of(packet.meta.as_ptr());
        let at = (memory.address(id) + u64::from(m.data), u32::from(m.len));
        memory.owner(id).store(self.owner, Ordering::Relaxed);
        self.held += 1;
        std::mem::forget(packet);
        at
    }

    /// The frame that holds the byte at `address`, if the ring has it. It is then the caller's.
    #[inline]
    fn recover(&mut self, address: u64, owner: u16) -> Option<u32> {
        let id = pool::memory().id_at(address);
        let word = owners().get(usize::try_from(id).ok()?)?;
        // Only this ring's thread moves a frame out of the ring, so a load and a store are enough.
        if word.load(Ordering::Relaxed) != self.owner {
            return None;
        }
        word.store(owner, Ordering::Relaxed);
        self.held -= 1;
        Some(id as u32)
    }

    /// Takes up a received packet: `len` bytes from `address` on. `None`, and nothing changes, when the ring does not
    /// have that frame or the bytes are not all in it.
    ///
    /// # Safety
    /// `address` was read where the device gives frames of this ring back, so the device writes to it no more.
    #[inline]
    pub unsafe fn receive(&mut self, address: u64, len: u32) -> Option<Packet> {
        let size = pool::frame_size() as u64;
        let headroom = address & (size - 1);
        if headroom + u64::from(len) > size {
            return None;
        }
        let id = self.recover(address, PACKET)?;
        let meta = NonNull::new(pool::memory().meta(id))?;
        // SAFETY: the frame was the ring's, and is nobody else's now; so is its metadata.
        Some(unsafe { Packet::at(meta, pool::memory().frame(id), headroom as u16, len as u16) })
    }

    /// Takes back frames that the device has sent; returns how many of them the ring had.
    ///
    /// # Safety
    /// The addresses were read where the device gives frames of this ring back, so it reads them no more.
    pub unsafe fn release(&mut self, addresses: &[u64]) -> usize {
        let (mut ids, mut released) = ([0; CHUNK], 0);
        for addresses in addresses.chunks(CHUNK) {
            let mut n = 0;
            for id in addresses.iter().filter_map(|&a| self.recover(a, FREE)) {
                ids[n] = id;
                n += 1;
            }
            pool::put_free(&ids[..n]);
            released += n;
        }
        released
    }
}

impl Drop for RingFrames {
    /// Closes the ring. What it still has stays its own until its [`Claim`] is made good.
    fn drop(&mut self) {
        place(self.owner).store(self.name.word(State::Closed), Ordering::Release);
    }
}

impl Claim {
    /// The ring.
    pub fn ring(&self) -> RingName {
        self.name
    }

    /// Takes back all frames of the ring and returns how many there were.
    ///
    /// # Errors
    /// The claim, for later, while the ring is open: its [`RingFrames`] lives.
    ///
    /// # Safety
    /// The device of the ring does not use its frames any more.
    pub unsafe fn collect(self) -> Result<u32, Claim> {
        let (closed, reclaiming) = (self.name.word(State::Closed), self.name.word(State::Reclaiming));
        let place = place(self.owner);
        if place.compare_exchange(closed, reclaiming, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Err(self);
        }
        let (mut ids, mut n, mut total) = ([0; CHUNK], 0, 0);
        for (id, word) in (0..).zip(owners()) {
            if word.load(Ordering::Relaxed) == self.owner {
                word.store(FREE, Ordering::Relaxed);
                ids[n] = id;
                n += 1;
                total += 1;
            }
            if n == CHUNK {
                pool::share_free(&ids);
                n = 0;
            }
        }
        pool::share_free(&ids[..n]);
        place.store(0, Ordering::Release);
        Ok(total)
    }
}

/// Who has how many frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Free frames, wherever they wait.
    pub free: u32,
    /// Frames that are packets.
    pub packets: u32,
    /// Frames of each ring that is open, or closed and not yet done with.
    pub rings: Vec<(RingName, u32)>,
}

/// Counts the owners of all frames. Exact when nobody moves frames meanwhile; it reads each owner once.
pub fn census() -> Census {
    let mut counts = vec![0; usize::from(FIRST_RING) + RINGS];
    owners().iter().for_each(|o| counts[usize::from(o.load(Ordering::Relaxed))] += 1);
    let rings = pool::memory().rings().iter().zip(&counts[usize::from(FIRST_RING)..]);
    let rings = rings.map(|(place, &n)| (place.load(Ordering::Acquire), n)).filter(|(word, _)| *word != 0);
    Census {
        free: counts[usize::from(FREE)],
        packets: counts[usize::from(PACKET)],
        rings: rings.map(|(word, n)| (RingName::of(word), n)).collect(),
    }
}
