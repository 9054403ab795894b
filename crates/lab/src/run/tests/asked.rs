//! What is asked for, and what of it is refused.

use super::*;
use std::path::Path;

/// A run takes the lengths of the streams or those that it is asked for, and never the one for the other unsaid.
#[test]
fn lengths_are_those_of_the_streams_or_those_that_are_asked_for() {
    let text = |sizes: [&str; 2]| {
        let stream = |name: &str, size: &str| format!("[[traffic.stream]]\nname = \"{name}\"\n{size}\n");
        format!("[traffic]\n{}{}", stream("a", sizes[0]), stream("b", sizes[1]))
    };
    let (mix, fixed) = ("size.mix = { genome = \"7a4A1g\", custom = { A = 594 } }", "size.fixed = 64");
    let task = |description: &str, sizes: &[&str]| Task {
        devices: vec!["kernel".to_owned()],
        description: Description::read(description).expect("a description"),
        sizes: sizes.iter().map(|&list| list.to_owned()).collect(),
        preset: Preset::quick(),
        repetitions: 1,
        yes: false,
        output: "unused.json".into(),
    };
    let names = |task: Task| -> Vec<String> {
        let comparison = task.comparison().expect("a comparison");
        comparison.check_lengths().expect("possible");
        comparison.lengths().into_iter().map(|(name, _)| name.to_owned()).collect()
    };
    let own = task(&text([mix, fixed]), &[]);
    assert_eq!(names(own.clone()), ["lengths of the description"]);
    let comparison = own.comparison().expect("a comparison");
    let (_, none) = comparison.lengths()[0];
    let offered = comparison.traffic(none);
    assert_eq!(
        (offered.streams[0].size.clone(), offered.streams[1].size.clone()),
        (Sizes::simple_imix(), Sizes::Fixed(64))
    );
    assert_eq!(names(task(&text(["", ""]), &[])), ["64 bytes", "512 bytes", "1518 bytes"]);
    let asked = ["csit-imix", "mix = { genome = \"ab\" },sweep = { first = 64, last = 192, step = 64 },512"];
    assert_eq!(
        names(task(&text(["", ""]), &asked)),
        ["csit-imix", "mix ab", "64 to 192 bytes by 64", "512 bytes"]
    );
    assert_eq!(names(task("", &["64,1518", "64,imix"])), ["64 bytes", "1518 bytes", "imix"]);
    let both = task(&text([mix, fixed]), &["64"]).comparison().err().expect("refused").to_string();
    assert!(both.contains("the streams of the description have lengths"), "{both}");
    let half = Description::read(&text([mix, ""])).expect_err("refused").to_string();
    assert!(half.starts_with("stream 'b' has no size, and others have"), "{half}");
    let same = task("", &["imix,mix = { genome = \"7a4A1g\", custom = { A = 594 } }"]);
    let same = same.comparison().expect("a comparison").check_lengths().expect_err("refused").to_string();
    assert!(same.contains("have the same mean length"), "{same}");
    // A length that is said counts, though it is the one that others have unsaid.
    let short = "[traffic]\n[[traffic.stream]]\nname = \"a\"\nfamily = \"ipv6\"\n";
    Description::read(short).expect("the run has lengths");
    assert!(Description::read(&format!("{short}size.fixed = 64\n")).is_err());
}

/// That interfaces carry so much is checked before anything is set up; of a bed it has no meaning.
#[test]
fn a_rate_beyond_the_interfaces_is_refused() {
    let of = |interfaces: &str, highest: f64| {
        let text = format!("highest_fps = {highest:.1}\n{interfaces}");
        let comparison = Comparison {
            description: Description::read(&text).expect("a description"),
            devices: Vec::new(),
            sizes: sizes(&["64".to_owned(), "1518".to_owned()]),
            preset: Preset::quick(),
            repetitions: 1,
            only_curve: false,
            yes: false,
        };
        comparison.check_rate(Some(1e9)).map_err(|error| error.to_string())
    };
    let two = "[[interface]]\nname = \"a\"\ngateway = \"2:0:0:0:0:1\"\n\
               [[interface]]\nname = \"b\"\ngateway = \"2:0:0:0:0:2\"\n";
    assert_eq!(of(two, 1_488_095.0), Ok(()));
    let told = "highest_fps is 1488096, and the interfaces carry 1488095 frames/s of 64 bytes";
    assert_eq!(of(two, 1_488_096.0), Err(told.to_owned()));
    assert_eq!(of("", 5e6), Ok(()));
}

#[test]
fn a_description_says_what_stands_between_which_ports() {
    let text = r#"
        ports = 4
        method = "packet"
        highest_fps = 5e5
        [device.mine.command]
        start = ["my-router", "r0", "r1"]
        ready = "listening"
        stop = ["my-router", "--stop"]
        [device.old.click]
        program = "/opt/click"
        [traffic]
        seed = 9
        matrix.many_to_one = 3
        schedule.bursts.frames = 32
        [[traffic.stream]]
        name = "a"
        weight = 3
        size.mix = { genome = "7a4A1g", custom = { A = 594 } }
        source_host.counted = { first = 1, count = 16384 }
        [[traffic.stream]]
        name = "b"
        family = "ipv6"
        size.fixed = 128
        source_port.fixed = 7
    "#;
    let description = Description::read(text).expect("a description");
    assert!(matches!(description.device("mine").expect("there"), Kind::Command { ready: Some(_), .. }));
    assert!(matches!(description.device("old").expect("there"), Kind::Click { .. }));
    let Kind::Command { stop, .. } = description.device("mine").expect("there") else { panic!("a command") };
    assert_eq!(stop.expect("how"), ["my-router", "--stop"]);
    assert_eq!(description.device("kernel").expect("there"), Kind::Kernel {});
    assert!(description.device("yours").is_err());
    let traffic = description.traffic.expect("traffic");
    assert_eq!((traffic.streams.len(), traffic.streams[0].size.sequence().expect("sizes").len()), (2, 12));
}

#[test]
fn a_wrong_description_is_refused_with_its_place() {
    let refused = |text: &str| Description::read(text).expect_err("refused").to_string();
    let missing = Description::open(Path::new("/no/such/file")).expect_err("refused").to_string();
    assert_eq!(missing, "cannot read /no/such/file");
    let unknown = refused("ports = 2\nprots = 3\n");
    assert!(unknown.contains("line 2") && unknown.contains("prots"), "{unknown}");
    assert!(refused("[device.x.kernle]\n").contains("kernle"));
    assert!(
        refused("[traffic]\n[[traffic.stream]]\nname = \"a\"\nsize.fixed = 63\n")
            .contains("63 bytes has no room")
    );
    assert!(refused("highest_fps = 0.0").contains("above zero"));
}
