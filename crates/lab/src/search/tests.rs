//! Procedures with a simulated device, of which every answer is known.

use super::mlr::{Goal, Search};
use super::rfc2544::{BackToBack, Delay, LossCurve, Repeat, blocked_ns, recovery_ns};
use super::*;
use crate::simulated::{Device, Simulated};
use causeway_results::traffic::{Matrix, Traffic};

const MS: u64 = 1_000_000;

fn tester(device: Device) -> Simulated {
    let traffic = Traffic { matrix: Matrix::Unidirectional, ..Traffic::simple(64) };
    Simulated::new(traffic, 2, device).expect("a tester")
}

fn go(procedure: &mut dyn Procedure, device: Device) -> Vec<(Request, Outcome)> {
    let mut trials = Vec::new();
    let seen = |request: &Request, outcome: &Outcome, _| {
        trials.push((request.clone(), outcome.clone()));
        Ok(())
    };
    run(procedure, &mut tester(device), seen).expect("all trials");
    assert_eq!(procedure.remaining_ns(), 0);
    trials
}

/// Forwards 50 000 frames a second; one in service and 49 waiting.
const LIMITED: Device = Device {
    delay_ns: 1_000,
    lose_every: 0,
    duplicate_every: 0,
    corrupt_every: 0,
    hold_every: 0,
    hold_ns: 0,
    service_ns: 20_000,
    queue: 49,
    blocked_ns: 3 * MS,
};

#[test]
fn throughput_is_the_rate_of_the_device() {
    let goal = Goal { width: 0.001, ..Goal::rfc2544().shortened(1_000 * MS) };
    let mut search = Search::new(vec![goal], 100, 200_000);
    go(&mut search, LIMITED);
    let result = &search.results()[0];
    // In a second the queue takes some 50 frames more than are served.
    let (lower, upper) = (result.lower_fps.expect("a bound"), result.upper_fps.expect("a bound"));
    assert!(lower <= 50_050 && upper >= 50_049 && upper - lower <= 50, "{lower} {upper}");
}

#[test]
fn loss_falls_with_the_load_until_two_points_are_clean() {
    let mut curve = LossCurve::new(100_000.0, 10, 1_000 * MS);
    go(&mut curve, LIMITED);
    let loads: Vec<f64> = curve.points().iter().map(|(load, _)| (load / 1e3).round()).collect();
    assert_eq!(loads, [100., 90., 80., 70., 60., 50., 40.]);
    for &(load, loss) in curve.points() {
        assert!((loss - (1.0 - 50_050.0 / load).max(0.0)).abs() < 1e-4, "{load}: {loss}");
    }
}

#[test]
fn delay_is_median_and_last_thousandth() {
    let mut repeat = Repeat::latency(10_000.0, 1_000 * MS, 3);
    let every = Device { hold_every: 500, hold_ns: 30_000, ..LIMITED };
    assert_eq!(go(&mut repeat, every).len(), 3);
    let delay = Delay::of(repeat.outcomes(0)).expect("a delay");
    assert!(
        (delay.typical_ns - 21_000.0).abs() < 21.0 && (delay.worst_case_ns - 51_000.0).abs() < 51.0,
        "{delay:?}"
    );
    assert_eq!(Delay::of(std::iter::empty()), None);
}

#[test]
fn the_saturation_rate_is_what_the_device_serves() {
    let mut repeat = Repeat::rates(&[40_000.0, 100_000.0], 1_000 * MS, 2);
    go(&mut repeat, LIMITED);
    let rates = |i| repeat.outcomes(i).map(|o| o.forwarding_fps().round()).collect::<Vec<_>>();
    assert_eq!(rates(0), [40_000.0, 40_000.0]);
    // Those that wait in the end come too: the last frame but one finds 49.
    assert_eq!(rates(1), [50_049.0, 50_049.0]);
}

#[test]
fn bursts_tell_the_size_of_the_queue() {
    // At twice the rate the frame number n finds n / 2 that are not served, rounded up; 49 may be there.
    let mut bursts = BackToBack::new(100_000.0, 1_000 * MS, 3, 0.0);
    go(&mut bursts, LIMITED);
    let found = bursts.lengths(50_000.0).expect("lengths");
    assert_eq!((found.min, found.max, found.deviation, found.at_least), (99, 99, 0.0, false));
    assert_eq!((found.implied_buffer_ns, found.corrected_buffer_ns), (990e3, 495e3));
    // That is 49.5 frames at 100 000 a second: what the device holds.
    let mut bursts = BackToBack::new(40_000.0, 100 * MS, 1, 0.0);
    go(&mut bursts, LIMITED);
    let found = bursts.lengths(40_000.0).expect("lengths");
    assert_eq!((found.max, found.at_least, found.corrected_buffer_ns), (4_000, true, 0.0));
    let mut bursts = BackToBack::new(100_000.0, 1_000 * MS, 1, 0.1);
    let trials = go(&mut bursts, LIMITED).len();
    let found = bursts.lengths(50_000.0).expect("lengths").max;
    // A tenth less than 99 at most, in 14 halves and not in 17, of which those that lose are sent twice.
    assert!((90..=99).contains(&found) && trials < 30, "{found} in {trials} bursts");
}

#[test]
fn recovery_takes_as_long_as_the_queue_needs() {
    let mut repeat = Repeat::recovery(50_000.0, 200_000.0, 500 * MS, 500 * MS, 2);
    let trials = go(&mut repeat, LIMITED);
    for (request, outcome) in &trials {
        let loads: Vec<f64> = request.segments.iter().map(|s| s.load_fps.round()).collect();
        assert_eq!(loads, [55_000.0, 27_500.0]);
        assert!(outcome.analysis.total().lost > 0);
        // The queue never overflows after the load fell; the frame after the last loss may be the first of those.
        assert!(recovery_ns(request, outcome) <= 40_000);
    }
}

#[test]
fn a_disturbance_is_as_long_as_the_device_is_blocked() {
    for event in [Event::Reset, Event::Routes, Event::Swap] {
        let mut repeat = Repeat::disturbed(25_000.0, 400 * MS, event, 2);
        for (request, outcome) in go(&mut repeat, LIMITED) {
            assert_eq!(request.event, Some((event, 100 * MS)));
            assert_eq!(blocked_ns(&outcome).round() as u64, 3 * MS);
        }
    }
}

#[test]
fn a_trial_that_fails_ends_the_procedure() {
    struct Broken;
    impl Tester for Broken {
        fn trial(&mut self, _: &Request) -> Result<Outcome> {
            anyhow::bail!("the device died")
        }
    }
    let mut repeat = Repeat::latency(1.0, 1, 1);
    let error = run(&mut repeat, &mut Broken, |_, _, _| Ok(())).expect_err("no outcome");
    assert_eq!(error.to_string(), "the device died");
    let stop = |_: &Request, _: &Outcome, _| anyhow::bail!("enough");
    assert!(run(&mut repeat, &mut tester(LIMITED), stop).is_err());
}
