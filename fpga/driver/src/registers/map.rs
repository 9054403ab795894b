//! The one source of the register map: the constants below, the Verilog package `fpga/rtl/nic_pkg.sv` and the pages of
//! `fpga/doc/registers` are made from it.

/// Who may do what with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It can be read; writes are ignored.
    Read,
    /// It can be written; reads give zero.
    Write,
    /// What was written is read back.
    ReadWrite,
    /// It can be read; a one clears its bit.
    Clear,
}

/// A register, or several of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// Its name in Rust; the Verilog one has `REG_` before it.
    pub name: &'static str,
    /// Offset in BAR 0, in bytes.
    pub offset: u16,
    /// Reading and writing.
    pub access: Access,
    /// How many there are, and bytes from one to the next.
    pub repeat: (u16, u16),
    /// What it is.
    pub doc: &'static str,
    /// Its bits that have names.
    pub bits: &'static [Bit],
}

/// A bit of a register.
#[derive(Clone, Copy, Debug)]
pub struct Bit {
    /// Its name, in Rust a mask, in Verilog a number with `BIT_` before it.
    pub name: &'static str,
    /// Its number.
    pub number: u8,
    /// What it is.
    pub doc: &'static str,
}

/// Registers that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Short name, of its page.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// The registers.
    pub registers: &'static [Register],
}

/// A counter; its register is `COUNTERS + 8 * index`.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// Its name.
    pub name: &'static str,
    /// What is counted.
    pub doc: &'static str,
}

macro_rules! blocks {
    ($($(#[doc = $about:literal])+ $block:ident {
        $($(#[doc = $doc:literal])+ $name:ident = $offset:literal, $access:ident $([$count:literal, $stride:literal])?
            $({ $($(#[doc = $bit_doc:literal])+ $bit:ident = $number:literal),+ $(,)? })?;)+
    })+) => {
        $($($(#[doc = $doc])+ pub const $name: u16 = $offset;
            $($($(#[doc = $bit_doc])+ pub const $bit: u64 = 1 << $number;)+)?
        )+)+
        /// All blocks, by offset.
        pub const BLOCKS: &[Block] = &[$(Block {
            name: stringify!($block),
            doc: concat!($($about, "\n"),+),
            registers: &[$(Register {
                name: stringify!($name),
                offset: $offset,
                access: Access::$access,
                repeat: blocks!(@repeat $($count, $stride)?),
                doc: concat!($($doc, "\n"),+),
                bits: &[$($(Bit {
                    name: stringify!($bit), number: $number, doc: concat!($($bit_doc, "\n"),+)
                }),+)?],
            }),+],
        }),+];
    };
    (@repeat) => { (1, 8) };
    (@repeat $count:literal, $stride:literal) => { ($count, $stride) };
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The counters in the order of their registers; the input FIFOs' drops follow, one for each destination
        /// and class.
        pub const COUNTER_TABLE: &[Counter] = &[$(
            Counter { name: stringify!($name), doc: concat!($($doc, "\n"),+) }
        ),+];
    };
}

blocks! {
    /// Who the card is and whether it takes part. While it is not enabled it answers in this area of its BAR alone:
    /// peers find nobody, and mark it down. The driver changes its number and address only while it is not enabled.
    control {
        /// Identity in bits 63:32, version of this map in bits 31:16.
        ID = 0x000, Read;
        /// What the card does.
        CONTROL = 0x008, ReadWrite {
            /// Receive, forward, and answer the peers.
            CONTROL_ENABLE = 0,
            /// As a target, disconnect write sequences at every 128-byte boundary (for tests).
            CONTROL_DISCONNECT = 1,
        };
        /// The card's number, bits 2:0.
        OWN_ID = 0x010, ReadWrite;
        /// The card's Ethernet address; the low byte is the first on the wire.
        OWN_MAC = 0x018, ReadWrite;
        /// The response scheduler grants only when so many words are free in the output FIFO, bits 11:0; an empty
        /// FIFO is always enough, and so is any room after four ticks.
        GRANT_MIN_WORDS = 0x020, ReadWrite;
        /// The response scheduler's rule, bits 1:0 (0 round robin, 1 high first, 2 longest high backlog, 3 surplus
        /// round robin), and the words of a turn for the last one, bits 26:16; after reset 0 and 256.
        SCHEDULER = 0x028, ReadWrite;
        /// Idle bus cycles that make a tick, bits 15:0; after reset 1024. All time-outs are counted in ticks.
        PATIENCE = 0x030, ReadWrite;
        /// What the card was built with: cards addressed 7:0, routes 15:8, words of an input FIFO 31:16, of an output
        /// FIFO 47:32.
        PARAMETERS = 0x038, Read;
    }
    /// The interrupt line is high while a bit of the status is set that is enabled. A bit that is set in the very
    /// cycle in which it is cleared stays set.
    interrupts {
        /// What has happened since it was cleared.
        IRQ_STATUS = 0x040, Clear {
            /// A receive descriptor was written.
            IRQ_RX = 0,
            /// The count of finished transmit descriptors was written.
            IRQ_TX = 1,
            /// A bit of the errors was set.
            IRQ_ERROR = 2,
        };
        /// Which of them interrupt.
        IRQ_ENABLE = 0x048, ReadWrite;
        /// What went wrong since it was cleared.
        ERRORS = 0x050, Clear {
            /// Nobody answered a sequence, or its target stopped it.
            ERROR_ABORT = 0,
            /// A word with wrong parity, sent or received.
            ERROR_PARITY = 1,
            /// A read was not answered in time.
            ERROR_READ_TIMEOUT = 2,
            /// A transmit descriptor was refused.
            ERROR_DESCRIPTOR = 3,
            /// A message made no sense or came from a card that had no right to it.
            ERROR_PROTOCOL = 4,
            /// A peer that had a grant did not use it in time.
            ERROR_BURST_TIMEOUT = 5,
            /// A peer is down.
            ERROR_PEER_DOWN = 6,
            /// A received frame was cut off between the clocks.
            ERROR_RX_CUT = 7,
            /// A frame was cut off in transmission.
            ERROR_TX_CUT = 8,
            /// A FIFO without reservation was full and refused a word: a fault of the card itself.
            ERROR_OVERFLOW = 9,
        };
    }
    /// Two rings of 256 buffers of 2 048 bytes: the low class's, and 0x18 further on the high class's. The card writes a
    /// frame into the buffer whose turn it is, then its descriptor: phase in bit 63 (one in the first lap, changing with
    /// every lap), class in bit 62, bytes in bits 10:0. Descriptors begin at a multiple of 2 KiB, buffers at a multiple
    /// of 512 KiB.
    receive {
        /// Where a ring's descriptors are in host memory.
        RX_DESC_BASE = 0x060, ReadWrite [2, 0x18];
        /// Where its buffers are.
        RX_BUFFER_BASE = 0x068, ReadWrite [2, 0x18];
        /// How many buffers the host has given since the reset, modulo 2^16; at most 256 more than were used.
        RX_TAIL = 0x070, ReadWrite [2, 0x18];
    }
    /// The card holds 64 descriptors. It refuses one whose frame is shorter than 14 or longer than 1 518 bytes, whose
    /// address is no multiple of 8, or that finds the queue full; refused and failed ones are finished as well. While it is
    /// not enabled it takes none.
    transmit {
        /// Posts a descriptor: address in bits 31:0, bytes in bits 42:32, a tag of the driver's in bits 63:48.
        TX_POST = 0x0a0, Write;
        /// Where the card writes TX_STATUS, every sixteen descriptors and when the queue is empty; a multiple of 8.
        TX_DONE_ADDRESS = 0x0a8, ReadWrite;
        /// Descriptors finished since the reset, bits 15:0; the tag of the last, 31:16; how many of them were refused or
        /// failed, 47:32.
        TX_STATUS = 0x0b0, Read;
    }
    /// The other cards. A card with bit 0 set here is expected to be there; towards each such card the link is
    /// established by SYNC and ACK, and again after any failure. Towards a peer that is down frames take the slow path.
    peers {
        /// Card n's BAR in bits 31:16.
        PEER_BASE = 0x100, ReadWrite [8, 8] {
            /// There is such a card.
            PEER_PRESENT = 0,
        };
        /// Four bits a card, card 0 in bits 3:0: bit 0, frames can go there; bit 1, its requests are served; bits 3:2,
        /// the link's state (0 down, 1 closing, 2 waiting for the ACK, 3 up).
        PEER_STATE = 0x140, Read;
        /// Links to establish anew, a bit a card.
        PEER_RESYNC = 0x148, Write;
    }
    /// Two banks, of which one is in force: rules are written into the other one, and a commit changes places between
    /// two frames. A load writes every route and class rule, those that are not wanted with zeros. Before the next load,
    /// RULES has to say that the change has happened.
    rules {
        /// Written: bit 0, the rules written last come into force; 0, none are, and everything goes to the host. Read:
        /// bit 0, rules are in force; bit 1, the change has not happened yet; bit 2, which bank is in force.
        RULES = 0x180, ReadWrite;
        /// What the paper leaves open; in force with the next commit.
        POLICY = 0x188, ReadWrite {
            /// Write the output port's address into forwarded frames.
            POLICY_WRITE_SOURCE_MAC = 0,
            /// Drop wrong header checksums instead of leaving them to the host.
            POLICY_DROP_BAD_CHECKSUM = 1,
            /// Hand expired packets to the host instead of dropping them.
            POLICY_TTL_TO_HOST = 2,
        };
        /// Routes, four words each, the first that matches wins: {mask, value}; {valid, edges, host, card}; next hop;
        /// source address.
        ROUTE = 0x400, ReadWrite [16, 32] {
            /// In the second word: there is such a route.
            ROUTE_VALID = 63,
            /// In the second word: the lowest and the highest address of the route are the host's (directed broadcast).
            ROUTE_EDGES = 62,
            /// In the second word: everything that matches is the host's.
            ROUTE_HOST = 61,
        };
        /// Class rules by destination, four words each: value 63:0; {enable, value 79:64}; mask 63:0; mask 79:64. The
        /// card's own number is the slow path.
        CLASS = 0x600, ReadWrite [8, 32] {
            /// In the second word: there is such a rule.
            CLASS_ENABLE = 63,
        };
    }
    /// 64 bits each, from the configuration of the FPGA on: a reset leaves them.
    counters {
        /// The counters, in the order of the table below.
        COUNTERS = 0x800, Read [48, 8];
    }
}

counters! {
    /// Frames that began on the line, good or bad, while the card was enabled.
    rx_frames,
    /// Of these, with a wrong check sequence or a line error.
    rx_bad_fcs,
    /// Shorter than 64 or longer than 1 518 bytes with check sequence (1 522 with a VLAN tag).
    rx_bad_length,
    /// Cut off between the receive clock and the card's.
    rx_cut,
    /// Carrier without start-of-frame delimiter; what comes within 32 byte times counts once.
    rx_no_sfd,
    /// Frames not received because they began less than 72 byte times after the one before, which no Ethernet frame
    /// does; within 32 byte times once.
    rx_crowded,
    /// Came while the card was not enabled.
    rx_disabled,
    /// Dropped because the TTL was used up.
    drop_ttl,
    /// Dropped because of a wrong header checksum.
    drop_checksum,
    /// Dropped because the total length exceeds the frame.
    drop_truncated,
    /// For another card.
    rx_fast,
    /// For the host.
    rx_slow,
    /// Of these, because the other card is down.
    slow_no_port,
    /// Dropped from the input FIFOs of a card that went down.
    drop_peer_down,
    /// Dropped because the burst they were in failed; one of them may have arrived when the peer vanished in the very
    /// cycle in which it took the packet's last word.
    drop_burst,
    /// Dropped at the output because the burst they came in had no grant any more.
    drop_stale,
    /// Dropped because host memory did not take them.
    drop_host,
    /// Transmit descriptors refused.
    tx_refused,
    /// Transmit descriptors whose frame could not be read.
    tx_failed,
    /// REQ messages that reached a peer, without trailing ones.
    req_sent,
    /// RES messages that reached a peer.
    res_sent,
    /// Bursts that reached a peer.
    bursts_sent,
    /// Of these, without a packet.
    bursts_empty,
    /// Frames of the fast path handed to the transmit clock.
    tx_fast,
    /// Frames of the slow path handed to the transmit clock.
    tx_slow,
    /// Frames that left the port whole.
    tx_frames,
    /// Frames cut off in transmission.
    tx_cut,
    /// Receive descriptors written.
    rx_to_host,
    /// Sequences that a target disconnected.
    bus_disconnects,
    /// Sequences that nobody answered or that the target stopped.
    bus_aborts,
    /// Words with wrong parity, sent or received.
    bus_parity,
    /// Links that had to be established anew.
    peer_resyncs,
}

/// What [`ID`] reads.
pub const ID_VALUE: u64 = 0x4341_5553_0002_0000;

/// Message types, bits 63:60 of a message's first word.
pub const MESSAGES: [(&str, u8); 7] =
    [("REQ", 1), ("RES", 2), ("BURST", 3), ("PKT", 4), ("SYNC", 5), ("ACK", 6), ("NAK", 7)];

/// Areas of BAR 0 beside the registers; address bits 15:12 select.
pub const AREAS: [(&str, u16, &str); 3] = [
    ("MAILBOX", 0x1000, "+ 0x40 * source: REQ at +0, RES at +8, SYNC, ACK and NAK at +16"),
    ("SPLIT", 0x2000, "completions of the card's own reads"),
    ("BURST", 0x8000, "+ 0x1000 * source: a burst's first word at +0 and no other one there"),
];

/// Routes that a card holds.
pub const ROUTES: usize = 16;
