//! A graph as boxes, frames and lines on a sheet: compound elements are laid out by themselves and are boxes in what is
//! around them, so no line crosses a frame that it does not lead into or out of.

use super::layered::{self, Node, Path, Point, Rank};
use super::tree::{Group, Parent, Tree};
use causeway_engine::{End, Plan};
use causeway_lang::args;
use std::collections::BTreeMap;

/// Width of a character of the text.
const CHARACTER: f64 = 6.63;
/// Height of the strip at the top of a frame, for its name.
const HEADER: f64 = 20.0;
/// Between the border of a frame or of the sheet and what is in it.
const MARGIN: f64 = 14.0;
/// Between neighbouring ports, at least.
const PORT: f64 = 22.0;
/// Of a configuration string so many characters are shown.
const CONFIG: usize = 30;

/// An element.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Upper left corner.
    pub corner: Point,
    /// Width and height.
    pub size: Point,
    /// Its whole declaration, without comments.
    pub full: String,
    /// Lines of text: the name, if it has one that somebody gave it; the class with the beginning of its configuration.
    pub text: Vec<String>,
    /// Where its inputs are, from its left.
    pub inputs: Vec<f64>,
    /// Where its outputs are, from its left.
    pub outputs: Vec<f64>,
}

/// A compound element.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Upper left corner.
    pub corner: Point,
    /// Width and height.
    pub size: Point,
    /// Its name, within the one around it.
    pub name: String,
    /// Where its name begins, from its left.
    pub name_left: f64,
}

/// A part of one edge, or of several that have come together: between two boxes, or a box and a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its way, downwards or, for one of a loop, from an output's bottom round to an input's top.
    pub path: Path,
    /// Whether packets are pulled along it.
    pub pulled: bool,
    /// Whether it ends at an element.
    pub ends: bool,
    /// Numbers of the edges in the plan.
    pub edges: Vec<usize>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// For each element of the plan.
    pub shapes: Vec<Shape>,
    /// Those that are in others come behind them.
    pub frames: Vec<Frame>,
    /// The lines.
    pub lines: Vec<Line>,
    /// Width and height.
    pub size: Point,
}

impl Picture {
    /// Draws a plan.
    pub fn new(plan: &Plan) -> Picture {
        let tree = Tree::new(plan);
        let shapes = plan.elements.iter().enumerate().map(|(i, _)| shape(plan, i)).collect();
        let mut picture = Picture { shapes, ..Picture::default() };
        let mut drafts = Vec::new();
        // Members come before what they are in, which is numbered before them.
        for group in (0..tree.groups.len()).rev() {
            let draft = Draft::new(plan, &tree, group, &picture.shapes, &drafts);
            drafts.push(draft);
        }
        drafts.reverse();
        picture.size = drafts[0].size;
        picture.put(&tree, &drafts, 0, (0.0, 0.0));
        picture
    }

    /// Puts a group and its members at their places on the sheet.
    fn put(&mut self, tree: &Tree, drafts: &[Draft], group: usize, corner: Point) {
        let (draft, Group { name, elements, groups, .. }) = (&drafts[group], &tree.groups[group]);
        if group != 0 {
            let (name, name_left) = (name.clone(), draft.name_left);
            self.frames.push(Frame { corner, size: draft.size, name, name_left });
        }
        let moved = |p: Point| (p.0 + corner.0, p.1 + corner.1);
        for line in &draft.lines {
            self.lines.push(Line { path: line.path.iter().copied().map(moved).collect(), ..line.clone() });
        }
        let (own, members) = draft.corners.split_at(elements.len());
        elements.iter().zip(own).for_each(|(&e, &at)| self.shapes[e].corner = moved(at));
        groups.iter().zip(members).for_each(|(&g, &at)| self.put(tree, drafts, g, moved(at)));
    }
}

/// The box of an element, as large as its text and its ports.
fn shape(plan: &Plan, number: usize) -> Shape {
    let element = &plan.elements[number];
    let name = element.name.rsplit('/').next().unwrap_or(&element.name);
    let arguments = args::split_args(&element.config);
    let words = |argument: &String| argument.split_whitespace().collect::<Vec<_>>().join(" ");
    let config = arguments.iter().map(words).collect::<Vec<_>>().join(", ");
    let mut class = element.class.clone();
    if !config.is_empty() {
        let shown: String = config.chars().take(CONFIG).collect();
        let rest = if shown.len() < config.len() { "…" } else { "" };
        class += &format!("({}{rest})", shown.trim_end());
    }
    let is_anonymous = name.starts_with(&format!("{}@", element.class));
    let text = if is_anonymous { vec![class] } else { vec![name.to_owned(), class] };
    let (inputs, outputs) = (element.pulled_inputs.len(), element.pulled_outputs.len());
    let longest = text.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let width = (longest as f64 * CHARACTER + 16.0).max(inputs.max(outputs) as f64 * PORT);
    let spread = |n: usize| (1..=n).map(|i| width * i as f64 / (n + 1) as f64).collect();
    let size = (width.round(), if text.len() > 1 { 38.0 } else { 24.0 });
    let full = format!("{} :: {}({config})", element.name, element.class);
    Shape { corner: (0.0, 0.0), size, full, text, inputs: spread(inputs), outputs: spread(outputs) }
}

/// Where several edges that lead out of a frame, or into one, come together: where they all end, or, if packets are
/// pulled, where they all begin.
type Hub = (bool, End);

/// A group laid out by itself.
struct Draft {
    size: Point,
    name_left: f64,
    /// Of its elements, then of its groups.
    corners: Vec<Point>,
    lines: Vec<Line>,
    /// Where edges lead in, from its left.
    inputs: BTreeMap<Hub, f64>,
    /// Where edges lead out.
    outputs: BTreeMap<Hub, f64>,
}

/// The ports between which there is a line: box and port of each.
type Between = ((usize, usize), (usize, usize));

/// The number of a hub among the ports of a box.
fn port(pins: &BTreeMap<Hub, f64>, hub: Hub) -> usize {
    pins.range(..hub).count()
}

impl Draft {
    fn new(plan: &Plan, tree: &Tree, group: usize, shapes: &[Shape], done: &[Draft]) -> Draft {
        let Group { name, elements, groups, .. } = &tree.groups[group];
        // Groups are done from the last to the first.
        let members: Vec<&Draft> = groups.iter().map(|&g| &done[tree.groups.len() - 1 - g]).collect();
        let nodes = elements.iter().map(|&e| Node::from(&shapes[e]));
        let nodes = nodes.chain(members.iter().map(|&m| Node::from(m))).collect();
        let mut pins = Pins { nodes, inputs: BTreeMap::new(), outputs: BTreeMap::new() };
        let mut found: BTreeMap<Between, Vec<usize>> = BTreeMap::new();
        for (number, &(from, to)) in plan.edges.iter().enumerate() {
            let pulled = super::is_pulled(plan, to);
            let hub = (pulled, if pulled { from } else { to });
            let (begin, end) = match (tree.place(from.0, group), tree.place(to.0, group)) {
                (Parent::Outside, Parent::Outside) => continue,
                (Parent::Within(a), Parent::Within(b)) if a == b => continue,
                places => places,
            };
            let begin = match begin {
                Parent::Here(node) => (node, from.1),
                Parent::Within(member) => (elements.len() + member, port(&members[member].outputs, hub)),
                Parent::Outside => pins.input(hub),
            };
            let end = match end {
                Parent::Here(node) => (node, to.1),
                Parent::Within(member) => (elements.len() + member, port(&members[member].inputs, hub)),
                Parent::Outside => pins.output(hub),
            };
            found.entry((begin, end)).or_default().push(number);
        }
        let edges: Vec<layered::Edge> = found.keys().map(|&(from, to)| layered::Edge { from, to }).collect();
        let layout = layered::layout(&pins.nodes, &edges);
        let lines = found.into_values().zip(layout.paths).zip(&edges).map(|((edges, path), edge)| Line {
            path,
            pulled: super::is_pulled(plan, plan.edges[edges[0]].1),
            ends: edge.to.0 < elements.len(),
            edges,
        });
        let middle = |pin: usize| layout.corners[pin].0 + pins.nodes[pin].width / 2.0;
        let across =
            |pins: &BTreeMap<Hub, usize>| pins.iter().map(|(&hub, &pin)| (hub, middle(pin))).collect();
        let mut draft = Draft {
            size: (layout.width, layout.height),
            name_left: 0.0,
            lines: lines.collect(),
            inputs: across(&pins.inputs),
            outputs: across(&pins.outputs),
            corners: layout.corners[..elements.len() + members.len()].to_vec(),
        };
        draft.surround(name, group == 0);
        draft
    }

    /// Puts a border around: an empty margin for the sheet, a frame with a name for a compound element. Edges lead through
    /// the frame, between the layers that are its border and the next.
    fn surround(&mut self, name: &str, is_sheet: bool) {
        let above = if is_sheet {
            MARGIN
        } else if self.inputs.is_empty() {
            HEADER
        } else {
            0.0
        };
        let below = if is_sheet || self.outputs.is_empty() { MARGIN } else { 0.0 };
        let shift = |p: &mut Point| *p = (p.0 + MARGIN, p.1 + above);
        self.corners.iter_mut().for_each(shift);
        self.lines.iter_mut().flat_map(|line| &mut line.path).for_each(shift);
        self.inputs.values_mut().chain(self.outputs.values_mut()).for_each(|x| *x += MARGIN);
        self.size = (self.size.0 + 2.0 * MARGIN, self.size.1 + above + below);
        if is_sheet {
            return;
        }
        // The name stands where no edge comes in.
        let label = name.chars().count() as f64 * CHARACTER + 14.0;
        let mut bounds: Vec<f64> = self.inputs.values().copied().collect();
        bounds.sort_by(f64::total_cmp);
        bounds.insert(0, 0.0);
        bounds.push(f64::INFINITY);
        let free = bounds.windows(2).find(|pair| pair[1] - pair[0] >= label);
        self.name_left = free.map_or(0.0, |pair| pair[0]);
        self.size.0 = self.size.0.max(self.name_left + label);
    }
}

/// The boxes of a group, and those that stand for its border where edges pass that.
struct Pins {
    nodes: Vec<Node>,
    inputs: BTreeMap<Hub, usize>,
    outputs: BTreeMap<Hub, usize>,
}

impl Pins {
    fn input(&mut self, hub: Hub) -> (usize, usize) {
        let Pins { nodes, inputs, .. } = self;
        let new = || pin(nodes, Rank::First);
        (*inputs.entry(hub).or_insert_with(new), 0)
    }

    fn output(&mut self, hub: Hub) -> (usize, usize) {
        let Pins { nodes, outputs, .. } = self;
        let new = || pin(nodes, Rank::Last);
        (*outputs.entry(hub).or_insert_with(new), 0)
    }
}

fn pin(nodes: &mut Vec<Node>, rank: Rank) -> usize {
    let ports = |is: bool| if is { vec![PORT / 4.0] } else { Vec::new() };
    let (inputs, outputs) = (ports(rank == Rank::Last), ports(rank == Rank::First));
    nodes.push(Node { width: PORT / 2.0, height: 0.0, inputs, outputs, rank });
    nodes.len() - 1
}

impl From<&Draft> for Node {
    fn from(draft: &Draft) -> Node {
        let (width, height) = draft.size;
        let ports = |pins: &BTreeMap<Hub, f64>| pins.values().copied().collect();
        let (inputs, outputs) = (ports(&draft.inputs), ports(&draft.outputs));
        Node { width, height, inputs, outputs, rank: Rank::Free }
    }
}

impl From<&Shape> for Node {
    fn from(shape: &Shape) -> Node {
        let (width, height) = shape.size;
        let (inputs, outputs) = (shape.inputs.clone(), shape.outputs.clone());
        Node { width, height, inputs, outputs, rank: Rank::Free }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{self, Source, Style};

    fn plan(text: &str) -> Plan {
        let source = Source::Text("config", text.to_owned());
        load::compile(&source, &causeway_elements::library(), &[], Style::Human).expect("no errors").0.plan
    }

    fn example() -> Plan {
        plan(
            "elementclass Inner { input -> c :: Counter -> output; c2 :: Counter; input [1] -> c2 -> [1] output }
             elementclass Outer { input -> i :: Inner -> q :: Queue -> Unqueue -> [0] output;
                                  Idle -> [1] i; i [1] -> Discard; Idle -> [1] output; Idle -> [1] output }
             s :: RatedSource -> a :: Outer -> b :: Outer -> d :: Discard; b [1] -> d; a [1] -> a2 :: Counter -> a;",
        )
    }

    type Box = (Point, Point);

    fn is_inside((at, size): Box, (around, whole): Box) -> bool {
        at.0 >= around.0
            && at.1 >= around.1
            && at.0 + size.0 <= around.0 + whole.0
            && at.1 + size.1 <= around.1 + whole.1
    }

    #[test]
    fn frames_hold_their_elements_and_no_others() {
        let (plan, picture) = (example(), Picture::new(&example()));
        let (mut names, mut frames): (Vec<String>, Vec<Box>) = (Vec::new(), Vec::new());
        for frame in &picture.frames {
            let own = (frame.corner, frame.size);
            // The last one before it that holds it is the one around it.
            let around = frames.iter().rposition(|&f| is_inside(own, f));
            names.push(around.map_or(String::new(), |a| names[a].clone() + "/") + &frame.name);
            frames.push(own);
        }
        names.sort();
        assert_eq!(names, ["a", "a/i", "b", "b/i"]);
        assert_eq!(picture.shapes.len(), plan.elements.len());
        for (shape, element) in picture.shapes.iter().zip(&plan.elements) {
            let depth = frames.iter().filter(|&&f| is_inside((shape.corner, shape.size), f)).count();
            assert_eq!(depth, element.name.matches('/').count(), "{}", element.name);
        }
    }

    #[test]
    fn every_edge_is_drawn_from_its_output_to_its_input() {
        let (plan, picture) = (example(), Picture::new(&example()));
        for (edge, &(from, to)) in plan.edges.iter().enumerate() {
            let (a, b) = (&picture.shapes[from.0], &picture.shapes[to.0]);
            let start = (a.corner.0 + a.outputs[from.1], a.corner.1 + a.size.1);
            let end = (b.corner.0 + b.inputs[to.1], b.corner.1);
            let near = |p: Point, q: Point| (p.0 - q.0).abs() + (p.1 - q.1).abs() < 0.01;
            let mut at = start;
            let mut rest: Vec<&Line> = picture.lines.iter().filter(|l| l.edges.contains(&edge)).collect();
            while let Some(next) = rest.iter().position(|l| near(l.path[0], at)) {
                let line = rest.remove(next);
                at = line.path[line.path.len() - 1];
                assert_eq!(line.ends, near(at, end), "{edge}");
            }
            assert!(near(at, end) && rest.is_empty(), "{edge}: {at:?} {end:?} {rest:?}");
        }
    }

    #[test]
    fn edges_to_one_input_leave_a_frame_together() {
        let picture = Picture::new(&plan(
            "elementclass Two { Idle -> output; Idle -> output } Two -> Discard; i :: Idle -> Discard",
        ));
        let outside = picture.lines.iter().filter(|l| l.edges.len() == 2).count();
        assert_eq!((picture.lines.len(), outside), (4, 1));
    }

    #[test]
    fn boxes_say_what_the_element_is() {
        let picture =
            Picture::new(&plan("s :: RatedSource(LENGTH 200, /* a\n second */ RATE 50) -> Discard"));
        assert_eq!(picture.shapes[0].text, ["s", "RatedSource(LENGTH 200, RATE 50)"]);
        assert_eq!(picture.shapes[1].text, ["Discard"]);
    }
}
