//! What Script and DriverManager say of themselves.

use super::{Kind, build};
use causeway_engine::prelude::*;
use causeway_engine::spec::{ArgDoc, HandlerDoc, calls};

pub(crate) static SPEC: Spec = Spec {
    name: "Script",
    category: "control",
    summary: "runs a script that calls handlers, waits and stops the router",
    ports: "-/-",
    processing: "ah/ah",
    doc: include_str!("script.md"),
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "c :: Counter; InfiniteSource(LIMIT 5) -> c -> Discard; \
              s :: Script(set x 0, label again, set x $(add $x 1), goto again $(lt $x 3), wait 1ms, stop);",
    see: &["DriverManager", "ControlSocket", "Message"],
    copies: Copies::One,
    acts: true,
    build: |conf| build(conf, None),
    ..Spec::DEFAULT
};

pub(crate) static DRIVER_MANAGER: Spec = Spec {
    name: "DriverManager",
    category: "control",
    summary: "decides by a script whether the router stops when it is asked to",
    ports: "0/0",
    doc: "A Script of TYPE DRIVER, with all its instructions: it runs when the router has been asked to stop: by an \
          element at the end of its packets, by the handler `stop`, or by a signal. The requests are counted: `pause` \
          (or `wait_stop`, `wait_step`) waits for one, `pause 3` for three. Where it waits the router runs on; where it \
          ends, or at `stop`, the router stops. Before its first `pause` or `wait` it runs at the start. Without \
          instructions it stops at the first request, as a router without DriverManager does. There is one in a router.",
    args: ARGS,
    handlers: HANDLERS,
    drops: Reason::DOCS,
    example: "InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard; DriverManager(wait_stop, wait 1ms, stop);",
    see: &["Script"],
    copies: Copies::One,
    acts: false,
    build: |conf| build(conf, Some(Kind::Driver)),
    ..Spec::DEFAULT
};

const ARGS: &[ArgDoc] = &[
    keyword(
        "TYPE",
        "`ACTIVE`, `PASSIVE`, `PACKET`, `PROXY`, `DRIVER` or `SIGNAL` with numbers or names",
        "when it runs; default PACKET with ports, else ACTIVE",
    ),
    rest("INSTRUCTION", "an instruction with its text", "what it does"),
];

const HANDLERS: &[HandlerDoc] = &[
    writes("step", "lets it go on past what it waits for, or past so many of those"),
    writes("goto", "moves it to a label"),
    calls("run", "runs it from its begin with the parameters as `$args`; what it returns is the value"),
    reads_with("add", "the sum of numbers"),
    reads_with("sub", "the first number less the others"),
    reads_with("min", "the least of numbers"),
    reads_with("max", "the greatest of numbers"),
    reads_with("mul", "the product of numbers"),
    reads_with("div", "the first number divided by the others"),
    reads_with("idiv", "as `div`, cut to an integer"),
    reads_with("mod", "what the division of two integers leaves"),
    reads_with("rem", "what the division of two numbers leaves"),
    reads_with("neg", "the number with the other sign"),
    reads_with("abs", "the number without its sign"),
    reads_with("eq", "whether two numbers, or else texts, are equal"),
    reads_with("ne", "whether they are not"),
    reads_with("gt", "whether the first is greater"),
    reads_with("ge", "whether it is greater or equal"),
    reads_with("lt", "whether the first is less"),
    reads_with("le", "whether it is less or equal"),
    reads_with("not", "the opposite of a truth value"),
    reads_with(
        "sprintf",
        "the first word with the others in place of its conversions, as printf(3) knows them",
    ),
    reads_with("first", "the first word"),
    reads_with("random", "a random number: below N1 if one is given, from N1 to N2 if two are"),
    reads_with("and", "whether all truth values are true"),
    reads_with("or", "whether one truth value is true"),
    reads_with("nand", "whether not all truth values are true"),
    reads_with("nor", "whether none of the truth values is true"),
    reads_with("if", "the second word if the first is true, else the third"),
    reads_with("in", "whether the first word is among the others"),
    reads("now", "the time, seconds since the epoch"),
    reads_with("readable", "whether all these handlers can be read"),
    reads_with("writable", "whether all these handlers can be written"),
    reads_with("length", "how many bytes the text has"),
    reads_with("unquote", "the text without a layer of quotes"),
    reads_with("htons", "the number's 16 bits in network order"),
    reads_with("htonl", "the number's 32 bits in network order"),
    reads_with("ntohs", "as `htons`"),
    reads_with("ntohl", "as `htonl`"),
    reads_with("cat", "the contents of a file").private(),
    reads_with("catq", "the contents of a file, in quotes").private(),
    reads_with("kill", "sends a signal, by number or name, to processes").private(),
    reads_with("get", "the value of a variable"),
    writes("set", "sets a variable to the text behind its name"),
    reads_with("shift", "takes the first word off a variable, by default `args`"),
];

drop_reasons! {
    pub(super) enum Reason for SPEC {
        NoOutput = "no-output", "the script ended without an output for the packet, or named one that is not there";
    }
}
