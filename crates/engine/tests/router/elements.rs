//! Elements that make, copy, log, keep and move packets.

use causeway_engine::measure::{Across, Unit};
use causeway_engine::spec::{Notifies, reads};
use causeway_engine::{Cx, Element, Error, Invalid, Run, Spec};
use causeway_packet::{BATCH, Batch, Packet};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Makes LIMIT numbered packets, one a task run; stops the driver after the last if STOP.
pub static SOURCE: Spec = Spec {
    name: "Source",
    ports: "0/1",
    processing: "h/h",
    handlers: &[
        reads("made", "packets made").counts(Unit::Packets),
        reads("limit", "LIMIT"),
        reads("now", "the time").measures(Unit::None).across(Across::Max),
    ],
    build: |conf| {
        let (limit, stop) = (conf.required("LIMIT"), conf.keyword("STOP", false));
        conf.finish()?;
        Ok(Box::new(Source { made: 0, limit, stop }))
    },
    ..Spec::DEFAULT
};

struct Source {
    made: u32,
    limit: u32,
    stop: bool,
}

impl Element for Source {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if self.made == self.limit {
            if self.stop {
                cx.stop_driver();
            }
            return Run::Sleep;
        }
        if !cx.room_downstream(0) {
            return Run::Sleep;
        }
        self.made += 1;
        cx.emit(0, Packet::from_bytes(&self.made.to_ne_bytes()).unwrap());
        Run::Worked
    }

    fn read(&mut self, handler: &str, _: &str, cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(match handler {
            "now" => cx.now_ns(),
            "limit" => self.limit.into(),
            _ => self.made.into(),
        }
        .to_string())
    }

    fn take_state(&mut self, old: &mut dyn Element, _: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Source>() {
            self.made = old.made;
        }
    }
}

/// Copies to all outputs.
pub static COPY: Spec = Spec {
    name: "Copy",
    ports: "1/1-",
    processing: "h/h",
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Copy))
    },
    ..Spec::DEFAULT
};

struct Copy;

impl Element for Copy {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.drain() {
            for port in (1..cx.n_outputs()).rev() {
                cx.emit(port, p.copy().unwrap());
            }
            cx.emit(0, p);
        }
    }
}

/// Writes what it sees into a log that the elements of a test share: `name:number`.
pub static LOG: Spec = Spec {
    name: "Log",
    ports: "1/0-1",
    processing: "h/h",
    handlers: &[reads("log", "what all of them saw")],
    build: |conf| {
        conf.finish()?;
        let log = conf.env.shared("log", || Mutex::new(String::new())).ok_or(Invalid)?;
        Ok(Box::new(Log { log, name: conf.name().to_string() }))
    },
    ..Spec::DEFAULT
};

struct Log {
    log: Arc<Mutex<String>>,
    name: String,
}

impl Element for Log {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        for p in batch.iter() {
            let number = u32::from_ne_bytes(p.data().try_into().unwrap());
            *self.log.lock().unwrap() += &format!("{}:{number} ", self.name);
        }
        if cx.n_outputs() == 0 {
            batch.clear();
        }
    }

    fn take_state(&mut self, old: &mut dyn Element, _: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Log>() {
            self.log.lock().unwrap().insert_str(0, &std::mem::take(&mut *old.log.lock().unwrap()));
        }
    }

    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.log.lock().unwrap().trim().to_owned())
    }
}

/// A queue of CAPACITY packets that notifies both sides.
pub static STORE: Spec = Spec {
    name: "Store",
    ports: "1/1",
    processing: "h/l",
    notifies: Notifies { packets: true, room: true },
    handlers: &[reads("highwater", "most packets held")],
    build: |conf| {
        let capacity = conf.optional("CAPACITY", 10u32);
        conf.finish()?;
        Ok(Box::new(Store { packets: VecDeque::new(), capacity: capacity as usize, highwater: 0 }))
    },
    ..Spec::DEFAULT
};

struct Store {
    packets: VecDeque<Packet>,
    capacity: usize,
    highwater: usize,
}

impl Element for Store {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.packets.extend(batch.drain());
        // A pusher that asks for room may push a whole batch into the last of it.
        assert!(self.packets.len() < self.capacity + BATCH, "a pusher was not held back");
        self.highwater = self.highwater.max(self.packets.len());
        cx.notify_packets(true);
        cx.notify_room(self.packets.len() < self.capacity);
    }

    fn pull(&mut self, _: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        batch.extend(self.packets.drain(..max.min(self.packets.len())));
        cx.notify_packets(!self.packets.is_empty());
        cx.notify_room(self.packets.len() < self.capacity);
    }

    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.highwater.to_string())
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Store>() {
            self.packets = std::mem::take(&mut old.packets);
            cx.notify_packets(!self.packets.is_empty());
            cx.notify_room(self.packets.len() < self.capacity);
        }
    }

    fn held(&self) -> usize {
        self.packets.len()
    }
}

/// Pulls one packet a run and pushes it; sleeps while its notifier says that there is none.
pub static DRAIN: Spec = Spec {
    name: "Drain",
    ports: "1/1",
    processing: "l/h",
    handlers: &[reads("runs", "times the task ran")],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Drain { runs: 0 }))
    },
    ..Spec::DEFAULT
};

struct Drain {
    runs: u64,
}

impl Element for Drain {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        self.runs += 1;
        let mut batch = cx.lend_batch();
        cx.pull(0, 1, &mut batch);
        let got = batch.len();
        cx.emit_batch(0, batch);
        match got {
            0 if cx.packets_upstream(0) => Run::Idle,
            0 => Run::Sleep,
            _ => Run::Worked,
        }
    }

    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.runs.to_string())
    }
}

/// Names the worker that an element is to live on, as `ELEMENT WORKER`.
pub static PIN: Spec = Spec {
    name: "Pin",
    ports: "0/0",
    phase: causeway_engine::spec::phase::INFO,
    build: |conf| {
        for arg in conf.rest() {
            if let Some((name, worker)) = arg.split_once(' ') {
                conf.env.threads.push((name.to_owned(), worker.parse().ok()));
            }
        }
        conf.finish()?;
        Ok(Box::new(Nothing))
    },
    ..Spec::DEFAULT
};

/// Does nothing.
pub struct Nothing;
impl Element for Nothing {}
