//! FromSocket, ToSocket, FromRawSocket and ToRawSocket.

use super::outlet::Reason;
use super::{raw_socket, socket};
use crate::printing::to_stderr;
use causeway_engine::prelude::*;

pub(crate) static FROM: Spec = Spec {
    name: "FromSocket",
    summary: "receives by a socket of the kernel's",
    ports: "0/0-1",
    processing: "h/h",
    doc: "Socket without an input. It is for configurations that were written before Socket was.",
    example: "FromSocket(UDP, 127.0.0.1, 7007) -> Print(in) -> Discard;",
    see: &["Socket", "ToSocket"],
    build: |conf| deprecated(conf, &FROM, &socket::SPEC),
    ..socket::SPEC
};

pub(crate) static TO: Spec = Spec {
    name: "ToSocket",
    summary: "sends by a socket of the kernel's",
    ports: "0-1/0",
    processing: "l/l",
    doc: "Socket without an output. It is for configurations that were written before Socket was.",
    example: "InfiniteSource(LIMIT 5, STOP true) -> Queue -> ToSocket(UDP, 127.0.0.1, 7007);",
    see: &["Socket", "FromSocket"],
    build: |conf| deprecated(conf, &TO, &socket::SPEC),
    ..socket::SPEC
};

pub(crate) static FROM_RAW: Spec = Spec {
    name: "FromRawSocket",
    summary: "receives IPv4 packets by a raw socket",
    ports: "0/0-1",
    processing: "h/h",
    doc: "RawSocket without an input. It is for configurations that were written before RawSocket was.",
    example: "FromRawSocket(UDP, 53) -> IPPrint(in) -> Discard;",
    see: &["RawSocket", "ToRawSocket"],
    build: |conf| deprecated(conf, &FROM_RAW, &raw_socket::SPEC),
    ..raw_socket::SPEC
};

pub(crate) static TO_RAW: Spec = Spec {
    name: "ToRawSocket",
    summary: "sends IPv4 packets by a raw socket",
    ports: "0-1/0",
    processing: "l/l",
    doc: "RawSocket without an output. It is for configurations that were written before RawSocket was.",
    example: "InfiniteSource(LIMIT 5, STOP true) -> UDPIPEncap(127.0.0.1, 53, 127.0.0.1, 7007) -> Queue -> ToRawSocket(UDP);",
    see: &["RawSocket", "FromRawSocket"],
    build: |conf| deprecated(conf, &TO_RAW, &raw_socket::SPEC),
    ..raw_socket::SPEC
};

shares_drop_reasons!(FROM, Reason);
shares_drop_reasons!(TO, Reason);
shares_drop_reasons!(FROM_RAW, Reason);
shares_drop_reasons!(TO_RAW, Reason);

/// An element of the class that `old` is a part of, which is told.
fn deprecated(conf: &mut Conf<'_>, old: &Spec, whole: &Spec) -> Result<Box<dyn Element>, Invalid> {
    to_stderr(&format!("warning: {} is deprecated, use {} instead\n", old.name, whole.name));
    (whole.build)(conf)
}
