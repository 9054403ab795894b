//! The ends of the benchmark's graph: a source that copies frames from a prepared trace, and a sink.

use causeway_engine::measure::Unit;
use causeway_engine::spec::{keyword, reads};
use causeway_engine::{Conf, Counter, Cx, Element, Error, Invalid, Run, Spec};
use causeway_packet::{BATCH, Batch, PacketType};
use std::sync::Arc;

/// Key of the [`Trace`] among the values that elements find.
pub const TRACE: &str = "bench trace";

/// The frames that sources copy, over and over: one behind the other, so that reading them costs little.
#[derive(Default)]
pub struct Trace {
    bytes: Vec<u8>,
    /// Where each frame ends.
    ends: Vec<usize>,
}

impl Trace {
    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of frame `i`, which is not beyond the last.
    #[inline]
    pub fn frame(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }
}

impl FromIterator<Vec<u8>> for Trace {
    fn from_iter<T: IntoIterator<Item = Vec<u8>>>(frames: T) -> Trace {
        let mut trace = Trace::default();
        for frame in frames {
            trace.bytes.extend(frame);
            trace.ends.push(trace.bytes.len());
        }
        trace
    }
}

/// Pushes copies of the trace's frames in fresh packets, as fast as there is room downstream.
pub static SOURCE: Spec = Spec {
    name: "TraceSource",
    category: "bench",
    ports: "0/1",
    processing: "h/h",
    args: &[keyword("BURST", "packets", "packets a turn")],
    handlers: &[reads("count", "packets made").counts(Unit::Packets)],
    build: source,
    ..Spec::DEFAULT
};

/// Pulls packets and recycles them.
pub static SINK: Spec = Spec {
    name: "PullSink",
    category: "bench",
    ports: "1/0",
    processing: "l/l",
    handlers: &[reads("count", "packets recycled").counts(Unit::Packets)],
    build: sink,
    ..Spec::DEFAULT
};

struct TraceSource {
    trace: Arc<Trace>,
    at: usize,
    burst: usize,
    count: Counter,
}

fn source(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    let burst = conf.keyword("BURST", 128u32);
    conf.finish()?;
    let trace = conf.env.persistent(TRACE, Trace::default).ok_or(Invalid)?;
    let count = conf.counter("count");
    Ok(Box::new(TraceSource { trace, at: 0, burst: (burst as usize).min(BATCH), count }))
}

impl Element for TraceSource {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let (trace, frames) = (&*self.trace, self.trace.len());
        if frames == 0 {
            return Run::Sleep;
        }
        let mut batch = cx.lend_batch();
        let at = &mut self.at;
        batch.extend_copies((0..self.burst).map(|_| {
            let frame = trace.frame(*at);
            *at = if *at + 1 == frames { 0 } else { *at + 1 };
            frame
        }));
        for packet in batch.iter_mut() {
            packet.set_mac_header(0);
            packet.set_packet_type(PacketType::Host);
        }
        self.count.add(batch.len() as u64);
        cx.emit_batch(0, batch);
        Run::Worked
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.count.get().to_string())
    }
}

struct PullSink {
    count: Counter,
}

fn sink(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
    conf.finish()?;
    Ok(Box::new(PullSink { count: conf.counter("count") }))
}

impl Element for PullSink {
    fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
        cx.wake();
        Ok(())
    }

    fn task(&mut self, cx: &mut Cx<'_>) -> Run {
        let mut batch: Box<Batch> = cx.lend_batch();
        cx.pull(0, BATCH, &mut batch);
        let n = batch.len();
        self.count.add(n as u64);
        batch.clear();
        cx.return_batch(batch);
        match n {
            0 if cx.packets_upstream(0) => Run::Idle,
            0 => Run::Sleep,
            _ => Run::Worked,
        }
    }

    fn read(&mut self, _handler: &str, _arg: &str, _cx: &mut Cx<'_>) -> Result<String, Error> {
        Ok(self.count.get().to_string())
    }
}
