//! The bench's own parts: lines, sources, files of scenarios, documents of results. Here and not in the library, so that
//! the library is compiled once.

use causeway_nic_driver::Mac;
use causeway_nic_sim::gmii::{Receiver, Transmitter, check_sequence};
use causeway_nic_sim::report::document::document;
use causeway_nic_sim::report::experiments::{Experiment, Run, two_to_one};
use causeway_nic_sim::report::plot;
use causeway_nic_sim::scenario::file::ScenarioFile;
use causeway_nic_sim::scenario::{ResponsePolicy, many, source};
use causeway_nic_sim::testbed::PCI_133_PS;
use causeway_nic_sim::traffic::{Generator, Source, Spacing, Stamp};
use causeway_results::Document;

#[test]
fn a_frame_comes_back_and_the_known_check_value_holds() {
    assert_eq!(check_sequence(b"123456789"), 0xcbf4_3926);
    let (mut tx, mut rx) = (Transmitter::default(), Receiver::default());
    let frames: Vec<Vec<u8>> = (60..70).map(|n| (0..n).collect()).collect();
    frames.iter().for_each(|f| tx.send(f));
    let mut seen = Vec::new();
    let mut ticks = 0;
    while seen.len() < frames.len() {
        let (data, enable, error) = tx.tick();
        seen.extend(rx.tick(data, enable, error).map(|r| r.unwrap()));
        ticks += 1;
    }
    assert_eq!(seen, frames);
    // Back to back: 24 bytes of overhead each with check sequence, at most one to begin and one to see the end.
    let exact: usize = frames.iter().map(|f| f.len() + 24).sum::<usize>() - 12;
    assert!(ticks <= exact + 2, "{ticks} {exact}");
}

#[test]
fn a_stamp_survives_its_frame() {
    let stamp = Stamp { port: 3, dest: 1, high: true, sequence: 77, sent_ns: 123_456, frame_bytes: 64 };
    assert_eq!(Stamp::read(&stamp.frame(Mac::default())), Some(stamp));
}

#[test]
fn load_mix_and_turns_are_as_asked() {
    let source = Source {
        port: 0,
        load: 0.5,
        frame_bytes: 64,
        dests: vec![1, 2],
        high_share: 0.25,
        spacing: Spacing::Exact,
        start_ns: 0,
    };
    let mut generator = Generator::new(source, 1);
    let mut counts = [[0; 2]; 3];
    for now_ns in (0..10_000_000).step_by(8) {
        if let Some(stamp) = generator.due(now_ns) {
            counts[usize::from(stamp.dest)][usize::from(stamp.high)] += 1;
        }
    }
    let total: i32 = counts.iter().flatten().sum();
    assert!((total - 7441).abs() <= 1, "{counts:?}");
    for dest in [1, 2] {
        assert!((counts[dest][1] - 930).abs() <= 2, "{counts:?}");
        assert!((counts[dest][0] - 2790).abs() <= 2, "{counts:?}");
    }
}

#[test]
fn all_settings_are_taken() {
    let text = "cards 3 # three\n\npath slow\nclassify\nscheduler surplus 300\ngrant-min 191\nbus 133\n\
                overhead 16\nhost 500\nwarm-up 20\nmeasure 30\nsource 0 to 1,2 load 0.5 bytes 512 high 0.25 \
                poisson\nsource 2 to 1\nseeds 4 5";
    let ScenarioFile { scenario, seeds } = ScenarioFile::parse("all", text).unwrap();
    assert_eq!((scenario.cards, scenario.fast_path, scenario.classify), (3, false, true));
    assert_eq!(scenario.policy, ResponsePolicy::Surplus { quantum_words: 300 });
    assert_eq!((scenario.grant_min_words, scenario.bus_period_ps), (191, PCI_133_PS));
    assert_eq!((scenario.bus_overhead_cycles, scenario.host.packet_cost_ns), (16, 500));
    assert_eq!((scenario.warm_up_ns, scenario.measure_ns), (20_000, 30_000));
    let mixed = Source {
        load: 0.5,
        frame_bytes: 512,
        high_share: 0.25,
        spacing: Spacing::Poisson,
        ..source(0, &[1, 2])
    };
    assert_eq!(scenario.sources, [mixed, source(2, &[1])]);
    assert_eq!(seeds, [4, 5]);
}

#[test]
fn settings_are_written_as_they_are_read() {
    let text = "cards 3; path slow; classify; scheduler surplus 300; grant-min 191; bus 133; overhead 16; host 500; \
                warm-up 20; measure 30; source 0 to 1,2 load 0.5 bytes 512 high 0.25 poisson; source 2 to 1 load 1 \
                bytes 64 high 0";
    let file = ScenarioFile::parse("all", &text.replace("; ", "\n")).unwrap();
    assert_eq!(file.scenario.to_string(), text);
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let wrong = |text: &str| ScenarioFile::parse("wrong", text).unwrap_err().to_string();
    assert_eq!(wrong("cards 3\ncards 9"), "line 2: 9 is no number from 2 to 8");
    assert_eq!(
        wrong("scheduler best"),
        "line 1: best is none of round-robin, high-first, longest-high, surplus"
    );
    assert_eq!(wrong("source 0 to 1 load"), "line 1: load needs a value");
    assert_eq!(wrong("source 0 to 1 load NaN"), "line 1: NaN is no number from 0.0001 to 1");
    assert_eq!(wrong("source 0 to 1 size 64"), "line 1: not understood: size");
    assert_eq!(wrong("colour red"), "line 1: not understood: colour red");
    assert_eq!(wrong("source 0 to 1"), "cards is missing");
    assert_eq!(wrong("cards 2"), "there is no source");
    assert_eq!(wrong("cards 2\nsource 0 to 1,2"), "there is no port 2 with 2 cards");
    assert_eq!(wrong("cards 2\nsource 0 to 1\nsource 0 to 1"), "port 0 has two sources");
}

#[test]
fn the_document_has_every_seed_of_every_series() {
    let mut runs = Vec::new();
    for policy in [ResponsePolicy::RoundRobin, ResponsePolicy::HighFirst] {
        for share in [0.25, 0.5] {
            for seed in [1, 2, 3] {
                let mut scenario = two_to_one("D", 1.0, 64, share).with_seed(seed).lasting(20, 40);
                scenario.policy = policy;
                runs.push(Run { scenario, series: policy.name().into(), x: share });
            }
        }
    }
    let experiment = Experiment {
        name: "D",
        title: "",
        x: Some(("share", "")),
        plotted: &["delivered high", "delivered low"],
        baseline: Some("round-robin"),
        runs,
    };
    let scenarios: Vec<_> = experiment.runs.iter().map(|run| run.scenario.clone()).collect();
    let outcomes = many::run_all(&scenarios, |_| {}).unwrap();
    let document = document(&["test"], &experiment.curves(&outcomes));
    assert_eq!(Document::from_json(&document.to_json().unwrap()).unwrap(), document);
    for name in ["D/round-robin/delivered high", "D/high-first/delivered high"] {
        let series = document.series(name).unwrap();
        assert_eq!(series.measurements.iter().map(|m| m.x.unwrap()).collect::<Vec<_>>(), [0.25, 0.5]);
        assert!(series.measurements.iter().all(|m| m.repetitions.len() == 3));
    }
    let compared = document.series("D/high-first/delivered high").unwrap();
    assert_eq!(compared.baseline.as_deref(), Some("D/round-robin/delivered high"));
    let frames = document.series("D/high-first/cards/rx_frames").unwrap();
    let counted = outcomes[6].counted("rx_frames");
    assert!(counted > 100 && frames.measurements[0].repetitions[0] == counted as f64);
    let note = &document.series("D/high-first/delivered").unwrap().measurements[1].note;
    assert!(note.contains("scheduler high-first") && note.contains("high 0.5"), "{note}");
    let chart = plot::svg(&experiment, &document).unwrap();
    assert!(chart.contains("high-first, low") && chart.contains("Gbit/s"), "{chart}");
}
