//! Routing tables: made with the prefix lengths of the Internet, or read from a file.

use std::collections::HashSet;
use std::process::Command;

use causeway_fib::{ADJACENCIES_MAX, Address, MISS, Prefix};

use crate::Result;
use crate::random::{Random, Zipf};

/// A route of a benchmark.
pub type Route<A> = (Prefix<A>, u32);

/// Prefixes of each length in a full IPv4 table of May 2026 (RIPE RIS, AS3333), from /8.
const LENGTHS4: (u8, &[u32]) = (
    8,
    &[
        16, 14, 39, 95, 297, 584, 1201, 2129, 13_635, 8_347, 13_387, 25_516, 45_627, 52_463, 113_741,
        107_869, 657_365,
    ],
);
/// The same for IPv6, from /19.
const LENGTHS6: (u8, &[u32]) = (
    19,
    &[
        1, 14, 3, 6, 6, 42, 12, 17, 18, 161, 5_435, 827, 341, 26_740, 5_407, 5_197, 1_837, 9_424, 1_208,
        2_677, 1_829, 23_096, 1_697, 2_924, 1_453, 24_860, 4_511, 5_640, 8_925, 111_866,
    ],
);
const NEXT_HOPS: usize = 64;
/// Indices from zero, which is [`MISS`].
const NEXT_HOP_MAX: u32 = ADJACENCIES_MAX - 1;

/// The parts of making a table that differ between the families.
pub trait Family: Address {
    /// Length of the first entry and prefixes of each length.
    fn lengths() -> (u8, &'static [u32]);
    /// An address somewhere in the space that is routed.
    fn routed(random: &mut Random) -> Self;
    /// Any address.
    fn any(random: &mut Random) -> Self;
    /// Name in reports.
    const NAME: &'static str;
    /// An address as lookup functions are given it, by whatever library: IPv4 as a number, IPv6 as it is in the packet.
    type Wire: Copy;
    /// The address as it is given.
    fn to_wire(self) -> Self::Wire;
    /// The address as a number.
    fn from_wire(wire: Self::Wire) -> Self;
}

impl Family for u32 {
    const NAME: &'static str = "IPv4";
    type Wire = u32;

    fn to_wire(self) -> u32 {
        self
    }

    #[inline(always)]
    fn from_wire(wire: u32) -> u32 {
        wire
    }

    fn lengths() -> (u8, &'static [u32]) {
        LENGTHS4
    }

    fn routed(random: &mut Random) -> u32 {
        (1 + random.below(223) as u32) << 24 | random.next() as u32 >> 8
    }

    fn any(random: &mut Random) -> u32 {
        random.next() as u32
    }
}

impl Family for u128 {
    const NAME: &'static str = "IPv6";
    type Wire = [u8; 16];

    fn to_wire(self) -> [u8; 16] {
        self.to_be_bytes()
    }

    #[inline(always)]
    fn from_wire(wire: [u8; 16]) -> u128 {
        u128::from_be_bytes(wire)
    }

    fn lengths() -> (u8, &'static [u32]) {
        LENGTHS6
    }

    fn routed(random: &mut Random) -> u128 {
        // The /16s that the registries allocate from; half of all routes lie in 2a00::/12.
        const TOPS: [u16; 12] =
            [0x2001, 0x2400, 0x2401, 0x2402, 0x2403, 0x2404, 0x2405, 0x2406, 0x2600, 0x2602, 0x2620, 0x2804];
        let top = match random.below(2) {
            0 => TOPS[random.below(TOPS.len())],
            _ => 0x2a00 + random.below(16) as u16,
        };
        u128::from(top) << 112 | Self::any(random) >> 16
    }

    fn any(random: &mut Random) -> u128 {
        u128::from(random.next()) << 64 | u128::from(random.next())
    }
}

/// Makes a table of about `count` prefixes. Longer prefixes lie mostly inside shorter ones, many beside the one
/// before, and half of those lead where their neighbours lead, as on the Internet.
pub fn synthetic<A: Family>(count: usize, seed: u64) -> Vec<Route<A>> {
    let mut random = Random::new(seed);
    let next_hops = Zipf::new(NEXT_HOPS);
    let (first, lengths) = A::lengths();
    let total: u32 = lengths.iter().sum();
    let mut routes: Vec<Route<A>> = Vec::new();
    let mut seen = HashSet::new();
    for (len, &share) in (first..).zip(lengths) {
        let wanted = (u64::from(share) * count as u64).div_ceil(u64::from(total)) as usize;
        let shorter = routes.len();
        let mut before: Option<Route<A>> = None;
        let (mut made, mut tries) = (0, 0);
        while made < wanted && tries < wanted * 20 + 1000 {
            tries += 1;
            let parent = (shorter > 0 && random.below(4) > 0).then(|| routes[random.below(shorter)]);
            let beside = before.filter(|_| random.below(2) == 0);
            let (address, near) = match (beside, parent) {
                (Some(route), _) => (route.0.last().successor().unwrap_or(A::ZERO), Some(route.1)),
                (None, Some(route)) => {
                    (route.0.first() | (A::any(&mut random) & !A::mask(route.0.len())), Some(route.1))
                }
                (None, None) => (A::routed(&mut random), None),
            };
            let prefix = Prefix::truncated(address, len);
            let next_hop = match near {
                Some(next_hop) if random.below(2) == 0 => next_hop,
                _ => 1 + next_hops.draw(&mut random) as u32,
            };
            if seen.insert(prefix) {
                routes.push((prefix, next_hop));
                before = Some((prefix, next_hop));
                made += 1;
            }
        }
    }
    routes
}

/// The text of a file, through `gzip` when its name ends in `.gz`.
pub fn read_text(path: &str) -> Result<String> {
    if !path.ends_with(".gz") {
        return Ok(std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?);
    }
    let output =
        Command::new("gzip").args(["-dc", path]).output().map_err(|e| format!("gzip {path}: {e}"))?;
    if !output.status.success() {
        return Err(format!("gzip {path}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout).map_err(|error| format!("{path}: {error}"))?)
}

/// Reads lines of `prefix [next hop]`; where the next hop is missing it follows from the prefix. An error for a file
/// without routes and for next hops that the default tables cannot hold.
pub fn read<A: Family>(path: &str) -> Result<Vec<Route<A>>> {
    let mut routes = Vec::new();
    for (number, line) in read_text(path)?.lines().enumerate() {
        let at = |error: &dyn std::fmt::Display| format!("{path}:{}: {error}", number + 1);
        let mut words = line.split_whitespace();
        let Some(word) = words.next() else { continue };
        let prefix: Prefix<A> = word.parse().map_err(|error| at(&error))?;
        let next_hop = match words.next() {
            Some(text) => text.parse().map_err(|error| at(&error))?,
            None => 1 + Random::new(u64::from(prefix.first().bits(0, 32))).below(NEXT_HOPS) as u32,
        };
        if next_hop == MISS || next_hop > NEXT_HOP_MAX {
            return Err(at(&format_args!("next hop {next_hop}: they go from 1 to {NEXT_HOP_MAX}")).into());
        }
        routes.push((prefix, next_hop));
    }
    if routes.is_empty() {
        return Err(format!("{path}: no routes").into());
    }
    Ok(routes)
}

/// Next hops of [`with_random_next_hops`].
pub const RANDOM: usize = 250;

/// The same prefixes with next hops drawn uniformly from so many: the worst case for compression.
pub fn with_random_next_hops<A: Family>(routes: &[Route<A>], seed: u64) -> Vec<Route<A>> {
    let mut random = Random::new(seed);
    routes.iter().map(|&(prefix, _)| (prefix, 1 + random.below(RANDOM) as u32)).collect()
}

/// One line of an update stream: announced with this next hop, or withdrawn.
pub type Update<A> = (Prefix<A>, Option<u32>);

/// Reads lines of `A prefix` and `W prefix`; announcements get a random next hop.
pub fn read_updates<A: Family>(path: &str, seed: u64) -> Result<Vec<Update<A>>> {
    let mut random = Random::new(seed);
    let mut updates = Vec::new();
    for (number, line) in read_text(path)?.lines().enumerate() {
        let Some((kind, prefix)) = line.split_once(' ') else { continue };
        let prefix = prefix.trim().parse().map_err(|error| format!("{path}:{}: {error}", number + 1))?;
        updates.push((prefix, (kind == "A").then(|| 1 + random.below(NEXT_HOPS) as u32)));
    }
    Ok(updates)
}

/// An update stream as a busy day gives it: a tenth of the routes flap, most often the same ones.
pub fn synthetic_updates<A: Family>(routes: &[Route<A>], count: usize, seed: u64) -> Vec<Update<A>> {
    let mut random = Random::new(seed);
    let flapping: Vec<Prefix<A>> =
        (0..routes.len() / 10 + 1).map(|_| routes[random.below(routes.len())].0).collect();
    let often = Zipf::new(flapping.len());
    (0..count)
        .map(|_| {
            let prefix = flapping[often.draw(&mut random)];
            (prefix, (random.below(4) > 0).then(|| 1 + random.below(NEXT_HOPS) as u32))
        })
        .collect()
}
