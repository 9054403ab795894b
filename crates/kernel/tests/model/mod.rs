//! A naive kernel: it keeps lists, says what it does as the real one would (and keeps silent where that does), and looks
//! addresses up by trying everything.

mod links;
mod lookup;

#[allow(unused_imports)] // Not all tests ask about packets.
pub use lookup::Packet;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use causeway_kernel::{
    Address, Family, Link, Message, Mirror, Neighbour, NextHop, NextHopKind, Object, Operation, Path, Prefix,
    PuntReason, ReversePath, Route, Rule, RuleAction, Scope, Setting, SettingScope, Target,
};

pub const PORTS: [u32; 2] = [1, 2];
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

const ADDED: Operation = Operation::Added { replace: false, append: false };

/// What a naive kernel holds.
#[derive(Default)]
pub struct NaiveKernel {
    pub links: BTreeMap<u32, Link>,
    pub addresses: BTreeSet<Address>,
    /// `ignore_routes_with_linkdown`.
    pub ignores: BTreeMap<(Family, u32), bool>,
    pub neighbours: BTreeMap<(IpAddr, u32), Neighbour>,
    pub objects: BTreeMap<u32, NextHopKind>,
    /// In their order.
    pub rules: Vec<Rule>,
    /// There was a rule of IPv4 other than the kernel's own: its tables local and main are two from then on.
    pub is_split: bool,
    /// Routes of one table and prefix in the kernel's order.
    pub routes: BTreeMap<(u32, Prefix), Vec<Entry>>,
    /// Whether IPv4 may have several routes of one metric (`ip route append`), and IPv6 such that it does not join.
    pub duplicates: bool,
    /// What it has said and nobody has read.
    pub said: Vec<Message>,
}

/// A route with the state of its paths, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub route: Route,
    pub legs: Vec<LegState>,
}

/// What the kernel has marked a path with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LegState {
    pub dead: bool,
    /// It was given a share when shares were last settled.
    pub counts: bool,
}

fn paths(target: &Target) -> &[Path] {
    match target {
        Target::Paths(paths) => paths,
        _ => &[],
    }
}

impl Entry {
    fn family(&self) -> Family {
        self.route.prefix.family()
    }

    fn uses(&self, index: u32) -> bool {
        paths(&self.route.target).iter().any(|path| path.ifindex == index)
    }

    /// The route as a message shows it.
    fn shown(&self) -> Route {
        let marked = paths(&self.route.target).iter().zip(&self.legs).filter(|(_, leg)| leg.dead);
        Route { dead: marked.map(|(path, _)| path.ifindex).collect(), ..self.route.clone() }
    }
}

fn joins(route: &Route) -> bool {
    let gateways = |paths: &[Path]| paths.iter().all(|path| path.gateway.is_some());
    route.prefix.family() == Family::V6 && matches!(&route.target, Target::Paths(paths) if gateways(paths))
}

fn same_path(a: &Path, b: &Path) -> bool {
    (a.ifindex, a.gateway) == (b.ifindex, b.gateway)
}

fn place(route: &Route) -> (u8, u32) {
    (route.tos, route.metric)
}

impl NaiveKernel {
    pub fn new(duplicates: bool) -> Self {
        let mut kernel = NaiveKernel { duplicates, ..NaiveKernel::default() };
        for index in 1..=3 {
            FAMILIES.into_iter().for_each(|family| kernel.set_ignores(family, index, false));
            kernel.set_link(index, true, true);
        }
        let own = [(0, 255), (32766, 254), (32767, 253)];
        for (family, count) in [(Family::V4, 3), (Family::V6, 2)] {
            for &(priority, table) in &own[..count] {
                kernel.set_rule(Rule::plain(family, priority, table), true);
            }
        }
        kernel.is_split = false;
        let all = kernel.all_setting();
        kernel.say(ADDED, all);
        kernel
    }

    fn all_setting(&self) -> Object {
        let (family, scope) = (Family::V4, SettingScope::All);
        Object::Setting(Setting { family, scope, ignores_linkdown: Some(false) })
    }

    fn say(&mut self, operation: Operation, object: Object) {
        self.said.push(Message { operation, object });
    }

    pub fn set_rule(&mut self, rule: Rule, there: bool) {
        let known = self.rules.iter().position(|known| *known == rule);
        match (there, known) {
            (true, None) => {
                let place = |known: &Rule| (known.family, known.priority) <= (rule.family, rule.priority);
                self.rules.insert(self.rules.partition_point(place), rule.clone());
            }
            (false, Some(index)) => drop(self.rules.remove(index)),
            _ => {}
        }
        if there == known.is_none() {
            self.is_split |= rule.family == Family::V4;
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

    /// The routes of an object that is deleted go in silence; the groups that it was in are announced.
    pub fn set_object(&mut self, id: u32, kind: Option<NextHopKind>) {
        match kind {
            Some(NextHopKind::Path(path)) if !self.links[&path.ifindex].alive() => {}
            Some(NextHopKind::Group { members, .. })
                if !members.iter().all(|(id, _)| self.objects.contains_key(id)) => {}
            Some(kind) => {
                self.objects.insert(id, kind.clone());
                self.say(ADDED, Object::NextHop(NextHop { id, kind }));
            }
            None => {
                if let Some(kind) = self.objects.remove(&id) {
                    self.say(Operation::Removed, Object::NextHop(NextHop { id, kind }));
                    self.drop_routes_of(id);
                    for (id, kind) in self.leave_groups(id) {
                        let there = self.objects.contains_key(&id);
                        let operation = if there { ADDED } else { Operation::Removed };
                        self.say(operation, Object::NextHop(NextHop { id, kind }));
                    }
                }
            }
        }
    }

    fn drop_routes_of(&mut self, id: u32) {
        self.routes.values_mut().for_each(|list| list.retain(|e| e.route.target != Target::Object(id)));
    }

    /// Takes an object out of the groups; those that are empty then go. Returns the groups that it was in.
    fn leave_groups(&mut self, gone: u32) -> Vec<(u32, NextHopKind)> {
        let mut left = Vec::new();
        for (&id, kind) in &mut self.objects {
            if let NextHopKind::Group { members, .. } = kind
                && members.iter().any(|(member, _)| *member == gone)
            {
                members.retain(|(member, _)| *member != gone);
                left.push((id, kind.clone()));
            }
        }
        for (id, kind) in &left {
            if matches!(kind, NextHopKind::Group { members, .. } if members.is_empty()) {
                self.objects.remove(id);
                self.drop_routes_of(*id);
            }
        }
        left
    }

    /// Adds a route as `ip route add|append|replace` does, if the kernel would take it.
    pub fn add_route(&mut self, route: Route, replace: bool, append: bool) {
        let up = |path: &Path| self.links[&path.ifindex].up;
        let source = |route: &Route| {
            route.source.is_none_or(|s| self.addresses.iter().any(|a| a.address == IpAddr::V4(s)))
        };
        if !paths(&route.target).iter().all(up) || !source(&route) {
            return;
        }
        let mut entry = Entry { legs: vec![LegState::default(); paths(&route.target).len()], route };
        self.settle_shares(&mut entry);
        let list = self.routes.entry((entry.route.table, entry.route.prefix)).or_default();
        if list.iter().any(|old| old.route == entry.route) {
            return;
        }
        let same = |old: &Entry| place(&old.route) == place(&entry.route);
        let joint = |old: &Entry| joins(&old.route) && joins(&entry.route) && same(old);
        if !self.duplicates && !replace && list.iter().any(|old| same(old) && !joint(old)) {
            return;
        }
        let said = if entry.family() == Family::V6 {
            match list.iter().position(joint) {
                Some(index) if !replace => return self.join(index, entry, append),
                Some(index) => list[index] = entry.clone(),
                None => match list.iter().filter(|old| same(old)).count() {
                    1 if replace => *list.iter_mut().find(|old| same(old)).unwrap() = entry.clone(),
                    _ => list.push(entry.clone()),
                },
            }
            entry
        } else {
            match list.iter().position(same) {
                Some(index) if replace => list[index] = entry.clone(),
                Some(index) if !append => list.insert(index, entry.clone()),
                _ => list.push(entry.clone()),
            }
            entry
        };
        self.say(Operation::Added { replace, append }, Object::Route(said.shown()));
    }

    /// Joins a route to the `index`th of its prefix. The whole is announced: from the first path on, or from the first new one
    /// around.
    fn join(&mut self, index: usize, new: Entry, append: bool) {
        let key = (new.route.table, new.route.prefix);
        let mut whole = self.routes[&key][index].clone();
        let old = paths(&whole.route.target).to_vec();
        if old.iter().any(|o| paths(&new.route.target).iter().any(|n| same_path(o, n))) {
            return;
        }
        whole.route.target = Target::Paths(old.iter().chain(paths(&new.route.target)).copied().collect());
        whole.legs.extend(&new.legs);
        self.settle_shares(&mut whole);
        let mut shown = whole.shown();
        if let (Target::Paths(paths), false) = (&mut shown.target, append) {
            paths.rotate_left(old.len());
        }
        self.routes.get_mut(&key).unwrap()[index] = whole;
        self.say(Operation::Added { replace: false, append }, Object::Route(shown));
    }

    /// Removes the `index`th route of all; of an IPv6 route with several paths, one path.
    pub fn remove_route(&mut self, index: usize) {
        let total: usize = self.routes.values().map(Vec::len).sum();
        if total == 0 {
            return;
        }
        let mut left = index % total;
        let key = *self
            .routes
            .iter()
            .find(|(_, list)| {
                let here = left < list.len();
                left -= if here { 0 } else { list.len() };
                here
            })
            .unwrap()
            .0;
        let mut entry = self.routes.get_mut(&key).unwrap().remove(left);
        let mut said = entry.shown();
        if let Target::Paths(paths) = &mut entry.route.target
            && joins(&said)
            && paths.len() > 1
        {
            let at = index % paths.len();
            said.target = Target::Paths(vec![paths.remove(at)]);
            entry.legs.remove(at);
            self.settle_shares(&mut entry);
            self.routes.get_mut(&key).unwrap().insert(left, entry);
        }
        self.say(Operation::Removed, Object::Route(said));
    }

    /// Answers the dumps of a mirror.
    pub fn dump(&self, mirror: &mut Mirror, scope: Scope) {
        for table in scope.tables() {
            mirror.begin_resync();
            for object in self.table(table) {
                mirror.apply(Message { operation: Operation::Dumped, object });
            }
            mirror.end_resync(table);
        }
    }

    /// Answers the dump of IPv6 routes in part, as the kernel does when they change.
    pub fn dump_some(&self, mirror: &mut Mirror, seed: usize) {
        mirror.begin_resync();
        for (index, object) in self.table(Scope::ROUTES6).into_iter().enumerate() {
            if !(index ^ seed).is_multiple_of(3) {
                mirror.apply(Message { operation: Operation::Dumped, object });
            }
        }
    }

    fn table(&self, table: Scope) -> Vec<Object> {
        let routes = |family: Family| {
            let all = self.routes.values().flatten().filter(move |entry| entry.family() == family);
            all.map(|entry| Object::Route(entry.shown())).collect()
        };
        let settings = |family: Family| {
            let own = self.ignores.iter().filter(move |((of, _), _)| *of == family);
            let own = own.map(|(&(family, index), &set)| {
                let scope = SettingScope::Interface(index);
                Object::Setting(Setting { family, scope, ignores_linkdown: Some(set) })
            });
            own.chain((family == Family::V4).then(|| self.all_setting())).collect()
        };
        match table {
            Scope::SETTINGS4 => settings(Family::V4),
            Scope::SETTINGS6 => settings(Family::V6),
            Scope::LINKS => self.links.values().cloned().map(Object::Link).collect(),
            Scope::ADDRESSES => self.addresses.iter().copied().map(Object::Address).collect(),
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
}

/// An address of this machine.
pub fn local() -> Target {
    Target::Punt { reason: PuntReason::Local, reverse_path: ReversePath::NotUnicast }
}

/// A route that is no way out.
pub fn blackhole() -> Target {
    Target::Punt { reason: PuntReason::Blackhole, reverse_path: ReversePath::NotUnicast }
}
