//! How fast iperf3 sends between the hosts, by the kernel alone and with the router beside it.

use crate::net::{Net, Router, wait_for};
use serde_json::Value;
use std::fmt::Write;
use std::process::{Command, Stdio};

/// Seconds of a transfer, and how often each is made.
const SECONDS: u32 = 2;
const ROUNDS: usize = 3;

/// What is sent.
#[derive(Clone, Copy)]
pub struct Load {
    name: &'static str,
    target: &'static str,
    options: &'static str,
}

pub const LOADS: [Load; 6] = [
    Load { name: "TCP, IPv4, 1 flow", target: "10.77.2.2", options: "" },
    Load { name: "TCP, IPv4, 16 flows", target: "10.77.2.2", options: "-P 16" },
    Load { name: "TCP, IPv6, 1 flow", target: "2001:db8:2::2", options: "" },
    Load { name: "TCP, IPv6, 16 flows", target: "2001:db8:2::2", options: "-P 16" },
    Load { name: "UDP of 1 400 octets, IPv4", target: "10.77.2.2", options: "-u -b 0 -l 1400" },
    Load { name: "UDP of 1 400 octets, IPv6", target: "2001:db8:2::2", options: "-u -b 0 -l 1400" },
];

/// What came of one transfer.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    gbit_s: f64,
    retransmits: u64,
}

impl Load {
    fn run(self, net: &Net) -> Outcome {
        let mut server = Command::new("ip");
        server.args(["netns", "exec", &net.name("b"), "iperf3", "-s", "-1"]).stdout(Stdio::null());
        let mut server = server.spawn().expect("iperf3");
        wait_for("iperf3 to listen", || net.inside("b", "ss", "-Hltn sport = 5201").contains("5201"));
        let args = format!("-J -t {SECONDS} -c {} {}", self.target, self.options);
        let text = net.inside("a", "iperf3", &args);
        server.wait().expect("iperf3");
        let end = serde_json::from_str::<Value>(&text).expect("JSON")["end"].take();
        let of = |sum: &str, value: &str| end[sum][value].as_f64();
        let bits = match self.options.starts_with("-u") {
            // Of UDP it tells what was sent and which share was lost.
            true => of("sum", "bits_per_second")
                .zip(of("sum", "lost_percent"))
                .map(|(b, l)| b * (1.0 - l / 100.0)),
            false => of("sum_received", "bits_per_second"),
        };
        let retransmits = of("sum_sent", "retransmits").unwrap_or(0.0) as u64;
        Outcome { gbit_s: bits.expect("a rate") / 1e9, retransmits }
    }
}

/// The value in the middle, or the higher one of two; sorts them.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A table of all loads, by the kernel alone and by `causeway ARGS` beside it, in turn.
pub fn table(net: &Net, args: &str) -> String {
    let mut text = format!(
        "| | kernel, Gbit/s | `causeway {args}`, Gbit/s | ratio | retransmits, kernel | with causeway |\n\
         |---|---|---|---|---|---|\n"
    );
    let mut outcomes = LOADS.map(|load| (load, Vec::new(), Vec::new()));
    for _ in 0..ROUNDS {
        for (load, alone, beside) in &mut outcomes {
            alone.push(load.run(net));
            let up: Router = net.start("r", args);
            // It is to carry the load from the beginning.
            std::thread::sleep(std::time::Duration::from_secs(1));
            beside.push(load.run(net));
            drop(up);
        }
    }
    for (load, alone, beside) in outcomes {
        let rate = |of: &[Outcome]| median(&mut of.iter().map(|o| o.gbit_s).collect::<Vec<_>>());
        let again = |of: &[Outcome]| median(&mut of.iter().map(|o| o.retransmits as f64).collect::<Vec<_>>());
        let (kernel, causeway) = (rate(&alone), rate(&beside));
        let _ = writeln!(
            text,
            "| {} | {kernel:.2} | {causeway:.2} | {:.2} | {} | {} |",
            load.name,
            causeway / kernel,
            again(&alone),
            again(&beside)
        );
    }
    text
}
