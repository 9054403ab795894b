//! Words of the process that takes over, while it opens its ports: with many queues that takes long.

use super::message::Line;
use serde_json::{Value, json};
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The name of the word, in which there is the number of rings that are open by now.
const OPENED: &str = "opened";
/// How often it is looked.
const PERIOD: Duration = Duration::from_millis(500);

/// Says how many rings are open whenever there are more, until it is dropped.
pub struct Progress {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts the thread that asks `opened` for their number.
    ///
    /// # Errors
    /// If none can be started.
    pub fn tell(line: Line, opened: impl Fn() -> usize + Send + 'static) -> io::Result<Progress> {
        let (stop, stopped) = channel();
        let run = move || {
            let mut told = 0;
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let now = opened();
                if now <= told {
                    continue;
                }
                told = now;
                if line.send(&json!({ OPENED: now }), &[]).is_err() {
                    // Whoever waits for the last word sees it.
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(run)?;
        Ok(Progress { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic of the thread was logged by itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// How long the last word is waited for.
pub struct Patience {
    since: Instant,
    opened: u64,
}

impl Patience {
    /// From now on.
    pub fn from(now: Instant) -> Patience {
        Patience { since: now, opened: 0 }
    }

    /// Since when nothing has come of it.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Whether a message that comes at this time is a word in between. With each ring more the time begins anew.
    pub fn is_progress(&mut self, message: &Value, now: Instant) -> bool {
        let Some(opened) = message[OPENED].as_u64() else { return false };
        if opened > self.opened {
            *self = Patience { since: now, opened };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_other_is_told_whenever_more_is_open() {
        let (a, b) = UnixStream::pair().unwrap();
        let (a, mut b) = (Line::new(a).unwrap(), Line::new(b).unwrap());
        let looks = AtomicUsize::new(0);
        // None, then two, then no more, then three.
        let opened = move || [0, 2, 2, 3][looks.fetch_add(1, Ordering::Relaxed).min(3)];
        let progress = Progress::tell(a, opened).unwrap();
        let mut hear = || b.receive(Duration::from_secs(20)).unwrap().0;
        assert_eq!((hear(), hear()), (json!({ "opened": 2 }), json!({ "opened": 3 })));
        drop(progress);
        assert!(b.receive(Duration::from_secs(20)).is_err(), "nothing comes after its end");
    }

    #[test]
    fn time_begins_anew_with_each_ring_more_and_not_with_each_word() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut patience = Patience::from(start);
        assert!(patience.is_progress(&json!({ "opened": 1 }), at(9)));
        assert_eq!(patience.since(), at(9));
        assert!(patience.is_progress(&json!({ "opened": 1 }), at(18)));
        assert_eq!(patience.since(), at(9), "nothing more is open");
        assert!(!patience.is_progress(&json!({ "taken": {} }), at(18)));
        assert_eq!(patience.since(), at(9));
    }
}
