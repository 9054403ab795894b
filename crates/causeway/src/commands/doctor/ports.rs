//! What interfaces can do, and what the kernel does to packets there that the router would not.

use super::report::{Check, State};
use crate::cli::{Attach, DoctorArgs};
use crate::commands::probe::Probe;
use crate::ports::{self, Obstacle, Port, Replaced, Router, Survey, TAKEN};
use causeway_kernel::{Finding, Severity, inspect};
use causeway_netio::offload::{self, Offload};
use causeway_packet::pool;

/// All checks of the interfaces named, or of all that could be ports, and where a router with these options would attach to
/// each. The kernel's filters are asked for only by who is `privileged`.
pub fn checks(args: &DoctorArgs, privileged: bool) -> (Vec<Check>, Vec<(String, Attach)>) {
    let names = &args.interfaces;
    let frame_bytes = pool::Config::default().frame_size;
    let survey = match Survey::new(Router { attach: args.attach, in_driver: args.driver, frame_bytes }) {
        Ok(survey) => survey,
        Err(e) => return (vec![Check::missing("netlink", "", format!("{e:#}"), "")], Vec::new()),
    };
    // Of interfaces that nobody named, one that can be no port keeps no router from the others.
    let bad = if names.is_empty() { State::Warning } else { State::Missing };
    let names = if names.is_empty() { survey.candidates() } else { names.clone() };
    let mut checks = Vec::new();
    if names.is_empty() {
        let what = "there is no Ethernet interface";
        checks.push(Check::missing("port-missing", "", what, "ip link    # shows those that there are"));
    }
    let mut found = Vec::new();
    for name in &names {
        match survey.port(name) {
            Ok(port) => {
                checks.extend(of(&port));
                checks.extend(survey.obstacle(&port, &Replaced::NONE).map(|obstacle| check(bad, obstacle)));
                found.push(port);
            }
            Err(obstacle) => checks.push(check(bad, obstacle)),
        }
    }
    checks.extend(ports::idle(&found).map(|text| Check::good("port", "", text)));
    if privileged {
        let forwarding = found.iter().filter(|port| port.forwards);
        checks.extend(findings(&forwarding.map(|port| port.name.as_str()).collect::<Vec<_>>()));
    }
    (checks, found.into_iter().map(|port| (port.name, port.attach)).collect())
}

/// The checks of one interface that is there.
fn of(port: &Port) -> Vec<Check> {
    let mut checks = vec![Check::good("port", &port.name, port.how())];
    if port.attach == Attach::Xdp {
        let on = |offload: &Offload| offload::is_on(&port.name, *offload).unwrap_or(false);
        for offload in Offload::HARMFUL.into_iter().filter(on) {
            let what = format!("{} is on; it is turned off while `up` runs", offload.name());
            checks.push(Check::good("offload", &port.name, what));
        }
    }
    checks
}

fn check(state: State, obstacle: Obstacle) -> Check {
    // Of a router that does its work there is nothing to be warned of.
    let state = if obstacle.code == TAKEN && state == State::Warning { State::Good } else { state };
    Check::new(state, obstacle.code, obstacle.name, obstacle.what, obstacle.mend)
}

/// What the kernel does to packets that a router which forwards between these interfaces would not.
fn findings(ports: &[&str]) -> Vec<Check> {
    match inspect(ports, &Probe::default()) {
        Ok(findings) => findings.into_iter().map(finding).collect(),
        Err(e) => {
            let what = format!("the kernel cannot be asked what it does to forwarded packets: {e}");
            vec![Check::missing("netlink", "", what, "")]
        }
    }
}

fn finding(finding: Finding) -> Check {
    let state = match finding.severity {
        Severity::Warn => State::Warning,
        Severity::Refuse => State::Refuses,
    };
    Check::new(state, finding.code(), finding.place, finding.what, finding.mend)
}
