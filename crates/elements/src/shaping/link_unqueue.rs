//! LinkUnqueue.

use causeway_engine::prelude::*;
use causeway_engine::value::{BytesPerSecond, Nanoseconds};
use causeway_packet::BATCH;
use std::collections::VecDeque;

pub(crate) static SPEC: Spec = Spec {
    name: "LinkUnqueue",
    category: "shaping",
    summary: "pulls packets and delays them as a link does",
    ports: "1/1",
    processing: "l/h",
    doc: "Stands for a serial link of BANDWIDTH and LATENCY. A packet takes as long to be sent as its length and the \
          EXTRA_LENGTH annotation say, behind those before it, and leaves LATENCY after it was sent, with that time as \
          its timestamp. It pulls when the link is free, and sleeps while a notifier upstream says that there is nothing; \
          a Queue in front of it is the link's queue.",
    args: Link::ARGS,
    handlers: handlers!(
        Link::HANDLERS,
        &[
            reads("size", "packets on the link").measures(Unit::Packets),
            writes("reset", "drops the packets on the link"),
        ],
        TASK,
    ),
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> Queue -> LinkUnqueue(10ms, 1Mbps) -> Discard;",
    see: &["DelayUnqueue", "Queue", "BandwidthRatedUnqueue"],
    copies: Copies::One,
    stores: true,
    build,
    ..Spec::DEFAULT
};

settings! {
    struct Link {
        latency: Nanoseconds = required("LATENCY", "seconds", "how long a packet is under way"),
            live("latency", "how long a packet is under way; writing it drops the packets on the link");
        bandwidth: Bandwidth = required("BANDWIDTH", "bandwidth", "at which packets are sent, 100 bytes a second or more"),
            live("bandwidth", "bytes a second; writing it drops the packets on the link");
    }
}

drop_reasons! {
    enum Reason for SPEC {
        Reset = "reset", "written to `reset`, `latency` or `bandwidth`";
    }
}

/// Hundreds of bytes a second, one or more.
struct Bandwidth(u64);

impl causeway_engine::value::Value for Bandwidth {
    fn parse(text: &str, scope: &causeway_engine::Scope<'_>) -> Result<Self, Error> {
        match BytesPerSecond::parse(text, scope)?.0 / 100 {
            0 => Err(Error::new("bandwidth too small, minimum 100Bps")),
            hundreds => Ok(Bandwidth(hundreds)),
        }
    }

    fn placeholder() -> Self {
        Bandwidth(1)
    }
}

impl std::fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (self.0 * 100).fmt(f)
    }
}

/// Packets for which there is room from the start; a link with more grows when it must.
const READY: usize = 1 << 12;
/// The only timer: a packet arrives, or the link is free.
const DUE: u32 = 0;

struct LinkUnqueue {
    link: Link,
    /// Packets under way, whose timestamps are when they arrive.
    packets: VecDeque<Packet>,
    /// Whether there was a packet whenever the link was free.
    busy: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let link = Link::configure(conf);
    conf.finish()?;
    let packets = VecDeque::with_capacity(READY);
    Ok(Box::new(LinkUnqueue { link, packets, busy: false }))
}

impl LinkUnqueue {
    /// How long it takes to send `packet`, in whole microseconds.
    fn sending_ns(&self, packet: &Packet) -> u64 {
        let bytes = packet.len() as u64 + u64::from(packet.anno_u32(Anno::EXTRA_LENGTH.offset));
        bytes * 10_000 / self.link.bandwidth.0 * 1_000
    }

    /// When the last packet arrives that is under way.
    fn last_ns(&self) -> Option<u64> {
        self.packets.back().map(Packet::timestamp_ns)
    }

    /// Sends packets while the link is free, a batch of them at most: on a link so fast that they take no time there is no other
    /// end. Says how many.
    fn send(&mut self, now_ns: u64, cx: &mut Cx<'_>) -> usize {
        let (arrival_ns, mut sent) = (now_ns.saturating_add(self.link.latency.0), 0);
        let mut batch = cx.lend_batch();
        while sent < BATCH && self.last_ns().is_none_or(|last_ns| last_ns <= arrival_ns) {
            cx.pull(0, 1, &mut batch);
            let Some(mut packet) = batch.pop() else {
                self.busy = false;
                break;
            };
            let behind_ns = self.last_ns().filter(|_| self.busy).unwrap_or(arrival_ns);
            packet.set_timestamp_ns(behind_ns.saturating_add(self.sending_ns(&packet)));
            self.packets.push_back(packet);
            (self.busy, sent) = (true, sent + 1);
        }
        cx.return_batch(batch);
        sent
    }
}

impl Element for LinkUnqueue {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let now_ns = cx.now_ns();
        let mut worked = self.send(now_ns, cx) > 0;
        while self.packets.front().is_some_and(|packet| packet.timestamp_ns() <= now_ns)
            && let Some(packet) = self.packets.pop_front()
        {
            cx.emit(0, packet);
            worked = true;
        }
        let upstream = cx.packets_upstream(0);
        let Some(first) = self.packets.front() else {
            return match (upstream, worked) {
                (false, _) => Run::Sleep,
                (true, false) => Run::Idle,
                (true, true) => Run::Worked,
            };
        };
        let free_ns = self.last_ns().map(|last_ns| last_ns.saturating_sub(self.link.latency.0));
        let next_ns = free_ns.filter(|_| upstream).into_iter().fold(first.timestamp_ns(), u64::min);
        // The link may be free, and nobody say whether there is a packet for it.
        cx.set_timer(DUE, if next_ns > now_ns { next_ns } else { first.timestamp_ns() });
        match (next_ns > now_ns, worked) {
            (true, _) => Run::Sleep,
            (false, true) => Run::Worked,
            (false, false) => Run::Idle,
        }
    }

    fn settings(&mut self) -> Option<&mut dyn Settings> {
        Some(&mut self.link)
    }

    fn settings_changed(&mut self, cx: &mut Cx<'_>) {
        cx.count_drops(Reason::Reset, self.packets.len() as u64);
        self.packets.clear();
        cx.clear_timer(DUE);
        cx.wake();
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.packets.len().to_string())
    }

    fn write(&mut self, _handler: &str, _value: &str, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.settings_changed(cx);
        Ok(())
    }

    fn take_state(&mut self, old: &mut dyn Element, cx: &mut Cx<'_>) {
        if let Some(old) = old.downcast_mut::<LinkUnqueue>() {
            self.packets.append(&mut old.packets);
            cx.wake();
        }
    }

    fn held(&self) -> usize {
        self.packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    fn link(config: &str) -> Result<Harness, Vec<String>> {
        let ports = Ports { pulled_inputs: vec![true], outputs: vec![Output::Pushed] };
        Harness::with_ports(&SPEC, config, &ports)
    }

    /// Lets milliseconds pass; says at which of them packets came.
    fn arrivals(h: &mut Harness, ms: u64) -> Vec<u64> {
        let mut came = Vec::new();
        for at in 0..ms {
            while !matches!(h.run_task(), None | Some(Run::Idle)) {}
            came.extend(h.take(0).iter().map(|_| at));
            h.assert_balanced();
            h.advance(1_000_000);
        }
        came
    }

    #[test]
    fn packets_take_the_time_of_their_bytes_and_of_the_way() {
        // 100 bytes take 10 ms at 10 000 bytes a second.
        let mut h = link("50ms, 10kBps").unwrap();
        (0..3).for_each(|_| h.feed(0, packet(&[0; 100])));
        let came = arrivals(&mut h, 100);
        assert!(
            came.len() == 3 && came.iter().zip([60, 70, 80]).all(|(a, b)| a.abs_diff(b) <= 1),
            "{came:?}"
        );
        let mut long = packet(&[0; 100]);
        long.set_anno_u32(Anno::EXTRA_LENGTH.offset, 100);
        h.feed(0, long);
        let came = arrivals(&mut h, 100);
        assert!(came.len() == 1 && came[0].abs_diff(70) <= 1, "{came:?}");
    }

    #[test]
    fn a_reset_drops_what_is_under_way() {
        let mut h = link("1, 1Mbps").unwrap();
        (0..3).for_each(|_| h.feed(0, packet(&[0; 100])));
        arrivals(&mut h, 5);
        assert_eq!(h.read("size").unwrap(), "3");
        for (handler, value, read) in
            [("reset", "", "0"), ("bandwidth", "2Mbps", "250000"), ("latency", "2", "2.000000s")]
        {
            h.write(handler, value).unwrap();
            let shown = if handler == "reset" { "size" } else { handler };
            assert_eq!(h.read(shown).unwrap(), read);
        }
        assert_eq!((h.held(), h.drops()), (0, vec![("reset", 3)]));
        assert!(link("1, 99").is_err() && h.write("bandwidth", "99").is_err());
    }

    #[test]
    fn packets_that_take_no_time_are_sent_a_batch_at_a_time() {
        let mut h = link("1s, 100GBps").unwrap();
        (0..600).for_each(|_| h.feed(0, packet(b"x")));
        let held = [(); 4].map(|()| {
            h.run_task();
            h.held()
        });
        assert_eq!(held, [256, 512, 600, 600]);
        h.advance(1_000_000_000);
        h.run_task();
        assert_eq!(h.take(0).len(), 600);
        h.assert_balanced();
    }

    #[test]
    fn on_a_link_that_was_idle_a_packet_is_sent_when_it_comes() {
        // A packet takes 20 ms to be sent; the second comes 25 ms after the first, while that is still under way.
        let mut h = link("100ms, 5kBps").unwrap();
        h.feed(0, packet(&[0; 100]));
        let first = arrivals(&mut h, 25);
        h.feed(0, packet(&[0; 100]));
        let came = arrivals(&mut h, 150);
        assert!(first.is_empty() && came.len() == 2, "{came:?}");
        assert!(came[0].abs_diff(95) <= 1 && came[1].abs_diff(120) <= 1, "{came:?}");
    }
}
