//! A device, and elements that fail, wait or call themselves.

use super::elements::Nothing;
use causeway_engine::pieces::{Pieces, in_pieces};
use causeway_engine::reception::Mechanism;
use causeway_engine::spec::{reads, writes};
use causeway_engine::{Conf, Cx, Element, Error, Invalid, Run, Spec};
use causeway_packet::{Batch, Packet, Receiver};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A device that has PACKETS numbered packets and gets more by `arrive`; one interrupt each, unless MECHANISM says otherwise.
pub static DEVICE: Spec = Spec {
    name: "Device",
    ports: "0/1",
    processing: "h/h",
    build: |conf| {
        let left = conf.required("PACKETS");
        let name: String = conf.keyword("MECHANISM", "interrupt".to_owned());
        conf.finish()?;
        let mechanism = Mechanism::by_name(&name, 64, 1, 0).ok_or(Invalid)?;
        Ok(Box::new(Device { left, next: 1, mechanism }))
    },
    handlers: &[writes("arrive", "so many packets more")],
    ..Spec::DEFAULT
};

struct Device {
    left: u32,
    next: u32,
    mechanism: Mechanism,
}

impl Receiver for Device {
    fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
        let n = (self.left as usize).min(budget).min(batch.room()) as u32;
        let numbers = self.next..self.next + n;
        batch.extend(numbers.map(|n| Packet::from_bytes(&n.to_ne_bytes()).unwrap()));
        (self.left, self.next) = (self.left - n, self.next + n);
        self.left > 0
    }

    fn waiting(&mut self) -> usize {
        self.left as usize
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

impl Element for Device {
    fn receiver(&mut self) -> Option<&mut dyn Receiver> {
        Some(self)
    }

    fn mechanism(&self) -> Option<Mechanism> {
        Some(self.mechanism)
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Cx<'_>) -> Result<(), Error> {
        self.left += value.parse::<u32>().map_err(Error::caused_by)?;
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, _: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Device>() {
            (self.left, self.next) = (std::mem::take(&mut old.left), old.next);
        }
    }
}

/// Makes a packet with the number NUMBER when it is AT, TIMES times, and stops the driver.
pub static ALARM: Spec = Spec {
    name: "Alarm",
    ports: "0/1",
    processing: "h/h",
    build: |conf| {
        let (at_ns, number) = (conf.required("AT"), conf.required("NUMBER"));
        let left = conf.keyword("TIMES", 1);
        conf.finish()?;
        Ok(Box::new(Alarm { at_ns, number, left }))
    },
    ..Spec::DEFAULT
};

struct Alarm {
    at_ns: u64,
    number: u32,
    left: u32,
}

impl Element for Alarm {
    fn commit(&mut self, cx: &mut Cx<'_>) {
        cx.set_timer(0, self.at_ns);
    }

    fn timer(&mut self, _: u32, cx: &mut Cx<'_>) {
        cx.emit(0, Packet::from_bytes(&self.number.to_ne_bytes()).unwrap());
        self.left -= 1;
        match self.left {
            0 => cx.stop_driver(),
            _ => cx.set_timer(0, self.at_ns),
        }
    }
}

/// Pulls nothing.
pub static WAIT: Spec = Spec {
    name: "Wait",
    ports: "1/0",
    processing: "l/h",
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Nothing))
    },
    ..Spec::DEFAULT
};

fn build_failing(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.error("it never works");
    Err(Invalid)
}

/// How long a reader of the clock takes for a batch.
pub const READS_FOR: Duration = Duration::from_millis(2);

/// Reads the clock for a batch, and then takes some time.
pub static READER: Spec = Spec {
    name: "Reader",
    ports: "1/0-1",
    processing: "h/h",
    handlers: &[reads("time", "what the clock said last")],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Reader(0)))
    },
    ..Spec::DEFAULT
};

/// The same of a class whose elements write the time into packets.
pub static STAMPER: Spec = Spec { name: "Stamper", stamps: true, ..READER };

struct Reader(u64);

impl Element for Reader {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        self.0 = cx.now_ns();
        let begin = Instant::now();
        while begin.elapsed() < READS_FOR {
            std::hint::spin_loop();
        }
        if cx.n_outputs() == 0 {
            batch.clear();
        }
    }

    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.0.to_string())
    }
}

pub static FAILING: Spec = Spec { name: "Failing", ports: "0/0", build: build_failing, ..Spec::DEFAULT };

/// Calls its own handler whenever a packet passes, and the one that is written to it.
pub static BOUNCE: Spec = Spec {
    name: "Bounce",
    ports: "0-1/0-1",
    processing: "h/h",
    handlers: &[reads("bounces", "calls so far"), writes("bounce", "calls itself")],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Bounce { bounces: 0 }))
    },
    ..Spec::DEFAULT
};

struct Bounce {
    bounces: u64,
}

impl Element for Bounce {
    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.bounces.to_string())
    }

    fn write(&mut self, _: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.bounces += 1;
        if !value.is_empty() {
            cx.call_later(value, value);
        }
        Ok(())
    }

    fn push(&mut self, _: usize, _: &mut Batch, cx: &mut Cx<'_>) {
        cx.call_later(&format!("{}.bounce", cx.name()), "");
    }
}

/// Counts packets, and ends them.
pub static TALLY: Spec = Spec {
    name: "Tally",
    ports: "1/0",
    processing: "h/h",
    handlers: &[reads("tally", "packets that came to any of them in any graph")],
    build: |conf| {
        conf.finish()?;
        Ok(Box::new(Tally(conf.env.persistent("tally", AtomicU64::default).ok_or(Invalid)?)))
    },
    ..Spec::DEFAULT
};

struct Tally(Arc<AtomicU64>);

impl Element for Tally {
    fn push(&mut self, _: usize, batch: &mut Batch, _: &mut Cx<'_>) {
        self.0.fetch_add(batch.len() as u64, Relaxed);
        batch.clear();
    }

    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.0.load(Relaxed).to_string())
    }
}

/// Takes the state of its predecessor only when so many PACKETS more have come to a Tally.
pub static PATIENT: Spec = Spec {
    name: "Patient",
    ports: "0/0",
    handlers: &[reads("in_vain", "whether they did not come")],
    build: |conf| {
        let packets = conf.required("PACKETS");
        conf.finish()?;
        let tally = conf.env.persistent("tally", AtomicU64::default).ok_or(Invalid)?;
        let in_vain = conf.env.persistent("in vain", AtomicBool::default).ok_or(Invalid)?;
        Ok(Box::new(Patient { packets, tally, in_vain }))
    },
    ..Spec::DEFAULT
};

struct Patient {
    packets: u64,
    tally: Arc<AtomicU64>,
    in_vain: Arc<AtomicBool>,
}

impl Element for Patient {
    fn take_state(&mut self, _: &mut dyn Element, _: &mut Cx<'_>) {
        let (start, wanted) = (Instant::now(), self.tally.load(Relaxed) + self.packets);
        while self.tally.load(Relaxed) < wanted {
            if start.elapsed() > Duration::from_secs(4) {
                return self.in_vain.store(true, Relaxed);
            }
            std::thread::yield_now();
        }
    }

    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.in_vain.load(Relaxed).to_string())
    }
}

/// Counts the runs of its task. Its table is as long as it is asked for, and of each piece shows the runs before it.
pub static LONG: Spec = Spec {
    name: "Long",
    ports: "0/0",
    handlers: &[
        reads("table", "runs of its task, a word for each of PIECES"),
        writes("clear", "disposes of the table"),
        reads("dropped_by", "the threads that dropped tables"),
    ],
    build: |conf| {
        let pieces = conf.required("PIECES");
        conf.finish()?;
        Ok(Box::new(Long { pieces, runs: 0, dropped_by: Arc::default() }))
    },
    ..Spec::DEFAULT
};

struct Long {
    pieces: u32,
    runs: u64,
    dropped_by: Arc<Mutex<String>>,
}

/// Notes which thread drops it.
struct Noted(Arc<Mutex<String>>);

impl Drop for Noted {
    fn drop(&mut self) {
        let thread = std::thread::current();
        *self.0.lock().unwrap() += &format!("{} ", thread.name().unwrap_or("-"));
    }
}

impl Element for Long {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, _: &mut Cx<'_>) -> Run {
        self.runs += 1;
        Run::Worked
    }

    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.dropped_by.lock().unwrap().clone())
    }

    fn write(&mut self, _: &str, _: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.dispose_of(Noted(self.dropped_by.clone()));
        Ok(())
    }

    fn read_in_pieces(&self, handler: &str) -> Option<Box<dyn Pieces>> {
        if handler != "table" {
            return None;
        }
        let mut left = self.pieces;
        let copy = move |e: &mut Long, to: &mut Vec<u64>, _: &mut Cx<'_>| {
            to.push(e.runs);
            left -= 1;
            left > 0
        };
        let show = |runs: Vec<u64>| runs.iter().map(|n| format!("{n} ")).collect();
        Some(in_pieces(copy, show))
    }
}
