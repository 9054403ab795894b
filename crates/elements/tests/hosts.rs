//! An interface of the host's with a queue for each copy of the graph.

use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

const WORKERS: usize = 3;

/// Removes the namespace.
struct Remove(String);

impl Drop for Remove {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// Runs `test` in a namespace of its own; skips with a message where that is not allowed.
fn inside(test: impl FnOnce() + Send) {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root to make network namespaces");
    }
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("elem-hosts-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
    if !Command::new("ip").args(["netns", "add", &name]).status().is_ok_and(|s| s.success()) {
        return eprintln!("skipped: needs `ip netns` (iproute2) and the right to use it");
    }
    let remove = Remove(name);
    let namespace = File::open(format!("/run/netns/{}", remove.0)).unwrap();
    std::thread::scope(|scope| {
        let inside = scope.spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            test();
        });
        inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn each_copy_of_the_graph_has_a_queue_of_the_interface() {
    inside(|| {
        if !std::path::Path::new("/dev/net/tun").exists() {
            return eprintln!("skipped: needs /dev/net/tun");
        }
        // What the host sends comes back to it.
        let text = "FromHost(host0, 10.9.0.1/24, TYPE tun) -> CheckIPHeader(VERBOSE false) -> udp :: IPClassifier(udp, -)
                    -> c :: Counter -> to :: ToHost(host0, TYPE tun);
                    udp[1] -> Discard;";
        let library = causeway_elements::library();
        let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
        let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
        let options = Options { workers: WORKERS, replicate: true, ..Options::default() };
        let router = Router::start(library, plan, options).unwrap_or_else(|e| panic!("{e}"));
        router.resume();
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        for port in 1_000..1_120u16 {
            socket.send_to(&[7], ("10.9.0.77", port)).unwrap();
        }
        let start = Instant::now();
        let by_worker = loop {
            let of = |name: &str| {
                let mut counts = [0; WORKERS];
                let lines = router.counters().filter(|(l, _)| l.element == name && l.name == "count");
                lines.for_each(|(line, n)| counts[line.worker] += n);
                counts
            };
            // In this order: what has left came before.
            let (went, came) = (of("to"), of("c"));
            if went.iter().sum::<u64>() >= 120 {
                assert_eq!(came, went, "what comes by a queue of a copy leaves by that copy");
                break came;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{came:?} {went:?}");
        };
        assert!(by_worker.iter().all(|n| *n > 0), "{by_worker:?}");
        let ports = router.port_counters();
        let sent: Vec<u64> =
            ports.iter().filter(|(l, _)| l.name == "port.tx_packets").map(|(_, n)| *n).collect();
        assert_eq!(sent, by_worker);
    });
}

#[test]
fn the_interface_gets_what_the_configuration_says() {
    inside(|| {
        if !std::path::Path::new("/dev/net/tun").exists() {
            return eprintln!("skipped: needs /dev/net/tun");
        }
        let library = causeway_elements::library();
        let start = |config: &str| {
            let text = format!("f :: FromHost(host1, {config}) -> Discard;");
            let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
            let plan = Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())));
            Router::start(library.clone(), plan, Options::default()).map_err(|e| e.to_string())
        };
        let ip = |args: &str| {
            let out = Command::new("ip").args(args.split(' ')).output().unwrap();
            String::from_utf8(out.stdout).unwrap()
        };
        let config = "10.9.1.1/24, GATEWAY 10.9.1.7, ETHER 2:0:0:0:0:9, MTU 1400";
        let router = start(config).unwrap_or_else(|e| panic!("{e}"));
        let link = ip("link show host1");
        assert!(link.contains("mtu 1400") && link.contains("02:00:00:00:00:09"), "{link}");
        assert!(ip("route show default").starts_with("default via 10.9.1.7 dev host1"));
        assert_eq!(router.read("f", "dev_name", "").unwrap(), "host1");
        assert_eq!(router.close(), Ok(()));
        assert_eq!(ip("route show default"), "", "it goes with the interface");
        for (wrong, why) in [
            ("10.9.1.1/24, GATEWAY 10.9.2.7", "bad GATEWAY"),
            ("ETHER 2:0:0:0:0:9, TYPE tun", "bare packets have no Ethernet addresses"),
            ("TYPE tin", "TYPE: 'tin' is not 'tap' or 'tun'"),
        ] {
            let error = start(wrong).err().unwrap();
            assert!(error.contains(why), "{error}");
        }
    });
}
