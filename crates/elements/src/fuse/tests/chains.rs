//! Chains at random: the standard router's, with elements put in, taken out, changed and moved, and with handlers
//! written while packets flow.

use super::ends::Given;
use super::frames;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::fmt::{self, Write as _};

/// An element with its arguments, and what its output 1 leads to if it has one.
#[derive(Clone, Debug)]
struct Step {
    class: &'static str,
    args: &'static str,
    side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Open,
    Capture,
    Error,
}

/// What happens to the packets of one output of the table.
#[derive(Clone, Debug)]
struct Branch {
    steps: Vec<Step>,
    /// Goes on at a step of the branch before instead of a sink of its own.
    joins: Option<Index>,
}

/// A handler that is written.
#[derive(Clone, Debug)]
struct Write(Index, Index);

/// A router with a classifier, a table and what is between and behind them.
#[derive(Clone)]
pub(super) struct Chain {
    patterns: &'static str,
    /// Output of the classifier that the chain starts at; the others lead to sinks.
    start: Index,
    input: Vec<Step>,
    table: &'static str,
    branches: Vec<Branch>,
    /// Packets, and the handlers written behind them.
    rounds: Vec<(Vec<Given>, Vec<Write>)>,
}

/// Classes of the chain's input side, which can be fused, with arguments right and wrong.
const INPUT: &[(&str, &[&str])] = &[
    ("Paint", &["1", "2", "COLOR 3", "1, 20", "2, ANNO 17", "1, 19", "5, 0", "3, PAINT"]),
    ("Strip", &["14", "LENGTH 14", "0", "4", "10", "20"]),
    (
        "CheckIPHeader",
        &[
            "",
            "INTERFACES 10.0.0.1/16 10.1.0.1/16",
            "CHECKSUM false",
            "14",
            "OFFSET 14, INTERFACES 10.0.0.1/16",
            "OFFSET 0",
            "OFFSET 4",
            "BADSRC 10.0.0.2 10.1.0.2",
            "10.0.0.3 7.7.7.7",
            "10.0.0.3, 14",
            "BADSRC 10.0.0.2, GOODDST 10.1.0.2 8.8.8.8",
        ],
    ),
    ("GetIPAddress", &["16", "IP dst", "12", "30", "IP src", "16, ANNO 20", "2"]),
    ("IPFilter", RULES),
];

/// What a list of rules may say.
const RULES: &[&str] = &[
    "allow all",
    "deny dst host 10.0.0.2, 1 src 10.0.0.3, allow all",
    "1 ip frag, deny icmp, allow udp and src port < 100, 1 all",
    "allow dst net 10.0.0.0/16, 1 ip ttl < 3, deny dst net 10.1.0.0/24 and src 10.0.0.4, allow all",
    "1 ip[40:2] = 7, allow all",
    "deny all",
];

/// Classes of its output side.
const OUTPUT: &[(&str, &[&str])] = &[
    ("DropBroadcasts", &[""]),
    ("PaintTee", &["1", "2", "COLOR 0", "1, 20", "0, 19"]),
    ("IPGWOptions", &["10.0.0.1", "10.1.0.1, 10.0.0.1"]),
    ("FixIPSrc", &["10.0.0.1"]),
    ("DecIPTTL", &["", "ACTIVE true", "ACTIVE false", "MULTICAST false"]),
    ("IPFragmenter", &["1500", "MTU 500", "100", "68", "200, HONOR_DF false"]),
    ("ARPQuerier", &["10.0.0.1/16, 2:0:0:0:0:1", "10.1.0.1/16, 2:0:0:0:1:1, BROADCAST 10.1.0.3"]),
    ("EtherEncap", &["0x0800, 2:0:0:0:0:1, 2:0:0:0:0:9", "0x86dd, 2:0:0:0:0:1, 2:0:0:0:0:8"]),
];

/// Classes that the pass does not know.
const OTHERS: &[(&str, &[&str])] = &[
    ("Null", &[""]),
    ("Counter", &[""]),
    ("Unstrip", &["14", "4", "1"]),
    ("MarkIPHeader", &["", "14", "4"]),
    ("CheckPaint", &["1", "2", "0, 20"]),
    ("CheckLength", &["60", "400"]),
    ("SetIPAddress", &["10.1.0.2", "10.0.0.2, ANNO 20"]),
];

const PATTERNS: &[&str] = &[
    "12/0806 20/0001, 12/0806 20/0002, 12/0800, -",
    "12/0800, -",
    "12/0800",
    "! 12/0806, 12/0800, -",
    "12/0806, !12/0806",
    "!12/86dd !12/0806, -",
    "-, 12/0800",
    "12/08??, 12/0800",
    "12/0800%ff00, 12/0800",
    "23/11, 12/0800, -",
    "12/0800 14/45, 12/0800, -",
    "12/0800 23/06, -, 12/0800",
    "14/45, -",
    "12/86dd, 14/4?, 12/0800",
];

const TABLES: &[&str] = &[
    "StaticIPLookup(10.0.0.1/32 0, 10.0.0.0/16 1, 10.1.0.0/16 2, 99.0.0.0/8 10.1.0.9 2, 0.0.0.0/0 10.0.0.9 1)",
    "LinearIPLookup(10.0.0.1/32 0, 10.1.0.0/16 2, 8.8.8.8/32 1, 10.0.0.2/32 10.1.0.9 2, 224.0.0.0/4 1)",
    "RadixIPLookup(0.0.0.0/0 1, 10.0.0.0/16 10.0.0.2 1, 10.1.0.0/16 2, 10.1.0.3/32 0)",
    "CachedIPLookup(0.0.0.0/0 1, 10.1.0.0/16 2, 10.1.0.3/32 0)",
];

/// Steps that may have a second output.
const TWO_OUTPUTS: &[&str] = &[
    "CheckIPHeader",
    "DropBroadcasts",
    "PaintTee",
    "IPGWOptions",
    "DecIPTTL",
    "IPFragmenter",
    "CheckPaint",
    "CheckLength",
    "IPFilter",
];

/// Those of them that always have one.
const NEED_BOTH: &[&str] = &["PaintTee", "IPFilter"];

fn step_of(classes: &'static [(&'static str, &'static [&'static str])]) -> impl Strategy<Value = Step> {
    let side = select(vec![Side::Open, Side::Capture, Side::Error]);
    (select(classes), any::<Index>(), side).prop_map(|((class, args), at, side)| Step {
        class,
        args: args[at.index(args.len())],
        side: if NEED_BOTH.contains(&class) && side == Side::Open { Side::Capture } else { side },
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![4 => step_of(INPUT), 4 => step_of(OUTPUT), 3 => step_of(OTHERS)]
}

/// A change of a list of steps.
#[derive(Clone, Debug)]
enum Change {
    Insert(Index, Step),
    Replace(Index, Step),
    /// Other arguments.
    Configure(Index, Index),
    Remove(Index),
    Swap(Index, Index),
}

fn changes(step: impl Strategy<Value = Step> + Clone) -> impl Strategy<Value = Vec<Change>> {
    let at = any::<Index>;
    let change = prop_oneof![
        3 => (at(), step.clone()).prop_map(|(i, s)| Change::Insert(i, s)),
        2 => (at(), step).prop_map(|(i, s)| Change::Replace(i, s)),
        5 => (at(), at()).prop_map(|(i, args)| Change::Configure(i, args)),
        2 => at().prop_map(Change::Remove),
        2 => (at(), at()).prop_map(|(i, j)| Change::Swap(i, j)),
    ];
    prop_oneof![3 => Just(Vec::new()), 2 => prop::collection::vec(change, 1..4)]
}

fn changed(standard: &[(&'static str, &'static str)], side: Side, changes: Vec<Change>) -> Vec<Step> {
    let side_of = |class| if NEED_BOTH.contains(&class) && side == Side::Open { Side::Capture } else { side };
    let step = |&(class, args)| Step { class, args, side: side_of(class) };
    let mut steps: Vec<Step> = standard.iter().map(step).collect();
    for change in changes {
        let n = steps.len();
        match change {
            Change::Insert(at, step) => steps.insert(at.index(n + 1), step),
            _ if n == 0 => {}
            Change::Replace(at, step) => steps[at.index(n)] = step,
            Change::Configure(at, args) => {
                let step = &mut steps[at.index(n)];
                let classes = INPUT.iter().chain(OUTPUT).chain(OTHERS);
                let all = classes.filter(|(class, _)| *class == step.class).flat_map(|(_, all)| *all);
                let all: Vec<_> = all.collect();
                step.args = all[args.index(all.len())];
            }
            Change::Remove(at) => drop(steps.remove(at.index(n))),
            Change::Swap(a, b) => steps.swap(a.index(n), b.index(n)),
        }
    }
    steps
}

fn input() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![5 => step_of(INPUT), 1 => any_step()].boxed();
    let side = select(vec![Side::Open, Side::Capture]);
    let kind = (0..4u8, select(RULES));
    (side, kind, changes(step)).prop_map(|(side, (kind, rules), changes)| {
        let standard: &[(&str, &str)] = match kind {
            0 => &[
                ("Paint", "1"),
                ("Strip", "14"),
                ("CheckIPHeader", "INTERFACES 10.0.0.1/16 10.1.0.1/16, DETAILS true"),
                ("GetIPAddress", "16"),
            ],
            1 => &[
                ("CheckIPHeader", "14, DETAILS true"),
                ("Paint", "2"),
                ("Strip", "14"),
                ("GetIPAddress", "IP dst"),
            ],
            2 => &[
                ("Paint", "1"),
                ("Strip", "14"),
                ("CheckIPHeader", "INTERFACES 10.0.0.1/16 10.1.0.1/16"),
                ("IPFilter", rules),
            ],
            _ => &[
                ("CheckIPHeader", "14"),
                ("IPFilter", rules),
                ("Paint", "2"),
                ("Strip", "14"),
                ("IPFilter", RULES[1]),
            ],
        };
        changed(standard, side, changes)
    })
}

fn branch() -> impl Strategy<Value = Branch> {
    let step = prop_oneof![5 => step_of(OUTPUT), 1 => any_step()].boxed();
    let side = select(vec![Side::Capture, Side::Error]);
    let joins = prop::option::weighted(0.2, any::<Index>());
    let color = select(vec!["1", "2"]);
    let link = select(vec![
        ("ARPQuerier", "10.0.0.1/16, 2:0:0:0:0:1"),
        ("ARPQuerier", "10.1.0.1/16, 2:0:0:0:1:1"),
        ("EtherEncap", "0x0800, 2:0:0:0:0:1, 2:0:0:0:0:9"),
        ("Counter", ""),
    ]);
    (side, changes(step), joins, color, link).prop_map(|(side, changes, joins, color, link)| {
        let standard = &[
            ("DropBroadcasts", ""),
            ("PaintTee", color),
            ("IPGWOptions", "10.0.0.1"),
            ("FixIPSrc", "10.0.0.1"),
            ("DecIPTTL", ""),
            ("IPFragmenter", "500"),
            link,
        ];
        Branch { steps: changed(standard, side, changes), joins }
    })
}

/// Any chain, with packets for it.
pub(super) fn chain() -> impl Strategy<Value = Chain> {
    let write = (any::<Index>(), any::<Index>()).prop_map(|(a, b)| Write(a, b));
    let round = (frames::round(), prop::collection::vec(write, 0..4));
    let patterns = prop_oneof![Just(PATTERNS[0]), select(PATTERNS)];
    let table = prop_oneof![Just(TABLES[0]), select(TABLES)];
    let local = prop_oneof![2 => Just(Branch { steps: Vec::new(), joins: None }), 1 => branch()];
    (
        (patterns, any::<Index>(), input(), table),
        (local, branch(), branch()),
        prop::collection::vec(round, 1..4),
    )
        .prop_map(|((patterns, start, input, table), (local, one, two), rounds)| Chain {
            patterns,
            start,
            input,
            table,
            branches: vec![local, one, two],
            rounds,
        })
}

/// An element of a chain by name.
struct Named<'a> {
    name: String,
    class: &'a str,
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text())?;
        (0..self.rounds.len()).try_for_each(|n| {
            self.rounds[n].0.iter().try_for_each(|given| writeln!(f, "  {given:?}"))?;
            self.writes(n).iter().try_for_each(|(to, handler, value)| writeln!(f, "{to}.{handler} {value}"))
        })
    }
}

impl Chain {
    pub fn packets(&self) -> Vec<Vec<Given>> {
        self.rounds.iter().map(|(packets, _)| packets.clone()).collect()
    }

    /// Where the chain starts: mostly where the standard router's does.
    fn start(&self, outputs: usize) -> usize {
        match self.start.index(4 * outputs) {
            at if at < outputs => at,
            _ => self.patterns.split(", ").position(|p| p == "12/0800").unwrap_or(0),
        }
    }

    /// The router as a configuration.
    pub fn text(&self) -> String {
        let outputs = self.patterns.split(", ").count();
        let start = self.start(outputs);
        let mut text = format!("in :: Inject -> c :: Classifier({}); rt :: {};\n", self.patterns, self.table);
        for port in (0..outputs).filter(|&port| port != start) {
            let _ = writeln!(text, "c[{port}] -> kept{port} :: Capture;");
        }
        let input = declare(&mut text, "i", &self.input);
        let _ = writeln!(text, "c[{start}]{} -> rt;", path(&input));
        let mut before: Vec<String> = Vec::new();
        for (port, branch) in self.branches.iter().enumerate() {
            let steps = declare(&mut text, &format!("o{port}_"), &branch.steps);
            let end = match branch.joins.filter(|_| !before.is_empty()) {
                Some(at) => before[at.index(before.len())].clone(),
                None => format!("end{port} :: Capture"),
            };
            let _ = writeln!(text, "rt[{port}]{} -> {end};", path(&steps));
            before = steps;
        }
        text
    }

    /// The queriers of the chain, whose neighbours are to be made known.
    pub fn queriers(&self) -> Vec<String> {
        let all = self.branches.iter().enumerate().flat_map(|(port, branch)| {
            branch.steps.iter().enumerate().map(move |(n, step)| (format!("o{port}_{n}"), step.class))
        });
        all.filter(|(_, class)| *class == "ARPQuerier").map(|(name, _)| name).collect()
    }

    /// The handlers written behind a round: element, handler and value.
    pub fn writes(&self, round: usize) -> Vec<(String, &'static str, &'static str)> {
        let mut named = vec![
            Named { name: "c".to_owned(), class: "Classifier" },
            Named { name: "rt".to_owned(), class: "table" },
        ];
        let mut add = |prefix: &str, steps: &'_ [Step]| {
            named.extend(
                steps.iter().enumerate().map(|(n, s)| Named { name: format!("{prefix}{n}"), class: s.class }),
            );
        };
        add("i", &self.input);
        self.branches.iter().enumerate().for_each(|(port, b)| add(&format!("o{port}_"), &b.steps));
        let write = |w: &Write| {
            let to = &named[w.0.index(named.len())];
            let all = values(to.class);
            let (handler, value) = *all.get(w.1.index(all.len().max(1)))?;
            Some((to.name.clone(), handler, value))
        };
        self.rounds[round].1.iter().filter_map(write).collect()
    }
}

/// Handlers of a class that change what it does, and values for them.
fn values(class: &str) -> &'static [(&'static str, &'static str)] {
    match class {
        "Classifier" => &[("pattern0", "12/0800"), ("pattern0", "!12/0800"), ("pattern0", "-")],
        "table" => &[
            ("add", "8.8.8.0/24 2"),
            ("set", "10.1.0.0/16 10.0.0.7 1"),
            ("remove", "10.1.0.0/16"),
            ("remove", "8.8.8.0/24"),
        ],
        "Paint" | "PaintTee" | "CheckPaint" => &[("color", "1"), ("color", "2"), ("color", "0")],
        "Strip" | "Unstrip" => &[("length", "14"), ("length", "4")],
        "DecIPTTL" => &[("active", "false"), ("active", "true")],
        "ARPQuerier" => &[
            ("insert", "10.1.0.9 2:0:0:0:0:7"),
            ("insert", "10.0.0.2 2:0:0:0:0:6"),
            ("delete", "10.0.0.2"),
            ("clear", ""),
            ("broadcast", "10.0.0.2"),
            ("ipaddr", "10.0.0.7"),
        ],
        "EtherEncap" => &[("src", "2:0:0:0:0:3"), ("ethertype", "0x0801")],
        "CheckLength" => &[("length", "90")],
        "Counter" => &[("reset_counts", "")],
        "IPFilter" => &[("config", "deny all"), ("config", "1 udp, allow all"), ("config", "allow all")],
        _ => &[],
    }
}

/// Declares `steps` and what their second outputs lead to; returns their names.
fn declare(text: &mut String, prefix: &str, steps: &[Step]) -> Vec<String> {
    let mut names = Vec::new();
    for (n, Step { class, args, side }) in steps.iter().enumerate() {
        let name = format!("{prefix}{n}");
        let _ = writeln!(text, "{name} :: {class}({args});");
        if *class == "ARPQuerier" {
            let _ = writeln!(text, "Idle -> [1]{name};");
        }
        let side = if TWO_OUTPUTS.contains(class) { *side } else { Side::Open };
        let _ = match side {
            Side::Open => Ok(()),
            Side::Capture => writeln!(text, "{name}[1] -> side_{name} :: Capture;"),
            Side::Error => {
                let kind = if *class == "PaintTee" { "redirect" } else { "unreachable, needfrag" };
                writeln!(
                    text,
                    "{name}[1] -> err_{name} :: ICMPError(10.0.0.1, {kind}) -> side_{name} :: Capture;"
                )
            }
        };
        names.push(name);
    }
    names
}

fn path(names: &[String]) -> String {
    names.iter().map(|name| format!(" -> {name}")).collect()
}
