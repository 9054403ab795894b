//! The self-check, with a kernel that forwards otherwise than the tables say.

use super::*;
use causeway_bpf::possible_cpus;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::net::Ipv6Addr;
use std::os::fd::AsFd;
use std::process::Command;

/// Two hosts on the link, the port's own address, and somebody who is nobody's neighbour.
const HOSTS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3]];
const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Destinations: to the first host, to the second, and one that is discarded.
const FIRST: u32 = u32::from_be_bytes([10, 78, 0, 1]);
const SECOND: u32 = u32::from_be_bytes([10, 79, 0, 1]);
const DISCARDED: u32 = u32::from_be_bytes([10, 80, 0, 1]);
/// By a gateway that the kernel does not know.
const UNKNOWN: u32 = u32::from_be_bytes([10, 82, 0, 1]);

fn ip(args: &str) {
    let status = Command::new("ip").args(args.split_whitespace()).status();
    assert!(status.is_ok_and(|status| status.success()), "ip {args}");
}

/// Runs a test on a thread in a network namespace where the kernel forwards by these routes; it gets the port's index.
fn beside_a_kernel(name: &str, test: impl FnOnce(u32) + Send) {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root to make a network namespace");
    }
    let space = format!("check-{name}-{}", std::process::id());
    ip(&format!("netns add {space}"));
    let lines = "link add p0 address 02:00:00:00:00:01 type veth peer name q0
        link set q0 up
        link set p0 up
        addr add 10.1.0.1/24 dev p0
        neigh add 10.1.0.2 lladdr 02:00:00:00:00:02 dev p0 nud permanent
        neigh add 10.1.0.3 lladdr 02:00:00:00:00:03 dev p0 nud permanent
        route add 10.78.0.0/24 via 10.1.0.2
        route add 10.79.0.0/24 via 10.1.0.3
        route add blackhole 10.80.0.0/24
        route add 10.82.0.0/24 via 10.1.0.9
        route add 10.81.0.0/24 nexthop via 10.1.0.2 nexthop via 10.1.0.3
        addr add 2001:db8:1::1/64 dev p0 nodad
        neigh add 2001:db8:1::2 lladdr 02:00:00:00:00:02 dev p0 nud permanent
        neigh add 2001:db8:1::3 lladdr 02:00:00:00:00:03 dev p0 nud permanent
        -6 route add 2001:db8:78::/48 via 2001:db8:1::2
        -6 route add blackhole 2001:db8:80::/48
        -6 route add 2001:db8:81::/48 nexthop via 2001:db8:1::2 nexthop via 2001:db8:1::3";
    lines.lines().for_each(|line| ip(&format!("-n {space} {}", line.trim())));
    ip(&format!("netns exec {space} sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"));
    let output = Command::new("ip").args(["-n", &space, "-o", "link", "show", "p0"]).output().expect("ip");
    let index = String::from_utf8_lossy(&output.stdout).split(':').next().and_then(|n| n.parse().ok());
    let file = std::fs::File::open(format!("/run/netns/{space}")).expect("a namespace");
    let ended = std::thread::scope(|scope| {
        let work = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("setns");
            test(index.expect("an index"));
        };
        scope.spawn(work).join()
    });
    ip(&format!("netns del {space}"));
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

/// Has the tables lead to hops with these destination and source addresses; hop `n` is to prefix `n` of the list.
fn lead(tables: &mut Tables, device: u32, to: &[(u32, [u8; 6], [u8; 6])]) {
    let mut changes = Changes::default();
    for (n, &(destination, mac, own)) in (0..).zip(to) {
        let rewrite = Rewrite { destination: mac, source: own, mtu_bytes: 1500 };
        let address = Ipv4Addr::from(n).into();
        let adjacency = Adjacency { ifindex: device, address, rewrite: Some(rewrite) };
        changes.adjacencies.push((AdjacencyId(n), Some(adjacency)));
        changes.hops.push((HopId(n), Some(hop(n))));
        changes.routes.push((Prefix::new(Ipv4Addr::from(destination).into(), 24), Some(HopId(n))));
    }
    tables.apply(&changes, &mut || ());
}

/// What the program does with an IPv4 packet, and where it sends it.
fn verdict(tables: &mut Tables, device: u32, to: u32) -> (i32, [u8; 6]) {
    verdict_of(tables, device, &frame(to))
}

fn verdict_of(tables: &mut Tables, device: u32, frame: &[u8]) -> (i32, [u8; 6]) {
    let context = XdpContext { ingress_ifindex: device, rx_queue_index: 0 };
    let program = tables.driver().programs[0].program.clone();
    let run = program.test_run(frame, Some(context), 1).expect("run");
    (run.verdict, run.data[..6].try_into().expect("six bytes"))
}

#[test]
fn whatever_differs_is_noticed() {
    beside_a_kernel("each", |device| {
        let redirected = |to: u32, mac: [u8; 6], own: [u8; 6], device_of_port: u32| {
            let mut tables = tables(device, 1)?;
            tables.driver().ways.frames().insert_u32(0, device_of_port).expect("a device");
            lead(&mut tables, device, &[(to, mac, own)]);
            let (first, _) = verdict(&mut tables, device, to);
            assert_eq!(tables.driver().checks.asked(), 1);
            assert_eq!(
                first == action::XDP_PASS,
                tables.driver().doubted().len() == 2,
                "apart, and this one"
            );
            Some(first == action::XDP_REDIRECT)
        };
        let Some(same) = redirected(FIRST, HOSTS[0], OWN, device) else { return };
        assert!(same, "what the kernel would do");
        assert_eq!(redirected(FIRST, HOSTS[1], OWN, device), Some(false), "another host");
        assert_eq!(redirected(FIRST, [6, 0, 0, 0, 0, 2], OWN, device), Some(false), "the first octet");
        for octet in 0..6 {
            let mut own = OWN;
            own[octet] ^= 4;
            assert_eq!(redirected(FIRST, HOSTS[0], own, device), Some(false), "octet {octet} of the source");
        }
        assert_eq!(redirected(FIRST, HOSTS[0], OWN, LOOPBACK), Some(false), "another interface");
        assert_eq!(redirected(DISCARDED, HOSTS[0], OWN, device), Some(false), "it is discarded");
        assert_eq!(
            redirected(SECOND + (1 << 16) * 9, HOSTS[0], OWN, device),
            Some(false),
            "there is no route"
        );
        assert_eq!(redirected(UNKNOWN, HOSTS[0], OWN, device), Some(false), "the neighbour is not known");
        let bare = |to, device_of_port| redirected(to, [0; 6], [0; 6], device_of_port);
        assert_eq!(bare(FIRST, device), Some(true), "without addresses the interface alone counts");
        assert_eq!(bare(UNKNOWN, device), Some(true), "and no neighbour is needed");
        assert_eq!(bare(FIRST, LOOPBACK), Some(false), "another interface");
        assert_eq!(bare(DISCARDED, device), Some(false), "it is discarded");
    });
}

#[test]
fn a_wrong_route_is_the_kernels_until_it_is_right() {
    const EVERY: u32 = 20;
    beside_a_kernel("route", |device| {
        let Some(mut tables) = tables(device, EVERY) else { return };
        // By the tables both go to the first host, by the same hop.
        lead(&mut tables, device, &[(FIRST, HOSTS[0], OWN)]);
        let wrong = (Prefix::new(Ipv4Addr::from(SECOND).into(), 24), Some(HopId(0)));
        tables.apply(&Changes { routes: vec![wrong], ..Changes::default() }, &mut || ());
        let all = |tables: &mut Tables, to: u32| {
            let verdicts: Vec<_> = (0..100).map(|_| verdict(tables, device, to)).collect();
            assert!(verdicts.iter().all(|&v| v.0 == verdicts[0].0), "{verdicts:?}");
            verdicts[0].0
        };
        assert_eq!(all(&mut tables, FIRST), action::XDP_REDIRECT);
        assert!(tables.driver().checks.asked() >= 100 / u64::from(EVERY) / 2, "on two processors");
        let most = EVERY as usize * possible_cpus().expect("a number");
        let astray =
            (0..).take_while(|_| verdict(&mut tables, device, SECOND).0 == action::XDP_REDIRECT).count();
        assert!(astray <= most, "{astray}");
        assert_eq!(all(&mut tables, SECOND), action::XDP_PASS);
        assert_eq!(all(&mut tables, FIRST), action::XDP_PASS, "it finds the same hop, which is in doubt");
        lead(&mut tables, device, &[(FIRST, HOSTS[0], OWN)]);
        assert_eq!(all(&mut tables, FIRST), action::XDP_PASS, "what is set does not end the doubt");

        assert!(tables.look(true), "the kernel's tables are to be read again");
        assert_eq!(all(&mut tables, SECOND), action::XDP_PASS, "the prefix is out");
        assert_eq!(all(&mut tables, FIRST), action::XDP_REDIRECT, "the hop is trusted");
        assert_eq!(tables.forwarding().differences(), 0, "the tables may have been behind");
        tables.look(false);
        assert_eq!(tables.forwarding().differences(), 0, "they are being read");
        tables.look(true);
        assert_eq!(tables.forwarding().differences(), 1);
        // A change of something else is no reason to trust it, and the difference is the same.
        tables.apply(&Changes { routes: vec![wrong], ..Changes::default() }, &mut || ());
        tables.look(true);
        assert_eq!((all(&mut tables, SECOND), tables.forwarding().differences()), (action::XDP_PASS, 1));

        lead(&mut tables, device, &[(FIRST, HOSTS[0], OWN), (SECOND, HOSTS[1], OWN)]);
        tables.look(true);
        assert_eq!(all(&mut tables, SECOND), action::XDP_REDIRECT);
        assert_eq!(verdict(&mut tables, device, SECOND).1, HOSTS[1]);
        assert_eq!(tables.driver().doubted().len(), 1, "only what is apart leads to");
    });
}

/// Has the tables lead from a prefix to these hosts, each a leg of one hop.
fn lead_to_all(tables: &mut Tables, device: u32, prefix: Prefix, to: &[[u8; 6]]) {
    let mut changes = Changes::default();
    for (n, &mac) in (0..).zip(to) {
        let rewrite = Rewrite { destination: mac, source: OWN, mtu_bytes: 1500 };
        let address = Ipv4Addr::from(n).into();
        let adjacency = Adjacency { ifindex: device, address, rewrite: Some(rewrite) };
        changes.adjacencies.push((AdjacencyId(n), Some(adjacency)));
    }
    let legs = (0..).zip(to).map(|(n, _)| Leg { adjacency: AdjacencyId(n), weight: 1 }).collect();
    let action = HopAction::Forward { legs, mtu_bytes: None };
    changes.hops.push((HopId(0), Some(KernelHop { action, reverse_path: WayBack::Unknown })));
    changes.routes.push((prefix, Some(HopId(0))));
    tables.apply(&changes, &mut || ());
}

#[test]
fn any_member_of_a_group_is_right_and_no_other() {
    beside_a_kernel("group", |device| {
        let Some(mut tables) = tables(device, 1) else { return };
        tables.forwarding().set_flow_hash((0, 0), (0, 0), 0);
        let to = |n: u8| u32::from_be_bytes([10, 81, 0, n]);
        let prefix = Prefix::new(Ipv4Addr::from(to(0)).into(), 24);
        let all = |tables: &mut Tables| -> Vec<(i32, [u8; 6])> {
            (1..100).map(|n| verdict(tables, device, to(n))).collect()
        };
        lead_to_all(&mut tables, device, prefix, &HOSTS);
        let sent = all(&mut tables);
        assert_eq!(tables.driver().checks.asked(), 99);
        for host in HOSTS {
            let n = sent.iter().filter(|&&way| way == (action::XDP_REDIRECT, host)).count();
            assert!((20..80).contains(&n), "{n} of 99");
        }
        assert_eq!(tables.driver().doubted().len(), 1, "only what is apart leads to");

        lead_to_all(&mut tables, device, prefix, &[HOSTS[0], [6, 0, 0, 0, 0, 9]]);
        let last = all(&mut tables)[98];
        assert_eq!(last.0, action::XDP_PASS, "the kernel sends some to a host that is no member");
        assert!(tables.look(true));
        assert_eq!(verdict(&mut tables, device, to(1)).0, action::XDP_PASS, "the prefix is out");

        lead_to_all(&mut tables, device, prefix, &HOSTS);
        tables.look(true);
        let sent = all(&mut tables);
        assert!(sent.iter().all(|way| way.0 == action::XDP_REDIRECT), "it is trusted");

        let many: Vec<[u8; 6]> = (0..17).map(|n| [6, 0, 0, 0, 1, n]).collect();
        lead_to_all(&mut tables, device, prefix, &many);
        assert_ne!(
            verdict(&mut tables, device, to(1)).0,
            action::XDP_REDIRECT,
            "more than there is room for"
        );
        assert_eq!(tables.driver().doubted().len(), 1, "the graph's, without doubt");
    });
}

/// An IPv6 packet from nowhere to an address.
fn frame6(to: Ipv6Addr) -> Vec<u8> {
    let mut ip = [0u8; 60];
    (ip[0], ip[5], ip[6], ip[7]) = (0x60, 20, 17, 64);
    ip[8..24].copy_from_slice(&Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1).octets());
    ip[24..40].copy_from_slice(&to.octets());
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd], &ip[..]].concat()
}

#[test]
fn the_kernel_is_asked_about_ipv6() {
    beside_a_kernel("six", |device| {
        let ends = [0x78, 0x79, 0x80].map(|n| Ipv6Addr::new(0x2001, 0xdb8, n, 0, 0, 0, 0, 1));
        let redirected = |to: Ipv6Addr, mac: [u8; 6]| {
            let mut tables = tables(device, 1)?;
            let policy = PortPolicy { ipv6: true, ..PortPolicy::default() };
            tables.forwarding().set_policy(0, policy);
            // Not the port that it came in by, which IPv6 packets never leave by.
            lead_to_all(&mut tables, device, Prefix::new(to.into(), 48), &[mac]);
            verdict_of(&mut tables, device, &frame6(to));
            Some((tables.driver().checks.asked(), tables.driver().doubted().len()))
        };
        // The kernel is asked before that is seen.
        let Some(same) = redirected(ends[0], HOSTS[0]) else { return };
        assert_eq!(same, (1, 1), "only what is apart leads to");
        for (to, mac, what) in [
            (ends[0], HOSTS[1], "another host"),
            (ends[1], HOSTS[0], "no route"),
            (ends[2], HOSTS[0], "discarded"),
        ] {
            assert_eq!(redirected(to, mac), Some((1, 2)), "{what}");
        }
    });
}

#[test]
fn any_member_of_a_group_of_ipv6_is_right_and_no_other() {
    const FLOWS: u64 = 99;
    beside_a_kernel("six-group", |device| {
        let Some(mut tables) = tables(device, 1) else { return };
        tables.forwarding().set_flow_hash((9, 0), (0, 0), 0);
        tables.forwarding().set_policy(0, PortPolicy { ipv6: true, ..PortPolicy::default() });
        let to = |n: u64| Ipv6Addr::from(0x2001_0db8_0081_u128 << 80 | u128::from(n));
        let prefix = Prefix::new(to(0).into(), 48);
        // The kernel is asked before it is seen that they would leave by the port that they came in by. How often it is, and what
        // is in doubt then besides what is apart.
        let all = |tables: &mut Tables| {
            let before = tables.driver().checks.asked();
            for n in 1..=FLOWS {
                verdict_of(tables, device, &frame6(to(n)));
            }
            (tables.driver().checks.asked() - before, tables.driver().doubted().len() - 1)
        };
        lead_to_all(&mut tables, device, prefix, &HOSTS);
        assert_eq!(all(&mut tables), (FLOWS, 0));

        let other = [6, 0, 0, 0, 0, 9];
        for members in [[HOSTS[0], other], [other, HOSTS[1]], [other, other]] {
            lead_to_all(&mut tables, device, prefix, &members);
            let (asked, doubted) = all(&mut tables);
            assert!(asked < FLOWS && doubted == 1, "the kernel sends some to a host that is no member");
            tables.look(true);
            assert_eq!(all(&mut tables), (0, 0), "the prefix is out");
            lead_to_all(&mut tables, device, prefix, &HOSTS);
            tables.look(true);
            assert_eq!(all(&mut tables), (FLOWS, 0), "it is trusted");
        }

        let many: Vec<[u8; 6]> = (0..17).map(|n| [6, 0, 0, 0, 1, n]).collect();
        lead_to_all(&mut tables, device, prefix, &many);
        assert_eq!(all(&mut tables), (0, 0), "more than there is room for: the graph's, without doubt");
    });
}

/// More than there is room for reports of.
#[test]
fn what_no_report_was_made_of_stays_in_doubt() {
    const ROUTES: u32 = 10;
    beside_a_kernel("many", |device| {
        let Some(mut tables) = tables(device, 1) else { return };
        let to = |n: u32| u32::from_be_bytes([10, 90, n as u8, 1]);
        let wrong: Vec<_> = (0..ROUTES).map(|n| (to(n), HOSTS[0], OWN)).collect();
        lead(&mut tables, device, &wrong);
        for round in 0.. {
            for n in 0..ROUTES {
                assert_eq!(verdict(&mut tables, device, to(n)).0, action::XDP_PASS, "{n}");
            }
            let doubted = tables.driver().doubted().len() - 1;
            if doubted == 0 {
                break;
            }
            assert!(round > 0 || doubted == ROUTES as usize);
            tables.look(true);
            assert!(round > 0 || tables.driver().doubted().len() > 1, "some found no room");
            assert!(round < 1_000, "{doubted} still");
            std::thread::sleep(Duration::from_millis(20));
        }
        tables.apply(&Changes::default(), &mut || ());
        tables.look(true);
        assert_eq!(tables.forwarding().differences(), u64::from(ROUTES), "there are no such routes");
    });
}
