//! The file of this machine: what things take on it, and a bed of veth pairs for each device.

use crate::machine::{Descriptors, Packets, Part, Span, Value, from_toml, values};
use anyhow::Result;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a bed of veth pairs is in files without a device's own: the values that are not fitted.
const BED: &str = include_str!("../../machines/veth.toml");

/// A machine that was measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThisMachine {
    /// What it is.
    pub about: String,
    /// What it takes for single things.
    #[serde(default)]
    pub takes: BTreeMap<String, Value<Span>>,
    /// The bed with each device.
    pub bed: BTreeMap<String, BedValues>,
}

values! {
    /// A tester and a device, each with a processor of its own.
    BedValues {
        ;
        /// The tester's processor.
        tester: TesterValues,
        /// The device's.
        device: DeviceValues,
    }
    /// A processor with a thread that sends and receives by turns.
    TesterValues {
        /// A system call.
        call: Span,
        /// A look at the clock and at what came.
        look: Span,
        /// A frame of no bytes, from writing it until the device has it, where many go together.
        send: Span,
        /// Each byte of it.
        byte: Span,
        /// A frame of no bytes where few go together, which takes another way through the kernel.
        single: Span,
        /// Each byte of it.
        single_byte: Span,
        /// From so many frames on they are many.
        many: Packets,
        /// What many take beside the frames.
        many_call: Span,
        /// Of a frame's time, what is done with all frames of a batch before the first goes.
        together: Part,
        /// What it takes who brings a frame to wake the device's processor.
        wakes: Span,
        /// A frame of no bytes that is received.
        receive: Span,
        /// Each byte of it.
        receive_byte: Span,
        /// How long the laboratory's watch sleeps that is to see whether the processor stands still.
        watch: Span,
        /// What it takes the processor to wake it, and to have it sleep again.
        watched: Span,
        /// Room for frames that came.
        ring: Descriptors,
        /// By how much a piece of work takes longer or shorter.
        vary: Part,
    }
    /// A processor that forwards.
    DeviceValues {
        /// From a frame that finds it asleep until it works.
        wake: Span,
        /// From a frame that it looks out for until it works.
        look: Span,
        /// How long it looks out for more at most, before it sleeps.
        spin: Span,
        /// A turn, beside its frames.
        turn: Span,
        /// A frame of no bytes, where many leave together.
        frame: Span,
        /// Each byte of it.
        byte: Span,
        /// How much longer a frame takes where few leave together, which then take another way through the kernel.
        single: Span,
        /// From so many frames of a turn on they are many; at 1 there is one way only.
        many: Packets,
        /// What many take beside the frames.
        many_call: Span,
        /// Of a frame's time, what is done with all frames of a turn before the first leaves.
        together: Part,
        /// How long the laboratory's watch sleeps, as on the tester's.
        watch: Span,
        /// What it takes the processor, as the tester's.
        watched: Span,
        /// Frames of a turn at most.
        batch: Packets,
        /// Frames of a turn up to which those join it that come while it takes them.
        joins: Packets,
        /// Room for frames that wait.
        room: Packets,
        /// By how much a piece of work takes longer or shorter.
        vary: Part,
    }
}

impl ThisMachine {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// What is wrong, with file and line, and what is allowed.
    pub fn parse(text: &str, name: &str) -> Result<ThisMachine> {
        from_toml(text, name)
    }

    /// The bed as it is before anything is fitted, with a device of this name: the kernel, or one in user space.
    ///
    /// # Errors
    ///
    /// None, or the program was built with a file that is wrong.
    pub fn ready(device: &str) -> Result<BedValues> {
        let mut ready = ThisMachine::parse(BED, "veth.toml")?;
        let kind = if device == "kernel" { "kernel" } else { "user space" };
        ready.bed.remove(kind).ok_or_else(|| anyhow::anyhow!("veth.toml has no {kind}"))
    }
}

impl TesterValues {
    /// Each value's name, and what a file has of it.
    pub fn lines(&self) -> [(&'static str, String); 16] {
        [
            ("call", self.call.text()),
            ("look", self.look.text()),
            ("send", self.send.text()),
            ("byte", self.byte.text()),
            ("single", self.single.text()),
            ("single_byte", self.single_byte.text()),
            ("many", self.many.text()),
            ("many_call", self.many_call.text()),
            ("together", self.together.text()),
            ("wakes", self.wakes.text()),
            ("receive", self.receive.text()),
            ("receive_byte", self.receive_byte.text()),
            ("watch", self.watch.text()),
            ("watched", self.watched.text()),
            ("ring", self.ring.text()),
            ("vary", self.vary.text()),
        ]
    }
}

impl DeviceValues {
    /// As [`TesterValues::lines`].
    pub fn lines(&self) -> [(&'static str, String); 16] {
        [
            ("wake", self.wake.text()),
            ("look", self.look.text()),
            ("spin", self.spin.text()),
            ("turn", self.turn.text()),
            ("frame", self.frame.text()),
            ("byte", self.byte.text()),
            ("single", self.single.text()),
            ("many", self.many.text()),
            ("many_call", self.many_call.text()),
            ("together", self.together.text()),
            ("watch", self.watch.text()),
            ("watched", self.watched.text()),
            ("batch", self.batch.text()),
            ("joins", self.joins.text()),
            ("room", self.room.text()),
            ("vary", self.vary.text()),
        ]
    }
}
