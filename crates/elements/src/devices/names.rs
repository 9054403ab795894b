//! Which interfaces a configuration names.

use super::registry::Method;
use super::{from_device, to_device};
use causeway_engine::{Plan, PlanElement};
use causeway_lang::args::{keyword, split_args, unquote};
use causeway_netio::opener;

/// The interfaces that the elements of `plan` receive from or send to, each once: what can be known of the ports before
/// they are opened.
pub fn interfaces(plan: &Plan) -> Vec<String> {
    let mut names = Vec::new();
    for element in plan.elements.iter().filter(|e| is_device(e)) {
        names.extend(name(element).filter(|name| !names.contains(name)));
    }
    names
}

/// Queues of the port that element number `element` of `plan` opens, for as many copies of it: as many as whoever opens
/// it says, and the fewest that METHODs of several elements lead to.
pub(super) fn queues(plan: &Plan, element: usize) -> usize {
    let Some(interface) = name(&plan.elements[element]) else { return 1 };
    let of_it = plan.elements.iter().filter(|e| is_device(e) && name(e).as_ref() == Some(&interface));
    let methods = of_it.filter_map(|e| {
        let arguments = split_args(&e.config);
        let mut keywords = arguments.iter().filter_map(|a| keyword(a));
        opener::find(keywords.find(|(word, _)| matches!(*word, "METHOD" | "CAPTURE"))?.1)
    });
    let fewest = methods.map(|opener| opener.queues(&interface)).min();
    fewest.unwrap_or_else(|| opener::find(Method::USUAL.opener).map_or(1, |opener| opener.queues(&interface)))
}

/// For interfaces that are made with as many queues as are asked for.
pub(super) fn any_number(_plan: &Plan, _element: usize) -> usize {
    usize::MAX
}

fn is_device(element: &PlanElement) -> bool {
    [&from_device::SPEC, &from_device::POLL, &to_device::SPEC].iter().any(|spec| spec.name == element.class)
}

fn name(element: &PlanElement) -> Option<String> {
    interface(&element.config)
}

/// The interface that an element with this configuration opens, if it opens one.
pub fn interface(config: &str) -> Option<String> {
    split_args(config).into_iter().find_map(|argument| match keyword(&argument) {
        Some(("DEVNAME", name)) => Some(unquote(name)),
        Some(_) => None,
        None => Some(unquote(&argument)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_engine::PlanElement;

    #[test]
    fn devices_are_found_by_place_and_by_keyword() {
        let element = |(class, config): &(&str, &str)| PlanElement {
            class: (*class).to_owned(),
            config: (*config).to_owned(),
            name: String::new(),
            landmark: String::new(),
            span: None,
            pulled_inputs: Vec::new(),
            pulled_outputs: Vec::new(),
        };
        let elements = [
            ("FromDevice", "eth0, METHOD TRANSIT"),
            ("ToDevice", "eth0"),
            ("PollDevice", "PROMISC true, DEVNAME \"eth1\""),
            ("Queue", "eth7"),
            ("FromDevice", ""),
            ("ToDevice", "BURST 8, eth2 // out"),
        ];
        let plan = Plan { elements: elements.iter().map(element).collect(), ..Plan::default() };
        assert_eq!(interfaces(&plan), ["eth0", "eth1", "eth2"]);
    }
}
