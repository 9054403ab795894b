//! The routers of an experiment's comparisons: which of them are measured, and the names of their processors.

use crate::bed::Kind;
use crate::run::Comparison;
use anyhow::{Result, ensure};
use causeway_results::Document;

/// Leaves only the routers of these names, if any are named.
pub fn restrict(comparisons: &mut Vec<Comparison>, only: &[String]) -> Result<()> {
    let all: Vec<String> = comparisons.iter().flat_map(|one| &one.devices).cloned().collect();
    for name in only {
        ensure!(all.contains(name), "it has no router '{name}'; there are {}", all.join("; "));
    }
    if !only.is_empty() {
        comparisons.iter_mut().for_each(|one| one.devices.retain(|name| only.contains(name)));
        comparisons.retain(|one| !one.devices.is_empty());
    }
    Ok(())
}

/// Calls a processor that only one port's thread runs on by that port, so that what is said of it is of no machine's numbers.
pub fn name_processors(document: &mut Document, comparison: &Comparison) {
    let description = &comparison.description;
    for router in &comparison.devices {
        let Some(Kind::Graph(graph)) = description.devices.get(router) else { continue };
        let own = graph.port_processors(&description.device_processors);
        for (port, processor) in own.iter().enumerate() {
            if own.iter().filter(|one| *one == processor).count() > 1 {
                continue;
            }
            let (before, after) = (
                format!("processor {processor}/inside {router}, "),
                format!("processor of in{port}/inside {router}, "),
            );
            for series in &mut document.series {
                if let Some(rest) = series.name.strip_prefix(&before) {
                    series.name = format!("{after}{rest}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::Experiment;
    use crate::run::Preset;
    use causeway_results::{Measurement, Run, Series};

    const TWO: [usize; 2] = [3, 5];
    const FOUR: [usize; 4] = [3, 5, 6, 7];

    #[test]
    fn some_routers_alone_are_measured_if_they_are_asked_for() {
        let one = Experiment::find("CvL-7").expect("known");
        let all = || one.comparisons(&Preset::quick(), 1, &TWO).expect("comparisons");
        let (mut some, only) = (all(), ["graph, 2 flows".to_owned()]);
        restrict(&mut some, &only).expect("known");
        assert_eq!((some.len(), &some[0].devices[..], some[0].description.ports), (1, &only[..], 4));
        let mut same = all();
        restrict(&mut same, &[]).expect("nothing is asked for");
        assert_eq!(same.len(), all().len());
        let error = restrict(&mut all(), &["graph".to_owned()]).expect_err("unknown").to_string();
        assert!(error.starts_with("it has no router 'graph'; there are kernel, 1 flow; "), "{error}");
    }

    #[test]
    fn processors_of_ports_are_called_by_them() {
        let one = Experiment::find("AFF-7").expect("known");
        let comparisons = one.comparisons(&Preset::quick(), 1, &FOUR).expect("comparisons");
        let mut document = Document::new(Run::default());
        let sends = comparisons[0].description.device_processors[1];
        for processor in [sends, 1_000] {
            let name = format!("processor {processor}/inside mode II, napi, Q 2, 64 bytes: availability");
            document.series.push(Series::single(&name, "availability", "%", Measurement::measured([1.0])));
        }
        comparisons.iter().for_each(|one| name_processors(&mut document, one));
        let names: Vec<&str> = document.series.iter().map(|series| series.name.as_str()).collect();
        let rest = "/inside mode II, napi, Q 2, 64 bytes: availability";
        assert_eq!(names, [format!("processor of in2{rest}"), format!("processor 1000{rest}")]);
    }
}
