//! The tables that the corpus is run against.

use super::Random;
use crate::registers::ROUTES;
use crate::rules::{ClassKey, ClassRule, Mac, Route, RuleTable, Target};

/// The table that the corpus is made for: four cards, a network behind each, a class rule for two of them and the
/// slow path.
pub fn table() -> RuleTable {
    let mut text = String::new();
    for n in 0..4 {
        text += &format!(
            "nic {n} mac 02:00:00:00:00:0{n}\nroute 10.0.{n}.0/24 nic {n} mac 02:00:00:00:01:0{n}\n"
        );
    }
    text += "class nic 1 tos 0xb8/0xfc\nclass nic 2 src 192.0.2.0/25 proto 17\nclass host tos 0xb8/0xfc\n";
    RuleTable::parse(&text).unwrap_or_default()
}

/// One run of the corpus: a card of a router.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What is special about it.
    pub name: &'static str,
    /// The router's rules.
    pub table: RuleTable,
    /// The card that receives the corpus.
    pub nic: u8,
}

/// Every policy, other cards, and random rules, each for four cards.
pub fn setups() -> Vec<Setup> {
    let changed = |name, nic, change: fn(&mut RuleTable)| {
        let mut table = table();
        change(&mut table);
        Setup { name, table, nic }
    };
    let mut setups = vec![
        changed("as it is", 0, |_| ()),
        changed("bad checksums dropped", 0, |t| t.policy.drop_bad_checksum = true),
        changed("expired packets to the host", 0, |t| t.policy.ttl_expired_to_host = true),
        changed("source address kept", 0, |t| t.policy.keep_source_mac = true),
        changed("another card, to which nothing is addressed", 1, |_| ()),
        changed("another card with the first one's address", 2, |t| t.nics.swap(0, 2)),
        changed("no routes", 0, |t| t.routes.clear()),
        changed("only routes that stay", 1, |t| {
            t.nics.swap(0, 1);
            t.routes.retain(|route| matches!(route.to, Target::Nic { nic: 1, .. }));
        }),
        changed("a default route", 0, |t| {
            t.routes = vec![Route { value: 0, mask: 0, to: through(3, 3) }];
        }),
        changed("addresses and a network of the host's among the routes", 0, |t| {
            for (value, mask) in
                [(0x0a00_0101, u32::MAX), (0x0a00_0280, 0xffff_ff80), (0x0a00_00ff, u32::MAX)]
            {
                t.routes.push(Route { value, mask, to: Target::Host });
            }
        }),
        changed("as many routes as there can be, with prefixes of every length", 0, |t| {
            t.routes = (0..ROUTES as u32)
                .map(|n| {
                    let mask = u32::MAX << [0, 1, 2, 3, 7, 8, 9, 10][n as usize % 8];
                    Route { value: (0x0a00_0000 | n << 7) & mask, mask, to: through(n as u8 % 4, n as u8) }
                })
                .collect();
            for n in (0..ROUTES).rev() {
                let (before, after) = (&t.routes[n].clone(), &t.routes);
                let clash = |o: &Route| o != before && (o.value ^ before.value) & o.mask & before.mask == 0;
                if after.iter().any(clash) {
                    t.routes[n].to = Target::Host;
                }
            }
        }),
        changed("everything in the high class", 0, |t| {
            (t.classes[1], t.host_class) = (Some(ClassRule::default()), Some(ClassRule::default()));
        }),
    ];
    let mut random = Random::new(17);
    for nic in [0, 1, 2, 3, 0, 1, 2, 3] {
        setups.push(Setup { name: "random rules", table: random_table(&mut random, nic), nic });
    }
    setups
}

fn through(nic: u8, next_hop: u8) -> Target {
    Target::Nic { nic, next_hop: Mac([2, 0, 0, 0, 1, next_hop]) }
}

/// Rules with masks of any shape for four cards, of which `nic` (0 to 3) has the address that the corpus is sent to.
pub fn random_table(random: &mut Random, nic: u8) -> RuleTable {
    let mut table =
        RuleTable { nics: (0..4).map(|n| Mac([2, 0, 0, 0, 0, n])).collect(), ..Default::default() };
    table.nics.swap(0, usize::from(nic));
    for _ in 0..1 + random.below(ROUTES as u64) {
        // Few bits, of those in which the corpus's destinations differ; or a prefix.
        let mask = match random.below(3) {
            0 => u32::MAX << random.below(11),
            _ => 0xffff_0000 | (random.next_u64() & random.next_u64()) as u32 & 0x07ff,
        };
        let value = (0x0a00_0000 | random.below(0x500) as u32) & mask;
        let nic = random.below(4) as u8;
        let to = if random.one_in(4) { Target::Host } else { through(nic, random.next_u64() as u8) };
        table.routes.push(Route { value, mask, to });
        if table.check().is_err() {
            // It overlaps an earlier one.
            table.routes.pop();
        }
    }
    for class in &mut table.classes[..4] {
        *class = (!random.one_in(4)).then(|| random_class(random));
    }
    table.host_class = (!random.one_in(4)).then(|| random_class(random));
    let policy = random.next_u64();
    table.policy.drop_bad_checksum = policy & 1 != 0;
    table.policy.ttl_expired_to_host = policy & 2 != 0;
    table.policy.keep_source_mac = policy & 4 != 0;
    table
}

fn random_class(random: &mut Random) -> ClassRule {
    let key = ClassKey::new(0xb8, 0xc000_0200 | random.below(256) as u32, 0x0a00_0100, 17);
    // A bit or two of what varies in the corpus; of the rest any bit, at times.
    let mut mask = ClassKey::new(0x90, 0xff, 0x3ff, 0x13).0;
    for _ in 0..4 {
        mask &= u128::from(random.next_u64()) | u128::from(random.next_u64()) << 64;
    }
    if random.one_in(4) {
        mask |= ClassKey::new(0x08, 0xffff_ff00, 0xff00_0000, 0).0;
    }
    ClassRule { value: ClassKey(key.0 & mask), mask: ClassKey(mask) }
}
