//! What the service manager is told, where one started the router (`sd_notify(3)`, `WatchdogSec=` of `systemd.service(5)`):
//! that it runs, that it is well, whether it forwards, that it ends.
//!
//! It is well as long as all that vouch for its forwarding give their word ([`crate::lease`]): a router that hangs has lost the right
//! to forward within a second, and is started again by the manager a few seconds later. One that may not forward, because
//! a packet filter stands in its way or the kernel's tables are in doubt, is well, and says in its status why it does not.

use crate::lease::State;
use sd_notify::{NotifyState, notify, watchdog_enabled};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the status is looked at where no watchdog waits.
const PERIOD: Duration = Duration::from_secs(1);
/// The watchdog hears of a router that is well so many times in the time that it waits.
const WORDS: u32 = 4;

/// The thread that tells. Dropping it says that the router ends.
pub struct ServiceManager {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ServiceManager {
    /// Says that the router runs, and from now on what `state` says of it; `None` where no manager listens.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn tell(state: impl Fn() -> State + Send + 'static) -> io::Result<Option<ServiceManager>> {
        if std::env::var_os("NOTIFY_SOCKET").is_none() {
            return Ok(None);
        }
        say(&[NotifyState::Ready]);
        let watchdog = watchdog_enabled();
        let period = watchdog.map_or(PERIOD, |time| (time / WORDS).min(PERIOD));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        // A thread of its own: a manager that does not read holds up nobody else.
        let thread = std::thread::Builder::new().name("service".to_owned()).spawn(move || {
            let mut said = String::new();
            while !stopped.load(Ordering::Relaxed) {
                let State { well, text } = state();
                if well && watchdog.is_some() {
                    say(&[NotifyState::Watchdog]);
                }
                if text != said {
                    say(&[NotifyState::Status(&text)]);
                    said = text;
                }
                std::thread::park_timeout(period);
            }
        })?;
        Ok(Some(ServiceManager { stop, thread: Some(thread) }))
    }
}

impl Drop for ServiceManager {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was printed by itself.
            let _ = thread.join();
        }
        say(&[NotifyState::Stopping]);
    }
}

/// From now on another process is the service: its main one, which has taken the place of this one.
pub fn say_main_process(pid: u32) {
    say(&[NotifyState::MainPid(pid)]);
}

/// A manager that cannot be told notices by itself that it was not.
fn say(states: &[NotifyState<'_>]) {
    if let Err(error) = notify(states) {
        log::debug!("the service manager cannot be told: {error}");
    }
}
