//! Machine files that are right, and what is said of those that are not.

use super::*;

const OSR: &str = include_str!("../../machines/osr.toml");

/// What is said of the file with one text replaced.
fn refused(old: &str, new: &str) -> String {
    assert_eq!(OSR.matches(old).count(), 1, "{old}");
    Machine::parse(&OSR.replace(old, new), "mine.toml").expect_err("refused").to_string()
}

#[test]
fn values_have_their_units() {
    let machine = Machine::osr().expect("right");
    assert_eq!((machine.processor.clock.value, machine.memory.rate.value), (2_800_000_000, 3_200_000_000));
    assert_eq!((machine.processor.cache.value, machine.card.throttle.value), (524_288, 125_000_000));
    assert_eq!((machine.port_count(), machine.bus["pci-x"].parameters().width_bytes), (14, 8));
    assert!(matches!(&machine.processor.clock.origin, Origin::Given(place) if place == "4.1"));
    let half: Value<Cycles> = toml::from_str("value = \"14 cycles\"\nassumed = \"a test\"").expect("a value");
    assert_eq!(half.at(&machine.processor.clock), 5_000);
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_what_is_allowed() {
    let line = |text: &str| OSR.lines().position(|line| line.starts_with(text)).expect("there") + 1;
    for (old, new, at, said) in [
        (
            "clock = { value = \"2.8 GHz\"",
            "clock = { value = \"2.8 ns\"",
            line("clock"),
            "possible are Hz, kHz, MHz, GHz",
        ),
        ("\"2.8 GHz\"", "\"2.8 kHz\"", line("clock"), "out of range: 1 MHz to 100 GHz"),
        ("\"2.8 GHz\"", "\"fast\"", line("clock"), "'fast' is no number and unit: Hz"),
        (
            "latency = { value = \"120 ns\", assumed",
            "latency = { value = \"120 ns\", guessed",
            line("latency"),
            "assumed",
        ),
        (
            "bus = \"pci-x\"",
            "bus = \"isa\"",
            line("bus = "),
            "no bus 'isa' carries these ports; there are pci-x",
        ),
        ("count = 14", "count = 43", line("count"), "43 ports; 1 to 42 are possible"),
        ("protocol = \"pci-x\"", "protocol = \"isa\"", line("protocol"), "`pci-x`"),
        ("tick = ", "tock = ", line("tick"), "unknown field `tock`, expected one of"),
        (", given = \"3.2\"", "", line("queue"), "one of given, literature, calibrated, assumed"),
    ] {
        let text = refused(old, new);
        assert!(
            text.contains(&format!("mine.toml, line {at}: ")) && text.contains(said),
            "{old} -> {new}: {text}"
        );
    }
}

#[test]
fn a_cache_without_a_set_is_refused() {
    let text = OSR.replace("512 KiB", "1 KiB").replace("8 ways", "16 ways");
    let error = Machine::parse(&text, "mine.toml").expect_err("refused").to_string();
    let at = text.lines().position(|line| line.starts_with("cache = ")).expect("there") + 1;
    let expected = format!("mine.toml, line {at}: a cache of 1024 bytes has no set of 2048 bytes");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_machine_of_which_too_much_is_calibrated_is_refused() {
    let error = refused("assumed = \"packetgen", "calibrated = \"packetgen");
    // It is the last of the file.
    let at = OSR.lines().position(|line| line.starts_with("generate")).expect("there") + 1;
    let expected =
        format!("mine.toml, line {at}: 7 values are calibrated, at most 6 may be, on: OSR-tx, 650 kpps; ");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_key_is_found_by_its_way_however_it_is_written() {
    let text = "a = 1\n[b.c]\nd = { e = 1 }\n[b.f]\nd = 2\n[[g]]\nd = 3\n";
    for (keys, line) in [
        (&["a"][..], 1),
        (&["b", "c", "d"], 3),
        (&["b", "c", "d", "e"], 3),
        (&["b", "f", "d"], 5),
        // What is not there is where it would be.
        (&["b", "c", "x"], 2),
        (&["x"], 1),
        (&["g", "d"], 6),
    ] {
        assert_eq!(line_of(text, keys), line, "{keys:?}");
    }
    assert_eq!(line_of("a = = 1", &["a"]), 1, "no TOML at all");
}
