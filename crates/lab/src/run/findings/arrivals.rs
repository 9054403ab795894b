//! Beside rate, loss and delay: which frames came otherwise than they were sent, and how much their delay varied.

use super::{Findings, LIMITED, PERCENTILES, axis};
use crate::run::Place;
use crate::search::Outcome;
use causeway_results::Axis;
use causeway_results::html::{IRREGULAR, VARIATION};

/// The share of frames whose delay varies by no more: that of RFC 8219 §7.3.
const MOST: f64 = 0.999;

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

impl Findings<'_> {
    /// Of a trial at a load of the curve.
    pub(super) fn arrivals(&mut self, place: &Place<'_>, load: f64, outcome: &Outcome) {
        self.arrived(place, "", || (axis("offered load", "frames/s"), load.round()), outcome);
    }

    /// Of a measurement of delay at a part of the PDR.
    pub(super) fn arrivals_of_delay(&mut self, place: &Place<'_>, part: f64, outcome: &Outcome) {
        let percent = (part * 100.0).round();
        self.arrived(place, ", delay", || (axis("load", "% of its PDR"), percent), outcome);
        let note = if outcome.limited { LIMITED } else { "" };
        let name = format!("{}/{}/IPDV at {percent:.0} % of its PDR", place.device, place.size);
        for percentile in PERCENTILES {
            let Some(ns) = outcome.analysis.ipdv.percentile_ns(percentile / 100.0) else { continue };
            self.add(&name, (VARIATION, "us"), (axis("percentile", "%"), percentile), us(ns), note);
        }
    }

    fn arrived(&mut self, place: &Place<'_>, of: &str, x: impl Fn() -> (Axis, f64), outcome: &Outcome) {
        let (all, total) = (&outcome.analysis, outcome.analysis.total());
        let note = if outcome.limited { LIMITED } else { "" };
        let name = |what: &str| format!("{}/{}{of}/{what}", place.device, place.size);
        let counts = [total.duplicated, total.reordered, all.corrupt, all.foreign];
        for (what, count) in IRREGULAR.into_iter().zip(counts) {
            self.add(&name(what), (what, "frames"), x(), count as f64, note);
        }
        for (what, ns) in [("IPDV, 99.9 %", all.ipdv.percentile_ns(MOST)), ("PDV", all.pdv_ns())] {
            if let Some(ns) = ns {
                self.add(&name(what), (VARIATION, "us"), x(), us(ns), note);
            }
        }
    }
}
