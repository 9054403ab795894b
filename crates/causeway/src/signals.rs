//! Signals that end the router: SIGINT, SIGTERM and SIGHUP.
//!
//! Who starts it so that SIGHUP is ignored, as nohup(1) does, wants it to outlive the terminal: then that one does nothing.
//! The first asks for an orderly end. Whoever sends another means it: the process ends at once, and the kernel takes
//! back what it held. So it does when the orderly end takes too long.

use causeway_elements::control::{SIGNALS, WatchSignals};
use causeway_engine::{Error, Persistent};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, iterator, low_level};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const ALL: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// Signals that come together are one: timeout(1) sends its signal to the process and to its group, and a terminal
/// that closes hangs up twice.
const TOGETHER: Duration = Duration::from_millis(100);
/// How long an orderly end may take.
pub const ORDERLY: Duration = Duration::from_secs(10);

/// When the first signal came that ends the router.
static ASKED: OnceLock<Instant> = OnceLock::new();

/// When this process was told by a signal to end, if it was: [`ORDERLY`] after that it is ended by force.
pub fn asked_at() -> Option<Instant> {
    ASKED.get().copied()
}

/// Which signal came.
#[derive(Clone)]
pub struct Signals {
    latest: Arc<AtomicUsize>,
    scripts: Arc<Scripts>,
}

/// Is told the name of a script.
type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// Scripts that wait for signals, which then do not end the router.
struct Scripts {
    handle: iterator::Handle,
    /// Signals with the names of scripts.
    waiting: Mutex<Vec<(i32, String)>>,
    /// Called with the name of a script whose signal came.
    tell: OnceLock<Tell>,
}

impl Scripts {
    fn waiting(&self) -> MutexGuard<'_, Vec<(i32, String)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The signal came: tells the scripts that waited for it, if there are any. They wait again when they say so.
    fn take(&self, signal: i32) -> bool {
        let taken: Vec<String> = {
            let mut waiting = self.waiting();
            let taken =
                waiting.iter().filter(|(own, _)| *own == signal).map(|(_, name)| name.clone()).collect();
            waiting.retain(|(own, _)| *own != signal);
            taken
        };
        if let Some(tell) = self.tell.get() {
            taken.iter().for_each(|name| tell(name));
        }
        !taken.is_empty()
    }
}

/// What scripts find among the values that outlive a hot swap.
struct Watcher(Arc<Scripts>);

impl WatchSignals for Watcher {
    fn watch(&self, signal: i32, name: &str) -> Result<(), Error> {
        self.0.handle.add_signal(signal).map_err(Error::caused_by)?;
        self.0.waiting().push((signal, name.to_owned()));
        Ok(())
    }
}

impl Signals {
    /// Watches for signals from here on; `wake` is called when the first comes.
    pub fn watch(wake: impl FnOnce() + Send + 'static) -> io::Result<Signals> {
        let (latest, insisted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let is_heeded = |&signal: &i32| signal != SIGHUP || !is_ignored(signal);
        let heeded: Vec<i32> = ALL.into_iter().filter(is_heeded).collect();
        for &signal in &heeded {
            // The exit status that a shell gives to a command which a signal ended.
            flag::register_conditional_shutdown(signal, 128 + signal, insisted.clone())?;
        }
        let mut signals = iterator::Signals::new(&heeded)?;
        let scripts = Scripts { handle: signals.handle(), waiting: Mutex::default(), tell: OnceLock::new() };
        let scripts = Arc::new(scripts);
        let (seen, own) = (latest.clone(), scripts.clone());
        let watch = move || {
            let Some(signal) = signals.forever().find(|signal| !own.take(*signal) && heeded.contains(signal))
            else {
                return;
            };
            ASKED.get_or_init(Instant::now);
            seen.store(signal.unsigned_abs() as usize, Ordering::Relaxed);
            wake();
            std::thread::sleep(TOGETHER);
            insisted.store(true, Ordering::Relaxed);
            std::thread::sleep(ORDERLY);
            log::error!(code = "end-forced"; "it does not end in an orderly way, so it ends at once");
            log::logger().flush();
            low_level::exit(1);
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(watch)?;
        Ok(Signals { latest, scripts })
    }

    /// Lets scripts wait for signals, which find `values`; `tell` is called with the name of one whose signal came.
    pub fn tell_scripts(&self, values: &Persistent, tell: impl Fn(&str) + Send + Sync + 'static) {
        // Called once.
        let _ = self.scripts.tell.set(Box::new(tell));
        let watcher: Arc<dyn WatchSignals> = Arc::new(Watcher(self.scripts.clone()));
        values.lock().unwrap_or_else(PoisonError::into_inner).insert(SIGNALS.to_owned(), Arc::new(watcher));
    }

    /// The latest signal, if one came.
    pub fn latest(&self) -> Option<i32> {
        i32::try_from(self.latest.load(Ordering::Relaxed)).ok().filter(|&signal| signal != 0)
    }
}

/// Whether this process was started so that it ignores a signal (proc_pid_status(5), `SigIgn`).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
