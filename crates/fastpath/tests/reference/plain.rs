//! The elements themselves, one after the other, on frames that their programs were run on too.

use crate::elements::Part;
use crate::twin::{Look, Twin, equal, look, packet_type};
use causeway_engine::Spec;
use causeway_engine::harness::{Harness, Output, Ports};
use causeway_engine::ir::Program;
use causeway_fastpath::{Exit, Hook, Place, Target};
use causeway_packet::Packet;

/// An element, and where its outputs lead.
struct Node {
    class: &'static Spec,
    element: Harness,
    outputs: Vec<Option<Target>>,
    /// Packets dropped, by the reason's place; behind the reasons, those that left by an output that leads nowhere.
    dropped: Vec<u64>,
}

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// It left by a port, or to an element that is in no driver.
    Left(String, Look),
    /// The element of this number dropped it, for this reason; nameless if its output leads nowhere.
    Dropped(usize, &'static str),
    /// It came to the element of this number, which was not to have it.
    Came(usize, Look),
}

/// A graph of elements on the bench.
pub struct Elements(Vec<Node>);

impl Elements {
    /// These elements, the first of which gets the frames.
    pub fn new(parts: &[Part]) -> Elements {
        let library = causeway_elements::library();
        let node = |(class, config, outputs): &Part| {
            let spec = library.get(class).expect("a class");
            let used = outputs.iter().map(|to| if to.is_some() { Output::Pushed } else { Output::Open });
            let ports = Ports { pulled_inputs: vec![false], outputs: used.collect() };
            let element = Harness::with_ports(spec, config, &ports);
            let element = element.unwrap_or_else(|why| panic!("{class}: {why:?}"));
            let dropped = vec![0; spec.drops.len() + 1];
            Node { class: spec, element, outputs: outputs.clone(), dropped }
        };
        Elements(parts.iter().map(node).collect())
    }

    /// The program of an element.
    pub fn lower(&self, at: usize) -> Option<Program> {
        self.0[at].element.lower()
    }

    /// What becomes of a frame that came in by the first element, if the element `stop` has none.
    pub fn run(&mut self, frame: &[u8], hook: Hook, stop: Option<usize>) -> Vec<End> {
        let mut packet = Packet::from_bytes(frame).expect("a packet");
        packet.set_packet_type(packet_type(frame, hook));
        let headroom = packet.headroom();
        let (mut ends, mut on_the_way) = (Vec::new(), vec![(0, packet)]);
        while let Some((at, packet)) = on_the_way.pop() {
            if stop == Some(at) {
                ends.push(End::Came(at, look(&packet, headroom)));
                continue;
            }
            let node = &mut self.0[at];
            node.element.push(0, packet);
            ends.extend(node.reasons().into_iter().map(|reason| End::Dropped(at, reason)));
            for output in 0..node.outputs.len() {
                for packet in node.element.take(output) {
                    match node.outputs[output] {
                        Some(Target::Node(next)) => on_the_way.push((next, packet)),
                        target => ends.push(End::Left(place(target), look(&packet, headroom))),
                    }
                }
            }
        }
        ends
    }

    /// Whether the elements do with a frame what their programs did with it: the way out, the packet, the reason, the counters.
    pub fn compare(&mut self, frame: &[u8], hook: Hook, twin: &mut Twin<'_>) -> Result<(), String> {
        let made = twin.made.take().ok_or("it was not compared")?;
        let headroom = Packet::from_bytes(frame).ok_or("no packet")?.headroom();
        let seen = || look(&made.packet, headroom);
        // What a program gives up it hands to its element as it came there.
        let (stop, expected) = match made.exit {
            Exit::Up(Place::Node(at)) => (Some(at), End::Came(at, seen())),
            Exit::Emit(port) => (None, End::Left(place(Some(Target::Emit(port))), seen())),
            Exit::Up(Place::Element(element, input)) => {
                (None, End::Left(place(Some(Target::Up(element, input))), seen()))
            }
            Exit::Drop(at, reason) => {
                let reason = self.0[at].class.drops.get(usize::from(reason)).ok_or("no such reason")?;
                (None, End::Dropped(at, reason.name))
            }
            Exit::Nowhere(at) => (None, End::Dropped(at, "")),
            exit => return Err(format!("{exit:?} is no end of a program")),
        };
        equal(&self.run(frame, hook, stop), &vec![expected], "what the elements do")?;
        equal(&twin.counted_by_elements(), &made.counted, "what the elements count")
    }

    /// The drop reasons of an element, as its handler says them.
    pub fn drop_reasons(&mut self, at: usize) -> String {
        self.0[at].element.read("drop_reasons").expect("reasons")
    }
}

impl Node {
    /// The reasons of the drops since the last call.
    fn reasons(&mut self) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        for (name, n) in self.element.drops() {
            let at = self.class.drops.iter().position(|drop| drop.name == name);
            let before = &mut self.dropped[at.unwrap_or(self.class.drops.len())];
            let name = if at.is_some() { name } else { "" };
            reasons.extend((*before..n).map(|_| name));
            *before = n;
        }
        reasons
    }
}

/// The name of a place outside of the graph.
pub fn place(target: Option<Target>) -> String {
    match target {
        Some(Target::Emit(port)) => format!("port{port}"),
        Some(Target::Up(element, input)) => format!("up{element}x{input}"),
        Some(Target::Node(_)) | None => "nowhere".to_owned(),
    }
}
