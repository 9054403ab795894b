//! Which worker an element lives on.

use crate::plan::Plan;

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
