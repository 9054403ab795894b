//! Finds `Classifier → … → routing table → …` in a plan, and puts a fused element in front of it.
//!
//! Classes and edges are all that is looked at here. What the elements are configured to do the fused element asks
//! them, once they are built; if that is not what it can do as well, it passes all packets to the chain.

use crate::iproute::FUSED;
use causeway_engine::{End, Plan, PlanElement};

/// Classes that may stand between the classifier and the table.
const INPUT: &[&str] = &["Paint", "Strip", "CheckIPHeader", "GetIPAddress"];
/// Classes that the fused pass may reach to behind the table.
const OUTPUT: &[&str] =
    &["DropBroadcasts", "PaintTee", "IPGWOptions", "FixIPSrc", "DecIPTTL", "IPFragmenter"];

/// A chain, by element numbers of the plan.
pub(super) struct Chain {
    classifier: usize,
    /// Output of the classifier that it starts at.
    output: usize,
    /// Between classifier and table.
    path: Vec<usize>,
    table: usize,
    /// For each output of the table.
    branches: Vec<Branch>,
}

/// What is behind one output of the table.
struct Branch {
    path: Vec<usize>,
    /// Where packets go behind that.
    to: End,
}

/// The chains that start at `classifier`, or why there is none.
pub(super) fn find(plan: &Plan, classifier: usize) -> Result<Vec<Chain>, String> {
    let outputs = 0..plan.elements[classifier].pulled_outputs.len();
    let (mut found, mut why) = (Vec::new(), String::new());
    for output in outputs {
        match Chain::starting_at(plan, classifier, output) {
            Ok(chain) => found.push(chain),
            Err(reason) => why = if why.is_empty() { reason } else { format!("{why}; {reason}") },
        }
    }
    if found.is_empty() { Err(why) } else { Ok(found) }
}

fn next(plan: &Plan, from: End) -> Result<End, String> {
    plan.next(from.0, from.1)
        .ok_or_else(|| format!("output {} of {} leads nowhere", from.1, plan.elements[from.0].name))
}

/// From an output of the table to the first element that is not part of the pass.
fn branch(plan: &Plan, from: End) -> Result<Branch, String> {
    let mut branch = Branch { path: Vec::new(), to: next(plan, from)? };
    loop {
        let (at, input) = branch.to;
        // What comes round again is left where it does.
        if input != 0 || !OUTPUT.contains(&plan.elements[at].class.as_str()) || branch.path.contains(&at) {
            return Ok(branch);
        }
        branch.to = next(plan, (at, 0))?;
        branch.path.push(at);
    }
}

impl Chain {
    fn starting_at(plan: &Plan, classifier: usize, output: usize) -> Result<Chain, String> {
        let mut path = Vec::new();
        let mut from = (classifier, output);
        let table = loop {
            let (at, input) = next(plan, from)?;
            let e = &plan.elements[at];
            let pushed = input == 0 && !e.pulled_inputs.contains(&true);
            match e.class.as_str() {
                class if pushed && FUSED.contains(&class) => break at,
                class if pushed && INPUT.contains(&class) && !path.contains(&at) => path.push(at),
                class => {
                    return Err(format!("output {output} leads to {} ({class}) before a table", e.name));
                }
            }
            from = (at, 0);
        };
        let outputs = 0..plan.elements[table].pulled_outputs.len();
        let branches = outputs.map(|port| branch(plan, (table, port))).collect::<Result<_, _>>()?;
        Ok(Chain { classifier, output, path, table, branches })
    }

    /// What was found, for people.
    pub fn explain(&self, plan: &Plan) -> String {
        let name = |i: usize| plan.elements[i].name.as_str();
        let mut text = format!("{}[{}] ->", name(self.classifier), self.output);
        for &i in &self.path {
            text += &format!(" {} ->", name(i));
        }
        text += &format!(" {}: a chain for IPv4\n", name(self.table));
        for (port, branch) in self.branches.iter().enumerate() {
            text += &format!("  output {port} of {} continues at {}\n", name(self.table), name(branch.to.0));
        }
        text
    }

    /// Puts the fused element in front of the chain: what was pushed to the classifier goes to it, its output k leads
    /// to the end of the chain behind output k of the table, and its last output to the classifier.
    pub fn insert(&self, plan: &Plan, into: &mut Plan) {
        let fused = into.elements.len();
        for edge in &mut into.edges {
            if edge.1 == (self.classifier, 0) {
                edge.1 = (fused, 0);
            }
        }
        for (port, branch) in self.branches.iter().enumerate() {
            into.edges.push(((fused, port), branch.to));
        }
        into.edges.push(((fused, self.branches.len()), (self.classifier, 0)));
        let classifier = &plan.elements[self.classifier];
        into.elements.push(PlanElement {
            name: self.free_name(into),
            class: "FusedIPForward".to_owned(),
            config: self.config(plan),
            landmark: classifier.landmark.clone(),
            span: classifier.span,
            pulled_inputs: vec![false],
            pulled_outputs: vec![false; self.branches.len() + 1],
        });
    }

    /// A name that no element of `plan` has.
    fn free_name(&self, plan: &Plan) -> String {
        let stem = format!("{}@fused", plan.elements[self.classifier].name);
        let numbered = (2..).map(|n| format!("{stem}{n}"));
        let mut names = std::iter::once(stem.clone()).chain(numbered);
        names.find(|name| plan.find(name).is_none()).unwrap_or(stem)
    }

    fn config(&self, plan: &Plan) -> String {
        let name = |i: usize| plan.elements[i].name.as_str();
        let names = |path: &[usize]| path.iter().map(|&i| name(i)).collect::<Vec<_>>().join(" ");
        let mut args = vec![
            format!("CLASSIFIER {}", name(self.classifier)),
            format!("OUTPUT {}", self.output),
            format!("TABLE {}", name(self.table)),
        ];
        args.extend((!self.path.is_empty()).then(|| format!("PATH {}", names(&self.path))));
        args.extend(self.branches.iter().map(|b| match b.path.is_empty() {
            true => "-".to_owned(),
            false => names(&b.path),
        }));
        args.join(", ")
    }
}
