//! Runs that stop before they are done.

use super::*;

#[test]
fn a_napi_port_that_interrupts_while_interrupts_are_served_has_its_turn_in_the_next_run() {
    let (mut r, mut rings) = with(&[NAPI_4, Mechanism::Interrupt], 300);
    rings.arrive(&mut r, 1, 3);
    assert_eq!(r.run(&mut rings, 0, 1), (0, true));
    assert!(r.under_way());
    rings.arrive(&mut r, 0, 1);
    assert_eq!(r.run(&mut rings, 0, usize::MAX), (3, true));
    assert_eq!((&rings.forwarded[..], r.under_way()), (&[0, 3][..], false), "its interrupt comes late");
    assert_eq!(r.run(&mut rings, 0, usize::MAX), (1, false));
}

/// Rings of which what is forwarded is delivered when a run is over.
struct Late(Rings);

impl Ports for Late {
    fn receiver(&mut self, port: usize) -> Option<&mut dyn Receiver> {
        self.0.receiver(port)
    }

    fn receive(&mut self, port: usize, budget: usize) -> Received {
        self.0.receive(port, budget)
    }

    fn enqueue(&mut self, port: usize, room: usize, budget: usize) -> Received {
        self.0.enqueue(port, room, budget)
    }

    fn forward(&mut self, max: usize) -> usize {
        self.0.forward(max)
    }

    fn defers(&self) -> bool {
        true
    }
}

#[test]
fn what_is_delivered_later_ends_a_run_and_an_empty_ring_does_not() {
    let (mut r, mut rings) = with(&[Mechanism::Polling; 3], 300);
    for port in [1, 2] {
        rings.arrive(&mut r, port, 1);
    }
    let mut late = Late(rings);
    assert_eq!(r.run(&mut late, 0, usize::MAX).0, 1);
    assert_eq!((&late.0.forwarded[..], r.under_way()), (&[0, 1, 0][..], true));
    assert_eq!(r.run(&mut late, 0, usize::MAX).0, 1);
    assert_eq!((&late.0.forwarded[..], r.under_way()), (&[0, 1, 1][..], false));
}
