//! Traffic: which frames are offered to a router, from where to where, and when.
//!
//! A tester with real ports and a model with simulated ones offer the same, so what defines it is here, without a frame's
//! bytes: a [`Traffic`] has streams, a [matrix](Matrix) of ports and a [schedule](Schedule). A [`Plan`] says which stream
//! the n-th frame of a port belongs to, [`Values`] and [`Sizes`] what is in the n-th frame of a stream, and
//! [`Departures`] when the n-th frame leaves. All of it follows from the definition, its seed and n: two that read the same definition offer the
//! same frames.
//!
//! Lengths of frames are those on the wire, with the checksum and without preamble and gap, as RFC 2544 counts them.

mod groups;
mod matrix;
mod plan;
mod random;
mod schedule;
mod sizes;
#[cfg(test)]
mod tests;
mod values;

pub use groups::group;
pub use matrix::Matrix;
pub use plan::{Flow, Plan};
pub use random::nth;
pub use schedule::{Departures, Schedule};
pub use sizes::Sizes;
pub use values::Values;

use crate::Error;
use serde::{Deserialize, Serialize};

/// Bytes that a frame takes on the wire beside itself: preamble, start of frame and the gap between frames.
pub const WIRE_OVERHEAD: u32 = 20;

/// What is offered to a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Where all that looks random comes from.
    #[serde(default = "one")]
    pub seed: u64,
    /// When frames leave.
    #[serde(default)]
    pub schedule: Schedule,
    /// Which port sends to which.
    #[serde(default)]
    pub matrix: Matrix,
    /// The streams, which every port sends to every port that the matrix has it send to.
    #[serde(rename = "stream")]
    pub streams: Vec<Stream>,
}

fn one() -> u64 {
    1
}

/// Frames of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// What it is called in results.
    pub name: String,
    /// How many of a port's frames are of this stream, beside the weights of the others.
    #[serde(default = "Stream::weight")]
    pub weight: u32,
    /// Which protocol its addresses are of.
    #[serde(default)]
    pub family: Family,
    /// Lengths of its frames.
    #[serde(default)]
    pub size: Sizes,
    /// The number of the source among the addresses behind the port that sends.
    #[serde(default = "Stream::hosts")]
    pub source_host: Values,
    /// The number of the destination among the addresses behind the port that receives.
    #[serde(default = "Stream::hosts")]
    pub destination_host: Values,
    /// UDP source port.
    #[serde(default = "Stream::source_ports")]
    pub source_port: Values,
    /// UDP destination port.
    #[serde(default = "Stream::destination_ports")]
    pub destination_port: Values,
}

/// A version of the Internet Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Version 4.
    #[default]
    Ipv4,
    /// Version 6.
    Ipv6,
}

impl Family {
    /// Length in bytes of the shortest frame that has room for the tester's payload of 18 bytes: 64 for IPv4, 84 for
    /// IPv6, whose header is longer (RFC 5180 §5.1 says why a tester may need more than 64).
    pub fn shortest_frame(self) -> u32 {
        match self {
            Family::Ipv4 => 64,
            Family::Ipv6 => 84,
        }
    }
}

impl Stream {
    /// A stream of frames of one length, with addresses and ports as RFC 4814 wants them.
    pub fn new(name: &str, family: Family, size: Sizes) -> Stream {
        Stream {
            name: name.to_owned(),
            weight: Stream::weight(),
            family,
            size,
            source_host: Stream::hosts(),
            destination_host: Stream::hosts(),
            source_port: Stream::source_ports(),
            destination_port: Stream::destination_ports(),
        }
    }

    fn weight() -> u32 {
        1
    }

    /// Those of a network of 24 bits.
    fn hosts() -> Values {
        Values::Random { first: 1, count: 254 }
    }

    /// RFC 4814 §4.5: pseudorandom from 1024 to 65535.
    fn source_ports() -> Values {
        Values::Random { first: 1024, count: 64_512 }
    }

    /// RFC 4814 §4.5: pseudorandom from 1 to 49151.
    fn destination_ports() -> Values {
        Values::Random { first: 1, count: 49_151 }
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Invalid(format!("stream '{}': {what}", self.name)));
        let shortest = self.family.shortest_frame();
        match self.size.sequence() {
            Err(what) => return wrong(what),
            Ok(sizes) => {
                if let Some(short) = sizes.iter().find(|&&size| size < shortest) {
                    return wrong(format!(
                        "a frame of {short} bytes has no room for the tester's payload; the shortest has {shortest}"
                    ));
                }
            }
        }
        for (field, values, most) in [
            ("source_host", self.source_host, u32::MAX),
            ("destination_host", self.destination_host, u32::MAX),
            ("source_port", self.source_port, u32::from(u16::MAX)),
            ("destination_port", self.destination_port, u32::from(u16::MAX)),
        ] {
            if let Err(what) = values.check(most) {
                return wrong(format!("{field}: {what}"));
            }
        }
        Ok(())
    }
}

impl Traffic {
    /// One stream of IPv4 frames of `length` bytes between the ports of a pair, both ways.
    pub fn simple(length: u32) -> Traffic {
        Traffic {
            seed: one(),
            schedule: Schedule::default(),
            matrix: Matrix::default(),
            streams: vec![Stream::new("ipv4", Family::Ipv4, Sizes::Fixed(length))],
        }
    }

    /// Says what of the definition is not possible.
    ///
    /// # Errors
    /// One line that names the stream and the field.
    pub fn check(&self) -> Result<(), Error> {
        if self.streams.is_empty() {
            return Err(Error::Invalid("the traffic has no streams".to_owned()));
        }
        for (i, stream) in self.streams.iter().enumerate() {
            if self.streams[..i].iter().any(|other| other.name == stream.name) {
                return Err(Error::Invalid(format!("there are two streams '{}'", stream.name)));
            }
            stream.check()?;
        }
        self.schedule.check().map_err(|what| Error::Invalid(format!("schedule: {what}")))
    }

    /// The length of all frames together in bytes, divided by their number, as the weights have it. `None` of a
    /// definition that does not pass [`Traffic::check`].
    pub fn mean_length(&self) -> Option<f64> {
        let mut sum = 0.0;
        for stream in &self.streams {
            let sizes = stream.size.sequence().ok()?;
            let bytes: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
            sum += f64::from(stream.weight) * bytes as f64 / sizes.len() as f64;
        }
        let weights: f64 = self.streams.iter().map(|stream| f64::from(stream.weight)).sum();
        (weights > 0.0).then_some(sum / weights)
    }
}

/// Frames a second of a mean `length` in bytes that a link of `bits_per_s` can carry.
pub fn line_rate_fps(bits_per_s: f64, length: f64) -> f64 {
    bits_per_s / (8.0 * (length + f64::from(WIRE_OVERHEAD)))
}
