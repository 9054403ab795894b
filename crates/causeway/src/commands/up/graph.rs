//! The graph of `causeway up`, as text.

use super::classes::Classes;
use std::fmt::Write;

/// The graph that forwards between `ports` by the kernel's routes: one element decides for all of them, and what it
/// leaves to the kernel reaches it as received on its own interface. What it forwards goes by `classes`. Of those that are
/// `at_tcx` nothing comes in.
pub fn text(ports: &[String], at_tcx: &[String], classes: &Classes) -> String {
    let quoted: Vec<String> = ports.iter().map(|p| quote(p)).collect();
    let mut text =
        format!("// Forwards between {} by the kernel's routes, beside the kernel.\n", ports.join(", "));
    if ports.is_empty() {
        return "// All packets are left to the kernel.\nIdle -> Discard;\n".to_owned();
    }
    // Writing to a string cannot fail.
    let all = quoted.join(", ");
    let _ = writeln!(text, "\nforward :: KernelForward({all});\nkernel :: ToKernel({all});");
    for (i, (name, interface)) in quoted.iter().zip(ports).enumerate() {
        let left = ports.len() + i;
        let method = if at_tcx.contains(interface) { "TCX" } else { "TRANSIT" };
        let _ = writeln!(text, "\nin{i} :: FromDevice({name}, METHOD {method}) -> [{i}]forward;");
        classes.output(&mut text, i, (interface, method));
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
    use super::super::classes::{self, Mask};
    use super::*;
    use crate::load::{Source, Style, load};

    #[test]
    fn the_graph_of_any_interfaces_compiles() {
        let one = Classes::default();
        let two = Classes {
            high: ["tos 0xb8", "dst 10.0.0.0/8"].map(|mask| Mask::parse(mask).unwrap()).to_vec(),
            speeds: vec![classes::speed("eth0=1Mbps").unwrap(), classes::speed("elsewhere=1Mbps").unwrap()],
        };
        assert!(text(&[], &[], &one).contains("Idle") && text(&[], &[], &two).contains("Idle"));
        for ports in [&["eth0"][..], &["eth0", "veth-1.5"], &["a", "b:1", "odd\"name,)"]] {
            let ports: Vec<String> = ports.iter().map(|p| (*p).to_owned()).collect();
            let n = ports.len();
            for (classes, of_output) in [(&one, 1), (&two, 7)] {
                let source = Source::Text("up", text(&ports, &ports[1..], classes));
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
}
