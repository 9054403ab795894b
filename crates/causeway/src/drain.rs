//! Waiting until workers have seen what is in their rings.

use causeway_engine::Pulse;
use causeway_netio::front::monotonic_ns;
use std::time::{Duration, Instant};

/// How long a frame that is being decided on may take until it is in its ring.
const UNDER_WAY: Duration = Duration::from_millis(50);
/// How long those are waited for whose rings are not found empty: a worker that sleeps looks four times a second, and one with
/// full rings may need longer than that. Where more comes than is forwarded they never are.
const PATIENCE: Duration = Duration::from_millis(750);

/// Lets the workers of these pulses see what is in their rings, when no more comes.
pub fn drain(pulses: &[Pulse]) {
    std::thread::sleep(UNDER_WAY);
    if !are_emptied(pulses, PATIENCE) {
        log::debug!("the workers' rings were not found empty");
    }
}

/// Waits until all rings were found empty since now; false if that takes longer.
fn are_emptied(pulses: &[Pulse], patience: Duration) -> bool {
    let (began_ns, began) = (monotonic_ns(), Instant::now());
    while pulses.iter().any(|pulse| pulse.empty_ns() < began_ns) {
        if began.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(UNDER_WAY / 10);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{self, Source, Style};
    use causeway_engine::{Conf, Cx, Element, Invalid, Library, Options, Router, Spec};
    use causeway_packet::{BATCH, Batch, Packet, Receiver};
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Packets in the ring.
    static WAITING: AtomicUsize = AtomicUsize::new(0);

    /// Receives slowly from a ring.
    static SLOW: Spec = Spec { name: "Slow", ports: "0/0", build, ..Spec::DEFAULT };

    struct Slow;

    fn build(_: &mut Conf<'_>) -> Result<Box<dyn Element>, Invalid> {
        Ok(Box::new(Slow))
    }

    impl Element for Slow {
        fn receiver(&mut self) -> Option<&mut dyn Receiver> {
            Some(self)
        }

        fn push(&mut self, _: usize, batch: &mut Batch, _: &mut Cx<'_>) {
            batch.drain().for_each(drop);
        }
    }

    impl Receiver for Slow {
        fn poll(&mut self, batch: &mut Batch, budget: usize) -> bool {
            std::thread::sleep(Duration::from_millis(2));
            let n = WAITING.load(Ordering::Relaxed).min(budget).min(BATCH);
            batch.extend((0..n).filter_map(|_| Packet::new()));
            WAITING.fetch_sub(n, Ordering::Relaxed) > n
        }

        fn waiting(&mut self) -> usize {
            WAITING.load(Ordering::Relaxed)
        }

        fn fds(&self) -> Vec<BorrowedFd<'_>> {
            Vec::new()
        }
    }

    #[test]
    fn full_rings_are_waited_for_until_they_are_empty() {
        let library = Library::new([&SLOW]);
        let source = Source::Text("test", "s :: Slow;".to_owned());
        let loaded = load::load(&source, &library, &[], Style::Click).unwrap_or_else(|e| panic!("{e}"));
        let router = Router::start(library, loaded.plan, Options::default()).unwrap();
        WAITING.store(4 * 4_096, Ordering::Relaxed);
        router.resume();
        assert!(are_emptied(&router.pulses(), Duration::from_secs(60)));
        assert_eq!(WAITING.load(Ordering::Relaxed), 0);
        assert!(!are_emptied(&[Pulse::default()], Duration::ZERO), "there is an end to it");
        router.close().expect("an end");
    }
}
