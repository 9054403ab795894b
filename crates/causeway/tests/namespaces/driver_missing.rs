//! What the driver path needs is not there: something says so, once, and packets go on as they would without it.

use crate::driver::{TCX, XDP};
use crate::flow::Flow;
use crate::log::Log;
use crate::net::{CAUSEWAY, Net, Router, wait_for};
use crate::run_driver::{Configuration, SWITCHED, settle};
use crate::upgrade::has_strace;
use rustix::process::Signal;
use std::fs::File;
use std::process::{Command, Output, Stdio};

/// A system call of a router's first thread that is to fail, as on a machine that cannot do it: which of those that strace(1)
/// shows with a text.
#[derive(Clone, Copy)]
struct Fails {
    call: &'static str,
    shown: &'static str,
    nth: usize,
    error: &'static str,
}

const NO_MEMORY: Fails = Fails { call: "bpf", shown: "\"table\"", nth: 0, error: "ENOMEM" };
const NO_TCX: Fails = Fails { call: "bpf", shown: "BPF_LINK_CREATE", nth: 0, error: "EINVAL" };

impl Fails {
    /// Runs `causeway ARGS` behind it with that failure.
    fn by(self, net: &Net, args: &str) -> String {
        let Fails { call, shown, nth, error } = self;
        let path = std::env::temp_dir().join(format!("{}.calls", net.name("r")));
        let by = format!("strace -D -qq -s 200 -e trace={call} -o {}", path.display());
        net.start_by("r", &by, args, Stdio::null()).end(Signal::TERM);
        let calls = std::fs::read_to_string(&path).expect("the calls");
        std::fs::remove_file(path).expect("removed");
        // Signals have lines of their own.
        let all = calls.lines().filter(|line| line.starts_with(call)).zip(1..);
        let mut all = all.filter(|(line, _)| line.contains(shown));
        let number = all.nth(nth).unwrap_or_else(|| panic!("no {shown} in {calls}")).1;
        format!("strace -D -qq -o /dev/null -e trace={call} -e inject={call}:error={error}:when={number}")
    }
}

/// Runs `causeway ARGS` to its end, by way of another program.
fn ends(net: &Net, by: &str, args: &str) -> Output {
    let line = format!("netns exec {} {by} {CAUSEWAY} {args}", net.name("r"));
    Command::new("ip").args(line.split_whitespace()).output().expect("ip")
}

/// The router does not start, with these words of why; the kernel forwards.
fn does_not_start(args: &str, fails: Fails, why: &[&str]) {
    let Some(net) = Net::new() else { return };
    if !has_strace() {
        return;
    }
    let args = format!("up {args}");
    let output = ends(&net, &fails.by(&net, &args), &args);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in why {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    assert!(net.ping("-c 3 10.77.2.2").0, "the kernel forwards");
    assert!(!net.ip("r", "link show").contains("xdp"));
}

const NOT: &str = "cannot forward in the driver (without --driver the graph does)";

#[test]
fn a_router_whose_tables_do_not_fit_into_memory_says_so_and_does_not_start() {
    does_not_start(XDP, NO_MEMORY, &[NOT, "BPF map table", "no more memory"]);
}

#[test]
fn a_router_whose_kernel_has_no_tcx_says_so_and_does_not_start() {
    does_not_start(TCX, NO_TCX, &["attach a program at the ingress", "Linux 6.6 or later is needed"]);
}

const NO_LOOKUPS: Fails = Fails { call: "bpf", shown: "\"causeway_ask\"", nth: 0, error: "EINVAL" };

#[test]
fn a_router_whose_kernel_lacks_what_the_driver_path_takes_forwards_by_its_graph() {
    let Some(net) = Net::new() else { return };
    if !has_strace() {
        return;
    }
    let args = format!("up {XDP}");
    let by = NO_LOOKUPS.by(&net, &args);
    let path = std::env::temp_dir().join(format!("{}.log", net.name("r")));
    let (file, log) = (File::create(&path).expect("a file"), Log::at(path));
    let up = net.start_by("r", &by, &args, file);
    log.wait(0, "driver", "nothing is forwarded in the driver: programs cannot ask the kernel for routes");
    net.meet(&up, false);
    wait_for("the graph to forward", || {
        net.ping("-c 1 10.77.2.2");
        up.number("forward.count") > 0
    });
    assert_eq!(up.read("forward.driver").trim(), "");
}

/// A graph all of which could be in the driver runs above, and nothing is lost; these words say why, once.
fn runs_above(graph: &str, by: impl FnOnce(&Net, &str) -> String, why: &[&str]) {
    let Some(net) = Net::new() else { return };
    if !has_strace() {
        return;
    }
    settle(&net);
    let configuration = Configuration::new(&net, graph);
    let by = by(&net, &configuration.arguments());
    let path = std::env::temp_dir().join(format!("{}.log", net.name("r")));
    let (file, log) = (File::create(&path).expect("a file"), Log::at(path));
    let router: Router = net.start_by("r", &by, &configuration.arguments(), file);
    log.wait(0, "driver", "nothing runs in the driver: ");
    let flow = Flow::start(&net);
    flow.wait(300);
    let account = flow.end();
    assert_eq!((account.lost, account.duplicates), (0, 0), "{account:?}");
    assert!(router.number("out.count") >= 300);
    let text = log.text();
    for part in why.iter().chain(&["nothing runs in the driver"]) {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    assert!(text.lines().count() < 30, "{text}");
}

const ROUTES: &str = "in :: FromDevice(ra) -> kind :: Classifier(12/0800, -); kind[1] -> other :: Discard;
    kind[0] -> Strip(14) -> check :: CheckIPHeader -> rt :: RadixIPLookup(10.77.2.0/24 0) -> DecIPTTL
    -> EtherEncap(0x0800, NEAR, FAR) -> q :: Queue -> out :: ToDevice(rb);";

#[test]
fn a_graph_whose_tables_do_not_fit_into_memory_runs_above() {
    let by = |net: &Net, args: &str| NO_MEMORY.by(net, args);
    runs_above(
        ROUTES,
        by,
        &["ra: nothing runs in the driver: a routing table cannot be copied", "no more memory"],
    );
}

/// The kernel's verifier lets programs do less for who may not look into the kernel.
#[test]
fn a_graph_whose_programs_the_kernel_refuses_runs_above() {
    let by = |_: &Net, _: &str| "setpriv --bounding-set=-perfmon,-sys_admin".to_owned();
    runs_above(SWITCHED, by, &["nothing runs in the driver: "]);
}
