//! This program's `run` as a device: a plain IPv4 router between the ports of a bed, or a configuration of one's own.

use super::{Bed, Side, alone};
use crate::process::set_fifo;
use crate::tester::Alone;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// What is run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Graph {
    /// A configuration, for ports r0, r1 and so on, instead of the plain router.
    pub configuration: Option<PathBuf>,
    /// More arguments of the plain router's FromDevice: of r0, r1 and so on, and again from the first.
    pub reception: Vec<String>,
    /// Routes of a table that packets are looked up in first, from its first route to its last, for nothing: so a packet can
    /// cost as much as it did on slower machines.
    pub detour_routes: u32,
    /// The class of the routing table, and behind a blank its arguments beside the routes; `StaticIPLookup` without it.
    pub lookup: Option<String>,
    /// Into how many routes the network behind each port is divided: a power of two; one without it.
    pub routes: Option<u32>,
    /// Instead of a router: what comes by a port of a pair, r0 and r1, r2 and r3, goes out by the other, unseen.
    pub transfer: bool,
    /// The plain router in two threads on one processor, the first of the device's: one receives into a backlog, the other
    /// forwards from it, and has the lower real-time priority. So did interrupts of OSR §3.3 stand above forwarding.
    pub two_threads: bool,
    /// The plain router with a thread of each port, which does for its packets all but to send them, and sends those of the
    /// others: of r0, r1 and so on, on which of the device's processors, counted from 0. So AFF §2.4 bound cards to processors.
    pub own_threads: Vec<usize>,
    /// How ports are opened: METHOD of FromDevice and ToDevice; `AFXDP` without it.
    pub method: Option<String>,
    /// Instead of a router: it only receives, or only transmits, by all ports but the last. The counts of its elements got0, got1
    /// and so on, or sent0 and so on, say how much; a configuration of one's own has them too.
    pub alone: Option<Alone>,
    /// More arguments of the program.
    pub arguments: Vec<String>,
}

/// The class of the routing table where nothing else is asked for.
const LOOKUP: &str = "StaticIPLookup";
/// How ports are opened where nothing else is asked for.
const METHOD: &str = "AFXDP";
/// What comes before a lookup.
const CHECK: &str = "Classifier(12/0800) -> Strip(14) -> CheckIPHeader";
/// Packets between reception and forwarding where these are two threads (OSR §3.3).
const BACKLOG: u32 = 300;
/// Real-time priorities of the two threads, reception first.
const PRIORITIES: [u32; 2] = [20, 10];
/// Where the detour's routes lead to: the first hosts of the block that providers share (RFC 6598).
const DETOUR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);

impl Graph {
    /// What the `at`-th device of a bed runs if no configuration is given.
    ///
    /// # Errors
    /// If networks cannot be divided as is asked for, or an interface is gone.
    pub fn text(&self, bed: &Bed, at: usize) -> Result<String> {
        if let Some(alone) = self.alone {
            return alone::text(self, alone, bed);
        }
        if !self.transfer {
            return self.router(bed, at);
        }
        let method = self.method();
        let line = |port: usize| {
            let to = port ^ 1;
            format!(
                "in{port} :: FromDevice(r{port}, METHOD {method}) -> Queue(1000) -> ToDevice(r{to}, METHOD {method});\n"
            )
        };
        Ok((0..bed.device_ports()).map(line).collect())
    }

    /// The plain router of the `at`-th device of a bed: check, look up, decrement, encapsulate, queue.
    ///
    /// # Errors
    /// If networks cannot be divided as is asked for, or an interface is gone.
    fn router(&self, bed: &Bed, at: usize) -> Result<String> {
        let lookup = self.lookup.as_deref().unwrap_or(LOOKUP);
        let (class, own) = lookup.split_once(' ').map_or((lookup, None), |(class, own)| (class, Some(own)));
        let sides = bed.sides(at);
        let mut routes = Vec::new();
        for (i, side) in sides.iter().enumerate() {
            routes.extend(
                divided(&side.networks[0], self.routes.unwrap_or(1))?.map(|net| format!("{net} {i}")),
            );
        }
        routes.extend(own.map(str::to_owned));
        if !self.own_threads.is_empty() {
            return self.threaded(bed, &sides, &format!("{class}({})", routes.join(", ")));
        }
        let mut text = format!("route :: {class}({});\n", routes.join(", "));
        let table = if self.detour_routes == 0 { "route" } else { "detour" };
        // Writing to a string cannot fail.
        if self.detour_routes > 0 {
            let _ = writeln!(text, "detour :: {} -> route;", self.detour());
        }
        let _ = writeln!(text, "check :: {CHECK} -> {table};");
        if self.two_threads {
            let threads = |i: usize| format!("in{i} 0, out{i} 1");
            let threads: Vec<String> = (0..sides.len()).map(threads).collect();
            let _ = writeln!(text, "backlog :: Queue({BACKLOG}) -> forward :: Unqueue -> check;");
            let _ = writeln!(text, "StaticThreadSched(forward 1, {});", threads.join(", "));
        }
        let entry = if self.two_threads { "backlog" } else { "check" };
        for (i, side) in sides.iter().enumerate() {
            let method = format!("METHOD {}", self.method());
            let from = format!("{method}{}", self.reception_at(i));
            port(&mut text, bed, (i, side), [&from, &method], entry)?;
        }
        Ok(text)
    }

    /// The table of the detour.
    fn detour(&self) -> String {
        let hosts = (0..self.detour_routes).map(|n| Ipv4Addr::from(u32::from(DETOUR) + n));
        let hosts: Vec<String> = hosts.map(|host| format!("{host}/32 0")).collect();
        format!("LinearIPLookup({}, 0.0.0.0/0 0)", hosts.join(", "))
    }

    /// The plain router whose ports have threads of their own: each with its own way to the queues of all, which are of the
    /// thread that sends. A packet crosses to that by a ring, as one of AFF did by a card's under a lock (LLTX, §2.1).
    fn threaded(&self, bed: &Bed, sides: &[Side], route: &str) -> Result<String> {
        ensure!(
            !self.two_threads && self.own_threads.len() == sides.len(),
            "own_threads has a processor for each of the {} ports, and is not beside two_threads",
            sides.len()
        );
        let (mut text, mut ways, mut threads) = (String::new(), String::new(), Vec::new());
        for (i, side) in sides.iter().enumerate() {
            let (method, reception) = (self.method(), self.reception_at(i));
            let detour =
                if self.detour_routes > 0 { format!(" -> {}", self.detour()) } else { String::new() };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "queue{i} :: Queue(1000) -> out{i} :: ToDevice(r{i}, METHOD {method});");
            let _ = writeln!(
                text,
                "in{i} :: FromDevice(r{i}, METHOD {method}{reception}) -> {CHECK}{detour} -> route{i} :: {route};"
            );
            let (own, peer) = (bed.mac(&side.own)?, bed.mac(&side.peer)?);
            for from in 0..sides.len() {
                let _ = writeln!(
                    ways,
                    "route{from}[{i}] -> DecIPTTL -> EtherEncap(0x0800, {own}, {peer}) -> queue{i};"
                );
            }
            threads.push(format!("in{i} {i}, queue{i} {i}, out{i} {i}"));
        }
        Ok(format!("{text}{ways}StaticThreadSched({});\n", threads.join(", ")))
    }

    /// The processor of each port's thread, if it has one of its own, of the device's.
    pub fn port_processors(&self, processors: &[usize]) -> Vec<usize> {
        let of = |at: &usize| processors.get(at % processors.len().max(1)).copied().unwrap_or(0);
        self.own_threads.iter().map(of).collect()
    }

    /// How ports are opened.
    pub(super) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or(METHOD)
    }

    /// More arguments of the FromDevice of a port, with a comma before them.
    pub(super) fn reception_at(&self, port: usize) -> String {
        self.reception.iter().cycle().nth(port).map_or(String::new(), |more| format!(", {more}"))
    }

    /// What the program is started with, besides: by `processors`, where it is to run.
    pub fn more_arguments(&self, processors: &[usize]) -> Vec<String> {
        let mut all = self.arguments.clone();
        if !self.own_threads.is_empty() {
            let own = self.port_processors(processors);
            // One that waits awake would leave its processor no time.
            all.extend(["--spin", "0", "--threads"].map(str::to_owned));
            all.extend([own.len().to_string(), "--processors".to_owned()]);
            all.push(own.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
        }
        if self.two_threads {
            // Both on one, so that reception can take the processor from forwarding.
            let processor = processors.first().copied().unwrap_or(0);
            // One that waits awake would never leave the other the processor.
            all.extend(["--spin", "0", "--threads", "2", "--processors"].map(str::to_owned));
            all.push(format!("{processor},{processor}"));
        }
        all
    }

    /// Sets the priorities of the two threads of the process that runs it.
    ///
    /// # Errors
    /// If there are no such threads, or they may not have them.
    pub fn prioritise(&self, process: u32) -> Result<()> {
        if !self.two_threads {
            return Ok(());
        }
        let threads = std::fs::read_dir(format!("/proc/{process}/task"))?.collect::<Result<Vec<_>, _>>()?;
        for (worker, priority) in PRIORITIES.iter().enumerate() {
            let name = format!("worker-{worker}");
            let is_it = |thread: &&std::fs::DirEntry| {
                std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
            };
            let thread =
                threads.iter().find(is_it).with_context(|| format!("the router has no thread {name}"))?;
            let thread = thread.file_name();
            set_fifo(thread.to_string_lossy().parse()?, *priority)?;
        }
        Ok(())
    }
}

/// The same router as [`Graph::text`] writes, for Kohler's Click, over packet sockets.
///
/// # Errors
/// If an interface is gone.
pub fn click_router(bed: &Bed, at: usize) -> Result<String> {
    let sides = bed.sides(at);
    let routes: Vec<String> =
        sides.iter().enumerate().map(|(i, side)| format!("{} {i}", side.networks[0])).collect();
    let mut text = format!("route :: {LOOKUP}({});\ncheck :: {CHECK} -> route;\n", routes.join(", "));
    for side in sides.iter().enumerate() {
        port(&mut text, bed, side, ["METHOD LINUX, SNIFFER false", "METHOD LINUX"], "check")?;
    }
    Ok(text)
}

/// What the router does at a port, whose packets enter at `entry`.
fn port(
    text: &mut String,
    bed: &Bed,
    (i, side): (usize, &Side),
    [from, to]: [&str; 2],
    entry: &str,
) -> Result<()> {
    let (own, peer) = (bed.mac(&side.own)?, bed.mac(&side.peer)?);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "in{i} :: FromDevice(r{i}, {from}) -> {entry};\n\
         route[{i}] -> DecIPTTL -> EtherEncap(0x0800, {own}, {peer}) -> Queue(1000) -> out{i} :: ToDevice(r{i}, {to});\n"
    );
    Ok(())
}

/// The equal parts of a network, such as `198.18.0.0/18`.
fn divided(network: &str, parts: u32) -> Result<impl Iterator<Item = String>> {
    let (address, length) = network.split_once('/').context("a network has a length")?;
    let (address, length): (Ipv4Addr, u32) = (address.parse()?, length.parse()?);
    let longer = length + parts.trailing_zeros();
    ensure!(
        parts.is_power_of_two() && longer <= 32,
        "routes is {parts}: it is a power of two, at most {} of a network of {length} bits",
        1_u64 << (32 - length)
    );
    let step = 1_u64 << (32 - longer);
    let part = move |n: u32| Ipv4Addr::from(u32::from(address) + (u64::from(n) * step) as u32);
    Ok((0..parts).map(move |n| format!("{}/{longer}", part(n))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_share_the_first_processor() {
        let graph = Graph { two_threads: true, arguments: vec!["--budget".to_owned()], ..Graph::default() };
        let expected = ["--budget", "--spin", "0", "--threads", "2", "--processors", "3,3"];
        assert_eq!(graph.more_arguments(&[3, 4]), expected);
        assert_eq!(Graph::default().more_arguments(&[3]), [""; 0]);
    }

    #[test]
    fn threads_of_ports_are_on_the_processors_that_are_said() {
        let graph = Graph { own_threads: vec![0, 2, 1], ..Graph::default() };
        let expected = ["--spin", "0", "--threads", "3", "--processors", "4,9,5"];
        assert_eq!(graph.more_arguments(&[4, 5, 9]), expected);
        assert_eq!(graph.port_processors(&[7]), [7, 7, 7], "there are fewer");
        assert_eq!(graph.port_processors(&[]), [0, 0, 0]);
    }

    #[test]
    fn networks_are_divided_into_powers_of_two() {
        let parts = |network: &str, n: u32| divided(network, n).map(Iterator::collect::<Vec<_>>);
        assert_eq!(parts("198.18.0.0/18", 1).expect("whole"), ["198.18.0.0/18"]);
        assert_eq!(
            parts("198.18.64.0/18", 4).expect("quarters"),
            ["198.18.64.0/20", "198.18.80.0/20", "198.18.96.0/20", "198.18.112.0/20"]
        );
        let hosts = parts("198.18.64.0/18", 16_384).expect("hosts");
        assert_eq!((hosts.len(), hosts[16_383].as_str()), (16_384, "198.18.127.255/32"));
        for wrong in [0, 3, 32_768] {
            let error = parts("198.18.64.0/18", wrong).expect_err("refused").to_string();
            assert!(
                error.contains(&format!("routes is {wrong}")) && error.contains("at most 16384"),
                "{error}"
            );
        }
    }
}
