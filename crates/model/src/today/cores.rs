//! What a core takes for a turn: cycles of the file, and waits for lines of cache and memory.

use super::machine::{Copies, Plan};
use crate::ddio::{Moved, SharedCache};
use crate::event::{SECOND, Time};
use crate::memory::Memory;

/// Where things are in memory: regions that are far from each other.
const BUFFERS: u64 = 1 << 40;
const COPIES: u64 = 2 << 40;
const ROUTES: u64 = 3 << 40;
/// From a buffer to the next, bytes: the longest frame has room.
const BUFFER: u64 = 10_240;
/// Bytes of a frame's headers that a router reads and changes.
const HEADERS: u32 = 64;

/// The address of a core's buffer.
pub fn buffer_address(core: usize, buffer: u32) -> u64 {
    BUFFERS + ((core as u64) << 32) + u64::from(buffer) * BUFFER
}

/// A frame in a turn.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Its core's buffer.
    pub address: u64,
    /// Its bytes.
    pub bytes: u32,
    /// Its flow.
    pub flow: u64,
}

/// Cache and memory, and what a core takes of them.
pub struct Near {
    /// The shared cache.
    pub cache: SharedCache,
    /// Memory.
    pub memory: Memory,
    cycle_ps: f64,
    cache_latency_ps: Time,
    overlap: u64,
    packet: u64,
    turn: u64,
    line: u64,
    copies: Copies,
    route_lines: u64,
    /// Lines of the table of routes; 0: a core has it for itself.
    table_lines: u64,
    /// Lines that the processor found in the cache, and those that memory gave.
    pub hits: u64,
    pub misses: u64,
}

impl Near {
    /// Of a plan.
    pub fn new(plan: &Plan) -> Near {
        let (p, m) = (&plan.processor, plan.mechanism());
        let line_bytes = p.cache_line.value;
        let table = plan.software.route.value.saturating_mul(plan.traffic.routes.value);
        let own = table <= p.own_cache.value;
        Near {
            cache: SharedCache::new(
                p.cache.value,
                p.cache_ways.value as usize,
                p.card_ways.value as usize,
                line_bytes,
            ),
            memory: Memory::new(plan.memory.bytes_per_s(), plan.memory.latency.value),
            cycle_ps: SECOND as f64 / p.clock.value as f64,
            cache_latency_ps: p.cache_latency.value,
            overlap: p.overlap.value,
            packet: m.packet.value,
            turn: m.turn.value,
            line: m.line.value,
            copies: m.copies,
            route_lines: plan.software.route_lines.value,
            table_lines: if own { 0 } else { (table / line_bytes).min(1 << 32) },
            hits: 0,
            misses: 0,
        }
    }

    /// Lines moved between cache and memory; says how long memory takes until they are there.
    pub fn moved(&mut self, now_ps: Time, moved: Moved) -> Time {
        let line = self.cache.line_bytes();
        let [written_ps, read_ps] = [moved.written, moved.read]
            .map(|lines| if lines > 0 { self.memory.access(now_ps, lines * line) } else { 0 });
        written_ps.max(read_ps)
    }

    /// A core touches lines; says how long it waits for them.
    fn touch(&mut self, now_ps: Time, address: u64, bytes: u32, change: bool) -> Time {
        let moved = self.cache.touch(address, bytes, change);
        self.hits += u64::from(moved.hits);
        self.misses += u64::from(moved.read);
        let wait_ps = self.moved(now_ps, moved);
        (u64::from(moved.hits) * self.cache_latency_ps + u64::from(moved.read) * wait_ps) / self.overlap
    }

    /// How long a turn with these frames takes.
    pub fn turn_ps(&mut self, now_ps: Time, frames: &[Work]) -> Time {
        let mut cycles = self.turn + self.packet * frames.len() as u64;
        let mut wait_ps = 0;
        for frame in frames {
            let times = match self.copies {
                Copies::None => 0,
                Copies::In => 1,
                Copies::InAndOut => 2,
            };
            for _ in 0..times {
                cycles += self.copy_cycles(frame);
                wait_ps += self.copy_ps(now_ps, frame);
            }
            if times == 0 {
                wait_ps += self.touch(now_ps, frame.address, HEADERS, true);
            }
            wait_ps += (0..self.route_lines).map(|n| self.route_ps(now_ps, frame.flow, n)).sum::<Time>();
        }
        self.cycles_ps(cycles) + wait_ps
    }

    fn cycles_ps(&self, cycles: u64) -> Time {
        (cycles as f64 * self.cycle_ps) as Time
    }

    fn copy_cycles(&self, frame: &Work) -> u64 {
        self.line * u64::from(frame.bytes.div_ceil(self.cache.line_bytes()))
    }

    /// How long a core waits for the lines of a copy.
    fn copy_ps(&mut self, now_ps: Time, frame: &Work) -> Time {
        let copy = frame.address - BUFFERS + COPIES;
        self.touch(now_ps, frame.address, frame.bytes, false) + self.touch(now_ps, copy, frame.bytes, true)
    }

    /// How long a core waits for one of the lines of the table of routes that a lookup reads.
    fn route_ps(&mut self, now_ps: Time, flow: u64, n: u64) -> Time {
        if self.table_lines == 0 {
            return 0;
        }
        let place = super::mix(flow, n) % self.table_lines;
        self.touch(now_ps, ROUTES + place * u64::from(self.cache.line_bytes()), 1, false)
    }

    /// What a graph's core takes for a frame on its way in, beside what elements cost: its headers, or a copy.
    pub fn received_ps(&mut self, now_ps: Time, frame: &Work) -> Time {
        match self.copies {
            Copies::None => self.touch(now_ps, frame.address, HEADERS, true),
            Copies::In | Copies::InAndOut => {
                self.cycles_ps(self.copy_cycles(frame)) + self.copy_ps(now_ps, frame)
            }
        }
    }

    /// The same on its way out.
    pub fn sent_ps(&mut self, now_ps: Time, frame: &Work) -> Time {
        match self.copies {
            Copies::None | Copies::In => 0,
            Copies::InAndOut => self.cycles_ps(self.copy_cycles(frame)) + self.copy_ps(now_ps, frame),
        }
    }

    /// How long it waits for a line of a table that an element reads, somewhere.
    pub fn table_ps(&mut self, now_ps: Time, place: u64) -> Time {
        self.route_ps(now_ps, place, 0)
    }
}
