//! Findings about traffic control, and about BPF programs.

use super::{Attachment, Check, Finding, Program};
use crate::model::{Link, Qdisc};
use crate::uapi::{TC_H_CLSACT, TC_H_ROOT};

/// Disciplines that only order packets of one link: passing them by costs fairness, not policy.
const ORDERING: [&str; 8] = ["noqueue", "pfifo_fast", "pfifo", "bfifo", "fq", "fq_codel", "sfq", "mq"];

/// What a queueing discipline on a port means.
pub(super) fn qdisc(qdisc: &Qdisc, port: &str) -> Option<Finding> {
    if qdisc.parent == TC_H_CLSACT {
        return Some(Check::TcFilter.refuse(
            port,
            format!("forwarded packets would pass by the filters of its {}", qdisc.kind),
            format!("tc qdisc del dev {port} {}", qdisc.kind),
        ));
    }
    // What the kernel put there by default has no handle.
    if qdisc.handle == 0 {
        return None;
    }
    let place = match qdisc.parent {
        TC_H_ROOT => "root".to_owned(),
        parent => format!("parent {:x}:{:x}", parent >> 16, parent & 0xffff),
    };
    let what = format!("forwarded packets would pass by its queueing discipline {}", qdisc.kind);
    let mend = format!("tc qdisc del dev {port} {place}");
    let orders = ORDERING.contains(&qdisc.kind.as_str());
    Some(if orders { Check::Qdisc.warn(port, what, mend) } else { Check::Qdisc.refuse(port, what, mend) })
}

/// What a program that is not the router's means.
pub(super) fn program(program: &Program, ports: &[&Link]) -> Finding {
    let (check, port, place) = match program.attachment {
        Attachment::Xdp(port) => (Check::XdpProgram, Some(port), "in its driver (XDP)"),
        Attachment::Ingress(port) => (Check::TcProgram, Some(port), "where packets come in (tcx)"),
        Attachment::Egress(port) => (Check::TcProgram, Some(port), "where packets leave (tcx)"),
        Attachment::Netfilter => (Check::NetfilterProgram, None, "in its hooks"),
    };
    let name = |index| {
        ports.iter().find(|link| link.index == index).map_or(format!("interface {index}"), |l| l.name.clone())
    };
    check.refuse(
        port.map_or("netfilter".to_owned(), name),
        format!("forwarded packets would pass by BPF program {} {place}", program.id),
        format!("bpftool link; bpftool net    # show what holds program {}: stop it", program.id),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    #[test]
    fn only_what_was_put_there_by_hand_counts() {
        let q = |handle, parent, kind: &str| Qdisc { ifindex: 1, handle, parent, kind: kind.into() };
        assert_eq!(qdisc(&q(0, TC_H_ROOT, "fq_codel"), "p"), None);
        assert_eq!(qdisc(&q(0x10000, TC_H_ROOT, "fq"), "p").map(|f| f.severity), Some(Severity::Warn));
        let shaper = qdisc(&q(0x10000, TC_H_ROOT, "htb"), "p").unwrap();
        assert_eq!((shaper.severity, shaper.mend.as_str()), (Severity::Refuse, "tc qdisc del dev p root"));
        let below = qdisc(&q(0x8001_0000, 0x1_000a, "netem"), "p").unwrap();
        assert_eq!(below.mend, "tc qdisc del dev p parent 1:a");
        let ingress = qdisc(&q(0xffff_0000, TC_H_CLSACT, "clsact"), "p").unwrap();
        assert_eq!(
            (ingress.code(), ingress.severity, ingress.mend.as_str()),
            ("tc-filter", Severity::Refuse, "tc qdisc del dev p clsact")
        );
    }
}
