//! The twins in one state after the other, and the same packets into both.

use crate::cable::Cable;
use crate::control::Counts;
use crate::judge::{self, Difference, Judge, Left};
use crate::lessons::Lesson;
use crate::packets::{Packets, Sent};
use crate::plan::{self, PORTS};
use crate::space::Step;
use crate::state::{Facts, State};
use crate::twin::{Router, Twin};
use fastrand::Rng;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long what sends a message may take to be in use, after a route is that came last.
const TOLD: Duration = Duration::from_millis(300);
/// How long what sends no message may take.
const SILENT: Duration = Duration::from_millis(1000);
/// How long ports may take to be attached again.
const ATTACH: Duration = Duration::from_millis(1500);
/// How long a frame may take on a busy machine, and if a question for a neighbour was lost.
const LATE: Duration = Duration::from_millis(1500);
/// How long the router leaves all to the kernel after a change of policy rules, and some time more.
const RULES: Duration = Duration::from_millis(5500);
/// How long is waited for what must come.
const PATIENCE: Duration = Duration::from_secs(5);
/// Packets that are sent before all are waited for.
const CHUNK: usize = 32;

/// Both twins.
pub struct Trial {
    kernel: Twin,
    causeway: Twin,
    router: Router,
    judge: Judge,
    undo: Vec<Step>,
    rounds: u32,
    /// Ports that turned out not to answer ARP requests in this state.
    mute: [bool; PORTS],
    pub sums: Sums,
    /// One after another: each loads the machine.
    _one: MutexGuard<'static, ()>,
}

/// What was done in all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub states: u64,
    pub sent: u64,
    /// Of those, the ones that the kernel alone forwarded.
    pub forwarded: u64,
    /// Plain ones of those, in states that leave not all to the kernel: what the graph is for.
    pub simple: u64,
    /// Frames that the router's graph forwarded in those states.
    pub by_graph: u64,
    /// Frames that left the kernel's twin.
    pub left: u64,
}

/// A state in which the twins differed.
pub struct Failure {
    pub number: u64,
    pub steps: Vec<Step>,
    /// What differed, with the packet it is about if that is known.
    pub differences: Vec<(Difference, Option<Sent>)>,
}

impl Trial {
    /// None, with a message, where it cannot be done.
    pub fn new() -> Option<Trial> {
        Trial::with(&["--attach", "xdp"])
    }

    /// The same with other options of `causeway up`.
    pub fn with(options: &[&str]) -> Option<Trial> {
        static ONE: Mutex<()> = Mutex::new(());
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root to make network namespaces");
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("oracle-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let (kernel, causeway) = (Twin::new(&format!("{prefix}k"))?, Twin::new(&format!("{prefix}c"))?);
        let router = Router::start(&causeway, options);
        let (judge, undo, sums) = (Judge::default(), Vec::new(), Sums::default());
        Some(Trial {
            _one: one,
            kernel,
            causeway,
            router,
            judge,
            undo,
            rounds: 0,
            mute: [false; PORTS],
            sums,
        })
    }

    /// Tries the state of that number with so many packets.
    pub fn state(&mut self, seed: u64, number: u64, packets: usize) -> Option<Failure> {
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        let state = State::new(rng.fork());
        let silent = |step: &Step| !matches!(step, Step::Ip(_) | Step::Ip6(_));
        let is_silent = self.undo.iter().chain(&state.steps).any(silent) || !state.lessons.is_empty();
        let is_rule = |step: &Step| matches!(step, Step::Shell(line) if line.starts_with("ip ") && line.contains(" rule "));
        let has_rules = self.undo.iter().chain(&state.steps).any(is_rule);
        self.undo();
        self.undo = state.undo;
        self.put(&state.steps, &state.lessons);
        let wait = match (has_rules, state.facts.attaches, is_silent) {
            (true, ..) => RULES,
            (_, true, _) => ATTACH,
            (_, _, true) => SILENT,
            _ => TOLD,
        };
        self.settle(number, wait);
        let mut differences = Vec::new();
        let mut packets_of = Packets::new(rng, &state.facts, number as u32 * 100_000);
        let sent: Vec<Sent> = (0..packets).map(|_| packets_of.next()).collect();
        for batch in sent.chunks(200) {
            differences.extend(self.send_all(batch, &state.facts).1);
        }
        self.sums.states += 1;
        if differences.is_empty() && self.router.is_alive() {
            return None;
        }
        let steps = state.steps;
        Some(Failure { number, steps, differences })
    }

    /// Puts both into a state.
    fn put(&mut self, steps: &[Step], lessons: &[Lesson]) {
        self.mute = [false; PORTS];
        self.apply(steps);
        self.apply(&plan::asking());
        if lessons.is_empty() {
            return;
        }
        lessons.iter().for_each(|lesson| self.send(lesson.port, &lesson.frame));
        self.barrier(&Facts::of_first_state(), &mut [Vec::new(), Vec::new()]);
        // As if the routers had something to send there: the kernel shows only what it has learned and used.
        self.apply(
            &lessons.iter().map(|lesson| Step::Ip(format!("route get {}", lesson.to))).collect::<Vec<_>>(),
        );
    }

    /// Tries a state that was thought of, after these lessons, with these packets; says what the kernel sent, and what differs.
    pub fn directed(
        &mut self,
        steps: &[Step],
        lessons: &[Lesson],
        packets: &[(usize, Vec<u8>)],
    ) -> (Vec<Left>, Vec<Difference>) {
        self.undo();
        self.put(steps, lessons);
        let facts = Facts::of_first_state();
        self.settle(249, SILENT);
        let sent = |(n, (port, frame)): (usize, &(usize, Vec<u8>))| Sent {
            number: n as u32,
            port: *port,
            frame: frame.clone(),
            kind: "directed",
        };
        let sent: Vec<Sent> = packets.iter().enumerate().map(sent).collect();
        let (left, found) = self.send_all(&sent, &facts);
        (left, found.into_iter().map(|(difference, _)| difference).collect())
    }

    /// Back to the first state.
    fn undo(&mut self) {
        let mut steps = std::mem::take(&mut self.undo);
        steps.reverse();
        steps.extend(plan::baseline());
        self.apply(&steps);
    }

    fn apply(&mut self, steps: &[Step]) {
        self.kernel.apply(steps);
        self.causeway.apply(steps);
    }

    /// Waits until the router knows all that was done.
    fn settle(&mut self, number: u64, wait: Duration) {
        let last = number % 250 + 1;
        self.causeway.apply(&[Step::Ip(format!("route replace blackhole 192.0.2.{last} proto 77"))]);
        self.kernel.apply(&[Step::Ip(format!("route replace blackhole 192.0.2.{last} proto 77"))]);
        let begin = Instant::now();
        let question = format!("forward.lookup 192.0.2.{last}");
        while begin.elapsed() < PATIENCE {
            let answer = self.router.control.read(&question).unwrap_or_default();
            if answer.contains("blackhole") {
                break;
            }
            // A rule is about this destination too, so that it tells nothing.
            if answer.contains("policy-rules") {
                self.wait(LATE);
                break;
            }
            self.wait(Duration::from_millis(20));
        }
        self.wait(wait);
    }

    /// Lets the hosts answer for some time; what they get else is nobody's.
    fn wait(&mut self, time: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < time {
            self.receive(&mut [Vec::new(), Vec::new()]);
            std::thread::sleep(Duration::from_millis(4));
        }
    }

    /// Sends the packets of a batch into both twins; says what the kernel sent, and what differs.
    fn send_all(&mut self, batch: &[Sent], facts: &Facts) -> (Vec<Left>, Vec<(Difference, Option<Sent>)>) {
        let mut left = [Vec::new(), Vec::new()];
        // What comes late of an earlier batch.
        self.receive(&mut [Vec::new(), Vec::new()]);
        let before = self.router.control.counts();
        for chunk in batch.chunks(CHUNK) {
            for sent in chunk {
                self.send(sent.port, &sent.frame);
            }
            self.barrier(facts, &mut left);
        }
        let after = self.handled(before);
        self.barrier(facts, &mut left);
        let mut found = self.judge.compare(&left[0], &left[1], facts.any_path);
        if !found.is_empty() {
            let begin = Instant::now();
            while begin.elapsed() < LATE {
                self.receive(&mut left);
                std::thread::sleep(Duration::from_millis(5));
            }
            found = self.judge.compare(&left[0], &left[1], facts.any_path);
        }
        self.count(batch, facts, &left[0], after.forwarded.saturating_sub(before.forwarded));
        left.iter().for_each(|left| self.judge.over(left));
        let by_number: HashMap<u32, &Sent> = batch.iter().map(|sent| (sent.number, sent)).collect();
        let about =
            |frame: &[u8]| judge::number(frame).and_then(|n| by_number.get(&n)).map(|&sent| sent.clone());
        let found = found.into_iter().map(|difference| (difference.clone(), about(&difference.frame)));
        let mut found: Vec<(Difference, Option<Sent>)> = found.collect();
        // A path whose neighbour is just being asked for is passed over by the kernel; a router asks before.
        let both: Vec<Difference> = found.iter().map(|(difference, _)| difference.clone()).collect();
        found.retain(|(difference, sent)| {
            let kernel_s = sent.as_ref().is_some_and(|sent| judge::is_kernel_s(&sent.frame));
            !(kernel_s && both.iter().any(|other| judge::is_other_path(difference, other)))
        });
        // Among equal IPv6 routes that are not paths of one the kernel takes turns, each twin in its own time.
        found.retain(|(_, sent)| {
            let to = sent.as_ref().and_then(|sent| judge::destination(&sent.frame));
            to.is_none_or(|to| self.read(&format!("forward.lookup {to}")) != "kernel ambiguous")
        });
        let [by_kernel, _] = left;
        (by_kernel, found)
    }

    /// Sends a frame into both twins. What one takes the other takes too, sooner or later.
    fn send(&mut self, port: usize, frame: &[u8]) {
        let mut gone = [self.kernel.cables[port].send(frame), self.causeway.cables[port].send(frame)];
        for _ in 0..50 {
            if gone[0] == gone[1] {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
            gone[0] = gone[0] || self.kernel.cables[port].send(frame);
            gone[1] = gone[1] || self.causeway.cables[port].send(frame);
        }
        eprintln!("p{port} takes a frame of {} octets of one twin alone", frame.len());
    }

    /// Frames that the hosts had no room for: none, or the comparison is wrong.
    pub fn lost(&self) -> u64 {
        [&self.kernel, &self.causeway].into_iter().flat_map(|twin| &twin.cables).map(Cable::lost).sum()
    }

    fn count(&mut self, batch: &[Sent], facts: &Facts, left: &[Left], by_graph: u64) {
        let by_number: HashMap<u32, &Sent> = batch.iter().map(|sent| (sent.number, sent)).collect();
        self.sums.sent += batch.len() as u64;
        self.sums.left += left.len() as u64;
        for (port, frame) in left {
            let Some(sent) = judge::number(frame).and_then(|n| by_number.get(&n)) else { continue };
            if !judge::is_forwarded(sent, frame) {
                continue;
            }
            self.sums.forwarded += 1;
            // The kernel tells of better ways to who sends packets that leave as they came.
            let between = sent.port < plan::TAKEN && *port < plan::TAKEN && sent.port != *port;
            self.sums.simple += u64::from(facts.plain && between && judge::is_plain(sent));
        }
        self.sums.by_graph += if facts.plain { by_graph } else { 0 };
    }

    /// Waits until the graph has handled all that its programs took. Frames that it lost would be waited for in vain, and are
    /// missed then.
    fn handled(&mut self, before: Counts) -> Counts {
        let begin = Instant::now();
        loop {
            let now = self.router.control.counts();
            let done = now.forwarded + now.punted - before.forwarded - before.punted;
            if now.taken.saturating_sub(before.taken) <= done || begin.elapsed() > PATIENCE {
                return now;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn receive(&mut self, left: &mut [Vec<Left>; 2]) {
        for (twin, left) in [&mut self.kernel, &mut self.causeway].into_iter().zip(left) {
            for (port, cable) in twin.cables.iter_mut().enumerate() {
                left.extend(cable.receive().into_iter().map(|frame| (port, frame)));
            }
        }
    }

    /// Waits until both kernels have handled all that was sent: they answer ARP requests sent behind it. Who asks for
    /// neighbours meanwhile has packets waiting, so it is done again.
    fn barrier(&mut self, facts: &Facts, left: &mut [Vec<Left>; 2]) {
        for _ in 0..8 {
            let before = self.answers();
            self.barrier_once(facts, left);
            if self.answers() == before {
                return;
            }
        }
    }

    fn answers(&self) -> u64 {
        [&self.kernel, &self.causeway]
            .into_iter()
            .flat_map(|twin| &twin.cables)
            .map(|cable| cable.answers)
            .sum()
    }

    fn barrier_once(&mut self, facts: &Facts, left: &mut [Vec<Left>; 2]) {
        self.rounds += 1;
        let [.., high, middle, low] = self.rounds.to_be_bytes();
        let silent = |port: usize| facts.down[port] || facts.mute[port] || self.mute[port];
        let asked: Vec<usize> = (0..PORTS).filter(|&port| !silent(port)).collect();
        for &port in &asked {
            let mac = [2, 0xba, port as u8, high, middle, low];
            let request = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &mac, &[0; 4], &[0; 6], &plan::BARRIER].concat();
            let frame = [&[255; 6][..], &mac, &[8, 6], &request].concat();
            self.kernel.cables[port].send(&frame);
            self.causeway.cables[port].send(&frame);
        }
        let is_answer = |frame: &[u8], port: usize| {
            frame[12..14] == [8, 6] && frame[..6] == [2, 0xba, port as u8, high, middle, low]
        };
        let begin = Instant::now();
        let mut open = asked.clone();
        while !open.is_empty() && begin.elapsed() < PATIENCE {
            self.receive(left);
            let answered = |port: usize, left: &[Left]| left.iter().any(|(_, frame)| is_answer(frame, port));
            open.retain(|&port| left.iter().any(|left| !answered(port, left)));
            std::thread::sleep(Duration::from_micros(300));
        }
        for port in open {
            // Not waited for again in this state.
            eprintln!("p{port} does not answer ARP requests in state {}", self.sums.states);
            self.mute[port] = true;
        }
        if facts.mute.contains(&true) || self.mute.contains(&true) {
            std::thread::sleep(Duration::from_millis(30));
            self.receive(left);
        }
        left.iter_mut().for_each(|left| left.retain(|(_, frame)| frame[12..14] != [8, 6]));
    }

    /// Routes and rules that only one of the twins has: then the test is wrong, and not the router.
    pub fn unlike(&self) -> String {
        let show = "ip -o route show table all; ip -6 -o route show table all; ip nexthop; ip rule; ip -6 rule; ip -br addr; \
                    ip neigh show nud permanent";
        let [kernel, causeway] = [&self.kernel, &self.causeway].map(|twin| twin.router.shell(show));
        let mut text = String::new();
        for (who, mine, other) in [("the kernel", &kernel, &causeway), ("causeway", &causeway, &kernel)] {
            let has = |line: &&str| !other.lines().any(|l| l.trim() == line.trim());
            mine.lines().filter(has).for_each(|line| text += &format!("only {who} has {line}\n"));
        }
        text
    }

    /// Packets that the router forwarded in the driver, since its graph was made.
    pub fn in_driver(&mut self) -> u64 {
        // Of those every graph counts, one that took them has counted the rest.
        let Counts { taken, forwarded, punted } = self.router.control.counts();
        (forwarded + punted).saturating_sub(taken)
    }

    /// What the router's handler says.
    pub fn read(&mut self, handler: &str) -> String {
        self.router.control.read(handler).unwrap_or_default()
    }
}
