//! Ports of a kind that this project does not know: a backend is registered and a graph names it.

use causeway_elements::devices::{EGRESSES, Egresses, OVERHEAD, OpenPorts, PORTS};
use causeway_engine::{Options, Plan, Router};
use causeway_lang::NoLibraries;
use causeway_netio::opener::{Opener, Request, register};
use causeway_netio::{Error, ErrorKind, Event, Events, Port, Queue, Result, Rx, Statistics, memory};
use causeway_packet::{Batch, Packet, Receiver};
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The other ends of the ports that were opened.
static WIRES: Mutex<Vec<(String, Port)>> = Mutex::new(Vec::new());

/// Ports whose wires end in the test.
struct Wired;

impl Opener for Wired {
    fn names(&self) -> &'static [&'static str] {
        &["wired", "tester"]
    }

    fn needs(&self) -> &'static str {
        "a test"
    }

    fn open(&self, request: &Request<'_>) -> Result<Port> {
        let (mine, other) = memory::pair(request.name, 64)?;
        WIRES.lock().unwrap().push((request.name.to_owned(), other));
        Ok(mine)
    }
}

fn wire(name: &str) -> Port {
    let mut wires = WIRES.lock().unwrap();
    let at = wires.iter().position(|(n, _)| n == name).expect("it was opened");
    wires.swap_remove(at).1
}

fn plan(text: &str) -> Plan {
    let library = causeway_elements::library();
    let compiled = causeway_lang::compile("test", text.as_bytes(), &NoLibraries, &library, &[]);
    Plan::new(&compiled.unwrap_or_else(|f| panic!("{:?}", f.diagnostics.messages())))
}

fn packets(numbers: impl Iterator<Item = u8>) -> Batch {
    let mut batch = Batch::new();
    batch.extend(numbers.filter_map(|n| Packet::from_bytes(&[n; 60])));
    batch
}

#[test]
fn a_graph_forwards_between_ports_of_a_backend_that_was_registered() {
    register(Wired).expect("the name is free");
    let text = "in :: FromDevice(left, METHOD WIRED) -> Queue -> out :: ToDevice(right, METHOD tester);";
    let router = Router::start(causeway_elements::library(), plan(text), Options::default());
    let router = router.unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    let (mut left, mut right) = (wire("left"), wire("right"));
    let (mut sent, mut got) = (packets(0..50), Batch::new());
    assert_eq!(left.queues[0].tx.offer(&mut sent), 50);
    let start = Instant::now();
    while got.len() < 50 {
        assert!(start.elapsed() < Duration::from_secs(20), "{} came", got.len());
        right.queues[0].rx.poll(&mut got, 50);
    }
    assert!(got.iter().zip(0..).all(|(packet, n)| packet.data() == [n; 60]));
    assert_eq!(router.read("in", "count", "").as_deref(), Ok("50"));
    assert_eq!(router.read("out", "counters", "").as_deref(), Ok("tx_packets 50\ntx_ring_full 0\n"));
}

/// Somebody has to open a door before a receiver gets through.
struct Doors {
    rx: Box<dyn Rx>,
    door: Arc<Mutex<()>>,
}

impl Receiver for Doors {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        drop(self.door.lock());
        self.rx.poll(batch, budget)
    }

    fn arm(&mut self) -> bool {
        drop(self.door.lock());
        self.rx.arm()
    }

    fn waiting(&mut self) -> usize {
        self.rx.waiting()
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.rx.fds()
    }
}

impl Rx for Doors {
    fn statistics(&self) -> Arc<dyn Statistics> {
        self.rx.statistics()
    }
}

/// What happens to a device is what the test says.
struct Told(mpsc::Receiver<Event>);

impl Events for Told {
    fn next(&mut self, timeout: Duration) -> Option<Event> {
        match self.0.recv_timeout(timeout) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(timeout);
                None
            }
        }
    }
}

/// Opens ports with doors that are the test's, and that tell what it tells, under these names.
struct Named(&'static [&'static str], Arc<WithDoors>);

#[derive(Default)]
struct WithDoors {
    door: Arc<Mutex<()>>,
    /// The name of a port that cannot be opened.
    missing: Mutex<&'static str>,
    events: Mutex<Vec<mpsc::Sender<Event>>>,
}

impl Opener for Named {
    fn names(&self) -> &'static [&'static str] {
        self.0
    }

    fn needs(&self) -> &'static str {
        "a test"
    }

    fn open(&self, request: &Request<'_>) -> Result<Port> {
        let doors = &self.1;
        if *doors.missing.lock().unwrap() == request.name {
            return Err(Error::new(ErrorKind::NoInterface, "no such interface"));
        }
        let (mut mine, other) = memory::pair(request.name, 64)?;
        WIRES.lock().unwrap().push((request.name.to_owned(), other));
        mine.queues = mine
            .queues
            .into_iter()
            .map(|q| Queue { rx: Box::new(Doors { rx: q.rx, door: doors.door.clone() }), ..q })
            .collect();
        request.name.clone_into(&mut mine.name);
        let (sender, events) = mpsc::channel();
        doors.events.lock().unwrap().push(sender);
        mine.events = Some(Box::new(Told(events)));
        Ok(mine)
    }
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Who forwards beside the graph must know what the graph sends, and that nobody may overtake.
#[test]
fn what_is_sent_and_what_waits_is_told() {
    register(Named(&["outlet"], Arc::default())).expect("the name is free");
    let text = "in :: FromDevice(inlet, METHOD outlet) -> Queue(200) -> ToDevice(outlet, METHOD outlet);";
    let egresses = Arc::new(Egresses::new(["other", "outlet"].map(str::to_owned).to_vec()));
    let options = Options::default();
    let mut values = options.persistent.lock().unwrap();
    values.insert(EGRESSES.to_owned(), egresses.clone());
    values.insert(PORTS.to_owned(), Arc::new(OpenPorts::default()));
    drop(values);
    let router = Router::start(causeway_elements::library(), plan(text), options);
    let mut router = router.unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    let (mut inlet, mut outlet) = (wire("inlet"), wire("outlet"));
    let sent = |n: u64| egresses.octets(1) == n * (60 + OVERHEAD);
    let mut offer = |n: u8| assert_eq!(inlet.queues[0].tx.offer(&mut packets(0..n)), n.into());
    assert!(sent(0) && !egresses.is_waited_for(1));
    offer(60);
    until("they were sent", || sent(60));
    assert!(!egresses.is_waited_for(1), "the ring has room");
    offer(60);
    until("the ring is full", || sent(64) && egresses.is_waited_for(1));
    // What waits goes with its graph, or is the next one's.
    router.swap(plan(text)).unwrap_or_else(|e| panic!("{e}"));
    until("the next graph tells the same", || sent(64) && egresses.is_waited_for(1));
    let mut came = Batch::new();
    until("all have come", || {
        outlet.queues[0].rx.poll(&mut came, 64);
        came.len() == 120
    });
    until("nothing waits", || sent(120) && !egresses.is_waited_for(1));
    assert!(egresses.octets(0) == 0 && !egresses.is_waited_for(0), "the other has sent nothing");
    offer(60);
    until("they were sent", || sent(180));
    offer(60);
    until("some wait again", || egresses.is_waited_for(1));
    drop(router);
    until("they went with the graph", || !egresses.is_waited_for(1));
}

#[test]
fn what_a_port_knows_is_told_while_its_worker_is_stuck() {
    let opener = Arc::new(WithDoors::default());
    register(Named(&["doors"], opener.clone())).expect("the name is free");
    let text = "in :: FromDevice(far, METHOD doors) -> q :: Queue -> Discard;";
    let router = Router::start(causeway_elements::library(), plan(text), Options::default());
    let router = router.unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    let mut far = wire("far");
    far.queues[0].tx.offer(&mut packets(0..7));
    let read = |handler: &str| router.read("in", handler, "").unwrap_or_else(|e| panic!("{handler}: {e}"));
    until("they came", || read("count") == "7");
    let door = opener.door.lock().unwrap();
    // The worker comes to the door now.
    far.queues[0].tx.offer(&mut packets(0..1));
    assert_eq!(
        (&*read("counters"), &*read("kernel_drops"), &*read("mode")),
        ("rx_packets 7\n", "0", "memory ring")
    );
    assert!(read("capabilities").contains("tx_timestamps realtime\nrx_timestamps none\n"));
    let tell = |event| opener.events.lock().unwrap()[0].send(event).unwrap();
    [Event::LinkDown, Event::LinkUp, Event::LinkDown, Event::MtuChanged(9000)].into_iter().for_each(tell);
    until("they are counted", || {
        read("events").starts_with("link_up 1\nlink_down 2\nmtu_changed 1\ngone 0\nback 0\nrenamed 0\n")
    });
    let ports: Vec<u64> = router.port_counters().into_iter().map(|(_, n)| n).collect();
    assert_eq!(ports, [7]);
    drop(door);
    until("it has passed the door", || read("count") == "8");
}

#[test]
fn a_port_whose_device_is_gone_is_opened_anew_by_the_next_graph() {
    let opener = Arc::new(WithDoors::default());
    register(Named(&["leaving"], opener.clone())).expect("the name is free");
    let text = "in :: FromDevice(away, METHOD leaving) -> Queue -> out :: ToDevice(away);";
    let persistent = causeway_engine::Persistent::default();
    let options = Options { persistent: persistent.clone(), ..Options::default() };
    let router = Router::start(causeway_elements::library(), plan(text), options);
    let mut router = router.unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    let ports = persistent.lock().unwrap()[PORTS].clone().downcast::<OpenPorts>().unwrap();
    let (sender, back) = mpsc::channel();
    ports.on_back(move |_, name| sender.send(name.to_owned()).unwrap());
    let echo = |far: &mut Port| {
        let mut got = Batch::new();
        far.queues[0].tx.offer(&mut packets(3..4));
        let start = Instant::now();
        while got.is_empty() && start.elapsed() < Duration::from_secs(20) {
            far.queues[0].rx.poll(&mut got, 1);
        }
        assert_eq!(got.len(), 1);
    };
    let mut old = wire("away");
    echo(&mut old);
    // A swap changes nothing while the device is there.
    router.swap(plan(text)).unwrap_or_else(|e| panic!("{e}"));
    echo(&mut old);
    let tell = |port: usize, event| opener.events.lock().unwrap()[port].send(event).unwrap();
    tell(0, Event::Gone);
    tell(0, Event::LinkUp);
    tell(0, Event::Back);
    assert_eq!(back.recv_timeout(Duration::from_secs(20)).as_deref(), Ok("away"));
    assert!(back.try_recv().is_err(), "not before there is a device");
    router.swap(plan(text)).unwrap_or_else(|e| panic!("{e}"));
    echo(&mut wire("away"));
    assert_eq!(opener.events.lock().unwrap().len(), 2, "it was opened twice");
    assert_eq!(router.read("in", "count", "").as_deref(), Ok("3"), "the element goes on counting");
}

#[test]
fn a_device_that_stays_away_does_not_keep_another_from_being_opened_anew() {
    let opener = Arc::new(WithDoors::default());
    register(Named(&["two"], opener.clone())).expect("the name is free");
    let text = "FromDevice(stays, METHOD two) -> Discard; in :: FromDevice(comes, METHOD two) -> Discard;";
    let persistent = causeway_engine::Persistent::default();
    let options = Options { persistent: persistent.clone(), ..Options::default() };
    let router = Router::start(causeway_elements::library(), plan(text), options);
    let mut router = router.unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    let ports = persistent.lock().unwrap()[PORTS].clone().downcast::<OpenPorts>().unwrap();
    opener.events.lock().unwrap().iter().for_each(|events| events.send(Event::Gone).unwrap());
    until("both are gone", || ports.is_gone("stays") && ports.is_gone("comes"));
    *opener.missing.lock().unwrap() = "stays";
    drop((wire("stays"), wire("comes")));
    router.swap(plan(text)).unwrap_or_else(|e| panic!("{e}"));
    assert!(ports.is_gone("stays") && !ports.is_gone("comes"));
    wire("comes").queues[0].tx.offer(&mut packets(0..5));
    until("they came", || router.read("in", "count", "").as_deref() == Ok("5"));
    // A graph that has no such port yet cannot have it.
    *opener.missing.lock().unwrap() = "other";
    assert!(router.swap(plan("FromDevice(other, METHOD two) -> Discard;")).is_err());
    router.swap(plan(text)).unwrap_or_else(|e| panic!("{e}"));
    assert!(!ports.is_gone("stays"));
}

/// Opens ports of two queues.
struct Double;

impl Opener for Double {
    fn names(&self) -> &'static [&'static str] {
        &["double"]
    }

    fn needs(&self) -> &'static str {
        "a test"
    }

    fn queues(&self, _name: &str) -> usize {
        2
    }

    fn open(&self, request: &Request<'_>) -> Result<Port> {
        let (mut mine, mut other) = memory::pair(request.name, 64)?;
        let (more, others) = memory::pair(request.name, 64)?;
        mine.queues.extend(more.queues);
        other.queues.extend(others.queues);
        WIRES.lock().unwrap().push((request.name.to_owned(), other));
        Ok(mine)
    }
}

#[test]
fn every_queue_is_served_when_the_copies_of_a_graph_become_fewer_or_more() {
    register(Double).expect("the name is free");
    let many = "in :: FromDevice(d, METHOD double) -> Discard;";
    let one = format!("{many} StaticThreadSched(in 1);");
    let options = Options { workers: 2, replicate: true, ..Options::default() };
    let router = Router::start(causeway_elements::library(), plan(many), options);
    let mut router = router.unwrap_or_else(|e| panic!("{e}"));
    router.resume();
    let mut far = wire("d");
    let mut sent = 0;
    for text in [many, &one, many, &one] {
        router.swap(plan(text)).unwrap_or_else(|e| panic!("{e}"));
        far.queues.iter_mut().for_each(|queue| assert_eq!(queue.tx.offer(&mut packets(0..3)), 3));
        sent += 6;
        let came = || router.read("in", "counters", "").unwrap();
        until(&format!("{sent} came in {text}"), || came() == format!("rx_packets {sent}\n"));
    }
}
