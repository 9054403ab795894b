//! Which interfaces a configuration names.

use super::{from_device, to_device};
use causeway_engine::{Plan, PlanElement};
use causeway_lang::args::{keyword, split_args, unquote};
use causeway_netio::interface::Interface;

/// The interfaces that the elements of `plan` receive from or send to, each once: what can be known of the ports before
/// they are opened.
pub fn interfaces(plan: &Plan) -> Vec<String> {
    let mut names = Vec::new();
    for element in plan.elements.iter().filter(|e| is_device(e)) {
        names.extend(name(element).filter(|name| !names.contains(name)));
    }
    names
}

/// Queues of the interface that element number `element` of `plan` opens, for as many copies of it. One where all of its
/// frames come through one socket.
pub(super) fn queues(plan: &Plan, element: usize) -> usize {
    let Some(interface) = name(&plan.elements[element]) else { return 1 };
    let of_it = plan.elements.iter().filter(|e| is_device(e) && name(e).as_ref() == Some(&interface));
    let through_one = |e: &PlanElement| {
        let arguments = split_args(&e.config);
        let method = arguments.iter().find_map(|a| keyword(a).filter(|(word, _)| *word == "METHOD"));
        method.is_some_and(|(_, method)| matches!(method, "PACKET" | "AF_PACKET" | "LINUX" | "PCAP"))
    };
    if of_it.into_iter().any(through_one) {
        return 1;
    }
    // One that is not there is told of when it is opened.
    Interface::open(&interface).map_or(1, |interface| interface.queues.max(1) as usize)
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
