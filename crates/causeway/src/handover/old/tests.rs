//! What is done before the ports are another process's.

use super::*;
use crate::cli::up_args;
use crate::control::{Ask, Question};
use crate::lease::{LEFT_TO_KERNEL, Lease, State};
use crate::load::{self, Source, Style};
use causeway_engine::handler::HandlerError;
use causeway_engine::{Cx, Element, Error, Library, Options, Router, Spec};
use causeway_netio::front::{Take, monotonic_ns};
use causeway_netio::interface::Interface;
use causeway_netio::offload::Offload;
use causeway_netio::{Port, afxdp};
use causeway_packet::ledger::census;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

/// When the worker's latest round began, and when the latest one that has ended did.
static BEGAN_NS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Keeps its worker for longer than the rings are given.
static SLOW: Spec = Spec { name: "Slow", ports: "0/0", build: |_| Ok(Box::new(Slow)), ..Spec::DEFAULT };

struct Slow;

impl Element for Slow {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.set_timer(0, 0);
        Ok(())
    }

    fn timer(&mut self, _: u32, cx: &mut Cx<'_>) {
        let now_ns = monotonic_ns();
        BEGAN_NS[0].store(now_ns, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(80));
        BEGAN_NS[1].store(now_ns, Ordering::Relaxed);
        // Once a round.
        let next_ns = cx.now_ns() + 1;
        cx.set_timer(0, next_ns);
    }
}

/// Closes the port, and notes when the worker's latest round began that has ended, and how the router is.
struct Desk {
    port: Mutex<Option<Port>>,
    state: Box<dyn Fn() -> State + Send + Sync>,
    seen: Mutex<Vec<(u64, String)>>,
}

impl Ask for Desk {
    fn ask(&self, question: Question) -> Result<String, HandlerError> {
        panic!("nothing is asked: {question:?}")
    }

    fn own_graph(&self, _: String) -> Result<(), HandlerError> {
        self.seen.lock().unwrap().push((BEGAN_NS[1].load(Ordering::Relaxed), (self.state)().text));
        drop(self.port.lock().unwrap().take());
        Ok(())
    }
}

/// A router with the port `r0`, as far as it is handed over.
struct Stage {
    router: Router,
    desk: Arc<Desk>,
    place: Arc<Place>,
    old: Old,
    dir: PathBuf,
    _lease: Lease,
}

impl Stage {
    fn new() -> Stage {
        let front = Arc::new(Front::new(Take::NOTHING).unwrap());
        let lease = Lease::keep(front.clone(), LEFT_TO_KERNEL).unwrap();
        let port = afxdp::open("r0", &afxdp::Options::default(), &front).unwrap();
        let ports = vec![("r0".to_owned(), port.ifindex)];
        let library = Library::new([&SLOW]);
        let source = Source::Text("test", "s :: Slow;".to_owned());
        let loaded = load::load(&source, &library, &[], Style::Click).unwrap_or_else(|e| panic!("{e}"));
        let router = Router::start(library, loaded.plan, Options::default()).unwrap();
        router.resume();
        let desk =
            Desk { port: Mutex::new(Some(port)), state: Box::new(lease.state()), seen: Mutex::default() };
        let desk = Arc::new(desk);
        let (_changes, listens) = channel();
        let graph = |names: &[String]| names.join(", ");
        let attendant = Attendant::start(desk.clone(), ports, graph, listens).unwrap().0;
        let dir = std::env::temp_dir().join(format!("causeway-old-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let socket = dir.join("socket").display().to_string();
        let line = ["causeway", "up", "r0", "--name", "closes", "--socket", &socket].map(str::to_owned);
        let place = Arc::new(Place::take(&dir, None, &up_args(&line).unwrap().runtime).unwrap());
        // Or clients would be waited for.
        place.serve(&(desk.clone() as Arc<dyn Ask + Send + Sync>)).unwrap();
        let running = Running {
            front,
            objector: lease.objector(),
            pulses: router.pulses(),
            attendant,
            ports: vec![("r0".to_owned(), true)],
        };
        let socket = UnixListener::bind(dir.join("upgrade")).unwrap();
        let old = Old { socket, place: Arc::downgrade(&place), running };
        Stage { router, desk, place, old, dir, _lease: lease }
    }

    fn end(self) {
        drop((self.old, self.place));
        std::fs::remove_dir_all(&self.dir).unwrap();
        self.router.close().unwrap();
    }
}

/// Runs a test in a network namespace with the interface `r0`. One at a time: queues are looked for in the whole process.
fn in_namespace(test: impl FnOnce() + Send + 'static) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root to make a network namespace");
    }
    let name = format!("old-{}", std::process::id());
    let ip = |args: &str| Command::new("ip").args(args.split(' ')).status().is_ok_and(|done| done.success());
    assert!(ip(&format!("netns add {name}")));
    assert!(ip(&format!("-n {name} link add r0 type veth peer name g0")));
    assert!(["r0", "g0"].iter().all(|device| ip(&format!("-n {name} link set {device} up"))));
    let file = std::fs::File::open(format!("/run/netns/{name}")).unwrap();
    let thread = std::thread::spawn(move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        test();
    });
    let done = thread.join();
    assert!(ip(&format!("netns del {name}")));
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn a_router_that_is_told_to_end_waits_no_longer_than_it_has() {
    let told = Instant::now();
    let at = |s| told + Duration::from_secs(s);
    assert_eq!(until(None, at(5), NO_WORD), at(5));
    assert_eq!(until(Some(told), at(5), NO_WORD), told + NO_WORD, "not so long any more");
    assert_eq!(until(Some(told), at(1), NO_WORD), at(1), "nor longer than usual");
    assert_eq!(until(Some(told), at(8), NO_END), told + NO_END, "whatever was waited for before");
}

#[test]
fn who_is_not_ready_is_told_so() {
    let late = given_up(&Missing::Silent(PREPARING));
    assert!(late.starts_with("it was not ready within 60 s") && late.contains("try again"), "{late}");
    in_namespace(|| {
        let stage = Stage::new();
        let (own, other) = UnixStream::pair().unwrap();
        let mut other = Line::new(other).unwrap();
        let manager = std::env::var("NOTIFY_SOCKET").ok();
        let hello = json!({ "version": VERSION, "ports": [["r0", 1, "xdp"]], "manager": manager });
        other.send(&json!({ "hello": hello }), &[]).unwrap();
        other.send(&json!({ "nonsense": {} }), &[]).unwrap();
        stage.old.attend(own);
        let mut hear = || other.receive(Duration::from_secs(20)).map(|(message, _)| message);
        assert!(hear().unwrap().get("welcome").is_some());
        let why = hear().unwrap()["refused"].as_str().unwrap().to_owned();
        assert!(why.contains("this router goes on"), "{why}");
        assert!(matches!(hear(), Err(Missing::Closed)));
        stage.end();
    });
}

#[test]
fn ports_are_closed_and_free_when_workers_have_seen_what_came_before() {
    in_namespace(|| {
        offload::set_offload("r0", Offload::RxVlan, true).unwrap();
        let stage = Stage::new();
        let index = Interface::open("r0").unwrap().index;
        let Stage { old, place, desk, .. } = &stage;
        // A round has just begun: it may have seen all that it will.
        let began_ns = || BEGAN_NS[0].load(Ordering::Relaxed);
        let earlier_ns = began_ns();
        while began_ns() == earlier_ns {
            std::thread::sleep(Duration::from_millis(1));
        }
        let before_ns = monotonic_ns();
        let is_open = || !census().rings.is_empty();
        assert!(is_open());
        let attendant = &old.running.attendant;
        let closed = old.close(place, &mut attendant.lock().unwrap(), 99);
        assert!(!is_open(), "the kernel has not let go of the queues");
        assert!(closed.done.is_ok() && closed.ports == [("r0".to_owned(), index)]);
        assert!(attendant.lock().unwrap().attached().is_empty());
        let seen = std::mem::take(&mut *desk.seen.lock().unwrap());
        let [(seen_ns, state)] = &seen[..] else { panic!("once") };
        assert!(state.contains("process 99 takes over"), "{state}");
        assert!(*seen_ns >= before_ns, "no round since then is over");
        // The program stays, and so does what was turned off: both are the other's.
        assert_eq!(closed.links.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [index]);
        assert!(!offload::is_on("r0", Offload::RxVlan).unwrap());
        assert_eq!(closed.offloads, [(index, "r0".to_owned(), Offload::RxVlan)]);
        drop(closed);
        stage.end();
    });
}
