//! What a device that is this program has counted itself.

use super::super::Place;
use super::{Axis, Findings, axis};
use crate::inside::reported::Reported;

impl Findings<'_> {
    /// What the device counted in a trial of `trial_ns` at a load: its reception mechanisms, the cleanings of its transmit
    /// rings, what it dropped and why. Rates are of the time in which frames were sent.
    pub(in crate::run) fn reported(
        &mut self,
        place: &Place<'_>,
        load: f64,
        (before, after): (&Reported, &Reported),
        trial_ns: u64,
    ) {
        let of = |what: &str| format!("inside {}, {}: {what}", place.device, place.size);
        let x = || (axis("offered load", "frames/s"), load.round());
        let seconds = trial_ns as f64 / 1e9;
        for (element, now) in &after.receptions {
            let counted = now.since(&before.receptions.get(element).copied().unwrap_or_default());
            let rate = counted.interrupts as f64 / seconds;
            let name = format!("{element}, taken interrupts/{}", of("taken interrupts"));
            self.add(&name, ("rate", "a second"), x(), rate, "");
            let name = format!("{element}/{}", of("polls of a packet"));
            self.ratio(&name, "polls of a packet", x(), (counted.polls, counted.packets));
        }
        for (element, now) in &after.cleanings {
            let counted = now.since(&before.cleanings.get(element).copied().unwrap_or_default());
            let rate = counted.runs as f64 / seconds;
            let name = format!("{element}, ring cleanings/{}", of("runs"));
            self.add(&name, ("rate", "runs a second"), x(), rate, "");
            let name = format!("{element}, ring cleanings/{}", of("packets of a run"));
            self.ratio(&name, "packets of a run", x(), (counted.packets, counted.runs));
        }
        for (reason, &now) in &after.drops {
            let then = before.drops.get(reason).copied().unwrap_or(0);
            // Of a device that was started again, what it has counted.
            let dropped = if now < then { now } else { now - then };
            if dropped > 0 {
                let name = format!("{reason}/{}", of("drops"));
                self.add(&name, ("drops", "packets"), x(), dropped as f64, "");
            }
        }
    }

    /// How many there are of one thing for each of another, unless there is none of that.
    pub(super) fn ratio(&mut self, name: &str, quantity: &str, x: (Axis, f64), (these, others): (u64, u64)) {
        if others > 0 {
            self.add(name, (quantity, ""), x, these as f64 / others as f64, "");
        }
    }
}
