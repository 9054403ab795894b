//! Finds chains in a plan, and puts a fused element in front of each: a classifier, the elements behind one of
//! its outputs up to a routing table, through output 0 of lists of rules, and those behind each output of that.
//!
//! What classes say that their elements lower to, and the edges, is all that is looked at here. What the elements are
//! configured to do the fused element asks them, once they are built; what it cannot do as well it leaves to them.

use causeway_engine::spec::Lowers;
use causeway_engine::{End, Error, Library, Plan, PlanElement};

/// Elements that one output's packets are followed through, at most.
pub(super) const LONGEST: usize = 16;

/// A chain, by element numbers of the plan.
pub(super) struct Chain {
    classifier: usize,
    /// Its output that the chain starts at.
    output: usize,
    /// Between it and the table.
    path: Vec<usize>,
    /// Those of the path that are lists of rules.
    rules: Vec<usize>,
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

impl Branch {
    /// Where packets are to go on that were taken past so many elements of the branch.
    fn stop(&self, past: usize) -> End {
        self.path.get(past).map_or(self.to, |&element| (element, 0))
    }

    fn stops(&self) -> impl Iterator<Item = End> + '_ {
        (0..=self.path.len()).map(|past| self.stop(past))
    }
}

/// What elements of a plan lower to.
pub(super) struct Classes<'p> {
    plan: &'p Plan,
    lowers: Vec<Lowers>,
}

impl<'p> Classes<'p> {
    pub fn new(plan: &'p Plan, library: &Library) -> Self {
        let lowers =
            // An ordinary packet is IPv4.
            plan.elements.iter().map(|e| match library.get(&e.class) {
                Some(spec) if spec.category != "ip6" => spec.lowers,
                _ => Lowers::No,
            });
        Classes { plan, lowers: lowers.collect() }
    }

    /// The elements that chains may start at.
    pub fn classifiers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.lowers.len()).filter(|&i| self.lowers[i] == Lowers::Classify)
    }

    /// What the element at `to` lowers packets to that are pushed to it there.
    fn at(&self, (element, input): End) -> Lowers {
        let pulled = self.plan.elements[element].pulled_inputs.contains(&true);
        if input == 0 && !pulled { self.lowers[element] } else { Lowers::No }
    }

    fn next(&self, from: End) -> Result<End, Error> {
        let nowhere =
            || Error::new(format!("output {} of {} leads nowhere", from.1, self.plan.elements[from.0].name));
        self.plan.next(from.0, from.1).ok_or_else(nowhere)
    }

    /// The chains that start at `classifier`, or why there is none.
    pub fn chains(&self, classifier: usize) -> Result<Vec<Chain>, Error> {
        let outputs = 0..self.plan.elements[classifier].pulled_outputs.len();
        let (found, why): (Vec<_>, Vec<_>) =
            outputs.map(|output| self.chain(classifier, output)).partition(Result::is_ok);
        match found.is_empty() {
            true => {
                let why: Vec<_> = why.into_iter().filter_map(|why| Some(why.err()?.to_string())).collect();
                Err(Error::new(why.join("; ")))
            }
            false => Ok(found.into_iter().filter_map(Result::ok).collect()),
        }
    }

    fn chain(&self, classifier: usize, output: usize) -> Result<Chain, Error> {
        let (mut path, mut rules) = (Vec::new(), Vec::new());
        let mut from = (classifier, output);
        let table = loop {
            let to = self.next(from)?;
            match self.at(to) {
                Lowers::Route => break to.0,
                kind @ (Lowers::Straight | Lowers::Rules)
                    if path.len() < LONGEST && !path.contains(&to.0) =>
                {
                    path.push(to.0);
                    rules.extend((kind == Lowers::Rules).then_some(to.0));
                }
                _ => {
                    let e = &self.plan.elements[to.0];
                    return Err(Error::new(format!(
                        "output {output} leads to {} ({}) before a table",
                        e.name, e.class
                    )));
                }
            }
            from = (to.0, 0);
        };
        let outputs = 0..self.plan.elements[table].pulled_outputs.len();
        let branches = outputs.map(|port| self.branch((table, port))).collect::<Result<_, _>>()?;
        Ok(Chain { classifier, output, path, rules, table, branches })
    }

    /// From an output of the table to the first element that does not lower.
    fn branch(&self, from: End) -> Result<Branch, Error> {
        let mut branch = Branch { path: Vec::new(), to: self.next(from)? };
        while self.at(branch.to) == Lowers::Straight
            && branch.path.len() < LONGEST
            // What comes round again is left where it does, and what leads nowhere too.
            && !branch.path.contains(&branch.to.0)
            && let Ok(next) = self.next((branch.to.0, 0))
        {
            branch.path.push(branch.to.0);
            branch.to = next;
        }
        Ok(branch)
    }
}

impl Chain {
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

    /// Puts the fused element in front of the chain: what was pushed to its start goes there. For each output of the table,
    /// in order, it has an output to each place where it may stop in the branch behind it; then one to each list of rules,
    /// the last one first; its last output leads to the chain's start.
    pub fn insert(&self, plan: &Plan, into: &mut Plan) {
        let fused = into.elements.len();
        for edge in &mut into.edges {
            if edge.1 == (self.classifier, 0) {
                edge.1 = (fused, 0);
            }
        }
        let stops = self.branches.iter().flat_map(Branch::stops);
        let rules = self.rules.iter().rev().map(|&rules| (rules, 0));
        let ends: Vec<End> = stops.chain(rules).chain([(self.classifier, 0)]).collect();
        into.edges.extend(ends.iter().enumerate().map(|(output, &to)| ((fused, output), to)));
        let classifier = &plan.elements[self.classifier];
        into.elements.push(PlanElement {
            name: self.free_name(into),
            class: "FusedIPForward".to_owned(),
            config: self.config(plan),
            landmark: classifier.landmark.clone(),
            span: classifier.span,
            pulled_inputs: vec![false],
            pulled_outputs: vec![false; ends.len()],
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
            format!("START {}", name(self.classifier)),
            format!("OUTPUT {}", self.output),
            format!("TABLE {}", name(self.table)),
        ];
        for (keyword, path) in [("PATH", &self.path), ("RULES", &self.rules)] {
            args.extend((!path.is_empty()).then(|| format!("{keyword} {}", names(path))));
        }
        args.extend(self.branches.iter().map(|b| match b.path.is_empty() {
            true => "-".to_owned(),
            false => names(&b.path),
        }));
        args.join(", ")
    }
}
