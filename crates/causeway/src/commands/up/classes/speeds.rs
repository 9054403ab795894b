//! Speeds of links, which drivers are asked for again and again: they may be settled anew.
//!
//! ethtool's ioctl waits for whoever sets up a device meanwhile, which with a slow one takes seconds. So this has a thread of its
//! own, which vouches for nothing.

use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The time between two rounds of questions.
const PERIOD: Duration = Duration::from_secs(1);

/// Hears the speeds.
pub(super) struct Speeds(Receiver<(usize, Option<u64>)>);

impl Speeds {
    /// Starts the thread, which has `ask` find out the speed of each of so many ports, octets a second, until nobody hears it.
    ///
    /// # Errors
    /// If none can be started.
    pub fn watch(ports: usize, ask: impl Fn(usize) -> Option<u64> + Send + 'static) -> io::Result<Speeds> {
        let (tell, answers) = channel();
        let run = move || {
            while (0..ports).all(|port| tell.send((port, ask(port))).is_ok()) {
                std::thread::sleep(PERIOD);
            }
        };
        std::thread::Builder::new().name("speeds".to_owned()).spawn(run)?;
        Ok(Speeds(answers))
    }

    /// The answers that have come since: ports by number, and their speeds if they are known. Nothing is waited for.
    pub fn news(&self) -> impl Iterator<Item = (usize, Option<u64>)> {
        self.0.try_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_hears_of_speeds_does_not_wait_for_them() {
        let (release, held) = channel();
        let ask = move |port| {
            held.recv().unwrap();
            (port > 0).then_some(port as u64 * 1_000)
        };
        let speeds = Speeds::watch(2, ask).unwrap();
        assert_eq!(speeds.news().next(), None, "the driver has not said anything");
        let next = || {
            release.send(()).unwrap();
            loop {
                match speeds.news().next() {
                    Some(answer) => return answer,
                    None => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        };
        // More than once.
        assert_eq!([next(), next(), next()], [(0, None), (1, Some(1_000)), (0, None)]);
    }
}
