//! What a program counts, as the counters of elements.

use causeway_engine::{Counter, Library, NoAnswer, Plan, Router};
use causeway_fastpath::{Compiled, Counters, Exit, Graph, Split, Table};

/// The counters of a program, and those of elements that go up with each.
pub struct Tallies {
    counters: Counters,
    /// How much of each is in the elements' counters.
    seen: Vec<u64>,
    elements: Vec<Vec<Counter>>,
}

/// What the counters belong to.
pub struct Of<'a> {
    pub router: &'a Router,
    pub library: &'a Library,
    pub plan: &'a Plan,
    pub split: &'a Split,
}

impl Of<'_> {
    fn named(&self, element: usize, name: &str) -> Option<Counter> {
        self.router.counter(&self.plan.elements[element].name, name)
    }

    /// The element that a node of the graph is.
    fn element(&self, node: usize) -> Option<usize> {
        match node.checked_sub(1) {
            None => Some(self.split.start),
            Some(node) => self.split.elements.get(node).copied(),
        }
    }

    /// What an element counts that packets are dropped by, for a reason of its class.
    fn dropped(&self, node: usize, reason: u16) -> Option<Counter> {
        let element = self.element(node)?;
        let spec = self.library.get(&self.plan.elements[element].class)?;
        let reason = spec.drops.get(usize::from(reason))?;
        self.named(element, &format!("drop.{}", reason.name))
    }

    /// The counters of packets that leave by an exit. Those that go up count when they come.
    fn exit(&self, exit: Exit) -> Vec<Counter> {
        let start = self.split.start;
        let own = match exit {
            Exit::Emit(device) => vec![
                self.named(device, "count"),
                // If it pulls from a queue.
                self.named(device, "in.0"),
            ],
            Exit::Drop(node, reason) => vec![self.dropped(node, reason)],
            Exit::Nowhere(node) => {
                vec![self.element(node).and_then(|element| self.named(element, "drop.unconnected"))]
            }
            Exit::Refused => vec![self.named(start, "drop.refused")],
            // The kernel's, counted with the port's other numbers.
            Exit::NoRoom | Exit::Up(_) | Exit::Doubted => return Vec::new(),
        };
        own.into_iter().chain([self.named(start, "count")]).flatten().collect()
    }
}

impl Tallies {
    /// Those of a program of `graph`.
    pub fn new(counters: Counters, graph: &Graph<Table<'_>>, compiled: &Compiled, of: &Of<'_>) -> Tallies {
        let mut elements = vec![Vec::new(); compiled.first_exit + compiled.exits.len()];
        for (number, node) in graph.nodes.iter().enumerate() {
            let own = node.program.iter().flat_map(|program| program.counters());
            for (at, counter) in (compiled.node_counters[number]..).zip(own) {
                elements[at].push(counter.clone());
            }
            let Some(element) = of.element(number) else { continue };
            for (output, at) in (0..node.outputs.len()).zip(compiled.edge_counters[number]..) {
                elements[at].extend(of.named(element, &format!("out.{output}")));
            }
        }
        for (at, &exit) in (compiled.first_exit..).zip(&compiled.exits) {
            elements[at].extend(of.exit(exit));
        }
        let seen = vec![0; elements.len()];
        Tallies { counters, seen, elements }
    }

    /// What the elements' counters are to be added of what the program has counted since the last time.
    pub fn take(&mut self) -> Vec<(Counter, u64)> {
        let mut sums = Vec::new();
        for (at, (seen, elements)) in self.seen.iter_mut().zip(&self.elements).enumerate() {
            let now = self.counters.get(at);
            let more = now.wrapping_sub(std::mem::replace(seen, now));
            sums.extend(elements.iter().filter(|_| more > 0).map(|counter| (counter.clone(), more)));
        }
        sums
    }
}

/// What elements have not counted yet, because nobody has asked their worker or it did not answer.
#[derive(Default)]
pub struct Owed(Vec<(Counter, u64)>);

impl Owed {
    /// They are to count this much more.
    pub fn owe(&mut self, more: Vec<(Counter, u64)>) {
        self.0.extend(more);
    }

    /// Has the elements count what they are owed.
    pub fn settle(&mut self, router: &Router) -> Result<(), NoAnswer> {
        if self.0.is_empty() {
            return Ok(());
        }
        router.add(std::mem::take(&mut self.0)).map_err(|left| {
            self.0 = left.sums;
            left.why
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{self, Source, Style};
    use causeway_engine::{Conf, Cx, Element, Error, Invalid, Options, Spec};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    static STICKING: AtomicBool = AtomicBool::new(true);
    static IS_STUCK: AtomicBool = AtomicBool::new(false);

    /// Keeps its worker for as long as it is told.
    static STICKS: Spec = Spec { name: "Sticks", ports: "0/0", build, ..Spec::DEFAULT };

    struct Sticks;

    fn build(conf: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
        conf.counter("count");
        Ok(Box::new(Sticks))
    }

    impl Element for Sticks {
        fn initialize(&mut self, cx: &mut Cx<'_>) -> Result<(), Error> {
            cx.set_timer(0, 0);
            Ok(())
        }

        fn timer(&mut self, _: u32, _: &mut Cx<'_>) {
            while STICKING.load(Ordering::Relaxed) {
                IS_STUCK.store(true, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    #[test]
    fn what_a_worker_was_not_told_while_it_was_stuck_is_counted_once() {
        let library = Library::new([&STICKS]);
        let source = Source::Text("test", "s :: Sticks;".to_owned());
        let loaded = load::load(&source, &library, &[], Style::Click).unwrap_or_else(|e| panic!("{e}"));
        let router = Router::start(library, loaded.plan, Options::default()).unwrap();
        let counter = router.counter("s", "count").expect("a counter");
        router.resume();
        while !IS_STUCK.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let mut owed = Owed::default();
        owed.owe(vec![(counter.clone(), 5)]);
        assert_eq!(owed.settle(&router), Err(NoAnswer(0)));
        STICKING.store(false, Ordering::Relaxed);
        // It finds what it was asked for first.
        owed.owe(vec![(counter.clone(), 2)]);
        owed.settle(&router).expect("an answer");
        assert_eq!(counter.get(), 7);
        owed.settle(&router).expect("nothing to ask for");
        assert_eq!(counter.get(), 7);
        router.close().expect("an end");
    }
}
