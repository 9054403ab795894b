//! A whole IP router with two interfaces, written as people write them.

mod common;
use causeway_lang::Processing::{Pull, Push};
use causeway_lang::{ClassInfo, ClassList, NoLibraries, compile, print, values};
use common::connections;

const TEXT: &str = r#"
// Two interfaces, static routes.
define($MTU 1500, $QUEUE 200);

AddressInfo(left 10.0.0.1/24 02:00:00:00:00:01, right 10.0.1.1/24 02:00:00:00:00:02);

elementclass Input { $dev, $color |
    FromDevice($dev)
        -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    c [0] -> ARPResponder($dev) -> [1] output;
    c [1] -> [2] output;
    c [2] -> Paint($color) -> Strip(14) -> CheckIPHeader(INTERFACES 10.0.0.1/24 10.0.1.1/24) -> output;
    c [3] -> Print("${dev} non-IP") -> Discard;
}

elementclass Output { $dev, $color |
    input -> DropBroadcasts
        -> cp :: PaintTee($color)
        -> gio :: IPGWOptions($dev)
        -> FixIPSrc($dev)
        -> dt :: DecIPTTL
        -> fr :: IPFragmenter($MTU)
        -> [0] arpq :: ARPQuerier($dev)
        -> q :: Queue($QUEUE)
        -> ToDevice($dev);
    input [1] -> [1] arpq;
    input [2] -> q;
    cp [1], gio [1], dt [1], fr [1]
        => ICMPError($dev, redirect, host), ICMPError($dev, parameterproblem),
           ICMPError($dev, timeexceeded), ICMPError($dev, unreachable, needfrag)
        -> [0] output;
}

rt :: StaticIPLookup(10.0.0.1/32 0, 10.0.1.1/32 0, 10.0.0.0/24 1, 10.0.1.0/24 2);
in0 :: Input(left, 1); in1 :: Input(right, 2);
out0 :: Output(left, 1); out1 :: Output(right, 2);

in0, in1, out0, out1 -> GetIPAddress(16) -> rt;
rt => Discard, out0, out1;
in0 [1] -> [2] out0; in0 [2] -> [1] out0;
in1 [1,2] => [2,1] out1;
"#;

fn classes() -> ClassList {
    let class = ClassInfo::new;
    ClassList(vec![
        class("AddressInfo", "0/0", "a/a"),
        class("FromDevice", "0/1-2", "h/h"),
        class("ToDevice", "1/0-2", "l/h"),
        class("Classifier", "1/-", "h/h"),
        class("ARPResponder", "1/1-2", "a/ah"),
        class("ARPQuerier", "2/1-2", "h/h").with_flow("xy/x"),
        class("Paint", "1/1", "a/a"),
        class("PaintTee", "1/2", "a/ah"),
        class("Strip", "1/1", "a/a"),
        class("CheckIPHeader", "1/1-2", "a/ah"),
        class("GetIPAddress", "1/1", "a/a"),
        class("StaticIPLookup", "1/-", "h/h"),
        class("DropBroadcasts", "1/1-2", "a/ah"),
        class("IPGWOptions", "1/1-2", "a/ah"),
        class("FixIPSrc", "1/1", "a/a"),
        class("DecIPTTL", "1/1-2", "a/ah"),
        class("IPFragmenter", "1/1-2", "h/h"),
        class("ICMPError", "1/1", "a/a"),
        class("Print", "1/1", "a/a"),
        class("Discard", "1/0", "a/a"),
        class("Queue", "1/1-2", "h/lh"),
    ])
}

#[test]
fn it_passes_and_comes_back() {
    let compiled = compile("router.click", TEXT.as_bytes(), &NoLibraries, &classes(), &[])
        .unwrap_or_else(|f| panic!("{}", common::plain(&f)));
    let graph = &compiled.graph;
    assert_eq!(graph.elements.len(), 4 + 2 * 8 + 2 * 13);
    let config = |name: &str| graph.find(name).map(|e| graph.elements[e].config.as_str());
    assert_eq!(config("in1/FromDevice@1"), Some("right"));
    assert_eq!(config("in0/Print@7"), Some("\"left non-IP\""));
    assert_eq!(config("out1/q"), Some("200"));
    assert_eq!(config("out0/ICMPError@10"), Some("left, redirect, host"));

    let list = connections(graph);
    for wanted in [
        "in0/CheckIPHeader@6 [0] -> [0] GetIPAddress@7",
        "out1/ICMPError@12 [0] -> [0] GetIPAddress@7",
        "rt [2] -> [0] out1/DropBroadcasts@1",
        "in1/ARPResponder@3 [0] -> [0] out1/q",
        "in1/c [1] -> [1] out1/arpq",
        "out0/dt [1] -> [0] out0/ICMPError@12",
    ] {
        assert!(list.iter().any(|c| c == wanted), "{wanted}\n{}", list.join("\n"));
    }

    let ports = |name: &str| {
        let e = graph.find(name).unwrap();
        (compiled.checked.inputs(e), compiled.checked.outputs(e))
    };
    assert_eq!(ports("out0/q"), (&[Push][..], &[Pull][..]));
    assert_eq!(ports("out0/dt"), (&[Push][..], &[Push, Push][..]));

    let printed = print::graph(graph);
    let again = compile("again", printed.as_bytes(), &NoLibraries, &classes(), &[]);
    assert_eq!(&again.unwrap_or_else(|f| panic!("{}", common::plain(&f))).graph, graph);
}

#[test]
fn the_command_line_changes_a_definition() {
    let params = [("QUEUE".to_string(), "64".to_string())];
    let compiled = compile("router.click", TEXT.as_bytes(), &NoLibraries, &classes(), &params).unwrap();
    let queue = compiled.graph.find("out0/q").unwrap();
    assert_eq!(values::unsigned_32(&compiled.graph.elements[queue].config), Ok(64));
}

#[test]
fn an_error_in_a_compound_shows_its_use() {
    let text = TEXT.replace("input [2] -> q;", "input [2] -> Discard; spare :: Queue;");
    let failed = compile("router.click", text.as_bytes(), &NoLibraries, &classes(), &[]).unwrap_err();
    assert_eq!(
        failed.diagnostics.messages(),
        [
            "'out0/spare :: Queue' input 0 unused",
            "'out1/spare :: Queue' input 0 unused",
            "'out0/spare :: Queue' output 0 unused",
            "'out1/spare :: Queue' output 0 unused"
        ]
    );
    let first = failed.diagnostics.iter().next().unwrap();
    let instance = first.notes[0].span.map(|s| failed.sources.slice(s));
    assert_eq!(instance, Some("out0"));
}
