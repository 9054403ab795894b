//! Which worker an element lives on, and which elements have a copy on each.

use crate::plan::Plan;
use crate::spec::{Copies, Spec};

/// The elements of which there is only one although the others have a copy on each of the `workers`: those whose class
/// has no copies, those that `threads` names, and those that are connected with one of them by pulling, since what is
/// pulled comes from one place.
pub(crate) fn alone(
    plan: &Plan,
    specs: &[&'static Spec],
    threads: &[(String, Option<usize>)],
    workers: usize,
) -> Vec<bool> {
    let named = |name: &str| said(threads, name).is_some();
    let mut alone: Vec<bool> = (0..plan.elements.len())
        .map(|i| !specs[i].copies.allow(workers, plan, i) || workers > 1 && named(&plan.elements[i].name))
        .collect();
    loop {
        let mut changed = false;
        for (from, to) in pulled(plan) {
            changed |= alone[from] != alone[to];
            alone[from] |= alone[to];
            alone[to] = alone[from];
        }
        if !changed {
            return alone;
        }
    }
}

/// Settles where elements that are `alone` live which nobody has placed: the interfaces in turn, and what is pulled with
/// who pulls.
pub(crate) fn settle(
    plan: &Plan,
    specs: &[&'static Spec],
    alone: &[bool],
    threads: &mut Vec<(String, Option<usize>)>,
    workers: usize,
) {
    let has_place = |threads: &[(String, Option<usize>)], name: &str| said(threads, name).is_some();
    let mut next = 0;
    for (i, e) in plan.elements.iter().enumerate() {
        if alone[i] && matches!(specs[i].copies, Copies::AsMany(_)) && !has_place(threads, &e.name) {
            threads.push((e.name.clone(), Some(next % workers)));
            next += 1;
        }
    }
    while let Some((name, worker)) = pulled(plan).find_map(|(from, to)| {
        let (from, to) = (&plan.elements[from].name, &plan.elements[to].name);
        let place = threads.iter().find(|(t, _)| t == to)?.1;
        (!has_place(threads, from)).then(|| (from.clone(), place))
    }) {
        threads.push((name, worker));
    }
}

/// Puts elements on one worker that must live together: where one of them has been placed, else on worker 0.
pub(crate) fn keep_together(
    plan: &Plan,
    specs: &[&'static Spec],
    threads: &mut Vec<(String, Option<usize>)>,
    workers: usize,
) {
    if workers == 1 {
        return;
    }
    let all = plan.elements.iter().zip(specs);
    let pairs: Vec<(String, String)> = all
        .flat_map(|(e, spec)| {
            let named = (spec.lives_with)(&e.config);
            named.into_iter().filter_map(|name| Some((e.name.clone(), seen_from(plan, &e.name, &name)?)))
        })
        .collect();
    for or_first in [false, true] {
        let mut changed = true;
        while changed {
            changed = false;
            for (a, b) in &pairs {
                let place = said(threads, a).or(said(threads, b));
                let Some(place) = place.or(or_first.then_some(Some(0))) else { continue };
                for name in [a, b] {
                    if said(threads, name).is_none() {
                        threads.push((name.clone(), place));
                        changed = true;
                    }
                }
            }
        }
    }
}

/// The full name of the element that `caller` calls `name`, looked up from its compound outwards.
fn seen_from(plan: &Plan, caller: &str, name: &str) -> Option<String> {
    let mut scope = caller;
    loop {
        scope = scope.rfind('/').map_or("", |i| &scope[..i]);
        let full = if scope.is_empty() { name.to_owned() } else { format!("{scope}/{name}") };
        if plan.find(&full).is_some() {
            return Some(full);
        }
        if scope.is_empty() {
            return None;
        }
    }
}

/// Pairs of elements of which the second pulls from the first.
fn pulled(plan: &Plan) -> impl Iterator<Item = (usize, usize)> + '_ {
    let is_pulled = |to: usize, input: usize| plan.elements[to].pulled_inputs.get(input) == Some(&true);
    plan.edges
        .iter()
        .filter(move |(_, (to, input))| is_pulled(*to, *input))
        .map(|&((from, _), (to, _))| (from, to))
}

/// The worker of each element of `plan`.
///
/// An element that `threads` names (itself, or a compound around it) lives where that says. The others follow
/// the packets: a pushed element lives with the first of its pushers that has a place, one that is pulled and
/// pulls lives with its puller, and sources without a place live on worker 0. Out-of-range workers are taken as 0.
pub(crate) fn place(plan: &Plan, threads: &[(String, Option<usize>)], workers: usize) -> Vec<usize> {
    let pinned = |name: &str| said(threads, name).flatten().map(|w| if w < workers { w } else { 0 });
    let mut places: Vec<Option<usize>> = plan.elements.iter().map(|e| pinned(&e.name)).collect();
    for (i, e) in plan.elements.iter().enumerate() {
        let pushed = e.pulled_inputs.iter().any(|p| !p);
        if !pushed && !e.pulled_outputs.iter().any(|p| *p) {
            places[i].get_or_insert(0);
        }
    }
    while spread(plan, &mut places) {}
    places.into_iter().map(|p| p.unwrap_or(0)).collect()
}

/// Whether `threads` says that the tasks and timers of element `name` never run.
pub(crate) fn is_quiescent(threads: &[(String, Option<usize>)], name: &str) -> bool {
    said(threads, name) == Some(None)
}

/// What `threads` says of element `name`, by itself or by the innermost compound around it.
fn said(threads: &[(String, Option<usize>)], name: &str) -> Option<Option<usize>> {
    let covers = |t: &String| name == t || name.strip_prefix(t.as_str()).is_some_and(|r| r.starts_with('/'));
    threads.iter().filter(|(t, _)| covers(t)).max_by_key(|(t, _)| t.len()).map(|(_, worker)| *worker)
}

/// Gives a place to elements next to those that have one; says whether any got one.
fn spread(plan: &Plan, places: &mut [Option<usize>]) -> bool {
    let mut changed = false;
    for &((from, _), (to, input)) in &plan.edges {
        let pulled = plan.elements[to].pulled_inputs.get(input) == Some(&true);
        let pulls = plan.elements[from].pulled_inputs.contains(&true);
        let (known, unknown) = match pulled {
            false => (places[from], to),
            true if pulls => (places[to], from),
            true => continue,
        };
        if known.is_some() && places[unknown].is_none() {
            places[unknown] = known;
            changed = true;
        }
    }
    changed
}
