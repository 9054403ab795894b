//! What the inspector finds, put into effect: objections to forwarding, and the kernel's settings.

use super::checks;
use super::follow::Unsaid;
use super::policy::Policies;
use crate::commands::probe::Probe;
use crate::lease::{Lease, Objector, Voucher};
use crate::ports::Port;
use anyhow::{Context, Result};
use causeway_elements::kernel::Forwarding;
use causeway_kernel::{
    Finding, Inspection, Inspector, InspectorConfig, PreparedInspector, Settings, Severity,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long the inspector may be silent: what sends no message counts within a second, of which it uses a fifth.
const TERM: Duration = Duration::from_millis(1_500);
const FAILED: &str = "cannot watch what the kernel does to forwarded packets";

/// Opens what the inspector of these ports reads; some of it only root may open. `known` was said already. With `force`,
/// findings are said and not obeyed.
pub fn prepare(ports: &[Port], probe: Probe, known: Vec<Finding>, force: bool) -> Result<Prepared> {
    let own = probe.own.clone();
    let config = InspectorConfig::new(ports.iter().map(|p| p.name.clone()), Arc::new(probe));
    let pulse = config.pulse.clone();
    let inspector = PreparedInspector::open(config).context(FAILED)?;
    Ok(Prepared { inspector, pulse, known, force, own })
}

/// What was opened.
pub struct Prepared {
    inspector: PreparedInspector,
    pulse: Arc<AtomicU64>,
    known: Vec<Finding>,
    force: bool,
    /// The number of the router's own program at tcx, to be told before it is attached.
    pub own: Arc<OnceLock<u32>>,
}

/// Watches what the kernel does to forwarded packets until it is dropped.
pub fn watch(
    prepared: Prepared,
    (policies, forwarding): (Arc<Policies>, Arc<Forwarding>),
    unsaid: Arc<Unsaid>,
    lease: &Lease,
) -> Result<Inspector> {
    let Prepared { inspector, pulse, known, force, .. } = prepared;
    let state = Mutex::new(State { known, doubts: BTreeSet::new(), objections: BTreeSet::new() });
    let objector = lease.objector();
    let inspector = inspector.start(move |inspection| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        match inspection {
            Inspection::Doubt(doubt) => {
                if state.doubts.insert(doubt.code()) {
                    objector.doubt(doubt.code(), doubt.to_string());
                }
            }
            Inspection::Known { findings, settings, exceptions } => {
                // First what the settings ask for, then the right to forward.
                obey(&settings, &policies, &forwarding);
                unsaid.tell(&settings, exceptions);
                state.found(findings, &objector, force);
                std::mem::take(&mut state.doubts).into_iter().for_each(|code| objector.withdraw(code));
            }
        }
    });
    lease.require(Voucher {
        name: "the inspector of filters and settings".to_owned(),
        word_ns: Arc::new(move || pulse.load(Ordering::Acquire)),
        term: TERM,
    });
    inspector.context(FAILED)
}

fn obey(settings: &Settings, policies: &Policies, forwarding: &Forwarding) {
    let (v4, v6) = (settings.multipath4, settings.multipath6);
    forwarding.set_flow_hash((v4.policy, v4.fields), (v6.policy, v6.fields), settings.multipath_hash_seed);
    policies.set_settings(settings);
}

struct State {
    known: Vec<Finding>,
    /// Doubts that were raised.
    doubts: BTreeSet<&'static str>,
    /// Codes that were objected by.
    objections: BTreeSet<&'static str>,
}

impl State {
    /// Objects by what refuses, says what is new, withdraws what has gone. What is about a port alone is left to its policy.
    fn found(&mut self, findings: Vec<Finding>, objector: &Objector, force: bool) {
        let refuses = |f: &&Finding| f.severity == Severity::Refuse && !f.check.is_of_port() && !force;
        let mut texts: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for finding in findings.iter().filter(refuses) {
            let text = format!("{}: {}", finding.place, finding.what);
            texts.entry(finding.code()).or_default().push(text);
        }
        for finding in findings.iter().filter(|f| !refuses(f) && !self.known.contains(f)) {
            checks::show(finding);
        }
        let codes: BTreeSet<&'static str> = texts.keys().copied().collect();
        texts.into_iter().for_each(|(code, texts)| objector.object(code, texts.join("; ")));
        self.objections.difference(&codes).for_each(|code| objector.withdraw(code));
        (self.known, self.objections) = (findings, codes);
    }
}
