//! The pool of frames: how large it must be, and what a router does with hardly any.

use crate::net::{Net, Router, wait_for};
use std::path::PathBuf;

/// The least number of frames for `causeway ARGS`, which refuses fewer by one line that says so.
fn least(net: &Net, args: &str) -> u32 {
    let output = net.causeway(&format!("{args} --frames 10")).output().expect("causeway");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = text.lines().last().unwrap_or_default();
    assert!(last.contains("causeway: --frames 10 is too few"), "{text}");
    let number = text.split("at least ").nth(1).and_then(|t| t.split(';').next()).expect("the least");
    number.parse().unwrap_or_else(|_| panic!("{text}"))
}

/// A configuration of the test's own, removed with the value.
struct Configuration(PathBuf);

impl Configuration {
    fn new(net: &Net, text: &str) -> Configuration {
        let path = std::env::temp_dir().join(format!("{}.click", net.name("frames")));
        std::fs::write(&path, text).expect("written");
        Configuration(path)
    }
}

impl Drop for Configuration {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Sends `n` packets to the router's end of host `a`'s cable in a second.
fn send(net: &Net, n: u32) {
    let link = format!("-D dev=a0 -D from={} -D to={}", net.mac("a", "a0"), net.mac("r", "ra"));
    let flow = format!("-D src=10.77.1.2 -D dst=10.77.1.1 -D rate={n} -D limit={n}");
    let mut sender = net.start("a", &format!("run udpsend.click {link} {flow}"));
    assert!(sender.child.wait().expect("the sender").success());
}

#[test]
fn a_pool_that_cannot_feed_the_ports_is_refused_and_the_least_one_forwards() {
    let Some(net) = Net::new() else { return };
    let bridge = "run bridge.click -D dev0=ra -D dev1=rb";
    let frames = least(&net, bridge);
    assert_eq!(frames, least(&net, "up ra rb --attach xdp"), "two queues and a worker either way");
    for (host, address) in [("a", "10.77.3.1/24"), ("b", "10.77.3.2/24")] {
        net.ip(host, &format!("addr add {address} dev {host}0"));
    }
    let bridge = net.start("r", &format!("{bridge} --frames {frames}"));
    for round in 0..3 {
        let (good, text) = net.ping_from("a", "-i 0.05 -c 20 10.77.3.2");
        assert!(good, "round {round}: {text}{:?}", bridge.counters());
        send(&net, 3_000);
    }
}

/// All frames wait in a queue, so the driver's program has nowhere to put packets: no packet comes that could wake the
/// router to what is free again.
#[test]
fn a_router_whose_queues_took_all_frames_hears_again() {
    let Some(net) = Net::new() else { return };
    let text = "FromDevice(ra) -> in :: Counter -> q :: Queue(100000) -> out :: Unqueue(256, ACTIVE false) -> Discard;";
    let configuration = Configuration::new(&net, text);
    let run = format!("run {}", configuration.0.display());
    let router = net.start("r", &format!("{run} --frames {}", least(&net, &run)));
    let deaf = |router: &Router| {
        let before = router.number("in.count");
        send(&net, 300);
        router.number("in.count") == before
    };
    wait_for("the pool to be empty", || deaf(&router));
    assert!(router.counted("FromDevice@1", |name| name == "port.rx_drop_no_frame") > 0);
    router.write("out.active", "true").expect("written");
    wait_for("the queue to be empty", || router.number("q.length") == 0);
    let before = router.number("in.count");
    send(&net, 100);
    assert_eq!(router.number("in.count"), before + 100);
}

/// A hot swap closes ports, to one of which packets were just sent whose other end is not there to take them; another
/// one opens them again. With hardly any frames the ports would soon get none if some stayed behind.
#[test]
fn swaps_that_drop_ports_without_carrier_lose_no_frame() {
    let Some(net) = Net::new() else { return };
    for (host, address) in [("a", "10.77.3.1/24"), ("b", "10.77.3.2/24")] {
        net.ip(host, &format!("addr add {address} dev {host}0"));
    }
    let bridge =
        "FromDevice(ra) -> Queue(500) -> ToDevice(rb); FromDevice(rb) -> Queue(500) -> ToDevice(ra);";
    let configuration = Configuration::new(&net, bridge);
    let run = format!("run {}", configuration.0.display());
    let router = net.start("r", &format!("{run} --frames {}", least(&net, &run)));
    for round in 0..20 {
        let (good, text) = net.ping_from("a", "-i 0.05 -c 5 10.77.3.2");
        assert!(good, "round {round}: {text}{:?}", router.counters());
        net.ip("b", "link set b0 down");
        assert!(!net.ping_from("a", "-i 0.002 -c 50 -W 0.1 10.77.3.2").0);
        router.write("hotconfig", "Idle -> Discard;").expect("a good configuration");
        net.ip("b", "link set b0 up");
        router.write("hotconfig", bridge).expect("a good configuration");
    }
}

/// Gives both hosts addresses of one network.
fn address_hosts(net: &Net) {
    for (host, address) in [("a", "10.77.3.1/24"), ("b", "10.77.3.2/24")] {
        net.ip(host, &format!("addr add {address} dev {host}0"));
    }
}

/// Both ports as one cable, by this method.
fn bridged(net: &Net, method: &str) -> Configuration {
    let one = |from: &str, to: &str| {
        format!("FromDevice({from}, PROMISC true, METHOD {method}) -> Queue -> ToDevice({to});")
    };
    Configuration::new(net, &(one("ra", "rb") + &one("rb", "ra")))
}

/// Nothing of the pool is used but by AF_XDP, and that is said before the interface is touched.
#[test]
fn without_recycling_packets_come_from_the_general_allocator_and_af_xdp_is_refused() {
    let Some(net) = Net::new() else { return };
    let bridge = |method: &str| bridged(&net, method);
    address_hosts(&net);
    let configuration = bridge("PACKET");
    let run = format!("run {} --no-recycling", configuration.0.display());
    {
        let bridge = net.start("r", &run);
        let (good, text) = net.ping_from("a", "-i 0.02 -c 50 10.77.3.2");
        assert!(good, "{text}{:?}", bridge.counters());
        let wrong =
            bridge.write("hotconfig", "FromDevice(lo, METHOD AFXDP) -> Discard;").expect_err("refused");
        assert!(wrong.contains("lo: AF_XDP needs the packet pool"), "{wrong}");
        assert!(net.ping_from("a", "-c 2 10.77.3.2").0, "the graph is the old one");
    }
    let said = |args: &str| {
        let output = net.causeway(args).output().expect("causeway");
        assert!(!output.status.success(), "{args}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let configuration = bridge("AFXDP");
    let text = said(&format!("run {} --no-recycling", configuration.0.display()));
    assert!(text.contains("ra: AF_XDP needs the packet pool"), "{text}");
    assert!(text.contains("run without --no-recycling") && text.contains("METHOD PACKET"), "{text}");
    for other in ["--driver", "--frames 4096"] {
        let text = said(&format!("{run} {other}"));
        assert!(text.contains("cannot be used with"), "{text}");
    }
}

/// Packet sockets copy, whatever fits; the kernel gives AF_XDP no more than a page for each frame, and that is said before the
/// interface is touched.
#[test]
fn long_frames_pass_where_those_of_the_pool_hold_them_and_af_xdp_says_how_long_its_own_may_be() {
    let Some(net) = Net::new() else { return };
    let bridge = |method: &str| bridged(&net, method);
    address_hosts(&net);
    let said = |args: &str| {
        let output = net.causeway(args).output().expect("causeway");
        assert!(!output.status.success(), "{args}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (mtu, frame_size) in [(9_000, 16_384), (32_000, 32_768)] {
        let configuration = bridge("PACKET");
        for (host, link) in [("a", "a0"), ("b", "b0"), ("r", "ra"), ("r", "rb")] {
            net.ip(host, &format!("link set {link} mtu {mtu}"));
        }
        let run = format!("run {}", configuration.0.display());
        let text = said(&run);
        assert!(text.contains(&format!("MTU {mtu} does not fit")), "{text}");
        assert!(text.contains(&format!("`--frame-size {frame_size}`")), "{text}");
        let bridge = net.start("r", &format!("{run} --frame-size {frame_size}"));
        let (good, text) = net.ping_from("a", &format!("-M do -s {} -i 0.02 -c 20 10.77.3.2", mtu - 100));
        assert!(good, "{text}{:?}", bridge.counters());
    }
    let configuration = bridge("AFXDP");
    let text = said(&format!("run {} --frame-size 8192", configuration.0.display()));
    assert!(
        text.contains("ra: AF_XDP takes frames of at most 4096 bytes, and the pool's have 8192"),
        "{text}"
    );
    assert!(text.contains("`--frame-size 4096`") && text.contains("METHOD PACKET"), "{text}");
}
