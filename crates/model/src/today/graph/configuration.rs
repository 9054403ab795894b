//! A graph that can be modelled: its ports are the machine's, and there is a cost for each of its classes.

use super::super::machine::Plan;
use super::costs::{self, Costs};
use super::ports::METHOD;
use anyhow::{Result, bail, ensure};
use causeway_elements::devices::{interface, interfaces};
use causeway_engine::{Library, PlanElement};
use causeway_lang::args::{join_args, keyword, split_args};

/// Classes whose ports become the machine's.
const DEVICES: [&str; 3] = ["FromDevice", "PollDevice", "ToDevice"];
/// Classes that hand packets to the host, of which nothing is modelled: what they get is gone.
const SINKS: [&str; 1] = ["ToHost"];
/// Categories and classes that reach out of the graph: a model has no business there.
const OUTSIDE: [&str; 4] = ["devices", "kernel", "sockets", "traces"];
const OUTSIDE_TOO: [&str; 5] =
    ["ChangeUID", "ControlSocket", "KernelFilter", "KernelHandlerProxy", "QuitWatcher"];
/// The category of classes that packets never visit.
const INFORMATION: &str = "information";

/// A graph, and what its elements cost.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What it is called.
    pub name: String,
    /// The graph, on ports of the model.
    pub(super) plan: causeway_engine::Plan,
    /// The interfaces that it names, in the order of the machine's ports.
    pub devices: Vec<String>,
    /// What classes cost.
    pub(super) costs: Costs,
}

impl Configuration {
    /// The graph `plan`, which is called `name`, on a machine. The interface that it names first is the machine's first port.
    ///
    /// # Errors
    ///
    /// What of it cannot be modelled, with its place, and what can be done.
    pub fn new(name: &str, mut plan: causeway_engine::Plan, machine: &Plan) -> Result<Configuration> {
        let (library, costs) = (causeway_elements::library(), costs::of(&machine.element)?);
        let devices = interfaces(&plan);
        let ports = machine.port_count();
        ensure!(
            plan.elements.iter().any(|e| e.class != DEVICES[2] && DEVICES.contains(&e.class.as_str())),
            "{name}: there is no FromDevice, so that nothing comes in"
        );
        ensure!(
            devices.len() <= ports,
            "{name}: the graph has {} interfaces ({}), and {} has {ports} ports",
            devices.len(),
            devices.join(", "),
            machine.name
        );
        for element in &mut plan.elements {
            if DEVICES.contains(&element.class.as_str()) {
                element.config = on_model(&element.config);
            } else if SINKS.contains(&element.class.as_str()) {
                (element.class, element.config) = ("Discard".to_owned(), String::new());
            }
        }
        let wrong: Vec<String> =
            plan.elements.iter().filter_map(|element| wrong(element, &library, &costs)).collect();
        if !wrong.is_empty() {
            bail!("{}", wrong.join("\n"));
        }
        Ok(Configuration { name: name.to_owned(), plan, devices, costs })
    }

    /// The port of an element that has one.
    pub(super) fn port_of(&self, element: &str) -> Option<usize> {
        let element = &self.plan.elements[self.plan.find(element)?];
        let device = interface(&element.config)?;
        self.devices.iter().position(|name| *name == device)
    }
}

/// The configuration of a device whose port is opened by the model, however it was to be opened.
fn on_model(config: &str) -> String {
    let other = |argument: &String| !matches!(keyword(argument), Some(("METHOD" | "CAPTURE" | "SNIFFER", _)));
    let mut arguments: Vec<String> = split_args(config).into_iter().filter(other).collect();
    arguments.push(format!("METHOD {METHOD}"));
    join_args(&arguments)
}

/// Why an element cannot be modelled.
fn wrong(element: &PlanElement, library: &Library, costs: &Costs) -> Option<String> {
    // A class that nobody knows is told of when the graph is built.
    let spec = library.get(&element.class)?;
    let (place, name, class) = (&element.landmark, &element.name, spec.name);
    let outside = OUTSIDE.contains(&spec.category) && !DEVICES.contains(&class);
    if outside || OUTSIDE_TOO.contains(&class) {
        return Some(format!(
            "{place}: {name} :: {class} reaches out of the graph, to what is not modelled; leave it out"
        ));
    }
    if spec.category == INFORMATION || costs.contains_key(class) {
        return None;
    }
    Some(format!(
        "{place}: nobody says what {name} :: {class} costs; the machine's file can, in a section [element.{class}] with \
         packet and visit, in cycles (`causeway model what-if --print {}` has those of other classes)",
        costs::NAME
    ))
}
