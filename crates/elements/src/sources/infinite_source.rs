//! InfiniteSource and RandomSource.

use super::generator::{self, Generator};
use crate::handlers::task;
use causeway_engine::prelude::*;
use causeway_engine::spec::Notifies;
use causeway_engine::value::Bytes;

pub(crate) static SPEC: Spec = Spec {
    name: "InfiniteSource",
    category: "sources",
    summary: "makes packets as fast as they are taken",
    ports: "0/1",
    processing: "a/a",
    doc: "Makes packets that contain DATA. When it pushes, it makes BURST of them each time it is scheduled, and \
          sleeps while a Queue downstream is full. When it is pulled, it gives as many as it is asked for. After \
          LIMIT packets it ends; with STOP, it then stops the router, the next time that its turn comes. While no \
          frame is free it waits.",
    args: &[
        generator::DATA_ARG,
        generator::LIMIT_ARG,
        optional("BURST", "packets", "packets a turn; above 256 means 256; default 1"),
        generator::ACTIVE_ARG,
        generator::LENGTH_ARG,
        generator::DATASIZE_ARG,
        generator::HEADROOM_ARG,
        generator::STOP_ARG,
        generator::END_CALL_ARG,
        keyword("TIMESTAMP", "boolean", "whether packets get a timestamp; default true"),
    ],
    handlers: handlers!(
        &[
            generator::COUNT,
            generator::RESET,
            generator::DATA_HANDLER,
            generator::LENGTH,
            generator::DATASIZE,
            generator::LIMIT,
            reads_writes("burst", "packets a turn"),
            reads_writes("burstsize", "the same as `burst`").sets("BURST"),
            CONFIG,
            generator::ACTIVE,
        ],
        TASK,
    ),
    example: "InfiniteSource(DATA \"\\<0800>\", LIMIT 100, BURST 10, STOP true) -> Queue -> Discard;",
    see: &["RatedSource", "TimedSource"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

pub(crate) static RANDOM: Spec = Spec {
    name: "RandomSource",
    category: "sources",
    summary: "makes packets of random bytes as fast as they are taken",
    ports: "0/1",
    processing: "a/a",
    doc: "As InfiniteSource, but each packet is of LENGTH bytes that are chosen at random.",
    args: &[
        required("LENGTH", "bytes", "length of the packets"),
        generator::LIMIT_ARG,
        optional("BURST", "packets", "packets a turn; above 256 means 256; default 1"),
        generator::ACTIVE_ARG,
        keyword("TIMESTAMP", "boolean", "whether packets get a timestamp; default true"),
        generator::STOP_ARG,
        generator::END_CALL_ARG,
    ],
    handlers: handlers!(
        &[
            generator::COUNT,
            generator::RESET,
            generator::LENGTH,
            generator::LIMIT,
            reads_writes("burst", "packets a turn"),
            generator::ACTIVE,
        ],
        TASK,
    ),
    example: "RandomSource(64, LIMIT 100, STOP true) -> Queue -> Discard;",
    see: &["InfiniteSource", "RandomBitErrors"],
    notifies: Notifies { packets: true, room: false },
    copies: Copies::One,
    build: build_random,
    ..Spec::DEFAULT
};

struct InfiniteSource {
    packets: Generator,
    burst: u32,
    /// Whether the bytes of packets are chosen at random.
    random: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let data = conf.optional("DATA", Bytes(generator::DATA.to_vec()));
    let limit = conf.optional("LIMIT", -1);
    let burst = burst(conf);
    let active = conf.optional("ACTIVE", true);
    let mut packets = Generator::configured(conf, data, limit, active);
    packets.set_stamp(conf.keyword("TIMESTAMP", true));
    conf.finish()?;
    Ok(Box::new(InfiniteSource { packets, burst, random: false }))
}

fn build_random(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let length = conf.required::<i32>("LENGTH");
    if !(0..64 * 1024).contains(&length) {
        conf.error(format!("bad length {length}"));
    }
    let limit = conf.optional("LIMIT", -1);
    let burst = burst(conf);
    let active = conf.optional("ACTIVE", true);
    let mut packets = Generator::sized(conf, length, limit, active);
    packets.set_stamp(conf.keyword("TIMESTAMP", true));
    conf.finish()?;
    Ok(Box::new(InfiniteSource { packets, burst, random: true }))
}

/// BURST, which is at least 1.
fn burst(conf: &mut Conf<'_>) -> u32 {
    let burst = conf.optional("BURST", 1i32);
    if burst < 1 {
        conf.error("burst size must be >= 1");
    }
    burst.max(1) as u32
}

impl InfiniteSource {
    /// Appends at most `max` packets to `batch`; returns how many.
    fn fill(&mut self, max: u64, batch: &mut Batch, cx: &mut Cx<'_>) -> usize {
        let made = self.packets.fill(max, batch, cx);
        if self.random {
            let first = batch.len() - made;
            batch.iter_mut().skip(first).for_each(|packet| cx.rng().fill(packet.data_mut()));
        }
        made
    }
}

impl Element for InfiniteSource {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.packets.check(cx)?;
        task::start(self.packets.active, cx);
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        if !self.packets.active || !cx.room_downstream(0) {
            return Run::Sleep;
        }
        if self.packets.left() == 0 {
            self.packets.end(cx);
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        let made = self.fill(self.burst.into(), &mut batch, cx);
        cx.emit_batch(0, batch);
        if made > 0 { Run::Worked } else { Run::Idle }
    }

    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        if !self.packets.active {
            return;
        }
        if self.packets.left() == 0 {
            cx.notify_packets(false);
            self.packets.end(cx);
            return;
        }
        self.fill(max as u64, batch, cx);
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.packets)
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        task::start(self.packets.active, cx);
    }

    fn take_settings(&mut self, new: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(new) = new.downcast_mut::<InfiniteSource>() {
            self.packets.take(&mut new.packets);
            self.burst = new.burst;
            self.settings_changed(cx);
        }
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.burst.to_string())
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.burst = cx.value::<u32>(handler, value)?.max(1);
        self.settings_changed(cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports};

    fn run(h: &mut Harness) -> Vec<Vec<u8>> {
        while h.run_task().is_some() {}
        h.take(0).iter().map(|p| p.data().to_vec()).collect()
    }

    #[test]
    fn makes_its_limit_and_stops_the_router_a_turn_later() {
        let mut h = Harness::new(&SPEC, "DATA \"\\<08 00>\", LIMIT 5, BURST 3, STOP true", 0, 1).unwrap();
        assert_eq!((h.run_task(), h.take(0).len()), (Some(Run::Worked), 3));
        assert_eq!((h.run_task(), h.take(0).len(), h.stopped()), (Some(Run::Worked), 2, false));
        assert_eq!((h.run_task(), h.stopped()), (Some(Run::Sleep), true));
        assert_eq!(h.read("count").unwrap(), "5");
        h.write("reset", "").unwrap();
        assert_eq!(run(&mut h), vec![vec![8, 0]; 5]);
    }

    #[test]
    fn packets_have_the_length_that_is_asked_for() {
        assert_eq!(generator::DATA.len(), 69);
        for (config, bytes) in [
            ("LIMIT 1", generator::DATA),
            ("abc, 1, LENGTH 8", b"abcabcab"),
            ("abc, 1, LENGTH 2", b"ab"),
            ("\"\", 1, DATASIZE 3", b"\0\0\0"),
        ] {
            let mut h = Harness::new(&SPEC, config, 0, 1).unwrap();
            assert_eq!(run(&mut h), [bytes], "{config}");
        }
        let errors = Harness::new(&SPEC, "LENGTH 5000, HEADROOM 48", 0, 1).err().unwrap();
        assert_eq!(errors, ["LENGTH: 5000 bytes, but a frame has room for 2000"]);
    }

    #[test]
    fn handlers_change_what_comes() {
        let mut h = Harness::new(&SPEC, "abc, 1, ACTIVE false", 0, 1).unwrap();
        assert!(run(&mut h).is_empty());
        h.write("data", "x y").unwrap();
        h.write("limit", "2").unwrap();
        h.write("length", "4").unwrap();
        h.write("active", "true").unwrap();
        assert_eq!(run(&mut h), [b"x yx", b"x yx"]);
        assert!(h.write("length", "100000").is_err());
        assert_eq!((h.read("length").unwrap(), h.read("data").unwrap()), ("4".into(), "x y".into()));
        h.write("burst", "7").unwrap();
        assert_eq!(h.read("burst").unwrap(), "7");
    }

    #[test]
    fn timestamps_are_the_clock_s_or_none() {
        for (config, stamped) in [("LIMIT 1", true), ("LIMIT 1, TIMESTAMP false", false)] {
            let mut h = Harness::new(&SPEC, config, 0, 1).unwrap();
            h.run_task();
            assert_eq!(h.take(0)[0].timestamp_ns() > 0, stamped, "{config}");
        }
    }

    #[test]
    fn gives_what_is_pulled() {
        let ports = Ports { pulled_inputs: vec![], outputs: vec![Output::Pulled] };
        let mut h = Harness::with_ports(&SPEC, "LIMIT 5, STOP true", &ports).unwrap();
        assert_eq!((h.pull(0, 3).len(), h.pull(0, 3).len(), h.stopped()), (3, 2, false));
        assert_eq!((h.pull(0, 3).len(), h.stopped(), h.run_task()), (0, true, None));
    }

    #[test]
    fn random_packets_have_their_length_and_nothing_else_in_common() {
        let mut h = Harness::new(&RANDOM, "32, 5, 2, STOP true", 0, 1).unwrap();
        let out = run(&mut h);
        assert_eq!((out.len(), h.stopped()), (5, true));
        assert!(out.iter().all(|p| p.len() == 32) && out.windows(2).all(|p| p[0] != p[1]));
        let error = |config: &str| Harness::new(&RANDOM, config, 0, 1).err().unwrap().concat();
        assert_eq!(
            (error("-1"), error("9, 1, 0")),
            ("bad length -1".into(), "burst size must be >= 1".into())
        );
    }
}
