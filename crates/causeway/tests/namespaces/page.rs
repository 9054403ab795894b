//! `make faults`: what faults cost, and how fast TCP is, again and again; written to docs/results/faults.md.

use crate::faults::{kill, pass, start};
use crate::flow::{Account, PER_MS};
use crate::hold::Hold;
use crate::net::Net;
use crate::offloads::offloads;
use crate::swaps;
use crate::throughput;
use rustix::process::Signal;
use std::fmt::Write;
use std::fs::read_to_string;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/faults.md");

/// How often each fault is made: `FAULTS_ROUNDS`.
fn rounds() -> usize {
    std::env::var("FAULTS_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)
}

fn row(what: &str, aim: &str, accounts: &[Account]) -> String {
    let of = |value: &dyn Fn(&Account) -> f64| {
        let mut values: Vec<f64> = accounts.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        (values[values.len() / 2], values[values.len() - 1])
    };
    let ms = |d: std::time::Duration| d.as_secs_f64() * 1e3;
    let (lost, most) = of(&|a| f64::from(a.lost));
    let (gap, longest) = of(&|a| ms(a.longest()));
    let (silence, quietest) = of(&|a| ms(a.silence));
    let row = format!(
        "| {what} | {aim} | {} | {lost} | {most} | {gap:.1} | {longest:.1} | {silence:.0} | {quietest:.0} |\n",
        accounts.len()
    );
    print!("{row}");
    row
}

/// What a router that does not die loses when it is stopped, or one of its threads hangs.
fn pauses(what: &str, thread: Option<&str>) -> String {
    let net = Net::new().expect("root");
    let (up, log) = start(&net, 2);
    let once = |_| match thread {
        None => pass(&net, &up, &log, || up.signal(Signal::STOP), |()| up.signal(Signal::CONT)),
        Some(thread) => {
            let told = log.count("silent", "");
            let hang = || {
                let hold = Hold::thread(&up, thread);
                log.wait(told, "silent", "");
                hold
            };
            pass(&net, &up, &log, hang, drop)
        }
    };
    let accounts: Vec<Account> = (0..rounds().div_ceil(2)).map(once).collect();
    row(what, "1 000", &accounts)
}

/// What hot swaps cost.
fn hot_swaps() -> String {
    "\n## Hot swaps\n\n\
     Two workers pass on a flow each, of single datagrams some tens of microseconds apart, and the graph is replaced by \
     one that has other elements on one of them. Silence is the longest time between two arrivals, without a hot swap \
     and with one: what else the machine does is in both. How long a worker stood still it says itself. Times are in \
     microseconds; the aim is 1 000 for a worker that the swap is not about.\n\n\
     | worker | hot swaps | lost | silence without, median | worst | silence with, median | worst | stood still, median | worst |\n\
     |---|---|---|---|---|---|---|---|---|\n"
        .to_owned()
        + &swaps::table(rounds())
}

fn machine() -> String {
    let cpus = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let names = || cpus.lines().filter_map(|l| l.strip_prefix("model name")?.split_once(": "));
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{} processors ({}), kernel {}, load average {} when it began, which others caused in part",
        names().count(),
        names().next().map_or("", |(_, name)| name),
        kernel.trim(),
        load.split(' ').next().unwrap_or("")
    )
}

#[test]
#[ignore = "takes minutes; make faults"]
fn page() {
    let machine = machine();
    let mut text = format!(
        "# What faults cost\n\n\
         `make faults` makes every fault many times and writes this page. The machine: {machine}.\n\n\
         A flow of numbered datagrams, at most {PER_MS} a millisecond, crosses a router between two hosts in network \
         namespaces (`causeway up --attach xdp`). A gap is a run of datagrams that never came, from when the last \
         before it was sent until the first after it was; silence is the time between two arrivals. Aims and times \
         are in milliseconds. What is in the rings of a router that stands still comes late and is not lost.\n\n\
         | fault | aim | times | lost, median | worst | longest gap, median | worst | longest silence, median | worst |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    for ports in [2, 8, 16] {
        let once = |_| kill(&Net::new().expect("root"), ports);
        let accounts: Vec<Account> = (0..rounds()).map(once).collect();
        text += &row(&format!("kill -9, {ports} ports"), "10", &accounts);
    }
    text += &pauses("kill -STOP", None);
    text += &pauses("a worker hangs", Some("worker-0"));
    text += &pauses("the follower of the routes hangs", Some("kernel"));
    text += &hot_swaps();
    let _ = write!(
        text,
        "\n## TCP and UDP between hosts\n\n\
         iperf3 between the same hosts, each transfer by the kernel alone and then with the router; medians. A veth \
         carries super-packets and checksums that nobody finishes. By default the router stands at tcx there and leaves \
         them to the kernel:\n\n"
    );
    let net = Net::new().expect("root");
    offloads(&net, true);
    text += &throughput::table(&net, "up ra rb");
    text +=
        "\nWith hosts whose offloads are off, as frames come from a wire, and programs in the drivers:\n\n";
    offloads(&net, false);
    text += &throughput::table(&net, "up ra rb --attach xdp");
    text += "\nWhat is lost there is lost in rings: a veth with a program has one of 256 frames before it, which a host's kernel \
             fills faster than the other processor empties it (`ip -s link show` of the host's end counts most of it), and the \
             router's own counts `rx_drop_ring_full`. The kernel alone forwards within the sender's call, so nothing waits and \
             little is lost.\n";
    print!("{text}");
    std::fs::write(PAGE, text).expect("written");
}

#[test]
#[ignore = "as long as twenty hot swaps take; part of the page"]
fn hot_swaps_alone() {
    print!("{}", hot_swaps());
}
