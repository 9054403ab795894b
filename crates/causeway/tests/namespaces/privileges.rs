//! What the binary says to a user who may not open interfaces.

use crate::net::Net;
use std::process::{Command, Output};

/// `causeway ARGS` in the router's namespace, by a user without any privilege there.
pub fn unprivileged(net: &Net, args: &[&str]) -> Option<Output> {
    let folder = std::env::temp_dir().join(net.name("user"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut command = Command::new("ip");
    // In a user namespace of its own a process has no say over a network namespace that was there before.
    command.args(["netns", "exec", &net.name("r"), "unshare", "--user", env!("CARGO_BIN_EXE_causeway")]);
    let output = command.args(args).env("XDG_RUNTIME_DIR", &folder).output().expect("ip");
    let _ = std::fs::remove_dir_all(&folder);
    let refused = String::from_utf8_lossy(&output.stderr).contains("unshare failed");
    if refused {
        eprintln!("skipped: needs user namespaces (sysctl user.max_user_namespaces)");
    }
    (!refused).then_some(output)
}

#[test]
fn missing_privileges_are_named_with_what_to_do() {
    let Some(net) = Net::new() else { return };
    let attempts: [&[&str]; 6] = [
        &["up", "ra", "rb"],
        &["run", "-e", "FromDevice(ra) -> Discard"],
        &["run", "-e", "FromDevice(ra, METHOD TRANSIT) -> Discard"],
        &["run", "-e", "FromDevice(ra, METHOD PACKET) -> Discard"],
        &["run", "-e", "Idle -> ToDevice(ra)"],
        &["run", "-e", "FromHost(host0) -> Discard"],
    ];
    for args in attempts {
        let Some(output) = unprivileged(&net, args) else { return };
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
        let told = text.contains("Operation not permitted")
            && text.contains("run as root or with the capabilities CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON and CAP_IPC_LOCK");
        assert!(told, "{args:?}: {text}");
        assert_eq!(text.matches("not permitted").count(), 1, "once: {text}");
    }
    // What needs no interface runs.
    let idle = "InfiniteSource(LIMIT 5, STOP true) -> Discard";
    let Some(output) = unprivileged(&net, &["run", "-e", idle]) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
