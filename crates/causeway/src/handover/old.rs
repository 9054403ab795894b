//! The process whose place is taken.

#[cfg(test)]
mod tests;

use super::message::{Line, Missing};
use super::peer::Peer;
use super::progress::Patience;
use super::{AT_TCX, CODE, VERSION, queues};
use crate::attendant::Attendant;
use crate::control::Listener;
use crate::drain::drain;
use crate::lease::Objector;
use crate::place::Place;
use crate::service_manager;
use crate::signals::ORDERLY;
use anyhow::{Context, Result, bail};
use causeway_bpf::XdpLink;
use causeway_engine::Pulse;
use causeway_netio::front::Front;
use causeway_netio::offload;
use serde_json::{Value, json};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long who is asked for a word may take, who reads the kernel's tables, and who opens ports, for each queue.
const ANSWER: Duration = Duration::from_secs(5);
const PREPARING: Duration = Duration::from_secs(60);
const TAKING: Duration = Duration::from_secs(10);
/// How often it is looked whether this router has been told to end. Then it is ended by force before long, which would leave all
/// behind: so by these times after that nothing more is waited for, the other is ended though it may do so by itself, and it is
/// left to itself though it has not ended.
const LOOK: Duration = Duration::from_millis(200);
const NO_WORD: Duration = Duration::from_secs(2);
const NO_GRACE: Duration = Duration::from_secs(4);
const NO_END: Duration = Duration::from_secs(6);
/// How long a process that has closed its end may take to end, and one that was killed.
const ENDING: Duration = Duration::from_secs(5);
/// How often it is tried to open the ports again, and the time between.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(500);
const _: () = assert!(
    NO_WORD.as_secs() <= NO_GRACE.as_secs()
        && NO_GRACE.as_secs() < NO_END.as_secs()
        && NO_END.as_secs() + 2 < ORDERLY.as_secs(),
    "a hand-over ends before the router is ended, which has to undo all then"
);

/// A running router, as far as it is handed over.
pub struct Old {
    /// Where it is asked.
    socket: UnixListener,
    /// Not for longer than the router runs: sockets and record go with it.
    place: Weak<Place>,
    running: Running,
}

/// What runs there.
pub struct Running {
    pub front: Arc<Front>,
    pub objector: Objector,
    pub pulses: Vec<Pulse>,
    pub attendant: Arc<Mutex<Attendant>>,
    /// Names of the ports, and whether they are at XDP.
    pub ports: Vec<(String, bool)>,
}

/// What was closed.
struct Closed {
    /// Names and interface indices.
    ports: Vec<(String, u32)>,
    /// They hold the program where it is.
    links: Vec<(u32, Arc<XdpLink>)>,
    offloads: Vec<offload::TurnedOff>,
    /// Whether the ports are.
    done: Result<(), Missing>,
}

impl Old {
    /// Answers those who ask for its place at `listener`, one after another, in a thread of its own.
    ///
    /// # Errors
    /// No descriptor or thread is left.
    pub fn serve(listener: &Listener, place: &Arc<Place>, running: Running) -> Result<()> {
        let what = "cannot listen for upgrades";
        let socket = listener.socket().context(what)?.try_clone_to_owned().context(what)?;
        let old = Old { socket: socket.into(), place: Arc::downgrade(place), running };
        let thread = std::thread::Builder::new().name("upgrade".to_owned());
        thread.spawn(move || old.run()).context("cannot start a thread")?;
        Ok(())
    }

    fn run(&self) {
        loop {
            match self.socket.accept() {
                Ok((socket, _)) => self.attend(socket),
                // Out of descriptors, say: wait for some to be closed.
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    fn attend(&self, socket: UnixStream) {
        // Who has gone already wants nothing.
        let Ok(peer) = Peer::of(&socket) else { return };
        let Ok(mut line) = Line::new(socket) else { return };
        let Ok((hello, _)) = line.receive(ANSWER) else { return };
        let pid = peer.pid.as_raw_nonzero();
        if let Err(why) = refusal(&hello["hello"], &self.running.ports, &peer) {
            log::warn!(code = CODE; "process {pid} wants to take over, and is refused: {why}");
            drop(line.send(&json!({ "refused": why.to_string() }), &[]));
            return;
        }
        let version = hello["hello"]["causeway"].as_str().unwrap_or("unknown");
        log::info!(code = CODE; "process {pid}, version {version}, is to take over");
        let metrics =
            self.place.upgrade().and_then(|place| place.metrics_address()).map(|address| address.to_string());
        let welcomed = line.send(&json!({ "welcome": { "metrics": metrics } }), &[]);
        match welcomed.map_err(Missing::Failed).and_then(|()| line.receive(PREPARING)) {
            Ok((message, _)) if message.get("ready").is_some() => {
                // A router that has ended meanwhile is nobody's to take.
                if let Some(place) = self.place.upgrade() {
                    self.hand_over(&place, &mut line, &peer);
                }
            }
            other => {
                let why = other.err().unwrap_or(Missing::Strange);
                log::warn!(code = CODE; "process {pid} does not take over: {why}");
                // Or it would come when it is ready, and take this one for dead.
                drop(line.send(&json!({ "refused": given_up(&why) }), &[]));
            }
        }
    }

    /// Closes the ports and has the other open them, or opens them again.
    fn hand_over(&self, place: &Place, line: &mut Line, peer: &Peer) {
        let Running { front, objector, attendant, .. } = &self.running;
        let pid = peer.pid.as_raw_nonzero();
        // Nobody attaches a port meanwhile.
        let mut attendant = attendant.lock().unwrap_or_else(PoisonError::into_inner);
        let Closed { ports, links, offloads, done } = self.close(place, &mut attendant, pid.get());
        place.claim.lend();
        let taken = done.and_then(|()| self.give(place, line, &links));
        // One that is dead already takes nothing.
        match taken {
            Ok(()) if !peer.ends(Duration::ZERO) => end(peer),
            other => {
                let why = other.err().unwrap_or(Missing::Closed);
                let then = if place.has_ended() { "and this router ends" } else { "this router goes on" };
                log::error!(code = CODE; "process {pid} does not take over: {why}; {then}");
                stop(place, peer, &why);
            }
        }
        offload::inherit(offloads);
        if let Err(e) = place.claim.take_back() {
            log::warn!(code = CODE; "the record of this router cannot be written: {e}");
        }
        if place.has_ended() {
            front.forget_links();
            return offload::restore();
        }
        for left in (0..TRIES).rev() {
            match attendant.attach(&ports) {
                Ok(()) => break,
                // It has been told to end meanwhile.
                Err(_) if place.has_ended() => return offload::restore(),
                Err(_) if left > 0 => std::thread::sleep(PAUSE),
                // The attendant tries on.
                Err(why) => log::error!(code = CODE; "{}", why.to_string().trim().replace('\n', "; ")),
            }
        }
        drop(attendant);
        front.forget_links();
        place.open();
        objector.withdraw(CODE);
    }

    /// Leaves what comes to the kernel, has the workers see what came before, and closes the ports.
    fn close(&self, place: &Place, attendant: &mut Attendant, pid: i32) -> Closed {
        let Running { front, objector, pulses, .. } = &self.running;
        objector.doubt(CODE, format!("process {pid} takes over"));
        drain(pulses);
        let ports = attendant.attached().to_vec();
        let links = front.lay_links_by();
        let offloads = offload::let_go();
        place.close();
        let done = attendant.detach_all().map_err(io::Error::other).map_err(Missing::Failed);
        if !queues::wait(|usual| until(place.ended_at(), usual, NO_WORD)) {
            log::warn!(code = CODE; "the kernel has not let go of all queues; process {pid} may have to wait for them");
        }
        Closed { ports, links, offloads, done }
    }

    /// Hands over what the other needs, and waits until it has taken it.
    fn give(&self, place: &Place, line: &mut Line, links: &[(u32, Arc<XdpLink>)]) -> Result<(), Missing> {
        let metrics = place.metrics();
        let stderr = io::stderr();
        let mut descriptors: Vec<BorrowedFd<'_>> = Vec::new();
        descriptors.extend(place.control());
        descriptors.push(self.socket.as_fd());
        descriptors.push(stderr.as_fd());
        descriptors.extend(metrics);
        descriptors.extend(links.iter().map(|(_, link)| link.as_fd()));
        let list: Vec<(u32, &str)> = links.iter().map(|(index, link)| (*index, link.mode().name())).collect();
        let message = json!({ "handed": { "links": list, "metrics": metrics.is_some(), "hears": true } });
        line.send(&message, &descriptors).map_err(Missing::Failed)?;
        match Old::answer(place, line)? {
            message if message.get("taken").is_some() => Ok(()),
            _ => Err(Missing::Strange),
        }
    }

    /// What the other says to what it was handed.
    fn answer(place: &Place, line: &mut Line) -> Result<Value, Missing> {
        let mut patience = Patience::from(Instant::now());
        loop {
            let answer = match line.receive(LOOK) {
                Ok((message, _)) if patience.is_progress(&message, Instant::now()) => {
                    Err(Missing::Silent(LOOK))
                }
                answer => answer,
            };
            let end = until(place.ended_at(), patience.since() + TAKING, NO_WORD);
            match answer {
                Err(Missing::Silent(_)) if Instant::now() < end => {}
                Err(Missing::Silent(_)) => return Err(Missing::Silent(patience.since().elapsed())),
                answer => return answer.map(|(message, _)| message),
            }
        }
    }
}

/// By when that is given up which would be at a time otherwise: `at_the_end` after this router
/// was told to end, if that is sooner.
fn until(ended: Option<Instant>, usual: Instant, at_the_end: Duration) -> Instant {
    ended.map_or(usual, |ended| usual.min(ended + at_the_end))
}

/// What a process is told that was welcome and is not ready.
fn given_up(why: &Missing) -> String {
    match why {
        Missing::Silent(time) => format!(
            "it was not ready within {} s, and this router goes on: try again when the machine has less to do, \
             or stop this router, and start the other",
            time.as_secs()
        ),
        why => format!("{why}, and this router goes on: stop it, and start the other"),
    }
}

/// Ends this process, and undoes nothing: all of it is the other's now.
fn end(peer: &Peer) -> ! {
    let pid = peer.pid.as_raw_nonzero();
    service_manager::say_main_process(pid.get().unsigned_abs());
    log::info!(code = CODE; "process {pid} has taken over");
    log::logger().flush();
    std::process::exit(0)
}

/// Sees to it that a process which has not taken over never does: while it is there it may hold queues of the ports.
fn stop(place: &Place, peer: &Peer, why: &Missing) {
    if matches!(why, Missing::Closed) && ends(place, peer, NO_GRACE) {
        return;
    }
    peer.end();
    if !ends(place, peer, NO_END) {
        log::error!(code = CODE; "process {} does not end", peer.pid.as_raw_nonzero());
    }
}

/// Whether the other ends in the time that it has.
fn ends(place: &Place, peer: &Peer, at_the_end: Duration) -> bool {
    let usual = Instant::now() + ENDING;
    loop {
        let left = until(place.ended_at(), usual, at_the_end).saturating_duration_since(Instant::now());
        if peer.ends(left.min(LOOK)) {
            return true;
        }
        if left.is_zero() {
            return false;
        }
    }
}

/// Whether `ports`, by name and whether they are at XDP, have all of `others` that are there.
fn has_those_at_xdp(ports: &[(&str, bool)], others: &[(&str, bool)]) -> bool {
    let mut at_xdp = others.iter().filter(|(_, at_xdp)| *at_xdp);
    at_xdp.all(|(name, _)| ports.iter().any(|(port, _)| port == name))
}

/// Why a process that says this may not take over a router with these ports.
fn refusal(hello: &Value, ports: &[(String, bool)], peer: &Peer) -> Result<()> {
    let version = hello["version"].as_u64();
    if version != Some(VERSION) {
        let theirs = version.map_or("none".to_owned(), |version| version.to_string());
        bail!(
            "it speaks version {theirs} of the protocol and not {VERSION}: stop this router, and start the other"
        );
    }
    if !peer.is_same_user() {
        bail!("it runs as another user");
    }
    // Nothing is handed over of ports at tcx: they may come, go, and have been at XDP.
    let wanted = hello["ports"].as_array().map_or(&[][..], Vec::as_slice).iter();
    let wanted: Vec<(&str, bool)> =
        wanted.filter_map(|port| Some((port[0].as_str()?, port[2].as_str() != Some(AT_TCX)))).collect();
    let own: Vec<(&str, bool)> = ports.iter().map(|(name, at_xdp)| (name.as_str(), *at_xdp)).collect();
    if !(has_those_at_xdp(&wanted, &own) && has_those_at_xdp(&own, &wanted)) {
        let [wanted, own] = [wanted, own].map(|ports| {
            let names: Vec<&str> = ports.iter().map(|(name, _)| *name).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        });
        bail!(
            "its ports are {wanted}, and not {own}, of which those at XDP must be the same: \
             stop this router, and start the other"
        );
    }
    let manager = std::env::var("NOTIFY_SOCKET").ok();
    if manager.is_some() && (hello["manager"].as_str() != manager.as_deref() || !peer.is_same_service()) {
        bail!("this router is a service, and the other would be none: `systemctl reload causeway`");
    }
    Ok(())
}
