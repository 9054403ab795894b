//! The intermediate representation: what an element does to a packet, in a form that can be read, checked and compiled.
//!
//! An element that can say what it does to a packet on input 0 lowers to a [`Program`]
//! ([`crate::Element::lower`]). Programs have one meaning, which the interpreter gives them ([`Program::run`]); all that
//! is made of programs must mean the same.
//!
//! # A program
//!
//! Blocks of operations over registers of 64 bits, which are zero at the start. A block ends by going on at a later block,
//! so that every program ends, or by saying what becomes of the packet: it leaves by an output, is dropped for a reason
//! of the element's class, or is *given up*.
//!
//! ```text
//! DecIPTTL                        r0 <- network[8..9]         a byte that is not there: give up
//!                                 if r0 > 1 go 1 else go 2
//!                              1: r1 <- r0 - 1
//!                                 network[8..9] <- r1
//!                                 ...
//!                                 leave by 0
//!                              2: give up
//! ```
//!
//! # Giving up
//!
//! A packet that is given up is the element's own: it gets the packet as it came, and does with it what it always did. So
//! a program need not say all that an element does; what is rare, keeps state or makes copies is left to the element. An
//! operation that cannot be done gives up too, such as one on bytes behind the packet's end. For this to be possible, a
//! program changes nothing before it is sure: [`Builder::finish`] makes no program that may give up after a change.
//!
//! # Reading order
//!
//! This file; [`Builder`], by which elements write programs and which checks them; `run`, the interpreter; [`walk`], which
//! follows packets of a kind through the programs of a chain and says what is done to them; `diagram`, which makes
//! classifications short.

mod build;
mod check;
mod diagram;
pub mod expr;
mod intervals;
mod run;
mod search;
#[cfg(test)]
mod tests;
pub mod walk;

pub use build::Builder;
pub use diagram::as_diagram;
pub use run::Outcome;

use crate::counters::Counter;
use std::any::Any;
use std::sync::Arc;

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reg(u8);

impl Reg {
    /// Its number, below [`REGISTERS`].
    pub fn number(self) -> usize {
        self.0.into()
    }
}

/// Registers that a program may have.
pub const REGISTERS: usize = 64;

/// Words that a key of a table has at most: two addresses of IPv6, and two words more.
pub const KEY_WORDS: usize = 6;

/// What is looked up in a table. Words behind those that the table's keys have are 0.
pub type Key<T> = [T; KEY_WORDS];

/// The key of these words.
pub fn key<T: From<u64>, const N: usize>(words: [T; N]) -> Key<T> {
    const { assert!(N <= KEY_WORDS, "a key has no more words") };
    let mut words = words.into_iter();
    std::array::from_fn(|_| words.next().unwrap_or_else(|| 0.into()))
}

/// Bytes of annotations that a packet has.
pub const ANNOTATIONS: usize = causeway_packet::meta::ANNO_BYTES;

/// A block, by number.
pub type Block = usize;

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// What a register holds.
    Of(Reg),
    /// A number.
    Const(u64),
}

impl From<Reg> for Value {
    fn from(reg: Reg) -> Value {
        Value::Of(reg)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Const(number)
    }
}

/// Where an offset in a packet counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The start of the data.
    Data,
    /// The network header.
    Network,
    /// The transport header.
    Transport,
}

/// A place in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Where the offset counts from.
    pub base: Base,
    /// Bytes behind it.
    pub offset: u32,
}

impl At {
    /// So many bytes behind the start of the data.
    pub const fn data(offset: u32) -> At {
        At { base: Base::Data, offset }
    }

    /// So many bytes behind the start of the network header.
    pub const fn network(offset: u32) -> At {
        At { base: Base::Network, offset }
    }
}

/// What is known of a packet besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Bytes of data. Put, it cuts the packet at the end; a longer one changes nothing.
    Length,
    /// How it was addressed at the link layer, as the number of a [`causeway_packet::PacketType`]. Read only.
    PacketType,
    /// Where the link-layer header starts, in bytes behind the start of the data. Put only.
    Mac,
    /// The same of the network header; who reads it of a packet that has none gives up.
    Network,
    /// The same of the transport header.
    Transport,
    /// Annotation bytes, 1 to 8 of them, as a number in network order.
    Anno(u8, u8),
}

/// What is computed of two numbers. All are of 64 bits and wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alu {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Bits in both.
    And,
    /// Bits in one of them.
    Or,
    /// Bits in just one of them.
    Xor,
    /// The first, shifted left by the second.
    Shl,
    /// The first, shifted right by the second.
    Shr,
    /// Ones' complement sum of two numbers of 16 bits: what checksums are updated by (RFC 1624).
    OnesAdd,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Loads 1 to 8 bytes, as a number in network order.
    Load {
        /// Where it goes.
        to: Reg,
        /// The first byte.
        at: At,
        /// How many.
        bytes: u8,
    },
    /// Reads a field.
    Get {
        /// Where it goes.
        to: Reg,
        /// The field.
        field: Field,
    },
    /// Computes.
    Compute {
        /// Where it goes.
        to: Reg,
        /// What.
        how: Alu,
        /// Of this.
        a: Value,
        /// And this.
        b: Value,
    },
    /// The Internet checksum's sum of bytes, folded to 16 bits and not complemented (RFC 1071): 0xffff over a header whose
    /// checksum is right.
    Sum {
        /// Where it goes.
        to: Reg,
        /// The first byte.
        at: At,
        /// How many.
        bytes: Value,
    },
    /// 1 if a number is one of a set, else 0.
    Member {
        /// Where it goes.
        to: Reg,
        /// The number.
        of: Value,
        /// The set.
        set: Arc<[u64]>,
    },
    /// Looks up in a table; gives up if nothing is found.
    LookUp {
        /// Where the three words go that are found; tables with less to say leave the others 0.
        to: [Reg; 3],
        /// The table's number in the program.
        table: u8,
        /// What is looked up.
        key: Key<Value>,
    },
    /// Writes the low bytes of a number, 1 to 8 of them, in network order.
    Store {
        /// The first byte.
        at: At,
        /// How many.
        bytes: u8,
        /// The number.
        value: Value,
    },
    /// Sets a field.
    Put {
        /// The field.
        field: Field,
        /// What to.
        value: Value,
    },
    /// Takes bytes off the front.
    Pull(u32),
    /// Puts bytes back on the front, of whatever content.
    Push(u32),
    /// Adds to a counter.
    Count {
        /// The counter's number in the program.
        counter: u8,
        /// How much.
        by: Value,
    },
}

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Two numbers are equal.
    Equal(Value, Value),
    /// The first number is greater, both without sign.
    Above(Value, Value),
    /// The packet has these bytes.
    Has(At, u32),
}

/// How a block ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Goes on there, at a later block.
    Go(Block),
    /// Goes on at one of two later blocks.
    If(Test, Block, Block),
    /// The packet leaves by this output.
    Leave(u16),
    /// The packet leaves by the output whose number this is.
    LeaveBy(Reg),
    /// The packet is dropped for this reason of the class.
    Drop(u16),
    /// The packet is left to the element.
    GiveUp,
}

/// A table that programs look up in.
pub trait Table: Any + Send {
    /// What the table has for a key.
    fn look_up(&mut self, key: Key<u64>, now_ns: u64) -> Option<[u64; 3]>;

    /// All that the table has now, keys and what is found for them, if those are few, their keys have two words at most, and it
    /// can be copied.
    fn entries(&self, now_ns: u64) -> Option<Vec<Entry>> {
        let _ = now_ns;
        None
    }
}

/// A key of two words, and what is found for it.
pub type Entry = ([u64; 2], [u64; 3]);

/// Operations one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The operations.
    pub ops: Vec<Op>,
    /// What comes behind them.
    pub end: End,
}

/// What an element does to a packet on input 0, as it is configured now.
pub struct Program {
    pub(crate) blocks: Vec<Code>,
    pub(crate) tables: Vec<Box<dyn Table>>,
    pub(crate) counters: Vec<Counter>,
    pub(crate) list: Option<Block>,
}

impl Program {
    /// Of a diagram, the block where the list begins that it is in front of, which does the same. Who knows much of packets beforehand
    /// may get by with less of that: a list asks whether there is something before it asks what it is.
    pub fn list(&self) -> Option<Block> {
        self.list
    }

    /// The blocks, by number.
    pub fn blocks(&self) -> &[Code] {
        &self.blocks
    }

    /// The counters, by number.
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// The tables, by number.
    pub fn tables(&self) -> &[Box<dyn Table>] {
        &self.tables
    }

    /// The tables, by number.
    pub fn into_tables(self) -> Vec<Box<dyn Table>> {
        self.tables
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, code) in self.blocks.iter().enumerate() {
            writeln!(f, "{number}:")?;
            code.ops.iter().try_for_each(|op| writeln!(f, "    {op:?}"))?;
            writeln!(f, "    {:?}", code.end)?;
        }
        Ok(())
    }
}
