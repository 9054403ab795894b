//! Which elements are in which compound elements, from their names: `compound/inner` is in `compound`.

use causeway_engine::Plan;
use std::collections::HashMap;

/// Compounds within compounds, at most; what is deeper is drawn in the last one.
const DEEPEST: usize = 64;

/// A compound element, or the configuration itself.
#[derive(Debug, Default)]
pub struct Group {
    /// Its name, within the one around it.
    pub name: String,
    /// Numbers of the elements that are in it and in none of its members.
    pub elements: Vec<usize>,
    /// Numbers of its members.
    pub groups: Vec<usize>,
    /// The number of the one around it; its own for the configuration.
    parent: usize,
}

/// All groups of a plan.
#[derive(Debug)]
pub struct Tree {
    /// The first is the configuration; members come behind what they are in.
    pub groups: Vec<Group>,
    /// For each element its group, and its place there.
    homes: Vec<(usize, usize)>,
}

/// Where an element is, as seen from a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// In the group, as this one of its elements.
    Here(usize),
    /// In this one of its members, or deeper.
    Within(usize),
    /// Elsewhere.
    Outside,
}

impl Tree {
    /// Reads the names.
    pub fn new(plan: &Plan) -> Tree {
        let mut groups = vec![Group::default()];
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut homes = Vec::new();
        for (number, element) in plan.elements.iter().enumerate() {
            let mut home = 0;
            for (end, _) in element.name.match_indices('/').take(DEEPEST) {
                let path = &element.name[..end];
                let next = *known.entry(path).or_insert_with(|| {
                    let name = path.rsplit('/').next().unwrap_or(path).to_owned();
                    groups.push(Group { name, parent: home, ..Group::default() });
                    let new = groups.len() - 1;
                    groups[home].groups.push(new);
                    new
                });
                home = next;
            }
            homes.push((home, groups[home].elements.len()));
            groups[home].elements.push(number);
        }
        Tree { groups, homes }
    }

    /// Where an element is, as seen from a group.
    pub fn place(&self, element: usize, group: usize) -> Parent {
        let (home, place) = self.homes[element];
        if home == group {
            return Parent::Here(place);
        }
        let mut at = home;
        while at != 0 {
            let parent = self.groups[at].parent;
            if parent == group {
                let member = self.groups[group].groups.iter().position(|&g| g == at);
                return member.map_or(Parent::Outside, Parent::Within);
            }
            at = parent;
        }
        Parent::Outside
    }
}
