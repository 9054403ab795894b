//! What becomes of packets.

use super::*;

/// What the kernel does with packets to an address, and what it finds of packets from it.
#[derive(Debug)]
pub struct Answer {
    /// As `describe` writes it.
    pub to: String,
    /// As `describe_reverse` writes it.
    pub from: String,
    /// The mirror may not know: the choice among several paths depends on what was once set.
    pub may_be_unclear: bool,
}

impl Answer {
    fn new(to: impl Into<String>, from: impl Into<String>) -> Self {
        Answer { to: to.into(), from: from.into(), may_be_unclear: false }
    }
}

/// What the rules select by: the other address of a packet, and the interface that it comes in by.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    pub to: IpAddr,
    pub from: IpAddr,
    pub iif: &'a str,
}

/// Whether a rule is about a packet that is forwarded. Of those that select by more the last octet says it.
fn selects(rule: &Rule, packet: Packet<'_>) -> bool {
    rule.to.is_none_or(|to| to.contains(packet.to))
        && rule.from.is_none_or(|from| from.contains(packet.from))
        && rule.iif.as_deref().is_none_or(|iif| iif == packet.iif)
        && !rule.oif
        && (!rule.more || rule.bytes.last() == Some(&1))
}

impl NaiveKernel {
    pub fn lookup(&self, packet: Packet<'_>) -> Answer {
        let mut answer = self.by_rules(packet);
        // The mirror does not know whether the tables local and main are one.
        answer.may_be_unclear |= packet.to.is_ipv4() && self.covering(255, packet.to).next().is_some();
        answer
    }

    fn by_rules(&self, packet: Packet<'_>) -> Answer {
        let address = packet.to;
        let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
        for rule in self.rules.iter().filter(|rule| rule.family == family && selects(rule, packet)) {
            let table = match rule.action {
                RuleAction::LookUp(table) => table,
                RuleAction::Nothing => continue,
                RuleAction::Other => return Answer::new("punt policy-rules", "unknown"),
            };
            // What does not count and has no path that is alive is passed by for one of a higher metric or a shorter prefix.
            let alive = |(len, list): (u8, &[Entry])| {
                let is_dead = |entry: &Entry| len < rule.shortest && self.is_dead(entry);
                let list: Vec<Entry> = list.iter().filter(|entry| !is_dead(entry)).cloned().collect();
                (!list.is_empty()).then_some((len, list))
            };
            let found = self.longest_first(table, address).into_iter().find_map(alive);
            let Some((longest, list)) = found else { continue };
            if list.iter().any(|entry| entry.route.tos != 0) {
                return Answer::new("punt type-of-service", "unknown");
            }
            let lowest = list.iter().map(|entry| entry.route.metric).min().unwrap();
            let mut best = list.iter().filter(|entry| entry.route.metric == lowest);
            let entry = best.next().unwrap();
            if family == Family::V6 && best.next().is_some() {
                return Answer::new("punt ambiguous", "unknown");
            }
            if longest < rule.shortest && !self.rejects(entry) {
                continue;
            }
            return self.follow(address, entry);
        }
        Answer::new("none", "none")
    }

    /// The routes of a table to prefixes that an address is in.
    fn covering(&self, table: u32, address: IpAddr) -> impl Iterator<Item = (u8, &[Entry])> {
        let all = self.routes.iter().filter(move |((t, prefix), _)| *t == table && prefix.contains(address));
        all.filter(|(_, list)| !list.is_empty()).map(|((_, prefix), list)| (prefix.len(), &list[..]))
    }

    /// What is found in a table: lengths of prefixes and the routes to them.
    fn longest_first(&self, table: u32, address: IpAddr) -> Vec<(u8, &[Entry])> {
        let is_whole = table == 255 && address.is_ipv4() && !self.is_split;
        let beside = is_whole.then(|| self.covering(254, address)).into_iter().flatten();
        let mut found: Vec<_> = self.covering(table, address).chain(beside).collect();
        // Of equals the first is that of the table local.
        found.sort_by_key(|(len, _)| std::cmp::Reverse(*len));
        found
    }

    /// Whether it is a route by paths of which none is alive.
    fn is_dead(&self, entry: &Entry) -> bool {
        let Target::Paths(paths) = &entry.route.target else { return false };
        let alive = |(path, leg): (&Path, &LegState)| {
            let link = &self.links[&path.ifindex];
            link.up && !leg.dead && (link.carrier || !self.ignores[&(entry.family(), path.ifindex)])
        };
        !paths.iter().zip(&entry.legs).any(alive)
    }

    fn follow(&self, address: IpAddr, entry: &Entry) -> Answer {
        let way: Result<Vec<(Path, LegState)>, PuntReason> = match &entry.route.target {
            Target::Punt { reason, .. } => return Answer::new(format!("punt {reason}"), "not unicast"),
            Target::Paths(paths) => Ok(paths.iter().copied().zip(entry.legs.iter().copied()).collect()),
            Target::Object(id) => self.object_paths(*id),
        };
        let legs = match way {
            Ok(legs) => legs,
            Err(PuntReason::Blackhole) if self.is_blackhole(entry) => {
                return Answer::new("punt blackhole", "not unicast");
            }
            Err(reason) => return Answer::new(format!("punt {reason}"), "unknown"),
        };
        let alive = |(path, leg): &(Path, LegState)| self.links[&path.ifindex].alive() && !leg.dead;
        let mut names: Vec<String> = legs.iter().map(|(path, _)| format!("p{}", path.ifindex)).collect();
        names.sort();
        names.dedup();
        let from = if legs.iter().any(alive) { names.join(", ") } else { "unknown".into() };
        Answer {
            to: self.choose(address, &legs),
            from,
            may_be_unclear: legs.len() > 1
                && legs.iter().any(|(path, leg)| {
                    let link = &self.links[&path.ifindex];
                    link.up && (leg.dead || !link.carrier)
                }),
        }
    }

    fn rejects(&self, entry: &Entry) -> bool {
        matches!(entry.route.target, Target::Punt { .. }) || self.is_blackhole(entry)
    }

    fn is_blackhole(&self, entry: &Entry) -> bool {
        matches!(&entry.route.target, Target::Object(id)
            if matches!(self.objects.get(id), Some(NextHopKind::Punt { .. })))
    }

    fn choose(&self, address: IpAddr, legs: &[(Path, LegState)]) -> String {
        if legs.iter().any(|(path, _)| !PORTS.contains(&path.ifindex)) {
            return "punt outside-ports".into();
        }
        if !legs.iter().any(|(path, leg)| self.links[&path.ifindex].alive() && !leg.dead) {
            return "punt link-down".into();
        }
        if let [(path @ Path { gateway: None, .. }, _)] = legs {
            let known = self.mac(address, path.ifindex).is_some();
            return if known {
                self.leg(&Path { weight: 1, ..*path }, address)
            } else {
                "punt on-link".into()
            };
        }
        let counting = legs.iter().filter(|(_, leg)| leg.counts || legs.len() == 1);
        let legs: Option<Vec<String>> =
            counting.map(|(path, _)| Some(self.leg(path, path.gateway?))).collect();
        legs.map_or("punt mixed-paths".into(), |legs| legs.join(", "))
    }

    fn object_paths(&self, id: u32) -> Result<Vec<(Path, LegState)>, PuntReason> {
        let counts = |path| (path, LegState { dead: false, counts: true });
        match self.objects.get(&id) {
            None => Err(PuntReason::NextHopMissing),
            Some(NextHopKind::Path(path)) => Ok(vec![counts(*path)]),
            Some(NextHopKind::Punt { reason, .. }) => Err(*reason),
            Some(NextHopKind::Group { members, .. }) => members
                .iter()
                .map(|(id, weight)| Ok(counts(Path { weight: *weight, ..self.object_paths(*id)?[0].0 })))
                .collect(),
        }
    }

    fn mac(&self, address: IpAddr, ifindex: u32) -> Option<[u8; 6]> {
        let neighbour = self.neighbours.get(&(address, ifindex))?;
        neighbour.mac.filter(|_| ![0x01, 0x20].contains(&neighbour.state) && self.links[&ifindex].alive())
    }

    fn leg(&self, path: &Path, address: IpAddr) -> String {
        let mac = self.mac(address, path.ifindex).map_or("unresolved".into(), |mac| format!("{mac:02x?}"));
        format!("p{} via {address} weight {} {mac}", path.ifindex, path.weight)
    }
}
