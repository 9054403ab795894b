//! Which part of a graph is in the driver: the same for who runs it there, who explains it and who draws it.

use causeway_engine::ir::Program;
use causeway_engine::spec::Lowers;
use causeway_engine::{End, Library, Options, Plan, Router};
use causeway_fastpath::{Known, Split, split};
use std::collections::BTreeSet;

/// Classes whose packets come from an interface.
const SOURCES: [&str; 2] = ["FromDevice", "PollDevice"];
/// Classes of routing tables are of this subject; what their handler `table` says is copied to the driver. Others say
/// themselves what is in their tables.
const TABLES: &str = "iproute";

/// A graph, and what its elements say they do.
pub struct Part<'a> {
    library: &'a Library,
    plan: &'a Plan,
    programs: Vec<Option<Program>>,
}

impl<'a> Part<'a> {
    /// Of a configuration that does not run; nothing is in the driver of one that cannot be configured.
    pub fn of(library: &'a Library, plan: &'a Plan) -> Part<'a> {
        let programs = Router::lowered(library, plan, &Options::default()).unwrap_or_default();
        Part { library, plan, programs }
    }

    /// As running elements say.
    pub fn with(library: &'a Library, plan: &'a Plan, programs: Vec<Option<Program>>) -> Part<'a> {
        Part { library, plan, programs }
    }

    /// The elements that packets come in by, and whether the driver can do what they do.
    pub fn starts(&self) -> impl Iterator<Item = (usize, bool)> + '_ {
        let sources = (0..self.plan.elements.len()).filter(|&i| SOURCES.contains(&self.class(i)));
        sources.map(|i| (i, self.program(i).is_some()))
    }

    fn class(&self, element: usize) -> &str {
        &self.plan.elements[element].class
    }

    /// Whether it is a routing table.
    pub fn is_table(&self, element: usize) -> bool {
        self.library.get(self.class(element)).is_some_and(|spec| spec.category == TABLES)
    }

    /// Whether the driver can have a copy of what an element looks up in.
    pub fn has_tables(&self, element: usize) -> bool {
        let all_few = |program: &Program| program.tables().iter().all(|table| table.entries(0).is_some());
        self.is_table(element) || self.program(element).is_some_and(all_few)
    }

    /// The ToDevice by which packets leave at once that are pushed to an element: itself, or what alone pulls from a queue,
    /// which the driver needs none of. Several would share its packets.
    pub fn device(&self, element: usize) -> Option<usize> {
        let device = match self.class(element) {
            "Queue" => {
                let mut pulling = self.plan.edges.iter().filter(|&&(from, _)| from == (element, 0));
                pulling.next().filter(|_| pulling.next().is_none())?.1.0
            }
            _ => element,
        };
        (self.class(device) == "ToDevice").then_some(device)
    }

    /// The split behind an element that packets come in by. Ports have the numbers of their ToDevices; `takes` says of
    /// which the driver can send by them.
    pub fn split(
        &self,
        start: usize,
        takes: &dyn Fn(usize) -> bool,
        has_table: &dyn Fn(usize) -> bool,
    ) -> Split {
        let port = |element| self.device(element).filter(|&device| takes(device));
        let known = Known { programs: &self.programs, port: &port, has_tables: has_table };
        split(self.plan, start, &known)
    }

    /// What an element lowers to.
    pub fn program(&self, element: usize) -> Option<&Program> {
        self.programs.get(element).and_then(Option::as_ref)
    }

    /// What elements lower to, by number; each can be had once.
    pub fn programs(&mut self) -> &mut [Option<Program>] {
        &mut self.programs
    }

    /// All inputs that packets may go up to which came in by `start`, however elements are configured later.
    pub fn entries(&self, start: usize) -> Vec<End> {
        let mut found: Vec<End> = Vec::new();
        let mut left = vec![start];
        let mut seen = BTreeSet::from([start]);
        while let Some(element) = left.pop() {
            let edges = self.plan.edges.iter().filter(|((from, _), _)| *from == element);
            for &(_, to) in edges {
                if !found.contains(&to) && self.is_pushed(to) {
                    found.push(to);
                }
                if self.may_lower(to.0) && seen.insert(to.0) {
                    left.push(to.0);
                }
            }
        }
        found
    }

    fn is_pushed(&self, (element, input): End) -> bool {
        self.plan.elements[element].pulled_inputs.get(input) == Some(&false)
    }

    fn may_lower(&self, element: usize) -> bool {
        may_lower(self.library, self.class(element))
    }
}

/// Where packets are pushed to that leave by a ToDevice ([`Part::device`]).
pub fn door(plan: &Plan, device: usize) -> End {
    let pulled = plan.elements[device].pulled_inputs.first() == Some(&true);
    let queue = plan.edges.iter().find(|(_, to)| pulled && *to == (device, 0));
    queue.map_or((device, 0), |((queue, _), _)| (*queue, 0))
}

fn may_lower(library: &Library, class: &str) -> bool {
    library.get(class).is_some_and(|spec| spec.lowers != Lowers::No)
}

/// Whether elements of a class may say what they do.
pub fn is_asked(library: &Library, class: &str) -> bool {
    SOURCES.contains(&class) || may_lower(library, class)
}

/// The elements that run in the driver.
pub fn in_driver(library: &Library, plan: &Plan) -> BTreeSet<usize> {
    let part = Part::of(library, plan);
    let able = part.starts().filter(|&(_, able)| able);
    able.flat_map(|(start, _)| part.split(start, &|_| true, &|element| part.has_tables(element)).elements)
        .collect()
}

/// The split of every element that packets come in by, as people read it.
pub fn explain(library: &Library, plan: &Plan) -> String {
    let part = Part::of(library, plan);
    let lines = part.starts().map(|(start, able)| match able {
        true => part.split(start, &|_| true, &|element| part.has_tables(element)).explain(plan),
        false => format!(
            "nothing is in the driver behind {}: it chooses or cuts packets, or leaves them to the kernel\n",
            plan.elements[start].name
        ),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{self, Source, Style};

    const GRAPH: &str =
        "in :: FromDevice(eth0) -> a :: Paint(1) -> c :: AverageCounter -> b :: Strip(14) -> q :: Queue
        -> out :: ToDevice(eth1); cut :: FromDevice(eth2, SNAPLEN 60) -> Paint(2) -> d :: Discard;";

    #[test]
    fn what_is_drawn_is_what_is_explained() {
        let library = causeway_elements::library();
        let source = Source::Text("test", GRAPH.to_owned());
        let (loaded, _) =
            load::compile(&source, &library, &[], Style::Human).unwrap_or_else(|e| panic!("{e}"));
        let plan = loaded.plan;
        let number = |name| plan.find(name).expect("an element");
        assert_eq!(in_driver(&library, &plan), BTreeSet::from([number("a")]));
        let text = explain(&library, &plan);
        assert!(text.contains("in the driver behind in: a\n"), "{text}");
        assert!(text.contains("cut at c (AverageCounter)"), "{text}");
        assert!(text.contains("nothing is in the driver behind cut: it"), "{text}");
        let part = Part::of(&library, &plan);
        assert_eq!(part.entries(number("in")), [(number("a"), 0), (number("c"), 0)]);
        assert_eq!(part.device(number("q")), Some(number("out")));
        assert_eq!(door(&plan, number("out")), (number("q"), 0));
    }

    /// They take turns, which the driver would not.
    #[test]
    fn a_queue_that_several_pull_from_is_not_passed_by() {
        let library = causeway_elements::library();
        let graph =
            "in :: FromDevice(eth0) -> Paint(1) -> q :: Queue; q -> ToDevice(eth1); q -> ToDevice(eth2);";
        let source = Source::Text("test", graph.to_owned());
        let (loaded, _) =
            load::compile(&source, &library, &[], Style::Human).unwrap_or_else(|e| panic!("{e}"));
        let part = Part::of(&library, &loaded.plan);
        assert_eq!(part.device(loaded.plan.find("q").expect("an element")), None);
        assert!(explain(&library, &loaded.plan).contains("cut at q (Queue)"));
    }
}
