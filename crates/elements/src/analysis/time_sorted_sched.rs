//! TimeSortedSched.

use causeway_engine::prelude::*;
use causeway_engine::value::AtLeast;

pub(crate) static SPEC: Spec = Spec {
    name: "TimeSortedSched",
    category: "analysis",
    summary: "merges streams of packets by timestamp",
    ports: "-/1",
    processing: "l/l",
    doc: "Gives the earliest packet of those that its inputs have, which must come in the order of their timestamps. It looks ahead by BUFFER packets of each input, so that with \
          more than one a little disorder is mended. With STOP the router stops when no input has packets, nor will soon.",
    args: &[
        keyword("STOP", "boolean", "whether to stop the router at the end; default false"),
        keyword("BUFFER", "packets", "packets of each input that are held; default 1"),
    ],
    handlers: &[reads("well_ordered", "whether all packets have left in order")],
    example: "s :: TimeSortedSched; InfiniteSource(LIMIT 5) -> Queue -> [0]s; InfiniteSource(LIMIT 5) -> Queue -> [1]s; s -> Unqueue -> Discard;",
    see: &["FromDump", "TimeFilter"],
    copies: Copies::One,
    build,
    ..Spec::DEFAULT
};

struct TimeSortedSched {
    stop: bool,
    buffer: usize,
    /// Packets held, with the input that each came by, in the order of their coming.
    held: Vec<(usize, Packet)>,
    /// Inputs that have room, in the order in which they are asked, from the last one on.
    ready: Vec<usize>,
    /// Room of each input.
    room: Vec<usize>,
    last_ns: u64,
    well_ordered: bool,
    stopped: bool,
}

fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let stop = conf.keyword("STOP", false);
    let AtLeast::<1>(buffer) = conf.keyword("BUFFER", AtLeast::<1>(1));
    conf.finish()?;
    let (inputs, buffer) = (conf.n_inputs(), buffer as usize);
    Ok(Box::new(TimeSortedSched {
        stop,
        buffer,
        held: Vec::with_capacity(inputs * buffer.min(4_096)),
        ready: (0..inputs).collect(),
        room: vec![buffer; inputs],
        last_ns: 0,
        well_ordered: true,
        stopped: false,
    }))
}

impl TimeSortedSched {
    /// Takes what the inputs have and there is room for.
    fn fill(&mut self, cx: &mut Cx<'_>) {
        let mut batch = cx.lend_batch();
        for at in (0..self.ready.len()).rev() {
            let input = self.ready[at];
            if !cx.packets_upstream(input) {
                continue;
            }
            while self.room[input] > 0 {
                cx.pull(input, 1, &mut batch);
                let Some(packet) = batch.drain().next() else { break };
                self.held.push((input, packet));
                self.room[input] -= 1;
            }
            if self.room[input] == 0 {
                self.ready.swap_remove(at);
            }
        }
        cx.return_batch(batch);
    }

    /// The earliest packet; of several the first that came.
    fn earliest(&mut self) -> Option<Packet> {
        let at = (0..self.held.len()).min_by_key(|&i| self.held[i].1.timestamp_ns())?;
        let (input, packet) = self.held.remove(at);
        self.room[input] += 1;
        if self.room[input] == 1 || self.buffer == 1 {
            self.ready.push(input);
        }
        let ns = packet.timestamp_ns();
        if ns > 0 {
            self.well_ordered &= ns >= self.last_ns;
            self.last_ns = ns;
        }
        Some(packet)
    }
}

impl Element for TimeSortedSched {
    fn pull(&mut self, _port: usize, max: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
        while batch.len() < max {
            self.fill(cx);
            match self.earliest() {
                Some(packet) => {
                    // There is room for `max`.
                    let _ = batch.push(packet);
                }
                None => {
                    let more = (0..self.room.len()).any(|input| cx.packets_upstream(input));
                    if self.stop && !more && !std::mem::replace(&mut self.stopped, true) {
                        cx.stop_driver();
                    }
                    return;
                }
            }
        }
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.well_ordered.to_string())
    }

    fn held(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::harness::{Harness, Output, Ports, packet};

    fn sorted(config: &str, inputs: [&[u64]; 2]) -> (Vec<u64>, Harness) {
        let ports = Ports { pulled_inputs: vec![true, true], outputs: vec![Output::Pulled] };
        let mut h = Harness::with_ports(&SPEC, config, &ports).unwrap();
        for (i, times) in inputs.iter().enumerate() {
            for ns in *times {
                let mut p = packet(b"x");
                p.set_timestamp_ns(*ns);
                h.feed(i, p);
            }
        }
        let mut all = Vec::new();
        loop {
            let out = h.pull(0, 3);
            if out.is_empty() {
                return (all, h);
            }
            all.extend(out.iter().map(|p| p.timestamp_ns()));
        }
    }

    #[test]
    fn streams_are_merged() {
        let (all, mut h) = sorted("", [&[1, 4, 5], &[2, 3, 9]]);
        assert_eq!((all, h.read("well_ordered").unwrap()), (vec![1, 2, 3, 4, 5, 9], "true".into()));
        h.assert_balanced();
        let (all, mut h) = sorted("", [&[1, 5, 4], &[]]);
        assert_eq!((all, h.read("well_ordered").unwrap()), (vec![1, 5, 4], "false".into()));
        let (all, mut h) = sorted("BUFFER 2", [&[1, 5, 4], &[2]]);
        assert_eq!((all, h.read("well_ordered").unwrap()), (vec![1, 2, 4, 5], "true".into()));
    }
}
