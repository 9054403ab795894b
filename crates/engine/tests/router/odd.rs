//! A device, and elements that fail, wait or call themselves.

use super::elements::Nothing;
use causeway_engine::reception::Mechanism;
use causeway_engine::spec::{reads, writes};
use causeway_engine::{Conf, Cx, Element, Invalid, Receiver, Spec};
use causeway_packet::{Batch, Packet};
use std::os::fd::BorrowedFd;

/// A device that has PACKETS numbered packets, one interrupt each, if there were any.
pub static DEVICE: Spec = Spec {
    name: "Device",
    ports: "0/1",
    processing: "h/h",
    build: |conf| {
        let left = conf.required("PACKETS");
        conf.finish()?;
        Ok(Box::new(Device { left, next: 1 }))
    },
    ..Spec::DEFAULT
};

struct Device {
    left: u32,
    next: u32,
}

impl Receiver for Device {
    fn arm(&mut self) {}
    fn disarm(&mut self) {}

    fn pending(&mut self) -> usize {
        self.left as usize
    }

    fn receive(&mut self, max: usize, batch: &mut Batch) {
        while self.left > 0 && batch.len() < max {
            let packet = Packet::from_bytes(&self.next.to_ne_bytes()).unwrap();
            batch.push(packet).unwrap_or_else(|_| panic!("there is room"));
            (self.left, self.next) = (self.left - 1, self.next + 1);
        }
    }

    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn mechanism(&self) -> Option<Mechanism> {
        Some(Mechanism::Interrupt)
    }
}

impl Element for Device {
    fn receiver(&mut self) -> Option<&mut dyn Receiver> {
        Some(self)
    }

    fn take_state(&mut self, old: &mut dyn Element, _: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<Device>() {
            (self.left, self.next) = (std::mem::take(&mut old.left), old.next);
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

/// Calls its own handler whenever that is called.
pub static BOUNCE: Spec = Spec {
    name: "Bounce",
    ports: "0/0",
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
    fn read(&mut self, _: &str, _: &str, _: &mut Cx<'_>) -> Result<String, String> {
        Ok(self.bounces.to_string())
    }

    fn write(&mut self, _: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), String> {
        self.bounces += 1;
        cx.call_later(value, value);
        Ok(())
    }
}
