//! `causeway model` of machines that can be had: what it writes, and what it says of what is wrong.

use std::path::PathBuf;
use std::process::{Command, Output};

fn causeway(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.arg("model").args(args).output().expect("the binary that cargo built starts")
}

fn said(args: &[&str]) -> String {
    let output = causeway(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a text")
}

fn refused(args: &[&str]) -> String {
    let output = causeway(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("causeway-model-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn a_copy_of_a_ready_machine_can_be_changed_and_asked() {
    let folder = folder("what-if");
    let (file, out) = (folder.join("mine.toml"), folder.to_string_lossy().into_owned());
    let text = said(&["what-if", "--print", "board-2x1g"]);
    std::fs::write(&file, text.replace("name = \"board-2x1g\"", "name = \"mine\"")).expect("written");
    let file = file.to_string_lossy().into_owned();
    let answer = said(&["what-if", &file, "--out", &out]);
    assert!(answer.starts_with("mine, modelled: ") && answer.contains("one more core"), "{answer}");
    let json = std::fs::read_to_string(folder.join("model-what-if-mine.json")).expect("written");
    assert!(json.contains("\"modelled\"") && !json.contains("\"measured\""));
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_graph_runs_on_a_machine() {
    let folder = folder("graph");
    let out = folder.to_string_lossy().into_owned();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/forward.click");
    let answer = said(&["what-if", "board-2x1g", "--graph", file, "-D", "dev0=lan", "--out", &out]);
    assert!(answer.contains("forward.click on lan, eth1, zero-copy"), "{answer}");
    assert!(
        answer.contains("processor time by element") && answer.contains("routes :: IPLookup"),
        "{answer}"
    );
    assert!(answer.contains("what goes first") && !answer.contains("mechanism kernel"), "{answer}");
    let json = std::fs::read_to_string(folder.join("model-what-if-board-2x1g.json")).expect("written");
    assert!(json.contains("routes :: IPLookup/processor time") && !json.contains("\"measured\""));
    assert!(said(&["what-if", "--print", "elements"]).contains("[element.IPLookup]"));
    // A class that nobody knows the cost of.
    let mine = folder.join("mine.click");
    std::fs::write(&mine, "FromDevice(eth0) -> Queue\n-> CoDel\n-> Discard;").expect("written");
    let mine = mine.to_string_lossy().into_owned();
    let error = refused(&["what-if", "board-2x1g", "--graph", &mine]);
    assert!(error.contains("mine.click:2: nobody says what CoDel@3 :: CoDel costs"), "{error}");
    let error = refused(&["what-if", "board-2x1g", "--graph", "/nowhere/mine.click"]);
    assert!(error.contains("/nowhere/mine.click"), "{error}");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn cards_are_modelled_and_a_frame_is_followed() {
    let folder = folder("cards");
    let out = folder.to_string_lossy().into_owned();
    let answer = said(&["cards", "--out", &out]);
    assert!(answer.starts_with("enhanced cards, modelled: ") && answer.contains("8 cards"), "{answer}");
    let json = std::fs::read_to_string(folder.join("model-cards.json")).expect("written");
    assert!(json.contains("\"the paper: B/delivered\""));
    let answer = said(&["what-if", "board-2x1g", "--packet", "3", "--out", &out]);
    assert!(answer.contains("one packet, as planned (modelled)") && answer.contains("has left"), "{answer}");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_figure_says_why_and_follows_a_packet() {
    let folder = folder("figure");
    let out = folder.to_string_lossy().into_owned();
    let answer = said(&["OSR-4", "--why", "--packet", "20", "--out", &out]);
    assert!(answer.starts_with("OSR-4, modelled: ") && answer.contains("plateau, NAPI, kpps"), "{answer}");
    assert!(answer.contains("why, napi (modelled") && answer.contains("1488 kpps: processor; "), "{answer}");
    for curve in ["interrupt", "moderated", "napi"] {
        // At both ends of the curve.
        assert_eq!(answer.matches(&format!("one packet, {curve} at ")).count(), 2, "{answer}");
    }
    assert!(answer.contains(" 0 ns  has come in") && answer.contains("has left"), "{answer}");
    let json = std::fs::read_to_string(folder.join("model-OSR-4.json")).expect("written");
    assert!(json.contains("\"the paper: napi/64 bytes/forwarding rate\""));
    let page = std::fs::read_to_string(folder.join("model-OSR-4.html")).expect("written");
    assert!(page.contains("the paper: napi") && folder.join("model-OSR-4.csv").exists());
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_machine_that_is_wrong_is_refused_with_its_line() {
    let folder = folder("wrong");
    let (file, out) = (folder.join("mine.toml"), folder.to_string_lossy().into_owned());
    let name = file.to_string_lossy().into_owned();
    let osr = include_str!("../../model/machines/osr.toml");
    let plan = said(&["what-if", "--print", "board-2x1g"]);
    let line = |text: &str, key: &str| text.lines().position(|one| one.starts_with(key)).expect(key) + 1;
    std::fs::write(&file, osr.replace("\"2.8 GHz\"", "\"2.8 ns\"")).expect("written");
    let error = refused(&["OSR-4", "--machine", &name, "--out", &out]);
    let expected = format!("{name}, line {}: clock: the unit 'ns' does not fit", line(osr, "clock"));
    assert!(error.contains(&expected), "{error}");
    let text = plan.replace("name = \"board-2x1g\"", "name = \"a/b\"");
    std::fs::write(&file, &text).expect("written");
    let error = refused(&["what-if", &name, "--out", &out]);
    let expected = format!("{name}, line {}: the name 'a/b' is to be of letters", line(&text, "name"));
    assert!(error.contains(&expected), "{error}");
    let written = std::fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(written, 1, "nothing beside the file");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn what_is_wrong_is_said_with_what_is_possible() {
    let error = refused(&["what-if", "--print", "mainframe"]);
    assert!(error.contains("there is no machine 'mainframe'; ready are board-2x1g"), "{error}");
    let error = refused(&["what-if", "/nowhere/mine.toml"]);
    assert!(error.contains("cannot read /nowhere/mine.toml"), "{error}");
    let error = refused(&["scale-out", "--node", "0"]);
    assert!(error.contains("--node 0: possible are 0.001 to 10000 Mpps"), "{error}");
    let error = refused(&["calibrate", "/nowhere/lab.json"]);
    assert!(error.contains("cannot read /nowhere/lab.json"), "{error}");
    let error = refused(&["calibrate", "--machine", "/nowhere/mine.toml", "/nowhere/lab.json"]);
    assert!(error.contains("cannot read /nowhere/mine.toml"), "{error}");
    let error = refused(&["OSR-99"]);
    assert!(error.contains("there is no figure 'OSR-99'"), "{error}");
}
