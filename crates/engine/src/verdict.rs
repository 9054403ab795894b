//! What becomes of one packet, and the loop over a batch that elements have which look at one packet at a time.

use crate::cx::Cx;
use crate::drops::DropReason;
use crate::element::Element;
use causeway_packet::Batch;

/// What becomes of a packet that an element has looked at ([`Element::packet`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It leaves by output 0.
    Pass,
    /// It leaves by this output.
    Out(usize),
    /// It is dropped.
    Drop(DropReason),
    /// It leaves by this output if that leads somewhere, and is dropped otherwise.
    Divert(usize, DropReason),
}

impl Verdict {
    /// It is dropped for `reason`.
    #[inline(always)]
    pub fn drop(reason: impl Into<DropReason>) -> Verdict {
        Verdict::Drop(reason.into())
    }

    /// It leaves by output `port` if that leads somewhere, and is dropped for `reason` otherwise.
    #[inline(always)]
    pub fn divert(port: usize, reason: impl Into<DropReason>) -> Verdict {
        Verdict::Divert(port, reason.into())
    }
}

/// A step on a packet that has failed, or not.
pub trait OrDrop: Sized {
    /// Whether it has succeeded.
    fn succeeded(self) -> bool;

    /// The packet passes in case of success, and is dropped for `reason` otherwise.
    #[inline(always)]
    fn or_drop(self, reason: impl Into<DropReason>) -> Verdict {
        if self.succeeded() { Verdict::Pass } else { Verdict::drop(reason) }
    }

    /// The packet passes in case of success; otherwise it leaves by output `port`, or is dropped for `reason` if that leads
    /// nowhere.
    #[inline(always)]
    fn or_divert(self, port: usize, reason: impl Into<DropReason>) -> Verdict {
        if self.succeeded() { Verdict::Pass } else { Verdict::divert(port, reason) }
    }
}

impl OrDrop for bool {
    #[inline(always)]
    fn succeeded(self) -> bool {
        self
    }
}

impl<T> OrDrop for Option<T> {
    #[inline(always)]
    fn succeeded(self) -> bool {
        self.is_some()
    }
}

impl<T, E> OrDrop for Result<T, E> {
    #[inline(always)]
    fn succeeded(self) -> bool {
        self.is_ok()
    }
}

/// What a check says that names the reason.
impl<R: Into<DropReason>> From<Result<(), R>> for Verdict {
    #[inline(always)]
    fn from(checked: Result<(), R>) -> Verdict {
        match checked {
            Ok(()) => Verdict::Pass,
            Err(reason) => Verdict::drop(reason),
        }
    }
}

/// Asks `element` for a verdict on each packet of `batch`. Those that pass stay where they are, so that as long as all do,
/// which is usual, nothing is moved; and an element that passes them all is a loop of what it does and no more. This is what
/// [`Element::push`] does by itself; one that looks at the whole batch first ends with it.
#[inline(always)]
pub fn each<E: Element + ?Sized>(element: &mut E, port: usize, batch: &mut Batch, cx: &mut Cx<'_>) {
    let ahead = element.lookahead();
    batch.iter().take(ahead).for_each(|p| p.prefetch_data());
    for i in 0..batch.len() {
        if ahead > 0 {
            batch.prefetch_data(i + ahead);
        }
        match element.packet(port, &mut batch[i], cx) {
            Verdict::Pass | Verdict::Out(0) => {}
            other => return sort_out(element, port, batch, (i, other), cx),
        }
    }
}

/// Goes on from the first packet that does not pass, whose number and verdict are `first`.
fn sort_out<E: Element + ?Sized>(
    element: &mut E,
    port: usize,
    batch: &mut Batch,
    first: (usize, Verdict),
    cx: &mut Cx<'_>,
) {
    let mut n = 0;
    batch.filter_map(|mut packet| {
        let verdict = match n {
            n if n < first.0 => Verdict::Pass,
            n if n == first.0 => first.1,
            _ => element.packet(port, &mut packet, cx),
        };
        n += 1;
        match verdict {
            Verdict::Pass | Verdict::Out(0) => return Some(packet),
            Verdict::Divert(0, _) if cx.n_outputs() > 0 => return Some(packet),
            Verdict::Out(port) => cx.emit(port, packet),
            Verdict::Drop(reason) => cx.drop(reason, packet),
            Verdict::Divert(port, reason) => cx.divert(port, reason, packet),
        }
        None
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, Output, Ports};
    use crate::spec::Spec;
    use causeway_packet::Packet;

    static SPEC: Spec = Spec {
        drops: Reason::DOCS,
        build: |_| Ok(Box::new(ByFirstByte { seen: Vec::new() })),
        ..Spec::DEFAULT
    };

    crate::drop_reasons! {
        enum Reason for SPEC {
            Two = "two", "its first byte is 2";
            Three = "three", "its first byte is 3, and output 1 is not connected";
        }
    }

    /// Does with packets what their first byte says, and writes down in which order it saw them.
    struct ByFirstByte {
        seen: Vec<u8>,
    }

    impl Element for ByFirstByte {
        fn packet(&mut self, _port: usize, packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
            self.seen.push(packet.data()[1]);
            match packet.data()[0] {
                0 => Verdict::Pass,
                1 => Verdict::Out(1),
                2 => Verdict::drop(Reason::Two),
                3 => Verdict::divert(1, Reason::Three),
                _ => Verdict::Out(0),
            }
        }
    }

    fn numbers(packets: &[Packet]) -> Vec<u8> {
        packets.iter().map(|p| p.data()[1]).collect()
    }

    #[test]
    fn packets_go_where_their_verdicts_say_each_asked_once_and_in_order() {
        for kinds in [&[0, 4, 0][..], &[0, 1, 2, 3, 4, 0, 3], &[2, 2], &[3, 0, 1, 1, 0], &[]] {
            for connected in [false, true] {
                let second = if connected { Output::Pushed } else { Output::Open };
                let ports = Ports { pulled_inputs: vec![false], outputs: vec![Output::Pushed, second] };
                let mut h = Harness::with_ports(&SPEC, "", &ports).unwrap();
                h.push_all(0, kinds.iter().zip(0..).map(|(&k, n)| Packet::from_bytes(&[k, n]).unwrap()));
                let of = |wanted: &[u8]| -> Vec<u8> {
                    kinds.iter().zip(0..).filter(|(k, _)| wanted.contains(k)).map(|(_, n)| n).collect()
                };
                assert_eq!(numbers(&h.take(0)), of(&[0, 4]), "{kinds:?}");
                assert_eq!(numbers(&h.take(1)), if connected { of(&[1, 3]) } else { vec![] }, "{kinds:?}");
                let lost = |name: &str| h.drops().iter().find(|d| d.0 == name).map_or(0, |d| d.1 as usize);
                let left = if connected { [0, 0] } else { [of(&[1]).len(), of(&[3]).len()] };
                assert_eq!(
                    [lost("two"), lost("unconnected"), lost("three")],
                    [of(&[2]).len(), left[0], left[1]]
                );
                h.assert_balanced();
                assert_eq!(h.element::<ByFirstByte>().unwrap().seen, of(&[0, 1, 2, 3, 4]));
            }
        }
    }

    #[test]
    fn a_step_that_fails_is_a_verdict() {
        let (drop, divert) = (Verdict::drop(Reason::Two), Verdict::divert(1, Reason::Three));
        assert_eq!((true.or_drop(Reason::Two), false.or_drop(Reason::Two)), (Verdict::Pass, drop));
        assert_eq!(
            (Some(1).or_divert(1, Reason::Three), None::<u8>.or_divert(1, Reason::Three)),
            (Verdict::Pass, divert)
        );
        assert_eq!(
            (Ok::<_, u8>(1).or_drop(Reason::Two), Err::<u8, _>(1).or_drop(Reason::Two)),
            (Verdict::Pass, drop)
        );
        assert_eq!(
            (Verdict::from(Ok::<_, Reason>(())), Verdict::from(Err(Reason::Two))),
            (Verdict::Pass, drop)
        );
    }
}
