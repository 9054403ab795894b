//! Configurations, and what packets are when they come in.

use super::*;
use crate::devices::to_device;
use causeway_engine::harness::Harness;
use causeway_engine::{Counters, Env};

#[test]
fn bad_configurations_are_named() {
    let errors = |text: &str| Harness::new(&SPEC, text, 0, 1).err().unwrap();
    assert_eq!(errors(""), ["DEVNAME: required argument missing"]);
    let unknown = &errors("eth0, METHOD dpdk")[0];
    assert!(unknown.contains("'dpdk' is not one of afxdp (an interface"), "{unknown}");
    assert!(errors("eth0, RECEPTION often")[0].contains("'often' is not one of interrupt"));
    let missing = errors("no-such-interface-0");
    assert!(missing[0].contains("no-such-interf") && missing.len() == 1, "{missing:?}");
}

/// How the two devices of a graph are opened.
fn methods(defaults: Defaults, from: &str, to: &str) -> (Option<Method>, Method) {
    let mut env = Env::new(Counters::new(1, 64, None).unwrap());
    env.defaults = defaults;
    let received = (!from.is_empty()).then(|| {
        let mut conf = Conf::new(&mut env, "f".into(), &SPEC, 0, (0, 1), from);
        let mut built = build(&mut conf, None).ok().unwrap();
        built.downcast_mut::<FromDevice>().unwrap().method
    });
    let mut conf = Conf::new(&mut env, "t".into(), &to_device::SPEC, 0, (1, 0), to);
    (received, to_device::method_of(&mut conf, "eth9"))
}

#[test]
fn under_click_s_defaults_the_kernel_keeps_its_packets() {
    let takes = Method::USUAL;
    let leaves = Method { opener: "packet", promiscuous: false };
    assert_eq!(methods(Defaults::Causeway, "eth9", "eth9"), (Some(takes), takes));
    assert_eq!(methods(Defaults::Click, "eth9", "eth9"), (Some(leaves), leaves));
    assert_eq!(methods(Defaults::Click, "", "eth9"), (None, leaves), "whoever only sends takes nothing");
    assert_eq!(methods(Defaults::Click, "eth9, SNIFFER false", "eth9"), (Some(takes), takes));
    assert_eq!(methods(Defaults::Click, "eth9, METHOD AFXDP", "eth9"), (Some(takes), takes));
    assert_eq!(methods(Defaults::Causeway, "eth9, SNIFFER true", "eth9"), (Some(leaves), leaves));
}

/// What `look` sees of the element that `config` makes.
fn built<T>(config: &str, default: Option<Mechanism>, look: impl Fn(&FromDevice) -> T) -> T {
    let mut env = Env::new(Counters::new(1, 64, None).unwrap());
    let mut conf = Conf::new(&mut env, "f".into(), &SPEC, 0, (0, 1), config);
    let mut built = build(&mut conf, default).ok().unwrap();
    look(built.downcast_mut::<FromDevice>().unwrap())
}

#[test]
fn arguments_say_which_frames_and_how_much_of_them() {
    let look = |config: &str| {
        built(config, None, |d| {
            (d.snaplen, d.force_ip, d.linktype, d.protocol, d.timestamp, d.method.promiscuous)
        })
    };
    assert_eq!(look("eth9"), (u32::MAX as usize, false, encap::ETHER, 0, true, false));
    let all = "eth9, true, 100, FORCE_IP true, ENCAP IP, PROTOCOL 0x86dd, TIMESTAMP false";
    assert_eq!(look(all), (100, true, encap::by_name("IP").unwrap(), 0x86dd, false, true));
    assert_eq!(look("eth9, SNAPLEN 64, CAPTURE PCAP").0, 64);
    let errors = |text: &str| Harness::new(&SPEC, text, 0, 1).err().unwrap();
    assert_eq!(errors("eth9, OUTBOUND true"), ["OUTBOUND: frames that the host sends cannot be received"]);
    assert_eq!(errors("eth9, ENCAP nothing"), ["bad encapsulation type"]);
}

/// What lies in front of frames that no program has seen is stale.
#[test]
fn only_ports_that_a_program_may_be_in_front_of_bring_luggage() {
    let looks = |config: &str| built(config, None, |d| d.arrivals.is_some());
    for (config, looked_for) in [
        ("eth9", true),
        ("eth9, METHOD TRANSIT", true),
        ("eth9, METHOD GENERIC, SNAPLEN 60", true),
        ("eth9, SNIFFER true", false),
        ("eth9, METHOD TCX", true),
        ("eth9, METHOD TAP", false),
    ] {
        assert_eq!(looks(config), looked_for, "{config}");
    }
}

#[test]
fn arguments_say_when_the_worker_looks() {
    let napi = |quota| Mechanism::by_name("napi", quota, 32, 100_000);
    for (config, default, found) in [
        ("eth9", None, None),
        ("eth9, RECEPTION napi", None, napi(DEFAULT_QUOTA)),
        ("eth9, RECEPTION napi, BURST 5", None, napi(5)),
        ("eth9, RECEPTION napi, BURST 5, QUOTA 7", None, napi(7)),
        (
            "eth9, RECEPTION moderated, PACKETS 9, TIME 2ms",
            None,
            Mechanism::by_name("moderated", 64, 9, 2_000_000),
        ),
        // The third is PollDevice's BURST.
        ("eth9, false, 6", napi(1), napi(1)),
        ("eth9, false, 6, RECEPTION napi", napi(1), napi(6)),
    ] {
        assert!(built(config, default, |d| d.mechanism == found), "{config}");
    }
}

#[test]
fn frames_are_told_apart_by_their_destination() {
    let mac = [2, 0, 0, 0, 0, 1];
    assert_eq!(packet_type(&[2, 0, 0, 0, 0, 1, 9], &mac), PacketType::Host);
    assert_eq!(packet_type(&[255; 14], &mac), PacketType::Broadcast);
    assert_eq!(packet_type(&[1, 0, 0x5e, 0, 0, 1], &mac), PacketType::Multicast);
    assert_eq!(packet_type(&[2, 0, 0, 0, 0, 2], &mac), PacketType::OtherHost);
    assert_eq!(packet_type(&[2, 0], &mac), PacketType::OtherHost);
}
