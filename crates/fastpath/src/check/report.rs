//! What user space has of the self-check: reports, and the question anew.

use super::{HEADER, NO_NEIGHBOUR, REPORTS, Version, fib, in_report, look_up, part, question};
use crate::ways::Seen;
use crate::write::{DATA, DATA_END};
use causeway_bpf::{
    Alu, Asm, Cond, Map, MappedArray, Program, ProgramKind, Reg, Result, Size, SkbContext, action,
    possible_cpus,
};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

/// Bytes of an Ethernet header.
const ETHERNET: i16 = 14;
/// Octets of the longest header and of the ports behind it.
const SHOWN: usize = HEADER as usize + 4;

/// Memory that programs report in.
#[derive(Debug)]
pub struct Checks {
    memory: MappedArray,
    processors: u32,
    every: u32,
}

/// A packet that was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The interface that it came in by.
    pub ifindex: u32,
    /// Its IP header, and the ports behind it (zero if it has none that matter).
    header: [u8; SHOWN],
}

/// What the kernel answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What the lookup returned: 0 if the packet would be forwarded, else why not (`BPF_FIB_LKUP_RET_...`, or the negative
    /// number of an error).
    pub code: i32,
    /// The interface that it would leave by.
    pub ifindex: u32,
    /// Destination and source of the Ethernet header that it would have.
    pub addresses: [u8; 12],
}

/// A packet that the kernel would have treated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// What the table found for it.
    pub index: u32,
    /// The packet.
    pub asked: Asked,
    /// What the kernel would have done.
    pub answer: Answer,
}

impl Asked {
    /// The address that it goes to.
    #[must_use]
    pub fn destination(&self) -> IpAddr {
        match self.version() {
            Version::V4 => IpAddr::from(self.header[16..].first_chunk::<4>().copied().unwrap_or_default()),
            Version::V6 => IpAddr::from(self.header[24..].first_chunk::<16>().copied().unwrap_or_default()),
        }
    }

    /// Its header, and the ports behind it.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        let len = self.version().parts().1 as usize;
        &self.header[..len + 4]
    }

    fn version(&self) -> Version {
        if self.header[0] >> 4 == 6 { Version::V6 } else { Version::V4 }
    }
}

impl Answer {
    /// Why the packet would not be forwarded, for people.
    #[must_use]
    pub fn refusal(&self) -> Option<&'static str> {
        Some(match self.code {
            0 => return None,
            1 => "it would be discarded",
            2 => "its destination is unreachable",
            3 => "it is prohibited",
            4 => "it would not be forwarded",
            5 => "forwarding is off",
            6 => "it would go into a tunnel",
            NO_NEIGHBOUR => "the neighbour is not known",
            8 => "it is too long",
            _ => "the lookup fails",
        })
    }

    /// Whether the packet would be forwarded by an interface without neighbours. The lookup asks for one there too, and it is
    /// known only while the kernel has sent to it.
    #[must_use]
    pub fn needs_no_neighbour(&self) -> bool {
        matches!(self.code, 0 | NO_NEIGHBOUR)
    }

    fn of(code: i32, answer: &[u8; fib::BYTES as usize]) -> Answer {
        let at = |at: i16| at as usize;
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&answer[at(fib::DESTINATION_MAC)..][..6]);
        addresses[6..].copy_from_slice(&answer[at(fib::SOURCE_MAC)..][..6]);
        let ifindex = answer[at(fib::INTERFACE)..].first_chunk().copied().map_or(0, u32::from_ne_bytes);
        Answer { code, ifindex, addresses }
    }
}

impl Checks {
    /// The kernel is asked about one packet in `every` or more, on each processor.
    ///
    /// # Errors
    /// As [`MappedArray::new`].
    pub fn new(every: u32) -> Result<Checks> {
        let processors = possible_cpus()?.next_power_of_two() as u32;
        let memory = MappedArray::new("checks", (part::BYTES * processors) as usize, 1)?;
        let every = every.clamp(1, i32::MAX as u32);
        let first = |n| memory.word((n * part::BYTES) as usize + part::LEFT as usize);
        (0..processors).for_each(|n| first(n).store((every - 1).into(), Ordering::Relaxed));
        Ok(Checks { memory, processors, every })
    }

    /// Takes the reports that there are.
    pub fn reports(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        for processor in 0..self.processors {
            let word = |at: i16| self.memory.word((processor * part::BYTES) as usize + at as usize);
            let written = word(part::WRITTEN).load(Ordering::Acquire);
            let taken = word(part::TAKEN);
            for number in taken.load(Ordering::Relaxed)..written {
                let slot = (number % REPORTS as u64) as usize * in_report::BYTES as usize;
                reports.push(self.report((processor * part::BYTES) as usize + part::REPORTS as usize + slot));
            }
            // Release: it is written over from here on.
            taken.store(written, Ordering::Release);
        }
        reports
    }

    /// Packets about which the kernel was asked.
    pub fn asked(&self) -> u64 {
        let word = |n| self.memory.word((n * part::BYTES) as usize + part::ASKED as usize);
        (0..self.processors).map(|n| word(n).load(Ordering::Relaxed)).sum()
    }

    pub(super) fn map(&self) -> &Map {
        self.memory.map()
    }

    pub(super) fn every(&self) -> u32 {
        self.every
    }

    /// The report at a byte of the memory.
    fn report(&self, at: usize) -> Report {
        let bytes: [u8; in_report::BYTES as usize] = bytes(&self.memory, at);
        let word = |at: i16| bytes[at as usize..].first_chunk().copied().map_or(0, u32::from_ne_bytes);
        let question = bytes[in_report::QUESTION as usize..].first_chunk().copied();
        let question = question.unwrap_or([0; fib::BYTES as usize]);
        let mut asked = Asked { ifindex: word(in_report::INTERFACE), header: [0; SHOWN] };
        asked.header[..HEADER as usize]
            .copy_from_slice(&bytes[in_report::HEADER as usize..][..HEADER as usize]);
        let ports = asked.version().parts().1 as usize;
        asked.header[ports..][..4].copy_from_slice(&question[fib::SOURCE_PORT as usize..][..4]);
        // An index is below 2^32.
        let index: [u8; 8] = bytes.first_chunk().copied().unwrap_or_default();
        Report {
            index: u64::from_ne_bytes(index) as u32,
            asked,
            answer: Answer::of(word(in_report::CODE) as i32, &question),
        }
    }
}

/// Bytes of memory that nobody writes meanwhile.
fn bytes<const N: usize>(memory: &MappedArray, from: usize) -> [u8; N] {
    let mut bytes = [0; N];
    for (at, eight) in (from..).step_by(8).zip(bytes.as_chunks_mut::<8>().0) {
        *eight = memory.word(at).load(Ordering::Relaxed).to_ne_bytes();
    }
    bytes
}

/// Asks the kernel about a packet again, without it.
#[derive(Debug)]
pub struct Asker {
    /// The question and answer, and what the lookup returned.
    memory: MappedArray,
    program: Program,
}

impl Asker {
    /// Loads what asks.
    ///
    /// # Errors
    /// As [`MappedArray::new`] and [`Program::load`].
    pub fn new() -> Result<Asker> {
        let memory = MappedArray::new("question", fib::BYTES as usize + 8, 1)?;
        let mut asm = Asm::new();
        let (context, end) = (asm.slot(8), asm.label());
        asm.store_slot(Size::D, context, 0, Reg::R1);
        // As a packet of the stack, which may come in by interfaces that no frame can come in by.
        let seen = (Seen::Packet, context);
        asm.skb_data(Reg::R1, DATA, DATA_END);
        asm.xdp_require(DATA, DATA_END, i32::from(ETHERNET + HEADER), Reg::R0, end);
        let (six, asked) = (asm.label(), asm.label());
        asm.load(Size::B, Reg::R2, DATA, ETHERNET);
        asm.alu(Alu::Rsh, Reg::R2, 4);
        asm.map_value(Reg::R1, memory.map().as_fd(), 0);
        asm.jump_if(Cond::Eq, Reg::R2, 6, six);
        question(&mut asm, Version::V4, ETHERNET, seen);
        asm.jump(asked);
        asm.bind(six);
        question(&mut asm, Version::V6, ETHERNET, seen);
        asm.bind(asked);
        look_up(&mut asm, context);
        asm.map_value(Reg::R1, memory.map().as_fd(), fib::BYTES);
        asm.store(Size::D, Reg::R1, 0, Reg::R0);
        asm.bind(end);
        asm.mov(Reg::R0, action::TCX_NEXT);
        asm.exit();
        let program = Program::load(ProgramKind::SchedCls, "causeway_ask", &asm.finish()?)?;
        Ok(Asker { memory, program })
    }

    /// What the kernel would do with the packet now. The calling thread is in the network namespace of its interface.
    ///
    /// # Errors
    /// What bpf(2) says, as when the interface is gone.
    pub fn ask(&mut self, asked: &Asked) -> Result<Answer> {
        let frame = [&[0; ETHERNET as usize][..], &asked.header].concat();
        self.program
            .test_run_at_tcx(&frame, SkbContext { ifindex: asked.ifindex, ..SkbContext::default() })?;
        let code = self.memory.word(fib::BYTES as usize).load(Ordering::Relaxed) as i32;
        Ok(Answer::of(code, &bytes(&self.memory, 0)))
    }
}
