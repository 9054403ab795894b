//! Calibration on given numbers: those of docs/results/bench.md, and made-up ones that are easy to reckon.

use super::*;

/// A measurement with repetitions around a value, the median of which it is.
fn around(x: f64, value: f64) -> Measurement {
    let repetitions = [0.99, 1.0, 1.01, 0.995, 1.005].map(|factor| factor * value);
    Measurement { x: Some(x), ..Measurement::measured(repetitions) }
}

fn series(name: &str, points: &[(f64, f64)]) -> Series {
    let mut series = Series::single(name, "forwarding rate", "frames/s", Measurement::measured(vec![1.0]));
    series.x = Some(Axis { quantity: "x".to_owned(), unit: String::new() });
    series.measurements = points.iter().map(|&(x, value)| around(x, value)).collect();
    series
}

fn document(all: Vec<Series>) -> Document {
    let mut document = Document::new(Run::default());
    document.run.machine.processor = "a \"processor\"".to_owned();
    document.series = all;
    document
}

fn rates(name: &str, points: &[(f64, f64)]) -> Series {
    series(&format!("{name}{RATE}"), points)
}

/// What docs/results/bench.md has of veth: the rates of 64 and 1518 bytes predict those of 512.
#[test]
fn two_lengths_predict_the_third_that_was_measured() {
    let all = [
        ("kernel", [2.13e6, 1.93e6, 1.67e6], 1.965e6),
        ("causeway", [3.15e6, 2.15e6, 1.55e6], 2.391e6),
        ("redirect", [4.72e6, 3.86e6, 3.07e6], 4.051e6),
    ];
    let series = all.map(|(name, [a, b, c], _)| rates(name, &[(64.0, a), (512.0, b), (1_518.0, c)]));
    let calibration = Calibration::of(&document(series.into())).expect("numbers that calibrate");
    for (one, (name, _, expected)) in calibration.found.iter().zip(all) {
        assert_eq!(one.name, name);
        assert!(!one.rates[0].counts && one.rates[1].counts && !one.rates[2].counts);
        assert!(one.rates[0].error().abs() < 0.01 && one.rates[2].error().abs() < 0.01, "{:?}", one.rates);
        // By hand: 469 ns and 89 ps a byte more than at 64 make 509 ns for the kernel.
        assert!((one.rates[1].modelled / expected - 1.0).abs() < 0.005, "{name}: {:?}", one.rates[1]);
    }
    assert!(calibration.holds(), "{:#?}", calibration.lines());
}

/// A median delay of frames of this length at this part of the PDR, microseconds.
fn delay(bytes: u32, part: u32, us: f64) -> Series {
    series(&format!("mine/{bytes} bytes/delay at {part} % of its PDR"), &[(0.0, 1.0), (50.0, us)])
}

/// 1 us a frame whatever its length, 10 us inside, and who sends is held up for 80 us: by hand 10 + 0.0556 * 81 us at 10 %,
/// 10 + 0.5 * 81 at 50 %, 10 + 4.5 * 81 at 90 %.
fn delayed() -> Vec<Series> {
    let mut all = vec![rates("mine", &[(64.0, 1e6), (512.0, 1e6), (1_518.0, 1e6)])];
    all.extend([(10, 14.5), (50, 50.5), (90, 20.0)].map(|(part, us)| delay(64, part, us)));
    all.extend([(10, 14.5), (50, 50.5)].map(|(part, us)| delay(512, part, us)));
    all.push(delay(1_518, 50, 50.5));
    all
}

#[test]
fn waits_are_those_of_bursts_and_nothing_is_promised_near_saturation() {
    let calibration = Calibration::of(&document(delayed())).expect("numbers that calibrate");
    let found = &calibration.found[0];
    let near = |time: &Option<Value<Span>>, us: f64| {
        (time.as_ref().expect("calibrated").value as f64 / 1e6 / us - 1.0).abs() < 0.001
    };
    assert!(near(&found.device.inside, 10.0) && near(&found.device.held_up, 80.0), "{:?}", found.device);
    let modelled: Vec<f64> =
        found.delays.iter().map(|point| (point.modelled * 10.0).round() / 10.0).collect();
    assert_eq!(modelled, [14.5, 50.5, 374.5, 14.5, 50.5, 50.5]);
    let counts: Vec<bool> = found.delays.iter().map(|point| point.counts).collect();
    assert_eq!(counts, [false, true, false, true, true, false], "two are calibrated on, and one is beyond");
    assert!(calibration.holds(), "what is missed beyond the promise does not count");
    let curves = calibration.document();
    let curve = curves.series("mine, 512 bytes, modelled/median delay").expect("a curve");
    assert_eq!(curve.measurements.iter().map(|one| one.x).collect::<Vec<_>>(), [Some(1e5), Some(5e5)]);
}

#[test]
fn delays_that_are_missed_or_have_two_modes_are_told() {
    let mut all = delayed();
    all[5] = delay(512, 50, 70.0);
    all[4].measurements[1].repetitions = vec![10.0, 10.1, 10.2, 20.0, 20.1, 20.2];
    let calibration = Calibration::of(&document(all)).expect("numbers that calibrate");
    assert!(!calibration.holds());
    let text = calibration.lines().join("\n");
    let line = |words: &str, end: &str| text.lines().any(|line| line.contains(words) && line.ends_with(end));
    assert!(line("512 bytes   500 kpps measured", "missed"), "{text}");
    assert!(line("left out: mine/512 bytes/delay at 10 % of its PDR has two modes", "]"), "{text}");
}

#[test]
fn where_frames_are_not_held_up_they_wait_as_in_m_d_1() {
    let mut all = delayed();
    // 10 us and the wait of M/D/1; and less than that.
    for longest in [10.5, 9.0] {
        all[1] = delay(64, 10, 10.055_6);
        all[6] = delay(1_518, 50, longest);
        let calibration = Calibration::of(&document(all.clone())).expect("numbers that calibrate");
        let at_half = calibration.found[0].delays[1].modelled;
        assert!((at_half - 10.5).abs() < 0.01, "{at_half}");
    }
}

#[test]
fn what_is_missed_is_said() {
    let bent = rates("mine", &[(64.0, 2e6), (512.0, 1e6), (1_518.0, 1e6)]);
    let calibration = Calibration::of(&document(vec![bent])).expect("numbers that calibrate");
    assert!(!calibration.holds());
    let text = calibration.lines().join("\n");
    assert!(text.lines().any(|line| line.contains("512 bytes") && line.ends_with("missed")), "{text}");
}

fn refused(document: &Document) -> String {
    Calibration::of(document).expect_err("refused").to_string()
}

#[test]
fn what_calibrates_nothing_is_refused() {
    let good = || rates("mine", &[(64.0, 2e6), (512.0, 1.5e6), (1_518.0, 1e6)]);
    let with = |change: &dyn Fn(&mut Series)| {
        let mut series = good();
        change(&mut series);
        refused(&document(vec![series]))
    };
    let two = with(&|series| series.measurements[0].repetitions = vec![1.0, 1.01, 1.02, 1.5, 1.51, 1.52]);
    assert!(two.starts_with("mine at 64 bytes has two modes, and calibrates nothing"), "{two}");
    let few = with(&|series| series.measurements[2].repetitions.truncate(4));
    assert!(few.starts_with("mine at 1518 bytes: 4 repetitions; from 5 on"), "{few}");
    let limited = with(&|series| series.measurements[1].note = LIMITED.to_owned());
    assert_eq!(limited, "mine: 2 lengths; two calibrate, and others are to be predicted");
    let none = with(&|series| series.measurements[0].repetitions = vec![0.0; 5]);
    assert_eq!(none, "mine at 64 bytes is nothing");
    let one = with(&|series| series.measurements.truncate(1));
    assert_eq!(one, "mine: 1 lengths; two calibrate, and others are to be predicted");
    let nobody = refused(&document(vec![series("mine/PDR", &[(64.0, 1.0)])]));
    assert_eq!(nobody, "no device of these results has an NDR");
    // What a formula gave is no measurement.
    let mut line = rates("line rate", &[(64.0, 1.0)]);
    line.measurements[0].source = Source::Modelled;
    assert!(Calibration::of(&document(vec![line, good()])).is_ok());
}

#[test]
fn what_the_tester_limits_is_predicted_of_the_whole_bed() {
    let lengths = [64.0, 512.0, 1_518.0];
    let all_limited = |name: &str, points: [f64; 3]| {
        let mut series = series(name, &[0, 1, 2].map(|n| (lengths[n], points[n])));
        series.measurements.iter_mut().for_each(|one| one.note = LIMITED.to_owned());
        series
    };
    let own = all_limited("mine/NDR", [1e6; 3]);
    assert_eq!(
        refused(&document(vec![own.clone()])),
        "mine: 0 lengths; two calibrate, and others are to be predicted"
    );
    // 1 us at 64 bytes and 2 us at 1518; by hand 1.3081 us at 512.
    let bed = all_limited("mine/saturation forwarding rate", [1e6, 0.78e6, 0.5e6]);
    let delay = series("mine/64 bytes/delay at 10 % of its PDR", &[(50.0, 5.0)]);
    let calibration = Calibration::of(&document(vec![own, bed, delay])).expect("numbers that calibrate");
    let found = &calibration.found[0];
    assert!(found.in_bed && (found.rates[1].modelled - 764_460.0).abs() < 100.0, "{:?}", found.rates);
    assert_eq!(found.device.frame.origin.to_string(), "calibrated: 64 and 1518 bytes, of the bed");
    assert_eq!(found.delays[0].x, 1e5, "a tenth of its PDR");
    assert!(calibration.lines()[1].contains("mine: the tester limits its NDR"), "{:?}", calibration.lines());
    // One length that the tester limited is left out, and the others are the device's own.
    let mut own = rates("mine", &[(64.0, 1e6), (128.0, 1e6), (512.0, 1e6), (1_518.0, 1e6)]);
    own.measurements[3].note = LIMITED.to_owned();
    let calibration = Calibration::of(&document(vec![own])).expect("numbers that calibrate");
    assert!(!calibration.found[0].in_bed && calibration.found[0].rates.len() == 3);
}

#[test]
fn modes_are_told_from_spread_and_from_one_that_is_off() {
    assert!(has_two_modes(&[14.0, 66.0, 14.5, 15.0, 65.0, 64.0]));
    assert!(!has_two_modes(&[10.0, 11.0, 12.0, 13.0, 14.0, 15.0]), "spread");
    assert!(!has_two_modes(&[10.0, 10.1, 10.2, 10.1, 30.0]), "one that is off");
    assert!(!has_two_modes(&[1.0, 2.0]) && !has_two_modes(&[]));
}

#[test]
fn the_machine_file_can_be_read_again() {
    let all = rates("mine", &[(64.0, 2e6), (512.0, 1.8e6), (1_518.0, 1e6)]);
    let calibration = Calibration::of(&document(vec![all])).expect("numbers that calibrate");
    let text = calibration.text(&[("system call", 85_000.0), ("wake-up", 54e6)]);
    let read = Measured::parse(&text, "this-machine.toml").expect("right");
    let (device, known) = (&read.device["mine"], &calibration.found[0].device);
    assert_eq!((device.frame.value, device.byte.value), (known.frame.value, known.byte.value));
    assert_eq!(read.takes["wake-up"].value, 54_000_000);
    assert_eq!(device.frame.origin.to_string(), "calibrated: 64 and 1518 bytes");
    assert!(read.about.contains("a \"processor\""));
    let wrong = text.replace("frame =", "farm =");
    let line = wrong.lines().position(|line| line.starts_with("farm")).expect("there") + 1;
    let error = Measured::parse(&wrong, "mine.toml").expect_err("refused").to_string();
    assert!(error.contains(&format!("mine.toml, line {line}: ")) && error.contains("farm"), "{error}");
    let page = calibration.document().to_json().expect("valid");
    assert!(page.contains("\"measured\"") && page.contains("\"modelled\""));
}
