//! Graphs that people put between networks besides routers and NAT: a firewall of a hundred rules, queues for eight classes
//! of service under two schedulers, and flows that are counted. Their traces are made, the same in every run.

use super::graph::Random;
use super::passage::Passage;
use super::report::Report;
use crate::Settings;
use anyhow::Result;
use causeway_packet::checksum::checksum;
use causeway_packet::wire::protocol;
use std::fmt::Write;
use std::sync::Arc;

/// Packets of each trace.
const PACKETS: usize = 65_536;
/// Rules of the firewall: half say what is kept out, half what is let in.
const RULES: u32 = 100;
/// Flows that are counted.
const FLOWS: u32 = 4_096;
/// Code points of the classes of service, the most urgent first; the last class has all others.
const CODE_POINTS: [u8; 7] = [46, 34, 26, 18, 10, 40, 48];
/// Lengths of IP packets in the mix of seven, four and one that is often used: frames of 64, 594 and 1518 bytes.
const LENGTHS: [u16; 12] = [46, 46, 46, 46, 46, 46, 46, 576, 576, 576, 576, 1_500];

/// Measures all of them.
pub fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    report.heading("Firewall, quality of service and flows on one core, source to sink");
    let queues = |scheduler: &str| {
        let mut text = format!("in -> MarkIPHeader -> c :: IPClassifier({}-); s :: {scheduler}; ", classes());
        for class in 0..=CODE_POINTS.len() {
            let _ = write!(text, "c[{class}] -> Queue(1024) -> [{class}] s; ");
        }
        // As much as the source brings in a turn, or most of it would be dropped at the queues.
        text + "s -> Unqueue(BURST 256) -> out"
    };
    let passages = [
        ("nothing", "in -> out".to_owned(), trace(|random| packet(random, 46))),
        ("firewall/100 rules", firewall(), trace(attempt)),
        ("qos/8 queues, strict priority", queues("PrioSched"), trace(marked)),
        ("qos/8 queues, DRR", queues("DRRSched"), trace(marked)),
        (
            "flows/4096 flows",
            "in -> MarkIPHeader -> AggregateIPFlows -> AggregateCounter -> out".to_owned(),
            trace(of_a_flow),
        ),
    ];
    for (name, graph, trace) in passages {
        let passage = Passage { name: name.to_owned(), graph, trace };
        report.add(passage.in_memory(settings)?);
        passage.beside_click(settings, report)?;
    }
    Ok(())
}

fn trace(packet: impl Fn(&mut Random) -> Vec<u8>) -> Arc<super::elements::Trace> {
    let mut random = Random(13);
    Arc::new((0..PACKETS).map(|_| packet(&mut random)).collect())
}

/// An IP packet with a UDP or TCP header of `len` bytes together, from 10.0.0.0/8 to 192.168.0.0/16.
fn packet(random: &mut Random, len: u16) -> Vec<u8> {
    let mut p = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol::UDP, 0, 0, 10, 0, 0, 0, 192, 168, 0, 0];
    p[2..4].copy_from_slice(&len.to_be_bytes());
    p[13..16].copy_from_slice(&random.next().to_be_bytes()[..3]);
    p[18..20].copy_from_slice(&random.next().to_be_bytes()[..2]);
    p.extend((1_024 + (random.next() >> 18) as u16).to_be_bytes());
    p.extend([0, 53]);
    p.extend((len - 20).to_be_bytes());
    p.resize(usize::from(len), 0);
    // A TCP header without options, for whom it is changed into one.
    p[32] = 0x50;
    fill_checksum(&mut p);
    p
}

fn fill_checksum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let sum = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// What comes from half of the networks is kept out, but none of it comes; then each rule lets one port of one network in.
fn firewall() -> String {
    let mut rules = String::new();
    for n in 0..RULES / 2 {
        let _ = write!(rules, "deny src net 172.16.{n}.0/24, ");
    }
    for n in 0..RULES / 2 - 1 {
        let _ = write!(rules, "allow udp && dst net 192.168.{n}.0/24 && dst port {}, ", 1_000 + n);
    }
    format!("in -> MarkIPHeader -> IPFilter({rules}deny all) -> out")
}

/// A packet that one of the firewall's rules lets in.
fn attempt(random: &mut Random) -> Vec<u8> {
    let mut p = packet(random, 46);
    let n = random.next() % (RULES / 2 - 1);
    p[18] = n as u8;
    p[22..24].copy_from_slice(&(1_000 + n as u16).to_be_bytes());
    fill_checksum(&mut p);
    p
}

fn classes() -> String {
    CODE_POINTS.iter().fold(String::new(), |text, point| format!("{text}ip dscp {point}, "))
}

/// A packet of one of the classes, of one of the lengths.
fn marked(random: &mut Random) -> Vec<u8> {
    let len = LENGTHS[random.next() as usize % LENGTHS.len()];
    let mut p = packet(random, len);
    p[1] = CODE_POINTS.get(random.next() as usize % (CODE_POINTS.len() + 1)).map_or(0, |point| point << 2);
    fill_checksum(&mut p);
    p
}

/// A packet of one of the flows, half of which are TCP connections.
fn of_a_flow(random: &mut Random) -> Vec<u8> {
    let flow = random.next() % FLOWS;
    let mut p = packet(random, 46);
    p[9] = if flow.is_multiple_of(2) { protocol::TCP } else { protocol::UDP };
    p[13..16].copy_from_slice(&[0, (flow >> 8) as u8, flow as u8]);
    p[18..20].copy_from_slice(&[1, 1]);
    p[20..22].copy_from_slice(&(1_024 + flow as u16).to_be_bytes());
    fill_checksum(&mut p);
    p
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::time::Duration;

    #[test]
    fn all_of_them_let_their_packets_through() {
        let settings = Settings {
            parts: Vec::new(),
            round: Duration::from_millis(1),
            rounds: 1,
            processor: 0,
            click: None,
            output: PathBuf::new(),
        };
        let mut report = Report::new(&settings, Box::new(|_| ()));
        run(&settings, &mut report).unwrap();
    }
}
