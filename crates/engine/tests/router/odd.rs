//! A device, and elements that fail, wait or call themselves.

use super::elements::Nothing;
use causeway_engine::reception::Mechanism;
use causeway_engine::spec::{reads, writes};
use causeway_engine::{Conf, Cx, Element, Error, Invalid, Spec};
use causeway_packet::{Batch, Packet, Receiver};
use std::os::fd::BorrowedFd;

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
