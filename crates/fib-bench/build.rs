//! Compiles the DPDK shim when DPDK's development files are installed; without them the bench leaves DPDK out.

use std::process::Command;

fn pkg_config(arguments: &[&str]) -> Option<Vec<String>> {
    let output = Command::new("pkg-config").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.split_whitespace().map(str::to_owned).collect())
}

/// What the compiler calls itself and was told.
fn say_how() {
    let rustc = std::env::var("RUSTC").unwrap_or_default();
    let version = Command::new(rustc).arg("--version").output().ok();
    let version =
        version.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let flags = of("CARGO_ENCODED_RUSTFLAGS").replace('\x1f', " ");
    let flags = if flags.is_empty() { "no RUSTFLAGS".to_owned() } else { format!("RUSTFLAGS {flags}") };
    println!("cargo::rustc-env=RUSTC_VERSION={version}");
    println!(
        "cargo::rustc-env=BUILD_FLAGS={} profile (opt-level {}), {flags}",
        of("PROFILE"),
        of("OPT_LEVEL")
    );
}

fn main() {
    say_how();
    println!("cargo::rustc-check-cfg=cfg(dpdk)");
    println!("cargo::rerun-if-changed=shim/dpdk.c");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
    let (Some(flags), Some(libraries)) =
        (pkg_config(&["--cflags", "libdpdk"]), pkg_config(&["--libs-only-L", "libdpdk"]))
    else {
        return;
    };
    let mut build = cc::Build::new();
    build.file("shim/dpdk.c").opt_level(3).flag("-Wno-unused-parameter");
    flags.iter().for_each(|flag| {
        build.flag(flag);
    });
    build.flag("-march=native");
    build.compile("causeway_dpdk_shim");
    for directory in libraries.iter().filter_map(|flag| flag.strip_prefix("-L")) {
        println!("cargo::rustc-link-search=native={directory}");
    }
    for library in ["rte_eal", "rte_lpm", "rte_fib", "rte_rib", "rte_hash", "rte_rcu", "rte_mempool"] {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
    println!("cargo::rustc-cfg=dpdk");
}
