use super::*;
use crate::frame::{Seen, Tag, look};
use crate::search::{Request as Trial, Tester};
use crate::tester::{Alone, Control, Manner, Ports, TrialClock, one_way, self_test};
use causeway_results::traffic::{Family, Matrix, Schedule, Sizes, Stream, Traffic};
use std::time::Duration;

const MS: u64 = 1_000_000;

fn bed(name: &str) -> Option<Bed> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root to make network namespaces");
        return None;
    }
    Some(Bed::new(name, 2).expect("a bed"))
}

fn manner() -> Manner {
    Manner { processors: Vec::new(), settle: Duration::from_millis(300), pause: Duration::ZERO }
}

fn control() -> Control {
    Control::new(Arc::default())
}

/// Streams of both families, some longer.
fn traffic() -> Traffic {
    let streams = vec![
        Stream::new("ipv4", Family::Ipv4, Sizes::simple_imix()),
        Stream::new("ipv6", Family::Ipv6, Sizes::Fixed(128)),
    ];
    Traffic { streams, ..Traffic::simple(64) }
}

#[test]
fn the_kernel_forwards_between_the_ports() {
    let Some(bed) = bed("k") else { return };
    let kernel = Device::start(&Kind::Kernel {}, &bed, &[]).expect("started");
    for method in ["packet", "afxdp"] {
        let control = kernel.control(Arc::default());
        let ports = bed.open(method).expect("ports");
        // Bursts are long enough that an AF_XDP port sends them in one go, as what is late on a busy machine.
        let traffic = Traffic { schedule: Schedule::Bursts { frames: 40, gap_ns: 0 }, ..traffic() };
        let mut tester = Ports::new(ports, traffic, manner(), control).expect("a tester");
        assert!(tester.time_of_arrival().contains("the kernel"), "{method}");
        let outcome = tester.trial(&Trial::new(2_000.0, 200 * MS)).expect("an outcome");
        let total = outcome.analysis.total();
        assert!(total.sent > 0);
        let broken = (total.lost, total.duplicated, outcome.analysis.corrupt);
        assert_eq!(broken, (0, 0, 0), "{method}: {total:?}");
        // Both times are of one clock.
        let delay_ns = outcome.analysis.latency.percentile_ns(0.5).expect("a delay");
        assert!((1..10_000_000_000).contains(&delay_ns), "{method}: {delay_ns} ns");
        assert!(outcome.analysis.flows.iter().all(|flow| flow.received() > 0), "{method}: all four flows");
    }
}

#[test]
fn frames_pass_every_device_of_a_chain() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root to make network namespaces");
    }
    let hops = |devices| {
        let bed = Bed::chain("c", devices).expect("a chain");
        let _kernel = Device::start(&Kind::Kernel {}, &bed, &[]).expect("started");
        let mut ports = bed.open("packet").expect("ports");
        let [source, sink] = &mut ports[..] else { panic!("two ports") };
        let request = Trial::new(1_000.0, 100 * MS);
        let mut left = std::collections::BTreeSet::new();
        let show = |_, frame: &[u8]| {
            // The Time to Live, or the Hop Limit.
            left.insert(frame[if frame[12..14] == [8, 0] { 22 } else { 21 }]);
        };
        let wait = |_: TrialClock| {
            std::thread::sleep(Duration::from_millis(100));
            Ok(())
        };
        let (outcome, ()) =
            one_way([source, sink], &traffic(), &request, &manner(), 9, show, wait).expect("an outcome");
        assert_eq!(outcome.analysis.total().lost, 0, "{devices} devices");
        left.into_iter().collect::<Vec<_>>()
    };
    let (one, three) = (hops(1), hops(3));
    assert_eq!(one.len(), 1);
    assert_eq!(three, [one[0] - 2], "each device is a hop");
}

#[test]
fn the_tester_agrees_with_the_counters_of_the_cable_at_three_rates() {
    let Some(bed) = bed("s") else { return };
    for method in ["packet", "afxdp"] {
        let ports = bed.cable(method).expect("ports");
        let mut tester = Ports::new(ports, traffic(), manner(), control()).expect("a tester");
        let loads = [500.0, 2_000.0, 8_000.0];
        let found = self_test(&mut tester, &loads, 100 * MS, || bed.cable_received()).expect("they agree");
        assert_eq!(found.steps.len(), 3, "{method}");
        assert!(found.bias_ns.is_some_and(|ns| ns > 0), "{method}");
        drop(tester);
        bed.cut().expect("cut");
    }
}

#[test]
fn a_trial_one_way_lasts_as_long_as_its_story_and_shows_every_frame() {
    let Some(bed) = bed("o") else { return };
    let mut ports = bed.cable("packet").expect("ports");
    let [source, sink] = &mut ports[..] else { panic!("two ports") };
    let request = Trial::new(2_000.0, 60_000 * MS);
    let story = |clock: TrialClock| {
        while clock.ns() < 100 * MS {
            std::thread::yield_now();
        }
        Ok("its end")
    };
    let (mut shown, mut flows) = (0, std::collections::BTreeSet::new());
    let show = |tag: Tag, frame: &[u8]| {
        assert_eq!((look(frame), tag.trial), (Seen::Test(tag), 7));
        shown += 1;
        flows.insert(tag.flow);
    };
    let (outcome, told) =
        one_way([source, sink], &traffic(), &request, &manner(), 7, show, story).expect("an outcome");
    let total = outcome.analysis.total();
    assert_eq!((told, total.lost, shown, flows.len()), ("its end", 0, total.received(), 2));
    assert!(total.sent >= 100 && outcome.intended < 60_000, "{total:?}");
    // An error of the story is that of the trial, and ends it too.
    let failed = |_| anyhow::bail!("it broke");
    let error =
        one_way([source, sink], &traffic(), &request, &manner(), 8, |_, _| {}, failed).map(|(_, ())| ());
    assert_eq!(error.expect_err("it broke").to_string(), "it broke");
}

#[test]
fn the_kernel_does_not_forward_beside_a_program_that_gets_copies() {
    let Some(bed) = bed("b") else { return };
    let start = ["sleep", "60"].map(str::to_owned).to_vec();
    for (beside_kernel, lost) in [(false, 1.0), (true, 0.0)] {
        let kind = Kind::Command { start: start.clone(), ready: None, beside_kernel, stop: None };
        let device = Device::start(&kind, &bed, &[]).expect("started");
        let control = device.control(Arc::default());
        let mut tester =
            Ports::new(bed.open("packet").expect("ports"), traffic(), manner(), control).expect("a tester");
        let outcome = tester.trial(&Trial::new(1_000.0, 100 * MS)).expect("an outcome");
        assert_eq!(outcome.loss_ratio(), lost);
    }
}

#[test]
fn the_kernel_counts_what_it_receives_by_all_ports_but_the_last() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root to make network namespaces");
    }
    let bed = Bed::new("a", 3).expect("a bed");
    for looks in [true, false] {
        let device = match Device::start(&Kind::KernelReceives { looks }, &bed, &[0]) {
            Ok(device) => device,
            Err(error) if format!("{error:#}").contains("nft") => {
                return eprintln!("skipped: needs nftables: {error:#}");
            }
            Err(error) => panic!("{error:#}"),
        };
        let traffic = Traffic { matrix: Matrix::ManyToOne(2), ..Traffic::simple(64) };
        let ports = bed.open("packet").expect("ports");
        let mut tester =
            Ports::new(ports, traffic, manner(), device.control(Arc::default())).expect("a tester");
        for _ in 0..2 {
            let outcome = tester.trial(&Trial::new(1_000.0, 100 * MS)).expect("an outcome");
            let flows = &outcome.analysis.flows;
            assert!(
                flows.len() == 2 && flows.iter().all(|flow| flow.sent > 0 && flow.lost == 0),
                "{flows:?}"
            );
        }
    }
}

#[test]
fn a_graph_that_is_alone_has_all_ports_but_the_last() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root to make network namespaces");
    }
    let bed = Bed::new("n", 3).expect("a bed");
    let text = |alone| {
        let reception = vec!["RECEPTION napi".to_owned(), "RECEPTION polling".to_owned()];
        let method = Some("PACKET".to_owned());
        Graph { alone: Some(alone), reception, method, ..Graph::default() }.text(&bed, 0).expect("a graph")
    };
    let receives = text(Alone::Receive);
    assert!(receives.contains("FromDevice(r0, METHOD PACKET, RECEPTION napi)"), "{receives}");
    assert!(receives.contains("FromDevice(r1, METHOD PACKET, RECEPTION polling)"), "{receives}");
    let transmits = text(Alone::Transmit);
    assert_eq!(transmits.matches("ToDevice(").count(), 2, "{transmits}");
    assert!(!(receives + &transmits).contains("(r2"));
}

#[test]
fn a_bed_and_its_device_go_when_they_are_dropped() {
    let Some(bed) = bed("g") else { return };
    // It ends when it finds what the command that stops it has seen.
    let seen = std::env::temp_dir().join(format!("causeway-lab-{}-seen", std::process::id()));
    let words = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
    let kind = Kind::Command {
        start: words(&format!("echo is ready; while ! test -s {}; do sleep 0.02; done", seen.display())),
        ready: Some("is ready".to_owned()),
        beside_kernel: false,
        stop: Some(words(&format!("ls /sys/class/net > {}", seen.display()))),
    };
    let device = Device::start(&kind, &bed, &[0]).expect("started");
    device.alive()().expect("alive");
    let paths = [&bed.tester.name, &bed.devices[0].name].map(|name| format!("/run/netns/{name}"));
    assert!(paths.iter().all(|path| std::path::Path::new(path).exists()));
    drop(device);
    let interfaces = std::fs::read_to_string(&seen).expect("it was stopped by its own command");
    assert!(interfaces.contains("r0") && !interfaces.contains("t0"), "where it was started: {interfaces}");
    std::fs::remove_file(seen).expect("removed");
    drop(bed);
    assert!(!paths.iter().any(|path| std::path::Path::new(path).exists()));
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(Bed::new("x", MOST_PORTS + 1).is_err());
    assert!(Kind::by_name("cisco").is_err());
    let Some(bed) = bed("r") else { return };
    let error = bed.open("cardboard").err().expect("refused").to_string();
    assert!(error.contains("no ports of the kind 'cardboard'"), "{error}");
    let missing = Kind::Command {
        start: vec!["/no/such/program".to_owned()],
        ready: None,
        beside_kernel: false,
        stop: None,
    };
    assert!(Device::start(&missing, &bed, &[]).is_err());
}

#[test]
fn processors_are_a_mask_in_words() {
    for (processors, mask) in
        [(&[][..], "0"), (&[1], "2"), (&[0, 1], "3"), (&[33, 0], "2,1"), (&[64], "1,0,0")]
    {
        assert_eq!(processor_mask(processors), mask);
    }
}

#[test]
fn the_kernel_forwards_on_the_processors_that_are_its_own() {
    let Some(bed) = bed("p") else { return };
    let steered = || {
        let mut command = bed.devices[0].command("cat");
        let output = command.arg("/sys/class/net/r1/queues/rx-0/rps_cpus").output().expect("read");
        // As many digits as the machine has processors.
        let text = String::from_utf8_lossy(&output.stdout).replace(',', "");
        u128::from_str_radix(text.trim(), 16).expect("a mask")
    };
    let kernel = Device::start(&Kind::Kernel {}, &bed, &[0]).expect("started");
    assert_eq!(steered(), 1);
    drop(kernel);
    let _kernel = Device::start(&Kind::Kernel {}, &bed, &[]).expect("started");
    assert_eq!(steered(), 0);
}
