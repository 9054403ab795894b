//! A naive kernel: it keeps lists, says what it does as the real one would, and looks addresses up by trying everything.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use causeway_kernel::{
    Family, Link, Message, Mirror, Neighbour, NextHop, NextHopKind, Object, Operation, Path, Prefix,
    PuntReason, Route, Rule, Scope, Target,
};

pub const TABLES: [u32; 3] = [255, 254, 253];
pub const PORTS: [u32; 2] = [1, 2];

const ADDED: Operation = Operation::Added { replace: false, append: false };

/// What a naive kernel holds.
#[derive(Default)]
pub struct NaiveKernel {
    pub links: BTreeMap<u32, Link>,
    pub neighbours: BTreeMap<(IpAddr, u32), Neighbour>,
    pub objects: BTreeMap<u32, NextHopKind>,
    pub rules: BTreeSet<Rule>,
    /// Routes of one table and prefix in the kernel's order.
    pub routes: BTreeMap<(u32, Prefix), Vec<Route>>,
    /// Whether IPv4 may have several routes of one metric (`ip route append`), and IPv6 such that it does not join.
    pub duplicates: bool,
    /// What it has said and nobody has read.
    pub said: Vec<Message>,
}

pub fn link(index: u32, up: bool, carrier: bool) -> Link {
    Link {
        index,
        name: format!("p{index}"),
        kind: None,
        parent: None,
        mac: Some([2, 0, 0, 0, 0, index as u8]),
        ethernet: true,
        no_arp: false,
        loopback: false,
        up,
        carrier: up && carrier,
        mtu_bytes: 1500,
        mtu6_bytes: 1500,
        master: None,
        master_kind: None,
        rx_queues: 1,
        tx_queues: 1,
        xdp_program: None,
    }
}

fn joins(route: &Route) -> bool {
    let gateways = |paths: &[Path]| paths.iter().all(|path| path.gateway.is_some());
    route.prefix.family() == Family::V6 && matches!(&route.target, Target::Paths(paths) if gateways(paths))
}

fn place(route: &Route) -> (u8, u32) {
    (route.tos, route.metric)
}

impl NaiveKernel {
    pub fn new(duplicates: bool) -> Self {
        let mut kernel = NaiveKernel { duplicates, ..NaiveKernel::default() };
        (1..=3).for_each(|index| kernel.set_link(index, true, true));
        let own = [(0, 255), (32766, 254), (32767, 253)];
        for (family, count) in [(Family::V4, 3), (Family::V6, 2)] {
            for &(priority, table) in &own[..count] {
                kernel.set_rule(Rule { family, priority, table, plain: true, bytes: vec![] }, true);
            }
        }
        kernel
    }

    fn say(&mut self, operation: Operation, object: Object) {
        self.said.push(Message { operation, object });
    }

    /// IPv4 routes and objects of a dead link go in silence; IPv6 routes are announced.
    pub fn set_link(&mut self, index: u32, up: bool, carrier: bool) {
        let link = link(index, up, carrier);
        self.links.insert(index, link.clone());
        self.say(ADDED, Object::Link(link));
        if up {
            return;
        }
        self.objects.retain(|_, kind| !matches!(kind, NextHopKind::Path(path) if path.ifindex == index));
        let dead =
            |route: &Route| matches!(&route.target, Target::Paths(p) if p.iter().all(|p| p.ifindex == index));
        let gone: Vec<Route> = self.routes.values().flatten().filter(|route| dead(route)).cloned().collect();
        self.routes.values_mut().for_each(|list| list.retain(|route| !dead(route)));
        for route in gone.into_iter().filter(|route| route.prefix.family() == Family::V6) {
            self.say(Operation::Removed, Object::Route(route));
        }
    }

    pub fn set_rule(&mut self, rule: Rule, there: bool) {
        let changed = if there { self.rules.insert(rule.clone()) } else { self.rules.remove(&rule) };
        if changed {
            self.say(if there { ADDED } else { Operation::Removed }, Object::Rule(rule));
        }
    }

    pub fn set_neighbour(&mut self, neighbour: Neighbour, there: bool) {
        let key = (neighbour.address, neighbour.ifindex);
        if there {
            self.neighbours.insert(key, neighbour);
            self.say(ADDED, Object::Neighbour(neighbour));
        } else if let Some(old) = self.neighbours.remove(&key) {
            self.say(Operation::Removed, Object::Neighbour(old));
        }
    }

    /// The routes of an object that is deleted go in silence.
    pub fn set_object(&mut self, id: u32, kind: Option<NextHopKind>) {
        match kind {
            Some(kind) => {
                self.objects.insert(id, kind.clone());
                self.say(ADDED, Object::NextHop(NextHop { id, kind }));
            }
            None => {
                if let Some(kind) = self.objects.remove(&id) {
                    self.routes.values_mut().for_each(|list| list.retain(|r| r.target != Target::Object(id)));
                    self.say(Operation::Removed, Object::NextHop(NextHop { id, kind }));
                }
            }
        }
    }

    /// Adds a route as `ip route add|append|replace` does, if the kernel would take it.
    pub fn add_route(&mut self, mut route: Route, replace: bool, append: bool) {
        let list = self.routes.entry((route.table, route.prefix)).or_default();
        if list.contains(&route) {
            return;
        }
        let same = |old: &Route| place(old) == place(&route);
        if !self.duplicates && !replace && list.iter().any(|old| same(old) && !(joins(old) && joins(&route)))
        {
            return;
        }
        let joined = list.iter().position(|old| joins(old) && joins(&route) && same(old));
        if route.prefix.family() == Family::V6 {
            match joined {
                Some(index) if replace => list[index] = route.clone(),
                Some(index) => {
                    // The whole of the route is announced, the new paths last.
                    let (Target::Paths(old), Target::Paths(new)) = (&list[index].target, &route.target)
                    else {
                        return;
                    };
                    if old
                        .iter()
                        .any(|o| new.iter().any(|n| (o.ifindex, o.gateway) == (n.ifindex, n.gateway)))
                    {
                        return;
                    }
                    route.target = Target::Paths(old.iter().chain(new).copied().collect());
                    list[index] = route.clone();
                }
                None => match list.iter().filter(|old| same(old)).count() {
                    1 if replace => *list.iter_mut().find(|old| same(old)).unwrap() = route.clone(),
                    _ => list.push(route.clone()),
                },
            }
        } else {
            match list.iter().position(same) {
                Some(index) if replace => list[index] = route.clone(),
                Some(index) if !append => list.insert(index, route.clone()),
                _ => list.push(route.clone()),
            }
        }
        self.say(Operation::Added { replace, append }, Object::Route(route));
    }

    /// Removes the `index`th route of all; of an IPv6 route with several paths, one path.
    pub fn remove_route(&mut self, index: usize) {
        let total: usize = self.routes.values().map(Vec::len).sum();
        if total == 0 {
            return;
        }
        let mut left = index % total;
        for list in self.routes.values_mut() {
            if left >= list.len() {
                left -= list.len();
                continue;
            }
            let mut said = list[left].clone();
            match &mut list[left].target {
                Target::Paths(paths) if joins(&said) && paths.len() > 1 => {
                    said.target = Target::Paths(vec![paths.remove(index % paths.len())]);
                }
                _ => {
                    list.remove(left);
                }
            }
            self.say(Operation::Removed, Object::Route(said));
            return;
        }
    }

    /// Answers the dumps of a mirror.
    pub fn dump(&self, mirror: &mut Mirror, scope: Scope) {
        mirror.begin_resync();
        for table in scope.tables() {
            for object in self.table(table) {
                mirror.apply(Message { operation: Operation::Dumped, object });
            }
            mirror.end_resync(table);
        }
    }

    fn table(&self, table: Scope) -> Vec<Object> {
        let routes = |family: Family| {
            let all = self.routes.values().flatten().filter(move |route| route.prefix.family() == family);
            all.cloned().map(Object::Route).collect()
        };
        match table {
            Scope::LINKS => self.links.values().cloned().map(Object::Link).collect(),
            Scope::NEIGHBOURS => self.neighbours.values().copied().map(Object::Neighbour).collect(),
            Scope::NEXT_HOPS => {
                let object =
                    |(&id, kind): (&u32, &NextHopKind)| Object::NextHop(NextHop { id, kind: kind.clone() });
                self.objects.iter().map(object).collect()
            }
            Scope::RULES => self.rules.iter().cloned().map(Object::Rule).collect(),
            Scope::ROUTES4 => routes(Family::V4),
            Scope::ROUTES6 => routes(Family::V6),
            _ => Vec::new(),
        }
    }

    /// What becomes of packets to an address, as `describe` writes it.
    pub fn lookup(&self, address: IpAddr) -> String {
        let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
        for table in TABLES {
            let covering = self
                .routes
                .iter()
                .filter(|((t, prefix), list)| *t == table && prefix.contains(address) && !list.is_empty());
            let Some((_, list)) = covering.max_by_key(|((_, prefix), _)| prefix.len()) else { continue };
            if list.iter().any(|route| route.tos != 0) {
                return "punt type-of-service".into();
            }
            let lowest = list.iter().map(|route| route.metric).min().unwrap();
            let mut best = list.iter().filter(|route| route.metric == lowest);
            let route = best.next().unwrap();
            if family == Family::V6 && best.next().is_some() {
                return "punt ambiguous".into();
            }
            return self.follow(family, address, route);
        }
        "none".into()
    }

    fn follow(&self, family: Family, address: IpAddr, route: &Route) -> String {
        let paths = match &route.target {
            Target::Punt(reason) => return format!("punt {reason}"),
            Target::Paths(paths) => {
                let mut paths = paths.clone();
                paths.sort();
                Ok(paths)
            }
            Target::Object(id) => self.object_paths(*id),
        };
        if self.rules.iter().any(|rule| rule.family == family && !rule.plain) {
            return "punt policy-rules".into();
        }
        let paths = match paths {
            Ok(paths) => paths,
            Err(reason) => return format!("punt {reason}"),
        };
        if paths.iter().any(|path| !PORTS.contains(&path.ifindex)) {
            return "punt outside-ports".into();
        }
        let live: Vec<Path> =
            paths.iter().filter(|path| self.links[&path.ifindex].alive()).copied().collect();
        if live.is_empty() {
            return "punt link-down".into();
        }
        if paths.len() == 1 && live[0].gateway.is_none() {
            let known = self.mac(address, live[0].ifindex).is_some();
            return if known { self.leg(&live[0], address, 1) } else { "punt on-link".into() };
        }
        let legs: Option<Vec<String>> =
            live.iter().map(|path| Some(self.leg(path, path.gateway?, path.weight))).collect();
        legs.map_or("punt mixed-paths".into(), |legs| legs.join(", "))
    }

    fn object_paths(&self, id: u32) -> Result<Vec<Path>, PuntReason> {
        match self.objects.get(&id) {
            None => Err(PuntReason::NextHopMissing),
            Some(NextHopKind::Path(path)) => Ok(vec![*path]),
            Some(NextHopKind::Punt(reason)) => Err(*reason),
            Some(NextHopKind::Group(members)) => {
                let mut paths = Vec::new();
                for (id, weight) in members {
                    let member = self.object_paths(*id)?;
                    paths.push(Path { weight: *weight, ..member[0] });
                }
                Ok(paths)
            }
        }
    }

    fn mac(&self, address: IpAddr, ifindex: u32) -> Option<[u8; 6]> {
        let neighbour = self.neighbours.get(&(address, ifindex))?;
        neighbour.mac.filter(|_| ![0x01, 0x20].contains(&neighbour.state))
    }

    fn leg(&self, path: &Path, address: IpAddr, weight: u16) -> String {
        let mac = self.mac(address, path.ifindex).map_or("unresolved".into(), |mac| format!("{mac:02x?}"));
        format!("p{} via {address} weight {weight} {mac}", path.ifindex)
    }
}
