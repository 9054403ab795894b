//! Times inside: what a device takes for a frame that waits for no other, and how long frames wait.
//!
//! Frames wait for those before them, as in M/D/1, and for those of the burst that they come in. A tester in software is held up
//! now and then, by its own receivers too, and sends at once what became due meanwhile: the more the higher the load. Of bursts of n frames M^[X]/D/1 has the
//! mean wait s (ρ + n - 1) / (2 (1 - ρ)) (Chaudhry and Templeton, "A First Course in Bulk Queues", 1983), for a frame takes s.
//! Who is held up for a time t has λ t frames to send afterwards, so that it is ρ (s + t) / (2 (1 - ρ)).

use super::{Device, LIMITED, LOAD_MOST, Point, has_two_modes, span, value};
use anyhow::Result;
use causeway_results::stats::median;
use causeway_results::{Document, Series};

/// Parts of a device's PDR at which the laboratory looks at delays.
const LOADS: [u32; 3] = [10, 50, 90];

impl Device {
    /// The part of a time that frames at this load wait: for others, and as long as who sends them is held up.
    fn waiting(&self, load_fps: f64, bytes: f64) -> f64 {
        let part = (load_fps / self.rate_fps(bytes)).min(0.999);
        part / (2.0 * (1.0 - part))
    }

    /// The time inside at a load, microseconds, of frames of this length.
    pub fn inside_us(&self, load_fps: f64, bytes: f64) -> Option<f64> {
        let held_us = self.held_up.as_ref().map_or(0.0, |time| time.value as f64 / 1e6);
        let wait_us = self.waiting(load_fps, bytes) * (1e6 / self.rate_fps(bytes) + held_us);
        Some(self.inside.as_ref()?.value as f64 / 1e6 + wait_us)
    }
}

/// A time inside as the laboratory has it, the median.
struct Look {
    what: String,
    bytes: f64,
    part: u32,
    load_fps: f64,
    us: f64,
}

/// Times inside at parts of the PDRs `own`, and what the device has there that it gets by two of them: the shortest frames at the
/// lowest load, and the longest at half of theirs that is not beyond what is promised. What else has two modes is told in `left_out`.
pub(super) fn delays(
    document: &Document,
    name: &str,
    own: &Series,
    device: &mut Device,
    left_out: &mut Vec<String>,
) -> Result<Vec<Point>> {
    let mut looks = Vec::new();
    for one in &own.measurements {
        let (Some(bytes), Some(pdr)) = (one.x, median(&one.repetitions)) else { continue };
        for part in LOADS {
            let what = format!("{name}/{bytes:.0} bytes/delay at {part} % of its PDR");
            let series = document.series(&what);
            let found = series.and_then(|series| series.measurements.iter().find(|one| one.x == Some(50.0)));
            let Some(found) = found.filter(|one| one.note != LIMITED) else { continue };
            if has_two_modes(&found.repetitions) {
                left_out.push(format!("{what} has two modes: {:?}", found.repetitions));
                continue;
            }
            let us = value(found, &what)?;
            looks.push(Look { what, bytes, part, load_fps: pdr * f64::from(part) / 100.0, us });
        }
    }
    let by_length = |a: &&Look, b: &&Look| a.bytes.total_cmp(&b.bytes);
    let at = |part: u32| looks.iter().filter(move |look| look.part == part);
    let first = at(LOADS[0]).min_by(by_length);
    let promised = |look: &&Look| look.load_fps <= LOAD_MOST * device.rate_fps(look.bytes);
    let second = at(LOADS[1]).filter(promised).max_by(by_length);
    if let Some(first) = first {
        calibrate(device, first, second)?;
    }
    let used: Vec<&str> = first.into_iter().chain(second).map(|look| look.what.as_str()).collect();
    let point = |look: &Look| {
        let Look { bytes, load_fps: x, us: measured, .. } = *look;
        let counts = x <= LOAD_MOST * device.rate_fps(bytes) && !used.contains(&look.what.as_str());
        Some(Point { bytes, x, measured, modelled: device.inside_us(x, bytes)?, counts })
    };
    Ok(looks.iter().filter_map(point).collect())
}

/// What the device takes, and how long who sends is held up, by two looks; by one: never.
fn calibrate(device: &mut Device, first: &Look, second: Option<&Look>) -> Result<()> {
    let seen = |look: &Look| {
        let waiting = device.waiting(look.load_fps, look.bytes);
        (waiting, look.us - waiting * 1e6 / device.rate_fps(look.bytes))
    };
    let (waiting, us) = seen(first);
    let held_us = second.map(seen).map_or(0.0, |(other, more)| ((more - us) / (other - waiting)).max(0.0));
    device.inside = Some(span((us - waiting * held_us) * 1e6, &first.what)?);
    device.held_up = second.map(|second| span(held_us * 1e6, &second.what)).transpose()?;
    Ok(())
}
