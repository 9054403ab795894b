//! What a fused element does, from what the elements of its chain say that they do.

use super::step::{AddressAt, HeaderCheck, RouteLookup, Step};
use causeway_engine::Lowered;
use causeway_packet::wire::{ethernet, ipv4};

/// The elements of a chain, by name.
pub(super) struct Names {
    pub classifier: String,
    /// Output of the classifier that the chain starts at.
    pub output: usize,
    /// Between classifier and table.
    pub path: Vec<String>,
    pub table: String,
    /// Behind each output of the table.
    pub branches: Vec<Vec<String>>,
}

/// What is done to ordinary packets.
pub(super) struct Pass {
    /// The header check, of headers behind an Ethernet header, which is stripped.
    pub check: HeaderCheck,
    pub table: RouteLookup,
    /// Paint that packets get.
    pub paint: Option<u8>,
    /// For each output of the table; `None` leaves its packets to the chain.
    pub rules: Vec<Option<Rule>>,
    /// Why packets are left to the chain, a line for each such output.
    pub left: Vec<String>,
}

/// What is done to the packets of one output of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Packets of this paint are left to the chain, which copies them.
    pub copied_paint: Option<u8>,
    /// Whether the time to live is decremented.
    pub ttl: bool,
    /// Longer packets are left to the chain; no packet is longer than the greatest number.
    pub mtu: u16,
}

/// Answers what an element lowers to, by name.
pub(super) type Ask<'a> = &'a mut dyn FnMut(&str) -> Option<Lowered>;

fn step(name: &str, ask: Ask<'_>) -> Result<Step, String> {
    match ask(name).map(|lowered| lowered.downcast()) {
        Some(Ok(step)) => Ok(*step),
        _ => Err(format!("{name} as it is configured is not part of a pass, or it lives on another worker")),
    }
}

impl Pass {
    /// The pass of a chain, or why there is none.
    pub fn of(names: &Names, ask: Ask<'_>) -> Result<Pass, String> {
        let Names { classifier, output, table, .. } = names;
        match step(classifier, ask)? {
            Step::Classify { ipv4_output } if ipv4_output == Some(*output) => {}
            _ => return Err(format!("IPv4 frames do not all leave {classifier} by output {output}")),
        }
        let (check, paint) = input(&names.path, ask)?;
        let Step::LookUp(lookup) = step(table, ask)? else { return Err(format!("{table} is no table")) };
        let (mut rules, mut left) = (Vec::new(), Vec::new());
        for (port, path) in names.branches.iter().enumerate() {
            let rule = Rule::of(path, ask);
            left.extend(
                rule.as_ref().err().map(|why| format!("output {port} of {table} to the chain: {why}")),
            );
            rules.push(rule.ok());
        }
        Ok(Pass { check, table: lookup, paint, rules, left })
    }
}

/// The header check and the paint that packets get between classifier and table, if headers are looked for behind
/// an Ethernet header and that alone is stripped.
fn input(path: &[String], ask: Ask<'_>) -> Result<(HeaderCheck, Option<u8>), String> {
    let (mut stripped, mut paint, mut check) = (0usize, None, None);
    for name in path {
        match step(name, ask)? {
            Step::Paint(color) => paint = Some(color),
            Step::Strip(bytes) => stripped = stripped.saturating_add(bytes),
            Step::Check(c)
                if check.is_none() && stripped.saturating_add(c.offset) == ethernet::HEADER_LEN =>
            {
                check = Some(c);
            }
            Step::Check(_) => {
                return Err(format!("{name} does not check once, behind the Ethernet header"));
            }
            Step::Address(at) if check.is_some() && is_destination(at, stripped) => {}
            _ => return Err(format!("{name} does not find the destination of a checked header")),
        }
    }
    match check {
        Some(check) if stripped == ethernet::HEADER_LEN => Ok((check, paint)),
        Some(_) => Err(format!("{stripped} bytes are stripped, not an Ethernet header")),
        None => Err("no header is checked before the table".to_owned()),
    }
}

/// Whether `at` is the destination of an IPv4 header behind an Ethernet header, of which `stripped` bytes are gone.
fn is_destination(at: AddressAt, stripped: usize) -> bool {
    match at {
        AddressAt::Header(offset) => offset == ipv4::field::DST.start,
        AddressAt::Data(offset) => {
            offset.checked_add(stripped) == Some(ethernet::HEADER_LEN + ipv4::field::DST.start)
        }
    }
}

impl Rule {
    fn of(path: &[String], ask: Ask<'_>) -> Result<Rule, String> {
        let mut rule = Rule { copied_paint: None, ttl: false, mtu: u16::MAX };
        for name in path {
            match step(name, ask)? {
                Step::Pass => {}
                Step::Copy { paint } if rule.copied_paint.is_none() => rule.copied_paint = Some(paint),
                Step::DecrementTtl if !rule.ttl => rule.ttl = true,
                Step::Fragment { mtu } => rule.mtu = rule.mtu.min(u16::try_from(mtu).unwrap_or(u16::MAX)),
                _ => return Err(format!("{name} does a second time what was done before it")),
            }
        }
        Ok(rule)
    }
}
