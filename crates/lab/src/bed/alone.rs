//! Devices that receive or transmit alone, as *Click vs. Linux* measures both before any forwarding (CvL §IV.B, IV.C): what they
//! run, and how much they say they did.
//!
//! It is by all ports of a bed but the last, behind which the hosts are that the frames are for.

use super::{Bed, Graph};
use crate::tester::Alone;
use anyhow::{Context, Result, ensure};
use causeway_engine::read_line;
use std::fmt::Write;
use std::process::Command;

/// Length of the frames that are transmitted, without their checksum: the shortest.
const LENGTH: u32 = 60;
/// What a line says when the kernel counts.
pub const READY: &str = "ready";

/// How many ports there are that receive or transmit.
pub fn ports(bed: &Bed) -> usize {
    bed.device_ports().saturating_sub(1).max(1)
}

/// The graph of a device that does that alone: reception looks at the Ethernet type, counts and drops, as udpcount does, and
/// transmission has a source of UDP frames at each port, as udpgen does.
///
/// # Errors
/// If an interface is gone.
pub fn text(graph: &Graph, alone: Alone, bed: &Bed) -> Result<String> {
    let (mut text, method) = (String::new(), graph.method());
    for (i, side) in bed.sides(0).iter().take(ports(bed)).enumerate() {
        // Writing to a string cannot fail.
        let _ = match alone {
            Alone::Receive => {
                let reception = graph.reception_at(i);
                writeln!(
                    text,
                    "in{i} :: FromDevice(r{i}, METHOD {method}{reception}) -> Classifier(12/0800) -> {} :: Counter -> Discard;",
                    name(alone, i)
                )
            }
            Alone::Transmit => {
                let (own, peer) = (bed.mac(&side.own)?, bed.mac(&side.peer)?);
                writeln!(
                    text,
                    "FastUDPSource(0, -1, {LENGTH}, {own}, 198.19.{i}.1, 9, {peer}, 198.19.{i}.2, 9) \
                     -> {} :: ToDevice(r{i}, METHOD {method});",
                    name(alone, i)
                )
            }
        };
    }
    Ok(text)
}

/// The element that counts at a port.
fn name(alone: Alone, port: usize) -> String {
    match alone {
        Alone::Receive => format!("got{port}"),
        Alone::Transmit => format!("sent{port}"),
    }
}

/// What such a graph has counted by port, out of the router's `counters`.
///
/// # Errors
/// If they are of another version, or it is another graph.
pub fn counts(alone: Alone, text: &str, ports: usize) -> Result<Vec<u64>> {
    let mut all = vec![None; ports];
    for line in text.lines() {
        let (element, counter, value) =
            read_line(line).context("the router's counters are of another version")?;
        let port = (0..ports).find(|&port| counter == "count" && name(alone, port) == element);
        if let Some(port) = port {
            // Workers count apart.
            *all[port].get_or_insert(0) += value;
        }
    }
    all.into_iter().collect::<Option<Vec<u64>>>().context("the router does not count what it does alone")
}

/// A script that has the kernel count and drop what comes by so many ports, after a look into the frame or without one, until it
/// is terminated.
pub fn kernel(ports: usize, looks: bool) -> String {
    // The Ethernet type, read out of the frame: that of the packet's metadata is known already.
    let look = if looks { "@ll,96,16 0x0800 " } else { "" };
    let port = |n: usize| {
        format!(
            "add counter netdev alone got{n}\n\
             add chain netdev alone r{n} {{ type filter hook ingress device r{n} priority 0; }}\n\
             add rule netdev alone r{n} {look}counter name got{n} drop\n"
        )
    };
    let rules: String = (0..ports).map(port).collect();
    format!(
        "trap 'nft delete table netdev alone; exit' TERM\n\
         nft -f - <<'end' || exit 1\nadd table netdev alone\n{rules}end\necho {READY}\n\
         while :; do sleep 0.1; done"
    )
}

/// What the kernel has counted by port in a network namespace.
///
/// # Errors
/// If it does not say.
pub fn kernel_counts(place: &str, ports: usize) -> Result<Vec<u64>> {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", place, "nft", "list", "counters", "table", "netdev", "alone"]);
    let out = command.output().context("cannot run nft")?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr).trim());
    kernel_lines(&String::from_utf8_lossy(&out.stdout), ports)
        .context("nft does not say what the kernel counted")
}

/// `counter got0 {`, and in the next line `packets 3 bytes 180`.
fn kernel_lines(text: &str, ports: usize) -> Option<Vec<u64>> {
    let of = |port: usize| {
        let rest = text.split_once(&format!("counter got{port} {{"))?.1;
        let mut words = rest.split_whitespace().skip_while(|word| *word != "packets");
        words.nth(1)?.parse().ok()
    };
    (0..ports).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_ports_that_there_are() {
        let text =
            "0\tgot0\tcount\t3\n0\tin0\tcount\t9\n1\tgot0\tcount\t4\n0\tgot1\tcount\t5\n0\tgot1\tbytes\t8\n";
        assert_eq!(counts(Alone::Receive, text, 2).expect("counts"), [7, 5]);
        assert!(counts(Alone::Receive, text, 3).is_err() && counts(Alone::Transmit, text, 1).is_err());
        assert!(counts(Alone::Receive, "0\tgot0\tcount\tmany\n", 1).is_err());
    }

    #[test]
    fn the_kernels_counts_are_found_by_name() {
        let text = "table netdev alone {\n\tcounter got1 {\n\t\tpackets 12 bytes 720\n\t}\n\n\
                    \tcounter got0 {\n\t\tpackets 7 bytes 420\n\t}\n}\n";
        assert_eq!(kernel_lines(text, 2), Some(vec![7, 12]));
        assert_eq!((kernel_lines(text, 3), kernel_lines("counter got0 {\n}", 1)), (None, None));
    }
}
