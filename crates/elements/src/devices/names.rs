//! Which interfaces a configuration names.

use super::{from_device, to_device};
use causeway_engine::Plan;
use causeway_lang::args::{keyword, split_args, unquote};

/// The interfaces that the elements of `plan` receive from or send to, each once: what can be known of the ports before
/// they are opened.
pub fn interfaces(plan: &Plan) -> Vec<String> {
    let classes = [&from_device::SPEC, &from_device::POLL, &to_device::SPEC].map(|spec| spec.name);
    let mut names = Vec::new();
    for element in plan.elements.iter().filter(|e| classes.contains(&e.class.as_str())) {
        let name = split_args(&element.config).into_iter().find_map(|argument| match keyword(&argument) {
            Some(("DEVNAME", name)) => Some(unquote(name)),
            Some(_) => None,
            None => Some(unquote(&argument)),
        });
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
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
