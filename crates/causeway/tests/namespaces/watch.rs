//! Watching packets of a router beside the kernel.

use crate::net::{CAUSEWAY, Net, Router};
use std::process::{Command, Output};

/// `causeway ARGS` of a running router.
fn causeway(router: &Router, args: &[&str]) -> Output {
    let socket = router.socket.display().to_string();
    Command::new(CAUSEWAY).args(args).args(["--socket", &socket]).output().expect("causeway")
}

#[test]
fn packets_that_go_through_and_packets_left_to_the_kernel_are_followed() {
    let Some(net) = Net::new() else { return };
    let router = net.up();
    assert!(net.ping("-c 3 10.77.2.2").0, "neighbours are known");
    std::thread::scope(|scope| {
        let follow = |filter| {
            let output = causeway(&router, &["trace", "--filter", filter]);
            String::from_utf8(output.stdout).expect("text")
        };
        let passing = scope.spawn(move || follow("icmp and dst 10.77.2.2"));
        let _ = net.ping("-c 20 -i 0.1 10.77.2.2");
        let way = passing.join().expect("a trace");
        let lines: Vec<&str> = way.lines().collect();
        assert!(lines[0].contains("in0 [0] -> [0] forward  ") && lines[0].contains("TTL 64"), "{way}");
        assert!(lines[1].contains("forward [1] -> [0] out1  ") && lines[1].contains("TTL 63"), "{way}");
        assert!(lines[2].ends_with("taken by out1 :: ToDevice"), "{way}");

        let punted = scope.spawn(move || follow("icmp and dst 10.99.0.1"));
        let _ = net.ping("-c 20 -i 0.1 10.99.0.1");
        let way = punted.join().expect("a trace");
        assert!(way.lines().last().is_some_and(|l| l.ends_with("taken by kernel :: ToKernel")), "{way}");
    });
    // Nobody watches any more, and nothing was harmed.
    assert!(net.ping("-c 3 10.77.2.2").0);
}
