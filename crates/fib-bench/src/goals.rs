//! What the tables are to reach, and whether they did: all of it, missed or not.

use crate::contender::Fill;
use crate::race::{BATCHED, CHAINED, Score, Section};

/// Something measured, of one table or of two.
#[derive(Clone, Copy)]
enum Measure {
    /// How many times as fast as another in batches, the geometric mean over all traffic but what only misses.
    Batch(&'static str),
    /// The same over the traffic where it is least.
    BatchLeast(&'static str),
    /// Latency on a chain of dependent lookups as a part of another's, geometric mean.
    Chain(&'static str),
    /// Bytes a prefix.
    Bytes,
    /// Changes a second.
    Updates,
    /// Microseconds within which 99 % of changes are made.
    UpdateP99,
    /// Milliseconds to load it.
    Load,
    /// Time in batches as a part of what the same table takes that was loaded, geometric mean.
    OverLoaded,
}

use Measure::{Batch, BatchLeast, Bytes, Chain, Load, OverLoaded, UpdateP99, Updates};

/// Where, who, what, and how much it should be: at least, or with a minus at most.
type Goal = (&'static str, &'static str, Measure, f64);

const GOALS: [Goal; 38] = [
    ("ipv4", "rank24", Batch("rte_fib 2 B"), 1.8),
    ("ipv4", "rank24", BatchLeast("rte_fib 2 B"), 1.2),
    ("ipv4", "rank24", Batch("rte_fib 1 B"), 1.0),
    ("ipv4", "rank24", Batch("rte_lpm"), 1.0),
    ("ipv4", "rank24", Batch("poptrie"), 2.5),
    ("ipv4", "rank24", Batch("poptrie library"), 2.5),
    ("ipv4", "rank24", BatchLeast("poptrie library"), 1.2),
    ("ipv4", "rank24", Batch("dir-24-8"), 1.0),
    ("ipv4", "compact16", Batch("rte_fib 2 B"), 1.8),
    ("ipv4", "rank24", Chain("rte_fib 2 B"), -0.7),
    ("ipv4", "rank24", Chain("rte_lpm"), -1.0),
    ("ipv4", "compact16", Chain("rte_fib 2 B"), -0.35),
    ("ipv4", "rank24", Bytes, -5.0),
    ("ipv4", "compact16", Bytes, -2.5),
    ("ipv4", "rank24", Updates, 1e6),
    ("ipv4", "rank24", UpdateP99, -10.0),
    ("ipv4", "compact16", UpdateP99, -10.0),
    ("ipv4", "rank24", Load, -300.0),
    ("ipv4", "rank24", OverLoaded, -1.1),
    ("ipv4-updated", "rank24", OverLoaded, -1.1),
    ("ipv4-random", "rank24", Batch("rte_fib 2 B"), 1.5),
    ("ipv4-random", "rank24", Chain("rte_fib 2 B"), -0.7),
    ("ipv4-random", "compact16", Chain("rte_fib 2 B"), -0.35),
    ("ipv4-random", "rank24", Bytes, -6.5),
    ("ipv4-random", "compact16", Bytes, -4.0),
    ("ipv6", "lines6", Batch("poptrie"), 2.5),
    ("ipv6", "lines6", Batch("rte_fib6 4 B"), 2.0),
    ("ipv6", "lines6", Batch("rte_lpm6"), 3.5),
    ("ipv6", "lines6", Batch("b+-tree"), 1.1),
    ("ipv6", "lines6", Bytes, -15.0),
    ("ipv6", "lines6", Updates, 5e5),
    ("ipv6", "lines6", UpdateP99, -10.0),
    ("ipv6", "lines6", Load, -300.0),
    ("ipv6", "lines6", OverLoaded, -1.1),
    ("ipv6-updated", "lines6", OverLoaded, -1.1),
    ("ipv6-random", "lines6", Batch("b+-tree"), 1.1),
    ("ipv6-random", "lines6", Batch("rte_fib6 4 B"), 2.0),
    ("ipv6-random", "lines6", Bytes, -15.0),
];

fn find<'s>(section: &'s Section, name: &str, fill: Option<Fill>) -> Option<&'s Score> {
    section.scores.iter().find(|score| score.name == name && fill.is_none_or(|fill| fill == score.fill))
}

/// `theirs` over `ours`, by traffic; of IPv6 without uniform addresses, which hit nothing.
fn ratios(section: &Section, ours: &Score, theirs: &Score, mode: usize) -> Vec<f64> {
    let counts = |name: &str| name != "random" || section.stem.starts_with("ipv4");
    let pairs = ours.lookups.iter().zip(&theirs.lookups).filter(|(ours, _)| counts(ours.traffic));
    pairs.filter_map(|(ours, theirs)| Some(theirs.median_ns()[mode]? / ours.median_ns()[mode]?)).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    let logs = values.iter().map(|value| value.ln()).sum::<f64>();
    (!values.is_empty()).then(|| (logs / values.len() as f64).exp())
}

fn measure(section: &Section, name: &str, what: Measure) -> Option<f64> {
    // After the updates all but the last were route by route.
    let ours = find(section, name, Some(Fill::ByRoute))?;
    let against =
        |theirs: &str, mode| find(section, theirs, None).map(|theirs| ratios(section, ours, theirs, mode));
    match what {
        Batch(theirs) => mean(&against(theirs, BATCHED)?),
        BatchLeast(theirs) => against(theirs, BATCHED)?.into_iter().reduce(f64::min),
        Chain(theirs) => mean(&against(theirs, CHAINED)?).map(|ratio| 1.0 / ratio),
        Bytes => Some(ours.bytes as f64 / ours.prefixes as f64),
        Updates => ours.updates.as_ref().map(|updates| updates.rate_ups),
        UpdateP99 => ours.updates.as_ref().map(|updates| updates.percentiles_us[1]),
        Load => find(section, name, Some(Fill::Whole))?.build_ms,
        OverLoaded => {
            // The last one was loaded with the routes there are; others were, and changed since.
            let loaded =
                section.scores.iter().rfind(|score| score.name == name && score.fill == Fill::Whole)?;
            mean(&ratios(section, ours, loaded, BATCHED)).map(|ratio| 1.0 / ratio)
        }
    }
}

fn words(what: Measure) -> String {
    match what {
        Batch(theirs) => format!("batches, times {theirs}"),
        BatchLeast(theirs) => format!("batches, times {theirs}, where it is least"),
        Chain(theirs) => format!("chained latency, part of {theirs}'s"),
        Bytes => "bytes a prefix".to_owned(),
        Updates => "changes a second".to_owned(),
        UpdateP99 => "99 % of changes within, µs".to_owned(),
        Load => "loaded in, ms".to_owned(),
        OverLoaded => "batches, part of the time when loaded".to_owned(),
    }
}

fn text(value: f64) -> String {
    if value >= 1e5 { format!("{:.2} M", value / 1e6) } else { format!("{value:.2}") }
}

/// All goals with what was reached, for the page. Ours are the tables that were filled route by route.
pub fn markdown(sections: &[Section]) -> String {
    let mut page =
        "| routes | table | what | aim | reached | |\n| --- | --- | --- | --- | --- | --- |\n".to_owned();
    for (stem, name, what, aim) in GOALS {
        let reached = sections.iter().find(|one| one.stem == stem).and_then(|one| measure(one, name, what));
        let verdict = match reached {
            None => "not measured",
            Some(reached) if (aim < 0.0 && reached <= -aim) || (aim > 0.0 && reached >= aim) => "yes",
            Some(_) => "**no**",
        };
        let bound = if aim < 0.0 { "at most" } else { "at least" };
        let reached = reached.map_or("-".to_owned(), text);
        page += &format!(
            "| {stem} | {name} | {} | {bound} {} | {reached} | {verdict} |\n",
            words(what),
            text(aim.abs())
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::{Lookups, Updates};

    fn score(name: &str, fill: Fill, batch_ns: f64) -> Score {
        let updates = Updates { rate_ups: 2e6, percentiles_us: [1.0, 50.0, 60.0] };
        Score {
            name: name.to_owned(),
            fill,
            bytes: 400,
            prefixes: 100,
            build_ms: Some(20.0),
            lookups: [("random", 9.0), ("table", 4.0)]
                .map(|(traffic, chained_ns)| Lookups {
                    traffic,
                    rounds_ns: [vec![chained_ns], Vec::new(), vec![batch_ns]],
                })
                .into(),
            updates: (fill == Fill::ByRoute).then_some(updates),
        }
    }

    #[test]
    fn every_aim_has_a_verdict() {
        let scores = vec![
            score("rank24", Fill::ByRoute, 2.0),
            score("rte_fib 2 B", Fill::ByRoute, 5.0),
            score("poptrie", Fill::Whole, 4.0),
            score("rank24", Fill::Whole, 1.0),
        ];
        let page = markdown(&[Section { title: String::new(), stem: "ipv4".to_owned(), scores }]);
        let line = |what: &str| {
            page.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {page}"))
        };
        assert_eq!(page.lines().count(), 2 + GOALS.len());
        assert!(line("batches, times rte_fib 2 B |").ends_with("| at least 1.80 | 2.50 | yes |"));
        assert!(line("batches, times poptrie |").ends_with("| at least 2.50 | 2.00 | **no** |"));
        assert!(line("batches, times rte_lpm |").ends_with("| - | not measured |"));
        assert!(line("part of the time when loaded |").ends_with("| at most 1.10 | 2.00 | **no** |"));
        assert!(line("99 % of changes within, µs |").ends_with("| at most 10.00 | 50.00 | **no** |"));
        assert!(line("rank24 | bytes a prefix |").ends_with("| at most 5.00 | 4.00 | yes |"));
    }
}
