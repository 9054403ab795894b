//! `causeway lab` over interfaces that are there: a box between two of them, and what is refused.

use crate::lab::{folder, is_root};
use crate::lab_alone::{Space, ip};
use std::path::Path;
use std::process::Output;

/// A description of these two interfaces with a box between them, and little traffic.
fn description(folder: &Path, interfaces: [(&str, &str); 2], highest_fps: &str) -> String {
    let mut text = format!("method = \"packet\"\nhighest_fps = {highest_fps}\n");
    for (number, (name, gateway)) in interfaces.iter().enumerate() {
        let hosts = format!("198.18.{}.0/18", 64 * number);
        text += &format!("[[interface]]\nname = \"{name}\"\ngateway = \"{gateway}\"\nhosts4 = \"{hosts}\"\n");
    }
    let file = folder.join("box.toml");
    std::fs::write(&file, text + "[device.box.external]\n").expect("written");
    file.to_string_lossy().into_owned()
}

/// `causeway lab` with these arguments in a namespace.
fn lab(space: &Space<'_>, args: &[&str]) -> Output {
    space.inside(&[&[env!("CARGO_BIN_EXE_causeway"), "lab"], args].concat()).output().expect("run")
}

/// What is said where that ends with status 1, and that nothing was measured.
fn refused(space: &Space<'_>, args: &[&str]) -> String {
    let out = lab(space, args);
    assert_eq!(out.status.code(), Some(1), "{args:?}");
    assert!(out.stdout.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&out.stdout));
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn mac(space: &Space<'_>, interface: &str) -> String {
    space.said(&["cat", &format!("/sys/class/net/{interface}/address")]).trim().to_owned()
}

/// The box is a namespace in which the kernel forwards, for all that the tester knows a machine of its own.
#[test]
fn a_box_between_two_interfaces_is_measured() {
    if !is_root() {
        return;
    }
    let names = ["t", "r"].map(|end| format!("cwlbox{}{end}", std::process::id()));
    let (folder, tester, router) = (folder("box"), Space::new(&names[0]), Space::new(&names[1]));
    for (own, other) in [("pa", "pb"), ("qa", "qb")] {
        ip(&format!("-n {} link add {own} type veth peer name {other} netns {}", tester.0, router.0));
        for (space, port) in [(&tester, own), (&router, other)] {
            ip(&format!("-n {} link set {port} addrgenmode none up", space.0));
        }
    }
    router.said(&["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
    for (number, (own, other)) in [("pa", "pb"), ("qa", "qb")].into_iter().enumerate() {
        let (at, link) = (router.0, format!("198.19.{number}."));
        ip(&format!("-n {at} addr add {link}1/24 dev {other}"));
        ip(&format!("-n {at} neigh add {link}2 lladdr {} nud permanent dev {other}", mac(&tester, own)));
        ip(&format!("-n {at} route add 198.18.{}.0/18 via {link}2 dev {other}", 64 * number));
    }
    let gateways = ["pb", "qb"].map(|port| mac(&router, port));
    let file = description(&folder, [("pa", &gateways[0]), ("qa", &gateways[1])], "20000.0");
    let result = folder.join("lab.json").to_string_lossy().into_owned();
    let sizes = "mix = { genome = \"ab\" }";
    let run = ["run", "box", "--file", &file, "--sizes", sizes, "--repetitions", "1", "--output", &result];
    let ended = lab(&tester, &run);
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    let text = std::fs::read_to_string(&result).expect("results");
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid");
    let value = |name: &str| {
        let all = json["series"].as_array().expect("series");
        let one = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {said}"));
        one["measurements"][0]["repetitions"][0].as_f64().expect("a number")
    };
    // The kernel forwards so little whole; a machine that is busy meanwhile may lose some of it.
    assert!(value("box/PDR") > 0.0 && value("box/saturation forwarding rate") > 0.0, "{said}");
    for name in ["box/RFC 2544 throughput", "box/NDR", "box/mix ab/delay at 50 % of its PDR"] {
        value(name);
    }
    assert!(value("line rate/PDR") > 1e6, "a veth says that it has 10 Gbit/s");
    let settings = &json["run"]["settings"];
    assert_eq!(settings["lengths of frames, mix ab"], "mix = { genome = \"ab\" }; mean 96.0 bytes");
    assert!(settings["test bed"].as_str().is_some_and(|note| note.starts_with("interfaces of this machine")));
    assert!(settings["drivers of the interfaces"] == "pa: veth, qa: veth" && !text.contains("blocked by"));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn what_interfaces_cannot_carry_is_refused() {
    if !is_root() {
        return;
    }
    let name = format!("cwlrefuse{}", std::process::id());
    let (folder, space) = (folder("refuse"), Space::new(&name));
    let transmit =
        |args: &[&str]| refused(&space, &[&["transmit", "va", "--to", "2:0:0:0:0:2"], args].concat());
    let said = transmit(&["--size", "1519"]);
    assert!(
        said.contains("a frame of 1519 bytes is longer than va can carry, 1518: raise its MTU"),
        "{said}"
    );
    let said = transmit(&["--rate", "1e9"]);
    let told = "1000000000 frames/s of 64 bytes are beyond va: at 10000 Mbit/s it carries 14880952";
    assert!(said.contains(told), "{said}");
    let result = folder.join("lab.json").to_string_lossy().into_owned();
    let run = |interfaces: [&str; 2], highest_fps: &str| {
        let interfaces = interfaces.map(|name| (name, "2:0:0:0:0:1"));
        let file = description(&folder, interfaces, highest_fps);
        refused(&space, &["run", "box", "--file", &file, "--output", &result])
    };
    let said = run(["va", "vb"], "1e9");
    let told = "highest_fps is 1000000000, and the interfaces carry 14880952 frames/s of 64 bytes";
    assert!(said.contains(told), "{said}");
    let said = run(["va", "no-such-if"], "1e3");
    assert!(said.contains("port no-such-if: "), "{said}");
    assert!(!folder.join("lab.json").exists());
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_interface_of_the_default_route_is_refused_unless_that_is_meant() {
    if !is_root() {
        return;
    }
    let name = format!("cwldefault{}", std::process::id());
    let (folder, space) = (folder("default"), Space::new(&name));
    ip(&format!("-n {name} addr add 10.0.0.1/24 dev va"));
    ip(&format!("-n {name} route add default via 10.0.0.2 dev va"));
    let told =
        "va carries the default route: test traffic there may reach others; if that is meant, say --yes";
    let transmit = ["transmit", "va", "--to", "2:0:0:0:0:2", "--count", "3"];
    let capture = folder.join("none.pcap").to_string_lossy().into_owned();
    // A capture of one frame of 60 bytes.
    let head = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0_u8];
    let frame = [&[0; 8][..], &[60, 0, 0, 0, 60, 0, 0, 0], &[0; 60]].concat();
    std::fs::write(&capture, [&head[..], &frame].concat()).expect("written");
    let file = description(&folder, [("vb", "2:0:0:0:0:1"), ("va", "2:0:0:0:0:2")], "1e3");
    let result = folder.join("lab.json").to_string_lossy().into_owned();
    for args in [
        &transmit[..],
        &["receive", "va"],
        &["replay", "va", &capture],
        &["run", "box", "--file", &file, "--output", &result],
    ] {
        let said = refused(&space, args);
        assert!(said.contains(told), "{args:?}: {said}");
    }
    let meant = lab(&space, &[&transmit[..], &["--yes"]].concat());
    let said = String::from_utf8_lossy(&meant.stdout).into_owned();
    assert!(said.starts_with("sent 3 of "), "{said}{}", String::from_utf8_lossy(&meant.stderr));
    // The other end of the cable is nobody's way out.
    let other = lab(&space, &["transmit", "vb", "--to", "2:0:0:0:0:2", "--count", "3"]);
    assert!(other.status.success(), "{}", String::from_utf8_lossy(&other.stderr));
    std::fs::remove_dir_all(folder).expect("removed");
}
