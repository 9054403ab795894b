//! RGMII: the MAC behind the pads of the boards, with a PHY that sends half a byte at each edge, and time in steps of
//! 25 ps: where clock and data must lie, clocks that drift, links that go away.

mod bench;

use std::fs;
use std::path::Path;

use bench::{Bench, Clocks, Line};
use causeway_nic_driver::corpus::Random;
use causeway_nic_sim::gmii::LineError;
use causeway_nic_sim::models::{DelayedRx, DelayedTx};

/// The boards' delays, in picoseconds, of the received data and of the transmit clock.
const DELAYED_RX: [i64; 2] = [2_000, 0];
const DELAYED_TX: [i64; 2] = [0, 2_000];

/// Clocks that lie in the middle of the data, for a board with these delays.
const fn centred([rx, tx]: [i64; 2]) -> Clocks {
    let phy_takes_ps = 2_000 - tx;
    Clocks { rx_late_ps: rx + 2_000, phy_takes_ps, rx_ppm: 0, rx_phase_ps: 1_700, core_ps: 16_000 }
}

fn frames(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed);
    let length = |random: &mut Random| 60 + random.below(70);
    (0..count).map(|_| (0..length(&mut random)).map(|_| random.below(256) as u8).collect()).collect()
}

/// Both ways at once; whether everything arrived, on each.
fn exchange<L: Line>(line: L, clocks: Clocks, frames: &[Vec<u8>]) -> [bool; 2] {
    let mut bench = Bench::new(line, clocks);
    for frame in frames {
        bench.send_to_mac(frame);
        bench.send_from_mac(frame, true);
    }
    let bytes: usize = frames.iter().map(|frame| frame.len() + 24).sum();
    bench.run(8 * bytes as i64 + 2_000);
    let received = bench.received.iter().map(|(frame, wrong)| (*wrong == 0).then_some(frame));
    let sent = bench.sent.iter().map(|result| result.as_ref().ok());
    let right = frames.iter().map(Some);
    [received.eq(right.clone()), sent.eq(right) && bench.unsteady() == 0]
}

/// Bounds what the nanosecond at each side of an edge leaves of the four that data stand still.
fn at_every_distance<L: Line>(line: impl Fn() -> L, delays: [i64; 2]) {
    let frames = frames(1, 2);
    // Not at the very bounds: an edge is seen up to a step after it was.
    for distance_ps in (125..8_000).step_by(250) {
        let clocks = Clocks { rx_late_ps: distance_ps, phy_takes_ps: distance_ps, ..centred(delays) };
        // Four nanoseconds on lies the other half of the byte; a whole byte on, all is well again.
        let within = |distance_ps: i64| (1_000..3_000).contains(&distance_ps.rem_euclid(8_000));
        let right = [within(distance_ps - delays[0]), within(distance_ps + delays[1])];
        assert_eq!(exchange(line(), clocks, &frames), right, "{distance_ps} ps");
    }
}

#[test]
fn data_are_right_where_clock_and_data_are_apart_and_nowhere_else() {
    at_every_distance(|| DelayedRx::new(1), DELAYED_RX);
    at_every_distance(|| DelayedTx::new(1), DELAYED_TX);
}

#[test]
fn the_boards_delays_are_those_that_are_simulated() {
    let boards = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("boards");
    for (board, delay) in [("colorlight-i9", "RX_DELAY(80)"), ("ecpix-5", "TX_DELAY(80)")] {
        let top = fs::read_to_string(boards.join(board).join("top.sv")).unwrap();
        assert!(top.contains(&format!("rgmii_ecp5 #(.{delay}) ")), "{board}");
    }
}

#[test]
fn clocks_of_any_phase_and_drift_lose_nothing() {
    let frames = frames(2, 12);
    for (n, rx_ppm) in [-100, -50, 0, 50, 100].into_iter().enumerate() {
        let rx_phase_ps = 200 + 1_700 * n as i64;
        for core_ps in [15_000, 16_000, 7_500] {
            let clocks = Clocks { rx_ppm, rx_phase_ps, core_ps, ..centred(DELAYED_RX) };
            assert_eq!(exchange(DelayedRx::new(1 + n as i32), clocks, &frames), [true; 2], "{clocks:?}");
        }
    }
}

#[test]
fn errors_are_signalled_both_ways() {
    let mut bench = Bench::new(DelayedTx::new(1), centred(DELAYED_TX));
    let frames = frames(3, 3);
    bench.send_to_mac(&frames[0]);
    bench.send_with_error(&frames[1], 30);
    bench.send_to_mac(&frames[2]);
    // Without its end the second one starves.
    bench.send_from_mac(&frames[0], true);
    bench.send_from_mac(&frames[1], false);
    bench.run(5_000);
    let wrong: Vec<u8> = bench.received.iter().map(|frame| frame.1).collect();
    assert_eq!(wrong, [0, 1, 0]);
    assert_eq!(bench.sent, [Ok(frames[0].clone()), Err(LineError::Signalled)]);
}

#[test]
fn a_link_that_goes_away_costs_the_frame_on_the_line_and_no_other() {
    let frames = frames(4, 6);
    for (n, stop_ns) in [400, 401, 403, 406, 450, 950].into_iter().enumerate() {
        let mut bench = Bench::new(DelayedRx::new(1 + n as i32), centred(DELAYED_RX));
        for frame in &frames {
            bench.send_to_mac(frame);
            bench.send_from_mac(frame, true);
        }
        bench.run(stop_ns);
        let before = bench.received.len();
        bench.stop_clock();
        bench.run(3_000);
        assert_eq!(bench.received.len(), before, "nothing ends without a clock");
        // Without a link a PHY's clock may be that of 10 Mbit/s (RGMII 1.3, section 5.0).
        bench.start_clock(100, 200_000);
        bench.run(4_000);
        assert_eq!(bench.received.len(), before + 1);
        assert_ne!(bench.received[before].1, 0, "what was cut off is no good frame");
        bench.stop_clock();
        bench.run(500 + 3 * n as i64);
        bench.start_clock(1, 4_000);
        // Links come back in milliseconds; 72 byte times after the frame's beginning are enough.
        bench.run(800);
        frames.iter().for_each(|frame| bench.send_to_mac(frame));
        bench.run(8_000);
        let after = bench.received[before + 1..].iter().map(|(frame, wrong)| (*wrong == 0).then_some(frame));
        assert!(after.eq(frames.iter().map(Some)), "{:?}", bench.received);
        assert_eq!(bench.no_delimiters, 0);
        // The other direction did not notice.
        assert_eq!(bench.sent, frames.iter().cloned().map(Ok).collect::<Vec<_>>());
    }
}

#[test]
fn while_transmission_is_reset_the_pads_are_still() {
    let mut bench = Bench::new(DelayedTx::new(1), centred(DELAYED_TX));
    let frames = frames(5, 2);
    bench.send_from_mac(&frames[0], true);
    bench.run(400);
    bench.reset_tx(true);
    bench.run(100);
    let edges = bench.txc_edges();
    bench.run(500);
    assert_eq!(bench.txc_edges(), edges, "the clock stands");
    bench.reset_tx(false);
    bench.run(1_000);
    assert!(bench.txc_edges() > edges + 200);
    bench.send_from_mac(&frames[1], true);
    bench.run(2_000);
    assert_eq!(bench.sent.last(), Some(&Ok(frames[1].clone())));
}
