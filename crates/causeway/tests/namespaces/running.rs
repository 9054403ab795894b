//! Changes to a router while packets go through it, and several workers.

use crate::examples;
use crate::net::{Net, open_port, wait_for};
use std::net::UdpSocket;
use std::time::Duration;

#[test]
fn a_hot_swap_loses_no_packet() {
    let Some(net) = Net::new() else { return };
    let router = examples::router(&net, "");
    assert!(net.ping("-c 3 10.77.2.2").0, "neighbours are known");
    let text = include_str!("../../../../conf/router.click");
    let counting = text.replace("link0 [0] -> check;", "link0 [0] -> seen :: Counter -> check;");
    assert_ne!(text, counting);
    std::thread::scope(|scope| {
        let ping = scope.spawn(|| net.ping_from("a", "-q -c 800 -i 0.002 10.77.2.2"));
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(150));
            router.write("hotconfig", &counting).expect("a good configuration");
            wait_for("packets in the new graph", || router.number("seen.count") > 0);
            let wrong = router.write("hotconfig", "nonsense ->").expect_err("a wrong configuration");
            assert!(wrong.contains("nonsense"), "{wrong}");
            router.write("hotconfig", text).expect("a good configuration");
            assert!(router.read("list").lines().all(|name| name != "seen"), "the old graph is back");
        }
        let (good, text) = ping.join().expect("ping");
        assert!(good, "{text}{:?}", router.counters());
    });
}

#[test]
fn two_workers_share_the_queues_of_two_devices() {
    let Some(net) = Net::new() else { return };
    for (space, device) in [("a", "a0"), ("b", "b0"), ("r", "ra"), ("r", "rb")] {
        net.inside(space, "ethtool", &format!("-L {device} rx 2 tx 2"));
    }
    for (host, address) in [("a", "10.77.3.1/24"), ("b", "10.77.3.2/24")] {
        net.ip(host, &format!("addr add {address} dev {host}0"));
    }
    let bridge = net.start("r", "run bridge.click -D dev0=ra -D dev1=rb --threads 2");
    assert!(net.ping("-c 3 10.77.3.2").0);
    let (bound, listens) = std::sync::mpsc::channel();
    let echo = net.spawn("b", move || {
        let socket = open_port(|| UdpSocket::bind("10.77.3.2:4000"));
        bound.send(()).expect("the test waits");
        let mut bytes = [0; 64];
        for _ in 0..640 {
            let (n, from) = socket.recv_from(&mut bytes).expect("received");
            socket.send_to(&bytes[..n], from).expect("sent");
        }
    });
    listens.recv().expect("the echo");
    // Many flows, so that both queues get some.
    let flows = net.spawn("a", || {
        for flow in 0..64u8 {
            let socket = UdpSocket::bind("10.77.3.1:0").expect("bind");
            socket.connect("10.77.3.2:4000").expect("connected");
            socket.set_read_timeout(Some(Duration::from_secs(5))).expect("timeout");
            for n in 0..10 {
                socket.send(&[flow, n]).expect("sent");
                let mut bytes = [0; 64];
                let got = socket.recv(&mut bytes).expect("an answer");
                assert_eq!(bytes[..got], [flow, n]);
            }
        }
    });
    flows.join().expect("every packet comes back");
    echo.join().expect("the echo");
    for way in ["there", "back"] {
        let of_worker = |worker: &str| {
            let mine = |key: &[String; 3]| key[0] == worker && key[1] == way && key[2] == "count";
            bridge.counters().iter().filter(|(key, _)| mine(key)).map(|(_, n)| n).sum::<u64>()
        };
        let (first, second) = (of_worker("0"), of_worker("1"));
        assert!(first > 0 && second > 0 && first + second >= 643, "{way}: {first} and {second}");
        assert_eq!(bridge.number(&format!("{way}.count")), first + second, "handlers add up the workers");
    }
}

#[test]
fn workers_share_interfaces_with_one_queue() {
    let Some(net) = Net::new() else { return };
    {
        let router = examples::router(&net, "--threads 2");
        assert!(net.ping("-c 20 -i 0.05 10.77.2.2").0, "{:?}", router.counters());
        let text = include_str!("../../../../conf/router.click");
        router.write("hotconfig", text).expect("a good configuration");
        assert!(net.ping("-c 5 10.77.2.2").0, "{:?}", router.counters());
    }
    net.inside("r", "sysctl", "-qw net.ipv4.ip_forward=1");
    let router = net.start("r", "up ra rb --attach xdp --threads 2");
    net.meet(&router, false);
    assert!(net.ping("-c 50 -i 0.02 10.77.2.2").0, "{:?}", router.counters());
    assert!(router.number("forward.count") >= 40, "{:?}", router.counters());
}

#[test]
fn an_interface_that_was_deleted_and_made_anew_is_opened_again() {
    let Some(net) = Net::new() else { return };
    net.ip("b", "addr add 10.77.1.9/24 dev b0");
    for method in ["AFXDP", "PACKET"] {
        let file = std::env::temp_dir().join(format!("{}.click", net.name("bridge")));
        let text = format!(
            "FromDevice(ra, PROMISC true, METHOD {method}) -> there :: Counter -> q :: Queue -> out :: ToDevice(rb);
             in :: FromDevice(rb, PROMISC true, METHOD {method}) -> Queue -> back :: ToDevice(ra);"
        );
        std::fs::write(&file, text).expect("a file");
        let bridge = net.start("r", &format!("run {}", file.display()));
        assert!(net.ping("-c 3 10.77.1.9").0, "{method}");
        let before = bridge.number("there.count");
        net.ip("r", "link set ra mtu 1400");
        wait_for("the change to be told", || bridge.read("back.events").contains("mtu_changed 1"));
        for round in 1..3 {
            net.ip("r", "link del ra");
            wait_for("the loss to be told", || bridge.read("back.events").contains("gone 1"));
            net.link("a", 1);
            wait_for("packets through the new interface", || net.ping("-c 1 10.77.1.9").0);
            let events = bridge.read("back.events");
            assert!(events.contains("gone 0"), "round {round}: it is another port: {events}");
        }
        assert!(bridge.number("there.count") > before, "the graph goes on counting");
        assert_eq!(bridge.number("q.drops"), 0);
        assert!(bridge.read("out.events").contains("gone 0"), "the other one was not touched");
        drop(bridge);
        let _ = std::fs::remove_file(file);
    }
}

/// Bridges the two hosts, by these names of the router's ends.
fn bridge(ra: &str, rb: &str) -> String {
    format!(
        "FromDevice({ra}, PROMISC true) -> there :: Counter -> Queue -> out :: ToDevice({rb});
         FromDevice({rb}, PROMISC true) -> Queue -> back :: ToDevice({ra});"
    )
}

#[test]
fn a_port_comes_back_alone_and_in_a_graph_that_came_later() {
    let Some(net) = Net::new() else { return };
    net.ip("b", "addr add 10.77.1.9/24 dev b0");
    let file = std::env::temp_dir().join(format!("{}.click", net.name("later")));
    std::fs::write(&file, "Idle -> Discard;").expect("a file");
    let router = net.start("r", &format!("run {}", file.display()));
    let _ = std::fs::remove_file(file);
    router.write("hotconfig", &bridge("ra", "rb")).expect("a good configuration");
    assert!(net.ping("-c 3 10.77.1.9").0);
    net.ip("r", "link del ra");
    net.ip("r", "link del rb");
    for port in ["back", "out"] {
        wait_for("the loss to be told", || router.line(&format!("{port}.events"), "gone") == 1);
    }
    net.link("a", 1);
    wait_for("one to be opened while the other is missing", || router.line("back.events", "gone") == 0);
    assert_eq!(router.line("out.events", "gone"), 1);
    // Another configuration can be written meanwhile.
    router.write("hotconfig", &format!("{} Idle -> Discard;", bridge("ra", "rb"))).expect("accepted");
    net.link("b", 2);
    net.ip("b", "addr add 10.77.1.9/24 dev b0");
    wait_for("packets through both", || net.ping("-c 1 10.77.1.9").0);
    assert_eq!(router.line("out.events", "gone"), 0);
}

#[test]
fn a_device_that_is_enslaved_renamed_or_moved_away_and_back_is_the_same_one() {
    let Some(net) = Net::new() else { return };
    net.ip("b", "addr add 10.77.1.9/24 dev b0");
    net.ip("r", "link property add dev ra altname second");
    let file = std::env::temp_dir().join(format!("{}.click", net.name("same")));
    std::fs::write(&file, bridge("second", "rb")).expect("a file");
    let router = net.start("r", &format!("run {}", file.display()));
    let _ = std::fs::remove_file(file);
    assert!(net.ping("-c 3 10.77.1.9").0, "by a second name");
    for args in ["link add br0 type bridge", "link set rb master br0", "link set rb nomaster"] {
        net.ip("r", args);
    }
    net.ip("r", "link set ra name other");
    wait_for("the name to be told", || router.line("back.events", "renamed") == 1);
    assert!(net.ping("-c 3 10.77.1.9").0, "by another name");
    assert_eq!((router.line("back.events", "gone"), router.line("out.events", "gone")), (0, 0));
    router.write("hotconfig", &bridge("other", "rb")).expect("its new name is its name");

    net.ip("r", &format!("link set rb netns {}", net.name("a")));
    wait_for("the loss to be told", || router.line("out.events", "gone") == 1);
    net.ip("a", &format!("link set rb netns {}", net.name("r")));
    net.ip("r", "link set rb up");
    wait_for("packets through the device that came back", || net.ping("-c 1 10.77.1.9").0);
    router.write("hotconfig", &bridge("other", "rb")).expect("a good configuration");
    assert!(net.ping("-c 3 10.77.1.9").0);
}

#[test]
fn the_old_name_of_a_device_makes_no_other_one_its_successor_while_it_is_there() {
    let Some(net) = Net::new() else { return };
    net.ip("b", "addr add 10.77.1.9/24 dev b0");
    let file = std::env::temp_dir().join(format!("{}.click", net.name("heir")));
    std::fs::write(&file, bridge("ra", "rb")).expect("a file");
    let router = net.start("r", &format!("run {}", file.display()));
    let _ = std::fs::remove_file(file);
    assert!(net.ping("-c 3 10.77.1.9").0);
    net.ip("r", "link set ra name other");
    wait_for("the name to be told", || router.line("back.events", "renamed") == 1);
    net.ip("r", "link add ra type veth peer name heir");
    net.ip("r", "link set ra up");
    net.ip("r", "link set heir up");
    assert!(net.ping("-c 10 10.77.1.9").0, "packets take the device and not its old name");
    assert_eq!((router.line("back.events", "gone"), router.line("back.events", "back")), (0, 0));
    // When it goes, whatever has the name that the configuration says is taken: another port, whose events begin anew.
    net.ip("r", "link del other");
    wait_for("the other one to be opened", || router.line("back.events", "renamed") == 0);
    assert_eq!(router.line("back.events", "gone"), 0, "none is missing now");
}
