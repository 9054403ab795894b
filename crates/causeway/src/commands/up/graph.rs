//! The graph of `causeway up`, as text.

use super::classes::Classes;
use std::fmt::Write;

/// The graph that forwards between `ports` by the kernel's routes: one element decides for all of them, and what it
/// leaves to the kernel reaches it as received on its own interface. What it forwards goes by `classes`. Of those that are
/// `at_tcx` nothing comes in.
///
/// Elements of a port have its number among `all` in their names, whichever others are there: in a hot swap they hand over
/// to those of the same name, and what waits in a queue is to leave by no other port.
pub fn text(all: &[String], ports: &[String], at_tcx: &[String], classes: &Classes) -> String {
    let quoted: Vec<String> = ports.iter().map(|p| quote(p)).collect();
    let mut text =
        format!("// Forwards between {} by the kernel's routes, beside the kernel.\n", ports.join(", "));
    if ports.is_empty() {
        return "// All packets are left to the kernel.\nIdle -> Discard;\n".to_owned();
    }
    // Writing to a string cannot fail.
    let list = quoted.join(", ");
    let _ = writeln!(text, "\nforward :: KernelForward({list});\nkernel :: ToKernel({list});");
    for (i, (name, interface)) in quoted.iter().zip(ports).enumerate() {
        let left = ports.len() + i;
        let number = all.iter().position(|one| one == interface).unwrap_or(i);
        let method = if at_tcx.contains(interface) { "TCX" } else { "TRANSIT" };
        let _ = writeln!(text, "\nin{number} :: FromDevice({name}, METHOD {method}) -> [{i}]forward;");
        classes.output(&mut text, (i, number), (interface, method));
        let _ = writeln!(text, "forward[{left}] -> [{i}]kernel;");
    }
    text
}

/// An interface name as an argument: names with characters that mean something to the language in quotes.
pub fn quote(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::link_speed;
    use crate::load::{Source, Style, load};
    use crate::mask::Mask;

    #[test]
    fn the_graph_of_any_interfaces_compiles() {
        let one = Classes::default();
        let two = Classes {
            high: ["tos 0xb8", "dst 10.0.0.0/8"].map(|mask| Mask::parse(mask).unwrap()).to_vec(),
            speeds: vec![link_speed("eth0=1Mbps").unwrap(), link_speed("elsewhere=1Mbps").unwrap()],
        };
        assert!(text(&[], &[], &[], &one).contains("Idle") && text(&[], &[], &[], &two).contains("Idle"));
        for ports in [&["eth0"][..], &["eth0", "veth-1.5"], &["a", "b:1", "odd\"name,)"]] {
            let ports: Vec<String> = ports.iter().map(|p| (*p).to_owned()).collect();
            let n = ports.len();
            for (classes, of_output) in [(&one, 1), (&two, 7)] {
                let source = Source::Text("up", text(&ports, &ports, &ports[1..], classes));
                let loaded = load(&source, &causeway_elements::library(), &[], Style::Human);
                let plan = loaded.unwrap_or_else(|e| panic!("{e}")).plan;
                let of = |class: &str| plan.elements.iter().filter(|e| e.class == class).count();
                let at_tcx = plan.elements.iter().filter(|e| e.config.ends_with("METHOD TCX")).count();
                assert_eq!(at_tcx, 2 * (n - 1));
                assert_eq!((of("FromDevice"), of("ToKernel"), of("ToDevice")), (n, 1, n));
                let shapers = of("BandwidthShaper");
                assert_eq!(shapers, usize::from(classes.are_two() && ports.contains(&"eth0".to_owned())));
                let most = (1 + of_output) * n + 2 + shapers;
                assert_eq!(plan.elements.len(), most, "the graph grows with the interfaces, not faster");
            }
        }
    }

    /// What waits in a queue for one port must not come into that of another when ports come and go.
    #[test]
    fn a_port_keeps_its_number() {
        let all = ["a", "b", "c"].map(str::to_owned);
        let two = Classes { high: vec![Mask::parse("tos 0xb8").unwrap()], speeds: Vec::new() };
        let lines = |ports: &[String], number: usize| -> Vec<String> {
            let elements = ["in", "out", "high_queue", "low_queue"].map(|name| format!("{name}{number} ::"));
            let text = text(&all, ports, &[], &two);
            text.lines().filter(|line| elements.iter().any(|e| line.contains(e))).map(str::to_owned).collect()
        };
        for (ports, there) in [(&all[..], 0..3), (&all[1..], 1..3), (&all[2..], 2..3)] {
            for (number, name) in all.iter().enumerate() {
                let lines = lines(ports, number);
                assert_eq!(lines.len(), if there.contains(&number) { 4 } else { 0 }, "{lines:?}");
                let devices = lines.iter().filter(|line| line.contains(&format!("Device({name},")));
                assert_eq!(devices.count(), if there.contains(&number) { 2 } else { 0 }, "{lines:?}");
            }
        }
    }
}
