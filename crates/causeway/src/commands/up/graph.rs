//! The graph of `causeway up`, as text.

use std::fmt::Write;

/// What the graphs of all interfaces share.
const HEAD: &str = "\
// A frame leaves changed by output 0. By output 1 it is the kernel's: its time was over, or the neighbor is gone.
elementclass Forward4 { $port |
    input -> ttl :: DecIPTTL -> neighbor :: NeighborRewrite($port) -> output;
    ttl[1] -> [1]output;
    neighbor[1] -> [1]output;
}
elementclass Forward6 { $port |
    input -> ttl :: DecIP6HLIM -> neighbor :: NeighborRewrite($port) -> output;
    ttl[1] -> [1]output;
    neighbor[1] -> [1]output;
}
";

/// The graph that forwards between `ports` by the kernel's routes.
///
/// Every interface has lookups of its own, so that what is left to the kernel reaches it as received there.
pub fn text(ports: &[String]) -> String {
    let mut text = format!(
        "// Forwards between {} by the kernel's routes, beside the kernel.\n\n{HEAD}",
        ports.join(", ")
    );
    let quoted: Vec<String> = ports.iter().map(|p| quote(p)).collect();
    for part in [devices, routes] {
        for number in 0..ports.len() {
            // Writing to a string cannot fail.
            let _ = part(&mut text, &quoted, number);
        }
    }
    text
}

fn devices(text: &mut String, ports: &[String], i: usize) -> std::fmt::Result {
    let name = &ports[i];
    writeln!(text, "\nin{i} :: FromDevice({name}, METHOD TRANSIT);")?;
    writeln!(text, "out{i} :: ToDevice({name}, METHOD TRANSIT);")?;
    writeln!(text, "kernel{i} :: ToKernel({name});")
}

fn routes(text: &mut String, ports: &[String], i: usize) -> std::fmt::Result {
    let (name, all, last) = (&ports[i], ports.join(", "), ports.len());
    writeln!(text, "\n// From {name}")?;
    writeln!(text, "in{i} -> type{i} :: Classifier(12/0800, 12/86DD, -);")?;
    writeln!(text, "type{i}[0] -> check4_{i} :: CheckIPHeader(14) -> route4_{i} :: KernelIPLookup({all});")?;
    writeln!(
        text,
        "type{i}[1] -> check6_{i} :: CheckIP6Header(OFFSET 14) -> route6_{i} :: KernelIP6Lookup({all});"
    )?;
    writeln!(text, "type{i}[2] -> kernel{i};")?;
    for version in [4, 6] {
        for (k, to) in ports.iter().enumerate() {
            let forward = format!("forward{version}_{i}_{k}");
            writeln!(text, "route{version}_{i}[{k}] -> {forward} :: Forward{version}({to}) -> out{k};")?;
            writeln!(text, "{forward}[1] -> kernel{i};")?;
        }
        writeln!(text, "route{version}_{i}[{last}] -> kernel{i};")?;
    }
    Ok(())
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
        for ports in [&["eth0"][..], &["eth0", "veth-1.5"], &["a", "b:1", "odd\"name,)"]] {
            let ports: Vec<String> = ports.iter().map(|p| (*p).to_owned()).collect();
            let source = Source::Text("up", text(&ports));
            let loaded = load(&source, &causeway_elements::library(), &[], Style::Human);
            let plan = loaded.unwrap_or_else(|e| panic!("{e}")).plan;
            let of = |class: &str| plan.elements.iter().filter(|e| e.class == class).count();
            let n = ports.len();
            assert_eq!((of("FromDevice"), of("ToKernel"), of("NeighborRewrite")), (n, n, 2 * n * n));
        }
    }
}
