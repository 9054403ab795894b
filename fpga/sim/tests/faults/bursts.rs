//! Bursts of several packets that are cut off: what left and what is counted are all there was, and each cut is told.

use causeway_nic_sim::faults::{Fault, Scheduled};
use causeway_nic_sim::gmii::check_sequence;
use causeway_nic_sim::scenario::{counted_losses, read_counters};

use super::quiet::{count, frame_between, moments, quiet};

/// Frames that wait for one burst.
const FRAMES: usize = 6;

#[test]
fn a_burst_that_is_cut_off_counts_each_packet_that_did_not_arrive() {
    let mut testbed = quiet(2);
    let frame = frame_between(0, 1);
    let mut cut = 0;
    for n in moments(90) {
        let counters = [0, 1].map(|nic| read_counters(&mut testbed, nic));
        let lost = counted_losses(&counters, &testbed.host().counters);
        let [left, aborts] = [testbed.raw.len() as u64, count(&mut testbed, "bus_aborts")];
        let anew = count(&mut testbed, "peer_resyncs");
        testbed.schedule([Scheduled { at_ps: testbed.now_ps(), fault: Fault::Starve(0) }]);
        (0..FRAMES).for_each(|_| testbed.send_raw(0, &frame, check_sequence(&frame)));
        let feed_ps = testbed.now_ps() + 8_000_000;
        // Shorter than it takes to notice that nobody answers: what is noticed is that words are not taken.
        let gone_ps = feed_ps + 300_000 + 30_000 * n;
        testbed.schedule([
            Scheduled { at_ps: feed_ps, fault: Fault::Feed(0) },
            Scheduled { at_ps: gone_ps, fault: Fault::Unplug(1) },
            Scheduled { at_ps: gone_ps + 60_000, fault: Fault::Plug(1) },
        ]);
        testbed.run_until(testbed.now_ns() + 100_000);
        let counters = [0, 1].map(|nic| read_counters(&mut testbed, nic));
        let counted = counted_losses(&counters, &testbed.host().counters) - lost;
        let arrived = testbed.raw.len() as u64 - left;
        // One is both if its last word was taken in the very cycle.
        assert!((0..2).contains(&(arrived + counted - FRAMES as u64)), "{n}: {arrived} {counted}");
        if counted > 1 {
            cut += 1;
            assert!(count(&mut testbed, "peer_resyncs") > anew, "{n}");
            assert!(count(&mut testbed, "bus_aborts") > aborts, "{n}");
        }
    }
    assert!(cut > 5, "{cut}");
}
