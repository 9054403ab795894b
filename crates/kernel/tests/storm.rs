//! The mirror against the kernel when much happens at once: random commands, more messages than the buffer holds, and routes
//! that the mirror does not understand.

mod common;

use causeway_kernel::{Action, Leg};
use common::{Follower, HOST0_MAC, Namespace, Testbed, assert_same, leg};

/// A small generator of numbers, so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len() as u64) as usize]
    }
}

/// A random command for `ip -batch`; many of them make no sense at the time, and the kernel refuses those.
fn command(dice: &mut Dice) -> String {
    let metric = ["", " metric 10", " metric 20"][dice.roll(3) as usize];
    let verb = dice.pick(&["add", "add", "append", "prepend", "replace", "change", "del", "del"]);
    match dice.roll(20) {
        0 => format!(
            "nexthop {} id {} via 10.0.{}.2 dev r{}",
            dice.pick(&["add", "replace"]),
            1 + dice.roll(2),
            0,
            0
        ),
        1 => "nexthop replace id 2 via 10.0.1.2 dev r1".into(),
        2 => format!("nexthop replace id 10 group {}", dice.pick(&["1", "2", "1/2", "1,5/2,7"])),
        3 => format!("nexthop del id {}", dice.pick(&["1", "2", "10"])),
        4 => format!(
            "route {verb} {} nhid {}{metric}",
            dice.pick(&["10.8.0.0/16", "10.8.1.0/24"]),
            dice.pick(&["1", "10"])
        ),
        5 => format!("link set r{} {}", dice.roll(2), dice.pick(&["down", "up", "up"])),
        6 => format!("addr {} 10.7.0.1/24 dev r1", dice.pick(&["add", "del"])),
        7 => format!("neigh replace 10.0.1.{} lladdr 02:00:00:00:09:09 dev r1", 3 + dice.roll(3)),
        8 => format!("neigh del 10.0.1.{} dev r1", 3 + dice.roll(3)),
        9..=13 => {
            let prefix = dice.pick(&[
                "default",
                "10.9.0.0/16",
                "10.9.1.0/24",
                "10.0.1.3",
                "10.0.1.0/30",
                "127.1.0.0/16",
            ]);
            let way = dice.pick(&[
                "via 10.0.0.2",
                "via 10.0.1.2",
                "dev r1",
                "via 10.0.1.2 src 10.7.0.1",
                "nexthop via 10.0.0.2 weight 3 nexthop via 10.0.1.2",
                "via 10.0.0.2 mtu 1300",
            ]);
            let kind = ["", "blackhole ", "unreachable "][(dice.roll(9) / 7) as usize];
            let way = if kind.is_empty() { way } else { "" };
            let tos = if dice.roll(12) == 0 { " tos 8" } else { "" };
            format!("route {verb} {kind}{prefix} {way}{metric}{tos}")
        }
        _ => {
            // A batch takes no option for the family.
            let prefix = dice.pick(&["::/0", "2001:db8:9::/48", "2001:db8:9:1::/64", "2001:db8:1::3"]);
            let way = dice.pick(&[
                "via 2001:db8::2",
                "via 2001:db8:1::2",
                "dev r1",
                "via 2001:db8:1::2 mtu 1400",
                "nexthop via 2001:db8::2 nexthop via 2001:db8:1::2 weight 2",
            ]);
            format!("route {verb} {prefix} {way}{metric}")
        }
    }
}

/// The legs of the route that the kernel takes, from `ip route get ADDRESS fibmatch`, as interface, gateway and weight; none
/// if there is no such route, or it is no way out.
fn kernel_legs(router: &Namespace, address: &str) -> Option<Vec<(String, String, u32)>> {
    let text = router.try_show(&format!("route get {address} fibmatch"))?;
    let kinds =
        ["blackhole", "unreachable", "prohibit", "throw", "local", "broadcast", "multicast", "anycast"];
    if kinds.contains(&text.split_whitespace().next()?) {
        return None;
    }
    let after =
        |text: &str, word: &str| text.split_whitespace().skip_while(|w| *w != word).nth(1).map(str::to_owned);
    let paths: Vec<&str> = match text.matches("nexthop ").count() {
        0 => vec![&text],
        _ => text.split("nexthop ").skip(1).filter(|path| !path.contains("dead")).collect(),
    };
    let leg = |path: &&str| {
        let weight = after(path, "weight").map_or(1, |weight| weight.parse().unwrap());
        let weight = if paths.len() == 1 { 1 } else { weight };
        Some((after(path, "dev")?, after(path, "via").unwrap_or(address.to_owned()), weight))
    };
    paths.iter().map(leg).collect()
}

/// Where the mirror forwards, it does as the kernel would. Returns for how many addresses it does.
fn forwards_as_the_kernel(bed: &Testbed, follower: &Follower) -> usize {
    let addresses = [
        "10.8.0.1",
        "10.8.1.1",
        "10.9.0.1",
        "10.9.1.1",
        "10.0.1.3",
        "10.0.1.2",
        "192.0.2.1",
        "2001:db8:9::1",
        "2001:db8:9:1::1",
        "2001:db8:1::3",
        "2001:db8:ffff::1",
    ];
    let mut forwarded = 0;
    for address in addresses {
        let hop = follower.seen.lookup(address.parse().unwrap());
        let Some(Action::Forward { legs, .. }) = hop.map(|hop| &hop.action) else { continue };
        let leg = |leg: &Leg| {
            let adjacency = &follower.seen.adjacencies[&leg.adjacency];
            let weight = if legs.len() == 1 { 1 } else { u32::from(leg.weight) };
            (follower.seen.links[&adjacency.ifindex].name.clone(), adjacency.address.to_string(), weight)
        };
        let mut legs: Vec<_> = legs.iter().map(leg).collect();
        let kernel = kernel_legs(&bed.router, address);
        // Of IPv6 the answer begins with the path that this flow takes, which a seed of the kernel's decides.
        let first =
            kernel.as_ref().and_then(|kernel| legs.iter().position(|leg| Some(leg) == kernel.first()));
        legs.rotate_left(first.filter(|_| address.contains(':')).unwrap_or(0));
        assert_eq!(Some(legs), kernel, "{address}");
        forwarded += 1;
    }
    forwarded
}

#[test]
fn random_commands_come_to_what_a_new_dump_shows() {
    let Some(bed) = Testbed::new("storm") else { return };
    bed.router.sysctl("ipv6.conf.all.keep_addr_on_down=1");
    let mut dice = Dice(20261121);
    let mut follower = bed.follow(&["r0", "r1"]);
    let mut forwarded = 0;
    for round in 0..6 {
        // Some refusals end a batch.
        for _ in 0..100 {
            bed.router.batch(&[command(&mut dice), command(&mut dice)].join("\n"));
        }
        bed.router.batch("link set r0 up\nlink set r1 up\n");
        // Two that keep neighbours would disturb each other.
        let mut fresh = bed.open_with(&["r0", "r1"], |config| causeway_kernel::WatcherConfig {
            keep_resolved: false,
            ..config
        });
        fresh.step();
        eprintln!("round {round}");
        assert_same(&mut follower, &mut fresh);
        forwarded += forwards_as_the_kernel(&bed, &follower);
    }
    assert!(forwarded > 15, "only {forwarded} answers say anything");
    let stats = follower.watcher.stats();
    assert_eq!(stats.malformed, 0);
    assert!(stats.messages > 800, "too little happened: {stats:?}");
}

#[test]
fn messages_that_are_lost_are_made_up_for() {
    let Some(bed) = Testbed::new("overrun") else { return };
    let mut follower = bed.open_with(&["r0", "r1"], |config| causeway_kernel::WatcherConfig {
        // The least that the kernel gives.
        receive_buffer_bytes: 1,
        ..config
    });
    follower.step();
    let prefix = |i: u32| format!("{}.{}.{}.0/24", 16 + (i >> 16), (i >> 8) & 255, i & 255);
    let add: String = (0..100_000).map(|i| format!("route add {} via 10.0.0.2\n", prefix(i))).collect();
    bed.router.batch(&add);
    let count = |f: &common::Follower| f.seen.routes.keys().filter(|prefix| prefix.len() == 24).count();
    follower.until("all routes", |f| count(f) == 100_000 + 2);
    assert!(follower.watcher.stats().overruns > 0, "nothing was lost, so nothing was tested");
    let del: String =
        (0..100_000).filter(|i| i % 10 != 0).map(|i| format!("route del {}\n", prefix(i))).collect();
    bed.router.batch(&del);
    follower.until("a tenth", |f| count(f) == 10_000 + 2);
    follower.settle();
    assert_eq!(follower.to("16.0.10.1"), leg("r0", "10.0.0.2", 1, HOST0_MAC));
    assert_eq!(follower.to("16.0.11.1"), "none");
}

#[test]
fn what_is_not_understood_is_left_to_the_kernel() {
    let Some(bed) = Testbed::new("odd") else { return };
    bed.router.ip("route add default via 10.0.0.2");
    bed.router.ip("-6 route add default via 2001:db8::2");
    bed.router.ip("link add br0 type bridge");
    bed.router.ip("link set br0 up");
    bed.router.ip("link add tun0 type vxlan id 7 remote 10.0.0.2 dstport 4789");
    bed.router.ip("link set tun0 up");
    // Prefix, kind, the rest; why it is left to the kernel, and what a check of sources finds.
    let cases = [
        ("10.20.0.0/16", "blackhole", "", "blackhole", "not unicast"),
        ("10.21.0.0/16", "unreachable", "", "unreachable", "not unicast"),
        ("10.22.0.0/16", "prohibit", "", "prohibit", "not unicast"),
        ("10.23.0.0/16", "throw", "", "throw", "not unicast"),
        ("10.24.0.0/16", "", "dev tun0", "outside-ports", "tun0"),
        ("10.25.0.0/16", "local", "dev lo table local", "local", "not unicast"),
        ("10.26.0.0/16", "", "nexthop via 10.0.0.2 nexthop dev tun0", "outside-ports", "r0, tun0"),
        ("10.27.0.0/16", "", "nexthop via 10.0.0.2 nexthop dev r1", "mixed-paths", "r0, r1"),
        ("10.28.0.0/16", "", "via 10.0.0.2 tos 0x10", "type-of-service", "unknown"),
        ("10.29.0.0/16", "", "encap seg6 mode encap segs 2001:db8::2 dev r0", "encapsulation", "r0"),
        ("10.30.0.0/16", "", "nhid 11", "resilient-group", "r0, r1"),
        ("10.31.0.0/16", "", "dev r1", "on-link", "r1"),
        ("10.32.0.0/16", "broadcast", "dev r1", "broadcast", "not unicast"),
        ("2001:db8:20::/48", "blackhole", "", "blackhole", "not unicast"),
        ("2001:db8:21::/48", "unreachable", "", "unreachable", "not unicast"),
        ("2001:db8:22::/48", "prohibit", "", "prohibit", "not unicast"),
        ("2001:db8:24::/48", "", "dev tun0", "outside-ports", "tun0"),
        ("2001:db8:25::/48", "", "encap seg6 mode encap segs 2001:db8::2 dev r0", "encapsulation", "r0"),
        ("2001:db8:26::/48", "", "from 2001:db8:77::/48 via 2001:db8::2", "source-specific", "unknown"),
        ("2001:db8:27::/48", "multicast", "dev r0", "multicast", "not unicast"),
    ];
    let mut follower = bed.follow(&["r0", "r1"]);
    bed.router.ip("nexthop add id 1 via 10.0.0.2 dev r0");
    bed.router.ip("nexthop add id 2 via 10.0.1.2 dev r1");
    bed.router.ip("nexthop add id 11 group 1/2 type resilient buckets 8");
    for (prefix, kind, rest, ..) in cases {
        let family = if prefix.contains(':') { "-6" } else { "-4" };
        bed.router.ip(&format!("{family} route add {kind} {prefix} {rest}"));
    }
    follower.settle();
    for (prefix, _, _, reason, reverse) in cases {
        let address = prefix.split('/').next().unwrap();
        assert_eq!(follower.to(address), format!("punt {reason}"), "{prefix}");
        assert_eq!(follower.from(address), reverse, "{prefix}");
    }
    // What is forwarded leaves by all paths, whether they are resolved or not; a host on the link, by the link.
    bed.router.ip("route add 10.33.0.0/16 nexthop via 10.0.1.77 nexthop via 10.0.0.2");
    bed.router.ip("neigh add 10.0.1.9 lladdr 02:00:00:00:00:09 dev r1");
    follower.until("routed", |f| f.from("10.33.0.1") == "r0, r1" && f.from("10.0.1.9") == "r1");
    // A path that is dead still counts, as long as another is alive; where none is, the kernel looks further.
    bed.router.ip("link set r1 down");
    follower.until("one of two", |f| f.to("10.33.0.1") == leg("r0", "10.0.0.2", 1, HOST0_MAC));
    assert_eq!(follower.from("10.33.0.1"), "r0, r1");
    bed.hosts.ip("link set h0 down");
    follower.until("none of two", |f| f.from("10.99.0.1") == "unknown");
    assert_eq!(follower.from("10.33.0.1"), "unknown");
    bed.router.ip("link set r1 up");
    bed.hosts.ip("link set h0 up");
    follower.until("both of two", |f| f.from("10.33.0.1") == "r0, r1");
    bed.router.ip("rule add fwmark 1 blackhole priority 77");
    follower.until("who knows", |f| f.from("10.33.0.1") == "unknown" && f.from("10.20.0.1") == "unknown");
    bed.router.ip("rule del priority 77");
    follower.until("as before", |f| f.from("10.33.0.1") == "r0, r1");
    follower.until("forwarded again", |f| f.to("10.99.0.1") == leg("r0", "10.0.0.2", 1, HOST0_MAC));
    // The same holds for what a first dump shows.
    let mut fresh = bed.follow(&["r0", "r1"]);
    assert_same(&mut follower, &mut fresh);
    // A port that joins a bridge is the bridge's.
    assert_eq!(follower.to("10.99.0.1"), leg("r0", "10.0.0.2", 1, HOST0_MAC));
    bed.router.ip("link set r0 master br0");
    follower.until("enslaved", |f| f.to("10.99.0.1") == "punt enslaved");
    bed.router.ip("link set r0 nomaster");
    follower.until("free", |f| f.to("10.99.0.1") == leg("r0", "10.0.0.2", 1, HOST0_MAC));
    // A device that goes away takes everything with it.
    bed.router.ip("link del r1");
    follower.until("gone", |f| f.to("10.0.1.1") == leg("r0", "10.0.0.2", 1, HOST0_MAC));
    follower.settle();
}
