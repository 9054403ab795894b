//! Which crate may know which: `docs/internals.md`, "The rooms".

use std::collections::BTreeMap;
use std::process::Command;

/// For each crate of ours, without `causeway-`, those that it may use. Tests may use more.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("packet", &[]),
    ("fib", &[]),
    ("lang", &[]),
    ("results", &[]),
    ("bpf", &[]),
    ("netio", &["packet", "bpf"]),
    ("kernel", &["fib"]),
    ("engine", &["packet", "lang"]),
    ("elements", &["engine", "packet", "lang", "fib", "netio"]),
    ("lab", &["elements", "engine", "packet", "lang", "fib", "netio", "bpf", "results"]),
    ("causeway", &["elements", "engine", "packet", "lang", "fib", "netio", "bpf", "kernel", "lab"]),
    ("fib-bench", &["fib", "results"]),
    ("nic-driver", &[]),
    ("nic-sim", &["nic-driver", "fib", "netio", "packet"]),
    ("nic-xdp", &["nic-driver", "netio", "bpf"]),
];

#[test]
fn dependencies_point_downwards() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root);
    let output = cargo.output().expect("cargo");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let short = |name: &str| name.strip_prefix("causeway-").unwrap_or(name).to_owned();
    let may: BTreeMap<&str, &[&str]> = MAY_KNOW.iter().copied().collect();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = short(package["name"].as_str().expect("a name"));
        let allowed = may.get(name.as_str()).unwrap_or_else(|| panic!("'{name}' has no room in this test"));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let known = dependency["name"].as_str().expect("a name");
            if known.starts_with("causeway") && dependency["kind"] != "dev" {
                assert!(allowed.contains(&short(known).as_str()), "{name} must not know {known}");
            }
        }
    }
}
