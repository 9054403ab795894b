//! The graph of `causeway up`, as text.

use std::fmt::Write;

/// The graph that forwards between `ports` by the kernel's routes: one element decides for all of them, and what it
/// leaves to the kernel reaches it as received on its own interface. Of those that are `at_tcx` nothing comes in.
pub fn text(ports: &[String], at_tcx: &[String]) -> String {
    let quoted: Vec<String> = ports.iter().map(|p| quote(p)).collect();
    let mut text =
        format!("// Forwards between {} by the kernel's routes, beside the kernel.\n", ports.join(", "));
    if ports.is_empty() {
        return "// All packets are left to the kernel.\nIdle -> Discard;\n".to_owned();
    }
    // Writing to a string cannot fail.
    let all = quoted.join(", ");
    let _ = writeln!(text, "\nforward :: KernelForward({all});\nkernel :: ToKernel({all});");
    for (i, name) in quoted.iter().enumerate() {
        let left = ports.len() + i;
        let method = if at_tcx.contains(&ports[i]) { "TCX" } else { "TRANSIT" };
        let _ = writeln!(text, "\nin{i} :: FromDevice({name}, METHOD {method}) -> [{i}]forward;");
        let _ = writeln!(text, "forward[{i}] -> out{i} :: ToDevice({name}, METHOD {method});");
        let _ = writeln!(text, "forward[{left}] -> [{i}]kernel;");
    }
    text
}

/// An interface name as an argument: names with characters that mean something to the language in quotes.
fn quote(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Source, Style, load};

    #[test]
    fn the_graph_of_any_interfaces_compiles() {
        assert!(text(&[], &[]).contains("Idle"));
        for ports in [&["eth0"][..], &["eth0", "veth-1.5"], &["a", "b:1", "odd\"name,)"]] {
            let ports: Vec<String> = ports.iter().map(|p| (*p).to_owned()).collect();
            let source = Source::Text("up", text(&ports, &ports[1..]));
            let loaded = load(&source, &causeway_elements::library(), &[], Style::Human);
            let plan = loaded.unwrap_or_else(|e| panic!("{e}")).plan;
            let of = |class: &str| plan.elements.iter().filter(|e| e.class == class).count();
            let n = ports.len();
            let at_tcx = plan.elements.iter().filter(|e| e.config.ends_with("METHOD TCX")).count();
            assert_eq!(at_tcx, 2 * (n - 1));
            assert_eq!((of("FromDevice"), of("ToKernel"), of("ToDevice")), (n, 1, n));
            assert_eq!(plan.elements.len(), 2 * n + 2, "the graph grows with the interfaces, not faster");
        }
    }
}
