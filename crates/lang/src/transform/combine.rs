//! Several routers as one, joined where their devices are, and one of them out of it again: click-combine(1) and
//! click-uncombine(1).
//!
//! Where a cable would join two devices there is a RouterLink, whose configuration says what it stands for: for each
//! of its inputs, then for each output, the argument `COMPONENT ELEMENT CLASS`, and that element's arguments, or an empty
//! one. (Click's own tools take apart only devices of one argument.)

use super::{Draft, first};
use crate::args;
use crate::graph::{ElementDecl, Graph, PortRef};
use std::collections::{HashMap, HashSet};

const LINK: &str = "RouterLink";

/// A router to be joined to others.
#[derive(Debug)]
pub struct Part {
    /// What its elements' names begin with.
    pub name: String,
    /// Its elements.
    pub graph: Graph,
}

/// Routers joined.
#[derive(Debug)]
pub struct Combined {
    /// The router.
    pub graph: Graph,
    /// What is odd about it.
    pub warnings: Vec<String>,
}

/// From the device that sends to the one that receives: number of the part, and of its element.
type Link = ((usize, usize), (usize, usize));

/// Joins routers by links `NAME1.DEVICE=NAME2.DEVICE`, where a device is the name of an element or what ToDevice,
/// FromDevice or PollDevice names.
///
/// # Errors
/// All that is wrong with the names and the links.
pub fn combine(parts: &[Part], links: &[String]) -> Result<Combined, Vec<String>> {
    let (mut wrong, mut warnings) = (vec![], vec![]);
    for (i, part) in parts.iter().enumerate() {
        if !is_identifier(&part.name) {
            wrong.push(format!("router name '{}' is not a legal Click identifier", part.name));
        }
        if parts[..i].iter().any(|p| p.name == part.name) {
            wrong.push(format!("two routers named '{}'", part.name));
        }
    }
    if parts.is_empty() {
        wrong.push("no routers specified".to_owned());
    }
    let links: Vec<Link> =
        links.iter().filter_map(|text| link(parts, text, &mut wrong, &mut warnings)).collect();
    for (i, (from, _)) in links.iter().enumerate() {
        if links[..i].iter().chain(&links[i..]).any(|(_, to)| to == from) {
            let (part, element) = (&parts[from.0], &parts[from.0].graph.elements[from.1]);
            wrong.push(format!(
                "router '{}' element '{}' used as both source and destination",
                part.name, element.name
            ));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    if links.is_empty() {
        warnings.push("no links between routers".to_owned());
    }
    let (whole, starts) = side_by_side(parts);
    let mut draft = Draft::new(&whole);
    for (number, (from, to)) in cables(&links).into_iter().enumerate() {
        join(&mut draft, parts, &starts, number + 1, &from, &to);
    }
    Ok(Combined { graph: draft.finish(&whole), warnings })
}

fn is_identifier(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "_/@".contains(c);
    !name.is_empty() && name.chars().all(good) && name.split('/').all(|piece| !piece.is_empty())
}

/// Reads a link.
fn link(parts: &[Part], text: &str, wrong: &mut Vec<String>, warnings: &mut Vec<String>) -> Option<Link> {
    let ends = text.split_once('=').map(|(a, b)| (a.trim().split_once('.'), b.trim().split_once('.')));
    let Some((Some(from), Some(to))) = ends else {
        wrong.push(format!("bad link definition '{text}'"));
        return None;
    };
    let mut end = |(name, device): (&str, &str), classes: &[&str]| {
        let Some(part) = parts.iter().position(|p| p.name == name.trim()) else {
            wrong.push(format!("no router named '{}'", name.trim()));
            return None;
        };
        let graph = &parts[part].graph;
        let device = device.trim();
        let found = graph.find(device).map_or_else(|| device_named(graph, device, classes), |e| Ok(Some(e)));
        match found {
            Ok(Some(element)) => Some((part, element)),
            Ok(None) => {
                wrong.push(format!("router '{name}' has no element or device named '{device}'"));
                None
            }
            Err(class) => {
                wrong.push(format!("more than one '{class}({device})' element in router '{name}'"));
                None
            }
        }
    };
    let (sends, receives): (&[&str], &[&str]) = (&["ToDevice"], &["FromDevice", "PollDevice"]);
    let (from, to) = (end(from, sends), end(to, receives));
    for (at, classes) in [(from?, sends), (to?, receives)] {
        let element = &parts[at.0].graph.elements[at.1];
        if !classes.contains(&element.class.as_str()) {
            warnings.push(format!(
                "router '{}' element '{}' has unexpected class\n  expected {}, got {}",
                parts[at.0].name,
                element.name,
                classes.join(" or "),
                element.class
            ));
        }
    }
    Some((from?, to?))
}

/// The element of these classes whose first argument is `device`; the error is the class of which there are several.
fn device_named<'a>(graph: &Graph, device: &str, classes: &[&'a str]) -> Result<Option<usize>, &'a str> {
    let is = |e: &ElementDecl| {
        classes.contains(&e.class.as_str())
            && args::split_args(&e.config).first().is_some_and(|first| first == device)
    };
    let mut found = (0..graph.elements.len()).filter(|&i| is(&graph.elements[i]));
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(classes.first().copied().unwrap_or("device")),
        (found, _) => Ok(found),
    }
}

/// All routers beside each other, and the number of the first element of each.
fn side_by_side(parts: &[Part]) -> (Graph, Vec<usize>) {
    let mut whole = Graph::default();
    let mut starts = vec![];
    for part in parts {
        let start = whole.elements.len();
        starts.push(start);
        whole.elements.extend(part.graph.elements.iter().map(|e| {
            let mut e = e.clone();
            e.name = format!("{}/{}", part.name, e.name);
            if e.class == LINK {
                let is_component = |name: &str| has_component(part.graph.elements.iter(), name);
                e.config = renamed(&e.config, &is_component, |words| format!("{}/{words}", part.name));
            }
            e
        }));
        let moved = |p: PortRef| PortRef { element: p.element + start, port: p.port };
        whole.connections.extend(part.graph.connections.iter().map(|c| {
            let mut c = *c;
            (c.from, c.to) = (moved(c.from), moved(c.to));
            c
        }));
        for requirement in &part.graph.requirements {
            let same = |r: &crate::Requirement| (&r.kind, &r.name) == (&requirement.kind, &requirement.name);
            if !whole.requirements.iter().any(same) {
                whole.requirements.push(requirement.clone());
            }
        }
    }
    (whole, starts)
}

/// Whether an element is named as one of a component.
fn has_component<'a>(mut elements: impl Iterator<Item = &'a ElementDecl>, name: &str) -> bool {
    elements.any(|e| e.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
}

/// The arguments of a link that say what a port stands for.
fn heads(words: &[String], is_component: &dyn Fn(&str) -> bool) -> Vec<usize> {
    let is_head = |word: &String| matches!(&args::split_words(word)[..], [name, _, _] if is_component(name));
    (0..words.len()).filter(|&i| is_head(&words[i])).collect()
}

/// A link's configuration with other names of components.
fn renamed(config: &str, is_component: &dyn Fn(&str) -> bool, name: impl Fn(&str) -> String) -> String {
    let mut words = args::split_args(config);
    heads(&words, is_component).into_iter().for_each(|i| words[i] = name(&words[i]));
    args::join_args(&words)
}

type Ends = Vec<(usize, usize)>;

/// Links that share a device are one cable: who sends, who receives.
fn cables(links: &[Link]) -> Vec<(Ends, Ends)> {
    let mut cables: Vec<(Ends, Ends)> = vec![];
    for &(from, to) in links {
        let touches = |(f, t): &(Ends, Ends)| f.contains(&from) || t.contains(&to);
        let (joined, apart): (Vec<_>, Vec<_>) = cables.into_iter().partition(touches);
        let mut whole: (Ends, Ends) = (vec![], vec![]);
        for (f, t) in joined.into_iter().chain([(vec![from], vec![to])]) {
            f.into_iter().for_each(|e| {
                if !whole.0.contains(&e) {
                    whole.0.push(e)
                }
            });
            t.into_iter().for_each(|e| {
                if !whole.1.contains(&e) {
                    whole.1.push(e)
                }
            });
        }
        cables = apart;
        cables.push(whole);
    }
    cables
}

/// Puts a RouterLink where devices send to each other.
fn join(draft: &mut Draft, parts: &[Part], starts: &[usize], number: usize, from: &Ends, to: &Ends) {
    let mut words = vec![];
    for &(part, element) in from.iter().chain(to) {
        let e = &parts[part].graph.elements[element];
        words.push(format!("{} {} {}", parts[part].name, e.name, e.class));
        words.push(e.config.clone());
    }
    let Some(&(part, element)) = from.first() else { return };
    let span = parts[part].graph.elements[element].span;
    let config = args::join_args(&words);
    let name = format!("link{number}");
    let link = draft.add(ElementDecl { name, class: LINK.into(), config, span, instance: None });
    for (port, &(part, element)) in from.iter().enumerate() {
        let device = starts[part] + element;
        for c in draft.to(first(device)) {
            draft.connect(c.from, PortRef { element: link, port }, c.span);
        }
        draft.remove(device);
    }
    for (port, &(part, element)) in to.iter().enumerate() {
        let device = starts[part] + element;
        for c in draft.from(first(device)) {
            draft.connect(PortRef { element: link, port }, c.to, c.span);
        }
        draft.remove(device);
    }
}

/// Takes the router called `component` out of a combined one: all that its name leads and all that is connected to that,
/// with its devices where the links were.
///
/// # Errors
/// What is wrong with the links.
pub fn uncombine(graph: &Graph, component: &str) -> Result<Graph, Vec<String>> {
    let mut draft = Draft::new(graph);
    let mut wrong = vec![];
    let mut ends = vec![];
    let prefix = format!("{component}/");
    for link in draft.of_class(LINK) {
        let Some(decl) = draft.elements[link].clone() else { continue };
        let (inputs, outputs) = draft.ports(link);
        let words = args::split_args(&decl.config);
        let is_component =
            |name: &str| name == component || has_component(draft.elements.iter().flatten(), name);
        let heads = heads(&words, &is_component);
        if inputs == 0 || outputs == 0 || heads.len() != inputs + outputs || heads.first() != Some(&0) {
            wrong.push(format!("{LINK} '{}' has strange configuration", decl.name));
            continue;
        }
        let places: Vec<Vec<String>> = heads.iter().map(|&i| args::split_words(&words[i])).collect();
        if !places.iter().any(|p| p[0] == component) {
            ends.extend(places.iter().any(|p| p[0].starts_with(&prefix)).then_some(link));
            continue;
        }
        for (i, place) in places.iter().enumerate().filter(|(_, p)| p[0] == component) {
            let (name, class) = (place[1].clone(), place[2].clone());
            if draft.elements.iter().flatten().any(|e| e.name == format!("{prefix}{name}")) {
                wrong.push(format!("{LINK} '{}' element '{prefix}{name}' already exists", decl.name));
                continue;
            }
            let end = heads.get(i + 1).copied().unwrap_or(words.len());
            let config = args::join_args(&words[heads[i] + 1..end]);
            let device = draft.add(ElementDecl { name, class, config, span: decl.span, instance: None });
            ends.push(device);
            if i < inputs {
                for c in draft.to(PortRef { element: link, port: i }) {
                    draft.connect(c.from, first(device), c.span);
                }
            } else {
                for c in draft.from(PortRef { element: link, port: i - inputs }) {
                    draft.connect(first(device), c.to, c.span);
                }
            }
        }
        draft.remove(link);
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    keep(&mut draft, &ends, &prefix);
    rename(&mut draft, &prefix);
    Ok(draft.finish(graph))
}

/// Removes what is neither named after the component nor connected to it.
fn keep(draft: &mut Draft, ends: &[usize], prefix: &str) {
    let mut live = vec![false; draft.elements.len()];
    ends.iter().for_each(|&e| live[e] = true);
    for (element, decl) in draft.elements.iter().enumerate() {
        live[element] |= decl.as_ref().is_some_and(|e| e.name.starts_with(prefix));
    }
    let mut neighbours: HashMap<usize, Vec<usize>> = HashMap::new();
    for c in &draft.connections {
        neighbours.entry(c.from.element).or_default().push(c.to.element);
        neighbours.entry(c.to.element).or_default().push(c.from.element);
    }
    let mut todo: Vec<usize> = (0..live.len()).filter(|&e| live[e]).collect();
    while let Some(element) = todo.pop() {
        for &next in neighbours.get(&element).into_iter().flatten() {
            if !std::mem::replace(&mut live[next], true) {
                todo.push(next);
            }
        }
    }
    (0..live.len()).filter(|&e| !live[e]).for_each(|e| draft.remove(e));
}

/// Takes the component's name off its elements' names, where that leaves them different.
fn rename(draft: &mut Draft, prefix: &str) {
    let all: Vec<ElementDecl> = draft.elements.iter().flatten().cloned().collect();
    let is_component = |name: &str| has_component(all.iter(), name);
    let mut taken: HashSet<String> = all.iter().map(|e| e.name.clone()).collect();
    for e in draft.elements.iter_mut().flatten() {
        let own = e.name.strip_prefix(prefix).map(str::to_owned);
        if let Some(own) = own.filter(|own| taken.insert(own.clone())) {
            e.name = own;
        }
        if e.class == LINK {
            let without = |w: &str| w.strip_prefix(prefix).unwrap_or(w).to_owned();
            e.config = renamed(&e.config, &is_component, without);
        }
    }
}
