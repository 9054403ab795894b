//! The ledger against a naive model: whatever a device writes into its rings, a frame has one owner, and none is lost.

#![allow(unsafe_code)]

use causeway_packet::ledger::{Claim, Direction, RingFrames, RingName, census};
use causeway_packet::{BATCH, Batch, Fifo, Packet, pool};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Few enough to be used up.
const FRAMES: u32 = 1_300;
const FRAME: u64 = 2_048;
const THREADS: usize = 3;
const RINGS: usize = 3;

static ONE: Mutex<()> = Mutex::new(());

/// The pool is one for the process, so these tests run one after another.
struct SmallPool(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

fn small_pool() -> SmallPool {
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    pool::init(pool::Config { frames: FRAMES, ..pool::Config::default() }).expect("the first to ask");
    SmallPool(one)
}

impl Drop for SmallPool {
    /// The next test's counts would miss what this thread keeps.
    fn drop(&mut self) {
        pool::flush_thread();
    }
}

/// Where in the region a packet's data begins.
fn address(packet: &Packet) -> u64 {
    (packet.data().as_ptr() as usize - pool::region().0 as usize) as u64
}

fn frame(packet: &Packet) -> u64 {
    address(packet) / FRAME
}

/// A thread with a magazine of its own that does one thing after another.
struct Actor {
    jobs: Sender<Box<dyn FnOnce() + Send>>,
    thread: JoinHandle<()>,
}

impl Actor {
    fn start() -> Actor {
        let (jobs, list): (_, Receiver<Box<dyn FnOnce() + Send>>) = channel();
        Actor { jobs, thread: std::thread::spawn(move || list.into_iter().for_each(|job| job())) }
    }

    fn run<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> R {
        let (to, from) = channel();
        self.jobs.send(Box::new(move || drop(to.send(job())))).expect("the actor lives");
        from.recv().expect("an answer")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Packet,
    Ring(usize),
}

#[derive(Clone, Debug)]
enum Op {
    Make,
    Drop(usize),
    Lend(usize, usize),
    Give(usize, usize),
    /// Of a frame that some ring has or any number at all; offset in the frame, length.
    Receive(usize, u64, u64, u32),
    Release(usize, Vec<u64>),
    /// Closes the ring, with frames or without, takes them back, and opens it anew.
    Reopen(usize),
}

fn op() -> impl Strategy<Value = (usize, Op)> {
    let ring = || 0..RINGS;
    let frame = || prop_oneof![4 => 0..u64::from(FRAMES), 1 => any::<u64>().prop_map(|n| n / FRAME)];
    let op = prop_oneof![
        4 => Just(Op::Make),
        2 => any::<usize>().prop_map(Op::Drop),
        2 => (ring(), 0usize..600).prop_map(|(r, n)| Op::Lend(r, n)),
        3 => (ring(), any::<usize>()).prop_map(|(r, i)| Op::Give(r, i)),
        4 => (ring(), frame(), 0..FRAME, 0u32..3_000).prop_map(|(r, f, at, len)| Op::Receive(r, f, at, len)),
        3 => (ring(), prop::collection::vec(frame(), 0..300)).prop_map(|(r, f)| Op::Release(r, f)),
        1 => ring().prop_map(Op::Reopen),
    ];
    (0..THREADS, op)
}

fn open(queue: usize) -> (RingFrames, Claim) {
    let direction = if queue.is_multiple_of(2) { Direction::Receive } else { Direction::Transmit };
    RingFrames::new(RingName { ifindex: 7, queue: queue as u16, direction }).expect("a place")
}

/// The real thing, and beside it a table of what is not free.
struct World {
    actors: Vec<Actor>,
    packets: Vec<Packet>,
    rings: Vec<Option<(RingFrames, Claim)>>,
    model: HashMap<u64, Owner>,
}

impl World {
    fn new() -> World {
        World {
            actors: (0..THREADS).map(|_| Actor::start()).collect(),
            packets: Vec::new(),
            rings: (0..RINGS).map(|r| Some(open(r))).collect(),
            model: HashMap::new(),
        }
    }

    /// Runs `job` on ring `r` in `actor`'s thread.
    fn with_ring<R: Send + 'static>(
        &mut self,
        actor: usize,
        r: usize,
        job: impl FnOnce(&mut RingFrames) -> R + Send + 'static,
    ) -> R {
        let (mut ring, claim) = self.rings[r].take().expect("open");
        let (ring, result) = self.actors[actor].run(move || {
            let result = job(&mut ring);
            (ring, result)
        });
        self.rings[r] = Some((ring, claim));
        result
    }

    fn has(&self, ring: usize) -> usize {
        self.model.values().filter(|&&o| o == Owner::Ring(ring)).count()
    }

    fn step(&mut self, actor: usize, op: Op) {
        match op {
            Op::Make => {
                if let Some(p) = self.actors[actor].run(|| Packet::from_bytes(b"made")) {
                    assert_eq!(self.model.insert(frame(&p), Owner::Packet), None, "it was free");
                    self.packets.push(p);
                }
            }
            Op::Drop(_) | Op::Give(..) if self.packets.is_empty() => {}
            Op::Drop(i) => {
                let p = self.packets.swap_remove(i % self.packets.len());
                assert_eq!(self.model.remove(&frame(&p)), Some(Owner::Packet));
                self.actors[actor].run(move || drop(p));
            }
            Op::Lend(r, n) => {
                let lent = self.with_ring(actor, r, move |ring| {
                    let mut out = vec![0; n];
                    let n = ring.lend(&mut out);
                    out.truncate(n);
                    out
                });
                for a in lent {
                    assert_eq!(a % FRAME, 0);
                    assert_eq!(self.model.insert(a / FRAME, Owner::Ring(r)), None, "it was free");
                }
            }
            Op::Give(r, i) => {
                let p = self.packets.swap_remove(i % self.packets.len());
                let want = (address(&p), p.len() as u32);
                assert_eq!(self.model.insert(frame(&p), Owner::Ring(r)), Some(Owner::Packet));
                assert_eq!(self.with_ring(actor, r, move |ring| ring.give(p)), want);
            }
            Op::Receive(r, f, at, len) => {
                let address = f.wrapping_mul(FRAME).wrapping_add(at);
                // SAFETY: there is no device; nobody writes to the frames of these rings.
                let got = self.with_ring(actor, r, move |ring| unsafe { ring.receive(address, len) });
                let f = address / FRAME;
                let want = self.model.get(&f) == Some(&Owner::Ring(r)) && at + u64::from(len) <= FRAME;
                assert_eq!(got.is_some(), want);
                if let Some(p) = got {
                    assert_eq!((frame(&p), p.headroom() as u64, p.len()), (f, at, len as usize));
                    self.model.insert(f, Owner::Packet);
                    self.packets.push(p);
                }
            }
            Op::Release(r, frames) => {
                let addresses: Vec<u64> = frames.iter().map(|f| f.wrapping_mul(FRAME)).collect();
                let want =
                    addresses.iter().filter(|&a| self.model.remove_if(a / FRAME, Owner::Ring(r))).count();
                // SAFETY: as above.
                let got = self.with_ring(actor, r, move |ring| unsafe { ring.release(&addresses) });
                assert_eq!(got, want);
            }
            Op::Reopen(r) => {
                let (ring, claim) = self.rings[r].take().expect("open");
                let want = self.has(r);
                assert_eq!(ring.held() as usize, want);
                drop(ring);
                // SAFETY: as above.
                let got = self.actors[actor].run(move || unsafe { claim.collect() }).expect("closed");
                assert_eq!(got as usize, want);
                self.model.retain(|_, o| *o != Owner::Ring(r));
                self.rings[r] = Some(open(r));
            }
        }
    }

    fn check(&self) {
        let census = census();
        let packets = self.model.values().filter(|&&o| o == Owner::Packet).count();
        assert_eq!(census.packets as usize, packets);
        assert_eq!(census.free as usize, FRAMES as usize - self.model.len());
        for (name, n) in &census.rings {
            assert_eq!(*n as usize, self.has(usize::from(name.queue)), "{name:?}");
        }
        assert_eq!(census.rings.len(), RINGS);
    }

    /// Puts everything away: all frames must be there to be taken, each once.
    fn end(mut self) {
        self.packets.clear();
        for (ring, claim) in self.rings.drain(..).flatten() {
            drop(ring);
            // SAFETY: as above.
            unsafe { claim.collect() }.expect("closed");
        }
        for actor in self.actors {
            drop(actor.jobs);
            actor.thread.join().expect("no panic");
        }
        pool::flush_thread();
        assert_eq!(census().free, FRAMES);
        assert_eq!(pool::shared_free(), u64::from(FRAMES), "what is free can be taken");
        let mut all: Vec<Packet> = std::iter::from_fn(Packet::new).collect();
        let mut frames: Vec<u64> = all.iter().map(frame).collect();
        frames.sort_unstable();
        assert_eq!(frames, (0..u64::from(FRAMES)).collect::<Vec<_>>());
        all.clear();
        pool::flush_thread();
    }
}

trait RemoveIf {
    fn remove_if(&mut self, frame: u64, owner: Owner) -> bool;
}

impl RemoveIf for HashMap<u64, Owner> {
    fn remove_if(&mut self, frame: u64, owner: Owner) -> bool {
        self.get(&frame) == Some(&owner) && self.remove(&frame).is_some()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Packets, lending, giving, receiving, releasing and closing in several threads, with any numbers.
    #[test]
    fn agrees_with_a_table(ops in prop::collection::vec(op(), 1..200)) {
        let _one = small_pool();
        let mut world = World::new();
        for (actor, op) in ops {
            world.step(actor, op);
            world.check();
        }
        world.end();
    }
}

/// Threads with a ring each make packets, give, lend, and take back numbers out of the blue, many of them frames of
/// the others. Each packet carries a number of its own: two over one frame would show.
#[test]
fn no_frame_is_two_packets_whatever_the_rings_say() {
    let _one = small_pool();
    let threads: Vec<_> = (0..4u64).map(|thread| std::thread::spawn(move || storm(thread))).collect();
    for thread in threads {
        thread.join().expect("no frame had two owners");
    }
    pool::flush_thread();
    assert_eq!((census().free, pool::shared_free()), (FRAMES, u64::from(FRAMES)));
    assert!(census().rings.is_empty());
}

fn storm(thread: u64) {
    let (mut ring, mut claim) = open(thread as usize);
    let mut packets: Vec<(Packet, u64)> = Vec::new();
    let mut state = thread * 977 + 1;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let whole = |(p, n): &(Packet, u64)| assert_eq!(p.data(), n.to_ne_bytes(), "somebody else wrote here");
    for round in 0..40_000u64 {
        let number = round * 4 + thread;
        let any_address = random() % (u64::from(FRAMES) * FRAME);
        match random() % 8 {
            0..3 if packets.len() < 200 => {
                packets.extend(Packet::from_bytes(&number.to_ne_bytes()).map(|p| (p, number)));
            }
            0..4 if !packets.is_empty() => {
                let (p, n) = packets.swap_remove(random() as usize % packets.len());
                whole(&(p, n));
            }
            4 if !packets.is_empty() => drop(ring.give(packets.swap_remove(0).0)),
            5 => drop(ring.lend(&mut [0; 5])),
            // SAFETY: there is no device; nobody writes to the frames of this ring.
            6 => match unsafe { ring.receive(any_address & !(FRAME - 1), 8) } {
                Some(mut p) => {
                    p.data_mut().copy_from_slice(&number.to_ne_bytes());
                    packets.push((p, number));
                }
                None => packets.iter().take(3).for_each(whole),
            },
            // SAFETY: as above.
            7 => drop(unsafe { ring.release(&[any_address, any_address, u64::MAX]) }),
            _ => {}
        }
        if round % 1_000 == 999 {
            drop(ring);
            // SAFETY: as above.
            unsafe { claim.collect() }.expect("closed");
            (ring, claim) = open(thread as usize);
        }
    }
    packets.iter().for_each(whole);
    drop((packets, ring));
    // SAFETY: as above.
    unsafe { claim.collect() }.expect("closed");
}

/// What a process finds that is handed the descriptor and knows the documented layout.
#[test]
fn the_file_says_who_has_what() {
    let _one = small_pool();
    let (mut ring, claim) =
        RingFrames::new(RingName { ifindex: 0x0102_0304, queue: 0x0506, direction: Direction::Transmit })
            .expect("a place");
    let packet = Packet::new().expect("a frame");
    let number = frame(&packet);
    ring.give(packet);
    let kept = Packet::new().expect("a frame");
    let file = File::from(pool::descriptor().try_clone_to_owned().expect("a copy"));
    let read = |at: u64, n: usize| {
        let mut bytes = vec![0; n];
        file.read_exact_at(&mut bytes, at).expect("inside the file");
        bytes
    };
    let long = |at: u64| u64::from_ne_bytes(read(at, 8).try_into().expect("8 bytes"));
    let (rings, owners) = (long(32), long(40));
    let owner = |frame: u64| u16::from_ne_bytes(read(owners + frame * 2, 2).try_into().expect("2 bytes"));
    assert_eq!(owner(frame(&kept)), 1, "a packet's");
    assert_eq!((0..u64::from(FRAMES)).filter(|f| owner(*f) == 0).count(), FRAMES as usize - 2);
    let place = u64::from(owner(number)) - 2;
    assert_eq!(long(rings + place * 8), 0x0101_0506_0102_0304, "open, to transmit, queue, interface");
    drop((ring, kept));
    assert_eq!(long(rings + place * 8) >> 56, 2, "closed");
    // SAFETY: there is no device.
    assert_eq!(unsafe { claim.collect() }.expect("closed"), 1);
    assert_eq!((owner(number), long(rings + place * 8)), (0, 0));
}

#[test]
fn an_open_ring_cannot_be_collected() {
    let _one = small_pool();
    let (mut ring, claim) = open(0);
    let mut out = [0; 3];
    assert_eq!(ring.lend(&mut out), 3);
    // SAFETY: there is no device.
    let claim = unsafe { claim.collect() }.expect_err("its frames are in use");
    // SAFETY: as above.
    assert_eq!(unsafe { ring.release(&out[..1]) }, 1);
    drop(ring);
    // SAFETY: as above.
    assert_eq!(unsafe { claim.collect() }.expect("closed"), 2);
}

/// Frames of which there are fewer than it says.
struct Promised(usize);

impl Iterator for Promised {
    type Item = &'static [u8];

    fn next(&mut self) -> Option<&'static [u8]> {
        self.0 = self.0.checked_sub(1)?;
        Some(&[7; 60])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (150, Some(150))
    }
}

impl ExactSizeIterator for Promised {}

#[test]
fn frames_that_become_no_packets_are_free_again() {
    let _pool = small_pool();
    let all = || std::iter::from_fn(Packet::new).collect::<Vec<_>>();
    let mut others = all();
    assert_eq!(others.len(), FRAMES as usize, "no frame is lost");
    others.truncate(FRAMES as usize - 200);
    let (fits, too_long) = ([7; 2_048], [7; 2_049]);
    let mut batch = Batch::new();
    let frames = [&fits[..], &too_long, &fits].into_iter().cycle().take(150);
    // As many as fit are asked for before the lengths are known.
    assert_eq!(batch.extend_copies(frames.collect::<Vec<_>>().into_iter()), 100);
    assert_eq!(census().packets, FRAMES - 100);
    let more = vec![&fits[..]; 300];
    assert_eq!(batch.extend_copies(more.into_iter()), 100, "all that the pool had");
    assert_eq!(census().free, 0);
    drop((batch, others));
    assert_eq!((Batch::new().extend_copies(Promised(20)), Batch::new().extend_copies(Promised(0))), (20, 0));
    let others = all();
    let frames: HashSet<u64> = others.iter().map(frame).collect();
    assert_eq!((others.len(), frames.len()), (FRAMES as usize, FRAMES as usize));
}

#[test]
fn a_queue_gives_back_what_it_drops() {
    let _pool = small_pool();
    let (mut fifo, mut batch) = (Fifo::with_capacity(256), Batch::new());
    for (push, pop) in [(256, 200), (190, 0)] {
        batch.extend_copies(vec![&[7][..]; push].into_iter());
        assert_eq!((fifo.push_batch(&mut batch, BATCH), batch.len()), (push, 0));
        fifo.pop_batch(&mut batch, pop);
        batch.clear();
    }
    // From behind the end of its places and from before it, then from one piece.
    assert_eq!((fifo.truncate(40), fifo.len(), census().packets), (206, 40, 40));
    assert_eq!((fifo.truncate(40), fifo.truncate(usize::MAX)), (0, 0));
    drop(fifo);
    assert_eq!(std::iter::from_fn(Packet::new).collect::<Vec<_>>().len(), FRAMES as usize);
}
