//! Calibration by a laboratory that is simulated itself, of which all is known.

use super::*;
use crate::veth::machine::DeviceValues;
use causeway_results::{Axis, Measurement, Run, Series, Source};
use std::sync::OnceLock;

const LENGTHS: [u32; 4] = [64, 256, 1_024, 1_518];
const PARTS: [u32; 4] = [20, 40, 60, 80];
const TAKES: [(&str, f64); 6] = [
    ("system call", 250e3),
    ("copy of 1514 bytes", 40e3),
    ("wake-up", 20e6),
    ("call of a wake-up", 7e6),
    ("interrupt of the clock", 6e6),
    ("pause of a thread", 4e6),
];
const RECEIVE_NS: f64 = 350.0;
const HOW: How = How { seed: 1, followed: Some(3) };
/// Chance there is another than in the model.
const SEED: u64 = 7;

/// Beds as no file has them, and what is forwarded by each: the kernel, which the tester waits for, and Causeway, which waits for it.
fn beds() -> [(&'static str, BedValues); 2] {
    ["kernel", "causeway"].map(|name| {
        let mut bed = ThisMachine::ready(name).expect("a bed");
        bed.tester.call.value = 250_000;
        (bed.tester.receive.value, bed.tester.receive_byte.value) = ((RECEIVE_NS * 1e3) as u64, 0);
        (bed.tester.send.value, bed.tester.byte.value) = (600_000, 150);
        (bed.tester.watched.value, bed.device.watched.value) = (10_000_000, 10_000_000);
        bed.tester.wakes.value = 7_000_000;
        (bed.tester.single.value, bed.tester.single_byte.value) = (1_400_000, 500);
        if bed.device.many.value > 1 {
            bed.device.single.value = 1_400_000 + 500 * paid(64) - (600_000 + 150 * paid(64));
        }
        let DeviceValues { wake, turn, frame, byte, .. } = &mut bed.device;
        let known = if name == "kernel" {
            [9_000_000, 900_000, 2_600_000, 400]
        } else {
            [9_000_000, 1_500_000, 1_200_000, 300]
        };
        for (value, known) in [wake, turn, frame, byte].into_iter().zip(known) {
            value.value = known;
        }
        (name, bed)
    })
}

/// Repetitions of which this is the median.
fn around(value: f64) -> Vec<f64> {
    [0.99, 1.0, 1.01, 0.995, 1.005].map(|factor| factor * value).into()
}

fn series(name: String, points: Vec<(u32, f64)>) -> Series {
    let at = |(x, value)| Measurement {
        x: Some(f64::from(x)),
        source: Source::Measured,
        repetitions: around(value),
        note: String::new(),
    };
    Series {
        name,
        quantity: "q".to_owned(),
        unit: "u".to_owned(),
        x: Some(Axis { quantity: "x".to_owned(), unit: String::new() }),
        baseline: None,
        measurements: points.into_iter().map(at).collect(),
    }
}

/// What the laboratory would write if these were its beds.
fn laboratory(beds: &[(&str, BedValues)]) -> Document {
    let made = |bed: &BedValues, bytes, load_fps| run(bed, &Trial::new(bytes, load_fps, RUN_PS, SEED));
    let mut document = Document::new(Run::default());
    document.run.machine.processor = "a \"processor\"".to_owned();
    document.series.extend(TAKES.map(|(thing, ps)| series(format!("machine/{thing}"), vec![(0, ps)])));
    for (name, bed) in beds {
        let full = LENGTHS.map(|bytes| (bytes, made(bed, bytes, FULL_FPS)));
        let of = |value: fn(&Outcome) -> f64| full.iter().map(|(bytes, one)| (*bytes, value(one))).collect();
        document
            .series
            .push(series(format!("{name}/saturation forwarding rate"), of(|one| one.forwarded_fps)));
        document.series.push(series(format!("{name}/time to receive"), of(|_| RECEIVE_NS)));
        for bytes in LENGTHS {
            let each = |[frame, byte]: [u64; 2]| (frame + byte * paid(bytes)) as f64 / 1e3;
            let t = &bed.tester;
            let single = each([t.single.value, t.single_byte.value]);
            let many = each([t.send.value, t.byte.value]);
            let call = t.call.value as f64 / 1e3;
            let of_many = call + t.many_call.value as f64 / 1e3 + 64.0 * many;
            let times = vec![(1, call + single), (4, call + 4.0 * single), (64, of_many)];
            document.series.push(series(format!("{name}/{bytes} bytes/time to hand over"), times));
        }
        for (bytes, one) in &full {
            let at = PARTS.map(|part| {
                let load_fps = one.forwarded_fps * f64::from(part) / 100.0;
                (part, load_fps, made(bed, *bytes, load_fps).inside_us)
            });
            let of =
                |value: fn(&(u32, f64, [f64; 2])) -> f64| at.iter().map(|one| (one.0, value(one))).collect();
            let named = |what: &str| format!("{name}/{bytes} bytes/{what}");
            document.series.push(series(named("offered load"), of(|one| one.1)));
            document.series.push(series(named("median delay"), of(|one| one.2[0])));
            document.series.push(series(named("99 of 100 within"), of(|one| one.2[1])));
            document.series.push(series(named("limited by the tester"), of(|_| 0.0)));
        }
    }
    document
}

/// That of both, and what is made of it.
fn both() -> &'static (Document, Calibration) {
    static BOTH: OnceLock<(Document, Calibration)> = OnceLock::new();
    BOTH.get_or_init(|| {
        let document = laboratory(&beds());
        let calibration = found(&document);
        (document, calibration)
    })
}

fn found(document: &Document) -> Calibration {
    Calibration::of(document, HOW).expect("it was measured in rounds")
}

/// Of one device.
fn alone(document: &Document, device: &str) -> Document {
    let mut alone = document.clone();
    alone.series.retain(|series| series.name.starts_with(device) || series.name.starts_with("machine/"));
    alone
}

fn change(document: &mut Document, name: &str, at: usize, repetitions: Vec<f64>) {
    let series = document.series.iter_mut().find(|series| series.name == name);
    series.unwrap_or_else(|| panic!("no {name}")).measurements[at].repetitions = repetitions;
}

#[test]
fn known_costs_are_found_again_and_all_other_points_predicted() {
    let beds = beds();
    let calibration = &both().1;
    assert!(calibration.holds(), "{:#?}", calibration.lines());
    let machine = ThisMachine::parse(&calibration.text, "this-machine.toml").expect("right");
    for (name, known) in &beds {
        let [device, of_device] =
            [&machine.bed[*name].device, &known.device].map(|d| [d.frame.value, d.byte.value]);
        let measured = |bed: &BedValues| {
            let (t, d) = (&bed.tester, &bed.device);
            let ways = [&t.call, &t.single, &t.single_byte, &t.send, &t.byte, &t.many_call, &d.single];
            ways.into_iter()
                .chain([&d.many_call, &t.receive, &t.wakes, &t.watched, &d.watched])
                .map(|one| one.value)
                .collect::<Vec<_>>()
        };
        for (found, known) in measured(&machine.bed[*name]).into_iter().zip(measured(known)) {
            // Of hand-overs the lower decile counts.
            assert!(found.abs_diff(known) <= 1 + known / 50, "{name}: {found} instead of {known}");
        }
        for bytes in [LENGTHS[0], LENGTHS[LENGTHS.len() - 1]].map(paid) {
            let [found, known] = [device, of_device].map(|[frame, byte]| frame + bytes * byte);
            let off = found as f64 / known as f64 - 1.0;
            assert!(off.abs() < 0.1, "{name}: {found} instead of {known}\n{}", calibration.text);
        }
    }
    // The kernel's processor sleeps between frames, so that its waking is seen, with the turn that follows; Causeway's worker looks out.
    let kernel = &machine.bed["kernel"].device;
    let wake = (kernel.wake.value + kernel.turn.value) as f64 / 9.9e6;
    assert!((wake - 1.0).abs() < 0.1, "{wake}");
    for one in &calibration.found {
        let used = one.points.iter().filter(|point| point.used).count();
        let counts = one.points.iter().filter(|point| point.counts).count();
        assert_eq!((used, counts), (6, LENGTHS.len() * (PARTS.len() + 1) - 6), "{}", one.name);
        // Far nearer than is promised, since the laboratory is the model.
        assert!(one.points.iter().all(|point| point.error().abs() < 0.1), "{:#?}", calibration.lines());
    }
}

#[test]
fn few_values_of_a_bed_are_calibrated_and_say_on_what() {
    let calibration = &both().1;
    for bed in ["kernel", "causeway"] {
        let parts = calibration.text.split("\n[").filter(|part| part.starts_with(&format!("bed.\"{bed}\".")));
        let calibrated: Vec<&str> =
            parts.flat_map(str::lines).filter(|line| line.contains("calibrated = ")).collect();
        assert_eq!(calibrated.len(), fit::FITTED, "{calibrated:?}");
        let on = "calibrated = \"rates of 64 and 1518 bytes, and median delays of 64 bytes at 20 %, of 64 bytes at 60 %, of 1518 bytes at 20 %, of 1518 bytes at 60 %\"";
        assert!(calibrated.iter().all(|line| line.contains(on)), "{calibrated:?}");
    }
}

#[test]
fn predictions_are_made_from_the_file_alone() {
    let (document, Calibration { text, .. }) = both();
    let again = Calibration::by_file(document, text, "mine.toml", HOW).expect("right");
    assert!(
        again.holds() && again.found.iter().flat_map(|one| &one.points).all(|point| point.counts),
        "nothing was calibrated"
    );
    let outcomes = |calibration: &Calibration| -> Vec<Outcome> {
        calibration.found.iter().flat_map(|one| &one.points).map(|point| point.outcome.clone()).collect()
    };
    assert_eq!(outcomes(&again), outcomes(&both().1), "the file has all that the run predicts from");
    // A device that takes twice as long for a frame forwards half.
    let machine = ThisMachine::parse(text, "mine.toml").expect("right");
    let frame = machine.bed["kernel"].device.frame.text();
    let slower =
        text.replace(&format!("frame = {frame}"), "frame = { value = \"6 us\", assumed = \"a test\" }");
    let slower = Calibration::by_file(document, &slower, "mine.toml", HOW).expect("right");
    assert!(!slower.holds());
    let rate = |calibration: &Calibration| calibration.found[0].points[0].modelled();
    assert!(rate(&slower) < 0.6 * rate(&again), "{} and {}", rate(&slower), rate(&again));
    assert!(slower.lines().join("\n").contains("**missed**"));
    let (kernel, causeway) = text.split_once("[bed.\"causeway\"").expect("both");
    let wrong = format!("{kernel}[bed.\"causeway\"{}", causeway.replace("wake =", "woke ="));
    let line = wrong.lines().position(|line| line.starts_with("woke")).expect("there") + 1;
    let error = Calibration::by_file(document, &wrong, "mine.toml", HOW).expect_err("refused").to_string();
    assert!(error.contains(&format!("mine.toml, line {line}: ")) && error.contains("woke"), "{error}");
    let alone = Calibration::by_file(document, kernel, "mine.toml", HOW).expect("right");
    assert_eq!(alone.refused, ["mine.toml has no bed with causeway"]);
}

#[test]
fn what_has_two_modes_calibrates_nothing_and_is_promised_nothing() {
    let good = both().0.clone();
    let two = |value: f64| [1.0, 1.01, 1.02, 1.5, 1.51, 1.52].map(|factor| factor * value).to_vec();
    // A rate, in whose place that of the next length calibrates.
    let mut document = alone(&good, "kernel");
    change(&mut document, "kernel/saturation forwarding rate", 0, two(200e3));
    let calibration = found(&document);
    assert!(
        calibration.text.contains("calibrated = \"rates of 256 and 1518 bytes, "),
        "{}",
        calibration.text
    );
    let [rate, ..] = &calibration.found[0].points[..] else { panic!("no points") };
    assert!(!rate.used && !rate.counts);
    assert!(calibration.found[0].left_out[0].starts_with("the rate of 64 bytes has two modes"));
    // So many that two are not left.
    (1..3).for_each(|n| change(&mut document, "kernel/saturation forwarding rate", n, two(200e3)));
    let calibration = found(&document);
    assert!(
        calibration.refused[0].starts_with("kernel at 64 bytes, what is forwarded has two modes"),
        "{:?}",
        calibration.refused
    );
    assert!(
        calibration.found.is_empty() && !calibration.holds() && !calibration.text.contains("kernel\".device")
    );
    // A delay in whose place another calibrates, and one that was to be predicted.
    let mut document = alone(&good, "kernel");
    change(&mut document, "kernel/64 bytes/median delay", 0, two(1.0));
    change(&mut document, "kernel/256 bytes/median delay", 1, two(1.0));
    // The tester fell behind once, and more often than not.
    change(&mut document, "kernel/256 bytes/limited by the tester", 2, vec![0.0, 1.0, 0.0, 0.0, 0.0]);
    change(&mut document, "kernel/256 bytes/limited by the tester", 3, vec![0.0, 1.0, 1.0, 1.0, 0.0]);
    // So much so that it sent less than at 60 %.
    change(&mut document, "kernel/256 bytes/offered load", 3, vec![1e3; 5]);
    // Of what is forwarded later this is more than was meant.
    let carried =
        document.series("kernel/saturation forwarding rate").expect("measured").measurements[2].clone();
    let most = median(&carried.repetitions).expect("a rate");
    change(&mut document, "kernel/1024 bytes/offered load", 2, vec![0.91 * most; 5]);
    change(&mut document, "kernel/1024 bytes/offered load", 3, vec![0.93 * most; 5]);
    let calibration = found(&document);
    calibration.document().to_json().expect("loads rise in it");
    let kernel = &calibration.found[0];
    let at = |bytes, part| {
        kernel.points.iter().find(|one| one.bytes == bytes && one.part == Some(part)).expect("a point")
    };
    assert!(!at(64, 20).used && !at(64, 20).counts && at(64, 40).used);
    assert!(at(256, 60).counts && !at(256, 80).counts);
    assert!(at(1_024, 60).counts && !at(1_024, 80).counts);
    assert!(!at(256, 40).counts && kernel.left_out.len() == 4, "{:?}", kernel.left_out);
    assert!(kernel.left_out[3].contains("at 80 % was so at 93 % of what the rounds found"));
    assert!(
        kernel.left_out[1].starts_with("the delay of 256 bytes at 40 % has two modes"),
        "{:?}",
        kernel.left_out
    );
}

#[test]
fn what_is_too_little_is_refused() {
    let good = alone(&both().0, "kernel");
    let refused = |document: &Document| found(document).refused.concat();
    let mut document = good.clone();
    let rates = "kernel/saturation forwarding rate";
    (0..LENGTHS.len()).for_each(|n| change(&mut document, rates, n, vec![1.0; 4]));
    assert!(
        refused(&document).starts_with("kernel at 64 bytes, what is forwarded: 4 repetitions; from 5 on")
    );
    document.series.iter_mut().for_each(|series| series.measurements.truncate(2));
    assert_eq!(refused(&document), "kernel: 2 lengths; two calibrate, and others are to be predicted");
    let mut document = good;
    document.series.retain(|series| !series.name.ends_with("time to hand over"));
    assert!(
        refused(&document).starts_with("kernel, 64 bytes: how long hand-overs take is not there"),
        "{}",
        refused(&document)
    );
    let none = Document::new(Run::default());
    let error = Calibration::of(&none, HOW).expect_err("refused").to_string();
    assert_eq!(error, "no device of these results was measured in rounds");
}

#[test]
fn both_curves_are_told_and_drawn() {
    let calibration = &both().1;
    let page = calibration.document().to_json().expect("valid");
    for name in [
        "kernel, measured/forwarding rate",
        "causeway, 256 bytes, modelled/median delay",
        "kernel, 64 bytes, measured/99 of 100 within",
    ] {
        assert!(page.contains(name), "{name}");
    }
    let pictures = calibration.pictures();
    let names: Vec<&str> = pictures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["rates", "delays-kernel", "delays-causeway"]);
    assert!(pictures.iter().all(|(_, chart)| chart.svg().expect("drawn").contains("64 bytes, simulated")
        || chart.svg().expect("drawn").contains("kernel, simulated")));
    let ways = calibration.ways().join("\n");
    assert!(
        ways.contains("one frame, kernel, 64 bytes, at 20 % (modelled)") && ways.contains("has left"),
        "{ways}"
    );
    let why = calibration.why();
    assert!(
        why.iter()
            .any(|line| line.starts_with("  causeway, 1518 bytes, more than is sent: the tester sends ")),
        "{why:?}"
    );
    assert!(
        calibration
            .lines()
            .iter()
            .any(|line| line.starts_with("| 64 | ") && line.contains(", calibrated) |"))
    );
}

#[test]
fn loads_that_round_alike_are_one_in_the_document() {
    let mut calibration = both().1.clone();
    let delays = calibration.found[0].points.iter_mut().filter(|point| point.part.is_some());
    delays.take(2).zip([0.1, 0.2]).for_each(|(point, more)| point.load_fps = 5e3 + more);
    calibration.document().to_json().expect("valid");
    let points = |document: &Document| {
        let series = document.series("kernel, 64 bytes, modelled/median delay");
        series.map_or(0, |series| series.measurements.len())
    };
    assert_eq!(points(&calibration.document()) + 1, points(&both().1.document()));
}

#[test]
fn modes_are_told_from_spread_and_from_one_that_is_off() {
    assert!(has_two_modes(&[14.0, 66.0, 14.5, 15.0, 65.0, 64.0]));
    assert!(!has_two_modes(&[10.0, 11.0, 12.0, 13.0, 14.0, 15.0]), "spread");
    assert!(!has_two_modes(&[10.0, 10.1, 10.2, 10.1, 30.0]), "one that is off");
    assert!(!has_two_modes(&[1.0, 2.0]) && !has_two_modes(&[]));
}
