//! Recognises `Classifier → … → routing table → …` in a plan, and puts the fused element in front of it.

use crate::iproute::FUSED;
use causeway_engine::{End, Plan, PlanElement};
use causeway_lang::args::split_args;

/// A recognised chain, by element numbers of the plan.
pub(super) struct Chain {
    classifier: usize,
    table: usize,
    check: usize,
    paint: Option<u8>,
    outputs: Vec<Output>,
    /// All elements whose work the fused element does.
    members: Vec<usize>,
}

/// What happens to packets of one output of the routing table.
struct Output {
    port: usize,
    /// Where they go after the fused part.
    to: End,
    /// Packets of this paint are left to the chain, which copies them.
    tee: Option<u8>,
    ttl: bool,
    mtu: Option<u32>,
}

/// The chain behind `classifier`, or why there is none that can be fused.
pub(super) fn recognise(plan: &Plan, classifier: usize) -> Result<Chain, String> {
    let output = ip_output(&split_args(&plan.elements[classifier].config))?;
    let mut chain =
        Chain { classifier, table: 0, check: 0, paint: None, outputs: Vec::new(), members: vec![classifier] };
    chain.input_side(plan, (classifier, output))?;
    for port in 0..plan.elements[chain.table].pulled_outputs.len() {
        let output = chain.output_side(plan, port)?;
        chain.outputs.push(output);
    }
    Ok(chain)
}

/// The output for IPv4 frames: its pattern asks for the Ethernet type and no more, and those before it for another.
fn ip_output(patterns: &[String]) -> Result<usize, String> {
    for (i, pattern) in patterns.iter().enumerate() {
        let mut clauses = pattern.split_ascii_whitespace();
        match clauses.clone().find_map(|c| c.strip_prefix("12/")) {
            Some(value) if value.eq_ignore_ascii_case("0800") => {
                return match clauses.all(|c| c.starts_with("12/")) {
                    true => Ok(i),
                    false => Err(format!("pattern {i} asks for more than IPv4")),
                };
            }
            Some(value) if value.len() == 4 && value.bytes().all(|b| b.is_ascii_hexdigit()) => {}
            _ => return Err(format!("pattern {i} may match IPv4 frames before 12/0800 does")),
        }
    }
    Err("no pattern is 12/0800".to_owned())
}

fn arguments(e: &PlanElement) -> Vec<String> {
    split_args(&e.config)
}

/// The only argument of `e`, as a number.
fn number(e: &PlanElement) -> Option<u32> {
    match arguments(e).as_slice() {
        [one] => one.parse().ok(),
        _ => None,
    }
}

impl Chain {
    fn next(&self, plan: &Plan, from: End) -> Result<End, String> {
        plan.next(from.0, from.1)
            .ok_or(format!("output {} of {} leads nowhere", from.1, plan.elements[from.0].name))
    }

    /// From the classifier to the routing table.
    fn input_side(&mut self, plan: &Plan, mut from: End) -> Result<(), String> {
        let (mut stripped, mut checked) = (0, None);
        loop {
            let (at, input) = self.next(plan, from)?;
            let e = &plan.elements[at];
            let refuse = || Err(format!("{} ({}) is not part of a chain that can be fused", e.name, e.class));
            if input != 0 || e.pulled_inputs.contains(&true) {
                return refuse();
            }
            match e.class.as_str() {
                "Paint" => {
                    self.paint =
                        Some(number(e).and_then(|n| u8::try_from(n).ok()).ok_or("Paint has an ANNO")?)
                }
                "Strip" => stripped += number(e).ok_or("Strip's argument is not a number")?,
                "CheckIPHeader" if !has_offset(e) => checked = Some(at),
                "GetIPAddress" if number(e) == Some(16) && checked.is_some() => {}
                class if FUSED.contains(&class) => {
                    self.table = at;
                    self.members.push(at);
                    self.check = checked.ok_or("there is no CheckIPHeader before the routing table")?;
                    return match stripped {
                        14 => Ok(()),
                        n => Err(format!("{n} bytes are stripped before CheckIPHeader, not 14")),
                    };
                }
                _ => return refuse(),
            }
            self.members.push(at);
            from = (at, 0);
        }
    }

    /// From an output of the routing table to the first element that the fused one does not understand.
    fn output_side(&mut self, plan: &Plan, port: usize) -> Result<Output, String> {
        let mut output =
            Output { port, to: self.next(plan, (self.table, port))?, tee: None, ttl: false, mtu: None };
        loop {
            let (at, input) = output.to;
            let e = &plan.elements[at];
            let understood = input == 0
                && match e.class.as_str() {
                    "DropBroadcasts" | "FixIPSrc" | "IPGWOptions" => true,
                    "PaintTee" if output.tee.is_none() => {
                        output.tee = number(e).and_then(|n| u8::try_from(n).ok());
                        output.tee.is_some()
                    }
                    "DecIPTTL" if e.config.trim().is_empty() && !output.ttl => {
                        output.ttl = true;
                        true
                    }
                    "IPFragmenter" => {
                        output.mtu = arguments(e).first().and_then(|m| m.parse().ok());
                        output.mtu.is_some()
                    }
                    _ => false,
                };
            if !understood {
                return Ok(output);
            }
            self.members.push(at);
            output.to = self.next(plan, (at, 0))?;
        }
    }

    /// What was recognised, for people.
    pub fn explain(&self, plan: &Plan) -> String {
        let name = |i: usize| plan.elements[i].name.as_str();
        let mut text = format!("{}: fused with", name(self.classifier));
        for &i in &self.members[1..] {
            text += &format!(" {}", name(i));
        }
        text += "\n";
        for o in &self.outputs {
            text += &format!("  output {} of {} continues at {}\n", o.port, name(self.table), name(o.to.0));
        }
        text
    }

    /// Puts the fused element in front of the chain: what was pushed to the classifier goes to it, its output 0 leads
    /// to the classifier and output k + 1 to the end of the chain behind output k of the routing table.
    pub fn insert(&self, plan: &Plan, into: &mut Plan) {
        let fused = into.elements.len();
        for edge in &mut into.edges {
            if edge.1 == (self.classifier, 0) {
                edge.1 = (fused, 0);
            }
        }
        into.edges.push(((fused, 0), (self.classifier, 0)));
        for (k, o) in self.outputs.iter().enumerate() {
            into.edges.push(((fused, k + 1), o.to));
        }
        let classifier = &plan.elements[self.classifier];
        into.elements.push(PlanElement {
            name: format!("{}@fused", classifier.name),
            class: "FusedIPForward".to_owned(),
            config: self.config(plan),
            landmark: classifier.landmark.clone(),
            span: classifier.span,
            pulled_inputs: vec![false],
            pulled_outputs: vec![false; self.outputs.len() + 1],
        });
    }

    fn config(&self, plan: &Plan) -> String {
        let name = |i: usize| plan.elements[i].name.clone();
        let mut args = vec![format!("TABLE {}", name(self.table)), format!("CHECK {}", name(self.check))];
        args.extend(self.paint.map(|p| format!("PAINT {p}")));
        args.push(format!("MEMBERS {}", self.members.iter().map(|&i| name(i)).collect::<Vec<_>>().join(" ")));
        for o in &self.outputs {
            let tee = o.tee.map_or("-".to_owned(), |t| t.to_string());
            let mtu = o.mtu.map_or("-".to_owned(), |m| m.to_string());
            args.push(format!("{tee} {} {mtu}", o.ttl));
        }
        args.join(", ")
    }
}

/// Whether a CheckIPHeader looks elsewhere than at the start of the data.
fn has_offset(e: &PlanElement) -> bool {
    let moved = |text: &str| text.trim() != "0";
    arguments(e).iter().any(|a| match a.split_once(char::is_whitespace) {
        Some(("OFFSET", n)) => moved(n),
        Some(_) => false,
        None => !a.contains('.') && !a.is_empty() && moved(a),
    })
}
