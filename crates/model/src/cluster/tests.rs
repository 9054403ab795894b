//! Clusters against what `make cluster` measured (docs/scale-out.md), against theory, and against each other.

use super::failure::{Failure, Offered, Report};
use super::hashing::{Group, Hashing, flow_hash, shares};
use super::network::{Layout, Outcome, Rates, run};
use super::report::{document, lines};
use super::timers::Notice;
use fastrand::Rng;

const LABORATORY: Offered = Offered::LABORATORY;

fn laboratory(node: usize, hashing: Hashing, notice: Notice) -> Report {
    Failure { nodes: 3, node: node - 1, hashing, notice }.run(LABORATORY, 400, 1)
}

/// What `make cluster` prints of one, two and three nodes, with BIRD as with FRR.
#[test]
fn flows_go_through_the_nodes_that_they_went_through() {
    let of = |hashing, nodes| shares(&Group::new(hashing, nodes).ways(512), nodes);
    assert_eq!(of(Hashing::Threshold, 1), [512]);
    assert_eq!(of(Hashing::Threshold, 2), [276, 236]);
    assert_eq!(of(Hashing::Threshold, 3), [174, 195, 143]);
    assert_eq!(of(Hashing::Resilient, 1), [512]);
    assert_eq!(of(Hashing::Resilient, 2), [243, 269]);
    assert_eq!(of(Hashing::Resilient, 3), [176, 180, 156]);
}

/// The columns "its" and "of others" of `make cluster`.
#[test]
fn flows_move_that_moved() {
    for (node, gone, back) in [(1, [174, 93], 267), (2, [195, 0], 195), (3, [143, 102], 245)] {
        let report = laboratory(node, Hashing::Threshold, Notice::STATED);
        assert_eq!((report.moved, report.moved_back.iter().sum()), (gone, back), "node {node}");
        let resilient = laboratory(node, Hashing::Resilient, Notice::STATED);
        assert_eq!((resilient.moved[1], resilient.moved_back), (0, [0, 0]), "node {node}");
        assert_eq!(resilient.moved[0], resilient.before[node - 1]);
        // By the remainder of a division two in three flows move: those with the same one by 3 and by 2 stay.
        let modulo = laboratory(node, Hashing::Modulo, Notice::STATED);
        assert!(modulo.moved[1] > report.moved[1], "{:?}", modulo.moved);
        let part = modulo.moved.iter().sum::<usize>() as f64 / 512.0;
        assert!((part - 2.0 / 3.0).abs() < 0.07, "{part}");
    }
}

/// Times and losses of the tables in docs/scale-out.md: node, milliseconds in front, frames lost.
#[test]
fn failures_take_and_lose_what_they_took_and_lost() {
    let measured = [
        (
            Notice::STATED,
            &[
                (1, 675.0, 1_861.0),
                (2, 686.0, 2_120.0),
                (3, 690.0, 1_565.0),
                (1, 945.0, 2_623.0),
                (2, 943.0, 2_905.0),
                (3, 767.0, 1_738.0),
            ][..],
        ),
        (Notice::BIRD, &[(1, 456.0, 1_231.0), (2, 438.0, 1_358.0), (3, 464.0, 1_049.0)][..]),
    ];
    for (notice, rows) in measured {
        let (least, most) = notice.bounds_ms();
        for &(node, known_ms, lost) in rows {
            // A busy machine is up to 50 ms late, the look that found out up to 10.
            assert!((least..most + 60.0).contains(&known_ms), "{notice:?}: {known_ms}");
            // In the same time the model loses the same: frames of the node's flows while nobody knows.
            let report = laboratory(node, Hashing::Threshold, notice);
            let per_ms = report.lost.iter().sum::<f64>() / report.known_ms.iter().sum::<f64>();
            let found = per_ms * known_ms;
            assert!((found / lost - 1.0).abs() < 0.05, "{notice:?}, node {node}: {found}, measured {lost}");
        }
    }
}

#[test]
fn nothing_is_lost_where_the_node_goes_on_until_it_is_heard() {
    let drained = laboratory(1, Hashing::Threshold, Notice::Drained);
    assert!(drained.lost.iter().all(|&lost| lost == 0.0));
    assert_eq!(drained.moved, [174, 93]);
    let cable = laboratory(1, Hashing::Threshold, Notice::Carrier);
    // 5 ms of 174 in 512 of 8 192 frames a second.
    let mean = cable.lost.iter().sum::<f64>() / 400.0;
    assert!((mean - 0.005 * 8_192.0 * 174.0 / 512.0).abs() < 1.0, "{mean}");
}

#[test]
fn timers_are_within_their_bounds_and_as_late_as_jitter_makes_them() {
    let mut rng = Rng::with_seed(1);
    // FRR sends its keepalives at the whole interval, and then the last one's age is half of that.
    let [bird, frr] = Notice::HOLD;
    for (notice, jitter) in [(Notice::STATED, true), (Notice::BIRD, true), (bird, true), (frr, false)] {
        let (least, most) = notice.bounds_ms();
        let times: Vec<f64> = (0..20_000).map(|_| notice.after_ms(&mut rng)).collect();
        assert!(times.iter().all(|time| (least..=most).contains(time)), "{notice:?}");
        // The age of the last packet: E[g²] / 2 E[g] for gaps between 3/4 of the interval and all of it.
        let interval = most - least;
        let age = if jitter { interval * (37.0 / 48.0) / (2.0 * 7.0 / 8.0) } else { interval / 2.0 };
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((mean - (most - age)).abs() < 0.01 * interval, "{notice:?}: {mean}");
    }
}

#[test]
fn a_resilient_group_keeps_flows_and_shares_even_ones() {
    let mut group = Group::new(Hashing::Resilient, 8);
    let before = group.ways(4_096);
    group.goes(3);
    let after = group.ways(4_096);
    assert!(before.iter().zip(&after).all(|(b, a)| b == a || *b == Some(3)));
    assert!(after.iter().all(|way| way.is_some_and(|node| node != 3)));
    // It comes back while nothing is sent: buckets move to it again.
    group.comes(3, true);
    let even = shares(&group.ways(4_096), 8);
    assert!(even.iter().all(|&share| (350..700).contains(&share)), "{even:?}");
    // The last one goes.
    (0..8).for_each(|node| group.goes(node));
    assert!(group.ways(16).iter().all(Option::is_none));
}

#[test]
fn flows_have_hashes_of_their_own() {
    let mut hashes: Vec<u32> = (0..100_000).map(flow_hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    // Of 100 000 at random out of 2^32 one or two meet.
    assert!(hashes.len() > 99_990, "{}", hashes.len());
}

const RATES: Rates = Rates { front_fps: 100e6, node_fps: 10e6, room: 1_024 };
const FRAMES: u64 = 200_000;

fn behind(nodes: usize) -> Layout {
    Layout::Behind { nodes, hashing: Hashing::Threshold }
}

fn under(layout: Layout, part: f64) -> Outcome {
    run(layout, &RATES, 4_096, part * layout.ideal_fps(&RATES), FRAMES, 1)
}

#[test]
fn every_frame_ends_in_one_counted_place() {
    let stages = Layout::Stages { fronts: 4, backs: 4, by_frame: true };
    for layout in [behind(4), stages, Layout::Mesh { nodes: 5 }] {
        for part in [0.5, 1.5] {
            let [offered, left, lost, inside] = under(layout, part).frames;
            assert_eq!(offered, left + lost + inside, "{layout:?}");
        }
    }
}

/// One node behind a front that takes no time is M/D/1: the mean wait is ρ / (2 (1 - ρ)) of a service, the median below.
#[test]
fn one_node_waits_as_theory_has_it() {
    let rates = Rates { front_fps: 1e12, node_fps: 10e6, room: usize::MAX };
    let outcome = run(behind(1), &rates, 4_096, 5e6, 400_000, 1);
    assert!((outcome.busiest - 0.5).abs() < 0.01, "{outcome:?}");
    assert!((0.1..0.15).contains(&outcome.delay_us[0]), "{outcome:?}");
    assert_eq!((outcome.lost, outcome.reordered), ([0.0; 3], 0.0));
}

#[test]
fn throughput_grows_with_the_nodes_until_the_front_is_the_limit() {
    for nodes in [1, 2, 4, 8] {
        // Shares are not even: what the ideal is offered the busiest cannot all take.
        let group = Group::new(Hashing::Threshold, nodes);
        let most = shares(&group.ways(4_096), nodes).into_iter().max().expect("a node") as f64 / 4_096.0;
        let even = under(behind(nodes), 0.95 / (most * nodes as f64));
        assert!(even.left_fps > 0.99 * even.offered_fps, "{nodes}: {even:?}");
        assert!((even.busiest - 0.95).abs() < 0.03, "{nodes}: {even:?}");
        let flooded = under(behind(nodes), 2.0f64.min(9.0 / nodes as f64));
        assert!(flooded.left_fps > 0.99 * nodes as f64 * RATES.node_fps, "{nodes}: {flooded:?}");
        assert!(flooded.lost[1] > 0.05 && flooded.lost[0] < 0.01, "{nodes}: {flooded:?}");
    }
    let many = under(behind(64), 1.2);
    assert!((many.left_fps / RATES.front_fps - 1.0).abs() < 0.02, "{many:?}");
    assert!(many.lost[0] > 0.1 && many.lost[1] < 0.01, "the front is the limit: {many:?}");
}

#[test]
fn several_stages_grow_where_one_front_does_not_and_only_frames_of_their_own_way_are_overtaken() {
    let stages = |by_frame| Layout::Stages { fronts: 16, backs: 64, by_frame };
    let (by_flow, by_frame) = (under(stages(false), 0.7), under(stages(true), 0.7));
    assert!(by_flow.left_fps > 4.0 * RATES.front_fps, "{by_flow:?}");
    assert_eq!(by_flow.reordered, 0.0);
    // Routers that are all as busy hold frames up differently, and some overtake others.
    let of_few =
        |layout: Layout| run(layout, &RATES, 64, 0.7 * layout.ideal_fps(&RATES), FRAMES, 1).reordered;
    assert!(of_few(stages(true)) > 0.0);
    assert_eq!(of_few(stages(false)), 0.0);
    // In turns all are as busy; by flows the busiest is what counts.
    assert!(by_frame.busiest < by_flow.busiest);
    for nodes in [16, 64] {
        let mesh = under(Layout::Mesh { nodes }, 0.9);
        assert!(mesh.left_fps > 0.98 * mesh.offered_fps && (mesh.busiest - 0.9).abs() < 0.08, "{mesh:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let at = |seed| format!("{:?}", run(behind(3), &RATES, 512, 20e6, 20_000, seed));
    assert_eq!(at(1), at(1));
    assert_ne!(at(1), at(2));
}

#[test]
fn what_is_found_is_told_and_says_that_it_is_modelled() {
    let found = super::report::find(&RATES, LABORATORY, 20_000, 1);
    let text = lines(&found).join("\n");
    for said in ["modelled", "hangs, BFD 3 x 300 ms", "hold time 240 s", "modulo", "64"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let page = document(&found, 1).to_json().expect("valid");
    assert!(page.contains("modelled") && !page.contains("\"measured\""));
}
