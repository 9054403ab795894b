//! Routes apart: those by which the kernel was found to forward otherwise than the driver.
//!
//! The program in the driver asks the kernel about some packets before it forwards them. When the answer is another, the packet
//! is the kernel's, and so is every packet that finds the same next hop, at once. Here the prefix is taken out, so that the
//! next hop can be trusted again for all others, and the kernel's tables are read again. The prefix comes back when the kernel
//! says the same as the tables: mostly they were only behind. If it does not, that is a difference, and is counted; the kernel
//! is asked again whenever something has changed, and its tables are read again more and more seldom.

use super::Tables;
use super::routes::Patience;
use causeway_elements::kernel::KERNEL;
use causeway_fastpath::{Answer, Report};
use causeway_fib::{AdjacencyIndex, Table};
use causeway_kernel::{HopId, Prefix};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::time::{Duration, Instant};

/// Between two readings of the kernel's tables: at first, and at most while differences stand.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Packets about which the kernel is asked again at a time, in some milliseconds: the follower is to be heard of meanwhile.
const AT_ONCE: usize = 1_000;

/// See the module.
pub(super) struct Apart {
    /// What prefixes apart lead to: the kernel.
    pub index: AdjacencyIndex,
    cases: BTreeMap<Prefix, Case>,
    reading: Reading,
    /// How long the kernel's tables are not read again after the next time, and until when they are not now.
    pause: Duration,
    not_before: Option<Instant>,
    turns: Turns,
}

/// When the kernel is asked again, and about which prefixes.
#[derive(Default)]
struct Turns {
    /// Changes of the tables, and readings of the kernel's that changed nothing.
    generation: u64,
    /// The generation for which the kernel was asked about all, and whether there are more to ask about.
    asked: u64,
    more: bool,
    /// While it is being asked about all: since which generation, and where it goes on.
    round: Option<(u64, Prefix)>,
}

impl Turns {
    /// Whether it is to be asked.
    fn is_due(&self) -> bool {
        self.more || self.round.is_some() || self.asked != self.generation
    }

    /// The prefixes of these that it is asked about now.
    fn next<C>(&mut self, cases: &BTreeMap<Prefix, C>) -> Vec<Prefix> {
        let (since, from) = match self.round.take() {
            Some((since, from)) => (since, Bound::Included(from)),
            None => {
                self.more = false;
                (self.generation, Bound::Unbounded)
            }
        };
        let all = cases.range((from, Bound::Unbounded)).map(|(&prefix, _)| prefix);
        let mut turn: Vec<Prefix> = all.take(AT_ONCE + 1).collect();
        match turn.len() > AT_ONCE {
            true => self.round = turn.pop().map(|prefix| (since, prefix)),
            false => self.asked = since,
        }
        turn
    }
}

struct Case {
    /// Where the prefix leads otherwise.
    hop: HopId,
    report: Report,
    /// Since which generation.
    since: u64,
    /// The kernel has said so again, in a later one.
    is_difference: bool,
}

/// Whether the kernel's tables are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Done,
    Wanted,
    UnderWay,
}

impl Apart {
    pub fn new(index: AdjacencyIndex) -> Apart {
        Apart {
            index,
            cases: BTreeMap::new(),
            reading: Reading::Done,
            pause: FIRST_PAUSE,
            not_before: None,
            turns: Turns::default(),
        }
    }

    /// The tables have changed.
    pub fn note_change(&mut self) {
        self.turns.generation += 1;
    }

    /// Where a prefix leads that is to lead to `hop` by `index`.
    pub fn index_of(
        &mut self,
        prefix: Prefix,
        hop: Option<HopId>,
        index: Option<AdjacencyIndex>,
    ) -> Option<AdjacencyIndex> {
        match (self.cases.get_mut(&prefix), hop) {
            (None, _) => index,
            (Some(case), Some(hop)) => {
                case.hop = hop;
                Some(self.index)
            }
            (Some(_), None) => {
                self.cases.remove(&prefix);
                None
            }
        }
    }

    /// Whether the kernel's tables have been read again; `settled` says that nothing is being read.
    fn is_read(&mut self, settled: bool) -> bool {
        let is_read = self.reading == Reading::UnderWay && settled;
        if is_read {
            self.reading = Reading::Done;
        }
        is_read
    }

    /// Whether they are to be read now.
    fn begin_reading(&mut self, now: Instant) -> bool {
        let begins = self.reading == Reading::Wanted && self.not_before.is_none_or(|time| time <= now);
        if begins {
            self.reading = Reading::UnderWay;
            self.not_before = Some(now + self.pause);
            self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        }
        begins
    }

    fn want_reading(&mut self) {
        if self.reading == Reading::Done {
            self.reading = Reading::Wanted;
        }
    }
}

impl Tables {
    /// What goes on beside the changes; to be called again and again. `settled` says that the kernel's tables are not being
    /// read. Whether they should be read again.
    pub fn look(&mut self, settled: bool) -> bool {
        let Some(driver) = &mut self.driver else { return false };
        driver.look();
        let reports = driver.reports();
        if !reports.is_empty() {
            self.set_apart(&reports);
        }
        if self.apart.is_read(settled) {
            // Also those for which no report found room.
            self.trust(None);
            self.apart.note_change();
        }
        if self.apart.turns.is_due() {
            self.ask_again();
        }
        self.apart.begin_reading(Instant::now())
    }

    /// Takes the prefixes of these packets out, and trusts again what they found.
    fn set_apart(&mut self, reports: &[Report]) {
        let mut changes = Vec::new();
        for report in reports {
            let found = match report.asked.destination() {
                IpAddr::V4(to) => {
                    self.v4.fib().rib().longest(to.into()).map(|(prefix, index)| (Prefix::V4(prefix), index))
                }
                IpAddr::V6(to) => {
                    self.v6.fib().rib().longest(to.into()).map(|(prefix, index)| (Prefix::V6(prefix), index))
                }
            };
            // What found no room in the table has a stand-in there, and is the kernel's already.
            let Some((prefix, index)) = found.filter(|(_, index)| *index != self.kernel) else { continue };
            let hop = self.hops.iter().find(|(_, entry)| entry.index == index).map(|(&id, _)| id);
            let Some(hop) = hop.filter(|_| !self.apart.cases.contains_key(&prefix)) else { continue };
            log::warn!(
                code = "self-check";
                "{prefix}: the kernel forwards, since it would not do with a packet what the tables say: {}; IP header {} by \
                 interface {}",
                told(&report.answer), hexadecimal(report.asked.header()), report.asked.ifindex
            );
            let since = self.apart.turns.generation;
            let case = Case { hop, report: *report, since, is_difference: false };
            self.apart.cases.insert(prefix, case);
            changes.push((prefix, Some(hop)));
        }
        self.apart.want_reading();
        self.apart.turns.more = true;
        self.change(&changes);
        // Who has found the index by the old route has gone on by then.
        if let Some(driver) = &mut self.driver {
            driver.settle();
        }
        self.trust(Some(&reports.iter().map(|report| report.index).collect()));
    }

    /// Trusts what is in doubt, of these indices or of all.
    fn trust(&mut self, indices: Option<&BTreeSet<u32>>) {
        let Some(driver) = &mut self.driver else { return };
        let is_meant = |index: &u32| indices.is_none_or(|indices| indices.contains(index));
        for index in driver.doubted().into_iter().filter(is_meant).filter(|&i| i != self.apart.index) {
            driver.trust(index);
        }
    }

    /// Asks the kernel about some packets again, and takes those prefixes back of which it says what the tables say.
    fn ask_again(&mut self) {
        let mut back = Vec::new();
        for prefix in self.apart.turns.next(&self.apart.cases) {
            let Some(mut case) = self.apart.cases.remove(&prefix) else { continue };
            let answer = self.driver.as_mut().map(|driver| driver.ask(&case.report.asked));
            match answer {
                Some(Ok(answer)) if !self.agrees(case.hop, &answer) => {
                    if !case.is_difference && self.apart.turns.generation > case.since {
                        case.is_difference = true;
                        self.forwarding.note_difference();
                        log::error!(
                            code = "self-check";
                            "{prefix}: the kernel goes on forwarding, since it says again: {}", told(&answer)
                        );
                    }
                    self.apart.cases.insert(prefix, case);
                }
                // No packet comes by an interface that is gone.
                _ => {
                    log::info!(code = "self-check"; "{prefix}: the kernel would do what the tables say");
                    back.push((prefix, Some(case.hop)));
                }
            }
        }
        self.change(&back);
        match self.apart.cases.is_empty() {
            true => self.apart.pause = FIRST_PAUSE,
            false => self.apart.want_reading(),
        }
    }

    fn change(&mut self, routes: &[(Prefix, Option<HopId>)]) {
        if let Some(driver) = self.driver.as_mut().filter(|_| !routes.is_empty()) {
            self.patience = Patience::new(Some(driver.readers()));
            driver.note_change();
            self.set_routes(routes, &mut || ());
        }
    }

    /// Whether the kernel says what a hop says. One that leaves packets to the kernel says nothing else.
    fn agrees(&self, hop: HopId, answer: &Answer) -> bool {
        let Some(entry) = self.hops.get(&hop) else { return false };
        let own = entry.legs.is_empty().then_some(entry.index);
        own.into_iter().chain(entry.legs.values().copied()).any(|index| {
            self.neighbours.next_hop(index).is_none_or(|neighbour| {
                let ifindex = self.ports.get(usize::from(neighbour.port));
                let to_neighbour = || match neighbour.is_bare() {
                    true => answer.needs_no_neighbour(),
                    false => answer.refusal().is_none() && neighbour.addresses == answer.addresses,
                };
                neighbour.port == KERNEL || ifindex == Some(&answer.ifindex) && to_neighbour()
            })
        })
    }
}

/// An answer for people.
fn told(answer: &Answer) -> String {
    let to = &answer.addresses[..6];
    let mac: Vec<String> = to.iter().map(|byte| format!("{byte:02x}")).collect();
    let way = || format!("it goes to {} by interface {}", mac.join(":"), answer.ifindex);
    answer.refusal().map_or_else(way, str::to_owned)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_kernel_is_asked_about_all_prefixes_but_not_at_once() {
        let prefix = |n: u32| Prefix::new(Ipv4Addr::from(n).into(), 32);
        let all = 2 * AT_ONCE as u32 + 7;
        let mut cases: BTreeMap<Prefix, ()> = (1..=all).map(|n| (prefix(n), ())).collect();
        let mut turns = Turns { generation: 1, ..Turns::default() };
        let mut asked = turns.next(&cases);
        // A change, and one more, which come too late for this round.
        turns.generation += 1;
        turns.more = cases.insert(prefix(0), ()).is_none();
        while turns.round.is_some() {
            assert!(asked.len().is_multiple_of(AT_ONCE) && turns.is_due());
            asked.extend(turns.next(&cases));
        }
        assert_eq!(asked, (1..=all).map(prefix).collect::<Vec<_>>());
        assert!(turns.is_due());
        assert_eq!(turns.next(&cases)[0], prefix(0));
        while turns.round.is_some() {
            turns.next(&cases);
        }
        assert!(!turns.is_due());
    }
}
