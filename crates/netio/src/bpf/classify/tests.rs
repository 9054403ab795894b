//! One corpus, two machines: the interpreter always, the kernel where it lets us.

use super::*;
use crate::bpf::interp::{self, FakeMap};
use crate::bpf::{Code, action};
use crate::error::ErrorKind;
use proptest::prelude::*;
use std::collections::HashMap;
use std::os::fd::BorrowedFd;

const MAC: [u8; 6] = [2, 0x11, 0x22, 0x33, 0x44, 0x55];
const LOCAL4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

fn local6() -> Ipv6Addr {
    "2001:db8::1".parse().expect("an address")
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&MAC[..], &[2, 0, 0, 0, 0, 9], &ethertype.to_be_bytes(), payload].concat()
}

/// A UDP packet of 40 bytes from 192.0.2.9, changed by `edit`.
fn v4(edit: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut p = vec![0u8; 40];
    p[0] = 0x45;
    p[3] = 40;
    p[8] = 64;
    p[9] = 17;
    p[12..16].copy_from_slice(&[192, 0, 2, 9]);
    p[16..20].copy_from_slice(&[198, 51, 100, 7]);
    edit(&mut p);
    ethernet(0x0800, &p)
}

/// A UDP packet of 60 bytes from 2001:db8:9::9, changed by `edit`.
fn v6(edit: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut p = vec![0u8; 60];
    p[0] = 0x60;
    p[5] = 20;
    p[6] = 17;
    p[7] = 64;
    p[8..24].copy_from_slice(&"2001:db8:9::9".parse::<Ipv6Addr>().expect("an address").octets());
    p[24..40].copy_from_slice(&"2001:db8:7::7".parse::<Ipv6Addr>().expect("an address").octets());
    edit(&mut p);
    ethernet(0x86dd, &p)
}

fn edited(mut frame: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    frame[at] = byte;
    frame
}

fn v4_to(dst: [u8; 4]) -> Vec<u8> {
    v4(|p| p[16..20].copy_from_slice(&dst))
}

fn v6_at(field: usize, address: &str) -> Vec<u8> {
    v6(|p| p[field..field + 16].copy_from_slice(&address.parse::<Ipv6Addr>().expect("an address").octets()))
}

/// `(what, frame, reason)` with fragments taken.
fn corpus() -> Vec<(&'static str, Vec<u8>, Reason)> {
    use Reason::*;
    vec![
        ("plain IPv4", v4(|_| ()), Taken),
        ("plain IPv6", v6(|_| ()), Taken),
        ("padded to 60 bytes", [v4(|_| ()), vec![0; 6]].concat(), Taken),
        ("IPv4 TTL 2", v4(|p| p[8] = 2), Taken),
        ("IPv4 next to a local address", v4_to([10, 0, 0, 2]), Taken),
        ("IPv4 later fragment", v4(|p| p[7] = 1), Taken),
        ("IPv6 fragment", v6(|p| p[6] = 44), Taken),
        ("IPv6 no next header", v6(|p| p[6] = 59), Taken),
        ("ethertype ARP", ethernet(0x0806, &[0; 28]), Arp),
        ("802.1Q", ethernet(0x8100, &[0; 46]), Vlan),
        ("802.1ad", ethernet(0x88a8, &[0; 46]), Vlan),
        ("LLDP", ethernet(0x88cc, &[0; 46]), NonIp),
        (
            "broadcast",
            {
                let mut f = v4(|_| ());
                f[..6].fill(0xff);
                f
            },
            EthernetGroup,
        ),
        ("IPv6 group", edited(v6(|_| ()), 0, 0x33), EthernetGroup),
        ("other host, high part", edited(v4(|_| ()), 1, 0x12), OtherHost),
        ("other host, low part", edited(v4(|_| ()), 5, 0x56), OtherHost),
        ("bare Ethernet header", ethernet(0x0800, &[]), Malformed),
        ("IPv4 header cut", ethernet(0x0800, &v4(|_| ())[14..33]), Malformed),
        ("IPv4 version 6", v4(|p| p[0] = 0x65), Malformed),
        ("IPv4 header of 16 bytes", v4(|p| p[0] = 0x44), Malformed),
        ("IPv4 total length 19", v4(|p| p[3] = 19), Malformed),
        ("IPv4 total length beyond the frame", v4(|p| p[3] = 41), Malformed),
        ("IPv4 options", v4(|p| p[0] = 0x46), IpOptions),
        ("IPv4 TTL 1", v4(|p| p[8] = 1), Ttl),
        ("IPv4 TTL 0", v4(|p| p[8] = 0), Ttl),
        ("IPv4 local", v4_to(LOCAL4.octets()), Local),
        ("IPv4 multicast", v4_to([224, 0, 0, 5]), SpecialAddress),
        ("IPv4 limited broadcast", v4_to([255; 4]), SpecialAddress),
        ("IPv4 loopback", v4_to([127, 0, 0, 1]), SpecialAddress),
        ("IPv4 this network", v4_to([0, 0, 0, 1]), SpecialAddress),
        ("IPv4 link-local", v4_to([169, 254, 1, 1]), SpecialAddress),
        ("IPv4 source multicast", v4(|p| p[12] = 224), SpecialAddress),
        ("IPv6 header cut", ethernet(0x86dd, &v6(|_| ())[14..53]), Malformed),
        ("IPv6 version 4", v6(|p| p[0] = 0x40), Malformed),
        ("IPv6 payload beyond the frame", v6(|p| p[5] = 21), Malformed),
        ("IPv6 hop-by-hop", v6(|p| p[6] = 0), ExtensionHeader),
        ("IPv6 routing", v6(|p| p[6] = 43), ExtensionHeader),
        ("IPv6 destination options", v6(|p| p[6] = 60), ExtensionHeader),
        ("IPv6 hop limit 1", v6(|p| p[7] = 1), Ttl),
        ("IPv6 local", v6_at(24, "2001:db8::1"), Local),
        ("IPv6 multicast", v6_at(24, "ff02::5"), SpecialAddress),
        ("IPv6 link-local", v6_at(24, "fe80::1"), SpecialAddress),
        ("IPv6 link-local, top of the range", v6_at(24, "febf::1"), SpecialAddress),
        ("IPv6 after link-local", v6_at(24, "fec0::1"), Taken),
        ("IPv6 loopback", v6_at(24, "::1"), SpecialAddress),
        ("IPv6 zero upper half only", v6_at(24, "::1:0:0:1"), Taken),
        ("IPv6 mapped IPv4", v6_at(24, "::ffff:192.0.2.1"), SpecialAddress),
        ("IPv6 source unspecified", v6_at(8, "::"), SpecialAddress),
        ("IPv6 source link-local", v6_at(8, "fe80::2"), SpecialAddress),
    ]
}

/// Stand-ins for descriptors: numbers of the interpreter's maps. They are never used as descriptors.
const SOCKETS: i32 = 1;
const COUNTERS: i32 = 2;
const LOCAL4_FD: i32 = 3;
const LOCAL6_FD: i32 = 4;

fn fake(fd: i32) -> BorrowedFd<'static> {
    // SAFETY: only the number is read; no system call sees it.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

fn fake_classify(fragments: Fragments) -> Code {
    let maps = Maps {
        sockets: fake(SOCKETS),
        counters: fake(COUNTERS),
        local4: fake(LOCAL4_FD),
        local6: fake(LOCAL6_FD),
    };
    classify(&maps, MAC, fragments).expect("assembled")
}

/// Runs `code` in the interpreter with a socket on queue 3 only: the verdict and the reason counted.
fn interpret(code: &Code, frame: &[u8], queue: u32) -> (i32, Reason) {
    let map = |key_size, entries: Vec<(Vec<u8>, Vec<u8>)>| FakeMap {
        key_size,
        entries: entries.into_iter().map(|(k, v)| (k, v.into())).collect::<HashMap<_, _>>(),
    };
    let zeros = (0..Reason::ALL.len() as u32).map(|i| (i.to_ne_bytes().to_vec(), vec![0; 8])).collect();
    interp::set_maps([
        (SOCKETS, map(4, vec![(3u32.to_ne_bytes().to_vec(), vec![0; 4])])),
        (COUNTERS, map(4, zeros)),
        (LOCAL4_FD, map(4, vec![(LOCAL4.octets().to_vec(), vec![1; 4])])),
        (LOCAL6_FD, map(16, vec![(local6().octets().to_vec(), vec![1; 4])])),
    ]);
    let (verdict, after) = interp::run_xdp(code, frame, queue).expect("interpreted");
    assert_eq!(after, frame, "the program must not write to the frame");
    let counted =
        |r: &Reason| interp::map_value(COUNTERS, &(*r as u32).to_ne_bytes()).is_some_and(|v| v[0] == 1);
    let reasons: Vec<Reason> = Reason::ALL.into_iter().filter(counted).collect();
    assert_eq!(reasons.len(), 1, "one count a frame, not {reasons:?}");
    (verdict, reasons[0])
}

#[test]
fn corpus_in_the_interpreter() {
    let code = fake_classify(Fragments::Take);
    for (what, frame, want) in corpus() {
        let (verdict, reason) = interpret(&code, &frame, 3);
        assert_eq!(reason, want, "{what}");
        let pass = if want == Reason::Taken { action::XDP_REDIRECT } else { action::XDP_PASS };
        assert_eq!(verdict, pass, "{what}");
    }
    assert_eq!(interpret(&code, &v4(|_| ()), 0), (action::XDP_PASS, Reason::NoSocket));
}

#[test]
fn fragments_can_be_left_to_the_kernel() {
    let code = fake_classify(Fragments::Pass);
    for frame in [v4(|p| p[7] = 1), v4(|p| p[6] = 0x20), v6(|p| p[6] = 44)] {
        assert_eq!(interpret(&code, &frame, 3), (action::XDP_PASS, Reason::Fragment));
    }
    assert_eq!(interpret(&code, &v4(|p| p[6] = 0x40), 3).1, Reason::Taken, "don't fragment is no fragment");
}

#[test]
fn taking_all() {
    let code = take_all(fake(SOCKETS), fake(COUNTERS)).expect("assembled");
    for (what, frame, _) in corpus() {
        assert_eq!(interpret(&code, &frame, 3), (action::XDP_REDIRECT, Reason::Taken), "{what}");
    }
}

#[test]
fn corpus_in_the_kernel() {
    let local = match LocalAddresses::new() {
        Ok(local) => Arc::new(local),
        Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
        Err(e) => panic!("{e}"),
    };
    local.insert_v4(LOCAL4).expect("insert");
    local.insert_v6(local6()).expect("insert");
    let port = PortProgram::load(Filter::Transit(local.clone(), Fragments::Take), MAC, 4).expect("loaded");
    for (what, frame, want) in corpus() {
        // Without a socket, "to be taken" shows as its own reason.
        let want = if want == Reason::Taken { Reason::NoSocket } else { want };
        let before = port.count(want).expect("count");
        let run = port.program.test_run(&frame, None, 1).expect("run");
        assert_eq!(run.verdict, action::XDP_PASS, "{what}");
        assert_eq!(port.count(want).expect("count"), before + 1, "{what}: {want:?}");
    }
    assert!(local.remove_v4(LOCAL4).expect("remove"));
    let before = port.count(Reason::NoSocket).expect("count");
    port.program.test_run(&v4_to(LOCAL4.octets()), None, 1).expect("run");
    assert_eq!(port.count(Reason::NoSocket).expect("count"), before + 1, "a removed address is in transit");
}

proptest! {
    /// Whatever the bytes: one verdict, one count, and never a frame that is not to us.
    #[test]
    fn any_bytes(mut frame in proptest::collection::vec(any::<u8>(), 14..200), ours: bool, ethertype in 0usize..4) {
        if ours {
            frame[..6].copy_from_slice(&MAC);
        }
        if let Some(e) = [[8, 0], [0x86, 0xdd], [8, 6]].get(ethertype) {
            frame[12..14].copy_from_slice(e);
        }
        let (verdict, reason) = interpret(&fake_classify(Fragments::Take), &frame, 3);
        prop_assert_eq!(verdict == action::XDP_REDIRECT, reason == Reason::Taken);
        prop_assert!(ours || frame[..6] == MAC || reason != Reason::Taken);
    }
}
