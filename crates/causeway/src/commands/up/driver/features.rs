//! What the driver path needs of the kernel beyond what a router needs. Where it is missing the graph forwards.

use super::super::tables::Tables;
use super::Settings;
use anyhow::Result;
use causeway_bpf::ErrorKind;
use causeway_fastpath::Asker;
use causeway_netio::features::FeatureQuery;
use causeway_netio::front::Front;
use std::sync::Arc;

/// What the kernel has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// It says which interfaces take redirected frames.
    pub interfaces: bool,
    /// Programs can ask it for routes, and be run for a test.
    pub lookups: bool,
}

impl Features {
    /// Tries each.
    pub fn probe() -> Features {
        Features { interfaces: FeatureQuery::new().is_ok(), lookups: Asker::new().is_ok() }
    }

    /// What is missing.
    pub fn missing(self) -> Option<&'static str> {
        match self {
            Features { interfaces: false, .. } => {
                Some("the kernel does not say which interfaces take redirected frames (netdev, Linux 6.3)")
            }
            Features { lookups: false, .. } => {
                Some("programs cannot ask the kernel for routes (bpf_fib_lookup, BPF_PROG_TEST_RUN)")
            }
            Features { interfaces: true, lookups: true } => None,
        }
    }
}

/// The tables of ports with these names and indices, with what forwards in the driver, if that is asked for. Where the kernel
/// has not what it takes they are the graph's alone, which is said.
pub fn tables_of(
    (names, indices): (&[String], &[u32]),
    front: &Arc<Front>,
    in_driver: Option<Settings>,
    features: impl FnOnce() -> Features,
) -> Result<Tables> {
    let (names, indices) = (names.to_vec(), indices.to_vec());
    if let Some(how) = in_driver {
        let why = match features().missing() {
            Some(missing) => missing.to_owned(),
            None => match Tables::in_driver(names.clone(), indices.clone(), front.clone(), how) {
                Err(error) if is_refusal(&error) => format!("{error:#}"),
                tables => return tables,
            },
        };
        log::warn!(
            code = "driver";
            "nothing is forwarded in the driver: {why}; the graph forwards instead, and at tcx the kernel"
        );
    }
    Tables::new(names, indices, front.clone())
}

/// Whether an error is the kernel's that it cannot do something, or does not take the programs.
fn is_refusal(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<causeway_bpf::Error>());
    kinds
        .map(causeway_bpf::Error::kind)
        .any(|kind| matches!(kind, ErrorKind::Verifier | ErrorKind::Unsupported))
}

#[cfg(test)]
mod tests {
    use super::*;
    use causeway_elements::kernel::lower::Begins;
    use causeway_netio::front::{Place, Take};

    #[test]
    fn what_the_kernel_lacks_for_the_driver_path_the_graph_does() {
        let front = match Front::with_graphs(Take::NOTHING) {
            Ok(front) => Arc::new(front),
            Err(e) if e.kind() == ErrorKind::Privilege => return eprintln!("skipped: needs root: {e}"),
            Err(e) => panic!("{e}"),
        };
        let names = ["in".to_owned()];
        let in_driver = |features: Features| {
            let how =
                Settings { places: vec![(Place::Xdp, Begins::Ethernet)], check_every: 1_000, bytes: false };
            let tables = tables_of((&names, &[1]), &front, Some(how), || features).expect("tables");
            tables.forwarded().is_some()
        };
        let all = Features { interfaces: true, lookups: true };
        assert!(in_driver(all));
        for features in [Features { interfaces: false, ..all }, Features { lookups: false, ..all }] {
            assert!(features.missing().is_some() && !in_driver(features), "{features:?}");
        }
        assert_eq!((Features::probe().missing(), all.missing()), (None, None), "this kernel has all");
    }

    #[test]
    fn only_what_the_kernel_cannot_do_is_done_otherwise() {
        let refusal = |kind| {
            let error = anyhow::Error::from(causeway_bpf::Error::new(kind, "x")).context("y");
            is_refusal(&error)
        };
        assert!(refusal(ErrorKind::Verifier) && refusal(ErrorKind::Unsupported));
        assert!(!refusal(ErrorKind::System) && !refusal(ErrorKind::Privilege));
    }
}
