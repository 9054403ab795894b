//! What forwards between r0 and r1.

use super::testbed::Testbed;
use crate::inside::process_ns;
use crate::process::Process;
use anyhow::Result;
use causeway_bpf::XdpLink;

/// Microseconds for which [`Way::Spinning`] looks for packets: longer than any pause in a measurement.
const SPIN_US: &str = "100000";

/// What forwards, in the order of a round. The first is the baseline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Kernel,
    Causeway,
    /// Causeway whose worker looks for packets without sleeping.
    Spinning,
    /// Causeway whose graph runs in the driver.
    Driver,
    /// The same behind the stack's entrance, where packets may be longer than a frame.
    DriverAtTcx,
    /// A program that asks for the kernel's routes.
    FibLookup,
    Redirect,
}

impl Way {
    /// Those whose rates are compared: with enough to do no worker sleeps.
    pub const ALL: [Way; 5] = [Way::Kernel, Way::Causeway, Way::Driver, Way::FibLookup, Way::Redirect];
    /// Those that TCP crosses. What the others do not rewrite or leave to a stack would not arrive.
    pub const TCP: [Way; 3] = [Way::Kernel, Way::DriverAtTcx, Way::Driver];

    pub fn name(self) -> &'static str {
        match self {
            Way::Kernel => "kernel",
            Way::Causeway => "causeway up",
            Way::Spinning => "causeway up --spin",
            Way::Driver => "causeway up --driver",
            Way::DriverAtTcx => "causeway up --driver, tcx",
            Way::FibLookup => "bpf_fib_lookup",
            Way::Redirect => "XDP redirect",
        }
    }

    /// Options of `causeway up`, if it is that.
    fn options(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Way::Causeway => &["--attach", "xdp"],
            Way::Spinning => &["--attach", "xdp", "--spin", SPIN_US],
            Way::Driver => &["--attach", "xdp", "--driver"],
            Way::DriverAtTcx => &["--attach", "tcx", "--driver"],
            Way::Kernel | Way::FibLookup | Way::Redirect => return None,
        })
    }
}

/// What keeps a way of forwarding in place.
pub enum Forwarder {
    Kernel,
    Causeway(Box<Process>),
    Program { _link: XdpLink },
}

impl Forwarder {
    pub fn start(bed: &Testbed, way: Way, processor: usize) -> Result<Forwarder> {
        bed.check()?;
        bed.redirect_back(way == Way::Driver)?;
        if let Some(options) = way.options() {
            return Ok(Forwarder::Causeway(Box::new(bed.causeway(processor, options)?)));
        }
        Ok(match way {
            Way::FibLookup => Forwarder::Program { _link: bed.fib_lookup()? },
            Way::Redirect => Forwarder::Program { _link: bed.redirect()? },
            _ => {
                bed.kernel()?;
                Forwarder::Kernel
            }
        })
    }

    /// Processor time that this process and the router have had.
    pub fn cpu_ns(&self) -> Result<u64> {
        let router = match self {
            Forwarder::Causeway(router) => process_ns(router.id())?,
            Forwarder::Kernel | Forwarder::Program { .. } => 0,
        };
        Ok(process_ns(std::process::id())? + router)
    }
}
