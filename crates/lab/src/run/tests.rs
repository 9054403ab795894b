mod asked;
mod told;

use super::*;
use crate::analyser::{Analyser, Counts, Sent};
use crate::frame::{Seen, Tag};
use crate::search::mlr::GoalResult;
use crate::search::rfc2544::BurstLengths;
use crate::search::{Event, Outcome, Request};
use crate::tester::Step;
use causeway_results::{Machine, Run, csv};
use std::collections::BTreeMap;

fn outcome(sent: u64, received: u64, limited: bool) -> Outcome {
    let mut analysis = Analyser::new(0, 1).finish(&[]);
    analysis.flows = vec![Counts { sent, in_order: received, lost: sent - received, ..Counts::default() }];
    Outcome { intended: sent, effective_ns: 1_000_000_000, limited, analysis }
}

fn place(device: &str, repetition: usize) -> Place<'_> {
    Place { device, size: "64 bytes", length: 64.0, repetition }
}

#[test]
fn what_is_found_is_a_valid_document_at_any_time() {
    let names = ["kernel".to_owned(), "causeway".to_owned()];
    let mut document = Document::new(Run { machine: Machine::default(), ..Run::default() });
    let step = Step { asked_fps: 1e6, offered_fps: 1e6, received_fps: 1e6, limited: false };
    let test = SelfTest { steps: vec![step], bias_ns: Some(900) };
    let check = |document: &Document| {
        let text = document.to_json().expect("valid");
        assert_eq!(&Document::from_json(&text).expect("valid"), document);
    };
    Findings::new(&mut document, &names).self_test(&test);
    check(&document);
    for (device, rate) in [("kernel", 400_000), ("causeway", 950_000)] {
        for repetition in 0..2 {
            let mut findings = Findings::new(&mut document, &names);
            let result = GoalResult {
                goal: "NDR".to_owned(),
                upper_fps: Some(rate + 1_000),
                lower_fps: Some(rate),
                conditional_throughput_fps: Some(rate as f64),
            };
            let place = place(device, repetition);
            findings.bounds(&place, &[result], &test);
            findings.trace(&place, &[(1e6, 0.5, false), (4e5, 0.0, true)]);
            findings.processor_time(&place, 1e6, 2_000_000, &outcome(10_000, 8_000, false));
            let outcomes = [outcome(1_000_000, rate, false), outcome(500_000, rate.min(500_000), false)];
            findings.curve(&place, &[1e6, 5e5], &outcomes, &test);
            findings.delay(&place, 0.5, &[outcome(10, 10, false)]);
            let lengths = BurstLengths {
                mean: 99.0,
                min: 99,
                max: 99,
                deviation: 0.0,
                implied_buffer_ns: 990e3,
                corrected_buffer_ns: 495e3,
                at_least: false,
            };
            findings.bursts(&place, &lengths);
            findings.recovery(&place, &Request::new(1.0, 5_000_000), &outcome(10, 8, false));
            findings.blocked(&place, Event::Reset, &outcome(1_000, 990, false));
            findings.line_rate(&place, "load", "NDR", 1_488_095.0);
            check(&document);
        }
    }
    for (what, value) in [("upper bound", 951_000.0), ("conditional throughput", 950_000.0)] {
        let found = document.series(&format!("causeway/NDR, {what}")).expect("found");
        assert_eq!((found.quantity.as_str(), found.measurements[0].repetitions[0]), (what, value));
        assert_eq!(found.baseline, Some(format!("kernel/NDR, {what}")));
    }
    let causeway = document.series("causeway/NDR").expect("found");
    assert_eq!(causeway.baseline.as_deref(), Some("kernel/NDR"));
    assert_eq!(causeway.measurements[0].repetitions, [950_000.0; 2]);
    assert_eq!(causeway.measurements[0].note, findings::LIMITED, "the tester does no tenth more");
    assert!(document.series("kernel/NDR").expect("found").measurements[0].note.is_empty());
    let curve = document.series("kernel/64 bytes/loss").expect("found");
    let points: Vec<_> = curve.measurements.iter().map(|one| (one.x, one.repetitions[0])).collect();
    assert_eq!(points, [(Some(5e5), 0.2), (Some(1e6), 0.6)]);
    let only = |name: &str| document.series(name).expect("found").measurements[0].repetitions.clone();
    assert_eq!(only("causeway/buffer time"), [495.0; 2]);
    assert_eq!(only("causeway/64 bytes/processor time a packet"), [250.0; 2]);
    // Ten of a thousand in a second.
    assert_eq!(only("causeway/blocked by a reset"), [10.0; 2]);
    assert_eq!(only("line rate/NDR"), [1_488_095.0], "once, however often the devices are measured");
    assert_eq!(document.series("kernel/64 bytes/search 2/load").expect("found").measurements.len(), 2);
    assert!(
        csv::table(&document).contains("causeway/NDR,load,frames/s,frame length,bytes,64,measured,2,950000")
    );
}

#[test]
fn what_came_otherwise_than_it_was_sent_and_variations_of_delay_are_written() {
    let frame = |sequence, sent_ns| Seen::Test(Tag { trial: 1, flow: 0, sequence, sent_ns });
    let mut analyser = Analyser::new(1, 1);
    // The second is 3 us later than the first, the fourth comes before the third, which comes twice.
    for (seen, at_ns) in [
        (frame(0, 0), 10_000),
        (frame(1, 10_000), 23_000),
        (frame(3, 30_000), 40_000),
        (frame(2, 20_000), 41_000),
        (frame(2, 20_000), 42_000),
        (Seen::Corrupt, 43_000),
        (Seen::Foreign, 44_000),
        (Seen::Foreign, 45_000),
    ] {
        analyser.record(seen, at_ns);
    }
    let analysis = analyser.finish(&[Sent { frames: 4, last_ns: 30_000 }]);
    let outcome = Outcome { intended: 4, effective_ns: 1_000_000, limited: false, analysis };
    let mut document = Document::new(Run::default());
    let test = SelfTest { steps: Vec::new(), bias_ns: None };
    let mut findings = Findings::new(&mut document, &["kernel".to_owned()]);
    findings.curve(&place("kernel", 0), &[4_000.0], std::slice::from_ref(&outcome), &test);
    findings.delay(&place("kernel", 0), 0.5, &[outcome]);
    for of in ["64 bytes", "64 bytes, delay"] {
        for (what, value) in [
            ("duplicated frames", 1.0),
            ("reordered frames", 1.0),
            ("corrupt frames", 1.0),
            ("foreign frames", 2.0),
            ("IPDV, 99.9 %", 3.0),
            ("PDV", 11.0),
        ] {
            let name = format!("kernel/{of}/{what}");
            let one = &document.series(&name).unwrap_or_else(|| panic!("{name}")).measurements[0];
            assert!((one.repetitions[0] - value).abs() < 0.02, "{name}: {one:?}");
        }
    }
    let ipdv = document.series("kernel/64 bytes/IPDV at 50 % of its PDR").expect("percentiles");
    assert_eq!(ipdv.measurements.len(), 7);
    assert!(
        csv::table(&document).contains("kernel/64 bytes/foreign frames,foreign frames,frames,offered load,")
    );
}

fn sizes(lengths: &[String]) -> Vec<(String, Sizes)> {
    let fixed =
        |length: &String| (format!("{length} bytes"), Sizes::Fixed(length.parse().expect("a length")));
    lengths.iter().map(fixed).collect()
}

fn asked(sizes: &[(String, Sizes)]) -> Vec<(&str, Option<&Sizes>)> {
    sizes.iter().map(|(name, sizes)| (name.as_str(), Some(sizes))).collect()
}

#[test]
fn shorter_trials_are_deviations() {
    let of = |preset: Preset| -> BTreeMap<_, _> {
        preset.deviations(&asked(&sizes(&preset.lengths()))).into_iter().collect()
    };
    assert_eq!(of(Preset::quick())["trials of a search"], "100 ms, not 1 s (CSIT) or 60 s (RFC 2544 §24)");
    assert_eq!(of(Preset::paper())["trials of a search"], "30000 ms, not 60 s (RFC 2544 §24)");
    assert_eq!(
        of(Preset::quick())["trials of delay"],
        "300 ms and 1 in a repetition, not 120 s and 20 (RFC 2544 §26.2)"
    );
    assert!(of(Preset::quick())["repetitions"].contains("first repetition alone"));
    assert!(!of(Preset::paper()).contains_key("repetitions"));
    let names = |preset: Preset| preset.goals().iter().map(|goal| goal.name.clone()).collect::<Vec<_>>();
    for preset in [Preset::quick(), Preset::paper(), Preset::conformant()] {
        assert_eq!(names(preset), ["RFC 2544 throughput", "NDR", "PDR"]);
    }
    assert_eq!(
        of(Preset::quick())["throughput of RFC 2544"],
        "one trial of 100 ms judges a load, not one of 60 s (RFC 2544 §24), found to 3 %"
    );
    assert!(!of(Preset::conformant()).contains_key("throughput of RFC 2544"));
}

#[test]
fn what_is_conformant_has_the_lengths_and_delays_of_rfc_2544_and_says_what_it_has_not() {
    let preset = Preset::conformant();
    assert_eq!(preset.lengths(), ["64", "128", "256", "512", "1024", "1280", "1518"]);
    // In all repetitions together 20 or more.
    assert_eq!([1, 3, 20, 50].map(|repetitions| preset.delays_of(repetitions)), [20, 7, 1, 1]);
    assert_eq!(Preset::quick().delays_of(3), 1);
    let names = |sizes: &[(String, Sizes)]| -> Vec<_> {
        preset.deviations(&asked(sizes)).into_iter().map(|(name, _)| name).collect()
    };
    let always = ["loads of delay", "lengths of frames in bursts and recovery"];
    assert_eq!(names(&sizes(&preset.lengths())), always);
    assert!(names(&sizes(&Preset::quick().lengths())).contains(&"lengths of frames"));
}

/// Estimates are about half of the time that such a run was seen to take: trials are made again, devices start.
#[test]
fn a_quick_comparison_of_four_devices_takes_less_than_five_minutes_by_twice_its_estimate() {
    let of = |once: bool| {
        let mut preset = Preset::quick();
        preset.once = once;
        let comparison = Comparison {
            description: Description::default(),
            devices: Vec::new(),
            sizes: sizes(&["64".to_owned(), "1518".to_owned()]),
            preset,
            repetitions: 3,
            only_curve: false,
            yes: false,
        };
        let kinds =
            ["kernel", "causeway", "driver", "click"].map(|name| Kind::by_name(name).expect("a kind"));
        comparison.estimates(&kinds).iter().sum::<Duration>()
    };
    let (once, each) = (of(Preset::quick().once), of(false));
    assert!(once * 2 < Duration::from_secs(300), "{once:?}, and {each:?} with all in each repetition");
    assert!(once < each.mul_f64(0.75), "{once:?}, {each:?}");
}

#[test]
fn a_short_comparison_between_namespaces() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root to make network namespaces");
    }
    let description =
        Description::read("highest_fps = 20000.0\nmethod = \"packet\"\ndevice_processors = [0]\n")
            .expect("a description");
    let mut short = Preset::quick();
    (short.trial_ns, short.delay_ns, short.burst_ns) = (20_000_000, 20_000_000, 5_000_000);
    (short.overload_ns, short.event_ns) = (20_000_000, 100_000_000);
    let comparison = Comparison {
        description,
        devices: vec!["kernel".to_owned()],
        sizes: vec![("128 bytes".to_owned(), Sizes::Fixed(128))],
        preset: short,
        repetitions: 2,
        only_curve: false,
        yes: false,
    };
    let mut document = Document::new(Run::default());
    let (mut told, mut tested) = (Vec::new(), None);
    comparison
        .run(&mut document, &mut tested, &Arc::default(), &mut |what, _| told.push(what.to_owned()))
        .expect("a comparison");
    assert!(told[0].starts_with("self-test"), "{told:?}");
    assert_eq!(told.last().map(String::as_str), Some("kernel, 128 bytes, repetition 2 of 2"));
    document.to_json().expect("valid");
    for name in [
        "RFC 2544 throughput",
        "NDR",
        "PDR",
        "PDR, conditional throughput",
        "saturation forwarding rate",
        "128 bytes/loss",
        "128 bytes/processor time a packet",
        "longest burst",
        "recovery time",
        "blocked by a change of routes",
        "128 bytes/change of routes, as it went",
    ] {
        assert!(document.series(&format!("kernel/{name}")).is_some(), "{name}");
    }
    // The second repetition of a quick run has less.
    let repetitions = |name: &str| -> Vec<usize> {
        let series = document.series(&format!("kernel/{name}")).expect("measured");
        series.measurements.iter().map(|one| one.repetitions.len()).collect()
    };
    for (name, often) in [("NDR", 2), ("saturation forwarding rate", 2), ("longest burst", 1)] {
        assert_eq!(repetitions(name), [often], "{name}");
    }
    assert_eq!(repetitions("128 bytes/loss"), [1, 1, 1, 1, 1, 1, 1, 1, 1, 2], "the highest load in both");
    for (name, part) in [
        ("kernel settings with kernel", "net.ipv4.ip_forward = 1; "),
        ("kernel settings with kernel", "net.ipv4.conf.all.rp_filter = "),
        ("kernel settings with kernel", "gro of r0 = on; rps_cpus of r0 = "),
        ("drivers of the interfaces", "t0: veth, r0: veth"),
        ("seed of the traffic", "1"),
        ("description", "highest_fps = 20000.0"),
        ("device kernel", "Kernel"),
        ("processor time of kernel", "[0] were not idle"),
    ] {
        let value = document.run.settings.get(name);
        assert!(value.is_some_and(|value| value.contains(part)), "{name}: {value:?}");
    }
    let page = causeway_results::html::page("t", &document).expect("a page");
    assert!(page.contains("<tr><th>description</th><td class=\"kept\">highest_fps = 20000.0"), "{page}");
    let stopped = Arc::new(AtomicBool::new(true));
    // Where the tester was tested already it is not again.
    let mut told = Vec::new();
    comparison
        .run(&mut document, &mut tested, &Arc::default(), &mut |what, _| told.push(what.to_owned()))
        .expect("a comparison");
    assert_eq!(told.len(), 2, "{told:?}");
    let error = comparison.run(&mut document, &mut None, &stopped, &mut |_, _| ()).expect_err("interrupted");
    assert_eq!(format!("{error:#}"), "interrupted");
    document.to_json().expect("what was found is kept and valid");
}

/// Those of the page, which are what people begin with.
#[test]
fn the_descriptions_of_the_documentation_can_be_read() {
    let page = include_str!("../../../../docs/lab.md");
    let texts: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(texts.len(), 2);
    for text in texts {
        Description::read(text).unwrap_or_else(|e| panic!("{e:#}\n{text}"));
    }
}

/// A device that dies, or that is never there, in a run that has found something already.
#[test]
fn a_device_that_dies_leaves_what_was_found_and_a_clean_machine() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root to make network namespaces");
    }
    let run = |script: &str, ready: &str| {
        let start = ["sh", "-c", script].map(str::to_owned).to_vec();
        let kind = Kind::Command { start, ready: Some(ready.to_owned()), beside_kernel: true, stop: None };
        let description = Description {
            highest_fps: 5_000.0,
            method: "packet".to_owned(),
            devices: [("mortal".to_owned(), kind)].into(),
            ..Description::default()
        };
        let mut short = Preset::quick();
        (short.trial_ns, short.settle) = (20_000_000, Duration::from_millis(10));
        let comparison = Comparison {
            description,
            devices: vec!["mortal".to_owned()],
            sizes: vec![("128 bytes".to_owned(), Sizes::Fixed(128))],
            preset: short,
            repetitions: 1,
            only_curve: false,
            yes: false,
        };
        let mut document = Document::new(Run::default());
        let error =
            comparison.run(&mut document, &mut None, &Arc::default(), &mut |_, _| ()).expect_err("dead");
        document.to_json().expect("valid");
        assert!(document.series("tester, received/self-test over a cable").is_some());
        format!("{error:#}")
    };
    let error = run("echo ready; sleep 0.3; exit 3", "ready");
    assert_eq!(error, "device 'mortal', 128 bytes: the device died: exit status: 3");
    let error = run("echo no such port; exit 1", "ready");
    assert_eq!(error, "device 'mortal': the device did not start: no such port");
}

#[test]
fn tester_and_device_have_processors_of_their_own() {
    let shared = |text: &str, usable: &[usize]| {
        let mut description = Description::read(text).expect("a description");
        description.share(usable);
        (description.tester_processors, description.device_processors)
    };
    assert_eq!(shared("", &[0, 2, 3]), (vec![0], vec![2, 3]));
    assert_eq!(shared("", &[5]), (vec![], vec![]), "there is one for both");
    assert_eq!(shared("device_processors = [0]", &[0, 1]), (vec![], vec![0]), "as it was asked for");
    let interfaces = "[[interface]]\nname = \"eth1\"\ngateway = \"2:0:0:0:0:1\"\n";
    assert_eq!(shared(interfaces, &[0, 1]), (vec![], vec![]), "the device is another machine");
}
