//! Ways out of the part of a graph that runs in the driver, and what becomes of packets when there is none.

use crate::flow::Flow;
use crate::net::Net;
use crate::run_driver::{Configuration, SWITCHED, in_driver, settle};

/// Datagrams while the way is down.
const SENT: u32 = 2_000;

#[test]
fn what_is_lost_while_a_way_out_is_down_has_a_reason() {
    let Some(net) = Net::new() else { return };
    settle(&net);
    let router = Configuration::new(&net, SWITCHED).run(&net, true);
    let flow = Flow::start(&net);
    in_driver(&router);
    net.ip("r", "link set rb down");
    flow.run(SENT);
    net.ip("r", "link set rb up");
    in_driver(&router);
    let account = flow.end();
    let queued = router.counted("q", |name| name.starts_with("drop."));
    let behind = ["port.xdp_drop_redirect", "port.xdp_drop_transmit"];
    let behind = router.counted("in", |name| behind.contains(&name));
    let above = router.counted("out", |name| name.starts_with("port.") && name.contains("drop"));
    let text = format!("{account:?}: {queued} in the queue, {behind} behind the program, {above} above");
    assert!(behind < u64::from(SENT) / 4, "they come up as soon as it is known: {text}");
    assert_eq!(router.counted("in", |name| name.starts_with("drop.")), 0, "{text}");
    let lost = u64::from(account.lost);
    assert!((queued + behind..=queued + behind + above).contains(&lost), "{text}");
    assert_eq!(account.duplicates, 0);
}
