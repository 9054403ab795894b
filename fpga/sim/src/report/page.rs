//! The page of results against the paper.

use std::fmt::Write as _;

use causeway_model::enhanced::predict;
use causeway_results::chart::Value;
use causeway_results::stats::{SEED, compare};

use super::Results;
use super::experiments::Run;
use crate::scenario::Outcome;

/// What the paper reports for A to F, in Gbit/s and in words.
const PAPER: [(&str, f64, &str); 6] = [
    ("A", 0.4, "slow path; bound by 600 kpkt/s, which is an input here: 1 667 ns a packet"),
    ("B", 1.0, "no loss"),
    ("C", 2.0, "no loss"),
    ("D", 1.0, "half of each input; excess dropped at the inputs"),
    ("E", 1.0, "each packet to its port"),
    ("F", 3.0, "three bidirectional flows"),
];

/// What the numbers show, where it is not plain.
const NOTES: [(&str, &str); 8] = [
    (
        "routing",
        "In parentheses: the protocol model (`crates/model/src/enhanced`), which knows the schedulers' rules and \
         latencies and no hardware; a test holds the two within 5 % of each other.",
    ),
    (
        "frame-size",
        "The paper's curve is a bound: 600 kpkt/s, then half of an 8 Gbit/s bus. This bus is the cards' own 66 MHz one \
         (4.27 Gbit/s), crossed twice. With three ports it stays below even its half: the arbiter gives the chipset, \
         through which all transmission goes, no more turns than one receiving card, so received packets crowd out \
         sent ones and are dropped at full transmit queues after having crossed the bus, which the fast path avoids.",
    ),
    ("qos-fast", "The paper's figures 5 and 6 do not tell the share of the high class; hence several."),
    (
        "cards",
        "Four ports at line rate pass: the question that the paper left open for want of boards. From the fifth on the \
         bus is the limit, at most 4.85 Gbit/s of line rate, because preamble, gap and check sequence do not cross \
         it. At five ports the input FIFOs are still filling when the measurement ends: delivered is below offered \
         with nothing lost yet.",
    ),
    (
        "saturation",
        "Medians of three seeds, and where the median lies with a confidence of 95 %, by the bootstrap; the ratio to round \
         robin is that of the same seeds. The seeds differ in the phases of the inputs, and losses \
         are frames of the whole run of 11 ms and its draining. With the same mix at both inputs, equal turns are \
         what they need: every rule keeps the paper's promise, that the low class alone loses, up to a share of \
         .49. At .5 the high class fills the line by itself: the rules that look at classes lose a few dozen of its 16 000 frames. The runs of figure 6 above are at one phase only.",
    ),
    (
        "uneven",
        "This is where round robin breaks the promise, and the surplus rule with it: each input gets half of the \
         line, so the one with more than that of the high class loses it, for good, while the other's low class \
         passes. The rules that look at classes keep it in most runs, but not in all: with some phases the input with little of the high class lost some of it (high-first with .24, longest-high with .08; hence \
         the wide intervals). So near saturation none of the four is safe with every phase; high-first and longest-high lose a fraction of what round robin does, or nothing.",
    ),
    (
        "bus-133",
        "At twice the clock the bus has 8.5 Gbit/s. Bursts are short, because what waits is fetched sooner: in D a \
         third of them are empty. Seven ports at line rate pass, and eight but for 0.6 %, with FIFOs that are \
         still filling; the slow path is the host's 600 kpkt/s up to 256 bytes, and from 1 024 bytes on three \
         ports pass.",
    ),
    (
        "unequal",
        "Round robin and surplus do not look at classes, so the high class loses although the low one is served. \
         High-first and longest-high save it, and starve the other input altogether, although a fifth of the line \
         is free: a pending request of the high class always wins the turn, or keeps the room.",
    ),
];

/// The whole page.
pub fn markdown(all: &[Results]) -> String {
    let mut s = String::from(
        "# The FPGA-enhanced NIC: results\n\nEvery number on this page is **modelled**: the Verilog of `fpga/rtl` run \
         clock by clock, on a modelled bus and host. `make fpga-experiments` writes this page, the charts and \
         [`fpga-nic.json`](fpga-nic.json), in the format of all results here ([schema](results.schema.json)), which \
         holds all settings, losses and counters; the same is written as a table, `fpga-nic.csv`, which is not kept. Rates are at the line: \
         preamble and gap count, 64-byte frames are 1 488 095 a second at 1 Gbit/s. The host spends 1 667 ns a packet \
         (600 kpkt/s, the paper's figure); bus overhead is ten cycles a sequence unless said otherwise; 1 ms is left \
         to fill the queues and 10 ms are measured (4 ms with more than one card count).\n\n",
    );
    for results in all {
        let _ = writeln!(s, "## {}\n", results.experiment.title);
        match results.experiment.name {
            "routing" => routing(&mut s, results),
            "qos-slow" | "qos-fast" => classes(&mut s, results),
            "saturation" => by_rule(&mut s, results, "high share"),
            "uneven" => by_rule(&mut s, results, "high share above and below 0.48"),
            _ => table(&mut s, results),
        }
        if let Some((_, note)) = NOTES.iter().find(|(name, _)| *name == results.experiment.name) {
            let _ = writeln!(s, "\n{note}");
        }
        if !results.experiment.plotted.is_empty() {
            let name = results.experiment.name;
            let _ = writeln!(s, "\n![{name}](fpga-nic-{name}.svg)");
        }
        s.push('\n');
    }
    s
}

fn routing(s: &mut String, results: &Results) {
    *s += "| run | paper (Gbit/s) | here (Gbit/s) | lost at input FIFOs | lost elsewhere | bus busy (model) | bursts/ms (model) | packets a burst (model) | median latency (µs) | paper says |\n";
    *s += "|---|---|---|---|---|---|---|---|---|---|\n";
    for (outcome, (name, gbps, says)) in results.outcomes.iter().zip(PAPER) {
        let at_inputs = outcome.counted("drop_fifo");
        let seen = outcome.statistics();
        let protocol = if outcome.scenario.fast_path {
            let model = predict(&outcome.scenario.protocol());
            format!(
                "{:.1} % ({:.1} %) | {:.0} ({:.0}) | {:.2} ({:.2})",
                100.0 * seen.bus_busy,
                100.0 * model.bus_busy,
                seen.bursts_pps / 1e3,
                model.bursts_pps / 1e3,
                seen.delivered_pps / seen.bursts_pps,
                model.delivered_pps / model.bursts_pps,
            )
        } else {
            format!("{:.1} % | none | none", 100.0 * seen.bus_busy)
        };
        let _ = writeln!(
            s,
            "| {name} | {gbps:.1} | {:.3} | {at_inputs} | {} | {protocol} | {:.1} | {says} |",
            outcome.delivered_bps() / 1e9,
            outcome.lost() - at_inputs,
            median_us(outcome),
        );
    }
    *s += "\nShares of the inputs in D: ";
    let d = &results.outcomes[3];
    for port in 0..2 {
        let share = d.delivered_pps(|key| key.0 == port) / d.offered_pps(|key| key.0 == port);
        let _ = write!(s, "port {port} {:.1} % ", 100.0 * share);
    }
    s.push('\n');
}

fn median_us(outcome: &Outcome) -> f64 {
    let medians: Vec<f64> = outcome.flows.iter().map(|f| f64::from(f.latency_ns[1]) / 1e3).collect();
    medians.iter().sum::<f64>() / medians.len().max(1) as f64
}

fn classes(s: &mut String, results: &Results) {
    *s += "| series | load (Gbit/s) | high delivered | low delivered | high kpkt/s | low kpkt/s |\n|---|---|---|---|---|---|\n";
    for (run, outcome) in results.experiment.runs.iter().zip(&results.outcomes) {
        let pps = [true, false].map(|high| outcome.delivered_pps(|key| key.2 == high));
        let part = [true, false]
            .map(|high| 100.0 * pps[usize::from(!high)] / outcome.offered_pps(|key| key.2 == high));
        let _ = writeln!(
            s,
            "| {} | {:.1} | {:.1} % | {:.1} % | {:.0} | {:.0} |",
            run.series,
            run.x,
            part[0].min(100.0),
            part[1].min(100.0),
            pps[0] / 1e3,
            pps[1] / 1e3
        );
    }
}

/// A median, and where it lies if that is more than one number.
fn spread(digits: usize, values: &[f64]) -> String {
    let Some(Value { value, interval }) = Value::of(values) else { return "none".into() };
    let [low, high] =
        interval.map_or([value; 2], |at| [at.low, at.high]).map(|end| format!("{end:.digits$}"));
    if low == high { format!("{value:.digits$}") } else { format!("{value:.digits$} ({low} to {high})") }
}

/// Runs of the same rule and x value together.
fn by_rule(s: &mut String, results: &Results, x: &str) {
    let _ = writeln!(
        s,
        "| rule | {x} | high offered (kpkt/s) | high delivered, times round robin's | high lost of input 0 | of input 1 \
         | low delivered (%) | high median (µs) | high p99 (µs) | low p99 (µs) |",
    );
    *s += "|---|---|---|---|---|---|---|---|---|---|\n";
    let runs: Vec<_> = results.experiment.runs.iter().zip(&results.outcomes).collect();
    let groups: Vec<&[(&Run, &Outcome)]> =
        runs.chunk_by(|a, b| (&a.0.series, a.0.x) == (&b.0.series, b.0.x)).collect();
    let high = |o: &Outcome| o.delivered_pps(|key| key.2);
    let values = |group: &[(&Run, &Outcome)], value: &dyn Fn(&Outcome) -> f64| -> Vec<f64> {
        group.iter().map(|(_, outcome)| value(outcome)).collect()
    };
    for group in &groups {
        let over = |digits: usize, value: &dyn Fn(&Outcome) -> f64| spread(digits, &values(group, value));
        let baseline = results.experiment.baseline.filter(|name| *name != group[0].0.series);
        let baseline = groups
            .iter()
            .find(|other| baseline == Some(other[0].0.series.as_str()) && other[0].0.x == group[0].0.x);
        let ratio = baseline.and_then(|other| compare(&values(group, &high), &values(other, &high), SEED));
        let ratio = ratio.map_or(String::new(), |found| {
            let mark = if found.differs() { "" } else { " (no difference)" };
            format!("{:.4}{mark}", found.ratio)
        });
        let lost = |port: u8| over(0, &|o| o.lost_of(|key| key.0 == port && key.2) as f64);
        let low = |o: &Outcome| 100.0 * o.delivered_pps(|key| !key.2) / o.offered_pps(|key| !key.2);
        let latency_us = |high: bool, which: usize| {
            over(0, &|o| f64::from(o.latency_by_class_ns[usize::from(high)][which]) / 1e3)
        };
        let _ = writeln!(
            s,
            "| {} | {} | {} | {ratio} | {} | {} | {} | {} | {} | {} |",
            group[0].0.series,
            group[0].0.x,
            over(0, &|o| o.offered_pps(|key| key.2) / 1e3),
            lost(0),
            lost(1),
            over(1, &low),
            latency_us(true, 1),
            latency_us(true, 2),
            latency_us(false, 2),
        );
    }
}

fn table(s: &mut String, results: &Results) {
    *s += "| run | offered (Gbit/s) | delivered (Gbit/s) | lost | bus busy | bus data | bursts | empty | packets a burst |\n";
    *s += "|---|---|---|---|---|---|---|---|---|\n";
    for outcome in &results.outcomes {
        let bursts = outcome.counted("bursts_sent");
        let _ = writeln!(
            s,
            "| {} | {:.3} | {:.3} | {} | {:.1} % | {:.1} % | {bursts} | {} | {:.2} |",
            outcome.scenario.name,
            outcome.offered_bps() / 1e9,
            outcome.delivered_bps() / 1e9,
            outcome.lost(),
            100.0 * outcome.bus_busy(),
            100.0 * outcome.bus_data(),
            outcome.counted("bursts_empty"),
            outcome.packets_a_burst(),
        );
    }
    if results.experiment.name == "unequal" {
        *s += "\n| run | high class delivered | low class delivered |\n|---|---|---|\n";
        for outcome in &results.outcomes {
            let part =
                |high| 100.0 * outcome.delivered_pps(|k| k.2 == high) / outcome.offered_pps(|k| k.2 == high);
            let _ = writeln!(s, "| {} | {:.1} % | {:.1} % |", outcome.scenario.name, part(true), part(false));
        }
    }
}
