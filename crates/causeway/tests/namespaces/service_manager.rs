//! What the service manager hears, and the unit that it is given.

use crate::hold::Hold;
use crate::net::{Net, Router, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::RefCell;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A service manager: it hears what the router says.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
    heard: RefCell<Vec<String>>,
}

impl Manager {
    fn new(net: &Net) -> Manager {
        let path = std::env::temp_dir().join(format!("{}.notify", net.name("r")));
        let socket = UnixDatagram::bind(&path).expect("a socket");
        // The router is root no more when it speaks.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("permissions");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        Manager { socket, path, heard: RefCell::default() }
    }

    /// Starts a router that knows of it and of a watchdog of 400 ms.
    fn start(&self, net: &Net, args: &str) -> Router {
        let by = format!("env NOTIFY_SOCKET={} WATCHDOG_USEC=400000", self.path.display());
        net.start_by("r", &by, args, std::process::Stdio::inherit())
    }

    /// How often it has heard this line so far.
    fn count(&self, line: &str) -> usize {
        let mut bytes = [0; 4096];
        while let Ok(n) = self.socket.recv(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..n]).into_owned();
            self.heard.borrow_mut().extend(text.lines().map(str::to_owned));
        }
        self.heard.borrow().iter().filter(|heard| heard.starts_with(line)).count()
    }

    fn wait(&self, more_than: usize, line: &str) {
        wait_for(line, || self.count(line) > more_than);
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the service manager heard {:?}", self.heard.borrow());
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

#[test]
fn the_manager_hears_that_a_router_is_ready_well_and_left_to_the_kernel() {
    let Some(net) = Net::new() else { return };
    net.inside("r", "sysctl", "-qw net.ipv4.ip_forward=1");
    let manager = Manager::new(&net);
    let mut router = manager.start(&net, "up ra rb --attach xdp");
    manager.wait(0, "READY=1");
    manager.wait(0, "STATUS=forwarding");
    manager.wait(2, "WATCHDOG=1");
    for rule in ["add table ip t", "add chain ip t f { type filter hook forward priority 0 ; policy drop ; }"]
    {
        net.inside("r", "nft", rule);
    }
    manager.wait(0, "STATUS=the kernel forwards everything: ");
    // It is well all the same: to start it again would help nobody.
    manager.wait(manager.count("WATCHDOG=1") + 2, "WATCHDOG=1");
    net.inside("r", "nft", "delete table ip t");
    manager.wait(1, "STATUS=forwarding");
    assert_eq!(manager.count("STOPPING=1"), 0);
    assert_eq!(router.end(Signal::TERM), Some(0));
    manager.wait(0, "STOPPING=1");
    assert_eq!(manager.count("READY=1"), 1);
}

#[test]
fn a_configuration_without_a_right_to_forward_is_well_while_its_workers_are() {
    let Some(net) = Net::new() else { return };
    let manager = Manager::new(&net);
    let mut router = manager.start(&net, "run -e Idle->Discard");
    manager.wait(0, "READY=1");
    manager.wait(0, "STATUS=running");
    manager.wait(2, "WATCHDOG=1");
    router.end(Signal::TERM);
    manager.wait(0, "STOPPING=1");
}

#[test]
fn a_router_of_which_a_thread_hangs_is_not_called_well() {
    let Some(net) = Net::new() else { return };
    net.inside("r", "sysctl", "-qw net.ipv4.ip_forward=1");
    let manager = Manager::new(&net);
    let router = manager.start(&net, "up ra rb --attach xdp");
    manager.wait(2, "WATCHDOG=1");
    for thread in ["worker-0", "netlink", "lease"] {
        let hold = Hold::thread(&router, thread);
        wait_for("a silent router", || {
            let before = manager.count("WATCHDOG=1");
            // The watchdog would bite.
            std::thread::sleep(Duration::from_millis(450));
            manager.count("WATCHDOG=1") == before
        });
        let before = manager.count("WATCHDOG=1");
        drop(hold);
        manager.wait(before, "WATCHDOG=1");
    }
    assert!(manager.count("STATUS=the kernel forwards everything: nothing was heard of worker 0") > 0);
}

#[test]
fn the_manager_hears_which_process_has_taken_over() {
    let Some(net) = Net::new() else { return };
    let manager = Manager::new(&net);
    let mut router = manager.start(&net, "up ra rb --attach xdp");
    manager.wait(0, "STATUS=forwarding");
    let name = net.name("r");
    // One that the manager would not hear of.
    let args = format!("up ra rb --attach xdp --take-over --name {name}");
    let refused = net.causeway(&args).output().expect("causeway");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && text.contains("systemctl reload"), "{text}");
    let mut upgrade = net.causeway(&format!("upgrade --name {name}")).spawn().expect("causeway");
    // The words that it does not read hold up who says the next one.
    wait_for("the upgrade", || {
        manager.count("MAINPID=");
        let ended = upgrade.try_wait().expect("wait");
        ended.inspect(|status| assert!(status.success(), "{status}")).is_some()
    });
    // It does not end before the manager has heard it.
    let mut ended = None;
    wait_for("the end of the old process", || {
        manager.count("MAINPID=");
        ended = router.child.try_wait().expect("wait");
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
    manager.wait(1, "READY=1");
    let heard = manager.heard.borrow();
    let main = heard.iter().position(|line| line.starts_with("MAINPID=")).expect("another main process");
    let ready = heard.iter().rposition(|line| line == "READY=1").expect("it is ready");
    assert!(main < ready, "what a process says that is not known is not heard: {heard:?}");
    let pid =
        heard[main].trim_start_matches("MAINPID=").parse().ok().and_then(Pid::from_raw).expect("a process");
    drop(heard);
    manager.wait(manager.count("WATCHDOG=1") + 2, "WATCHDOG=1");
    assert_eq!(manager.count("STOPPING=1"), 0);
    kill_process(pid, Signal::TERM).expect("kill");
    manager.wait(0, "STOPPING=1");
}

#[test]
fn systemd_takes_the_unit() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/systemd/causeway.service");
    let text = std::fs::read_to_string(&unit).expect("the unit");
    // It looks whether the program is there, which need not be where it is installed.
    let here = std::env::temp_dir().join(format!("causeway-unit-{}.service", std::process::id()));
    std::fs::write(&here, text.replace("/usr/local/bin/causeway", env!("CARGO_BIN_EXE_causeway")))
        .expect("a file");
    let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&here).output();
    let _ = std::fs::remove_file(&here);
    match verified {
        Err(e) => eprintln!("skipped: systemd-analyze cannot be run: {e}"),
        Ok(out) => {
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success() && said.trim().is_empty(), "{said}");
        }
    }
    if std::fs::read_to_string("/proc/1/comm").is_ok_and(|name| name.trim() != "systemd") {
        eprintln!("skipped: a service was not started, since systemd does not run this machine");
    }
}
