//! `causeway up` between two hosts: what it forwards, what it leaves to the kernel, and that the kernel goes on when it
//! is gone.

use crate::net::{Net, open_port, wait_for};
use rustix::process::Signal;
use std::io::Read;
use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn both_versions_are_forwarded_by_the_graph() {
    let Some(net) = Net::new() else { return };
    let up = net.up();
    for target in ["10.77.2.2", "2001:db8:2::2"] {
        net.meet(&up, target.contains(':'));
        // While something of the kernel's is looked at anew, a few are the kernel's.
        wait_for("the graph to forward them all", || {
            let before = up.number("forward.count");
            let (good, text) = net.ping(&format!("-c 10 {target}"));
            assert!(good && text.contains("ttl=63"), "{text}");
            up.number("forward.count") >= before + 20
        });
    }
}

#[test]
fn the_kernel_answers_for_what_cannot_be_forwarded() {
    let Some(net) = Net::new() else { return };
    for (space, device) in [("r", "rb"), ("b", "b0")] {
        net.ip(space, &format!("link set {device} mtu 1280"));
    }
    let up = net.up();
    for (target, expired, too_long) in
        [("10.77.2.2", "Time to live exceeded", "mtu = 1280"), ("2001:db8:2::2", "Time exceeded", "mtu=1280")]
    {
        net.meet(&up, target.contains(':'));
        let (_, text) = net.ping(&format!("-c 1 -t 1 {target}"));
        assert!(text.contains(expired), "{text}");
        // These the driver's program cannot know: they come to the graph, and go to the kernel from there. On a busy machine the
        // router may have lost its right to forward for a moment.
        // The handler lists only what has happened.
        let told = || up.read("forward.punts").lines().any(|line| line.starts_with("too-long"));
        let count = || if told() { up.line("forward.punts", "too-long") } else { 0 };
        let before = count();
        wait_for("one that is too long to come to the graph", || {
            for family in ["-4", "-6"] {
                net.ip("a", &format!("{family} route flush cache"));
            }
            let (_, text) = net.ping(&format!("-c 1 -M do -s 1400 {target}"));
            assert!(text.contains(too_long), "{text}");
            count() > before
        });
    }
    assert!(up.number("kernel.count") >= 2);
    assert_eq!(up.number("kernel.drops"), 0);
}

#[test]
fn routes_are_followed() {
    let Some(net) = Net::new() else { return };
    let up = net.up();
    for (family, prefix, host, via) in [
        ("", "10.78.0.0/24", "10.78.0.1", "10.77.2.2"),
        ("-6", "2001:db8:78::/48", "2001:db8:78::1", "2001:db8:2::2"),
    ] {
        net.ip("b", &format!("{family} addr add {host} dev lo"));
        let question = format!("forward.lookup {host}");
        assert_eq!(up.read(&question), "none");
        let (_, text) = net.ping(&format!("-c 1 {host}"));
        assert!(text.to_lowercase().contains("unreachable") || text.contains("No route"), "{text}");
        net.ip("r", &format!("{family} route add {prefix} via {via}"));
        wait_for("the new route", || up.read(&question).starts_with("rb "));
        let (good, text) = net.ping(&format!("-c 5 {host}"));
        assert!(good, "{text}");
        net.ip("r", &format!("{family} route del {prefix}"));
        wait_for("the route to go", || up.read(&question) == "none");
        assert!(!net.ping(&format!("-c 1 {host}")).0);
    }
}

#[test]
fn an_interface_that_goes_down_takes_its_routes_along() {
    let Some(net) = Net::new() else { return };
    let up = net.up();
    net.meet(&up, false);
    // The kernel deletes IPv4 routes then and does not say so.
    net.ip("r", "link set rb down");
    wait_for("the routes to go", || !up.read("forward.lookup 10.77.2.2").starts_with("rb "));
    net.ip("r", "link set rb up");
    net.meet(&up, false);
    assert!(net.ping("-c 3 10.77.2.2").0);
}

#[test]
fn the_kernel_forwards_on_when_the_router_is_killed() {
    let Some(net) = Net::new() else { return };
    let mut up = net.up();
    net.meet(&up, false);
    let done = Arc::new(AtomicBool::new(false));
    let ended = done.clone();
    let receiver = net.spawn("b", move || {
        let socket = open_port(|| UdpSocket::bind("10.77.2.2:4000"));
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20).expect("buffer");
        socket.set_read_timeout(Some(Duration::from_millis(200))).expect("timeout");
        let (mut received, mut last, mut bytes) = (0u32, 0, [0; 64]);
        loop {
            match socket.recv(&mut bytes) {
                Ok(n) if n >= 4 => {
                    received += 1;
                    last = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                }
                Ok(_) => {}
                Err(_) if ended.load(Ordering::Relaxed) => return (received, last),
                Err(_) => {}
            }
        }
    });
    // At most 2 a millisecond, half of them before the kill.
    let (killed, halfway) = std::sync::mpsc::channel();
    let sender = net.spawn("a", move || {
        let socket = UdpSocket::bind("10.77.1.2:0").expect("bind");
        for n in 1..=8000u32 {
            if n == 4000 {
                killed.send(()).expect("the test waits");
            }
            socket.send_to(&n.to_be_bytes(), "10.77.2.2:4000").expect("send");
            if n % 2 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    halfway.recv().expect("the sender");
    assert!(up.number("forward.count") >= 3000, "the graph carries the load");
    up.end(Signal::KILL);
    sender.join().expect("sender");
    done.store(true, Ordering::Relaxed);
    let (received, last) = receiver.join().expect("receiver");
    println!("killed under load: {} of 8000 packets lost", 8000 - received);
    assert_eq!(last, 8000, "the kernel forwards on");
    assert!(received >= 4000, "{received}");
    let links = net.ip("r", "link show");
    assert!(!links.contains("xdp") && !links.contains("punt"), "{links}");
}

#[test]
fn a_router_that_ends_leaves_the_interfaces_as_they_were() {
    let Some(net) = Net::new() else { return };
    let state = || {
        let features = ["ra", "rb"].map(|device| net.inside("r", "ethtool", &format!("-k {device}")));
        (features, net.ip("r", "link show").matches("xdp").count(), net.ip("r", "link show type tun"))
    };
    let before = state();
    let mut up = net.up();
    let (_, programs, punts) = state();
    assert!(programs >= 2 && punts.matches("punt").count() == 1, "{programs} {punts}");
    assert_eq!(up.end(Signal::TERM), Some(0));
    assert_eq!(state(), before);
    assert!(net.ping("-c 3 10.77.2.2").0, "the kernel forwards");
}

#[test]
fn bad_input_is_answered_with_one_line_and_what_to_do() {
    let Some(net) = Net::new() else { return };
    let refused = |args: &str, status: i32| {
        let output = net.causeway(args).stdin(Stdio::null()).output().expect("causeway");
        assert_eq!(output.status.code(), Some(status), "{args}");
        String::from_utf8_lossy(&output.stderr).trim().to_owned()
    };
    let one_line = |args: &str, wanted: &str| {
        let text = refused(args, 1);
        assert!(text.lines().count() == 1 && text.contains(wanted), "{args}: {text}");
    };
    one_line("up ra ra", "ra is named twice");
    one_line("up ra nosuch0", "nosuch0: no such interface");
    assert!(refused("up ra lo", 1).contains("lo"));
    {
        let _up = net.up();
        one_line("up ra --attach xdp", "a router of Causeway is attached already: '");
    }
    net.inside("r", "tc", "qdisc add dev rb root tbf rate 100mbit burst 100kb latency 50ms");
    for dry in ["", "--dry-run"] {
        let text = refused(&format!("up ra rb --attach xdp {dry}"), 3);
        assert!(text.contains("tc qdisc del dev rb root") && text.contains("--force"), "{text}");
    }
}

#[test]
fn what_was_found_before_the_start_is_said_once() {
    let Some(net) = Net::new() else { return };
    net.inside("r", "sysctl", "-qw net.ipv4.conf.ra.forwarding=0 net.ipv4.conf.ra.accept_redirects=0");
    let mut up = net.start_with("r", "up ra rb --attach xdp", Stdio::piped());
    let mut stderr = up.child.stderr.take().expect("a pipe");
    // Who looks all the time has looked when IPv6, which is not forbidden, is forwarded.
    net.meet(&up, true);
    assert_eq!(up.end(Signal::TERM), Some(0));
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("a text");
    assert_eq!(said.matches("[forwarding-off]").count(), 1, "{said}");
}
