//! Which part of a graph runs in the driver.

use causeway_engine::{Options, Plan, PlanElement, Router};
use causeway_fastpath::{Known, Place, Table, Target, split};

/// Name, class, configuration, and where the outputs lead.
type Element = (&'static str, &'static str, &'static str, &'static [(usize, usize)]);

/// A plan of push elements.
fn plan(elements: &[Element]) -> Plan {
    let mut plan = Plan::default();
    for (number, (name, class, config, to)) in elements.iter().enumerate() {
        plan.elements.push(PlanElement {
            name: (*name).to_owned(),
            class: (*class).to_owned(),
            config: (*config).to_owned(),
            landmark: format!("line {number}"),
            span: None,
            pulled_inputs: vec![false; usize::from(number > 0)],
            pulled_outputs: vec![false; to.len()],
        });
        plan.edges.extend(to.iter().enumerate().map(|(port, &to)| ((number, port), to)));
    }
    plan
}

const GRAPH: &[Element] = &[
    ("in", "Idle", "", &[(1, 0)]),
    ("kind", "Classifier", "12/0806, 12/0800, -", &[(2, 0), (3, 0), (8, 0)]),
    ("arp", "Print", "", &[]),
    ("strip", "Strip", "14", &[(4, 0)]),
    ("check", "CheckIPHeader", "", &[(5, 0)]),
    ("routes", "RadixIPLookup", "0.0.0.0/0 0", &[(6, 0)]),
    ("ttl", "DecIPTTL", "", &[(7, 0), (2, 0)]),
    ("header", "EtherEncap", "0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2", &[(8, 0)]),
    ("out", "Discard", "", &[]),
];

fn programs(plan: &Plan) -> Vec<Option<causeway_engine::ir::Program>> {
    let library = causeway_elements::library();
    Router::lowered(&library, plan, &Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn what_cannot_be_said_cuts_the_graph() {
    let plan = plan(GRAPH);
    let port = |element| (element == 8).then_some(3);
    let known = |has_tables| (programs(&plan), has_tables);
    let (all, with) = known(true);
    let known = Known { programs: &all, port: &port, has_tables: &|_| with };
    let whole = split(&plan, 0, &known);
    assert_eq!(whole.elements, [1, 3, 4, 5, 6, 7]);
    assert_eq!(whole.cuts.keys().copied().collect::<Vec<_>>(), [(2, 0)], "what does not lower");
    let without = split(&plan, 0, &Known { has_tables: &|_| false, ..known });
    assert_eq!(without.elements, [1, 3, 4]);
    assert_eq!(without.cuts.get(&(5, 0)), Some(&"its table is not in the driver"));
    let mut programs = programs(&plan);
    let graph = without.graph(&plan, |element| programs[element].take(), |_| Vec::<Option<Table<'_>>>::new());
    assert_eq!(
        graph.nodes[0].outputs,
        [Some(Target::Up(2, 0)), Some(Target::Node(1)), Some(Target::Emit(3))]
    );
    assert_eq!(graph.nodes[2].outputs, [Some(Target::Up(5, 0))]);
    assert!(graph.nodes.iter().all(|node| node.program.is_some()));
    let whole = without.whole_graph(&plan, |_| None, |_| Vec::<Option<Table<'_>>>::new());
    assert_eq!((whole.nodes.len(), whole.nodes[0].name.as_str()), (4, "in"));
    let [start, kind] = [0, 1].map(|node| &whole.nodes[node].outputs[..]);
    assert_eq!(start, [Some(Target::Node(1))]);
    assert_eq!(kind, [Some(Target::Up(2, 0)), Some(Target::Node(2)), Some(Target::Emit(3))]);
    assert!(!without.is_empty());
    assert_ne!(Place::Element(5, 0), Place::Node(2), "cuts are places of the plan");
}

#[test]
fn a_split_is_drawn() {
    let plan = plan(GRAPH);
    let known = Known {
        programs: &programs(&plan),
        port: &|element| (element == 8).then_some(3),
        has_tables: &|_| false,
    };
    let text = split(&plan, 0, &known).explain(&plan);
    let expected = "\
in the driver behind in: kind
  kind :: Classifier
    [0] -> up to arp
    [1] -> strip
    [2] -> port 3
  strip :: Strip
    [0] -> check
  check :: CheckIPHeader
    [0] -> up to routes
  cut at arp (Print): it does not say what it does
  cut at routes (RadixIPLookup): its table is not in the driver
";
    assert_eq!(text, expected);
}

#[test]
fn inputs_that_elements_say_nothing_of_cut_the_graph() {
    let mut plan = plan(GRAPH);
    let known = Known {
        programs: &programs(&plan),
        port: &|element| (element == 8).then_some(3),
        has_tables: &|_| true,
    };
    plan.edges.iter_mut().filter(|(from, _)| *from == (5, 0)).for_each(|(_, to)| *to = (6, 1));
    let other = split(&plan, 0, &known);
    assert_eq!(other.elements, [1, 3, 4, 5]);
    assert_eq!(other.cuts.get(&(6, 1)), Some(&"it says what it does for input 0 alone"));
    plan.elements[3].pulled_inputs = vec![true];
    let pulled = split(&plan, 0, &known);
    assert_eq!(pulled.elements, [1]);
    assert_eq!(pulled.cuts.get(&(3, 0)), Some(&"it is pulled"));
}

#[test]
fn packets_that_leave_at_once_are_something_in_the_driver() {
    let plan = plan(GRAPH);
    let known = Known {
        programs: &programs(&plan),
        port: &|element| (element == 8).then_some(3),
        has_tables: &|_| true,
    };
    // Behind `header`, and behind `kind` by its first output.
    let empty = [7, 1].map(|start| split(&plan, start, &known).is_empty());
    assert_eq!(empty, [false, true]);
}
