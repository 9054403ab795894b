//! The standard IP router between a prepared trace and a sink, on one worker: what benchmarks in memory run.
//!
//! A frame is 64 bytes on the wire, 60 in memory. The source copies each from a prepared trace into a fresh packet,
//! so that the first touch of a packet is in the measurement, as it would be with a device.

use super::elements::{SINK, SOURCE, TRACE, Trace};
use anyhow::{Result, anyhow, bail};
use causeway_elements::standard_router::{Interface, configuration};
use causeway_engine::{Library, Options, Plan, Router};
use causeway_lang::NoLibraries;
use causeway_packet::checksum::checksum;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::Duration;

/// Neighbours behind the second interface that routes lead to.
const GATEWAYS: u32 = 8;

/// Pseudo-random numbers, the same in every run.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }
}

/// A route: prefix, length, gateway number.
pub type Route = (u32, u8, u32);

/// `n` different routes outside the router's own networks; with two, one half of the addresses each.
pub fn routes_to(n: usize) -> Vec<Route> {
    if n == 2 {
        return vec![(0, 1, 0), (1 << 31, 1, 1)];
    }
    let mut random = Random(7);
    let mut seen = std::collections::HashSet::new();
    let mut routes = Vec::with_capacity(n);
    while routes.len() < n {
        // Lengths as on the Internet: two thirds /24, most of the rest /20 to /23, a few shorter.
        let len = match random.next() % 100 {
            0..64 => 24,
            64..75 => 23,
            75..86 => 22,
            86..91 => 21,
            91..96 => 20,
            96..99 => 19,
            _ => 16,
        };
        let prefix = random.next() & !(u32::MAX >> len);
        let first = prefix >> 24;
        if (11..=223).contains(&first) && first != 127 && seen.insert((prefix, len)) {
            routes.push((prefix, len, random.next() % GATEWAYS));
        }
    }
    routes
}

/// A random address that one of the routes covers, of those that a router forwards to.
pub fn address_in(routes: &[Route], random: &mut Random) -> u32 {
    let (prefix, len, _) = routes[random.next() as usize % routes.len()];
    let to = prefix | (random.next() & (u32::MAX >> len));
    // Half of all addresses is more than a router forwards to: keep clear of what is nobody's.
    let ours = (11..=223).contains(&(to >> 24)) && to >> 24 != 127;
    if ours { to } else { (to & 0x80ff_ffff) | 0x1000_0000 }
}

/// A UDP frame between two addresses, to the router's first interface.
pub fn frame(from: u32, to: u32) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 9, 9, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0];
    f.extend(from.to_be_bytes());
    f.extend(to.to_be_bytes());
    let sum = checksum(&f[14..34]);
    f[24..26].copy_from_slice(&sum.to_be_bytes());
    f.resize(60, 0);
    f
}

/// The router with `routes` in a `table`: its class, and behind a blank its arguments besides the routes.
pub fn plan(table: &str, routes: &[Route]) -> Result<Plan> {
    let interface = |n: u8, input: &str| Interface {
        address: [10, n, 0, 1].into(),
        prefix_len: 16,
        mac: format!("2:0:0:0:{n}:1"),
        input: input.to_owned(),
        output: format!("sink{n} :: PullSink"),
    };
    let line = |&(prefix, len, gateway): &Route| {
        format!("{}/{len} 10.1.0.{} 1", std::net::Ipv4Addr::from(prefix), gateway + 2)
    };
    let routes: Vec<String> = routes.iter().map(line).collect();
    let text = configuration(&[interface(0, "source :: TraceSource"), interface(1, "Idle")], table, &routes);
    let compiled = causeway_lang::compile("bench", text.as_bytes(), &NoLibraries, &library(), &[])
        .map_err(|f| anyhow!("the benchmark's router: {}", f.diagnostics.messages().join("; ")))?;
    Ok(Plan::new(&compiled))
}

fn library() -> Library {
    Library::new(causeway_elements::library().iter().chain([&SOURCE, &SINK]))
}

/// Processor time that this process has had, in nanoseconds.
pub fn process_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A router of [`plan`] in memory.
pub struct Running {
    router: Router,
    name: String,
}

impl Running {
    /// Starts a router, paused, with its neighbours resolved. `name` is for error messages.
    pub fn start(plan: Plan, trace: &Arc<Trace>, processor: usize, name: &str) -> Result<Running> {
        let options = Options { processors: vec![processor], seed: Some(1), ..Options::default() };
        if let Ok(mut values) = options.persistent.lock() {
            values.insert(TRACE.to_owned(), trace.clone());
        }
        let router = Router::start(library(), plan, options).map_err(|e| anyhow!("{name}: {e}"))?;
        for host in 2..2 + GATEWAYS {
            router
                .write("arpq1", "insert", &format!("10.1.0.{host} 2:0:0:0:1:{host}"))
                .map_err(|e| anyhow!("{name}: {e}"))?;
        }
        Ok(Running { router, name: name.to_owned() })
    }

    /// Lets packets flow.
    pub fn resume(&self) {
        self.router.resume();
    }

    /// Stops the flow.
    pub fn pause(&self) {
        self.router.pause();
    }

    /// A handler's number.
    pub fn number(&self, element: &str, handler: &str) -> Result<u64> {
        let text = self.router.read(element, handler, "").map_err(|e| anyhow!("{}: {e}", self.name))?;
        text.parse().map_err(|_| anyhow!("{}: {element}.{handler} is '{text}'", self.name))
    }

    /// Packets that reached the sink.
    pub fn arrived(&self) -> Result<u64> {
        self.number("sink1", "count")
    }

    /// Nanoseconds of each element a packet, the most first, measured for `time` while packets flow.
    pub fn profile(&self, time: Duration) -> Result<Vec<(String, f64)>> {
        let before = self.arrived()?;
        self.router.set_profiling(true)?;
        std::thread::sleep(time);
        let profile = self.router.profile()?;
        self.router.set_profiling(false)?;
        let packets = (self.arrived()? - before).max(1) as f64;
        let mut profile: Vec<_> = profile.into_iter().map(|(n, ns)| (n, ns as f64 / packets)).collect();
        profile.retain(|(_, ns)| *ns >= 0.05);
        profile.sort_by(|a, b| b.1.total_cmp(&a.1));
        Ok(profile)
    }

    /// Stops the router.
    ///
    /// # Errors
    /// If a packet that was made did not arrive and is not held either.
    pub fn finish(self) -> Result<()> {
        self.pause();
        let (made, arrived, held) =
            (self.number("source", "count")?, self.arrived()?, self.router.held()? as u64);
        if made != arrived + held {
            bail!(
                "{}: {made} packets were made, {arrived} arrived and {held} are held: some were lost",
                self.name
            );
        }
        Ok(())
    }
}
